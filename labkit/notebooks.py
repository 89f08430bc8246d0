"""Which labs there are, and whether what a run asks of them can be met: all of it before anything starts."""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labkit.errors import BadInput, unknown
from labkit.lab.modes import check_mode


@dataclass(frozen=True)
class Lab:
    """A notebook with its name ("01_generation_loop"), title and the literals of its parameters cell."""

    name: str
    path: Path
    title: str
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def budget_s(self) -> float | None:
        """Seconds that a quick run may take."""
        given = self.defaults.get("budget_s")
        return float(given) if given else None

    def given(self, values: Mapping[str, Any]) -> "Lab":
        """The lab with other values for some of its parameters."""
        return replace(self, defaults={**self.defaults, **values})


def labs(folder: Path) -> list[Lab]:
    """All labs of a folder in order. Raises BadInput when there is none, or one cannot be read."""
    found = [_read(path) for path in sorted(folder.glob("[0-9][0-9]_*.ipynb"))]
    if not found:
        raise BadInput(f"no labs in {folder}: run this in a checkout that has notebooks/")
    return found


def chosen(folder: Path, names: Iterable[str]) -> list[Lab]:
    """The labs that `names` mean ("01", "01_generation_loop"), all of them for none. Raises BadInput on others."""
    known = labs(folder)
    picked = {lab.name: lab for lab in (_one(known, name) for name in names)}
    return list(picked.values()) or known


def _one(known: list[Lab], name: str) -> Lab:
    number = name.zfill(2) if name.isdigit() else name
    hits = [lab for lab in known if lab.name in (name, f"{name}.ipynb") or lab.name.split("_")[0] == number]
    if not hits:
        raise unknown("lab", name, [lab.name for lab in known])
    return hits[0]


def _read(path: Path) -> Lab:
    import nbformat
    from papermill.inspection import inspect_notebook

    try:
        cells = nbformat.read(path, as_version=4).cells
        found = inspect_notebook(path)
    except Exception as err:  # a broken notebook fails in as many ways as JSON and nbformat have
        raise BadInput(f"{path.name} is not a notebook that can be read ({type(err).__name__}): restore it from git") from err
    heading = next((m[1] for c in cells if (m := re.search(r"^#\s+(.+)$", c.source, re.M)) and c.cell_type == "markdown"), path.stem)
    return Lab(path.stem, path, heading.strip(), {name: _literal(path, name, p["default"]) for name, p in found.items()})


def _literal(path: Path, name: str, source: str) -> Any:
    try:
        return ast.literal_eval(source)
    except (ValueError, SyntaxError) as err:
        raise BadInput(f"{path.name}: parameter {name} is not a literal") from err


def parameters(lab: Lab, mode: str, given: Iterable[str]) -> dict[str, Any]:
    """What is injected into a lab: its mode, and `name=value` texts parsed to the type of the default.

    Raises BadInput for a name that the lab's parameters cell does not have and for a value of another type.
    """
    out: dict[str, Any] = {"mode": check_mode(mode)} if "mode" in lab.defaults else {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise BadInput(f"-p {text!r} has no value: write -p name=value")
        if name not in lab.defaults:
            raise unknown("parameter", name, lab.defaults)
        out[name] = check_mode(value) if name == "mode" else _value(name, value, lab.defaults[name])
    return out


def _value(name: str, text: str, default: Any) -> Any:
    """`text` as the type of `default`: a text stays as it is, so that no quoting is needed, also as a list of one."""
    if isinstance(default, str):
        return text
    try:
        value = ast.literal_eval(text.capitalize() if text in ("true", "false") else text)
    except (ValueError, SyntaxError, TypeError):
        value = [text] if isinstance(default, list) else text
    try:
        return _like(value, default)
    except (TypeError, OverflowError) as err:
        kind = type(default).__name__
        raise BadInput(f"parameter {name}={text!r} is not of the right type: {name} is a {kind}, as in {default!r}") from err


def _like(value: Any, default: Any) -> Any:
    """`value` as the type of `default`, each element of a list as that of the default's first. Raises TypeError."""
    if isinstance(default, float) and type(value) is int:
        return float(value)
    if default is not None and type(value) is not type(default):
        raise TypeError(type(value))
    return [_like(each, default[0]) for each in value] if isinstance(default, list) and default else value
