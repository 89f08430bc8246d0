"""Exactness: teacher-forced logits and greedy tokens of every exact toggle against the naive loop, on two architectures."""

import threading
from dataclasses import replace
from itertools import combinations

import pytest
import torch
import transformers.masking_utils as masks

from labkit.engine import context, naive
from labkit.engine.clone import weights_sha256
from labkit.engine.decode import Decode, Live
from labkit.engine.prompt import Start
from labkit.env import machine
from labkit.lab.catalogue import TOGGLES, text
from labkit.memory.toggles import StaticKV
from labkit.spec import Spec
from labkit.toggle import changed, stack
from tests.shapes import VOCABULARY, llama, loaded, v3

SHAPES = {"llama": (llama, 6), "v3": (v3, 3)}  # seeds whose greedy text varies
CASES = [cls(**case) for cls in TOGGLES for case in cls.cases]
EXACT = [toggle for toggle in CASES if toggle.exact]
PAIRS = [pair for pair in combinations(EXACT, 2) if pair[0].owns != pair[1].owns]


class Ids(Spec):
    """A prompt of given token ids."""

    tokens = 24

    def build(self, tokenizer: object, vocabulary: int) -> Start:
        return Start(torch.randint(0, VOCABULARY, (1, 24), generator=torch.Generator().manual_seed(1)))


@pytest.fixture(scope="module", params=SHAPES)
def shape(request):
    make, seed = SHAPES[request.param]
    return loaded(make(seed), request.param)


@pytest.fixture(scope="module")
def forced():
    """A fixed random token sequence: equality must not depend on where greedy text leads."""
    return torch.randint(0, VOCABULARY, (1, 40), generator=torch.Generator().manual_seed(2))


def base(tokens=64):
    return Decode("given", Ids(), tokens=tokens, threads=1)


def gap(shape, work, forced):
    """Largest distance of teacher-forced logits from the oracle's."""
    with Live(work, machine("cpu"), shape) as live:
        mine = live.forced(forced)
        whole = torch.cat([live.prompt, forced], dim=1)
        return float((mine - naive.logits(shape.model, whole)[live.prompt.shape[1] - 1 : -1]).abs().max())


def greedy(shape, work):
    with Live(work, machine("cpu"), shape) as live:
        return [event.tokens[0] for event in live.steps()]


@pytest.fixture(scope="module")
def oracle(shape):
    prompt = Ids().build(None, 0).ids
    tokens = naive.generate(shape.model, prompt, 64)
    logits = naive.logits(shape.model, torch.cat([prompt, tokens], dim=1))[prompt.shape[1] - 1 : -1]
    top = logits.topk(2).values
    assert len(set(tokens[0].tolist())) >= 40, "the text repeats itself: equality would say little"
    assert float((top[:, 0] - top[:, 1]).min()) >= 1e-3, "two logits lie so close that rounding decides"
    return tokens[0].tolist()


@pytest.mark.parametrize("toggle", EXACT, ids=text)
def test_each_exact_toggle_equals_the_oracle(shape, oracle, forced, toggle):
    work = stack(base(), [toggle])
    assert gap(shape, work, forced) <= 1e-4
    assert greedy(shape, work) == oracle


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: "+".join(map(text, pair)))
def test_exact_pairs_equal_the_oracle(shape, forced, pair):
    assert gap(shape, stack(base(), pair), forced) <= 1e-4


def test_base_equals_the_oracle(shape, oracle, forced):
    assert gap(shape, base(), forced) <= 1e-4
    assert greedy(shape, base()) == oracle


def test_a_dropped_cache_position_is_noticed(shape, forced, monkeypatch):
    feed = context.Cached.feed

    def forgetful(self, ids, new, pad):
        if len(self) == 30:
            self.cache.crop(-1)
        return feed(self, ids, new, pad)

    monkeypatch.setattr(context.Cached, "feed", forgetful)
    assert gap(shape, base(), forced) > 1e-2


def test_a_shifted_rope_index_is_noticed(shape, forced, monkeypatch):
    feed = context.Cached.feed

    def shifted(self, ids, new, pad):
        call = feed(self, ids, new, pad)
        return call | {"position_ids": call["position_ids"] + (new == 1)}

    monkeypatch.setattr(context.Cached, "feed", shifted)
    assert gap(shape, base(), forced) > 1e-2


def test_a_static_mask_one_position_too_long_is_noticed(shape, forced, monkeypatch):
    monkeypatch.setattr(masks, "causal_mask_function", lambda batch, head, query, key: key <= query + 1)
    assert gap(shape, stack(base(), [StaticKV()]), forced) > 1e-2


def _raise_midway(opened):
    with opened as live:
        for _ in live.steps():
            raise RuntimeError("midway")


@pytest.mark.parametrize("toggle", CASES, ids=text)
def test_the_base_is_untouched_after_a_toggle_ran_raised_or_was_stopped(shape, oracle, toggle):
    before = weights_sha256(shape.model)
    work = stack(base(tokens=6), [toggle])
    with Live(work, machine("cpu"), shape) as live:
        assert len(list(live.steps())) == 6
    with pytest.raises(RuntimeError, match="midway"):
        _raise_midway(Live(work, machine("cpu"), shape))
    stop = threading.Event()
    with Live(work, machine("cpu"), shape, stop) as live:
        seen = []
        for event in live.steps():
            seen.append(event)
            stop.set()
        assert len(seen) == 1
    assert weights_sha256(shape.model) == before
    assert greedy(shape, base()) == oracle


def test_dtype_changes_stored_bytes_not_the_shared_weights(shape):
    work = replace(base(tokens=2), weights=replace(base().weights, dtype="bfloat16"))
    with Live(work, machine("cpu"), shape) as live:
        assert {p.dtype for p in live.model.parameters()} == {torch.bfloat16}
    assert {p.dtype for p in shape.model.parameters()} == {torch.float32}


def test_a_toggle_that_changes_nothing_owns_nothing():
    already = [toggle for toggle in CASES if not changed(base(), toggle)]
    assert {text(toggle) for toggle in already} == {"dynamic-kv", "sdpa", "threads:count=1"}
