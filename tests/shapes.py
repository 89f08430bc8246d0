"""Small models whose greedy text says something: scaled until tokens vary and no two logits lie close together."""

from dataclasses import dataclass

import torch
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from labkit.engine.decode import Decode, Live
from labkit.engine.load import Loaded, load
from labkit.engine.prompt import Start
from labkit.env import machine
from labkit.spec import Spec

VOCABULARY = 512


def llama(seed: int) -> PreTrainedModel:
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=128, intermediate_size=256, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=2048,
    )  # fmt: skip
    return scaled(LlamaForCausalLM, config, seed)


def v3(seed: int) -> PreTrainedModel:
    config = DeepseekV3Config(
        vocab_size=VOCABULARY, hidden_size=128, intermediate_size=256, moe_intermediate_size=64, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=4, n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=2, n_group=2,
        topk_group=1, first_k_dense_replace=1, kv_lora_rank=32, q_lora_rank=48, qk_rope_head_dim=16, qk_nope_head_dim=32,
        v_head_dim=32, max_position_embeddings=2048,
    )  # fmt: skip
    return scaled(DeepseekV3ForCausalLM, config, seed)


def scaled(cls: type, config: object, seed: int) -> PreTrainedModel:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = cls(config)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim >= 2:
                p.mul_(8.0 if "embed" in name else 4.0)
    return model.eval().requires_grad_(False)


def loaded(model: PreTrainedModel, name: str) -> Loaded:
    """The model as the loader would give it, with the byte tokenizer of the random models."""
    like = load("random:tiny-llama")
    return Loaded(name, model, like.tokenizer, "random", 2048, frozenset(), frozenset({"full-attention"}))


@dataclass(frozen=True)
class GivenIds(Spec):
    """Given token ids as a prompt."""

    ids: tuple[int, ...]

    def build(self, tokenizer, vocabulary) -> Start:
        return Start(torch.tensor([self.ids]))


def prompts(*lengths: int) -> tuple[GivenIds, ...]:
    own = torch.Generator().manual_seed(1)
    return tuple(GivenIds(tuple(torch.randint(3, 512, (n,), generator=own).tolist())) for n in lengths)


def run(shape, wanted: Decode) -> Live:
    with Live(wanted, machine("cpu"), shape) as live:
        list(live.steps())
    return live
