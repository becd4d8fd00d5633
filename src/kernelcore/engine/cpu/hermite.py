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
from . import dense, ladder

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
    return _by_steps(lambda rows, h: _one_step(fn, rows, h, tolerance, n_threads), sd, 9)


def on_ladder(
    fn: Callable[[Any], Any], sd: Array, each: int, n_threads: int
) -> tuple[Array, Array, Array]:
    """Do ``by_quadrature`` for the orders of ``ladder`` alone, each times the root of its weight.

    The series then ends at order ``8 / h^2``, of which the cut leaves little.
    """
    return _by_steps(lambda rows, h: _one_ladder(fn, rows, h, each, n_threads), sd, 10)


def _by_steps(
    one: Callable[[Array, float], tuple[Array, Array, Array]], sd: Array, finest: int
) -> tuple[Array, Array, Array]:
    """Join the results of ``one`` for all rows, by the step that their sd asks for."""
    if len(sd) == 0:
        return np.zeros((1, 0)), np.zeros(0), np.zeros((2, 0))
    unique, inverse = np.unique(sd, return_inverse=True)
    powers = np.minimum(3 + np.ceil(np.log2(np.maximum(unique, 8.0))), finest)
    parts = []
    for power in np.unique(powers):
        rows, h = unique[powers == power], 0.5 ** float(power)
        most = int(AT_ONCE * h * 64)
        parts += [one(some, h) for some in np.array_split(rows, -(-len(rows) // most))]
    count = max((len(a) for a, _, _ in parts), default=1)
    shape = (count, 2 * len(unique) + len(sd))
    _check.room("tables of numerical duals", shape, np.float64, 1, ("fewer points",))
    a = np.concatenate([np.pad(a, ((0, count - len(a)), (0, 0))) for a, _, _ in parts], axis=1)
    variance, error = (np.concatenate([part[k] for part in parts], axis=-1) for k in (1, 2))
    return a[:, inverse], variance[inverse], error[:, inverse]


class _Values:
    """A function on the nodes of the trapezoidal rule, with the root of the weight."""

    def __init__(self, fn: Callable[[Any], Any], sd: Array, step: float) -> None:
        half = round(_REACH / step)
        self.step, self.root = step, math.sqrt(step / math.sqrt(2 * math.pi))
        self.z = z = np.arange(-half, half + 1) * step
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            values = np.asarray(fn(sd[:, None] * z), np.float64)
        _check.one_per_entry(values, (len(sd), len(z)))
        if not np.isfinite(values).all():
            raise ValueError("fn must be finite on the real line: got a non-finite value")
        self.weighted = weighted = values * np.exp(-z * z / 4) * self.root
        even, odd = (weighted + weighted[:, ::-1]) / 2, (weighted - weighted[:, ::-1]) / 2
        with np.errstate(over="ignore"):
            self.energy = np.stack([(even**2).sum(1), (odd**2).sum(1)])
        self.variance = self.energy.sum(0)
        self.beyond = _beyond(weighted, self.variance, step)
        _check.converges(self.beyond, sd, _REACH)
        # By symmetry the sums over the nodes z >= 0 are halves of those over all.
        self.halves = [2 * even[:, half:], 2 * odd[:, half:]]
        self.halves[0][:, 0] /= 2

    def change(self, a: Array, n_threads: int) -> tuple[Array, Array]:
        """Return by how much the first squares differ at twice the step, and the most it does."""
        half = slice(len(self.z) // 2 % 2, None, 2)
        rule = np.ascontiguousarray(self.weighted[:, half])
        functions = _functions(self.z[half], len(a)) * (2 * self.root)
        apart = np.abs(dense.product(functions, rule, n_threads) ** 2 - a * a)
        most = np.abs(2 * (rule**2).sum(1) - self.variance)
        return apart, np.maximum(apart.sum(0), most)


def _one_step(
    fn: Callable[[Any], Any], sd: Array, step: float, tolerance: float, n_threads: int
) -> tuple[Array, Array, Array]:
    """Do ``by_quadrature`` for rows that share a step."""
    v = _Values(fn, sd, step)
    variance = v.variance
    # Rounding leaves coefficients of 1e-16; those below twice the tolerance, at least 4e-16, become
    # zero, each by its own size: the other rows of the batch do not matter.
    least = max(2 * _EPS, 2 * tolerance) * np.sqrt(variance)
    count = 64
    while True:
        a = dense.product(_functions(v.z, count) * v.root, v.weighted, n_threads)
        matters = np.abs(a) > least
        tail = v.energy - np.stack([(a[0::2] ** 2).sum(0), (a[1::2] ** 2).sum(0)])
        tail = np.where(tail > max(64 * _EPS, tolerance) * variance, tail, 0.0)
        # A function that oscillates has large coefficients after small ones: there is a tail then.
        if count >= MOST or not (matters[count // 2 :].any() or tail.any()):
            break
        count = min(4 * count, MOST)
    last = (a[count // 2 :] ** 2).sum(0)
    apart, change = v.change(a[:64], n_threads)
    error = _errors(a, np.arange(count), last, tail.sum(0), apart, change, v.beyond, variance)
    a[~matters] = 0.0
    if tail.any():
        a = np.concatenate([a, np.sqrt(tail)])
    else:
        a = a[: int(np.flatnonzero(matters.any(1)).max(initial=0)) + 1]
    return np.ascontiguousarray(a), variance, error


def _one_ladder(
    fn: Callable[[Any], Any], sd: Array, step: float, each: int, n_threads: int
) -> tuple[Array, Array, Array]:
    """Do ``on_ladder`` for rows that share a step."""
    v = _Values(fn, sd, step)
    variance, octaves = v.variance, ladder.octaves_of(step)
    orders, weights = ladder.orders(octaves), ladder.weights(octaves)
    a = np.empty((len(orders), len(sd)))
    for parity, functions in enumerate(ladder.functions(step, _REACH)):
        a[parity::2] = dense.product(functions, v.halves[parity] * v.root, n_threads)
    square = a * a
    tail = v.energy - np.stack([square[0::2].sum(0), square[1::2].sum(0)])
    last = square[-2 * ladder.EACH :].sum(0)
    # A series that is cut has large terms in its last octave; else the orders are too few.
    cut = (tail > 64 * _EPS * variance) & (last > 0.1 * np.abs(tail).sum(0))
    missed = np.where(cut, 0.0, np.abs(tail)).sum(0)
    missed = np.where(missed > 1e-12 * variance, missed, 0.0)
    tail = np.where(cut, tail, 0.0)
    n = ladder.first(ladder.EACH)
    apart, change = v.change(a[:n] / np.sqrt(weights[:n, None]), n_threads)
    error = _errors(a, orders, last, tail.sum(0), apart, change, v.beyond, variance)
    error += np.divide(missed, variance, out=np.zeros_like(missed), where=variance > 0)
    # A rule that is too coarse for this sd is wrong in the last octave, to which slopes are owed.
    slopes = orders[:, None] * square
    most = slopes.sum(0)
    share = np.divide(slopes[-2 * ladder.EACH :].sum(0), most, out=0 * most, where=most > 0)
    seen = (share > 1e-12) & (last > 1e-20 * variance)  # rounding leaves 1e-25
    error[1] = np.minimum(error[1] + np.where(seen, share, 0.0), 1.0)
    a[np.abs(a) <= 2 * _EPS * np.sqrt(weights[:, None] * variance)] = 0.0
    if each != ladder.EACH:
        octaves = ladder.octaves_of(step, each)
        chosen = np.searchsorted(orders, ladder.orders(octaves, each))
        a = a[chosen] * np.sqrt(ladder.weights(octaves, each) / weights[chosen])[:, None]
    a[-2:] = np.sqrt(a[-2:] ** 2 + tail)
    return a, variance, error


def climbs(fn: Callable[[Any], Any], n_threads: int) -> bool:
    """Return whether ``ladder`` sums the series of a function, at every sd that is tried.

    Kinks do not pass, of whose high orders a rule knows little, nor does what oscillates.
    """
    step, octaves = 2.0**-7, 4
    sds, tried = 2.0 ** np.arange(-2, 6), []
    for sd in sds:
        try:
            tried.append(_Values(fn, np.array([sd]), step))
        except ValueError:  # it grows too fast for this sd; rows that have it will say so
            break
    if not tried:
        return False
    count = ladder.first(ladder.EACH) << octaves
    z = tried[0].z[len(tried[0].z) // 2 :]
    functions = _functions(z, count) * tried[0].root
    a = np.empty((count, len(tried)))
    for k in (0, 1):
        halves = np.concatenate([v.halves[k] for v in tried])
        a[k::2] = dense.product(np.ascontiguousarray(functions[k::2]), halves, n_threads)
    size = np.sqrt(np.concatenate([v.variance for v in tried]))
    a = np.divide(a, size, out=np.zeros_like(a), where=size > 0)
    rest = np.where(size > 0, 1.0, 0.0) - (a * a).sum(0)
    if (rest[sds[: len(tried)] <= 1] > 1e-9).any():
        return False
    n, chosen = np.arange(count), ladder.orders(octaves)
    weights = np.zeros(count)
    weights[chosen] = ladder.weights(octaves)
    products = a[:, :, None] * a[:, None, :]
    u = np.array([0.3, 0.6, 0.8, 0.9, -0.3, -0.6, -0.8, -0.9])[:, None]
    slope = np.sqrt(n @ (a * a))
    missed = np.abs(np.tensordot((weights - 1) * u**n, products, 1))
    slopes = np.abs(np.tensordot((weights - 1) * n * u ** np.maximum(n - 1, 0), products, 1))
    return bool(
        (missed <= 1e-12).all() and (slopes <= 1e-11 * np.outer(slope, slope) + 1e-13).all()
    )


def parity(fn: Callable[[Any], Any]) -> int:
    """Return whether a function is even but for a multiple of x, or odd but for a constant.

    Then there is but one Hermite coefficient of the other parity. Values are compared up to
    rounding at |x| = 2^-20 .. 2^20, and quadratures tell what is missed if others are not alike.
    """
    x = np.append(0.0, 2.0 ** (np.arange(-80, 81) / 4))
    with np.errstate(all="ignore"):
        right, left = np.asarray(fn(np.stack([x, -x])), np.float64)
        size, mean = np.abs(right) + np.abs(left), right[0]
        rise = (right - left)[x == 1] / 2
        odd = np.abs(right + left - 2 * mean) <= 8 * _EPS * (size + 2 * abs(mean))
        even = np.abs(right - left - 2 * rise * x) <= 8 * _EPS * (size + size[x == 1] * x)
    beyond = ~np.isfinite(size)  # it grows too fast for a rule to get there
    if (odd | beyond).all():
        return ladder.ODD
    return ladder.EVEN if (even | beyond).all() else ladder.NEITHER


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
    a: Array, orders: Array, last: Array, tail: Array, apart: Array, change: Array, beyond: Array,
    variance: Array,
) -> Array:  # fmt: skip
    """Return the estimates of ``by_quadrature``.

    ``last`` is the sum of the squares of the last octave, ``apart`` the difference of the first
    squares from those at twice the step, and ``change`` the most by which this changes the dual.
    """
    count, n = int(orders[-1]) + 1, orders[:, None]
    slope = (n * (a * a)).sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 1 + np.log2(1 + last / tail)
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
