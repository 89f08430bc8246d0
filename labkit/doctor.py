"""What this machine has for the labs, what goes on without, and the command that fixes what is missing. Asks no network."""

import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from labkit.env import home, machine, package_versions
from labkit.errors import BadInput

DISK_BYTES, MEMORY_BYTES = 2 * 2**30, 2 * 2**30
COMPILERS, BROWSERS = ("c++", "g++", "clang++", "cl"), ("chromium", "chromium-browser", "google-chrome", "chrome")


@dataclass(frozen=True)
class Check:
    """One line. `without`: what still works when it is missing, or why nothing does; `fix`: a command or an action."""

    name: str
    ok: bool
    found: str
    without: str = ""
    fix: str = ""
    needed: bool = False  # no lab runs without it

    def __str__(self) -> str:
        line = f"{'ok ' if self.ok else 'no '} {self.name:<12} {self.found}"
        return line if self.ok else "\n".join([line, f"    {'':<12} {self.without}", f"    {'':<12} fix: {self.fix}"])


def checks() -> Iterator[Check]:
    """All of them, the needed ones first. Never raises for what is missing."""
    python = platform.python_version()
    yield Check(
        "python", sys.version_info >= (3, 11), python, "no lab runs", "install Python 3.11 or newer, then `make setup`", needed=True
    )
    missing = [name for name, found in package_versions().items() if found == "missing"]
    named = ", ".join(f"{name} {found}" for name, found in package_versions().items() if name in ("torch", "transformers", "jupyterlab"))
    yield Check("packages", not missing, f"missing: {', '.join(missing)}" if missing else named, "no lab runs", "`make setup`", needed=True)
    where = home() if home().exists() else home().parent
    free = shutil.disk_usage(where).free if where.exists() else 0
    yield Check("disk", free >= DISK_BYTES, f"{free / 2**30:.1f} GiB free in {home()}", "runs may stop half-way, with their records kept",
                f"free {DISK_BYTES >> 30} GiB, or set LABKIT_HOME to another folder")  # fmt: skip
    if not {"torch", "transformers"} & set(missing):
        yield from _machine()
        yield _real_model()
    yield _program("compiler", COMPILERS, "torch.compile is not available; all else works", "install g++ (Debian: `apt-get install g++`)")
    yield _program("browser", BROWSERS, "the browser tests are skipped; labs need only your own browser", "`apt-get install chromium`")


def _machine() -> Iterator[Check]:
    try:
        here = machine()
    except BadInput as err:  # a wrong LABKIT_THREADS
        yield Check("machine", False, str(err), "no lab starts", "correct or unset the variable", needed=True)
        return
    gib = here.memory_bytes / 2**30
    said = f"{here.processor}, {here.cores} cores, {here.threads} used"
    yield Check(
        "processor", True, said + "".join(f"; {name}: {can.reason}" for name, can in here.capabilities.items() if name != "float32")
    )
    yield Check(
        "memory", here.memory_bytes >= MEMORY_BYTES, f"{gib:.1f} GiB", "smoke mode works", f"use a machine with {MEMORY_BYTES >> 30} GiB"
    )
    gpu = here.device == "cuda"
    yield Check("GPU", gpu, here.device_name if gpu else "none that torch sees", "everything is measured on the processor, and says so",
                "nothing to install: a machine with an NVIDIA card, and torch's CUDA build")  # fmt: skip


def _real_model() -> Check:
    from labkit.engine import smollm2

    there = (smollm2.folder() / "card.json").exists()
    without = "its questions stay undecided; the shipped tiny-deepseek and random models answer all others, without a network"
    return Check(
        "real model", there, smollm2.NAME if there else f"{smollm2.NAME} is not here", without, f"`labkit models get {smollm2.NAME}`"
    )


def _program(name: str, known: tuple[str, ...], without: str, fix: str) -> Check:
    found = next((path for path in map(shutil.which, known) if path), None)
    return Check(name, found is not None, found or "none found", without, fix)


def report() -> tuple[list[str], int]:
    """(lines, exit code): 1 when something is missing that every lab needs."""
    found = list(checks())
    ready = all(check.ok for check in found if check.needed)
    missing = sum(not check.ok for check in found)
    verdict = f"the labs can run; {missing} of {len(found)} checks found something missing" if ready else "the labs cannot run yet"
    return [*map(str, found), verdict], 0 if ready else 1
