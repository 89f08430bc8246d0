"""Memory of one variant in a process of its own, so that nothing of the last run is in the figure."""

import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

from labkit.env import child_environment, machine
from labkit.errors import BadInput
from labkit.spec import Spec, decode, encode

CHILD_LIMIT_S = 300


def in_child(work: Spec, device: str) -> dict[str, Any]:
    """All memory names of one variant, measured in a fresh process of its own. Raises BadInput when that fails."""
    request = json.dumps({"work": encode(work), "device": device, "parent": os.getpid()})
    command = [sys.executable, "-m", "labkit.lab.child"]
    how: dict[str, Any] = {"timeout": CHILD_LIMIT_S, "start_new_session": True, "env": child_environment()}
    try:
        child = subprocess.run(command, input=request, capture_output=True, text=True, **how)
    except subprocess.TimeoutExpired as err:
        raise BadInput(f"the memory child took more than {CHILD_LIMIT_S} s: take a smaller model or fewer tokens") from err
    if child.returncode:
        last = child.stderr.strip().splitlines()[-1:] or ["no message"]
        raise BadInput(f"the memory child ended with code {child.returncode}: {last[0]}")
    return dict(json.loads(child.stdout.splitlines()[-1]))


def _die_with(parent: int) -> None:
    """A child in its own session outlives a killed parent unless it looks."""
    while os.getppid() == parent:
        time.sleep(0.1)
    os._exit(1)


def main() -> None:
    """The child: run the workload once, print its memory as one JSON line."""
    request = json.loads(sys.stdin.read())
    threading.Thread(target=_die_with, args=(request["parent"],), daemon=True).start()
    import torch  # only now: it takes seconds in which the parent may die

    from labkit.lab import catalogue  # noqa: F401  the specs of all dimensions must be known before a workload is read
    from labkit.measure.memory import by_name

    here = machine(request["device"])
    torch.set_num_threads(here.threads)
    with decode(request["work"]).open(here) as live:
        for _ in live.steps():
            pass
        print(json.dumps(by_name(live)))


if __name__ == "__main__":
    main()
