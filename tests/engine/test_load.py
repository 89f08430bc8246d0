"""Names, widths, what a loaded model says about itself, and that loading leaves the process as it was."""

import re
import sys
import warnings
import weakref

import pytest
import torch
from transformers.utils import logging

from labkit.engine import random_models
from labkit.engine.clone import weights_sha256
from labkit.engine.load import get, load, names, unload
from labkit.engine.naive import generate
from labkit.engine.prompt import Text
from labkit.engine.quiet import quiet
from labkit.errors import BadInput

pytestmark = pytest.mark.usefixtures("fresh")
SMALL = ["random:stream-128", "random:stream-v3-128", "random:tiny-llama", "random:tiny-v3"]


def refused(name: str) -> str:
    """The line a load is refused with."""
    with pytest.raises(BadInput) as caught:
        load(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_shipped_name_is_listed() -> None:
    real = [f"random:{shape}" for shape in ("deepseek-v2-lite", "deepseek-v3", "llama-2-7b", "qwen2-7b", "r1-distill-qwen-1.5b")]
    assert names() == ["tiny-deepseek", "smollm2-135m", "random:stream", "random:stream-v3", *real, "random:tiny-llama", "random:tiny-v3"]


@pytest.mark.parametrize("name", SMALL)
def test_random_model_describes_itself(name: str) -> None:
    loaded = load(name)
    assert (loaded.name, loaded.origin, loaded.gives) == (name, "random", {"full-attention"})
    assert loaded.context_tokens == (8192 if "stream" in name else 2048)
    assert loaded.eos == {1}
    assert {p.dtype for p in loaded.model.parameters()} == {torch.float32}
    assert not any(p.requires_grad for p in loaded.model.parameters()) and not loaded.model.training


@pytest.mark.parametrize("name", SMALL)
def test_random_text_is_not_one_token_repeated(name: str) -> None:
    loaded = load(name)
    ids = Text("Why is the sky blue?").build(loaded.tokenizer, 259).ids
    assert len(set(generate(loaded.model, ids, 32)[0].tolist())) > 10
    config = loaded.model.config
    assert config.initializer_range == pytest.approx(config.hidden_size**-0.5)  # the reason, for shapes where chance would do


def test_stream_is_llama_with_a_quarter_of_the_heads_for_keys() -> None:
    config = load("random:stream").model.config
    assert config.model_type == "llama" and config.num_hidden_layers == 4
    assert config.num_attention_heads == 4 * config.num_key_value_heads


def test_stream_v3_is_latent_attention_with_experts_after_a_dense_layer() -> None:
    model = load("random:stream-v3-64").model
    assert model.config.model_type == "deepseek_v3" and model.config.n_shared_experts == 1
    assert [hasattr(layer.mlp, "experts") for layer in model.model.layers] == [False, True, True, True]


def test_width_is_in_the_name() -> None:
    assert load("random:stream").name == "random:stream-512"
    assert load("random:stream-v3-64").model.config.hidden_size == 64
    assert load("random:stream") is load("random:stream-512")


@pytest.mark.parametrize("width", ["63", "100", "0", "-64", "8256", "wide", ""])
def test_wrong_width_is_refused(width: str) -> None:
    assert "multiple of 64 from 64 to 8192" in refused(f"random:stream-{width}")


@pytest.mark.parametrize("kind", ["stream", "stream-v3"])
def test_every_width_up_to_8192_is_a_valid_shape(kind: str) -> None:
    build = {"stream": random_models._llama, "stream-v3": random_models._v3}[kind]
    for width in random_models.WIDTHS:
        config = build(width)
        assert config.num_attention_heads % config.num_key_value_heads == 0 and config.intermediate_size % 4 == 0


def test_a_model_larger_than_the_free_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = type("Memory", (), {"available": 1_000_000})
    monkeypatch.setattr(random_models.psutil, "virtual_memory", memory)
    assert "0.0 GB free" in refused("random:stream-128")


def test_same_name_same_weights_and_the_global_generator_stays() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = weights_sha256(load("random:stream-64").model)
    assert torch.equal(torch.get_rng_state(), before)
    unload()
    torch.manual_seed(6)
    assert weights_sha256(load("random:stream-64").model) == first


def test_unload_frees_the_weights() -> None:
    held = weakref.ref(load("random:stream-64").model)
    assert held() is not None
    unload()
    assert held() is None


@pytest.mark.parametrize("bars", [True, False])
def test_loading_is_silent_and_puts_the_switches_back(capsys: pytest.CaptureFixture[str], bars: bool) -> None:
    logging.set_verbosity(logging.WARNING)
    (logging.enable_progress_bar if bars else logging.disable_progress_bar)()
    before = logging.get_verbosity(), logging.is_progress_bar_enabled(), list(warnings.filters), sys.stderr
    load("random:stream-64")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled(), list(warnings.filters), sys.stderr) == before
    assert capsys.readouterr() == ("", "")
    logging.enable_progress_bar()


def test_inside_quiet_nothing_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet():
        assert not logging.is_progress_bar_enabled() and logging.get_verbosity() == logging.CRITICAL
        print("a bar", file=sys.stderr)
    assert capfd.readouterr() == ("", "")


def test_bytes_come_back_as_text() -> None:
    tokenizer = load("random:stream-64").tokenizer
    text = "Why is the sky blue? 天空为什么是蓝色的？ é 🙂"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert len(ids) == len(text.encode()) and max(ids) < 259
    assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_ids_above_the_bytes_still_decode() -> None:
    assert load("random:stream-64").tokenizer.decode([259 + 97, 3 + 98]) == "ab"  # a shape with a larger vocabulary


@pytest.mark.parametrize("name", ["random:stram", "tiny-llama", "someone/some-model", "", "smollm2"])
def test_unknown_name_is_refused(name: str) -> None:
    assert "unknown model" in refused(name)


def test_only_the_real_model_is_fetched() -> None:
    with pytest.raises(BadInput, match=re.escape("unknown model to fetch 'random:stream'")):
        get("random:stream")
