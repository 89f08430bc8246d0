"""One step's time, taken apart: what each part should cost on this machine, and what remains."""

from dataclasses import dataclass

from labkit.measure.ceiling import Ceilings
from labkit.measure.trace import StepCounts

MIXED_UNDER = 0.5
NAMES = ("weights", "kv", "arithmetic", "transfer", "dispatch", "surplus", "waiting", "unexplained")


@dataclass(frozen=True)
class Part:
    """A piece of the step. `how`: measured, counted or computed, and from what."""

    name: str
    seconds: float
    how: str


@dataclass(frozen=True)
class Attribution:
    """Parts that add up to the step's wall time, and what the step was bound by."""

    seconds: float
    parts: tuple[Part, ...]
    bound_by: str  # bandwidth, compute, dispatch, transfer, queue, mixed
    note: str = ""

    @property
    def bound(self) -> str:
        """`bound_by` as words behind a total."""
        return "bound by several things" if self.bound_by == "mixed" else f"bound by {self.bound_by}"

    def share(self, name: str) -> float:
        return sum(p.seconds for p in self.parts if p.name == name) / self.seconds


def bound_by(step_s: float, counts: StepCounts, ceilings: Ceilings) -> str:
    """The resource with the largest computed share of the step; mixed when none reaches half."""
    shares = {
        "bandwidth": (counts.weight_bytes + counts.kv_bytes) / ceilings.read_bps,
        "compute": counts.flops / ceilings.flops_per_s,
        "dispatch": counts.launches * ceilings.launch_s,
        "transfer": counts.transfer_s,
        "queue": counts.waiting_s,
    }
    name = max(shares, key=lambda k: shares[k])
    return name if shares[name] >= MIXED_UNDER * step_s else "mixed"


def attribute(step_s: float, counts: StepCounts, ceilings: Ceilings) -> Attribution:
    """Split `step_s`. Computed parts that exceed it are shrunk in proportion, and the note says so."""
    weights_s, kv_s = counts.weight_bytes / ceilings.read_bps, counts.kv_bytes / ceilings.read_bps
    beyond_s = max(0.0, counts.flops / ceilings.flops_per_s - weights_s - kv_s)
    surplus_s = beyond_s * counts.surplus_flops / counts.flops if counts.flops else 0.0
    parts = [
        Part("weights", weights_s, f"{counts.weight_bytes / 1e6:.1f} MB ÷ {ceilings.read_bps / 1e9:.1f} GB/s"),
        Part("kv", kv_s, f"{counts.kv_bytes / 1e6:.2f} MB ÷ {ceilings.read_bps / 1e9:.1f} GB/s"),
        Part("arithmetic", beyond_s - surplus_s, f"needed FLOPs ÷ {ceilings.flops_per_s / 1e9:.0f} GFLOP/s, beyond the reads"),
        Part("transfer", counts.transfer_s, "measured"),
        Part("dispatch", counts.launches * ceilings.launch_s, f"{counts.launches} launches × {ceilings.launch_s * 1e6:.1f} µs"),
        Part("surplus", surplus_s, f"{counts.surplus_flops / 1e9:.2f} of {counts.flops / 1e9:.2f} GFLOP recomputed"),
        Part("waiting", counts.waiting_s, "measured"),
    ]
    explained, note = sum(p.seconds for p in parts), ""
    if explained > step_s:
        note = f"the parts come to {explained / step_s:.2f}× the measured step and are shrunk to fit: this step beat the ceilings"
        parts = [Part(p.name, p.seconds * step_s / explained, p.how) for p in parts]
        explained = step_s
    parts.append(Part("unexplained", step_s - explained, "the rest"))
    kept = tuple(p for p in parts if p.seconds > 0 or p.name == "unexplained")
    return Attribution(step_s, kept, bound_by(step_s, counts, ceilings), note)
