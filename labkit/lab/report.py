"""The report: what labs told their story files, as one HTML file that needs nothing else, not even a network."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from labkit.lab import sections as part
from labkit.measure.record import read_lines, save

Line = dict[str, Any]
SHOWN = ("figure", "html", "ladder")  # in the order in which the lab showed them
HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True)
class Section:
    """One lab of a run: its story lines, how many were torn, and a note when it did not end well."""

    name: str
    title: str
    lines: list[Line] = field(default_factory=list)
    torn: int = 0
    note: str = ""


def page(labs: Iterable[Section], run: str) -> str:
    """The whole report as HTML. Everything in it is escaped but the `html` field of `html` lines, which labkit made."""
    labs = list(labs)
    body = [part.head(run, [(lab.name, lab.title) for lab in labs]), part.machine(_unique(line for lab in labs for line in _machine(lab)))]
    body += [_lab(lab) for lab in labs]
    body.append(part.claims_table([(lab.name.split("_")[0], claim) for lab in labs for claim in latest(lab.lines, "claim")]))
    drawn = any(line.get("kind") == "figure" for lab in labs for line in lab.lines)
    scripts = [_plotly()] if drawn else []
    scripts.append((HERE / "report.js").read_text(encoding="utf-8"))
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Report {part.text(run)}</title>",
            f"<style>{(HERE / 'report.css').read_text(encoding='utf-8')}</style>\n</head>\n<body>\n<main>",
            *body,
            "</main>",
            *(f"<script>{script}</script>" for script in scripts),
            "</body>\n</html>\n",
        ]
    )


def write_report(story: Path, name: str, title: str) -> Path:
    """The report of one lab that a reader finished himself, beside its story's folder: index.html."""
    lines, torn = read_lines(story)
    out = story.parent.parent / "index.html"
    save(out, page([Section(name, title, lines, torn)], out.parent.name))
    return out


def latest(lines: Iterable[Line], kind: str) -> list[Line]:
    """The lines of a kind, the last one of each id: a settled prediction replaces the open one."""
    return list({str(line.get("id")): line for line in lines if line.get("kind") == kind}.values())


def _machine(lab: Section) -> list[str]:
    return [str(text) for line in lab.lines if line.get("kind") == "machine" for text in line.get("lines", [])]


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _lab(lab: Section) -> str:
    """One lab: question, headline claims, predictions, then what it showed in the order it was shown."""
    of = {kind: [line for line in lab.lines if line.get("kind") == kind] for kind in ("lab", "finished")}
    claims = latest(lab.lines, "claim")
    shown = [_shown(line) for line in lab.lines if line.get("kind") in SHOWN]
    return part.section(
        lab.name,
        lab.title,
        [
            part.opening(lab.title, of["lab"][-1] if of["lab"] else {}, of["finished"][-1] if of["finished"] else None),
            part.warning(lab.note, lab.torn, early=bool(of["lab"]) and not of["finished"]),
            part.headlines([claim for claim in claims if claim.get("headline")]),
            part.predictions(latest(lab.lines, "prediction")),
            *shown,
            part.exercises(latest(lab.lines, "exercise")),
        ],
    )


def _shown(line: Line) -> str:
    if line["kind"] == "html":
        return part.fragment(line)
    if line["kind"] == "ladder":
        return part.ladder(line)
    return part.figure(line, _json(line.get("figure", {})))


def _json(data: Any) -> str:
    """JSON that can stand in a script element and that every browser parses: no "<", no NaN."""
    return json.dumps(_finite(data), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
