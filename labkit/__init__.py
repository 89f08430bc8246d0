"""labkit: the generation engine, profilers and toggles behind the notebooks. Importing it costs nothing."""

from typing import Any

__version__ = "0.1.0"
__all__ = ["BadInput", "__version__", "start"]


def __getattr__(name: str) -> Any:
    """Load `start` and `BadInput` on first use: a bare import must not pull in torch."""
    if name == "start":
        from labkit.lab.start import start

        return start
    if name == "BadInput":
        from labkit.errors import BadInput

        return BadInput
    raise AttributeError(f"module 'labkit' has no attribute {name!r}")
