"""`labkit.start(…)`: what happens once at the top of a notebook."""

import importlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import torch

from labkit.engine.random_models import stream_bytes, stream_name
from labkit.env import Machine, home, machine
from labkit.errors import unknown
from labkit.lab import catalogue
from labkit.lab.measuring import MeasuringLab
from labkit.lab.modes import check_mode
from labkit.lab.prompts import read_prompts
from labkit.measure.ceiling import FAR_BYTES, dispatch_s, launch_cost_s, matmul_rate, read_rate

LABS = ("01",)
SMOKE_WIDTH, CAP_BYTES = 256, {"quick": 550e6, "full": 2.2e9}
READ_OVER_DISPATCH = 8  # a step must read that many times longer than it launches, to be like a large model's


def start(
    lab: str,
    *,
    mode: str,
    device: str,
    models: dict[str, str],
    prompts: str = "prompts",
    toggles: Sequence[str] = (),
    budget_s: float = 150,
) -> MeasuringLab:
    """Open a lab: prints machine, ceilings and models. The only place that sets threads and seeds.

    `models`: role → model, e.g. {"speed": "random:stream"}. `toggles`: texts of the stack that the panel starts with.
    Raises BadInput for anything that is not there.
    """
    if lab not in LABS:
        raise unknown("lab", lab, LABS)
    check_mode(mode)
    here = machine(device)
    texts, wanted = read_prompts(prompts), [catalogue.parse(line) for line in toggles]
    torch.set_num_threads(here.threads)
    torch.manual_seed(0)
    content = importlib.import_module(f"labkit.lab.lab{lab}")
    opened: MeasuringLab = content.Lab(lab, mode, here, content, texts, wanted, budget_s)
    opened.story.add("lab", lab=lab, title=content.TITLE, question=content.QUESTION, mode=mode)
    with opened.measuring("the ceilings"):
        lines = [*_others_alive(), *_describe(here)]
        models = {role: _resolve(name, mode, here) for role, name in models.items()}
    lines += [opened.adopt(role, name) for role, name in models.items()]
    opened.story.add("machine", lines=lines)
    print("\n".join(lines))
    return opened


def _describe(here: Machine) -> list[str]:
    threads = f"{here.threads} thread" + ("s" if here.threads > 1 else "")
    dtypes = " · ".join(
        f"{d} {matmul_rate(d, here.threads, here.device) / 1e9:,.0f} GFLOP/s" for d in ("float32", "bfloat16") if here.can(d).ok
    )
    versions = ", ".join(f"{n} {here.versions[n]}" for n in ("python", "torch", "transformers"))
    where = "GPU" if here.device == "cuda" else "no GPU: everything is measured on the processor"
    return [
        f"machine   {here.device_name}, {here.cores} cores, {here.memory_bytes / 2**30:.0f} GiB, {threads} ({where})",
        f"ceilings  reads {read_rate(FAR_BYTES, here.threads, here.device) / 1e9:.1f} GB/s over {FAR_BYTES >> 20} MiB · {dtypes} · "
        f"one launch {launch_cost_s(here, here.threads) * 1e6:.0f} µs",
        f"versions  {versions}, labkit {here.commit}",
    ]


def _resolve(name: str, mode: str, here: Machine) -> str:
    """A stream without a width gets one: pinned in smoke mode, else the narrowest that is bound by reading its weights."""
    if stream_name(name) == "" or name.rpartition("-")[2].isdecimal():
        return name
    if mode == "smoke":
        return f"{name}-{SMOKE_WIDTH}"
    need_s = READ_OVER_DISPATCH * dispatch_s(f"{name}-64", here, here.threads)  # the operators are as many at any width
    need = need_s * read_rate(FAR_BYTES, here.threads, here.device)
    widths = range(512, 8192, 256)
    fits = [w for w in widths if stream_bytes(f"{name}-{w}") <= CAP_BYTES[mode]]
    return f"{name}-{next((w for w in fits if stream_bytes(f'{name}-{w}') >= need), fits[-1])}"


def _others_alive() -> list[str]:
    """A warning when other lab kernels live: their models take memory and their runs take turns."""
    folder = home() / "cache" / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    alive = []
    for note in folder.iterdir():
        if note.name.isdecimal() and psutil.pid_exists(int(note.name)) and int(note.name) != os.getpid():
            alive.append(note.read_text(encoding="utf-8"))
        else:
            with suppress(OSError):
                note.unlink()
    Path(folder / str(os.getpid())).write_text(f"process {os.getpid()}", encoding="utf-8")
    return [f"note      other lab kernels are alive ({', '.join(alive)}): shut them down if memory gets short"] if alive else []
