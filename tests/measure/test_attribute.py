"""Attribution: one invented step per outcome, and parts that add up."""

import pytest

from labkit.measure.attribute import attribute
from labkit.measure.ceiling import Ceilings
from labkit.measure.trace import StepCounts

LIMITS = Ceilings(read_bytes=10**8, read_bps=1e10, far_bps=1e10, flops_per_s=1e11, launch_s=1e-5, dtype="float32", threads=1)
STEPS = {  # seconds of the step, counts
    "bandwidth": (0.010, StepCounts(90_000_000, 1_000_000, 1e7, 0, 50)),
    "compute": (0.010, StepCounts(10_000_000, 0, 9e8, 8e8, 50)),
    "dispatch": (0.010, StepCounts(1_000_000, 0, 1e6, 0, 900)),
    "transfer": (0.010, StepCounts(1_000_000, 0, 1e6, 0, 50, transfer_s=0.008)),
    "queue": (0.010, StepCounts(1_000_000, 0, 1e6, 0, 50, waiting_s=0.007)),
    "mixed": (0.010, StepCounts(30_000_000, 0, 4e8, 0, 300)),
}


@pytest.mark.parametrize("outcome", STEPS)
def test_each_outcome_has_a_step_that_gives_it(outcome):
    seconds, counts = STEPS[outcome]
    found = attribute(seconds, counts, LIMITS)
    assert found.bound_by == outcome
    assert sum(p.seconds for p in found.parts) == pytest.approx(seconds)
    assert all(p.seconds >= 0 and p.how for p in found.parts)
    assert found.parts[-1].name == "unexplained"


def test_recomputed_positions_are_surplus():
    found = attribute(0.010, STEPS["compute"][1], LIMITS)
    assert found.share("surplus") > found.share("arithmetic") > 0


def test_parts_that_exceed_the_step_are_shrunk_and_it_says_so():
    found = attribute(0.005, STEPS["bandwidth"][1], LIMITS)
    assert "shrunk" in found.note and sum(p.seconds for p in found.parts) == pytest.approx(0.005)
    assert attribute(0.020, STEPS["bandwidth"][1], LIMITS).note == ""
