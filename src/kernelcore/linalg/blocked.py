"""Cholesky's factorisation in blocks, with Python between them: Ctrl-C need not wait for the end.

SciPy's wrappers of BLAS and LAPACK take whole arrays. Blocks have the leading dimension of their
array, so the routines are called at the addresses that SciPy exports to Cython.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from .._types import Array

WHOLE = 4000
"""The number of rows up to which LAPACK takes about half a second, and is called once."""
WIDTH, SLAB = 1024, 256
"""The rows that are eliminated together, so that the rest is seldom read; the least in a slab."""
WORK = 2e10
"""About the number of multiplications and additions in one call: half a second at most."""


@functools.cache
def _routine(name: str) -> Any:
    """Return a routine of SciPy's BLAS or LAPACK, to call with pointers; it releases the GIL."""
    from scipy.linalg import cython_blas, cython_lapack

    of_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)
    of_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    capsule = (cython_blas.__pyx_capi__ | cython_lapack.__pyx_capi__)[name]
    signature = of_name(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    address = of_pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, signature)
    return ctypes.CFUNCTYPE(None)(address)


def call(name: str, dtype: np.dtype, *arguments: Any) -> None:
    """Call a routine for float32 or float64; its name is without the first letter.

    Letters are strings, counts integers, factors floats. Of ``(a, i, j)``, an array in Fortran
    order, the block that begins at that row and column is passed, and the leading dimension.
    """
    single = dtype == np.float32
    factor = ctypes.c_float if single else ctypes.c_double
    passed: list[Any] = []
    for x in arguments:
        if isinstance(x, str):
            passed.append(ctypes.c_char_p(x.encode()))
        elif isinstance(x, tuple):
            a, i, j = x
            passed.append(ctypes.c_void_p(a.ctypes.data + i * a.itemsize + j * a.strides[1]))
            passed.append(ctypes.byref(ctypes.c_int(len(a))))
        elif isinstance(x, ctypes.c_int):
            passed.append(ctypes.byref(x))
        else:
            passed.append(ctypes.byref((factor if isinstance(x, float) else ctypes.c_int)(x)))
    _routine(("s" if single else "d") + name)(*passed)


def potrf(f: Array, lower: bool) -> int:
    """Do what LAPACK's potrf does, in place, with the same result but for rounding.

    One triangle of f, in Fortran order, becomes U with f = U'U, or L with f = L L'. The result is
    the order of the first minor that is not positive definite, or 0.
    """
    n = len(f)
    slab = max(SLAB, int(WORK / (2 * WIDTH * n)))
    for k in range(0, n, WIDTH):
        width = min(WIDTH, n - k)
        end, info = k + width, ctypes.c_int()
        call("potrf", f.dtype, "L" if lower else "U", width, (f, k, k), info)
        if info.value:
            return k + info.value
        # The rest goes a slab at a time: first its part of the factor's rows (columns of L), whose
        # products with those of the slabs before and with themselves are then subtracted.
        for j in range(end, n, slab):
            size, before = min(slab, n - j), j - end
            if lower:
                call("trsm", f.dtype, "R", "L", "T", "N", size, width, 1.0, (f, k, k), (f, j, k))
                call(
                    "gemm", f.dtype, "N", "T", size, before, width,
                    -1.0, (f, j, k), (f, end, k), 1.0, (f, j, end),
                )  # fmt: skip
                call("syrk", f.dtype, "L", "N", size, width, -1.0, (f, j, k), 1.0, (f, j, j))
            else:
                call("trsm", f.dtype, "L", "U", "T", "N", width, size, 1.0, (f, k, k), (f, k, j))
                call(
                    "gemm", f.dtype, "T", "N", before, size, width,
                    -1.0, (f, k, end), (f, k, j), 1.0, (f, end, j),
                )  # fmt: skip
                call("syrk", f.dtype, "U", "T", size, width, -1.0, (f, k, j), 1.0, (f, j, j))
    return 0


def inverse_diagonal(f: Array, lower: bool) -> Array:
    """Return the diagonal of (U'U)^-1 or (L L')^-1: sums of squares of the rows of U^-1 = L'^-1."""
    n = len(f)
    width = max(8, int(WORK / n**2))
    out = np.zeros(n)
    side = ("L", "L", "T", "N") if lower else ("L", "U", "N", "N")
    for j in range(0, n, width):
        size = min(width, n - j)
        end = j + size
        x = np.zeros((end, size), f.dtype, order="F")
        np.fill_diagonal(x[j:], 1)
        call("trsm", f.dtype, *side, end, size, 1.0, (f, 0, 0), (x, 0, 0))
        out[:end] += np.square(x, dtype=np.float64).sum(1)
    return out
