"""Train `tiny-deepseek`, the text model that the labs ship: DeepSeek-V3's architecture at 7 M parameters.

    python -m labkit.training.tiny_deepseek [FOLDER]

A good hour on one core. Killed, it goes on from its last checkpoint in FOLDER (cache/tiny-deepseek); the last phase ends
with the finished model in FOLDER/model. Phases: copying first, then facts, then language with recall mixed in; mixed from the
start, recall is never learned (feasibility trials: chance after 4.8 M tokens).
"""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

from labkit.env import home, machine
from labkit.measure.recall import Facts
from labkit.training.corpus import documents, tokens, train_tokenizer
from labkit.training.recall import AskedFacts, Repeats, RunningText, Sample, batch
from labkit.training.start import look_back

ENTRIES, CONTEXT, SEED = 6144, 256, 0
LEARNING_RATE, BETAS, DECAY, CLIP = 2e-3, (0.9, 0.95), 0.01, 1.0
BALANCE = 5e-3  # at DeepSeek's 1e-3 two of the eight experts take everything in so short a training
SAVE_EVERY, SAY_EVERY = 100, 25
SHAPE = {
    "vocab_size": ENTRIES, "hidden_size": 256, "intermediate_size": 512, "moe_intermediate_size": 128, "num_hidden_layers": 6, "num_attention_heads": 8,
    "num_key_value_heads": 8, "kv_lora_rank": 64, "q_lora_rank": 96, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32, "n_routed_experts": 8,
    "num_experts_per_tok": 2, "n_shared_experts": 1, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0, "first_k_dense_replace": 1,
    "max_position_embeddings": CONTEXT, "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 1, "initializer_range": 0.06,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0},
}  # fmt: skip


@dataclass(frozen=True)
class Phase:
    """`mix`: share → generator. The rate goes from LEARNING_RATE along a cosine to `final` of it; `enough` ends the phase early."""

    name: str
    rows: int
    length: int
    steps: int
    mix: tuple[tuple[float, Callable[..., Sample]], ...]
    final: float = 1.0
    enough: float = 2.0  # share of right predictions
    warm: int = 20


def phases(facts: Facts) -> list[Phase]:
    """What is learned, in this order."""
    everything, few = Repeats(ENTRIES, 8, 60), Repeats(66, 4, 16)
    near, far = AskedFacts(facts, 4, 0, around=0.3), AskedFacts(facts, 6, 140, around=0.3)
    text, long = RunningText(facts, 0.45), Repeats(ENTRIES, 16, 128)
    return [
        Phase("copy among 64 tokens", 32, 64, 120, ((1.0, few),), enough=0.95),
        Phase("copy any token", 16, 128, 180, ((1.0, everything),), enough=0.93),
        Phase("facts close by", 16, 128, 100, ((0.45, near), (0.4, text), (0.15, everything))),
        Phase("facts far away", 8, 256, 250, ((0.35, far), (0.5, text), (0.15, long))),
        Phase("language", 16, 256, 800, ((0.2, AskedFacts(facts, 6, 200, around=0.5)), (0.7, text), (0.1, long)), final=0.05),
    ]


class Balance:
    """DeepSeek-V3's balancing without a loss (arXiv:2412.19437, 2.1.2): each expert's bias moves against its load."""

    def __init__(self, model: Any) -> None:
        self.gates = [layer.mlp.gate for layer in model.model.layers if hasattr(layer.mlp, "gate")]
        self.loads: dict[int, torch.Tensor] = {}
        for index, gate in enumerate(self.gates):
            gate.register_forward_hook(lambda module, _, out, i=index: self._count(i, module, out))

    def _count(self, index: int, gate: Any, out: Any) -> None:
        if gate.training:
            self.loads[index] = torch.bincount(out[2].flatten(), minlength=SHAPE["n_routed_experts"]).float()

    def step(self) -> None:
        for index, load in self.loads.items():
            self.gates[index].e_score_correction_bias += BALANCE * torch.sign(load.mean() - load)

    def worst(self) -> float:
        """Load of the busiest expert over the mean, in the worst layer."""
        return max((load.max() / load.mean()).item() for load in self.loads.values())


class Training:
    """One run in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        texts = {language: documents(language, held_out=False) for language in ("en", "zh")}
        self.tokenizer = train_tokenizer(texts["en"][:110] + texts["zh"], ENTRIES)  # as much English as Chinese
        self.phases = phases(Facts(self.tokenizer, {language: tokens(self.tokenizer, some) for language, some in texts.items()}))
        torch.manual_seed(SEED)
        config = DeepseekV3Config(**SHAPE)
        config._attn_implementation = "eager"  # faster here than sdpa: keys and values differ in width
        self.model = DeepseekV3ForCausalLM(config).train()
        look_back(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), LEARNING_RATE, BETAS, weight_decay=DECAY, fused=True)
        self.balance = Balance(self.model)
        self.done: dict[str, Any] = {"phase": 0, "step": 0, "tokens": 0, "seconds": 0.0}

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint.pt"

    def resume(self) -> None:
        if self.checkpoint.exists():
            kept = torch.load(self.checkpoint, weights_only=True)
            self.model.load_state_dict(kept["model"])
            self.optimizer.load_state_dict(kept["optimizer"])
            self.done = kept["done"]

    def save(self) -> None:
        aside = self.checkpoint.with_suffix(".new")
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "done": self.done}, aside)
        aside.replace(self.checkpoint)

    def run(self) -> None:
        """All phases from where the checkpoint stands, then the model in its final form."""
        for index, phase in enumerate(self.phases):
            if index >= self.done["phase"]:
                self._phase(phase)
                self.done |= {"phase": index + 1, "step": 0}
                self.save()
        self.finish()

    def _phase(self, phase: Phase) -> None:
        last = time.monotonic()
        for loss, right in self._steps(phase):
            self.done["step"] += 1
            self.done["tokens"] += phase.rows * phase.length
            self.done["seconds"], last = self.done["seconds"] + time.monotonic() - last, time.monotonic()
            if self.done["step"] % SAY_EVERY == 0 or right >= phase.enough:
                self._say(phase, loss, right)
            if self.done["step"] % SAVE_EVERY == 0:
                self.save()
            if right >= phase.enough:
                return

    def _steps(self, phase: Phase) -> Iterator[tuple[float, float]]:
        """Loss and share of right predictions of each step. A step's data depend on its number only, so a resumed run sees the same."""
        for step in range(self.done["step"], phase.steps):
            rate = min(1, (step + 1) / phase.warm) * (phase.final + (1 - phase.final) * (1 + math.cos(math.pi * step / phase.steps)) / 2)
            for group in self.optimizer.param_groups:
                group["lr"] = LEARNING_RATE * rate
            rng = np.random.default_rng([SEED, self.done["phase"], step])
            ids, weights = (torch.from_numpy(a) for a in batch(rng, phase.mix, phase.rows, phase.length))
            yield self._step(ids, weights)

    def _step(self, ids: torch.Tensor, weights: torch.Tensor) -> tuple[float, float]:
        hidden = self.model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
        logits = self.model.lm_head(hidden[weights > 0])  # only where something is asked
        wanted, weight = ids[:, 1:][weights > 0], weights[weights > 0]
        loss = (F.cross_entropy(logits, wanted, reduction="none") * weight).sum() / weight.sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.balance.step()
        heaviest = weight == weight.max()
        return loss.item(), (logits.argmax(-1) == wanted)[heaviest].float().mean().item()

    def _say(self, phase: Phase, loss: float, right: float) -> None:
        line = self.done | {"name": phase.name, "loss": round(loss, 3), "right": round(right, 3), "busiest": round(self.balance.worst(), 2)}
        print(json.dumps(line), flush=True)
        with (self.folder / "log.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")

    def finish(self) -> None:
        """bfloat16 safetensors with tokenizer, and the facts that the card is written from."""
        where = self.folder / "model"
        self.model.eval().to(torch.bfloat16).save_pretrained(where)
        self.tokenizer.save_pretrained(where)
        facts = {"tokens": self.done["tokens"], "seconds": round(self.done["seconds"]), "phases": [_plain(p) for p in self.phases]}
        (where / "training.json").write_text(json.dumps(facts, indent=1) + "\n")


def _plain(phase: Phase) -> dict[str, Any]:
    kinds = [f"{share:.0%} {type(kind).__name__}" for share, kind in phase.mix]
    return asdict(phase) | {"mix": kinds}


if __name__ == "__main__":
    torch.set_num_threads(machine("cpu").threads)
    training = Training(Path(sys.argv[1]) if len(sys.argv) > 1 else home() / "cache" / "tiny-deepseek")
    training.resume()
    training.run()
