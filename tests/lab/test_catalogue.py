import re
from dataclasses import fields
from typing import get_type_hints

import pytest

from labkit.env import cores
from labkit.errors import BadInput
from labkit.lab import catalogue
from labkit.lab.catalogue import TOGGLES, by_name, parse, text
from labkit.memory.toggles import StaticKV
from tests.lab.fakes import CASES, Probe


@pytest.mark.parametrize("toggle", CASES)
def test_toggle_to_text_and_back(toggle) -> None:
    assert parse(text(toggle)) == toggle


def test_a_parameter_left_out_has_its_default() -> None:
    assert parse("static-kv") == StaticKV()
    assert text(parse(" static-kv:max_tokens = 512 ")) == "static-kv:max_tokens=512"


def test_names_are_unique_and_found() -> None:
    assert len({cls.name for cls in TOGGLES}) == len(TOGGLES)
    assert all(by_name(cls.name) is cls for cls in TOGGLES)


@pytest.mark.parametrize("cls", TOGGLES)
def test_every_field_can_be_read_from_text_and_has_a_control(cls) -> None:
    for each in fields(cls):
        assert get_type_hints(cls)[each.name] in (str, int, float)
        assert each.metadata["label"]
        assert "choices" in each.metadata or "range" in each.metadata


def test_choices_and_ranges_are_checked_for_the_toggle(monkeypatch) -> None:
    monkeypatch.setattr(catalogue, "TOGGLES", (Probe,))
    assert parse("probe:kind=b,rate=0.25") == Probe("b", 0.25)
    for line in ("probe:kind=c", "probe:rate=1.5", "probe:rate=nan"):
        with pytest.raises(BadInput):
            parse(line)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("static-kw", "did you mean static-kv?"),
        ("", "unknown toggle ''"),
        ("static-kv:max_token=1", "did you mean max_tokens?"),
        ("sdpa:x=1", "sdpa takes no parameters"),
        ("static-kv:max_tokens=many", "give a value of type int"),
        ("static-kv:max_tokens", "write each parameter once, as static-kv:max_tokens=value"),
        ("static-kv:max_tokens=1,max_tokens=2", "write each parameter once"),
        ("static-kv:max_tokens=9000", "use 0 to 8192 tokens"),
        ("threads:count=0", f"use 1 to {cores()} threads"),
        ("dtype:dtype=float8", "did you mean float"),
    ],
)
def test_bad_text_is_refused_in_one_line(line: str, said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)) as caught:
        parse(line)
    assert "\n" not in str(caught.value)
