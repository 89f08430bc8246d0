"""Prompt files: the shipped one, one of the learner's own, and broken ones."""

import pytest

from labkit.errors import BadInput
from labkit.lab.prompts import read_prompts


def test_the_shipped_prompts_are_there():
    assert {"sky", "news", "capital", "far-country"} <= set(read_prompts("prompts"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "holds no prompts"),
        ('{"id": "a", "text": "fine"}\n{"id": "b"', "mine.jsonl line 2"),
        ('["a", "b"]', "line 1"),
        ('{"id": 3, "text": "x"}', "must be text"),
        ('{"id": "a", "text": "  "}', "not empty"),
    ],
)
def test_a_broken_file_is_one_line_with_its_number(tmp_path, text, line):
    path = tmp_path / "mine.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=line) as refused:
        read_prompts(str(path))
    assert "\n" not in str(refused.value)


def test_missing_and_binary_files_are_refused(tmp_path):
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    for name in (str(tmp_path / "none.jsonl"), str(tmp_path / "bytes.jsonl"), "nosuch"):
        with pytest.raises(BadInput, match="cannot read"):
            read_prompts(name)
