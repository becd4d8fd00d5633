"""Functions on the sphere by degree: Legendre polynomials, projections, random harmonics."""

from __future__ import annotations

import itertools
import math

import numpy as np

from .. import _check, _keywords
from .._types import Array, ArrayLike
from ..engine.progress import Progress
from ..linalg import norm
from ._sphere import log_multiplicities, multiplicity, polynomials

CENTRES = 2000  # zonal functions in a random harmonic, at most, unless asked for more


def legendre(dim: int, max_degree: int, t: ArrayLike) -> Array:
    """Return ``P_k(t)`` for k = 0 .. max_degree: an array with the shape of t behind that axis.

    ``P_k(1) = 1``. These are Chebyshev polynomials in two dimensions, Legendre polynomials in
    three, and Gegenbauer polynomials in more.

    Parameters
    ----------
    dim, max_degree : int
    t : array_like
        In [-1, 1].

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.spectrum.legendre(3, 2, [0.0, 0.5])
    array([[ 1.   ,  1.   ],
           [ 0.   ,  0.5  ],
           [-0.5  , -0.125]])
    """
    dim = _check.count(dim, "dim", least=2)
    max_degree = _check.count(max_degree, "max_degree")
    t = _check.cosines(t, "t")
    shape = (max_degree + 1, *t.shape)
    p = _check.fresh(shape, np.float64, "all degrees", ("fewer of them",))
    for k, values in zip(range(max_degree + 1), polynomials(dim, t), strict=False):
        p[k] = values
    return p


def degree_power(
    X: ArrayLike, y: ArrayLike, max_degree: int, *, progress: bool = False
) -> tuple[Array, Array]:
    """Estimate the power (mean square) of a function in each degree, from values at random points.

    Parameters
    ----------
    X : array of shape (n, dim)
        Points that are uniform on a sphere; only their directions matter.
    y : array of shape (n,)
        The values of the function there.
    max_degree : int
    progress : bool
        Whether to write a line to stderr every two seconds.

    Returns
    -------
    power, error : arrays of shape (max_degree + 1,)
        ``N(dim, k)`` times the mean of ``y_i y_j P_k(<x_i, x_j>)`` over pairs i != j, and its
        standard error. The estimate has no bias, so a small power may come out negative.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 3))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> power, error = kc.spectrum.degree_power(X, X[:, 0] * X[:, 1], 3)
    >>> np.abs(power - [0, 0, 1 / 15, 0]) < 4 * error
    array([ True,  True,  True,  True])
    """
    x = _directions(X, "X")
    y = _values(y, len(x))
    max_degree = _check.count(max_degree, "max_degree")
    n, dim = x.shape
    if n < 3:
        raise ValueError(f"X must have at least three rows: got {n}")
    told = Progress("degree_power, rows", n, _check.flag(progress, "progress"))
    times = np.exp(log_multiplicities(dim, max_degree))
    sums, squares = np.zeros((max_degree + 1, n)), np.zeros(max_degree + 1)
    for rows in range(0, n, 256):
        t = np.clip(x[rows : rows + 256] @ x.T, -1, 1)
        i = np.arange(len(t))
        for k, p in zip(range(max_degree + 1), polynomials(dim, t), strict=False):
            h = p * y * y[rows : rows + 256, None]
            h[i, rows + i] = 0.0
            sums[k, rows : rows + 256] = h.sum(1)
            squares[k] += (h * h).sum()
        told.at(min(rows + 256, n))
    mean = sums.sum(1) / (n * (n - 1))
    # The variance of a U-statistic of order two, from its first two projections (Hoeffding 1948).
    first = np.maximum(((sums / (n - 1)).var(1, ddof=1) - squares / (n * (n - 1)) / (n - 1)), 0)
    second = np.maximum(squares / (n * (n - 1)) - mean**2 - 2 * first, 0)
    return times * mean, times * np.sqrt(4 * first / n + 2 * second / (n * (n - 1)))


def projection(X: ArrayLike, y: ArrayLike, degree: int, Z: ArrayLike) -> Array:
    """Estimate the part of one degree of a function at points Z, from values at random points X.

    The estimate is ``N(dim, k)`` times the mean of ``y_i P_k(<x_i, z>)``. It has no bias, and a
    variance of about ``N(dim, k) / n`` times the mean square of y.

    Parameters
    ----------
    X : array of shape (n, dim)
        Points that are uniform on a sphere; only the directions of X and Z matter.
    y : array of shape (n,)
    degree : int
    Z : array of shape (m, dim)

    Returns
    -------
    array of shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.random.default_rng(0).standard_normal((100_000, 3))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> y = 1 + X[:, 0] + X[:, 1] * X[:, 2]
    >>> linear = kc.spectrum.projection(X, y, 1, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> np.abs(linear - [1, 0]) < 0.05
    array([ True,  True])
    """
    x = _check.some_rows(_directions(X, "X"), "X")
    dim, z = x.shape[1], _directions(Z, "Z", x.shape[1])
    y, degree = _values(y, len(x)), _check.count(degree, "degree")
    out = np.empty(len(z))
    times = math.exp(log_multiplicities(dim, degree)[degree])
    for rows in range(0, len(z), 64):
        p = _legendre(dim, degree, np.clip(z[rows : rows + 64] @ x.T, -1, 1))
        out[rows : rows + 64] = times * (p @ y) / len(x)
    return out


def _legendre(dim: int, degree: int, t: Array) -> Array:
    return next(itertools.islice(polynomials(dim, t), degree, None))


class RandomFunction:
    """A random function on the sphere with a given power in each degree, exactly.

    Parameters
    ----------
    dim : int, at least 2
    target_power : sequence of float
        The mean square of the function's part of degree 0, 1, ..
    seed : int, numpy.random.Generator or None
    centres : int, optional
        The part of each degree is a Gaussian combination of this many zonal functions
        ``P_k(<x, w>)`` with random w, scaled to its power; by default N(dim, k) of them, at most
        2000. With N(dim, k) or more, every harmonic of the degree is possible.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> f = kc.spectrum.RandomFunction(10, [0.0, 0.0, 1.0], seed=0)
    >>> X = np.random.default_rng(1).standard_normal((100_000, 10))
    >>> y = f(X)
    >>> bool(abs((y**2).mean() - 1) < 0.02), bool(abs(y.mean()) < 0.02)
    (True, True)
    """

    @_keywords.synonyms(rng="seed")
    def __init__(
        self,
        dim: int,
        target_power: ArrayLike,
        seed: int | np.random.Generator | None = None,
        centres: int | None = None,
    ) -> None:
        self.dim = _check.count(dim, "dim", least=2)
        self.target_power = power = _check.power_by_degree(target_power, "target_power")
        centres = CENTRES if centres is None else _check.count(centres, "centres", least=1)
        rng = _check.generator(seed, "seed")
        self._parts = []
        for k, wanted in enumerate(power):
            if wanted == 0:
                continue
            count = min(multiplicity(self.dim, k), centres)
            _check.room("pairs of centres", (count, count), np.float64, 4, ("fewer centres",))
            w = rng.standard_normal((count, self.dim))
            w /= norm(w, axis=1, keepdims=True)
            c = rng.standard_normal(count)
            # E[P_k(<x, v>) P_k(<x, w>)] = P_k(<v, w>)/N
            square = c @ _legendre(self.dim, k, np.clip(w @ w.T, -1, 1)) @ c
            own = math.exp(log_multiplicities(self.dim, k)[k]) / square
            self._parts.append((k, w, c * math.sqrt(wanted * own)))

    def __repr__(self) -> str:
        return f"RandomFunction({self.dim}, {self.target_power.tolist()})"

    def __call__(self, X: ArrayLike) -> Array:
        """Evaluate the function at the directions of the rows of X: shape (n,), float64."""
        x = _directions(X, "X", self.dim)
        y = np.zeros(len(x))
        for rows in range(0, len(x), 1024):
            part = x[rows : rows + 1024]
            for k, w, c in self._parts:
                y[rows : rows + 1024] += _legendre(self.dim, k, np.clip(part @ w.T, -1, 1)) @ c
        return y


def _directions(X: ArrayLike, name: str, dim: int | None = None) -> Array:
    x = np.asarray(_check.rows(X, name), np.float64)
    size = norm(x, axis=1, keepdims=True)
    bad = np.flatnonzero(~((size[:, 0] > 0) & np.isfinite(size[:, 0])))
    if len(bad):
        raise ValueError(f"{name} must have rows of finite, positive norm: row {bad[0]} has not")
    if dim not in (None, x.shape[1]):
        raise ValueError(f"{name} must have {dim} columns: got shape {x.shape}")
    return x / size


def _values(y: ArrayLike, n: int) -> Array:
    y = _check.finite_array(y, "y")
    if y.shape != (n,):
        raise ValueError(f"y must have one value per row of X, {n}: got shape {y.shape}")
    return y
