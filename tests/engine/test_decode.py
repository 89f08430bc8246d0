"""The loop: prefill apart, prepared slices, streams that join to the whole, sampling with its own generator."""

from dataclasses import replace

import pytest
import torch

from labkit.engine.decode import Decode
from labkit.engine.prompt import RandomKV, Text
from labkit.engine.search import Sample
from labkit.env import machine
from labkit.errors import BadInput
from labkit.memory.toggles import NoKV, StaticKV
from labkit.toggle import stack

BASE = Decode("random:tiny-v3", Text("在一个遥远的国度里"), tokens=12)
HERE = machine("cpu")


def test_the_first_event_is_the_prefill_and_computes_the_prompt():
    with BASE.open(HERE) as live:
        events = list(live.steps())
        assert [e.prefill for e in events] == [True] + [False] * 11
        assert [e.positions for e in events] == [live.prompt.shape[1]] + [1] * 11
        assert events[-1].context == live.prompt.shape[1] + 11


def test_without_a_cache_every_step_computes_the_whole_text():
    with stack(BASE, [NoKV()]).open(HERE) as live:
        n = live.prompt.shape[1]
        assert [e.positions for e in live.steps()] == list(range(n, n + 12))


@pytest.mark.parametrize("toggles", [[], [NoKV()], [StaticKV()]], ids=["dynamic", "none", "static"])
def test_a_run_can_be_repeated_and_sliced(toggles):
    with stack(BASE, toggles).open(HERE) as live:
        whole = [event.tokens[0] for event in live.steps()]
        assert [event.tokens[0] for event in live.steps()] == whole
        live.prepare()
        for _ in range(2):
            live.rewind()
            assert [event.tokens[0] for event in live.advance(5)] == whole[1:6]


@pytest.mark.parametrize("toggles", [[], [NoKV()], [StaticKV()]], ids=["dynamic", "none", "static"])
def test_a_pretended_context_is_computed_from_its_last_token_only(toggles):
    work = stack(replace(BASE, prompt=RandomKV(40), tokens=3), toggles)
    with work.open(HERE) as live:
        events = list(live.steps())
        assert events[0].context == 40 and events[-1].context == 42
        assert events[0].positions == (40 if toggles == [NoKV()] else 1)


def test_stream_joins_to_generate_and_never_shows_half_a_character():
    with BASE.open(HERE) as live:
        pieces = list(live.stream())
        assert "".join(pieces) == live.generate()
        assert all("\ufffd" not in piece or piece.count("\ufffd") < len(piece) + 1 for piece in pieces)


def test_temperature_draws_from_its_own_generator():
    work = replace(BASE, search=Sample(1.5, seed=3))
    before = torch.get_rng_state()
    with work.open(HERE) as live:
        first, again = [event.tokens[0] for event in live.steps()], [event.tokens[0] for event in live.steps()]
    assert first == again
    assert torch.equal(torch.get_rng_state(), before)
    with replace(work, search=Sample(1.5, seed=4)).open(HERE) as live:
        assert [event.tokens[0] for event in live.steps()] != first
    with pytest.raises(BadInput, match="above 0"):
        Sample(0.0)


def test_end_of_text_is_ignored_unless_asked_for():
    with BASE.open(HERE) as live:
        third = [event.tokens[0] for event in live.steps()][2]
        object.__setattr__(live.loaded, "eos", live.loaded.eos | {third})
        assert len(list(live.steps())) == 12
        live.work = replace(BASE, stop_at_eos=True)
        assert [event.tokens[0] for event in live.steps()][-1] == third
        object.__setattr__(live.loaded, "eos", live.loaded.eos - {third})


def test_threads_are_entered_around_a_step_and_given_back():
    before = torch.get_num_threads()
    with replace(BASE, threads=2 if HERE.cores > 1 else 1).open(HERE) as live:
        for _ in live.steps():
            assert torch.get_num_threads() == before
            assert not torch.is_inference_mode_enabled()
