"""A model in a local folder: config.json, safetensors and a tokenizer. No pickle, no code of its own, no network."""

from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedConfig, PreTrainedModel

from labkit.engine.config import read_config
from labkit.errors import BadInput, brief

PICKLED = (".bin", ".pt", ".pth", ".ckpt")
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "vocab.txt")


def folder_model(folder: Path) -> tuple[PreTrainedModel, Any, str]:
    """Model, tokenizer and origin, in the dtype the weights are stored in. Raises BadInput for what is missing."""
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder}: give one with config.json, *.safetensors and tokenizer files")
    config = read_config(folder / "config.json")
    _has_safetensors(folder)
    tokenizer = _tokenizer(folder)
    model = _weights(folder, config)
    return model, tokenizer, f"local folder, stored as {str(model.dtype).removeprefix('torch.')}"


def _has_safetensors(folder: Path) -> None:
    if any(folder.glob("*.safetensors")):
        return
    if pickled := sorted(f.name for f in folder.iterdir() if f.suffix in PICKLED):
        raise BadInput(f"{folder} has only pickled weights ({pickled[0]}), which can run code when read: save them as safetensors")
    raise BadInput(f"{folder} has no weights: *.safetensors is missing")


def _tokenizer(folder: Path) -> Any:
    if not any((folder / name).is_file() for name in TOKENIZER):
        raise BadInput(f"{folder} has no tokenizer: add tokenizer.json and tokenizer_config.json of the model")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        empty = not tokenizer("a")["input_ids"]
    except Exception as err:  # its files are the user's, and each tokenizer class fails in its own way on broken ones
        raise BadInput(f"{folder}: the tokenizer cannot be read: {brief(err)}") from err
    if empty:
        raise BadInput(f"{folder}: the tokenizer has no vocabulary; tokenizer.json is missing or empty")
    return tokenizer


def _weights(folder: Path, config: PreTrainedConfig) -> PreTrainedModel:
    """The library fills weights that a file lacks with random numbers and only warns: here that is a refusal."""
    safe: dict[str, Any] = {"use_safetensors": True, "local_files_only": True, "trust_remote_code": False}
    try:
        both: Any = AutoModelForCausalLM.from_pretrained(folder, config=config, dtype="auto", output_loading_info=True, **safe)
    except (OSError, SafetensorError, ValueError, RuntimeError, ImportError, KeyError) as err:
        raise BadInput(f"{folder}: the weights cannot be read: {brief(err)}") from err
    model, info = both
    if missing := sorted(info["missing_keys"]):
        raise BadInput(f"{folder}: the weights do not fit config.json: {len(missing)} are missing, first {missing[0]}")
    return model
