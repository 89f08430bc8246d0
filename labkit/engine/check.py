"""Refusals, by capability: what a model, a machine and the built parts cannot do together, in one line."""

from typing import Any

from labkit.engine.load import Loaded
from labkit.env import Machine
from labkit.errors import BadInput


def check(work: Any, loaded: Loaded, machine: Machine, prompt_tokens: int) -> None:
    """Raise BadInput for a Decode that cannot run here. `field` of the error names the leaf to change."""
    if work.tokens < 1:
        raise BadInput(f"tokens={work.tokens}: ask for at least 1 new token", "tokens")
    if work.threads is not None and not 1 <= work.threads <= machine.cores:
        raise BadInput(f"threads={work.threads}: this machine has {machine.cores} cores", "threads")
    limit, needed = loaded.context_tokens, prompt_tokens + work.tokens
    if needed > limit:
        raise BadInput(
            f"the prompt has {prompt_tokens} tokens and {work.tokens} new ones make {needed}, but {loaded.name} "
            f"holds {limit}: shorten the prompt or ask for fewer tokens",
            "prompt",
        )
    can = machine.can(work.weights.dtype)
    if not can.ok:
        raise BadInput(f"{work.weights.dtype}: {can.reason}", "weights.dtype")
    if lacks := work.cache.grow.needs - loaded.gives:
        raise BadInput(
            f"{work.cache.grow.tag} cache needs {', '.join(sorted(lacks))} layers, which {loaded.name} does not have", "cache.grow"
        )
