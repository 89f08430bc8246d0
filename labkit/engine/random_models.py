"""Models without training: any shape, labelled random. Their time and bytes are real, their text is nonsense."""

import re
from functools import partial
from math import gcd
from pathlib import Path
from typing import Any

import psutil
import torch
from transformers import AutoModelForCausalLM, ByT5Tokenizer, DeepseekV3Config, LlamaConfig, PreTrainedConfig, PreTrainedModel

from labkit.engine.config import read_config
from labkit.env import ROOT
from labkit.errors import BadInput

CONFIGS = ROOT / "data" / "configs"
VOCABULARY = 259  # 256 bytes and three special tokens
WIDTH = 512
WIDTHS = range(64, 8192 + 1, 64)
SEED = 0

_common: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "bos_token_id": None,
    "eos_token_id": 1,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}


class ByteTokenizer(ByT5Tokenizer):
    """UTF-8 bytes, id = byte + 3. A shape with a larger vocabulary gives ids above 258: they wrap around."""

    def _convert_id_to_token(self, index: int) -> str:
        return chr((index - 3) % 256)


def shapes() -> dict[str, Path]:
    """The config files by the name that loads them."""
    return {f"random:{file.stem}": file for file in sorted(CONFIGS.glob("*.json"))}


def stream_name(name: str) -> str:
    """`random:stream` → `random:stream-512`; "" for a name that is no stream. Raises BadInput for a wrong width."""
    found = re.fullmatch(r"random:(stream(?:-v3)?)(?:-(.*))?", name)
    if not found:
        return ""
    kind, width = found[1], found[2] or ("" if name.endswith("-") else str(WIDTH))
    if not width.isdecimal() or int(width) not in WIDTHS:
        raise BadInput(f"{name}: the width must be a multiple of 64 from 64 to 8192, for example random:{kind}-{WIDTH}")
    return f"random:{kind}-{int(width)}"


def random_model(name: str) -> tuple[PreTrainedModel, ByT5Tokenizer, str]:
    """The model of a resolved name, in float32 on the CPU: the same weights on every device. Seeds the CPU generator."""
    config = read_config(shapes()[name]) if name in shapes() else _stream(name)
    if (needed := _weight_bytes(config)) > (free := psutil.virtual_memory().available):  # kinder than the end of the process
        raise BadInput(f"{name} needs {needed / 1e9:.1f} GB and this machine has {free / 1e9:.1f} GB free: take a smaller model")
    torch.default_generator.manual_seed(SEED)  # torch.manual_seed would also move every GPU's generator
    return _build(config), ByteTokenizer(extra_ids=0), "random"


def stream_bytes(name: str) -> int:
    """Weight bytes of a stream with a width (`random:stream-1024`) in float32, without building it."""
    return _weight_bytes(_stream(name))


def _weight_bytes(config: PreTrainedConfig) -> int:
    with torch.device("meta"):  # stores nothing
        return sum(p.nbytes for p in _build(config).parameters())


def _stream(name: str) -> PreTrainedConfig:
    kind, _, width = name.rpartition("-")
    return (_v3 if kind.endswith("v3") else _llama)(int(width))


_build = partial(AutoModelForCausalLM.from_config, dtype=torch.float32)


def _llama(width: int) -> LlamaConfig:
    """Four wide layers in the proportions of Llama 2 7B, with four query heads on each key/value head."""
    head = gcd(width // 4, 64)  # 64 where that leaves a number of heads that 4 divides, else 32 or 16
    return LlamaConfig(
        hidden_size=width,
        intermediate_size=width * 43 // 16,
        num_hidden_layers=4,
        num_attention_heads=width // head,
        num_key_value_heads=width // head // 4,
        head_dim=head,
        max_position_embeddings=8192,
        initializer_range=width**-0.5,  # keeps the spread of activations: with less, the text is one token repeated
        **_common,
    )


def _v3(width: int) -> DeepseekV3Config:
    """Four wide layers of DeepSeek-V3: latent attention, one dense layer, then 2 of 8 experts and a shared one."""
    heads = 4 * max(1, width // 256)
    return DeepseekV3Config(
        hidden_size=width,
        intermediate_size=width * 5 // 2,
        moe_intermediate_size=width // 2,
        num_hidden_layers=4,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        q_lora_rank=width // 2,
        kv_lora_rank=width // 4,
        qk_nope_head_dim=64,
        qk_rope_head_dim=32,
        v_head_dim=64,
        n_shared_experts=1,
        n_routed_experts=8,
        num_experts_per_tok=2,
        n_group=4,
        topk_group=2,
        first_k_dense_replace=1,
        max_position_embeddings=8192,
        initializer_range=width**-0.5,
        **_common,
    )
