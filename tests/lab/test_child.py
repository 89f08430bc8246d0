"""The memory child: all names of one variant, and it does not outlive its parent."""

import json
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from labkit.engine.decode import Decode
from labkit.engine.prompt import RandomTokens
from labkit.errors import BadInput
from labkit.lab.child import in_child
from labkit.spec import encode

WORK = Decode("random:tiny-llama", RandomTokens(8), tokens=4)
ORPHAN = """
import json, subprocess, sys, os
child = subprocess.Popen([sys.executable, "-m", "labkit.lab.child"], stdin=subprocess.PIPE, start_new_session=True)
child.stdin.write(json.dumps({"work": %s, "device": "cpu", "parent": os.getpid()}).encode()); child.stdin.close()
print(child.pid, flush=True)
"""


@pytest.mark.slow
def test_every_name_has_bytes_or_a_reason():
    memory = in_child(WORK, "cpu")
    assert memory["kv"] > 0 and memory["weights"] > 10_000_000
    assert memory["process_peak"] is None or memory["process_peak"] >= memory["weights"]
    assert all(memory[name] is not None or memory["why"][name] for name in memory if name != "why")


@pytest.mark.slow
def test_a_child_that_fails_is_one_line():
    with pytest.raises(BadInput, match="memory child ended") as refused:
        in_child(Decode("random:nosuch", RandomTokens(8)), "cpu")
    assert "\n" not in str(refused.value)


def test_a_child_over_its_time_limit_is_one_line(monkeypatch):
    monkeypatch.setattr("labkit.lab.child.CHILD_LIMIT_S", 0.1)
    with pytest.raises(BadInput, match=r"memory child took more than 0\.1 s") as refused:
        in_child(WORK, "cpu")
    assert "\n" not in str(refused.value)


def test_a_child_ends_with_its_parent():
    work = json.dumps(json.dumps(encode(replace(WORK, tokens=1500))))  # lives long enough to be left behind
    parent = subprocess.run([sys.executable, "-c", ORPHAN % f"json.loads({work})"], capture_output=True, text=True, check=True)
    child = int(parent.stdout)
    deadline = time.monotonic() + 5
    while psutil.pid_exists(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(child)
