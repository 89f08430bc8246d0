"""The exercise: any right form passes, wrong forms are told which mistake they are."""

import numpy as np
import pytest

from labkit.lab.exercise import check
from labkit.lab.lab01 import EXERCISES

TASK = EXERCISES["decode-tps"]


def loop(events):
    tokens = seconds = 0
    for (before, _), (now, n) in zip(events, events[1:], strict=False):
        tokens, seconds = tokens + n, seconds + now - before
    return tokens / seconds


def vectors(events):
    times, tokens = np.array([e[0] for e in events]), np.array([e[1] for e in events])
    return tokens[1:].sum() / np.ptp(times)


RIGHT = [loop, vectors, lambda ev: sum(n for _, n in ev[1:]) / (ev[-1][0] - ev[0][0])]
WRONG = {
    "counts the prefill": lambda ev: sum(n for _, n in ev) / ev[-1][0],
    "Rates can't be averaged": lambda ev: np.mean([n / (t - b) for (b, _), (t, n) in zip(ev, ev[1:], strict=False)]),
    "still count it": lambda ev: sum(n for _, n in ev) / (ev[-1][0] - ev[0][0]),
    "raised ZeroDivisionError": lambda ev: 1 / 0,
    "it should be": lambda ev: 42.0,
    "Which events": lambda ev: "fast",
}


@pytest.mark.parametrize("attempt", RIGHT)
def test_any_right_form_is_accepted(attempt):
    assert check(TASK, attempt)[0] == "solved"


@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_form_is_told_its_mistake(message):
    state, said = check(TASK, WRONG[message])
    assert state == "wrong"
    assert message in said and "\n" not in said


def test_an_empty_function_is_not_attempted():
    assert check(TASK, lambda events: ...)[0] == "not attempted"
    assert check(TASK, lambda events: None)[0] == "not attempted"
