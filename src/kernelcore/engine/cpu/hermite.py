"""Hermite coefficients of an activation at given standard deviations.

``phi(sd z) = sum_n a_n(sd) h_n(z)`` with ``h_n = He_n / sqrt(n!)``, orthonormal under the normal
law. A polynomial has finitely many coefficients, exact up to rounding; those of other functions are
found by quadrature, until the rest is negligible.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _check
from ..._types import Array
from . import dense

MOST = 2048
"""The largest number of coefficients."""
AT_ONCE = 512
"""The number of rows in one quadrature: their values take 7 MB or more."""
_REACH = 13.0  # exp(-13^2/2) = 2e-37
_EPS = float(np.finfo(float).eps)


def of_powers(coefficients: tuple[float, ...], sd: Array) -> Array:
    """Return the coefficients of ``sum_k c_k x^k``, shape (degree + 1, len(sd)).

    z^k = sum_j k! / (2^j j! (k-2j)!) He_(k-2j), in extended precision because terms of unlike
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
    """Return the coefficients of ``sum_k c_k He_k(x)``.

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
    """Return h_n(z) exp(-z^2/4), n < count, shape (count, len(z)); it is bounded: no overflow."""
    h = np.empty((count, len(z)))
    h[0] = np.exp(-z * z / 4)
    if count > 1:
        h[1] = z * h[0]
    for n in range(2, count):
        h[n] = (z * h[n - 1] - math.sqrt(n - 1) * h[n - 2]) / math.sqrt(n)
    return h


def by_quadrature(
    fn: Callable[[Any], Any], sd: Array, tolerance: float, n_threads: int
) -> tuple[Array, Array, Array]:
    """Return the coefficients of any function, the variance of the result, and the duals' errors.

    Returns
    -------
    a : array of shape (count, len(sd))
        Where the series had to be cut, the last two stand for the rest of the even and of the odd
        part, so that ``sum a_n^2`` is still the variance.
    variance : array of shape (len(sd),)
        ``E[phi(sd z)^2]``.
    error : array of shape (2, len(sd))
        Errors of the dual relative to ``E[phi^2]``, and of the derivative's dual relative to
        ``E[phi'^2]``, for two rows of this sd; for two unlike rows about their geometric mean.

    Notes
    -----
    The trapezoidal rule on the line converges geometrically for a function analytic in a strip
    about it: phi with its nearest singularity at distance p off the axis leaves an error of
    ``exp(-2 pi p / (sd h))``, which the step h = 2^-6 brings below rounding for sd <= 8 and p >= 1;
    h is halved as sd doubles. Functions with kinks converge slowly: ``OneKink`` is for those.

    ``error`` is an estimate. The rest of a cut series follows the power law of the last octave of
    its coefficients, ``a_n^2 ~ n^-p``: exact for a function with a kink, too much for a smooth one.
    The rest is put at the two orders N where the series ends, so that the dual is off where ``u^N``
    is about 1/e, by ``1/(e (p - 1))`` of the rest, and the derivative's dual by ``1/(p - 2)`` of
    what the rest adds there. The error of the rule is its difference from a rule of twice the step;
    the error of its reach is the size of the integrand at its ends.

    All results of a row depend on its sd alone, not on the other rows.
    """
    if len(sd) == 0:
        return np.zeros((1, 0)), np.zeros(0), np.zeros((2, 0))
    unique, inverse = np.unique(sd, return_inverse=True)
    steps = np.select(
        [unique <= 8, unique <= 16, unique <= 32], [2.0**-6, 2.0**-7, 2.0**-8], 2.0**-9
    )
    parts = [
        _one_step(fn, rows, h, tolerance, n_threads)
        for h in np.unique(steps)[::-1]
        for rows in np.array_split(unique[steps == h], -(-np.sum(steps == h) // AT_ONCE))
    ]
    count = max((len(a) for a, _, _ in parts), default=1)
    shape = (count, 2 * len(unique) + len(sd))
    _check.room("tables of numerical duals", shape, np.float64, 1, ("fewer points",))
    a = np.concatenate([np.pad(a, ((0, count - len(a)), (0, 0))) for a, _, _ in parts], axis=1)
    variance, error = (np.concatenate([part[k] for part in parts], axis=-1) for k in (1, 2))
    return a[:, inverse], variance[inverse], error[:, inverse]


def _one_step(
    fn: Callable[[Any], Any], sd: Array, step: float, tolerance: float, n_threads: int
) -> tuple[Array, Array, Array]:
    """Do ``by_quadrature`` for rows that share a step."""
    z = np.arange(-round(_REACH / step), round(_REACH / step) + 1) * step
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        values = np.asarray(fn(sd[:, None] * z), np.float64)
    _check.one_per_entry(values, (len(sd), len(z)))
    if not np.isfinite(values).all():
        raise ValueError("fn must be finite on the real line: got a non-finite value")
    root = math.sqrt(step / math.sqrt(2 * math.pi))
    weighted = values * np.exp(-z * z / 4) * root
    even, odd = (weighted + weighted[:, ::-1]) / 2, (weighted - weighted[:, ::-1]) / 2
    with np.errstate(over="ignore"):
        energy = np.stack([(even**2).sum(1), (odd**2).sum(1)])
    variance = energy.sum(0)
    beyond = _beyond(weighted, variance, step)
    _check.converges(beyond, sd, _REACH)
    # Rounding leaves coefficients of 1e-16; those below twice the tolerance, at least 4e-16, become
    # zero, each by its own size: the other rows of the batch do not matter.
    least = max(2 * _EPS, 2 * tolerance) * np.sqrt(variance)
    count = 64
    while True:
        a = dense.product(_functions(z, count) * root, weighted, n_threads)
        matters = np.abs(a) > least
        tail = energy - np.stack([(a[0::2] ** 2).sum(0), (a[1::2] ** 2).sum(0)])
        tail = np.where(tail > max(64 * _EPS, tolerance) * variance, tail, 0.0)
        # A function that oscillates has large coefficients after small ones: there is a tail then.
        if count >= MOST or not (matters[count // 2 :].any() or tail.any()):
            break
        count = min(4 * count, MOST)
    half = slice(len(z) // 2 % 2, None, 2)
    rule = np.ascontiguousarray(weighted[:, half])
    coarse = dense.product(_functions(z[half], 64) * (2 * root), rule, n_threads)
    apart = np.abs(coarse * coarse - a[:64] ** 2)
    change = np.maximum(apart.sum(0), np.abs(2 * (rule**2).sum(1) - variance))
    error = _errors(a, tail.sum(0), apart, change, beyond, variance)
    a[~matters] = 0.0
    if tail.any():
        a = np.concatenate([a, np.sqrt(tail)])
    else:
        a = a[: int(np.flatnonzero(matters.any(1)).max(initial=0)) + 1]
    return np.ascontiguousarray(a), variance, error


def _beyond(weighted: Array, variance: Array, step: float) -> Array:
    """Return the integral of phi^2 beyond the reach, over the integral within.

    It is infinite or NaN where the integrand does not fall at its ends, or the integral overflows.
    """
    unit = round(1 / step)
    found = np.where(np.isfinite(variance), 0.0, np.inf)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for side in (weighted, weighted[:, ::-1]):
            # The largest value within half a unit is taken: a zero of phi may lie anywhere.
            last, before = (np.square(side[:, k : k + unit // 2]).max(1) for k in (0, unit))
            there = last > 64 * _EPS * variance
            fall = np.log(before[there] / last[there])
            found[there] += last[there] * unit / np.maximum(fall, 0.0) / variance[there]
    return found


def _errors(
    a: Array, tail: Array, apart: Array, change: Array, beyond: Array, variance: Array
) -> Array:
    """Return the estimates of ``by_quadrature``.

    ``apart`` is the difference of the first squares from those at twice the step, and ``change``
    the most by which this changes the dual.
    """
    count = len(a)
    n = np.arange(count)[:, None]
    square = a * a
    slope = (n * square).sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 1 + np.log2(1 + square[count // 2 :].sum(0) / tail)
        value = np.where(tail > 0, tail / np.maximum(math.e * (p - 1), 2.0), 0.0)
        lost = np.where(tail > 0, count * tail / np.maximum(p - 2, 0.0), 0.0)
        # An integrand that is cut off has a jump there, and its series a tail; the derivative's has
        # about the square of the reach times as much beyond.
        cut_off = tail <= 4 * beyond * variance
        lost = np.where(cut_off, _REACH**2 * beyond * slope, lost)
        # Rounding of a large mean is no error of the slope, however small that is.
        lost += np.where(change > 64 * _EPS * variance, (n[: len(apart)] * apart).sum(0), 0.0)
        error = np.stack(
            [
                (value + change) / variance,
                # Relative to the slope with what is lost, which is all of it where infinite.
                np.where(np.isposinf(lost), 1.0, lost / (slope + lost)),
            ]
        )
    error = np.where(error > 64 * _EPS, error, 0.0)  # NaN, of a function that is zero, is none
    error[0] += beyond
    return error
