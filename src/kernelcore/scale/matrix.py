"""What stands for K: an array, a ``GramOperator``, or anything with a shape that multiplies.

Whoever is given K asks here and gets something with

    shape, dtype, K @ x                    always; dtype is None where K does not tell
    diagonal(), columns(j), rows(i),       of arrays and GramOperators, and of other operators that
    block(i, j)                            have ``diagonal`` and ``columns``: say which you need
    hold()                                 whether these cost nothing, once K has computed its own
    toarray()                              always; of an operator by n products

``whole`` is the way in for those who need the array itself, ``across`` for matrices k(x, X).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import _check
from ..kernels import Kernel
from ..linalg.blas import row_blocks
from .operator import BLOCK_BYTES, GramOperator

Array = np.ndarray


class Dense:
    """An array."""

    def __init__(self, K: Array) -> None:
        self.K, self.shape, self.dtype = K, K.shape, K.dtype

    def __matmul__(self, x):
        return self.K @ x

    def diagonal(self) -> Array:
        return self.K.diagonal()

    def columns(self, which) -> Array:
        return self.K[:, which]

    def rows(self, which, out: Array | None = None) -> Array:
        return self.K[which]

    def block(self, rows, columns) -> Array:
        return self.K[np.ix_(rows, columns)]

    def hold(self) -> bool:
        return True

    def toarray(self) -> Array:
        return self.K


class Multiplies:
    """An operator of somebody else's, with what it has beside products."""

    def __init__(self, K, name: str) -> None:
        self.K, self.shape, self._name = K, tuple(K.shape), name
        own = getattr(K, "dtype", None)
        self.dtype = np.dtype(own) if own in (np.float32, np.float64) else None

    def __matmul__(self, x):
        return self.K @ x

    def diagonal(self) -> Array:
        return np.asarray(self.K.diagonal())

    def columns(self, which) -> Array:
        return np.asarray(self.K.columns(which))

    def rows(self, which, out: Array | None = None) -> Array:
        return self.columns(which).T

    def block(self, rows, columns) -> Array:
        return self.columns(columns)[rows]

    def hold(self) -> bool:
        return False

    def toarray(self) -> Array:
        """By products with the columns of the identity, some of them at a time."""
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


def dtype_of(K: Matrix, otherwise=np.float64) -> np.dtype:
    """The dtype of K, or another where K does not tell."""
    return np.dtype(otherwise) if K.dtype is None else K.dtype


def operates(K) -> bool:
    """Whether K is an operator, and no array or what NumPy makes one of."""
    return hasattr(K, "shape") and hasattr(K, "__matmul__") and not hasattr(K, "__array__")


def matrix(K, name: str = "K", *needs: str) -> Matrix:
    """What K is, with the methods ``needs`` beside products."""
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
        found = Dense(_check.real_array(K, name) if needs else _check.multiplies(K, name))
    _check.square(found.shape, name)
    return found


def of_points(K, X, *needs: str, name: str = "K") -> Matrix:
    """The same of K, or of a kernel and its points, whose matrix is never formed."""
    if isinstance(K, Kernel):
        return GramOperator(K, _check.given(X, "X", "a kernel"))
    _check.not_beside(X, "X", "a matrix")
    return matrix(K, name, *needs)


def of_kernel(kernel, X) -> GramOperator:
    """The operator of a kernel and its points, or the one that stands for both."""
    if not isinstance(kernel, GramOperator):
        return GramOperator(kernel, X)
    _check.not_beside(X, "X", "a GramOperator")
    rule = "a GramOperator without scale"
    _check.unless(kernel.scale is not None, "kernel", rule, "one with it; pass sample_weight")
    return matrix(kernel, "kernel")


def symmetric(K, name: str = "K") -> Matrix:
    """The same, where an array has to be finite and symmetric; an operator is taken at its word."""
    return matrix(K, name) if operates(K) else Dense(_check.gram(K, name))


def whole(
    K,
    name: str = "K",
    *,
    overwrite: bool = False,
    beside: Callable[[int], int] = lambda n: 0,
    remedies: tuple[str, ...] = ("float32",),
) -> tuple[Array, bool]:
    """A finite symmetric array, and whether it may be written into: one that was made here may.

    That of a ``GramOperator`` costs one Gram matrix, unless it is kept; of another operator n
    products, some at a time. Refused where the memory budget does not hold it, a copy where it may
    not be written into, and ``beside(n)`` more arrays of its size.
    """
    if overwrite:
        return _check.gram(_check.overwritable(K, name), name, beside, remedies), True
    if operates(K):
        found = matrix(K, name)
        n = found.shape[0]
        _check.room(name, found.shape, dtype_of(found), 1 + beside(n), ("float32",))
        return _check.gram(found.toarray(), name), True
    return _check.gram(K, name, lambda n: 1 + beside(n), remedies), False


def values(K, name: str):
    """The array of an operator of any shape; what is none as it is, for checks of its own."""
    if not operates(K):
        return K
    return (K if isinstance(K, GramOperator) else Multiplies(K, name)).toarray()


def across(K, name: str, n: int, dtype, of: str = "K") -> Array:
    """A finite array of kernel values, one column per row of ``of``, also of an operator."""
    return _check.cross(values(K, name), name, n, dtype, of)
