"""The attribution strip: where one step's time went, one line a variant. HTML without scripts, for notebook, panel and report."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from labkit.lab.numbers import three
from labkit.measure.attribute import Attribution, Part

StripRow = tuple[str, Attribution, str]  # label, where the time went, a note behind the total
NAMED_OVER = 0.25  # an unexplained share above this is said in words
DIGIT_PX, WIDTHS_PX = 6.8, (240, 380, 560)  # a digit's width; bar widths at which more numbers find room


@dataclass(frozen=True)
class Hue:
    """How a part is drawn: its name for readers, its paint, the ink of a number on it, its dimension."""

    label: str
    paint: str
    ink: str
    dimension: str


HATCH = "repeating-linear-gradient(135deg,#d4d4d4 0 3px,#f2f2f2 3px 6px)"
HUES = {
    "weights": Hue("weights", "#0072b2", "#fff", "memory"),
    "kv": Hue("KV", "#56b4e9", "#111", "memory"),
    "arithmetic": Hue("arithmetic", "#e69f00", "#111", "compute"),
    "dispatch": Hue("dispatch", "#f5cf84", "#111", "compute"),
    "transfer": Hue("transfer", "#2fb98f", "#111", "transfer"),
    "surplus": Hue("surplus", "#d48cb3", "#111", "algorithm"),
    "waiting": Hue("waiting", "#979797", "#111", "waiting"),
    "unexplained": Hue("unexplained", HATCH, "#111", "unexplained"),
}
STYLE = """<style>
.lk-strip{font:13px/1.4 var(--jp-ui-font-family,system-ui,sans-serif);color:var(--jp-ui-font-color1,inherit);max-width:1040px;container-type:inline-size}
.lk-strip .lk-rows{display:grid;grid-template-columns:minmax(4em,max-content) minmax(120px,1fr) max-content;gap:5px 12px;align-items:center}
.lk-strip .lk-note-at{grid-column:2/-1}
.lk-strip .lk-note-at:empty{display:none}
@container (min-width:680px){.lk-strip .lk-rows{grid-template-columns:minmax(4em,max-content) minmax(120px,1fr) max-content 15.5em}.lk-strip .lk-note-at,.lk-strip .lk-note-at:empty{grid-column:auto;display:block}}
.lk-strip .lk-name{max-width:14em;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.lk-strip .lk-bar{display:flex;height:22px;container-type:inline-size;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.lk-strip .lk-part{flex:none;min-width:1px;height:22px;font-size:11px;line-height:22px;text-align:center;overflow:hidden;font-variant-numeric:tabular-nums}
.lk-strip .lk-part i{font-style:normal;display:none}
.lk-strip .lk-part i.lk-halo{background:#f2f2f2;padding:1px 3px;border-radius:2px}
@container (min-width:240px){.lk-strip .lk-part i.lk-at240{display:inline}}
@container (min-width:380px){.lk-strip .lk-part i.lk-at380{display:inline}}
@container (min-width:560px){.lk-strip .lk-part i.lk-at560{display:inline}}
.lk-strip .lk-ms{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.lk-strip .lk-legend{display:flex;flex-wrap:wrap;gap:2px 14px;margin:6px 0 2px;font-size:12px}
.lk-strip .lk-key{display:inline-block;width:11px;height:11px;margin-right:5px;vertical-align:-1px;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.lk-strip p{margin:2px 0;font-size:12px}
.lk-strip details{font-size:12px;margin-top:2px}
.lk-strip summary{cursor:pointer;width:max-content;color:var(--jp-ui-font-color2,inherit)}
.lk-strip.lk-strip table{table-layout:auto;border-collapse:collapse;margin:4px 0;font-size:12px}
.lk-strip.lk-strip th,.lk-strip.lk-strip td{padding:2px 12px 2px 0;text-align:left;border-bottom:1px solid var(--jp-border-color2,#ccc);background:none}
.lk-strip.lk-strip .lk-n{text-align:right;font-variant-numeric:tabular-nums}
</style>"""


def strip_html(rows: Sequence[StripRow]) -> str:
    """All rows on one time scale."""
    scale = max((where.seconds for _, where, _ in rows), default=1.0)
    lines = "".join(_row(row, scale) for row in rows)
    return (
        f'{STYLE}<div class="lk-strip"><div class="lk-rows">{lines}</div>'
        f"{_legend(rows)}{''.join(f'<p>{escape(s)}</p>' for s in sentences(rows))}{_table(rows)}</div>"
    )


def strip_text(rows: Sequence[StripRow]) -> str:
    """The same in words, one line a row."""
    return "\n".join([_line(label, where) + (f"; {note}" if note else "") for label, where, note in rows] + sentences(rows))


def sentences(rows: Iterable[StripRow]) -> list[str]:
    """What a strip has to say in words: a large unexplained part, and the notes of the attribution."""
    said = []
    for label, where, _ in rows:
        rest = sum(p.seconds for p in where.parts if p.name == "unexplained")
        if rest > NAMED_OVER * where.seconds:
            said.append(f"{label}: {_share(rest, where)} of the time is unexplained: no measured ceiling accounts for it.")
        said += [f"{label}: {where.note}"] if where.note else []
    return said


def _ordered(where: Attribution) -> list[Part]:
    """Parts that take time, in the order of the legend; unexplained always."""
    return [p for name in HUES for p in where.parts if p.name == name and (p.seconds > 0 or name == "unexplained")]


def _ms(seconds: float) -> str:
    return three(seconds * 1e3)


def _share(seconds: float, where: Attribution) -> str:
    return f"{100 * seconds / where.seconds:.0f} %"


def _line(label: str, where: Attribution) -> str:
    parts = ", ".join(f"{HUES[p.name].label} {_ms(p.seconds)} ms ({_share(p.seconds, where)})" for p in _ordered(where))
    return f"{label}: {_ms(where.seconds)} ms/token: {parts}"


def _row(row: StripRow, scale: float) -> str:
    label, where, note = row
    bar = "".join(_part(p, where, scale) for p in _ordered(where))
    return (
        f'<span class="lk-name" title="{escape(label)}">{escape(label)}</span>'
        f'<span class="lk-bar" role="img" aria-label="{escape(_line(label, where))}">{bar}</span>'
        f'<span class="lk-ms">{_ms(where.seconds)} ms/token</span><span class="lk-note-at">{escape(note)}</span>'
    )


def _part(part: Part, where: Attribution, scale: float) -> str:
    hue, fraction = HUES[part.name], part.seconds / scale
    hover = f"{hue.label}: {_ms(part.seconds)} ms, {_share(part.seconds, where)} ({part.how})"
    return (
        f'<span class="lk-part" title="{escape(hover)}" style="width:{100 * fraction:.3f}%;background:{hue.paint};color:{hue.ink}">'
        f"{_number(part, fraction)}</span>"
    )


def _number(part: Part, fraction: float) -> str:
    """The milliseconds, shown from the bar width on at which they fit into the part; nowhere when that is too wide."""
    text = _ms(part.seconds)
    needed_px = (len(text) * DIGIT_PX + 10) / max(fraction, 1e-9)
    width = next((w for w in WIDTHS_PX if w >= needed_px), None)
    halo = " lk-halo" if part.name == "unexplained" else ""
    return f'<i class="lk-at{width}{halo}">{text}</i>' if width else ""


def _legend(rows: Sequence[StripRow]) -> str:
    used = {p.name for _, where, _ in rows for p in _ordered(where)}
    keys = "".join(
        f'<span title="{hue.dimension}"><span class="lk-key" style="background:{hue.paint}"></span>{hue.label}</span>'
        for name, hue in HUES.items()
        if name in used
    )
    return f'<div class="lk-legend" aria-hidden="true">{keys}</div>'


def _table(rows: Sequence[StripRow]) -> str:
    """Milliseconds, share and origin of every part. The attribute keeps JupyterLab's one-key shortcuts off the summary."""
    body = "".join(
        f'<tr><td>{escape(label)}</td><td>{HUES[p.name].label}</td><td class="lk-n">{_ms(p.seconds)}</td>'
        f'<td class="lk-n">{_share(p.seconds, where)}</td><td>{escape(p.how)}</td></tr>'
        for label, where, _ in rows
        for p in _ordered(where)
    )
    head = '<tr><th>run</th><th>part</th><th class="lk-n">ms</th><th class="lk-n">share</th><th>how obtained</th></tr>'
    return (
        '<details><summary data-lm-suppress-shortcuts="true">the same as a table</summary>'
        f"<table><thead>{head}</thead><tbody>{body}</tbody></table></details>"
    )
