"""Classification by kernel ridge regression on codes of the classes."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .. import _check
from .._keywords import formerly, synonyms
from .._types import Array, ArrayLike, Self
from ..linalg import helmert, namespace_of
from ..linalg.arrays import cast, numbers, placed, take, zeros
from ..scale.matrix import Dense
from ._base import KernelLike, random_numbers
from ._factor import Weights
from ._ridge import Data, OfRidge

F = TypeVar("F", bound=Callable[..., Any])

TARGETS = ("one_hot", "centred", "simplex")
PROBABILITIES: tuple[Any, ...] = ("softmax", "calibrated", None)

with_probabilities: Callable[[F], F] = available_if(lambda self: self.probabilities is not None)
"""Decorates methods that exist only if there are probabilities."""


class OfClasses(ClassifierMixin):
    """The base of regressions on codes of the classes, with ``targets`` and ``probabilities``."""

    targets: str
    probabilities: str | None
    class_weight: Any
    random_state: Any
    # what the class it is mixed into has
    _check_solver: Callable[[], dict[str, Any]]
    _hold_out: Callable[..., tuple[Array, Array]]
    _prepare: Callable[..., None]
    _read: Callable[..., tuple[Array, Array]]
    _read_more: Callable[[Any], Array]
    _solve: Callable[..., Array | None]
    _values: Callable[[Array], Array]
    _weights: Callable[[Any, Array], Weights | None]

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the codes, and the temperature of probabilities.

        Arguments and warnings are as in ``KernelRegressor.fit``, but y has shape (n,) and labels of
        any type, of at least two classes.
        """
        rules = self._check_solver()
        _check.choice(self.targets, "targets", TARGETS)
        _check.choice(self.probabilities, "probabilities", PROBABILITIES)
        X, y = self._read(X, y, **rules)
        check_classification_targets(y)
        n, xp = X.shape[0], namespace_of(X)
        labels: Any
        self.classes_: Any
        if xp is np:
            self.classes_, labels = np.unique(y, return_inverse=True)
        else:
            self.classes_, labels = xp.unique_inverse(y)
        one = self.classes_.tolist()[0] if xp is np else float(self.classes_[0])
        several = self.classes_.shape[0] > 1
        _check.must(several, "y", "have at least two classes", f"one class, {one!r}")
        weights = self._weights(sample_weight, X)
        if self.class_weight is not None and xp is not np:  # scikit-learn's function is for NumPy
            _check.not_beside(self.class_weight, "class_weight", "X of another library than NumPy")
        if self.class_weight is not None:
            _check.class_weight(self.class_weight, self.classes_)
            # a class that weighs more has no more samples
            copies = np.ones(len(y)) if weights is None else weights.copies
            weights = Weights(compute_sample_weight(self.class_weight, y) * copies, copies)
        codes = cast(self._encode(labels, weights, X), X.dtype)
        data, rng = Data(X, codes, weights), random_numbers(self.random_state)
        self._prepare(data, rng)
        residuals = self._solve(data, rng, self.probabilities is not None)
        if self.probabilities is None:
            return self
        if residuals is None:
            there = np.arange(n) if weights is None else xp.nonzero(weights.positive)[0]
            scored, seen = self._hold_out(data, numbers(there).astype(np.intp), rng)
        else:
            known = xp.all(xp.isfinite(residuals), axis=1)
            seen = xp.nonzero(known if weights is None else known & weights.positive)[0]
            scored = take(codes, seen) - take(residuals, seen)
        scores = self._decode(cast(scored, np.float64))
        weights = None if weights is None else weights.at(seen)
        found = _calibrate(scores, take(labels, seen), self.probabilities == "calibrated", weights)
        self.temperature_, self.offsets_ = found
        return self

    def _encode(self, labels: Array, weights: Weights | None, X: Array) -> Array:
        """Return codes of labels, and set what decodes them: ``centre + codes @ basis'``."""
        count, xp = self.classes_.shape[0], namespace_of(X)
        one_hot = take(placed(np.eye(count), X, np.float64), labels)
        self._centre, self._basis = np.zeros(count), np.eye(count)
        if self.targets == "centred":
            self._centre = np.full(count, 1 / count)
        elif self.targets == "simplex":
            total = None if weights is None else weights.total
            if xp is np:
                self._centre = np.average(one_hot, axis=0, weights=total)
            else:
                share = 1.0 if total is None else (total / xp.mean(total))[:, None]
                self._centre = numbers(xp.mean(share * one_hot, axis=0))
            # columns are an orthonormal basis of the vectors that sum to zero
            self._basis = np.ascontiguousarray(helmert(count).T)
        centre, basis = (placed(a, one_hot) for a in (self._centre, self._basis))
        return (one_hot - centre) @ basis

    def _decode(self, codes: Array) -> Array:
        return placed(self._centre, codes) + codes @ placed(self._basis.T, codes)

    def _scores(self, X: ArrayLike) -> Array:
        scores = self._decode(self._values(self._read_more(X)))
        if self.probabilities == "calibrated":
            scores += placed(self.temperature_ * self.offsets_, scores)
        return scores

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the scores of the classes, which estimate their codes, at X of shape (m, d).

        They have shape (m, C), or (m,) for two classes: the score of the second less that of the
        first. 'calibrated' scores include the offsets.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if self.classes_.shape[0] == 2 else scores

    def predict(self, X: ArrayLike) -> Array:
        """Return the classes with the largest scores: shape (m,)."""
        scores = self._scores(X)  # first, since it refuses a model that is not fitted
        return take(self.classes_, namespace_of(scores).argmax(scores, axis=1))

    @with_probabilities
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return probabilities of the classes, of shape (m, C); rows sum to 1."""
        found = self.predict_log_proba(X)
        return namespace_of(found).exp(found)

    @with_probabilities
    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Return the logarithms of ``predict_proba``."""
        return _log_softmax(cast(self._scores(X), np.float64) / self.temperature_)


class KernelClassifier(OfClasses, OfRidge):
    """Kernel ridge regression on codes of the classes; the class with the largest score wins.

    Parameters
    ----------
    kernel, ridge
        As in ``KernelRegressor``; the criteria for ridges are of the squared error of the codes.
    targets : 'one_hot', 'centred' or 'simplex'
        The codes that are regressed. 'one_hot' is one for the class and zero for the others;
        'centred' subtracts one over the number of classes. 'simplex' subtracts the weighted share
        of each class in y, so that the scores are these shares where the fit is zero. Its codes
        span one dimension less, and the fit has one output less.
    probabilities : 'softmax', 'calibrated' or None
        What ``predict_proba`` returns: a softmax of the scores over a temperature, or the same with
        an offset for each class. Without probabilities, None, the leave-one-out scores to which
        both are fitted need not be computed.
    solver, centres, max_iter, random_state, tol, verbose
        As in ``KernelRegressor``; ``random_state`` also draws the points that are held out.
    class_weight : dict, 'balanced' or None
        Weights of classes, which multiply the weights of their points: given by label, or
        ``n / (C n_c)`` for n_c points of a class, so that all classes weigh the same.
    tune : None, 'likelihood', 'loo' or 'cv'
        As in ``KernelRegressor``, for the codes.
    ties : None or 'layers'
        As in ``KernelRegressor``.

    Attributes
    ----------
    classes_ : array of shape (C,)
    alpha_, dual_coef_ : array of shape (n, C) or (n, C - 1)
        Coefficients of the codes.
    ridge_ : float
    rkhs_norm_ : array of shape (C,) or (C - 1,)
        Norms of the fit, output by output.
    temperature_ : float
    offsets_ : array of shape (C,)
        Zero for 'softmax'.
    X_fit_, kernel_, tuning_, n_features_in_, n_iter_, history_, plan_
        As in ``KernelRegressor``.

    Notes
    -----
    Temperature and offsets minimise the cross-entropy of the scores that each training point gets
    from a fit without it. They are the same for all solvers of one model: up to 5,000 points the
    scores of 'cg' and 'eigenpro' come from a factorisation; beyond that, a fit to nine tenths of
    the points scores the other tenth, drawn at random. 'nystrom' scores the points that are not
    centres. If n points are scored, a label counts as ``1 - 1/(n + 2)`` for its class, and the rest
    is divided equally among the other classes: the chance of an error is at least that of Laplace's
    rule of succession, and temperature and offsets stay finite for separable classes. The
    temperature is positive and the offsets are part of the scores, so that the predicted class is
    the most probable one.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.linspace(-2, 2, 41)[:, None]
    >>> y = np.where(np.abs(X[:, 0]) < 1, "inner", "outer")
    >>> model = kc.KernelClassifier(kc.Gaussian(0.5)).fit(X, y)
    >>> model.predict([[0.1], [1.9]])
    array(['inner', 'outer'], dtype='<U5')
    >>> model.predict_proba([[0.1], [1.9]]).argmax(1)
    array([0, 1])
    """

    @formerly(epochs="max_iter")
    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self, kernel: KernelLike = None, ridge: str | float = "loo", targets: str = "one_hot",
        solver: str = "auto", probabilities: str | None = "softmax",
        centres: ArrayLike | None = None, max_iter: int | None = None, random_state: Any = None,
        tol: float | None = None, verbose: bool | int = 0,
        class_weight: dict[Any, float] | str | None = None, tune: str | None = None,
        ties: str | None = "layers",
    ) -> None:  # fmt: skip
        self.kernel, self.ridge, self.targets, self.solver = kernel, ridge, targets, solver
        self.probabilities, self.centres, self.max_iter = probabilities, centres, max_iter
        self.random_state, self.tol, self.verbose = random_state, tol, verbose
        self.class_weight, self.tune, self.ties = class_weight, tune, ties

    def _hold_out(self, data: Data, seen: Array, rng: np.random.RandomState) -> tuple[Array, Array]:
        """Return codes for a tenth of the points from a fit to the others, and which these are."""
        held, rest = np.split(rng.permutation(seen), [max(1, len(seen) // 10)])
        across = Dense(data.X).block(held, rest) if self._precomputed else take(data.X, held)
        other = copy.copy(self)
        other._solve(self._some(data, rest), rng)
        return other._values(across), held

    def gradient(self, X: ArrayLike) -> Array:
        """Return the derivative of ``decision_function`` by its input: (m, d, C), or (m, d)."""
        check_is_fitted(self)
        basis = self._basis[1] - self._basis[0] if len(self._basis) == 2 else self._basis.T
        return self._slope(X, self.alpha_ @ cast(basis, self.alpha_.dtype))


def _log_softmax(scores: Array) -> Array:
    """Return logarithms of shares of the exponentials along rows."""
    xp = namespace_of(scores)
    if xp is np:
        return log_softmax(scores, axis=1)
    off = scores - xp.max(scores, axis=1, keepdims=True)
    return off - xp.log(xp.sum(xp.exp(off), axis=1, keepdims=True))


def _calibrate(
    scores: Array, labels: Array, offsets: bool, weights: Weights | None
) -> tuple[float, Array]:
    """Return the temperature and offsets of least cross-entropy.

    The search is done on the host, which sees no scores: the cost, and one number per class or pair
    of classes.
    """
    from scipy.optimize import minimize

    xp, (n, count) = namespace_of(scores), scores.shape
    total = zeros((n,), scores) + 1.0 if weights is None else weights.total
    samples = n if weights is None else float(xp.sum(xp.maximum(weights.copies, 1.0)))
    doubt = 1 / (samples + 2)
    likely = np.full((count, count), doubt / (count - 1))
    np.fill_diagonal(likely, 1 - doubt)
    wanted = take(placed(likely, scores), labels)
    share = (total / xp.sum(total))[:, None]
    spread = scores - xp.mean(scores, axis=1, keepdims=True)
    unit = math.sqrt(float(xp.sum(share * spread**2)) / count) or 1.0
    spread = spread / unit

    def cost(at: Array) -> tuple[float, Array]:
        """Return the cross-entropy, which is convex in steepness and offsets, and its gradient."""
        logarithms = _log_softmax(float(at[0]) * spread + placed(at[1:], spread))
        off = share * (xp.exp(logarithms) - wanted)
        slope = np.array([float(xp.sum(off * spread)), *numbers(xp.sum(off, axis=0))])
        return -float(xp.sum(share * wanted * logarithms)), slope

    def curvature(at: Array) -> Array:
        p = xp.exp(_log_softmax(float(at[0]) * spread + placed(at[1:], spread)))
        within = p * (spread - xp.sum(p * spread, axis=1, keepdims=True))
        out = np.empty((count + 1, count + 1))
        out[0, 0] = float(xp.sum(share * within * spread))
        out[0, 1:] = out[1:, 0] = numbers(xp.sum(share * within, axis=0))
        out[1:, 1:] = np.diag(numbers(xp.sum(share * p, axis=0))) - numbers((share * p).T @ p)
        return out

    def best(start: Array, free: Array) -> Array:
        """Return the minimum over some of the parameters."""

        def whole(x: Array) -> Array:
            at = start.copy()
            at[free] = x
            return at

        def part(x: Array) -> tuple[float, Array]:
            value, slope = cost(whole(x))
            return value, slope[free]

        found = minimize(
            part, start[free], jac=True, hess=lambda x: curvature(whole(x))[np.ix_(free, free)],
            method="trust-exact", options={"gtol": 1e-12, "maxiter": 200},
        )  # fmt: skip
        return whole(found.x)

    # Only differences of offsets matter: the last one stays zero. The steepness at[0] is positive,
    # and the temperature between 1e-4 and 1e4 times the size of the scores.
    free = np.arange(count if offsets else 1)
    at = best(np.eye(count + 1)[0], free)
    if not 1e-4 <= at[0] <= 1e4:
        at[0] = np.clip(at[0], 1e-4, 1e4)
        at = best(at, free[1:]) if offsets else at
    return unit / float(at[0]), at[1:] - at[1:].mean()
