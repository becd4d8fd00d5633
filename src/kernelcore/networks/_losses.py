"""Losses of outputs f, of shape (n, k): their mean, slope, and the change of the slope."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from .._types import Array, ArrayLike


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
        return float(self.each(f).sum(dtype=np.float64) / max(1, len(f)))


class Square(Loss):
    """``(f - y)^2 / 2``."""

    def each(self, f: Array) -> Array:
        return (f - self.y) ** 2 / 2

    def slope(self, f: Array, s: slice) -> Array:
        return f - self.y[s]

    def bend(self, f: Array, df: Array, s: slice) -> Array:
        return df


class Logistic(Loss):
    """``log(1 + exp(-y f))``, y = -1 or 1."""

    def each(self, f: Array) -> Array:
        return np.logaddexp(0, -self.y * f)

    def slope(self, f: Array, s: slice) -> Array:
        return -self.y[s] * _expit(-self.y[s] * f)

    def bend(self, f: Array, df: Array, s: slice) -> Array:
        p = _expit(f)
        return p * (1 - p) * df


class Hinge(Loss):
    """``max(0, 1 - y f)``, y = -1 or 1."""

    def each(self, f: Array) -> Array:
        return np.maximum(0, 1 - self.y * f)

    def slope(self, f: Array, s: slice) -> Array:
        return np.where(self.y[s] * f < 1, -self.y[s], 0)

    def bend(self, f: Array, df: Array, s: slice) -> Array:
        return np.zeros_like(df)


class SquaredHinge(Loss):
    """``max(0, 1 - y f)^2 / 2``, y = -1 or 1."""

    def each(self, f: Array) -> Array:
        return np.maximum(0, 1 - self.y * f) ** 2 / 2

    def slope(self, f: Array, s: slice) -> Array:
        return -self.y[s] * np.maximum(0, 1 - self.y[s] * f)

    def bend(self, f: Array, df: Array, s: slice) -> Array:
        return np.where(self.y[s] * f < 1, df, 0)


class Softmax(Loss):
    """``log sum_j exp f_j - f_y``, for classes y = 0 .. k - 1, kept as one-hot rows."""

    def each(self, f: Array) -> Array:
        top = f.max(1, keepdims=True)
        return np.log(np.exp(f - top).sum(1)) + top[:, 0] - (f * self.y).sum(1)

    def slope(self, f: Array, s: slice) -> Array:
        return _shares(f) - self.y[s]

    def bend(self, f: Array, df: Array, s: slice) -> Array:
        p = _shares(f)
        return p * (df - (p * df).sum(1, keepdims=True))


def _expit(x: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(x))


def _shares(f: Array) -> Array:
    e = np.exp(f - f.max(1, keepdims=True))
    return np.asarray(e / e.sum(1, keepdims=True))


LOSSES = {
    "square": Square, "logistic": Logistic, "softmax": Softmax, "hinge": Hinge,
    "squared_hinge": SquaredHinge,
}  # fmt: skip


def named(loss: str, y: ArrayLike, n: int, network: Any) -> Loss:
    """Return a loss of targets that suit it and the outputs of a network."""
    _check.choice(loss, "loss", tuple(LOSSES))
    k, dtype = network.outputs, network.dtype
    if loss == "softmax":
        _check.must(k > 1, "outputs", "be several for the softmax loss", k)
        labels = _check.finite_array(y, "y")
        fine = labels.shape == (n,) and bool(np.isin(labels, np.arange(k)).all())
        _check.must(fine, "y", f"have a class from 0 to {k - 1} for each of {n} inputs", _short(y))
        return Softmax(np.eye(k, dtype=dtype)[labels.astype(int)])
    found = _check.finite_array(y, "y")
    shape = (n,) if network._single else (n, k)
    _check.must(found.shape == shape, "y", f"have the shape of the outputs, {shape}", found.shape)
    if loss != "square":
        signs = bool(np.isin(found, (-1, 1)).all())
        _check.must(signs, "y", f"be -1 or 1 for the {loss} loss", _short(y))
    return LOSSES[loss](found.astype(dtype).reshape(n, k))


def _short(y: Any) -> str:
    values = np.unique(np.asarray(y))
    return f"values {', '.join(map(str, values[:5]))}{', ..' if len(values) > 5 else ''}"
