"""A prediction: entered and locked before the measurement, set beside the result after it. No score."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

import ipywidgets as w

from labkit.errors import BadInput
from labkit.lab import learner
from labkit.lab.controls import button, classed, frame, grey, html, labelled
from labkit.lab.numbers import three

SECTION = "predictions"
MOST_CHOICES = 4


class Measured(Protocol):
    """A value with its interval, as labkit.measure's Ratio has it."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


@dataclass(frozen=True)
class Guess:
    """What is remembered. `value` None: the result came first, so there was nothing left to predict."""

    value: float | str | None
    at: str


class Prediction:
    """One question. `guess` is None while it is open; once locked or skipped it never changes.

    Numbers have `unit` and the slider's ends `low` and `high`; otherwise `choices` holds two to four answers.
    """

    def __init__(
        self, lab: str, key: str, question: str, *, unit: str = "", low: float = 0, high: float = 0,
        choices: Sequence[str] = (), headless: bool = False,
    ) -> None:  # fmt: skip
        if choices and not 2 <= len(choices) <= MOST_CHOICES:
            raise BadInput(f"prediction {key}: give 2 to {MOST_CHOICES} choices, not {len(choices)}")
        if not choices and not 0 < low < high:
            raise BadInput(f"prediction {key}: low and high must be 0 < low < high, got {low} and {high}")
        self.id, self.question, self.unit, self.choices, self.headless = f"{lab}/{key}", question, unit, tuple(choices), headless
        self.result: dict[str, Any] | None = None  # the fields of the story's line, once revealed
        stored = None if headless else learner.load().get(SECTION, {}).get(self.id)
        self.guess = Guess(**stored) if stored else None
        self.entry = self._choice() if choices else self._number(low, high)
        self.lock, self.said = button("Lock in", "lock", "primary"), html("", "lk-status")
        self.lock.on_click(self._clicked)
        self.box = self._layout()
        grey(self.lock, True)
        self._show()

    def _layout(self) -> w.VBox:
        controls = [self.entry] if self.choices else [self.entry, html(f'<span class="lk-unit">{escape(self.unit)}</span>'), self.slider]
        heading = html(f"<b>Predict</b><span>{escape(self.question)}</span>", "lk-question")
        return frame([heading, labelled("my guess", *controls), classed(w.HBox([self.lock, self.said]), "lk-line")])

    def _choice(self) -> w.ToggleButtons:
        entry = classed(w.ToggleButtons(options=self.choices, value=None, tooltips=list(self.choices)), "lk-choice")
        entry.observe(lambda _: grey(self.lock, self.guess is not None), "value")
        return entry

    def _number(self, low: float, high: float) -> w.Text:
        """A text box, and a log slider that writes into it; the box starts empty, so that no default is a hint."""
        ends = math.log10(low), math.log10(high)
        self.slider = w.FloatLogSlider(
            value=math.sqrt(low * high), min=ends[0], max=ends[1], step=0.01, readout=False, tooltip=self.question
        )
        classed(self.slider, "lk-slider")
        entry = classed(w.Text(placeholder="a number", tooltip=f"{self.question} ({self.unit})"), "lk-guess")
        self.slider.observe(self._slid, "value")
        entry.observe(lambda change: grey(self.lock, self.guess is not None or not change["new"].strip()), "value")
        return entry

    def _slid(self, change: dict[str, Any]) -> None:
        if self.guess is None:  # the browser answers a locked slider with its own rounding
            self.entry.value = three(change["new"]).replace(",", "")

    def _clicked(self, _: object) -> None:
        try:
            self.lock_in()
        except BadInput as err:
            self._say(str(err), "lk-error")
        except OSError as err:  # a full disk, a read-only folder: the guess is not kept, and a callback shows nothing by itself
            self._say(f"not locked: {learner.path().name} could not be written ({err})", "lk-error")

    def lock_in(self) -> None:
        """Fix what is entered, for good. Raises BadInput when nothing usable is entered or it is closed already."""
        if self.guess:
            raise BadInput("this prediction is closed: it cannot be changed any more")
        self._close(self._entered())

    def _entered(self) -> float | str:
        if self.choices:
            if self.entry.value is None:
                raise BadInput("choose one of the answers first")
            return str(self.entry.value)
        return _number(self.entry.value)

    def _close(self, value: float | str | None) -> None:
        guess = Guess(value, time.strftime("%Y-%m-%d %H:%M:%S"))
        if not self.headless:  # a headless run must not use up the reader's own chance to predict
            learner.save(SECTION, self.id, {"value": guess.value, "at": guess.at})
        self.guess = guess
        self._show()

    def _show(self) -> None:
        """The state of the controls: open, locked or skipped."""
        if self.guess is None:
            return self._say("Lock it in before you run the measurement.")
        self.entry.disabled = True
        if not self.choices:
            self.slider.disabled = True
        grey(self.lock, True)
        if self.guess.value is None:
            return self._say("skipped: the result was there first")
        self._put(self.guess.value)
        self._say(f"locked on {self.guess.at}")

    def _put(self, value: float | str) -> None:
        """Show a locked guess; one that the question no longer offers is only remembered."""
        if isinstance(value, str):
            self.entry.value = value if value in self.choices else None
        elif not self.choices:
            self.slider.value = value  # clamped to its ends
            self.entry.value = f"{value:.10g}"

    def _say(self, line: str, css: str = "") -> None:
        self.said.value = f'<span class="{css}">{escape(line)}</span>'

    def reveal(self, measured: Measured | str, why: str) -> str:
        """HTML: guess, result, the factor between them and `why` guesses usually err. An open prediction is skipped by this."""
        if self.guess is None:
            self._close(None)
        assert self.guess is not None
        number = None if isinstance(measured, str) else measured
        factor = self.guess.value / number.value if number and isinstance(self.guess.value, float) else None
        self.result = {
            "id": self.id, "question": self.question, "unit": self.unit, "guess": self.guess.value,
            "measured": number.value if number else measured, "low": number.low if number else None,
            "high": number.high if number else None, "factor": factor, "why": why,
        }  # fmt: skip
        return _result_html(self.result)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The live widget, and a static form for where there is no kernel."""
        static = f"Prediction · {self.question}"
        return (self.box._repr_mimebundle_(**kwargs) or {}) | {"text/plain": static, "text/html": f"<p>{escape(static)}</p>"}


def _number(text: str) -> float:
    """A positive number from what was typed; commas between thousands are fine."""
    try:
        value = float(text.replace(",", "").replace(" ", ""))
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise BadInput(f"{text!r} is not a number above 0: write it as 41.2 or 4e6")
    return value


def _between(result: dict[str, Any]) -> str:
    """The guess against the result, in words."""
    if result["factor"] is None:
        return "That is what you said." if result["guess"] == result["measured"] else "Your answer was another one."
    if result["low"] <= result["guess"] <= result["high"]:
        return "Your guess lies within the interval."
    factor = result["factor"]
    return f"Your guess is {three(max(factor, 1 / factor))}× too {'high' if factor > 1 else 'low'}."


def _result_html(result: dict[str, Any]) -> str:
    unit = escape(result["unit"])
    measured, guess = escape(str(result["measured"])), escape(str(result["guess"]))
    if result["low"] is not None:
        measured = f"{three(result['measured'])} {unit} [{three(result['low'])}, {three(result['high'])}]"
        guess = f"{three(result['guess'])} {unit}" if result["guess"] is not None else ""
    style = "font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);color:var(--jp-ui-font-color1,inherit);max-width:66em"
    if result["guess"] is None:
        cover = '<summary data-lm-suppress-shortcuts="true" style="cursor:pointer">Predict first, in your head; then open this: show anyway</summary>'
        body = f"<details>{cover}measured <b>{measured}</b>. {escape(result['why'])}</details>"
    else:
        body = f"your guess <b>{guess}</b> · measured <b>{measured}</b>. {_between(result)} {escape(result['why'])}"
    return f'<div class="lk-reveal" style="{style}"><i>{escape(result["question"])}</i><br>{body}</div>'
