"""What the text is worth: does a variant write the same, how surprised is it by the base's reply, and does it repeat itself?"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.engine.decode import Live
from labkit.measure.stats import paired_ratio

SCORED = 24  # tokens of the reply at most; each costs a step
WORSE = 0.01  # perplexity that rises by more than this share is called worse
NGRAM = 4


@dataclass(frozen=True)
class Quality:
    """A reply against the base's. `first_difference`: index of the first other token, None if there is none.

    `surprise_nats`: loss of each scored token of the base's reply under this variant. `kl_nats`: mean divergence of the variant's
    distributions from the base's on that reply. `repeated`: share of the reply's 4-grams that were there before.
    """

    tokens: int
    first_difference: int | None
    repeated: float
    surprise_nats: tuple[float, ...] = field(default=(), repr=False)
    kl_nats: float | None = None
    why: str = ""  # reason of a missing score

    @property
    def perplexity(self) -> float | None:
        """exp of the mean surprise."""
        return float(torch.tensor(self.surprise_nats).mean().exp()) if self.surprise_nats else None

    def __str__(self) -> str:
        if self.first_difference is None:
            return f"same {self.tokens} tokens"
        return f"differs from token {self.first_difference + 1} of {self.tokens}"

    def worse_than(self, base: "Quality") -> bool:
        """Whether it finds the base's reply more surprising, token by token; without scores nobody can say, so no."""
        if not self.surprise_nats or len(self.surprise_nats) != len(base.surprise_nats):
            return False
        mine, theirs = (torch.tensor(q.surprise_nats).exp().tolist() for q in (self, base))
        return paired_ratio(mine, theirs).low > 1 + WORSE


def repeated_ngrams(tokens: Sequence[int], n: int = NGRAM) -> float:
    """rep-n: share of the n-grams that were there before; 0 for a text shorter than n. 1 - rep-n is distinct-n."""
    grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


def score(live: Live, reply: Sequence[int]) -> Tensor:
    """log-probabilities (tokens, vocabulary) at each of the first SCORED tokens of `reply`, fed token by token."""
    return live.forced(torch.tensor([reply[:SCORED]], device=live.prompt.device)).float().log_softmax(-1)


def quality(reply: Sequence[int], base_reply: Sequence[int], scores: Tensor | None, base_scores: Tensor | None, why: str = "") -> Quality:
    """Compare a variant's own reply with the base's, as far as both go; `scores` are those of the base's reply under each."""
    pairs = list(zip(reply, base_reply, strict=False))
    first = next((i for i, (mine, theirs) in enumerate(pairs) if mine != theirs), None)
    repeated = repeated_ngrams(reply)
    if scores is None or base_scores is None:
        return Quality(len(pairs), first, repeated, why=why)
    wanted = torch.tensor(base_reply[: len(scores)], device=scores.device)
    surprise = F.nll_loss(scores, wanted, reduction="none")
    kl = F.kl_div(scores, base_scores, log_target=True, reduction="batchmean")
    return Quality(len(pairs), first, repeated, tuple(surprise.tolist()), float(kl))
