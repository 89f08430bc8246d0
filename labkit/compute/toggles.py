"""Toggles of dimension 1."""

from dataclasses import dataclass, field
from typing import ClassVar

from labkit.engine.decode import Decode
from labkit.env import cores
from labkit.errors import BadInput, unknown
from labkit.spec import with_leaf
from labkit.toggle import Toggle

DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Dtype(Toggle):
    """Store the weights in fewer bits and compute in them."""

    of: ClassVar = Decode
    name: ClassVar[str] = "dtype"
    dimension: ClassVar[str] = "compute"
    owns: ClassVar[str] = "weights.dtype"
    label: ClassVar[str] = "weights"
    exact: ClassVar[bool] = False
    loses: ClassVar[str] = "Without units for the short format each weight is widened first, which costs more than the bytes saved."
    cases: ClassVar = ({"dtype": "bfloat16"},)

    dtype: str = field(default="bfloat16", metadata={"label": "dtype", "choices": DTYPES})

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise unknown("dtype", self.dtype, DTYPES)

    def __call__(self, work: Decode) -> Decode:
        return with_leaf(work, self.owns, self.dtype)


@dataclass(frozen=True)
class Threads(Toggle):
    """Use that many processor threads inside a step."""

    of: ClassVar = Decode
    name: ClassVar[str] = "threads"
    dimension: ClassVar[str] = "compute"
    owns: ClassVar[str] = "threads"
    label: ClassVar[str] = "threads"
    exact: ClassVar[bool] = True
    loses: ClassVar[str] = "Threads wait for each other: when another process takes a core, two can be slower than one."
    cases: ClassVar = ({"count": 1},)

    count: int = field(default=1, metadata={"label": "count", "unit": "threads", "range": (1, cores(), 1)})

    def __post_init__(self) -> None:
        if self.count < 1:
            raise BadInput(f"threads:count={self.count}: use at least 1", "threads")

    def __call__(self, work: Decode) -> Decode:
        return with_leaf(work, self.owns, self.count)


TOGGLES = [Dtype, Threads]
