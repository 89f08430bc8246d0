"""Lab 01 as a whole, in smoke mode: every row leaves a record, check cells say what they said, the text model is enough."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from labkit.env import ROOT
from labkit.lab.lab01 import JUDGES
from labkit.run import run

NOTEBOOK = ROOT / "notebooks" / "01_generation_loop.ipynb"
ROWS = {"A002", "A003", "A004", "A009", "A053", "A054", *JUDGES}
GUARD = """
import os, pathlib, socket

def only_loopback(self, address, connect=socket.socket.connect):
    if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        pathlib.Path(__file__).with_name("left-the-machine").touch()
        raise OSError(f"network refused: {address}")
    return connect(self, address)

socket.socket.connect = only_loopback
pathlib.Path(__file__).with_name("guarded").touch()
"""
pytestmark = pytest.mark.slow


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a smoke run without the real model: what a machine without a registry gets."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABKIT_HOME", str(home))
        patch.setenv("LABKIT_LOCK", str(home / "lock"))
        (home / "sitecustomize.py").write_text(GUARD, encoding="utf-8")
        patch.setenv("PYTHONPATH", str(home))
        assert run(ROOT / "notebooks", ["01"], mode="smoke", given=['toggles=["static-kv:max_tokens=64"]']) == 0
    return home


def test_every_row_of_the_lab_leaves_a_record(finished):
    rows = {row for record in lines(finished / "records.jsonl") for row in record["rows"]}
    assert rows >= ROWS


def test_the_lab_needs_no_network(finished):
    assert (finished / "guarded").exists()
    assert not (finished / "left-the-machine").exists()


def test_records_say_whether_every_weight_survived_its_dtype(finished):
    rungs = [r for r in lines(finished / "records.jsonl") if "weights_survive" in r["values"]]
    halved = {r["model"].startswith("random"): r["values"]["weights_survive"] for r in rungs if "dtype:dtype=bfloat16" in r["toggles"]}
    assert halved == {True: False, False: True}  # random weights are drawn in float32, the shipped ones are stored as bfloat16
    assert {r["values"]["weights_survive"] for r in rungs if not r["toggles"]} == {True}


def test_without_the_real_model_its_question_is_undecided_and_says_the_command(finished):
    (story,) = finished.glob("runs/*/*/story.jsonl")
    verdicts = {line["id"]: line for line in lines(story) if line["kind"] == "claim"}
    assert set(verdicts) == set(JUDGES)
    assert verdicts["B005"]["verdict"] == "undecided"
    assert "labkit models get smollm2-135m" in verdicts["B005"]["why"]


def test_records_say_where_the_weights_are_from(finished):
    measured = [r for r in lines(finished / "records.jsonl") if r["samples_s"]]
    assert measured
    assert all(r["origin"].startswith("random" if r["model"].startswith("random") else "trained for these labs") for r in measured)
    assert all(r["machine"]["versions"]["torch"] and r["threads"] == 1 for r in measured)
    curve = next(r for r in measured if "B106" in r["rows"])
    assert "random keys and values" in curve["origin"]


def test_the_panel_ran_with_the_toggles_of_the_parameter(finished):
    assert any(r["toggles"] == ["static-kv:max_tokens=64"] for r in lines(finished / "records.jsonl"))


def test_the_report_holds_every_figure(finished):
    (story,) = finished.glob("runs/*/*/story.jsonl")
    (report,) = finished.glob("runs/*/index.html")
    figures = [line for line in lines(story) if line["kind"] == "figure"]
    assert len(figures) >= 3
    assert report.read_text(encoding="utf-8").count('class="plot"') == len(figures)
    assert not any("widgets" in nbformat.read(path, 4).metadata for path in finished.glob("runs/*/*/executed.ipynb"))


def test_check_cells_say_what_they_said(tmp_path):
    nb = nbformat.read(NOTEBOOK, 4)
    cell = next(c for c in nb.cells if "parameters" in c.metadata.get("tags", []))
    cell.source = cell.source.replace('mode = "quick"', 'mode = "smoke"')
    assert sum("check" in c.metadata.get("tags", []) for c in nb.cells) >= 2
    nbformat.write(nb, tmp_path / "lab.ipynb")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        os.devnull,
        "-p",
        "nbval",
        "--nbval-lax",
        "--nbval-cell-timeout=120",
        "lab.ipynb",
    ]
    env = os.environ | {
        "LABKIT_HOME": str(tmp_path / "home"),
        "LABKIT_STORY": str(tmp_path / "story.jsonl"),
        "LABKIT_LOCK": str(tmp_path / "lock"),
    }
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout[-3000:]
