"""Time per token against the length of the context."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from labkit.engine.decode import Decode, Live
from labkit.engine.prompt import RandomKV
from labkit.env import Machine
from labkit.measure.clock import Clock, RealClock
from labkit.measure.compare import interleave
from labkit.measure.ladder import Detail, explain
from labkit.measure.stats import Fit, Ratio, fit_growth, slope
from labkit.measure.trace import AttentionTrace, attention_probe

PROBES = 5  # timed steps of attention per context


@dataclass(frozen=True)
class Curve:
    """One series. Per context: seconds per step (one entry a round), attention's seconds and FLOPs of one step."""

    contexts: tuple[int, ...]
    samples_s: list[list[float]]
    attention_s: list[list[float]]
    attention_flops: list[float]
    kv_bytes: list[int]
    detail: Detail  # of a step at `explained_at`
    explained_at: int
    origin: str

    @property
    def medians_s(self) -> np.ndarray:
        return np.array([np.median(s) for s in self.samples_s])

    def fit(self) -> Fit:
        """a + b·n^p of milliseconds per token."""
        return fit_growth(list(self.contexts), [[1e3 * t for t in s] for s in self.samples_s])

    def attention_slopes(self, from_context: int = 0) -> tuple[Ratio, Ratio]:
        """Exponents of attention's FLOPs and time in the context, as log-log slopes with intervals."""
        kept = [i for i, n in enumerate(self.contexts) if n >= from_context]
        lengths = [self.contexts[i] for i in kept]
        return slope(lengths, [[self.attention_flops[i]] for i in kept]), slope(lengths, [self.attention_s[i] for i in kept])

    def whole_reply_s(self, tokens: int) -> float:
        """Time of a reply of `tokens` tokens: the per-token times summed over its contexts, interpolated."""
        return float(np.interp(np.arange(1, tokens + 1), self.contexts, self.medians_s).sum())


def _attention(live: Live, clock: Clock) -> AttentionTrace:
    live.rewind()
    with attention_probe(live, clock) as trace:
        live.advance(1)
    return trace


def curve(base: Decode, contexts: Sequence[int], machine: Machine, rounds: int, explained_at: int, probes: int = PROBES) -> Curve:
    """Measure `base` at each context. Keys and values of the context are random; the rounds visit all contexts in turn."""
    clock = RealClock(machine.device)
    works = [replace(base, prompt=RandomKV(n), tokens=1) for n in contexts]
    with ExitStack() as opened:
        lives = [opened.enter_context(work.open(machine)) for work in works]
        for live in lives:
            live.prepare()  # also the warm-up
        samples = interleave(lives, clock, [1] * len(lives), rounds)
        probed = [[_attention(live, clock) for live in lives] for _ in range(probes)]  # in turn, like the steps
        traces = [[some[i] for some in probed] for i in range(len(lives))]
        seconds = [[trace.seconds for trace in some] for some in traces]
        flops = [some[0].flops for some in traces if some]
        at = contexts.index(explained_at)
        detail = explain(lives[at], float(np.median(samples[at])))
        kv_bytes, origin = [live.context.nbytes() for live in lives], lives[0].loaded.origin
        return Curve(tuple(contexts), samples, seconds, flops, kv_bytes, detail, explained_at, origin)
