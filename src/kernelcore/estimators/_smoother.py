"""Nadaraya-Watson regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from .. import _check
from .._keywords import synonyms
from .._types import Array, ArrayLike, Self
from ..kernels import Gaussian, Kernel
from ..linalg import namespace_of
from ..linalg.arrays import cast, copied, numbers, put, take, zeros
from . import _tuning
from ._base import KernelLike, OfKernel, random_numbers
from ._factor import Weights


class KernelSmoother(MultiOutputMixin, RegressorMixin, OfKernel):
    """Nadaraya-Watson regression: means of y that are weighted by the kernel.

    ``f(x) = sum_i k(x, x_i) y_i / sum_i k(x, x_i)``.

    Parameters
    ----------
    kernel : kernel, 'precomputed' or None
        It must not be negative anywhere on the data. None means ``Gaussian(1.0)``.
    empty : 'nearest' or 'mean'
        What to predict where all weights are zero, in practice because they underflow: y of the
        nearest training point (in the Euclidean distance, to which the weights of a Gaussian tend),
        or the mean of y. A precomputed kernel has no distances and takes the mean.
    tune : None, 'loo' or 'cv'
        How to choose the bandwidth, and whatever else ``kernel.hyperparameters()`` has: by the
        least squared error of the means without the point itself, or without its fifth of the data,
        drawn at random. A list of kernels is one to choose from. At most 500 points, drawn at
        random, are used.
    random_state : int, RandomState, Generator or None
        For ``tune``, which draws points and places to start from.
    ties : None or 'layers'
        As in ``KernelRegressor``.

    Attributes
    ----------
    y_fit_ : array of shape (n,) or (n, r)
    X_fit_, kernel_, tuning_, n_features_in_
        As in ``KernelRegressor``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> model = kc.KernelSmoother(kc.Gaussian(0.5)).fit([[0.0], [1.0]], [2.0, 4.0])
    >>> model.predict([[0.0], [0.5], [90.0]]).round(3)
    array([2.238, 3.   , 4.   ])
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(0).standard_normal(60)
    >>> model = kc.KernelSmoother(tune="loo", random_state=0).fit(X, y)
    >>> print(f"{model.kernel_.lengthscale:.2f}")
    0.23
    """

    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self, kernel: KernelLike = None, empty: str = "nearest", tune: str | None = None,
        random_state: Any = None, ties: str | None = "layers",
    ) -> None:  # fmt: skip
        self.kernel, self.empty = kernel, empty
        self.tune, self.random_state, self.ties = tune, random_state, ties

    def _default(self) -> Kernel:
        return Gaussian(1.0)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Keep the data; arguments have the shapes of those of ``KernelRegressor.fit``.

        The kernel of a point is multiplied by its weight, which must not be negative.
        """
        _check.choice(self.empty, "empty", ("nearest", "mean"))
        self._check_tune(("loo", "cv"))
        X, y = self._read(X, y, multi_output=True, y_numeric=True)
        self.y_fit_ = copied(cast(y, X.dtype))
        self._sample_weight: Array | None = None
        if sample_weight is not None:
            weights = _check.sample_weights(sample_weight, X.shape[0], X)
            self._sample_weight = copied(cast(weights, X.dtype))
        w = self._sample_weight
        seen = None if w is None else Weights(w, w)
        self._tune(X, self.y_fit_, random_numbers(self.random_state), seen)
        return self

    def _criterion(
        self, y: Array, rng: np.random.RandomState, weights: Any, ridge: Any, there: Array
    ) -> _tuning.Criterion:
        assert self.tune is not None
        total = None if weights is None else weights.total
        return _tuning.OfAverages(self.tune, y, rng, total)

    def predict(self, X: ArrayLike) -> Array:
        """Return weighted means of y, of shape (m,) or (m, r)."""
        X = self._read_more(X)
        xp, n = namespace_of(X), X.shape[0]
        out = zeros((n, *self.y_fit_.shape[1:]), self.y_fit_)
        for part, K in self._blocks(X):
            _check.weights(K, "kernel")
            if self._sample_weight is not None:
                K = K * self._sample_weight
            # divided by the largest, so that sums of tiny weights keep their digits
            most = xp.max(K, axis=1, keepdims=True)
            empty = most[:, 0] == 0
            K = K / xp.where(most > 0, most, 1.0)
            total = xp.reshape(xp.sum(K, axis=1), (-1, *[1] * (out.ndim - 1)))
            out[part, ...] = (K @ self.y_fit_) / xp.where(total > 0, total, 1.0)
            if bool(xp.any(empty)):
                at = np.arange(n)[part][numbers(cast(empty, np.float64)) > 0]
                out = put(out, at, self._without_weights(take(X, at)))
        return out

    def _without_weights(self, X: Array) -> Any:
        y, known, weights = self.y_fit_, self.X_fit_, self._sample_weight
        xp, m = namespace_of(X), X.shape[0]
        if self.empty == "mean" or known is None:
            if xp is np:
                return np.average(y, axis=0, weights=weights)
            share = 1.0 if weights is None else xp.reshape(weights, (-1, *[1] * (y.ndim - 1)))
            mean = xp.mean(y * share, axis=0) / (1.0 if weights is None else xp.mean(weights))
            return xp.broadcast_to(mean, (m, *mean.shape))
        if weights is not None:
            there = xp.nonzero(weights > 0)[0]
            y, known = take(y, there), take(known, there)
        known, rows = (xp.reshape(a, (a.shape[0], -1)) for a in (known, X))
        off = (xp.sum(xp.square(known - rows[k, :]), axis=1) for k in range(m))
        return take(y, np.array([int(xp.argmin(each)) for each in off]))
