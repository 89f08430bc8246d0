"""Newest verdicts and coverage, from records that are invented."""

import json

import pytest

from labkit.errors import BadInput
from labkit.lab.coverage import as_json, cells, claim_lines, coverage, coverage_lines, plain, verdicts


def verdict(record, key, word, **more):
    values = {"verdict": word, "why": "because"}
    return {"id": record, "lab": "01", "what": f"verdict on {key}", "rows": [key], "mode": "quick", "values": values} | more


LINES = [
    verdict("old", "B011", "holds"),
    verdict("new", "B011", "refuted"),
    verdict("smoke", "B012", "undecided", mode="smoke"),
    {"id": "curve", "lab": "01", "what": "time per token", "rows": ["A009", "B106"], "values": {"verdict": "faster"}},
    {"id": "other", "lab": "15", "what": "speed", "rows": ["A053"]},
]
HARMLESS = [  # lines that other programs, or an editor, may leave
    {"id": "x"},
    3,
    None,
    [],
    {"what": None, "rows": None, "values": None},
    {"what": "verdict on B005", "rows": 5, "values": []},
    {"what": "verdict on B005 again", "rows": ["B005"], "values": {"verdict": "holds"}},
]
LANDED = {"01": {"B011": "code-21", "A009": "code-12"}}


def test_the_newest_verdict_counts_and_only_verdicts_do():
    found = verdicts([*LINES, *HARMLESS])
    assert {key: (v["verdict"], v["mode"], v["record"]) for key, v in found.items()} == {
        "B011": ("refuted", "quick", "new"),
        "B012": ("undecided", "smoke", "smoke"),
    }


def test_escape_characters_of_a_record_do_not_reach_the_terminal():
    bad = "\x1b]0;title\x07\x1b[31mho\u202elds\x9b\ud800\r\n"
    lines = [verdict(bad, "B011", bad, mode=bad, values={"verdict": bad, "why": bad}), {"id": bad, "lab": "01", "rows": ["A009"]}]
    shown = [*claim_lines("01", lines, 200), *coverage_lines(coverage("01", lines, LANDED))]
    assert all(line.isprintable() for line in shown)
    newest = next(c["newest"] for c in json.loads(as_json("01", lines)) if c["id"] == "B011")
    assert set(newest.values()) == {plain(bad)} == {"]0;title[31mholds"}


@pytest.mark.parametrize("width", [10, 60, 120])
def test_the_table_keeps_to_the_width_and_marks_headlines(width):
    shown = claim_lines(None, LINES, width)
    assert len(shown) == 230
    assert max(len(line) for line in shown) == width
    assert any(line.endswith("…") for line in shown)


def test_the_table_says_word_sign_and_mode():
    (line,) = (line for line in claim_lines("01", LINES, 120) if line.startswith("B012"))
    assert line.startswith("B012  01   cpu   ★  ? undecided (smoke)  100 tokens")


def test_json_has_all_claims_with_their_newest_verdict_or_null():
    found = {c["id"]: c for c in json.loads(as_json(None, LINES))}
    assert len(found) == 229
    assert found["B011"]["newest"]["record"] == "new" and found["B003"]["newest"] is None
    assert found["B087"]["holds"] is None


def test_coverage_says_record_and_cell_of_each_row_and_a_shared_row_for_each_lab():
    rows = coverage(None, [*LINES, *HARMLESS], LANDED)
    found = {(r.id, r.lab): (r.record, r.cell) for r in rows}
    assert len(found) == len(rows) == 158 + 7 + 229 + 36 + 23  # seven systems are in two labs
    assert found["B011", "01"] == ("new", "code-21")
    assert found["B106", "01"] == ("curve", "no cell names it")
    assert found["A053", "01"] == (None, "no cell names it")
    assert found["A053", "15"] == ("other", None)


def test_coverage_lines_count_each_lab():
    shown = coverage_lines(coverage(None, LINES, LANDED))
    assert "A009  01  curve         code-12" in shown
    assert "C02  10  none          lab not landed yet" in shown
    assert shown[-15] == "lab 01: 4 of 26 rows have a record"
    assert shown[-1] == "lab 15: 1 of 32 rows have a record, not landed yet"


def test_one_lab_has_its_own_rows_only():
    assert {r.lab for r in coverage("11", LINES, LANDED)} == {"11"}
    assert len(coverage_lines(coverage("11", LINES, LANDED))) == 15


def notebook(*sources):
    return json.dumps({"cells": [{"cell_type": t, "id": f"c{i}", "source": s} for i, (t, s) in enumerate(sources)]})


def test_the_last_code_cell_that_names_a_row_is_its_cell(tmp_path):
    sources = (("markdown", "A002 B999"), ("code", ['rows=["A002",\n', '"B011"]']), ("code", 'lab.settle("B011")'), ("markdown", "B011"))
    (tmp_path / "01_a.ipynb").write_text(notebook(*sources))
    assert cells(tmp_path) == {"01": {"A002": "c1", "B011": "c2"}}


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"cells": [1]}', '{"cells": [{"cell_type": "code"}]}', "\udcff"])
def test_a_broken_notebook_is_bad_input(content, tmp_path):
    (tmp_path / "02_b.ipynb").write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(BadInput, match=r"02_b\.ipynb"):
        cells(tmp_path)
