"""What the learner did, kept over restarts in home()/learner.json: predictions, answers, the own stack."""

import json
import time
from pathlib import Path
from typing import Any

from filelock import FileLock

from labkit.env import home
from labkit.measure import record

PATIENCE_S = 10  # for another kernel that is writing: a write takes milliseconds


def path() -> Path:
    return home() / "learner.json"


def load() -> dict[str, dict[str, Any]]:
    """All sections. A file that cannot be read is set aside under another name, and one printed line says so."""
    try:
        data = json.loads(path().read_text(encoding="utf-8"))
        if isinstance(data, dict) and all(isinstance(section, dict) for section in data.values()):
            return data
    except FileNotFoundError:
        return {}
    except (json.JSONDecodeError, UnicodeDecodeError):
        pass  # handled below, like a file of another shape
    aside = path().with_name(f"learner.broken-{time.strftime('%Y%m%d-%H%M%S')}.json")
    path().replace(aside)
    print(f"learner.json was not readable: it is kept as {aside.name}, and predictions start afresh")
    return {}


def save(section: str, key: str, value: Any) -> None:
    """Set one entry, one kernel at a time. A crash leaves the old file or the new one. Raises OSError when it cannot be written."""
    path().parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path().with_name("learner.json.lock"), timeout=PATIENCE_S):
        data = load()
        data.setdefault(section, {})[key] = value
        record.save(path(), json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False))
