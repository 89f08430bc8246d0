"""The story of one lab's run: what was shown, line by line in a file, and the same on the screen."""

import os
import time
from html import escape
from pathlib import Path
from typing import Any

from IPython.display import display

from labkit.env import home
from labkit.measure.record import append_line

FONT = "font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);color:var(--jp-ui-font-color1,inherit);max-width:66em"


class Story:
    """Appends lines that the report is made of. Killed at any moment, it keeps all that was shown before."""

    def __init__(self, lab: str) -> None:
        given = os.environ.get("LABKIT_STORY")
        stamp = time.strftime("%Y%m%d-%H%M%S")
        self.headless = bool(given)
        self.path = Path(given) if given else home() / "runs" / f"{stamp}-{lab}" / lab / "story.jsonl"

    def add(self, kind: str, **data: Any) -> None:
        append_line(self.path, {"kind": kind, "t": time.time()} | data)

    def html(self, title: str, html: str, text: str) -> None:
        """Show a fragment that labkit made (escaped already) and keep it for the report."""
        self.add("html", title=title, html=html, text=text)
        heading = f'<div style="{FONT};font-weight:600;margin:8px 0 4px">{escape(title)}</div>' if title else ""
        show(heading + html, f"{title}\n{text}" if title else text)

    def figure(self, figure: Any, columns: list[str], rows: list[list[Any]]) -> None:
        """Show a plotly figure with the table it was drawn from."""
        data = figure.to_plotly_json()
        title = figure.layout.title.text or ""
        self.add("figure", title=title, figure=_plain(data), columns=columns, rows=rows)
        lines = [" | ".join(map(str, row)) for row in [columns, *rows]]
        display({"application/vnd.plotly.v1+json": _plain(data), "text/plain": "\n".join([title, *lines])}, raw=True)


def show(html: str, text: str) -> None:
    """One output with an HTML and a plain form."""
    display({"text/html": html, "text/plain": text}, raw=True)


def paragraph(text: str) -> str:
    """A sentence or two as HTML."""
    return f'<p style="{FONT};font-size:14px">{escape(text)}</p>'


def _plain(value: Any) -> Any:
    """numpy arrays and tuples as lists, so that JSON takes them."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value
