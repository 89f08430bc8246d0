import json

import pytest

from labkit.errors import BadInput
from labkit.lab import learner
from labkit.lab.predict import Prediction
from labkit.measure.stats import Ratio
from tests.lab.fakes import HOSTILE

MEASURED = Ratio(4.0, 3.8, 4.2)
WHY = "Usually the reads are forgotten."


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("LABKIT_HOME", str(tmp_path))
    return tmp_path


def ask(**how) -> Prediction:
    return Prediction("01", "growth", "How many times as long?", **({"unit": "times", "low": 1, "high": 1000} | how))


def test_lock_in_keeps_the_guess_over_a_restart_and_never_changes_it() -> None:
    first = ask()
    first.entry.value = "12"
    first.lock.click()
    again = ask()
    assert (again.guess.value, again.guess.at) == (12.0, first.guess.at)
    assert again.entry.disabled
    assert again.entry.value == "12"
    assert again.slider.value == pytest.approx(12)
    again.entry.value = "4"
    again.lock.click()
    assert "cannot be changed" in again.said.value
    assert ask().guess.value == 12.0


def test_nothing_entered_cannot_be_locked() -> None:
    shown = ask()
    assert "lk-off" in shown.lock._dom_classes
    shown.lock.click()
    assert shown.guess is None
    assert not learner.path().exists()


@pytest.mark.parametrize("typed", ["abc", "-3", "0", "nan", "inf", "1e999"])
def test_what_is_no_positive_number_is_refused_beside_the_box(typed: str) -> None:
    shown = ask()
    shown.entry.value = typed
    shown.lock.click()
    assert "not a number above 0" in shown.said.value
    assert shown.guess is None


def test_the_slider_writes_into_the_box() -> None:
    shown = ask(high=1e7)
    shown.slider.value = 1e6
    shown.lock.click()
    assert shown.guess.value == pytest.approx(1e6)


def test_reveal_shows_guess_interval_factor_and_reason() -> None:
    shown = ask()
    shown.entry.value = "12"
    shown.lock.click()
    html = shown.reveal(MEASURED, WHY)
    for said in ("<b>12.0 times</b>", "4.00 times [3.80, 4.20]", "3.00× too high", WHY):
        assert said in html
    assert shown.result["factor"] == 3.0
    assert json.loads(json.dumps(shown.result))["guess"] == 12.0


@pytest.mark.parametrize(("typed", "said"), [("1", "4.00× too low"), ("4.1", "within the interval")])
def test_the_error_in_words(typed: str, said: str) -> None:
    shown = ask()
    shown.entry.value = typed
    shown.lock.click()
    assert said in shown.reveal(MEASURED, WHY)


def test_an_open_prediction_is_skipped_by_the_result_and_stays_so() -> None:
    shown = ask()
    html = shown.reveal(MEASURED, WHY)
    assert "<details>" in html
    assert "show anyway" in html
    assert shown.result["guess"] is None
    again = ask()
    assert "skipped" in again.said.value
    again.entry.value = "4"
    with pytest.raises(BadInput, match="closed"):
        again.lock_in()


def test_a_headless_run_records_skipped_but_leaves_the_readers_file_alone() -> None:
    shown = ask(headless=True)
    shown.reveal(MEASURED, WHY)
    assert shown.result["guess"] is None
    assert ask().guess is None


def test_a_choice_is_locked_and_compared() -> None:
    shown = ask(choices=("weights", "arithmetic"))
    shown.lock.click()
    assert "choose one" in shown.said.value
    shown.entry.value = "arithmetic"
    shown.lock.click()
    assert "another one" in shown.reveal("weights", WHY)
    assert "That is what you said" in ask(choices=("weights", "arithmetic")).reveal("arithmetic", WHY)


def test_a_guess_that_the_question_no_longer_offers_is_remembered_without_an_error() -> None:
    shown = ask(choices=("weights", "arithmetic"))
    shown.entry.value = "arithmetic"
    shown.lock.click()
    assert ask(choices=("weights", "KV")).guess.value == "arithmetic"
    far = Prediction("01", "far", "?", low=1, high=10)
    far.entry.value = "5000000"
    far.lock.click()
    assert Prediction("01", "far", "?", low=1, high=10).entry.value == "5000000"


@pytest.mark.parametrize("how", [{"choices": tuple("abcde")}, {"choices": ("a",)}, {"low": 0}, {"low": 5, "high": 5}])
def test_a_question_that_cannot_be_asked_is_refused(how) -> None:
    with pytest.raises(BadInput, match="prediction growth"):
        ask(**how)


@pytest.mark.parametrize("broken", ['{"predictions": {"01/gr', "[1]", '{"predictions": 3}', b"\xff\xfe\x00"])
def test_a_broken_file_is_set_aside_with_one_line(broken, own_home, capsys) -> None:
    learner.path().write_bytes(broken if isinstance(broken, bytes) else broken.encode())
    shown = ask()
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "not readable" in out
    shown.entry.value = "3"
    shown.lock.click()
    (aside,) = own_home.glob("learner.broken-*.json")
    assert aside.read_bytes() == (broken if isinstance(broken, bytes) else broken.encode())
    assert ask().guess.value == 3.0


def test_other_sections_are_kept() -> None:
    learner.save("stack", "mine", ["sdpa"])
    shown = ask()
    shown.entry.value = "3"
    shown.lock.click()
    assert learner.load()["stack"] == {"mine": ["sdpa"]}


def test_a_full_disk_is_said_and_nothing_is_locked(monkeypatch, own_home) -> None:
    learner.save("stack", "mine", 1)
    before = learner.path().read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("labkit.measure.record.os.replace", full)
    shown = ask()
    shown.entry.value = "3"
    shown.lock.click()
    assert "not locked" in shown.said.value
    assert shown.guess is None
    assert learner.path().read_bytes() == before
    assert list(own_home.glob(".learner.json.*")) == []


def test_hostile_text_is_escaped() -> None:
    shown = Prediction("01", "x", HOSTILE, unit=HOSTILE, low=1, high=10)
    assert "<img" not in shown.reveal(MEASURED, HOSTILE)
    assert "<img" not in shown._repr_mimebundle_()["text/html"]
    chosen = Prediction("01", "y", HOSTILE, choices=(HOSTILE, "b"))
    chosen.entry.value = HOSTILE
    chosen.lock.click()
    assert "<img" not in chosen.reveal(HOSTILE, HOSTILE)
