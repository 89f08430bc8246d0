"""Controls derived from the toggle classes: toggles of one leaf form one choice, each parameter has its own control."""

from collections.abc import Iterable
from dataclasses import Field, dataclass, fields, replace
from html import escape
from typing import Any, get_type_hints

import ipywidgets as w

from labkit.env import Machine
from labkit.errors import BadInput
from labkit.lab.catalogue import TOGGLES, text
from labkit.lab.controls import classed, html, labelled
from labkit.spec import Spec, leaves
from labkit.toggle import Toggle

Options = dict[str, Toggle | None]  # what a choice says → what it switches on; None leaves the base as it is


@dataclass(frozen=True)
class Parameter:
    """A number of a toggle that is set beside the choice."""

    cls: type[Toggle]
    field: Field[Any]
    control: w.BoundedIntText | w.BoundedFloatText

    @property
    def label(self) -> str:
        return str(self.field.metadata["label"])


class Knob:
    """All controls of one leaf of `base`. `widget` is what the panel shows."""

    def __init__(self, classes: list[type[Toggle]], base: Any, machine: Machine) -> None:
        self.base, self.leaf = base, classes[0].owns
        self.label, self.dimension = classes[0].label, classes[0].dimension
        self.explicit = False  # switched on by name, although the base is already so
        self.options = _options(classes, base)
        self.refusals = {label: can.reason for label in self.options if not (can := machine.can(label)).ok}
        able = [label for label in self.options if label not in self.refusals]
        self.choice = classed(w.ToggleButtons(options=able, tooltips=[f"{self.label}: {label}" for label in able]), "lk-choice")
        self.params = [Parameter(cls, f, _control(cls, f)) for cls in classes for f in _parameters(cls)]
        self.note = html("", "lk-note")
        self.widget = self._layout()
        self.choice.observe(self._turned, "value")
        for param in self.params:
            param.control.observe(self._turned, "value")
        self.reset()

    def _layout(self) -> w.VBox:
        greyed = [classed(w.ToggleButton(description=label, disabled=True), "lk-choice", "lk-unable") for label in self.refusals]
        lines = [labelled(self.label, self.choice, *greyed)]
        for param in self.params:
            unit = html(f'<span class="lk-unit">{escape(param.field.metadata.get("unit", ""))}</span>')
            lines.append(labelled(param.label, param.control, unit))
        return classed(w.VBox([*lines, self.note]), "lk-knob")

    def reset(self) -> None:
        """Every control as the base has it."""
        match = _match(self.options, self.base)
        self._set(*match if match else (_word(leaves(self.base)[self.leaf]), None))

    def say(self, error: str = "") -> None:
        """The line under the knob: an error, else the reasons for what is greyed."""
        reasons = [f"{label}: {why}" for label, why in self.refusals.items()]
        reasons += [f"{p.label}: only with {self._option_of(p.cls)}" for p in self.params if p.control.disabled]
        self.note.value = f'<span class="lk-error" role="alert">{escape(error)}</span>' if error else escape(" · ".join(reasons))

    def toggle(self) -> Toggle | None:
        """What the controls say; None where that is the base. Raises BadInput for values the toggle refuses."""
        chosen = self.options[self.choice.value]
        if chosen is None:
            return None
        wanted = replace(chosen, **{p.field.name: p.control.value for p in self.params if p.cls is type(chosen)})
        return wanted if self.explicit or wanted(self.base) != self.base else None

    def put(self, toggle: Toggle) -> None:
        """Set the controls to `toggle`. Raises BadInput where a control cannot hold it."""
        label = _label(toggle, self.base)
        if label in self.refusals:
            raise BadInput(f"{label}: {self.refusals[label]}", self.leaf)
        self._set(label, toggle)
        self.explicit = True
        if self.toggle() != toggle:
            raise BadInput(f"{text(toggle)}: beyond the range of its control", self.leaf)

    def _set(self, label: str, toggle: Toggle | None) -> None:
        self.choice.value = label
        for param in self.params:
            if param.cls is type(toggle):
                param.control.value = getattr(toggle, param.field.name)
        self._turned()

    def _turned(self, _: object = None) -> None:
        chosen = self.options[self.choice.value]
        for param in self.params:
            param.control.disabled = param.cls is not type(chosen)
        self.explicit = False
        self.say()

    def _option_of(self, cls: type[Toggle]) -> str:
        return next(label for label, toggle in self.options.items() if type(toggle) is cls)


def knobs(base: Any, machine: Machine) -> list[Knob]:
    """One knob for each leaf of `base` that some toggle owns."""
    groups: dict[str, list[type[Toggle]]] = {}
    for cls in TOGGLES:
        if isinstance(base, cls.of):
            groups.setdefault(cls.owns, []).append(cls)
    return [Knob(classes, base, machine) for classes in groups.values()]


def read(controls: Iterable[Knob]) -> list[Toggle]:
    """Toggles that are on: those that differ from the base or were put on by name."""
    return [toggle for knob in controls if (toggle := knob.toggle()) is not None]


def write(controls: Iterable[Knob], toggles: Iterable[Toggle]) -> None:
    """The inverse of `read`: every knob to its toggle, the others to the base."""
    by_leaf = {knob.leaf: knob for knob in controls}
    for knob in by_leaf.values():
        knob.reset()
    for toggle in toggles:
        by_leaf[toggle.owns].put(toggle)


def _options(classes: list[type[Toggle]], base: Any) -> Options:
    """One option a class, or one a value where a field has choices; led by the base itself where none equals it."""
    found: Options = {}
    for cls in classes:
        picked = _picked(cls)
        made = [cls(**{picked.name: value}) for value in picked.metadata["choices"]] if picked else [cls()]
        found |= {_label(toggle, base): toggle for toggle in made}
    return found if _match(found, base) else {_word(leaves(base)[classes[0].owns]): None, **found}


def _word(value: Any) -> str:
    """A leaf's value as a choice says it."""
    if isinstance(value, Spec):
        return value.tag
    return "default" if value is None else str(value)


def _label(toggle: Toggle, base: Any) -> str:
    """The value that the toggle sets, or "set" where a number beside it says which."""
    value, picked = leaves(toggle(base))[toggle.owns], _picked(type(toggle))
    if picked and isinstance(value, Spec):
        return f"{value.tag}: {getattr(toggle, picked.name)}"
    return "set" if _parameters(type(toggle)) and not isinstance(value, Spec) else _word(value)


def _match(options: Options, base: Any) -> tuple[str, Toggle] | None:
    """The option that reproduces the base, with the base's own parameters."""
    for label, toggle in options.items():
        value = leaves(base)[toggle.owns] if toggle else None
        if toggle is None or value is None:
            continue
        own = {f.name: getattr(value, f.name, None) if isinstance(value, Spec) else value for f in _parameters(type(toggle))}
        if None in own.values():  # another kind of spec
            continue
        same = replace(toggle, **own)
        if same(base) == base:
            return label, same
    return None


def _picked(cls: type[Toggle]) -> Field[Any] | None:
    """The field whose values become the options of the choice."""
    return next((f for f in fields(cls) if "choices" in f.metadata), None)


def _parameters(cls: type[Toggle]) -> list[Field[Any]]:
    """Fields with a control of their own."""
    picked = _picked(cls)
    return [f for f in fields(cls) if picked is None or f.name != picked.name]


def _control(cls: type[Toggle], field: Field[Any]) -> w.BoundedIntText | w.BoundedFloatText:
    low, high, step = field.metadata["range"]
    name = f"{cls.label}: {field.metadata['label']}"
    kind = w.BoundedIntText if get_type_hints(cls)[field.name] is int else w.BoundedFloatText
    return classed(kind(value=field.default, min=low, max=high, step=step, tooltip=name), "lk-number")
