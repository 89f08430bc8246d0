from dataclasses import replace

from labkit.lab.ladder import LIMIT, ladder_cells, ladder_html, ladder_text, newest
from labkit.measure.stats import SIGNS
from tests.lab.fakes import BASE_ROW, HOSTILE, row
from tests.lab.test_strip import parsed


def test_cells_say_everything_in_text() -> None:
    columns, rows = ladder_cells([BASE_ROW, row("dtype:dtype=bfloat16", "sdpa")])
    assert columns == ("toggles", "ms/token", "against base", "verdict", "text", "perplexity", "KV")
    assert rows[0] == ("base", "37.0", "", "", "same 48 tokens", "12.41", "4.72 MB")
    assert rows[1] == ("dtype:dtype=bfloat16 sdpa", "21.7", "1.78× [1.74, 1.82]", "▲ faster", "same 48 tokens", "12.41", "4.72 MB")


def test_base_first_then_the_newest_eight() -> None:
    rows = [row(f"t{i}") for i in range(LIMIT + 2)]
    shown = newest(rows, BASE_ROW)
    assert shown[0] is BASE_ROW
    assert [r.toggles[0] for r in shown[1:]] == [f"t{i}" for i in range(LIMIT + 1, 1, -1)]


def test_each_verdict_has_its_sign_beside_its_word() -> None:
    for word, sign in SIGNS.items():
        assert f"{sign} {word}" in ladder_html([row("x", verdict=word)])


def test_toggles_are_chips_and_a_partial_row_says_so() -> None:
    html = ladder_html([row("sdpa", "no-kv", partial=True)])
    assert html.count('class="lk-chip"') == 2
    assert "same 48 tokens (partial)" in html


def test_what_was_not_measured_is_empty() -> None:
    assert ladder_cells([replace(BASE_ROW, perplexity=None)])[1][0][5] == ""


def test_hostile_text_stays_text() -> None:
    html = ladder_html([replace(row(HOSTILE, verdict=HOSTILE, label=HOSTILE), text=HOSTILE), replace(BASE_ROW, label=HOSTILE)])
    assert "img" not in {tag for tag, _ in parsed(html).seen}


def test_text_form_is_aligned() -> None:
    lines = ladder_text([BASE_ROW, row("sdpa")]).splitlines()
    assert len({line.index("same 48") for line in lines[1:]}) == 1
