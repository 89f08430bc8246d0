"""Memory by name: what each figure counts, and which ones this device cannot give."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import torch

from labkit.engine.decode import Live

NO_ALLOCATOR = "the processor's allocator keeps no count"


def process_peak_bytes() -> int | None:
    """Largest resident size of this process so far (VmHWM); None where /proc is missing."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    return None


def own(live: Live) -> dict[str, Any]:
    """Bytes of this variant alone; the other names need a process of its own (`by_name`), and say so."""
    weights = {p.data_ptr(): p.nbytes for p in live.model.parameters()}
    others = ("process", "process_peak", "allocated", "reserved", "device")
    return {
        "weights": sum(weights.values()),
        "kv": live.context.nbytes(),
        **dict.fromkeys(others),
        "why": dict.fromkeys(others, "several variants share this process"),
    }


def by_name(live: Live) -> dict[str, Any]:
    """Bytes under each name now, in a process that holds one variant. None with a reason in "why" where the device cannot say.

    weights: parameters of this variant. kv: what its cache holds. allocated/reserved: the device allocator's peaks.
    process: resident now. process_peak: its highest. device: in use on the device by everybody.
    """
    why: dict[str, str] = {}
    out: dict[str, Any] = own(live) | {"process": psutil.Process().memory_info().rss, "process_peak": process_peak_bytes()}
    if out["process_peak"] is None:
        why["process_peak"] = "this system has no /proc"
    if live.machine.device == "cuda":
        free, total = torch.cuda.mem_get_info()
        out |= {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved(), "device": total - free}
    else:
        out |= {"allocated": None, "reserved": None, "device": psutil.virtual_memory().total - psutil.virtual_memory().available}
        why |= {"allocated": NO_ALLOCATOR, "reserved": NO_ALLOCATOR}
    return out | {"why": why}
