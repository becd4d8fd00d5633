"""Recursive feature machines (Radhakrishnan, Beaglehole, Pandit and Belkin, Science 2024).

A ridge regression is fitted, the mean M of the outer products of its derivatives says along which
directions it varies, and the next fit sees ``x M^(1/2)``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import RandomState

from .. import _check
from .._keywords import synonyms
from .._types import Array, ArrayLike
from ..estimators import KernelClassifier, KernelRegressor
from ..estimators._base import KernelLike, own
from ..estimators._factor import Weights
from ..estimators._ridge import Data, OfRidge, spread
from ..kernels import Kernel, Laplacian
from ..linalg import eigh
from ..linalg.arrays import numbers

BEST = (
    "X_fit_", "alpha_", "feature_matrix_", "history_", "n_rounds_", "plan_", "ridge_", "rkhs_norm_",
    "_root",
)  # fmt: skip
"""What belongs to one round, and is kept of the best."""
FOLDS = 4
"""What 'auto' means."""


class Adaptive(OfRidge):
    """An estimator whose fit is repeated in the metric that its derivatives suggest."""

    cv_: Array | None
    feature_matrix_: Array
    loo_: Array
    n_rounds_: int
    _root: Array | None

    def _default(self) -> Kernel:
        return Laplacian(10.0)

    def _check_solver(self) -> dict[str, Any]:
        _check.count(self.rounds, "rounds")
        _check.flag(self.diagonal, "diagonal")
        if self.folds not in (None, "auto"):
            _check.count(self.folds, "folds", least=2)
        _check.not_precomputed(self._precomputed, f"{type(self).__name__} must not be fitted")
        return super()._check_solver()

    def _solve(self, data: Data, rng: RandomState, leave_one_out: bool = False) -> Array | None:
        X, _, weights = data
        if not isinstance(X, np.ndarray):
            _check.on_the_host(X, "X")
        if weights is not None and not bool(np.all(weights.positive)):
            there = np.flatnonzero(weights.positive)
            found = self._solve(self._some(data, there), rng, leave_one_out)
            return None if found is None else spread(found, there, len(X))
        self.kernel_.gradient(X[:1], X[:1], np.ones(1))  # refuses kernels that have none
        parts = self._parts(X, rng)
        self.cv_ = None if parts is None else self._held_out(data, rng, parts)
        rounds = self.rounds if self.cv_ is None else int(self.cv_.argmin())
        best: dict[str, Any] = {}
        residuals, self.loo_ = None, np.empty(0)
        for found in self._each(data, rng, rounds, leave_one_out or parts is None):
            error = np.nan if found is None else _mean_square(numbers(found), weights)
            # the last round is kept if it was chosen, or if there are no errors to choose by
            if self.cv_ is not None or not error >= np.nanmin(self.loo_, initial=np.inf):
                best, residuals = {name: vars(self)[name] for name in BEST}, found
            self.loo_ = np.append(self.loo_, error)
        for name, value in best.items():
            setattr(self, name, value)
        return residuals

    def _each(
        self, data: Data, rng: RandomState, rounds: int, leave_one_out: bool
    ) -> Iterator[Array | None]:
        """Fit round by round; yield leave-one-out residuals if asked for."""
        X, y, weights = data
        self.feature_matrix_, self._root = np.eye(X.shape[1]), None
        for k in range(rounds + 1):
            self.n_rounds_ = k
            if k:
                self._adapt(X, weights)
            yield super()._solve(Data(own(self._seen(X)), y, weights), rng, leave_one_out)

    def _parts(self, X: Array, rng: RandomState) -> list[Array] | None:
        """Return the points of each part, if there are parts.

        Copies are in one part, or a fit would have seen what is held out. Points are in order
        before they are shuffled, so that their own order does not matter.
        """
        if self.folds is None:
            return None
        of = np.unique(X, axis=0, return_inverse=True)[1].ravel()
        count = int(of.max()) + 1
        if self.folds == "auto" and count < 2 * FOLDS:
            return None
        folds = FOLDS if self.folds == "auto" else self.folds
        _check.at_most(folds, count, "folds", "the number of different points")
        part = rng.permutation(count)[of] * folds // count
        return [np.flatnonzero(part == k) for k in range(folds)]

    def _held_out(self, data: Data, rng: RandomState, parts: list[Array]) -> Array:
        """Return mean squares of residuals at points that fits have not seen, round by round."""
        n = len(data.X)
        squares, other = np.zeros((self.rounds + 1, n)), copy.copy(self)
        for held in parts:
            rest = self._some(data, np.setdiff1d(np.arange(n), held))
            for k, _ in enumerate(other._each(rest, rng, self.rounds, False)):
                off = other._expand(data.X[held], other.alpha_) - data.y[held]
                squares[k, held] = np.square(off).reshape(len(held), -1).sum(1)
        total = None if data.weights is None else data.weights.total
        return np.average(squares, axis=1, weights=total)

    def _adapt(self, X: Array, weights: Weights | None) -> None:
        """Set the metric that the derivatives of the fit at X suggest."""
        slopes = np.asarray(self._sloped(X, self.alpha_), np.float64)
        outer = np.zeros((X.shape[1], X.shape[1]))
        for slope in np.moveaxis(slopes.reshape(*slopes.shape[:2], -1), -1, 0):
            weighted = slope if weights is None else slope * weights.total[:, None]
            outer += slope.T @ weighted
        if self.diagonal:
            outer = np.diag(np.diag(outer))
        trace = np.trace(outer)
        if trace > 0:  # a constant says nothing of directions
            self.feature_matrix_ = outer * (X.shape[1] / trace)
        values, vectors = eigh(self.feature_matrix_)
        self._root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T

    def _seen(self, X: Array) -> Array:
        """Return inputs in the metric: squared distances become ``(x - y)' M (x - y)``."""
        return X if self._root is None else X @ self._root.astype(X.dtype)

    def _centres(self, X: Array) -> Any:
        if self._root is None or np.ndim(self.centres) == 0:
            return self.centres
        return self._seen(np.asarray(self.centres, X.dtype))

    def _expand(self, X: Array, alpha: Array) -> Array:
        return super()._expand(self._seen(X), alpha)

    def _sloped(self, X: Array, alpha: Array) -> Array:
        found = super()._sloped(self._seen(X), alpha)
        if self._root is None:
            return found
        root = self._root.astype(found.dtype)  # which is symmetric
        return found @ root if found.ndim == 2 else root @ found


def _mean_square(residuals: Array, weights: Weights | None) -> float:
    """Return the mean over points, and the sum over outputs, of squares that are known."""
    square = np.square(residuals).reshape(len(residuals), -1).sum(1)
    known = np.isfinite(square)
    share = known if weights is None else known * weights.total
    return float(np.average(np.where(known, square, 0.0), weights=share))


class RecursiveFeatureMachine(Adaptive, KernelRegressor):
    """Kernel ridge regression that learns in which directions its target varies.

    A fit is followed by ``rounds`` others, each on ``x M^(1/2)``: M is the mean over the points of
    ``grad f grad f'``, summed over outputs, f the fit before, and has trace d. The round with the
    least leave-one-out error is kept, or the one that ``folds`` choose; there is no validation set.

    Parameters
    ----------
    kernel : kernel or None
        Of rows, with ``gradient``; None means ``Laplacian(10.0)``.
    rounds : int
        0 is ``KernelRegressor``.
    diagonal : bool
        Whether M is made diagonal: coordinates are then weighted, and not mixed.
    folds : int, None or 'auto'
        None keeps the round with the least leave-one-out error. These errors are of fits without a
        point, but in a metric to which it has contributed: they are too small where points are few
        for their dimension. A number is that of parts of the data, each of which is predicted by
        all rounds on the rest; the round with the least error is kept, at that many times the cost.
        'auto' is 4, or None for fewer than 8 points.
    ridge, solver, centres, max_iter, random_state, tol, verbose
        As in ``KernelRegressor``. A ridge that is a word is chosen in every round.

    Attributes
    ----------
    feature_matrix_ : array of shape (d, d)
        M of the round that is kept, in float64; the identity for round 0.
    loo_ : array of shape (rounds + 1,)
        Mean squares of leave-one-out residuals, round by round; NaN where a solver has none, as
        'cg' and 'eigenpro' beyond 5,000 points. The last round is kept then. With ``folds`` there
        are those of the rounds that were made, or NaN.
    cv_ : array of shape (rounds + 1,) or None
        Mean squares of residuals at points held out, if ``folds`` are given.
    n_rounds_ : int
        The round that is kept.
    X_fit_ : array of shape (n, d)
        The points as the kernel sees them, ``X M^(1/2)``.
    alpha_, dual_coef_, ridge_, rkhs_norm_, kernel_, n_features_in_, n_iter_, history_, plan_
        As in ``KernelRegressor``, of the round that is kept.

    Notes
    -----
    ``gradient`` is by the inputs as they are given. Points of weight zero do not count, and
    ``alpha_`` has none for them.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning in neural networks
    and backpropagation-free machine learning models, Science 383 (2024).

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.random.default_rng(0).standard_normal((300, 6))
    >>> model = kc.RecursiveFeatureMachine(rounds=3).fit(X, X[:, 0] * X[:, 1])
    >>> np.argsort(-np.diag(model.feature_matrix_))[:2].tolist() in ([0, 1], [1, 0])
    True
    >>> bool(model.loo_.min() < model.loo_[0] / 2)
    True
    """

    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self, kernel: KernelLike = None, rounds: int = 5, diagonal: bool = False,
        folds: int | str | None = None, ridge: str | float = "loo", solver: str = "auto",
        centres: ArrayLike | None = None, max_iter: int | None = None, random_state: Any = None,
        tol: float | None = None, verbose: bool | int = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            kernel, ridge, solver, centres=centres, max_iter=max_iter, random_state=random_state,
            tol=tol, verbose=verbose,
        )  # fmt: skip
        self.rounds, self.diagonal, self.folds = rounds, diagonal, folds


class RecursiveFeatureClassifier(Adaptive, KernelClassifier):
    """The recursive feature machine on codes of the classes; the largest score wins.

    Parameters
    ----------
    kernel, rounds, diagonal, folds
        As in ``RecursiveFeatureMachine``; errors are of the codes. Of real data many are few for
        their dimension, so that ``folds`` is 'auto' here.
    ridge, targets, solver, probabilities, centres, max_iter, random_state, tol, verbose, \
class_weight
        As in ``KernelClassifier``.

    Attributes
    ----------
    feature_matrix_, loo_, cv_, n_rounds_, X_fit_
        As in ``RecursiveFeatureMachine``.
    classes_, alpha_, dual_coef_, ridge_, rkhs_norm_, temperature_, offsets_, kernel_, \
n_features_in_, n_iter_, history_, plan_
        As in ``KernelClassifier``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.random.default_rng(0).standard_normal((300, 6))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "unlike")
    >>> model = kc.RecursiveFeatureClassifier(rounds=3).fit(X, y)
    >>> model.predict([[1.0, 1.0, 0.0, 0.0, 0.0, 0.0]])
    array(['same'], dtype='<U6')
    """

    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self, kernel: KernelLike = None, rounds: int = 5, diagonal: bool = False,
        folds: int | str | None = "auto", ridge: str | float = "loo", targets: str = "one_hot",
        solver: str = "auto", probabilities: str | None = "softmax",
        centres: ArrayLike | None = None, max_iter: int | None = None, random_state: Any = None,
        tol: float | None = None, verbose: bool | int = 0,
        class_weight: dict[Any, float] | str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            kernel, ridge, targets, solver, probabilities, centres, max_iter, random_state, tol,
            verbose, class_weight,
        )  # fmt: skip
        self.rounds, self.diagonal, self.folds = rounds, diagonal, folds
