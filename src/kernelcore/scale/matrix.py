"""One interface to what stands for K: an array, a ``GramOperator``, or whatever multiplies.

A function that is given K calls ``matrix`` and gets an object with

    shape, dtype, K @ x                    always; dtype is None where K does not tell
    diagonal(), columns(j), rows(i),       for arrays and GramOperators, and for other operators
    block(i, j)                            that have ``diagonal`` and ``columns``: name those needed
    hold()                                 computes K if it fits into memory; whether parts are free
    toarray()                              always; for other operators by n products

Functions that need the array itself call ``whole``, and for matrices k(x, X) ``across``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _check
from .._types import Array
from ..kernels import Kernel
from ..linalg.arrays import on_diagonal, take
from ..linalg.blas import row_blocks
from .operator import BLOCK_BYTES, GramOperator


class Dense:
    """An array of any library, with the methods of an operator."""

    def __init__(self, K: Array) -> None:
        self.K, self.shape, self.dtype = K, K.shape, K.dtype

    def __matmul__(self, x: Any) -> Any:
        return self.K @ x

    def diagonal(self) -> Array:
        return on_diagonal(self.K)

    def columns(self, which: Any) -> Array:
        return take(self.K, which, 1)

    def rows(self, which: Any, out: Array | None = None) -> Array:
        return take(self.K, which)

    def block(self, rows: Any, columns: Any) -> Array:
        if isinstance(self.K, np.ndarray):
            return self.K[np.ix_(rows, columns)]
        return take(take(self.K, rows), columns, 1)

    def hold(self) -> bool:
        return True

    def toarray(self) -> Array:
        return self.K


class Multiplies:
    """An operator of another library, with the methods that it has besides products."""

    def __init__(self, K: Any, name: str) -> None:
        self.K, self.shape, self._name = K, tuple(K.shape), name
        own = getattr(K, "dtype", None)
        if not isinstance(own, type | np.dtype):  # another library's, or none
            name = _check.dtype_name(own)
            own = np.dtype(name) if name in ("float32", "float64") else None
        self.dtype = np.dtype(own) if own in (np.float32, np.float64) else None

    def __matmul__(self, x: Any) -> Any:
        return self.K @ x

    def diagonal(self) -> Array:
        return np.asarray(self.K.diagonal())

    def columns(self, which: Any) -> Array:
        return np.asarray(self.K.columns(which))

    def rows(self, which: Any, out: Array | None = None) -> Array:
        return self.columns(which).T

    def block(self, rows: Any, columns: Any) -> Array:
        return self.columns(columns)[rows]

    def hold(self) -> bool:
        return False

    def toarray(self) -> Array:
        """Return the products with all columns of the identity, some columns at a time."""
        if hasattr(self.K, "toarray"):  # sparse
            return _check.real_array(self.K, self._name)
        n, m = self.shape
        out = _check.fresh((n, m), dtype_of(self))
        for part in row_blocks(m, max(1, BLOCK_BYTES // (m * out.itemsize))):
            size = part.stop - part.start
            units = np.eye(m, size, -part.start, out.dtype)
            out[:, part] = _check.product(self.K @ units, (n, size), self._name)
        return out


Matrix = Dense | Multiplies | GramOperator


def dtype_of(K: Matrix, otherwise: Any = np.float64) -> np.dtype[Any]:
    """Return the dtype of K, as NumPy has it, or another where K does not tell."""
    if K.dtype is None:
        return np.dtype(otherwise)
    return K.dtype if isinstance(K.dtype, np.dtype) else np.dtype(_check.dtype_name(K.dtype))


def operates(K: Any) -> bool:
    """Return whether K is an operator, rather than an array or what NumPy can make one of."""
    if isinstance(K, GramOperator):
        return True
    if hasattr(K, "__array__") or _check.namespace(K) is not np:
        return False
    return hasattr(K, "shape") and hasattr(K, "__matmul__")


def home(K: Matrix, otherwise: Any = None) -> Any:
    """Return an array that is where K is; another one for an operator that does not tell."""
    if isinstance(K, Dense):
        return K.K
    return K.X if isinstance(K, GramOperator) else getattr(K.K, "home", otherwise)


def room(
    K: Matrix, what: str, shape: tuple[int, ...], arrays: int, remedies: tuple[str, ...]
) -> None:
    """Ask for memory beside K, in its dtype; that of a device is for its library to give."""
    if _check.namespace(home(K)) is np:
        _check.room(what, shape, dtype_of(K), arrays, remedies)


def matrix(K: Any, name: str = "K", *needs: str) -> Matrix:
    """Return K behind the interface above, with the methods ``needs`` besides products."""
    if isinstance(K, Dense | Multiplies):
        return K
    if isinstance(K, GramOperator):
        found: Matrix = K
        square = K.shape[0] == K.shape[1]
        _check.unless(square and not K.symmetric, name, "symmetric", "that of X and Y; leave Y out")
    elif operates(K):
        if needs and hasattr(K, "toarray"):  # sparse
            _check.real_array(K, name)
        _check.offers(K, name, needs)
        found = Multiplies(K, name)
    else:
        found = Dense(_check.array(K, name) if needs else _check.multiplies(K, name))
    _check.square(found.shape, name)
    return found


def of_points(K: Any, X: Any, *needs: str, name: str = "K") -> Matrix:
    """Do the same for K, or for a kernel and its points, whose matrix is never formed."""
    if isinstance(K, Kernel):
        return GramOperator(K, _check.given(X, "X", "a kernel"))
    _check.not_beside(X, "X", "a matrix")
    return matrix(K, name, *needs)


def of_kernel(kernel: Kernel | GramOperator, X: Any) -> GramOperator:
    """Return the operator of a kernel and its points, or the one that stands for both."""
    if not isinstance(kernel, GramOperator):
        return GramOperator(kernel, X)
    _check.not_beside(X, "X", "a GramOperator")
    rule = "a kernel or a GramOperator with its points"
    _check.unless(kernel.X is None, "kernel", rule, "a stored matrix; pass the kernel and X")
    rule = "a GramOperator without scale"
    _check.unless(kernel.scale is not None, "kernel", rule, "one with it; pass sample_weight")
    matrix(kernel, "kernel")  # refuses one that is not symmetric
    return kernel


def symmetric(K: Any) -> Matrix:
    """Do the same as ``matrix``; an array must be finite and symmetric, an operator is trusted."""
    return matrix(K) if operates(K) else Dense(_check.gram(K, "K"))


def whole(
    K: Any, name: str = "K", *,
    overwrite: bool = False, beside: Callable[[int], int] = lambda n: 0,
    remedies: tuple[str, ...] = ("float32",),
) -> tuple[Array, bool]:  # fmt: skip
    """Return a finite symmetric array, and whether it may be overwritten, as one made here may.

    A ``GramOperator`` computes one Gram matrix, unless it is kept; another operator n products,
    some at a time. The memory budget must hold the array, a copy of it where it may not be
    overwritten, and ``beside(n)`` more arrays of its size.
    """
    if overwrite:
        return _check.gram(_check.overwritable(K, name), name, beside, remedies), True
    if operates(K):
        found = matrix(K, name)
        n = found.shape[0]
        if _check.namespace(home(found)) is not np:
            return _check.gram(found.toarray(), name), True
        _check.room(name, found.shape, dtype_of(found), 1 + beside(n), ("float32",))
        return _check.gram(found.toarray(), name), True
    return _check.gram(K, name, lambda n: 1 + beside(n), remedies), False


def values(K: Any, name: str) -> Any:
    """Return the array of an operator of any shape, and anything else as it is, unchecked."""
    if not operates(K):
        return K
    return (K if isinstance(K, GramOperator) else Multiplies(K, name)).toarray()


def across(K: Any, name: str, n: int, dtype: Any, of: str = "K", like: Any = None) -> Array:
    """Return a finite array of kernel values, one column per row of ``of``; K may operate.

    It is where ``like`` is, which is what ``of`` stands for.
    """
    a = _check.beside(values(K, name), name, like, of)
    fine = a.ndim == 2 and a.shape[1] == n
    _check.shaped(fine, a, name, f"have one column per row of {of}, {n}")
    return _check.cast(_check.entries(a, name), dtype)
