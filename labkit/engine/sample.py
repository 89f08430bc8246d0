"""From logits to a token. A spec holds the parameters, `build` gives the function that the loop calls."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.errors import BadInput
from labkit.spec import Spec

Pick = Callable[[Tensor], Tensor]  # logits (rows, vocabulary) → token ids (rows, 1)


@dataclass(frozen=True)
class Greedy(Spec):
    """Always the most probable token."""

    def build(self, device: str) -> Pick:
        return lambda logits: logits.argmax(-1, keepdim=True)


@dataclass(frozen=True)
class Temperature(Spec):
    """Draw from softmax(logits / value). `value` > 0; the same seed draws the same text."""

    value: float = 0.6
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.value > 0:
            raise BadInput(f"temperature must be above 0, got {self.value}; for the most probable token use greedy", "sample")

    def build(self, device: str) -> Pick:
        own = torch.Generator(device).manual_seed(self.seed)  # the global generator would be moved by other cells

        def pick(logits: Tensor) -> Tensor:
            return torch.multinomial((logits.float() / self.value).softmax(-1), 1, generator=own)

        return pick
