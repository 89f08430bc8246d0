"""What all tests share: one thread, a home of their own, and skips that CI does not accept silently."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("LABKIT_THREADS", "1")

ALLOWED = Path(__file__).with_name("allowed_skips.txt")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or writes the records of this machine."""
    monkeypatch.setenv("LABKIT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LABKIT_STORY", raising=False)
    return tmp_path / "home"


def _allowed() -> set[str]:
    lines = (line.partition(" #")[0].strip() for line in ALLOWED.read_text(encoding="utf-8").splitlines())
    return {line for line in lines if line and not line.startswith("#")}


def _judged(report: Any) -> Any:
    """Under LABKIT_CI=1 a skip that allowed_skips.txt does not list is a failure that says why it skipped."""
    if os.environ.get("LABKIT_CI") == "1" and report.skipped and not hasattr(report, "wasxfail") and report.nodeid not in _allowed():
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} skipped, and tests/allowed_skips.txt does not list it: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    return _judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    return _judged((yield))  # a file that skips as a whole
