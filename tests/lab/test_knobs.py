from dataclasses import fields

import ipywidgets as w
import pytest

from labkit.compute.toggles import Dtype, Threads
from labkit.errors import BadInput
from labkit.lab.catalogue import TOGGLES
from labkit.lab.knobs import Knob, knobs, read, write
from labkit.memory.cache import Static
from labkit.memory.toggles import DynamicKV, NoKV, StaticKV
from labkit.spec import with_leaf
from tests.lab.fakes import BASE, CASES, HOSTILE, NO_FP16, machine


def made(base=BASE, **capabilities) -> dict[str, Knob]:
    return {knob.leaf: knob for knob in knobs(base, machine(**capabilities))}


def controls(widget) -> list[w.Widget]:
    """Everything inside `widget` that takes a value."""
    if isinstance(widget, w.Box):
        return [found for child in widget.children for found in controls(child)]
    return [] if isinstance(widget, w.HTML) else [widget]


@pytest.mark.parametrize("toggle", CASES)
def test_toggle_to_widgets_and_back(toggle) -> None:
    all_knobs = made().values()
    write(all_knobs, [toggle])
    assert read(all_knobs) == [toggle]
    write(all_knobs, [])
    assert read(all_knobs) == []


def test_several_toggles_survive_together_in_any_order() -> None:
    wanted = {Dtype("bfloat16"), Threads(2), StaticKV(256)}
    write(made_knobs := made().values(), list(wanted))
    assert set(read(made_knobs)) == wanted


def test_nothing_is_on_before_a_knob_is_turned() -> None:
    assert read(made().values()) == []


def test_a_value_equal_to_the_base_is_no_toggle_unless_put_on_by_name() -> None:
    knob = made()["cache.grow"]
    knob.put(DynamicKV())
    assert knob.toggle() == DynamicKV()
    knob.choice.value = "off"
    knob.choice.value = "dynamic"
    assert knob.toggle() is None


def test_toggles_of_one_leaf_form_one_choice_with_the_base_selected() -> None:
    found = made()
    assert found["cache.grow"].choice.options == ("dynamic", "static", "off")
    assert found["cache.grow"].choice.value == "dynamic"
    assert found["weights.dtype"].choice.options == ("float32", "bfloat16", "float16")
    assert found["attention.kernel"].choice.value == "sdpa"
    assert found["threads"].choice.options == ("default", "set")


def test_each_field_has_exactly_one_control() -> None:
    for knob in made().values():
        classes = [cls for cls in TOGGLES if cls.owns == knob.leaf]
        numbers = [c for c in controls(knob.widget) if isinstance(c, w.BoundedIntText | w.BoundedFloatText)]
        choices = [c for c in controls(knob.widget) if isinstance(c, w.ToggleButtons)]
        ranged = [f for cls in classes for f in fields(cls) if "range" in f.metadata]
        assert (len(choices), len(numbers)) == (1, len(ranged))


def test_base_with_parameters_is_preselected_with_them() -> None:
    knob = made(with_leaf(BASE, "cache.grow", Static(512)))["cache.grow"]
    assert knob.choice.value == "static"
    assert [p.control.value for p in knob.params] == [512]
    assert knob.toggle() is None
    knob.params[0].control.value = 1024
    assert knob.toggle() == StaticKV(1024)


def test_a_base_that_no_toggle_makes_stays_a_choice_of_its_own() -> None:
    knob = made(with_leaf(BASE, "weights.dtype", "float64"))["weights.dtype"]
    assert knob.choice.options[0] == knob.choice.value == "float64"
    assert knob.toggle() is None
    knob.choice.value = "float32"
    assert knob.toggle() == Dtype("float32")


def test_a_parameter_is_greyed_with_the_reason_until_its_choice_is_on() -> None:
    knob = made()["cache.grow"]
    (length,) = [p.control for p in knob.params]
    assert length.disabled
    assert "length: only with static" in knob.note.value
    knob.choice.value = "static"
    assert not length.disabled
    assert "only with" not in knob.note.value


def test_what_the_machine_cannot_do_is_greyed_with_the_reason() -> None:
    knob = made(**NO_FP16)["weights.dtype"]
    (greyed,) = [c for c in controls(knob.widget) if isinstance(c, w.ToggleButton)]
    assert (greyed.description, greyed.disabled) == ("float16", True)
    assert knob.choice.options == ("float32", "bfloat16")
    assert "float16: this processor has no fp16 units" in knob.note.value
    with pytest.raises(BadInput, match="no fp16 units") as caught:
        knob.put(Dtype("float16"))
    assert caught.value.field == "weights.dtype"


def test_a_value_beyond_the_control_is_refused_not_clamped() -> None:
    with pytest.raises(BadInput, match="beyond the range"):
        made()["cache.grow"].put(StaticKV(9000))


def test_errors_beside_a_knob_are_escaped_and_go_away() -> None:
    knob = made()["cache.grow"]
    knob.say(HOSTILE)
    assert "<img" not in knob.note.value
    assert "lk-error" in knob.note.value
    knob.choice.value = "off"
    assert "lk-error" not in knob.note.value
    assert knob.toggle() == NoKV()
