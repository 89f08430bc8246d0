"""How lab 01 judges its claims: pure functions of named measurements, with thresholds from the ledger's columns."""

from collections.abc import Mapping, Sequence

from labkit.lab.ledger import Judge, between, combine
from labkit.measure.stats import Fit, Ratio

FLAT = 0.1  # growth over the whole range of contexts, as a share of the step without context


def step_is_quadratic(flops: Ratio, seconds: Ratio) -> tuple[str, str]:
    """B011. `flops`, `seconds`: fitted exponents in n of attention in one cached step."""
    cases = {name: between(fit.low, fit.high, 1.2, 1.8) for name, fit in (("FLOPs", flops), ("time", seconds))}
    why = f"attention in one cached step grows as n^{flops.value:.2f} in FLOPs and n^{seconds.value:.2f} [{seconds.low:.2f}, {seconds.high:.2f}] in time"
    return combine(cases), f"{why}; n² is the sum over all steps."


def grows_exponentially(ratios: Sequence[float]) -> tuple[str, str]:
    """B012. `ratios`: T(2n) / T(n) at n = 100, 200, 400 with a cache, T summed from the steps of a reply."""
    listed = ", ".join(f"{r:.2f}" for r in ratios)
    why = f"doubling the length multiplies the whole time by {listed}; linear growth gives 2, quadratic 4, exponential growth has no such limit."
    if all(r <= 4.4 for r in ratios):
        return "refuted", why
    growing = all(b > a for a, b in zip(ratios, ratios[1:], strict=False))
    return ("holds" if growing and ratios[-1] > 8 else "undecided"), why


def latency_is_nonlinear(fit: Fit) -> tuple[str, str]:
    """B106. `fit`: a + b·n^p of milliseconds per token with a cache."""
    grown = f"{fit.a:.1f} ms and, at 1,000 tokens of context, {fit.b * 1000**fit.p:.2f} ms more; the power of the context is {fit.p:.2f}"
    interval = f" [{fit.p_low:.2f}, {fit.p_high:.2f}]"
    if fit.growth_low <= 0:  # no power can be told
        flat = fit.growth_high <= FLAT * fit.a
        return ("refuted" if flat else "undecided"), f"a token costs {grown}{interval}: no growth can be told from noise."
    return between(fit.p_low, fit.p_high, 1.2, 1.5), f"a token costs {grown}{interval}."


def longer_limit_takes_longer(ignored: float, allowed: float, ended: bool) -> tuple[str, str]:
    """B005. Wall time at the long limit ÷ at the short one, end-of-text ignored and allowed.

    `ended`: every reply that was allowed to had ended before the long limit, so that a still longer one changes nothing.
    """
    why = f"the longer limit takes {ignored:.1f}× as long when end-of-text is ignored and {allowed:.1f}× when the model may stop."
    if allowed <= 1.2 and ended:
        return "refuted", why + " max_length is a ceiling, not a length."
    if allowed <= 1.2:
        return "undecided", why + " A reply was cut off by the long limit: with a longer one it might have gone on."
    return ("holds" if ignored >= 4 and allowed >= 1.5 else "undecided"), why


def total_over_time(decode_tps: Mapping[int, float], new_tps: Mapping[int, float], all_tps: Mapping[int, float]) -> tuple[str, str]:
    """B080. Tokens per second by prompt length: decode alone, new tokens over all time, all tokens over all time."""
    off = {n: (new_tps[n] / decode_tps[n] - 1, all_tps[n] / decode_tps[n] - 1) for n in decode_tps}
    longest = max(off)
    why = (
        f"with {longest:,} prompt tokens, decode runs at {decode_tps[longest]:.1f} tokens/s; "
        f"new tokens ÷ all time says {new_tps[longest]:.1f}, all tokens ÷ all time says {all_tps[longest]:.1f}."
    )
    if all(abs(d) <= 0.05 for pair in off.values() for d in pair):
        return "holds", why
    return ("refuted" if all(abs(d) >= 0.20 for d in off[longest]) else "undecided"), why


JUDGES: Mapping[str, Judge] = {
    "B005": longer_limit_takes_longer,
    "B011": step_is_quadratic,
    "B012": grows_exponentially,
    "B080": total_over_time,
    "B106": latency_is_nonlinear,
}
