"""Exercises: the learner's function is run on hidden cases, and a wrong answer is told which mistake it made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Exercise:
    """`solution` gives the right value of a case; each entry of `mistakes` is a wrong way, and what to tell who took it."""

    cases: Sequence[tuple[Any, ...]]  # arguments of each call
    solution: Callable[..., float]
    mistakes: Mapping[str, Callable[..., float]]
    close: float = 1e-6  # relative


def check(exercise: Exercise, attempt: Callable[..., Any]) -> tuple[str, str]:
    """State (solved, not attempted, wrong) and what to tell the learner. An exception in the attempt is an answer too."""
    for case in exercise.cases:
        right = exercise.solution(*case)
        try:
            given = attempt(*case)
        except Exception as err:
            return "wrong", f"Your function raised {type(err).__name__}: {err}"
        if given is None or given is ...:
            return "not attempted", "Not attempted: the function returns nothing yet. The lab goes on without it."
        if not _near(given, right, exercise.close):
            return "wrong", _explain(exercise, case, given, right)
    return "solved", f"Right on all {len(exercise.cases)} hidden replies."


def _near(given: Any, right: float, close: float) -> bool:
    try:
        return abs(float(given) - right) <= close * abs(right)
    except (TypeError, ValueError):
        return False


def _explain(exercise: Exercise, case: tuple[Any, ...], given: Any, right: float) -> str:
    for why, mistake in exercise.mistakes.items():
        if _near(given, mistake(*case), exercise.close):
            return why
    return f"On one hidden reply you gave {given!r:.40}; it should be {right:.4g}. Which events belong to the decode, and over what time?"
