"""Hyper-parameters that data choose: by likelihood, leave-one-out or folds, with exact derivatives.

A criterion is a function C of the Gram matrix K and the ridge. Its derivative by K is a matrix M,
so that its derivative by a hyper-parameter is ``sum_ij M_ij dK_ij``, which kernels compute without
holding dK (``kernel.hyperparameter_gradient``). With ``G = (K + ridge I)^-1`` and ``A = G y`` of r
columns,

    log likelihood      M = (A A' - r G)/2
    left out parts F    residuals e_F = G_FF^-1 A_F of a fit to all other points; of the mean of
                        their squares, with U_F = 2/(n r) G_FF^-1 e_F,
                        M = -(G U) A' + sum_F (G_:F U_F)(G_:F e_F)'

A part of one point is leave-one-out. Weights w with S = diag(sqrt(w)) turn K into S K S and y into
S y. Of a point that stands for m copies one is left out, as in ``solvers.RidgePath``: then
``e = A/D`` with ``D = c G_ii + (1 - c)/ridge``, c = min(1, 1/m).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import RandomState

from .. import _check
from .._types import Array
from ..kernels import Kernel
from ..linalg import Cholesky, triangular_inverse, triangular_square
from ..linalg.blas import one_thread
from ..solvers import RidgePath

CRITERIA = ("likelihood", "loo", "cv")
TIES: tuple[Any, ...] = (None, "layers")
TUNED_ON = 500
"""The number of points, drawn at random, on which hyper-parameters are chosen."""
FOLDS = 5
"""The parts that 'cv' leaves out, one after the other."""
DRAWN = 6
"""The places near the kernel that is given, from the best of which there is a second search."""
REACH = 1e3
"""By which factor a hyper-parameter may change."""
RIDGES = (1e-10, 1e3)
"""The least and the largest ridge, over the mean of the diagonal."""
ITERATIONS = 40
"""The most iterations of a search with derivatives."""
WALL = 1e10
"""The loss where there is none."""
FAINT = 1e-250
"""The weight below which averages count as flat."""
CALLS = 40
"""The most values of a search without, for each hyper-parameter."""


class Tuning(NamedTuple):
    """How the hyper-parameters of an estimator were chosen: its ``tuning_``.

    ``before`` and ``after`` are the criterion at the kernel that was given and at the chosen one,
    each at the best ridge: the mean squared residual of points left out, or the logarithm of the
    likelihood. ``parameters`` and ``ridge`` are those of the best search; a ridge that was given is
    repeated, and a smoother has none. ``exact`` says whether there were derivatives.
    """

    criterion: str
    before: float
    after: float
    parameters: dict[str, float]
    ridge: float | None
    evaluations: int
    points: int
    exact: bool


class Cost(NamedTuple):
    """A criterion to be minimised, its value, and derivatives by K and by the log of the ridge."""

    loss: float
    value: float
    by_K: Array
    by_ridge: float


class Criterion(Protocol):
    """What a search minimises; ``free`` is the number of ridges to choose, 0 or 1."""

    free: int

    def start(self, K: Array) -> float:
        """Return the logarithm of the ridge, over the mean of the diagonal, to begin with."""

    def cost(self, K: Array, log_ridge: float) -> Cost | None:
        """Return the cost, or None where K and the ridge do not allow it."""

    def ridge(self, K: Array, log_ridge: float) -> float | None:
        """Return the ridge itself."""


def parts(n: int, criterion: str, rng: RandomState) -> list[Array]:
    """Return the points that are left out together: one by one, or at random in folds."""
    if criterion == "cv":
        return np.array_split(rng.permutation(n), min(FOLDS, n))
    return [np.array([i]) for i in range(n)]


# ---- ridge regression


class OfRidge:
    """Criteria of ridge regression, and of Gaussian processes.

    A ridge that is None is chosen; one that is given, or one per point, stays as it is, but for the
    least of ``RIDGES`` that is added to it.
    """

    def __init__(
        self, criterion: str, y: Array, ridge: float | Array | None, rng: RandomState,
        total: Array | None = None, copies: Array | None = None,
    ) -> None:  # fmt: skip
        n = len(y)
        self.y = y.reshape(n, -1).astype(np.float64)
        self.criterion, self.given, self.free = criterion, ridge, int(ridge is None)
        self.total, self.copies = total, copies
        self.parts = parts(n, criterion, rng)
        self.root = np.ones(n) if total is None else np.sqrt(total)
        self.seen = self.y * self.root[:, None]
        self.amount = self.seen.shape[1] * float(n if total is None else total.sum())
        self.size = float(np.square(self.seen).sum()) / self.amount or 1.0
        number = np.ones(n) if copies is None else np.maximum(copies, 1.0)
        self.share = np.ones(n) if copies is None else np.minimum(1 / copies, 1.0)
        self.samples = float(number.sum())
        self.constant = -self.samples * math.log(2 * math.pi)
        if total is not None:  # the noise of a copy is the ridge over its weight
            self.constant += float(np.log(total / number) @ number)

    def start(self, K: Array) -> float:
        path = RidgePath(K, self.y, sample_weight=self.total, copies=self.copies)
        chosen = path.best("loo" if self.criterion == "cv" else self.criterion)
        return float(np.log(np.clip(chosen / self._mean(K), *RIDGES)))

    def _mean(self, K: Array) -> float:
        return float(np.square(self.root) @ np.diagonal(K)) / len(K) or 1.0

    def ridge(self, K: Array, log_ridge: float) -> float | None:
        if self.given is None:
            return math.exp(log_ridge) * self._mean(K)
        return self.given if isinstance(self.given, float) else None

    def cost(self, K: Array, log_ridge: float) -> Cost | None:
        n, mean, root = len(K), self._mean(K), self.root
        share = math.exp(log_ridge) if self.given is None else RIDGES[0]
        ridge: Any = share * mean + (0.0 if self.given is None else self.given)
        factor = Cholesky(root[:, None] * K * root, ridge)
        if factor.order:
            return None
        log_det = factor.log_det()
        upper = np.triu(triangular_square(triangular_inverse(factor.triangle)))
        G = upper + np.triu(upper, 1).T
        A = G @ self.seen
        if self.criterion == "likelihood":
            found = self._likelihood(G, A, ridge, log_det)
        elif self.criterion == "loo":
            found = self._one_by_one(G, A, ridge)
        else:
            found = self._in_parts(G, A)
        loss, value, M, by_ridge = found
        by_ridge += float(np.trace(M))
        M[np.diag_indices(n)] += by_ridge * share / n  # the ridge is a share of the diagonal
        return Cost(loss, value, root[:, None] * M * root, by_ridge * share * mean)

    def _likelihood(self, G: Array, A: Array, ridge: Any, log_det: float) -> Cost:
        r, more = A.shape[1], self.samples - len(A)
        spread = self.constant - log_det - (more * math.log(ridge) if more else 0.0)
        value = (r * spread - float(np.vdot(A, self.seen))) / 2
        scale = -1 / (self.samples * r)
        by_ridge = -r * more / (2 * ridge) if more else 0.0
        return Cost(scale * value, value, (A @ A.T - r * G) * (scale / 2), scale * by_ridge)

    def _one_by_one(self, G: Array, A: Array, ridge: Any) -> Cost:
        rest = (1 - self.share) / ridge
        D = (self.share * np.diagonal(G) + rest)[:, None]
        e = A / D
        value, loss, slope = self._mean_square(e)
        U = slope * e / D
        q = (U * e).sum(1)
        M = (G * (q * self.share)) @ G - (G @ U) @ A.T
        return Cost(loss, value, M, float(q @ (rest / ridge)))

    def _in_parts(self, G: Array, A: Array) -> Cost:
        e, U = np.empty_like(A), np.empty_like(A)
        inverses = [Cholesky(G[np.ix_(part, part)]) for part in self.parts]
        for part, factor in zip(self.parts, inverses, strict=True):
            e[part] = factor.solve(A[part])
        value, loss, slope = self._mean_square(e)
        for part, factor in zip(self.parts, inverses, strict=True):
            U[part] = slope * factor.solve(e[part])
        M = -(G @ U) @ A.T
        for part in self.parts:
            M += (G[:, part] @ U[part]) @ (G[:, part] @ e[part]).T
        return Cost(loss, value, M, 0.0)

    def _mean_square(self, e: Array) -> tuple[float, float, float]:
        """Return a mean of squares, its logarithm, and twice the derivative of that by squares."""
        value = float(np.square(e).sum()) / self.amount
        return _logarithm(value, self.size, self.amount)


def _logarithm(value: float, size: float, amount: float) -> tuple[float, float, float]:
    # labels that are met exactly have no logarithm
    above = value + size * float(np.finfo(np.float64).eps) ** 2
    return value, math.log(above / size), 2 / (above * amount)


# ---- local averages


class OfAverages:
    """The mean squared residual of local averages without the point itself, or without its fold."""

    free = 0

    def __init__(self, criterion: str, y: Array, rng: RandomState, total: Array | None) -> None:
        n = len(y)
        self.y = y.reshape(n, -1).astype(np.float64)
        self.total = np.ones(n) if total is None else total.astype(np.float64)
        fold = np.empty(n, np.intp)
        for k, part in enumerate(parts(n, criterion, rng)):
            fold[part] = k
        self.allowed = fold[:, None] != fold
        self.mean = np.average(self.y, axis=0, weights=self.total)
        self.amount = self.y.shape[1] * float(self.total.sum())
        self.size = float((self.total @ np.square(self.y - self.mean)).sum()) / self.amount or 1.0

    def start(self, K: Array) -> float:
        return 0.0

    def ridge(self, K: Array, log_ridge: float) -> float | None:
        return None

    def cost(self, K: Array, log_ridge: float) -> Cost | None:
        K = _check.weights(K, "kernel") * self.total * self.allowed
        # divided by the largest, so that sums of tiny weights keep their digits
        most = K.max(1, keepdims=True)
        there = most > 0
        most = np.where(there, most, 1.0)
        K /= most
        D = np.where(there, K.sum(1, keepdims=True), 1.0)
        f = np.where(there, K @ self.y / D, self.mean)
        e = self.y - f
        square = float((self.total @ np.square(e)).sum()) / self.amount
        value, loss, slope = _logarithm(square, self.size, self.amount)
        M = (e * f).sum(1, keepdims=True) - e @ self.y.T
        # where the largest is hardly a number, the nearest point decides, whatever the bandwidth
        steep = there & (most > FAINT)
        M *= np.where(steep, slope * self.total[:, None] / (D * np.maximum(most, FAINT)), 0.0)
        M *= self.total * self.allowed
        return Cost(loss, value, M, 0.0)


# ---- searches


def tied(names: Sequence[str], ties: str | None) -> Array:
    """Return for each hyper-parameter the number of what it moves with, counted from 0.

    With ``ties='layers'`` those of one name move together in all layers of a network: their names
    are equal before the first ``__layers__``, and at their end.
    """
    keys: list[Any] = list(names)
    if ties is not None:
        parts = (name.partition("__layers__") for name in names)
        keys = [(root, rest.rpartition("__")[2]) for root, _, rest in parts]
    order = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    return np.array([order[key] for key in keys], np.intp)


class Search:
    """A search among kernels of one form, with derivatives where it has them.

    ``at`` are logarithms of the factors by which its numbers have changed, one for those that are
    tied to each other, and then that of the ridge.
    """

    def __init__(self, kernel: Kernel, X: Array, criterion: Criterion, ties: str | None) -> None:
        self.kernel, self.X, self.criterion = kernel, X, criterion
        known = kernel.hyperparameters()
        self.names, self.evaluations = tuple(known), 0
        self.given = np.array(list(known.values()))
        self.tied = tied(self.names, ties)
        self.inner = len(set(self.tied))
        self.exact = _has_derivatives(kernel, X)
        K = kernel(X)
        first = criterion.start(K) if criterion.free else 0.0
        self.first = np.append(np.zeros(self.inner), [first] * criterion.free)
        reach, ends = np.full(self.inner, math.log(REACH)), np.log(RIDGES)
        self.low = np.append(-reach, [ends[0]] * criterion.free)
        self.high = np.append(reach, [ends[1]] * criterion.free)
        self.best: tuple[float, float, Array] = math.inf, math.nan, self.first
        self._loss(self.first)
        self.before = self.best[1]

    def kernel_at(self, at: Array) -> Kernel:
        if not at[: self.inner].any():
            return self.kernel
        values = self.given * np.exp(at[self.tied])
        return self.kernel.replace(**dict(zip(self.names, map(float, values), strict=True)))

    def _log_ridge(self, at: Array) -> float:
        return float(at[-1]) if self.criterion.free else 0.0

    def _cost(self, at: Array, K: Array | None) -> Cost | None:
        self.evaluations += 1
        cost = None if K is None else self.criterion.cost(K, self._log_ridge(at))
        if cost is None or not math.isfinite(cost.loss):
            return None
        if cost.loss < self.best[0]:
            self.best = cost.loss, cost.value, np.array(at)
        return cost

    def _gram(self, kernel: Kernel) -> Array | None:
        """Return the Gram matrix, or None where it overflows so far from the given kernel."""
        with contextlib.suppress(OverflowError):
            return kernel(self.X)
        return None

    def _loss(self, at: Array) -> tuple[float, Kernel, Cost | None]:
        kernel = self.kernel_at(at)
        cost = self._cost(at, self._gram(kernel))
        # a wall, from which a line search turns back
        return WALL if cost is None else cost.loss, kernel, cost

    def loss(self, at: Array) -> tuple[float, Array]:
        """Return the loss and its gradient, where there are derivatives."""
        loss, kernel, cost = self._loss(at)
        slope = np.zeros(len(at))
        if cost is None:
            return loss, slope
        if self.names and self.exact:
            try:
                rates = kernel.hyperparameter_gradient(self.X, weights=cost.by_K)
            except OverflowError:
                return WALL, slope
            by_log = rates * self.given * np.exp(at[self.tied])
            slope[: self.inner] = np.bincount(self.tied, by_log, self.inner)
        if self.criterion.free:
            slope[-1] = cost.by_ridge
        return loss, slope

    def loss_of_kernel(self, inner: Array) -> float:
        """Return the least loss over ridges, for numbers of the kernel; without derivatives."""
        from scipy.optimize import minimize_scalar

        at = np.append(inner, self.first[len(inner) :])
        K = self._gram(self.kernel_at(at))

        def at_ridge(log_ridge: float) -> float:
            cost = self._cost(np.append(inner, [log_ridge] * self.criterion.free), K)
            return WALL if cost is None else cost.loss

        if not self.criterion.free:
            return at_ridge(0.0)
        ends = (self.low[-1], self.high[-1])
        found = minimize_scalar(at_ridge, bounds=ends, method="bounded", options={"xatol": 0.05})
        return float(found.fun)

    def run(self, rng: RandomState) -> None:
        """Search from the first place and, with derivatives, from the best of others."""
        from scipy.optimize import minimize

        if not len(self.first):
            return
        if not self.exact:
            inner = self.inner
            limits = list(zip(self.low[:inner], self.high[:inner], strict=True))
            minimize(
                self.loss_of_kernel, self.first[:inner], method="Nelder-Mead", bounds=limits,
                options={"maxfev": CALLS * inner, "xatol": 0.01, "fatol": 1e-5},
            )  # fmt: skip
            return
        limits = list(zip(self.low, self.high, strict=True))
        drawn = self.first + rng.standard_normal((DRAWN, len(self.first)))
        drawn = np.clip(drawn, self.low, self.high)
        losses = [self._loss(at)[0] for at in drawn]
        for start in (self.first, drawn[int(np.argmin(losses))]):
            minimize(
                self.loss, start, jac=True, method="L-BFGS-B", bounds=limits,
                options={"maxiter": ITERATIONS, "ftol": 1e-6, "gtol": 1e-5},
            )  # fmt: skip


def _has_derivatives(kernel: Kernel, X: Array) -> bool:
    if not kernel.hyperparameters():
        return True
    try:
        kernel.hyperparameter_gradient(X[:1], weights=np.zeros((1, 1)))
    except TypeError:  # images, cyclic signals, kernels of users
        return False
    return True


def tuned(
    kernels: Sequence[Kernel], X: Array, of: Criterion, name: str, rng: RandomState,
    ties: str | None,
) -> tuple[Kernel, Tuning]:  # fmt: skip
    """Return the best kernel among some forms, and how it was found.

    Sums are done on one thread, so that the path of a search does not depend on their number.
    """
    X = np.ascontiguousarray(X, np.float64)
    with one_thread():
        searches = [Search(kernel, X, of, ties) for kernel in kernels]
        for search in searches:
            search.run(rng)
        first, best = searches[0], min(searches, key=lambda search: search.best[0])
        _, value, at = best.best
        kernel = best.kernel_at(at)
        ridge = of.ridge(kernel(X), best._log_ridge(at))
    evaluations = sum(search.evaluations for search in searches)
    numbers = kernel.hyperparameters()
    found = Tuning(name, first.before, value, numbers, ridge, evaluations, len(X), best.exact)
    return kernel, found
