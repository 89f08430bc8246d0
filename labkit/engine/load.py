"""Models by name. What comes back says where its weights are from, so that no record has to guess."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from transformers import AutoModelForCausalLM, ByT5Tokenizer, LlamaConfig, PreTrainedModel

from labkit.errors import unknown


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model with its tokenizer, on the machine's device, shared by all clones: never edited."""

    name: str  # resolved, e.g. "random:stream-1024"
    model: PreTrainedModel
    tokenizer: Any
    origin: str  # "random", "trained", "de-quantized from Q4_1"
    context_tokens: int
    eos: frozenset[int]
    gives: frozenset[str]  # "full-attention" when no layer has a window


@lru_cache(maxsize=4)
def load(name: str, device: str = "cpu") -> Loaded:
    """The model of that name. Raises BadInput when there is none."""
    if name != "random:tiny-llama":
        raise unknown("model", name, ["random:tiny-llama"])
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=259, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
    )
    model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    return Loaded(name, model, ByT5Tokenizer(extra_ids=0), "random", 2048, frozenset({1}), frozenset({"full-attention"}))
