"""Functions with one kink: which operation computes their dual, and what it looks up.

RAMP       linear on both sides of a kink that is not at zero (``duals/ramp.h``)
BENT       linear to the right of zero, bent to its left; in single precision (``duals/bent.h``)
ONE_KINK   all others (``duals/one_kink.h``)

For BENT, ``(e^(-sd z) - 1 + sd z) / sd`` for z > 0 is a family of functions in sd. Those of its
singular vectors, in the norm E[f^2 + f'^2] over a standard normal z > 0, that are larger than a
tolerance are the functions e_a, and its products with them are the factors f_a(sd). One more, z
itself, stands for the part of a tail that is linear.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Polynomial, chebyshev
from numpy.polynomial.legendre import leggauss

from ..._types import Array
from ...program import Code, Op
from . import dispatch

TOP = 2.0
"""The largest standard deviation; beyond it one_kink.h takes over."""
TOLERANCE = 1e-7
"""Of the sums, relative to both standard deviations: single precision."""
REACH = 9.0  # of a normal variable
GROUP = 4  # of bent.h
NEAR_SQUARE, NEAR_TERMS = 3.0, 7  # of ramp.h


def _bend(s: Array) -> tuple[Array, Array]:
    """Return ``e^-s - 1 + s`` and its derivative."""
    down = np.expm1(-s)
    return down + s, -down


class Basis(NamedTuple):
    """The factors f_a as Chebyshev series in sd, (a, terms), and groups of pairs for ``bent.h``."""

    factors: Array
    groups: tuple[list[float], list[float]]  # of pairs of singular vectors, and of pairs with z
    counts: tuple[int, int]  # how many groups those are


@functools.cache
def basis() -> Basis:
    """Return the functions that matter."""
    z, weight = _nodes(64, REACH)
    weight = weight * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    at = np.cos(np.pi * (np.arange(40) + 0.5) / 40)
    sd = (at + 1) / 2 * TOP
    bend, slope = _bend(np.outer(z, sd))
    root = np.sqrt(weight)[:, None]
    _, s, v = np.linalg.svd(np.concatenate([root * bend / sd, root * slope]), full_matrices=False)
    factors = s[:, None] * v
    count = next(r for r in range(len(s)) if np.sqrt((factors[r:] ** 2).sum(0)).max() < TOLERANCE)
    factors, mix = factors[:count], v[:count] / s[:count, None]
    series = chebyshev.chebfit(at, factors.T, 20).T

    def functions(z: Array) -> tuple[Array, Array]:
        bend, slope = _bend(np.multiply.outer(sd, z))
        e, de = mix @ (bend / sd[:, None]), mix @ slope
        return np.concatenate([e, z[None]]), np.concatenate([de, np.ones_like(z)[None]])

    g, dg = _angles(functions)
    size = np.append(np.abs(factors).max(1), 1.0)
    pairs = [(a, b) for a in range(count + 1) for b in range(a, count + 1)]
    bends = _groups([p for p in pairs if p[1] < count], g, dg, size)
    lines = _groups([p for p in pairs if p[1] == count], g, dg, size)
    return Basis(series, (bends[0], lines[0]), (bends[1], lines[1]))


def _nodes(n: int, length: float) -> tuple[Array, Array]:
    x, w = leggauss(n)
    return (x + 1) * length / 2, w * length / 2


def _angles(functions: Callable[[Array], tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return E[e_a(z) e_b(w)] and E[e_a'(z) e_b'(w)], z, w > 0, as Chebyshev series in arcsin u.

    Both vanish outside a wedge of angle psi = pi/2 + arcsin u, in which z = r sin(t) and
    w = r sin(psi - t).
    """
    r, radial = _nodes(40, REACH)
    radial = radial * r * np.exp(-r * r / 2) / (2 * math.pi)
    n = 24
    at = np.cos(np.pi * (np.arange(n) + 0.5) / n)
    values = []
    for psi in (at + 1) / 2 * math.pi:
        t, angular = _nodes(24, psi)
        z = np.outer(r, np.sin(t))
        weight = np.outer(radial, angular).ravel()
        # The nodes are symmetric: w is z in reverse.
        both = [e.reshape(len(e), *z.shape) for e in functions(z.ravel())]
        values.append(
            [e.reshape(len(e), -1) * weight @ e[:, :, ::-1].reshape(len(e), -1).T for e in both]
        )
    table = np.moveaxis(np.array(values), 0, -1)  # (2, a, b, psi)
    series = chebyshev.chebfit(at, table.reshape(-1, n).T, n - 1).T.reshape(table.shape)
    return series[0], series[1]


def _groups(
    pairs: list[tuple[int, int]], g: Array, dg: Array, size: Array
) -> tuple[list[float], int]:
    """Return the polynomials of all pairs that matter, in groups as ``bent.h`` reads them."""

    def terms(series: Array, a: int, b: int) -> int:
        rest = np.cumsum(np.abs(series[a, b, ::-1]))[::-1] * min(size[a] * size[b], 1.0)
        return int((rest > TOLERANCE / 4).sum())

    found = [(terms(dg, *p), terms(g, *p), p) for p in pairs]
    found = sorted((f for f in found if f[0] or f[1]), reverse=True)
    out: list[float] = []
    starts = range(0, len(found), GROUP)
    for k in starts:
        part = found[k : k + GROUP]
        value, slope = max(f[1] for f in part), max(f[0] for f in part)
        value, slope = max(value, 1), max(slope, 1)
        part += [(0, 0, part[0][2])] * (GROUP - len(part))
        out += [value, slope, *(i for f in part for i in f[2])]
        for which, series, n in ((1, g, value), (0, dg, slope)):
            powers = np.zeros((n, GROUP))
            for i, f in enumerate(part):
                if f[which]:
                    a, b = f[2]
                    c = chebyshev.cheb2poly(series[a, b, : f[which]]) / (1 + (a == b))
                    powers[: len(c), i] = c
            out += list(powers[::-1].ravel())
    return out, len(starts)


def lowered(op: Op, single: bool) -> Op:
    """Return the operation for a function with one kink; any other is returned as it is."""
    if op.code != Code.ONE_KINK:
        return op
    kink, p0, _, p2, m0, _, m2 = op.coefficients
    if p2 == m2 == 0 and kink != 0:
        _, c0, c1 = _tail(op.coefficients)
        n = NEAR_TERMS if single else 0
        return Op(Code.RAMP, n=n, a=abs(kink), b=c0, c=c1, coefficients=op.coefficients)
    if single and kink == p0 == p2 == 0 and m0 == -m2:
        return _bent(op)
    return op


def _tail(shape: tuple[float, ...]) -> tuple[float, float, float]:
    """Return the direction of the tail, which is the side of the kink without zero, c0 and c1."""
    kink, p0, p1, _, m0, m1, _ = shape
    turn, size = math.copysign(1.0, kink), max(abs(p0), abs(m0))
    c0, c1 = turn * (p0 - m0 + (p1 - m1) * kink), p1 - m1
    return turn, 0.0 if abs(c0) <= 4 * np.finfo(float).eps * size else c0, c1


def tables(op: Op, variance: Array) -> Array:
    """Return what the operation looks up besides the common tables, (count, rows)."""
    shape = op.coefficients[:7]
    if op.code == Code.RAMP:
        return _ramp_tables(shape, variance, op.n)
    return _bent_tables(shape, variance)


def diagonal(op: Op, variance: Array, made: Array) -> tuple[Array, Array]:
    """Return ``E[phi^2]`` and ``E[phi'^2]`` for RAMP and its tables: ``duals/ramp.h`` at u = 1."""
    h, end, upper, mean, rise, jump = made[:6]
    q, c0, c1 = op.a, op.b, op.c
    density = end / math.sqrt(2 * math.pi)
    value = 2 * (mean + variance * jump) + c0 * c0 * upper
    if c1:
        value += c1 * c1 * variance * ((1 + h * h) * upper - h * density)
        value += 2 * c0 * c1 * (np.sqrt(variance) * density - q * upper)
    return value, 2 * rise + c1 * c1 * upper


def _ramp_tables(shape: tuple[float, ...], variance: Array, terms: int) -> Array:
    kink, p0, p1, _, m0, m1, _ = shape
    (turn, c0, c1), q, sd = _tail(shape), abs(kink), np.sqrt(variance)
    b0, b1 = (m0, m1) if kink > 0 else (p0, p1)
    made = np.empty((6 + terms, len(variance)))
    with np.errstate(divide="ignore", under="ignore"):
        # Beyond 40 all is as at infinity, and below 1e-18 as at zero, even in double precision.
        h = np.clip(q / sd, 1e-18, 40.0)
        end = np.exp(-h * h / 2)
        upper = dispatch.load("scipy.special").erfc(h / math.sqrt(2)) / 2
        density = end / math.sqrt(2 * math.pi)
        mean = c0 * upper + c1 * sd * (density - h * upper)
        rise = b1 * (turn * c1 * upper + b1 / 2)
        jump = rise + b1 * turn * c0 * density * h / q
    for k, row in enumerate((h, end, upper, b0 * (b0 / 2 + mean), rise, jump)):
        made[k] = row
    if terms:
        h = np.minimum(h, math.sqrt(NEAR_SQUARE))  # others are not looked up
        near, square = made[6:], h * h
        near[:] = 0
        for k in reversed(range(terms)):
            part = near[: terms - k]
            part *= square
            part += _near_series()[: terms - k, k, None]
        near *= h / (2 * math.pi)
    return made


@functools.cache
def _near_series() -> Array:
    """Return A with ``int_0^g (1 - e^(-r^2/2)) / r^2 dy = g sum A[j, k] (N - g^2)^j h^(2k)``.

    N = NEAR_SQUARE is the largest r^2 = h^2 + y^2; up to there the integrand is a polynomial in r^2
    to 2e-9, so that j + k < NEAR_TERMS.
    """
    n = NEAR_TERMS
    at = np.cos(np.pi * (np.arange(n) + 0.5) / n)
    square = (at + 1) / 2 * NEAR_SQUARE
    series = chebyshev.Chebyshev.fit(square, -np.expm1(-square / 2) / square, n - 1)
    powers = np.asarray(series.convert(kind=Polynomial).coef, np.float64)
    table = np.zeros((n, n))
    for total, factor in enumerate(powers):
        for j in range(total + 1):
            inner = factor * math.comb(total, j) / (2 * j + 1)  # of g^(2j) h^(2 (total - j))
            for i in range(j + 1):
                table[i, total - j] += inner * math.comb(j, i) * NEAR_SQUARE ** (j - i) * (-1) ** i
    return table


def _bent_tables(shape: tuple[float, ...], variance: Array) -> Array:
    """Return m and the factors of the tail."""
    b, line, bend = _parts(shape)
    made = basis()
    sd = np.minimum(np.sqrt(variance), TOP)
    factors = bend * chebyshev.chebval(2 * sd / TOP - 1, made.factors.T)
    # E[1 - e^(-sd z)] over z > 0
    down = 0.5 - dispatch.load("scipy.special").erfcx(sd / math.sqrt(2)) / 2
    rows = [b * (line / 2 + bend * down)[None], factors]
    return np.concatenate([*rows, np.full((1, len(sd)), line)] if line else rows)


def _parts(shape: tuple[float, ...]) -> tuple[float, float, float]:
    """Return b, l and g of ``bent.h``."""
    _, _, p1, _, _, m1, m2 = shape
    return p1, p1 - m1 - m2, m2


def _bent(op: Op) -> Op:
    made = basis()
    b, line, _ = _parts(op.coefficients)
    kinds = 2 if line else 1
    groups = [c for part in made.groups[:kinds] for c in part]
    head = (*op.coefficients, TOP, b * b, float(sum(made.counts[:kinds])))
    return Op(Code.BENT, n=len(made.factors) + kinds - 1, coefficients=(*head, *groups))
