"""One ridge of a Gram matrix, by Cholesky in place or by eigenvectors, behind one interface."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import _check, linalg
from ..solvers import RidgePath
from ..solvers._eigen import scratch
from ..solvers._path import weighted, without_a_copy

Array = np.ndarray


class Cholesky(linalg.Cholesky):
    """``K + ridge I = U'U``, in the upper triangle of K; the lower one stays as it was.

    ``ridge`` is a number, or one for each row.
    """

    def __init__(self, K: Array, ridge: float | Array) -> None:
        super().__init__(linalg.columns(K), ridge, overwrite=True, condition=True)

    def solve(self, b: Array) -> Array:
        return _check.coefficients_within(super().solve(b))


class Spectral:
    """The same by eigenvectors, at a ridge that is one number."""

    def __init__(self, path: RidgePath, ridge: float) -> None:
        self.path = path
        self._weights = path._eigen.inverses(np.array([ridge]))

    def solve(self, b: Array) -> Array:
        eigen = self.path._eigen
        found = eigen.expand(self._weights, eigen.project(b))[0].reshape(b.shape)
        return _check.coefficients_within(found)

    def whiten(self, b: Array) -> Array:
        vectors = self.path._eigen.vectors
        return np.sqrt(self._weights[0]).astype(vectors.dtype)[:, None] * (vectors.T @ b)


class Fit(NamedTuple):
    """Coefficients, the ridge, norms in the RKHS, and leave-one-out residuals if asked for."""

    alpha: Array
    ridge: float
    norm: Array
    residuals: Array | None


class Weights(NamedTuple):
    """How much points weigh in squares of errors, and how many samples each stands for."""

    total: Array
    copies: Array

    def __getitem__(self, which) -> Weights:
        """Of some of the points."""
        return Weights(self.total[which], self.copies[which])

    @property
    def positive(self) -> Array:
        return (self.total > 0) & (self.copies > 0)


def _path(K: Array, y: Array, weights: Weights | None) -> RidgePath:
    total, copies = (None, None) if weights is None else (weights.total, weights.copies)
    return RidgePath(K, y, sample_weight=total, copies=copies, overwrite_K=True)


def choose(K: Array, y: Array, criterion: str, weights: Weights | None = None) -> float:
    """The ridge that a criterion prefers; K is overwritten."""
    return _path(K, y, weights).best(criterion)


def arrays(n: int, ridge, solver: str) -> int:
    """How many of the size of K a fit holds at the same time, as far as is known before it."""
    chosen = isinstance(ridge, str)
    if not chosen and solver != "eigen":
        return 1
    return 1 + scratch(n) + (chosen and solver == "cholesky")


def fit(
    K: Array,
    y: Array,
    ridge,
    solver: str,
    leave_one_out: bool = False,
    weights: Weights | None = None,
) -> Fit:
    """Kernel ridge regression; K is overwritten, and y is of its dtype."""
    if isinstance(ridge, str) and solver == "cholesky":
        ridge = choose(K.copy(), y, ridge, weights)
    if isinstance(ridge, str) or solver == "eigen":
        return _by_path(K, y, ridge, leave_one_out, weights)
    ridge = float(ridge)
    root = None
    if weights is not None:
        root = np.sqrt(weights.total).reshape(-1, *[1] * (y.ndim - 1))
        K, y = weighted(K, y, weights.total)
    factor = Cholesky(K, ridge)
    if factor.order and solver == "cholesky":
        factor.refuse("solver='auto'")
    if solver == "auto" and not factor.sound:
        K = factor.restore()
        if root is not None:
            K, y = weighted(K, y, 1 / weights.total)
        return _by_path(K, y, ridge, leave_one_out, weights)
    alpha = factor.solve(y)
    # alpha' K alpha with K alpha = y - ridge alpha
    wide = alpha.astype(np.float64, copy=False)
    square = (wide * (y - ridge * wide)).sum(0)
    residuals = None
    if leave_one_out:
        size = factor.inverse_diagonal()[:, None]
        table = wide.reshape(len(wide), -1) / size
        copies = None if weights is None else weights.copies
        residuals = without_a_copy(table, ridge * size, copies).reshape(y.shape)
        residuals = residuals if root is None else residuals / root
    if root is not None:
        alpha *= root.astype(alpha.dtype)
    return Fit(alpha, ridge, np.sqrt(np.maximum(square, 0)), residuals)


def _by_path(K: Array, y: Array, ridge, leave_one_out: bool, weights: Weights | None) -> Fit:
    path = _path(K, y, weights)
    ridge = path.best(ridge) if isinstance(ridge, str) else float(ridge)
    residuals = path.loo(ridge) if leave_one_out else None
    return Fit(path.alpha(ridge), ridge, path.rkhs_norm(ridge), residuals)
