"""Systems (K + ridge I) alpha = y for any K that multiplies.

With A = K + ridge I, r = y - A alpha and P a preconditioner, one product with K to an iteration:

    richardson            alpha <- alpha + step P^-1 r
    gradient_descent      the same with momentum (Nesterov 1983, Polyak 1964)
    landweber             alpha <- alpha + step A r, two products: converges for indefinite K, too
    conjugate_gradients   the best of the space that these steps span (Hestenes and Stiefel 1952)

Columns of y are systems of their own that share the products; one that has converged drops out.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .. import _check
from .._keywords import former_attribute, formerly
from ..engine.progress import Progress
from ..linalg import eigh
from ..scale.matrix import dtype_of, matrix

Array = np.ndarray
Callback = Callable[[int, Array, Array], object]

LANCZOS = 12
"""Products for an estimate of the largest eigenvalue."""
SAFE = 1.05
"""What the estimate is multiplied by."""
DIVERGED = 1e6
"""A residual this many times the first one: the step is too long."""


class Solution(NamedTuple):
    """What an iterative solver found.

    Attributes
    ----------
    alpha : array of the shape of y
        Coefficients: predictions are ``k(x, X) alpha``.
    residuals : array of shape (iterations + 1,) or (iterations + 1, r)
        ``|y - (K + ridge I) alpha| / |y|`` before the first iteration and after each; absolute for
        a column of zeros. A column that has converged keeps its last value.
    iterations : int
        How many were made.
    converged : array of shape () or (r,), bool
        Whether the residual of a column is at most ``tol``.
    """

    alpha: Array
    residuals: Array
    iterations: int
    converged: Array

    x = former_attribute("x", "alpha")


def dots(a: Array, b: Array) -> Array:
    """Inner products of columns, in float64."""
    return np.einsum("ij,ij->j", a, b, dtype=np.float64)


def norms(a: Array) -> Array:
    return np.sqrt(dots(a, a))


class System:
    """Checked arguments that all solvers share."""

    def __init__(self, K, y, ridge, preconditioner, initial) -> None:
        self.K = matrix(K)
        n = self.K.shape[0]
        self.dtype = dtype_of(self.K, _check.real_array(y, "y").dtype)
        y = _check.targets(y, "y", n, self.dtype, least=1)
        self.shape = y.shape
        self.y = y.reshape(n, -1)
        self.ridge = _check.non_negative(ridge, "ridge")
        self.preconditioner = _check.preconditioner(preconditioner, "preconditioner")
        size = norms(self.y)
        self.scale = np.where(size > 0, size, 1.0)
        self.warm = initial is not None
        if initial is None:
            self.x = np.zeros_like(self.y)
        else:
            initial = _check.alike(initial, "initial", self.shape, "y", self.dtype)
            self.x = initial.reshape(self.y.shape).copy()

    def apply(self, x: Array) -> Array:
        """(K + ridge I) x."""
        out = _check.product(self.K @ x, x.shape, "K")
        return (out + self.ridge * x).astype(self.dtype, copy=False)

    def precondition(self, r: Array) -> Array:
        if self.preconditioner is None:
            return r
        return np.asarray(self.preconditioner.solve(r)).astype(self.dtype, copy=False)

    def first_residual(self) -> Array:
        return self.y - self.apply(self.x) if self.warm else self.y.copy()

    def largest(self) -> float:
        """A bound on the largest eigenvalue of P^-1 A, by Lanczos in the inner product of P.

        The largest Ritz value plus the norm of its residual: below the eigenvalue only where the
        start is next to orthogonal to its vector.
        """
        n = len(self.y)
        r = np.random.default_rng(0).standard_normal((n, 1)).astype(self.dtype)
        before, beta = np.zeros_like(r), 0.0
        on, off = [], []
        z = self.precondition(r)
        size = math.sqrt(max(0.0, float(dots(r, z)[0])))
        first = size
        for _ in range(min(LANCZOS, n)):
            if size <= 10 * np.finfo(self.dtype).eps * first:
                break
            off.append(size)
            r, z, beta = r / size, z / size, size if on else 0.0
            q = self.apply(z)
            on.append(float(dots(z, q)[0]))
            r, before = (q - on[-1] * r - beta * before).astype(self.dtype), r
            z = self.precondition(r)
            size = math.sqrt(max(0.0, float(dots(r, z)[0])))
        tridiagonal = np.diag(on) + np.diag(off[1:], 1) + np.diag(off[1:], -1)
        values, vectors = eigh(tridiagonal)
        return SAFE * float(max(abs(values[-1]) + size * abs(vectors[-1, -1]), abs(values[0])))


class Watch:
    """The history of a run: whether to go on, what to say at the end."""

    def __init__(self, name, system: System, tol, max_iter, callback, progress) -> None:
        self.name, self.system = name, system
        self.tol = _check.positive(tol, "tol")
        self.max_iter = _check.count(max_iter, "max_iter")
        self.callback = _check.optional_callable(callback, "callback")
        self.progress = Progress(name, self.max_iter, _check.flag(progress, "progress"))
        self.history: list[Array] = []
        self.given_up = np.zeros(self.system.y.shape[1], bool)
        self.stopped = False
        self.why = ""
        self.least = np.full(self.system.y.shape[1], np.inf)  # what residuals of ``best`` are below
        self.best = self.system.x.copy()

    @property
    def iteration(self) -> int:
        return len(self.history) - 1

    @property
    def residual(self) -> Array:
        return self.history[-1]

    @property
    def converged(self) -> Array:
        return self.residual <= self.tol

    def record(self, size: Array, drift: Array | float = 0.0) -> None:
        """The norms of all residuals after an iteration, and how far they may be off."""
        self.history.append(size / self.system.scale)
        bound = (size + drift) / self.system.scale
        better = bound < self.least
        self.least[better] = bound[better]
        self.best[:, better] = self.system.x[:, better]
        worst = self.residual.max(initial=0.0)
        self.progress.at(self.iteration, f"residual {worst:.2g}")
        if self.callback is not None:
            shape = self.system.shape
            values = self.residual.reshape(shape[1:])
            self.stopped = bool(self.callback(self.iteration, self.system.x.reshape(shape), values))

    def active(self) -> Array:
        """Columns to go on with; none at the end."""
        if self.stopped or self.iteration >= self.max_iter:
            return np.empty(0, np.intp)
        return np.flatnonzero(~self.converged & ~self.given_up)

    def give_up(self, columns: Array, why: str) -> None:
        if columns.any():
            self.given_up |= columns
            self.why = why

    def go_back(self, columns: Array) -> None:
        """To the best x on the way, with its residual; one more product does not matter now."""
        columns = columns & ~self.converged & (not self.stopped)
        if not columns.any():
            return
        x = self.best[:, columns]
        self.system.x[:, columns] = x
        left = norms(self.system.y[:, columns] - self.system.apply(x))
        self.history[-1][columns] = left / self.system.scale[columns]

    def solution(self, depth: int) -> Solution:
        """``depth``: calls between here and the user's line."""
        shape = self.system.shape
        missing = ~self.converged & (not self.stopped)
        if missing.any():
            which = "" if len(shape) == 1 else f" in {missing.sum()} of {len(missing)} columns"
            worst = self.residual[missing].max()
            why = self.why or "more iterations or a preconditioner would help"
            warnings.warn(
                f"{self.name} did not converge{which}: the relative residual is {worst:.3g} after "
                f"{self.iteration} iterations, the tolerance {self.tol:.3g}; {why}",
                RuntimeWarning,
                stacklevel=depth + 2,
            )
        return Solution(
            self.system.x.reshape(shape),
            np.array(self.history).reshape(-1, *shape[1:]),
            self.iteration,
            self.converged.reshape(shape[1:]),
        )


@formerly(x0="initial")
def conjugate_gradients(
    K,
    y,
    ridge: float = 0.0,
    *,
    preconditioner=None,
    initial=None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    callback: Callback | None = None,
    progress: bool = False,
) -> Solution:
    """Solve ``(K + ridge I) alpha = y`` by conjugate gradients.

    Parameters
    ----------
    K : array of shape (n, n), ``GramOperator``, LinearOperator, or anything with a shape and ``@``
        Symmetric positive semi-definite. A ``GramOperator`` computes kernel values in the first
        product and keeps those that memory holds.
    y : array of shape (n,) or (n, r)
        Each column is a system of its own. All is computed in the dtype of K, if it has one.
    ridge : float
        Added to the diagonal as it is.
    preconditioner : object with ``solve(r)``, optional
        Applies the inverse of an approximation of ``K + ridge I``, symmetric positive definite:
        ``nystrom_preconditioner``, ``eigenpro_preconditioner``, ``block_jacobi``.
    initial : array of the shape of y, optional
        Coefficients to start from; zero by default. Costs one product.
    tol : float
        A column is done when ``|y - (K + ridge I) alpha| <= tol |y|``.
    max_iter : int
        One product with K each.
    callback : callable, optional
        Called as ``callback(iteration, alpha, residual)`` with relative residuals, first with
        iteration 0. What it returns, if true, ends the run without a warning. alpha is not a copy.
    progress : bool
        A line on stderr every few seconds.

    Returns
    -------
    Solution
        ``alpha, residuals, iterations, converged``.

    Warns
    -----
    RuntimeWarning
        When a column has not converged; says how far it came. Its coefficients are then those with
        the least residual on the way, which are the initial ones where nothing was better.

    Notes
    -----
    The error in the norm of A falls by ``(sqrt(c) - 1)/(sqrt(c) + 1)`` per iteration or faster, c
    the condition of the preconditioned matrix; residuals need not fall each time. They follow a
    recurrence that drifts away from ``y - A alpha`` by some ``u |A| |alpha|`` per iteration, u the
    unit roundoff. Where this may be above ``tol``, or above the least residual so far, the residual
    is computed afresh and conjugate gradients start again; a column for which this no longer helps
    is given up.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> K = kc.Laplacian(1.0)(np.linspace(0, 1, 5)[:, None])
    >>> s = kc.solvers.conjugate_gradients(K, K @ np.ones(5))
    >>> s.alpha.round(6), bool(s.converged)
    (array([1., 1., 1., 1., 1.]), True)
    """
    system = System(K, y, ridge, preconditioner, initial)
    watch = Watch("conjugate_gradients", system, tol, max_iter, callback, progress)
    x, unit = system.x, float(np.finfo(system.dtype).eps) / 2
    limit = watch.tol * system.scale
    r = system.first_residual()
    size = norms(r)
    watch.record(size)
    p, rz = np.zeros_like(r), np.zeros(len(size))
    last = np.full(len(size), np.inf)  # residuals when they were last computed afresh
    drift, spread = np.zeros(len(size)), 0.0

    while len(on := watch.active()):
        z = system.precondition(r[:, on])
        new = dots(r[:, on], z)
        beta = np.divide(new, rz[on], out=np.zeros(len(on)), where=rz[on] > 0)
        rz[on] = new
        p[:, on] = z + beta.astype(system.dtype) * p[:, on]
        q = system.apply(p[:, on])
        length, curvature = norms(p[:, on]), dots(p[:, on], q)
        spread = max(spread, float(np.max(norms(q) / np.where(length > 0, length, 1.0))))
        # Along a direction with p'Ap <= 0 there is no minimum: K is indefinite, or all is rounding.
        fine = (curvature > 0) & (new > 0)
        failed = np.zeros(len(size), bool)
        failed[on[~fine]] = True
        alpha = np.divide(new, curvature, out=np.zeros(len(on)), where=fine)
        x[:, on] += alpha.astype(system.dtype) * p[:, on]
        r[:, on] -= alpha.astype(system.dtype) * q
        size[on] = norms(r[:, on])
        drift[on] += unit * (spread * norms(x[:, on]) + size[on])

        lost = drift > watch.least * system.scale  # nothing better can come of this recurrence
        afresh = np.flatnonzero(((size <= limit) & (drift > 0.1 * limit)) | lost)
        afresh = np.intersect1d(afresh, on)
        if len(afresh):
            back = np.flatnonzero(lost & (size > limit))
            x[:, back] = watch.best[:, back]
            r[:, afresh] = system.y[:, afresh] - system.apply(x[:, afresh])
            size[afresh] = norms(r[:, afresh])
            rz[afresh] = 0.0  # a new start
            drift[afresh] = 0.0
            stuck = np.zeros(len(size), bool)
            stuck[afresh] = (size[afresh] > limit[afresh]) & (size[afresh] > last[afresh] / 2)
            last[afresh] = size[afresh]
            watch.give_up(
                stuck,
                f"rounding in {system.dtype} allows no less, because K + ridge I is close to "
                "singular; a larger ridge would help",
            )
        watch.record(size.copy(), drift)
        watch.give_up(
            failed & ~watch.converged,
            f"K + ridge I is not positive definite in {system.dtype}; a larger ridge is needed",
        )
    watch.go_back(np.ones(len(size), bool))
    return watch.solution(2)


def _descend(system: System, watch: Watch, step: float, change) -> Solution:
    """``change(r, on)`` is added to the columns ``on``; residuals are computed from x each time."""
    x, y = system.x, system.y
    r = system.first_residual()
    size = norms(r)
    first = np.maximum(size, system.scale)
    watch.record(size)
    while len(on := watch.active()):
        x[:, on] += change(r[:, on], on)
        r[:, on] = y[:, on] - system.apply(x[:, on])
        size = size.copy()
        size[on] = norms(r[:, on])
        watch.record(size)
        watch.give_up(size > DIVERGED * first, f"it diverges with step {step:.3g}; pass a smaller")
    watch.go_back(watch.given_up)
    return watch.solution(3)


def _step(step, bound: Callable[[], float]) -> float:
    if step is not None:
        return _check.positive(step, "step")
    return 1 / _check.not_zero_matrix(bound())


@formerly(x0="initial")
def richardson(
    K,
    y,
    ridge: float = 0.0,
    *,
    preconditioner=None,
    step: float | None = None,
    initial=None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    callback: Callback | None = None,
    progress: bool = False,
) -> Solution:
    """Solve ``(K + ridge I) alpha = y`` by Richardson's iteration.

    With ``A = K + ridge I`` and a preconditioner P an iteration is
    ``alpha <- alpha + step P^-1 (y - A alpha)``.

    Parameters
    ----------
    K, y, ridge, preconditioner, initial, tol, max_iter, callback, progress
        See ``conjugate_gradients``.
    step : float, optional
        1 over an estimate from above of the largest eigenvalue of ``P^-1 A``, by default: 12
        products with K. It converges below twice that.

    Returns
    -------
    Solution
        Residuals are computed from alpha; without a preconditioner they never grow, up to rounding.

    Warns
    -----
    RuntimeWarning
        When a column has not converged; says how far it came.

    Notes
    -----
    With the loss ``|f - y|^2 / 2`` and ridge 0 this is gradient descent of ``f = k(., X) alpha``:
    the residual along an eigenvector falls by ``1 - step lambda`` per iteration.

    Examples
    --------
    >>> import kernelcore as kc
    >>> s = kc.solvers.richardson([[2.0, 1.0], [1.0, 2.0]], [3.0, 3.0], step=0.4)
    >>> s.alpha.round(5), s.residuals[:3].round(3)
    (array([1., 1.]), array([1.  , 0.2 , 0.04]))
    """
    system = System(K, y, ridge, preconditioner, initial)
    watch = Watch("richardson", system, tol, max_iter, callback, progress)
    step = _step(step, system.largest)
    return _descend(
        system, watch, step, lambda r, on: system.dtype.type(step) * system.precondition(r)
    )


@formerly(x0="initial")
def landweber(
    K,
    y,
    ridge: float = 0.0,
    *,
    step: float | None = None,
    initial=None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    callback: Callback | None = None,
    progress: bool = False,
) -> Solution:
    """Minimise ``|y - A alpha|^2 / 2``, ``A = K + ridge I``, by Landweber's iteration.

    It is ``alpha <- alpha + step A (y - A alpha)``.

    Parameters
    ----------
    K, y, ridge, initial, tol, max_iter, callback, progress
        See ``conjugate_gradients``; K is symmetric but need not be positive.
    step : float, optional
        1 over the square of an estimate from above of the largest ``|eigenvalue|`` of A by default.

    Returns
    -------
    Solution
        The residual never grows, up to rounding. Two products with K to an iteration.

    Warns
    -----
    RuntimeWarning
        When a column has not converged; says how far it came.

    Notes
    -----
    Condition numbers enter squared: ``gradient_descent`` is faster wherever it converges.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.solvers.landweber([[0.0, 1.0], [1.0, 0.0]], [1.0, 2.0]).alpha.round(5)
    array([2., 1.])
    """
    system = System(K, y, ridge, None, initial)
    watch = Watch("landweber", system, tol, max_iter, callback, progress)
    step = _step(step, lambda: system.largest() ** 2)
    return _descend(system, watch, step, lambda r, on: system.dtype.type(step) * system.apply(r))


@formerly(x0="initial")
def gradient_descent(
    K,
    y,
    ridge: float = 0.0,
    *,
    momentum: float | str = "nesterov",
    step: float | None = None,
    preconditioner=None,
    initial=None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    callback: Callback | None = None,
    progress: bool = False,
) -> Solution:
    """Solve ``A alpha = y``, ``A = K + ridge I``, by gradient descent with momentum.

    What descends is ``alpha'A alpha/2 - y'alpha``.

    Parameters
    ----------
    K, y, ridge, preconditioner, initial, tol, max_iter, callback, progress
        See ``conjugate_gradients``.
    momentum : "nesterov" or float in [0, 1)
        ``(1 - sqrt(q))/(1 + sqrt(q))`` with ``q = step ridge`` where the ridge is positive and
        there is no preconditioner, else Nesterov's growing sequence; or the constant of Polyak's
        heavy ball, 0 being ``richardson``.
    step : float, optional
        1 over an estimate from above of the largest eigenvalue, by default.

    Returns
    -------
    Solution
        With momentum residuals may grow for a while.

    Warns
    -----
    RuntimeWarning
        When a column has not converged; says how far it came.

    Notes
    -----
    Some ``sqrt(c) log(1/tol)`` iterations with c the condition number, ``c log(1/tol)`` without
    momentum. One product to an iteration.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> K = np.diag([1.0, 1e-3])
    >>> fast = kc.solvers.gradient_descent(K, [1.0, 1.0], 1e-3, max_iter=5000)
    >>> slow = kc.solvers.gradient_descent(K, [1.0, 1.0], 1e-3, momentum=0.0, max_iter=10000)
    >>> fast.iterations < slow.iterations / 10
    True
    """
    system = System(K, y, ridge, preconditioner, initial)
    watch = Watch("gradient_descent", system, tol, max_iter, callback, progress)
    if isinstance(momentum, str):
        _check.choice(momentum, "momentum", ("nesterov",))
        heavy = None
    else:
        heavy = _check.below_one(momentum, "momentum")
    step = _step(step, system.largest)
    length = system.dtype.type(step)
    q = min(1.0, step * system.ridge) if preconditioner is None else 0.0
    root = math.sqrt(q)
    moved, fallen = np.zeros_like(system.y), np.zeros_like(system.y)  # last changes of x and r
    before = np.zeros_like(system.y)

    def change(r: Array, on: Array) -> Array:
        if heavy is not None:
            weight = heavy
        elif root:
            weight = (1 - root) / (1 + root)
        else:
            weight = watch.iteration / (watch.iteration + 3)
        first = watch.iteration == 0
        fallen[:, on] = 0 if first else r - before[:, on]
        before[:, on] = r
        # Nesterov: the gradient where momentum leads. Residuals are linear in x: no product more.
        ahead = r if heavy is not None else r + system.dtype.type(weight) * fallen[:, on]
        new = length * system.precondition(ahead) + system.dtype.type(weight) * moved[:, on]
        moved[:, on] = new
        return new

    return _descend(system, watch, step, change)


def largest_eigenvalue(K, ridge: float = 0.0, *, preconditioner=None) -> float:
    """An estimate from above of the largest eigenvalue of ``K + ridge I``, by 12 Lanczos steps.

    Parameters
    ----------
    K, ridge, preconditioner
        See ``conjugate_gradients``. With a preconditioner P: the largest eigenvalue of
        ``P^-1 (K + ridge I)``.

    Returns
    -------
    float
        The largest Ritz value plus the norm of its residual, times 1.05: what 1/step is by default.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> round(kc.solvers.largest_eigenvalue(np.diag([3.0, 1.0])), 6)
    3.15
    """
    K = matrix(K)
    y = np.zeros(K.shape[0], dtype_of(K))
    return System(K, y, ridge, preconditioner, None).largest()
