"""One ridge of a Gram matrix, by Cholesky in place or by eigenvectors, behind one interface."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular

from .. import _check
from ..linalg import lapack as _lapack
from ..solvers import RidgePath
from ..solvers._direct import _shortfall
from ..solvers._eigen import resolution, scratch
from ..solvers._path import weighted, without_a_copy

Array = np.ndarray


class Cholesky:
    """``K + ridge I = U'U``, in the upper triangle of K; the lower one stays as it was.

    ``ridge`` is a number, or one for each row. ``order`` is that of the first minor that is not
    positive definite, else 0; ``sound`` says whether what solves with the factor has any correct
    digits.
    """

    def __init__(self, K: Array, ridge: float | Array) -> None:
        self._f = _lapack.columns(K)
        self._diagonal = self._f.diagonal().copy()
        self._ridge = ridge
        _lapack.diagonal(self._f)[...] += np.asarray(ridge).astype(K.dtype)
        norm = _lapack.column_norm(self._f)
        self.order = _lapack.factor(self._f)
        resolved = resolution(len(K), K.dtype)
        self.sound = not self.order and (_lapack.reciprocal_condition(self._f, norm) > resolved)

    def restore(self) -> Array:
        """K again, in place; the factor is lost."""
        _lapack.restore(self._f, self._diagonal)
        return self._f

    def matrix(self) -> Array:
        """K again, in a copy."""
        copy = np.array(self._f, order="F")
        _lapack.restore(copy, self._diagonal)
        return copy

    def refuse(self) -> None:
        """Say by how much K fails."""
        found = _shortfall(self._f, self._diagonal, self.order, self._ridge)
        _check.indefinite(self.order, *found, remedy="solver='auto'")

    def solve(self, b: Array) -> Array:
        """``(K + ridge I)^-1 b``."""
        columns = np.array(b.reshape(len(b), -1), self._f.dtype, order="F")
        return _check.coefficients_within(_lapack.solve(self._f, columns)).reshape(b.shape)

    def whiten(self, b: Array) -> Array:
        """``U'^-1 b``, whose squares are those of b under ``(K + ridge I)^-1``."""
        return solve_triangular(self._f, b, trans=1, check_finite=False)

    def log_det(self) -> float:
        return 2 * float(np.log(self._f.diagonal(), dtype=np.float64).sum())

    def inverse_diagonal(self) -> Array:
        """Of ``(K + ridge I)^-1``; the factor is lost."""
        (trtri,) = get_lapack_funcs(("trtri",), (self._f,))
        inverse = trtri(self._f, lower=0, overwrite_c=1)[0]
        n = len(inverse)
        # 64 rows at a time, from their diagonal on: what is left of it is not the inverse's
        out = np.empty(n)
        for i in range(0, n, 64):
            rows = np.triu(inverse[i : i + 64, i:])
            out[i : i + 64] = np.square(rows, dtype=np.float64).sum(1)
        return out


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
        factor.refuse()
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
