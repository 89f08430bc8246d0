"""The panel: knobs, Run, Stop, live text, strip and ladder. A knob never starts a run; Run does, in a worker thread."""

import threading
import time
import traceback
from collections.abc import Callable, Iterable
from html import escape
from typing import Any, ClassVar

import ipywidgets as w

from labkit.engine.decode import Decode
from labkit.env import Machine
from labkit.errors import BadInput
from labkit.lab.controls import button, classed, folded, frame, grey, html
from labkit.lab.knobs import Knob, knobs, read, write
from labkit.lab.ladder import ladder_html, ladder_text, newest, ratio_text, verdict_text
from labkit.lab.strip import strip_html
from labkit.measure.ladder import Progress, Row
from labkit.toggle import Toggle

IN_VIEW = 4
REFRESH_S = 0.25  # drawing takes the core that is being measured
TAIL = 2000  # characters of live text

Trial = Callable[[list[Toggle], threading.Event, Callable[[Progress], None]], list[Row]]


class Panel:
    """One panel. `trial` measures a list of toggles beside the base: the base's row first, and none that has no sample.

    `rows` keeps every measured row in order, `errors` every unexpected exception, `refused` the last BadInput.
    """

    _running: ClassVar[threading.Lock] = threading.Lock()  # one run a process, however many panels and clicks
    _live: ClassVar[dict[str, "Panel"]] = {}

    def __init__(
        self, title: str, subtitle: str, base: Decode, machine: Machine, trial: Trial, dimension: str, base_row: Row | None = None
    ) -> None:
        self.title, self.subtitle, self.trial, self.base_row = title, subtitle, trial, base_row
        self.rows: list[Row] = []
        self.errors: list[BaseException] = []
        self.refused: BadInput | None = None
        self.thread: threading.Thread | None = None
        self._stop, self._shown_at = threading.Event(), 0.0
        self.knobs = knobs(base, machine)
        self.run, self.stop = button("Run", "play", "primary"), button("Stop", "stop")
        self.status, self.live = html("", "lk-status"), html()
        self.strip, self.ladder = html("", "lk-strip-area"), html("", "lk-ladder-area")
        self.output = w.Output()
        self.box = self._layout(dimension)
        self.run.on_click(self._clicked)
        self.stop.on_click(lambda _: self._stop.set())
        grey(self.stop, True)
        self._say("ready")
        self._write("")
        self._draw()
        self._replace_older()

    def _replace_older(self) -> None:
        """A cell that is run again leaves its old panel behind: end that one's run."""
        older = Panel._live.pop(self.title, None)
        if older:
            older._stop.set()
        Panel._live[self.title] = self

    def _layout(self, dimension: str) -> w.VBox:
        own = [k for k in self.knobs if k.dimension == dimension] or self.knobs
        shown = own[:IN_VIEW]
        rest = sorted((k for k in self.knobs if k not in shown), key=lambda k: k.dimension)
        heading = html(f"<b>{escape(self.title)}</b><span>{escape(self.subtitle)}</span>", "lk-title")
        line = classed(w.HBox([self.run, self.stop, self.status]), "lk-line")
        more = [folded(_more(rest), [_grid(rest)])] if rest else []
        return frame([heading, _grid(shown), *more, line, self.live, self.strip, self.ladder, self.output])

    def _clicked(self, _: object) -> None:
        if not Panel._running.acquire(blocking=False):
            return self._say("a run is still going: wait for it or press its Stop", "lk-error")
        try:
            self._begin()
        except BaseException as err:  # a callback's exception is shown nowhere else
            self._failed(err)
            Panel._running.release()

    def _begin(self) -> None:
        self.refused = None
        for knob in self.knobs:
            knob.say()
        toggles = read(self.knobs)  # here, not in the worker: knobs stay usable during the run
        self._stop.clear()
        grey(self.run, True)
        grey(self.stop, False)
        self._say("starting")
        self.thread = threading.Thread(target=self._work, args=(toggles,), name="labkit-panel", daemon=True)
        self.thread.start()

    def _work(self, toggles: list[Toggle]) -> None:
        try:
            self._measure(toggles)
        except BaseException as err:  # a thread has no caller to raise to
            self._failed(err)
        finally:
            grey(self.run, False)
            grey(self.stop, True)
            Panel._running.release()

    def _measure(self, toggles: list[Toggle]) -> None:
        began = time.monotonic()
        rows = self.trial(toggles, self._stop, self._progress)
        if not rows:
            return self._say("stopped before anything was measured")
        base, last = rows[0], rows[-1]
        if not base.toggles and not base.partial:
            self.base_row = base  # the one that the new row's ratio is against
        if toggles or last.partial:
            self.rows.append(last)
        self._draw()
        if self._stop.is_set():
            return self._say("stopped: the partial row stays in the ladder")
        self._say(f"{verdict_text(last) or 'base measured'} · done in {time.monotonic() - began:.1f} s")

    def _progress(self, now: Progress) -> None:
        """Show how far it is, at most every REFRESH_S."""
        if time.monotonic() - self._shown_at < REFRESH_S:
            return
        self._shown_at = time.monotonic()
        rate = f" {now.tps:.1f} tokens/s" if now.tps else ""
        percent = 100 * now.done / max(now.total, 1)
        self.status.value = (
            f'<span aria-hidden="true">{escape(now.phase)} · {now.done} of {now.total} <span class="lk-bar-back">'
            f'<span class="lk-bar-done" style="width:{percent:.0f}%"></span></span>{rate}</span>'
        )
        if now.text:
            self._write(now.text[-TAIL:])

    def _write(self, text: str) -> None:
        inner = escape(text) if text else '<span class="lk-empty">What the model writes appears here.</span>'
        self.live.value = f'<div class="lk-live lk-scroll">{inner}</div>'

    def _say(self, line: str, css: str = "") -> None:
        self.status.value = f'<span class="{css}">{escape(line)}</span>'

    def _failed(self, err: BaseException) -> None:
        """A refusal goes beside the knob that caused it; anything else is shown whole and kept."""
        self._say(f"{type(err).__name__}: {err}", "lk-error")
        if isinstance(err, BadInput):
            self.refused = err
            self._say(f"refused: {err}", "lk-error")  # here too: the knob may be folded away
            for knob in self.knobs:
                if knob.leaf == err.field:
                    knob.say(str(err))
            return
        self.errors.append(err)
        self.output.append_stderr("".join(traceback.format_exception(err)))

    def _draw(self) -> None:
        self.strip.value = self._strip_html()
        self.ladder.value = ladder_html(newest(self.rows, self.base_row))

    def _strip_html(self) -> str:
        pair = [("base", self.base_row)] + [("variant", row) for row in self.rows[-1:]]
        drawn = [(name, row.attribution, _against(row)) for name, row in pair if row and row.attribution]
        return strip_html(drawn) if drawn else '<span class="lk-empty">Where the time of a token goes: after the first run.</span>'

    def put(self, toggles: Iterable[Toggle]) -> None:
        """Set the knobs to these toggles. Raises BadInput where a knob cannot hold one."""
        write(self.knobs, toggles)

    def end(self) -> None:
        """Stop a run that is going and wait for its last token."""
        self._stop.set()
        if self.thread:
            self.thread.join()

    def run_headless(self) -> Row | None:
        """Press Run and wait: the newest row. Raises the BadInput of a refused run."""
        self.run.click()
        if self.thread:
            self.thread.join()
        if self.refused:
            raise self.refused
        return self.rows[-1] if self.rows else self.base_row

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The live widget, and a static form for where there is no kernel."""
        bundle = self.box._repr_mimebundle_(**kwargs)
        rows = newest(self.rows, self.base_row)
        hint = "run this cell in JupyterLab to use it"
        static = f"<p><b>{escape(self.title)}</b> · {escape(self.subtitle)} · {hint}</p>"
        plain = f"{self.title} · {self.subtitle} · {hint}"
        return (bundle or {}) | {
            "text/plain": plain + ("\n" + ladder_text(rows) if rows else ""),
            "text/html": static + (self._strip_html() + ladder_html(rows) if rows else ""),
        }


def _grid(some: list[Knob]) -> w.VBox:
    return classed(w.VBox([knob.widget for knob in some]), "lk-knobs")


def _more(rest: list[Knob]) -> str:
    dimensions = dict.fromkeys(knob.dimension for knob in rest)
    return "more: " + ", ".join(f"{d} {sum(k.dimension == d for k in rest)}" for d in dimensions)


def _against(row: Row) -> str:
    """The verdict behind a bar; the base has none."""
    return f"{verdict_text(row)} {ratio_text(row)}" if row.ratio else ""
