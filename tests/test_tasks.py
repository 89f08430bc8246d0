"""What `make` calls, without installing anything."""

from pathlib import Path

import pytest

from labkit import tasks
from labkit.errors import BadInput


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """A checkout in tmp_path; every call of the environment's Python is noted and succeeds."""
    made: list[tuple[str, ...]] = []
    (tmp_path / "requirements.txt").write_text("torch==1\n")
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "01_a.ipynb").write_text("new")
    for name, value in {"ROOT": tmp_path, "ENV": tmp_path / ".venv", "STAMP": tmp_path / ".venv" / "stamp"}.items():
        monkeypatch.setattr(tasks, name, value)
    monkeypatch.setattr(tasks.venv, "create", lambda path, with_pip: path.mkdir(exist_ok=True))
    monkeypatch.setattr(tasks, "_python", lambda *args, cwd=None: made.append(args) or 0)
    return made


def test_setup_installs_once_and_again_when_a_pin_changes(calls: list[tuple[str, ...]], tmp_path: Path) -> None:
    tasks.setup()
    assert [args[1] for args in calls] == ["pip", "pip", "labkit"]
    tasks.setup()
    assert [args[1] for args in calls[3:]] == ["labkit"]
    (tmp_path / "requirements.txt").write_text("torch==2\n")
    tasks.setup()
    assert [args[1] for args in calls[4:]] == ["pip", "pip", "labkit"]


def test_setup_goes_on_without_the_real_model(
    calls: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tasks, "_python", lambda *args, cwd=None: 2 if "models" in args else 0)
    assert tasks.setup() == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("going on without smollm2-135m")


def test_a_failed_install_is_not_stamped(calls: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_python", lambda *args, cwd=None: 1)
    with pytest.raises(BadInput, match="run setup again"):
        tasks.setup()
    assert not tasks.STAMP.exists()


def test_lab_copies_what_is_missing_and_overwrites_nothing(calls: list[tuple[str, ...]], tmp_path: Path) -> None:
    tasks.lab()
    copied = tmp_path / "work" / "01_a.ipynb"
    assert copied.read_text() == "new"
    copied.write_text("mine")
    tasks.lab()
    assert copied.read_text() == "mine"
    assert "--ServerApp.ip=127.0.0.1" in calls[-1]


def test_size_fails_on_a_long_file_and_a_long_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tasks, "ROOT", tmp_path)
    (tmp_path / "labkit").mkdir()
    (tmp_path / "labkit" / "good.py").write_text("def f():\n" + "    pass\n" * 39)
    assert tasks.size() == 0
    (tmp_path / "labkit" / "long.py").write_text("\n" * 301)
    (tmp_path / "labkit" / "deep.py").write_text("def g():\n" + "    pass\n" * 40)
    assert tasks.size() == 1
    err = capsys.readouterr().err
    assert "long.py: 301 lines" in err
    assert "deep.py:1: g has 41 lines" in err
