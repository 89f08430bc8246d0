"""Interleaved comparison: all variants alive, short slices in turn, a verdict only where the interval allows one."""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from labkit.measure.clock import Clock
from labkit.measure.stats import MATTERS, Ratio

SLICE_S = 0.03  # long against the clock's grain and the scheduler's
MOST_ROUNDS = 40
ALIKE = (1 + MATTERS) ** 2  # an interval within this says that there is no difference worth a word
FEWEST_ROUNDS = 8  # fewer pairs have no 99 % interval


class Sliced(Protocol):
    """A live run that can repeat decode steps from a prepared point."""

    def rewind(self) -> None: ...

    def advance(self, steps: int) -> Sequence[object]: ...


def time_slice(live: Sliced, steps: int, clock: Clock) -> float | None:
    """Seconds per step of one slice; None when it was stopped inside."""
    live.rewind()
    start = clock.now()
    done = len(live.advance(steps))
    return (clock.now() - start) / steps if done == steps else None


def plan_rounds(lives: Sequence[Sliced], clock: Clock, budget_s: float, longest: int) -> tuple[list[int], int]:
    """Slice lengths (at most `longest` steps) and rounds for `budget_s`, from one warm-up step each; 0 rounds if stopped."""
    firsts = [time_slice(live, 1, clock) for live in lives]
    known = [max(t, 1e-9) for t in firsts if t is not None]
    if len(known) < len(firsts):
        return [1] * len(lives), 0
    steps = [max(1, min(longest, math.ceil(SLICE_S / t))) for t in known]
    round_s = sum(t * k for t, k in zip(known, steps, strict=True))
    return steps, max(FEWEST_ROUNDS, min(MOST_ROUNDS, int(budget_s / round_s)))


def interleave(
    lives: Sequence[Sliced], clock: Clock, steps: Sequence[int], rounds: int, on: Callable[[int, int], None] | None = None
) -> list[list[float]]:
    """Seconds per step: a list per run, an entry per whole round. Rounds go A B C, C B A, …; all slices start at one context length."""
    samples: list[list[float]] = [[] for _ in lives]
    for index in range(rounds):
        order = list(range(len(lives)))
        taken = {i: time_slice(lives[i], steps[i], clock) for i in (order if index % 2 == 0 else reversed(order))}
        whole = [seconds for i in order if (seconds := taken[i]) is not None]
        if len(whole) < len(order):  # stopped inside the round
            return samples
        for kept, seconds in zip(samples, whole, strict=True):
            kept.append(seconds)
        if on:
            on(index + 1, rounds)
    return samples


def verdict(ratio: Ratio | None, busy: Sequence[str] = (), worse_text: bool = False) -> str:
    """The word for a comparison. Only an interval that excludes 1, and a ratio that matters, is a difference."""
    if ratio is None:
        return "not measurable here"
    if busy:
        return "undecided"
    if ratio.low > 1 and ratio.value >= 1 + MATTERS:
        return "cheaper but worse text" if worse_text else "faster"
    if ratio.high < 1 and ratio.value <= 1 / (1 + MATTERS):
        return "slower"
    alike = ratio.low > 1 / ALIKE and ratio.high < ALIKE
    return "no difference" if alike else "undecided"
