"""Networks that are linear in their parameters: ridge regression on gradients at theta_0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState

from .. import _check, presets
from .._keywords import synonyms
from .._types import Array
from ..architecture import Sequential
from ..networks import Network
from ._base import random_numbers
from ._classifier import KernelClassifier
from ._regressor import KernelRegressor
from ._ridge import Data, OfRidge


class OfTangent(OfRidge):
    """The base of both: ``kernel_`` is the tangent kernel of a network that is drawn."""

    _kernels = ()
    centres: Any = None  # of 'nystrom', as many as it likes

    @property
    def _precomputed(self) -> bool:
        return False

    def _resolved(self) -> Any:
        given = presets.mlp(1, b_std=0.1) if self.network is None else self.network
        if not isinstance(given, Network):
            _check.an_instance(given, Sequential, "network", "a Sequential, a Network or None")
            seed = random_numbers(self.random_state).randint(2**31 - 1)
            given = given.sample(self.width, int(seed))
        self.network_ = given
        return given.ntk

    def _read(self, X: Any, y: Any = None, **rules: Any) -> tuple[Array, Array]:
        X, y = super()._read(X, y, **rules)
        self.network_._inputs(X[:1])  # draws the weights
        if self.layers is not None:
            layers = (self.layers,) if np.ndim(self.layers) == 0 else tuple(self.layers)
            self.network_ = self.network_.training(*layers)
            self.kernel_ = self.network_.ntk
        return X, y

    def _prepare(self, data: Data, rng: RandomState) -> None:
        """Do nothing: a network of finite width has no degrees that are zero."""

    @property
    def coef_(self) -> Array:
        """The distance from theta_0: ``network_.jvp(x, coef_)`` are the predictions."""
        table = self.alpha_.reshape(len(self.alpha_), -1)
        found = [self.network_.vjp(self.X_fit_, column) for column in table.T]
        return found[0] if self.alpha_.ndim == 1 else np.stack(found, axis=1)


class TangentRegressor(OfTangent, KernelRegressor):
    """A network linearised at theta_0, fitted by ridge regression: ``f(x) = <df/dtheta, coef>``.

    It is kernel ridge regression with the tangent kernel of a network of finite width at its random
    start, whose own output there is left out, as a doubled network's is zero.

    Parameters
    ----------
    network : Sequential, Network, optional
        Of rows, signals or images; ``presets.mlp(1, b_std=0.1)`` by default. A Sequential is drawn
        at each fit; a Network, with one output, is linearised where it is.
    width : int or sequence of int
        The units of hidden layers of a Sequential.
    layers : int or sequence of int, optional
        Which layers of weights are trained, counted from 0; all by default.
    ridge, solver, max_iter, random_state, tol, verbose
        As in ``KernelRegressor``; ``random_state`` also draws the network. The ridge is that of
        ``|y - J coef|^2 + ridge |coef|^2``.

    Attributes
    ----------
    network_ : Network
        The network at theta_0, with the layers that are trained.
    coef_ : array of shape (p,) or (p, r)
        ``theta - theta_0``, computed when asked for.
    alpha_, dual_coef_, ridge_, rkhs_norm_, X_fit_, kernel_, n_features_in_, n_iter_, history_, \
plan_
        As in ``KernelRegressor``; ``kernel_`` is ``network_.ntk``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.random.default_rng(0).standard_normal((100, 2))
    >>> model = kc.TangentRegressor(width=500, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(np.allclose(model.predict(X), model.network_.jvp(X, model.coef_)))
    True
    """

    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self, network: Sequential | Network | None = None, width: Any = 1000, layers: Any = None,
        ridge: str | float = "loo", solver: str = "auto", max_iter: int | None = None,
        random_state: Any = None, tol: float | None = None, verbose: bool | int = 0,
    ) -> None:  # fmt: skip
        self.network, self.width, self.layers, self.ridge = network, width, layers, ridge
        self.solver, self.max_iter, self.random_state = solver, max_iter, random_state
        self.tol, self.verbose = tol, verbose


class TangentClassifier(OfTangent, KernelClassifier):
    """The same on codes of the classes; the largest score wins.

    Parameters
    ----------
    network, width, layers
        As in ``TangentRegressor``.
    ridge, targets, solver, probabilities, max_iter, random_state, tol, verbose, class_weight
        As in ``KernelClassifier``.

    Attributes
    ----------
    network_, coef_
        As in ``TangentRegressor``.
    classes_, alpha_, dual_coef_, ridge_, rkhs_norm_, temperature_, offsets_, X_fit_, kernel_, \
n_features_in_, n_iter_, history_, plan_
        As in ``KernelClassifier``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> X, y = kc.data.digits()
    >>> model = kc.TangentClassifier(width=200, random_state=0).fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.8)
    True
    """

    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self, network: Sequential | Network | None = None, width: Any = 1000, layers: Any = None,
        ridge: str | float = "loo", targets: str = "one_hot", solver: str = "auto",
        probabilities: str | None = "softmax", max_iter: int | None = None,
        random_state: Any = None, tol: float | None = None, verbose: bool | int = 0,
        class_weight: dict[Any, float] | str | None = None,
    ) -> None:  # fmt: skip
        self.network, self.width, self.layers, self.ridge = network, width, layers, ridge
        self.targets, self.solver, self.probabilities = targets, solver, probabilities
        self.max_iter, self.random_state, self.tol = max_iter, random_state, tol
        self.verbose, self.class_weight = verbose, class_weight
