"""Functions with one kink: which operation computes their dual, and what it looks up.

RAMP       linear on both sides of a kink that is not at zero (``duals/ramp.h``)
BENT       linear to the right of zero, bent to its left; in single precision (``duals/bent.h``)
ONE_KINK   all others (``duals/one_kink.h``)

For BENT the orders of the Hermite series from ``ORDERS`` on add up to a function of two standard
deviations and of u, which is the closed form minus the orders below. Of samples of it, even and odd
orders by themselves, the singular vectors along u are the functions V_k and S_k; what those are
multiplied with is symmetric in the standard deviations, and its eigenvectors are the tables d_kr.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..._types import Array
from ...program import Code, Op
from . import dispatch

TOP = 5.0
"""The largest standard deviation; beyond it one_kink.h takes over."""
TOLERANCE = 6e-7
"""Of the sums, relative to the diagonals: single precision."""
ORDERS, VALUE, SLOPE = 16, 5, 7  # of bent.h
TERMS = 16  # of a table as a polynomial
NODES = 20  # in t of bent.h
MOST = 12  # functions of bent.h, even or odd
NEAR_SQUARE, NEAR_TERMS = 3.0, 7  # of ramp.h

Exact = Callable[[Op, Array, Array, Array], tuple[Array, Array]]
"""The dual of an operation by its closed form, for flat arrays of variances and covariances."""


class Basis(NamedTuple):
    """The tables as Chebyshev series in the place of sd, (tables, terms), and the functions."""

    tables: Array
    functions: tuple[float, ...]  # as bent.h reads them


def _place(sd: Array) -> Array:
    """Return where sd is between 0 and TOP, as a number from -1 to 1 that tables are smooth in."""
    return 2 * np.log1p(2 * sd) / math.log1p(2 * TOP) - 1


@functools.lru_cache(64)
def basis(shape: tuple[float, ...], exact: Exact) -> Basis:
    """Return what stands for the function of this shape."""
    at = np.cos(np.pi * (np.arange(TERMS) + 0.5) / TERMS)
    sd = np.expm1((at + 1) / 2 * math.log1p(2 * TOP)) / 2
    t = np.append(np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES), -1.0)
    u = 1 - (1.12 / (1.8 - t) - 0.4) ** 2
    u[-1] = 1.0
    i, j = np.triu_indices(TERMS)
    grid = np.broadcast_arrays(sd[i][:, None], sd[j][:, None], np.append(u, -u))
    si, sj, both = (a.ravel() for a in grid)
    # E / (sd_i sd_j) and its slope, over (value or slope, pair, sign of u, u)
    raw = exact(Op(Code.ONE_KINK, coefficients=shape), si * si, sj * sj, si * sj * both)
    samples = np.stack([raw[0] / (si * sj), raw[1]]).reshape(2, len(i), 2, len(u))
    least = samples[:, i == j, 0, -1].min(0)
    size = np.sqrt(np.maximum(least, np.finfo(float).tiny))
    a = _hermite(shape, sd)
    tables, functions, counts = [a], [], []
    for parity in (0, 1):
        sign = 1 - 2 * parity
        n = np.arange(parity, ORDERS, 2)
        low = np.stack([u ** n[:, None], n[:, None] * u ** np.maximum(n - 1, 0)[:, None]])
        part = np.stack([samples[0, :, 0] + sign * samples[0, :, 1],
                         samples[1, :, 0] - sign * samples[1, :, 1]]) / 2  # fmt: skip
        rest = part - np.einsum("np,knu->kpu", a[n][:, i] * a[n][:, j], low)
        rest = np.moveaxis(rest, 0, 1).reshape(len(i), -1) / (size[i] * size[j])[:, None]
        left, s, right = np.linalg.svd(rest, full_matrices=False)
        left *= s
        lost = [np.abs(left[:, k:] @ right[k:]).max() for k in range(MOST + 1)]
        counts.append(next((k for k in range(MOST) if lost[k] < TOLERANCE), MOST))
        for k in range(counts[-1]):
            scale = np.abs(right[k]).max()
            factor = np.empty((TERMS, TERMS))
            factor[i, j] = factor[j, i] = scale * left[:, k]
            rows, added = _products(factor)
            tables.append(rows * size)
            value, slope = right[k].reshape(2, -1) / scale
            functions += [
                len(rows),
                added,
                *_fit(t, u ** (ORDERS - 1 + parity), slope, SLOPE),
                *_fit(t, u ** (ORDERS + parity), value, VALUE),
            ]
    series = np.polynomial.chebyshev.chebfit(at, np.concatenate(tables).T, TERMS - 1).T
    return Basis(np.ascontiguousarray(series), (*map(float, counts), *map(float, functions)))


def _hermite(shape: tuple[float, ...], sd: Array) -> Array:
    """Return a_n for n < ORDERS, (orders, sd)."""
    b, line, bend = _parts(shape)
    density = 1 / math.sqrt(2 * math.pi)
    # E[f(z) He_n(z)] over z > 0 for f = 1 and f = e^(-sd z), by parts
    flat, down = np.full_like(sd, 0.5), dispatch.load("scipy.special").erfcx(sd / math.sqrt(2)) / 2
    a = [line * density + bend * ((down - flat) / sd + density)]
    before, at_zero = 0.0, 1.0  # He_(n-1)(0), He_n(0)
    for n in range(ORDERS - 1):
        rise = (-1) ** n * (bend * down - (line + bend) * flat) + (b if n == 0 else 0.0)
        a.append(rise / math.sqrt(math.factorial(n + 1)))
        flat, down = np.full_like(sd, at_zero * density), at_zero * density - sd * down
        before, at_zero = at_zero, -n * before
    return np.array(a)


def _products(factor: Array) -> tuple[Array, int]:
    """Return rows d of a symmetric factor = sum +- d d, those added first, and how many are."""
    found, vectors = np.linalg.eigh(factor)
    order = np.argsort(-np.abs(found))
    found, vectors = found[order], vectors[:, order]
    lost = [
        np.abs((vectors[:, k:] * found[k:]) @ vectors[:, k:].T).max() for k in range(len(found))
    ]
    count = next((k for k in range(len(found)) if lost[k] < TOLERANCE / 2), len(found))
    rows, negative = (vectors * np.sqrt(np.abs(found))).T[:count], found[:count] < 0
    return np.concatenate([rows[~negative], rows[negative]]), int((~negative).sum())


def _fit(t: Array, weight: Array, f: Array, terms: int) -> Array:
    """Return the coefficients, highest first, of the polynomial p(t) for f = weight p."""
    emphasis = np.where(t == -1, 4.0, 1.0)  # copies of a row have correlation 1
    powers = np.polynomial.chebyshev.chebvander(t, terms - 1) * (weight * emphasis)[:, None]
    c = np.linalg.lstsq(powers, f * emphasis, rcond=None)[0]
    out = np.zeros(terms)
    powers = np.polynomial.chebyshev.cheb2poly(c)  # without zeros at its end
    out[: len(powers)] = powers
    return out[::-1]


def lowered(op: Op, single: bool, exact: Exact) -> Op:
    """Return the operation for a function with one kink; any other is returned as it is."""
    if op.code != Code.ONE_KINK:
        return op
    kink, p0, _, p2, m0, _, m2 = op.coefficients
    if p2 == m2 == 0 and kink != 0:
        _, c0, c1 = _tail(op.coefficients)
        n = NEAR_TERMS if single else 0
        return Op(Code.RAMP, n=n, a=abs(kink), b=c0, c=c1, coefficients=op.coefficients)
    if single and kink == p0 == p2 == 0 and m0 == -m2:
        return _bent(op, exact)
    return op


def _tail(shape: tuple[float, ...]) -> tuple[float, float, float]:
    """Return the direction of the tail, which is the side of the kink without zero, c0 and c1."""
    kink, p0, p1, _, m0, m1, _ = shape
    turn, size = math.copysign(1.0, kink), max(abs(p0), abs(m0))
    c0, c1 = turn * (p0 - m0 + (p1 - m1) * kink), p1 - m1
    return turn, 0.0 if abs(c0) <= 4 * np.finfo(float).eps * size else c0, c1


def tables(op: Op, variance: Array, exact: Exact) -> Array:
    """Return what the operation looks up besides the common tables, (count, rows)."""
    shape = op.coefficients[:7]
    if op.code == Code.RAMP:
        return _ramp_tables(shape, variance, op.n)
    polynomials = basis(shape, exact).tables
    out = np.empty((len(polynomials), len(variance)))
    place = _place(np.minimum(np.sqrt(variance), TOP))
    dispatch.driver("dense").interpolate(polynomials, place, np.arange(len(variance)), out)
    return out


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
    series = np.polynomial.Chebyshev.fit(square, -np.expm1(-square / 2) / square, n - 1)
    powers = np.asarray(series.convert(kind=np.polynomial.Polynomial).coef, np.float64)
    table = np.zeros((n, n))
    for total, factor in enumerate(powers):
        for j in range(total + 1):
            inner = factor * math.comb(total, j) / (2 * j + 1)  # of g^(2j) h^(2 (total - j))
            for i in range(j + 1):
                table[i, total - j] += inner * math.comb(j, i) * NEAR_SQUARE ** (j - i) * (-1) ** i
    return table


def _parts(shape: tuple[float, ...]) -> tuple[float, float, float]:
    """Return b, l and g of phi(x) = b x + tail(-x), tail(s) = l s + g (e^-s - 1 + s), s > 0."""
    _, _, p1, _, _, m1, m2 = shape
    return p1, p1 - m1 - m2, m2


def _bent(op: Op, exact: Exact) -> Op:
    shape = op.coefficients
    return Op(Code.BENT, coefficients=(*shape, TOP, *basis(shape, exact).functions))
