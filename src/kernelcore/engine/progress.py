"""Lines of plain text on stderr while something takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


class Progress:
    """Says where work is, at most every ``seconds``; nothing at all when it is over sooner.

    Python loops call ``at``. Compiled loops call what ``watch`` returns, or the object itself, with
    the fraction that is done.
    """

    def __init__(self, what: str, total: int, shown: bool, seconds: float = 2.0) -> None:
        self.what, self.total, self.shown, self.seconds = what, total, shown, seconds
        self.began = self.last = time.monotonic()

    def at(self, done: int, note: str = "") -> None:
        """After ``done`` rounds of ``total``."""
        if not self.shown:
            return
        now = time.monotonic()
        if now - self.last >= self.seconds:
            self.last = now
            text = f"{self.what}: {done}/{self.total}, {now - self.began:.0f} s"
            print(f"{text}, {note}" if note else text, file=sys.stderr, flush=True)

    def __call__(self, fraction: float) -> None:
        self.at(int(fraction * self.total))

    def watch(self, start: int = 0, stop: int | None = None) -> Callable[[float], None] | None:
        """What a driver calls with its fraction of the rounds from ``start`` to ``stop``.

        All of them by default; None, for which drivers do not stop to tell, where nothing is shown.
        """
        if not self.shown:
            return None
        size = (self.total if stop is None else stop) - start
        return lambda fraction: self.at(start + int(fraction * size))
