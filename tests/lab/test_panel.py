from types import SimpleNamespace

import ipywidgets as w
import pytest

from labkit.compute.toggles import Dtype
from labkit.errors import BadInput
from labkit.lab.panel import Panel
from labkit.measure.ladder import Progress
from tests.lab.fakes import BASE, BASE_ROW, HOSTILE, NO_FP16, machine, row, trial
from tests.lab.test_knobs import controls


def panel(run=None, dimension="map", base_row=BASE_ROW, title="Generation") -> Panel:
    return Panel(title, "tiny Llama", BASE, machine(**NO_FP16), run or trial(), dimension, base_row)


def greyed(button: w.Button) -> bool:
    return "lk-off" in button._dom_classes


def turn(shown: Panel, leaf: str, label: str) -> None:
    next(k for k in shown.knobs if k.leaf == leaf).choice.value = label


def test_every_control_moved_starts_no_run_and_gives_a_toggle() -> None:
    run = trial()
    shown = panel(run)
    for knob in shown.knobs:
        for label in knob.choice.options:
            knob.choice.value = label
            for param in knob.params:
                param.control.value = param.control.max
    assert shown.thread is None
    assert run.calls == []


def test_run_measures_the_toggles_and_draws_them() -> None:
    shown = panel()
    turn(shown, "weights.dtype", "bfloat16")
    before = shown.strip.value, shown.ladder.value
    got = shown.run_headless()
    assert got.toggles == ("dtype:dtype=bfloat16",)
    assert "variant" in shown.strip.value
    assert "dtype:dtype=bfloat16" in shown.ladder.value
    assert (shown.strip.value, shown.ladder.value) != before
    assert "▲ faster" in shown.status.value
    assert "word word"[:4] in shown.live.value


def test_a_missing_base_is_taken_from_the_first_run() -> None:
    run = trial(tokens=2)
    shown = panel(run, base_row=None)
    turn(shown, "cache.grow", "off")
    shown.run_headless()
    assert [names for names, _ in run.calls] == [("no-kv",)]
    assert shown.base_row.toggles == ()
    assert [row.toggles for row in shown.rows] == [("no-kv",)]


def test_a_run_of_the_base_replaces_the_base() -> None:
    shown = panel(trial(tokens=1))
    got = shown.run_headless()
    assert shown.base_row is got is not BASE_ROW
    assert shown.rows == []


def test_a_double_click_is_one_run() -> None:
    run = trial(tokens=10)
    shown = panel(run)
    shown.run.click()
    first = shown.thread
    shown.run.click()
    assert "still going" in shown.status.value
    first.join()
    assert len(run.calls) == 1


def test_two_panels_share_one_run_a_process() -> None:
    run = trial(tokens=10)
    one, two = panel(run), panel(run, title="another")
    one.run.click()
    two.run.click()
    assert two.thread is None
    one.thread.join()
    assert len(run.calls) == 1


def test_stop_ends_within_two_tokens_and_keeps_the_partial_row() -> None:
    run = trial(tokens=10_000)
    shown = panel(run)
    turn(shown, "cache.grow", "off")
    assert greyed(shown.stop)
    shown.run.click()
    assert greyed(shown.run)
    assert not greyed(shown.stop)
    shown.stop.click()
    shown.thread.join()
    assert run.calls[0][1] <= 2
    assert shown.rows[-1].partial
    assert "(partial)" in shown.ladder.value
    assert not greyed(shown.run)
    assert greyed(shown.stop)


def test_a_stopped_base_is_not_taken_for_the_base() -> None:
    shown = panel(trial(tokens=10_000), base_row=None)
    turn(shown, "cache.grow", "off")
    shown.run.click()
    shown.stop.click()
    shown.thread.join()
    assert shown.base_row is None
    assert shown.rows[-1].partial


def test_a_run_stopped_before_its_first_sample_says_so() -> None:
    shown = panel(lambda *_: [], base_row=None)
    assert shown.run_headless() is None
    assert "stopped before anything was measured" in shown.status.value
    assert shown.errors == []


def test_a_panel_made_again_stops_the_run_of_the_old_one() -> None:
    run = trial(tokens=10_000)
    old = panel(run)
    old.run.click()
    panel(run)
    old.thread.join(10)
    assert not old.thread.is_alive()


def test_put_turns_the_knobs_and_end_waits_for_the_worker() -> None:
    run = trial(tokens=10_000)
    shown = panel(run)
    shown.put([Dtype("bfloat16")])
    shown.run.click()
    shown.end()
    assert not shown.thread.is_alive()
    assert run.calls[0][0] == ("dtype:dtype=bfloat16",)


def test_an_exception_in_the_trial_is_shown_and_kept_and_run_works_again() -> None:
    def broken(*_):
        raise ZeroDivisionError(HOSTILE)

    shown = panel(broken)
    shown.run_headless()
    assert [type(e) for e in shown.errors] == [ZeroDivisionError]
    assert "ZeroDivisionError" in shown.status.value
    assert "<img" not in shown.status.value
    assert "Traceback" in shown.output.outputs[0]["text"]
    shown.trial = trial(tokens=1)
    shown.run_headless()
    assert "done" in shown.status.value


def test_a_refusal_stands_beside_its_knob_and_is_raised_headless() -> None:
    def refuse(*_):
        raise BadInput("bfloat16: this card has no bf16 units", "weights.dtype")

    shown = panel(refuse)
    turn(shown, "weights.dtype", "bfloat16")
    with pytest.raises(BadInput, match="no bf16 units"):
        shown.run_headless()
    said = {k.leaf: "no bf16 units" in k.note.value for k in shown.knobs}
    assert [leaf for leaf, hit in said.items() if hit] == ["weights.dtype"]
    assert shown.errors == []
    shown.trial = trial(tokens=1)
    shown.run_headless()
    assert not any("no bf16 units" in k.note.value for k in shown.knobs)


def test_a_refusal_of_no_knob_stands_in_the_status_line() -> None:
    def refuse(*_):
        raise BadInput("the prompt is too long", "prompt")

    shown = panel(refuse)
    with pytest.raises(BadInput):
        shown.run_headless()
    assert "the prompt is too long" in shown.status.value


def test_hostile_text_is_escaped_everywhere() -> None:
    shown = Panel(HOSTILE, HOSTILE, BASE, machine(), trial(tokens=1), "map", BASE_ROW)
    shown.run_headless()
    values = [c.value for c in walk(shown.box) if isinstance(c, w.HTML)]
    values.append(shown._repr_mimebundle_()["text/html"])
    assert not any("<img" in v for v in values)
    assert any("&lt;img" in v for v in values)


def walk(widget) -> list[w.Widget]:
    return [widget, *(inner for child in getattr(widget, "children", ()) for inner in walk(child))]


def test_at_most_four_knobs_in_view_and_the_others_behind_more() -> None:
    everything = panel(dimension="map")
    (fold,) = [c for c in walk(everything.box) if isinstance(c, w.ToggleButton) and "lk-fold" in c._dom_classes]
    assert fold.description.endswith(f"algorithm {len(everything.knobs) - 4}")
    memory = panel(dimension="memory")
    (fold,) = [c for c in walk(memory.box) if isinstance(c, w.ToggleButton) and "lk-fold" in c._dom_classes]
    assert f"more: algorithm {len(memory.knobs) - 3}, compute 2" in fold.description
    hidden = next(c for c in walk(memory.box) if isinstance(c, w.VBox) and c.layout.display == "none")
    assert len(controls(hidden)) > 3
    fold.value = True
    assert hidden.layout.display == ""


def test_progress_is_drawn_at_most_four_times_a_second(monkeypatch) -> None:
    shown, now, drawn = panel(), [100.0], []
    shown.live.observe(lambda change: drawn.append(change["new"]), "value")
    monkeypatch.setattr("labkit.lab.panel.time", SimpleNamespace(monotonic=lambda: now[0]))
    for step in range(100):
        now[0] = 100 + step / 100
        shown._progress(Progress("reply", step, 100, 100.0, f"{step} words"))
    assert len(drawn) == 4


def test_without_a_frontend_it_has_a_text_and_a_static_form() -> None:
    shown = panel()
    shown.rows.append(row("sdpa"))
    bundle = shown._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "▲ faster" in bundle["text/plain"]
    assert "<table>" in bundle["text/html"]


def test_dtype_reaches_the_trial_as_a_toggle() -> None:
    seen = []
    shown = panel(lambda toggles, *_: seen.append(toggles) or row("x"))
    turn(shown, "weights.dtype", "bfloat16")
    shown.run_headless()
    assert seen == [[Dtype("bfloat16")]]
