"""What the array API standard has not, for arrays of CuPy: see ``engine.offer``."""

from __future__ import annotations

from typing import Any

from ..cpu.dispatch import load
from . import waves as loops
from .memory import free as budget

__all__ = ["budget", "erf", "failing", "loops", "ndtr", "solve_triangular"]


def erf(x: Any) -> Any:
    return load("cupyx.scipy.special").erf(x)


def ndtr(x: Any) -> Any:
    return load("cupyx.scipy.special").ndtr(x)


def solve_triangular(t: Any, b: Any, lower: bool, transpose: bool) -> Any:
    """Return the solution of ``t x = b``, or of ``t.T x = b``, for a triangle t."""
    solve = load("cupyx.scipy.linalg").solve_triangular
    return solve(t, b, trans=int(transpose), lower=lower)


def failing() -> Any:
    """Return a context in which a factorisation that fails raises: by itself it returns numbers."""
    return load("cupyx").errstate(linalg="raise")
