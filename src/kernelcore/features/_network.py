"""Hidden units of random two-layer networks as features of the conjugate kernel."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np

from .. import _check
from .._types import Array
from ..architecture import Sequential
from ..kernels import ArcCosine
from ..layers import Dense
from ..layers.activations import Activation, RectifiedPower, Relu, _Activation
from ..linalg import norm
from ..program import Code, Homogeneous
from ._transformer import Transformer, multiply, normal_rows, seeded_class


def power_of(activation: _Activation) -> int | None:
    """Return n if the activation is ``max(0, x)^n``."""
    form = activation._form()
    if not isinstance(form, Homogeneous):
        return None
    return {Code.STEP: 0, Code.RELU: 1, Code.RECTIFIED_POWER: form.op.n}.get(form.op.code)


def checked(activation: _Activation | None) -> _Activation:
    """Return the activation, ``Relu()`` by default."""
    given = Relu() if activation is None else activation
    return _check.an_instance(given, _Activation, "activation", "an activation")


def apply(activation: _Activation, z: Array) -> None:
    """Apply the activation in place."""
    n = power_of(activation)
    if n is None or not isinstance(z, np.ndarray):
        z[...] = activation(z)
    elif n == 0:
        np.heaviside(z, z.dtype.type(0.5), out=z)
    else:
        np.maximum(z, 0, out=z)
        base = z.copy() if n > 2 else z
        for _ in range(n - 1):
            np.multiply(z, base, out=z)


class _Units(Transformer):
    """Features ``scale phi(w'x + b)``."""

    _phi: _Activation
    _scale: float

    def _block(self, x: Array, out: Array, arrays: dict[str, Array]) -> None:
        multiply(x, arrays["weights_"].T, out)
        if "biases_" in arrays:
            out += arrays["biases_"]
        apply(self._phi, out)
        if self._scale != 1.0:
            out *= self._scale


@seeded_class
@dataclass(repr=False, eq=False)
class NetworkFeatures(_Units):
    """Hidden units of a random network, ``phi(w'x + b) / sqrt N``: features of its NNGP.

    Parameters
    ----------
    activation : activation, optional
        ``Relu()`` by default.
    n_features : int
        N, the width.
    w_std, b_std : float
        Entries of w are normal with standard deviation ``w_std / sqrt(d)``, b with ``b_std``: the
        kernel is ``Sequential(Dense(w_std, b_std), activation, Dense()).nngp``.
    orthogonal : bool
        Make rows of weights orthogonal within blocks of d; the law of each row is the same.
    seed : int, numpy.random.Generator or None

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> features = kc.features.NetworkFeatures(kc.Tanh(), 20_000, seed=0)
    >>> Z = features.fit_transform([[1.0, 1.0], [1.0, 0.5]])
    >>> bool(np.abs(Z @ Z.T - features.kernel_([[1.0, 1.0], [1.0, 0.5]])).max() < 0.02)
    True
    """

    activation: _Activation | None = None
    n_features: int = 1000
    _: KW_ONLY
    w_std: float = 1.0
    b_std: float = 0.0
    orthogonal: bool = False
    seed: int | np.random.Generator | None = None

    def _draw(self, d: int, rng: np.random.Generator) -> dict[str, Array]:
        self._phi = checked(self.activation)
        n = _check.count(self.n_features, "n_features", least=1)
        first = Dense(self.w_std, self.b_std)
        orthogonal = _check.flag(self.orthogonal, "orthogonal")
        arrays = {"weights_": normal_rows(n, d, rng, orthogonal) * (first.w_std / math.sqrt(d))}
        self._limit(Sequential(first, self._phi, Dense()).nngp, n)
        if first.b_std:
            arrays["biases_"] = first.b_std * rng.standard_normal(n)
        self._scale = 1 / math.sqrt(n)
        power = power_of(self._phi)
        if power:  # the scale costs nothing in the weights
            for a in arrays.values():
                a *= self._scale ** (1 / power)
            self._scale = 1.0
        return arrays

    def _variance(self, X: Array) -> Array | None:
        phi, n = self._phi, power_of(self._phi)
        if n is None and phi._kinked:
            return None
        square = Activation(lambda t: phi(t) ** 2) if n is None else RectifiedPower(2 * n)
        kernel = Sequential(Dense(self.w_std, self.b_std), square, Dense()).nngp
        return (kernel(X) - self.kernel_(X) ** 2) / self.n_features_out_


@seeded_class
@dataclass(repr=False, eq=False)
class ArcCosineFeatures(_Units):
    """``sqrt(2/N) max(0, w'x)^order`` with normal w: features of ``ArcCosine(order)``.

    Parameters
    ----------
    order : int
    n_features : int
        N.
    weights : {"normal", "sphere"}
        Whether rows w are standard normal, or uniform on the sphere and scaled so that the kernel
        is the same, which has a smaller variance.
    orthogonal : bool
        Make rows orthogonal within blocks of d.
    seed : int, numpy.random.Generator or None

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> features = kc.features.ArcCosineFeatures(1, 20_000, seed=0)
    >>> Z = features.fit_transform([[1.0, 0.0], [0.0, 1.0]])
    >>> bool(np.abs(Z @ Z.T - kc.ArcCosine(1)([[1.0, 0.0], [0.0, 1.0]])).max() < 0.05)
    True
    """

    order: int = 1
    n_features: int = 1000
    _: KW_ONLY
    weights: str = "normal"
    orthogonal: bool = False
    seed: int | np.random.Generator | None = None

    def _draw(self, d: int, rng: np.random.Generator) -> dict[str, Array]:
        kernel = ArcCosine(self.order)
        k = kernel.order
        n = _check.count(self.n_features, "n_features", least=1)
        w = normal_rows(n, d, rng, _check.flag(self.orthogonal, "orthogonal"))
        if _check.choice(self.weights, "weights", ("normal", "sphere")) == "sphere":
            w /= norm(w, axis=1, keepdims=True)
            if k:
                w *= _radius(d, k) ** (0.5 / k)
        self._phi, self._scale = RectifiedPower(k), math.sqrt(2 / n)
        if k:
            w *= self._scale ** (1 / k)
            self._scale = 1.0
        self._limit(kernel, n)
        return {"weights_": w}

    def _variance(self, X: Array) -> Array | None:
        k, d = self.kernel_.order, X.shape[1]
        # (2/N)^2 E[max(0, w'x)^2k max(0, w'y)^2k] is again an arc-cosine kernel.
        second = 2 * ArcCosine(2 * k)(X)
        if self.weights == "sphere":
            second *= _radius(d, k) ** 2 / _radius(d, 2 * k)
        return (second - self.kernel_(X) ** 2) / self.n_features_out_


def _radius(d: int, k: int) -> float:
    """Return E |w|^(2k) of a standard normal w."""
    return float(math.prod(range(d, d + 2 * k, 2)))
