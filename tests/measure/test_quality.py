"""Scores of invented texts, loss of real ones, and recall of a model that cannot look back."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import ByT5Tokenizer

from labkit.measure.loss import bits_per_byte, losses, perplexity_of
from labkit.measure.quality import Quality, quality, repeated_ngrams
from labkit.measure.recall import DIGITS, Facts, name, needle_recall, repeat_recall, repeated
from tests.shapes import llama


def scores(*probabilities):
    """Log-probabilities of two tokens, one row a position."""
    return torch.tensor([[p, 1 - p] for p in probabilities]).log()


def test_the_base_against_itself():
    same = quality([0, 0, 0], [0, 0, 0], scores(0.5, 0.5, 0.5), scores(0.5, 0.5, 0.5))
    assert str(same) == "same 3 tokens" and same.kl_nats == 0
    assert same.perplexity == pytest.approx(2.0)
    assert not same.worse_than(same)


def test_divergence_is_that_of_the_variant_from_the_base():
    found = quality([0, 1], [0, 0], scores(0.5, 0.5), scores(0.9, 0.9))
    assert found.first_difference == 1 and "token 2 of 2" in str(found)
    assert found.kl_nats == pytest.approx(0.9 * math.log(0.9 / 0.5) + 0.1 * math.log(0.1 / 0.5))


def test_worse_needs_every_token_to_say_so():
    base = Quality(24, None, 0.0, tuple([1.0] * 24))
    assert Quality(24, None, 0.0, tuple([1.1] * 24)).worse_than(base)
    assert not Quality(24, None, 0.0, tuple([1.005] * 24)).worse_than(base)
    noisy = tuple(1.0 + (0.5 if i % 2 else -0.4) for i in range(24))
    assert not Quality(24, None, 0.0, noisy).worse_than(base)
    assert not Quality(24, None, 0.0, why="random").worse_than(base)


def test_repeated_ngrams():
    assert repeated_ngrams([1, 2, 3], 4) == 0
    assert repeated_ngrams([1, 2, 1, 2, 1, 2], 2) == pytest.approx(3 / 5)
    assert repeated_ngrams(list(range(50))) == 0


@pytest.fixture(scope="module")
def model():
    return llama(2)


@pytest.mark.parametrize(("window", "stride"), [(64, None), (16, None), (16, 8), (16, 3), (7, 7)])
def test_each_token_is_scored_once_with_what_the_window_holds(model, window, stride):
    ids = torch.randint(0, 512, (40,), generator=torch.Generator().manual_seed(0))
    found = losses(model, ids, window, stride)
    assert len(found) == 39
    whole = torch.nn.functional.cross_entropy(model(ids[None]).logits[0, :-1], ids[1:], reduction="none")
    assert torch.allclose(found[: window - 1], whole[: window - 1], atol=1e-4)
    if window >= 40:
        assert perplexity_of(found) == pytest.approx(float(model(ids[None], labels=ids[None]).loss.exp()), rel=1e-4)
    else:
        assert not torch.allclose(found, whole, atol=1e-2)


def test_bits_per_byte_counts_bytes():
    assert bits_per_byte(torch.full((6,), math.log(2.0)), "三国") == pytest.approx(1.0)


class Looking:
    """A model that copies: it predicts what followed the last earlier place where the present token stood."""

    config = SimpleNamespace(vocab_size=259)

    def __call__(self, ids):
        out = torch.zeros(*ids.shape, 259)
        for row, text in enumerate(ids.tolist()):
            for at, token in enumerate(text):
                before = [i for i in range(at) if text[i : i + 1] == [token]]
                if before:
                    out[row, at, text[before[-1] + 1]] = 1.0
        return SimpleNamespace(logits=out)


def facts():
    text = np.arange(3, 259).repeat(4)
    return Facts(ByT5Tokenizer(extra_ids=0), {"en": text, "zh": text})


def test_repeats_are_predicted_by_what_copies_and_not_by_chance(model):
    assert repeat_recall(Looking(), 20, 4) == 1.0
    assert repeat_recall(model, 20, 4) < 0.2
    assert repeated(np.random.default_rng(0), 50, 7, 20).tolist()[:6] == repeated(np.random.default_rng(0), 50, 7, 20).tolist()[7:13]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_needle_stands_where_it_says(language):
    asked, digits = facts().needle(np.random.default_rng(3), language, 200)
    text = "".join(chr(i) for i in asked)
    (first,) = [i for i in range(len(asked)) if asked[i : i + DIGITS] == digits]
    assert len(asked) - first == 200 and len(digits) == DIGITS and text
    assert needle_recall(Looking(), facts(), language, 120, tries=2) < 1.0  # copying one token is not enough for four digits


def test_names_vary():
    rng = np.random.default_rng(0)
    assert len({name(rng, "en") for _ in range(200)}) > 190 and len({name(rng, "zh") for _ in range(200)}) > 150
