"""What regression and classification share: one ridge, by the solver that is named."""

from __future__ import annotations

import math

import numpy as np

from .. import _check
from ..solvers import (
    RowBlocks,
    conjugate_gradients,
    eigenpro,
    nystrom_preconditioner,
    nystrom_ridge,
)
from ..solvers._eigenpro import TOLERANCE as EIGENPRO
from ..solvers._nystrom import left_out
from . import _factor
from ._base import OfKernel
from ._factor import Weights

Array = np.ndarray

CRITERIA = ("loo", "gcv", "likelihood")
ITERATIVE = ("cg", "eigenpro", "nystrom")
SOLVERS = ("auto", "cholesky", "eigen", *ITERATIVE)
TOLERANCE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-4}
"""Of conjugate gradients: how far predictions on X may be off, relative to the norm of y."""
CHOSEN_ON = 2000
"""Points on which a ridge is chosen where the solver has no eigenvectors."""
REMEDIES = ("solver='cg'", "solver='nystrom'", "solver='eigenpro'", "float32")
EXACT = 5000
"""Up to so many points leave-one-out scores come from one factorisation, whatever solves."""


class OfRidge(OfKernel):
    """Base of those with ``ridge``, ``solver`` and what the iterative ones among these need."""

    _former = {"epochs": "max_iter"}

    @property
    def dual_coef_(self) -> Array:
        return self.alpha_

    @property
    def _iterative(self) -> bool:
        return self.solver in ITERATIVE

    def _check_solver(self) -> dict:
        """Refuse parameters before any work is done; what inputs must obey beside the usual."""
        _check.choice(self.solver, "solver", SOLVERS)
        if isinstance(self.ridge, str):
            _check.choice(self.ridge, "ridge", CRITERIA)
        else:
            _check.non_negative(self.ridge, "ridge")
        if self.max_iter is not None:
            _check.count(self.max_iter, "max_iter", least=1)
        if self.tol is not None:
            _check.positive(self.tol, "tol")
        if self.solver in ("eigenpro", "nystrom"):
            _check.not_precomputed(self._precomputed, f"solver must not be {self.solver!r}")
        # eigenvectors of two points at least, also when a classifier holds out a third
        return {"ensure_min_samples": 3} if self.solver == "eigenpro" else {}

    def _part(self, X: Array, which: Array) -> Array:
        """Some of the inputs of a fit."""
        return X[np.ix_(which, which)] if self._precomputed else X[which]

    def _solve(
        self, X: Array, y: Array, rng, weights: Weights | None = None, leave_one_out: bool = False
    ) -> Array | None:
        """Set what is fitted; leave-one-out residuals if asked for, None where they cost too much.

        Points of weight zero are as good as absent: their coefficients and residuals are zero.
        Residuals of points that a solver knows none of are NaN.
        """
        self.n_iter_, self.history_ = 1, None
        if weights is None or weights.positive.all():
            return self._solve_all(X, y, rng, weights, leave_one_out)
        there = np.flatnonzero(weights.positive)
        part, some = self._part(X, there), weights[there]
        residuals = self._solve_all(part, y[there], rng, some, leave_one_out)
        if self.solver != "nystrom":
            self.X_fit_ = None if self._precomputed else X
            self.alpha_ = _spread(self.alpha_, there, len(X))
        return None if residuals is None else _spread(residuals, there, len(X))

    def _solve_all(self, X, y, rng, weights, leave_one_out) -> Array | None:
        ridge = self.ridge
        if not self._iterative:
            K = self._gram(X, _factor.arrays(len(X), ridge, self.solver), REMEDIES)
            found = _factor.fit(K, y, ridge, self.solver, leave_one_out, weights)
            self.alpha_, self.ridge_, self.rkhs_norm_, residuals = found
            return residuals
        if isinstance(ridge, str):
            ridge = self._choose(X, y, rng, weights)
        self.ridge_ = float(ridge)
        return self._iterate(X, y, rng.randint(2**31 - 1), weights, leave_one_out)

    def _choose(self, X: Array, y: Array, rng, weights: Weights | None) -> float:
        """A ridge by the criterion, from some of many points."""
        if len(X) > CHOSEN_ON:
            some = np.sort(rng.choice(len(X), CHOSEN_ON, replace=False))
            X, y = self._part(X, some), y[some]
            weights = None if weights is None else weights[some]
        return _factor.choose(self._gram(X), y, self.ridge, weights)

    def _iterate(
        self, X: Array, y: Array, seed: int, weights: Weights | None, leave_one_out: bool
    ) -> Array | None:
        kernel, few = self.kernel_, min(len(X), round(10 * math.sqrt(len(X))))
        tol = TOLERANCE[X.dtype] if self.tol is None else self.tol
        progress, limit = bool(self.verbose), {}
        if self.max_iter is not None:
            limit = {"epochs" if self.solver == "eigenpro" else "max_iter": self.max_iter}
        self.X_fit_ = None if self._precomputed else X
        total = None if weights is None else weights.total
        if self.solver == "nystrom":
            centres = few if self.centres is None else self.centres
            if np.ndim(centres) == 0:  # what there is, in a part of the data too
                centres = min(_check.count(centres, "centres", least=1), len(X))
            found = nystrom_ridge(
                kernel, X, y, self.ridge_, centres=centres, sample_weight=total, tol=tol,
                progress=progress, seed=seed, **limit,
            )  # fmt: skip
            self.X_fit_, self.alpha_, self.history_ = found.centres, found.alpha, found.residuals
            self._norm(kernel(found.centres) @ self.alpha_)
            if self.history_ is not None:
                self.n_iter_ = max(1, len(self.history_) - 1)
            if not leave_one_out:
                return None
            residuals = left_out(found, X, y, self.ridge_, *(weights or (None, None)))
            known = np.isfinite(residuals.reshape(len(X), -1)).all(1)
            return residuals if known.sum() >= len(X) / 10 else self._left_out(X, y, weights)
        root = None if total is None else np.sqrt(total).astype(X.dtype)
        if self.solver == "cg":
            columns = None if root is None else root.reshape(-1, *[1] * (y.ndim - 1))
            if self._precomputed and root is not None:
                _check.room("K", X.shape, X.dtype, 3, ("float32",))
                K = root[:, None] * X * root
            elif self._precomputed:
                K = X
            else:
                K = RowBlocks(kernel, X, scale=root)
            P = nystrom_preconditioner(K, rank=few, ridge=self.ridge_, seed=seed, progress=progress)
            right = y if root is None else columns * y
            found = conjugate_gradients(
                K, right, self.ridge_, preconditioner=P, tol=tol, progress=progress, **limit
            )
            self.alpha_ = found.alpha if root is None else columns * found.alpha
            # K alpha = y - ridge alpha in coordinates with weights, as far as it has converged
            self.rkhs_norm_ = _size(found.alpha, right - self.ridge_ * found.alpha)
        else:
            found = eigenpro(
                kernel, X, y, self.ridge_, tol=EIGENPRO if self.tol is None else self.tol,
                sample_weight=total, progress=progress, seed=seed, **limit,
            )  # fmt: skip
            self.alpha_ = found.alpha
            self._norm(RowBlocks(kernel, X) @ self.alpha_)
        self.history_, self.n_iter_ = found.residuals, max(1, len(found.residuals) - 1)
        return self._left_out(X, y, weights) if leave_one_out else None

    def _left_out(self, X: Array, y: Array, weights: Weights | None) -> Array | None:
        """Leave-one-out residuals by a factorisation, unless that takes too long."""
        if len(X) > EXACT:
            return None
        return _factor.fit(self._gram(X), y, self.ridge_, "auto", True, weights).residuals

    def _norm(self, fitted: Array) -> None:
        self.rkhs_norm_ = _size(self.alpha_, fitted)


def _size(alpha: Array, fitted: Array) -> Array:
    """Of the fit in the RKHS, output by output: ``sqrt(alpha' K alpha)``."""
    return np.sqrt(np.maximum((alpha * fitted).sum(0, dtype=np.float64), 0))


def _spread(values: Array, rows: Array, n: int) -> Array:
    """Rows in their places among n, zeros elsewhere."""
    out = np.zeros((n, *values.shape[1:]), values.dtype)
    out[rows] = values
    return out
