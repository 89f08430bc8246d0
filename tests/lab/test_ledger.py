"""Every claim has a judge, and every judge can be flipped."""

import pytest

from labkit.errors import BadInput
from labkit.lab import lab01
from labkit.lab.ledger import SIGNS, claim, claims, combine, judged
from labkit.measure.stats import Fit, Ratio


def fit(p, growth_low=1.0):
    return Fit(20.0, 0.01, p, p - 0.05, p + 0.05, growth_low)


def exponent(value):
    return Ratio(value, value - 0.05, value + 0.05)


SPEEDS = {16: 10.0, 1024: 10.0}
FLIPS = {  # claim: measurements that must give holds, and measurements that must give refuted
    "B005": ({"ignored": 5.0, "allowed": 2.0}, {"ignored": 5.0, "allowed": 1.0}),
    "B011": ({"flops": exponent(2.0), "seconds": exponent(1.9)}, {"flops": exponent(1.0), "seconds": exponent(0.9)}),
    "B012": ({"ratios": [3.0, 6.0, 12.0]}, {"ratios": [2.0, 2.1, 2.2]}),
    "B080": (
        {"decode_tps": SPEEDS, "new_tps": SPEEDS, "all_tps": SPEEDS},
        {"decode_tps": SPEEDS, "new_tps": {16: 9.0, 1024: 4.0}, "all_tps": {16: 12.0, 1024: 90.0}},
    ),
    "B106": ({"fit": fit(2.0)}, {"fit": fit(1.0)}),
}
BETWEEN = {
    "B005": {"ignored": 5.0, "allowed": 1.3},
    "B012": {"ratios": [2.0, 5.0, 5.0]},
    "B080": {"decode_tps": SPEEDS, "new_tps": {16: 9.0, 1024: 9.0}, "all_tps": SPEEDS},
    "B106": {"fit": fit(1.3)},
}


def test_claims_judges_and_flips_name_the_same_rows():
    assert set(claims()) == set(lab01.JUDGES) == set(FLIPS)


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


def test_no_growth_refutes_whatever_the_power():
    assert judged(lab01.JUDGES, "B106", {"fit": fit(3.0, growth_low=0.0)}, [])[0] == "refuted"


def test_a_busy_machine_gives_no_verdict_but_says_what_was_measured():
    verdict, why = judged(lab01.JUDGES, "B012", FLIPS["B012"][1], ["make 80%"])
    assert verdict == "undecided"
    assert "make 80%" in why and "2.20" in why


def test_every_verdict_has_a_sign_and_unknown_names_are_refused():
    assert {"holds", "refuted", "undecided", "holds in part"} <= set(SIGNS)
    with pytest.raises(BadInput, match="unknown claim"):
        claim("B999")
