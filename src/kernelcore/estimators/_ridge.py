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
from . import _factor
from ._base import OfKernel

Array = np.ndarray

CRITERIA = ("loo", "gcv", "likelihood")
ITERATIVE = ("cg", "eigenpro", "nystrom")
SOLVERS = ("auto", "cholesky", "eigen", *ITERATIVE)
TOLERANCE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-4}
"""Of conjugate gradients: how far predictions on X may be off, relative to the norm of y."""


class OfRidge(OfKernel):
    """Base of those with ``ridge``, ``solver``, ``centres``, ``epochs`` and ``random_state``."""

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
            _check.spectral(self.ridge, self.solver, fine=("auto", "eigen"))
        else:
            _check.non_negative(self.ridge, "ridge")
        if self.solver in ("eigenpro", "nystrom"):
            _check.not_precomputed(self._precomputed, f"solver must not be {self.solver!r}")
        # eigenvectors of two points at least, also when a classifier holds out a third
        return {"ensure_min_samples": 3} if self.solver == "eigenpro" else {}

    def _solve(self, X: Array, y: Array, rng, leave_one_out: bool = False) -> Array | None:
        """Set what is fitted; leave-one-out residuals where they are asked for and known."""
        if self._iterative:
            return self._iterate(X, y, rng.randint(2**31 - 1))
        found = _factor.fit(self._gram(X), y, self.ridge, self.solver, leave_one_out)
        self.alpha_, self.ridge_, self.rkhs_norm_, residuals = found
        return residuals

    def _iterate(self, X: Array, y: Array, seed: int) -> None:
        kernel, few = self.kernel_, min(len(X), round(10 * math.sqrt(len(X))))
        tol = TOLERANCE[X.dtype]
        self.ridge_, self.X_fit_ = float(self.ridge), None if self._precomputed else X
        if self.solver == "nystrom":
            centres = few if self.centres is None else self.centres
            if np.ndim(centres) == 0:  # what there is, in a part of the data too
                centres = min(_check.count(centres, "centres", least=1), len(X))
            found = nystrom_ridge(kernel, X, y, self.ridge_, centres=centres, tol=tol, seed=seed)
            self.X_fit_, self.alpha_ = found.centres, found.coefficients
        K = X if self._precomputed else RowBlocks(kernel, self.X_fit_)
        if self.solver == "cg":
            P = nystrom_preconditioner(K, rank=few, ridge=self.ridge_, seed=seed)
            found = conjugate_gradients(K, y, self.ridge_, preconditioner=P, tol=tol)
            self.alpha_ = found.alpha
        elif self.solver == "eigenpro":
            found = eigenpro(kernel, X, y, self.ridge_, epochs=self.epochs, seed=seed)
            self.alpha_ = found.coefficients
        square = (self.alpha_ * (K @ self.alpha_)).sum(0, dtype=np.float64)
        self.rkhs_norm_ = np.sqrt(np.maximum(square, 0))
