"""The ceilings of this machine: how fast it can read, multiply and launch, with the run's own threads."""

import math
from dataclasses import dataclass
from functools import cache

import torch

from labkit.engine.decode import Decode, settings
from labkit.engine.prompt import RandomTokens
from labkit.env import Machine
from labkit.measure.clock import RealClock, best_of
from labkit.measure.trace import count_launches

FAR_BYTES = 256 * 2**20  # beyond most last-level caches; the record names the size
LAUNCH_MODEL = "random:stream-64"  # so narrow that a step of it is nothing but launches


@dataclass(frozen=True)
class Ceilings:
    """`read_bps`: over a buffer as large as one token's reads (it may sit in cache); `far_bps`: over FAR_BYTES."""

    read_bytes: int
    read_bps: float
    far_bps: float
    flops_per_s: float
    launch_s: float
    dtype: str
    threads: int

    def percent(self, bps: float) -> dict[str, float]:
        """Achieved bytes per second as percent of both read ceilings, each named."""
        return {"near": 100 * bps / self.read_bps, "far": 100 * bps / self.far_bps}


@cache
def read_rate(nbytes: int, threads: int, device: str) -> float:
    """Bytes per second of the fastest of three reductions over a buffer of `nbytes`."""
    data = torch.ones(max(nbytes // 4, 1024), device=device)
    whole = data.view(torch.int32)
    readers = (lambda: data.sum(), lambda: whole.amax(), lambda: torch.dot(data, data))
    with settings(threads):
        return data.nbytes / min(best_of(read, RealClock(device), 5) for read in readers)


@cache
def matmul_rate(dtype: str, threads: int, device: str) -> float:
    """FLOP per second of a linear layer (256 × 1,024 by 1,024 × 1,024) in that dtype."""
    kind, (rows, width) = getattr(torch, dtype), (256, 1024)
    x, w = torch.ones(rows, width, dtype=kind, device=device), torch.ones(width, width, dtype=kind, device=device)
    with settings(threads):
        return 2 * rows * width * width / best_of(lambda: torch.nn.functional.linear(x, w), RealClock(device), 3)


@cache
def launch_cost_s(machine: Machine, threads: int) -> float:
    """Seconds per operator: a step of a model too small to wait for memory, divided by its operators."""
    work = Decode(LAUNCH_MODEL, RandomTokens(8), tokens=20, threads=threads)
    clock = RealClock(machine.device)
    with work.open(machine) as live:
        live.prepare()
        launches = count_launches(live)

        def steps() -> None:
            live.rewind()
            live.advance(10)

        return best_of(steps, clock, 12) / 10 / launches


def dispatch_s(model: str, machine: Machine, threads: int) -> float:
    """Seconds that the operators of one decode step of `model` need before any of them has computed anything."""
    with Decode(model, RandomTokens(8), tokens=2, threads=threads).open(machine) as live:
        live.prepare()
        return count_launches(live) * launch_cost_s(machine, threads)


def ceilings(machine: Machine, read_bytes: int, dtype: str, threads: int) -> Ceilings:
    """All ceilings for a step that reads `read_bytes`. Kept per process: each size is measured once."""
    near = round(2 ** (round(16 * math.log2(max(read_bytes, 2**20))) / 16))  # a sixteenth of an octave: near sizes share a measurement
    return Ceilings(
        read_bytes=near,
        read_bps=read_rate(near, threads, machine.device),
        far_bps=read_rate(FAR_BYTES, threads, machine.device),
        flops_per_s=matmul_rate(dtype, threads, machine.device),
        launch_s=launch_cost_s(machine, threads),
        dtype=dtype,
        threads=threads,
    )
