"""A ladder: one base and variants beside it, speed and text in the same row."""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.engine.decode import Decode, Live
from labkit.env import Machine
from labkit.measure.attribute import Attribution, attribute
from labkit.measure.ceiling import Ceilings, ceilings
from labkit.measure.clock import Clock, RealClock, Stamped, Timeline, stamp
from labkit.measure.compare import interleave, plan_rounds, verdict
from labkit.measure.memory import own
from labkit.measure.quality import Quality, quality, score
from labkit.measure.stats import Ratio, paired_ratio
from labkit.measure.trace import StepCounts, count_step


@dataclass(frozen=True)
class Plan:
    """How long to measure. `reply`: also write the reply and compare texts (not for a pretended context)."""

    budget_s: float
    longest: int = 16  # steps of a slice at most
    reply: bool = True


@dataclass(frozen=True)
class Progress:
    """What a listener hears: `text` is the reply so far in the phase "reply", empty in the phase "pairs"."""

    phase: str
    done: int
    total: int
    tps: float = 0.0
    text: str = ""


Listener = Callable[[Progress], None]


@dataclass(frozen=True)
class Detail:
    """What explains a step: counts, ceilings, the parts, attention's own time."""

    counts: StepCounts
    ceilings: Ceilings
    attribution: Attribution
    attention_s: float


@dataclass(frozen=True)
class Rung:
    """All that was measured of one variant. `ratio` (base time ÷ this time) is None for the base."""

    live: Live  # closed: work, model name, threads and prompt remain
    samples_s: list[float]
    ratio: Ratio | None
    verdict: str
    timeline: Timeline | None
    quality: Quality | None
    detail: Detail | None
    memory: dict[str, Any]
    partial: bool

    @property
    def step_s(self) -> float:
        """Median seconds per decode step."""
        return float(np.median(self.samples_s)) if self.samples_s else 0.0


@dataclass(frozen=True)
class Row:
    """What a reader sees of a rung. `toggles`: their texts. `record`: id of the record that holds the rest."""

    label: str
    toggles: tuple[str, ...]
    step_s: float
    ratio: Ratio | None
    verdict: str
    text: str
    perplexity: float | None
    kv_bytes: int
    attribution: Attribution | None
    partial: bool
    record: str
    note: str = ""  # why there is no verdict

    @classmethod
    def of(cls, rung: Rung, label: str, toggles: tuple[str, ...], record: str, note: str = "") -> "Row":
        score = rung.quality
        return cls(
            label=label,
            toggles=toggles,
            step_s=rung.step_s,
            ratio=rung.ratio,
            verdict=rung.verdict,
            text=str(score) if score else "stopped before the comparison" if rung.partial else "not compared: random context",
            perplexity=score.perplexity if score else None,
            kv_bytes=rung.memory["kv"],
            attribution=rung.detail.attribution if rung.detail else None,
            partial=rung.partial,
            record=record,
            note=note,
        )


def write_reply(live: Live, on: Listener | None = None) -> tuple[list[int], Timeline]:
    """The whole reply once, which is also the warm-up: the first prompt's tokens, and the times of all."""
    stamped: list[Stamped] = []
    for item in stamp(live.steps(), RealClock(live.machine.device)):
        stamped.append(item)
        if on:
            rate = (len(stamped) - 1) / (item.at_s - stamped[0].at_s) if len(stamped) > 1 else 0.0
            on(Progress("reply", len(stamped), live.work.tokens, rate, live.text()))
    return live.reply(), Timeline.of(stamped, live.prompt.shape[1])


def explain(live: Live, step_s: float) -> Detail:
    """Where a measured step of a prepared run goes."""
    counts, attention = count_step(live, RealClock(live.machine.device))
    limits = ceilings(live.machine, counts.weight_bytes + counts.kv_bytes, live.work.weights.dtype, live.threads)
    return Detail(counts, limits, attribute(step_s, counts, limits), attention.seconds)


def climb(
    works: Sequence[Decode],
    machine: Machine,
    plan: Plan,
    busy: Sequence[str] = (),
    stop: threading.Event | None = None,
    on: Listener | None = None,
) -> list[Rung]:
    """Measure works[0] (the base) and the others interleaved. Raises BadInput before anything is timed.

    When `stop` is set the rungs hold what was measured until then and are marked partial.
    """
    stop = stop or threading.Event()
    with ExitStack() as opened:
        lives = [opened.enter_context(work.open(machine, stop)) for work in works]
        replies = [_reply(live, plan, on) for live in reversed(lives)][::-1]  # the variant first: it is what one waits to see
        scores = _scores(lives, [tokens for tokens, _ in replies])
        times: list[list[float]] = [[] for _ in lives]
        if not stop.is_set():
            for live in lives:
                live.prepare()
            times = _pairs(lives, RealClock(machine.device), plan, on)
        parts = zip(lives, times, replies, scores, strict=True)
        return [_rung(live, t, times[0], r[1], s, scores[0], busy) for live, t, r, s in parts]


def _reply(live: Live, plan: Plan, on: Listener | None) -> tuple[list[int], Timeline | None]:
    return write_reply(live, on) if plan.reply and not live.stop.is_set() else ([], None)


def _scores(lives: Sequence[Live], replies: Sequence[list[int]]) -> list[Quality | None]:
    """Each reply against the base's, and the base's reply under each variant."""
    why = "random weights: their text says nothing" if lives[0].loaded.origin.startswith("random") else ""
    scores = [None if why or not replies[0] or live.stop.is_set() else score(live, replies[0]) for live in lives]
    if lives[0].stop.is_set():  # the last one may have been cut short
        scores, why = [None] * len(lives), "stopped before the text was scored"
    pairs = zip(replies, scores, strict=True)
    return [quality(reply, replies[0], mine, scores[0], why) if reply and replies[0] else None for reply, mine in pairs]


def _pairs(lives: Sequence[Live], clock: Clock, plan: Plan, on: Listener | None) -> list[list[float]]:
    steps, rounds = plan_rounds(lives, clock, plan.budget_s, min(plan.longest, *(live.work.tokens for live in lives)))
    return interleave(lives, clock, steps, rounds, (lambda i, n: on(Progress("pairs", i, n))) if on else None)


def _rung(
    live: Live,
    times: list[float],
    base_times: list[float],
    timeline: Timeline | None,
    score: Quality | None,
    base_score: Quality | None,
    busy: Sequence[str],
) -> Rung:
    partial = live.stop.is_set()
    samples = times or (list(timeline.gaps_s) if timeline else [])
    ratio = paired_ratio(base_times, times) if times and times is not base_times else None
    worse = bool(score and base_score and score.worse_than(base_score))
    word = "base" if times is base_times and not partial else verdict(ratio, busy, worse)
    detail = None if partial else explain(live, float(np.median(samples)))
    return Rung(live, samples, ratio, "undecided" if partial else word, timeline, score, detail, own(live), partial)
