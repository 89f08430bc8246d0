"""Text in, token arrays out: documents, the tokenizer that is trained on them, and what is held out."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from labkit.env import ROOT
from labkit.errors import BadInput

TEXTS = {"en": "factbook", "zh": "sanguo"}
FOLDER = ROOT / "data" / "text"
START, END = "<s>", "</s>"
WORDS = r" ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def documents(language: str, held_out: bool, folder: Path = FOLDER) -> list[str]:
    """Whole documents; those of the held-out file are in no training file. Raises BadInput when they are not there."""
    name = TEXTS[language]
    files = [folder / f"{name}-held-out.txt"] if held_out else sorted(folder.glob(f"{name}-[0-9]*.txt"))
    try:
        return [d for file in files for d in file.read_text("utf-8").split("\f")] or _missing(folder, name)
    except FileNotFoundError:
        return _missing(folder, name)


def _missing(folder: Path, name: str) -> list[str]:
    raise BadInput(f"no texts {name}-*.txt in {folder}: they are part of the repository")


def train_tokenizer(texts: Sequence[str], entries: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE. Each digit is a token of its own, so that a number is recalled digit by digit."""
    tokenizer = Tokenizer(models.BPE())
    split = [pre_tokenizers.Split(Regex(r), "isolated") for r in (r"\p{N}", WORDS)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=entries, special_tokens=[START, END], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=START, eos_token=END, clean_up_tokenization_spaces=False)


def tokens(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> np.ndarray:
    """All documents in one row of ids, each after a start token."""
    return np.concatenate([np.array([tokenizer.bos_token_id, *ids]) for ids in tokenizer(list(texts), add_special_tokens=False).input_ids])
