"""The cost model against real modules, caches and counted FLOPs of tiny models, and against published sizes."""

import json
import subprocess
import sys
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, PreTrainedModel

from labkit.engine import random_models
from labkit.engine.cost import Cost, cost
from labkit.engine.families import FAMILIES
from labkit.engine.fields import read
from labkit.engine.load import load
from labkit.errors import BadInput

SIZE = {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 64}
PLAIN = {**SIZE, "intermediate_size": 48}
MLA = {
    **PLAIN, "moe_intermediate_size": 24, "num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": None, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4, "v_head_dim": 12, "n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 3,
    "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1,
}  # fmt: skip
GPT2 = {"vocab_size": 96, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64}
WINDOWED = {"sliding_window": 8, "use_sliding_window": True}
SHAPES: dict[str, dict[str, Any]] = {
    "llama, every head its key": {"model_type": "llama", **PLAIN},
    "llama, grouped, biases, tied": {
        "model_type": "llama", **PLAIN, "num_key_value_heads": 2, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True,
    },
    "llama, heads wider than the model": {"model_type": "llama", **PLAIN, "num_key_value_heads": 1, "head_dim": 24},
    "qwen2": {"model_type": "qwen2", **PLAIN, "num_key_value_heads": 2},
    "qwen2, last layers windowed": {"model_type": "qwen2", **PLAIN, **WINDOWED, "num_key_value_heads": 2, "max_window_layers": 1},
    "qwen3": {"model_type": "qwen3", **PLAIN, "num_key_value_heads": 2, "tie_word_embeddings": True},
    "qwen3, named windows": {
        "model_type": "qwen3", **PLAIN, **WINDOWED, "num_key_value_heads": 4, "head_dim": 16, "attention_bias": True,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    },
    "mistral, windowed": {"model_type": "mistral", **PLAIN, "num_key_value_heads": 2, "sliding_window": 6},
    "mistral, no window": {"model_type": "mistral", **PLAIN, "num_key_value_heads": 4, "sliding_window": None},
    "gemma3": {"model_type": "gemma3_text", **PLAIN, "sliding_window": 8, "sliding_window_pattern": 2},
    "gemma3, untied": {
        "model_type": "gemma3_text", **PLAIN, "num_key_value_heads": 1, "head_dim": 8, "tie_word_embeddings": False,
        "attention_bias": True,
    },
    "gpt2": {"model_type": "gpt2", **GPT2},
    "gpt2, untied": {"model_type": "gpt2", **GPT2, "n_inner": 48, "tie_word_embeddings": False},
    "gpt-neox": {"model_type": "gpt_neox", **PLAIN},
    "gpt-neox, no attention biases, tied": {"model_type": "gpt_neox", **PLAIN, "attention_bias": False, "tie_word_embeddings": True},
    "deepseek-v2": {"model_type": "deepseek_v2", **MLA, "topk_method": "greedy"},
    "deepseek-v2, biases": {"model_type": "deepseek_v2", **MLA, "q_lora_rank": 20, "attention_bias": True, "mlp_bias": True},
    "deepseek-v3": {"model_type": "deepseek_v3", **MLA, "q_lora_rank": 20},
    "deepseek-v3, dense": {"model_type": "deepseek_v3", **MLA, "first_k_dense_replace": 3, "n_shared_experts": 1, "attention_bias": True},
}  # fmt: skip
PUBLISHED = {  # total and active parameters, as the model cards and papers round them
    "deepseek-v3": (671e9, 37e9),
    "deepseek-v2-lite": (15.7e9, 2.4e9),
    "llama-2-7b": (6.74e9, None),
    "qwen2-7b": (7.62e9, None),
    "r1-distill-qwen-1.5b": (1.78e9, None),
}
CONFIGS = random_models.CONFIGS
each_shape = pytest.mark.parametrize("shape", SHAPES)


@cache  # no test changes a model
def build(shape: str) -> tuple[PreTrainedModel, Cost]:
    """The real model, with attention and experts as plain matrix products, and its cost from the fields alone."""
    fields = dict(SHAPES[shape])
    config = AutoConfig.for_model(**fields)
    with torch.random.fork_rng(devices=[]):
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", experts_implementation="eager")
    return model.eval().requires_grad_(False), cost(json.loads(json.dumps(fields)))


def forward(model: PreTrainedModel, cache: DynamicCache, tokens: int) -> int:
    """Feed that many tokens after what the cache holds; the FLOPs that torch counted."""
    with FlopCounterMode(display=False) as counter:
        model(input_ids=torch.arange(tokens)[None] % 90, cache=cache, use_cache=True, logits_to_keep=1)
    return counter.get_total_flops()


def held(cache: DynamicCache) -> int:
    return sum(t.nbytes for layer in cache.layers for t in (layer.keys, layer.values))


def test_every_family_is_tested() -> None:
    assert {fields["model_type"] for fields in SHAPES.values()} == set(FAMILIES)


@each_shape
def test_parameters_and_bytes_are_those_of_the_modules(shape: str) -> None:
    model, counted = build(shape)
    assert counted.parameters == sum(p.numel() for p in model.parameters())
    assert counted.weight_bytes("float32") == sum(p.nbytes for p in model.parameters())
    assert counted.weight_bytes("bfloat16") == sum(p.nbytes for p in deepcopy(model).to(torch.bfloat16).parameters())


def test_only_the_router_of_v3_stays_in_float32() -> None:
    config, (_, counted) = AutoConfig.for_model(**SHAPES["deepseek-v3"]), build("deepseek-v3")
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    extra = sum(p.nbytes for p in model.parameters()) - counted.weight_bytes("bfloat16")
    assert extra == 2 * sum(p.numel() for name, p in model.named_parameters() if name.endswith("gate.weight")) > 0


@each_shape
def test_active_parameters_leave_out_idle_experts_and_unread_rows(shape: str) -> None:
    model, counted = build(shape)
    chosen = getattr(model.config, "num_experts_per_tok", None)
    experts = sum(p[chosen:].numel() for p in model.parameters() if p.ndim == 3)  # (experts, out, in)
    head = model.get_output_embeddings().weight
    tables = [m.weight for m in model.modules() if isinstance(m, torch.nn.Embedding) and m.weight is not head]
    assert counted.active_parameters == counted.parameters - experts - sum(table[1:].numel() for table in tables)


@each_shape
@pytest.mark.parametrize("tokens", [1, 5, 7, 8, 20])  # below, at and beyond the windows of 6 and 8
def test_cache_bytes_are_those_of_a_real_cache(shape: str, tokens: int) -> None:
    model, counted = build(shape)
    kv = DynamicCache(config=model.config)
    forward(model, kv, tokens)
    assert counted.kv_bytes(tokens, "float32") == held(kv)
    forward(model, kv, 1)
    assert counted.kv_bytes(tokens + 1, "float32") == held(kv)


@each_shape
@pytest.mark.parametrize("tokens", [3, 20])
def test_flops_are_what_torch_counts(shape: str, tokens: int) -> None:
    """Every mm, addmm and bmm of the forward pass: the same integer, nothing to explain away."""
    model, counted = build(shape)
    kv = DynamicCache(config=model.config)
    assert counted.prefill_flops(tokens) == forward(model, kv, tokens)
    assert counted.step_flops(tokens) == forward(model, kv, 1)
    assert counted.step_flops(tokens + 1) == forward(model, kv, 1)


@pytest.mark.parametrize("shape", ["deepseek-v2", "deepseek-v3"])
def test_expanded_keys_and_values_are_those_that_attention_sees(shape: str) -> None:
    model, counted = build(shape)
    attention = model.model.layers[0].self_attn
    key, value = attention.expand_kv(torch.zeros(1, 1, 9, 16), torch.zeros(1, 1, 9, 4))
    assert counted.expanded_kv_bytes(9, "float32") == 3 * (key.nbytes + value.nbytes) > counted.kv_bytes(9, "float32")


@each_shape
def test_a_config_that_the_library_wrote_costs_the_same(shape: str, tmp_path: Path) -> None:
    AutoConfig.for_model(**SHAPES[shape]).save_pretrained(tmp_path)
    assert cost(read(tmp_path / "config.json")) == cost(SHAPES[shape])


@pytest.mark.parametrize("kind", FAMILIES)
def test_defaults_are_those_of_the_library(kind: str) -> None:
    config = AutoConfig.for_model(kind, use_sliding_window=True)  # without it Qwen forgets its window
    found = {name: getattr(config, name, getattr(config, f"_{name}", None)) for name in FAMILIES[kind].defaults}
    assert found == dict(FAMILIES[kind].defaults)


@pytest.mark.parametrize("name", PUBLISHED)
def test_real_shapes_have_the_published_size(name: str) -> None:
    total, active = PUBLISHED[name]
    counted = cost(read(CONFIGS / f"{name}.json"))
    assert counted.parameters == pytest.approx(total, rel=0.005)
    assert counted.active_parameters == pytest.approx(active or counted.active_parameters, rel=0.03)


@pytest.mark.parametrize("file", sorted(CONFIGS.glob("*.json")), ids=lambda file: file.stem)
def test_real_shapes_equal_the_modules(file: Path) -> None:
    with torch.device("meta"):  # stores nothing
        model = AutoModelForCausalLM.from_config(random_models.read_config(file))
    assert cost(read(file)).parameters == sum(p.numel() for p in model.parameters())


def test_latent_cache_of_v3() -> None:
    counted = cost(read(CONFIGS / "deepseek-v3.json"))
    assert counted.kv_bytes(1, "bfloat16") == 61 * (512 + 64) * 2 == 70_272
    assert counted.expanded_kv_bytes(1, "bfloat16") == 61 * 128 * (128 + 64 + 128) * 2


@pytest.mark.usefixtures("fresh")
def test_a_real_size_beyond_the_memory_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_models.psutil, "virtual_memory", type("Memory", (), {"available": 2**30}))
    with pytest.raises(BadInput, match=r"random:llama-2-7b needs 27.0 GB and this machine has 1.1 GB free"):
        load("random:llama-2-7b")


def test_counting_imports_no_torch() -> None:
    code = (
        "import sys; from pathlib import Path; from labkit.engine.cost import cost; from labkit.engine.fields import read;"
        "print(cost(read(Path(sys.argv[1]))).parameters, *sorted({'torch', 'transformers', 'numpy'} & set(sys.modules)))"
    )
    run = [sys.executable, "-c", code, str(CONFIGS / "deepseek-v3.json")]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "671026404352\n"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"model_type": "mamba"}, "'mamba': there is one for llama, qwen2, qwen3, mistral, gemma3_text, gpt2, gpt_neox, deepseek"),
    "no model type": ({"model_type": None}, "no cost model for model_type None"),
    "strange model type": ({"model_type": ["llama"]}, "no cost model for model_type"),
    "missing": ({"hidden_size": None}, "hidden_size must be a whole number of at least 1, not None"),
    "missing width": ({"intermediate_size": None}, "intermediate_size must be a whole number of at least 1"),
    "text": ({"vocab_size": "96"}, "vocab_size must be a whole number of at least 1, not '96'"),
    "fraction": ({"num_hidden_layers": 2.5}, "num_hidden_layers must be a whole number"),
    "negative": ({"num_hidden_layers": -1}, "num_hidden_layers must be a whole number"),
    "true as number": ({"num_attention_heads": True}, "num_attention_heads must be a whole number"),
    "number as truth": ({"tie_word_embeddings": 1}, "tie_word_embeddings must be true or false, not 1"),
    "heads": ({"num_attention_heads": 5}, "hidden_size 32 cannot be divided into 5 equal parts"),
    "key heads": ({"num_key_value_heads": 3}, "num_attention_heads 4 cannot be divided into 3 equal parts"),
    "layer types, length": ({"layer_types": ["full_attention"]}, "layer_types must name"),
    "layer types, kind": ({"layer_types": ["conv"] * 3}, "layer_types must name"),
    "layer types, text": ({"layer_types": "full_attention"}, "layer_types must name"),
    "no window for a windowed layer": ({"layer_types": ["sliding_attention"] * 3}, "sliding_window must be a whole number of at least 2"),
    "experts": (SHAPES["deepseek-v3"] | {"num_experts_per_tok": 9}, "num_experts_per_tok 9 is more than n_routed_experts 8"),
    "cross-attention": ({"model_type": "gpt2", **GPT2, "add_cross_attention": True}, "no cost model for a model with add_cross"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_config_is_one_line(case: str) -> None:
    change, line = WRONG[case]
    with pytest.raises(BadInput) as caught:
        cost(SHAPES["llama, every head its key"] | change)
    assert line in str(caught.value) and "\n" not in str(caught.value)


def test_an_unknown_dtype_is_one_line() -> None:
    with pytest.raises(BadInput, match="unknown dtype 'bf16'"):
        cost(SHAPES["gpt2"]).weight_bytes("bf16")


@pytest.mark.parametrize("text", ["{", "[]", "\xff", None])
def test_a_file_that_is_no_config_is_one_line(text: str | None, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    if text is not None:
        file.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput, match=r"not valid JSON|not a JSON object|does not exist"):
        read(file)
