"""The oracle: generation with nothing clever in it. Every optimization is compared with these few lines."""

import torch
from torch import Tensor


@torch.inference_mode()
def generate(model: torch.nn.Module, ids: Tensor, tokens: int) -> Tensor:
    """Greedy tokens without a cache: each step reads the whole text again. ids (1, n) → (1, tokens)."""
    text = ids
    for _ in range(tokens):
        logits = model(input_ids=text, use_cache=False).logits  # (1, length, vocabulary)
        next_id = logits[:, -1:].argmax(-1)  # only the last row is used; the others were computed for nothing
        text = torch.cat([text, next_id], dim=1)
    return text[:, ids.shape[1] :]


@torch.inference_mode()
def logits(model: torch.nn.Module, ids: Tensor) -> Tensor:
    """Teacher-forced logits of a given text: (1, n) → (n, vocabulary)."""
    return model(input_ids=ids, use_cache=False).logits[0]
