"""What `make` calls: set-up, labs, tests, checks. Standard library only, so that a bare Python can start it."""

import ast
import hashlib
import os
import shlex
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile
from statistics import median

from labkit.env import ROOT
from labkit.errors import BadInput

ENV = ROOT / ".venv"
PYTHON = ENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = ENV / "labkit-set-up"
REAL_MODEL = "smollm2-135m"
LINES, FILE_LINES, FUNCTION_LINES = 9000, 300, 40


def _python(*args: str, cwd: Path = ROOT) -> int:
    """Run the environment's Python with `args`; its exit code."""
    return subprocess.run([str(PYTHON), *args], cwd=cwd, check=False).returncode


def _all(*commands: str) -> int:
    """Run programs of the environment one after the other, each with its seconds; the first exit code that is not 0."""
    codes = []
    for command in commands:
        program, *words = shlex.split(command)
        started = time.monotonic()
        codes.append(subprocess.run([str(PYTHON.parent / program), *words], cwd=ROOT, check=False).returncode)
        print(f"{'FAILED' if codes[-1] else 'ok':>6}  {time.monotonic() - started:5.1f} s  {command}", flush=True)
    return next((code for code in codes if code), 0)


def _wanted() -> str:
    """What the environment must have been made from."""
    parts = [(ROOT / name).read_bytes() for name in ("requirements.txt", "pyproject.toml")] + [str(ROOT).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def setup() -> int:
    """make .venv, install the exact requirements and fetch the small real model"""
    if not (ROOT / "requirements.txt").is_file():
        raise BadInput(f"{ROOT} is not a checkout of the project: clone it and run this there")
    if not (STAMP.is_file() and STAMP.read_text() == _wanted()):
        _install()
    if _python("-m", "labkit", "models", "get", REAL_MODEL):
        print(f"going on without {REAL_MODEL}: rows that need it stay undecided until `labkit models get {REAL_MODEL}`", flush=True)
    return 0


def _install() -> None:
    print(f"making {ENV.name} from requirements.txt: some minutes, once", flush=True)
    STAMP.unlink(missing_ok=True)
    venv.create(ENV, with_pip=True)
    quiet = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    for what in (("-r", "requirements.txt"), ("--no-deps", "-e", ".")):
        if _python(*quiet, *what):
            raise BadInput(f"pip could not install {what[-1]}: see its last lines above, mend that and run setup again")
    STAMP.write_text(_wanted())


def lab() -> int:
    """set up and open the labs in JupyterLab; notebooks are copied to work/ and never overwritten there"""
    setup()
    work = ROOT / "work"
    work.mkdir(exist_ok=True)
    for source in sorted((ROOT / "notebooks").glob("*.ipynb")):
        if not (work / source.name).exists():
            copyfile(source, work / source.name)
    root = ("--allow-root",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()  # a container; loopback and token stay
    return _python("-m", "jupyter", "lab", "--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={work}", *root, cwd=work)


def labs() -> int:
    """set up and run all labs headless in quick mode"""
    return setup() or _python("-m", "labkit", "run", "--keep-going")


def test() -> int:
    """set up and run all tests"""
    return setup() or _python("-m", "pytest")


CHECKS = ("ruff check", "ruff format --check", "mypy", "lint-imports", "python -m labkit size")


def lint() -> int:
    """style, format, types, layers, sizes"""
    _needs_environment()
    return _all(*CHECKS)


def quick() -> int:
    """between commits: lint, tests without browser and slow ones, one lab in smoke mode"""
    _needs_environment()
    return _all(*CHECKS, "python -m pytest -m 'not browser and not slow and not gpu'", "python -m labkit run 01 --mode smoke")


def _needs_environment() -> None:
    if not PYTHON.exists():
        setup()


def size() -> int:
    """lines of labkit by folder; fails when it, a file or a function has grown too long"""
    files = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "labkit").rglob("*.py"))}
    counts = {path: len(text.splitlines()) for path, text in files.items()}
    for folder in sorted({path.parent for path in files}):
        here = [n for path, n in counts.items() if path.parent == folder]
        print(f"{sum(here):6} lines  {len(here):3} files  median {median(here):4.0f}  max {max(here):4}  {folder.relative_to(ROOT)}")
    total = sum(counts.values())
    print(f"{total:6} lines  {len(counts):3} files  of {LINES}")
    too_long = [f"{path.relative_to(ROOT)}: {n} lines, at most {FILE_LINES}" for path, n in counts.items() if n > FILE_LINES]
    too_long += [line for path, text in files.items() for line in _long_functions(path, text)]
    too_long += [f"labkit: {total} lines, at most {LINES}"] if total > LINES else []
    print("\n".join(too_long), end="\n" if too_long else "", file=sys.stderr)
    return 1 if too_long else 0


def _long_functions(path: Path, text: str) -> list[str]:
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = [(node, (node.end_lineno or node.lineno) - node.lineno + 1) for node in functions]
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {n} lines, at most {FUNCTION_LINES}"
        for node, n in lengths
        if n > FUNCTION_LINES
    ]


TASKS: dict[str, Callable[[], int]] = {task.__name__: task for task in (setup, lab, labs, test, quick, lint, size)}
