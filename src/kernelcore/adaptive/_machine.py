"""Recursive feature machines (Radhakrishnan, Beaglehole, Pandit and Belkin, Science 2024).

A ridge regression is fitted, the mean M of the outer products of its derivatives says along which
directions it varies, and the next fit sees ``x M^(1/2)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState

from .. import _check
from .._keywords import synonyms
from .._types import Array, ArrayLike
from ..estimators import KernelClassifier, KernelRegressor
from ..estimators._base import KernelLike, own
from ..estimators._ridge import Data, OfRidge, spread
from ..kernels import Kernel, Laplacian
from ..linalg import eigh
from ..linalg.arrays import numbers

BEST = (
    "X_fit_", "alpha_", "feature_matrix_", "history_", "n_rounds_", "plan_", "ridge_", "rkhs_norm_",
    "_root",
)  # fmt: skip
"""What belongs to one round, and is kept of the best."""


class Adaptive(OfRidge):
    """An estimator whose fit is repeated in the metric that its derivatives suggest."""

    feature_matrix_: Array
    loo_: Array
    n_rounds_: int
    _root: Array | None

    def _default(self) -> Kernel:
        return Laplacian(10.0)

    def _check_solver(self) -> dict[str, Any]:
        _check.count(self.rounds, "rounds")
        _check.flag(self.diagonal, "diagonal")
        _check.not_precomputed(self._precomputed, f"{type(self).__name__} must not be fitted")
        return super()._check_solver()

    def _solve(self, data: Data, rng: RandomState, leave_one_out: bool = False) -> Array | None:
        X, y, weights = data
        if not isinstance(X, np.ndarray):
            _check.on_the_host(X, "X")
        if weights is not None and not bool(np.all(weights.positive)):
            there = np.flatnonzero(weights.positive)
            found = self._solve(self._some(data, there), rng, leave_one_out)
            return None if found is None else spread(found, there, len(X))
        self.kernel_.gradient(X[:1], X[:1], np.ones(1))  # refuses kernels that have none
        share = None if weights is None else weights.total / weights.total.mean()
        self.feature_matrix_, self._root, self.loo_ = np.eye(X.shape[1]), None, np.empty(0)
        best: dict[str, Any] = {}
        residuals = None
        for k in range(self.rounds + 1):
            self.n_rounds_ = k
            if k:
                self._adapt(X, share)
            seen = own(self._seen(X))
            found = super()._solve(Data(seen, y, weights), rng, True)
            error = np.nan if found is None else _mean_square(numbers(found), share)
            self.loo_ = np.append(self.loo_, error)
            # without leave-one-out errors the last round is kept
            if not best or not error >= np.nanmin(self.loo_[:-1], initial=np.inf):
                best, residuals = {name: vars(self)[name] for name in BEST}, found
        for name, value in best.items():
            setattr(self, name, value)
        return residuals

    def _adapt(self, X: Array, share: Array | None) -> None:
        """Set the metric that the derivatives of the fit at X suggest."""
        slopes = np.asarray(self._sloped(X, self.alpha_), np.float64)
        outer = np.zeros((X.shape[1], X.shape[1]))
        for slope in np.moveaxis(slopes.reshape(*slopes.shape[:2], -1), -1, 0):
            weighted = slope if share is None else slope * share[:, None]
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

    def _expand(self, X: Array, alpha: Array) -> Array:
        return super()._expand(self._seen(X), alpha)

    def _sloped(self, X: Array, alpha: Array) -> Array:
        found = super()._sloped(self._seen(X), alpha)
        if self._root is None:
            return found
        return np.einsum("ij,nj...->ni...", self._root, found).astype(found.dtype)


def _mean_square(residuals: Array, share: Array | None) -> float:
    """Return the mean over points, and the sum over outputs, of squares that are known."""
    square = np.square(residuals).reshape(len(residuals), -1).sum(1)
    known = np.isfinite(square)
    weights = known if share is None else known * share
    return float(np.average(np.where(known, square, 0.0), weights=weights))


class RecursiveFeatureMachine(Adaptive, KernelRegressor):
    """Kernel ridge regression that learns in which directions its target varies.

    A fit is followed by ``rounds`` others, each on ``x M^(1/2)``: M is the mean over the points of
    ``grad f grad f'``, summed over outputs, f the fit before, and has trace d. The round with the
    least leave-one-out error is kept; there is no validation set.

    Parameters
    ----------
    kernel : kernel or None
        Of rows, with ``gradient``; None means ``Laplacian(10.0)``.
    rounds : int
        0 is ``KernelRegressor``.
    diagonal : bool
        Whether M is made diagonal: coordinates are then weighted, and not mixed.
    ridge, solver, centres, max_iter, random_state, tol, verbose
        As in ``KernelRegressor``. A ridge that is a word is chosen in every round.

    Attributes
    ----------
    feature_matrix_ : array of shape (d, d)
        M of the round that is kept, in float64; the identity for round 0.
    loo_ : array of shape (rounds + 1,)
        Mean squares of leave-one-out residuals, round by round; NaN where a solver has none, as
        'cg' and 'eigenpro' beyond 5,000 points. The last round is kept then.
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
        ridge: str | float = "loo", solver: str = "auto", centres: ArrayLike | None = None,
        max_iter: int | None = None, random_state: Any = None, tol: float | None = None,
        verbose: bool | int = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            kernel, ridge, solver, centres=centres, max_iter=max_iter, random_state=random_state,
            tol=tol, verbose=verbose,
        )  # fmt: skip
        self.rounds, self.diagonal = rounds, diagonal


class RecursiveFeatureClassifier(Adaptive, KernelClassifier):
    """The recursive feature machine on codes of the classes; the largest score wins.

    Parameters
    ----------
    kernel, rounds, diagonal
        As in ``RecursiveFeatureMachine``; errors are of the codes.
    ridge, targets, solver, probabilities, centres, max_iter, random_state, tol, verbose, \
class_weight
        As in ``KernelClassifier``.

    Attributes
    ----------
    feature_matrix_, loo_, n_rounds_, X_fit_
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
        ridge: str | float = "loo", targets: str = "one_hot", solver: str = "auto",
        probabilities: str | None = "softmax", centres: ArrayLike | None = None,
        max_iter: int | None = None, random_state: Any = None, tol: float | None = None,
        verbose: bool | int = 0, class_weight: dict[Any, float] | str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            kernel, ridge, targets, solver, probabilities, centres, max_iter, random_state, tol,
            verbose, class_weight,
        )  # fmt: skip
        self.rounds, self.diagonal = rounds, diagonal
