"""The report: everything escaped, nothing fetched, every figure drawn with the network refused."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labkit.lab.report import Section, page
from labkit.lab.sections import text, verdict
from labkit.measure.record import read_lines

HOSTILE = '<script>document.title="taken"</script><img src=x onerror=alert(1)>"\'&\x1b[2J\u202e'


def figure(title: str, traces: int = 1) -> dict[str, Any]:
    data = [
        {"type": "scatter", "mode": "lines", "x": [1, 2, 3], "y": [n, 2.5 * n, float("nan")], "name": f"series {n}"} for n in range(traces)
    ]
    layout = {"title": {"text": title}, "xaxis": {"title": {"text": "context, tokens"}}, "yaxis": {"title": {"text": "time per token, ms"}}}
    return {
        "kind": "figure",
        "title": title,
        "figure": {"data": data, "layout": layout},
        "columns": ["tokens", "ms"],
        "rows": [[128, 4.25], [2048, 41.9]],
    }


def story(word: str = "", **last: Any) -> list[dict[str, Any]]:
    """One line of every kind, all its texts ending in `word`."""
    return [
        {
            "kind": "lab",
            "lab": "01" + word,
            "title": "Steps" + word,
            "question": "Why does each further token take so long?" + word,
            "mode": "quick" + word,
        },
        {"kind": "machine", "lines": ["2 cores" + word, "reads 9.8 GB/s" + word]},
        figure("Without a cache a token at 2,048 costs 11× one at 128" + word, 2),
        {"kind": "html", "title": "A reply" + word, "html": "<p class='given'>fragment</p>", "text": "fragment" + word},
        {
            "kind": "claim",
            "id": "B011" + word,
            "claim": "Each token costs O(n²)" + word,
            "source": "S1" + word,
            "headline": True,
            "verdict": "refuted" + word,
            "why": "exponent 1.02 [0.98, 1.06]" + word,
            "record": "0123456789ab" + word,
        },
        {
            "kind": "claim",
            "id": "B080",
            "claim": "bf16 halves the step",
            "source": "S0",
            "headline": False,
            "verdict": "holds",
            "why": "",
            "record": None,
        },
        {
            "kind": "prediction",
            "id": "kv" + word,
            "question": "How many times as long?" + word,
            "unit": "times" + word,
            "guess": None,
            "why": "open",
        },
        {
            "kind": "prediction",
            "id": "kv" + word,
            "question": "How many times as long?" + word,
            "unit": "times" + word,
            "guess": 4,
            "measured": 1.07,
            "low": 1.02,
            "high": 1.12,
            "factor": 3.7,
            "why": "the weights are most of it" + word,
        },
        {"kind": "ladder", "title": "Ladder" + word, "columns": ["toggles" + word, "verdict"], "rows": [["static-kv" + word, "▲ faster"]]},
        {"kind": "exercise", "id": "tps" + word, "state": "not attempted" + word, "message": "later" + word},
        {"kind": "finished", "seconds": 62.5, "budget_s": 150} | last,
    ]


def without_scripts(html: str) -> str:
    return re.sub(r"<script.*?</script>", "", html, flags=re.S)


def test_every_text_of_a_story_is_escaped() -> None:
    html = page([Section("01_x" + HOSTILE, "Steps" + HOSTILE, story(HOSTILE), 0, "ended" + HOSTILE)], "run" + HOSTILE)
    assert html.count("<script") == 3  # the figure's data, plotly.js, report.js
    shown = without_scripts(html)
    assert "<img" not in shown
    assert not re.search(r"[\x1b\u202e]", shown)
    assert shown.count("&lt;script&gt;") > 25
    assert "<p class='given'>fragment</p>" in shown


def test_figure_data_cannot_end_its_script_element_and_has_no_nan() -> None:
    html = page([Section("01_x", "t", story("</script>"))], "r")
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', html, re.S)
    assert json.loads(data, parse_constant=pytest.fail)["data"][1]["y"][2] is None


def test_a_torn_last_line_is_skipped_and_said(tmp_path: Path) -> None:
    path = tmp_path / "story.jsonl"
    whole = "\n".join(json.dumps(line) for line in story()[:-1])
    path.write_text(whole + '\n{"kind": "claim", "id": "B0')
    lines, torn = read_lines(path)
    html = page([Section("01_x", "t", lines, torn)], "r")
    assert "1 line of its story could not be read" in html
    assert "This run stopped early" in html
    assert "This run stopped early" not in page([Section("01_x", "t", story())], "r")


def test_the_last_line_of_an_id_counts() -> None:
    html = page([Section("01_x", "t", story())], "r")
    assert "1.07 times [1.02, 1.12]" in html
    assert "3.70×" in html  # as the notebook says it
    assert "skipped" not in without_scripts(html)


def test_nothing_is_fetched_and_it_stays_small() -> None:
    html = page([Section("01_x", "t", story())], "r")
    assert not re.findall(r"https?://", without_scripts(html))
    assert not re.findall(r"<(?:link|img|iframe|script src)", without_scripts(html))
    assert "default-src &#x27;none&#x27;" in html
    assert len(html.encode()) < 6e6


def test_without_figures_plotly_is_left_out() -> None:
    html = page([Section("01_x", "t", [line for line in story() if line["kind"] != "figure"])], "r")
    assert len(html) < 40_000
    assert len(page([Section("01_x", "t", [], 0, "not run")], "r")) < 40_000


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.12345, "0.123"),
        (1234.56, "1,235"),
        (3, "3"),
        (0.0, "0"),
        (None, ""),
        (True, "True"),
        (1e-7, "1.00e-07"),
        (4.0, "4.00"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_have_the_digits_that_they_are_worth(value: Any, said: str) -> None:
    assert text(value) == said


def test_a_verdict_carries_sign_and_reason() -> None:
    assert "≠</span>&nbsp;cheaper but worse text" in verdict("cheaper but worse text")
    assert "?</span>&nbsp;undecided: this run was dispatch-bound" in verdict("undecided: this run was dispatch-bound")
    assert "◐</span>&nbsp;holds in part" in verdict("holds in part")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if not program:
        pytest.skip("no Chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND"]
    with sync_playwright() as tool:
        opened = tool.chromium.launch(executable_path=program, args=flags)
        yield opened
        opened.close()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_are_drawn_with_the_network_refused(scheme: Any, browser: Any, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(page([Section("01_x", "Steps", story(HOSTILE)), Section("02_y", "More", story())], "run"), "utf-8")
    tab = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("requestfailed", lambda request: said.append(request.url))
    tab.goto((tmp_path / "index.html").as_uri())
    tab.wait_for_selector(".plot .main-svg")
    assert tab.locator(".plot .scatterlayer .trace").count() == 4
    assert tab.locator(".plot .scatterlayer .trace path.js-line").count() == 4
    assert tab.title() == "Report run"  # no text of a story ran as a script
    assert tab.evaluate("document.documentElement.scrollWidth") <= 1280
    ink = tab.evaluate("getComputedStyle(document.querySelector('.plot .xtick text')).fill")
    assert ink == ("rgb(29, 33, 38)" if scheme == "light" else "rgb(228, 230, 232)")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("details:not([open])").count() == 0
    assert tab.evaluate("getComputedStyle(document.querySelector('.plot .xtick text')).fill") == "rgb(17, 17, 17)"
    assert tab.evaluate("document.querySelector('.plot .main-svg').width.baseVal.value") == 680
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.locator("details[open]").count() == 0
    assert tab.evaluate("document.querySelector('.plot .main-svg').width.baseVal.value") > 900
    assert said == []
    tab.close()


@pytest.mark.browser
def test_claims_are_filtered_by_word_and_by_verdict(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(page([Section("01_x", "Steps", story())], "run"), "utf-8")
    tab = browser.new_page()
    tab.goto((tmp_path / "index.html").as_uri())
    rows = tab.locator("#claim-table tbody tr:visible")
    assert rows.count() == 2
    tab.fill("#claim-search", "BF16 step")
    assert rows.all_inner_texts()[0].split("\t")[1] == "B080"
    assert tab.inner_text("#claim-count") == "1 of 2"
    tab.fill("#claim-search", "")
    tab.select_option("#claim-verdict", "refuted")
    assert [row.split("\t")[1] for row in rows.all_inner_texts()] == ["B011"]
    tab.close()
