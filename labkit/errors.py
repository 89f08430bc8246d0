"""What a user can do wrong, in one line that says what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class BadInput(Exception):
    """A request that cannot be met. The message is one line for the user; the command line exits with code 2.

    `field` names the leaf (`weights.dtype`) that caused it, so that a panel can say the line beside that knob.
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(" ".join(str(message).split()))
        self.field = field

    def _render_traceback_(self) -> list[str]:
        """IPython prints this instead of a traceback: a reader of a notebook needs the line only."""
        return [f"BadInput: {self}"]


class NotFetched(BadInput):
    """A model that this machine can fetch, but has not. Its message says the command."""


def unknown(kind: str, name: object, known: Iterable[str]) -> BadInput:
    """One line for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    near = get_close_matches(str(name), names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(names)}"
    return BadInput(f"unknown {kind} {str(name)!r}: {hint}")


def brief(err: Exception) -> str:
    """The first line of an error, short enough to stand inside one line of ours."""
    lines = str(err).strip().splitlines() or [type(err).__name__]
    return lines[0][:160]
