"""Looking inside a step: operators, the attention function's own time, and what has to be read and computed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from labkit.engine.decode import Live
from labkit.measure.clock import Clock

PROBE = "labkit-probe"


class _Counter(TorchDispatchMode):
    """Counts operators that reach the device; views cost no launch."""

    launches = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.launches += not func.is_view
        return func(*args, **(kwargs or {}))


def count_launches(live: Live) -> int:
    """Operators of one decode step at the prepared point."""
    live.rewind()
    with _Counter() as counter:
        live.advance(1)
    return counter.launches


@dataclass
class AttentionTrace:
    """What the attention function itself took, summed over layers."""

    seconds: float = 0.0
    flops: float = 0.0
    calls: int = 0


def _kernel(name: str, module: nn.Module) -> Callable[..., Any]:
    """The function that transformers would call; "eager" lives beside each model, not in the registry."""
    if name == "eager":
        return sys.modules[type(module).__module__].eager_attention_forward  # type: ignore[no-any-return]
    return ALL_ATTENTION_FUNCTIONS[name]  # type: ignore[no-any-return]


@contextmanager
def attention_probe(live: Live, clock: Clock) -> Iterator[AttentionTrace]:
    """Time and FLOPs of attention, taken inside the registered function: nothing is inferred from whole steps."""
    name, trace = live.work.attention.kernel, AttentionTrace()

    def probe(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **kwargs: Any) -> Any:
        start = clock.now()
        out = _kernel(name, module)(module, query, key, value, mask, **kwargs)
        trace.seconds += clock.now() - start
        rows, heads, asked, width = query.shape
        trace.flops += 2 * rows * heads * asked * key.shape[-2] * (width + value.shape[-1])
        trace.calls += 1
        return out

    AttentionInterface.register(PROBE, probe)
    AttentionMaskInterface.register(PROBE, ALL_MASK_ATTENTION_FUNCTIONS[name])
    live.model.set_attn_implementation(PROBE)
    try:
        yield trace
    finally:
        live.model.set_attn_implementation(name)
        AttentionInterface._global_mapping.pop(PROBE, None)
        AttentionMaskInterface._global_mapping.pop(PROBE, None)


def parameter_use(model: Any, positions: int) -> Iterator[tuple[nn.Parameter, float, float]]:
    """(parameter, share of it that is read, positions it is multiplied with) for a step over `positions` positions.

    An embedding is looked up, the head sees the last position only, and of E experts each token chooses k:
    bytes are read of every chosen expert, FLOPs follow the choices.
    """
    head, embedding = model.get_output_embeddings().weight, model.get_input_embeddings().weight
    experts = getattr(model.config, "n_routed_experts", None) or getattr(model.config, "num_local_experts", None)
    chosen = getattr(model.config, "num_experts_per_tok", None) or 0
    for p in model.parameters():
        if p is head:
            yield p, 1.0, 1.0
        elif p is embedding:
            yield p, min(1.0, positions / p.shape[0]), 0.0
        elif p.ndim == 3 and p.shape[0] == experts:
            yield p, min(1.0, positions * chosen / experts), positions * chosen / experts
        else:
            yield p, 1.0, float(positions) if p.ndim >= 2 else 0.0


@dataclass(frozen=True)
class StepCounts:
    """What one step has to do. FLOPs count a multiply and an add as two."""

    weight_bytes: int
    kv_bytes: int
    flops: float  # all that the step computes
    surplus_flops: float  # of these, what an equal answer would not need
    launches: int  # operators handed to the device
    transfer_s: float = 0.0  # between devices
    waiting_s: float = 0.0  # for a lock, a queue


def count_step(live: Live, clock: Clock) -> tuple[StepCounts, AttentionTrace]:
    """Count one decode step at the prepared point, and time its attention."""
    launches = count_launches(live)
    live.rewind()
    with attention_probe(live, clock) as trace:
        (event,) = live.advance(1)
    uses = list(parameter_use(live.model, event.positions))
    flops = sum(2 * p.numel() * rows for p, _, rows in uses) + trace.flops
    return StepCounts(
        weight_bytes=int(sum(p.nbytes * share for p, share, _ in uses)),
        kv_bytes=live.context.nbytes(),
        flops=flops,
        surplus_flops=flops * (event.positions - len(event.tokens)) / event.positions,
        launches=launches,
    ), trace
