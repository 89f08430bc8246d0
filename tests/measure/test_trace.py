"""What a step reads, computes and launches, against the modules themselves."""

import pytest

from labkit.algorithm.toggles import Eager
from labkit.engine.cost import cost
from labkit.engine.decode import Decode, Live
from labkit.engine.prompt import RandomKV
from labkit.env import machine
from labkit.measure.clock import FakeClock, RealClock
from labkit.measure.trace import count_step, parameter_use
from labkit.memory.toggles import NoKV
from labkit.toggle import stack
from tests.shapes import llama, loaded, v3

HERE = machine("cpu")


def counts(model, name, *toggles, context=64):
    with Live(stack(Decode("given", RandomKV(context), tokens=2), toggles), HERE, loaded(model, name)) as live:
        live.prepare()
        return count_step(live, FakeClock(1e-3))


def test_llama_reads_every_weight_but_the_embedding():
    model = llama(0)
    found, attention = counts(model, "llama")
    every = sum(p.nbytes for p in model.parameters())
    embedding = model.get_input_embeddings().weight.nbytes
    assert found.weight_bytes == pytest.approx(every - embedding, rel=0.01)
    assert found.kv_bytes == 3 * 2 * 2 * 32 * 65 * 4  # layers, keys and values, heads, width, tokens, bytes
    assert attention.calls == 3 and attention.flops == 3 * 2 * 4 * 65 * 64
    assert attention.seconds == pytest.approx(3e-3)


def test_experts_are_read_by_choice():
    model = v3(0)
    experts = {id(p): p for p in model.parameters() if p.ndim == 3}
    assert experts
    for p, read in parameter_use(model, 1):
        if id(p) in experts:
            assert read == 2 / 8
    assert all(read == 1.0 for p, read in parameter_use(model, 64) if id(p) in experts)


@pytest.mark.parametrize("kernel", [None, Eager()], ids=["sdpa", "eager"])
@pytest.mark.parametrize(("make", "context"), [(llama, 64), (v3, 64), (v3, 300)], ids=["llama", "v3", "v3-long"])
def test_flops_of_a_cached_step_equal_the_cost_model(make, context, kernel):
    model = make(0)
    found, _ = counts(model, "given", *([kernel] if kernel else []), context=context)
    assert found.flops == cost(model.config.to_dict()).step_flops(context)


@pytest.mark.parametrize("make", [llama, v3], ids=["llama", "v3"])
def test_flops_without_a_cache_equal_a_prefill_in_the_cost_model(make):
    model = make(0)
    found, _ = counts(model, "given", NoKV())
    assert found.flops == cost(model.config.to_dict()).prefill_flops(65)


def test_without_a_cache_nearly_all_flops_are_surplus():
    cached, _ = counts(llama(0), "llama")
    naive, _ = counts(llama(0), "llama", NoKV())
    assert cached.surplus_flops == 0 and naive.kv_bytes == 0
    assert naive.surplus_flops / naive.flops == pytest.approx(64 / 65, abs=0.001)
    assert naive.flops > 30 * cached.flops


def test_eager_attention_launches_more_than_sdpa():
    assert counts(llama(0), "llama", Eager())[0].launches > counts(llama(0), "llama")[0].launches


def test_the_probe_leaves_nothing_behind():
    with Live(Decode("given", RandomKV(8), tokens=2), HERE, loaded(llama(0), "llama")) as live:
        live.prepare()
        before = count_step(live, RealClock())[0]
        assert live.model.config._attn_implementation == "sdpa"
        assert count_step(live, RealClock())[0] == before
