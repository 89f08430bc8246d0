"""Lab 01 as a reader has it: predict, run all, press the panel's buttons, with the real engine in smoke mode."""

import importlib.util
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from labkit.env import ROOT
from tests.browser.harness import CHROMIUM, INSTALL, Lab, jupyter
from tests.browser.test_panel_browser import ladder, panel_of, press, status

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=INSTALL),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is missing: pip install playwright"),
]
SHOTS = os.environ.get("LABKIT_SHOTS")  # a folder: keep pictures of the lab there


def as_smoke(source: Path, to: Path) -> list[str]:
    """A copy in smoke mode whose panel writes enough tokens to be stopped; the code cells' first lines."""
    nb = nbformat.read(source, 4)
    for cell in nb.cells:
        cell.source = cell.source.replace('mode = "quick"', 'mode = "smoke"').replace("lab.pick(6, 12, 64)", "lab.pick(200, 12, 64)")
    nbformat.write(nb, to)
    return [cell.source for cell in nb.cells]


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Iterator[Lab]:
    tmp = tmp_path_factory.mktemp("lab01")
    (tmp / "root").mkdir()
    sources = as_smoke(ROOT / "notebooks" / "01_generation_loop.ipynb", tmp / "root" / "lab.ipynb")
    extra = {"PYTHONPATH": str(ROOT), "LABKIT_HOME": str(tmp / "home"), "LABKIT_LOCK": str(tmp / "lock"), "LABKIT_THREADS": "1"}
    extra["OMP_NUM_THREADS"] = "1"
    with jupyter(tmp / "root", tmp, extra=extra) as opened:
        opened.open("lab.ipynb")
        predict_first(opened, sources)
        assert opened.run_all(timeout_s=400) == []
        opened.home = tmp / "home"
        yield opened
        opened.clean()


def predict_first(lab: Lab, sources: list[str]) -> None:
    """Run the cells up to the prediction, enter a guess and lock it in."""
    at = next(i for i, source in enumerate(sources) if "lab.predict(" in source)
    for index in (*(i for i, s in enumerate(sources[:at]) if s.startswith(('mode = "', "import labkit"))), at):
        lab.run_cell(index)
    entry = lab.page.locator(".lk-guess input")
    entry.wait_for(timeout=90_000)
    entry.fill("4")
    entry.press("Tab")
    lab.page.get_by_role("button", name="Lock in").click()
    lab.page.get_by_text("locked on").wait_for(timeout=20_000)


def records(lab: Lab) -> list[dict]:
    return [json.loads(line) for line in (lab.home / "records.jsonl").read_text(encoding="utf-8").splitlines() if line]


def test_the_guess_stands_beside_the_measurement(lab: Lab) -> None:
    said = lab.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets.filter(c => c.model.type === 'code')"
        ".flatMap(c => c.model.outputs.toJSON()).map(o => o.data?.['text/html'] ?? '').join(' ')"
    )
    assert "your guess <b>4.00 times</b>" in str(said)
    assert "Your guess is" in str(said) or "within the interval" in str(said)


def test_run_measures_a_variant_and_the_ladder_grows(lab: Lab) -> None:
    panel = panel_of(lab)
    panel.scroll_into_view_if_needed()
    for label in ("static", "bfloat16"):
        panel.get_by_role("button", name=label, exact=True).click()
    before = panel.locator(".lk-strip-area").inner_text()
    press(lab, "Run")
    status(lab, re.compile("done in"), timeout_s=200)
    assert panel.locator(".lk-strip-area").inner_text() != before
    assert "ms/token" in panel.locator(".lk-strip-area").inner_text()
    assert len(ladder(lab)) == 2
    assert "static-kv:max_tokens=0" in ladder(lab)[1]
    if SHOTS:
        lab.page.set_viewport_size({"width": 1280, "height": 1100})
        panel.scroll_into_view_if_needed()
        lab.page.screenshot(path=f"{SHOTS}/panel.png")


def test_stop_keeps_a_partial_record(lab: Lab) -> None:
    known = len(records(lab))
    press(lab, "Run")
    status(lab, re.compile(r"reply · \d+ of 200"), timeout_s=60)
    press(lab, "Stop")
    status(lab, re.compile("stopped"), timeout_s=30)
    assert "(partial)" in ladder(lab)[1]
    last = records(lab)[known:]
    assert [r["partial"] for r in last][-1] is True
    assert 0 < last[-1]["tokens"] < 200
