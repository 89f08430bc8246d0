"""A trial that measures nothing, and the machine, base and rows that the tests of the lab's face share."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pytest

from labkit.engine.decode import Decode
from labkit.env import Capability, Machine
from labkit.lab.catalogue import TOGGLES, text
from labkit.measure.attribute import Attribution, Part
from labkit.measure.ladder import Progress, Row
from labkit.measure.stats import Ratio
from labkit.spec import Spec
from labkit.toggle import Toggle

BASE = Decode("random:tiny-llama")
CASES = [pytest.param(cls(**case), id=f"{cls.name}-{i}") for cls in TOGGLES for i, case in enumerate(cls.cases)]
HOSTILE = '<img src=x onerror="alert(1)">&'
NO_FP16 = {"float16": Capability(False, "this processor has no fp16 units")}


def machine(**capabilities: Capability) -> Machine:
    return Machine("test", "test", 2, 1, 2**33, "cpu", "test", {}, "none", capabilities)


def attribution(factor: float = 1.0, unexplained_s: float = 0.002, note: str = "") -> Attribution:
    parts = [("weights", 0.02), ("kv", 0.006), ("arithmetic", 0.004), ("dispatch", 0.005)]
    made = [Part(name, seconds * factor, "bytes ÷ ceiling") for name, seconds in parts] + [Part("unexplained", unexplained_s, "the rest")]
    return Attribution(sum(p.seconds for p in made), tuple(made), "bandwidth", note)


def row(*toggles: str, ratio: float | None = 1.78, verdict: str = "faster", label: str = "variant", partial: bool = False) -> Row:
    where = attribution(1 / ratio if ratio else 1.0)
    between = Ratio(ratio, ratio * 0.98, ratio * 1.02) if ratio else None
    return Row(label, toggles, where.seconds, between, verdict, "same 48 tokens", 12.41, 4_720_000, where, partial, "r1")


BASE_ROW = row(ratio=None, verdict="base", label="base")


def trial(tokens: int = 20, token_s: float = 0.005) -> Callable[..., list[Row]]:
    """A trial that writes `tokens` words, one each `token_s`, and ends at the first one after `stop` is set."""

    def run(toggles: list[Toggle], stop: threading.Event, on: Callable[[Progress], None]) -> list[Row]:
        done = 0
        while done < tokens and not stop.is_set():
            time.sleep(token_s)
            run.done = done = done + 1  # type: ignore[attr-defined]
            on(Progress("reply", done, tokens, 1 / token_s, f"{HOSTILE} word " * done))
        names = tuple(text(t) for t in toggles)
        run.calls.append((names, done))  # type: ignore[attr-defined]
        made = [replace(BASE_ROW, partial=stop.is_set())]
        if names:
            made.append(replace(row(*names, partial=stop.is_set()), text=f"same {done} tokens"))
        return made

    run.calls = []  # type: ignore[attr-defined]
    return run


@dataclass(frozen=True)
class Probe(Toggle):
    """A toggle that checks nothing itself."""

    of: ClassVar = Spec
    name: ClassVar[str] = "probe"
    owns: ClassVar[str] = "nothing"

    kind: str = field(default="a", metadata={"choices": ("a", "b")})
    rate: float = field(default=0.5, metadata={"range": (0.0, 1.0, 0.1), "unit": "per second"})

    def __call__(self, work):
        return work
