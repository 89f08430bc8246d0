"""One measurement at a time on a machine, and a look at who else uses the processor."""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

BUSY_CORES = 0.10  # others together, over this share of one core: the measurement is marked busy
SEEN_CORES = 0.05  # a process under this share is not named
LOOK_S = 0.5
BROWSERS = ("chrom", "firefox", "safari", "msedge", "electron", "plugin-container", "webkit")


def lock_path() -> Path:
    """The lock file, one for all users, kernels and command lines of this machine."""
    return Path(os.environ.get("LABKIT_LOCK") or Path(tempfile.gettempdir()) / "labkit-measuring.lock")


class Stopped(Exception):
    """Stop was pressed while the measurement waited for the lock."""


@contextmanager
def exclusive(what: str, say: Callable[[str], None] = print, stop: threading.Event | None = None) -> Iterator[None]:
    """Hold the machine for one timed region. A waiter says who holds it. Raises Stopped when `stop` is set first."""
    path = lock_path()
    lock, note = FileLock(path, mode=0o666), path.with_suffix(".holder")
    told = False
    while not lock.is_locked:
        try:
            lock.acquire(timeout=0.2)
        except Timeout:
            if stop is not None and stop.is_set():
                raise Stopped(what) from None
            if not told:
                say(f"waiting: {_holder(note)} is measuring on this machine")
                told = True
    try:
        with suppress(OSError):
            note.write_text(f"process {os.getpid()} ({what})", encoding="utf-8")
        yield
    finally:
        lock.release()


def _holder(note: Path) -> str:
    try:
        return note.read_text(encoding="utf-8").strip() or "another process"
    except OSError:
        return "another process"


def _cpu_seconds() -> dict[int, tuple[str, float]]:
    found = {}
    for p in psutil.process_iter(["pid", "name", "cpu_times"]):
        times = p.info["cpu_times"]
        if times is not None:
            found[p.info["pid"]] = (p.info["name"] or "?", times.user + times.system)
    return found


def _ours() -> set[int]:
    """This process, its children, and what it was started by (Jupyter server, runner, shell)."""
    me = psutil.Process()
    return {me.pid} | {p.pid for p in me.children(recursive=True)} | {p.pid for p in me.parents()}


def others(look_s: float = LOOK_S) -> list[str]:
    """Names of foreign processes if together they used over a tenth of a core during `look_s`; else nothing."""
    before = _cpu_seconds()
    time.sleep(look_s)
    return _users(before, look_s)


def _users(before: dict[int, tuple[str, float]], look_s: float) -> list[str]:
    ours = _ours()
    used: dict[str, float] = {}
    for pid, (name, seconds) in _cpu_seconds().items():
        if pid in ours or name.lower().startswith(BROWSERS):
            continue
        used[name] = used.get(name, 0.0) + seconds - before.get(pid, (name, 0.0))[1]  # born since: all of it
    if sum(used.values()) / look_s <= BUSY_CORES:
        return []
    ranked = sorted(used.items(), key=lambda kv: -kv[1])
    named = [(name, seconds) for name, seconds in ranked[:3] if seconds > SEEN_CORES * look_s] or ranked[:1]
    return [f"{name} {seconds / look_s:.0%}" for name, seconds in named]


class Busy(Sequence[str]):
    """Foreign processes that were busy before a measurement or have been since: looked at anew until it is over."""

    def __init__(self, before: Sequence[str]) -> None:
        self.before, self.start, self.start_s = list(before), _cpu_seconds(), time.monotonic()
        self.over: list[str] | None = None

    def now(self) -> list[str]:
        """Their names."""
        if self.over is not None:
            return self.over
        return self.before or _users(self.start, max(LOOK_S, time.monotonic() - self.start_s))

    def end(self) -> None:
        """The measurement is over: what comes later is not its fault."""
        self.over = self.now()

    def __getitem__(self, index: Any) -> Any:
        return self.now()[index]

    def __len__(self) -> int:
        return len(self.now())


def wait_until_quiet(patience_s: float, stop: threading.Event | None = None) -> Busy:
    """Wait up to `patience_s` for the others to finish. What is still busy then, or gets busy later, marks the record."""
    deadline = time.monotonic() + patience_s
    while (busy := others()) and time.monotonic() < deadline:
        if stop is not None and stop.is_set():
            raise Stopped("waiting for the others to finish")
    return Busy(busy)
