"""Text on the screen while it is made: one output, refreshed a few times a second, escaped."""

import time
from html import escape

from IPython.display import display

from labkit.lab.story import FONT
from labkit.measure.ladder import Progress

REFRESH_S = 0.2  # drawing takes the processor from the run that it shows


class LiveText:
    """A listener of `write_reply`."""

    def __init__(self, total: int) -> None:
        self.now = Progress("reply", 0, total)
        self.drawn_s = time.monotonic()
        self.output = display(self._bundle(), raw=True, display_id=True)

    def __call__(self, now: Progress) -> None:
        self.now = now
        if time.monotonic() - self.drawn_s >= REFRESH_S:
            self.drawn_s = time.monotonic()
            self.output.update(self._bundle(), raw=True)

    def close(self) -> str:
        """Draw the last state; the whole text."""
        self.output.update(self._bundle(), raw=True)
        return self.now.text

    def html(self) -> str:
        count = f"{self.now.done} of {self.now.total} tokens" + (f" · {self.now.tps:.1f} tokens/s" if self.now.tps else "")
        body = f'<div style="white-space:pre-wrap;overflow-wrap:anywhere;min-height:4.5em">{escape(self.now.text)}</div>'
        return f'<div style="{FONT};border-left:3px solid #0072b2;padding:2px 12px">{body}<small style="opacity:.7">{count}</small></div>'

    def _bundle(self) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": self.now.text}
