"""The engine on one small model of every family: exact toggles give the oracle's logits and tokens, and slices repeat."""

from dataclasses import replace

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from labkit.engine import naive
from labkit.engine.config import gives
from labkit.engine.decode import Decode, Live
from labkit.engine.prompt import Batch
from labkit.env import machine
from labkit.errors import BadInput
from labkit.lab.catalogue import TOGGLES, text
from labkit.toggle import Toggle, stack
from tests.shapes import loaded, prompts, run, scaled

PLAIN = {
    "vocab_size": 512, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip
MLA = {
    **PLAIN, "moe_intermediate_size": 32, "num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": 24, "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
    "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1,
}  # fmt: skip
FAMILIES = {
    "llama": PLAIN,
    "qwen2": PLAIN,
    "qwen3": PLAIN,
    "mistral": {**PLAIN, "sliding_window": 16},
    "gemma3_text": {**PLAIN, "sliding_window": 16, "sliding_window_pattern": 2, "head_dim": 16},
    "gpt2": {"vocab_size": 512, "n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 256},
    "gpt_neox": PLAIN,
    "deepseek_v2": {**MLA, "topk_method": "greedy"},
    "deepseek_v3": MLA,
}
EXACT = [cls(**case) for cls in TOGGLES if cls.exact for case in cls.cases]
WINDOWED = {"mistral", "gemma3_text"}
TOKENS = 24


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    config = AutoConfig.for_model(request.param, **FAMILIES[request.param])
    model = scaled(AutoModelForCausalLM.from_config, config, seed=3)
    return replace(loaded(model, request.param), context_tokens=256, gives=gives(config))


def base(length: int = 20) -> Decode:
    return Decode("family", prompts(length)[0], TOKENS, threads=1)


@pytest.fixture(scope="module")
def oracle(family):
    ids = torch.tensor([base().prompt.ids])
    tokens = naive.generate(family.model, ids, TOKENS)
    logits = naive.logits(family.model, torch.cat([ids, tokens], dim=1))[ids.shape[1] - 1 : -1]
    return tokens, logits


def refused(toggle: Toggle, family) -> bool:
    return toggle.name == "static-kv" and family.name in WINDOWED


@pytest.mark.parametrize("toggle", EXACT, ids=text)
def test_each_exact_toggle_equals_the_oracle(family, oracle, toggle):
    work = stack(base(), [toggle])
    if refused(toggle, family):
        with pytest.raises(BadInput, match="full-attention"):
            Live(work, machine("cpu"), family)
        return
    tokens, logits = oracle
    with Live(work, machine("cpu"), family) as live:
        assert float((live.forced(tokens) - logits).abs().max()) <= 1e-4
        for _ in range(2):  # the second reply starts from a cache that was used
            list(live.steps())
            assert live.reply() == tokens[0].tolist()


def test_slices_repeat_past_a_window(family, oracle):
    tokens, _ = oracle
    with Live(base(), machine("cpu"), family) as live:
        live.prepare()
        for steps in (TOKENS - 1, 5):
            live.rewind()
            assert [event.tokens[0] for event in live.advance(steps)] == tokens[0, 1 : steps + 1].tolist()


def test_rows_of_a_batch_equal_their_solo_runs(family):
    both = replace(base(), prompt=Batch(prompts(9, 20)))
    solo = [run(family, replace(both, prompt=prompt)).reply() for prompt in both.prompt.prompts]
    live = run(family, both)
    assert [live.reply(0), live.reply(1)] == solo
