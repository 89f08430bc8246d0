"""The lab's object: a model that was not fetched."""

from types import SimpleNamespace

import pytest

from labkit.errors import BadInput, NotFetched
from labkit.lab.core import Lab
from tests.lab.fakes import machine

ABSENT, HERE = "smollm2-135m", "random:tiny-llama"


@pytest.fixture
def lab() -> Lab:
    return Lab("01", "smoke", machine(), SimpleNamespace(TITLE="t"), {}, [], 1)


def test_a_model_that_was_not_fetched_is_replaced_by_the_text_model_and_said(lab: Lab) -> None:
    assert "its questions stay undecided" in lab.adopt("real", ABSENT)
    lab.adopt("text", HERE)
    assert lab.model("real") == HERE
    assert f"labkit models get {ABSENT}" in lab.missing["real"]


def test_nothing_replaces_a_text_model_that_was_not_fetched(lab: Lab) -> None:
    with pytest.raises(NotFetched, match=f"labkit models get {ABSENT}"):
        lab.adopt("text", ABSENT)


def test_a_model_that_does_not_exist_is_no_model_to_fetch(lab: Lab) -> None:
    with pytest.raises(BadInput, match="unknown model") as caught:
        lab.adopt("real", "smollm2")
    assert not isinstance(caught.value, NotFetched)
