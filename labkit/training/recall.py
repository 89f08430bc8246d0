"""Sequences that teach a model to look back: repeated tokens, and facts that are asked for later.

Each generator gives (ids of length + 1 tokens, weight of each of the `length` predictions).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from labkit.measure.recall import DIGITS, Facts, repeated

Sample = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Repeats:
    """Random tokens, repeated with a period in `low`…`high`: from the second round on each token can be known."""

    entries: int
    low: int
    high: int

    def __call__(self, rng: np.random.Generator, length: int) -> Sample:
        period = min(int(rng.integers(self.low, self.high + 1)), (length + 1) // 2)
        return repeated(rng, self.entries, period, length + 1), (np.arange(length) >= period).astype(np.float32)


@dataclass(frozen=True)
class AskedFacts:
    """1…`most` facts, up to `gap` tokens of text between, then questions in random order as long as there is room."""

    facts: Facts
    most: int
    gap: int
    around: float  # weight of what is not an answer
    answer: float = 4.0

    def __call__(self, rng: np.random.Generator, length: int) -> Sample:
        language = "zh" if rng.random() < 0.5 else "en"
        drawn = self.facts.draw(rng, language, int(rng.integers(1, self.most + 1)))
        ids: list[int] = [0]
        answers: list[int] = []
        for question, digits, stop in drawn:
            ids += question + digits + stop + self._gap(rng, language, len(drawn))
        while True:
            for index in rng.permutation(len(drawn)):
                question, digits, stop = drawn[index]
                more = self._gap(rng, language, 2) + question
                if len(ids) + len(more) + len(digits) + 1 > length + 1:
                    return self._finish(rng, language, ids, answers, length)
                ids += more
                answers.append(len(ids))
                ids += digits + stop

    def _gap(self, rng: np.random.Generator, language: str, share: int) -> list[int]:
        return self.facts.filler(rng, language, int(rng.integers(0, self.gap // share + 1))) if self.gap else []

    def _finish(self, rng: np.random.Generator, language: str, ids: list[int], answers: Sequence[int], length: int) -> Sample:
        ids = (ids + self.facts.filler(rng, language, max(0, length + 1 - len(ids))))[: length + 1]
        weights: np.ndarray = np.full(length, self.around, np.float32)
        for at in answers:
            weights[at - 1 : at - 1 + DIGITS] = self.answer
        return np.array(ids), weights


@dataclass(frozen=True)
class RunningText:
    """Text as it stands, `chinese` of it Chinese."""

    facts: Facts
    chinese: float

    def __call__(self, rng: np.random.Generator, length: int) -> Sample:
        language = "zh" if rng.random() < self.chinese else "en"
        return np.array(self.facts.filler(rng, language, length + 1)), np.ones(length, np.float32)


def batch(rng: np.random.Generator, mix: Sequence[tuple[float, Callable[..., Sample]]], rows: int, length: int) -> Sample:
    """`rows` samples, each kind by its share: ids (rows, length + 1), weights (rows, length)."""
    kinds = rng.choice(len(mix), rows, p=[share for share, _ in mix])
    ids, weights = zip(*(mix[kind][1](rng, length) for kind in kinds), strict=True)
    return np.stack(ids), np.stack(weights)
