"""Frozen plain data that workloads are made of: comparable, printable, the same in JSON and in Python."""

import re
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar

from labkit.errors import BadInput, unknown

TAGGED: dict[str, type["Spec"]] = {}


class Spec:
    """Base of every frozen dataclass that JSON names by a tag (the class name, `RandomKV` → `random-kv`)."""

    tag: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.tag = cls.__dict__.get("name") or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()
        other = TAGGED.setdefault(cls.tag, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"{cls.__module__} and {other.__module__} both define a spec called {cls.tag}: rename one")
        TAGGED[cls.tag] = cls  # a cell that is run again makes its class again


@dataclass(frozen=True)
class Slot(Spec):
    """A group of leaf fields inside a workload (`weights`, `cache`). A toggle owns leaves, never a whole slot."""


def encode(value: Any) -> Any:
    """Spec → JSON-ready data; a spec becomes an object with its tag under "is"."""
    if is_dataclass(value) and isinstance(value, Spec):
        return {"is": value.tag} | {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple | list):
        return [encode(v) for v in value]
    return value


def decode(data: Any) -> Any:
    """Inverse of `encode`. Raises BadInput on an unknown tag or field."""
    if isinstance(data, list):
        return tuple(decode(v) for v in data)
    if not isinstance(data, dict):
        return data
    values = {k: decode(v) for k, v in data.items() if k != "is"}
    cls = TAGGED.get(data.get("is", ""))
    if cls is None:
        raise unknown("spec", data.get("is"), TAGGED)
    try:
        return cls(**values)
    except TypeError as err:
        raise BadInput(f"{cls.tag}: {err}") from err


def leaves(work: Any) -> dict[str, Any]:
    """Every leaf field of a workload by its dotted name: {"tokens": 64, "weights.dtype": "float32", …}."""
    out: dict[str, Any] = {}
    for f in fields(work):
        value = getattr(work, f.name)
        inner = {f"{f.name}.{g}": v for g, v in leaves(value).items()} if isinstance(value, Slot) else {f.name: value}
        out |= inner
    return out


def with_leaf(work: Any, path: str, value: Any) -> Any:
    """A copy of `work` with one leaf set: with_leaf(work, "weights.dtype", "bfloat16")."""
    head, _, rest = path.partition(".")
    return replace(work, **{head: with_leaf(getattr(work, head), rest, value) if rest else value})
