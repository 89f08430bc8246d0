"""The abstraction: order, ownership, capabilities, and the same value as text, JSON and object."""

from dataclasses import replace
from itertools import permutations

import pytest

from labkit.algorithm.toggles import Eager
from labkit.compute.toggles import Dtype, Threads
from labkit.engine.decode import Decode
from labkit.engine.prompt import RandomKV, Text
from labkit.env import dtype_capabilities, machine
from labkit.errors import BadInput
from labkit.lab.catalogue import TOGGLES, parse, text
from labkit.memory.toggles import NoKV, StaticKV
from labkit.spec import Spec, decode, encode, leaves
from labkit.toggle import stack

BASE = Decode("random:tiny-llama", Text("Count: one, two"), tokens=4)
CASES = [cls(**case) for cls in TOGGLES for case in cls.cases]


@pytest.mark.parametrize("toggle", CASES, ids=text)
def test_text_object_json_object(toggle):
    assert parse(text(toggle)) == toggle
    assert decode(encode(toggle)) == toggle
    work = stack(BASE, [toggle])
    assert decode(encode(work)) == work


def test_every_toggle_says_what_it_is():
    for cls in TOGGLES:
        assert cls.loses.endswith(".") and cls.dimension and cls.owns in leaves(BASE)
        assert cls.__doc__


def test_permuted_stacks_are_equal():
    toggles = [StaticKV(max_tokens=128), Dtype("bfloat16"), Eager(), Threads(2)]
    stacked = {repr(stack(BASE, order)) for order in permutations(toggles)}
    assert len(stacked) == 1


@pytest.mark.parametrize("pair", [(StaticKV(), NoKV()), (Dtype("bfloat16"), Dtype("bfloat16"))], ids=["other value", "equal value"])
def test_a_second_owner_is_refused(pair):
    with pytest.raises(BadInput, match=r"both set (cache\.grow|weights\.dtype)") as refused:
        stack(BASE, pair)
    assert "\n" not in str(refused.value) and refused.value.field


def test_a_toggle_for_another_workload_is_refused():
    with pytest.raises(BadInput, match="applies to Decode"):
        stack(RandomKV(3), [Eager()])


@pytest.mark.parametrize(
    ("device", "flags", "capability", "dtype", "ok"),
    [
        ("cpu", {"avx2"}, None, "float16", False),
        ("cpu", {"avx512_fp16"}, None, "float16", True),
        ("cpu", {"avx2"}, None, "bfloat16", True),
        ("cuda", set(), (7, 5), "bfloat16", False),
        ("cuda", set(), (7, 5), "float16", True),
        ("cuda", set(), (8, 0), "bfloat16", True),
        ("cuda", set(), (9, 0), "float16", True),
    ],
)
def test_capabilities_of_invented_devices(device, flags, capability, dtype, ok):
    found = dtype_capabilities(device, frozenset(flags), capability)[dtype]
    assert found.ok is ok and found.reason


def test_a_missing_capability_is_refused_in_one_line():
    without = replace(machine("cpu"), capabilities=dtype_capabilities("cpu", frozenset(), None))
    with pytest.raises(BadInput, match="float16: this processor has no fp16 units") as refused:
        stack(BASE, [Dtype("float16")]).open(without)
    assert refused.value.field == "weights.dtype"


@pytest.mark.parametrize(
    ("work", "line"),
    [
        (replace(BASE, tokens=0), "at least 1 new token"),
        (replace(BASE, threads=4096), "threads=4096"),
        (replace(BASE, prompt=Text("  ")), "the prompt is empty"),
        (replace(BASE, tokens=10**6), "shorten the prompt or ask for fewer"),
        (stack(BASE, [StaticKV(max_tokens=8)]), "static cache of 8 tokens is too short"),
    ],
)
def test_what_cannot_be_run_is_refused_before_it_starts(work, line):
    with pytest.raises(BadInput, match=line) as refused:
        work.open(machine("cpu"))
    assert "\n" not in str(refused.value)


def test_two_specs_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match="both define a spec called greedy"):
        type("Greedy", (Spec,), {"__module__": "elsewhere"})
