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
PRODUCTS = {"linear": 0, "mm": 0, "bmm": 0, "matmul": 0, "_grouped_mm": 0, "addmm": 1, "baddbmm": 1}  # operator → place of the left matrix


@dataclass
class AttentionTrace:
    """What the attention function itself took, summed over layers."""

    seconds: float = 0.0
    flops: float = 0.0
    calls: int = 0
    inside: bool = False


class _Counter(TorchDispatchMode):
    """Counts operators that reach the device, for views cost no launch, and FLOPs of matrix products outside attention."""

    def __init__(self, attention: AttentionTrace) -> None:
        super().__init__()
        self.attention, self.launches, self.flops = attention, 0, 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.launches += not func.is_view
        place = PRODUCTS.get(func.overloadpacket.__name__)
        if place is not None and not self.attention.inside:
            self.flops += 2 * out.numel() * args[place].shape[-1]
        return out


def count_launches(live: Live) -> int:
    """Operators of one decode step at the prepared point."""
    live.rewind()
    with _Counter(AttentionTrace()) as counter:
        live.advance(1)
    return counter.launches


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
        trace.inside, start = True, clock.now()
        out = _kernel(name, module)(module, query, key, value, mask, **kwargs)
        trace.seconds, trace.inside = trace.seconds + clock.now() - start, False
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


def parameter_use(model: Any, positions: int) -> Iterator[tuple[nn.Parameter, float]]:
    """(parameter, share of its bytes that a step over `positions` positions reads).

    An embedding is looked up, and of E experts each position chooses k.
    """
    head, embedding = model.get_output_embeddings().weight, model.get_input_embeddings().weight
    experts = getattr(model.config, "n_routed_experts", None) or getattr(model.config, "num_local_experts", None)
    chosen = getattr(model.config, "num_experts_per_tok", None) or 0
    for p in model.parameters():
        if p is head:
            yield p, 1.0
        elif p is embedding:
            yield p, min(1.0, positions / p.shape[0])
        elif p.ndim == 3 and p.shape[0] == experts:
            yield p, min(1.0, positions * chosen / experts)
        else:
            yield p, 1.0


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
    """Count one decode step at the prepared point, and time its attention in another: counting slows it down."""
    live.rewind()
    with attention_probe(live, clock) as counted, _Counter(counted) as counter:
        live.advance(1)
    live.rewind()
    with attention_probe(live, clock) as trace:
        (event,) = live.advance(1)
    flops, launches = counter.flops + trace.flops, counter.launches
    return StepCounts(
        weight_bytes=int(sum(p.nbytes * share for p, share in parameter_use(live.model, event.positions))),
        kv_bytes=live.context.nbytes(),
        flops=flops,
        surplus_flops=flops * (event.positions - len(event.tokens)) / event.positions,
        launches=launches,
    ), trace
