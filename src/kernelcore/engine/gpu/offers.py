"""What the array API standard has not, for arrays of CuPy: see ``engine.offer``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cpu.dispatch import load
from . import waves as loops

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


def budget() -> int:
    """Return the bytes that are free on the current device, those in CuPy's pool among them."""
    cupy = load("cupy")
    free, _ = cupy.cuda.runtime.memGetInfo()
    return int(np.int64(free) + cupy.get_default_memory_pool().free_bytes())
