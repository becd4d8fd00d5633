"""All ridges at once.

With K = V diag(lambda) V' and G = (K + ridge I)^-1 the fit is alpha = G y, its residual ridge alpha
and the hat matrix H = I - ridge G. Leave-one-out residuals r_i/(1 - H_ii) are alpha_i/G_ii, without
the differences that cancel at small ridge, and generalised cross-validation |r|^2/n over
(tr(I - H)/n)^2 is n |alpha|^2/(tr G)^2. At ridge 0 with a null space, whose projection is P, both
are limits: ridge G tends to P, so they are (P y)_i/P_ii and n |P y|^2/(tr P)^2.

Weights w with S = diag(sqrt(w)) turn K into S K S and y into S y, and alpha into S^-1 alpha. A
point may stand for m copies, by default as many as its weight. Leave-one-out leaves out one copy,
or the whole point if m < 1. Without the share c = min(1, 1/m) of its weight the residual r of a
point becomes r/(1 - c H_ii), and each further copy adds one to the number of samples and log(ridge)
to the logarithm of the determinant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from .. import _check
from .._types import Array, ArrayLike
from ..linalg import namespace_of
from ..linalg.arrays import (
    averaged,
    cast,
    copied,
    eps_of,
    numbers,
    on_diagonal,
    placed,
    put,
    reshaped,
    summed,
    take,
    total,
)
from ..linalg.blas import row_blocks
from ..scale.matrix import across, whole
from ._eigen import Eigen, each_product, scratch

Cost = Callable[[ArrayLike], Array]

PER_DECADE = 4
"""The ridges per decade that ``best`` tries before it refines."""
WIDTH = 1e-4
"""The width in the logarithm of the ridge to which ``best`` refines."""


def weighted(K: Array, y: Array, weights: Array) -> tuple[Array, Array]:
    """Return ``S K S``, in place of K, and ``S y``, where S has the roots of the weights."""
    xp = namespace_of(weights)
    root = cast(xp.sqrt(weights), K.dtype)
    K *= root
    K *= root[:, None]
    return K, y * reshaped(root, (-1, *[1] * (y.ndim - 1)))


def without_a_copy(residuals: Array, share: Array, copies: Array | None) -> Array:
    """Turn residuals of points that are left out whole into those without one copy of each.

    ``share`` is ``1 - H_ii``; both have the shape (..., n, r), or 1 in the place of r.
    """
    if copies is None:
        return residuals
    xp = namespace_of(copies)
    one = xp.minimum(1 / copies, 1.0)[:, None]
    rest = xp.where(one < 1, one * share + 1 - one, 1.0)
    return residuals * xp.where(one < 1, share / rest, 1.0)


class RidgePath:
    """Kernel ridge regression at any ridge, from one eigendecomposition.

    Every method takes one ridge or an array of ridges, whose shape comes first in that of the
    result.

    Parameters
    ----------
    K : array of shape (n, n), float32 or float64, or operator, of which the array is made
        Symmetric positive semi-definite, up to ``sqrt(eps)`` times its largest entry or eigenvalue.
    y : array of shape (n,) or (n, r)
    sample_weight : array of shape (n,), optional
        Positive weights of the squared errors: ``(K + ridge W^-1) alpha = y``, where ``W`` has the
        weights on its diagonal.
    copies : array of shape (n,), optional
        Positive numbers of samples that the points stand for when one sample is left out or all are
        counted. By default these are the weights, so that a weight of 2 is the same as two samples.
    overwrite_K : bool
        Work in K itself, which must be contiguous and writable, instead of a copy.

    Attributes
    ----------
    eigenvalues : array of shape (n,), float64
        The eigenvalues of K, or of ``W^(1/2) K W^(1/2)``, largest first; zero where they are not
        resolved, at ``cutoff`` or below.
    eigenvectors : array of shape (n, n)
        Their eigenvectors, in columns.
    cutoff : float
        ``max(sqrt(n) eps largest, -smallest)``, the error of eigenvalues in the dtype of K.

    Notes
    -----
    The decomposition takes about 9 n^3 flops in the dtype of K, and scratch of two more arrays;
    then each ridge takes 2 n^2 r. Along eigenvectors whose eigenvalue is at most ``cutoff`` a
    positive ridge counts as ``cutoff`` at least, because a smaller one would multiply rounding
    errors, and at ridge 0 they are left out. So coefficients at any ridge are those of
    ``K + E + ridge I`` with ``|E|`` of the order of ``cutoff``, as with ``solvers.ridge``.

    LAPACK decomposes K in one call, which cannot be interrupted: Ctrl-C acts when it is done.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> x = np.linspace(-1, 1, 30)[:, None]
    >>> y = np.sin(3 * x[:, 0]) + np.tile([0.2, -0.3, 0.1], 10)
    >>> path = kc.solvers.RidgePath(kc.Gaussian(1.0)(x), y)
    >>> path.loo_error([1e-6, 0.01, 1.0]).round(3)
    array([0.092, 0.067, 0.203])
    >>> ridge = path.best("loo")
    >>> print(f"{ridge:.3f} {path.loo_error(ridge):.3f} {path.degrees_of_freedom(ridge):.2f}")
    0.006 0.066 4.44
    >>> path.alpha(ridge).shape
    (30,)
    """

    def __init__(
        self, K: Any, y: ArrayLike, *,
        sample_weight: ArrayLike | None = None, copies: ArrayLike | None = None,
        overwrite_K: bool = False,
    ) -> None:  # fmt: skip
        overwrite = _check.flag(overwrite_K, "overwrite_K")
        remedies = ("float32",) if overwrite else ("overwrite_K=True", "float32")
        K, overwrite = whole(K, overwrite=overwrite, beside=scratch, remedies=remedies)
        xp, self.n = namespace_of(K), K.shape[0]
        y = _check.targets(y, "y", self.n, K.dtype, least=1, like=K)
        self._shape, self._dtype, self._eps = y.shape, K.dtype, eps_of(K)
        self._weights = _check.positive_weights(sample_weight, "sample_weight", self.n, K)
        self._copies = _check.positive_weights(copies, "copies", self.n, K)
        if self._copies is None:
            self._copies = self._weights
        if self._weights is not None:
            K, y = weighted(K if overwrite else copied(K), y, self._weights)
            overwrite = True
        self._trace = total(on_diagonal(K))
        self._eigen = Eigen(K, overwrite=overwrite)
        self._along = self._eigen.project(y)
        self.eigenvalues = copied(xp.flip(self._eigen.resolved))
        self.cutoff = self._eigen.cutoff
        # The number of points, with their copies.
        self._samples: float = self.n
        if self._copies is not None:
            self._samples = total(xp.maximum(self._copies, 1.0))

    @property
    def _xp(self) -> Any:
        return self._eigen.xp

    @property
    def eigenvectors(self) -> Array:
        return self._xp.flip(self._eigen.vectors, axis=1)

    def _ridges(self, ridge: ArrayLike) -> tuple[Array, tuple[int, ...]]:
        ridges = _check.amounts(ridge, "ridge")
        return ridges.reshape(-1), ridges.shape

    def _expand(self, weights: Array, shape: tuple[int, ...], power: float) -> Array:
        """Return sums of eigenvectors times a power of the points' weights: ridges + y."""
        out = self._eigen.expand(weights, self._along)
        if self._weights is not None:
            out *= cast(self._weights**power, out.dtype)[:, None]
        return reshaped(out, shape + self._shape)

    def alpha(self, ridge: ArrayLike) -> Array:
        """Return coefficients ``(K + ridge W^-1)^-1 y``, of shape ridge.shape + y.shape.

        At ridge 0 they are those of the pseudo-inverse.
        """
        ridges, shape = self._ridges(ridge)
        return _check.coefficients_within(self._expand(self._eigen.inverses(ridges), shape, 0.5))

    def predict(self, K_test: Any, ridge: ArrayLike) -> Array:
        """Return predictions ``K_test @ alpha(ridge)`` on other points.

        ``K_test``, an array of shape (m, n) or an operator, has ``k(x, X)`` of the other points
        with those of the path. The result has the shape ridge.shape + (m,) or + (m, r).
        """
        K_test = across(K_test, "K_test", self.n, self._dtype, like=self._along)
        return each_product(K_test, self.alpha(ridge), len(self._shape))

    def fitted(self, ridge: ArrayLike) -> Array:
        """Return predictions on the training points, ``K alpha``: ridge.shape + y.shape."""
        ridges, shape = self._ridges(ridge)
        return self._expand(self._eigen.values * self._eigen.inverses(ridges), shape, -0.5)

    def _leading(self, ridges: Array) -> Array:
        """Return ``1/(lambda + ridge)`` up to a factor that is the same along a row.

        In a row with infinite ones these are one and all others zero.
        """
        weights = self._eigen.inverses(ridges)
        if self._eigen.null:
            null = cast(self._eigen.resolved == 0, np.float64)
            weights = self._xp.where(placed(ridges == 0, weights)[:, None], null, weights)
        return weights

    def loo(self, ridge: ArrayLike) -> Array:
        """Return leave-one-out residuals, of shape ridge.shape + y.shape.

        A residual is ``y_i`` less what a fit without point i predicts there. At ridge 0 the fit is
        the limit from above: the interpolant of the other points with the least norm.
        """
        ridges, shape = self._ridges(ridge)
        out = self._left_out(ridges)
        if self._weights is not None:
            out /= self._xp.sqrt(self._weights)[:, None]
        return reshaped(cast(out, self._dtype), shape + self._shape)

    def _left_out(self, ridges: Array) -> Array:
        """Return leave-one-out residuals times the roots of weights: (ridges, n, r)."""
        xp, weights = self._xp, self._leading(ridges)
        size = self._eigen.diagonals(weights)
        share = np.where(ridges > 0, ridges, float(self._eigen.null > 0))
        share = placed(share, size)[:, None] * size
        left = self._eigen.expand(weights, self._along)
        at = np.flatnonzero((ridges == 0) & (self._eigen.null > 0))
        if len(at):
            # The null space does not touch these points: rounding mixes in less than sqrt(eps).
            apart = take(size, at) <= math.sqrt(self._eps)
            weights = self._eigen.inverses(ridges[at])
            size = put(size, at, xp.where(apart, self._eigen.diagonals(weights), take(size, at)))
            plain = self._eigen.expand(weights, self._along)
            left = put(left, at, xp.where(apart[:, :, None], plain, take(left, at)))
            share = put(share, at, xp.where(apart, 0.0, take(share, at)))
        return without_a_copy(left / size[:, :, None], share[:, :, None], self._copies)

    def loo_error(self, ridge: ArrayLike) -> Array:
        """Return the mean of squared leave-one-out residuals over points and outputs."""
        ridges, shape = self._ridges(ridge)
        square = summed(averaged(self._left_out(ridges) ** 2, 2), 1)
        number = self.n if self._weights is None else total(self._weights)
        return reshaped(square / number, shape)

    def gcv(self, ridge: ArrayLike) -> Array:
        """Return generalised cross-validation: the mean squared residual over ``(1 - dof/n)^2``.

        It is a mean over outputs and estimates the same as ``loo_error``.
        """
        ridges, shape = self._ridges(ridge)
        xp, weights = self._xp, self._leading(ridges)
        power, copies = averaged(self._along**2, 1), self._samples - self.n
        trace = summed(weights, 1)
        if copies:  # each adds 1 to the trace of ridge G
            more = copies / np.where(ridges > 0, ridges, 1.0 if self._eigen.null else np.nan)
            trace += placed(more, trace)
            trace = xp.where(xp.isnan(trace), np.inf, trace)
        return reshaped(self._samples * (weights**2 @ power) / trace**2, shape)

    def log_marginal_likelihood(self, ridge: ArrayLike, gradient: bool = False) -> Any:
        """Return that of y under a Gaussian process with covariance K and noise of variance ridge.

        Parameters
        ----------
        ridge : array_like
            Positive where K is singular.
        gradient : bool
            Return the derivative with respect to the ridge, too; times the ridge it is that with
            respect to its logarithm.

        Returns
        -------
        array of shape ridge.shape, or two of them
            ``-1/2 y' G y + 1/2 log det G - n/2 log(2 pi)`` with ``G = (K + ridge I)^-1``, summed
            over outputs, which are independent.
        """
        gradient = _check.flag(gradient, "gradient")
        ridges, shape = self._ridges(ridge)
        _check.regular(self._eigen.null, ridges)
        xp, weights = self._xp, self._eigen.inverses(ridges)
        power, outputs = summed(self._along**2, 1), self._along.shape[1]
        copies = self._samples - self.n
        if copies:
            _check.regular(max(1, round(copies)), ridges)
        spread = summed(xp.log(weights), 1) - self._samples * math.log(2 * math.pi)
        if self._weights is not None and self._copies is not None:
            # the noise of a copy is the ridge over its weight
            number = xp.maximum(self._copies, 1.0)
            spread += xp.log(self._weights / number) @ number
        if copies:
            spread -= placed(copies * np.log(ridges), spread)
        value = reshaped((outputs * spread - weights @ power) / 2, shape)
        if not gradient:
            return value
        slope = (weights**2 @ power - outputs * summed(weights, 1)) / 2
        if copies:
            slope -= placed(outputs * copies / (2 * ridges), slope)
        return value, reshaped(slope, shape)

    def degrees_of_freedom(self, ridge: ArrayLike) -> Array:
        """Return the trace of the hat matrix, ``sum lambda/(lambda + ridge)``."""
        ridges, shape = self._ridges(ridge)
        return reshaped(self._eigen.inverses(ridges) @ self._eigen.values, shape)

    def rkhs_norm(self, ridge: ArrayLike) -> Array:
        """Return the norm of the fit in the RKHS, ``sqrt(alpha' K alpha)``, for each output.

        At ridge 0 it is ``sqrt(y' K^-1 y)``. The shape is ridge.shape or ridge.shape + (r,).
        """
        ridges, shape = self._ridges(ridge)
        square = (self._eigen.inverses(ridges) ** 2 * self._eigen.values) @ self._along**2
        return reshaped(self._xp.sqrt(square), shape + self._shape[1:])

    def best(self, criterion: str = "loo", ridges: ArrayLike | None = None) -> float:
        """Return the ridge that a criterion prefers.

        Parameters
        ----------
        criterion : 'loo', 'gcv' or 'likelihood'
            The least ``loo_error`` or ``gcv``, or the largest ``log_marginal_likelihood``.
        ridges : array_like, optional
            Positive ridges to choose from. By default there are four per decade from ``eps`` times
            the trace, or ``cutoff`` where some eigenvalues are not resolved, to ten times the
            trace, and a bounded search between the neighbours of the best one refines it to 1e-4
            of the logarithm.
        """
        criteria: dict[str, Cost] = {
            "loo": self.loo_error,
            "gcv": self.gcv,
            "likelihood": lambda ridge: -self.log_marginal_likelihood(ridge),
        }
        cost = criteria[_check.choice(criterion, "criterion", tuple(criteria))]
        if ridges is not None:
            given = _check.amounts(ridges, "ridges", zero=False).reshape(-1)
            _check.some(given, "ridges")
            return float(given[np.argmin(self._each(cost, given))])
        trace = self._trace or float(self.n)
        low, high = max(self._eps * trace, np.finfo(np.float64).tiny), 10 * trace
        if self._eigen.null:
            low = min(max(low, self._eigen.cutoff), high)
        # Powers of 10^(1/4): the same ones for all data, so that equal criteria choose equally.
        first, last = (PER_DECADE * math.log10(x) for x in (low, high))
        grid = 10.0 ** (np.arange(math.ceil(first), max(math.ceil(first), last) + 1) / PER_DECADE)
        at = int(np.argmin(self._each(cost, grid)))
        if at in (0, len(grid) - 1):
            return float(grid[at])
        middle = float(grid[at])
        found = minimize_scalar(
            lambda log: float(cost(math.exp(log))), method="bounded", options={"xatol": WIDTH},
            bounds=(math.log(grid[at - 1]), math.log(grid[at + 1])),
        )  # fmt: skip
        return math.exp(found.x) if found.fun < float(cost(middle)) else middle

    def _each(self, cost: Cost, ridges: Array) -> Array:
        """Compute costs in blocks, lest residuals at many ridges take as much memory as K."""
        most = max(1, self.n // (4 * self._along.shape[1]))
        return np.concatenate(
            [numbers(cost(ridges[part])) for part in row_blocks(len(ridges), most)]
        )
