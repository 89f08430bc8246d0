"""Records: appended whole, refused when a number is none, readable after a torn line."""

import errno
import os

import pytest

from labkit.errors import BadInput
from labkit.measure import record
from labkit.measure.record import append_line, read_lines


def test_lines_come_back_and_a_torn_one_is_counted(tmp_path):
    path = tmp_path / "deep" / "records.jsonl"
    append_line(path, {"what": "one", "text": "国 <b>"})
    with path.open("a", encoding="utf-8") as file:
        file.write('\n{"what": "to')  # a process died inside its write
    append_line(path, {"what": "three"})
    found, torn = read_lines(path)
    assert [r["what"] for r in found] == ["one", "three"] and torn == 1
    assert read_lines(tmp_path / "none") == ([], 0)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused(tmp_path, value):
    with pytest.raises(BadInput, match="refused to record"):
        append_line(tmp_path / "r", {"what": "x", "median_s": value})
    assert not (tmp_path / "r").exists()


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path, monkeypatch):
    path = tmp_path / "r"
    append_line(path, {"what": "safe"})

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(record.os, "write", full)
    with pytest.raises(BadInput, match="free some disk space") as refused:
        append_line(path, {"what": "lost"})
    assert "\n" not in str(refused.value)
    assert [r["what"] for r in read_lines(path)[0]] == ["safe"]
