"""Kernel ridge regression at one ridge: by Cholesky in place, or by eigenvectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import _check, linalg
from .._types import Array, ArrayLike
from ..linalg.arrays import (
    cast,
    copied,
    eps_of,
    on_diagonal,
    reshaped,
    summed,
    take,
)
from ..solvers import RidgePath
from ..solvers._eigen import scratch
from ..solvers._path import weighted, without_a_copy

NOISE = 3.0
"""How far above the errors of entries a ridge has to be for what is solved not to be of them."""


class Cholesky(linalg.Cholesky):
    """The factor of ``K + ridge I = U'U``, in place of K, for one ridge or one per row."""

    def __init__(self, K: Array, ridge: float | Array) -> None:
        super().__init__(linalg.columns(K), ridge, overwrite=True, condition=True)

    def solve(self, b: Array) -> Array:
        return _check.coefficients_within(super().solve(b))


class Spectral:
    """The same by eigenvectors, for a ridge that is one number."""

    def __init__(self, path: RidgePath, ridge: float) -> None:
        self.path = path
        self._weights = path._eigen.inverses(np.array([ridge]))

    def solve(self, b: Array) -> Array:
        eigen = self.path._eigen
        found = eigen.expand(self._weights, eigen.project(b))[0, ...]
        return _check.coefficients_within(reshaped(found, b.shape))

    def whiten(self, b: Array) -> Array:
        vectors, xp = self.path._eigen.vectors, self.path._eigen.xp
        return cast(xp.sqrt(self._weights[0, :]), vectors.dtype)[:, None] * (vectors.T @ b)


class Fit(NamedTuple):
    """Coefficients, the ridge, norms in the RKHS, and leave-one-out residuals or None."""

    alpha: Array
    ridge: float
    norm: Array
    residuals: Array | None


class Weights(NamedTuple):
    """The weights of points in sums of squares, and how many samples each point stands for."""

    total: Array
    copies: Array

    def at(self, which: Array) -> Weights:
        """Return those of some points."""
        return Weights(take(self.total, which), take(self.copies, which))

    @property
    def positive(self) -> Array:
        return (self.total > 0) & (self.copies > 0)

    def roots(self, dtype: Any, ndim: int = 1) -> Array:
        """Return the roots of the weights along the first of ``ndim`` axes."""
        xp = linalg.namespace_of(self.total)
        return reshaped(cast(xp.sqrt(self.total), dtype), (-1, *[1] * (ndim - 1)))


def weights_of(sample_weight: ArrayLike | None, X: Array) -> Weights | None:
    """Check the weights of points; a point of weight 2 counts as two copies."""
    if sample_weight is None:
        return None
    weights = _check.sample_weights(sample_weight, X.shape[0], X)
    return Weights(weights, weights)


def path(K: Array, y: Array, weights: Weights | None) -> RidgePath:
    """Return all ridges; K is overwritten."""
    total, copies = weights or (None, None)
    here = isinstance(K, np.ndarray)
    return RidgePath(K, y, sample_weight=total, copies=copies, overwrite_K=here)


def arrays(n: int, ridge: float | str, solver: str) -> int:
    """Return how many arrays of the size of K a fit holds at a time, as far as is known before."""
    chosen = isinstance(ridge, str)
    if not chosen and solver != "eigen":
        return 1
    return 1 + scratch(n) + (chosen and solver == "cholesky")


def fit(
    K: Array, y: Array, ridge: float | str, solver: str,
    leave_one_out: bool = False, weights: Weights | None = None,
) -> Fit:  # fmt: skip
    """Solve kernel ridge regression; K is overwritten, and y is of its dtype."""
    if isinstance(ridge, str) and solver == "cholesky":
        ridge = path(copied(K), y, weights).best(ridge)
    if isinstance(ridge, str) or solver == "eigen":
        return _by_path(K, y, ridge, leave_one_out, weights)
    ridge = float(ridge)
    if weights is not None:
        if solver == "auto" and _doubled(K, ridge, weights):  # weights would be rounded into K
            return _in_double(K, y, ridge, leave_one_out, weights)
        K, y = weighted(K, y, weights.total)
    factor = Cholesky(K, ridge)
    if factor.order and solver == "cholesky":
        factor.refuse("solver='auto'")
    if solver == "auto" and not factor.sound:
        K = factor.restore()
        if weights is not None:
            K, y = weighted(K, y, 1 / weights.total)
        if _doubled(K, ridge, weights):
            return _in_double(K, y, ridge, leave_one_out, weights)
        return _by_path(K, y, ridge, leave_one_out, weights)
    alpha = factor.solve(y)
    # alpha' K alpha with K alpha = y - ridge alpha
    xp, wide = linalg.namespace_of(alpha), cast(alpha, np.float64)
    square = summed(wide * (y - ridge * wide), 0)
    residuals = None
    if leave_one_out:
        size = factor.inverse_diagonal()[:, None]
        table = reshaped(wide, (wide.shape[0], -1)) / size
        copies = None if weights is None else weights.copies
        residuals = reshaped(without_a_copy(table, ridge * size, copies), y.shape)
    if weights is not None:
        root = weights.roots(np.float64, y.ndim)
        residuals = None if residuals is None else residuals / root
        alpha *= cast(root, alpha.dtype)
    return Fit(alpha, ridge, xp.sqrt(xp.maximum(square, 0.0)), residuals)


def _in_double(
    K: Array, y: Array, ridge: float, leave_one_out: bool, weights: Weights | None
) -> Fit:
    wide = cast(K, np.float64), cast(y, np.float64)
    found = fit(*wide, ridge, "auto", leave_one_out, weights)
    return found._replace(alpha=_check.coefficients_within(cast(found.alpha, K.dtype)))


def _doubled(K: Array, ridge: float, weights: Weights | None) -> bool:
    """Return whether double precision helps; it takes a fifth of the time of eigenvectors.

    Entries in single precision have errors of about eps each, and K one of sqrt(n) eps times its
    largest entry. Where the ridge is not above that, what lies below has to be cut off.
    """
    xp = linalg.namespace_of(K)
    if K.dtype == xp.float64 or (xp is np and 3 * K.nbytes > _check.budget()):
        return False
    diagonal = cast(on_diagonal(K), np.float64)
    if weights is not None:
        diagonal = diagonal * weights.total
    errors = linalg.resolution(K.shape[0], eps_of(K)) * float(xp.max(diagonal))
    return ridge > NOISE * errors


def _by_path(
    K: Array, y: Array, ridge: float | str, leave_one_out: bool, weights: Weights | None
) -> Fit:
    all_ridges = path(K, y, weights)
    ridge = all_ridges.best(ridge) if isinstance(ridge, str) else float(ridge)
    residuals = all_ridges.loo(ridge) if leave_one_out else None
    return Fit(all_ridges.alpha(ridge), ridge, all_ridges.rkhs_norm(ridge), residuals)
