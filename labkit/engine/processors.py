"""What changes scores before a token is chosen, in the light of the text so far. transformers' own processors do the work."""

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import LogitsProcessorList, NoRepeatNGramLogitsProcessor, RepetitionPenaltyLogitsProcessor

from labkit.errors import BadInput
from labkit.spec import Slot


@dataclass(frozen=True)
class Processors(Slot):
    """`repetition_penalty`: scores of tokens that were there are divided by it (1: off). `no_repeat_ngram`: no run of that many
    tokens comes twice (0: off)."""

    repetition_penalty: float = 1.0
    no_repeat_ngram: int = 0

    def __post_init__(self) -> None:
        if not self.repetition_penalty > 0:
            raise BadInput(f"repetition_penalty={self.repetition_penalty}: take a number above 0", "processors.repetition_penalty")
        if self.no_repeat_ngram < 0:
            raise BadInput(f"no_repeat_ngram={self.no_repeat_ngram}: take 0 (off) or more", "processors.no_repeat_ngram")

    def build(self) -> LogitsProcessorList:
        made = LogitsProcessorList()
        if self.repetition_penalty != 1:
            made.append(RepetitionPenaltyLogitsProcessor(self.repetition_penalty))
        if self.no_repeat_ngram:
            made.append(NoRepeatNGramLogitsProcessor(self.no_repeat_ngram))
        return made


def process(made: LogitsProcessorList, ids: Tensor, pad: Tensor | None, scores: Tensor) -> Tensor:
    """Scores (rows, vocabulary) of texts `ids` (rows, n) whose first `pad` (rows,) tokens are no text."""
    if not made or pad is None:
        return made(ids, scores) if made else scores
    rows = [made(ids[i : i + 1, pad[i] :], scores[i : i + 1]) for i in range(len(ids))]  # padding is not repetition
    return torch.cat(rows)
