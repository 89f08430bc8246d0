"""Models for tests: a small folder as a user would have one."""

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty home, and no model kept from or for another test."""
    from labkit.engine.load import _load

    monkeypatch.setenv("LABKIT_HOME", str(tmp_path / "home"))
    _load.cache_clear()  # unload() also collects garbage, which takes longer than these tests
    yield tmp_path / "home"
    _load.cache_clear()


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    """A Llama of one layer with a byte tokenizer, saved as float16 safetensors."""
    import torch
    from transformers import ByT5Tokenizer, LlamaConfig, LlamaForCausalLM

    folder = tmp_path / "model"
    size = {"vocab_size": 259, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1}
    with torch.random.fork_rng(devices=[]):
        model = LlamaForCausalLM(LlamaConfig(**size, num_attention_heads=2, max_position_embeddings=64, eos_token_id=[1, 7]))
    model.to(torch.float16).save_pretrained(folder)
    ByT5Tokenizer(extra_ids=0).save_pretrained(folder)
    return folder
