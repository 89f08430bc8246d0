"""The one abstraction: a toggle turns a workload into another workload. Nothing is edited, so nothing is restored."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from labkit.errors import BadInput
from labkit.spec import Spec, leaves, with_leaf


@dataclass(frozen=True)
class Toggle(Spec):
    """Frozen parameters, called with a workload. Off means absent.

    Field metadata holds `label`, `choices` or `range`, and `unit`: panel, parsing and glossary are derived from it.
    """

    of: ClassVar[type]  # the workload class it applies to
    name: ClassVar[str]  # as in `static-kv:max_tokens=512`
    dimension: ClassVar[str]  # compute, memory, transfer, algorithm
    owns: ClassVar[str]  # the leaf it owns; toggles of one leaf form one choice in a panel
    label: ClassVar[str]  # what the panel calls it
    exact: ClassVar[bool]  # same stored weights, same function, float32 arithmetic
    loses: ClassVar[str]  # one sentence: when it costs more than it gives
    cases: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)  # parameter sets for the test matrix

    @abstractmethod
    def __call__(self, work: Any) -> Any:
        """The workload with this toggle on."""


def changed(work: Any, toggle: Toggle) -> dict[str, Any]:
    """Leaves that the toggle sets to another value than `work` has: what it owns."""
    if not isinstance(work, toggle.of):
        raise BadInput(f"{toggle.name} applies to {toggle.of.__name__}, not to {type(work).__name__}")
    before = leaves(work)
    return {path: value for path, value in leaves(toggle(work)).items() if value != before[path]}


def stack(work: Any, toggles: Iterable[Toggle]) -> Any:
    """`work` with all toggles on; their order never matters. Raises BadInput when two toggles own one leaf."""
    owner: dict[str, Toggle] = {}
    out = work
    for toggle in toggles:
        for path, value in changed(work, toggle).items():
            if path in owner:
                raise BadInput(f"{toggle.name} and {owner[path].name} both set {path}: keep one of them", path)
            owner[path] = toggle
            out = with_leaf(out, path, value)
    return out
