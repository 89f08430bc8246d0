"""One clock for every number, and the events of a reply stamped with it."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from labkit.engine.decode import Event


class Clock(Protocol):
    """Seconds on a line that only goes forward."""

    def now(self) -> float:
        """The time once all work given to the device has finished."""


@dataclass(frozen=True)
class RealClock:
    """The processor's clock; waits for the device before each reading, so that no kernel is still running."""

    device: str = "cpu"

    def now(self) -> float:
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()


class FakeClock:
    """A clock for tests: every reading is `tick_s` later than the last, or what `advance` added."""

    def __init__(self, tick_s: float = 0.0) -> None:
        self.time_s, self.tick_s = 0.0, tick_s

    def now(self) -> float:
        self.time_s += self.tick_s
        return self.time_s

    def advance(self, seconds: float) -> None:
        self.time_s += seconds


@dataclass(frozen=True)
class Stamped:
    """One event of a reply and when it was there, in seconds of the engine since the request."""

    at_s: float
    event: Event


def stamp(events: Iterable[Event], clock: Clock) -> Iterator[Stamped]:
    """Events as they come, each with the time spent on making it and those before: what a listener draws is not counted."""
    coming, spent_s = iter(events), 0.0
    while True:
        start = clock.now()
        event = next(coming, None)
        spent_s += clock.now() - start
        if event is None:
            return
        yield Stamped(spent_s, event)


@dataclass(frozen=True)
class Timeline:
    """The times of one reply. The first token belongs to the prefill; decode figures leave it out (article rows A053, B080)."""

    at_s: tuple[float, ...]
    tokens: tuple[int, ...]  # tokens per event
    prompt_tokens: int

    @classmethod
    def of(cls, stamped: list[Stamped], prompt_tokens: int) -> "Timeline":
        return cls(tuple(s.at_s for s in stamped), tuple(s.event.replies for s in stamped), prompt_tokens)

    @property
    def ttft_s(self) -> float:
        """Time to first token."""
        return self.at_s[0]

    @property
    def gaps_s(self) -> np.ndarray:
        """Inter-token latencies; empty for a reply of one token."""
        return np.diff(np.array(self.at_s))

    @property
    def decode_tps(self) -> float:
        """Tokens after the first ÷ time after the first; NaN-free: 0 when there is none."""
        span = self.at_s[-1] - self.at_s[0]
        return sum(self.tokens[1:]) / span if span > 0 else 0.0

    @property
    def new_over_all_tps(self) -> float:
        """New tokens ÷ whole time: the prefill counts as time but gives one token."""
        return sum(self.tokens) / self.at_s[-1]

    @property
    def all_over_all_tps(self) -> float:
        """Prompt and new tokens ÷ whole time (the formula of S0 §6.1)."""
        return (self.prompt_tokens + sum(self.tokens)) / self.at_s[-1]

    def percentiles_s(self) -> dict[str, float | None]:
        """p50, p90, p99 of the inter-token latency; None for a reply of one token."""
        if not len(self.gaps_s):
            return {"p50": None, "p90": None, "p99": None}
        return {f"p{q}": float(np.percentile(self.gaps_s, q)) for q in (50, 90, 99)}


def best_of(work: Callable[[], object], clock: Clock, repeats: int) -> float:
    """Shortest time of `repeats` calls in seconds, after one that is not counted. For ceilings only."""
    work()
    times = []
    for _ in range(repeats):
        start = clock.now()
        work()
        times.append(clock.now() - start)
    return min(times)
