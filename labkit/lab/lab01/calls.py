"""What only lab 01 measures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from labkit.engine.decode import Decode
from labkit.engine.load import load
from labkit.engine.prompt import RandomTokens, Text
from labkit.lab import figures
from labkit.lab.child import in_child
from labkit.lab.ladder import verdict_text
from labkit.lab.measuring import MeasuringLab
from labkit.measure.attribute import Attribution
from labkit.measure.curve import Curve
from labkit.measure.ladder import Row, write_reply
from labkit.measure.lock import exclusive
from labkit.measure.stats import Ratio, paired_ratio
from labkit.spec import encode
from labkit.toggle import Toggle, stack

NAIVE_ROUNDS = 2  # a step without a cache is a whole prefill: seconds each
EXPLAINED_AT = 512  # tokens of context at which both strips are drawn


@dataclass(frozen=True)
class Curves:
    """The two series of the lab. `origin`: busy processes and record of the cached one, for its verdicts."""

    cached: Curve
    naive: Curve
    origin: dict[str, Any]

    def growth(self, low: int, high: int) -> Ratio:
        """Time at `high` ÷ time at `low` with a cache, from the same rounds."""
        at = dict(zip(self.cached.contexts, self.cached.samples_s, strict=True))
        return paired_ratio(at[high], at[low])

    def doublings(self, *lengths: int) -> list[float]:
        """Time of a whole reply of 2n tokens ÷ one of n, with a cache."""
        return [self.cached.whole_reply_s(2 * n) / self.cached.whole_reply_s(n) for n in lengths]

    def told(self) -> str:
        """Where the two steps went, in one sentence from their strips."""
        with_cache, without = (strip.share for strip in self.strips().values())
        reading = with_cache("weights") + with_cache("kv")
        return (
            f"At {EXPLAINED_AT} tokens a step with a cache spends {reading:.0%} on reading weights, keys and values, and "
            f"{with_cache('unexplained'):.0%} is unexplained; without a cache {without('surplus'):.0%} is surplus, positions computed again, "
            f"and {without('unexplained'):.0%} unexplained. Much unexplained time means that the machine was busy, or that a ceiling was."
        )

    def strips(self) -> dict[str, Attribution]:
        """One step of each series, taken apart at the same context."""
        return {"cache": self.cached.detail.attribution, "no cache": self.naive.detail.attribution}


class Lab01(MeasuringLab):
    """The generation loop."""

    def positions(self, work: Decode, off: Toggle, rows: Sequence[str]) -> None:
        """Which positions each step computes, counted on a real run with and without a cache."""
        counted = []
        for toggles in ([off], []):
            with exclusive("positions computed"), stack(work, toggles).open(self.machine) as live:
                counted.append([event.positions for event in live.steps()])
        ends = counted[0]  # without a cache a step computes all positions; with one, only what is new
        self.recorder.write("positions computed per step", rows, values={"no_cache": ends, "cache": counted[1]}, tokens=len(ends))
        self.story.figure(*figures.positions(ends, counted[1]))

    def cache_growth(self, work: Decode) -> None:
        """Shapes and bytes of the first layer's keys and values after each step."""
        with exclusive("the growth of the cache"), work.open(self.machine) as live:
            for step, event in enumerate(live.steps(), start=1):
                layer = live.context.cache.layers[0]  # type: ignore[attr-defined]
                shapes = f"keys {tuple(layer.keys.shape)}, values {tuple(layer.values.shape)}"
                print(f"step {step}: context {event.context} · layer 0 {shapes} · {live.context.nbytes():,} bytes in all layers")

    def curves(self, step: Decode, contexts: Sequence[int], off: Toggle, naive_contexts: Sequence[int], rows: Sequence[str]) -> Curves:
        """Time per token against context, with and without a cache."""
        cached, origin = self.curve(step, [], contexts, rows, self.pick(8, 16, 40), EXPLAINED_AT)
        naive, _ = self.curve(step, [off], naive_contexts, rows, self.pick(NAIVE_ROUNDS, NAIVE_ROUNDS, 8), EXPLAINED_AT, probes=0)
        self.story.figure(*figures.growth(cached, naive))
        return Curves(cached, naive, origin)

    def say_dtype(self, ladders: Mapping[str, list[Row]]) -> None:
        """One sentence a model: what half the bytes did, and what the step was bound by."""
        said = []
        for name, (base, half) in ladders.items():
            was, now = (row.attribution.bound if row.attribution else "not explained" for row in (base, half))
            said.append(f"The {name} model: {verdict_text(half)}, {half.ratio}; in float32 {was}, in bfloat16 {now}.")
        reason = self.machine.can("bfloat16").reason
        self.say(" ".join([*said, f"About this machine: {reason}. Half the bytes help only where bytes are what a step waits for."]))

    def memory_by_length(self, work: Decode, totals: Sequence[int], rows: Sequence[str]) -> None:
        """Memory by name for several lengths in all (prompt and reply), each in a process of its own."""
        prompt = 16
        found = []
        for total in totals:
            one = replace(work, prompt=RandomTokens(prompt), tokens=total - prompt)
            with exclusive("memory in a fresh process"):
                memory = in_child(one, self.machine.device)
            self.recorder.write(f"memory at {total} tokens", rows, model=work.model, work=encode(one), memory=memory,
                                reasons=memory["why"], tokens=one.tokens)  # fmt: skip
            found.append(memory)
        names = [n for n in found[0] if n != "why"]
        for name in names:
            values = " · ".join(f"{t:,} tokens {m[name] / 1e6:,.1f} MB" for t, m in zip(totals, found, strict=True) if m[name] is not None)
            print(f"{name:<13}{values or 'null: ' + found[0]['why'][name]}")
        if len(totals) > 1:
            self.story.figure(*figures.memory(totals, [m["kv"] for m in found], [m["process_peak"] or m["process"] for m in found]))

    def limits(self, key: str, ids: Sequence[str], short: int, long: int, rows: Sequence[str]) -> None:
        """Wall time of replies at two limits that count the prompt, end-of-text ignored and allowed; each once forth and once back."""
        if "real" in self.missing:
            self.undecided(key, self.missing["real"])
            return
        cases = [(limit, eos) for eos in (False, True) for limit in (short, long)]
        seconds, ended = dict.fromkeys(cases, 0.0), True
        with self.measuring("two limits") as busy:
            self._limited(ids[0], short, False)  # warm-up
            for prompt, (limit, eos) in [(i, case) for i in ids for order in (cases, cases[::-1]) for case in order]:
                took_s, whole = self._limited(prompt, limit, eos)
                seconds[limit, eos] += took_s
                ended = ended and (whole or not eos or limit == short)
        ignored, allowed = (seconds[long, eos] / seconds[short, eos] for eos in (False, True))
        values = {"short": short, "long": long, "ignored": ignored, "allowed": allowed, "ended": ended, "prompts": list(ids)}
        record = self.recorder.write("wall time at two limits", rows, busy, model=self.model("real"), values=values)
        self.settle(key, busy, record, ignored=ignored, allowed=allowed, ended=ended)

    def _limited(self, prompt: str, limit: int, stop_at_eos: bool) -> tuple[float, bool]:
        """Seconds of a reply under `limit` tokens in all, the prompt counted (as max_length does); whether it ended by itself."""
        text, loaded = Text(self.prompts[prompt], chat=True), load(self.model("real"), self.machine.device)
        new = max(1, limit - text.build(loaded.tokenizer, 0).ids.shape[1])
        with Decode(self.model("real"), text, tokens=new, stop_at_eos=stop_at_eos).open(self.machine) as live:
            tokens, timeline = write_reply(live)
            return timeline.at_s[-1], tokens[-1] in loaded.eos

    def total_speeds(self, key: str, prompts: Sequence[int], tokens: int, rows: Sequence[str]) -> None:
        """Three speeds of the same replies, by prompt length, after a warm-up."""
        found = {}
        with self.measuring("three speeds") as busy:
            for n in (prompts[0], *prompts):
                with Decode(self.model("speed"), RandomTokens(n), tokens=tokens).open(self.machine) as live:
                    found[n] = write_reply(live)[1]
        speeds = {n: (t.decode_tps, t.new_over_all_tps, t.all_over_all_tps) for n, t in found.items()}
        names = ("decode_tps", "new_tps", "all_tps")
        record = self.recorder.write("three speeds of one reply", rows, busy, model=self.model("speed"), tokens=tokens * len(prompts),
                                     values={"prompts": list(prompts), **{n: [s[i] for s in speeds.values()] for i, n in enumerate(names)}})  # fmt: skip
        for n, (decode, new, everything) in speeds.items():
            print(f"{n:>5} prompt tokens: decode {decode:.1f} · new ÷ all time {new:.1f} · all ÷ all time {everything:.1f} tokens/s")
        self.settle(key, busy, record, **{name: {n: s[i] for n, s in speeds.items()} for i, name in enumerate(names)})
