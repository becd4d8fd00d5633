"""Coefficients a_n of functions of the cosine: one by one to some n, and a tail beyond."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from .._types import Array
from .cut import Build, Exponentials, exponentials
from .zonal import Frame, Stop, Zonal

EPS = float(np.finfo(np.float64).eps)
# The most coefficients that are found one by one: before a tail that takes compositions, without a
# tail, and where there are no compositions.
MOST, MOST_ENDLESS, MOST_EASY = 1 << 12, 1 << 14, 1 << 17
CUT = 1 << 11  # the count from which the tail is taken from the cuts if the series are poor
ENOUGH = 1e-11  # the error up to which it is taken


@dataclasses.dataclass
class Puiseux:
    """A tail of a_n for large n, from series at singularities (Flajolet and Odlyzko 1990)."""

    parts: list[tuple[float, Array, Array]]  # place, alphas, coefficients of (1 - t/place)^alpha
    rate, error = 0.0, 0.0  # a_n does not fall geometrically, as one of the places is t = 1

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


@dataclasses.dataclass(eq=False)
class Powers:
    """The coefficients a_n of a function of the cosine.

    ``a_n`` is ``exact[n] 2^exponent[n]``; beyond these the tail gives ``a_n e^(rate n)``. Without a
    tail there are no others, or they fall geometrically.
    """

    exact: Array
    exponent: Array
    tail: Puiseux | Exponentials | None
    error: float  # relative, of the tail where it takes over
    closed: bool  # whether all a_n are known: it is a polynomial, or has a tail
    full: bool = True  # whether a larger ``reach`` would bring no more of them

    def nonzero(self, parity: int) -> bool:
        """Return whether there are coefficients of this parity in the upper half of those known."""
        half = len(self.exact) // 2
        return bool(self.exact[half + (parity - half) % 2 :: 2].any())


def _binomials(n: Array, base: float, alphas: Array, c: Array) -> Array:
    """Sum c_j [t^n] (1 - t)^alpha_j for alphas that differ by integers, n large."""
    # [t^n] (1 - t)^a = Gamma(n - a)/(Gamma(-a) Gamma(n + 1)), which -(a + 1)/(n - a - 1) takes from
    # a to a + 1: this is Horner's rule in these factors.
    dense = np.zeros(round(float(alphas.max() - base)) + 1)
    dense[np.rint(alphas - base).astype(int)] = c
    total = np.full_like(n, dense[-1])
    for i in range(len(dense) - 2, -1, -1):
        a = base + i
        total = dense[i] + total * (-(a + 1) / (n - a - 1))
    return total * _gamma_ratio(n, -base, 1.0) / math.gamma(-base)


def _gamma_ratio(n: Array, a: float, b: float) -> Array:
    """Return Gamma(n + a)/Gamma(n + b) for large n and small a, b, to a few eps (Stirling)."""
    log = (a - b) * np.log(n) + (b - a)
    for sign, x in ((1, a), (-1, b)):
        w = 1 / (n + x)
        stirling = w * (1 / 12 - w * w * (1 / 360 - w * w * (1 / 1260 - w * w / 1680)))
        log = log + sign * ((n + x - 0.5) * np.log1p(x / n) + stirling)
    return np.exp(log)


def expand(build: Build, reach: int) -> Powers | None:
    """Return the powers of ``build(frame)``, a Zonal; if they have no tail, at least to ``reach``.

    None is returned where there is no series, or none that float64 can hold.
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
            # Coefficient n is off by about n eps: from some n on, more coefficients are no better.
            powers, enough = _tailed(zonal, tail), 2048 * EPS
            if powers.error > enough and (frame.count == CUT or powers.error == math.inf):
                other = _tailed(zonal, exponentials(build, frame.count))
                powers, enough = min(powers, other, key=lambda powers: powers.error), ENOUGH
            most = MOST_EASY if zonal.easy else MOST
            if powers.error <= enough or powers.error == math.inf or frame.count >= most:
                return powers
            frame = longer
            continue
        if frame.count <= CUT and _slow(zonal):
            powers = _tailed(zonal, exponentials(build, frame.count))
            if powers.error <= ENOUGH:
                return powers
            if frame.count < CUT:
                frame = longer
                continue
        count = min(reach + 1, MOST_EASY if zonal.easy else MOST_ENDLESS)
        rho = _better_scale(zonal)
        if frame.count < count or rho != frame.rho:
            frame = dataclasses.replace(frame, count=max(count, frame.count), rho=rho)
            continue
        exponent = -math.log2(frame.rho) * np.arange(frame.count)
        full = frame.count < reach + 1
        return Powers(zonal.taylor, exponent, None, 0.0, _finite(zonal), full)


def exponential(rate: float) -> Powers:
    """Return the powers of ``exp(rate (t - 1))``, whose coefficients may underflow in float64."""
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
    """Return the part that is not analytic at the singularities: powers that are not whole."""
    frame, tail = zonal.frame, []
    for place, series in ((1.0, zonal.plus), (-frame.far, zonal.minus)):
        j = np.arange(len(series))
        keep = (j % frame.root != 0) & (series != 0)
        if keep.any():
            tail.append((place, j[keep] / frame.root, series[keep]))
    return Puiseux(tail) if tail else None


def _tailed(zonal: Zonal, tail: Puiseux | Exponentials | None) -> Powers:
    """Return powers with that tail; their error is its distance from the last of those known."""
    n = zonal.frame.count
    powers = Powers(zonal.taylor, np.zeros(n), tail, tail.error if tail else math.inf, True)
    for parity in (0, 1):
        if tail and powers.nonzero(parity):
            at = np.arange(n - 32 + (parity - n) % 2, n, 2)
            with np.errstate(all="ignore"):
                other = tail.scaled(at * 1.0, parity) * np.exp(-tail.rate * at)
                off = float(np.abs(other / powers.exact[at] - 1).max())
            # A zero among them: the function is singular elsewhere on the circle, too.
            powers.error = max(powers.error, off if math.isfinite(off) else math.inf)
    return powers


def _slow(zonal: Zonal) -> bool:
    """Return whether coefficients fall geometrically, but so slowly that thousands are needed."""
    size = np.abs(zonal.taylor)
    last = [size[-2 * i :].max() for i in (16, 32)]
    return zonal.frame.rho == 1 and 0 < last[1] < last[0] * math.exp(32 * 40 / MOST)


def _better_scale(zonal: Zonal) -> float:
    """Return ``rho`` times a power of two that keeps more coefficients from underflowing."""
    size, rho = np.abs(zonal.taylor), zonal.frame.rho
    good = np.flatnonzero(size > 1e-290)
    if len(good) < 2 or good[-1] >= len(size) - 3:
        return rho
    n, first = int(good[-1]), int(good[0])
    if not size[n + 1 :].any() and size[n] > 1e-200:
        return rho  # a polynomial
    slope = (math.log2(size[first]) - math.log2(size[n])) / (n - first)
    return rho * 2.0 ** max(0, math.floor(slope))


def _finite(zonal: Zonal) -> bool:
    """Return whether it is a polynomial: the lower half of its coefficients is all of kappa(1)."""
    half, top = len(zonal.taylor) // 2, zonal.plus[0]
    with np.errstate(under="ignore"):
        total = float((zonal.taylor[:half] * zonal.frame.rho ** -np.arange(half)).sum())
    return not zonal.taylor[half:].any() and abs(total - top) <= 1e-9 * abs(top)
