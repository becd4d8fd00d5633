"""The errors of numerical duals, collected during a call and reported once at its end."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from .._types import Array

BOUND = 1e-5
"""The relative error of a dual above which a ``RuntimeWarning`` reports it."""


class Doubt(NamedTuple):
    """The largest errors of a layer's two duals, relative to their sizes, and where they occur."""

    layer: str
    error: tuple[float, float]  # of the dual, of the derivative's dual
    variance: tuple[float, float]

    def text(self, which: int) -> str:
        of = "derivative's dual" if which else "dual"
        return (
            f"the {of} of {self.layer} is off by about {self.error[which]:.1g} of its size at "
            f"variance {self.variance[which]:.3g}, more than {BOUND:.0e}: it has a kink, or "
            "changes too fast at that scale; use an activation with a closed form, such as "
            "OneKink, or scale X or w_std down"
        )


def doubt(layer: object, variance: Array, error: Array) -> Doubt | None:
    """Return the largest of ``error``, shape (2, rows); None where all are below the bound."""
    if not error.size or error.max() <= BOUND:
        return None
    worst = error.argmax(axis=1)
    return Doubt(
        repr(layer),
        (float(error[0, worst[0]]), float(error[1, worst[1]])),
        (float(variance[worst[0]]), float(variance[worst[1]])),
    )


class _Here(threading.local):
    call: Call | None = None


_here = _Here()


class Call:
    """The context of a public call, ``with Call():``, whose end warns of the worst doubt.

    Nested calls leave the warning to the outermost one.
    """

    def __enter__(self) -> Call:
        self.worst, self.said = BOUND, ""
        self.outer, _here.call = _here.call, self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        _here.call = self.outer
        if not self.said or kind is not None:
            return
        if self.outer is None:
            warnings.warn(self.said, RuntimeWarning, stacklevel=3)
        else:
            self.outer._take(self.worst, self.said)

    def _take(self, error: float, said: str) -> None:
        if error > self.worst:
            self.worst, self.said = error, said


def current() -> Call | None:
    """Return the call that this thread is in."""
    return _here.call


@contextmanager
def within(call: Call | None) -> Iterator[None]:
    """Let what this thread tells count for a call of another one, which waits for it."""
    outer, _here.call = _here.call, call
    try:
        yield
    finally:
        _here.call = outer


def tell(doubts: Iterable[Doubt], tangent: bool) -> None:
    """Pass doubts to the current call; the derivative's dual matters to tangent kernels alone."""
    for found in doubts:
        for which in range(1 + tangent):
            if _here.call is not None:
                _here.call._take(found.error[which], found.text(which))
