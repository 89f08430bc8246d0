"""One measurement at a time, and who counts as somebody else."""

import threading

import pytest

from labkit.measure import lock
from labkit.measure.lock import Stopped, exclusive, others


@pytest.fixture(autouse=True)
def own_lock(tmp_path, monkeypatch):
    monkeypatch.setenv("LABKIT_LOCK", str(tmp_path / "lock"))


def test_a_waiter_says_who_holds_the_machine_and_goes_on_when_it_is_free():
    said, order = [], []

    def second():
        with exclusive("second", say=said.append):
            order.append("second")

    with exclusive("first"):
        waiting = threading.Thread(target=second)
        waiting.start()
        while not said:
            pass
        order.append("first")
    waiting.join(timeout=20)
    assert order == ["first", "second"]
    assert "first" in said[0] and "waiting" in said[0]


def test_a_waiter_can_be_stopped_and_the_lock_is_given_back_after_an_error():
    stop = threading.Event()
    stop.set()
    with exclusive("first"), pytest.raises(Stopped), exclusive("second", say=lambda _: None, stop=stop):
        pass
    with pytest.raises(RuntimeError, match="inside"):
        _raise_inside()
    with exclusive("third"):
        pass


def _raise_inside():
    with exclusive("broken"):
        raise RuntimeError("inside")


@pytest.mark.parametrize(
    ("used", "named"),
    [
        ({1: ("make", 0.2)}, ["make 40%"]),
        ({1: ("make", 0.04)}, []),  # under a tenth of a core
        ({n: (f"p{n}", 0.02) for n in range(1, 6)}, ["p1 4%"]),  # many small ones together: busy, and one is named
        ({1: ("chromium", 0.5), 2: ("firefox-bin", 0.5)}, []),  # the browser that shows the lab
        ({7: ("python", 0.5)}, []),  # this run's own tree
        ({99: ("cc1", 0.4)}, ["cc1 80%"]),  # born during the look
    ],
)
def test_who_is_busy(monkeypatch, used, named):
    idle = {pid: (name, 0.0) for pid, (name, _) in used.items() if pid != 99}
    readings = iter([idle, used])
    monkeypatch.setattr(lock, "_cpu_seconds", lambda: next(readings))
    monkeypatch.setattr(lock, "_ours", lambda: {7})
    monkeypatch.setattr(lock.time, "sleep", lambda _: None)
    assert others(0.5) == named


def test_who_gets_busy_during_a_measurement_marks_it_and_who_comes_later_does_not(monkeypatch):
    now = {1: ("make", 0.0)}
    monkeypatch.setattr(lock, "_cpu_seconds", lambda: dict(now))
    monkeypatch.setattr(lock, "_ours", set)
    monkeypatch.setattr(lock, "others", list)
    busy = lock.wait_until_quiet(0.0)
    assert not busy and list(busy) == []
    now[2] = ("cc1", 5.0)
    assert busy[0].startswith("cc1")
    busy.end()
    now[3] = ("later", 50.0)
    assert len(busy) == 1 and busy[0].startswith("cc1")


def test_waiting_for_quiet_can_be_stopped(monkeypatch):
    monkeypatch.setattr(lock, "others", lambda: ["make 40%"])
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        lock.wait_until_quiet(10.0, stop)
