"""Systems (K + ridge I) alpha = y for any K that multiplies.

Let A = K + ridge I, r = y - A alpha, and P a preconditioner. An iteration takes one product with K:

    richardson            alpha <- alpha + step P^-1 r
    gradient_descent      the same with momentum (Nesterov 1983, Polyak 1964)
    landweber             alpha <- alpha + step A r, two products: converges for indefinite K, too
    conjugate_gradients   the best of the space that these steps span (Hestenes and Stiefel 1952)

Each column of y is a system of its own. They share the products; a converged one drops out.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._keywords import former_attribute, formerly
from .._types import Array, ArrayLike
from ..engine.progress import Progress
from ..linalg import arrays as _arrays
from ..linalg import eigh, namespace_of
from ..linalg.arrays import (
    add,
    cast,
    copied,
    eps_of,
    numbers,
    placed,
    put,
    reshaped,
    take,
    zeros,
)
from ..scale.matrix import dtype_of, home, matrix

Callback = Callable[[int, Array, Array], object]

LANCZOS = 12
"""The products for an estimate of the largest eigenvalue."""
SAFE = 1.05
"""The factor by which the estimate is raised."""
DIVERGED = 1e6
"""A residual this many times the first one shows that the step is too long."""


class Solution(NamedTuple):
    """The result of an iterative solver; made by ``conjugate_gradients`` and others.

    Attributes
    ----------
    alpha : array of the shape of y
        Coefficients: predictions are ``k(x, X) alpha``.
    residuals : array of shape (iterations + 1,) or (iterations + 1, r)
        ``|y - (K + ridge I) alpha| / |y|`` before the first iteration and after each; absolute for
        a column of zeros. A column that has converged keeps its last value.
    iterations : int
        The number of iterations that were made.
    converged : array of shape () or (r,), bool
        Whether the residual of a column is at most ``tol``.
    """

    alpha: Array
    residuals: Array
    iterations: int
    converged: Array


Solution.x = former_attribute("x", "alpha")  # type: ignore[attr-defined]  # it is no field


def dots(a: Array, b: Array) -> Array:
    """Return the inner products of columns, in float64 and on the host."""
    return numbers(_arrays.dots(a, b))


def norms(a: Array) -> Array:
    return np.sqrt(dots(a, a))


class Run:
    """A system on its way to a solution: its history, whether to go on, what to say at the end.

    Columns are arrays of the library of K, or of y where K does not tell. What there is one number
    of per column, such as ``size``, is NumPy's.
    """

    def __init__(
        self, name: str, K: Any, y: Any, ridge: Any, preconditioner: Any = None,
        initial: Any = None, tol: Any = 1.0, max_iter: Any = 0, callback: Any = None,
        progress: Any = False,
    ) -> None:  # fmt: skip
        self.K: Any = matrix(K)
        n = self.K.shape[0]
        like = home(self.K, y)
        own = self.K.dtype
        if own is None:
            own = _check.array(y, "y").dtype
        y = _check.targets(y, "y", n, own, least=1, like=like)
        self.xp, self.dtype = namespace_of(y), y.dtype
        self.shape, self.y = y.shape, reshaped(y, (n, -1))
        self.ridge = _check.non_negative(ridge, "ridge")
        self.preconditioner = _check.preconditioner(preconditioner, "preconditioner")
        size = norms(self.y)
        self.scale = np.where(size > 0, size, 1.0)
        self.warm = initial is not None
        self.x = self.xp.zeros_like(self.y)
        if initial is not None:
            initial = _check.alike(initial, "initial", self.shape, "y", self.dtype, self.y, "y")
            self.x = copied(reshaped(initial, self.y.shape))
        self.name, self.tol = name, _check.positive(tol, "tol")
        self.max_iter = _check.count(max_iter, "max_iter")
        self.callback = _check.optional_callable(callback, "callback")
        self.progress = Progress(name, self.max_iter, _check.flag(progress, "progress"))
        self.history: list[Array] = []
        self.given_up = np.zeros(self.y.shape[1], bool)
        self.stopped, self.why = False, ""
        self.least = np.full(self.y.shape[1], np.inf)  # a bound on the residuals of ``best``
        self.best = copied(self.x)

    def apply(self, x: Array) -> Array:
        """Return ``(K + ridge I) x``."""
        out = _check.product(self.K @ x, x.shape, "K")
        return cast(out + self.ridge * x, self.dtype)

    def precondition(self, r: Array) -> Array:
        if self.preconditioner is None:
            return r
        found = self.preconditioner.solve(r)
        return cast(np.asarray(found) if self.xp is np else found, self.dtype)

    def row(self, values: Array) -> Array:
        """Return numbers of columns, to multiply columns by."""
        return placed(values, self.y)

    def largest(self) -> float:
        """Bound the largest eigenvalue of P^-1 A, by Lanczos in the inner product of P.

        The largest Ritz value plus the norm of its residual is below the eigenvalue only where the
        start is nearly orthogonal to its vector.
        """
        n = self.y.shape[0]
        r = placed(np.random.default_rng(0).standard_normal((n, 1)), self.y)
        before, beta = self.xp.zeros_like(r), 0.0
        on: list[float] = []
        off: list[float] = []
        z = self.precondition(r)
        first = size = math.sqrt(max(0.0, float(dots(r, z)[0])))
        for _ in range(min(LANCZOS, n)):
            if size <= 10 * eps_of(self.y) * first:
                break
            off.append(size)
            r, z, beta = r / size, z / size, size if on else 0.0
            q = self.apply(z)
            on.append(float(dots(z, q)[0]))
            r, before = cast(q - on[-1] * r - beta * before, self.dtype), r
            z = self.precondition(r)
            size = math.sqrt(max(0.0, float(dots(r, z)[0])))
        tridiagonal = np.diag(on) + np.diag(off[1:], 1) + np.diag(off[1:], -1)
        values, vectors = eigh(tridiagonal)
        return SAFE * float(max(abs(values[-1]) + size * abs(vectors[-1, -1]), abs(values[0])))

    @property
    def iteration(self) -> int:
        return len(self.history) - 1

    @property
    def alpha(self) -> Array:
        return reshaped(self.x, self.shape)

    @property
    def converged(self) -> Array:
        return self.history[-1] <= self.tol

    def begin(self) -> tuple[Array, Array]:
        """Record the first residuals, and return them and their norms."""
        r = self.y - self.apply(self.x) if self.warm else copied(self.y)
        size = norms(r)
        self.record(size)
        return r, size

    def record(self, size: Array, drift: Array | float = 0.0) -> None:
        """Record the norms of all residuals after an iteration, and how far they may be off."""
        residual = size / self.scale
        self.history.append(residual)
        bound = (size + drift) / self.scale
        better = bound < self.least
        self.least[better] = bound[better]
        self.best = put(self.best, better, take(self.x, better, 1), 1)
        self.progress.at(self.iteration, f"residual {residual.max(initial=0.0):.2g}")
        if self.callback is not None:
            x, residual = self.alpha, residual.reshape(self.shape[1:])
            self.stopped = bool(self.callback(self.iteration, x, residual))

    def active(self) -> Array:
        """Return the columns to go on with; none at the end."""
        if self.stopped or self.iteration >= self.max_iter:
            return np.empty(0, np.intp)
        return np.flatnonzero(~self.converged & ~self.given_up)

    def give_up(self, columns: Array, why: str) -> None:
        if columns.any():
            self.given_up |= columns
            self.why = why

    def go_back(self, columns: Array) -> None:
        """Return to the best x so far, with its residual; one more product does not matter now."""
        columns = columns & ~self.converged & (not self.stopped)
        if not columns.any():
            return
        x = take(self.best, columns, 1)
        self.x = put(self.x, columns, x, 1)
        left = norms(take(self.y, columns, 1) - self.apply(x))
        self.history[-1][columns] = left / self.scale[columns]

    def step(self, step: float | None, power: int = 1) -> float:
        """Return a checked step, or by default one over a power of the largest eigenvalue."""
        if step is not None:
            return _check.positive(step, "step")
        return 1 / _check.not_zero_matrix(self.largest() ** power)

    def descend(self, step: float, change: Callable[[Array, Array], Array]) -> Solution:
        """Add ``change(r, on)`` to the columns ``on`` each time, and compute residuals from x."""
        r, size = self.begin()
        first = np.maximum(size, self.scale)
        while len(on := self.active()):
            self.x = add(self.x, on, change(take(r, on, 1), on), 1)
            r = put(r, on, take(self.y, on, 1) - self.apply(take(self.x, on, 1)), 1)
            size[on] = norms(take(r, on, 1))
            self.record(size)
            why = f"it diverges with step {step:.3g}; pass a smaller"
            self.give_up(size > DIVERGED * first, why)
        self.go_back(self.given_up)
        return self.solution(stacklevel=5)

    def solution(self, stacklevel: int = 4) -> Solution:
        """Return what was found; a warning points to the user's line, ``stacklevel`` calls up."""
        missing = ~self.converged & (not self.stopped)
        if missing.any():
            several = len(self.shape) > 1
            which = f" in {missing.sum()} of {len(missing)} columns" if several else ""
            worst = self.history[-1][missing].max()
            why = self.why or "more iterations or a preconditioner would help"
            warnings.warn(
                f"{self.name} did not converge{which}: the relative residual is {worst:.3g} after "
                f"{self.iteration} iterations, the tolerance {self.tol:.3g}; {why}",
                RuntimeWarning,
                stacklevel=stacklevel,
            )
        columns = self.shape[1:]
        residuals = np.array(self.history).reshape(-1, *columns)
        return Solution(self.alpha, residuals, self.iteration, self.converged.reshape(columns))


@formerly(x0="initial")
def conjugate_gradients(
    K: Any, y: ArrayLike, ridge: float = 0.0, *,
    preconditioner: Any = None, initial: ArrayLike | None = None, tol: float = 1e-6,
    max_iter: int = 1000, callback: Callback | None = None, progress: bool = False,
) -> Solution:  # fmt: skip
    """Solve ``(K + ridge I) alpha = y`` by conjugate gradients.

    Parameters
    ----------
    K : array of shape (n, n), ``GramOperator``, LinearOperator, or anything with a shape and ``@``
        Symmetric positive semi-definite. A ``GramOperator`` computes kernel values in the first
        product and keeps those that memory holds.
    y : array of shape (n,) or (n, r)
        Each column is a system of its own. The dtype of all work is that of K, if it has one.
    ridge : float
        Added to the diagonal as it is.
    preconditioner : object with ``solve(r)``, optional
        Applies the inverse of an approximation of ``K + ridge I``, symmetric positive definite:
        ``nystrom_preconditioner``, ``eigenpro_preconditioner``, ``block_jacobi``.
    initial : array of the shape of y, optional
        Coefficients to start from, at the cost of one product; zero by default.
    tol : float
        A column is done when ``|y - (K + ridge I) alpha| <= tol |y|``.
    max_iter : int
        The iterations to make at most, each with one product with K.
    callback : callable, optional
        Called as ``callback(iteration, alpha, residual)`` with relative residuals, first with
        iteration 0. A true return value ends the run without a warning. alpha is not a copy.
    progress : bool
        Write a line to stderr every two seconds.

    Returns
    -------
    Solution
        ``alpha, residuals, iterations, converged``.

    Warns
    -----
    RuntimeWarning
        When a column has not converged, with its residual. Its coefficients are then those with the
        least residual on the way, which are the initial ones if no others were better.

    Notes
    -----
    The error in the norm of ``A = K + ridge I`` falls by ``(sqrt(c) - 1)/(sqrt(c) + 1)`` per
    iteration or faster, where c is the condition of the preconditioned matrix; residuals need not
    fall each time. They follow a recurrence that drifts away from ``y - A alpha`` by about
    ``u |A| |alpha|`` per iteration, where u is the unit roundoff. When the drift may be above
    ``tol``, or above the least residual so far, the residual is computed afresh and conjugate
    gradients start again; a column for which this no longer helps is given up.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> K = kc.Laplacian(1.0)(np.linspace(0, 1, 5)[:, None])
    >>> s = kc.solvers.conjugate_gradients(K, K @ np.ones(5))
    >>> s.alpha.round(6), bool(s.converged)
    (array([1., 1., 1., 1., 1.]), True)
    """
    options = (tol, max_iter, callback, progress)
    run = Run("conjugate_gradients", K, y, ridge, preconditioner, initial, *options)
    unit, limit = eps_of(run.y) / 2, run.tol * run.scale
    r, size = run.begin()
    p, rz = run.xp.zeros_like(r), np.zeros(len(size))
    last = np.full(len(size), np.inf)  # residuals when they were last computed afresh
    drift, spread = np.zeros(len(size)), 0.0

    while len(on := run.active()):
        z = run.precondition(take(r, on, 1))
        new = dots(take(r, on, 1), z)
        beta = np.divide(new, rz[on], out=np.zeros(len(on)), where=rz[on] > 0)
        rz[on] = new
        p = put(p, on, z + run.row(beta) * take(p, on, 1), 1)
        q = run.apply(take(p, on, 1))
        length, curvature = norms(take(p, on, 1)), dots(take(p, on, 1), q)
        spread = max(spread, float(np.max(norms(q) / np.where(length > 0, length, 1.0))))
        # Along a direction with p'Ap <= 0 there is no minimum: K is indefinite, or all is rounding.
        fine = (curvature > 0) & (new > 0)
        failed = np.zeros(len(size), bool)
        failed[on[~fine]] = True
        alpha = run.row(np.divide(new, curvature, out=np.zeros(len(on)), where=fine))
        run.x = add(run.x, on, alpha * take(p, on, 1), 1)
        r = put(r, on, take(r, on, 1) - alpha * q, 1)
        size[on] = norms(take(r, on, 1))
        drift[on] += unit * (spread * norms(take(run.x, on, 1)) + size[on])

        lost = drift > run.least * run.scale  # this recurrence cannot lead to anything better
        afresh = np.flatnonzero(((size <= limit) & (drift > 0.1 * limit)) | lost)
        afresh = np.intersect1d(afresh, on)
        if len(afresh):
            back = np.flatnonzero(lost & (size > limit))
            run.x = put(run.x, back, take(run.best, back, 1), 1)
            left = take(run.y, afresh, 1) - run.apply(take(run.x, afresh, 1))
            r = put(r, afresh, left, 1)
            size[afresh] = norms(take(r, afresh, 1))
            rz[afresh] = drift[afresh] = 0.0  # a new start
            stuck = np.zeros(len(size), bool)
            stuck[afresh] = (size[afresh] > limit[afresh]) & (size[afresh] > last[afresh] / 2)
            last[afresh] = size[afresh]
            run.give_up(
                stuck,
                f"rounding in {_check.dtype_name(run.dtype)} allows no less, because K + ridge I "
                "is close to singular; a larger ridge would help",
            )
        run.record(size, drift)
        run.give_up(
            failed & ~run.converged,
            f"K + ridge I is not positive definite in {_check.dtype_name(run.dtype)}; a larger "
            "ridge is needed",
        )
    run.go_back(np.ones(len(size), bool))
    return run.solution()


@formerly(x0="initial")
def richardson(
    K: Any, y: ArrayLike, ridge: float = 0.0, *,
    preconditioner: Any = None, step: float | None = None, initial: ArrayLike | None = None,
    tol: float = 1e-6, max_iter: int = 1000, callback: Callback | None = None,
    progress: bool = False,
) -> Solution:  # fmt: skip
    """Solve ``(K + ridge I) alpha = y`` by Richardson's iteration.

    With ``A = K + ridge I`` and a preconditioner P it is
    ``alpha <- alpha + step P^-1 (y - A alpha)``.

    Parameters
    ----------
    K, y, ridge, preconditioner, initial, tol, max_iter, callback, progress
        See ``conjugate_gradients``.
    step : float, optional
        By default 1 over an estimate from above of the largest eigenvalue of ``P^-1 A``, which
        takes 12 products with K. The iteration converges for steps below twice that.

    Returns
    -------
    Solution
        Residuals are computed from alpha; without a preconditioner they never grow, up to rounding.
        A ``RuntimeWarning`` gives the residual of a column that has not converged.

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
    run = Run("richardson", K, y, ridge, preconditioner, initial, tol, max_iter, callback, progress)
    step = run.step(step)
    return run.descend(step, lambda r, on: step * run.precondition(r))


@formerly(x0="initial")
def landweber(
    K: Any, y: ArrayLike, ridge: float = 0.0, *,
    step: float | None = None, initial: ArrayLike | None = None, tol: float = 1e-6,
    max_iter: int = 1000, callback: Callback | None = None, progress: bool = False,
) -> Solution:  # fmt: skip
    """Minimise ``|y - A alpha|^2 / 2``, ``A = K + ridge I``, by Landweber's iteration.

    It is ``alpha <- alpha + step A (y - A alpha)``.

    Parameters
    ----------
    K, y, ridge, initial, tol, max_iter, callback, progress
        See ``conjugate_gradients``; K is symmetric but need not be positive.
    step : float, optional
        By default 1 over the square of an estimate from above of the largest ``|eigenvalue|`` of A.

    Returns
    -------
    Solution
        The residual never grows, up to rounding. A ``RuntimeWarning`` gives that of a column that
        has not converged.

    Notes
    -----
    An iteration takes two products with K, and condition numbers enter squared:
    ``gradient_descent`` is faster wherever it converges.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.solvers.landweber([[0.0, 1.0], [1.0, 0.0]], [1.0, 2.0]).alpha.round(5)
    array([2., 1.])
    """
    run = Run("landweber", K, y, ridge, None, initial, tol, max_iter, callback, progress)
    step = run.step(step, power=2)
    return run.descend(step, lambda r, on: step * run.apply(r))


@formerly(x0="initial")
def gradient_descent(
    K: Any, y: ArrayLike, ridge: float = 0.0, *,
    momentum: float | str = "nesterov", step: float | None = None, preconditioner: Any = None,
    initial: ArrayLike | None = None, tol: float = 1e-6, max_iter: int = 1000,
    callback: Callback | None = None, progress: bool = False,
) -> Solution:  # fmt: skip
    """Solve ``A alpha = y``, ``A = K + ridge I``, by gradient descent with momentum.

    It descends on ``alpha'A alpha/2 - y'alpha``.

    Parameters
    ----------
    K, y, ridge, preconditioner, initial, tol, max_iter, callback, progress
        See ``conjugate_gradients``.
    momentum : "nesterov" or float in [0, 1)
        Nesterov's momentum is ``(1 - sqrt(q))/(1 + sqrt(q))`` with ``q = step ridge`` if the ridge
        is positive and there is no preconditioner, else his growing sequence. A number is the
        constant of Polyak's heavy ball; 0 makes this ``richardson``.
    step : float, optional
        As in ``richardson``.

    Returns
    -------
    Solution
        With momentum residuals may grow for a while. A ``RuntimeWarning`` gives that of a column
        that has not converged.

    Notes
    -----
    It takes about ``sqrt(c) log(1/tol)`` iterations, where c is the condition number, and
    ``c log(1/tol)`` without momentum. An iteration takes one product.

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
    options = (tol, max_iter, callback, progress)
    run = Run("gradient_descent", K, y, ridge, preconditioner, initial, *options)
    if isinstance(momentum, str):
        _check.choice(momentum, "momentum", ("nesterov",))
        heavy = None
    else:
        heavy = _check.below_one(momentum, "momentum")
    step = run.step(step)
    root = math.sqrt(min(1.0, step * run.ridge)) if preconditioner is None else 0.0
    # the last change of x, the last r
    moved, before = run.xp.zeros_like(run.y), run.xp.zeros_like(run.y)

    def change(r: Array, on: Array) -> Array:
        nonlocal moved, before
        ahead = r
        if heavy is not None:
            weight = heavy
        else:
            k = run.iteration
            weight = (1 - root) / (1 + root) if root else k / (k + 3)
            if k:
                # The gradient where momentum leads: residuals are linear in x, so that no further
                # product is needed.
                ahead = r + weight * (r - take(before, on, 1))
            before = put(before, on, r, 1)
        new = step * run.precondition(ahead) + weight * take(moved, on, 1)
        moved = put(moved, on, new, 1)
        return new

    return run.descend(step, change)


def largest_eigenvalue(K: Any, ridge: float = 0.0, *, preconditioner: Any = None) -> float:
    """Estimate the largest eigenvalue of ``K + ridge I`` from above, by 12 Lanczos steps.

    Parameters
    ----------
    K, ridge, preconditioner
        See ``conjugate_gradients``. With a preconditioner P the estimate is that of
        ``P^-1 (K + ridge I)``.

    Returns
    -------
    float
        The largest Ritz value plus the norm of its residual, times 1.05; 1/step by default.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> round(kc.solvers.largest_eigenvalue(np.diag([3.0, 1.0])), 6)
    3.15
    """
    K = matrix(K)
    y = zeros((K.shape[0],), home(K, np.empty(0)), dtype_of(K))
    return Run("largest_eigenvalue", K, y, ridge, preconditioner).largest()
