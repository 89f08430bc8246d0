"""Toggles of dimension 4."""

from dataclasses import dataclass
from typing import ClassVar

from labkit.engine.decode import Decode
from labkit.spec import with_leaf
from labkit.toggle import Toggle


@dataclass(frozen=True)
class KernelToggle(Toggle):
    """What the attention kernels have in common: equal sums, in another order."""

    of: ClassVar = Decode
    dimension: ClassVar[str] = "algorithm"
    owns: ClassVar[str] = "attention.kernel"
    label: ClassVar[str] = "attention"
    exact: ClassVar[bool] = True


@dataclass(frozen=True)
class Sdpa(KernelToggle):
    """PyTorch's fused scaled dot product attention."""

    name: ClassVar[str] = "sdpa"
    loses: ClassVar[str] = "It gives no attention weights to look at."

    def __call__(self, work: Decode) -> Decode:
        return with_leaf(work, self.owns, "sdpa")


@dataclass(frozen=True)
class Eager(KernelToggle):
    """Attention as separate matmul, softmax, matmul: the score matrix is written out."""

    name: ClassVar[str] = "eager"
    loses: ClassVar[str] = "The score matrix is written to memory and read back: heads × queries × keys numbers."

    def __call__(self, work: Decode) -> Decode:
        return with_leaf(work, self.owns, "eager")


TOGGLES = [Sdpa, Eager]
