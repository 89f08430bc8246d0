"""Silence while a model loads: the library's bars and advice are noise in a notebook. Everything is put back after."""

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

from transformers.utils import logging


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bar, log line or warning from inside; errors still arrive as exceptions."""
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        with redirect_stderr(io.StringIO()):  # warnings go there, and the GGUF reader's bar, which obeys no setting
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
