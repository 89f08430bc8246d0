"""All toggles of all dimensions, and their text form: `static-kv:max_tokens=512` in parameters, records and chips."""

from dataclasses import Field, fields
from typing import Any, get_type_hints

from labkit.algorithm.toggles import TOGGLES as ALGORITHM
from labkit.compute.toggles import TOGGLES as COMPUTE
from labkit.errors import BadInput, unknown
from labkit.memory.toggles import TOGGLES as MEMORY
from labkit.toggle import Toggle

TOGGLES: tuple[type[Toggle], ...] = (*COMPUTE, *MEMORY, *ALGORITHM)  # type: ignore[type-abstract]


def by_name(name: str) -> type[Toggle]:
    """The toggle class of that name; raises BadInput with the nearest one."""
    known = {cls.name: cls for cls in TOGGLES}
    if name not in known:
        raise unknown("toggle", name, known)
    return known[name]


def text(toggle: Toggle) -> str:
    """`name` or `name:field=value,field=value`, every field said: a record must not depend on a default."""
    values = ",".join(f"{f.name}={getattr(toggle, f.name)}" for f in fields(toggle))
    return f"{toggle.name}:{values}" if values else toggle.name


def parse(line: str) -> Toggle:
    """Inverse of `text`; a field that is left out has its default. Raises BadInput in one line."""
    name, _, rest = line.strip().partition(":")
    cls = by_name(name)
    known = {f.name: f for f in fields(cls)}
    given: dict[str, Any] = {}
    for pair in filter(None, rest.split(",")):
        key, sign, value = (piece.strip() for piece in pair.partition("="))
        if key not in known:
            raise unknown(f"parameter of {name}", key, known) if known else BadInput(f"{name} takes no parameters, got {pair!r}")
        if not sign or key in given:
            raise BadInput(f"{line!r}: write each parameter once, as {name}:{key}=value", cls.owns)
        given[key] = _value(cls, known[key], value)
    return cls(**given)


def _value(cls: type[Toggle], field: Field[Any], value: str) -> Any:
    """`value` as the field's type, checked against its choices or its range."""
    kind = get_type_hints(cls)[field.name]
    try:
        typed = kind(value)
    except ValueError as err:
        raise BadInput(f"{cls.name}:{field.name}={value}: give a value of type {kind.__name__}", cls.owns) from err
    choices, span = field.metadata.get("choices"), field.metadata.get("range")
    if choices and typed not in choices:
        raise unknown(field.name, value, choices)
    if span and not span[0] <= typed <= span[1]:  # also refuses NaN
        unit = field.metadata.get("unit", "")
        raise BadInput(f"{cls.name}:{field.name}={value}: use {span[0]} to {span[1]} {unit}".rstrip(), cls.owns)
    return typed
