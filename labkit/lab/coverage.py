"""What the ledger's rows have come to on this machine: newest verdicts, and the record and the cell that settle each row."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labkit.errors import BadInput
from labkit.lab.ledger import SIGNS, claims, table

Line = Mapping[str, Any]  # one line of records.jsonl
Cells = Mapping[str, Mapping[str, str]]  # landed lab → row → id of the last cell that names it, as the newest record is its last
VERDICT = re.compile(r"verdict on (B\d+)")
ROW = re.compile(r"\b[ABCE]\d{2,3}\b")


def plain(value: Any) -> str:
    """A text from a file, without the characters that a terminal would obey."""
    return "".join(c for c in str(value) if c.isprintable())


def verdicts(lines: Iterable[Any]) -> dict[str, dict[str, str]]:
    """The newest verdict of each claim: its word, why, mode and record."""
    newest = {}
    for line in _objects(lines):
        values = line.get("values")
        found = VERDICT.fullmatch(str(line.get("what")))
        if found and isinstance(values, dict):
            parts = {"verdict": values.get("verdict"), "why": values.get("why"), "mode": line.get("mode"), "record": line.get("id")}
            newest[found[1]] = {name: plain(value) for name, value in parts.items()}
    return newest


def as_json(lab: str | None, lines: Iterable[Any]) -> str:
    """The claims of one lab, or of all, each with its newest verdict or null."""
    newest = verdicts(lines)
    found = [asdict(c) | {"newest": newest.get(c.id)} for c in claims().values() if lab in (None, c.lab)]
    return json.dumps(found, ensure_ascii=False, indent=1)


def claim_lines(lab: str | None, lines: Iterable[Any], width: int) -> list[str]:
    """A table of claims, none of its lines wider than `width`."""
    newest = verdicts(lines)
    rows = [("id", "lab", "kind", " ", "verdict", "claim")]
    for c in claims().values():
        if lab in (None, c.lab):
            rows.append((c.id, c.lab, c.kind, "★" if c.headline else " ", _said(newest.get(c.id)), c.claim))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    return [_cut("  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[5]]), width) for row in rows]


def _said(newest: Mapping[str, str] | None) -> str:
    return _cut(f"{SIGNS.get(newest['verdict'], '?')} {newest['verdict']} ({newest['mode']})", 24) if newest else ""


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


@dataclass(frozen=True)
class Row:
    """What one lab owes one row. `record`: the newest of that lab that names the row; `cell`: None while the lab is not landed."""

    id: str
    lab: str
    record: str | None
    cell: str | None


def cells(folder: Path) -> dict[str, dict[str, str]]:
    """For each lab that has a notebook, the last code cell that names a row. Raises BadInput for a notebook that cannot be read."""
    return {path.name[:2]: _cells(path) for path in sorted(folder.glob("[0-9][0-9]_*.ipynb"))}


def _cells(path: Path) -> dict[str, str]:
    named: dict[str, str] = {}
    try:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                named |= dict.fromkeys(ROW.findall("".join(cell["source"])), plain(cell["id"]))
    except (ValueError, KeyError, TypeError) as err:
        raise BadInput(f"{path.name} is not a notebook that can be read ({type(err).__name__}): restore it from git") from err
    return named


def coverage(lab: str | None, lines: Iterable[Any], landed: Cells) -> list[Row]:
    """Every row of one lab, or of all: a row that two labs share stands there for each."""
    newest = {(str(line.get("lab")), str(row)): plain(line.get("id")) for line in _objects(lines) for row in _rows(line)}
    return [
        Row(row, of, newest.get((of, row)), landed[of].get(row, "no cell names it") if of in landed else None)
        for row, of in _owed()
        if lab in (None, of)
    ]


def _owed() -> Iterator[tuple[str, str]]:
    """(row, lab): what the labs are for."""
    for name in ("systems", "claims", "snippets", "contradictions"):
        for entry in table(name):
            for of in entry.get("labs", [entry.get("lab")]):
                yield entry["id"], of


def coverage_lines(rows: Sequence[Row]) -> list[str]:
    """A line for each row, then a count for each lab."""
    said = [f"{r.id}  {r.lab}  {r.record or 'none':12}  {r.cell or 'lab not landed yet'}" for r in rows]
    for of in sorted({r.lab for r in rows}):
        here = [r for r in rows if r.lab == of]
        state = "" if here[0].cell else ", not landed yet"
        said.append(f"lab {of}: {sum(r.record is not None for r in here)} of {len(here)} rows have a record{state}")
    return said


def _objects(lines: Iterable[Any]) -> Iterator[Line]:
    """What a record can be: a file may hold other JSON."""
    return (line for line in lines if isinstance(line, dict))


def _rows(line: Line) -> list[Any]:
    rows = line.get("rows")
    return rows if isinstance(rows, list) else []
