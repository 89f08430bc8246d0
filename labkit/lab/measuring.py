"""The calls of a lab that measure: each takes the machine's lock, shows a figure or a strip, and leaves records."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from labkit.engine import naive
from labkit.engine.clone import cast, clone
from labkit.engine.decode import Decode
from labkit.engine.load import load
from labkit.errors import BadInput
from labkit.lab import catalogue, figures
from labkit.lab.core import Lab, describe
from labkit.lab.ladder import ladder_cells, ladder_html, ladder_text
from labkit.lab.live import LiveText
from labkit.lab.panel import Panel
from labkit.lab.records import spread
from labkit.lab.story import show
from labkit.lab.strip import strip_html, strip_text
from labkit.measure.attribute import Attribution
from labkit.measure.clock import Timeline
from labkit.measure.curve import PROBES, Curve, curve
from labkit.measure.ladder import Listener, Plan, Row, Rung, climb, write_reply
from labkit.measure.lock import Stopped, exclusive
from labkit.spec import encode
from labkit.toggle import Toggle, stack


class MeasuringLab(Lab):
    """Decode runs, side by side and along a context."""

    def loaded(self, role: str) -> tuple[Any, Any]:
        """Model and tokenizer of a role, as a float32 clone that a cell may do anything with."""
        found = load(self.model(role), self.machine.device)
        return cast(clone(found.model), "float32"), found.tokenizer

    def tokens(self, base: Decode, *toggles: Toggle) -> list[int]:
        """The reply's token ids, with these toggles on."""
        with exclusive("the tokens of a reply"), stack(base, toggles).open(self.machine) as live:
            live.generate()
            return live.reply()

    def oracle(self, base: Decode) -> list[int]:
        """The same by the naive loop, on the stored weights in float32."""
        with exclusive("the naive loop"), base.open(self.machine) as live:
            return naive.generate(live.model, live.prompt, base.tokens)[0].tolist()  # type: ignore[no-any-return]

    def watch(self, work: Decode, rows: Sequence[str]) -> Timeline:
        """Write one reply on the screen as it is made, then one bar per token."""
        with self.measuring("a reply") as busy, work.open(self.machine) as live:
            shown = LiveText(work.tokens)
            tokens, timeline = write_reply(live, shown)
            text = shown.close()
            label = " (random weights: nonsense)" if live.loaded.origin.startswith("random") else ""
            self.recorder.write(
                f"a reply of {live.loaded.name}", rows, busy, model=live.loaded.name, origin=live.loaded.origin, work=encode(work),
                threads=live.threads, samples_s=timeline.gaps_s.tolist(), median_s=timeline.percentiles_s()["p50"],
                spread_s=spread(timeline.gaps_s.tolist()), tokens=len(tokens), ttft_s=timeline.ttft_s, warm=False,
                inter_token_s=timeline.percentiles_s(), decode_tps=timeline.decode_tps, total_tps=timeline.decode_tps,
            )  # fmt: skip
        self.story.add("html", title=f"A reply{label}", html=shown.html(), text=text)
        self.story.figure(*figures.token_times(timeline))
        return timeline

    def compare(
        self, base: Decode, *stacks: Sequence[Toggle], title: str, rows: Sequence[str] = (), reply: bool = True, budget_s: float = 3.0
    ) -> list[Row]:
        """Measure base and stacks interleaved; shows strip and ladder, writes a record each. The first row is the base."""
        with self.measuring(title) as busy:
            found = self.ladder(base, stacks, Plan(self.pick(0.5, budget_s, 4 * budget_s), reply=reply), busy, rows=rows)
        self.show_rows(title, found)
        return found

    def show_rows(self, title: str, rows: Sequence[Row]) -> None:
        """Strip and ladder of measured rows, in the notebook and in the report."""
        self.strip(title, {row.label: row.attribution for row in rows if row.attribution})
        columns, cells = ladder_cells(rows)
        self.story.add("ladder", title="", columns=columns, rows=cells)  # its strip, above, has the title
        show(ladder_html(rows), ladder_text(rows))

    def ladder(
        self,
        base: Decode,
        stacks: Sequence[Sequence[Toggle]],
        plan: Plan,
        busy: Sequence[str],
        rows: Sequence[str] = (),
        stop: threading.Event | None = None,
        on: Listener | None = None,
    ) -> list[Row]:
        """Rows with records, nothing shown: what `compare` and the panel have in common."""
        names: list[tuple[str, ...]] = [(), *(tuple(catalogue.text(t) for t in toggles) for toggles in stacks)]
        rungs = climb([base] + [stack(base, s) for s in stacks], self.machine, plan, busy, stop, on)
        return [self._row(rung, name, rows, busy) for rung, name in zip(rungs, names, strict=True) if rung.samples_s]

    def _row(self, rung: Rung, name: tuple[str, ...], rows: Sequence[str], busy: Sequence[str]) -> Row:
        label = " + ".join(n.partition(":")[0] for n in name) or ("base" if rung.ratio is None else "base again")
        note = "machine busy" if rung.ratio and busy else ""
        return Row.of(rung, label, name, self.recorder.rung(rung, label, name, rows, busy), note)

    def strip(self, title: str, parts: Mapping[str, Attribution]) -> None:
        """Where the time of a token went, one line each, in the notebook and in the report."""
        rows = [(label, where, where.bound) for label, where in parts.items()]
        self.story.html(title, strip_html(rows), strip_text(rows))

    def curve(
        self,
        base: Decode,
        toggles: Sequence[Toggle],
        contexts: Sequence[int],
        rows: Sequence[str],
        rounds: int,
        explained_at: int,
        probes: int = PROBES,
    ) -> tuple[Curve, dict[str, Any]]:
        """One series over contexts, and what a verdict must know of its making: busy processes and the record's id."""
        work = stack(base, toggles)
        with self.measuring("a curve over contexts") as busy:
            found = curve(work, contexts, self.machine, rounds, explained_at, probes)
        record = self.recorder.write(
            "time per token against context", rows, busy, model=base.model, origin=found.origin + "; context of random keys and values",
            toggles=[catalogue.text(t) for t in toggles], work=encode(work), samples_s=[t for s in found.samples_s for t in s],
            bound_by=found.detail.attribution.bound_by, median_s=float(found.medians_s[-1]), tokens=len(contexts) * rounds,
            values={"contexts": found.contexts, "samples_s": found.samples_s, "attention_s": found.attention_s,
                    "attention_flops": found.attention_flops, "kv_bytes": found.kv_bytes, "fit_ms": vars(found.fit())},
        )  # fmt: skip
        return found, {"busy": busy, "record": record}

    def panel(self, base: Decode, dimension: str, rows: Sequence[str] = ()) -> Panel:
        """Knobs, Run, Stop and a ladder that grows, starting with the lab's parameter `toggles`."""
        about = f"{describe(load(base.model, self.machine.device))} · {base.threads or self.machine.threads} thread(s)"

        def trial(wanted: Sequence[Toggle], stop: threading.Event, on: Listener) -> list[Row]:
            stacks = [wanted] if wanted else []
            with suppress(Stopped), self.measuring("the panel", stop) as busy:
                return self.ladder(base, stacks, Plan(self.pick(0.3, 3.0, 12.0)), busy, rows, stop, on)
            return []

        made = Panel(self.title, about, base, self.machine, trial, dimension)
        made.put(self.toggles)
        self.panels.append(made)
        return made

    def press(self, panel: Panel) -> None:
        """In a headless run press the panel's Run once, and keep strip and ladder; a reader presses it himself."""
        if not self.story.headless:
            return print("Press Run in the panel above; a headless run presses it here.")
        if panel.run_headless() is None:
            raise BadInput("the panel gave no row")
        self.show_rows("The panel", [row for row in (panel.base_row, *panel.rows) if row])
