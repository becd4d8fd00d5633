"""Functions of the cosine t as series, and programs that walk through them.

    Frame    how long the series are, and at what scale
    Zonal    one function: its Taylor series about 0, and its behaviour at its singularities
    Walk     an interpreter that makes Zonals of the kernels of a program

On the sphere a kernel is ``sum a_n t^n`` with a_n >= 0 (Schoenberg 1942), and singular at most at
t = 1 and at a point t = -far <= -1, where it is a series in a root of the distance. The Taylor
series gives a_n for small n, without cancellation; the series at the singularities give a_n for
large n (Flajolet and Odlyzko 1990).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .._types import Array
from ..engine import backend_of
from ..program import Apply, Input, Merge, Sampled, Save, Swap, Weights
from . import functions
from .functions import Function
from .power import compose, multiply, parity_of, square_root

ENDS = 64  # terms of the series at a singularity, per whole power
TOLERANCE = float(np.finfo(np.float64).eps) / 4


@dataclasses.dataclass(frozen=True)
class Stop:
    """The reason to stop: there is no series, or, if it has fields, only in a frame with these."""

    fields: dict[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class Frame:
    """The form of all series: Taylor coefficients ``a_n rho^n`` for n < count, and coefficients in
    powers of ``(1 - t)^(1/root)`` at t = 1 and of ``(1 + t/far)^(1/root)`` at t = -far.
    """

    count: int
    rho: float = 1.0
    root: int = 2
    far: float = 1.0
    pinned: bool = False  # whether some part chose ``far``
    support: bool = False  # whether it only matters which Taylor coefficients are zero

    @property
    def ends(self) -> int:
        return ENDS * self.root // 2

    def cosine(self) -> Zonal:
        """Return the function t."""
        taylor, plus = np.zeros(self.count), np.zeros(self.ends)
        taylor[1] = self.rho
        plus[0], plus[self.root] = 1.0, -1.0
        return Zonal(self, taylor, plus, -self.far * plus)

    def constant(self, c: float) -> Zonal:
        taylor, plus = np.zeros(self.count), np.zeros(self.ends)
        taylor[0] = plus[0] = c
        return Zonal(self, taylor, plus, plus)

    def bend(self, u: Zonal) -> Stop | None:
        """Ask for the ``far`` at which u, which is affine in t, is -1: the first function of u may
        be singular there.
        """
        a, b = float(u.taylor[1]) / self.rho, float(u.taylor[0])
        far = (1 + b) / a if a else 1.0
        if not self.pinned or far < self.far * (1 - 1e-12):
            return Stop({"far": far, "pinned": True})
        return None


@dataclasses.dataclass
class Zonal:
    """A function of t: its Taylor series about 0, and its series at 1 and at -far."""

    frame: Frame
    taylor: Array
    plus: Array
    minus: Array
    easy: bool = True  # whether nothing was composed, so that longer series cost little

    def __add__(self, other: Zonal) -> Zonal:
        taylor, plus, minus = (a + b for a, b in zip(self._series, other._series, strict=True))
        return Zonal(self.frame, taylor, plus, minus, self.easy and other.easy)

    def __rmul__(self, c: float) -> Zonal:
        return Zonal(self.frame, c * self.taylor, c * self.plus, c * self.minus, self.easy)

    def __mul__(self, other: Zonal) -> Zonal:
        pairs = zip(self._series, other._series, strict=True)
        taylor, plus, minus = (multiply(a, b) for a, b in pairs)
        single = any(np.count_nonzero(a.taylor) <= 2 for a in (self, other))
        return Zonal(self.frame, taylor, plus, minus, self.easy and other.easy and single)

    @property
    def top(self) -> float:
        """The value at t = 1."""
        return float(self.plus[0])

    @property
    def _series(self) -> tuple[Array, Array, Array]:
        return self.taylor, self.plus, self.minus

    def apply(self, f: Function, slope: bool = False) -> tuple[Zonal, Zonal | None] | Stop:
        """Return f(u) and, if asked for, f'(u), for this correlation u, which is 1 at t = 1."""
        if self.frame.support:
            taylor = self._about_zero(f, slope)
            parts = [Zonal(self.frame, series, self.plus, self.minus) for series in taylor]
        else:
            easy = self.easy and np.count_nonzero(self.taylor[1:]) == 1
            plus = minus = self._at_end(f, self.plus, 1, slope)
            parity = parity_of(self.taylor)
            if parity == 1 or (parity is None and abs(self.minus[0]) > 1 - 1e-14):
                minus = self._at_end(f, self.minus, 1 if self.minus[0] > 0 else -1, slope)
            elif parity is None:
                minus = self._inside(f, self.minus, slope)
            if isinstance(plus, Stop):
                return plus
            if isinstance(minus, Stop):
                return minus
            series = zip(self._about_zero(f, slope), plus, minus, strict=True)
            parts = [Zonal(self.frame, *three, easy) for three in series]
        return parts[0], parts[1] if slope else None

    def _about_zero(self, f: Function, slope: bool) -> list[Array]:
        if np.count_nonzero(self.taylor[1:]) > 1:
            return f.compose(self.taylor, slope)
        return Function.compose(f, self.taylor, slope)  # u is affine: there is nothing to compose

    def _at_end(self, f: Function, u: Array, sign: int, slope: bool) -> list[Array] | Stop:
        """Return f(sign (1 - y^2)), y = sqrt(1 - sign u), of half the order of 1 - sign u."""
        e = -sign * u
        e[0] = 0.0
        order = int(np.flatnonzero(np.abs(e) > 1e-300)[0])
        if order % 2:
            return Stop({"root": 2 * self.frame.root})
        y = np.zeros_like(e)
        y[order // 2 :] = square_root(e[order:], len(e) - order // 2)
        series = f.end(sign, len(e))
        parts = [series]
        if slope:
            # d/du = -sign/(2 y) d/dy; an infinite slope has been refused before.
            parts.append(np.append(-sign / 2 * (series * np.arange(len(e)))[2:], [0.0, 0.0]))
        return compose(parts, y)

    def _inside(self, f: Function, u: Array, slope: bool) -> list[Array]:
        """Return f(u) for u within (-1, 1)."""
        v = u.copy()
        v[0] = 0.0
        series = f.taylor(float(u[0]), 1.0, len(u))
        parts = [series[:-1]] + ([series[1:] * np.arange(1, len(series))] if slope else [])
        return compose(parts, v)


class Walk:
    """An interpreter of a program on a sphere: correlation u, variance, tangent kernel t.

    u and t are series in a ``Frame``, or values in a ``cut.Cut``. A method that cannot go on
    returns a ``Stop``.
    """

    def __init__(self, frame: Any, radius: float, dim: int) -> None:
        self.frame, self.radius, self.dim = frame, radius, dim
        self.variance = 1.0
        self.u: Any = frame.cosine()
        self.t: Any = None
        self._stack: list[tuple[Any, float, Any]] = []
        self._affine = True  # whether u is still affine in the cosine
        self._distance = False  # whether the next function is one of a distance

    def input(self, node: Input) -> None:
        if node.of == "mean":
            self.variance = self.radius * (self.radius / self.dim)
        elif node.of == "sum":
            self.variance = self.radius * self.radius
        else:
            self._affine, self._distance = False, True

    def weights(self, node: Weights) -> Stop | None:
        w, b = node.w_std * node.w_std, node.b_std * node.b_std
        q = w * self.variance
        self.variance = q + b
        if q == 0:
            return Stop()  # the kernel does not depend on the input
        if b:
            self.u = (q / (q + b)) * self.u + self.frame.constant(b / (q + b))
        if self.t is not None:
            self.t = w * self.t
        if node.trained:
            k = (q + b) * self.u
            self.t = k if self.t is None else k + self.t
        return None

    def apply(self, node: Apply) -> Stop | None:
        q = self.variance
        step = backend_of(q).step(node.form, np.array([q]), TOLERANCE, 1)
        self.variance, slope = float(step.variance[0]), float(step.slope[0])
        if step.op is None:
            self.t = None if self.t is None else slope * self.t
            return None
        f = node.function._series(self.radius if self._distance else q)
        self._distance = False
        if f is None and self.frame.support:
            sampled = isinstance(node.form, Sampled)
            f = _pattern(step.shares()[:, 0], self.frame.count) if sampled else functions.Generic()
        if f is None:
            return Stop()
        if self._affine and (stop := self.frame.bend(self.u)) is not None:
            return stop
        self._affine = False
        tangent = self.t is not None and slope != 0
        applied = self.u.apply(f, tangent)
        if isinstance(applied, Stop):
            return applied
        self.u, derivative = applied
        self.t = (slope / derivative.top) * (self.t * derivative) if tangent else None
        return None

    def save(self, node: Save) -> None:
        self._stack.append((self.u, self.variance, self.t))

    def swap(self, node: Swap) -> None:
        entry = self._stack[-1]
        self._stack[-1] = (self.u, self.variance, self.t)
        self.u, self.variance, self.t = entry

    def merge(self, node: Merge) -> None:
        u, variance, t = self._stack.pop()
        total = self.variance + variance
        p, q = self.variance / total, variance / total
        self.u, self.variance = p * self.u + q * u, total
        if t is not None:
            self.t = t if self.t is None else self.t + t

    def kernel(self, tangent: bool) -> Any:
        if self._distance:
            return Stop()  # no function was applied to the distance
        if not tangent:
            return self.variance * self.u
        return self.frame.constant(0.0) if self.t is None else self.t


def _pattern(shares: Array, count: int) -> Function:
    """Return a function with the same zero coefficients as one that was sampled numerically.

    Coefficients of the size of rounding are zero. Where one past the first two is not, all of its
    parity are taken not to be.
    """
    there = np.abs(shares) > 1e-13
    pattern = np.pad(there, (0, count))[:count]
    for parity in (2, 3):
        pattern[parity::2] = there[parity::2].any()
    c = np.where(pattern, 0.5 ** np.arange(count), 0.0)
    return functions.Power(c / c.sum())  # 1 at 1, as correlations are
