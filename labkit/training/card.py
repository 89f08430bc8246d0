"""The card of a trained text model: what it can do, measured on held-out text, and how it was made.

    python -m labkit.training.card [FOLDER]

FOLDER holds the model (data/models/tiny-deepseek); README.md and figures.json are written into it.
"""

import json
import lzma
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, DeepseekV3Config, DeepseekV3ForCausalLM

from labkit.env import ROOT, machine
from labkit.measure.loss import bits_per_byte, losses
from labkit.measure.recall import Facts, needle_recall, repeat_recall
from labkit.training.corpus import documents, tokens

LANGUAGES = {"en": "English", "zh": "Chinese"}
DISTANCES, PERIODS, BEYOND = (48, 80, 120, 180, 240), (16, 32, 64, 128, 220), (256, 320, 400, 480)
TRIES, FACTOR, TAIL = 50, 2, 64


def rotary_kinds(config: DeepseekV3Config) -> dict[str, dict[str, Any]]:
    """Ways to read positions beyond the trained context, as transformers' rope_parameters."""
    theta, dim, trained = config.rope_parameters["rope_theta"], config.qk_rope_head_dim, config.max_position_embeddings
    plain = {"rope_type": "default", "rope_theta": theta}
    return {
        "native": plain,
        "linear": {"rope_type": "linear", "rope_theta": theta, "factor": float(FACTOR)},
        "NTK-aware": plain | {"rope_theta": theta * FACTOR ** (dim / (dim - 2))},
        "YaRN": {"rope_type": "yarn", "rope_theta": theta, "factor": float(FACTOR), "original_max_position_embeddings": trained},
    }


def read(folder: Path, rope: dict[str, Any] | None = None) -> DeepseekV3ForCausalLM:
    """The stored weights in float32, with other rotary parameters if given."""
    config = DeepseekV3Config.from_pretrained(folder)
    if rope:
        config.rope_parameters, config.max_position_embeddings = rope, FACTOR * config.max_position_embeddings
    found = DeepseekV3ForCausalLM.from_pretrained(folder, config=config, dtype=torch.float32, attn_implementation="eager")
    return found.eval()  # type: ignore[no-any-return]


def figures(folder: Path, say: Callable[[str], None] = print) -> dict[str, Any]:
    """All figures of the card. Shares are of exact answers; losses in bits per byte or nats per token."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), read(folder)
    held = {language: documents(language, held_out=True) for language in LANGUAGES}
    ids = {language: tokens(tokenizer, texts) for language, texts in held.items()}
    facts = Facts(tokenizer, ids)
    context = model.config.max_position_embeddings
    found: dict[str, Any] = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "training": json.loads((folder / "training.json").read_text()),
    }
    for language, texts in held.items():
        say(f"loss, {LANGUAGES[language]}")
        text = "".join(texts)
        nats = losses(model, torch.from_numpy(ids[language]), context, context // 2)
        found[f"bytes_{language}"], found[f"xz_{language}"] = (
            len(text.encode()),
            8 * len(lzma.compress(text.encode(), preset=9)) / len(text.encode()),
        )
        found[f"bits_per_byte_{language}"] = bits_per_byte(nats, text)
        found[f"needle_{language}"] = {d: needle_recall(model, facts, language, d, TRIES) for d in DISTANCES}
        found[f"four_facts_{language}"] = {d: needle_recall(model, facts, language, d, TRIES, count=4) for d in DISTANCES[1:]}
    found["repeats"] = {p: repeat_recall(model, p, 16) for p in PERIODS}
    for name, rope in rotary_kinds(model.config).items():
        say(f"beyond the trained context: {name}")
        found[f"beyond {name}"] = _beyond(read(folder, rope), facts, ids["en"])
    return found


def _beyond(model: Any, facts: Facts, ids: Any) -> dict[str, list[float]]:
    """At each length: recall of a needle that far away in both languages, and the loss of the last TAIL tokens of a text that long."""
    rows: dict[str, list[float]] = {
        f"recall_{language}": [needle_recall(model, facts, language, d, 24) for d in BEYOND] for language in LANGUAGES
    }
    rows["loss"] = []
    for length in BEYOND:
        texts = torch.from_numpy(ids[: 16 * (length + 1)]).view(16, length + 1)
        rows["loss"].append(float(torch.stack([losses(model, text, length)[-TAIL:] for text in texts]).mean()))
    return rows


def card(found: dict[str, Any]) -> str:
    """README.md of the model's folder."""
    recall = {f"one fact, {name}": found[f"needle_{c}"] for c, name in LANGUAGES.items()}
    recall |= {f"oldest of four, {name}": {"48": math.nan} | found[f"four_facts_{c}"] for c, name in LANGUAGES.items()}
    beyond = {
        f"{name.removeprefix('beyond ')}, {what}": dict(zip(BEYOND, row, strict=True))
        for name in found
        if name.startswith("beyond ")
        for what, row in found[name].items()
    }
    lines = [
        *_made(found),
        f"Recall, share of exact four-digit answers about unseen names ({TRIES} tries a figure; chance 0.0001), by tokens between:",
        "",
        *_table(recall),
        "Repeated random tokens, share predicted in the second round (chance 0.0002), by period:",
        "",
        *_table({"repeats": found["repeats"]}),
        f"Beyond the trained context, positions read in four ways (factor {FACTOR}); loss in nats per token, of the last {TAIL} tokens:",
        "",
        *_table(beyond),
    ]
    return "\n".join(lines)


def _made(found: dict[str, Any]) -> list[str]:
    """What it is, how it was made, and its loss."""
    made = found["training"]
    return [
        "# tiny-deepseek",
        "",
        f"DeepSeek-V3's architecture (MLA, experts with a shared one) at {found['parameters'] / 1e6:.2f} M parameters, stored as bfloat16.",
        f"Trained for these labs by `labkit/training/tiny_deepseek.py`: {made['tokens'] / 1e6:.2f} M tokens, {made['seconds'] / 60:.0f} minutes on",
        f"one core that was shared with other work. Context {BEYOND[0]} tokens. It is for questions about text; it is far too small for",
        "questions about time, and knows nothing of the world. The held-out documents are of the same two works, which flatters the loss.",
        "",
        "Texts: CIA World Factbook (English) and 三国演义 (Chinese), both in the public domain, see `data/text/README.md`. Weights: MIT.",
        "**The start weights held a copying circuit** (`labkit/training/start.py`): recall was refined by training, not found by it.",
        "",
        "| phase | rows × tokens | steps at most | mix |",
        "|---|---|---|---|",
        *(f"| {p['name']} | {p['rows']} × {p['length']} | {p['steps']} | {', '.join(p['mix'])} |" for p in made["phases"]),
        "",
        "| held-out text | bytes | bits per byte | `xz -9` |",
        "|---|---|---|---|",
        *(
            f"| {name} | {found[f'bytes_{c}']:,} | {found[f'bits_per_byte_{c}']:.3f} | {found[f'xz_{c}']:.3f} |"
            for c, name in LANGUAGES.items()
        ),
        "",
    ]


def _table(rows: dict[str, dict[Any, float]]) -> list[str]:
    """A table with the first row's keys as heads, and an empty line."""
    heads = list(next(iter(rows.values())))
    lines = ["| | " + " | ".join(map(str, heads)) + " |", "|---" * (len(heads) + 1) + "|"]
    cells = [[f"| {name} |", *(" – |" if math.isnan(v) else f" {v:.2f} |" for v in row.values())] for name, row in rows.items()]
    return [*lines, *("".join(row) for row in cells), ""]


if __name__ == "__main__":
    torch.set_num_threads(machine("cpu").threads)
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "data" / "models" / "tiny-deepseek"
    measured = figures(where)
    (where / "figures.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    measured = json.loads((where / "figures.json").read_text(encoding="utf-8"))
    (where / "README.md").write_text(card(measured), encoding="utf-8")
    print(card(measured))
