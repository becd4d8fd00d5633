"""What NumPy and the array API standard spell in two ways, so that solvers read as one text.

Arrays with a row or a column per point stay in the memory that the caller's are in. What decides
whether an iteration goes on, a few numbers per column of y, comes to the host by ``numbers``, and
what was drawn or chosen on the host goes to the arrays by ``placed``: nothing else is copied from
one memory to another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from .._types import Array
from .dense import namespace_of

cast = _check.cast


def eps_of(a: Array) -> float:
    """Return the rounding unit of the dtype of an array."""
    return float(namespace_of(a).finfo(a.dtype).eps)


def numbers(a: Array) -> Array:
    """Return a few numbers on the host, as float64 unless they are NumPy's already."""
    if isinstance(a, np.ndarray):
        return a
    xp = namespace_of(a)
    if hasattr(a, "get"):  # CuPy's, all in one copy
        return np.asarray(a.get(), np.float64)
    flat = xp.reshape(a, (-1,))
    return np.array([float(flat[k]) for k in range(flat.shape[0])]).reshape(a.shape)


def placed(values: Array, like: Array, dtype: Any = None) -> Array:
    """Return an array of the host where ``like`` is; floats in its dtype, or another."""
    dtype = like.dtype if dtype is None else dtype
    inexact = values.dtype.kind == "f"
    if isinstance(like, np.ndarray):
        return values.astype(dtype, copy=False) if inexact else values
    there = namespace_of(like).asarray(np.ascontiguousarray(values), device=like.device)
    return cast(there, dtype) if inexact else there


def _places(which: Any) -> Array:
    which = np.asarray(which)
    return np.flatnonzero(which) if which.dtype == bool else which


def take(a: Array, which: Any, axis: int = 0) -> Array:
    """Return some rows, or columns; ``which`` is a slice, integers, or a mask of the host."""
    if isinstance(a, np.ndarray):
        return a[which] if axis == 0 else a[:, which]
    if isinstance(which, slice):
        return a[which, ...] if axis == 0 else a[:, which]
    if _check.namespace(which) is np:
        which = placed(_places(which), a)
    return namespace_of(a).take(a, which, axis=axis)


def put(a: Array, which: Any, values: Array, axis: int = 0) -> Array:
    """Return the array with some rows, or columns, replaced: NumPy's is written to.

    The standard cannot write to places that are given by integers: others are made anew, or are
    ``values`` if these are all of it. ``which`` names none twice.
    """
    if isinstance(a, np.ndarray):
        if axis == 0:
            a[which] = values
        else:
            a[:, which] = values
        return a
    xp = namespace_of(a)
    if isinstance(which, slice):
        which = np.arange(a.shape[axis])[which]
    which = _places(which)
    if not len(which):
        return a
    if np.array_equal(which, np.arange(a.shape[axis])):
        return values
    from_, there = np.zeros(a.shape[axis], np.int64), np.zeros(a.shape[axis], bool)
    from_[which], there[which] = np.arange(len(which)), True
    shape = [1] * a.ndim
    shape[axis] = -1
    return xp.where(
        placed(there.reshape(shape), a), xp.take(values, placed(from_, a), axis=axis), a
    )


def add(a: Array, which: Any, values: Array, axis: int = 0) -> Array:
    """Return the array with values added to some rows, or columns: NumPy's is written to."""
    if not isinstance(a, np.ndarray):
        return put(a, which, take(a, which, axis) + values, axis)
    if axis == 0:
        a[which] += values
    else:
        a[:, which] += values
    return a


def copied(a: Array) -> Array:
    """Return a copy, for NumPy in C order."""
    return a.copy() if isinstance(a, np.ndarray) else namespace_of(a).asarray(a, copy=True)


def reshaped(a: Array, shape: tuple[int, ...]) -> Array:
    """Return an array in another shape; NumPy's own methods take half the time of its functions."""
    return a.reshape(shape) if isinstance(a, np.ndarray) else namespace_of(a).reshape(a, shape)


def summed(a: Array, axis: int) -> Array:
    """Return the sums along an axis."""
    return a.sum(axis) if isinstance(a, np.ndarray) else namespace_of(a).sum(a, axis=axis)


def averaged(a: Array, axis: int) -> Array:
    """Return the means along an axis."""
    return a.mean(axis) if isinstance(a, np.ndarray) else namespace_of(a).mean(a, axis=axis)


def contiguous(a: Array) -> Array:
    """Return an array in C order, if it is NumPy's: another library keeps its own."""
    return np.ascontiguousarray(a) if isinstance(a, np.ndarray) else a


def joined(parts: list[Array], axis: int = 0) -> Array:
    """Return arrays one below the other, or side by side."""
    xp = namespace_of(*parts)
    return np.concatenate(parts, axis=axis) if xp is np else xp.concat(parts, axis=axis)


def zeros(shape: tuple[int, ...], like: Array, dtype: Any = None) -> Array:
    """Return zeros where ``like`` is, in its dtype or another."""
    dtype = like.dtype if dtype is None else dtype
    if isinstance(like, np.ndarray):
        return np.zeros(shape, dtype)
    xp = namespace_of(like)
    return xp.zeros(shape, dtype=_check.dtype_in(xp, dtype), device=like.device)


def dots(a: Array, b: Array, axis: int = 0) -> Array:
    """Return the inner products of columns, or along axis 1 of rows, in float64."""
    xp = namespace_of(a, b)
    if xp is np:
        return np.einsum("ij,ij->j" if axis == 0 else "ij,ij->i", a, b, dtype=np.float64)
    return xp.sum(cast(a, np.float64) * cast(b, np.float64), axis=axis)


def total(a: Array) -> float:
    """Return the sum of all entries, in float64."""
    xp = namespace_of(a)
    return float(a.sum(dtype=np.float64) if xp is np else xp.sum(cast(a, np.float64)))


def on_diagonal(a: Array) -> Array:
    """Return the diagonal of a matrix, or of each of a stack; NumPy's is a view."""
    xp = namespace_of(a)
    return a.diagonal(axis1=-2, axis2=-1) if xp is np else xp.linalg.diagonal(a)


def trace(a: Array) -> float:
    """Return the sum along the diagonal, in the dtype of the matrix."""
    xp = namespace_of(a)
    return float(a.trace() if xp is np else xp.linalg.trace(a))


def sum_of_squares(a: Array) -> float:
    """Return the sum of the squares of all entries of a matrix, in float64."""
    if isinstance(a, np.ndarray):
        return float(np.einsum("ij,ij->", a, a, dtype=np.float64))
    return total(cast(a, np.float64) ** 2)
