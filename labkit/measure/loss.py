"""How surprised a model is by a text: loss per token, perplexity, bits per byte."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


@torch.inference_mode()
def losses(model: Any, ids: Tensor, window: int, stride: int | None = None) -> Tensor:
    """Negative log-likelihood in nats of ids[1:], (n - 1,); `ids` (n,). Windows move on by `stride` (the whole window if
    None), and a token is scored once, in the first window that holds it: with at least window - stride tokens before it."""
    stride = stride or window
    found, scored = [], 1  # the first token has nothing before it
    while scored < len(ids):
        end = min(max(window, scored + stride), len(ids))
        part = ids[max(0, end - window - 1) : end]  # the model reads all but the last
        logits = model(part[None, :-1], logits_to_keep=end - scored).logits[0].float()
        found.append(F.cross_entropy(logits, ids[scored:end], reduction="none"))
        scored = end
    return torch.cat(found)


def perplexity_of(nats: Tensor) -> float:
    """exp of the mean loss per token."""
    return float(nats.double().mean().exp())


def bits_per_byte(nats: Tensor, text: str) -> float:
    """Comparable between tokenizers, and with a file compressor."""
    return float(nats.double().sum()) / math.log(2) / len(text.encode("utf-8"))
