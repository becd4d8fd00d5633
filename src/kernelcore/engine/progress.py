"""Lines of plain text on stderr that report the progress of long work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Watch = Callable[[float], None]
"""A function that compiled loops call with the fraction done; an exception ends the work."""


def say(text: str) -> None:
    """Write a line to stderr."""
    print(text, file=sys.stderr, flush=True)


class Progress:
    """A reporter of progress that prints a line at most every ``seconds``.

    Python loops call ``at``. Compiled loops call the function that ``watch`` returns, or the object
    itself, with the fraction done.
    """

    def __init__(self, what: str, total: int, shown: bool, seconds: float = 2.0) -> None:
        self.what, self.total, self.shown, self.seconds = what, total, shown, seconds
        self.began = self.last = time.monotonic()

    def at(self, done: int, note: str = "") -> None:
        """Report progress after ``done`` rounds of ``total``."""
        if not self.shown:
            return
        now = time.monotonic()
        if now - self.last >= self.seconds:
            self.last = now
            text = f"{self.what}: {done}/{self.total}, {now - self.began:.0f} s"
            say(f"{text}, {note}" if note else text)

    def __call__(self, fraction: float) -> None:
        self.at(int(fraction * self.total))

    def watch(self, start: int = 0, stop: int | None = None) -> Watch | None:
        """Return a watch for a driver that does the rounds from ``start`` to ``stop``, or all.

        It is None where nothing is shown.
        """
        if not self.shown:
            return None
        size = (self.total if stop is None else stop) - start
        return lambda fraction: self.at(start + int(fraction * size))


class Watched:
    """Work in several parts that is watched as a whole."""

    watch: Watch | None = None

    @contextmanager
    def share(self, start: float, stop: float) -> Iterator[None]:
        """Count the work inside as the part from ``start`` to ``stop``, fractions of the whole."""
        whole = self.watch
        if whole is not None:
            self.watch = lambda fraction: whole(start + fraction * (stop - start))
        try:
            yield
        finally:
            self.watch = whole
