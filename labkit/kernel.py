"""One lab in a kernel of its own: cell by cell, with what was made kept and no process left behind."""

import asyncio
import errno
import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import ensure_async
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

from labkit.env import child_environment
from labkit.errors import BadInput, NotFetched
from labkit.measure.record import save

BAD_INPUT = (BadInput.__name__, NotFetched.__name__)  # a kernel tells only the name of what was raised
FULL = (errno.ENOSPC, errno.EDQUOT)
DISK_FULL = tuple(f"[Errno {number}]" for number in FULL)


@dataclass(frozen=True)
class Outcome:
    """How a lab ended: exit code (0 passed, 1 failed, 2 bad input, 128+n stopped), one line, and a few more."""

    lab: str
    seconds: float = 0.0
    code: int = 0
    line: str = ""
    details: str = ""


class Stop:
    """Set once by a signal; `code` is the exit code that it asks for."""

    def __init__(self) -> None:
        self.code = 0
        self.asked = asyncio.Event()

    def __call__(self, code: int) -> None:
        self.code = self.code or code
        self.asked.set()


async def run_lab(name: str, nb: Any, folder: Path, limit_s: float, stop: Stop, say: Callable[[int], None]) -> Outcome:
    """Run notebook `nb` with `folder` as its working directory; `say` gets the number of each code cell as it starts.

    Writes executed.ipynb after every cell, story.jsonl (by the kernel) and kernel.log there. Never raises for what
    a kernel does; when it returns, no process that carries this run's story path is alive.
    """
    started = time.monotonic()
    story = folder / "story.jsonl"
    client = NotebookClient(nb, startup_timeout=120, kernel_name="python3", coalesce_streams=True)
    client.log.disabled = True  # what went wrong is in the outcome
    work = asyncio.create_task(_execute(client, folder, story, say))
    halt = asyncio.create_task(stop.asked.wait())
    try:
        await asyncio.wait({work, halt}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        in_time = work.done()
        if not in_time:
            work.cancel()
        (error,) = await asyncio.gather(work, return_exceptions=True)
    finally:
        halt.cancel()
        reap(story)
        save(folder / "executed.ipynb", nbformat.writes(nb))
    seconds = time.monotonic() - started
    if not in_time:
        why = "stopped" if stop.code else f"stopped at its time limit of {limit_s:.0f} s: raise it with --timeout"
        return Outcome(name, seconds, stop.code or 1, f"{name} {why}, in cell {client.code_cells_executed}")
    return _outcome(name, seconds, client.code_cells_executed, error)


async def _execute(client: NotebookClient, folder: Path, story: Path, say: Callable[[int], None]) -> None:
    with (folder / "kernel.log").open("wb") as log:
        try:
            client.km = AsyncKernelManager(kernel_name="python3")
            env = child_environment(LABKIT_STORY=str(story))  # the story's path marks the kernel and all its children
            await client.async_start_new_kernel(cwd=str(folder), env=env, stdout=log, stderr=log)
            await client.async_start_new_kernel_client()
            for index, cell in enumerate(client.nb.cells):
                if cell.cell_type == "code":
                    say(client.code_cells_executed + 1)
                await client.async_execute_cell(cell, index, execution_count=client.code_cells_executed + 1)
                save(folder / "executed.ipynb", nbformat.writes(client.nb))
            await _end(client)
        finally:
            await _close(client)


async def _end(client: NotebookClient) -> None:
    """Ask the kernel to end and wait; one that is killed while it does so has died like any other.

    All cells have run by now: one that aborts on its way out (ZeroMQ asserts in its own teardown, now and then) loses nothing.
    """
    kernel: Any = client.km
    client.kc.shutdown()  # type: ignore[union-attr]
    with suppress(TimeoutError):  # then _close kills it
        code = await asyncio.wait_for(kernel.provisioner.wait(), timeout=5)
        if code in (-signal.SIGKILL, -signal.SIGTERM):
            raise DeadKernelError(f"killed by signal {-code} while it ended")


async def _close(client: NotebookClient) -> None:
    if client.kc is not None:
        client.kc.stop_channels()
    if client.km is not None:
        await ensure_async(client.km.shutdown_kernel(now=True))


def reap(story: Path) -> list[int]:
    """Kill every process that was started with this story's path, in whatever session; their ids."""
    ended: list[int] = []
    empty = 0
    while empty < 2:  # a child in the middle of its exec shows no environment for a moment: look again
        found = [p for p in psutil.process_iter() if p.pid not in (os.getpid(), *ended) and _marked(p, story)]
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(found, timeout=5)
        ended += [process.pid for process in found]
        empty = 0 if found else empty + 1
        if not found:
            time.sleep(0.1)
    return ended


def _marked(process: psutil.Process, story: Path) -> bool:
    try:
        return process.environ().get("LABKIT_STORY") == str(story)
    except (psutil.Error, OSError):  # ended meanwhile, or another user's
        return False


def _outcome(name: str, seconds: float, cell: int, error: BaseException | None) -> Outcome:
    if error is None:
        return Outcome(name, seconds)
    if isinstance(error, CellExecutionError):
        if error.ename in BAD_INPUT:
            return Outcome(name, seconds, 2, error.evalue)
        said = " ".join(error.evalue.split())
        if error.ename == "OSError" and said.startswith(DISK_FULL):
            return Outcome(name, seconds, 2, f"the disk is full ({said}): free some space; what was recorded before is safe")
        return Outcome(name, seconds, 1, f"{name} failed in cell {cell}: {error.ename}: {said}", _tail(error.traceback))
    if isinstance(error, OSError) and error.errno in FULL:
        raise error  # the command line says it in one line
    place = f"in cell {cell}" if cell else "while starting"
    return Outcome(
        name, seconds, 1, f"{name} ended {place}: its kernel died (killed, or out of memory)", f"{type(error).__name__}: {error}"
    )


def _tail(traceback: str, lines: int = 8) -> str:
    """The last lines of a cell's traceback, without colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", traceback)
    return "\n".join([line for line in plain.splitlines() if line.strip()][-lines:])
