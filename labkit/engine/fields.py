"""A config.json: read, and each value checked when it is asked for. Imports no torch."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labkit.errors import BadInput, brief


def read(file: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises BadInput in one line."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as err:
        raise BadInput(f"{file} does not exist: a model folder needs config.json, *.safetensors and tokenizer files") from err
    except OSError as err:
        raise BadInput(f"{file} cannot be read: {err.strerror}") from err
    except ValueError as err:  # broken JSON and broken UTF-8
        raise BadInput(f"{file} is not valid JSON: {brief(err)}") from err
    if not isinstance(data, dict):
        raise BadInput(f"{file} is not a JSON object")
    return data


class Fields:
    """The values of a config.json with the library's defaults, each checked when it is asked for."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def count(self, name: str, least: int = 1) -> int:
        """A whole number of at least `least`. Raises BadInput."""
        value = self.values.get(name)
        if type(value) is not int or value < least:
            raise BadInput(f"config.json: {name} must be a whole number of at least {least}, not {value!r}", name)
        return value

    def optional(self, name: str, least: int = 1) -> int | None:
        """The same, or None where the file has null or nothing."""
        return None if self.values.get(name) is None else self.count(name, least)

    def flag(self, name: str) -> bool:
        """True or false; absent is false. Raises BadInput."""
        value = self.values.get(name, False)
        if type(value) is not bool:
            raise BadInput(f"config.json: {name} must be true or false, not {value!r}", name)
        return value

    def part(self, whole: str, parts: int) -> int:
        """One of `parts` equal parts of a number. Raises BadInput when it does not divide."""
        if self.count(whole) % parts:
            raise BadInput(f"config.json: {whole} {self.count(whole)} cannot be divided into {parts} equal parts", whole)
        return self.count(whole) // parts
