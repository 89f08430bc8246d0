"""The articles' claims and how each is judged: a judge is a pure function of named measurements."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

from labkit.env import ROOT
from labkit.errors import unknown

Judge = Callable[..., tuple[str, str]]  # named measurements → (verdict, why, with the numbers in it)
SIGNS = {"holds": "✓", "refuted": "✗", "holds in part": "◐", "undecided": "?", "needs a GPU": "–", "not testable": "–"}


KINDS = ("cpu", "sim", "gpu", "arith", "ref", "policy")  # measured, simulated, on a GPU, calculated, looked up, advice
NOT_TESTED = ("ref", "policy")


@dataclass(frozen=True)
class Claim:
    """A claim in our own words. `holds`, `refuted`: the two columns between which it is undecided; None when nothing is measured."""

    id: str
    lab: str
    kind: str
    headline: bool
    tag: str | None  # what reading alone makes of it: wrong, dubious
    source: str
    claim: str
    right: str
    measure: str
    holds: str | None
    refuted: str | None


@cache
def table(name: str) -> tuple[dict[str, Any], ...]:
    """One table of data/ledger: labs, systems, claims, snippets or contradictions."""
    return tuple(json.loads((ROOT / "data" / "ledger" / f"{name}.json").read_text(encoding="utf-8")))


@cache
def claims() -> Mapping[str, Claim]:
    """The claims of all labs, by id."""
    return {entry["id"]: Claim(**entry) for entry in table("claims")}


def lab_number(name: str) -> str:
    """The number of a lab given as 01, 1 or 01_generation_loop. Raises BadInput for a lab that is not in the plan of labs."""
    names = {f"{lab['lab']}_{lab['slug']}": lab["lab"] for lab in table("labs")}
    if name.isdigit() and name.zfill(2) in names.values():
        return name.zfill(2)
    if name not in names:
        raise unknown("lab", name, names)
    return str(names[name])


def claim(key: str) -> Claim:
    if key not in claims():
        raise unknown("claim", key, claims())
    return claims()[key]


def between(low: float, high: float, refuted_to: float, holds_from: float) -> str:
    """Verdict of one number, known to lie in low…high, whose larger values speak for the claim."""
    if low >= holds_from:
        return "holds"
    return "refuted" if high <= refuted_to else "undecided"


def combine(verdicts: Mapping[str, str]) -> str:
    """One word for named cases: agreed, or in part."""
    words = set(verdicts.values())
    if len(words) == 1:
        return words.pop()
    return "holds in part" if "holds" in words and "refuted" in words else "undecided"


def verdict_html(item: Claim, verdict: str, why: str) -> str:
    from labkit.lab.story import FONT  # the ledger itself needs the standard library only

    sign = SIGNS[verdict]
    return (
        f'<div style="{FONT};border-left:3px solid #0072b2;padding:2px 12px;margin:6px 0"><b>{sign} {escape(verdict)}</b> · '
        f"{escape(item.claim)} <span style='opacity:.7'>({escape(item.id)}, {escape(item.source)})</span><br>{escape(why)}</div>"
    )


def judged(judges: Mapping[str, Judge], key: str, measures: Mapping[str, Any], busy: list[str]) -> tuple[str, str]:
    """Apply a judge. Measurements taken while the machine was busy give no verdict; what they came to is still said."""
    if key not in judges:
        raise unknown("judge", key, judges)
    verdict, why = judges[key](**measures)
    return ("undecided", f"the machine was busy ({', '.join(busy)}); measured all the same: {why}") if busy else (verdict, why)
