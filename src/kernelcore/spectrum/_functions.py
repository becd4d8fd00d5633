"""What operations do to a correlation, as series: about a point, and at the ends +-1.

A function p of u in [-1, 1] gives ``taylor(u0, s, m)``, the coefficients of ``p(u0 + s v)`` in v up
to degree m, and ``end(sign, m)``, those of ``p(sign (1 - y^2))`` in y, below degree m. At u0 >= 0
kernels have no negative coefficient, and the recurrences here add up non-negative terms only.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from .. import _dispatch
from .._program import Code, Op
from . import _series

Array = np.ndarray
STEEP = 500.0  # exponential rates beyond are not for coefficients in float64


class Unknown(Exception):
    """No series: the kernel has to be sampled."""


class Function:
    """Analytic about [-1, 1] unless ``end`` says otherwise."""

    def taylor(self, u0: float, s: float, m: int) -> Array:
        raise NotImplementedError

    def compose(self, u: Array, slope: bool) -> list[Array]:
        """Taylor series of p(u) and, if asked for, of p'(u), for that of u."""
        u0, v, count = float(u[0]), u.copy(), len(u)
        v[0] = 0.0
        s = float(v.sum())
        series = self.taylor(u0, s, count)
        parts = [series[:count]]
        if slope:
            parts.append(series[1:] * np.arange(1, count + 1) / s)
        return _series.compose(parts, v / s)

    def end(self, sign: int, m: int) -> Array:
        series = np.zeros(m)
        c = self.taylor(float(sign), 1.0, (m - 1) // 2)
        series[::2] = c * (-float(sign)) ** np.arange(len(c))
        return series


class Combination(Function):
    """A sum of multiples."""

    def __init__(self, *parts: tuple[float, Function]) -> None:
        self.parts = [(c, f) for c, f in parts if c]

    def taylor(self, u0, s, m):
        return sum((c * f.taylor(u0, s, m) for c, f in self.parts), np.zeros(m + 1))

    def compose(self, u, slope):
        totals = [np.zeros(len(u)) for _ in range(1 + slope)]
        for c, f in self.parts:
            for total, part in zip(totals, f.compose(u, slope), strict=True):
                total += c * part
        return totals

    def end(self, sign, m):
        return sum((c * f.end(sign, m) for c, f in self.parts), np.zeros(m))


class Power(Function):
    """The polynomial with these coefficients."""

    def __init__(self, coefficients) -> None:
        self.coefficients = np.array(coefficients, np.float64)

    def taylor(self, u0, s, m):
        c = self.coefficients.copy()
        if u0:
            _dispatch.driver("gegenbauer").shift(c, u0)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            c = np.where(c == 0, 0.0, c * s ** np.arange(len(c)))
        return np.pad(c[: m + 1], (0, max(0, m + 1 - len(c))))

    def compose(self, u, slope):
        c = self.coefficients
        if len(c) > 8:
            return super().compose(u, slope)
        lists = [c] + ([c[1:] * np.arange(1, len(c))] if slope else [])
        return [_horner(one, u) for one in lists]


def _horner(c: Array, u: Array) -> Array:
    total = np.zeros(len(u))
    for x in c[::-1]:
        total = _series.multiply(u, total)
        total[0] += x
    return total


def _moderate(rate: float) -> float:
    """A rate for which exp(-rate), the first coefficient, does not underflow."""
    if rate > STEEP:
        raise Unknown
    return rate


class Exponential(Function):
    """``exp(c (u - 1))``."""

    def __init__(self, c: float) -> None:
        self.c = _moderate(c)

    def taylor(self, u0, s, m):
        return math.exp(self.c * (u0 - 1)) * _exponential(self.c * s, m)


class Sine(Function):
    """``a sinh(q u) + b cosh(q u)`` over its value at 1."""

    def __init__(self, q: float, a: float, b: float) -> None:
        self.q, self.a, self.b = _moderate(q), a, b

    def taylor(self, u0, s, m):
        q, (up, down) = self.q, (math.exp(self.q * (u0 - 1)), math.exp(-self.q * (u0 + 1)))
        sinh, cosh = (up - down) / 2, (up + down) / 2  # over e^q
        if abs(q * u0) < 0.5:
            sinh = math.sinh(q * u0) * math.exp(-q)
        down = math.exp(-2 * q)
        at_one = (self.a * -math.expm1(-2 * q) + self.b * (1 + down)) / 2
        even, odd = self.a * sinh + self.b * cosh, self.a * cosh + self.b * sinh
        return np.where(np.arange(m + 1) % 2, odd, even) / at_one * _exponential(q * s, m)


def _exponential(x: float, m: int) -> Array:
    """x^i / i!, i = 0 .. m."""
    with np.errstate(under="ignore"):
        return np.multiply.accumulate(np.append(1.0, x / np.arange(1, m + 1)))


class Root(Function):
    """``(1 - z^2 u^2)^(-1/2)`` for z < 1."""

    def __init__(self, z: float, gap: float) -> None:
        self.z, self.gap = z, gap  # 1 - z

    def taylor(self, u0, s, m):
        # With v = z u: (n+1)(1 - v^2) f_(n+1) = (2n+1) v f_n + n f_(n-1).
        z, gap = self.z, self.gap
        v = z * u0
        det = (gap + z * (1 - abs(u0))) * (1 + abs(v))
        return _root(v, det, z * s, m)


def _root(v: float, det: float, s: float, m: int) -> Array:
    f = [1 / math.sqrt(det), 0.0]
    f[1] = v * s / det * f[0]
    a, b = v * s / det, s * s / det
    for n in range(1, m):
        f.append(((2 * n + 1) * a * f[n] + n * b * f[n - 1]) / (n + 1))
    return np.array(f[: m + 1])


class Kappa(Function):
    """Cho and Saul's of order n over its value at 1: kappa_n' = n^2 kappa_(n-1)."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.top = float(math.prod(range(1, 2 * n, 2)))  # (2n - 1)!!

    def taylor(self, u0, s, m):
        det = (1 - u0) * (1 + u0)
        derivative = _root(u0, det, s, max(m, 1)) / math.pi
        for order, value in enumerate(self._values(u0)):
            derivative = _integral(value, derivative, (order * order or 1) * s)
        return derivative[: m + 1] / self.top

    def compose(self, u, slope):
        u0, du = float(u[0]), _series.derivative(u)
        root = _series.inverse_root(_series.multiply(u, u), (1 - u0) * (1 + u0))
        orders, values = [root / math.pi], self._values(u0)
        for order, value in enumerate(values):
            inner = (order * order or 1) * _series.multiply(du, orders[-1])
            orders.append(_series.integral(inner, value))
        # The slope of kappa_0 is kappa_0' itself, though none asks for it.
        slopes = [(self.n**2 or 1) * orders[-2] / self.top] if slope else []
        return [orders[-1] / self.top, *slopes]

    def _values(self, u: float) -> list[float]:
        """kappa_0 .. kappa_n at u >= 0, or below zero where all is smooth."""
        theta, sin = math.atan2(math.sqrt((1 - u) * (1 + u)), u), math.sqrt((1 - u) * (1 + u))
        values = [1 - theta / math.pi]
        # kappa_n = (2n-1) u kappa_(n-1) + ((n-1)^2 sin^2) kappa_(n-2), kappa_1 = u kappa_0 + sin/pi
        for n in range(1, self.n + 1):
            rest = sin / math.pi if n == 1 else (n - 1) ** 2 * sin * sin * values[n - 2]
            values.append((2 * n - 1) * u * values[n - 1] + rest)
        return values

    def end(self, sign, m):
        # kappa_0(1 - y^2) = 1 - (2/pi) asin(y/sqrt 2); at -1 without the 1 and of the other sign.
        y = np.zeros(m)
        y[1::2] = _arcsine(m // 2) * math.sqrt(0.5) ** np.arange(1, 2 * (m // 2), 2)
        series = -sign * 2 / math.pi * y
        tops = [1.0] + [float(math.prod(range(1, 2 * n, 2))) for n in range(1, self.n + 1)]
        series[0] = 1.0 if sign > 0 else 0.0
        for n in range(1, self.n + 1):
            slope = -sign * 2 * n * n * series  # d/dy = -2 sign y d/du
            series = np.zeros(m)
            series[2:] = slope[: m - 2] / np.arange(2, m)
            series[0] = tops[n] if sign > 0 else 0.0
        return series / self.top


@functools.cache
def _arcsine(m: int) -> Array:
    """Coefficients of asin at odd powers, m of them."""
    c, out = 1.0, []
    for i in range(m):
        out.append(c / (2 * i + 1))
        c *= (2 * i + 1) / (2 * i + 2)
    return np.array(out)


def _integral(value: float, derivative: Array, factor: float) -> Array:
    """The series of the integral, as long, whose value is given; factor times the integrand."""
    n = len(derivative)
    return np.append(value, factor * derivative[: n - 1] / np.arange(1, n))


class Arcsine(Function):
    """``asin(z u)/asin(z)`` for z < 1: the dual of erf."""

    def __init__(self, z: float, gap: float) -> None:
        self.root, self.top = Root(z, gap), math.atan2(z, math.sqrt(gap * (1 + z)))

    def taylor(self, u0, s, m):
        z = self.root.z
        slope = self.root.taylor(u0, s, max(m, 1))
        return _integral(math.asin(z * u0), slope, z * s)[: m + 1] / self.top

    def compose(self, u, slope):
        z = self.root.z
        v0 = z * float(u[0])
        gap = (self.root.gap + z * (1 - float(u[0]))) * (1 + v0)
        root = z / self.top * _series.inverse_root(z * z * _series.multiply(u, u), gap)
        value = _series.integral(
            _series.multiply(_series.derivative(u), root), math.asin(v0) / self.top
        )
        return [value, root] if slope else [value]


class Gelu(Function):
    """The dual of x Phi(x) at variance q over its value at 1 (duals/gelu.h)."""

    def __init__(self, q: float) -> None:
        self.q, self.root = q, Root(q / (1 + q), 1 / (1 + q))
        self.top = 1.0
        self.top = float(self.taylor(1.0, 1.0, 2)[0])

    def taylor(self, u0, s, m):
        q, z, h = self.q, self.root.z, 2 / (1 + self.q)
        root = self.root.taylor(u0, s, m + 1)
        kappa0 = _integral(0.5 + math.asin(z * u0) / math.pi, root, z * s / math.pi)[: m + 1]
        first = q / 2 * _times([u0, s], kappa0)
        square = _times([u0, s], _times([u0, s], root[: m + 1]))
        second = (1 + q) / (2 * math.pi) * z * z * (root[: m + 1] + (h - 1) * square)
        return (first + second) / self.top


def _times(line: list[float], series: Array) -> Array:
    """A series times ``line[0] + line[1] v``."""
    product = line[0] * series
    product[1:] += line[1] * series[:-1]
    return product


class Matern(Function):
    """The Matern kernel of half-integer nu as a function of t, ``z = a sqrt(1 - t)``.

    d/dt of that of nu is ``a^2 / (4 (nu - 1))`` times that of nu - 1; nu = 1/2 is exp(-z).
    """

    def __init__(self, nu: float, a: float) -> None:
        self.nu, self.a = nu, _moderate(a)

    def _orders(self) -> list[float]:
        return [0.5 + i for i in range(1, round(self.nu + 0.5))]

    def taylor(self, u0, s, m):
        # f = exp(-z): 4 (1 - t) f'' = 2 f' + a^2 f.
        quarter, gap = self.a * self.a / 4, 1 - u0
        z = self.a * math.sqrt(gap)
        f = [math.exp(-z), z / (2 * gap) * math.exp(-z) * s]
        for n in range(m - 1):
            up = (n + 1) * (n + 0.5) * s * f[n + 1] + quarter * s * s * f[n]
            f.append(up / ((n + 2) * (n + 1) * gap))
        series = np.array(f[: m + 1])
        values = [math.exp(-z), (1 + z) * math.exp(-z)]
        for i, nu in enumerate(self._orders()):
            series = _integral(values[i + 1], series, quarter / (nu - 1) * s)
            # z^2 K_(nu+1) = z^2 K_(nu-1) + 2 nu z K_nu
            values.append(values[i + 1] + z * z * values[i] / (4 * nu * (nu - 1)))
        return series

    def end(self, sign, m):
        if sign < 0:
            return super().end(sign, m)
        series = _exponential(-self.a, m - 1)
        for nu in self._orders():
            slope = -2 * self.a * self.a / (4 * (nu - 1)) * series
            series = np.append([1.0, 0.0], slope[: m - 2] / np.arange(2, m))
        return series


class Generic(Function):
    """``1/(2 - u)``: some function all of whose coefficients are positive."""

    def taylor(self, u0, s, m):
        with np.errstate(under="ignore"):
            return (s / (2 - u0)) ** np.arange(m + 1) / (2 - u0)


# ---- operations


def of(op: Op, q: float, table: Array) -> Function:
    """What an operation does to correlations of inputs of variance q: p with p(1) = 1.

    ``Unknown`` where it is not known in closed form.
    """
    code = op.code
    if code == Code.RELU:
        return Kappa(1)
    if code == Code.LEAKY_RELU:
        return Combination((op.a, Kappa(1)), (op.b, Power([0.0, 1.0])))
    if code == Code.STEP:
        return Kappa(0)
    if code == Code.SIGN:
        return Combination((2.0, Kappa(0)), (-1.0, Power([1.0])))
    if code == Code.RECTIFIED_POWER:
        return Kappa(op.n)
    if code == Code.ERF:
        return Arcsine(2 * q / (1 + 2 * q), 1 / (1 + 2 * q))
    if code == Code.GELU:
        return Gelu(q)
    if code == Code.SINE:
        return Sine(q, op.a, op.b)
    if code == Code.EXPONENTIAL:
        return Exponential(q)
    if code == Code.BUMP and op.a == 0:
        z, gap = 2 * q / (1 + 2 * q), 1 / (1 + 2 * q)
        return Combination((math.sqrt(gap * (1 + z)), Root(z, gap)))
    if code == Code.POLYNOMIAL:
        top = op.a * q + op.b
        a, b = op.a * q / top, op.b / top
        return Power([math.comb(op.n, i) * a**i * b ** (op.n - i) for i in range(op.n + 1)])
    if code == Code.SERIES and not op.a:
        return Power(table[:, 0] ** 2)
    if code == Code.EXPONENTIAL_PROFILE:
        return Exponential(op.a)
    if code == Code.POWER_PROFILE:
        return Power(op.coefficients[: len(op.coefficients) // 2])
    raise Unknown
