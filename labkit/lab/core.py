"""The object a lab talks to. Each call measures, shows, and leaves a record; the work is done in `measure`."""

import inspect
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from types import ModuleType
from typing import Any

from labkit.engine.decode import Decode
from labkit.engine.load import Loaded, load, unload
from labkit.engine.prompt import Text
from labkit.env import Machine
from labkit.errors import NotFetched, unknown
from labkit.lab.exercise import check
from labkit.lab.ledger import Claim, claim, judged, verdict_html
from labkit.lab.panel import Panel
from labkit.lab.predict import Prediction
from labkit.lab.records import Recorder
from labkit.lab.report import write_report
from labkit.lab.story import FONT, Story, paragraph, show
from labkit.measure.lock import Busy, exclusive, wait_until_quiet
from labkit.toggle import Toggle

PATIENCE_S = {"smoke": 0.0, "quick": 10.0, "full": 10.0}


class Lab:
    """One lab in one kernel. `smoke`, `quick` and `full` differ in sizes only, given by `pick`."""

    def __init__(
        self, name: str, mode: str, machine: Machine, content: ModuleType, prompts: dict[str, str], toggles: list[Toggle], budget_s: float
    ) -> None:
        self.name, self.mode, self.machine, self.content = name, mode, machine, content
        self.prompts, self.toggles, self.budget_s, self.started_s = prompts, toggles, budget_s, time.monotonic()
        self.story = Story(name)
        self.recorder = Recorder(name, mode, machine)
        self.models: dict[str, str] = {}
        self.missing: dict[str, str] = {}  # role → why its model is not here
        self.predictions: dict[str, Prediction] = {}
        self.panels: list[Panel] = []
        self.failed: list[str] = []  # checks that did not hold
        self.title = content.TITLE

    def adopt(self, role: str, name: str) -> str:
        """Load a model for a role; a line about it. One that was not fetched is replaced by the text model, and said.

        Raises NotFetched for the text model, which nothing replaces.
        """
        try:
            loaded = load(name, self.machine.device)
        except NotFetched as err:
            if role == "text":
                raise
            self.missing[role] = str(err)
            return f"{role + ' model':<12}{err}; its questions stay undecided"
        self.models[role] = loaded.name
        return f"{role + ' model':<12}{describe(loaded)}"

    def model(self, role: str) -> str:
        """The model of a role, or the stand-in when it is missing."""
        return self.models.get(role) or self.models["text"]

    def pick(self, smoke: Any, quick: Any, full: Any) -> Any:
        """The size for this mode."""
        return {"smoke": smoke, "quick": quick, "full": full}[self.mode]

    def decode(self, model: str, prompt: Any, tokens: int, **how: Any) -> Decode:
        """A Decode workload. `model`: a role (speed, real, text) or a name; `prompt`: an id of the prompt file or a spec."""
        name = self.model(model) if model in self.models or model in self.missing else model
        if isinstance(prompt, str):
            if prompt not in self.prompts:
                raise unknown("prompt", prompt, self.prompts)
            prompt = Text(self.prompts[prompt], chat=True)
        return Decode(name, prompt, tokens=tokens, **how)

    @contextmanager
    def measuring(self, what: str, stop: threading.Event | None = None) -> Iterator[Busy]:
        """Hold the machine; gives the foreign processes that are busy, which then mark the record."""
        with exclusive(what, stop=stop):
            busy = wait_until_quiet(PATIENCE_S[self.mode], stop)
            try:
                yield busy
            finally:
                busy.end()

    def say(self, text: str) -> None:
        """A paragraph made from the numbers of this run."""
        self.story.html("", paragraph(text), text)

    def source(self, function: Callable[..., Any]) -> None:
        """Show the code that runs, from the package itself."""
        code = inspect.getsource(function)
        show(f'<pre style="font-size:12.5px;line-height:1.45;overflow-x:auto">{escape(code)}</pre>', code)

    def check(self, what: str, ok: bool, rows: Sequence[str]) -> None:
        """A fact that does not depend on the machine: printed, recorded, and asserted when the lab finishes."""
        self.recorder.fact(what, ok, rows)
        self.failed += [] if ok else [what]
        print(f"{'yes' if ok else 'NO'}: {what}")

    def predict(self, key: str, question: str, **how: Any) -> Prediction:
        """Ask before measuring; `reveal` puts the result beside the guess."""
        self.predictions[key] = Prediction(self.name, key, question, headless=self.story.headless, **how)
        return self.predictions[key]

    def reveal(self, key: str, measured: Any, why: str) -> None:
        """The result of a prediction: guess, value with interval, factor, and why guesses usually err."""
        html = self.predictions[key].reveal(measured, why)
        result = self.predictions[key].result or {}
        self.story.add("prediction", **result)
        show(html, f"{result.get('question')} measured {result.get('measured')}")

    def settle(self, key: str, busy: Sequence[str] = (), record: str = "", **measures: Any) -> None:
        """Judge a claim by named measurements, show and record the verdict."""
        verdict, why = judged(self.content.JUDGES, key, measures, list(busy))
        self._told(claim(key), verdict, why, record)

    def undecided(self, key: str, why: str) -> None:
        """A claim that could not be measured here, with the reason."""
        self._told(claim(key), "undecided", why, "")

    def _told(self, item: Claim, verdict: str, why: str, record: str) -> None:
        self.story.add(
            "claim", id=item.id, claim=item.claim, source=item.source, headline=item.headline, verdict=verdict, why=why, record=record
        )
        self.recorder.verdict(item.id, verdict, why)
        show(verdict_html(item, verdict, why), f"{item.id} {verdict}: {why}")

    def exercise(self, key: str, attempt: Callable[..., Any]) -> None:
        """Run the learner's function on hidden cases and say what was found. An unsolved exercise stops nothing."""
        state, message = check(self.content.EXERCISES[key], attempt)
        self.story.add("exercise", id=key, state=state, message=message)
        sign = {"solved": "✓", "wrong": "✗"}.get(state, "–")
        show(f'<p style="{FONT}"><b>{sign} {escape(state)}</b> {escape(message)}</p>', f"{state}: {message}")

    def finish(self) -> None:
        """Close the lab: raise what went wrong in a panel or a check, free the models, say where the report lies."""
        if self.failed:
            raise AssertionError(f"did not hold: {'; '.join(self.failed)}")
        for made in self.panels:
            made.end()
            if made.errors:
                raise made.errors[0]
        seconds = time.monotonic() - self.started_s
        self.story.add("finished", seconds=round(seconds, 1), budget_s=self.budget_s)
        unload()
        told = self.recorder.summary(seconds, self.budget_s)
        if not self.story.headless:
            told += f"\nreport: {write_report(self.story.path, self.name, self.title)}"
        print(told)


def describe(loaded: Loaded) -> str:
    """Name, size and origin of a model in one line."""
    count = sum(p.numel() for p in loaded.model.parameters())
    return f"{loaded.name}: {count / 1e6:.1f} M parameters, {loaded.origin}"
