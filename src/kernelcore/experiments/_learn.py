"""What experiments on learning share: errors of ridge regression, slopes, standard errors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from .. import data, solvers
from .._types import Array
from ..linalg.blas import serial

F = TypeVar("F", bound=Callable[..., Any])


def many_small(run: F) -> F:
    """Decorate a run of thousands of small products, in which threads of BLAS would only wait."""

    @functools.wraps(run)
    def alone(*args: Any, **kwargs: Any) -> Any:
        with serial():
            return run(*args, **kwargs)

    return alone  # type: ignore[return-value]  # which takes what run takes


def seeds(*words: int) -> np.random.Generator:
    """Return the random numbers of one draw, which depend on no other."""
    return np.random.default_rng(list(words))


def ridge_errors(
    K: Array, K_test: Array, y: Array, y_test: Array, sizes: Sequence[int], ridge: float
) -> Array:
    """Return mean squared test errors of ridge regression, of shape (targets, sizes).

    ``y`` has the targets in columns; the first ``n`` points are learned from, for each n.
    """
    errors = np.empty((y.shape[1], len(sizes)))
    for k, n in enumerate(sizes):
        alpha = solvers.ridge(K[:n, :n], y[:n], ridge)
        errors[:, k] = np.square(K_test[:, :n] @ alpha - y_test).mean(0)
    return errors


def taught(
    rng: np.random.Generator, dim: int, neurons: int, n: int, test: int
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the weights of a teacher, its neurons of either sign; and points with its values, to
    learn from and to test on.
    """
    w = data.sphere(neurons, dim, 1.0, seed=rng)
    signs = np.where(np.arange(neurons) % 2 == 0, 1.0, -1.0)
    x, z = (data.sphere(m, dim, seed=rng) for m in (n, test))
    y, wanted = (np.maximum(points @ w.T, 0) @ signs for points in (x, z))
    return w, x, y, z, wanted


def grown(low: float, high: float, count: int) -> list[int]:
    """Return whole numbers in geometric progression, each once."""
    return sorted({round(x) for x in np.geomspace(low, high, count)})


def mean_and_error(draws: Array, axis: int = -1) -> tuple[Any, Any]:
    """Return the mean over draws and its standard error, numbers or arrays."""
    n = draws.shape[axis]
    spread = draws.std(axis=axis, ddof=1) if n > 1 else np.full(draws.mean(axis=axis).shape, np.nan)
    return draws.mean(axis=axis), spread / math.sqrt(n)


def slope(x: Any, y: Any) -> float:
    """Return the exponent of y as a power of x, by least squares in logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def slopes(x: Any, draws: Array) -> tuple[float, float]:
    """Return the mean exponent over draws, which come first, and its standard error."""
    found = np.array([slope(x, one) for one in draws])
    return float(found.mean()), float(found.std(ddof=1) / math.sqrt(len(found)))


def half_at(sizes: Any, errors: Any, level: float = 0.5) -> float:
    """Return where a falling curve meets ``level``, by lines between logarithms; NaN if nowhere."""
    below = np.asarray(errors) <= level
    if below[0] or not below.any():
        return math.nan
    k = int(below.argmax())
    x, y = np.log(sizes[k - 1 : k + 1]), np.log(errors[k - 1 : k + 1])
    return float(np.exp(x[0] + (math.log(level) - y[0]) * (x[1] - x[0]) / (y[1] - y[0])))
