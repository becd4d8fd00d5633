"""Eigenvalues on spheres from the powers of the cosine: sums of non-negative terms.

    mu_k = sum over n = k, k + 2, .. of a_n L_k(n)        (ext/include/kernelcore/gegenbauer.h)

a_n is known one by one up to some n, and beyond as a smooth function of n. There the sum goes on
term by term while the terms change fast, and after that over blocks of the lattice, each by a
Gaussian rule for the sum over its points: positive weights, at points between them.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .._types import Array
from ..engine import loops
from ..engine import threads as _threads
from ..linalg import eigh
from ..series.coefficients import EPS, Powers, Puiseux
from ..series.cut import Exponentials

RULE = 16  # points of a rule
CHANGE = 8.0  # how much the logarithm of the terms may change over a block
LONG = 1e4  # the rate of exponentials up to which their powers are summed
SINGLE = np.zeros(1), np.ones(1)  # the rule of one point
STEPPED = 1 << 14  # the dimension up to which L_0 is made by steps of two dimensions: faster


@functools.lru_cache(maxsize=1024)
def _rule(points: float) -> tuple[Array, Array]:
    """Return Gauss's rule for the sum over 0, 1, .., points - 1: nodes and weights.

    The polynomials orthogonal over these points are Gram's (discrete Chebyshev).
    """
    j = np.arange(1, RULE)
    off = np.sqrt(j**2 * (1 - (j / points) ** 2) / (4 * (4 * j**2 - 1.0)))
    nodes, vectors = eigh(np.diag(off, 1) + np.diag(off, -1))
    return (points - 1) / 2 + points * nodes, points * vectors[0] ** 2


def _blocks(
    start: int, degree: int, low: int, tail: Puiseux | Exponentials
) -> list[tuple[float, float]]:
    """Cut the lattice ``start, start + 2, ..`` into blocks, for dimensions ``low .. 2 low - 1``.

    A block is its first point and its number of points. These are few enough for the highest
    dimension, where terms change fastest. The blocks end where 1e-17 of the sum is left in the
    lowest dimension, where it is longest.
    """
    high, base = 2 * low - 1, low / 2
    power = 64.0 * (degree + low) ** 2  # from about there on L_k(n) is a power of n

    def log_projection(n: float, k: int) -> float:
        m = min(n, power)
        size = (
            math.lgamma(m + 1) - math.lgamma(m - k + 1) + math.lgamma((m - k + 1) / 2)
            - (math.lgamma(base + (m + k) / 2) if base < 1e6 else rise((m + k) / 2))
        )  # fmt: skip
        return size - (low - 1) / 2 * math.log(n / m)

    def rise(c: float) -> float:
        """Return ``log Gamma(base + c)`` less ``log Gamma(base)``, in which it would be lost."""
        return c * (math.log(base) - 1) + (base + c - 0.5) * math.log1p(c / base)

    n, blocks, most = float(start), [], [-math.inf, -math.inf]
    size, fall = tail.size(n)
    while True:
        # The slope d log L_k / dn, by Stirling's formula, is largest at one end of the degrees.
        first = math.log(1 + high / n)
        last = math.log((1 - degree / (n + 1)) * (1 + (degree + high) / n))
        slope = max(first, abs(last))
        points = min(CHANGE / (slope / 2 + fall / n), n - degree) // 2
        # Only a few lengths occur, so that few rules are made.
        length = 2.0 ** (math.floor(4 * math.log2(points)) / 4) if points > RULE else 1.0
        points = float(round(length))
        blocks.append((n, points))
        n += 2 * points
        size, fall = tail.size(n)
        left = 0
        for i, k in enumerate((0, degree)):
            term = log_projection(n, k) + size + math.log(n)
            most[i] = max(most[i], term)
            left += term - math.log(max(fall + (low - 1) / 2 - 1, 0.01)) > most[i] - 40
        if not left:
            return blocks


@functools.lru_cache(maxsize=128)
def _lattice(powers: Powers, low: int, degree: int, parity: int) -> tuple[Array, Array, Array]:
    """Return points n, a_n times weights, and exponents, for dimensions ``low .. 2 low - 1``."""
    n = np.arange(parity, len(powers.exact), 2, dtype=np.float64)
    a, exponent = powers.exact[parity::2], powers.exponent[parity::2]
    if not powers.tail or not powers.nonzero(parity):
        keep = a != 0 if a.any() else n == n[0]
        return n[keep], a[keep], exponent[keep]
    start = len(powers.exact) + (parity - len(powers.exact)) % 2
    points, weights = [], []
    if start < degree + RULE:  # one by one while L_k(n) vanishes or nearly does
        points.append(np.arange(start, degree + RULE, 2, dtype=np.float64))
        weights.append(np.ones(len(points[0])))
        start += 2 * len(points[0])
    for first, count in _blocks(start, degree, low, powers.tail):
        nodes, w = _rule(count) if count > 1 else SINGLE
        points.append(first + 2 * nodes)
        weights.append(w)
    far = np.concatenate(points)
    power = -powers.tail.rate / math.log(2) * far
    whole = np.floor(power)
    more = powers.tail.scaled(far, parity) * np.concatenate(weights) * 2 ** (power - whole)
    return (
        np.concatenate([n, far]), np.concatenate([a, more]), np.concatenate([exponent, whole])
    )  # fmt: skip


def _circle(n: Array) -> Array:
    """Return E[t^n] on the circle, Gamma((n+1)/2)/(sqrt(pi) Gamma(n/2 + 1)), n even or large."""
    z = n / 2
    table = np.multiply.accumulate(np.append(1.0, (np.arange(1, 128) - 0.5) / np.arange(1, 128)))
    w = 1 / np.maximum(z, 64)
    c = (1, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144, 869 / 4194304)
    series = np.polynomial.polynomial.polyval(w, c)
    small = table[np.minimum(z, 127).astype(int)]
    return np.where(z < 127, small, series * np.sqrt(w / math.pi))


def _log_rise(b: Any, c: Any) -> Any:
    """Return ``log(Gamma(b + c)/Gamma(b))`` for b >= 1 and c >= 0 with a relative error of eps.

    It is Stirling's series, in a form where nothing of the size of ``b log b`` cancels.
    """
    small = b < 32
    # Gamma(b) and Gamma(b + c) are found from those at arguments larger by 32.
    steps = np.where(small, b, 1)[..., None] + np.arange(32)
    ahead = steps + np.where(small, c, 0)[..., None]
    b = np.where(small, b + 32, b)
    log = c * np.log(b) + (b + c - 0.5) * np.log1p(c / b) - c + _stirling(b + c) - _stirling(b)
    return log - np.where(small, np.log(ahead / steps).sum(-1), 0)


def _stirling(x: Any) -> Any:
    w = 1 / x
    v = w * w
    return w * (1 / 12 - v * (1 / 360 - v * (1 / 1260 - v * (1 / 1680 - v / 1188))))


def _sphere(n: Array, dim: int) -> tuple[Array, Array, float]:
    """Return E[t^n] on the sphere of R^dim, n even or large: mantissas, exponents, their error.

    It is E[t^n] on the circle times Gamma(n/2 + 1) Gamma(dim/2)/Gamma((n + dim)/2).
    """
    half, z = np.asarray(n / 2, np.longdouble), np.longdouble(dim) / 2
    least, most = np.minimum(half, z - 1), np.maximum(half + 1, z)
    log = _log_rise(np.ones_like(least), least) - _log_rise(most, least)
    log = log / np.log(np.longdouble(2))
    whole = np.floor(log)
    error = 4 * float(np.finfo(np.longdouble).eps * np.abs(log).max(initial=0.0))
    return _circle(n) * (2 ** (log - whole)).astype(np.float64), whole.astype(np.float64), error


def steep(rate: float, dim: int, degree: int) -> tuple[Array, Array]:
    """Return logarithms of the eigenvalues of ``exp(rate (t - 1))``, and their relative errors.

    These are ``exp(-s) Gamma(p/2) (2/s)^(p/2 - 1) I_nu(s)`` with s the rate and
    ``nu = k + p/2 - 1``. The Bessel function is found by Debye's series (DLMF 10.41.3), in powers
    of ``1/sqrt(nu^2 + s^2)``: three of them are enough for any order where s is large.
    """
    s, start = np.longdouble(rate), np.longdouble(dim) / 2 - 1
    k = np.arange(degree + 1)
    nu = start + k
    root = np.hypot(nu, s)
    square = (nu / root) ** 2
    debye = np.zeros_like(nu)
    for terms, over in (
        ((30375, -369603, 765765, -425425), 414720), ((81, -462, 385), 1152), ((3, -5), 24),
    ):  # fmt: skip
        debye = (np.polynomial.polynomial.polyval(square, terms) / over + debye) / root
    log = k * np.log(s / (nu + root)) + np.log1p(debye)
    # The rest has two forms; the one is used in which no term is larger than the sum.
    if s < start:
        excess = s * s / (root + nu)  # root - nu
        size = [excess - s, k - start * np.log1p((2 * k + excess) / (2 * start))]
        log = log + size[0] + size[1] + np.log(start / root) / 2 + _stirling(start)
    else:
        size = [nu * nu / (root + s), _log_rise(np.longdouble(1), start)]
        size.append(start * np.log(2 / (nu + root)))
        log = log + sum(size) - np.log(2 * np.longdouble(np.pi) * root) / 2
    rounding = 4 * np.finfo(np.longdouble).eps * sum(np.abs(part) for part in size)
    log = log.astype(np.float64)
    # The errors are those of the logarithm and of the rate.
    return log, (64 * EPS + 3 * EPS * np.abs(log) + rounding).astype(np.float64)


class Sums:
    """The sums for degrees 0 .. degree: mantissas and exponents of two, with their last terms and
    the sums of sizes. ``error`` is their relative rounding error where no terms cancel.
    """

    def __init__(self, powers: Powers, dim: int, degree: int) -> None:
        parities = [k for k in (0, 1) if k <= degree]
        low = 1 << (dim.bit_length() - 1)
        lattices = [_lattice(powers, low, degree, k) for k in parities]
        longest = max(len(n) for n, _, _ in lattices)
        shape = (len(parities), -(-longest // loops.lanes()) * loops.lanes())
        n, x, exponent = np.ones(shape), np.zeros(shape), np.zeros(shape)
        watched = np.zeros(len(parities), np.int64)
        base = 2 + dim % 2 if dim <= STEPPED else dim
        self.error = EPS * (64 + (dim - base) / 2)
        for k, (points, a, power) in zip(parities, lattices, strict=True):
            count = len(points)
            if base == dim > 3:
                first, more, error = _sphere(points + k, dim)
                power = power + more
                self.error = max(self.error, 64 * EPS + error)
            else:
                first = _circle(points + k) if base == 2 else 1 / (points + k + 1)
            n[k, :count], x[k, :count], exponent[k, :count] = points, a * first, power
            watched[k] = count - 1
        out = np.zeros((len(parities), degree // 2 + 1, 4))
        n_threads = min(_threads.resolve(None), len(parities)) if x.size * out.shape[1] > 2e5 else 1
        # The driver looks at the size of terms every 32 degrees of a parity, and each may cost a
        # factor of dim: the terms of one call must not leave the range of float64.
        degrees = len(out[0]) if dim < 1 << 16 else 512 // dim.bit_length()
        for start in range(0, len(out[0]), degrees):
            first, count = np.array(parities) + 2 * start, min(degrees, len(out[0]) - start)
            out[:, start : start + count] = loops.project(
                n, x, exponent, base, dim, first, watched, count, n_threads
            )
            base = dim
        every = np.arange(degree + 1)
        self.mantissa, self.size, self.last, self.exponent = out[every % 2, every // 2].T

    def log(self) -> Array:
        with np.errstate(divide="ignore"):
            log = np.log(np.abs(self.mantissa))
        return np.where(self.mantissa == 0, -math.inf, log + self.exponent * math.log(2))
