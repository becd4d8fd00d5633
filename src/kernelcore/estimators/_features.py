"""Ridge regression on random features, and classification by it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .. import _check
from .._keywords import synonyms
from .._types import Array, ArrayLike, Self
from ..engine import threads as _threads
from ..features import NetworkFeatures, Transformer
from ..features._path import FeaturePath
from ..features._transformer import OfShapes, multiply
from ..linalg import norm
from . import _factor
from ._base import FLOATS, IMAGES, on_host, random_numbers
from ._classifier import OfClasses
from ._factor import Weights
from ._ridge import Data, spread


class OfFeatures(BaseEstimator):
    """The base of both: ``features``, ``ridge``, and a fit that is linear in features."""

    features: Any
    ridge: str | float
    random_state: Any
    rkhs_norm_: Any  # an array, or a number if y is one column

    def _check_solver(self) -> dict[str, Any]:
        """Refuse bad parameters before any work; return further rules for the inputs."""
        if isinstance(self.ridge, str):
            _check.choice(self.ridge, "ridge", ("loo",))
        else:
            _check.non_negative(self.ridge, "ridge")
        # without a bias, one-dimensional data shows only its sign
        given = NetworkFeatures(b_std=0.1) if self.features is None else self.features
        _check.an_instance(given, Transformer, "features", "a Transformer or None")
        self.features_ = copy.copy(given)
        return IMAGES if isinstance(given, OfShapes) else {}

    def _read(self, X: Any, y: Any, **rules: Any) -> tuple[Array, Array]:
        found = validate_data(
            self, on_host(X, "X"), on_host(y, "y"), dtype=FLOATS, order="C", **rules
        )
        self.n_features_in_ = int(np.prod(found[0].shape[1:]))
        return found

    def _read_more(self, X: Any) -> Array:
        check_is_fitted(self)
        X = on_host(X, "X")
        if isinstance(self.features_, OfShapes) and len(self.features_._shape) > 1:
            return check_array(X, dtype=FLOATS, order="C", **IMAGES)
        return validate_data(self, X, dtype=FLOATS, order="C", reset=False)

    def _weights(self, sample_weight: ArrayLike | None, X: Array) -> Weights | None:
        return _factor.weights_of(sample_weight, X)

    def _prepare(self, data: Data, rng: RandomState) -> None:
        """Do nothing: finitely many features have no degrees that are zero."""

    def _solve(self, data: Data, rng: RandomState, leave_one_out: bool = False) -> Array | None:
        """Fit the coefficients; return leave-one-out residuals if asked for."""
        X, y, weights = data
        if weights is not None and not weights.positive.all():
            there = np.flatnonzero(weights.positive)
            some = Data(X[there], y[there], weights.at(there))
            residuals = self._solve(some, rng, leave_one_out)
            return None if residuals is None else spread(residuals, there, len(X))
        if getattr(self.features_, "seed", 0) is None:
            self.features_.set_params(seed=rng.randint(2**31 - 1))
        self.features_.fit(X)
        target, columns = y.astype(np.float64), self.features_.n_features_out_
        # A point of weight 2 counts as two, so that both ways choose the same ridge.
        samples = len(X) if weights is None else weights.copies.sum()
        if columns <= samples:
            _check.room("Z'Z", (columns, columns), np.float64, 3, ("fewer features",))
            total, copies = weights or (None, None)
            path = FeaturePath(
                lambda: self._chunks(X), target.reshape(len(X), -1), columns, total, copies
            )
            ridge = path.best()[0] if isinstance(self.ridge, str) else float(self.ridge)
            residuals = path.left_out(ridge).reshape(y.shape) if leave_one_out else None
            coef = path.coefficients(ridge).reshape(columns, *y.shape[1:])
        else:
            arrays = _factor.arrays(len(X), self.ridge, "auto")
            _check.room("ZZ'", (len(X), len(X)), np.float64, arrays, ("fewer points",))
            K = self.features_.gram(X.astype(np.float64, copy=False))
            found = _factor.fit(K, target, self.ridge, "auto", leave_one_out, weights)
            ridge, residuals = found.ridge, found.residuals
            coef = np.zeros((columns, *y.shape[1:]))
            for rows, z in self._chunks(X):
                coef += z.T.astype(np.float64) @ found.alpha[rows]
        self.coef_, self.ridge_ = coef.astype(X.dtype), float(ridge)
        self.rkhs_norm_ = norm(coef, axis=0)
        return residuals

    def _chunks(self, X: Array) -> Iterator[tuple[slice, Array]]:
        return self.features_._chunks(X, _threads.resolve(None))

    def _values(self, X: Array) -> Array:
        x = self.features_._rows(X)
        coef = self.coef_.astype(x.dtype, copy=False)
        result = np.empty((len(x), *coef.shape[1:]), x.dtype)
        for rows, z in self._chunks(x):
            multiply(z, coef, result, rows, ...)
        return result


class RandomFeatureRegressor(MultiOutputMixin, RegressorMixin, OfFeatures):
    """Ridge regression on random features: a network of which the last layer alone is trained.

    Parameters
    ----------
    features : Transformer, optional
        Any of ``kernelcore.features``, ``NetworkFeatures(b_std=0.1)`` by default: those of a
        network with frozen weights, trained elsewhere or not, are ``FrozenFeatures``, and those of
        images ``SampledFeatures`` and ``PatchFeatures``. A copy of it is fitted to X.
    ridge : 'loo' or float
        It is added to the diagonal of ``Z'Z``. 'loo' is the one with the least leave-one-out error.
    random_state : int, RandomState, Generator or None
        The seed of features that have none of their own.

    Attributes
    ----------
    features_ : Transformer
        The features that were fitted.
    coef_ : array of shape (N,) or (N, r)
        Predictions are ``features_.transform(X) @ coef_``.
    ridge_ : float
        As given, or chosen.
    rkhs_norm_ : float, or array of shape (r,)
        The norm of the fit in the RKHS of ``Z @ Z.T``.
    n_features_in_ : int
        The number of entries of an input.

    Notes
    -----
    Features are never held all at once. With n points and N features a fit takes ``n N^2`` flops
    and memory for a few N x N matrices, or ``n^2 N`` and n x n if n is smaller.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.random.default_rng(0).standard_normal((300, 2))
    >>> model = kc.RandomFeatureRegressor(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.99)
    True
    """

    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self, features: Transformer | None = None, ridge: str | float = "loo",
        random_state: Any = None,
    ) -> None:  # fmt: skip
        self.features, self.ridge, self.random_state = features, ridge, random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the features, and a ridge regression on them.

        Parameters
        ----------
        X : array of shape (n, d), or of signals or images for features of these
        y : array of shape (n,) or (n, r)
        sample_weight : array of shape (n,), optional
            As in ``KernelRegressor.fit``.
        """
        rules = self._check_solver()
        X, y = self._read(X, y, multi_output=True, y_numeric=True, **rules)
        data = Data(X, _check.cast(y, X.dtype), self._weights(sample_weight, X))
        self._solve(data, random_numbers(self.random_state))
        if y.ndim == 1:
            self.rkhs_norm_ = float(self.rkhs_norm_)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Evaluate the fit at X, of the kind that was fitted: shape (m,) or (m, r)."""
        return self._values(self._read_more(X))


class RandomFeatureClassifier(OfClasses, OfFeatures):
    """Ridge regression of codes of the classes on random features; the largest score wins.

    Parameters
    ----------
    features, ridge, random_state
        As in ``RandomFeatureRegressor``.
    targets, probabilities, class_weight
        As in ``KernelClassifier``.

    Attributes
    ----------
    classes_ : array of shape (C,)
    coef_ : array of shape (N, C) or (N, C - 1)
    rkhs_norm_ : array of shape (C,) or (C - 1,)
    features_, ridge_, n_features_in_
        As in ``RandomFeatureRegressor``.
    temperature_, offsets_
        As in ``KernelClassifier``; leave-one-out scores are exact.

    Examples
    --------
    >>> import kernelcore as kc
    >>> X, y = kc.data.digits()
    >>> model = kc.RandomFeatureClassifier(random_state=0).fit(X[:500], y[:500])
    >>> bool(model.score(X[500:], y[500:]) > 0.93)
    True
    """

    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self, features: Transformer | None = None, ridge: str | float = "loo",
        targets: str = "one_hot", probabilities: str | None = "softmax", random_state: Any = None,
        class_weight: dict[Any, float] | str | None = None,
    ) -> None:  # fmt: skip
        self.features, self.ridge, self.targets = features, ridge, targets
        self.probabilities, self.random_state = probabilities, random_state
        self.class_weight = class_weight
