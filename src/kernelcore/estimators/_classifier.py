"""Classes by kernel ridge regression on their codes."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from .. import _check
from .._keywords import formerly, synonyms
from ..linalg import helmert
from ._base import random_numbers
from ._degrees import warn_of_null_degrees
from ._factor import Weights
from ._ridge import OfRidge

Array = np.ndarray

FITTED = ("alpha_", "X_fit_", "ridge_", "rkhs_norm_", "n_iter_", "history_")
"""What a fit to a part of the points must not leave behind."""
TARGETS = ("one_hot", "centred", "simplex")
PROBABILITIES = ("softmax", "calibrated", None)


class KernelClassifier(ClassifierMixin, OfRidge):
    """Kernel ridge regression on codes of the classes; the largest score wins.

    Parameters
    ----------
    kernel : kernel, 'precomputed' or None
        As in ``KernelRegressor``.
    ridge : 'loo', 'gcv', 'likelihood' or float
        As in ``KernelRegressor``; the criteria are of the squared error of the codes.
    targets : 'one_hot', 'centred' or 'simplex'
        What is regressed: a one for the class and zeros; the same less one over the number of
        classes; or less the share of each class in y, by weights, so that where the fit is zero its
        scores are these shares. The last codes lie on a simplex in one dimension less, and so many
        outputs are fitted.
    solver : 'auto', 'cholesky', 'eigen', 'cg', 'eigenpro' or 'nystrom'
        As in ``KernelRegressor``.
    probabilities : 'softmax', 'calibrated' or None
        Of ``predict_proba``: a softmax of the scores over a temperature; the same with an offset
        for each class; or none, which saves the leave-one-out scores that both are fitted to.
    centres, max_iter, random_state, tol, verbose
        As in ``KernelRegressor``; ``random_state`` also draws the points that are held out.
    class_weight : dict, 'balanced' or None
        Weights of classes, by which those of their points are multiplied: given by label, or
        ``n / (C n_c)`` for n_c points of a class, so that all classes weigh alike.

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
    X_fit_, kernel_, n_features_in_, n_iter_, history_
        As in ``KernelRegressor``.

    Notes
    -----
    Temperature and offsets minimise the cross-entropy of the scores that each training point gets
    from a fit without it. They are the same for all solvers of one model: up to 5,000 points the
    scores of 'cg' and 'eigenpro' come from a factorisation, and beyond that a tenth of the points,
    drawn at random, is scored by a fit to the others. For 'nystrom' the points are scored that are
    no centres. Of n points that are scored a label counts as ``1 - 1/(n + 2)`` for its class, and
    the rest in equal parts for the others: the chance of an error is at least what Laplace's rule
    of succession gives, and both stay finite where the classes can be told apart. The temperature
    is positive and the offsets are part of the scores, so that the likeliest class is the one
    predicted.

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
        self,
        kernel=None,
        ridge="loo",
        targets="one_hot",
        solver="auto",
        probabilities="softmax",
        centres=None,
        max_iter=None,
        random_state=None,
        tol=None,
        verbose=0,
        class_weight=None,
    ):
        self.kernel = kernel
        self.ridge = ridge
        self.targets = targets
        self.solver = solver
        self.probabilities = probabilities
        self.centres = centres
        self.max_iter = max_iter
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.class_weight = class_weight

    def fit(self, X, y, sample_weight=None):
        """Fit codes, and the temperature of probabilities.

        Parameters
        ----------
        X : array of shape (n, d), of signals or of images
        y : array of shape (n,)
            Of two classes or more; any kind of label.
        sample_weight : array of shape (n,), optional
            As in ``KernelRegressor.fit``.

        Returns
        -------
        self

        Warns
        -----
        RuntimeWarning
            As in ``KernelRegressor.fit``.
        """
        rules = self._check_solver()
        _check.choice(self.targets, "targets", TARGETS)
        _check.choice(self.probabilities, "probabilities", PROBABILITIES)
        X, y = self._read(X, y, **rules)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        _check.several_classes(self.classes_)
        weights = self._class_weights(y, self._weights(sample_weight, X))
        codes = self._encode(labels, weights).astype(X.dtype)
        warn_of_null_degrees(self.kernel_, X, codes)
        rng = random_numbers(self.random_state)
        if self.probabilities is None:
            self._solve(X, codes, rng, weights)
            return self
        seen = np.arange(len(X)) if weights is None else np.flatnonzero(weights.positive)
        residuals = self._solve(X, codes, rng, weights, True)
        if residuals is None:
            fitted = {name: getattr(self, name) for name in FITTED}
            scored, seen = self._hold_out(X, codes, seen, rng, weights)
            for name, value in fitted.items():
                setattr(self, name, value)
        else:
            seen = seen[np.isfinite(residuals[seen]).all(1)]
            scored = codes[seen] - residuals[seen]
        self.temperature_, self.offsets_ = _calibrate(
            self._decode(scored.astype(np.float64)),
            labels[seen],
            self.probabilities == "calibrated",
            None if weights is None else weights[seen],
        )
        return self

    def _class_weights(self, y: Array, weights: Array | None) -> Weights | None:
        """Weights of points, times those of their classes, which do not count as copies."""
        if self.class_weight is None:
            return None if weights is None else Weights(weights, weights)
        _check.class_weight(self.class_weight, self.classes_)
        given = compute_sample_weight(self.class_weight, y)
        return (
            Weights(given, np.ones(len(y)))
            if weights is None
            else Weights(given * weights, weights)
        )

    def _hold_out(
        self, X: Array, codes: Array, seen: Array, rng, weights: Weights | None
    ) -> tuple[Array, Array]:
        """Codes that a tenth of the points get from a fit to the others, and which these are."""
        held, rest = np.split(rng.permutation(seen), [max(1, len(seen) // 10)])
        across = X[np.ix_(held, rest)] if self._precomputed else X[held]
        some = None if weights is None else weights[rest]
        self._solve(self._part(X, rest), codes[rest], rng, some)
        return self._expand(across, self.alpha_), held

    def _encode(self, labels: Array, weights: Weights | None) -> Array:
        """Codes of classes, and what turns codes into scores: ``centre + codes @ basis'``."""
        count = len(self.classes_)
        one_hot = np.eye(count)[labels]
        self._centre, self._basis = np.zeros(count), np.eye(count)
        if self.targets == "centred":
            self._centre = np.full(count, 1 / count)
        elif self.targets == "simplex":
            total = None if weights is None else weights.total
            self._centre = np.average(one_hot, axis=0, weights=total)
            # an orthonormal basis of what sums to zero, in columns
            self._basis = np.ascontiguousarray(helmert(count).T)
        return (one_hot - self._centre) @ self._basis

    def _decode(self, codes: Array) -> Array:
        return self._centre.astype(codes.dtype) + codes @ self._basis.T.astype(codes.dtype)

    def _scores(self, X) -> Array:
        scores = self._decode(self._expand(self._read_more(X), self.alpha_))
        if self.probabilities == "calibrated":
            scores += (self.temperature_ * self.offsets_).astype(scores.dtype)
        return scores

    def decision_function(self, X) -> Array:
        """Scores of the classes, whose codes they estimate; 'calibrated' ones have their offsets.

        Parameters
        ----------
        X : array of shape (m, d), of signals or of images

        Returns
        -------
        array of shape (m, C), or (m,) for two classes
            For two the score of the second less that of the first.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X) -> Array:
        """The class with the largest score: shape (m,)."""
        best = self._scores(X).argmax(1)
        return self.classes_[best]

    @available_if(lambda self: self.probabilities is not None)
    def predict_proba(self, X) -> Array:
        """Probabilities of the classes: shape (m, C), rows sum to 1."""
        return np.exp(self.predict_log_proba(X))

    @available_if(lambda self: self.probabilities is not None)
    def predict_log_proba(self, X) -> Array:
        """Logarithms of ``predict_proba``."""
        scores = self._scores(X).astype(np.float64, copy=False)
        return log_softmax(scores / self.temperature_, axis=1)


def _calibrate(
    scores: Array, labels: Array, offsets: bool, weights: Weights | None
) -> tuple[float, Array]:
    """Temperature and offsets of least cross-entropy, which is convex in steepness and offsets."""
    from scipy.optimize import minimize

    n, count = scores.shape
    total = np.ones(n) if weights is None else weights.total
    samples = n if weights is None else np.maximum(weights.copies, 1).sum()
    doubt = 1 / (samples + 2)
    wanted = np.full((n, count), doubt / (count - 1))
    wanted[np.arange(n), labels] = 1 - doubt
    share = (total / total.sum())[:, None]
    spread = scores - scores.mean(1, keepdims=True)
    unit = float(np.sqrt((share * spread**2).sum() / count)) or 1.0
    spread = spread / unit

    def logarithms(at: Array) -> Array:
        return log_softmax(at[0] * spread + at[1:], axis=1)

    def cost(at: Array) -> float:
        return -float((share * wanted * logarithms(at)).sum())

    def slope(at: Array) -> Array:
        off = share * (np.exp(logarithms(at)) - wanted)
        return np.array([(off * spread).sum(), *off.sum(0)])

    def curvature(at: Array) -> Array:
        p = np.exp(logarithms(at))
        within = p * (spread - (p * spread).sum(1, keepdims=True))
        out = np.empty((count + 1, count + 1))
        out[0, 0] = (share * within * spread).sum()
        out[0, 1:] = out[1:, 0] = (share * within).sum(0)
        out[1:, 1:] = np.diag((share * p).sum(0)) - (share * p).T @ p
        return out

    def best(start: Array, free: Array) -> Array:
        """The minimum over some of the parameters."""

        def whole(x: Array) -> Array:
            at = start.copy()
            at[free] = x
            return at

        found = minimize(
            lambda x: cost(whole(x)), start[free], jac=lambda x: slope(whole(x))[free],
            hess=lambda x: curvature(whole(x))[np.ix_(free, free)],
            method="trust-exact", options={"gtol": 1e-12, "maxiter": 200},
        )  # fmt: skip
        return whole(found.x)

    # The last offset stays zero: only their differences matter. The steepness is positive, and the
    # temperature between 1e-4 and 1e4 times the size of the scores.
    free = np.arange(count if offsets else 1)
    at = best(np.eye(count + 1)[0], free)
    if not 1e-4 <= at[0] <= 1e4:
        at[0] = np.clip(at[0], 1e-4, 1e4)
        at = best(at, free[1:]) if offsets else at
    return unit / float(at[0]), at[1:] - at[1:].mean()
