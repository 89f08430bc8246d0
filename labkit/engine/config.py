"""A model's config.json: read without running anything it brings, and refused when no loop of ours can drive it."""

import inspect
from pathlib import Path
from typing import Any

from huggingface_hub.errors import StrictDataclassError
from transformers import CONFIG_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, PreTrainedConfig

from labkit.engine.fields import read
from labkit.errors import BadInput, brief


def read_config(file: Path) -> PreTrainedConfig:
    """The config in a JSON file, for a model that `refusal` has nothing against. Raises BadInput in one line."""
    data = read(file)
    kind = data.pop("model_type", None)
    if data.get("auto_map"):
        raise BadInput(f"{file} asks for its own Python code (auto_map), which is never run: use a model that transformers knows")
    if data.get("quantization_config"):
        raise BadInput(f"{file}: the weights are stored quantized; use the unquantized model, the lab quantizes by itself")
    if kind not in CONFIG_MAPPING:
        raise BadInput(f"{file}: model_type {kind!r} is not one that this transformers knows")
    try:
        config = AutoConfig.for_model(kind, **data)
    except (ValueError, TypeError, KeyError, AttributeError, StrictDataclassError) as err:
        raise BadInput(f"{file} is not a valid {kind} config: {brief(err)}") from err
    if why := refusal(config):
        raise BadInput(f"{file}: {why}; use a decoder such as Llama, Qwen or DeepSeek")
    return config


def refusal(config: PreTrainedConfig) -> str:
    """Why the loop cannot drive a model of this config; empty when it can. Looks at classes, loads no weights."""
    kind = config.model_type
    if config.is_encoder_decoder:
        return f"{kind} is an encoder-decoder, and the loop feeds one text to a decoder"
    model: Any = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    named = config.architectures or [getattr(model, "__name__", "")]
    if model is None or model.__name__ not in named:
        return f"{named[0] or kind} is not a decoder that continues a text"
    if model._is_stateful:
        return f"{kind} keeps a running state instead of keys and values, which cannot be rewound"
    if "cache" not in inspect.signature(model.forward).parameters:
        return f"{kind} takes no key/value cache"
    if config.get_text_config() is not config or not isinstance(getattr(config, "max_position_embeddings", None), int):
        return f"the config of {kind} does not say at its top level how many tokens it holds (max_position_embeddings)"
    return ""


def gives(config: PreTrainedConfig) -> frozenset[str]:
    """Capabilities that toggles ask for: "full-attention" when every layer sees the whole text."""
    kinds = getattr(config, "layer_types", None) or getattr(config, "attention_layers", None)
    if not kinds:
        windowed = getattr(config, "sliding_window", None) or getattr(config, "attention_chunk_size", None)
        kinds = ["windowed" if windowed else "full_attention"]
    return frozenset({"full-attention"}) if set(kinds) <= {"full_attention", "global"} else frozenset()
