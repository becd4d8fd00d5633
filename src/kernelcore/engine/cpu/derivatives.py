"""Derivatives of a program's kernels by the first of two rows, in forward mode.

A kernel of rows is a function ``F(q1, q2, s)`` of ``q1 = |x|^2``, ``q2 = |y|^2``, ``s = <x, y>``,
over d for networks, so that its derivative by x is a multiple of y and one of x. A walk carries K
and T of a tile with their derivatives by s and by q1. What a function does to them follows from its
dual ``D(v1, v2, c)``: ``dD/dc`` is the dual of the derivative, and ``dD/dv1`` is half of
``E[phi''(x) phi(y)]``; for T the same is needed of ``dD/dc``. Compiled loops (slopes.h) know kinks
at zero, Erf, Sin and Exp; other functions are evaluated here.

Duals of functions with a kink have an infinite second derivative at ``|u| = 1``, where the
derivative of an NTK jumps as x passes y. Within ``NEAR`` it counts as zero: the mean over the two
sides.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ... import _check
from ..._types import Array
from ...program import (
    Apply,
    Closed,
    Code,
    Expansion,
    Form,
    Homogeneous,
    Input,
    Merge,
    Op,
    Powers,
    Program,
    Sampled,
    Save,
    Swap,
    Unchanged,
    Unit,
    Weights,
)
from . import calls, dispatch, hermite, steps

NEAR = 1e-14
"""How close to 1 a correlation counts as 1: an angle of 1.4e-7."""
LEAST = 1e-10
"""The variance of rows of zeros in a series, whose slope there is a limit."""
EPS = float(np.finfo(float).eps)
FLAT = (Code.STEP, Code.SIGN)
STEP = np.dtype(
    [("code", "i4"), ("trained", "i4"), *((name, "f8") for name in ("w", "bias", "gain", "a", "b"))]
)
"""``slope_step`` of slopes.h."""
PLAIN = (False, 1.0, 0.0)
"""No weights: not trained, w and bias."""
NO_FUNCTION = (int(Code.TRAINED), 1.0, 0.0, 0.0)


class Slopes(NamedTuple):
    """A kernel of a tile, and its derivative by x: ``y`` times y and ``x`` times x."""

    value: Array
    y: Array
    x: Array


class Dual(NamedTuple):
    """D with its derivatives by c and v1; and E, which multiplies T, with the same of E."""

    value: Any
    c: Any
    v: Any
    slope: Any
    slope_c: Any
    slope_v: Any


class State(NamedTuple):
    """A tile on its way: K and T with their derivatives by s and by q1, and variances.

    Derivatives are multiplied so that they are the coefficients of y and x in the end; ``rate`` is
    that of v1. Columns are padded.
    """

    k: Array  # (6, rows, columns): K, its derivatives, and the same of T
    v1: Array
    rate: Array
    v2: Array


class Walk:
    """An interpreter of a program of rows: a tile of a Gram matrix, with derivatives.

    Weights, and functions that compiled loops know, wait in ``queue`` until something else needs
    the tile.
    """

    def __init__(self, x: Array, y: Array, tangent: bool) -> None:
        self.x, self.y, self.tangent = x, y, tangent
        self.driver = dispatch.driver("slopes")
        self.saved: list[State] = []
        self.queue: list[tuple[Any, Array, Array]] = []
        self.before = PLAIN
        self.trained = False  # whether T is anything yet
        self.fresh = True  # whether the tile is K and nothing else

    def input(self, node: Input) -> None:
        x, y, width = self.x, self.y, self.driver.WIDTH
        scale = 1 / x.shape[1] if node.of == "mean" else 1.0
        k = calls.room((6, len(x), -(-len(y) // width) * width), np.dtype(np.float64))
        np.matmul(x, scale * y.T, out=k[0, :, : len(y)])
        k[0, :, len(y) :] = 0.0
        self.by_s = scale
        v1 = np.einsum("ij,ij->i", x, x) * scale
        v2 = np.zeros(k.shape[2])
        v2[: len(y)] = np.einsum("ij,ij->i", y, y) * scale
        self.at = State(k, v1, np.full(len(x), 2 * scale), v2)

    def weights(self, node: Weights) -> None:
        if self.before is not PLAIN:
            self._wait(NO_FUNCTION)
        w, b = node.w_std**2, node.b_std**2
        self.before = (node.trained and self.tangent, w, b)
        self.trained |= node.trained and self.tangent
        self.at = State(self.at.k, w * self.at.v1 + b, w * self.at.rate, w * self.at.v2 + b)

    def apply(self, node: Apply) -> None:
        form, at, function = node.form, self.at, node.function
        if isinstance(form, Unchanged):
            return
        # rows with themselves, whose v1, v2 and c grow together
        own = dual(form, at.v1, at.v1, at.v1, function)
        v2 = dual(form, at.v2, at.v2, at.v2, function).value
        record = _compiled(form)
        if record is not None:
            self._wait(record)
        else:
            self.run()
            d = dual(form, at.v1[:, None], at.v2, at.k[0], function)
            k, ks, kq, t, ts, tq = at.k
            rate = at.rate[:, None]
            if self.trained:
                ts[:] = d.slope * ts + t * (d.slope_c * ks)
                tq[:] = d.slope * tq + t * (d.slope_c * kq + d.slope_v * rate)
                t *= d.slope
            kq[:] = d.c * kq + d.v * rate
            ks *= d.c
            k[:] = d.value
        self.at = State(at.k, own.value, (2 * own.v + own.c) * at.rate, v2)

    def _wait(self, record: tuple[Any, ...]) -> None:
        """Put the weights before, and a function, in the queue."""
        at, sd1, sd2 = self.at, np.sqrt(self.at.v1), np.sqrt(self.at.v2)
        rows = np.stack([at.v1, at.rate, sd1, _inverse(sd1), _inverse(at.v1) / 2])
        columns = np.stack([at.v2, sd2, _inverse(sd2)])
        code, *constants = record
        self.queue.append(((code, *self.before, *constants), rows, columns))
        self.before = PLAIN

    def run(self, first: int = 0, last: int = 6) -> None:
        """Take the tile through what waits, and put some of its arrays in the first places."""
        if self.before is not PLAIN:
            self._wait(NO_FUNCTION)
        records = np.array([record for record, _, _ in self.queue], STEP).view(np.uint8)
        none = np.empty((1, 0, 0))
        rows = np.stack([x for _, x, _ in self.queue]) if self.queue else none
        columns = np.stack([y for _, _, y in self.queue]) if self.queue else none
        room = calls.room((6, self.at.k.shape[2]), self.at.k.dtype)
        self.driver.walk(
            records,
            rows,
            columns,
            self.at.k,
            room,
            self.tangent,
            self.fresh,
            self.by_s,
            first,
            last,
        )
        self.queue, self.fresh = [], False

    def save(self, node: Save) -> None:
        self.run()
        self.saved.append(self.at._replace(k=self.at.k.copy()))

    def swap(self, node: Swap) -> None:
        self.run()
        self.at, self.saved[-1] = self.saved[-1], self.at

    def merge(self, node: Merge) -> None:
        self.run()
        self.at = State(*(a + b for a, b in zip(self.at, self.saved.pop(), strict=True)))

    def done(self) -> Slopes:
        first = 3 if self.tangent else 0
        self.run(first, first + 3)
        return Slopes(*self.at.k[:3, :, : len(self.y)])


def slopes(program: Program, x: Array, y: Array, tangent: bool) -> Slopes:
    """Return one of a program's kernels of rows in float64, and its derivative by x."""
    walk = Walk(x, y, tangent)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        program.run(walk)
        return walk.done()


def _compiled(form: Form) -> tuple[Any, ...] | None:
    """Return code, gain and constants of a function that ``slopes.h`` knows."""
    match form:
        case Closed(op) if op.code in (Code.ERF, Code.SINE, Code.EXPONENTIAL):
            return int(op.code), 1.0, op.a, op.b
        case Homogeneous(op, degree, gain):
            kinks = {
                (Code.RELU, 1): (Code.RELU, 1.0, 0.0),
                (Code.LEAKY_RELU, 1): (Code.RELU, op.a, op.b),
                (Code.STEP, 0): (Code.STEP, 1.0, 0.0),
                (Code.SIGN, 0): (Code.STEP, 2.0, -1.0),
            }
            code = op.code
            if code == Code.RECTIFIED_POWER and op.n < 2:
                code = Code.RELU if op.n else Code.STEP
            found = kinks.get((code, degree))
            return None if found is None else (int(found[0]), gain, *found[1:])
    return None


# ---- what a function does


def dual(form: Form, v1: Array, v2: Array, c: Array, function: Any) -> Dual:
    """Return the dual of a function with its derivatives; arguments broadcast."""
    match form:
        case Homogeneous():
            return _homogeneous(form, v1, v2, c)
        case Closed(op) if op.code in CLOSED:
            return CLOSED[op.code](op, v1, v2, c)
        case Closed(op) if op.code == Code.GELU:
            return _series(Sampled(function), v1, v2, c)
        case Closed(op) if op.code == Code.ONE_KINK and _is_ramp(*op.coefficients):
            return _ramp(op, v1, v2, c)
        case Expansion() | Sampled():
            return _series(form, v1, v2, c)
        case Powers(_, degree, scale, offset):
            base = scale * c + offset
            return Dual(base**degree, degree * scale * base ** (degree - 1), 0, 0, 0, 0)
        case Unit():
            over = _inverse(np.sqrt(v1) * np.sqrt(v2))
            half = -_inverse(v1) / 2
            return Dual(c * over, over, c * over * half, over, 0, over * half)
    return _check.no_gradient(function)


def _inverse(a: Array) -> Array:
    return np.divide(1.0, a, out=np.zeros_like(a), where=a > 0)


def _homogeneous(form: Homogeneous, v1: Array, v2: Array, c: Array) -> Dual:
    """Return ``gain n^degree p(u)``, n = sqrt(v1 v2), whose derivatives by v1 are Euler's."""
    op, degree, gain = form.op, form.degree, form.gain
    n = np.sqrt(v1) * np.sqrt(v2)
    over = _inverse(n)
    u = np.clip(c * over, -1.0, 1.0)
    p, first, second = _profile(op, u)
    value = gain * n**degree * p
    by_c = gain * first * (n ** (degree - 1) if degree else over)
    half = _inverse(v1) / 2
    by_v = (degree * value - c * by_c) * half
    if degree == 0 or op.code in FLAT:  # steps count as flat
        return Dual(value, by_c, by_v, 0.0, 0.0, 0.0)
    slope_c = gain * second * (n ** (degree - 2) if degree > 1 else over)
    return Dual(value, by_c, by_v, by_c, slope_c, ((degree - 1) * by_c - c * slope_c) * half)


def _profile(op: Op, u: Array) -> tuple[Array, Array, Any]:
    """Return p with its first two derivatives."""
    match op.code:
        case Code.RELU | Code.STEP:
            p, first, second = _kappas(u)
            return (p, first, second) if op.code == Code.RELU else (first, second, 0.0)
        case Code.SIGN:
            _, p, first = _kappas(u)
            return 2 * p - 1, 2 * first, 0.0
        case Code.LEAKY_RELU:
            p, first, second = _kappas(u)
            return op.a * p + op.b * u, op.a * first + op.b, op.a * second
        case Code.RECTIFIED_POWER:
            n = op.n
            p, first, second = (_power(n - k, u) for k in range(3))
            # p_n' = n^2/(2n - 1) p_(n-1): for n = 0 and 1 the last two are the derivatives
            a = n * n / (2 * n - 1) if n else 1.0
            b = (n - 1) ** 2 / (2 * n - 3) if n > 1 else 1.0
            return p, a * first, a * b * second
        case Code.EXPONENTIAL_PROFILE:
            p = np.exp(op.a * (u - 1))
            return p, op.a * p, op.a * op.a * p
        case Code.POWER_PROFILE:
            power = np.polynomial.Polynomial(op.coefficients[: 2 * op.n])
            return power(u), power.deriv()(u), power.deriv(2)(u)
    assert op.code == Code.CHEBYSHEV_PROFILE, op
    series = np.polynomial.Chebyshev(op.coefficients[: op.n])
    return series(u), series.deriv()(u), series.deriv(2)(u)


def _kappas(u: Array) -> tuple[Array, Array, Array]:
    """Return Cho and Saul's kappa1, its derivative kappa0, and the derivative of that."""
    u = np.where(1 - np.abs(u) <= 4 * EPS, np.sign(u), u)  # rounding of a correlation of 1
    gap = (1 - u) * (1 + u)
    kappa0 = 1 - np.arccos(u) / math.pi
    root = np.sqrt(gap)
    jump = np.divide(1 / math.pi, root, out=np.zeros_like(u), where=gap > 2 * NEAR)
    return u * kappa0 + root / math.pi, kappa0, jump


def _power(n: int, u: Array) -> Array:
    """Return p of the rectified power n, and derivatives of p_0 for -1 and -2."""
    if n < 2:
        return _kappas(u)[1 - n] if n > -2 else np.zeros_like(u)
    one = np.ones(u.size)
    none = np.empty((0, u.size))
    op = Op(Code.RECTIFIED_POWER, n=n)
    return steps._single(op, none, none, one, one, u.ravel())[0].reshape(u.shape)


# ---- closed forms


def _erf(op: Op, v1: Array, v2: Array, c: Array) -> Dual:
    a, b = 1 + 2 * v1, 1 + 2 * v2
    square = 1 + 2 * (v1 + v2) + 4 * np.maximum(v1 * v2 - c * c, 0.0)
    slope = 4 / math.pi / np.sqrt(square)
    value = 2 / math.pi * np.arcsin(np.clip(2 * c / np.sqrt(a) / np.sqrt(b), -1, 1))
    return Dual(value, slope, -c / a * slope, slope, 4 * c * slope / square, -b * slope / square)


def _sine(op: Op, v1: Array, v2: Array, c: Array) -> Dual:
    up, down = (np.exp(-(v1 + v2) / 2 + sign * c) / 2 for sign in (1, -1))
    sinh, cosh = up - down, up + down
    value, slope = op.a * sinh + op.b * cosh, op.a * cosh + op.b * sinh
    return Dual(value, slope, -value / 2, slope, value, -slope / 2)


def _exponential(op: Op, v1: Array, v2: Array, c: Array) -> Dual:
    value = op.a * np.exp((v1 + v2) / 2 + c)
    return Dual(value, value, value / 2, value, value, value / 2)


def _bump(op: Op, v1: Array, v2: Array, c: Array) -> Dual:
    """Return the dual ``exp(L)``, ``L = -log(r)/2 - a m/r`` with the determinant r of 1 + 2 V."""
    a, b, h = 1 + 2 * v1, 1 + 2 * v2, op.a
    r = 1 + 2 * (v1 + v2) + 4 * np.maximum(v1 * v2 - c * c, 0.0)
    m = (a + b - 4 * c) / r
    value = np.exp(-h * m) / np.sqrt(r)
    r_c, r_v = -8 * c / r, 2 * b / r  # of log r
    m_c, m_v = -4 / r - m * r_c, 2 / r - m * r_v
    by_c, by_v = -r_c / 2 - h * m_c, -r_v / 2 - h * m_v
    r_cc, r_cv = -8 / r - r_c * r_c, -r_c * r_v
    m_cc = 4 / r * r_c - m_c * r_c - m * r_cc
    m_cv = 4 / r * r_v - m_v * r_c - m * r_cv
    slope_c = by_c * by_c - r_cc / 2 - h * m_cc
    slope_v = by_c * by_v - r_cv / 2 - h * m_cv
    slope = value * by_c
    return Dual(value, slope, value * by_v, slope, value * slope_c, value * slope_v)


def _is_ramp(k: float, p0: float, p1: float, p2: float, m0: float, m1: float, m2: float) -> bool:
    """Return whether a function with a kink is continuous, and linear on both sides."""
    return p2 == m2 == 0 and abs(p0 + p1 * k - m0 - m1 * k) <= 4 * EPS * (abs(p0) + abs(m0))


def _ramp(op: Op, v1: Array, v2: Array, c: Array) -> Dual:
    """Return the dual of a continuous function that is linear on both sides of its kink.

    ``phi''`` is a delta function at the kink, by which expectations become those of y given x.
    """
    v1, v2, c = np.broadcast_arrays(v1, v2, c)
    flat = (np.ascontiguousarray(a).ravel() for a in (v1, v2, c))
    value, slope = (a.reshape(c.shape) for a in steps._closed(op, *flat))
    kink, p0, p1, _, m0, m1, _ = op.coefficients
    over, rise = _inverse(v1), p1 - m1
    mean, variance = c * over * kink, v2 - c * c * over
    there = variance > 2 * NEAR * v2
    sd = np.sqrt(np.where(there, variance, 1.0))
    z = (kink - mean) / sd
    ndtr = dispatch.load("scipy.special").ndtr
    right, left = np.where(there, ndtr(-z), kink <= mean), np.where(there, ndtr(z), kink > mean)
    density = np.where(there, np.exp(-z * z / 2) / math.sqrt(2 * math.pi) / sd, 0.0)
    phi = (p0 + p1 * mean) * right + (m0 + m1 * mean) * left + rise * sd * sd * density
    at = rise * np.exp(-kink * kink * over / 2) * np.sqrt(over / (2 * math.pi))
    slope_v = at / 2 * over * (kink * (p1 * right + m1 * left) - c * rise * density)
    return Dual(value, slope, at / 2 * phi, slope, at * rise * density, slope_v)


CLOSED = {
    Code.ERF: _erf, Code.SINE: _sine, Code.EXPONENTIAL: _exponential, Code.BUMP: _bump,
}  # fmt: skip


# ---- Hermite series


def _series(form: Expansion | Sampled, v1: Array, v2: Array, c: Array) -> Dual:
    """Return ``sum a_n(sd1) a_n(sd2) u^n`` and its derivatives.

    ``sd a_n' = n a_n + sqrt((n+1)(n+2)) a_(n+2)``, of which the first part is that of u, so that
    ``2 v1 dD/dv1 = sum sqrt((n+1)(n+2)) a_(n+2)(sd1) a_n(sd2) u^n``.
    """
    v1, v2 = (np.where(v > 0, v, LEAST) for v in (v1, v2))
    n = np.sqrt(v1) * np.sqrt(v2)
    u = np.clip(c / n, -1.0, 1.0)
    a, b = (_coefficients(form, np.sqrt(v)) for v in (v1, v2))
    count = max(len(a), len(b))
    a, b = (np.concatenate([z, np.zeros((count + 2 - len(z), *z.shape[1:]))]) for z in (a, b))
    k = np.arange(count).reshape(-1, *[1] * (a.ndim - 1))
    r = np.sqrt((k + 1.0) * (k + 2.0)) * a[2:]
    p, first, second, r, r_first = _sums(a[:count], r, b[:count], u)
    slope, half = first / n, 0.5 / v1
    return Dual(p, slope, r * half, slope, 2 * second / n**2, r_first / n * half)


def _sums(a: Array, r: Array, b: Array, u: Array) -> Array:
    """Return ``sum a b u^k``, its slope and half its bend, and ``sum r b u^k`` and its slope."""
    driver = dispatch.driver("slopes")
    if u.ndim == 2:  # a tile, whose columns are padded
        out = np.empty((5, *u.shape))
        vectors = b.reshape(len(b), -1, driver.WIDTH).transpose(1, 0, 2)
        driver.series(*map(np.ascontiguousarray, (a[:, :, 0].T, r[:, :, 0].T, vectors, u)), out)
        return out
    out = np.zeros((5, *u.shape))
    for k in reversed(range(len(a))):  # rows with themselves: few numbers
        p, first, second, other, slope = out
        out = np.stack(
            [p * u + a[k] * b[k], first * u + p, second * u + first, other * u + r[k] * b[k],
             slope * u + other]
        )  # fmt: skip
    return out


def _coefficients(form: Expansion | Sampled, sd: Array) -> Array:
    """Return all Hermite coefficients at an array of sd, along the first axis."""
    if isinstance(form, Expansion):
        a = steps._coefficients(form, sd.ravel())
    else:
        a = _quadrature(form, sd.tobytes())
    return a.reshape(len(a), *sd.shape)


@functools.lru_cache(16)  # a tile asks for those of its rows and columns three times
def _quadrature(form: Sampled, sd: bytes) -> Array:
    return hermite.by_quadrature(form.fn, np.frombuffer(sd), steps.FULL, 1)[0]
