"""The ladder: one row a measured variant, speed and text side by side. As HTML, as cells, as plain text."""

from collections.abc import Sequence
from html import escape

from labkit.lab.numbers import size, three
from labkit.measure.ladder import Row
from labkit.measure.stats import SIGNS

COLUMNS = ("toggles", "ms/token", "against base", "verdict", "text", "perplexity", "KV")
NUMERIC = {"ms/token", "perplexity", "KV"}
LIMIT = 8
PAINT = {"faster": "#56b4e9", "slower": "#e69f00", "cheaper but worse text": "#d48cb3"}
STYLE = """<style>
.lk-ladder{font:13px/1.4 var(--jp-ui-font-family,system-ui,sans-serif);color:var(--jp-ui-font-color1,inherit);max-width:1040px;overflow-x:auto}
.lk-ladder.lk-ladder table{table-layout:auto;border-collapse:collapse;width:100%;font-size:12px;margin:0}
.lk-ladder.lk-ladder th,.lk-ladder.lk-ladder td{padding:3px 12px 3px 0;text-align:left;vertical-align:baseline;background:none;border-bottom:1px solid var(--jp-border-color2,#ccc)}
.lk-ladder.lk-ladder th{font-weight:600;white-space:nowrap}
.lk-ladder.lk-ladder .lk-n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.lk-ladder.lk-ladder .lk-keep{white-space:nowrap}
.lk-ladder .lk-wide{min-width:8em}
.lk-chip,.lk-verdict{display:inline-block;border-radius:9px;padding:0 7px;margin:1px 4px 1px 0}
.lk-chip{border:1px solid var(--jp-border-color1,#999);font-family:var(--jp-code-font-family,monospace);font-size:11px}
.lk-verdict{color:#111;print-color-adjust:exact;-webkit-print-color-adjust:exact}
</style>"""


def newest(rows: Sequence[Row], base: Row | None = None) -> list[Row]:
    """The base, then the last eight of `rows` (given in the order they were measured), newest first."""
    return ([base] if base else []) + list(reversed(rows))[:LIMIT]


def verdict_text(row: Row) -> str:
    """The verdict with its sign, so that colour is never alone: "▲ faster"; the base has none."""
    why = f" ({row.note})" if row.note else ""
    return f"{SIGNS[row.verdict]} {row.verdict}{why}" if row.verdict in SIGNS else ""


def ratio_text(row: Row) -> str:
    """The factor and its 99 % interval: "1.78× [1.71, 1.85]"; empty for the base itself."""
    return str(row.ratio) if row.ratio else ""


def ladder_cells(rows: Sequence[Row]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Columns, and one tuple of text cells a row, in the order given."""
    return COLUMNS, [_cells(row) for row in rows]


def ladder_html(rows: Sequence[Row]) -> str:
    """The rows as a table, in the order given. It may scroll and so be focused: the attribute keeps one-key shortcuts off it."""
    head = "".join(f"<th{_class(name)}>{name}</th>" for name in COLUMNS)
    body = "".join(_row(row) for row in rows)
    return f'{STYLE}<div class="lk-ladder" data-lm-suppress-shortcuts="true"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def ladder_text(rows: Sequence[Row]) -> str:
    """The rows in columns of spaces."""
    table = [COLUMNS, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in table)


def _cells(row: Row) -> tuple[str, ...]:
    text = row.text + (" (partial)" if row.partial else "")
    perplexity = "" if row.perplexity is None else f"{row.perplexity:.2f}"
    toggles = " ".join(row.toggles) or row.label
    return toggles, three(row.step_s * 1e3), ratio_text(row), verdict_text(row), text, perplexity, size(row.kv_bytes)


def _row(row: Row) -> str:
    cells = dict(zip(COLUMNS, map(escape, _cells(row)), strict=True))
    if row.toggles:
        cells["toggles"] = "".join(f'<span class="lk-chip">{escape(t)}</span>' for t in row.toggles)
    if cells["verdict"]:
        paint = PAINT.get(row.verdict, "#c9c9c9")
        cells["verdict"] = f'<span class="lk-verdict" style="background:{paint}">{cells["verdict"]}</span>'
    return "<tr>" + "".join(f"<td{_class(name)}>{cell}</td>" for name, cell in cells.items()) + "</tr>"


def _class(column: str) -> str:
    if column in NUMERIC:
        return ' class="lk-n"'
    return {"toggles": "", "text": ' class="lk-wide"'}.get(column, ' class="lk-keep"')
