"""What the text is worth: does a variant write the same, and how surprised is it by the base's reply?"""

from dataclasses import dataclass

import torch

from labkit.engine.decode import Live

SCORED = 24  # tokens of the reply at most; each costs a step
WORSE = 0.01  # perplexity that rises by more than this share is called worse


@dataclass(frozen=True)
class Quality:
    """A reply against the base's. `first_difference`: index of the first other token, None if there is none."""

    tokens: int
    first_difference: int | None
    perplexity: float | None  # of the base's reply under this variant
    why: str = ""  # reason of a missing perplexity

    def __str__(self) -> str:
        if self.first_difference is None:
            return f"same {self.tokens} tokens"
        return f"differs from token {self.first_difference + 1} of {self.tokens}"

    def worse_than(self, base: "Quality") -> bool:
        """Whether the text got measurably worse; without perplexity nobody can say, so no."""
        known = self.perplexity is not None and base.perplexity is not None
        return known and self.perplexity > base.perplexity * (1 + WORSE)  # type: ignore[operator]


def perplexity(live: Live, reply: list[int]) -> float:
    """exp of the mean negative log-likelihood of `reply` after the prompt, fed token by token."""
    ids = torch.tensor([reply], device=live.prompt.device)
    logits = live.forced(ids).float()
    return float(torch.nn.functional.cross_entropy(logits, ids[0, : len(logits)]).exp())


def quality(live: Live, reply: list[int], base_reply: list[int]) -> Quality:
    """Compare a variant's own reply with the base's, as far as both go, and score the base's reply."""
    pairs = list(zip(reply, base_reply, strict=False))
    first = next((i for i, (mine, theirs) in enumerate(pairs) if mine != theirs), None)
    if live.loaded.origin.startswith("random"):
        return Quality(len(pairs), first, None, "random weights: their text says nothing")
    surprise = None if live.stop.is_set() else perplexity(live, base_reply[:SCORED])
    if live.stop.is_set():  # perhaps meanwhile
        return Quality(len(pairs), first, None, "stopped before the text was scored")
    return Quality(len(pairs), first, surprise)
