"""The texts, what is drawn from them, and the model that was trained on them."""

import hashlib
import json
import re

import numpy as np
import pytest
from transformers import AutoTokenizer

from labkit.engine.decode import Decode
from labkit.engine.load import TINY, load
from labkit.engine.prompt import Text
from labkit.env import ROOT, machine
from labkit.errors import BadInput
from labkit.measure.recall import DIGITS, Facts, needle_recall, repeat_recall
from labkit.training.corpus import FOLDER, documents, tokens, train_tokenizer
from labkit.training.recall import AskedFacts, Repeats, RunningText, batch

MODEL = ROOT / "data" / "models" / TINY


@pytest.fixture(scope="module")
def facts():
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    return Facts(tokenizer, {language: tokens(tokenizer, documents(language, held_out=True)[:3]) for language in ("en", "zh")})


def test_texts_are_those_of_the_readme():
    listed = dict(reversed(line.split()) for line in re.findall(r"^[0-9a-f]{64}  \S+$", (FOLDER / "README.md").read_text(), re.M))
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FOLDER.glob("*.txt")}
    assert files == listed and len(files) >= 10
    assert all(path.stat().st_size <= 1_000_000 for path in FOLDER.glob("*.txt"))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_held_out_was_not_trained_on(language):
    held, trained = documents(language, held_out=True), documents(language, held_out=False)
    assert sum(len(d.encode()) for d in held) >= 200_000
    assert not set(held) & set(trained)


def test_missing_texts_are_refused(tmp_path):
    for held_out in (False, True):
        with pytest.raises(BadInput, match="part of the repository"):
            documents("en", held_out, tmp_path)


def test_the_tokenizer_gives_each_digit_a_token_and_every_text_back():
    tokenizer = train_tokenizer(["the code of the ship is 12345 " * 50, "三国演义，第八十六回"], 300)
    for text in ("the code is 7391.", "却说东吴陆逊\nabc  x"):
        assert tokenizer.decode(tokenizer(text).input_ids) == text
    assert len(tokenizer("7391").input_ids) == 4


def test_repeats_are_asked_from_the_second_round_on():
    ids, weights = Repeats(100, 5, 5)(np.random.default_rng(0), 20)
    assert len(ids) == 21 and ids[:5].tolist() == ids[5:10].tolist() and len(set(ids[:5].tolist())) == 5
    assert weights.tolist() == [0.0] * 5 + [1.0] * 15


def test_answers_weigh_most_and_stand_where_the_digits_are(facts):
    ids, weights = AskedFacts(facts, 3, 20, around=0.3)(np.random.default_rng(5), 256)
    assert len(ids) == 257 and set(weights.tolist()) == {np.float32(0.3), 4.0}
    asked = ids[1:][weights == 4.0]
    assert len(asked) % DIGITS == 0 and facts.tokenizer.decode(asked).isdigit()


def test_a_batch_mixes_its_kinds(facts):
    mix = ((0.5, Repeats(6144, 8, 60)), (0.5, RunningText(facts, 0.5)))
    ids, weights = batch(np.random.default_rng(1), mix, 16, 64)
    assert ids.shape == (16, 65) and weights.shape == (16, 64)
    assert 0 < (weights.min(1) == 1).sum() < 16  # text is asked everywhere, repeats are not


def test_the_shipped_model_is_small_and_does_what_its_card_says(facts):
    figures = json.loads((MODEL / "figures.json").read_text())
    assert (MODEL / "model.safetensors").stat().st_size <= 16_000_000
    assert figures["bits_per_byte_en"] < figures["xz_en"] and figures["bits_per_byte_zh"] < figures["xz_zh"]
    model = load(TINY).model.float()
    for language in ("en", "zh"):
        assert needle_recall(model, facts, language, 120, 10) >= 0.8 * figures[f"needle_{language}"]["120"]
    assert repeat_recall(model, 32, 4) == pytest.approx(figures["repeats"]["32"], abs=0.1)


def test_the_shipped_model_writes_words_in_both_languages():
    here = machine("cpu")
    for prompt, letters in (("The capital of the country is", r"[a-z ]{12}"), ("却说曹操", r"[\u4e00-\u9fff]{4}")):
        with Decode(TINY, Text(prompt), tokens=24).open(here) as live:
            assert re.search(letters, live.generate())
