"""Toggles of dimension 2."""

from dataclasses import dataclass, field
from typing import ClassVar

from labkit.engine.context import Dynamic
from labkit.engine.decode import Decode
from labkit.memory.cache import Off, Static
from labkit.spec import with_leaf
from labkit.toggle import Toggle


@dataclass(frozen=True)
class KVToggle(Toggle):
    """What the three ways to keep keys and values have in common."""

    of: ClassVar = Decode
    dimension: ClassVar[str] = "memory"
    owns: ClassVar[str] = "cache.grow"
    label: ClassVar[str] = "KV cache"
    exact: ClassVar[bool] = True


@dataclass(frozen=True)
class NoKV(KVToggle):
    """Keep nothing: each step computes the whole text again."""

    name: ClassVar[str] = "no-kv"
    loses: ClassVar[str] = "Each step costs as much as a prefill of the whole text."

    def __call__(self, work: Decode) -> Decode:
        return with_leaf(work, self.owns, Off())


@dataclass(frozen=True)
class DynamicKV(KVToggle):
    """Keep keys and values, grown by one row a token."""

    name: ClassVar[str] = "dynamic-kv"
    loses: ClassVar[str] = "Every growth copies what is there; memory rises with each token."

    def __call__(self, work: Decode) -> Decode:
        return with_leaf(work, self.owns, Dynamic())


@dataclass(frozen=True)
class StaticKV(KVToggle):
    """Keep keys and values in buffers of fixed length."""

    name: ClassVar[str] = "static-kv"
    loses: ClassVar[str] = "Attention reads the whole buffer and a mask, also where nothing is written yet."
    cases: ClassVar = ({}, {"max_tokens": 256})

    max_tokens: int = field(default=0, metadata={"label": "length", "unit": "tokens (0: as needed)", "range": (0, 8192, 64)})

    def __call__(self, work: Decode) -> Decode:
        return with_leaf(work, self.owns, Static(self.max_tokens))


TOGGLES = [DynamicKV, StaticKV, NoKV]
