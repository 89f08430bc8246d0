"""Beam search: keep the `count` most probable texts, not only the most probable next token."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from labkit.engine.search import Limits, Process, Search
from labkit.errors import BadInput
from labkit.spec import Spec

NEVER_FIRST = -1e9  # all beams start equal: only the first may be continued in the first step
EARLY = ("yes", "no", "never")


@dataclass(frozen=True)
class Beams(Spec):
    """`count` running texts a prompt. A finished text scores log-probability ÷ length ** `length_penalty`.

    `early_stopping`: "yes" ends with `count` finished texts; "no" when the best running text, at its present length, is
    worse than all of them; "never" when it could not get better at any length (transformers' True, False, "never").
    """

    count: int = 4
    early_stopping: str = "no"
    length_penalty: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.count <= 8:
            raise BadInput(f"{self.count} beams: take 1 to 8", "search")
        if self.early_stopping not in EARLY:
            raise BadInput(f"early_stopping={self.early_stopping!r}: take one of {', '.join(EARLY)}", "search")

    @property
    def rows(self) -> int:
        return self.count

    def build(self, limits: Limits) -> Search:
        return BeamSearch(self, limits)


@dataclass
class _Prompt:
    """The beams of one prompt: running texts with their log-probabilities, and the best finished ones with their scores."""

    running: list[list[int]]
    scores: Tensor  # (count,)
    finished: list[tuple[float, list[int]]] = field(default_factory=list)
    closed: bool = False


class BeamSearch:
    """All prompts step together, `count` rows each."""

    rows: ClassVar[int]

    def __init__(self, spec: Beams, limits: Limits) -> None:
        self.spec, self.limits, self.done, self.length = spec, limits, False, 0
        scores = torch.full((spec.count,), NEVER_FIRST, device=limits.device)
        scores[0] = 0.0
        self.prompts = [_Prompt([[] for _ in range(spec.count)], scores.clone()) for _ in range(limits.prompts)]

    def choose(self, logits: Tensor, process: Process) -> tuple[Tensor, Tensor]:
        self.length += 1
        scores = process(logits.float().log_softmax(-1)).view(len(self.prompts), self.spec.count, -1)
        chosen = [self._advance(beams, rows) for beams, rows in zip(self.prompts, scores, strict=True)]
        self.done = all(beams.closed for beams in self.prompts)
        parents = torch.cat([part + index * self.spec.count for index, (part, _) in enumerate(chosen)])
        return parents, torch.cat([tokens for _, tokens in chosen])[:, None]

    def _advance(self, beams: _Prompt, scores: Tensor) -> tuple[Tensor, Tensor]:
        """One step of one prompt; scores (count, vocabulary) → parents (count,), tokens (count,)."""
        count, vocabulary = scores.shape
        wanted = max(2, 1 + len(self.limits.eos)) * count  # even if every beam ends, enough are left to go on
        best, flat = (scores + beams.scores[:, None]).flatten().topk(wanted)
        parents, tokens = flat // vocabulary, flat % vocabulary
        texts = [beams.running[p] + [t] for p, t in zip(parents.tolist(), tokens.tolist(), strict=True)]
        last = self.length == self.limits.tokens
        ended = torch.tensor([last or text[-1] in self.limits.eos for text in texts], device=best.device)
        if not beams.closed:
            self._finish(beams, [(float(best[i]), texts[i]) for i in range(count) if ended[i]])
        going = (best + ended * NEVER_FIRST).topk(count).indices
        beams.running, beams.scores = [texts[i] for i in going.tolist()], best[going]
        beams.closed = beams.closed or last or self._cannot_improve(beams)
        return parents[going], tokens[going]

    def _finish(self, beams: _Prompt, texts: list[tuple[float, list[int]]]) -> None:
        """Add texts that ended among the `count` best; the pool keeps the `count` best scores."""
        scored = [(score / self.length**self.spec.length_penalty, text) for score, text in texts]
        beams.finished = sorted(beams.finished + scored, key=lambda pair: -pair[0])[: self.spec.count]

    def _cannot_improve(self, beams: _Prompt) -> bool:
        if len(beams.finished) < self.spec.count:
            return False
        longest = self.spec.early_stopping == "never" and self.spec.length_penalty > 0
        length = self.limits.tokens if longest else self.length
        hoped = float(beams.scores[0]) / length**self.spec.length_penalty
        greedy = self.spec.count == 1  # one beam has nothing to wait for
        return greedy or self.spec.early_stopping == "yes" or hoped <= beams.finished[-1][0]

    def scored(self, prompt: int) -> list[tuple[float, list[int]]]:
        """(score, tokens) of the finished texts, best first; of the running ones while none has finished."""
        beams = self.prompts[prompt]
        running = [(float(s), text) for s, text in zip(beams.scores, beams.running, strict=True)]
        return beams.finished or running

    def reply(self, prompt: int) -> list[int]:
        return list(self.scored(prompt)[0][1])
