"""What the learner did, kept over restarts in home()/learner.json: predictions, answers, the own stack."""

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from labkit.env import home


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
    """Set one entry. Written aside and moved: a crash leaves the old file or the new one, never half of one."""
    data = load()
    data.setdefault(section, {})[key] = value
    path().parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path().parent, prefix="learner-", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, ensure_ascii=False, indent=1, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
