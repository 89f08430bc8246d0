"""The statistics of paired samples and of growth: small, exact where it can be, no distribution assumed."""

from dataclasses import dataclass

import numpy as np

LEVEL = 0.99  # of every interval that carries a verdict
MATTERS = 0.02  # a ratio closer to 1 than this is called no difference
SIGNS = {  # the words for a comparison
    "faster": "▲",
    "slower": "▼",
    "no difference": "=",
    "cheaper but worse text": "≠",
    "undecided": "?",
    "not measurable here": "–",
}


@dataclass(frozen=True)
class Ratio:
    """Base time ÷ variant time: above 1 the variant is faster. `low`, `high`: 99 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f}× [{self.low:.2f}, {self.high:.2f}]"


def signed_rank_tail(n: int, tail: float) -> int:
    """Largest c with P(T ≤ c) ≤ `tail` for Wilcoxon's signed-rank sum T of n pairs; −1 if there is none."""
    ways = np.zeros(n * (n + 1) // 2 + 1)
    ways[0] = 1
    for rank in range(1, n + 1):
        ways[rank:] += ways[:-rank].copy()
    return int(np.searchsorted(np.cumsum(ways) / 2.0**n, tail, side="right")) - 1


def paired_ratio(base_s: list[float], variant_s: list[float], level: float = LEVEL) -> Ratio:
    """Hodges–Lehmann estimate of the ratio of paired times with its exact signed-rank interval.

    Under 8 pairs no 99 % interval exists: it is then unbounded (0, ∞) and no verdict can follow.
    """
    d = np.log(np.array(base_s) / np.array(variant_s))
    rows, columns = np.triu_indices(len(d))
    walsh = np.sort((d[rows] + d[columns]) / 2)
    cut = signed_rank_tail(len(d), (1 - level) / 2)
    value = float(np.exp(np.median(walsh)))
    if cut < 0:
        return Ratio(value, 0.0, float("inf"))
    return Ratio(value, float(np.exp(walsh[cut])), float(np.exp(walsh[-1 - cut])))


@dataclass(frozen=True)
class Fit:
    """y = a + b·n^p, with a bootstrap interval of p and of b·n^p at the largest n."""

    a: float
    b: float
    p: float
    p_low: float
    p_high: float
    growth_low: float  # ends of b·max(n)^p, in the unit of y
    growth_high: float


def _not_negative(basis: np.ndarray) -> np.ndarray:
    """Coefficients ≥ 0 that bring basis (points, 2) closest to ones: neither a start nor a growth below zero makes sense."""
    both, *_ = np.linalg.lstsq(basis, np.ones(len(basis)), rcond=None)
    if (both >= 0).all():
        return both
    alone = basis.sum(0) / (basis**2).sum(0)  # each column on its own
    errors = ((basis * alone - 1) ** 2).sum(0)
    return np.where(np.arange(2) == errors.argmin(), alone, 0.0)


def _fit_once(n: np.ndarray, y: np.ndarray, powers: np.ndarray) -> tuple[float, float, float]:
    """Least squares in a, b ≥ 0 for each power, relative to y so that no end of the range rules alone."""
    best = (np.inf, 0.0, 0.0, 1.0)
    for p in powers:
        basis = np.stack([np.ones_like(y), (n / n[-1]) ** p], axis=1) / y[:, None]
        coefficients = _not_negative(basis)
        error = float(((basis @ coefficients - 1) ** 2).sum())
        if error < best[0]:
            best = (error, float(coefficients[0]), float(coefficients[1] / n[-1] ** p), float(p))
    return best[1:]


def fit_growth(n: list[int], samples: list[list[float]], draws: int = 200, level: float = LEVEL) -> Fit:
    """Fit a + b·n^p to the medians of `samples[i]` at `n[i]`; the interval resamples the samples of each point."""
    x, rng = np.array(n, dtype=float), np.random.default_rng(0)
    powers = np.linspace(0.1, 3.0, 59)
    a, b, p = _fit_once(x, np.array([np.median(s) for s in samples]), powers)
    again = []
    for _ in range(draws):
        medians = np.array([np.median(rng.choice(s, len(s))) for s in samples])
        again.append(_fit_once(x, medians, powers))
    low, high = (1 - level) / 2, (1 + level) / 2
    ps, growth = np.array([g[2] for g in again]), np.array([g[1] * x[-1] ** g[2] for g in again])
    ends = [float(np.quantile(values, end)) for values in (ps, growth) for end in (low, high)]
    return Fit(a, b, p, *ends)


def slope(n: list[int], samples: list[list[float]], draws: int = 400, level: float = LEVEL) -> Ratio:
    """Exponent of growth as the log-log slope, with a bootstrap interval (as value, low, high)."""
    x, rng = np.log(np.array(n, dtype=float)), np.random.default_rng(0)

    def once(pick: bool) -> float:
        medians = [np.median(rng.choice(s, len(s)) if pick else s) for s in samples]
        return float(np.polyfit(x, np.log(medians), 1)[0])

    again = [once(True) for _ in range(draws)]
    return Ratio(once(False), float(np.quantile(again, (1 - level) / 2)), float(np.quantile(again, (1 + level) / 2)))
