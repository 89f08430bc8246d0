"""A user's own folder: what loads, and one line for each thing that does not."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from labkit.engine.config import gives, refusal
from labkit.engine.load import load
from labkit.errors import BadInput

pytestmark = pytest.mark.usefixtures("fresh")


def refused(folder: Path) -> str:
    """The line a folder is refused with."""
    with pytest.raises(BadInput) as caught:
        load(str(folder))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def edit(file: Path, **values: Any) -> None:
    """Set keys of a JSON file."""
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def test_folder_loads_as_stored_without_a_network(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*args: object) -> None:
        raise AssertionError("a local folder must not need a network")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    monkeypatch.setattr(socket.socket, "connect", no_network)
    before = torch.get_rng_state()
    loaded = load(str(model_folder))
    assert loaded.name == str(model_folder) and loaded.origin == "local folder, stored as float16"
    assert loaded.model.dtype == torch.float16
    assert (loaded.context_tokens, loaded.eos, loaded.gives) == (64, {1, 7}, {"full-attention"})
    assert torch.equal(torch.get_rng_state(), before)


def test_relative_path_is_the_same_folder(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model_folder.parent)
    assert load("./model") is load(str(model_folder))


def test_missing_folder(tmp_path: Path) -> None:
    assert "there is no folder" in refused(tmp_path / "nothing")


def test_missing_config(model_folder: Path) -> None:
    (model_folder / "config.json").unlink()
    assert "config.json does not exist" in refused(model_folder)


@pytest.mark.parametrize(("text", "part"), [("{", "not valid JSON"), ("[]", "not a JSON object"), ("{}", "model_type None")])
def test_broken_config(model_folder: Path, text: str, part: str) -> None:
    (model_folder / "config.json").write_text(text)
    assert part in refused(model_folder)


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"auto_map": {"AutoModel": "own.Model"}}, "auto_map"),
        ({"model_type": "no-such"}, "'no-such'"),
        ({"hidden_size": "wide"}, "not a valid llama config"),
        ({"quantization_config": {"quant_method": "fp8"}}, "stored quantized"),
        ({"architectures": ["LlamaModel"]}, "LlamaModel is not a decoder"),
        ({"hidden_size": 64}, "weights"),
        ({"num_hidden_layers": 2}, "do not fit config.json: 9 are missing"),
    ],
)
def test_unfit_config(model_folder: Path, values: dict[str, Any], part: str) -> None:
    edit(model_folder / "config.json", **values)
    assert part in refused(model_folder)


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("t5", "encoder-decoder"),
        ("whisper", "encoder-decoder"),
        ("mamba", "running state"),
        ("xlnet", "no key/value cache"),
        ("vit", "not a decoder"),
        ("gemma3", "max_position_embeddings"),
    ],
)
def test_other_kinds_of_model(model_folder: Path, kind: str, part: str) -> None:
    (model_folder / "config.json").write_text(json.dumps({"model_type": kind}))
    assert part in refused(model_folder)


def test_masked_language_model(model_folder: Path) -> None:
    (model_folder / "config.json").write_text('{"model_type": "bert", "architectures": ["BertForMaskedLM"]}')
    assert "BertForMaskedLM is not a decoder" in refused(model_folder)


def test_pickled_weights_are_not_read(model_folder: Path) -> None:
    (model_folder / "model.safetensors").rename(model_folder / "pytorch_model.bin")
    assert "only pickled weights (pytorch_model.bin)" in refused(model_folder)


def test_no_weights(model_folder: Path) -> None:
    (model_folder / "model.safetensors").unlink()
    assert "*.safetensors is missing" in refused(model_folder)


def test_broken_weights(model_folder: Path) -> None:
    (model_folder / "model.safetensors").write_bytes(b"torn")
    assert "weights cannot be read" in refused(model_folder)


def test_a_weight_that_the_file_lacks_is_not_made_up(model_folder: Path) -> None:
    file = model_folder / "model.safetensors"
    tensors = load_file(file)
    del tensors["model.norm.weight"]
    save_file(tensors, file, metadata={"format": "pt"})
    assert "1 are missing, first model.norm.weight" in refused(model_folder)


def test_missing_tokenizer(model_folder: Path) -> None:
    for file in model_folder.glob("*token*"):
        file.unlink()
    assert "has no tokenizer" in refused(model_folder)


@pytest.mark.parametrize(
    ("tokenizer", "part"),
    [
        ({"tokenizer.json": "{", "tokenizer_config.json": "{}"}, "cannot be read"),
        ({"tokenizer_config.json": "{"}, "cannot be read"),
        ({"tokenizer_config.json": '{"tokenizer_class": "LlamaTokenizer"}'}, "has no vocabulary"),
        ({"tokenizer_config.json": '{"tokenizer_class": "GPT2Tokenizer"}'}, "has no vocabulary"),
    ],
)
def test_broken_tokenizer(model_folder: Path, tokenizer: dict[str, str], part: str) -> None:
    for file in model_folder.glob("*token*"):
        file.unlink()
    for name, text in tokenizer.items():
        (model_folder / name).write_text(text)
    assert part in refused(model_folder)


def test_a_window_is_not_full_attention() -> None:
    from transformers import GPTNeoConfig, LlamaConfig, MistralConfig, Qwen3Config

    assert gives(LlamaConfig()) == {"full-attention"} == gives(MistralConfig(sliding_window=None))
    assert not gives(MistralConfig(sliding_window=16)) and not gives(GPTNeoConfig())
    assert not gives(Qwen3Config(num_hidden_layers=2, layer_types=["full_attention", "sliding_attention"]))
    assert refusal(MistralConfig()) == ""
