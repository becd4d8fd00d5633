"""The backend for CuPy: the only room that imports it, and only for somebody who has done so."""

from __future__ import annotations

import sys
from typing import Any

from ...program import Program
from ..cpu.dispatch import load


def owns(array: Any) -> bool:
    """Return whether an array is one of CuPy."""
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(array, cupy.ndarray)


def open(program: Program, X: Any, Y: Any, n_threads: int) -> Any:
    """Check the inputs of a Gram matrix and return them; Y is None where it is X."""
    if program.input.domain != "positions":
        return load(f"{__name__}.rows").Rows(X, Y, n_threads)
    decisive = program.decisive
    layer = None if decisive is None else decisive.layer
    return load(f"{__name__}.images").Images(X, Y, layer, n_threads)


def __getattr__(name: str) -> Any:
    """Return what ``engine.offer`` is asked for."""
    return getattr(load(f"{__name__}.offers"), name)
