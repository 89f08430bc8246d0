"""Beams, batches and processors against transformers' own `generate`."""

from dataclasses import replace

import pytest
import torch

from labkit.engine.beam import Beams
from labkit.engine.decode import Decode, Live
from labkit.engine.processors import Processors
from labkit.engine.prompt import Batch, RandomKV
from labkit.engine.search import Sample
from labkit.env import machine
from labkit.errors import BadInput
from labkit.memory.cache import Off, Static
from labkit.spec import decode, encode, with_leaf
from tests.shapes import llama, loaded, prompts, run, v3

SHAPES = {"llama": llama, "v3": v3}
EARLY = {"yes": True, "no": False, "never": "never"}


@pytest.fixture(scope="module", params=SHAPES)
def shape(request):
    return loaded(SHAPES[request.param](5), request.param)


def work(*lengths: int, tokens: int = 20, **slots) -> Decode:
    given = prompts(*lengths)
    return Decode("shape", given[0] if len(given) == 1 else Batch(given), tokens, threads=1, **slots)


def generate(shape, ids, **options):
    """transformers' own loop; nothing ends a text unless eos_token_id is given."""
    options = {"max_new_tokens": 20, "do_sample": False, "pad_token_id": 0, "eos_token_id": None} | options
    with torch.inference_mode():
        return shape.model.generate(ids, return_dict_in_generate=True, output_scores=True, **options)


def until(text: list[int], ends: frozenset[int]) -> list[int]:
    """A text without the filling that `generate` puts behind its end."""
    return text[: next((i + 1 for i, token in enumerate(text) if token in ends), len(text))]


@pytest.mark.parametrize("early", EARLY)
@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_beams_give_the_sequences_and_scores_of_generate(shape, count, early):
    solo = replace(shape, eos=frozenset(range(100, 140)))  # many ends, so that texts finish at different lengths
    live = run(solo, work(12, stop_at_eos=True, search=Beams(count, early)))
    ids = torch.tensor([prompts(12)[0].ids])
    eos = {"eos_token_id": sorted(solo.eos), "num_beams": count, "num_return_sequences": count}
    theirs = generate(solo, ids, early_stopping=EARLY[early], **eos) if count > 1 else generate(solo, ids, **eos)
    mine = live.search.scored(0)
    rows = [until(row[12:].tolist(), solo.eos) for row in theirs.sequences]
    assert [text for _, text in mine[: len(rows)]] == rows
    if count > 1:
        assert [score for score, _ in mine] == pytest.approx(theirs.sequences_scores.tolist(), abs=1e-4)
    assert live.reply() == rows[0]


@pytest.mark.parametrize("kept", [Off(), Static()], ids=["no-kv", "static"])
def test_beams_do_not_depend_on_the_cache(shape, kept):
    base = work(12, search=Beams(3))
    assert run(shape, with_leaf(base, "cache.grow", kept)).search.scored(0) == [
        (pytest.approx(score, abs=1e-4), text) for score, text in run(shape, base).search.scored(0)
    ]


@pytest.mark.parametrize("kept", [None, Off(), Static()], ids=["dynamic", "no-kv", "static"])
@pytest.mark.parametrize("beams", [1, 3])
def test_rows_of_a_batch_equal_their_solo_runs(shape, kept, beams):
    slots = {"search": Beams(beams)} if beams > 1 else {}
    base = work(5, 17, 9, **slots)
    both = run(shape, with_leaf(base, "cache.grow", kept) if kept else base)
    solo = [run(shape, replace(base, prompt=prompt)).reply() for prompt in base.prompt.prompts]
    assert [both.reply(i) for i in range(3)] == solo


def test_a_row_that_has_ended_keeps_its_reply_and_the_others_go_on(shape):
    plain = run(shape, work(5, 17))
    ending = replace(shape, eos=frozenset({plain.reply(0)[3]}))
    live = run(ending, work(5, 17, stop_at_eos=True))
    assert live.reply(0) == until(plain.reply(0), ending.eos)
    assert live.reply(1) == plain.reply(1)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (Processors(repetition_penalty=1.8), {"repetition_penalty": 1.8}),
        (Processors(no_repeat_ngram=1), {"no_repeat_ngram_size": 1}),
        (Processors(1.3, 2), {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2}),
    ],
)
@pytest.mark.parametrize("beams", [1, 4])
def test_processors_equal_those_of_generate(shape, mine, theirs, beams):
    search = {"search": Beams(beams)} if beams > 1 else {}
    live = run(shape, work(40, processors=mine, **search))
    ids = torch.tensor([prompts(40)[0].ids])
    assert live.reply() == generate(shape, ids, num_beams=beams, **theirs).sequences[0, 40:].tolist()


def test_processors_do_not_see_padding(shape):
    base = work(5, 17, processors=Processors(no_repeat_ngram=1, repetition_penalty=1.5))
    solo = [run(shape, replace(base, prompt=prompt)).reply() for prompt in base.prompt.prompts]
    both = run(shape, base)
    assert [both.reply(0), both.reply(1)] == solo


def test_top_p_draws_only_from_the_most_probable(shape):
    greedy = run(shape, work(12)).reply()
    assert run(shape, work(12, search=Sample(1.0, top_p=1e-6))).reply() == greedy
    assert run(shape, work(12, search=Sample(5.0))).reply() != greedy


def test_timed_slices_of_beams_repeat(shape):
    with Live(work(12, search=Beams(3)), machine("cpu"), shape) as live:
        live.prepare()
        first = [event.tokens for event in live.advance(5)]
        live.rewind()
        assert [event.tokens for event in live.advance(5)] == first
        assert live.ids.shape == (3, 12 + 5)


def test_beams_and_batches_survive_json():
    for wanted in (work(5, 9, search=Beams(3, "never", 0.5)), work(5, search=Sample(0.5, 0.9), processors=Processors(1.2, 3))):
        assert decode(encode(wanted)) == wanted


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Beams(0), lambda: Beams(9), lambda: Beams(2, "often"), lambda: Sample(1.0, top_p=0.0),
        lambda: Processors(repetition_penalty=0), lambda: Processors(no_repeat_ngram=-1),
        lambda: Batch(()).build(None, 9), lambda: Batch((RandomKV(8),)).build(None, 9),
    ],
)  # fmt: skip
def test_bad_values_are_refused_in_one_line(bad):
    with pytest.raises(BadInput) as refused:
        bad()
    assert "\n" not in str(refused.value)
