"""The exercise of lab 01: hidden replies, the right number, and the wrong ways to it."""

from labkit.lab.exercise import Exercise

Events = list[tuple[float, int]]  # (seconds since the request, tokens that came with this event)


def decode_tps(events: Events) -> float:
    """Tokens after the first event, over the time after it."""
    return sum(n for _, n in events[1:]) / (events[-1][0] - events[0][0])


def _all_over_all(events: Events) -> float:
    return sum(n for _, n in events) / events[-1][0]


def _mean_of_rates(events: Events) -> float:
    gaps = [(n, t - before) for (before, _), (t, n) in zip(events, events[1:], strict=False)]
    return sum(n / gap for n, gap in gaps) / len(gaps)


def _counts_first(events: Events) -> float:
    return sum(n for _, n in events) / (events[-1][0] - events[0][0])


EXERCISES = {
    "decode-tps": Exercise(
        cases=[  # steady, a slow prefill, a stall in the middle, two tokens at once (as speculative decoding gives them)
            ([(0.5, 1), (0.6, 1), (0.7, 1), (0.8, 1)],),
            ([(4.0, 1), (4.1, 1), (4.3, 1), (4.4, 1), (4.6, 1)],),
            ([(0.2, 1), (0.3, 1), (2.3, 1), (2.4, 1)],),
            ([(1.0, 1), (1.2, 3), (1.5, 1), (1.6, 2)],),
        ],
        solution=decode_tps,
        mistakes={
            "You divided all tokens by all time: that counts the prefill, which is another job with another speed. "
            "Start the clock at the first token, and leave that token out.": _all_over_all,
            "You averaged the rates of the single steps. Rates can't be averaged: a slow step lasts longer and must weigh more. "
            "Divide the tokens by the time once.": _mean_of_rates,
            "You start the clock at the first token but still count it. It was made before the clock started.": _counts_first,
        },
    )
}
