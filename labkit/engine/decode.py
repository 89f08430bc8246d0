"""The Decode workload: one reply, token by token. `steps()` → `stream()` → `generate()`, each a thin consumer of the last."""

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from labkit.engine.check import check
from labkit.engine.clone import cast, clone
from labkit.engine.context import Context, Dynamic
from labkit.engine.load import Loaded, load
from labkit.engine.processors import Processors, process
from labkit.engine.prompt import RandomTokens
from labkit.engine.search import Greedy, Limits, Search
from labkit.env import Machine
from labkit.spec import Slot, Spec


@dataclass(frozen=True)
class Weights(Slot):
    """How weights are held. `dtype`: float32, bfloat16 or float16."""

    dtype: str = "float32"


@dataclass(frozen=True)
class Attention(Slot):
    """`kernel`: the attention function's name in transformers' registry."""

    kernel: str = "sdpa"


@dataclass(frozen=True)
class CacheSlot(Slot):
    """`grow`: a spec that builds what is kept of the text so far."""

    grow: Spec = Dynamic()


@dataclass(frozen=True)
class Decode(Spec):
    """Replies to a prompt, or to a batch. `tokens` new tokens at most; the end-of-text token is ignored unless `stop_at_eos`."""

    model: str
    prompt: Spec = RandomTokens(16)
    tokens: int = 64
    weights: Weights = Weights()
    attention: Attention = Attention()
    cache: CacheSlot = CacheSlot()
    search: Spec = Greedy()
    processors: Processors = Processors()
    threads: int | None = None  # None: the machine's default
    stop_at_eos: bool = False

    def open(self, machine: Machine, stop: threading.Event | None = None) -> "Live":
        """Build a live run; use it as a context manager. Raises BadInput when this machine or model cannot do it."""
        return Live(self, machine, load(self.model, machine.device), stop or threading.Event())


@dataclass(frozen=True)
class Event:
    """One step: the tokens it chose (one per row), how many positions it computed in all rows, and the context length after it.

    Not `settled`: a search may still drop them; `Live.reply` has the text so far.
    """

    tokens: tuple[int, ...]
    positions: int
    context: int
    replies: int = 1  # tokens that a reader gets: one a prompt, however many beams
    prefill: bool = False
    settled: bool = True


@contextmanager
def settings(threads: int) -> Iterator[None]:
    """Process-wide and per-thread switches, entered around each timed slice and never held across a yield."""
    before = torch.get_num_threads()
    if before != threads:
        torch.set_num_threads(threads)
    try:
        with torch.inference_mode():
            yield
    finally:
        if before != threads:
            torch.set_num_threads(before)


@dataclass
class Live:
    """An opened Decode. Built in one fixed order: clone → dtype → attention → cache → search."""

    work: Decode
    machine: Machine
    loaded: Loaded
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.threads = self.work.threads or self.machine.threads
        start = self.work.prompt.build(self.loaded.tokenizer, self.loaded.model.config.vocab_size)  # type: ignore[attr-defined]
        check(self.work, self.loaded, self.machine, start.ids.shape[1])
        self.prompts, self.rows, self.filled = len(start.ids), self.work.search.rows, start.filled  # type: ignore[attr-defined]
        self.prompt = start.ids.repeat_interleave(self.rows, 0).to(self.machine.device)
        self.pad = None if start.pad is None else start.pad.repeat_interleave(self.rows).to(self.machine.device)
        self.model = cast(clone(self.loaded.model), self.work.weights.dtype)
        self.model.set_attn_implementation(self.work.attention.kernel)
        self.context: Context = self.work.cache.grow.build(self.model, self.prompt.shape[1] + self.work.tokens)  # type: ignore[attr-defined]
        self.processors = self.work.processors.build()
        self.ids = self.prompt[:, :0]
        self.restart()

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the clone and the cache; the shared weights stay with the loader."""
        self.__dict__.pop("model", None)
        self.__dict__.pop("context", None)

    def restart(self) -> None:
        """Back to the prompt, before its prefill. A pretended context is filled once and kept."""
        known = self.filled if self.ids.shape[1] else 0
        self.context.rewind(known)
        if self.filled and not known:
            with settings(self.threads):
                self.context.fill(self.filled, len(self.prompt), seed=0)
        self.ids = self.prompt[:, : self.filled]
        eos = self.loaded.eos if self.work.stop_at_eos else frozenset()
        self.search: Search = self.work.search.build(Limits(self.prompts, self.work.tokens, eos, self.machine.device))  # type: ignore[attr-defined]

    def reply(self, prompt: int = 0) -> list[int]:
        """The best reply to a prompt so far, as token ids."""
        return self.search.reply(prompt)

    def forward(self, new: Tensor) -> Tensor:
        """Append `new` (rows, k) to the text and run the model once: logits of the last position (rows, vocabulary)."""
        self.ids = torch.cat([self.ids, new], dim=1)
        with settings(self.threads):
            call = self.context.feed(self.ids, new.shape[1], self.pad)
            self.positions = call["input_ids"].numel()
            return self.model(**call, logits_to_keep=1).logits[:, -1]

    def step(self, new: Tensor, prefill: bool = False) -> Event:
        """One forward over `new`, one token a row out. The tokens are read back, so the device has finished."""
        parents, tokens = self.search.choose(self.forward(new), self._process)
        if parents is not None:
            self.context.reorder(parents)
            self.ids = self.ids[parents]
        return Event(tuple(tokens[:, 0].tolist()), self.positions, self.ids.shape[1], self.prompts, prefill, settled=parents is None)

    def _process(self, scores: Tensor) -> Tensor:
        return process(self.processors, self.ids, self.pad, scores)

    def steps(self) -> Iterator[Event]:
        """From the prompt: the first event is the prefill with its token, each later one a single decode step."""
        self.restart()
        new = self.prompt[:, self.filled :]
        for index in range(self.work.tokens):
            event = self.step(new, prefill=index == 0)
            yield event
            if self.search.done or self.stop.is_set():
                return
            new = torch.tensor([event.tokens], device=self.prompt.device).T

    def prepare(self) -> Event:
        """Prefill and remember this point, so that slices of decode steps can be timed from it again and again."""
        self.restart()
        event = self.step(self.prompt[:, self.filled :], prefill=True)
        self.context.mark()
        self.first, self.mark, self.searched = event.tokens, self.ids.shape[1], copy.deepcopy(self.search)
        return event

    def rewind(self) -> None:
        """Back to the point that `prepare` remembered."""
        self.context.rewind(self.mark)
        self.ids = self.ids[:, : self.mark]
        self.search = copy.deepcopy(self.searched)

    def advance(self, steps: int) -> list[Event]:
        """`steps` decode steps from the remembered point; fewer when stopped."""
        events: list[Event] = []
        tokens = self.first
        while len(events) < steps and not self.stop.is_set():
            events.append(self.step(torch.tensor([tokens], device=self.prompt.device).T))
            tokens = events[-1].tokens
        return events

    def stream(self) -> Iterator[str]:
        """Text of the first reply as it becomes readable: a character of several tokens when it is whole, a beam when it has won."""
        shown = ""
        for event in self.steps():
            text = self.text() if event.settled else ""
            if len(text) > len(shown) and not text.endswith("\ufffd"):
                yield text[len(shown) :]
                shown = text
        yield self.text()[len(shown) :]

    def text(self, prompt: int = 0) -> str:
        """The best reply to a prompt so far."""
        return str(self.loaded.tokenizer.decode(self.reply(prompt), skip_special_tokens=True))

    def generate(self) -> str:
        """The whole reply."""
        return "".join(self.stream())

    def forced(self, ids: Tensor) -> Tensor:
        """Teacher-forced logits: prefill, then feed `ids` (1, k) one by one to every row. → (k, vocabulary) of the first row, fewer when stopped."""
        self.restart()
        rows = [self.forward(self.prompt[:, self.filled :])[:1]]
        for i in range(ids.shape[1] - 1):
            if self.stop.is_set():
                break
            rows.append(self.forward(ids[:, i : i + 1].expand(len(self.prompt), 1))[:1])
        return torch.cat(rows)
