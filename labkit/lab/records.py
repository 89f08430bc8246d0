"""Records of a lab: filled from what was measured, written at once, acknowledged in the notebook's output."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labkit.engine.clone import survives
from labkit.env import Machine
from labkit.measure.ladder import Rung
from labkit.measure.record import Record, machine_entry, write
from labkit.spec import encode


class Recorder:
    """Writes the records of one lab and prints an acknowledgement for each."""

    def __init__(self, lab: str, mode: str, machine: Machine) -> None:
        self.lab, self.mode, self.machine = lab, mode, machine
        self.ids: list[str] = []

    def _append(self, what: str, rows: Sequence[str], busy: Sequence[str], fields: Mapping[str, Any]) -> str:
        """Fields that a measurement does not have stay empty."""
        blank: dict[str, Any] = {
            "model": "", "origin": "", "toggles": (), "work": None, "threads": self.machine.threads, "warm": True,
            "samples_s": [], "median_s": None, "spread_s": None, "tokens": 0,
        }  # fmt: skip
        entry = Record(
            lab=self.lab,
            what=what,
            rows=tuple(rows),
            mode=self.mode,
            machine=machine_entry(self.machine),
            busy=tuple(busy),
            **(blank | dict(fields)),
        )
        self.ids.append(write(entry))
        return self.ids[-1]

    def write(self, what: str, rows: Sequence[str], busy: Sequence[str] = (), **fields: Any) -> str:
        """One record, acknowledged in the output. Returns its id."""
        self._append(what, rows, busy, fields)
        print(f"record {self.ids[-1]} · {what}" + (f" · busy: {', '.join(busy)}" if busy else ""))
        return self.ids[-1]

    def rung(self, rung: Rung, label: str, toggles: tuple[str, ...], rows: Sequence[str], busy: Sequence[str]) -> str:
        """The record of one ladder row, with everything that `Row` leaves out."""
        timeline, detail, live = rung.timeline, rung.detail, rung.live
        speed = _speed(rung) if detail else {}
        return self.write(
            f"{label} on {live.loaded.name}",
            rows,
            busy,
            model=live.loaded.name,
            origin=live.loaded.origin,
            toggles=toggles,
            work=encode(live.work),
            threads=live.threads,
            samples_s=rung.samples_s,
            median_s=rung.step_s,
            spread_s=spread(rung.samples_s),
            tokens=sum(timeline.tokens) if timeline else 0,
            ttft_s=timeline.ttft_s if timeline else None,
            inter_token_s=timeline.percentiles_s() if timeline else {},
            decode_tps=timeline.decode_tps / live.prompts if timeline else None,
            total_tps=timeline.decode_tps if timeline else None,
            memory=rung.memory,
            quality=vars(rung.quality) | {"perplexity": rung.quality.perplexity} if rung.quality else {},
            partial=rung.partial,
            values={
                "weights_survive": survives(live.loaded.model, live.work.weights.dtype),
                "verdict": rung.verdict,
                "ratio": vars(rung.ratio) if rung.ratio and np.isfinite(rung.ratio.high) else None,
            },
            reasons=dict(rung.memory["why"]) | dict.fromkeys(("ttft_s", "inter_token_s", "decode_tps"), "of the first reply: a cold one"),
            **speed,
        )

    def fact(self, what: str, ok: bool, rows: Sequence[str]) -> str:
        """A record without acknowledgement: the cell's output must be the same on every machine."""
        return self._append(what, rows, (), {"values": {"holds": ok}})

    def verdict(self, claim: str, verdict: str, why: str) -> str:
        return self.write(f"verdict on {claim}", [claim], values={"verdict": verdict, "why": why})

    def summary(self, seconds: float, budget_s: float) -> str:
        return f"lab {self.lab} finished: {len(self.ids)} records, {seconds:.0f} s of {budget_s:.0f} s"


def _speed(rung: Rung) -> Mapping[str, Any]:
    detail = rung.detail
    assert detail is not None
    bps = (detail.counts.weight_bytes + detail.counts.kv_bytes) / rung.step_s
    return {"read_gbps": bps / 1e9, "ceiling_percent": detail.ceilings.percent(bps), "bound_by": detail.attribution.bound_by}


def spread(samples: Sequence[float]) -> float | None:
    """Interquartile range; None for nothing."""
    return float(np.subtract(*np.percentile(samples, [75, 25]))) if samples else None
