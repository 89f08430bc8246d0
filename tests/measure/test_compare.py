"""Verdicts and intervals on invented times: nothing here reads a real clock."""

import numpy as np
import pytest

from labkit.measure.clock import FakeClock, Timeline, stamp
from labkit.measure.compare import interleave, plan_rounds, verdict
from labkit.measure.stats import SIGNS, Ratio, fit_growth, paired_ratio, signed_rank_tail, slope


class Fake:
    """A run whose step takes `step_s` on the fake clock; stops after `alive` slices."""

    def __init__(self, clock, step_s, log=None, alive=10**9):
        self.clock, self.step_s, self.log, self.alive, self.rewound = clock, step_s, log, alive, 0

    def rewind(self):
        self.rewound += 1

    def advance(self, steps):
        self.alive -= 1
        if self.alive < 0:
            return []
        self.clock.advance(steps * self.step_s)
        if self.log is not None:
            self.log.append(self)
        return [None] * steps


def test_rounds_are_palindromes_and_every_slice_starts_from_the_same_point():
    clock, log = FakeClock(), []
    runs = [Fake(clock, s, log) for s in (0.01, 0.02, 0.03)]
    samples = interleave(runs, clock, [2, 2, 2], rounds=4)
    assert [runs.index(r) for r in log] == [0, 1, 2, 2, 1, 0] * 2
    assert all(r.rewound == 4 for r in runs)
    assert [s[0] for s in samples] == pytest.approx([0.01, 0.02, 0.03])


def test_a_stop_keeps_whole_rounds_only():
    clock = FakeClock()
    samples = interleave([Fake(clock, 0.01), Fake(clock, 0.01, alive=3)], clock, [1, 1], rounds=9)
    assert [len(s) for s in samples] == [3, 3]


def test_rounds_follow_the_budget_within_their_limits():
    clock = FakeClock()
    assert plan_rounds([Fake(clock, 0.1)], clock, budget_s=2.0, longest=16) == ([1], 20)
    assert plan_rounds([Fake(clock, 0.001)], clock, budget_s=0.0, longest=16) == ([16], 8)
    assert plan_rounds([Fake(clock, 0.1, alive=0)], clock, budget_s=2.0, longest=16) == ([1], 0)


@pytest.mark.parametrize(
    ("ratio", "busy", "worse", "word"),
    [
        (Ratio(1.5, 1.4, 1.6), (), False, "faster"),
        (Ratio(1.5, 1.4, 1.6), (), True, "cheaper but worse text"),
        (Ratio(0.7, 0.6, 0.8), (), False, "slower"),
        (Ratio(1.01, 1.005, 1.015), (), False, "no difference"),
        (Ratio(1.0, 0.99, 1.01), (), False, "no difference"),
        (Ratio(1.2, 0.9, 1.5), (), False, "undecided"),
        (Ratio(1.035, 0.995, 1.075), (), False, "undecided"),  # narrow, and not around 1
        (Ratio(1.5, 0.0, float("inf")), (), False, "undecided"),
        (Ratio(1.5, 1.4, 1.6), ("make 90%",), False, "undecided"),
        (None, (), False, "not measurable here"),
    ],
)
def test_verdict_words(ratio, busy, worse, word):
    assert verdict(ratio, busy, worse) == word and word in SIGNS


def test_interval_of_equal_runs_holds_one_and_of_a_real_difference_does_not():
    rng = np.random.default_rng(1)
    misses = 0
    for _ in range(200):
        a, b = rng.lognormal(0, 0.05, (2, 16))
        found = paired_ratio(a.tolist(), b.tolist())
        misses += not found.low <= 1 <= found.high
    assert misses <= 8  # 1 % expected
    a, b = rng.lognormal(0, 0.02, (2, 16))
    assert paired_ratio((1.1 * a).tolist(), b.tolist()).low > 1


def test_under_eight_pairs_there_is_no_interval():
    assert paired_ratio([1.0] * 7, [2.0] * 7) == Ratio(0.5, 0.0, float("inf"))
    assert signed_rank_tail(7, 0.005) == -1 and signed_rank_tail(8, 0.005) == 0
    assert signed_rank_tail(20, 0.005) == 37  # tables of the signed-rank test, two-sided 1 %


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_growth_recovers_the_power(p):
    n, rng = [128, 256, 512, 1024, 2048], np.random.default_rng(0)
    samples = [list((20 + 3 * (x / 512) ** p) * rng.lognormal(0, 0.002, 12)) for x in n]
    found = fit_growth(n, samples)
    assert found.p_low - 0.05 <= p <= found.p_high + 0.05 and found.growth_low > 0 and found.a >= 0


def test_flat_times_show_no_growth():
    n, rng = [128, 256, 512, 1024], np.random.default_rng(0)
    found = fit_growth(n, [list(20 * rng.lognormal(0, 0.05, 8)) for _ in n])
    assert found.growth_low <= 0.5 and found.a >= 0


def test_slope_of_a_power_law():
    n = [256, 512, 1024]
    assert slope(n, [[float(x) ** 2] for x in n]).value == pytest.approx(2)


def test_decode_speed_leaves_the_first_token_out():
    reply = Timeline((4.0, 4.1, 4.2, 4.3), (1, 1, 1, 1), prompt_tokens=96)
    assert reply.ttft_s == 4.0 and reply.decode_tps == pytest.approx(10)
    assert reply.new_over_all_tps == pytest.approx(4 / 4.3) and reply.all_over_all_tps == pytest.approx(100 / 4.3)
    assert Timeline((1.0,), (1,), 5).decode_tps == 0 and Timeline((1.0,), (1,), 5).percentiles_s()["p99"] is None


def test_drawing_between_two_tokens_is_not_their_time():
    clock, seen = FakeClock(), []

    def steps():
        for _ in range(3):
            clock.advance(1.0)
            yield "token"

    for stamped in stamp(steps(), clock):
        seen.append(stamped.at_s)
        clock.advance(0.5)  # a listener draws
    assert seen == [1.0, 2.0, 3.0]
