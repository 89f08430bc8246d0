"""The command line: what is wrong is said in one line with exit code 2, before anything starts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fixture_labs import write_lab

from labkit import cli, tasks
from labkit.env import ROOT

BAD = {
    "unknown command": (["rnu"], "did you mean run?"),
    "unknown command, nothing near": (["zzz"], "there are: claims,"),
    "unknown option": (["run", "--fast"], "unrecognized arguments: --fast"),
    "unknown lab": (["run", "07"], "unknown lab '07'"),
    "mistyped lab": (["run", "01_fixtrue"], "did you mean 01_fixture?"),
    "unknown mode": (["run", "--mode", "quik"], "did you mean quick?"),
    "unknown mode as parameter": (["run", "-p", "mode=quik"], "did you mean quick?"),
    "unknown parameter": (["run", "-p", "token=3"], "did you mean tokens?"),
    "parameter without value": (["run", "-p", "tokens"], "-p name=value"),
    "text for a number": (["run", "-p", "tokens=many"], "tokens is a int, as in 8"),
    "fraction for a whole number": (["run", "-p", "tokens=1.5"], "tokens is a int"),
    "numbers in a list of texts": (["run", "-p", "toggles=[1]"], "toggles is a list, as in ['eager']"),
    "what Python cannot hold": (["run", "-p", "tokens={[]:1}"], "tokens is a int"),
    "more than a fraction can be": (["run", "-p", "ratio=1" + "0" * 400], "ratio is a float"),
    "number for yes or no": (["run", "-p", "warm=1"], "warm is a bool"),
    "time limit of nothing": (["run", "--timeout", "0"], "seconds above 0"),
    "time limit that is no number": (["run", "--timeout", "soon"], "invalid float value: 'soon'"),
    "nothing to fetch": (["models", "get"], "labkit models list"),
    "claims of an unknown lab": (["claims", "--lab", "77"], "unknown lab '77'"),
    "claims of a mistyped lab": (["claims", "--coverage", "--lab", "02_compte"], "did you mean 02_compute?"),
    "claims in two forms": (["claims", "--json", "--coverage"], "not allowed with"),
    "unknown action": (["models", "gte"], "did you mean get?"),
}


@pytest.fixture
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command line sees one small lab."""
    monkeypatch.setattr(cli, "LABS", write_lab(tmp_path / "labs"))
    return cli.LABS


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_code_2(name: str, labs: Path, own_home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words, said = BAD[name]
    assert cli.main(words) == 2
    out, err = capfd.readouterr()
    (line,) = err.splitlines()
    assert line.startswith("labkit: ")
    assert said in line
    assert out == ""
    assert not own_home.exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "\0"])
def test_a_broken_notebook_is_bad_input(content: str, labs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (labs / "02_broken.ipynb").write_text(content)
    assert cli.main(["list"]) == 2
    assert "02_broken.ipynb" in capfd.readouterr().err


def test_no_labs_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cli, "LABS", tmp_path)
    assert cli.main(["run"]) == 2
    assert "no labs in" in capfd.readouterr().err


def test_list_names_title_and_budget(labs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    assert capfd.readouterr().out == "01_fixture  A fixture  150 s in quick mode\n"


@pytest.mark.parametrize(
    ("raised", "code", "lines"), [(KeyboardInterrupt(), 130, 0), (OSError(28, "No space left on device", "x.html"), 2, 1)]
)
def test_ctrl_c_and_a_full_disk(
    raised: BaseException, code: int, lines: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(_: object) -> int:
        raise raised

    monkeypatch.setattr(cli, "_list", broken)
    assert cli.main(["list"]) == code
    assert len(capfd.readouterr().err.splitlines()) == lines


@pytest.mark.parametrize(("words", "lines"), [([], 230), (["--lab", "1"], 14), (["--coverage"], 453 + 16)])
def test_claims_and_coverage_are_printed(words: list[str], lines: int, labs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["claims", *words]) == 0
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == lines
    assert ("lab 01: 0 of 26 rows have a record\n" in out) == ("--coverage" in words)  # the fixture lab has landed
    assert err == ""


def test_claims_as_json_with_a_verdict_and_a_torn_line(own_home: Path, labs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    own_home.mkdir()
    line = {"id": "abc", "lab": "01", "what": "verdict on B011", "mode": "quick", "values": {"verdict": "refuted", "why": "n^1"}}
    (own_home / "records.jsonl").write_text(f'\n{json.dumps(line)}\n\n{{"id": "torn')
    assert cli.main(["claims", "--json", "--lab", "01"]) == 0
    out, err = capfd.readouterr()
    assert [c["newest"]["verdict"] for c in json.loads(out) if c["newest"]] == ["refuted"]
    assert err == "labkit: skipped 1 torn line(s) of records.jsonl\n"


def test_a_reader_that_closes_early_gets_no_traceback() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m labkit claims --json | head -1"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("[\n", "")


@pytest.mark.parametrize("words", [["run", "--mode", "smoke"], ["models", "get", "smollm2-135m"]])
def test_a_home_that_cannot_be_written_is_one_line(
    words: list[str], labs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()  # nothing can be made below a file, not even by root
    monkeypatch.setenv("LABKIT_HOME", str(tmp_path / "file" / "home"))
    assert cli.main(words) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "file/home" in line or "Not a directory" in line
    assert "LABKIT_HOME" in line or "labkit models get" in line


def test_help_names_every_command(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main([])
    out = capfd.readouterr().out
    assert all(f"    {name} " in out for name in ("run", "list", "claims", "models", *tasks.TASKS))


def test_starting_needs_the_standard_library_only() -> None:
    """`python3 -m labkit setup` comes before anything is installed; the ledger can be read before it, too."""
    code = "import sys, labkit.cli, labkit.lab.coverage, labkit.measure.record; print(sorted({n.split('.')[0] for n in sys.modules} & {'torch', 'numpy', 'nbformat', 'psutil', 'plotly', 'IPython'}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
