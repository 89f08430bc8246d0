"""From a config.json to the layers that transformers 5.24 builds from it: one row of a table per family. Imports no torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from labkit.engine.fields import Fields
from labkit.errors import BadInput

SLIDING, FULL = "sliding_attention", "full_attention"  # as layer_types names them


@dataclass(frozen=True)
class Layer:
    """One decoder layer. Weights of a matrix are also its multiply-adds for each row that it is multiplied with."""

    per_token: int  # weights that every new token is multiplied with; of the experts only the chosen ones
    per_key: int  # weights that every visible position, old or new, is multiplied with in every forward pass
    per_pair: int  # multiply-adds for one query and one visible position, over all heads
    kept: int  # elements that the library's cache keeps of one position
    expanded: int  # elements of one position as keys and values of every head
    vectors: int  # norms and biases
    idle: int = 0  # weights of the experts that a token did not choose
    window: int | None = None

    def stored(self, tokens: int) -> int:
        """Positions in the cache after `tokens`: a window of w keeps w - 1, because the next token is the w-th."""
        return tokens if self.window is None else min(tokens, self.window - 1)

    def multiply_adds(self, new: int, visible: int) -> int:
        """For `new` queries that each meet all `visible` positions: eager attention computes masked pairs, too."""
        return self.per_token * new + self.per_key * visible + self.per_pair * new * visible


@dataclass(frozen=True)
class Family:
    """What the library's code fixes for a model_type. A bias is named by the field that switches it, or by always, never."""

    attention: Callable[[Fields, "Family"], Layer]
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of fields that a config.json may leave out
    names: Mapping[str, str] = field(default_factory=dict)  # its own name of a field → the usual one
    qkv_bias: str = "attention_bias"
    out_bias: str = "attention_bias"
    mlp_bias: str = "never"
    mlp_inputs: int = 2  # matrices from hidden_size to intermediate_size: gate and up, or up alone
    norms: int = 2  # in each layer
    norm_vectors: int = 1  # RMSNorm has a weight, LayerNorm a weight and a bias
    qk_norm: bool = False
    learned_positions: bool = False
    widen: int = 0  # intermediate_size ÷ hidden_size where the file gives none
    experts: bool = False  # after the first_k_dense_replace layers
    slides: Callable[[int, Fields], bool] = lambda layer, c: True  # whether a layer has the window, if there is one


def grouped(c: Fields, family: Family) -> Layer:
    """Multi-head attention (Vaswani 2017), also with several query heads on one key/value head (Ainslie 2023)."""
    hidden, heads = c.count("hidden_size"), c.count("num_attention_heads")
    kv_heads = c.optional("num_key_value_heads") or heads
    c.part("num_attention_heads", kv_heads)
    head = c.optional("head_dim") or c.part("hidden_size", heads)
    q, kv = heads * head, kv_heads * head
    biases = (q + 2 * kv) * c.flag(family.qkv_bias) + hidden * c.flag(family.out_bias)
    return Layer(
        per_token=hidden * (2 * q + 2 * kv),
        per_key=0,
        per_pair=2 * q,
        kept=2 * kv,
        expanded=2 * kv,
        vectors=biases + 2 * head * family.qk_norm,
    )


def latent(c: Fields, family: Family) -> Layer:
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, 2.1): one latent and one rotary key for all heads."""
    hidden, heads, rank = c.count("hidden_size"), c.count("num_attention_heads"), c.count("kv_lora_rank")
    nope, rope, value = c.count("qk_nope_head_dim"), c.count("qk_rope_head_dim"), c.count("v_head_dim")
    q_rank, q = c.optional("q_lora_rank") or 0, heads * (nope + rope)
    queries = q_rank * (hidden + q) if q_rank else hidden * q
    return Layer(
        per_token=queries + hidden * (rank + rope) + heads * value * hidden,
        per_key=rank * heads * (nope + value),
        per_pair=heads * (nope + rope + value),
        kept=rank + rope,
        expanded=heads * (nope + rope + value),
        vectors=q_rank + rank + (q_rank + rank + rope + hidden) * c.flag(family.qkv_bias),
    )


def layers(c: Fields, family: Family) -> tuple[Layer, ...]:
    """Every layer: attention, feed-forward block, norms. Raises BadInput."""
    return tuple(_layer(c, family, index, window) for index, window in enumerate(_windows(c, family)))


def _dense(c: Fields, family: Family, width: int) -> tuple[int, int]:
    """Weights and biases of one feed-forward block of that width."""
    hidden = c.count("hidden_size")
    biases = (family.mlp_inputs * width + hidden) * c.flag(family.mlp_bias)
    return (family.mlp_inputs + 1) * hidden * width, biases


def _feed_forward(c: Fields, family: Family, index: int) -> tuple[int, int, int]:
    """Weights that a token meets, biases, and idle weights, of one layer: dense, or experts (DeepSeekMoE, arXiv:2401.06066)."""
    hidden = c.count("hidden_size")
    if not family.experts or index < c.count("first_k_dense_replace", 0):
        width = c.optional("intermediate_size") or family.widen * hidden or c.count("intermediate_size")
        return *_dense(c, family, width), 0
    width, routed, chosen = c.count("moe_intermediate_size"), c.count("n_routed_experts"), c.count("num_experts_per_tok")
    if chosen > routed:
        raise BadInput(f"config.json: num_experts_per_tok {chosen} is more than n_routed_experts {routed}", "num_experts_per_tok")
    shared, biases = _dense(c, family, width * c.count("n_shared_experts", 0))
    one = 3 * hidden * width  # routed experts have no biases
    return shared + hidden * routed + chosen * one, biases, (routed - chosen) * one


def _windows(c: Fields, family: Family) -> list[int | None]:
    """The window of each layer, None where it sees the whole text."""
    layers, windowed = range(c.count("num_hidden_layers")), c.optional("sliding_window", 2) is not None
    kinds = c.values.get("layer_types") or [SLIDING if windowed and family.slides(i, c) else FULL for i in layers]
    if not isinstance(kinds, list) or len(kinds) != len(layers) or any(kind not in (SLIDING, FULL) for kind in kinds):
        raise BadInput(f"config.json: layer_types must name {SLIDING} or {FULL} for each of {len(layers)} layers", "layer_types")
    return [c.count("sliding_window", 2) if kind == SLIDING else None for kind in kinds]


def _layer(c: Fields, family: Family, index: int, window: int | None) -> Layer:
    """Attention, feed-forward block and norms of one layer."""
    attention = family.attention(c, family)
    weights, biases, idle = _feed_forward(c, family, index)
    vectors = attention.vectors + biases + family.norms * family.norm_vectors * c.count("hidden_size")
    return replace(attention, per_token=attention.per_token + weights, vectors=vectors, idle=idle, window=window)


# Defaults are those of the library's config classes; a size that is not here must be in the file.
_gpt2_names = {
    "n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
    "n_inner": "intermediate_size", "n_positions": "max_position_embeddings",
}  # fmt: skip
_qwen = {"sliding_window": 4096, "max_window_layers": 28, "num_key_value_heads": 32}
_qwen2 = Family(
    grouped, _qwen, qkv_bias="always", out_bias="never",
    slides=lambda i, c: c.flag("use_sliding_window") and i >= c.count("max_window_layers", 0),
)  # fmt: skip
_plain = Family(grouped, mlp_bias="always", mlp_inputs=1, norm_vectors=2)
_v2 = {"q_lora_rank": 1536, "first_k_dense_replace": 0}
_gemma3 = {"sliding_window": 4096, "sliding_window_pattern": 6, "num_key_value_heads": 4, "head_dim": 256, "tie_word_embeddings": True}
FAMILIES = {
    "llama": Family(grouped, mlp_bias="mlp_bias"),
    "qwen2": _qwen2,
    "qwen3": replace(_qwen2, defaults=_qwen | {"head_dim": 128}, qkv_bias="attention_bias", out_bias="attention_bias", qk_norm=True),
    "mistral": Family(grouped, {"sliding_window": 4096, "num_key_value_heads": 8}, qkv_bias="never", out_bias="never"),
    "gemma3_text": Family(
        grouped, _gemma3, norms=4, qk_norm=True, slides=lambda i, c: (i + 1) % c.count("sliding_window_pattern") != 0
    ),
    "gpt2": replace(
        _plain, defaults={"tie_word_embeddings": True}, names=_gpt2_names, qkv_bias="always", out_bias="always",
        learned_positions=True, widen=4,
    ),
    "gpt_neox": replace(_plain, defaults={"attention_bias": True}),
    "deepseek_v2": Family(latent, _v2, mlp_bias="mlp_bias", experts=True),
    "deepseek_v3": Family(latent, _v2 | {"first_k_dense_replace": 3}, experts=True),
}  # fmt: skip
