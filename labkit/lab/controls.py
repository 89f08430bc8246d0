"""Small pieces that panel and prediction are built of, and the glue that mends ipywidgets inside JupyterLab."""

from html import escape
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as w

HERE = Path(__file__).parent


class Glue(anywidget.AnyWidget):
    """Invisible. Brings the style, keeps JupyterLab's one-key shortcuts off the controls, and names them for screen readers."""

    _esm = (HERE / "glue.js").read_text(encoding="utf-8")
    _css = (HERE / "panel.css").read_text(encoding="utf-8")


def frame(children: list[w.Widget]) -> w.VBox:
    """The outer box; the style and the glue apply inside it."""
    return classed(w.VBox([*children, Glue(layout=w.Layout(display="none"))]), "lk-box")


def classed(widget: Any, *names: str) -> Any:
    """`widget` with these classes of panel.css."""
    for name in names:
        widget.add_class(name)
    return widget


def html(value: str = "", *names: str) -> w.HTML:
    """Ready-made HTML; everything in `value` that came from outside is escaped already."""
    return classed(w.HTML(value), *names)


def button(text: str, icon: str, style: str = "") -> w.Button:
    return classed(w.Button(description=text, icon=icon, button_style=style, tooltip=text), "lk-button")


def grey(control: w.Button, off: bool) -> None:
    """Greyed, but it keeps the focus: a disabled button would drop it, and the next key would reach the notebook."""
    (control.add_class if off else control.remove_class)("lk-off")


def labelled(label: str, *controls: w.Widget) -> w.HBox:
    """One line: the name, then its controls."""
    name = classed(w.HTML(f'<span class="lk-label">{escape(label)}</span>'), "lk-labelbox")
    return classed(w.HBox([name, *controls]), "lk-field")


def folded(title: str, children: list[w.Widget]) -> w.VBox:
    """Shown on demand; not an Accordion, whose header the Tab key cannot reach."""
    box = w.VBox(children, layout=w.Layout(display="none"))
    switch = classed(w.ToggleButton(description=f"▸ {title}", tooltip=title), "lk-button", "lk-fold")

    def flip(change: dict[str, Any]) -> None:
        box.layout.display = "" if change["new"] else "none"
        switch.description = f"{'▾' if change['new'] else '▸'} {title}"

    switch.observe(flip, "value")
    return w.VBox([switch, box])
