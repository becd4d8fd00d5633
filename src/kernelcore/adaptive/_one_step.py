"""Learning with one gradient step (Damian, Lee and Soltanolkotabi 2022, Algorithm 1).

A two-layer ReLU network ``a' relu(W x + b)`` takes one large step on W, which turns its weights to
the directions that the target depends on, and then fits its head by ridge regression.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _check
from .._keywords import synonyms
from .._types import Array, ArrayLike, Self
from ..architecture import Sequential
from ..estimators._base import random_numbers
from ..features._path import FeaturePath
from ..layers import Dense
from ..layers.activations import Relu
from ..linalg import eigh, norm
from ..networks import Network

SLOPES = math.sqrt(2 * math.pi)


class OneStepRegressor(RegressorMixin, BaseEstimator):
    """A two-layer ReLU network that takes one gradient step on its first layer, and then a ridge.

    Parameters
    ----------
    width : int
        m, the units of the hidden layer; even if the start is symmetric.
    step : float, optional
        eta_1. The step has the weight decay 1/eta_1, so that what is left of W is
        ``-eta_1 gradient``. By default rows of it have the median norm 1.
    ridge : 'loo' or float
        Of the head; 'loo' is the one with the least leave-one-out error. ``|Phi a - y|^2`` is a sum
        over the points, as in ``KernelRegressor``.
    symmetric : bool
        Whether pairs of units begin with equal w and opposite a, so that the output is zero.
    scale : float
        a begins with ``+-scale``. The direction of the gradient depends on it if the start is not
        symmetric, and it should be small then.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    network_ : Network
        The network after the step, with its head; ``network_.ntk`` is its tangent kernel.
    weights_ : array of shape (m, d)
        W after the step.
    biases_ : array of shape (m,)
        Drawn again after the step, standard normal.
    coef_ : array of shape (m,)
        The head a.
    mean_, linear_ : float, array of shape (d,)
        The mean of y, and the mean of ``y x``, which are subtracted first and added in the end.
    ridge_, step_ : float
        As given, or chosen.
    loo_ : float
        The mean square of the leave-one-out residuals at that ridge.
    gradient_, expected_gradient_ : arrays of shape (m, d)
        The gradient by W at the start, and its leading term ``-2 a_j H w_j / (|w_j| sqrt(2 pi))``
        for normal inputs (Lemma 1), with the estimate of H.
    hessian_ : array of shape (d, d)
        The estimate ``mean of y (x x' - I)`` of the target's mean Hessian H, for normal inputs.
    feature_matrix_ : array of shape (d, d)
        ``W'W``, whose largest eigenvectors are the directions that were found.

    Notes
    -----
    Inputs should be about standard normal, coordinate by coordinate. A target whose H is zero, as a
    Hermite polynomial of degree 3, is not learned.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4000, 30))
    >>> model = kc.OneStepRegressor(300, random_state=0).fit(X, X[:, 0] * X[:, 1])
    >>> np.sort(np.abs(model.subspace(2)).argmax(0))
    array([0, 1])
    """

    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self, width: int = 600, step: float | None = None, ridge: str | float = "loo",
        symmetric: bool = True, scale: float = 1.0, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.width, self.step, self.ridge = width, step, ridge
        self.symmetric, self.scale, self.random_state = symmetric, scale, random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Take the step, and fit the head."""
        width = _check.count(self.width, "width", least=1)
        symmetric = _check.flag(self.symmetric, "symmetric")
        _check.must(
            width % 2 == 0 or not symmetric, "width", "be even for a symmetric start", width
        )
        scale = _check.positive(self.scale, "scale")
        if not isinstance(self.ridge, str):
            _check.positive(self.ridge, "ridge")
        else:
            _check.choice(self.ridge, "ridge", ("loo",))
        x, found = validate_data(self, X, y, dtype=(np.float64, np.float32), y_numeric=True)
        self._fit(x, found.astype(x.dtype), width, symmetric, scale)
        return self

    def _fit(self, x: Array, y: Array, width: int, symmetric: bool, scale: float) -> None:
        rng = random_numbers(self.random_state)
        n, d = x.shape
        self.mean_ = float(y.mean())
        self.linear_ = x.T @ y / n
        left = y - x.dtype.type(self.mean_) - x @ self.linear_
        self.hessian_ = ((x * left[:, None]).T @ x - left.sum() * np.eye(d, dtype=x.dtype)) / n

        a, W = self._start(rng, width, d, symmetric, scale, x.dtype)
        z = x @ W.T
        off = np.maximum(z, 0) @ a - left
        slopes = (z > 0).astype(x.dtype)
        slopes *= off[:, None]
        self.gradient_ = 2 / n * a[:, None] * (slopes.T @ x)
        units = W / norm(W, axis=1, keepdims=True)  # only directions matter to slopes
        self.expected_gradient_ = -2 / SLOPES * a[:, None] * (units @ self.hessian_)
        norms = norm(self.gradient_, axis=1)
        if self.step is not None:
            self.step_ = _check.positive(self.step, "step")
        else:
            middle = float(np.median(norms))
            _check.must(middle > 0, "y", "be more than a linear function of X", "no gradient")
            self.step_ = 1 / middle
        self.weights_ = -x.dtype.type(self.step_) * self.gradient_
        self.feature_matrix_ = self.weights_.T @ self.weights_
        self.biases_ = rng.standard_normal(width).astype(x.dtype)
        self._head(np.maximum(x @ self.weights_.T + self.biases_, 0), left)

    @staticmethod
    def _start(
        rng: Any, width: int, d: int, symmetric: bool, scale: float, dtype: Any
    ) -> tuple[Array, Array]:
        """Return a and W: signs, and rows of squared norm about 1."""
        count = width // 2 if symmetric else width
        a = scale * rng.choice([-1.0, 1.0], count)
        W = rng.standard_normal((count, d)) / math.sqrt(d)
        if symmetric:
            a, W = np.concatenate([a, -a]), np.concatenate([W, W])
        return a.astype(dtype), W.astype(dtype)

    def _head(self, features: Array, y: Array) -> None:
        """Fit the head by ridge regression; leave-one-out errors are exact for all ridges."""
        path = FeaturePath(
            lambda: [(slice(None), features)], y.astype(np.float64)[:, None], features.shape[1]
        )
        if isinstance(self.ridge, str):
            self.ridge_, self.loo_ = path.best()
        else:
            self.ridge_ = float(self.ridge)
            self.loo_ = float(path.loo_error(np.array([self.ridge_]))[0])
        self.coef_ = path.coefficients(self.ridge_)[:, 0].astype(features.dtype)

    @property
    def network_(self) -> Network:
        check_is_fitted(self)
        width, d = self.weights_.shape
        net = Sequential(Dense(1.0, b_std=1.0), Relu(), Dense())
        drawn = net.sample(
            width, 0, shape=d, parameterization="standard", dtype=self.weights_.dtype
        )
        return drawn.at(np.concatenate([self.weights_.T.ravel(), self.biases_, self.coef_]))

    def subspace(self, rank: int) -> Array:
        """Return an orthonormal basis of the leading directions of W'W, of shape (d, rank)."""
        check_is_fitted(self)
        rank = _check.at_most(
            _check.count(rank, "rank", least=1), len(self.linear_), "rank", "the columns of X"
        )
        vectors: Array = eigh(self.feature_matrix_)[1]
        return vectors[:, : -rank - 1 : -1]

    def predict(self, X: ArrayLike) -> Array:
        """Return ``mean_ + linear_ x + a' relu(W x + b)``, of shape (n,)."""
        check_is_fitted(self)
        x = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        x = x.astype(self.weights_.dtype, copy=False)
        found: Array = x.dtype.type(self.mean_) + x @ self.linear_ + self.network_(x)
        return found
