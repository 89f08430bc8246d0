"""What a reply starts from: text, random tokens, or a context that is pretended to be long already."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.errors import BadInput
from labkit.spec import Spec


@dataclass(frozen=True)
class Start:
    """Token ids (rows, n). The first `filled` are not computed: their keys and values are random. The first `pad` (rows,) are no text."""

    ids: Tensor
    filled: int = 0
    pad: Tensor | None = None


@dataclass(frozen=True)
class Text(Spec):
    """A text. `chat`: wrapped in the model's chat template, if it has one."""

    text: str
    chat: bool = False

    def build(self, tokenizer: Any, vocabulary: int) -> Start:
        if not self.text.strip():
            raise BadInput("the prompt is empty: write at least one word", "prompt")
        if self.chat and getattr(tokenizer, "chat_template", None):
            turn = [{"role": "user", "content": self.text}]
            ids = tokenizer.apply_chat_template(turn, add_generation_prompt=True, return_tensors="pt", return_dict=True)["input_ids"]
        else:
            ids = tokenizer(self.text, return_tensors="pt", add_special_tokens=False)["input_ids"]
        return Start(ids)


def _at_least_one(tag: str, tokens: int) -> None:
    if tokens < 1:
        raise BadInput(f"{tag}: tokens={tokens}: a prompt has at least 1 token", "prompt")


@dataclass(frozen=True)
class RandomTokens(Spec):
    """`tokens` random token ids: a prompt of exact length for timing. Labelled random."""

    tokens: int
    seed: int = 0

    def __post_init__(self) -> None:
        _at_least_one(self.tag, self.tokens)

    def build(self, tokenizer: Any, vocabulary: int) -> Start:
        own = torch.Generator().manual_seed(self.seed)
        return Start(torch.randint(0, vocabulary, (1, self.tokens), generator=own))


@dataclass(frozen=True)
class Batch(Spec):
    """Several prompts, each a row. Shorter ones are padded on the left, so that all end where the reply begins."""

    prompts: tuple[Spec, ...]

    def build(self, tokenizer: Any, vocabulary: int) -> Start:
        starts = [prompt.build(tokenizer, vocabulary) for prompt in self.prompts]  # type: ignore[attr-defined]
        if not starts or any(start.filled for start in starts):
            raise BadInput("a batch takes one prompt or more, and none that pretends its context", "prompt")
        longest = max(start.ids.shape[1] for start in starts)
        pad = torch.tensor([longest - start.ids.shape[1] for start in starts])
        rows = [torch.nn.functional.pad(start.ids, (int(n), 0)) for start, n in zip(starts, pad, strict=True)]
        return Start(torch.cat(rows), pad=pad if pad.any() else None)


@dataclass(frozen=True)
class RandomKV(Spec):
    """A context of `tokens` positions whose keys and values are random: a long text without its prefill.

    The time of a step does not depend on what the keys hold; the text does, so records label it random.
    """

    tokens: int
    seed: int = 0

    def __post_init__(self) -> None:
        _at_least_one(self.tag, self.tokens)

    def build(self, tokenizer: Any, vocabulary: int) -> Start:
        ids = RandomTokens(self.tokens, self.seed).build(tokenizer, vocabulary).ids
        return Start(ids, filled=self.tokens - 1)  # the last token is really computed: it gives the first logits
