"""Networks of finite width, trained by descent, as estimators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from scipy.special import expit, log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .. import _check, presets
from .._keywords import synonyms
from .._types import Array, ArrayLike, Self
from ..architecture import Sequential
from ..networks import Network, Training, largest_step, train
from ..networks._losses import LOSSES
from ..networks._train import METHODS
from ._base import FLOATS, IMAGES, on_host, random_numbers

F = TypeVar("F", bound=Callable[..., Any])

HALVED = 30
"""How many times a step is halved where training diverges."""

with_probabilities: Callable[[F], F] = available_if(
    lambda self: self.loss in ("softmax", "logistic")
)
"""Decorates methods that exist only for losses that have probabilities."""


def _spread(values: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Return means and standard deviations over some axes; 1 for what is constant."""
    mean = values.mean(axes, dtype=np.float64)
    scale = values.std(axes, dtype=np.float64)
    least = 10 * float(np.finfo(values.dtype).eps) * np.abs(mean)
    return mean.astype(values.dtype), np.where(scale > least, scale, 1.0).astype(values.dtype)


class OfTraining(BaseEstimator):
    """The base of both: a network is drawn for the inputs, and trained."""

    network_: Network
    training_: Training[Network]

    def _given(self) -> Sequential | Network:
        given = presets.mlp(2, b_std=0.1) if self.network is None else self.network
        if isinstance(given, Network):
            return given
        return _check.an_instance(given, Sequential, "network", "a Sequential, a Network or None")

    def _checked(self) -> dict[str, Any]:
        """Refuse bad parameters before any work; return further rules for the inputs."""
        _check.choice(self.method, "method", METHODS)
        _check.choice(self.loss, "loss", tuple(LOSSES))
        _check.flag(self.standardize, "standardize")
        if self.step is not None:
            _check.positive(self.step, "step")
        if self.validation_fraction is not None:
            share = _check.below_one(self.validation_fraction, "validation_fraction")
            _check.positive(share, "validation_fraction")
        self._images = self._given().program.input.domain == "positions"
        return IMAGES if self._images else {}

    def _read(self, X: Any, y: Any, **rules: Any) -> tuple[Array, Array]:
        rules |= self._checked()
        X, y = validate_data(
            self, on_host(X, "X"), on_host(y, "y"), dtype=FLOATS, order="C", **rules
        )
        if self._images:
            self.n_features_in_ = int(np.prod(X.shape[1:]))
        self._dtype = X.dtype
        return X, y

    def _read_more(self, X: Any) -> Array:
        check_is_fitted(self)
        X = on_host(X, "X")
        if not self._images:
            return validate_data(self, X, dtype=self._dtype, order="C", reset=False)
        return check_array(X, dtype=self._dtype, order="C", **IMAGES)

    def _seen(self, X: Array) -> Array:
        return (X - self.mean_) / self.scale_

    def _train(self, X: Array, y: Array, outputs: int | None, loss: str) -> None:
        """Draw the network and train it; a step at which training diverges is halved."""
        if self.standardize:  # columns of rows, channels of signals and images
            self.mean_, self.scale_ = _spread(X, tuple(range(X.ndim - 1)))
        else:
            self.mean_, self.scale_ = np.zeros((), X.dtype), np.ones((), X.dtype)
        x, rng = self._seen(X), random_numbers(self.random_state)
        first, second = (int(k) for k in rng.randint(2**31 - 1, size=2))
        network = self._given()
        if isinstance(network, Sequential):
            network = network.sample(
                self.width, first, outputs=outputs, parameterization=self.parameterization,
                doubled=self.doubled, alpha=self.output_scale,
            )  # fmt: skip
        network._inputs(x[:1])  # draws the weights
        if self.layers is not None:
            layers = (self.layers,) if np.ndim(self.layers) == 0 else tuple(self.layers)
            network = network.training(*layers)
        options: dict[str, Any] = {}
        if self.validation_fraction is not None:
            held = np.zeros(len(x), bool)
            many = math.ceil(self.validation_fraction * len(x))
            held[rng.permutation(len(x))[: min(many, len(x) - 1)]] = True
            if held.any():
                options["validation"] = x[held], y[held]
                x, y = x[~held], y[~held]
        step = self.step
        if step is None and self.method == "descent":
            largest = largest_step(network, x, loss=loss)
            step = 0.5 * largest if math.isfinite(largest) else 1.0
        elif step is None and self.method == "adam":
            step = 1e-3
        batch = None if self.batch is None else min(self.batch, len(x))
        for k in range(HALVED + 1):
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    self.training_ = train(
                        network, x, y, loss=loss, method=self.method, step=step, steps=self.steps,
                        time=self.time, momentum=self.momentum, batch=batch, decay=self.decay,
                        tol=self.tol, patience=self.patience, seed=second,
                        progress=bool(self.verbose), **options,
                    )  # fmt: skip
                break
            except FloatingPointError:
                if k == HALVED or step is None:
                    raise
                step /= 2
        self.network_, self.step_ = self.training_.network, self.training_.step
        self.n_iter_ = int(self.training_.steps[-1])


class NetworkRegressor(MultiOutputMixin, RegressorMixin, OfTraining):
    """A network of finite width, drawn from its description and trained on the square loss.

    Parameters
    ----------
    network : Sequential, Network, optional
        Of rows, signals or images; ``presets.mlp(2, b_std=0.1)`` by default. A Sequential is drawn
        at each fit; a Network, as it was trained elsewhere, is trained further.
    width : int or sequence of int
        The units of hidden layers of a Sequential.
    layers : int or sequence of int, optional
        Which layers of weights are trained, counted from 0, negative ones from the last; all by
        default.
    method, steps, step, time, momentum, batch, decay, tol, patience
        As in ``networks.train``. By default there are 1,000 steps of descent with all points and
        momentum, half as large as the largest that is stable at the start without it. Where the
        loss diverges, training begins again with steps half as large, up to 30 times.
    validation_fraction : float, optional
        The share of points that are held out: the parameters with the least loss on them are kept,
        and training ends after ``patience`` steps without a smaller one.
    standardize : bool
        Whether columns of X, or channels of signals and images, and outputs of y are shifted and
        scaled to mean 0 and variance 1 before training; predictions are scaled back.
    parameterization, doubled
        As in ``Sequential.sample``.
    output_scale : float
        alpha there: what outputs are multiplied by.
    random_state : int, RandomState, Generator or None
        Of the weights, of points held out, and of batches.
    verbose : bool or int
        Whether lines of progress are printed to stderr.

    Attributes
    ----------
    network_ : Network
        The trained network, of standardised inputs.
    training_ : networks.Training
        How its training went: losses by step, and why it ended.
    step_ : float
        The size of steps.
    n_iter_ : int
        The steps that were made.
    mean_, scale_ : arrays
        What is subtracted from inputs, and what they are then divided by.
    y_mean_, y_scale_ : arrays
        The same for y.
    n_features_in_ : int
        The number of entries of an input.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.random.default_rng(0).standard_normal((200, 2))
    >>> model = kc.NetworkRegressor(width=50, steps=300, random_state=0)
    >>> bool(model.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.95)
    True
    """

    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self, network: Sequential | Network | None = None, width: Any = 100, layers: Any = None,
        method: str = "descent", steps: int = 1000, step: float | None = None,
        time: float | None = None, momentum: float = 0.9, batch: int | None = None,
        decay: float = 0.0, tol: float = 0.0, validation_fraction: float | None = None,
        patience: int = 100, standardize: bool = True, parameterization: str = "ntk",
        doubled: bool = False, output_scale: float = 1.0, random_state: Any = None,
        verbose: bool | int = 0,
    ) -> None:  # fmt: skip
        self.network, self.width, self.layers, self.method = network, width, layers, method
        self.steps, self.step, self.time, self.momentum = steps, step, time, momentum
        self.batch, self.decay, self.tol, self.patience = batch, decay, tol, patience
        self.validation_fraction, self.standardize = validation_fraction, standardize
        self.parameterization, self.doubled = parameterization, doubled
        self.output_scale = output_scale
        self.random_state, self.verbose = random_state, verbose

    loss = "square"

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Draw the network and train it.

        Parameters
        ----------
        X : array of shape (n, d), or of signals or images for networks of these
        y : array of shape (n,) or (n, r)
        """
        X, y = self._read(X, y, multi_output=True, y_numeric=True)
        y = _check.cast(y, X.dtype)
        self.y_mean_, self.y_scale_ = np.zeros((), X.dtype), np.ones((), X.dtype)
        if self.standardize:
            self.y_mean_, self.y_scale_ = _spread(y, (0,))
        outputs = None if y.ndim == 1 else y.shape[1]
        self._train(X, (y - self.y_mean_) / self.y_scale_, outputs, "square")
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return the outputs of the network, scaled back: shape (m,) or (m, r)."""
        X = self._read_more(X)
        return self.network_(self._seen(X)) * self.y_scale_ + self.y_mean_


class NetworkClassifier(ClassifierMixin, OfTraining):
    """The same with one output for each class; the largest wins.

    Parameters
    ----------
    loss : {'softmax', 'logistic', 'square', 'hinge', 'squared_hinge'}
        All but the first are of codes: 1 for the class and -1 for the others. Two classes have one
        output then, which is positive for the second.
    network, width, layers, method, steps, step, time, momentum, batch, decay, tol, \
validation_fraction, patience, standardize, parameterization, doubled, output_scale, random_state, \
verbose
        As in ``NetworkRegressor``; only inputs are standardised.

    Attributes
    ----------
    classes_ : array of shape (C,)
    network_, training_, step_, n_iter_, mean_, scale_, n_features_in_
        As in ``NetworkRegressor``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> X, y = kc.data.digits()
    >>> model = kc.NetworkClassifier(width=50, steps=100, random_state=0).fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.7)
    True
    """

    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self, network: Sequential | Network | None = None, width: Any = 100, layers: Any = None,
        loss: str = "softmax", method: str = "descent", steps: int = 1000,
        step: float | None = None, time: float | None = None, momentum: float = 0.9,
        batch: int | None = None, decay: float = 0.0, tol: float = 0.0,
        validation_fraction: float | None = None, patience: int = 100, standardize: bool = True,
        parameterization: str = "ntk", doubled: bool = False, output_scale: float = 1.0,
        random_state: Any = None, verbose: bool | int = 0,
    ) -> None:  # fmt: skip
        self.network, self.width, self.layers, self.loss = network, width, layers, loss
        self.method, self.steps, self.step, self.time = method, steps, step, time
        self.momentum, self.batch, self.decay, self.tol = momentum, batch, decay, tol
        self.validation_fraction, self.patience = validation_fraction, patience
        self.standardize, self.parameterization = standardize, parameterization
        self.doubled, self.output_scale = doubled, output_scale
        self.random_state, self.verbose = random_state, verbose

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Draw the network and train it; y has shape (n,) and labels of any type."""
        X, y = self._read(X, y)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        count, one = len(self.classes_), self.classes_.tolist()[0]
        _check.must(count > 1, "y", "have at least two classes", f"one class, {one!r}")
        if self.loss == "softmax":
            self._train(X, labels, count, self.loss)
        elif count == 2:
            self._train(X, 2.0 * labels - 1, None, self.loss)
        else:
            self._train(X, 2.0 * np.eye(count)[labels] - 1, count, self.loss)
        return self

    def _scores(self, X: ArrayLike) -> Array:
        """Return one score for each class: (m, C)."""
        X = self._read_more(X)
        f = self.network_(self._seen(X))
        return np.stack([-f, f], axis=1) if f.ndim == 1 else f

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the outputs: (m, C), or (m,) for two classes.

        That is the only output then, or that of the second class less that of the first.
        """
        scores = self._scores(X)
        if len(self.classes_) > 2:
            return scores
        return scores[:, 1] if self.network_._single else scores[:, 1] - scores[:, 0]

    def predict(self, X: ArrayLike) -> Array:
        """Return the classes with the largest outputs: shape (m,)."""
        scores = self._scores(X)  # first, since it refuses a model that is not fitted
        return self.classes_[scores.argmax(1)]

    @with_probabilities
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return probabilities of the classes, of shape (m, C): a softmax of the outputs.

        For the logistic loss these are the probabilities of each class against the others, divided
        by their sum.
        """
        scores = self._scores(X).astype(np.float64)
        if self.loss == "softmax":
            return np.exp(log_softmax(scores, axis=1))
        found = expit(scores)
        return found / found.sum(1, keepdims=True)
