"""Every claim has a judge, and every judge can be flipped."""

import importlib

import pytest

from labkit.env import ROOT
from labkit.errors import BadInput
from labkit.lab import lab01
from labkit.lab.ledger import KINDS, NOT_TESTED, SIGNS, claim, claims, combine, judged, lab_number, table
from labkit.measure.stats import Fit, Ratio


def fit(p, growth_low=1.0, growth_high=9.0, wide=0.05):
    return Fit(20.0, 0.01, p, p - wide, p + wide, growth_low, growth_high)


def exponent(value):
    return Ratio(value, value - 0.05, value + 0.05)


SPEEDS = {16: 10.0, 1024: 10.0}
FLIPS = {  # claim: measurements that must give holds, and measurements that must give refuted
    "B005": ({"ignored": 5.0, "allowed": 2.0, "ended": True}, {"ignored": 5.0, "allowed": 1.0, "ended": True}),
    "B011": ({"flops": exponent(2.0), "seconds": exponent(1.9)}, {"flops": exponent(1.0), "seconds": exponent(0.9)}),
    "B012": ({"ratios": [3.0, 6.0, 12.0]}, {"ratios": [2.0, 2.1, 2.2]}),
    "B080": (
        {"decode_tps": SPEEDS, "new_tps": SPEEDS, "all_tps": SPEEDS},
        {"decode_tps": SPEEDS, "new_tps": {16: 9.0, 1024: 4.0}, "all_tps": {16: 12.0, 1024: 90.0}},
    ),
    "B106": ({"fit": fit(2.0)}, {"fit": fit(1.0)}),
}
BETWEEN = {
    "B005": {"ignored": 5.0, "allowed": 1.3, "ended": True},
    "B012": {"ratios": [2.0, 5.0, 5.0]},
    "B080": {"decode_tps": SPEEDS, "new_tps": {16: 9.0, 1024: 9.0}, "all_tps": SPEEDS},
    "B106": {"fit": fit(1.3)},
}
STRADDLING = [  # the value is on one side, its interval is not
    ("B106", {"fit": fit(1.0, wide=0.6)}),
    ("B106", {"fit": fit(0.1, growth_low=0.0, growth_high=9.0)}),  # no growth seen, and much not excluded
    ("B011", {"flops": exponent(1.0), "seconds": Ratio(1.15, 0.3, 2.4)}),
    ("B005", {"ignored": 5.0, "allowed": 1.0, "ended": False}),
]


TABLES = {"labs": 16, "systems": 158, "claims": 229, "snippets": 36, "contradictions": 23}
LANDED = sorted(path.name[:2] for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_all_its_rows_once(name):
    ids = [entry.get("id", entry.get("lab")) for entry in table(name)]
    assert len(ids) == len(set(ids)) == TABLES[name]


@pytest.mark.parametrize(("name", "letter"), [("systems", "A"), ("claims", "B"), ("snippets", "C"), ("contradictions", "E")])
def test_every_row_belongs_to_a_lab(name, letter):
    known = {lab["lab"] for lab in table("labs")}
    for entry in table(name):
        assert entry["id"].startswith(letter)
        labs = entry.get("labs", [entry.get("lab")])
        assert labs and known.issuperset(labs), entry["id"]


def test_every_text_is_there_and_plain():
    for name in TABLES:
        for entry in table(name):
            for key, value in entry.items():
                for text in value if isinstance(value, list) else [value]:
                    assert text is None or isinstance(text, bool) or (text.strip() == text != "" and text.isprintable()), (entry, key)


def test_contradictions_have_two_sides_and_snippets_have_faults():
    assert all(len(entry["statements"]) == 2 for entry in table("contradictions"))
    assert all(entry["faults"] for entry in table("snippets"))


def test_columns_stand_exactly_where_something_is_tested():
    for key, c in claims().items():
        assert c.kind in KINDS and c.tag in (None, "wrong", "dubious") and isinstance(c.headline, bool), key
        assert (c.holds is None) == (c.refuted is None) == (c.kind in NOT_TESTED), key
        assert c.holds is None or c.holds != c.refuted, key


def test_a_claim_names_the_article_that_its_number_says():
    assert all(c.source.startswith(f"S{key[1]} ") for key, c in claims().items())


@pytest.mark.parametrize("number", LANDED)
def test_the_judges_of_a_landed_lab_judge_claims_of_that_lab(number):
    judges = importlib.import_module(f"labkit.lab.lab{number}").JUDGES
    assert judges and all(claim(key).lab == number for key in judges)


@pytest.mark.parametrize("name", ["01", "1", "01_generation_loop"])
def test_a_lab_has_a_number_and_a_name(name):
    assert lab_number(name) == "01"


@pytest.mark.parametrize("name", ["", "16", "-1", "01_generation", "generation_loop", "²"])
def test_an_unknown_lab_is_bad_input(name):
    with pytest.raises(BadInput, match="unknown lab"):
        lab_number(name)


def test_judges_and_flips_name_the_same_rows():
    assert set(lab01.JUDGES) == set(FLIPS)


@pytest.mark.parametrize("key", FLIPS)
def test_a_judge_can_be_flipped(key):
    holds, refuted = FLIPS[key]
    assert judged(lab01.JUDGES, key, holds, [])[0] == "holds"
    assert judged(lab01.JUDGES, key, refuted, [])[0] == "refuted"


@pytest.mark.parametrize("key", BETWEEN)
def test_between_the_columns_nothing_is_decided(key):
    assert judged(lab01.JUDGES, key, BETWEEN[key], [])[0] == "undecided"


def test_named_cases_that_split_hold_in_part():
    assert judged(lab01.JUDGES, "B011", {"flops": exponent(2.0), "seconds": exponent(1.0)}, [])[0] == "holds in part"
    assert combine({"a": "holds", "b": "undecided"}) == "undecided"


def test_a_busy_machine_gives_no_verdict_but_says_what_was_measured():
    verdict, why = judged(lab01.JUDGES, "B012", FLIPS["B012"][1], ["make 80%"])
    assert verdict == "undecided"
    assert "make 80%" in why and "2.20" in why


def test_every_verdict_has_a_sign_and_unknown_names_are_refused():
    assert {"holds", "refuted", "undecided", "holds in part"} <= set(SIGNS)
    with pytest.raises(BadInput, match="unknown claim"):
        claim("B999")


@pytest.mark.parametrize(("key", "measures"), STRADDLING)
def test_an_interval_that_straddles_decides_nothing(key, measures):
    assert lab01.JUDGES[key](**measures)[0] == "undecided"


def test_no_growth_is_refuted_when_much_growth_is_excluded():
    assert lab01.JUDGES["B106"](fit=fit(0.1, growth_low=0.0, growth_high=1.5))[0] == "refuted"
