"""Functional gradient descent for any convex loss.

The gradient of sum_i l(f(x_i), y_i) in the RKHS is k(., X) g with g_i = dl/df at x_i, so descent
only moves coefficients: alpha <- alpha - step g. On the training points it is f <- f - step K g,
whose curvature is at most that of the loss times the largest eigenvalue of K.

The hinge loss has a kink, where no step is small enough for its slope. Steps that decrease as
``step/sqrt(k)`` lead to its least value nevertheless, whatever that is and however far: after k of
them the least loss so far is within ``(R^2 + G^2 sum s_i^2)/(2 sum s_i)`` of that of any f of norm
R, G being the largest norm of a slope (Nesterov 2004, section 3.2.3), and the last one within a
logarithm of the same rate (Shamir and Zhang 2013).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..engine.progress import Progress
from ..linalg import namespace_of
from ..linalg.arrays import cast, copied, summed, zeros
from ..scale.matrix import Multiplies, across, home, symmetric
from ._iterative import largest_eigenvalue


class Loss(NamedTuple):
    """A loss of each row of values f and labels y, (n,) or (n, r), and its derivative in f."""

    value: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array]
    curvature: float  # the largest change of the derivative per change of f; inf at a kink


def _rows(each: Array) -> Array:
    return each if each.ndim == 1 else summed(each, 1)


def _normalised(f: Array) -> tuple[Array, Array]:
    """Return logarithms of the normalisation, and probabilities, of rows of logits."""
    xp = namespace_of(f)
    most = xp.max(f, axis=1, keepdims=True)
    weights = xp.exp(f - most)
    total = xp.sum(weights, axis=1, keepdims=True)
    return (most + xp.log(total))[:, 0], weights / total


def _softplus(z: Array) -> Array:
    """Return ``log(1 + e^z)`` without overflow."""
    return namespace_of(z).logaddexp(z, 0.0)


def _below_one(z: Array) -> Array:
    return namespace_of(z).maximum(1 - z, 0.0)


LOSSES = {
    "square": Loss(lambda f, y: _rows((f - y) ** 2 / 2), lambda f, y: f - y, 1.0),
    "logistic": Loss(
        lambda f, y: _rows(_softplus(-y * f)),
        # 1/(1 + e^z) without overflow
        lambda f, y: -y * namespace_of(f).exp(-_softplus(y * f)),
        0.25,
    ),
    "softmax": Loss(
        lambda f, y: _normalised(f)[0] - _rows(y * f), lambda f, y: _normalised(f)[1] - y, 0.5
    ),
    "squared_hinge": Loss(
        lambda f, y: _rows(_below_one(y * f) ** 2 / 2), lambda f, y: -y * _below_one(y * f), 1.0
    ),
    "hinge": Loss(
        lambda f, y: _rows(_below_one(y * f)),
        lambda f, y: namespace_of(f).where(y * f < 1, -y, 0 * y),
        math.inf,
    ),
}


class Descent(NamedTuple):
    """The result of ``kernel_gradient_descent``.

    Attributes
    ----------
    alpha : array of shape (n,) or (n, r)
        Coefficients: predictions are ``f0(x) + k(x, X) alpha``. With validation data they are those
        of the best iteration, else the last ones.
    iterations : int
        The number of iterations that were made.
    best_iteration : int
        The iteration that alpha is from; 0 is the initial function.
    train_loss : array of shape (iterations + 1,)
        The mean loss of a row before the first iteration and after each.
    validation_loss : array of shape (iterations + 1,), or None
    step : float
    """

    alpha: Array
    iterations: int
    best_iteration: int
    train_loss: Array
    validation_loss: Array | None
    step: float


def _labels(
    y: ArrayLike, name: str, loss: str, n: int, dtype: Any, of: str, like: Any, classes: int = 2
) -> Array:
    y = _check.targets(y, name, n, dtype, least=1, of=of, like=like)
    if loss == "softmax":
        return _check.classes(y, name, classes)
    if loss == "square":
        return y
    return _check.every(namespace_of(y).abs(y) == 1, y, name, f"be -1 or 1 for loss {loss!r}")


def kernel_gradient_descent(
    K: Any, y: ArrayLike, *,
    loss: str = "square", iterations: int, step: float | None = None, momentum: float = 0.0,
    f0: ArrayLike | None = None, K_validation: Any = None, y_validation: Any = None,
    f0_validation: Any = None, patience: int | None = None,
    callback: Callable[[int, Array], object] | None = None, progress: bool = False,
) -> Descent:  # fmt: skip
    """Descend on a loss along its gradient in the RKHS, and stop early if validation data say so.

    Parameters
    ----------
    K : array of shape (n, n), float32 or float64, ``GramOperator`` or LinearOperator
        Symmetric positive semi-definite. Operators are not checked, and other ones than
        ``GramOperator`` are used in float64.
    y : array of shape (n,) or (n, r)
        Any values for ``'square'``; -1 and 1 for ``'logistic'``, ``'squared_hinge'`` and
        ``'hinge'``, where every column is a problem of its own; for ``'softmax'`` classes 0, 1, ...
        of shape (n,), or rows of probabilities.
    loss : 'square', 'logistic', 'softmax', 'squared_hinge' or 'hinge'
        ``(f - y)^2 / 2``, ``log(1 + exp(-y f))``, ``log sum_c exp(f_c) - sum_c y_c f_c``,
        ``max(0, 1 - y f)^2 / 2`` or ``max(0, 1 - y f)``, summed over rows.
    iterations : int
        The number of iterations to make at most.
    step : float, optional
        By default one over ``largest_eigenvalue(K)``, an estimate from above, and over the
        curvature of the loss: 1, 1/4, 1/2 and 1 in the order above. Steps below twice that are
        stable. The slope of ``'hinge'`` jumps: its k-th step is ``step/sqrt(k)``, for a step of one
        over the same eigenvalue by default, and the loss need not fall in each.
    momentum : float
        The fraction of the last change that is made again (heavy ball).
    f0 : array of the shape of the predictions, optional
        The initial function on the training points; zero by default.
    K_validation, y_validation, f0_validation
        ``k(x, X)``, labels and initial values on validation data. An operator ``k(x, X)`` is made
        into an array.
    patience : int, optional
        Stop after this many iterations without a new least validation loss.
    callback : callable taking the iteration and alpha, optional
        Called after each iteration; a true return value stops the descent. alpha is not a copy.
    progress : bool
        Write a line to stderr every two seconds.

    Notes
    -----
    For the square loss ``step * iterations`` is the time of ``gradient_flow``, to first order in
    the step, and the limit is ``f0 + k(x, X) K^-1 (y - f0)``. Other losses may have no minimum
    (logistic and softmax on data that can be separated): stopping is then the regularisation. Small
    steps on ``'hinge'`` end at a function that separates such data with at least half the margin of
    a support vector machine without offset, and at most twice its norm.
    An iteration takes one product with K, and one with K_validation.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> x = np.linspace(-2, 2, 9)[:, None]
    >>> y = np.where(np.abs(x[:, 0]) < 1, 1, -1)
    >>> K = kc.Gaussian(0.5)(x)
    >>> fit = kc.solvers.kernel_gradient_descent(K, y, loss="logistic", iterations=50)
    >>> bool((np.sign(K @ fit.alpha) == y).all())
    True
    >>> fit.train_loss[[0, 10, 50]].round(3)
    array([0.693, 0.055, 0.013])
    """
    loss = _check.choice(loss, "loss", tuple(LOSSES))
    iterations = _check.count(iterations, "iterations")
    momentum = _check.below_one(momentum, "momentum")
    report = Progress("kernel_gradient_descent", iterations, _check.flag(progress, "progress"))
    K = symmetric(K)
    n, dtype = K.shape[0], np.dtype(np.float64) if isinstance(K, Multiplies) else K.dtype
    y = _labels(y, "y", loss, n, dtype, "K", home(K, y))
    of, xp = "predictions on K", namespace_of(y)
    f = start = xp.zeros_like(y) if f0 is None else _check.alike(f0, "f0", y.shape, of, dtype, y)
    if patience is not None:
        patience = _check.count(patience, "patience", least=1)
        _check.given(K_validation, "K_validation", "patience")
    for name, value in {"y_validation": y_validation, "f0_validation": f0_validation}.items():
        if value is not None:
            _check.given(K_validation, "K_validation", name)
    if K_validation is not None:
        _check.given(y_validation, "y_validation", "K_validation")
        K_validation = _check.some(
            across(K_validation, "K_validation", n, dtype, like=y), "K_validation"
        )
        m, name, validated = K_validation.shape[0], "y_validation", "K_validation"
        y_validation = _labels(y_validation, name, loss, m, dtype, validated, y, y.shape[-1])
        shape, of = (m, *y.shape[1:]), "predictions on K_validation"
        y_validation = _check.alike(y_validation, name, shape, of, dtype, y)
        start_validation = zeros(shape, y)
        if f0 is not None or f0_validation is not None:
            _check.given(f0, "f0", "f0_validation")
            _check.given(f0_validation, "f0_validation", "f0 and K_validation")
            start_validation = _check.alike(f0_validation, "f0_validation", shape, of, dtype, y)
    value, slope, curvature = LOSSES[loss]
    if step is None:
        # with a kernel that is zero everywhere nothing moves, whatever the step
        smooth = curvature if math.isfinite(curvature) else 1.0
        step = 1 / (smooth * (largest_eigenvalue(K) or 1.0))
    step = _check.positive(step, "step")

    def mean(f: Array, labels: Array) -> float:
        each = value(f, labels)
        return float(np.mean(each, dtype=np.float64) if xp is np else xp.mean(cast(each, float)))

    def validate() -> float:
        return mean(start_validation + K_validation @ alpha, y_validation)

    alpha, change = xp.zeros_like(y), xp.zeros_like(y)
    train = [mean(f, y)]
    validation = [] if K_validation is None else [validate()]
    best, best_alpha = 0, copied(alpha)
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(1, iterations + 1):
            change *= momentum
            change -= (step if math.isfinite(curvature) else step / math.sqrt(k)) * slope(f, y)
            alpha += change
            f = start + K @ alpha
            train.append(mean(f, y))
            _check.descending(train[-1], k, step)
            if K_validation is not None:
                validation.append(validate())
                if validation[-1] < validation[best]:
                    best, best_alpha = k, copied(alpha)
            report.at(k, f"loss {train[-1]:.4g}")
            ended = callback is not None and callback(k, alpha)
            if ended or (patience is not None and k - best >= patience):
                break
    done = len(train) - 1
    if K_validation is None:
        return Descent(alpha, done, done, np.array(train), None, step)
    return Descent(best_alpha, done, best, np.array(train), np.array(validation), step)
