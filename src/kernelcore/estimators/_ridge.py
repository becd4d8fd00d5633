"""The base of regression and classification: one ridge, by the solver that is named."""

from __future__ import annotations

import contextlib
import math
import sys
import tempfile
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState

from .. import _check
from .._types import Array, ArrayLike
from ..engine.memory import budget
from ..engine.progress import say
from ..linalg import namespace_of
from ..linalg.arrays import numbers, put, take, zeros
from ..scale.choose import Choice, choose
from ..scale.client import get_client
from ..scale.cost import SAMPLE, core_seconds
from ..scale.job import gram
from ..scale.matrix import Dense
from ..scale.operator import GramOperator
from ..solvers import conjugate_gradients, eigenpro, nystrom_preconditioner, nystrom_ridge
from ..solvers._eigenpro import TOLERANCE as EIGENPRO
from ..solvers._nystrom import left_out
from . import _factor
from ._base import OfKernel, own
from ._degrees import warn_of_null_degrees
from ._factor import Weights

CRITERIA = ("loo", "gcv", "likelihood")
ITERATIVE = ("cg", "eigenpro", "nystrom")
SOLVERS = ("auto", "cholesky", "eigen", *ITERATIVE)
TOLERANCE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-4}
"""How far predictions by conjugate gradients on X may be off, relative to the norm of y."""
CHOSEN_ON = 2000
"""The number of points on which a ridge is chosen where the solver has no eigenvectors."""
REMEDIES = ("solver='cg'", "solver='nystrom'", "solver='eigenpro'", "float32")
EXACT = 5000
"""The number of points up to which one factorisation gives leave-one-out scores to any solver."""


class Data(NamedTuple):
    """The inputs of a fit, or their Gram matrix, with labels and weights."""

    X: Array
    y: Array
    weights: Weights | None


class OfRidge(OfKernel):
    """The base of estimators with ``ridge``, ``solver`` and the options of iterative solvers."""

    _former = {"epochs": "max_iter"}
    alpha_: Array
    rkhs_norm_: Any  # an array, or a number if y is one column
    history_: Array | None
    plan_: Choice | None

    @property
    def dual_coef_(self) -> Array:
        return self.alpha_

    @property
    def n_iter_(self) -> int:
        return 1 if self.history_ is None else max(1, len(self.history_) - 1)

    def _check_solver(self) -> dict[str, Any]:
        """Refuse bad parameters before any work; return further rules for the inputs."""
        _check.choice(self.solver, "solver", SOLVERS)
        self._check_tune()
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
        # eigenvectors take two points, also when a classifier holds out a third
        return {"ensure_min_samples": 3} if self.solver == "eigenpro" else {}

    def _weights(self, sample_weight: ArrayLike | None, X: Array) -> Weights | None:
        """Check the weights of points."""
        return _factor.weights_of(sample_weight, X)

    def _values(self, X: Array) -> Array:
        """Return the fit at inputs that are checked."""
        return self._expand(X, self.alpha_)

    def _some(self, data: Data, which: Array) -> Data:
        X = Dense(data.X).block(which, which) if self._precomputed else take(data.X, which)
        weights = None if data.weights is None else data.weights.at(which)
        return Data(X, take(data.y, which), weights)

    def _prepare(self, data: Data, rng: RandomState) -> None:
        """Choose the kernel, and warn of what it cannot learn.

        A ridge that is a word is chosen along, and once more by the fit.
        """
        ridge = None if isinstance(self.ridge, str) else float(self.ridge)
        self._tune(data.X, data.y, rng, data.weights, ridge)
        warn_of_null_degrees(self.kernel_, data.X, data.y)

    def _solve(self, data: Data, rng: RandomState, leave_one_out: bool = False) -> Array | None:
        """Set the attributes of a fit, and return leave-one-out residuals if asked for.

        They are None where they would take too long, and NaN at points where a solver knows none.
        Points of weight zero count as absent: their coefficients and residuals are zero.
        """
        X, y, weights = data
        n, xp = X.shape[0], namespace_of(X)
        if weights is not None and not bool(xp.all(weights.positive)):
            there = xp.nonzero(weights.positive)[0]
            residuals = self._solve(self._some(data, there), rng, leave_one_out)
            if self.solver != "nystrom":
                self.X_fit_ = None if self._precomputed else X
                self.alpha_ = spread(self.alpha_, there, n)
            return None if residuals is None else spread(residuals, there, n)
        self.X_fit_, self.history_ = None if self._precomputed else X, None
        self._choose_solver(X, weights)
        if self._solver not in ITERATIVE:
            gram = self._gram(X, _factor.arrays(n, self.ridge, self._solver), REMEDIES)
            found = _factor.fit(gram, y, self.ridge, self._solver, leave_one_out, weights)
            self.alpha_, self.ridge_, self.rkhs_norm_, residuals = found
            return residuals
        with contextlib.ExitStack() as until:
            K = None if self._solver == "nystrom" else self._operator(X, weights, until)
            chosen = isinstance(self.ridge, str)
            self.ridge_ = self._choose(data, rng, K) if chosen else float(self.ridge)
            seed = rng.randint(2**31 - 1)
            if K is None:
                return self._by_centres(data, seed, leave_one_out)
            self._by_products(K, data, seed)
            return self._left_out(data, K) if leave_one_out else None

    def _choose_solver(self, X: Array, weights: Weights | None) -> None:
        """Set the solver, and ``plan_``, which says why where it is chosen here."""
        self._solver, self._shown, self.plan_ = self.solver, bool(self.verbose), None
        if self.solver != "auto" or not isinstance(X, np.ndarray):
            return
        n = len(X)
        self.plan_ = choose(
            n, X.itemsize, budget=budget(), precomputed=self._precomputed,
            arrays=_factor.arrays(n, self.ridge, "auto") + self._precomputed,
            entry=lambda: core_seconds(self.kernel_, X[:SAMPLE]),
            remote=get_client() is not None, storable=weights is None and n > 0,
        )  # fmt: skip
        if self.plan_.solver == "direct":
            return
        self._solver = self.plan_.solver
        self._shown = self._shown or sys.stderr.isatty()
        say(f"{type(self).__name__}: {self.plan_}")

    def _operator(
        self, X: Array, weights: Weights | None, until: contextlib.ExitStack
    ) -> Array | GramOperator:
        """Return ``S K S``, S being the roots of weights; a kernel's is kept if memory allows.

        A store is there until the end of a context.
        """
        root = None if weights is None else weights.roots(X.dtype)
        if self._precomputed:
            if root is None:
                return X
            if isinstance(X, np.ndarray):
                _check.room("K", X.shape, X.dtype, 3, ("float32",))
            return root[:, None] * X * root
        if self.plan_ is not None and self.plan_.matrix == "out of core":
            folder = until.enter_context(tempfile.TemporaryDirectory(prefix="kernelcore-"))
            return gram(self.kernel_, X, store=f"{folder}/k.zarr", progress=self._shown)
        K = GramOperator(self.kernel_, X, scale=root)
        K.hold()
        return K

    def _plain(self, X: Array, K: Array | GramOperator | None) -> Array:
        """Return the Gram matrix without weights, from K if it has none; it may be overwritten."""
        if isinstance(K, GramOperator) and K.scale is None:
            return K.toarray()
        return self._gram(X)

    def _choose(self, data: Data, rng: RandomState, K: Array | GramOperator | None) -> float:
        """Choose a ridge by the criterion, from some of the points if there are many."""
        if (n := data.X.shape[0]) > CHOSEN_ON:
            data = self._some(data, np.sort(rng.choice(n, CHOSEN_ON, replace=False)))
            K = None
        return _factor.path(self._plain(data.X, K), data.y, data.weights).best(self.ridge)

    def _options(self, X: Array) -> dict[str, Any]:
        """Return what all iterative solvers take."""
        dtype = np.dtype(_check.dtype_name(X.dtype))
        tol = EIGENPRO if self._solver == "eigenpro" else TOLERANCE[dtype]
        options = {"tol": tol if self.tol is None else self.tol, "progress": self._shown}
        if self.max_iter is not None:
            options["epochs" if self._solver == "eigenpro" else "max_iter"] = self.max_iter
        return options

    def _centres(self, X: Array) -> Any:
        """Return the centres that are given, or their number, as X is given to a solver."""
        return self.centres

    def _by_centres(self, data: Data, seed: int, leave_one_out: bool) -> Array | None:
        """Fit by 'nystrom'; return leave-one-out residuals if asked for."""
        X, y, weights = data
        centres = _few(X) if self.centres is None else self._centres(X)
        n, xp = X.shape[0], namespace_of(X)
        if (centres.ndim if hasattr(centres, "ndim") else np.ndim(centres)) == 0:
            # a part of the data may have fewer points
            centres = min(_check.count(centres, "centres", least=1), n)
        total, copies = weights or (None, None)
        found = nystrom_ridge(
            self.kernel_, X, y, self.ridge_, centres=centres, seed=seed, sample_weight=total,
            **self._options(X),
        )  # fmt: skip
        self.X_fit_, self.alpha_, self.history_ = own(found.centres), found.alpha, found.residuals
        self.rkhs_norm_ = _size(self.alpha_, self.kernel_(found.centres) @ self.alpha_)
        if not leave_one_out:
            return None
        residuals = left_out(found, X, y, self.ridge_, total, copies)
        known = xp.all(xp.isfinite(xp.reshape(residuals, (n, -1))), axis=1)
        return residuals if int(xp.count_nonzero(known)) >= n / 10 else self._left_out(data)

    def _by_products(self, K: Array | GramOperator, data: Data, seed: int) -> None:
        """Solve ``(S K S + ridge I) beta = S y`` by 'cg' or 'eigenpro'; ``alpha_`` is S beta."""
        X, y, weights = data
        root = 1 if weights is None else weights.roots(X.dtype, y.ndim)
        right, options = root * y, self._options(X)
        found: Any
        if self._solver == "cg":
            rank = _few(X) if self.plan_ is None else self.plan_.rank
            P = nystrom_preconditioner(
                K, rank=rank, ridge=self.ridge_, seed=seed, progress=options["progress"]
            )
            found = conjugate_gradients(K, right, self.ridge_, preconditioner=P, **options)
            # K beta according to the system, as far as that has converged
            fitted = right - self.ridge_ * found.alpha
        else:
            found = eigenpro(K, None, right, self.ridge_, seed=seed, **options)
            fitted = K @ found.alpha
        self.alpha_, self.history_ = root * found.alpha, found.residuals
        self.rkhs_norm_ = _size(found.alpha, fitted)

    def _left_out(self, data: Data, K: Array | GramOperator | None = None) -> Array | None:
        """Return leave-one-out residuals by a factorisation, unless that takes too long."""
        X, y, weights = data
        if X.shape[0] > EXACT:
            return None
        return _factor.fit(self._plain(X, K), y, self.ridge_, "auto", True, weights).residuals


def _few(X: Array) -> int:
    """Return how many columns a preconditioner has, or how many centres there are."""
    n = X.shape[0]
    return min(n, round(10 * math.sqrt(n)))


def _size(alpha: Array, fitted: Array) -> Array:
    """Return the norms of a fit in the RKHS, output by output: ``sqrt(alpha' K alpha)``."""
    xp = namespace_of(alpha)
    return xp.sqrt(xp.maximum(xp.sum(alpha * fitted, axis=0, dtype=xp.float64), 0.0))


def spread(values: Array, rows: Array, n: int) -> Array:
    """Put rows into their places among n, with zeros elsewhere."""
    out = zeros((n, *values.shape[1:]), values)
    return put(out, numbers(rows).astype(np.intp), values)
