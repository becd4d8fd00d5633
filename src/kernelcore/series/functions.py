"""Functions of a correlation as series: about a point, and at the ends +-1.

A function p of u in [-1, 1] has ``taylor(u0, s, m)``, the coefficients of ``p(u0 + s v)`` in v up
to degree m; ``end(sign, m)``, those of ``p(sign (1 - y^2))`` in y, below degree m; and
``continued(sign, x)``, values at ``sign (1 - x)`` for complex x. At u0 >= 0 no coefficient of a
kernel is negative, and the recurrences here add non-negative terms only.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from .._types import Array, ArrayLike
from ..engine import loops
from . import power as _series

STEEP = 500.0  # the largest exponential rate whose coefficients float64 holds
TERMS = 160  # terms of a series at an end where it is evaluated


class Function:
    """A function that is analytic about [-1, 1] unless ``end`` says otherwise."""

    edge: float | np.longdouble = math.inf  # the distance of its singularities from -1 and 1

    def taylor(self, u0: float, s: float, m: int) -> Array:
        raise NotImplementedError

    def compose(self, u: Array, slope: bool) -> list[Array]:
        """Return the Taylor series of p(u) and, if asked for, of p'(u), given that of u."""
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

    def continued(self, sign: int, x: Array) -> tuple[Array, Array]:
        """Return ``p(sign (1 - x)) - p(sign)`` and p' there, for complex x with about |x| < 1."""
        return _from_end(self.end(sign, TERMS), sign, x)


def _from_end(series: Array, sign: int, x: Array) -> tuple[Array, Array]:
    """Evaluate a series at an end, without its constant, and its derivative."""
    odd = series[1::2].any()
    c = series if odd else series[::2]
    y = np.sqrt(x) if odd else x
    value, slope = np.zeros_like(x), np.zeros_like(x)
    power = 2 if odd else 1  # of y in x
    for j in range(len(c) - 1, power - 1, -1):
        value = value * y + c[j]
        slope = slope * y + j * c[j]
    if odd:
        value = value * y + c[1]
    # d/du = -sign d/dx and dy/dx = 1/(2 y): where c[1] is not 0, no slope is asked for.
    return value * y, -sign / power * slope


class Edged(Function):
    """A function that is singular beyond -1 and 1, and has closed formulas there."""

    def closed(self, sign: int, x: Array) -> tuple[Array, Array]:
        """Return the function and its derivative at ``sign (1 - x)``."""
        raise NotImplementedError

    def continued(self, sign: int, x: Array) -> tuple[Array, Array]:
        value, slope = self.closed(sign, x)
        value = value - self.closed(sign, np.zeros_like(x[:1]))[0]
        # The difference cancels near the end; terms of the series fall like (x/edge)^(j/2).
        small = np.abs(x) < self.edge / 32
        value[small] = _from_end(self.end(sign, 30), sign, x[small])[0]
        return value, slope


class Combination(Function):
    """A sum of multiples of functions."""

    def __init__(self, *parts: tuple[float, Function]) -> None:
        self.parts = [(c, f) for c, f in parts if c]
        self.edge = min((f.edge for _, f in self.parts), default=math.inf)

    def taylor(self, u0: float, s: float, m: int) -> Array:
        return sum((c * f.taylor(u0, s, m) for c, f in self.parts), np.zeros(m + 1))

    def compose(self, u: Array, slope: bool) -> list[Array]:
        totals = [np.zeros(len(u)) for _ in range(1 + slope)]
        for c, f in self.parts:
            for total, part in zip(totals, f.compose(u, slope), strict=True):
                total += c * part
        return totals

    def end(self, sign: int, m: int) -> Array:
        return sum((c * f.end(sign, m) for c, f in self.parts), np.zeros(m))

    def continued(self, sign: int, x: Array) -> tuple[Array, Array]:
        parts = [(c, *f.continued(sign, x)) for c, f in self.parts]
        value, slope = (sum((c * p[i] for c, *p in parts), np.zeros_like(x)) for i in (0, 1))
        return value, slope


class Power(Function):
    """The polynomial with these coefficients."""

    def __init__(self, coefficients: ArrayLike) -> None:
        self.coefficients = np.array(coefficients, np.float64)

    def taylor(self, u0: float, s: float, m: int) -> Array:
        c = loops.shifted(self.coefficients, u0) if u0 else self.coefficients
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            c = np.where(c == 0, 0.0, c * s ** np.arange(len(c)))
        return np.pad(c[: m + 1], (0, max(0, m + 1 - len(c))))

    def compose(self, u: Array, slope: bool) -> list[Array]:
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


def exponential(rate: float) -> Exponential | None:
    """Return ``exp(rate (u - 1))``; None where exp(-rate), its first coefficient, underflows."""
    return Exponential(rate) if rate <= STEEP else None


def sine(q: float, a: float, b: float) -> Sine | None:
    """Return ``a sinh(q u) + b cosh(q u)`` over its value at 1; None where exp(-q) underflows."""
    return Sine(q, a, b) if q <= STEEP else None


def matern(nu: float, a: float) -> Matern | None:
    """Return the Matern kernel of half-integer nu, ``z = a sqrt(1 - t)``; None for a > STEEP."""
    return Matern(nu, a) if a <= STEEP else None


class Exponential(Function):
    """The function ``exp(c (u - 1))``."""

    def __init__(self, c: float) -> None:
        self.c = c

    def taylor(self, u0: float, s: float, m: int) -> Array:
        return math.exp(self.c * (u0 - 1)) * _exponential(self.c * s, m)


class Sine(Function):
    """The function ``a sinh(q u) + b cosh(q u)`` over its value at 1."""

    def __init__(self, q: float, a: float, b: float) -> None:
        self.q, self.a, self.b = q, a, b

    def taylor(self, u0: float, s: float, m: int) -> Array:
        q, (up, down) = self.q, (math.exp(self.q * (u0 - 1)), math.exp(-self.q * (u0 + 1)))
        sinh, cosh = (up - down) / 2, (up + down) / 2  # over e^q
        if abs(q * u0) < 0.5:
            sinh = math.sinh(q * u0) * math.exp(-q)
        down = math.exp(-2 * q)
        at_one = (self.a * -math.expm1(-2 * q) + self.b * (1 + down)) / 2
        even, odd = self.a * sinh + self.b * cosh, self.a * cosh + self.b * sinh
        return np.where(np.arange(m + 1) % 2, odd, even) / at_one * _exponential(q * s, m)


def _exponential(x: float, m: int) -> Array:
    """Return x^i / i!, i = 0 .. m."""
    with np.errstate(under="ignore"):
        return np.multiply.accumulate(np.append(1.0, x / np.arange(1, m + 1)))


class Root(Edged):
    """The function ``(1 - z^2 u^2)^(-1/2)`` for z < 1."""

    def __init__(self, z: float, gap: float) -> None:
        self.z, self.gap = z, gap  # gap is 1 - z
        self.edge = np.longdouble(gap) / np.longdouble(z)  # where ``parts`` has w = 0

    def taylor(self, u0: float, s: float, m: int) -> Array:
        # With v = z u: (n+1)(1 - v^2) f_(n+1) = (2n+1) v f_n + n f_(n-1).
        z, gap = self.z, self.gap
        v = z * u0
        det = (gap + z * (1 - abs(u0))) * (1 + abs(v))
        return _root(v, det, z * s, m)

    def compose(self, u: Array, slope: bool) -> list[Array]:
        v0 = self.z * float(u[0])
        gap = (self.gap + self.z * (1 - float(u[0]))) * (1 + v0)
        root = _series.inverse_root(self.z**2 * _series.multiply(u, u), gap)
        if not slope:
            return [root]
        cube = _series.multiply(root, _series.multiply(root, root))
        return [root, self.z**2 * _series.multiply(u, cube)]

    def parts(self, sign: int, x: Array) -> tuple[Array, Array]:
        """Return ``asin(z u)`` and this function, at ``u = sign (1 - x)``."""
        w = self.gap + self.z * x  # 1 - sign z u
        arc = sign * (math.pi / 2 - 2 * np.arcsin(np.sqrt(w / 2)))
        return arc, 1 / (np.sqrt(w) * np.sqrt(2 - w))

    def closed(self, sign: int, x: Array) -> tuple[Array, Array]:
        root = self.parts(sign, x)[1]
        return root, self.z**2 * sign * (1 - x) * root**3


def _root(v: float, det: float, s: float, m: int) -> Array:
    f = [1 / math.sqrt(det), 0.0]
    f[1] = v * s / det * f[0]
    a, b = v * s / det, s * s / det
    for n in range(1, m):
        f.append(((2 * n + 1) * a * f[n] + n * b * f[n - 1]) / (n + 1))
    return np.array(f[: m + 1])


class Kappa(Function):
    """The function of Cho and Saul of order n over its value at 1: kappa_n' = n^2 kappa_(n-1)."""

    edge = 0.0

    def __init__(self, n: int) -> None:
        self.n = n
        self.top = float(math.prod(range(1, 2 * n, 2)))  # (2n - 1)!!

    def taylor(self, u0: float, s: float, m: int) -> Array:
        det = (1 - u0) * (1 + u0)
        derivative = _root(u0, det, s, max(m, 1)) / math.pi
        for order, value in enumerate(self._values(u0)):
            derivative = _integral(value, derivative, (order * order or 1) * s)
        return derivative[: m + 1] / self.top

    def compose(self, u: Array, slope: bool) -> list[Array]:
        u0, du = float(u[0]), _series.derivative(u)
        root = _series.inverse_root(_series.multiply(u, u), (1 - u0) * (1 + u0))
        orders = [root / math.pi]
        for order, value in enumerate(self._values(u0)):
            inner = (order * order or 1) * _series.multiply(du, orders[-1])
            orders.append(_series.integral(inner, value))
        slopes = [(self.n**2 or 1) * orders[-2] / self.top] if slope else []
        return [orders[-1] / self.top, *slopes]

    def _values(self, u: float) -> list[float]:
        """Return kappa_0 .. kappa_n at u >= 0, or at u < 0 where all of them are smooth."""
        sin = math.sqrt((1 - u) * (1 + u))
        values = [1 - math.atan2(sin, u) / math.pi]
        # kappa_n = (2n-1) u kappa_(n-1) + ((n-1)^2 sin^2) kappa_(n-2), kappa_1 = u kappa_0 + sin/pi
        for n in range(1, self.n + 1):
            rest = sin / math.pi if n == 1 else (n - 1) ** 2 * sin * sin * values[n - 2]
            values.append((2 * n - 1) * u * values[n - 1] + rest)
        return values

    def end(self, sign: int, m: int) -> Array:
        # kappa_0(1 - y^2) = 1 - (2/pi) asin(y/sqrt 2), and kappa_0(y^2 - 1) is 1 less that.
        y = np.zeros(m)
        y[1::2] = _arcsine(m // 2) * math.sqrt(0.5) ** np.arange(1, 2 * (m // 2), 2)
        series = -sign * 2 / math.pi * y
        series[0] = 1.0 if sign > 0 else 0.0
        for n in range(1, self.n + 1):
            slope = -sign * 2 * n * n * series  # d/dy = -2 sign y d/du
            series = np.zeros(m)
            series[2:] = slope[: m - 2] / np.arange(2, m)
            series[0] = math.prod(range(1, 2 * n, 2)) if sign > 0 else 0.0
        return series / self.top

    def continued(self, sign: int, x: Array) -> tuple[Array, Array]:
        # The terms fall like (x/2)^(j/2), so that fewer are enough where x is small. Where it is
        # not, no singularity is near, and double precision is enough.
        series, size = self.end(sign, TERMS), np.abs(x)
        value, slope = np.empty_like(x), np.empty_like(x)
        last = 0.0
        for most, terms in ((0.01, 20), (0.25, 48), (0.7, 96), (math.inf, TERMS)):
            there = (last <= size) & (size < most)
            last = most
            if not there.any():
                continue
            some = x[there] if terms < 96 else x[there].astype(np.complex128)
            value[there], slope[there] = _from_end(series[:terms], sign, some)
        return value, slope


@functools.cache
def _arcsine(m: int) -> Array:
    """Return the first m coefficients of asin, those of odd powers."""
    c, out = 1.0, []
    for i in range(m):
        out.append(c / (2 * i + 1))
        c *= (2 * i + 1) / (2 * i + 2)
    return np.array(out)


def _integral(value: float, derivative: Array, factor: float) -> Array:
    """Integrate ``factor`` times a series, to the same length, with the given value at 0."""
    n = len(derivative)
    return np.append(value, factor * derivative[: n - 1] / np.arange(1, n))


class Arcsine(Edged):
    """The function ``asin(z u)/asin(z)`` for z < 1: the dual of erf."""

    def __init__(self, z: float, gap: float) -> None:
        self.root, self.top = Root(z, gap), math.atan2(z, math.sqrt(gap * (1 + z)))
        self.edge = self.root.edge

    def taylor(self, u0: float, s: float, m: int) -> Array:
        z = self.root.z
        slope = self.root.taylor(u0, s, max(m, 1))
        return _integral(math.asin(z * u0), slope, z * s)[: m + 1] / self.top

    def compose(self, u: Array, slope: bool) -> list[Array]:
        z = self.root.z
        root = z / self.top * self.root.compose(u, False)[0]
        first = math.asin(z * float(u[0])) / self.top
        value = _series.integral(_series.multiply(_series.derivative(u), root), first)
        return [value, root] if slope else [value]

    def closed(self, sign: int, x: Array) -> tuple[Array, Array]:
        arc, root = self.root.parts(sign, x)
        return arc / self.top, self.root.z / self.top * root


class Gelu(Edged):
    """The dual of x Phi(x) at variance q over its value at 1 (duals/gelu.h).

    With ``r = (1 - z^2 u^2)^(-1/2)``, ``z = q/(1 + q)`` and ``k = 1/2 + asin(z u)/pi`` it is
    ``q/2 u k + q z/(2 pi) (1/r + (1 - z)^2 u^2 r)``, and its derivative, without cancellation,
    ``q/2 k + z^2/(2 pi) u ((3 - z) r + (1 - z) u r')``.
    """

    def __init__(self, q: float) -> None:
        self.q, self.root = q, Root(q / (1 + q), 1 / (1 + q))
        self.edge = self.root.edge
        self.top = 1.0
        self.top = float(self.closed(1, np.zeros(1))[0][0])

    def taylor(self, u0: float, s: float, m: int) -> Array:
        z, gap, line = self.root.z, self.root.gap, [u0, s]
        root = self.root.taylor(u0, s, m + 1)
        kappa0 = _integral(0.5 + math.asin(z * u0) / math.pi, root, z * s / math.pi)[: m + 1]
        down, root = root[1:] * np.arange(1, m + 2) / s, root[: m + 1]
        inner = _times(line, (2 + gap) * root + gap * _times(line, down))
        slope = self.q / 2 * kappa0 + z * z / (2 * math.pi) * inner
        sign = 1 if u0 >= 0 else -1
        value = float(self.closed(sign, np.array([1 - abs(u0)]))[0][0]) * self.top
        return _integral(value, slope, s)[: m + 1] / self.top

    def compose(self, u: Array, slope: bool) -> list[Array]:
        z, gap, times = self.root.z, self.root.gap, _series.multiply
        root, down = self.root.compose(u, True)
        du, arc = _series.derivative(u), math.asin(z * float(u[0]))
        kappa0 = _series.integral(z / math.pi * times(du, root), 0.5 + arc / math.pi)
        inner = times(u, (2 + gap) * root + gap * times(u, down))
        up = (self.q / 2 * kappa0 + z * z / (2 * math.pi) * inner) / self.top
        first = float(self.closed(1, np.array([1 - float(u[0])]))[0][0])
        value = _series.integral(times(du, up), first)
        return [value, up] if slope else [value]

    def closed(self, sign: int, x: Array) -> tuple[Array, Array]:
        z, gap, u = self.root.z, self.root.gap, sign * (1 - x)
        arc, root = self.root.parts(sign, x)
        down = self.root.closed(sign, x)[1]
        kappa0, c = 0.5 + arc / math.pi, z / (2 * math.pi)
        value = self.q * (u * kappa0 / 2 + c * (1 / root + (gap * u) ** 2 * root))
        slope = self.q / 2 * kappa0 + z * c * u * ((2 + gap) * root + gap * u * down)
        return value / self.top, slope / self.top


def _times(line: list[float], series: Array) -> Array:
    """Multiply a series by ``line[0] + line[1] v``."""
    product = line[0] * series
    product[1:] += line[1] * series[:-1]
    return product


class Matern(Function):
    """The Matern kernel of half-integer nu as a function of t, ``z = a sqrt(1 - t)``.

    The kernel of nu = 1/2 is exp(-z), and d/dt of that of nu is ``a^2 / (4 (nu - 1))`` times that
    of nu - 1.
    """

    edge = 0.0

    def __init__(self, nu: float, a: float) -> None:
        self.nu, self.a = nu, a

    def _orders(self) -> list[float]:
        return [0.5 + i for i in range(1, round(self.nu + 0.5))]

    def taylor(self, u0: float, s: float, m: int) -> Array:
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

    def end(self, sign: int, m: int) -> Array:
        if sign < 0:
            return super().end(sign, m)
        series = _exponential(-self.a, m - 1)
        for nu in self._orders():
            slope = -2 * self.a * self.a / (4 * (nu - 1)) * series
            series = np.append([1.0, 0.0], slope[: m - 2] / np.arange(2, m))
        return series


class Generic(Function):
    """The function ``1/(2 - u)``, an example of one whose coefficients are all positive."""

    def taylor(self, u0: float, s: float, m: int) -> Array:
        with np.errstate(under="ignore"):
            return (s / (2 - u0)) ** np.arange(m + 1) / (2 - u0)
