"""Eigenvalues on spheres from the powers of the cosine: sums of non-negative terms.

    mu_k = sum over n = k, k + 2, .. of a_n L_k(n)        (ext/include/kernelcore/gegenbauer.h)

a_n is known one by one up to some n, and beyond as a smooth function of n. There the sum goes on
term by term while the terms change fast, and after that over blocks of the lattice, each by a
Gaussian rule for the sum over its points: positive weights, at points between them.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from .._types import Array
from ..engine import threads as _threads
from ..engine.cpu import loops
from ..linalg import eigh
from ._cut import Build, Exponentials, exponentials
from ._zonal import Frame, Stop, Zonal

EPS = float(np.finfo(np.float64).eps)
RULE = 16  # points of a rule
CHANGE = 8.0  # how much the logarithm of the terms may change over a block
# The most coefficients one by one: before a tail that takes compositions, without a tail, and where
# there are no compositions.
MOST, MOST_ENDLESS, MOST_EASY = 1 << 12, 1 << 14, 1 << 17
CUT = 1 << 11  # at so many the tail is taken from the cuts if the series are not good enough
ENOUGH = 1e-11  # the error up to which it is taken
LONG = 1e4  # the rate of exponentials up to which their powers are summed
STEPPED = 1 << 14  # the dimension up to which L_0 is made by steps of two dimensions: faster


Lattice = tuple[Array, Array, Array]


@dataclasses.dataclass
class Puiseux:
    """The a_n for large n, from series at singularities (Flajolet and Odlyzko 1990)."""

    parts: list[tuple[float, Array, Array]]  # place, alphas, coefficients of (1 - t/place)^alpha
    rate, error = 0.0, 0.0  # one of the places is t = 1

    @functools.cached_property
    def power(self) -> float:
        """The power such that a_n falls like n^-power."""
        return 1 + min(float(alphas[0]) for place, alphas, _ in self.parts if place == 1.0)

    def scaled(self, n: Array, parity: int) -> Array:
        """Return a_n for real n."""
        total = np.zeros_like(n)
        for place, alphas, c in self.parts:
            sign = -1.0 if place < 0 and parity else 1.0
            part = np.zeros_like(n)
            for base in np.unique(alphas % 1):
                same = alphas % 1 == base
                part += _binomials(n, base, alphas[same], c[same])
            with np.errstate(under="ignore"):
                total += sign * part * np.exp(-n * math.log(abs(place)))
        return total

    def size(self, n: float) -> tuple[float, float]:
        """Return the logarithm of a_n, but for a constant, and how fast it falls with log n."""
        return -self.power * math.log(n), self.power


@dataclasses.dataclass
class Powers:
    """The coefficients a_n of a function of the cosine.

    ``a_n`` is ``exact[n] 2^exponent[n]``; beyond them the tail has ``a_n e^(rate n)``. Without a
    tail these are all, or fall geometrically.
    """

    exact: Array
    exponent: Array
    tail: Puiseux | Exponentials | None
    error: float  # of the tail where it takes over, relative
    closed: bool  # whether all a_n are there: a polynomial, or a tail
    full: bool = True  # whether asking for more would bring none
    lattices: dict[tuple[int, int, int], Lattice] = dataclasses.field(default_factory=dict)

    def nonzero(self, parity: int) -> bool:
        """Return whether coefficients of this parity go on for ever."""
        half = len(self.exact) // 2
        return bool(self.exact[half + (parity - half) % 2 :: 2].any())


def _binomials(n: Array, base: float, alphas: Array, c: Array) -> Array:
    """Sum c_j [t^n] (1 - t)^alpha_j for alphas that differ by integers, n large."""
    # [t^n] (1 - t)^a = Gamma(n - a)/(Gamma(-a) Gamma(n + 1)), and from a to a + 1 the factor
    # -(a + 1)/(n - a - 1). Backwards: Horner's rule in it.
    dense = np.zeros(round(float(alphas.max() - base)) + 1)
    dense[np.rint(alphas - base).astype(int)] = c
    total = np.full_like(n, dense[-1])
    for i in range(len(dense) - 2, -1, -1):
        a = base + i
        total = dense[i] + total * (-(a + 1) / (n - a - 1))
    return total * _gamma_ratio(n, -base, 1.0) / math.gamma(-base)


def _gamma_ratio(n: Array, a: float, b: float) -> Array:
    """Gamma(n + a)/Gamma(n + b) for large n and small a, b, to a few eps (Stirling)."""
    log = (a - b) * np.log(n) + (b - a)
    for sign, x in ((1, a), (-1, b)):
        w = 1 / (n + x)
        stirling = w * (1 / 12 - w * w * (1 / 360 - w * w * (1 / 1260 - w * w / 1680)))
        log = log + sign * ((n + x - 0.5) * np.log1p(x / n) + stirling)
    return np.exp(log)


# ---- from a kernel


def expand(build: Build, reach: int) -> Powers | None:
    """Return the powers of ``build(frame)``, a Zonal; without a tail, up to ``reach`` at least.

    It is None where there is no series, or not in float64.
    """
    frame = Frame(256)
    while True:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            zonal = framed(build, frame)
            if zonal is None or not np.isfinite(zonal.taylor).all():
                return None
            frame, tail = zonal.frame, _tail(zonal)
        longer = dataclasses.replace(frame, count=2 * frame.count)
        if tail:
            powers = _tailed(zonal, tail)
            # Coefficient n is off by about n eps: from some n on, more coefficients are no better.
            if powers.error <= 2048 * EPS:
                return powers
            if frame.count == CUT or powers.error == math.inf:
                other = _tailed(zonal, exponentials(build, frame.count))
                powers = min(powers, other, key=lambda powers: powers.error)
                if powers.error <= ENOUGH:
                    return powers
            if powers.error < math.inf and frame.count < (MOST_EASY if zonal.easy else MOST):
                frame = longer
                continue
            return powers
        if frame.count <= CUT and _slow(zonal):
            powers = _tailed(zonal, exponentials(build, frame.count))
            if powers.error <= ENOUGH:
                return powers
            if frame.count < CUT:
                frame = longer
                continue
        count = min(reach + 1, MOST_EASY if zonal.easy else MOST_ENDLESS)
        rho = _better_scale(zonal.taylor, frame)
        if frame.count < count or rho != frame.rho:
            frame = dataclasses.replace(frame, count=max(count, frame.count), rho=rho)
            continue
        exponent = -math.log2(frame.rho) * np.arange(frame.count)
        full = frame.count < reach + 1
        return Powers(zonal.taylor, exponent, None, 0.0, _finite(zonal, frame), full)


def exponential(rate: float) -> Powers:
    """Return those of ``exp(rate (t - 1))``, whose coefficients float64 alone cannot hold."""
    n = np.arange(1, int(rate + 60 * math.sqrt(rate)) + 4096, dtype=np.longdouble)
    log = np.concatenate([[-np.longdouble(rate)], np.log(np.longdouble(rate) / n)])
    log = np.cumsum(log) / np.log(np.longdouble(2))
    exponent = np.floor(log)
    return Powers((2 ** (log - exponent)).astype(float), exponent.astype(float), None, 0.0, False)


def framed(build: Build, frame: Frame) -> Zonal | None:
    """Build in the frame, or in the one it asks for instead; None where there is no series."""
    for _ in range(16):
        made = build(frame)
        if not isinstance(made, Stop):
            return made
        if made.fields is None:
            return None
        frame = dataclasses.replace(frame, **made.fields)
    return None


def _tail(zonal: Zonal) -> Puiseux | None:
    """Return what is not analytic at the singularities: powers that are not whole."""
    frame, tail = zonal.frame, []
    for place, series in ((1.0, zonal.plus), (-frame.far, zonal.minus)):
        j = np.arange(len(series))
        keep = (j % frame.root != 0) & (series != 0)
        if keep.any():
            tail.append((place, j[keep] / frame.root, series[keep]))
    return Puiseux(tail) if tail else None


def _tailed(zonal: Zonal, tail: Puiseux | Exponentials | None) -> Powers:
    """Return powers with that tail, and how far it is from the last coefficients known."""
    powers = Powers(zonal.taylor, np.zeros(zonal.frame.count), tail, math.inf, True)
    if tail:
        powers.error = max(_mismatch(powers, tail), tail.error)
    return powers


def _slow(zonal: Zonal) -> bool:
    """Return whether coefficients fall geometrically, but over more than some thousands of them."""
    size = np.abs(zonal.taylor)
    last = [size[-2 * i :].max() for i in (16, 32)]
    return zonal.frame.rho == 1 and 0 < last[1] < last[0] * math.exp(32 * 40 / MOST)


def _mismatch(powers: Powers, tail: Puiseux | Exponentials) -> float:
    """Return the relative distance of the tail from the last coefficients known, or infinity."""
    n, worst = len(powers.exact), 0.0
    for parity in (0, 1):
        if powers.nonzero(parity):
            at = np.arange(n - 32 + (parity - n) % 2, n, 2)
            own = powers.exact[at]
            if not own.all():  # zeros between: it is singular elsewhere on the circle, too
                return math.inf
            with np.errstate(all="ignore"):
                other = tail.scaled(at * 1.0, parity) * np.exp(-tail.rate * at)
                off = float(np.abs(other / own - 1).max())
            worst = max(worst, off if math.isfinite(off) else math.inf)
    return worst


def _better_scale(taylor: Array, frame: Frame) -> float:
    """Return a power of two at which the coefficients are in range, or the same again."""
    size = np.abs(taylor)
    good = np.flatnonzero(size > 1e-290)
    if len(good) < 2 or good[-1] >= len(size) - 3:
        return frame.rho
    n, first = int(good[-1]), int(good[0])
    if not size[n + 1 :].any() and size[n] > 1e-200:
        return frame.rho  # a polynomial
    slope = (math.log2(size[first]) - math.log2(size[n])) / (n - first)
    return frame.rho * 2.0 ** max(0, math.floor(slope))


def _finite(zonal: Zonal, frame: Frame) -> bool:
    """Return whether it is a polynomial: no upper half, and the lower has all of the value at 1."""
    half = len(zonal.taylor) // 2
    with np.errstate(under="ignore"):
        total = float((zonal.taylor[:half] * frame.rho ** -np.arange(half)).sum())
    return not zonal.taylor[half:].any() and abs(total - zonal.plus[0]) <= 1e-9 * abs(zonal.plus[0])


# ---- the sums


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
    start: int, degree: int, dims: tuple[int, int], tail: Puiseux | Exponentials
) -> list[tuple[float, float]]:
    """Cut the lattice ``start, start + 2, ..`` into blocks, for all dimensions between two.

    A block is its first point and its number of points: few enough for the highest dimension, where
    terms change fastest, and on to where the lowest, whose sum is longest, has 1e-17 left.
    """
    low, high = dims
    base = low / 2
    power = 64.0 * (degree + low) ** 2  # from about there on L_k(n) is a power of n

    def log_projection(n: float, k: int) -> float:
        m = min(n, power)
        size = (
            math.lgamma(m + 1) - math.lgamma(m - k + 1) + math.lgamma((m - k + 1) / 2)
            - (math.lgamma(base + (m + k) / 2) if base < 1e6 else rise((m + k) / 2))
        )  # fmt: skip
        return size - (low - 1) / 2 * math.log(n / m)

    def rise(c: float) -> float:
        """Return the same less ``log Gamma(base)``, next to which nothing would be left of it."""
        return c * (math.log(base) - 1) + (base + c - 0.5) * math.log1p(c / base)

    n, blocks, most = float(start), [], [-math.inf, -math.inf]
    size, fall = tail.size(n)
    while True:
        # The slope d log L_k / dn, by Stirling's formula, is largest at one end of the degrees.
        slope = max(abs(math.log((1 - k / (n + 1)) * (1 + (k + high) / n))) for k in (0, degree))
        points = min(CHANGE / (slope / 2 + fall / n), n - degree) // 2
        # Only some lengths occur, so that few rules are made.
        points = (
            float(round(2.0 ** (math.floor(4 * math.log2(points)) / 4))) if points > RULE else 1.0
        )
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


def _lattice(powers: Powers, dim: int, degree: int, parity: int) -> Lattice:
    """Return points n, a_n times weights, exponents; for all dims to the next power of two."""
    low = 1 << (dim.bit_length() - 1)
    key = (low, degree, parity)
    if key not in powers.lattices:
        powers.lattices[key] = _new_lattice(powers, (low, 2 * low - 1), degree, parity)
    return powers.lattices[key]


def _new_lattice(powers: Powers, dims: tuple[int, int], degree: int, parity: int) -> Lattice:
    n = np.arange(parity, len(powers.exact), 2, dtype=np.float64)
    a, exponent = powers.exact[parity::2], powers.exponent[parity::2]
    if not powers.tail or not powers.nonzero(parity):
        keep = a != 0 if a.any() else n == n[0]
        return n[keep], a[keep], exponent[keep]
    start = len(powers.exact) + (parity - len(powers.exact)) % 2
    points, weights = [], []
    if start < degree + RULE:  # one by one while L_k(n) vanishes, or all but
        points.append(np.arange(start, degree + RULE, 2, dtype=np.float64))
        weights.append(np.ones(len(points[0])))
        start += 2 * len(points[0])
    for first, count in _blocks(start, degree, dims, powers.tail):
        nodes, w = _rule(count) if count > 1 else (np.zeros(1), np.ones(1))
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
    """Return ``log(Gamma(b + c)/Gamma(b))``, b >= 1 and c >= 0, with an error of its own eps.

    It is Stirling's series, in a form where nothing of the size of ``b log b`` cancels.
    """
    small = b < 32
    # Gamma(b) and Gamma(b + c) from those at arguments larger by 32
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

    It is that of the circle times Gamma(n/2 + 1) Gamma(dim/2)/Gamma((n + dim)/2).
    """
    half, z = np.asarray(n / 2, np.longdouble), np.longdouble(dim) / 2
    least, most = np.minimum(half, z - 1), np.maximum(half + 1, z)
    log = (_log_rise(np.ones_like(least), least) - _log_rise(most, least)) / np.log(
        np.longdouble(2)
    )
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
    # The rest has two forms; in the one taken no term is larger than the sum.
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
    """The sums for degrees 0 .. degree: mantissas, exponents of two, and what they rest on.

    ``error`` is their relative rounding error where no terms cancel.
    """

    def __init__(self, powers: Powers, dim: int, degree: int) -> None:
        parities = [k for k in (0, 1) if k <= degree]
        lattices = [_lattice(powers, dim, degree, k) for k in parities]
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
            n[k, :count], x[k, :count] = points, a * first
            exponent[k, :count] = power
            watched[k] = count - 1
        out = np.zeros((len(parities), degree // 2 + 1, 4))
        n_threads = min(_threads.resolve(None), len(parities)) if x.size * out.shape[1] > 2e5 else 1
        # The driver looks at the size of terms every 32 degrees of a parity, each of which may lose
        # a factor of dim: the terms of one call must not leave the range of float64.
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
