"""Prompts by id, from `data/prompts/NAME.jsonl` or a file of the learner's own."""

import json
from pathlib import Path

from labkit.env import ROOT
from labkit.errors import BadInput


def read_prompts(name: str) -> dict[str, str]:
    """Texts by id. Raises BadInput with the line number when the file is broken."""
    path = ROOT / "data" / "prompts" / f"{name}.jsonl" if name.isidentifier() else Path(name).expanduser()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as err:
        raise BadInput(f"prompts={name}: cannot read {path} ({getattr(err, 'strerror', None) or 'not UTF-8 text'})") from err
    found = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            key, text = _entry(path, number, line)
            found[key] = text
    if not found:
        raise BadInput(f"prompts={name}: {path.name} holds no prompts; write one JSON object a line with id and text")
    return found


def _entry(path: Path, number: int, line: str) -> tuple[str, str]:
    try:
        entry = json.loads(line)
        key, text = entry["id"], entry["text"]
    except (json.JSONDecodeError, KeyError, TypeError) as err:
        raise BadInput(f'{path.name} line {number}: write a JSON object with id and text, like {{"id": "sky", "text": "…"}}') from err
    if not (isinstance(key, str) and isinstance(text, str) and text.strip()):
        raise BadInput(f"{path.name} line {number}: id and text must be text, and text not empty")
    return key, text
