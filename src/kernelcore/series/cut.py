"""Kernels on the real line beyond [-1, 1], for the coefficients a_n of large n.

A kernel ``f(t) = sum a_n t^n`` is analytic about the unit disc except for cuts along the real line,
from t = 1 and t = -1 or from points beyond. Cauchy's integral, deformed to run along them, is

    a_n = 1/pi int_0^S Im f(e^s + i0) e^(-n s) ds  + the same at -e^s, times (-1)^n,

up to terms below e^(-n S): a sum of exponentials, at nodes that do not depend on n. Where layers
are singular at several points close to each other (erf with large weights, unlike biases), a series
at one of them does not reach far; the nodes gather at all of them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._types import Array
from .functions import Function

Build = Callable[[Any], Any]  # makes a kernel in a ``Frame``, or at the points of a ``Cut``
DEPTH = 45.0  # S = DEPTH / n for the least n: e^-45 = 3e-20
RULE = 16  # nodes of a panel
REACH = 1e-42  # least s, in units of S: sums over n^(-3/2), on the circle, are very long
AROUND = 64  # a singularity at s is passed at a distance of s/AROUND
# Extended precision where the machine has it: nodes are subtracted from singularities near them.
REAL, COMPLEX = np.longdouble, np.clongdouble


@dataclasses.dataclass
class Cut:
    """The points t = side e^s along the cuts, in place of a ``Frame``.

    At side 1 they are below the cut and at -1 above it, so that ``1 - side t`` has imaginary
    part +0, and so has ``1 -+ u`` for every correlation u that is still real and beyond 1 or -1.
    """

    s: Array
    side: Array
    gaps: list[Array] = dataclasses.field(default_factory=list)  # see Values.apply
    support = False

    def cosine(self) -> Values:
        near = -np.expm1(self.s.astype(COMPLEX))
        plus = self.side > 0
        return Values(self, 1.0, np.where(plus, near, 2 - near), np.where(plus, 2 - near, near))

    def constant(self, c: float) -> Values:
        zero = np.zeros(len(self.s), COMPLEX)
        return Values(self, c, zero, zero + 2 * c)

    def bend(self, u: Values) -> None:
        pass


@dataclasses.dataclass
class Values:
    """A function at the points of a cut, as its differences from plus and minus its value at t = 1:
    at a correlation's singularities one of them is small, and known to its own precision.
    """

    cut: Cut
    top: float
    below: Array  # top - f
    above: Array  # top + f

    @property
    def value(self) -> Array:
        return (self.above - self.below) / 2

    def __add__(self, other: Values) -> Values:
        below, above = self.below + other.below, self.above + other.above
        return Values(self.cut, self.top + other.top, below, above)

    def __rmul__(self, c: float) -> Values:
        return Values(self.cut, c * self.top, c * self.below, c * self.above)

    def __mul__(self, other: Values) -> Values:
        return self._of(self.top * other.top, self.value * other.value)

    def _of(self, top: float, value: Array) -> Values:
        return Values(self.cut, top, top - value, top + value)

    def apply(self, f: Function, slope: bool = False) -> tuple[Values, Values | None]:
        """Do as ``Zonal.apply``, and note how far this correlation is from where f is singular."""
        plus = np.abs(self.below) <= np.abs(self.above)
        x = np.where(plus, self.below, self.above) + 0  # -0 becomes 0
        # f is singular at -edge; points far from it, relative to the edge, do not matter.
        close = np.abs(x.imag) <= f.edge / 4
        self.cut.gaps.append(np.where(close, x.real + f.edge, np.nan))
        ends = [float(f.end(sign, 4)[0]) for sign in (1, -1)]
        below, above, derivative = (np.empty_like(x) for _ in range(3))
        for sign, at, there in zip((1, -1), ends, (plus, ~plus), strict=True):
            if not there.any():
                continue
            value, derivative[there] = f.continued(sign, x[there])
            below[there] = _snapped(ends[0] - at) - value
            above[there] = _snapped(ends[0] + at) + value
        result = Values(self.cut, ends[0], below, above)
        if not slope:
            return result, None
        top = float(f.continued(1, np.zeros(1, COMPLEX))[1][0].real)
        return result, self._of(top, derivative)


def _snapped(x: float) -> float:
    return 0.0 if abs(x) < 1e-14 else x


@dataclasses.dataclass
class Exponentials:
    """A tail ``a_n = Im sum w e^(-n s)``, with a factor (-1)^n in the part of the minus cut."""

    sides: dict[int, tuple[Array, Array]]  # s and w, for the cuts at 1 and -1
    rate: float  # a_n falls like e^(-rate n) times a power in the end
    error: float = 0.0  # relative, by comparison with another rule

    def scaled(self, n: Array, parity: int) -> Array:
        """Return a_n e^(rate n) for real n."""
        total = self.of(1, n)
        if -1 in self.sides:
            total += (-1.0) ** parity * self.of(-1, n)
        return total

    def of(self, side: int, n: Array) -> Array:
        s, w = self.sides[side]
        real, s = s.imag == 0, s - self.rate
        total = np.empty_like(n)
        with np.errstate(under="ignore"):
            for i in range(0, len(n), 512):  # a few megabytes at a time
                part = slice(i, i + 512)
                waves = np.exp(-np.outer(n[part], s[~real])) @ w[~real]
                falls = np.exp(-np.outer(n[part], s[real].real)) @ w[real].imag
                total[part] = waves.imag + falls
        return total

    def size(self, n: float) -> tuple[float, float]:
        """Return the logarithm of the larger part of a_n, and how fast it falls with log n."""
        one, two = np.log(self.of(1, np.array([n, 2 * n])))
        return float(one - self.rate * n), float((one - two) / math.log(2) + self.rate * n)


def exponentials(build: Build, least: int) -> Exponentials | None:
    """Return the a_n of ``build(cut)`` for n from ``least`` on; None where they are not found."""
    end = DEPTH / least
    breaks = _breaks(build, end)
    tail, other = (_by_rule(build, breaks, end, rule) for rule in (RULE, RULE - 2))
    if tail is None or other is None:
        return None
    n = least * 2.0 ** np.arange(70)
    n = n[n * tail.rate < 300]
    size = np.abs(tail.of(1, n))
    with np.errstate(all="ignore"):
        off = [(np.abs(tail.of(i, n) - other.of(i, n)) / size).max() for i in tail.sides]
    tail.error = float(max(off)) if np.isfinite(off).all() else math.inf
    return tail


def _by_rule(
    build: Build, breaks: dict[int, list[Any]], end: float, rule: int
) -> Exponentials | None:
    sides, rates = {}, []
    for side in (1, -1):
        s, ds = _path([0.0, *breaks[side], end], rule)
        with np.errstate(all="ignore"):
            values = build(Cut(s, np.full(len(s), side))).value
            w = (-values * ds / REAL(math.pi)).astype(np.complex128)
        if not np.isfinite(w).all():
            return None
        keep = (w.imag != 0) | (s.imag != 0)
        if keep.any():
            sides[side] = s[keep].astype(np.complex128), w[keep]
            # f is real, and adds nothing, up to the way around the first break.
            first = float(breaks[side][0]) if breaks[side] else 0.0
            rates.append(first if s[keep].real.min() > first * (1 - 1.01 / AROUND) else 0.0)
    return Exponentials(sides, min(rates)) if 1 in sides else None


def _breaks(build: Build, end: float) -> dict[int, list[Any]]:
    """Find where some layer is singular: its correlation, while real, reaches its edge."""
    first = grid = end * np.logspace(-30, 0, 240, dtype=REAL)
    found: dict[int, list[Any]] = {1: [], -1: []}
    known = 0
    for _ in range(8):
        brackets = []  # layer, side, and s and gap before and behind
        for side in (1, -1):
            for layer, gap in enumerate(_gaps(build, grid, np.full(len(grid), side))):
                for i in np.flatnonzero((gap[:-1] > 0) & (gap[1:] <= 0)):
                    brackets.append((layer, side, grid[i : i + 2], gap[i : i + 2]))
        if len(brackets) == known:
            break
        known, found = len(brackets), _refined(build, brackets)
        # Behind a break the correlations of other layers are no longer real: look closer there.
        near = 1 + np.outer([-1, 1], REAL(4) ** -np.arange(1, 24)).ravel()
        more = [s * near for side in found.values() for s in side]
        grid = np.unique(np.concatenate([first, *more]))
        grid = grid[grid <= end]
    return found


def _refined(build: Build, brackets: list[tuple[int, int, Array, Array]]) -> dict[int, list[Any]]:
    """Refine all brackets at once, with points ever closer to the zeros of the secants."""
    steps = REAL(8) ** -np.arange(16)
    steps = np.concatenate([-steps, [0], steps[::-1]])
    for _ in range(7):
        points = np.stack([
            np.clip(s[0] + (s[1] - s[0]) * (gap[0] / (gap[0] - gap[1]) + steps), *s)
            for _, _, s, gap in brackets
        ])  # fmt: skip
        gaps = _gaps(build, points.ravel(), np.repeat([b[1] for b in brackets], len(steps)))
        for j, (layer, side, _, _) in enumerate(brackets):
            gap = gaps[layer].reshape(points.shape)[j]
            i = max(1, int(np.argmin(gap > 0)))
            brackets[j] = layer, side, points[j, i - 1 : i + 1], gap[i - 1 : i + 1]
    found: dict[int, list[Any]] = {1: [], -1: []}
    for _, side, (_, s), _ in sorted(brackets, key=lambda bracket: bracket[2][0]):
        if not found[side] or s > found[side][-1] * (1 + 1e-9):
            found[side].append(s)
    return found


def _gaps(build: Build, s: Array, side: Array) -> list[Array]:
    cut = Cut(s, side)
    with np.errstate(all="ignore"):
        build(cut)
    return cut.gaps


def _path(breaks: list[Any], rule: int) -> tuple[Array, Array]:
    """Return nodes and weights for the integral over s, in panels that halve towards the breaks.

    Between two breaks ``s = a + (b - a) sin^2 phi``, which makes roots at both ends smooth. Around
    all but the first and the last the path goes below the real line, as f may be infinite there.
    """
    x, w = np.polynomial.legendre.leggauss(rule)
    nodes, weights, start = [], [], 0.0
    for i, (a, b) in enumerate(itertools.pairwise(breaks)):
        length = b - a
        first = math.asin(math.sqrt(start / length)) if i else math.sqrt(REACH)
        ends: list[complex] = [*([] if i else [0.0]), *_doubling(first), math.pi / 4]
        if b is breaks[-1]:
            ends += [3 * math.pi / 8, math.pi / 2]
        else:
            start = min(float(b) / AROUND, float(length) / 4, float(breaks[i + 2] - b) / 4)
            out = math.sqrt(start / length)
            real, up = math.asin(out), 1j * math.asinh(out)  # s = b - start, s = b + start
            rest = [*_doubling(real)[::-1], (real + up) / 2, up]
            ends += [math.pi / 2 - psi for psi in rest]
        phi = np.array(ends, np.complex128)
        middle, half = (phi[1:] + phi[:-1]) / 2, (phi[1:] - phi[:-1]) / 2
        phi = (middle[:, None] + half[:, None] * x).ravel().astype(COMPLEX)
        nodes.append(a + length * np.sin(phi) ** 2)
        weights.append(length * np.sin(2 * phi) * np.outer(half, w).ravel())
    return np.concatenate(nodes), np.concatenate(weights)


def _doubling(first: float) -> list[float]:
    """Return first, 2 first, 4 first, .. below pi/4."""
    return [first * 2.0**j for j in range(math.ceil(math.log2(math.pi / 4 / first)))]
