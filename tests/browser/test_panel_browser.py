"""The panel and the prediction in a real JupyterLab, with a trial that writes a word each 50 ms."""

import importlib.util
import re
from collections.abc import Iterator

import pytest

from labkit.env import ROOT
from tests.browser.harness import CHROMIUM, INSTALL, Lab, jupyter, write_notebook

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=INSTALL),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is missing: pip install playwright"),
]
CELLS = [
    "from labkit.lab.panel import Panel\nfrom labkit.lab.predict import Prediction\n"
    "from tests.lab.fakes import BASE, BASE_ROW, NO_FP16, machine, trial",
    'Prediction("01", "growth", "How many times as long takes a token at 2,048?", unit="times", low=1, high=1000)',
    "run = trial(tokens=24, token_s=0.05)",
    'panel = Panel("Generation loop", "random:tiny-llama · 1 thread", BASE, machine(**NO_FP16), run, "map", BASE_ROW)\n'
    "seen = []\npanel.stop.on_click(lambda _: seen.append(run.done))\npanel",
    "run.done - seen[0] if seen else None",
]
PANEL_CELL, LATER_CELL = 3, 4
FOCUSABLE = "button, input, select, textarea, summary, a[href], [tabindex='0'], .lk-scroll"


@pytest.fixture(scope="module")
def opened(tmp_path_factory) -> Iterator[Lab]:
    """One notebook with all its cells run: starting a kernel with torch takes longer than any test here."""
    tmp = tmp_path_factory.mktemp("jupyter")
    (tmp / "root").mkdir()
    write_notebook(tmp / "root" / "lab.ipynb", CELLS)
    extra = {"PYTHONPATH": str(ROOT), "LABKIT_HOME": str(tmp / "home"), "LABKIT_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with jupyter(tmp / "root", tmp, extra=extra) as lab:
        lab.open("lab.ipynb")
        assert lab.run_all() == []
        panel_of(lab).wait_for()
        yield lab


@pytest.fixture
def lab(opened) -> Iterator[Lab]:
    """A fresh panel. After the test the page must have had no error and asked nobody else."""
    fresh_panel(opened)
    yield opened
    opened.clean()


def fresh_panel(lab: Lab) -> None:
    """Run the panel's cell again and wait until its output has replaced the old one."""
    lab.page.evaluate("() => document.querySelectorAll('.lk-box').forEach(box => box.classList.add('old'))")
    lab.run_cell(PANEL_CELL)
    lab.page.locator(".lk-box:not(.old) .lk-title").wait_for()


def panel_of(lab: Lab):
    return lab.page.locator(".lk-box", has=lab.page.locator(".lk-title"))


def press(lab: Lab, name: str) -> None:
    panel_of(lab).get_by_role("button", name=name, exact=True).click()


def status(lab: Lab, text: str, timeout_s: float = 30) -> str:
    """Wait until the status line says `text`: the whole line."""
    line = panel_of(lab).locator(".lk-status")
    line.get_by_text(text).wait_for(timeout=timeout_s * 1000)
    return line.inner_text()


def ladder(lab: Lab) -> list[str]:
    return panel_of(lab).locator(".lk-ladder tbody tr").all_inner_texts()


def test_every_control_moves_and_a_run_changes_strip_and_ladder(lab: Lab) -> None:
    panel = panel_of(lab)
    for label in ("bfloat16", "set", "static", "eager"):
        button = panel.get_by_role("button", name=label, exact=True)
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
    boxes = panel.locator(".lk-number input")
    for index, value in enumerate(("2", "512")):
        boxes.nth(index).fill(value)
        boxes.nth(index).press("Tab")
    assert ladder(lab) == ladder(lab)[:1]
    before = panel.locator(".lk-strip").inner_text()
    press(lab, "Run")
    status(lab, "done in")
    assert panel.locator(".lk-strip").inner_text() != before
    first = ladder(lab)[1]
    for chip in ("dtype:dtype=bfloat16", "threads:count=2", "static-kv:max_tokens=512", "eager"):
        assert chip in first
    assert "▲ faster" in first
    assert "<img" in panel.locator(".lk-live").inner_text()
    assert panel.locator("img").count() == 0


def test_stop_ends_within_two_tokens_and_the_partial_row_stays(lab: Lab) -> None:
    panel = panel_of(lab)
    panel.get_by_role("button", name="off", exact=True).click()
    press(lab, "Run")
    seen = int(re.search(r"(\d+) of 24", status(lab, re.compile(r"\d+ of 24"))).group(1))
    press(lab, "Stop")
    status(lab, "stopped")
    row = ladder(lab)[1]
    assert "(partial)" in row
    assert seen <= int(re.search(r"same (\d+) tokens", row).group(1)) < 24
    lab.run_cell(LATER_CELL)
    assert int(lab.page.locator(".jp-OutputArea-executeResult").last.inner_text().split()[-1]) <= 2


def type_letters(lab: Lab, node, before: list[str]) -> None:
    """Each key must leave focus and notebook alone: b, a, x, d d together would undo each other."""
    for key in ("b", "a", "x", "d", "d", "z", "Enter"):
        lab.page.keyboard.press(key)
        assert node.evaluate("node => document.activeElement === node"), f"{key} took the focus away"
        assert lab.sources() == before, f"{key} changed the notebook"


def test_letters_on_every_control_leave_the_notebook_as_it_is(lab: Lab) -> None:
    before = lab.sources()
    focusable = lab.page.locator(".lk-box").locator(FOCUSABLE)
    reached = 0
    for index in range(focusable.count()):
        node = focusable.nth(index)
        if node.is_visible() and node.evaluate("node => { node.focus(); return document.activeElement === node; }"):
            type_letters(lab, node, before)
            reached += 1
    assert reached >= 15
    status(lab, re.compile("done in|stopped"))  # Enter on Run has started one, Enter on Stop may have ended it


def test_letters_typed_while_run_is_greyed_leave_the_notebook_as_it_is(lab: Lab) -> None:
    run = panel_of(lab).get_by_role("button", name="Run", exact=True)
    run.click()
    status(lab, re.compile(r"\d+ of 24"))
    type_letters(lab, run, lab.sources())
    status(lab, "done in")


def test_the_tab_key_walks_through_the_panel_in_reading_order(lab: Lab) -> None:
    panel = panel_of(lab)
    panel.get_by_role("button", name="static", exact=True).click()
    panel.get_by_label("KV cache: length").and_(panel.locator("input:enabled")).wait_for()
    panel.get_by_role("button", name="float32", exact=True).focus()
    walked = []
    while panel.evaluate("box => box.contains(document.activeElement)"):
        walked.append(lab.page.evaluate("() => document.activeElement.innerText || document.activeElement.getAttribute('aria-label')"))
        lab.page.keyboard.press("Tab")
        assert len(walked) < 40
    names = [w.strip() for w in walked if w]
    order = ["float32", "bfloat16", "default", "set", "dynamic", "static", "off", "KV cache: length", "sdpa", "eager", "Run", "Stop"]
    assert [n for n in names if n in order] == order


def test_a_double_click_is_one_run(lab: Lab) -> None:
    panel = panel_of(lab)
    panel.get_by_role("button", name="off", exact=True).click()
    panel.get_by_role("button", name="Run", exact=True).dblclick()
    status(lab, "done in")
    lab.page.wait_for_timeout(2000)
    assert len(ladder(lab)) == 2


def test_run_again_of_the_cell_during_a_run_stops_the_old_run(lab: Lab) -> None:
    press(lab, "Run")
    status(lab, re.compile(r"\d+ of 24"))
    fresh_panel(lab)
    status(lab, "ready")
    lab.page.wait_for_timeout(300)  # the old run has one token left
    panel_of(lab).get_by_role("button", name="off", exact=True).click()
    press(lab, "Run")
    status(lab, "done in")
    assert len(ladder(lab)) == 2


def test_after_a_kernel_restart_the_panel_says_what_to_do_and_a_locked_guess_stays(lab: Lab) -> None:
    predict = lab.page.locator(".lk-box", has=lab.page.locator(".lk-question"))
    slider = predict.get_by_role("slider")
    slider.press("ArrowRight")
    assert "times as long" in slider.get_attribute("aria-label")
    assert float(slider.get_attribute("aria-valuetext")) == pytest.approx(float(predict.locator(".lk-guess input").input_value()), rel=0.05)
    predict.locator(".lk-guess input").fill("12")
    predict.get_by_role("button", name="Lock in").click()
    predict.get_by_text("locked on").wait_for()
    lab.restart()
    panel = panel_of(lab)
    lab.page.wait_for_function("() => document.querySelector('.lk-box.jupyter-widgets-disconnected')")
    said = panel.evaluate("box => getComputedStyle(box, '::before').content")
    assert "run this cell again" in said
    assert lab.run_all() == []
    predict.get_by_text("locked on").wait_for()
    assert predict.locator(".lk-guess input").input_value() == "12"
    assert predict.locator(".lk-guess input").is_disabled()
