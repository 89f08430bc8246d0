"""Toggles of dimension 4."""

from dataclasses import dataclass, field
from typing import ClassVar

from labkit.engine.beam import EARLY, Beams
from labkit.engine.decode import Decode
from labkit.engine.search import Sample
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


@dataclass(frozen=True)
class SearchToggle(Toggle):
    """What the ways to choose the next token have in common: another text than the most probable tokens in turn."""

    of: ClassVar = Decode
    dimension: ClassVar[str] = "algorithm"
    owns: ClassVar[str] = "search"
    label: ClassVar[str] = "search"
    exact: ClassVar[bool] = False


@dataclass(frozen=True)
class BeamSearch(SearchToggle):
    """Keep several running texts and take the most probable whole."""

    name: ClassVar[str] = "beam-search"
    loses: ClassVar[str] = "Every step computes all beams, and their keys and values are moved; open-ended text gets more repetitive."
    cases: ClassVar = ({}, {"count": 2, "early_stopping": "yes"})

    count: int = field(default=4, metadata={"label": "beams", "range": (1, 8, 1)})
    early_stopping: str = field(default="no", metadata={"label": "early stopping", "choices": EARLY})

    def __call__(self, work: Decode) -> Decode:
        return with_leaf(work, self.owns, Beams(self.count, self.early_stopping))


@dataclass(frozen=True)
class Sampled(SearchToggle):
    """Draw each token from the model's distribution."""

    name: ClassVar[str] = "sampled"
    loses: ClassVar[str] = "Costs no time; the text is another with each seed, and less probable."
    cases: ClassVar = ({}, {"temperature": 1.0, "top_p": 0.9})

    temperature: float = field(default=0.6, metadata={"label": "temperature", "range": (0.05, 5.0, 0.05)})
    top_p: float = field(default=1.0, metadata={"label": "top-p", "range": (0.05, 1.0, 0.05)})

    def __call__(self, work: Decode) -> Decode:
        return with_leaf(work, self.owns, Sample(self.temperature, self.top_p))


@dataclass(frozen=True)
class RepetitionPenalty(Toggle):
    """Make tokens that were there less probable."""

    of: ClassVar = Decode
    name: ClassVar[str] = "repetition-penalty"
    dimension: ClassVar[str] = "algorithm"
    owns: ClassVar[str] = "processors.repetition_penalty"
    label: ClassVar[str] = "repetition penalty"
    exact: ClassVar[bool] = False
    loses: ClassVar[str] = "It also punishes names, numbers and full stops that have to come again."

    penalty: float = field(default=1.3, metadata={"label": "penalty", "unit": "(1: off)", "range": (0.5, 3.0, 0.05)})

    def __call__(self, work: Decode) -> Decode:
        return with_leaf(work, self.owns, self.penalty)


@dataclass(frozen=True)
class NoRepeatNgram(Toggle):
    """Forbid every run of so many tokens that was there, in prompt or reply."""

    of: ClassVar = Decode
    name: ClassVar[str] = "no-repeat-ngram"
    dimension: ClassVar[str] = "algorithm"
    owns: ClassVar[str] = "processors.no_repeat_ngram"
    label: ClassVar[str] = "no repeated n-gram"
    exact: ClassVar[bool] = False
    loses: ClassVar[str] = "Good prose repeats its phrases: with 2 the model must avoid its own words."

    size: int = field(default=2, metadata={"label": "n", "unit": "tokens (0: off)", "range": (0, 8, 1)})

    def __call__(self, work: Decode) -> Decode:
        return with_leaf(work, self.owns, self.size)


TOGGLES = [Sdpa, Eager, BeamSearch, Sampled, RepetitionPenalty, NoRepeatNgram]
