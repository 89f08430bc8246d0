"""The doctor on machines that lack something."""

import shutil
import sys
from pathlib import Path

import pytest

from labkit import cli, doctor, env


@pytest.fixture(autouse=True)
def elsewhere(own_home, monkeypatch):
    """A fresh home, and a machine that is probed anew."""
    own_home.mkdir()
    env.machine.cache_clear()
    yield
    env.machine.cache_clear()


def lines(capsys, code: int = 0) -> str:
    assert cli.main(["doctor"]) == code
    return capsys.readouterr().out


def test_what_is_missing_has_a_fix_and_what_works_without(capsys, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(doctor, "MEMORY_BYTES", 2**60)
    said = lines(capsys)
    for name in ("real model", "compiler", "browser", "memory"):
        assert f"no  {name}" in said
    assert "`labkit models get smollm2-135m`" in said and "apt-get install g++" in said and "apt-get install chromium" in said
    assert said.count("fix: ") == said.count("no  ")
    assert "the labs can run" in said


def test_missing_packages_end_with_code_1_and_probe_no_further(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "package_versions", lambda: {"python": "3.11", "torch": "missing", "transformers": "5"})
    monkeypatch.setattr(doctor, "machine", lambda: pytest.fail("torch is missing"))
    said = lines(capsys, code=1)
    assert "missing: torch" in said and "`make setup`" in said and "cannot run yet" in said


def test_a_wrong_thread_count_is_found(capsys, monkeypatch):
    monkeypatch.setenv("LABKIT_THREADS", "many")
    assert "LABKIT_THREADS='many'" in lines(capsys, code=1)


def test_an_old_python_is_said(capsys, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    assert "no  python" in lines(capsys, code=1)


class NoProc(type(Path())):
    """A path on a system without /proc."""

    def read_text(self, *args, **kwargs):
        if str(self).startswith("/proc"):
            raise FileNotFoundError(str(self))
        return super().read_text(*args, **kwargs)


def test_without_proc_and_affinity(capsys, monkeypatch):
    monkeypatch.delattr(env.os, "sched_getaffinity")
    monkeypatch.setattr(env, "Path", NoProc)
    assert "the labs can run" in lines(capsys)
