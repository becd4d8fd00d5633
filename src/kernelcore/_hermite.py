"""Hermite coefficients of an activation at given standard deviations.

``phi(sd z) = sum_n a_n(sd) h_n(z)`` with ``h_n = He_n / sqrt(n!)``, orthonormal under the normal
law. Polynomials have finitely many, computed exactly up to rounding; other functions get them by
quadrature, as many as it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from . import _dense, _threads

Array = np.ndarray

MOST = 2048
"""Largest number of coefficients."""
AT_ONCE = 512
"""Rows whose quadrature is done together: their values take 7 MB or more."""
_REACH = 13.0  # exp(-13^2/2) = 2e-37


def of_powers(coefficients: tuple[float, ...], sd: Array) -> Array:
    """Coefficients of ``sum_k c_k x^k``, shape (degree + 1, len(sd)).

    z^k = sum_j k! / (2^j j! (k-2j)!) He_(k-2j); in extended precision, because terms of unlike
    sign may cancel.
    """
    s = sd.astype(np.longdouble)
    a = np.zeros((len(coefficients), len(s)), np.longdouble)
    for k, c in enumerate(coefficients):
        power = np.longdouble(c) * s**k
        for j in range(k // 2 + 1):
            n = k - 2 * j
            weight = math.factorial(k) // math.factorial(n) // math.factorial(j)
            a[n] += power * (np.longdouble(weight) / np.longdouble(2**j)) * _root_factorial(n)
    return a.astype(np.float64)


def of_hermites(coefficients: tuple[float, ...], sd: Array) -> Array:
    """Coefficients of ``sum_k c_k He_k(x)``.

    He_k(s z) = sum_j C(k, 2j) (2j-1)!! s^(k-2j) (s^2-1)^j He_(k-2j)(z): no cancellation at s = 1.
    """
    s = sd.astype(np.longdouble)
    gap = (s - 1) * (s + 1)
    a = np.zeros((len(coefficients), len(s)), np.longdouble)
    for k, c in enumerate(coefficients):
        for j in range(k // 2 + 1):
            n = k - 2 * j
            weight = math.comb(k, 2 * j) * math.factorial(2 * j) // (2**j * math.factorial(j))
            a[n] += np.longdouble(c) * np.longdouble(weight) * s**n * gap**j * _root_factorial(n)
    return a.astype(np.float64)


def _root_factorial(n: int) -> np.longdouble:
    return np.sqrt(np.prod(np.arange(1, n + 1, dtype=np.longdouble)))


def _functions(z: Array, count: int) -> Array:
    """h_n(z) exp(-z^2/4) for n < count, shape (count, len(z)): bounded, so nothing overflows."""
    h = np.empty((count, len(z)))
    h[0] = np.exp(-z * z / 4)
    if count > 1:
        h[1] = z * h[0]
    for n in range(2, count):
        h[n] = (z * h[n - 1] - math.sqrt(n - 1) * h[n - 2]) / math.sqrt(n)
    return h


def by_quadrature(fn: Callable, sd: Array, tolerance: float) -> tuple[Array, Array, Array]:
    """Coefficients of any function, with the variance of the result and what was cut.

    Returns
    -------
    a : array of shape (count, len(sd))
        Where the series had to be cut, the last two stand for what is left of the even and of the
        odd part, so that ``sum a_n^2`` is the variance all the same.
    variance : array of shape (len(sd),)
        ``E[phi(sd z)^2]``.
    cut : array of shape (len(sd),)
        (tail + error of the quadrature) / variance: of two rows the dual is off by at most the
        geometric mean of their ``cut`` times that of their variances.

    Notes
    -----
    The trapezoidal rule on the line converges geometrically for a function analytic in a strip
    about it: phi with its nearest singularity at distance p off the axis leaves an error of
    ``exp(-2 pi p / (sd h))``, which the step h = 2^-6 brings below rounding for sd <= 8 and p >= 1;
    it is halved as sd doubles. Functions with kinks converge slowly: ``OneKink`` is for those.

    Everything of a row depends on its sd alone, not on the other rows.
    """
    if len(sd) == 0:
        return np.zeros((1, 0)), np.zeros(0), np.zeros(0)
    unique, inverse = np.unique(sd, return_inverse=True)
    steps = np.select(
        [unique <= 8, unique <= 16, unique <= 32], [2.0**-6, 2.0**-7, 2.0**-8], 2.0**-9
    )
    parts = [
        _one_step(fn, rows, h, tolerance)
        for h in np.unique(steps)[::-1]
        for rows in np.array_split(unique[steps == h], -(-np.sum(steps == h) // AT_ONCE))
    ]
    count = max((len(a) for a, _, _ in parts), default=1)
    a = np.concatenate([np.pad(a, ((0, count - len(a)), (0, 0))) for a, _, _ in parts], axis=1)
    variance, cut = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    return a[:, inverse], variance[inverse], cut[inverse]


def _one_step(fn: Callable, sd: Array, step: float, tolerance: float):
    """``by_quadrature`` for rows that share a step."""
    z = np.arange(-round(_REACH / step), round(_REACH / step) + 1) * step
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        values = np.asarray(fn(sd[:, None] * z), np.float64)
    if values.shape != (len(sd), len(z)):
        raise ValueError(
            f"fn must return one value per entry: got shape {values.shape} for input of shape "
            f"{(len(sd), len(z))}"
        )
    if not np.isfinite(values).all():
        raise ValueError("fn must be finite on the real line: got a non-finite value")
    root = math.sqrt(step / math.sqrt(2 * math.pi))
    weighted = values * np.exp(-z * z / 4) * root
    even, odd = (weighted + weighted[:, ::-1]) / 2, (weighted - weighted[:, ::-1]) / 2
    energy = np.stack([(even**2).sum(1), (odd**2).sum(1)])
    variance = energy.sum(0)
    # Rounding leaves coefficients of 1e-16; those below twice the tolerance, at least 4e-16, become
    # zero, each by itself: what else is in the batch decides nothing.
    least = max(2 * np.finfo(float).eps, 2 * tolerance) * np.sqrt(variance)
    count = 64
    while True:
        a = _dense.product(_functions(z, count) * root, weighted, _threads.resolve(None))
        matters = np.abs(a) > least
        if count >= MOST or not matters[count // 2 :].any():
            break
        count = min(4 * count, MOST)
    tail = energy - np.stack([(a[0::2] ** 2).sum(0), (a[1::2] ** 2).sum(0)])
    tail = np.where(tail > 64 * np.finfo(float).eps * variance, tail, 0.0)
    # Twice the step gives the same coefficients for a smooth function; at a kink they are off by
    # four times the error.
    half = slice(len(z) // 2 % 2, None, 2)
    coarse = 2 * (_functions(z[half], 64) * root) @ weighted[:, half].T
    rule = 2 * np.sqrt(((coarse - a[:64]) ** 2).sum(0) * variance)
    rule = np.where(rule > 64 * np.finfo(float).eps * variance, rule, 0.0)
    cut = np.divide(tail.sum(0) + rule, variance, out=np.zeros_like(variance), where=variance > 0)
    a[~matters] = 0.0
    if tail.any():
        a = np.concatenate([a, np.sqrt(tail)])
    else:
        a = a[: int(np.flatnonzero(matters.any(1)).max(initial=0)) + 1]
    return np.ascontiguousarray(a), variance, cut
