"""Start weights that already look back, so that training refines a copying circuit instead of waiting for one.

Trained from plain noise, recall stays at chance for millions of tokens: the plateau is the head that attends to the previous
token (Olsson et al. 2022, "In-context learning and induction heads"). Here layer 0 gets heads at fixed offsets, two of which
write the previous token into a subspace; layer 1 gets heads that compare it with the present token and copy what followed.
"""

import math
from typing import Any

import torch
from torch import Tensor

OFFSETS = (1, 1, 2, 2, 3, 4)  # positions that the heads of layer 0 look back
PREVIOUS = (0, 1)  # heads of layer 0 that write
MATCHING = range(4)  # heads of layer 1 that match and copy
BANDS = (1, 1, 0.5, 0.3, 0.2, 0.1, 0.05, 0.05)  # weight of each rotary frequency, fast ones first
CONSTANT = 0.3  # length of the direction that all embeddings share, in units of their spread
SHARPNESS, MATCH, WRITE, COPY = 9.0, 5.0, 0.3, 0.5
QUERY = 6.0  # length of the constant in the query's latent


@torch.no_grad()
def look_back(model: Any) -> None:
    """Write the circuit into a freshly initialised DeepseekV3ForCausalLM with at least two layers and eight heads."""
    config, layers = model.config, model.model.layers
    for name, p in model.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight", "down_proj")):
            p *= (2 * config.num_hidden_layers) ** -0.5
    shared = _shared_direction(model)
    _offset_heads(layers[0].self_attn, shared, model.model.rotary_emb.inv_freq, config)
    bases = torch.linalg.qr(torch.randn(config.hidden_size, config.hidden_size, generator=torch.Generator().manual_seed(2)))[0].T
    key, width = config.qk_nope_head_dim, config.qk_nope_head_dim
    token, before, value = bases[:width], bases[width : 2 * width], bases[2 * width : 4 * width]
    _write_previous(layers[0].self_attn, token, before, config)
    _match_and_copy(layers[1].self_attn, token, before, value, key, config)


def _shared_direction(model: Any) -> Tensor:
    """Give all embeddings one common component: what a head needs to see that a position is there at all. (hidden,)"""
    config, table = model.config, model.model.embed_tokens.weight
    signs = (torch.randint(0, 2, (config.hidden_size,), generator=torch.Generator().manual_seed(1)) * 2 - 1).float()
    unit = signs / config.hidden_size**0.5
    table -= (table @ unit)[:, None] * unit
    table += CONSTANT * config.initializer_range * signs
    return unit


def _offset_heads(attention: Any, shared: Tensor, frequencies: Tensor, config: Any) -> None:
    """Heads whose rotary query is turned by a fixed number of positions against the key."""
    nope, rope, latent = config.qk_nope_head_dim, config.qk_rope_head_dim, config.kv_lora_rank
    seen = CONSTANT / math.sqrt(1 + CONSTANT**2) * config.hidden_size**0.5  # the shared component after the norm
    keys = attention.kv_a_proj_with_mqa.weight
    keys[latent:] *= 0.15
    keys[latent::2] += SHARPNESS / seen * shared
    attention.q_a_proj.weight[0] = QUERY / seen * shared
    noise = config.q_lora_rank * (16 * config.initializer_range) ** 2
    unit = QUERY / math.sqrt((QUERY**2 + noise) / config.q_lora_rank)
    heads = attention.q_b_proj.weight.view(config.num_attention_heads, nope + rope, -1)
    for head, offset in enumerate(OFFSETS):
        heads[head] *= 0.15
        for i in range(rope // 2):
            turn, size = offset * float(frequencies[i]), BANDS[min(i, len(BANDS) - 1)] * SHARPNESS / unit
            heads[head, nope + 2 * i, 0], heads[head, nope + 2 * i + 1, 0] = size * math.cos(turn), -size * math.sin(turn)


def _write_previous(attention: Any, token: Tensor, before: Tensor, config: Any) -> None:
    """Layer 0: the value is what identifies the token; the output puts it into the subspace `before`."""
    nope, width, heads = config.qk_nope_head_dim, config.v_head_dim, config.num_attention_heads
    attention.kv_a_proj_with_mqa.weight[:nope] = token
    up = attention.kv_b_proj.weight.view(heads, nope + width, -1)
    out = attention.o_proj.weight.view(config.hidden_size, heads, width)
    for head in PREVIOUS:
        up[head, nope:] = 0
        up[head, nope:, :nope] = torch.eye(width, nope)
        out[:, head] = before.T * WRITE


def _match_and_copy(attention: Any, token: Tensor, before: Tensor, value: Tensor, key: int, config: Any) -> None:
    """Layer 1: the query is this token, the key is the token before, the value is this token in another basis."""
    nope, rope, width, heads = config.qk_nope_head_dim, config.qk_rope_head_dim, config.v_head_dim, config.num_attention_heads
    down = attention.kv_a_proj_with_mqa.weight
    down[:key], down[key : config.kv_lora_rank] = 2 * before, value[: config.kv_lora_rank - key]
    attention.q_a_proj.weight[1 : 1 + key] = token
    query = attention.q_b_proj.weight.view(heads, nope + rope, -1)
    up = attention.kv_b_proj.weight.view(heads, nope + width, -1)
    out = attention.o_proj.weight.view(config.hidden_size, heads, width)
    for head in MATCHING:
        query[head], up[head] = 0, 0
        query[head, :key, 1 : 1 + key] = MATCH * torch.eye(key)
        up[head, :key, :key] = torch.eye(key)
        up[head, nope:, key : config.kv_lora_rank] = torch.eye(width)[:, : config.kv_lora_rank - key]
        out[:, head] = COPY * value[:width].T
