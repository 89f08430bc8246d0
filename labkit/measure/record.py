"""Records: one JSON line per measurement, one append each. What was acknowledged survives a killed process."""

import json
import os
import time
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from labkit.env import Machine, home
from labkit.errors import BadInput


@dataclass(frozen=True)
class Record:
    """One measurement. A name that the device cannot give is None, with the reason in `reasons`."""

    lab: str
    what: str  # the measurement, in one clause
    rows: tuple[str, ...]  # article rows it settles: A009, B011
    mode: str
    model: str
    origin: str  # of the weights: random, trained, …
    toggles: tuple[str, ...]
    work: Any  # the encoded workload
    machine: dict[str, Any]
    threads: int
    busy: tuple[str, ...]  # foreign processes; not empty: no verdict
    warm: bool
    samples_s: list[float]
    median_s: float | None
    spread_s: float | None  # interquartile
    tokens: int
    ttft_s: float | None = None
    inter_token_s: dict[str, float | None] = field(default_factory=dict)
    decode_tps: float | None = None  # one stream
    total_tps: float | None = None  # all streams together
    read_gbps: float | None = None
    ceiling_percent: dict[str, float | None] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    quality: dict[str, Any] = field(default_factory=dict)
    bound_by: str | None = None
    values: dict[str, Any] = field(default_factory=dict)  # figures of this measurement only
    reasons: dict[str, str] = field(default_factory=dict)
    partial: bool = False


def machine_entry(machine: Machine) -> dict[str, Any]:
    """What of a machine goes into each record."""
    entry = asdict(machine)
    entry["capabilities"] = {name: c.reason for name, c in machine.capabilities.items()}
    return entry


def append_line(path: Path, data: dict[str, Any]) -> None:
    """One line, one write on an append descriptor. When this returns the line is the system's to keep.

    Raises BadInput for a full disk or a number that JSON does not have.
    """
    try:
        line = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except ValueError as err:
        raise BadInput(f"refused to record a number that is not one ({err}) in {data.get('what') or data.get('kind')}") from err
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        whole = f"\n{line}\n".encode()  # the leading newline ends a line that a killed process left torn
        if os.write(descriptor, whole) != len(whole):
            raise OSError("short write")
    except OSError as err:
        raise BadInput(
            f"could not write to {path} ({err.strerror or err}): free some disk space; what was recorded before is safe"
        ) from err
    finally:
        os.close(descriptor)


def save(path: Path, text: str) -> None:
    """Write a file aside and move it into place: a reader never sees half of it."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def read_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """All whole lines, and how many were torn. A missing file is empty."""
    if not path.exists():
        return [], 0
    found, torn = [], 0
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        if not line:
            continue
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            torn += 1
    return found, torn


def records_path() -> Path:
    return home() / "records.jsonl"


def write(record: Record) -> str:
    """Append a record; its id (12 hex digits) comes back once it is written."""
    entry = {"id": uuid.uuid4().hex[:12], "t": time.time()} | asdict(record)
    append_line(records_path(), entry)
    return str(entry["id"])
