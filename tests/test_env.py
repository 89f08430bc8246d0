"""What the machine is asked to be: threads by the environment."""

import pytest

from labkit.env import machine
from labkit.errors import BadInput

CORES = machine("cpu").cores


@pytest.mark.parametrize("given", ["²", "0", "-1", "two", " ", str(CORES + 1), "9" * 5000])
def test_threads_that_the_machine_does_not_have_are_refused_in_one_line(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_THREADS", given)
    with pytest.raises(BadInput, match=f"1 to {CORES}"):
        machine.__wrapped__("cpu")


@pytest.mark.parametrize(("given", "threads"), [("1", 1), (str(CORES), CORES), ("", CORES)])
def test_threads_of_the_environment_are_used(given: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_THREADS", given)
    assert machine.__wrapped__("cpu").threads == threads
