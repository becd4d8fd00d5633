"""Losses of outputs f, of shape (n, k): their mean, slope, and the change of the slope."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..linalg import namespace_of
from ..linalg.arrays import cast, numbers, reshaped, total


class Loss:
    """The base of losses; y has shape (n, k)."""

    def __init__(self, y: Array) -> None:
        self.y = y

    def each(self, f: Array) -> Array:
        """Return the loss of every output, or of every input."""
        raise NotImplementedError

    def slope(self, f: Array, s: slice) -> Array:
        """Return the derivative by f, of the inputs in a slice."""
        raise NotImplementedError

    def bend(self, f: Array, df: Array, s: slice) -> Array:
        """Return how the slope changes with f along df."""
        raise NotImplementedError

    def mean(self, f: Array) -> float:
        return total(self.each(f)) / max(1, len(f))


class Square(Loss):
    """``(f - y)^2 / 2``."""

    def each(self, f: Array) -> Array:
        return (f - self.y) ** 2 / 2

    def slope(self, f: Array, s: slice) -> Array:
        return f - self.y[s, ...]

    def bend(self, f: Array, df: Array, s: slice) -> Array:
        return df


class Logistic(Loss):
    """``log(1 + exp(-y f))``, y = -1 or 1."""

    def each(self, f: Array) -> Array:
        return namespace_of(f).logaddexp(-self.y * f, 0.0)

    def slope(self, f: Array, s: slice) -> Array:
        return -self.y[s, ...] * _expit(-self.y[s, ...] * f)

    def bend(self, f: Array, df: Array, s: slice) -> Array:
        p = _expit(f)
        return p * (1 - p) * df


class Hinge(Loss):
    """``max(0, 1 - y f)``, y = -1 or 1."""

    def each(self, f: Array) -> Array:
        return _below_one(self.y * f)

    def slope(self, f: Array, s: slice) -> Array:
        y = self.y[s, ...]
        return namespace_of(f).where(y * f < 1, -y, 0 * y)

    def bend(self, f: Array, df: Array, s: slice) -> Array:
        return 0 * df


class SquaredHinge(Loss):
    """``max(0, 1 - y f)^2 / 2``, y = -1 or 1."""

    def each(self, f: Array) -> Array:
        return _below_one(self.y * f) ** 2 / 2

    def slope(self, f: Array, s: slice) -> Array:
        return -self.y[s, ...] * _below_one(self.y[s, ...] * f)

    def bend(self, f: Array, df: Array, s: slice) -> Array:
        return namespace_of(f).where(self.y[s, ...] * f < 1, df, 0 * df)


class Softmax(Loss):
    """``log sum_j exp f_j - f_y``, for classes y = 0 .. k - 1, kept as one-hot rows."""

    def each(self, f: Array) -> Array:
        xp = namespace_of(f)
        top = xp.max(f, axis=1, keepdims=True)
        sums = xp.log(xp.sum(xp.exp(f - top), axis=1)) + top[:, 0]
        return sums - xp.sum(f * self.y, axis=1)

    def slope(self, f: Array, s: slice) -> Array:
        return _shares(f) - self.y[s, ...]

    def bend(self, f: Array, df: Array, s: slice) -> Array:
        p = _shares(f)
        return p * (df - namespace_of(f).sum(p * df, axis=1, keepdims=True))


def _expit(x: Array) -> Array:
    """Return ``1/(1 + e^-x)`` without overflow."""
    xp = namespace_of(x)
    if xp is not np:
        return xp.exp(-xp.logaddexp(-x, 0.0))
    from scipy.special import expit

    return np.asarray(expit(x))


def _below_one(z: Array) -> Array:
    return namespace_of(z).maximum(1 - z, 0.0)


def _shares(f: Array) -> Array:
    xp = namespace_of(f)
    e = xp.exp(f - xp.max(f, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


LOSSES = {
    "square": Square, "logistic": Logistic, "softmax": Softmax, "hinge": Hinge,
    "squared_hinge": SquaredHinge,
}  # fmt: skip


def named(loss: str, y: ArrayLike, n: int, network: Any) -> Loss:
    """Return a loss of targets that suit it and the outputs of a network."""
    _check.choice(loss, "loss", tuple(LOSSES))
    k, dtype = network.outputs, network.dtype
    found = _check.finite_array(y, "y", network.theta, "theta")
    xp = namespace_of(found)
    if loss == "softmax":
        _check.must(k > 1, "outputs", "be several for the softmax loss", k)
        each = [found == j for j in range(k)]
        known = functools.reduce(operator.or_, each)
        if found.shape != (n,) or not bool(xp.all(known)):
            rule = f"have a class from 0 to {k - 1} for each of {n} inputs"
            _check.must(False, "y", rule, _short(y))
        return Softmax(cast(xp.stack(each, axis=1), dtype))
    shape = (n,) if network._single else (n, k)
    _check.must(found.shape == shape, "y", f"have the shape of the outputs, {shape}", found.shape)
    if loss != "square" and not bool(xp.all(xp.abs(found) == 1)):
        _check.must(False, "y", f"be -1 or 1 for the {loss} loss", _short(y))
    return LOSSES[loss](reshaped(cast(found, dtype), (n, k)))


def _short(y: Any) -> str:
    xp = _check.namespace(y)
    values = np.unique(np.asarray(y)) if xp is np else numbers(xp.unique_values(y))
    return f"values {', '.join(map(str, values[:5]))}{', ..' if len(values) > 5 else ''}"
