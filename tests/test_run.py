"""`labkit run` on small notebooks: what a lab can do, and what can be done to it."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from fixture_labs import PARAMETERS, marked, runner, write_lab

from labkit.env import ROOT
from labkit.errors import BadInput
from labkit.kernel import save
from labkit.run import run

LONG = 'print("long", flush=True); record(); time.sleep(60)'
CHILD = 'import subprocess; subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)'


def last_run(home: Path) -> Path:
    return max((home / "runs").iterdir())


def wait_for(what: Callable[[], object], seconds: float = 60) -> object:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen")


@contextmanager
def running(folder: Path, *names: str) -> Iterator[subprocess.Popen[str]]:
    """`labkit run` in a process group of its own."""
    process = subprocess.Popen(
        [sys.executable, *runner(folder, *names)],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def cases(folder: Path) -> dict[str, str]:
    """Lab → passed, failure or skipped, out of a run's junit.xml."""
    suite = ET.parse(folder / "junit.xml").getroot()
    return {case.get("name", ""): case[0].tag if len(case) else "passed" for case in suite}


def test_a_lab_runs_with_its_parameters(tmp_path: Path, own_home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    labs = write_lab(
        tmp_path / "labs", "record()", "import ipywidgets; ipywidgets.IntSlider()", "print(tokens + 1, ratio, warm, device, mode)"
    )
    assert run(labs, ["1"], "smoke", ["tokens=41", "ratio=2", "warm=false", "device=cpu"]) == 0
    folder = last_run(own_home) / "01_fixture"
    nb = nbformat.read(folder / "executed.ipynb", as_version=4)
    assert nb.cells[-2].outputs[0].text == "42 2.0 False cpu smoke\n"
    assert "widgets" not in nb.metadata
    assert [json.loads(line)["kind"] for line in (folder / "story.jsonl").read_text().splitlines()] == ["lab", "finished"]
    assert cases(folder.parent) == {"01_fixture": "passed"}
    out, err = capfd.readouterr()
    assert "01 cell 7/7" in out
    assert "1 records" in out
    assert err == ""
    assert not marked(own_home)


def test_a_failing_cell_says_what_and_where(tmp_path: Path, own_home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    labs = write_lab(tmp_path / "labs", "record()", CHILD, "raise ValueError('boom\\nand more')")
    assert run(labs, [], "smoke") == 1
    err = capfd.readouterr().err
    assert err.startswith("labkit: 01_fixture failed in cell 6: ValueError: boom and more\n")
    assert len(err.splitlines()) < 12
    folder = last_run(own_home)
    assert cases(folder) == {"01_fixture": "failure"}
    assert "stopped early" in (folder / "index.html").read_text()
    assert not marked(own_home)


@pytest.mark.parametrize(
    "raised",
    [
        "labkit.BadInput('no such toggle:\\n use kv')",
        "NotFetched('no such toggle: use kv')",
        "OSError(28, 'No space left on device')",
    ],
)
def test_bad_input_in_the_kernel_is_one_line_and_code_2(raised: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    labs = write_lab(tmp_path / "labs", f"import labkit\nfrom labkit.errors import NotFetched\nraise {raised}")
    assert run(labs, [], "smoke") == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(("labkit: no such toggle: use kv", "labkit: the disk is full"))


def test_keep_going_and_its_absence(tmp_path: Path, own_home: Path) -> None:
    labs = write_lab(tmp_path / "labs", "1 / 0", name="01_broken")
    write_lab(labs, "record()", name="02_whole")
    assert run(labs, [], "smoke") == 1
    assert cases(last_run(own_home)) == {"01_broken": "failure", "02_whole": "skipped"}
    assert "not run" in (last_run(own_home) / "index.html").read_text()
    assert run(labs, [], "smoke", keep_going=True) == 1
    assert cases(last_run(own_home)) == {"01_broken": "failure", "02_whole": "passed"}


def test_a_time_limit_ends_a_lab(tmp_path: Path, own_home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(write_lab(tmp_path / "labs", LONG), [], "smoke", limit_s=4) == 1
    assert "time limit of 4 s" in capfd.readouterr().err
    assert cases(last_run(own_home)) == {"01_fixture": "failure"}
    assert not marked(own_home)


def test_a_kernel_that_aborts_after_its_last_cell_has_not_failed(tmp_path: Path, own_home: Path) -> None:
    labs = write_lab(tmp_path / "labs", "import atexit; atexit.register(os.abort); record()")
    assert run(labs, [], "smoke") == 0
    assert cases(last_run(own_home)) == {"01_fixture": "passed"}


def test_twice_the_budget_fails_in_quick_mode_only(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    labs = write_lab(tmp_path / "labs", "time.sleep(0.5)", parameters=PARAMETERS.replace("150", "0.1"))
    assert run(labs, [], "smoke") == 0
    assert run(labs, [], "quick") == 1
    assert "more than twice its budget" in capfd.readouterr().err


def test_the_budget_that_was_given_is_the_one_that_counts(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    labs = write_lab(tmp_path / "labs", "time.sleep(0.5)", parameters=PARAMETERS.replace("150", "0.1"))
    assert run(labs, [], "quick", ["budget_s=90"]) == 0
    assert "s of 90 s" in capfd.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("when", ["starting", "in a cell"])
def test_a_killed_kernel_ends_its_lab_and_leaves_nothing(when: str, tmp_path: Path, own_home: Path) -> None:
    labs = write_lab(tmp_path / "labs", CHILD, LONG)
    with running(labs) as process:
        (kernel, *_) = wait_for(lambda: marked(own_home))
        if when == "in a cell":
            wait_for(lambda: (own_home / "records.jsonl").exists())
        kernel.kill()
        out, err = process.communicate(timeout=10)
    assert process.returncode == 1
    assert "its kernel died" in err
    folder = last_run(own_home)
    assert cases(folder) == {"01_fixture": "failure"}
    assert (folder / "01_fixture" / "executed.ipynb").exists()
    assert "index.html" in out
    assert not marked(own_home)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "group", "code"), [(signal.SIGINT, True, 130), (signal.SIGINT, False, 130), (signal.SIGTERM, False, 143)]
)
def test_a_signal_keeps_report_and_xml(number: int, group: bool, code: int, tmp_path: Path, own_home: Path) -> None:
    labs = write_lab(tmp_path / "labs", CHILD, LONG)
    with running(labs) as process:
        wait_for(lambda: (own_home / "records.jsonl").exists())
        time.sleep(0.3)
        (os.killpg if group else os.kill)(process.pid, number)
        _, err = process.communicate(timeout=10)
    assert process.returncode == code
    assert len(err.splitlines()) == 1
    folder = last_run(own_home)
    assert cases(folder) == {"01_fixture": "failure"}
    assert "This run stopped early" in (folder / "index.html").read_text()
    nb = nbformat.read(folder / "01_fixture" / "executed.ipynb", as_version=4)
    assert "record" in "".join(output.text for output in nb.cells[-2].outputs)  # what the running cell had printed
    assert not marked(own_home)


@pytest.mark.slow
def test_a_kernel_killed_after_its_last_cell_has_died_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    killed = "import atexit, signal; atexit.register(os.kill, os.getpid(), signal.SIGKILL)"
    assert run(write_lab(tmp_path / "labs", killed), [], "smoke") == 1
    assert "its kernel died" in capfd.readouterr().err


def test_little_free_disk_is_refused_before_anything_starts(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labkit.run.FREE_BYTES", 1 << 60)
    with pytest.raises(BadInput, match="free some space or set LABKIT_HOME"):
        run(write_lab(tmp_path / "labs"), [], "smoke")
    assert not list((own_home / "runs").iterdir())


def test_save_leaves_the_old_file_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index.html"
    save(path, "old")
    monkeypatch.setattr(Path, "write_text", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        save(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
