"""Lines of plain text on stderr while something takes long."""

from __future__ import annotations

import sys
import time


class Progress:
    """Says where a loop is, at most every ``seconds``; nothing at all when it is over sooner."""

    def __init__(self, what: str, total: int, shown: bool, seconds: float = 2.0) -> None:
        self.what, self.total, self.shown, self.seconds = what, total, shown, seconds
        self.began = self.last = time.monotonic()

    def at(self, done: int, note: str = "") -> None:
        """After ``done`` rounds of ``total``."""
        now = time.monotonic()
        if self.shown and now - self.last >= self.seconds:
            self.last = now
            text = f"{self.what}: {done}/{self.total}, {now - self.began:.0f} s"
            print(f"{text}, {note}" if note else text, file=sys.stderr, flush=True)
