"""Power series as arrays of coefficients: products, compositions, roots.

Where no coefficient is negative, only non-negative terms are added.
"""

from __future__ import annotations

import math

import numpy as np

from .._types import Array
from ..engine import loops

__all__ = [
    "compose", "derivative", "integral", "inverse_root", "multiply", "parity_of", "square_root",
]  # fmt: skip

inverse_root, multiply = loops.inverse_root, loops.multiply


def compose(outer: list[Array], inner: Array) -> list[Array]:
    """Return each ``sum_i c_i inner^i``, inner without constant term (Brent and Kung 1978).

    The results are sums of products of coefficients: where none is negative, nothing cancels.
    """
    n = len(inner)
    if np.count_nonzero(inner) == 1 and inner[1]:
        return [c[:n] * inner[1] ** np.arange(n) for c in outer]
    size = math.isqrt(n - 1) + 1
    powers = np.zeros((size, n))
    powers[0, 0] = 1.0
    for i in range(1, size):
        powers[i] = multiply(inner, powers[i - 1])
    giant = multiply(inner, powers[-1])
    results = []
    for c in outer:
        blocks = np.pad(c[:n], (0, size * size - n)).reshape(size, size) @ powers
        total = blocks[-1].copy()
        for block in blocks[-2::-1]:
            total = multiply(giant, total) + block
        results.append(total)
    return results


def square_root(e: Array, n: int) -> Array:
    """Return the square root of a series with positive constant term, to n terms."""
    e = np.pad(e, (0, max(0, n - len(e))))
    y = np.zeros(n)
    y[0] = math.sqrt(e[0])
    for k in range(1, n):
        y[k] = (e[k] - np.dot(y[1:k], y[k - 1 : 0 : -1])) / (2 * y[0])
    return y


def parity_of(c: Array) -> int | None:
    """Return 0 or 1 for a series that is exactly even or odd; else None."""
    if not c[1::2].any():
        return 0
    return None if c[::2].any() else 1


def derivative(c: Array) -> Array:
    """Return the derivative, to the same length, with a zero at the end."""
    return np.append(c[1:] * np.arange(1, len(c)), 0.0)


def integral(c: Array, value: float) -> Array:
    """Return the integral, to the same length, with that value at 0."""
    return np.append(value, c[:-1] / np.arange(1, len(c)))
