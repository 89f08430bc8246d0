"""The pieces of the report, as HTML. Each takes story lines and escapes all that comes from them."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from labkit.lab import ledger
from labkit.lab.numbers import three
from labkit.measure import stats

SIGNS = stats.SIGNS | ledger.SIGNS
CLASS_NUMBER = ' class="number"'
TONES = {"✓": "good", "▲": "good", "✗": "bad", "▼": "bad", "≠": "bad", "◐": "part"}


def text(value: Any) -> str:
    """Any value as escaped text without control characters; a count in full, a measured number with the digits it is worth."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        plain = "" if value is None else str(value)
        return escape(re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "", plain))
    return f"{value:,}" if isinstance(value, int) else three(value)


def verdict(word: Any) -> str:
    """A verdict word with its sign, as in `▲ faster`; what follows the word ("undecided: too busy") stays."""
    known = next((name for name in sorted(SIGNS, key=len, reverse=True) if str(word).startswith(name)), None)
    sign = SIGNS[known] if known else "·"
    return f'<span class="verdict {TONES.get(sign, "open")}"><span aria-hidden="true">{sign}</span>&nbsp;{text(word)}</span>'


def table(columns: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """A table of escaped cells; cells that are numbers stand to the right."""
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in columns)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"<td{CLASS_NUMBER if number else ''}>{text(value)}</td>"


def head(run: str, labs: Sequence[tuple[str, str]]) -> str:
    links = "".join(f'<li><a href="#{text(name)}">{text(title)}</a></li>' for name, title in labs)
    contents = f'<nav aria-label="Labs"><ol>{links}</ol></nav>' if len(labs) > 1 else ""
    return f'<header><p class="small">labkit · run {text(run)}</p><h1>Report</h1>{contents}</header>'


def machine(lines: Sequence[str]) -> str:
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f'<section><h2>This machine</h2><ul class="machine">{items}</ul></section>' if lines else ""


def section(name: str, title: str, parts: Iterable[str]) -> str:
    return f'<section class="lab" id="{text(name)}"><h2>{text(title)}</h2>\n' + "\n".join(filter(None, parts)) + "\n</section>"


def opening(title: str, lab: dict[str, Any], finished: dict[str, Any] | None) -> str:
    question = f'<p class="question">{text(lab["question"])}</p>' if lab.get("question", title) != title else ""
    facts = [f"lab {text(lab['lab'])}" if lab.get("lab") else "", f"{text(lab['mode'])} mode" if lab.get("mode") else ""]
    if finished:
        facts.append(f"used {text(finished.get('seconds'))} s of {text(finished.get('budget_s'))} s")
    line = " · ".join(filter(None, facts))
    return question + (f'<p class="small">{line}</p>' if line else "")


def warning(note: str, torn: int, early: bool) -> str:
    said = [note] if note else []
    said += ["This run stopped early: what it had shown and recorded until then is below."] if early else []
    said += [f"{torn} line{'s' if torn > 1 else ''} of its story could not be read (the lab was killed while writing)."] if torn else []
    return '<div class="warning" role="note">' + "".join(f"<p>{text(line)}</p>" for line in said) + "</div>" if said else ""


def headlines(claims: Sequence[dict[str, Any]]) -> str:
    items = "".join(
        f"<li>{verdict(c.get('verdict'))}<p>{text(c.get('claim'))}</p>"
        f'<p class="small">{" · ".join(filter(None, map(text, (c.get("why"), c.get("id"), c.get("source")))))}</p></li>'
        for c in claims
    )
    return (
        f'<h3>What the articles claim: the headlines</h3><p>All claims of this lab stand in the table at the end.</p><ul class="headlines">{items}</ul>'
        if claims
        else ""
    )


def predictions(lines: Sequence[dict[str, Any]]) -> str:
    rows = [[p.get("question"), _guess(p), _measured(p), _factor(p.get("factor")), p.get("why")] for p in lines]
    columns = ["question", "your guess", "measured", "factor between", "usual reason"]
    return f"<h3>Predicted and measured</h3>{table(columns, rows)}" if rows else ""


def _plain(value: Any, unit: Any) -> str:
    return f"{three(value)} {unit or ''}".strip() if isinstance(value, int | float) else str(value)


def _guess(line: dict[str, Any]) -> str:
    return "skipped" if line.get("guess") is None else _plain(line["guess"], line.get("unit"))


def _measured(line: dict[str, Any]) -> str:
    if line.get("measured") is None:
        return "not measured"
    low, high = line.get("low"), line.get("high")
    band = f" [{_plain(low, '')}, {_plain(high, '')}]" if low is not None and high is not None else ""
    return _plain(line["measured"], line.get("unit")) + band


def _factor(value: Any) -> str:
    return "" if value is None else f"{three(value)}×" if isinstance(value, int | float) else str(value)


def ladder(line: dict[str, Any]) -> str:
    heading = f"<h3>{text(line['title'])}</h3>" if line.get("title") else ""
    return f"{heading}{table(line.get('columns', []), line.get('rows', []))}"


def figure(line: dict[str, Any], data: str) -> str:
    """A title, a place that report.js draws into, and the table that the figure was drawn from."""
    title = text(line.get("title"))
    return (
        f'<figure><figcaption><h3>{title}</h3></figcaption><div class="plot" role="img" aria-label="{title}"></div>'
        f'<script type="application/json">{data}</script>{_numbers(line)}</figure>'
    )


def _numbers(line: dict[str, Any]) -> str:
    if not line.get("rows"):
        return ""
    return f"<details><summary>The numbers</summary>{table(line.get('columns', []), line['rows'])}</details>"


def fragment(line: dict[str, Any]) -> str:
    """HTML that labkit made and escaped itself; one with a title also in its text form, unless it brings its own."""
    html = str(line.get("html", ""))
    if not line.get("title"):
        return f'<div class="said">{html}</div>'
    reading = (
        f'<details><summary>As text</summary><p class="reading">{text(line["text"])}</p></details>'
        if line.get("text") and "<details" not in html
        else ""
    )
    return f"<figure><figcaption><h3>{text(line['title'])}</h3></figcaption>{html}{reading}</figure>"


def exercises(lines: Sequence[dict[str, Any]]) -> str:
    items = "".join(f"<li><b>{text(e.get('id'))}</b>: {text(e.get('state'))}. {text(e.get('message'))}</li>" for e in lines)
    return f"<h3>Exercises</h3><ul>{items}</ul>" if lines else ""


def claims_table(claims: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """Every claim of every lab, with a search field and a choice of verdicts."""
    if not claims:
        return ""
    words = sorted({_word(c) for _, c in claims})
    options = "".join(f"<option>{text(word)}</option>" for word in words)
    rows = "".join(
        f'<tr data-verdict="{text(_word(c))}"><td>{text(lab)}</td><td>{text(c.get("id"))}</td><td>{text(c.get("claim"))}</td>'
        f"<td>{verdict(c.get('verdict'))}</td><td>{text(c.get('why'))}</td>"
        f'<td class="faint">{text(c.get("source"))}</td><td class="faint"><code>{text(c.get("record"))}</code></td></tr>'
        for lab, c in claims
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("lab", "row", "claim", "verdict", "why", "source", "record"))
    return (
        '<section id="claims"><h2>All claims</h2><p class="filter"><label>Search <input type="search" id="claim-search"></label> '
        f'<label>Verdict <select id="claim-verdict"><option value="">all</option>{options}</select></label> '
        f'<span id="claim-count" class="small" aria-live="polite">{len(claims)} of {len(claims)}</span></p>'
        f'<div class="wide"><table id="claim-table"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


def _word(claim: dict[str, Any]) -> str:
    return str(claim.get("verdict")).partition(":")[0].strip()
