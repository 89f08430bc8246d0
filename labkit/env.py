"""This machine: what it is, what it can do and why not. A value that is passed along, never looked up twice."""

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from labkit.errors import BadInput

ROOT = Path(__file__).resolve().parent.parent  # the checkout, or site-packages when installed
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "jupyterlab", "ipykernel", "ipywidgets", "plotly", "papermill")


def home() -> Path:
    """Where records and runs live: LABKIT_HOME, else the checkout, else ~/labkit. Never the working directory."""
    if given := os.environ.get("LABKIT_HOME"):
        return Path(given).expanduser().resolve()
    return ROOT if (ROOT / "notebooks").is_dir() else Path.home() / "labkit"


def child_environment(**more: str) -> dict[str, str]:
    """The environment of a child process: it finds this labkit from any folder."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path} | more


@dataclass(frozen=True)
class Capability:
    """Whether the machine can do a thing, and one clause that says why (not)."""

    ok: bool
    reason: str


@dataclass(frozen=True, eq=False)
class Machine:
    """What a record says about where it was made. `device` is "cpu" or "cuda"; sizes in bytes."""

    system: str
    processor: str
    cores: int  # physical cores this process may use
    threads: int  # what a run uses unless a toggle says otherwise
    memory_bytes: int
    device: str
    device_name: str
    versions: Mapping[str, str]
    commit: str
    capabilities: Mapping[str, Capability]

    def can(self, name: str) -> Capability:
        """The capability of that name; one that nobody probed is assumed."""
        return self.capabilities.get(name, Capability(True, "not probed"))


def cpu_flags() -> frozenset[str]:
    """Feature flags of the processor as Linux names them; empty elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    found = [line.partition(":")[2].split() for line in lines if line.lower().startswith(("flags", "features"))]
    return frozenset(found[0]) if found else frozenset()


def dtype_capabilities(device: str, flags: frozenset[str], compute_capability: tuple[int, int] | None) -> dict[str, Capability]:
    """Which dtypes this device computes in. Pure, so that tests can pass invented devices."""
    if device == "cuda":
        major, minor = compute_capability or (0, 0)
        bf16 = major >= 8
        return {
            "float32": Capability(True, "every device has it"),
            "float16": Capability(major >= 7, f"compute capability {major}.{minor}" + ("" if major >= 7 else " has no fp16 units")),
            "bfloat16": Capability(bf16, "this card has bf16 units" if bf16 else "this card has no bf16 units: use float16"),
        }
    fp16 = bool(flags & {"avx512_fp16", "amx_fp16", "fphp", "asimdhp"})
    bf16 = bool(flags & {"avx512_bf16", "amx_bf16", "bf16"})
    return {
        "float32": Capability(True, "every device has it"),
        "float16": Capability(fp16, "this processor has fp16 units" if fp16 else "this processor has no fp16 units"),
        # bf16 is a float32 cut in half, so any processor can widen it; without units that costs arithmetic
        "bfloat16": Capability(True, "this processor has bf16 units" if bf16 else "no bf16 units: widened to float32 on the way"),
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        return next(line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _commit() -> str:
    try:
        out = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return out.stdout.strip() or "unknown"


def package_versions() -> dict[str, str]:
    """Python and the packages that a number depends on; "missing" for one that is not there."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def cores() -> int:
    """Physical cores that this process may use."""
    import psutil

    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(allowed, psutil.cpu_count(logical=False) or allowed))


def _threads(cores: int) -> int:
    given = os.environ.get("LABKIT_THREADS", "")
    if given and given not in map(str, range(1, cores + 1)):
        raise BadInput(f"LABKIT_THREADS={given[:20]!r}: use 1 to {cores}, this machine has {cores} cores")
    return int(given) if given else cores


@cache
def machine(device: str = "auto") -> Machine:
    """Probe this machine once. `device` is auto, cpu or cuda; raises BadInput when it is not there."""
    if device not in ("auto", "cpu", "cuda"):
        raise BadInput(f"unknown device {device!r}: use auto, cpu or cuda")
    import psutil
    import torch

    has_gpu = torch.cuda.is_available()
    if device == "cuda" and not has_gpu:
        raise BadInput("device=cuda, but torch sees no GPU here: use device=auto or device=cpu")
    gpu = has_gpu and device != "cpu"
    kind = "cuda" if gpu else "cpu"
    capability = torch.cuda.get_device_capability() if gpu else None
    usable = cores()
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        processor=_processor(),
        cores=usable,
        threads=_threads(usable),
        memory_bytes=psutil.virtual_memory().total,
        device=kind,
        device_name=torch.cuda.get_device_name() if gpu else _processor(),
        versions=package_versions(),
        commit=_commit(),
        capabilities=dtype_capabilities(kind, cpu_flags(), capability),
    )
