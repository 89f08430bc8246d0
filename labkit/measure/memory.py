"""Memory by name: what each figure counts, and which ones this device cannot give."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import torch

from labkit.engine.decode import Decode, Live
from labkit.env import ROOT, Machine, machine
from labkit.errors import BadInput
from labkit.spec import decode, encode

NO_ALLOCATOR = "the processor's allocator keeps no count"
CHILD_LIMIT_S = 300


def process_peak_bytes() -> int | None:
    """Largest resident size of this process so far (VmHWM); None where /proc is missing."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    return None


def by_name(live: Live) -> dict[str, Any]:
    """Bytes under each name now. None with a reason in "why" where the device cannot say.

    weights: parameters of this variant. kv: what its cache holds. allocated/reserved: the device allocator's peaks.
    process: resident now. process_peak: its highest. device: in use on the device by everybody.
    """
    why: dict[str, str] = {}
    weights = {p.data_ptr(): p.nbytes for p in live.model.parameters()}
    out: dict[str, Any] = {
        "weights": sum(weights.values()),
        "kv": live.context.nbytes(),
        "process": psutil.Process().memory_info().rss,
        "process_peak": process_peak_bytes(),
    }
    if out["process_peak"] is None:
        why["process_peak"] = "this system has no /proc"
    if live.machine.device == "cuda":
        free, total = torch.cuda.mem_get_info()
        out |= {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved(), "device": total - free}
    else:
        out |= {"allocated": None, "reserved": None, "device": psutil.virtual_memory().total - psutil.virtual_memory().available}
        why |= {"allocated": NO_ALLOCATOR, "reserved": NO_ALLOCATOR}
    return out | {"why": why}


def in_child(work: Decode, device: str) -> dict[str, Any]:
    """All memory names of one variant, measured in a fresh process of its own. Raises BadInput when that fails."""
    request = json.dumps({"work": encode(work), "device": device, "parent": os.getpid()})
    command = [sys.executable, "-m", "labkit.measure.memory"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    child = subprocess.run(command, input=request, capture_output=True, text=True, timeout=CHILD_LIMIT_S, start_new_session=True, env=env)
    if child.returncode:
        last = child.stderr.strip().splitlines()[-1:] or ["no message"]
        raise BadInput(f"the memory child ended with code {child.returncode}: {last[0]}")
    return dict(json.loads(child.stdout.splitlines()[-1]))


def _die_with(parent: int) -> None:
    """A child in its own session outlives a killed parent unless it looks."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def main() -> None:
    """The child: run the workload once, print its memory as one JSON line."""
    request = json.loads(sys.stdin.read())
    threading.Thread(target=_die_with, args=(request["parent"],), daemon=True).start()
    with decode(request["work"]).open(machine(request["device"])) as live:
        for _ in live.steps():
            pass
        print(json.dumps(by_name(live)))


if __name__ == "__main__":
    import labkit.lab.catalogue  # noqa: F401  specs of all dimensions must be known before the workload is read

    main()
