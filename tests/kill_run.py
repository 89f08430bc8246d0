"""Kill the kernel of `labkit run` at random moments, and see that nothing acknowledged is lost and nothing is left.

    python tests/kill_run.py [--lab 01] [--mode smoke] [--times 20] [--seed 0] [--labs FOLDER]

Not a test that pytest collects: twenty smoke runs take minutes. Exit code 0 when every kill went as it must.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
from fixture_labs import marked, runner

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 10.0


@dataclass(frozen=True)
class Killed:
    """One run: exit code, seconds from kill to exit, records at the kill and after, ids that were lost, processes that were left."""

    moment_s: float
    where: str
    code: int
    exit_s: float
    before: int
    after: int
    lost: set[str]
    left: list[int]

    @property
    def good(self) -> bool:
        return self.code != 0 and self.exit_s <= LIMIT_S and self.after >= self.before and not self.lost and not self.left


def records(home: Path) -> set[str]:
    """Ids of all whole records."""
    found = set()
    for line in (home / "records.jsonl").read_bytes().split(b"\n") if (home / "records.jsonl").exists() else []:
        try:
            found.add(json.loads(line)["id"])
        except ValueError:
            continue
    return found


def acknowledged(home: Path) -> set[str]:
    """Ids that the lab's cells printed, out of the executed notebook; a cell's prints may have come in pieces."""
    outputs = [cell.get("outputs", []) for path in home.glob("runs/*/*/executed.ipynb") for cell in nbformat.read(path, as_version=4).cells]
    texts = ["".join(str(output.get("text", "")) for output in cell) for cell in outputs]
    return {made for text in texts for made in re.findall(r"\brecord ([0-9a-f]{12})\b", text)}


def start(folder: Path, home: Path, words: list[str]) -> subprocess.Popen[bytes]:
    if (ROOT / "cache" / "models").is_dir():  # a fresh home, but no second download
        (home / "cache").mkdir()
        (home / "cache" / "models").symlink_to(ROOT / "cache" / "models")
    env = os.environ | {"LABKIT_HOME": str(home), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, *runner(folder, *words)], env=env, stdout=(home / "out").open("wb"), stderr=subprocess.STDOUT)


def kernel_of(home: Path, process: subprocess.Popen[bytes]) -> psutil.Process:
    """The kernel, as soon as it has been started."""
    while process.poll() is None:
        if found := marked(home):
            return found[0]
        time.sleep(0.005)
    raise SystemExit(f"the run ended without a kernel:\n{(home / 'out').read_text()}")


def alive(process: psutil.Process) -> bool:
    """Whether it still runs: one that has ended stays a zombie until init collects it, which took 1.5 s on one machine."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def whole(folder: Path, words: list[str]) -> float:
    """Seconds that a kernel lives in a run that nobody disturbs."""
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        process = start(folder, home, words)
        kernel = kernel_of(home, process)
        started = time.monotonic()
        while alive(kernel):
            time.sleep(0.02)
        lived = time.monotonic() - started
        if process.wait():
            raise SystemExit(f"the undisturbed run failed:\n{(home / 'out').read_text()}")
        print(f"undisturbed: {lived:.1f} s, {len(records(home))} records, {len(acknowledged(home))} acknowledged ids in the notebook")
        if not acknowledged(home):
            raise SystemExit("the notebook prints no line with `record <12 hex>`: nothing could be checked")
        return lived


def kill_once(folder: Path, words: list[str], moment_s: float) -> Killed | None:
    """Start a run, kill its kernel `moment_s` after it was born; None when it had ended by then."""
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        process = start(folder, home, words)
        kernel = kernel_of(home, process)
        time.sleep(moment_s)
        before = len(records(home))
        family = marked(home)
        if not alive(kernel):  # this run was shorter than the undisturbed one
            process.wait()
            return None
        kernel.kill()
        killed = time.monotonic()
        try:
            code = process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            code = 0
        exit_s = time.monotonic() - killed
        left = [p.pid for p in {*marked(home), *family} if alive(p)]
        said = re.findall(r"^\d\d (cell \d+/\d+)", (home / "out").read_text(), re.M)
        where = said[-1] if said else "starting"
        return Killed(moment_s, where, code, exit_s, before, len(records(home)), acknowledged(home) - records(home), left)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lab", default="01")
    parser.add_argument("--mode", default="smoke")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--labs", type=Path, default=ROOT / "notebooks")
    given = parser.parse_args()
    words = [given.lab, "--mode", given.mode]
    lived = whole(given.labs, words)
    own = random.Random(given.seed)
    print(f"{'moment':>8}  {'where':<14} code  {'exit':>6}  records before, after  lost  left")
    bad = 0
    for moment in sorted(own.uniform(0, lived) for _ in range(given.times)):
        while not (k := kill_once(given.labs, words, moment)):
            moment *= 0.97
        bad += not k.good
        print(
            f"{k.moment_s:6.2f} s  {k.where:<14} {k.code:4}  {k.exit_s:4.1f} s  {k.before:14} {k.after:6}  {len(k.lost):4}  {len(k.left):4}"
            f"{'' if k.good else '  BAD ' + ' '.join(sorted(k.lost))}",
            flush=True,
        )
    print(f"{given.times - bad} of {given.times} kills went as they must")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
