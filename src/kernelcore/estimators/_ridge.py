"""What regression and classification share: one ridge, by the solver that is named."""

from __future__ import annotations

import math

import numpy as np

from .. import _check
from ..scale.operator import GramOperator
from ..solvers import conjugate_gradients, eigenpro, nystrom_preconditioner, nystrom_ridge
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
        K = None if self.solver == "nystrom" else self._operator(X, weights)
        if isinstance(ridge, str):
            ridge = self._choose(X, y, rng, weights, K)
        self.ridge_ = float(ridge)
        seed = rng.randint(2**31 - 1)
        if K is None:
            return self._by_centres(X, y, seed, weights, leave_one_out)
        self._by_products(K, X, y, seed, weights)
        return self._left_out(X, y, weights, K) if leave_one_out else None

    def _operator(self, X: Array, weights: Weights | None) -> Array | GramOperator:
        """``S K S`` with S the roots of weights; of a kernel computed once if memory holds it."""
        root = None if weights is None else np.sqrt(weights.total).astype(X.dtype)
        if self._precomputed:
            if root is not None:
                _check.room("K", X.shape, X.dtype, 3, ("float32",))
            return X if root is None else root[:, None] * X * root
        K = GramOperator(self.kernel_, X, scale=root)
        K.hold()
        return K

    def _plain(self, X: Array, K: Array | GramOperator | None) -> Array:
        """The Gram matrix without weights, which may be overwritten; from K if it is that."""
        if isinstance(K, GramOperator) and K.scale is None:
            return K.toarray()
        return self._gram(X)

    def _choose(self, X: Array, y: Array, rng, weights: Weights | None, K) -> float:
        """A ridge by the criterion, from some of many points."""
        if len(X) > CHOSEN_ON:
            some = np.sort(rng.choice(len(X), CHOSEN_ON, replace=False))
            X, y, K = self._part(X, some), y[some], None
            weights = None if weights is None else weights[some]
        return _factor.choose(self._plain(X, K), y, self.ridge, weights)

    @property
    def _options(self) -> dict:
        """What all iterative solvers take."""
        options = {"progress": bool(self.verbose)}
        if self.max_iter is not None:
            options["epochs" if self.solver == "eigenpro" else "max_iter"] = self.max_iter
        return options

    def _tolerance(self, X: Array) -> float:
        if self.tol is not None:
            return self.tol
        return EIGENPRO if self.solver == "eigenpro" else TOLERANCE[X.dtype]

    def _by_centres(
        self, X: Array, y: Array, seed: int, weights: Weights | None, leave_one_out: bool
    ) -> Array | None:
        centres = _few(X) if self.centres is None else self.centres
        if np.ndim(centres) == 0:  # what there is, in a part of the data too
            centres = min(_check.count(centres, "centres", least=1), len(X))
        found = nystrom_ridge(
            self.kernel_, X, y, self.ridge_, centres=centres, tol=self._tolerance(X), seed=seed,
            sample_weight=None if weights is None else weights.total, **self._options,
        )  # fmt: skip
        self.X_fit_, self.alpha_, self.history_ = found.centres, found.alpha, found.residuals
        self.rkhs_norm_ = _size(self.alpha_, self.kernel_(found.centres) @ self.alpha_)
        if self.history_ is not None:
            self.n_iter_ = max(1, len(self.history_) - 1)
        if not leave_one_out:
            return None
        residuals = left_out(found, X, y, self.ridge_, *(weights or (None, None)))
        known = np.isfinite(residuals.reshape(len(X), -1)).all(1)
        return residuals if known.sum() >= len(X) / 10 else self._left_out(X, y, weights)

    def _by_products(
        self, K: Array | GramOperator, X: Array, y: Array, seed: int, weights: Weights | None
    ) -> None:
        """``(S K S + ridge I) beta = S y`` and ``alpha = S beta``, by 'cg' or 'eigenpro'."""
        self.X_fit_ = None if self._precomputed else X
        root, right = None, y
        if weights is not None:
            root = np.sqrt(weights.total).astype(X.dtype).reshape(-1, *[1] * (y.ndim - 1))
            right = root * y
        if self.solver == "cg":
            P = nystrom_preconditioner(
                K, rank=_few(X), ridge=self.ridge_, seed=seed, progress=bool(self.verbose)
            )
            found = conjugate_gradients(
                K, right, self.ridge_, preconditioner=P, tol=self._tolerance(X), **self._options
            )
            # what the system says of K beta, as far as it has converged
            fitted = right - self.ridge_ * found.alpha
        else:
            found = eigenpro(
                K, None, right, self.ridge_, tol=self._tolerance(X), seed=seed, **self._options
            )
            fitted = K @ found.alpha
        self.alpha_ = found.alpha if root is None else root * found.alpha
        self.rkhs_norm_ = _size(found.alpha, fitted)
        self.history_, self.n_iter_ = found.residuals, max(1, len(found.residuals) - 1)

    def _left_out(self, X: Array, y: Array, weights: Weights | None, K=None) -> Array | None:
        """Leave-one-out residuals by a factorisation, unless that takes too long."""
        if len(X) > EXACT:
            return None
        return _factor.fit(self._plain(X, K), y, self.ridge_, "auto", True, weights).residuals


def _few(X: Array) -> int:
    """Columns of a preconditioner, or centres."""
    return min(len(X), round(10 * math.sqrt(len(X))))


def _size(alpha: Array, fitted: Array) -> Array:
    """Of the fit in the RKHS, output by output: ``sqrt(alpha' K alpha)``."""
    return np.sqrt(np.maximum((alpha * fitted).sum(0, dtype=np.float64), 0))


def _spread(values: Array, rows: Array, n: int) -> Array:
    """Rows in their places among n, zeros elsewhere."""
    out = np.zeros((n, *values.shape[1:]), values.dtype)
    out[rows] = values
    return out
