"""Two other ways to hold the text so far: not at all, and in buffers of fixed length."""

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor
from transformers import PreTrainedModel, StaticCache

from labkit.engine.context import Cached, Context, fed
from labkit.errors import BadInput
from labkit.spec import Spec


class Recompute:
    """Nothing is kept: every step runs the whole text again."""

    def feed(self, ids: Tensor, new: int, pad: Tensor | None) -> dict[str, Any]:
        return fed(ids, ids.shape[1], pad) | {"use_cache": False}

    def fill(self, tokens: int, rows: int, seed: int) -> None:
        """Nothing to fill: the tokens themselves are the context."""

    def mark(self) -> None:
        """The tokens themselves are the mark."""

    def rewind(self, tokens: int) -> None:
        """Nothing to forget."""

    def reorder(self, parents: Tensor) -> None:
        """Nothing is kept, so nothing moves."""

    def nbytes(self) -> int:
        return 0


@dataclass(frozen=True)
class Off(Spec):
    """No cache."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def build(self, model: PreTrainedModel, length: int) -> Context:
        return Recompute()


@dataclass(frozen=True)
class Static(Spec):
    """Buffers for `max_tokens` positions, allocated once (transformers' StaticCache). 0: as long as the reply needs."""

    max_tokens: int = 0
    needs: ClassVar[frozenset[str]] = frozenset({"full-attention"})  # cropping a static window gives wrong logits

    def build(self, model: PreTrainedModel, length: int) -> Context:
        if self.max_tokens and self.max_tokens < length:
            raise BadInput(
                f"static cache of {self.max_tokens} tokens is too short: prompt and reply need {length}; raise max_tokens or leave it at 0",
                "cache.grow",
            )
        return Cached(lambda: StaticCache(config=model.config, max_cache_len=self.max_tokens or length), model)
