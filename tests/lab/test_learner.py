"""learner.json when two kernels write it at once."""

import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from labkit.env import child_environment
from labkit.lab import learner

KEYS = 60
WRITER = """
import sys
from labkit.lab import learner
print("ready", flush=True)
sys.stdin.readline()
for n in range(%d):
    learner.save("predictions", f"{sys.argv[1]}/{n}", n)
"""


def test_two_kernels_that_write_at_once_lose_nothing(own_home: Path) -> None:
    command = [sys.executable, "-c", WRITER % KEYS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": child_environment()}
    writers = [subprocess.Popen([*command, name], **pipes) for name in ("a", "b")]
    assert [writer.stdout.readline() for writer in writers] == ["ready\n", "ready\n"]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=30)
    assert len(learner.load()["predictions"]) == 2 * KEYS
    assert {path.name for path in own_home.iterdir()} <= {"learner.json", "learner.json.lock"}


def test_a_file_that_another_process_holds_is_an_error_of_the_disk(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner.save("stack", "mine", 1)
    monkeypatch.setattr(learner, "PATIENCE_S", 0.1)
    with FileLock(own_home / "learner.json.lock"), pytest.raises(OSError, match=r"learner\.json\.lock"):
        learner.save("stack", "mine", 2)
    assert learner.load()["stack"] == {"mine": 1}
