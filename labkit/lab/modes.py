"""How long a lab may take: sizes differ by mode, nothing else does."""

from labkit.errors import unknown

MODES = ("smoke", "quick", "full")


def check_mode(mode: str) -> str:
    """The mode itself. Raises BadInput for one that does not exist."""
    if mode not in MODES:
        raise unknown("mode", mode, MODES)
    return mode
