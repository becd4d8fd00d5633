"""The one door to compiled code: which backend an array belongs to, and what the backend can do.

A backend has ``open(program, X, Y, n_threads)``, which checks inputs and returns an object with
which programs fill blocks: ``gram(program, k_out, t_out, factor, combine)``, ``diagonal`` and
``part``. A backend has ``profile`` and ``dual`` for single pairs. Nothing outside of this room
knows compiled modules or kinds of arrays. ``loops`` are compiled loops over numbers of the host,
which series and spectra call.
"""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, Protocol

from .. import _check
from .._types import Array
from ..program import Program
from . import cpu
from .cpu import loops
from .cpu.cyclic import distinct, look_up, offsets
from .cpu.dense import ADD, ASSIGN, MULTIPLY
from .cpu.dispatch import load
from .progress import Watch

__all__ = [
    "ADD", "ASSIGN", "BACKENDS", "MULTIPLY", "Inputs", "backend_of", "distinct", "load", "look_up",
    "loops", "offer", "offsets",
]  # fmt: skip


class Inputs(Protocol):
    """Checked inputs of a Gram matrix, as a backend opens them; ``y`` is None where Y is X."""

    x: Any
    y: Any
    n_threads: int
    watch: Watch | None

    def share(self, start: float, stop: float) -> AbstractContextManager[None]:
        """Count the work inside as that part of the whole, for ``watch``."""

    def there(self) -> AbstractContextManager[Any]:
        """Make the device that the inputs are on the current one."""

    def gram(self, program: Program, k_out: Any, t_out: Any, factor: float, combine: int) -> None:
        """Write ``factor`` times a program's two kernels into one output or both."""

    def diagonal(self, program: Program, tangent: bool, factor: float) -> Array:
        """Return ``factor`` times the kernel of each input with itself, to the bits of ``gram``."""

    def output(self, out: Any = None, terms: int | None = None, beside: int = 0) -> Any:
        """Return the array of a result, (n, m) or (terms, n, m): the user's, checked, or a new one.

        Memory is asked for ``beside`` more of its size.
        """

    def takes(self, program: Program) -> None:
        """Refuse these inputs, which another program has opened, where this one wants others."""

    def part(self, rows: slice, columns: slice | None) -> Inputs:
        """Return some inputs against some others, or against themselves."""

    def against(self, X: Any, n_threads: int) -> Inputs:
        """Return X against the inputs ``x`` here, of which nothing is computed a second time.

        That is for who owns those inputs, and knows that they have not changed.
        """


BACKENDS = [importlib.import_module(f"{__name__}.{name}") for name in ("cpu", "gpu")]
"""The backends, asked in turn which of them owns an array."""


def offer(array: Any, name: str) -> Any:
    """Return what the backend of another library's array has under a name, or None.

    These are functions that not every library has, or that the backend has better ones of:
    ``erf(x)``, ``ndtr(x)``; ``solve_triangular(t, b, lower, transpose)``; ``normal_product(K, x)``
    and ``transposed_product(K, t)``, as in ``linalg.thin``; ``loops``, with the waves of
    ``cpu.loops``; ``failing()``, a context in which a factorisation that fails raises; and
    ``budget()``, the bytes that a ``GramOperator`` may keep.
    """
    for backend in BACKENDS:
        if backend is not cpu and backend.owns(array):
            return getattr(backend, name, None)
    return None


def backend_of(X: Any, Y: Any = None) -> ModuleType:
    """Return the backend that both inputs belong to; None belongs to any."""
    for backend in BACKENDS:
        if (X is None or backend.owns(X)) and (Y is None or backend.owns(Y)):
            return backend
    for array, name, other, its in ((X, "X", Y, "Y"), (Y, "Y", X, "X")):
        if other is not None and any(b.owns(other) for b in BACKENDS if b is not cpu):
            _check.elsewhere(array, name, other, its)
    for array, name in ((X, "X"), (Y, "Y")):
        _check.on_the_host(array, name)
    return cpu
