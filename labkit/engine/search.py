"""From logits to tokens. A spec holds the parameters; what it builds chooses the next token of every row and keeps the reply."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from transformers import TopPLogitsWarper

from labkit.errors import BadInput
from labkit.spec import Spec

Process = Callable[[Tensor], Tensor]  # scores (rows, vocabulary) → scores, in the light of the text so far


@dataclass(frozen=True)
class Limits:
    """What ends a reply: `tokens` new ones, or one of `eos` (empty: ignored). `prompts`: replies written at once."""

    prompts: int
    tokens: int
    eos: frozenset[int]
    device: str


class Search(Protocol):
    """State of one run. `done` when no reply can change any more."""

    done: bool

    def choose(self, logits: Tensor, process: Process) -> tuple[Tensor | None, Tensor]:
        """(row that each new row continues, or None when each continues itself; the tokens (rows, 1))."""

    def reply(self, prompt: int) -> list[int]:
        """The best reply to a prompt so far."""


class OneByOne:
    """Every row is a reply of its own."""

    def __init__(self, limits: Limits, pick: Callable[[Tensor], Tensor]) -> None:
        self.limits, self.pick, self.done = limits, pick, False
        self.taken: list[list[int]] = [[] for _ in range(limits.prompts)]
        self.ended = [False] * limits.prompts

    def choose(self, logits: Tensor, process: Process) -> tuple[None, Tensor]:
        tokens = self.pick(process(logits))
        for row, token in enumerate(tokens[:, 0].tolist()):  # read back here: the device has finished
            if not self.ended[row]:
                self.taken[row].append(token)
                self.ended[row] = token in self.limits.eos
        self.done = all(self.ended)
        return None, tokens

    def reply(self, prompt: int) -> list[int]:
        return list(self.taken[prompt])


@dataclass(frozen=True)
class Greedy(Spec):
    """Always the most probable token."""

    rows: ClassVar[int] = 1

    def build(self, limits: Limits) -> Search:
        return OneByOne(limits, lambda scores: scores.argmax(-1, keepdim=True))


@dataclass(frozen=True)
class Sample(Spec):
    """Draw from softmax(logits ÷ temperature), among the most probable tokens that together reach `top_p`. The same seed draws the same."""

    temperature: float = 0.6
    top_p: float = 1.0
    seed: int = 0
    rows: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise BadInput(f"temperature must be above 0, got {self.temperature}; for the most probable token use greedy", "search")
        if not 0 < self.top_p <= 1:
            raise BadInput(f"top_p must be above 0 and at most 1, got {self.top_p}", "search")

    def build(self, limits: Limits) -> Search:
        own = torch.Generator(limits.device).manual_seed(self.seed)  # the global generator would be moved by other cells
        keep = TopPLogitsWarper(self.top_p) if self.top_p < 1 else lambda ids, scores: scores

        def pick(scores: Tensor) -> Tensor:
            return torch.multinomial(keep(None, scores.float() / self.temperature).softmax(-1), 1, generator=own)

        return OneByOne(limits, pick)
