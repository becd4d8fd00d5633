"""Derivatives of activations, elementwise; at a kink the mean of both sides."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial.polynomial import polyder, polyval

from ..layers import activations as act

Array = np.ndarray
ROOT_2_PI = math.sqrt(2 * math.pi)


def _leaky(phi: act.LeakyRelu, x: Array) -> Array:
    return np.where(x > 0, 1.0, np.where(x < 0, phi.slope, (1 + phi.slope) / 2))


def _rectified(phi: act.RectifiedPower, x: Array) -> Array:
    if phi.n == 0:
        return np.zeros_like(x)
    if phi.n == 1:
        return np.heaviside(x, x.dtype.type(0.5))
    return phi.n * np.maximum(x, 0) ** (phi.n - 1)


def _one_kink(phi: act.OneKink, x: Array) -> Array:
    # In terms of x + shift, as the classes derived from it have their kink where x = -shift.
    x = x - phi.shift
    with np.errstate(over="ignore", invalid="ignore"):
        right, left = (c[1] + (c[2] * np.exp(x) if c[2] else 0.0) for c in (phi.right, phi.left))
    return np.where(x > phi.kink, right, np.where(x < phi.kink, left, (right + left) / 2))


def _gelu(phi: act.Gelu, x: Array) -> Array:
    from scipy.special import ndtr

    return ndtr(x) + x * np.exp(-x * x / 2) / ROOT_2_PI


def _sigmoid(phi: act.Sigmoid, x: Array) -> Array:
    s = phi._phi(x)
    return s * (1 - s)


def _silu(phi: act.Silu, x: Array) -> Array:
    from scipy.special import expit

    s = expit(x)
    return s * (1 + x * (1 - s))


def _softplus(phi: act.Softplus, x: Array) -> Array:
    from scipy.special import expit

    return expit(x)


def _powers(phi: act.PowerSeries, x: Array) -> Array:
    return polyval(x, polyder(phi.coefficients).astype(x.dtype))


def _hermite(phi: act.Hermite, x: Array) -> Array:
    # He_n' = n He_(n-1), over sqrt(n!)
    return math.sqrt(phi.n) * act.Hermite(phi.n - 1)._phi(x) if phi.n else np.zeros_like(x)


# The first that fits, so what derives from another class comes before it.
SLOPES: list[tuple[type, Callable]] = [
    (act.LeakyRelu, _leaky),
    (act.Step, lambda phi, x: np.zeros_like(x)),
    (act.RectifiedPower, _rectified),
    (act.OneKink, _one_kink),
    (act.Erf, lambda phi, x: 2 / math.sqrt(math.pi) * np.exp(-x * x)),
    (act.Gelu, _gelu),
    (act.Sin, lambda phi, x: np.cos(x)),
    (act.Cos, lambda phi, x: -np.sin(x)),
    (act.Exp, lambda phi, x: np.exp(x)),
    (act.GaussianBump, lambda phi, x: -2 * x * np.exp(-x * x)),
    (act.PowerSeries, _powers),
    (act.Hermite, _hermite),
    (act.Tanh, lambda phi, x: 1 - np.tanh(x) ** 2),
    (act.Sigmoid, _sigmoid),
    (act.Silu, _silu),
    (act.Softplus, _softplus),
]


def slope_of(activation: act._Activation) -> Callable[[Array], Array]:
    """``x -> phi'(x + shift)``, in the dtype of x."""
    for kind, slope in SLOPES:
        if isinstance(activation, kind):

            def derivative(x: Array, slope=slope) -> Array:
                shifted = x + x.dtype.type(activation.shift)
                return slope(activation, shifted).astype(x.dtype, copy=False)

            return derivative
    raise TypeError(
        f"activation must have a derivative that is known: got {activation!r}; pass derivative="
    )
