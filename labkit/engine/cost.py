"""What a model costs, from its config.json alone: parameters, bytes and FLOPs, without weights and without torch.

Counted is what transformers 5.24 does with that config: the modules it builds, what a DynamicCache(config=...) keeps, and the
matrix products of eager attention for one text (batch 1). A multiply and an add are two FLOPs; norms, rotary angles, softmax,
activations and embedding look-ups are not counted, as in torch's FlopCounterMode, which the tests hold these numbers against.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labkit.engine.families import FAMILIES, Layer, layers
from labkit.engine.fields import Fields
from labkit.errors import BadInput, unknown

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1, "int8": 1}


@dataclass(frozen=True)
class Cost:
    """Parameters, bytes and FLOPs of one model. A tied head counts once; buffers are no parameters; no multi-token-prediction head."""

    layers: tuple[Layer, ...]
    hidden: int
    vocabulary: int
    positions: int  # rows of a learned position table, 0 with rotary positions
    tied: bool
    final_norm: int

    @property
    def parameters(self) -> int:
        """All weights."""
        tables = (2 - self.tied) * self.vocabulary + self.positions
        return tables * self.hidden + self.final_norm + sum(x.per_token + x.per_key + x.vectors + x.idle for x in self.layers)

    @property
    def active_parameters(self) -> int:
        """Weights that a step for one token reads: no idle experts, and of a table that is only looked up one row."""
        unread_rows = (not self.tied) * (self.vocabulary - 1) + max(0, self.positions - 1)
        return self.parameters - unread_rows * self.hidden - sum(x.idle for x in self.layers)

    def weight_bytes(self, dtype: str) -> int:
        """Bytes of all weights when each is stored in `dtype`.

        Loaded in bfloat16, the library leaves DeepSeek-V3's router in float32: 0.02 % more at full size, not counted here.
        """
        return self.parameters * _bytes(dtype)

    def kv_bytes(self, tokens: int, dtype: str) -> int:
        """Bytes that the library's cache holds after `tokens`; `kv_bytes(1, ...)` is what a token adds until a window is full.

        Of DeepSeek's latent attention the library keeps the latent and the rotary key, not the heads' keys and values.
        """
        return sum(x.kept * x.stored(tokens) for x in self.layers) * _bytes(dtype)

    def expanded_kv_bytes(self, tokens: int, dtype: str) -> int:
        """The same if the keys and values of every head were kept; differs from `kv_bytes` for latent attention only."""
        return sum(x.expanded * x.stored(tokens) for x in self.layers) * _bytes(dtype)

    def prefill_flops(self, tokens: int) -> int:
        """FLOPs of `tokens` in one forward pass, the head at the last position only.

        Each token meets all of them, later ones and those outside a window included; a kernel that skips what the mask hides
        does half of the attention part (`per_pair`), or less.
        """
        return self._flops([x.multiply_adds(tokens, tokens) for x in self.layers])

    def step_flops(self, context: int) -> int:
        """FLOPs of one new token after `context` tokens. Latent attention expands all of them again in every step."""
        return self._flops([x.multiply_adds(1, x.stored(context) + 1) for x in self.layers])

    def _flops(self, multiply_adds: list[int]) -> int:
        return 2 * (self.vocabulary * self.hidden + sum(multiply_adds))


def cost(config: Mapping[str, Any]) -> Cost:
    """The cost of the model that a config.json describes. Raises BadInput in one line: unknown model_type, missing or wrong value."""
    family = FAMILIES.get(str(config.get("model_type")))
    if family is None:
        raise BadInput(f"no cost model for model_type {config.get('model_type')!r}: there is one for {', '.join(FAMILIES)}")
    own = {family.names.get(name, name): value for name, value in config.items()}
    c = Fields({**family.defaults, **own, "always": True, "never": False})
    if other := [name for name in ("add_cross_attention", "use_bidirectional_attention") if c.flag(name)]:
        raise BadInput(f"no cost model for a model with {other[0]}", other[0])
    hidden = c.count("hidden_size")
    return Cost(
        layers=layers(c, family),
        hidden=hidden,
        vocabulary=c.count("vocab_size"),
        positions=c.count("max_position_embeddings") if family.learned_positions else 0,
        tied=c.flag("tie_word_embeddings"),
        final_norm=family.norm_vectors * hidden,
    )


def _bytes(dtype: str) -> int:
    if dtype not in DTYPE_BYTES:
        raise unknown("dtype", dtype, DTYPE_BYTES)
    return DTYPE_BYTES[dtype]
