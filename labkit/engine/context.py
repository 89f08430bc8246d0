"""What a model sees of the text so far: the built part of `cache`. The engine calls it and never asks its kind."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, PreTrainedModel

from labkit.spec import Spec


class Context(Protocol):
    """Turns the whole text and the number of new tokens into one forward call."""

    def feed(self, ids: Tensor, new: int, pad: Tensor | None) -> dict[str, Any]:
        """Keyword arguments of the forward for text `ids` (rows, n) whose last `new` tokens are not yet known to it."""

    def fill(self, tokens: int, rows: int, seed: int) -> None:
        """Pretend that `tokens` positions of each row were seen: random keys and values of the right shape."""

    def mark(self) -> None:
        """Remember this length: `rewind` will come back to it."""

    def rewind(self, tokens: int) -> None:
        """Forget everything after the first `tokens` positions: none, or a length that was marked."""

    def reorder(self, parents: Tensor) -> None:
        """Row i goes on with the text of row `parents[i]`."""

    def nbytes(self) -> int:
        """Bytes that keys and values occupy now."""


def fed(ids: Tensor, new: int, pad: Tensor | None) -> dict[str, Any]:
    """The last `new` tokens with their positions; padding has none and is masked."""
    places = torch.arange(ids.shape[1], device=ids.device)[None]
    last = slice(ids.shape[1] - new, None)
    if pad is None:
        return {"input_ids": ids[:, last], "position_ids": places[:, last]}
    mask, positions = places >= pad[:, None], (places - pad[:, None]).clamp(min=0)
    return {"input_ids": ids[:, last], "position_ids": positions[:, last], "attention_mask": mask.long()}


class Cached:
    """A transformers cache: only new tokens are fed, keys and values of the others are kept."""

    def __init__(self, make: Callable[[], Cache], model: PreTrainedModel) -> None:
        self.make, self.model, self.cache = make, model, make()
        self.windowed = any(self.cache.is_sliding)  # a window has dropped what a cut would need
        self.marked: dict[int, Cache] = {}

    def __len__(self) -> int:
        return int(self.cache.get_seq_length())  # a static cache returns its live tensor

    def feed(self, ids: Tensor, new: int, pad: Tensor | None) -> dict[str, Any]:
        return fed(ids, new, pad) | {"cache": self.cache, "use_cache": True}

    def fill(self, tokens: int, rows: int, seed: int) -> None:
        probe = DynamicCache(config=self.model.config)  # one token through the model tells every layer's shapes
        one = torch.zeros(rows, 1, dtype=torch.long, device=self.model.device)
        self.model(input_ids=one, cache=probe, use_cache=True)
        own = torch.Generator(self.model.device).manual_seed(seed)
        for index, layer in enumerate(probe.layers):
            key, value = (_noise(t, tokens, own) for t in (layer.keys, layer.values))
            self.cache.update(key, value, index)
        self.mark()

    def mark(self) -> None:
        if self.windowed:
            self.marked[len(self)] = copy.deepcopy(self.cache)

    def rewind(self, tokens: int) -> None:
        extra = len(self) - tokens
        if extra and self.windowed:
            self.cache = copy.deepcopy(self.marked[tokens]) if tokens else self.make()
        elif extra:
            self.cache.crop(-extra)  # a negative count removes that many

    def reorder(self, parents: Tensor) -> None:
        self.cache.reorder_cache(parents)

    def nbytes(self) -> int:
        kept = [t for layer in self.cache.layers for t in (layer.keys, layer.values) if t is not None]
        return sum(t.numel() * t.element_size() for t in kept)


def _noise(like: Tensor, tokens: int, own: torch.Generator) -> Tensor:
    """Random rows with the spread of one real row: (rows, heads, 1, d) → (rows, heads, tokens, d)."""
    shape = (*like.shape[:2], tokens, like.shape[3])
    drawn = torch.randn(shape, generator=own, device=like.device, dtype=torch.float32)
    return (drawn * like.float().std(unbiased=False).clamp(min=1e-3)).to(like.dtype)


@dataclass(frozen=True)
class Dynamic(Spec):
    """The library's default: keys and values grow by one row a token (transformers' DynamicCache)."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def build(self, model: PreTrainedModel, length: int) -> Context:
        return Cached(lambda: DynamicCache(config=model.config), model)
