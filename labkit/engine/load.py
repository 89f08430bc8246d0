"""Models by name. What comes back says where its weights are from, so that no record has to guess."""

import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from labkit.engine import smollm2
from labkit.engine.config import gives
from labkit.engine.folder import folder_model
from labkit.engine.quiet import quiet
from labkit.engine.random_models import random_model, shapes, stream_name
from labkit.env import ROOT
from labkit.errors import BadInput, unknown

TINY = "tiny-deepseek"  # ships with the repository; its card is in data/models
_one_at_a_time = threading.Lock()  # the switches of `quiet` belong to the whole process


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model with its tokenizer, on the machine's device, shared by all clones: never edited."""

    name: str  # resolved, e.g. "random:stream-1024"
    model: PreTrainedModel
    tokenizer: Any
    origin: str  # "random", "trained; de-quantized from Q4_1, stored as bfloat16", "local folder, stored as float16"
    context_tokens: int
    eos: frozenset[int]
    gives: frozenset[str]  # "full-attention" when no layer has a window


def names() -> list[str]:
    """What `load` knows by name; a stream also takes a width (random:stream-1024), and any local folder its path."""
    return [TINY, smollm2.NAME, "random:stream", "random:stream-v3", *shapes()]


def load(name: str, device: str = "cpu") -> Loaded:
    """The model of that name or local folder, kept for the next call. Downloads nothing. Raises BadInput."""
    with _one_at_a_time:
        return _load(_resolve(name), device)


def unload() -> None:
    """Free every model that nobody else holds."""
    _load.cache_clear()
    gc.collect()  # modules refer to each other in circles
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def get(name: str, say: Callable[[str], None] = print) -> None:
    """Fetch a model that is not made here, telling each stage. Raises BadInput when it cannot be had."""
    if name != smollm2.NAME:
        raise unknown("model to fetch", name, [smollm2.NAME])
    smollm2.get(say)


def _resolve(name: str) -> str:
    """The full name: with its width, or an absolute path."""
    if name.startswith(("./", "../", "~/")) or Path(name).is_absolute():
        return str(Path(name).expanduser().resolve())
    if stream := stream_name(name):
        return stream
    if name in names():
        return name
    raise unknown("model", name, names())


def _source(name: str) -> tuple[Any, Any, str]:
    """Model on the CPU, tokenizer, origin."""
    if name == smollm2.NAME:
        return smollm2.smollm2()
    if name == TINY:
        model, tokenizer, _ = folder_model(ROOT / "data" / "models" / TINY)
        return model, tokenizer, "trained for these labs, stored as bfloat16"
    return random_model(name) if name.startswith("random:") else folder_model(Path(name))


@lru_cache(maxsize=4)  # a lab works with three
def _load(name: str, device: str) -> Loaded:
    with quiet(), torch.random.fork_rng(devices=[]):  # building draws numbers; the caller's generator stays
        model, tokenizer, origin = _source(name)
        try:
            model = model.to(device).eval().requires_grad_(False)
        except torch.OutOfMemoryError as err:
            raise BadInput(f"{name} does not fit into the memory of {device}: take a smaller model") from err
    ends = model.generation_config.eos_token_id
    eos = {tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])} - {None}
    return Loaded(name, model, tokenizer, origin, model.config.max_position_embeddings, frozenset(eos), gives(model.config))
