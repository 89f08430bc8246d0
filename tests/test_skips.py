"""Under LABKIT_CI=1 a test that skips fails, unless allowed_skips.txt lists it."""

import shutil
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
TEST = "import pytest\ndef test_a(): pytest.skip('needs: apt-get install chromium')\ndef test_b(): pytest.skip('no GPU')\n"


@pytest.mark.parametrize(
    ("ci", "listed", "failed"),
    [("0", "", 0), ("1", "", 2), ("1", "test_x.py::test_b # no GPU here", 1), ("1", "test_x.py::test_a\ntest_x.py::test_b", 0)],
)
def test_unlisted_skips_fail(ci: str, listed: str, failed: int, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_CI", ci)
    shutil.copy(Path(__file__).with_name("conftest.py"), pytester.path / "conftest.py")
    (pytester.path / "allowed_skips.txt").write_text(listed)
    (pytester.path / "test_x.py").write_text(TEST)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    done.assert_outcomes(failed=failed, skipped=2 - failed)
    if failed == 2:
        done.stdout.fnmatch_lines(["*test_a skipped, and tests/allowed_skips.txt does not list it*apt-get install chromium*"])


def test_a_file_that_skips_as_a_whole_fails(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_CI", "1")
    shutil.copy(Path(__file__).with_name("conftest.py"), pytester.path / "conftest.py")
    (pytester.path / "allowed_skips.txt").write_text("")
    (pytester.path / "test_y.py").write_text("import pytest\npytest.importorskip('no_such_package')\n")
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(errors=1)
