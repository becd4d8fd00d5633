"""Functions of the cosine t as series, and networks that walk through them.

    Frame    how long the series are, and at what scale
    Zonal    one function: its Taylor series about 0 and what it does at its singularities
    Walk     a network's kernels as two of them; takes the calls that ``_program.Walk`` takes

On the sphere a kernel is ``sum a_n t^n`` with a_n >= 0 (Schoenberg 1942), and singular at most at
t = 1 and at a point t = -far <= -1, where it is a series in a root of the distance. The first tells
a_n for small n, without cancellation; the others for large n (Flajolet and Odlyzko 1990).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..engine.cpu.program import Code, Op, RowStep
from ..series import functions as _functions
from ..series.functions import Function, Unknown
from ..series.power import compose, multiply, parity_of, square_root

Array = np.ndarray
ENDS = 64  # terms of the series at a singularity, per whole power


class Reframe(Exception):
    """The series need another frame: these of its fields."""

    def __init__(self, **fields) -> None:
        self.fields = fields


@dataclasses.dataclass(frozen=True)
class Frame:
    """Taylor coefficients ``a_n rho^n``, n < count; series in ``(1 - t)^(1/root)`` at t = 1 and in
    ``(1 + t/far)^(1/root)`` at t = -far.
    """

    count: int
    rho: float = 1.0
    root: int = 2
    far: float = 1.0
    pinned: bool = False  # whether some part chose ``far``
    support: bool = False  # whether all that counts is which Taylor coefficients are zero

    @property
    def ends(self) -> int:
        return ENDS * self.root // 2

    def cosine(self) -> Zonal:
        """The function t."""
        taylor, plus = np.zeros(self.count), np.zeros(self.ends)
        taylor[1] = self.rho
        plus[0], plus[self.root] = 1.0, -1.0
        return Zonal(self, taylor, plus, -self.far * plus)

    def function(self, op: Op, q: float, table: Array) -> Function:
        """What an operation does to correlations."""
        if not self.support:
            return _functions.of(op, q, table)
        if op.code == Code.SERIES and op.a:
            # Numerical: some are zero but for rounding, and where one is not, those of its parity
            # go on for ever.
            there = np.abs(table[:, 0]) > 1e-13
            pattern = np.pad(there, (0, self.count))[: self.count]
            for parity in (2, 3):
                pattern[parity::2] = there[parity::2].any()
            c = np.where(pattern, 0.5 ** np.arange(self.count), 0.0)
            return _functions.Power(c / c.sum())  # 1 at 1, as correlations are
        try:
            return _functions.of(op, q, table)
        except Unknown:
            return _functions.Generic()

    def constant(self, c: float) -> Zonal:
        taylor, plus = np.zeros(self.count), np.zeros(self.ends)
        taylor[0] = plus[0] = c
        return Zonal(self, taylor, plus, plus)

    def bend(self, u: Zonal) -> None:
        """Before the first operation on a correlation, affine so far: at -far it is to be -1, where
        the operation may be singular.
        """
        a, b = float(u.taylor[1]) / self.rho, float(u.taylor[0])
        far = (1 + b) / a if a else 1.0
        if not self.pinned or far < self.far * (1 - 1e-12):
            raise Reframe(far=far, pinned=True)


@dataclasses.dataclass
class Zonal:
    """A function of t: its Taylor series, and its series at 1 and at -far."""

    frame: Frame
    taylor: Array
    plus: Array
    minus: Array
    easy: bool = True  # whether nothing was composed: longer series cost little then

    def __add__(self, other: Zonal) -> Zonal:
        parts = (a + b for a, b in zip(self._series, other._series, strict=True))
        return Zonal(self.frame, *parts, self.easy and other.easy)

    def __rmul__(self, c: float) -> Zonal:
        return Zonal(self.frame, *(c * a for a in self._series), self.easy)

    def __mul__(self, other: Zonal) -> Zonal:
        parts = (multiply(a, b) for a, b in zip(self._series, other._series, strict=True))
        single = min(np.count_nonzero(a.taylor) for a in (self, other)) <= 2
        return Zonal(self.frame, *parts, self.easy and other.easy and single)

    @property
    def top(self) -> float:
        """The value at t = 1."""
        return float(self.plus[0])

    @property
    def _series(self) -> tuple[Array, Array, Array]:
        return self.taylor, self.plus, self.minus

    def apply(self, f: Function, slope: bool = False) -> tuple[Zonal, Zonal | None]:
        """f(u) and, if asked for, f'(u), for this correlation u: 1 at t = 1."""
        if self.frame.support:
            parts = [
                Zonal(self.frame, c, self.plus, self.minus) for c in self._about_zero(f, slope)
            ]
            return parts[0], parts[1] if slope else None
        easy = self.easy and np.count_nonzero(self.taylor[1:]) == 1
        plus = self._at_end(f, self.plus, 1, slope)
        parity = parity_of(self.taylor)
        if parity == 0:
            minus = plus
        elif parity == 1 or abs(self.minus[0]) > 1 - 1e-14:
            minus = self._at_end(f, self.minus, 1 if self.minus[0] > 0 else -1, slope)
        else:
            minus = self._inside(f, self.minus, slope)
        taylor = self._about_zero(f, slope)
        first, *second = (
            Zonal(self.frame, *parts, easy) for parts in zip(taylor, plus, minus, strict=True)
        )
        return first, second[0] if second else None

    def _about_zero(self, f: Function, slope: bool) -> list[Array]:
        if np.count_nonzero(self.taylor[1:]) > 1:
            return f.compose(self.taylor, slope)
        return Function.compose(f, self.taylor, slope)  # of a line: nothing to compose

    def _at_end(self, f: Function, u: Array, sign: int, slope: bool) -> list[Array]:
        """f(sign (1 - y^2)) for y = sqrt(1 - sign u), whose order is half that of 1 - sign u."""
        e = -sign * u
        e[0] = 0.0
        order = int(np.flatnonzero(np.abs(e) > 1e-300)[0])
        if order % 2:
            raise Reframe(root=2 * self.frame.root)
        y = np.zeros_like(e)
        y[order // 2 :] = square_root(e[order:], len(e) - order // 2)
        series = f.end(sign, len(e))
        parts = [series]
        if slope:
            # d/du = -sign/(2 y) d/dy; a slope that is infinite is refused before it comes here.
            parts.append(np.append(-sign / 2 * (series * np.arange(len(e)))[2:], [0.0, 0.0]))
        return compose(parts, y)

    def _inside(self, f: Function, u: Array, slope: bool) -> list[Array]:
        """f(u) for u within (-1, 1)."""
        v = u.copy()
        v[0] = 0.0
        series = f.taylor(float(u[0]), 1.0, len(u))
        parts = [series[:-1]] + ([series[1:] * np.arange(1, len(series))] if slope else [])
        return compose(parts, v)


# ---- networks


class Walk:
    """A network's kernels on a sphere: correlation u, variance, tangent kernel t.

    In a ``Frame`` as series; in a ``_cut.Cut`` as values.
    """

    tolerance = float(np.finfo(np.float64).eps) / 4

    def __init__(self, frame: Frame, variance: float) -> None:
        self.frame = frame
        self.variance = np.array([variance])
        self.u = frame.cosine()
        self.t: Zonal | None = None
        self._stack: list[tuple] = []
        self._bent = False  # whether u is still affine in the cosine

    def dense(self, w_std: float, b_std: float, trainable: bool, name: object) -> None:
        q = w_std * w_std * float(self.variance[0])
        b = b_std * b_std
        self.variance = np.array([q + b])
        if q == 0:
            raise Unknown  # does not depend on the input
        if b:
            self.u = (q / (q + b)) * self.u + self.frame.constant(b / (q + b))
        if self.t is not None:
            self.t = (w_std * w_std) * self.t
        if trainable:
            k = (q + b) * self.u
            self.t = k if self.t is None else k + self.t

    def activation(self, step: RowStep, name: object) -> None:
        q = float(self.variance[0])
        self.variance = step.variance
        slope = float(step.slope[0])
        if step.op is None:
            self.t = None if self.t is None else slope * self.t
            return
        table = np.empty((0, 0)) if step.tables is None else step.tables
        f = self.frame.function(step.op, q, table)
        if not self._bent:
            self.frame.bend(self.u)
            self._bent = True
        tangent = self.t is not None and slope != 0
        self.u, derivative = self.u.apply(f, tangent)
        if tangent:
            self.t = (slope / derivative.top) * (self.t * derivative)
        else:
            self.t = None

    def save(self) -> None:
        self._stack.append((self.u, self.variance, self.t))

    def swap(self) -> None:
        entry = self._stack[-1]
        self._stack[-1] = (self.u, self.variance, self.t)
        self.u, self.variance, self.t = entry

    def merge(self, name: object) -> None:
        u, variance, t = self._stack.pop()
        total = self.variance + variance
        p, q = float(self.variance[0] / total[0]), float(variance[0] / total[0])
        self.u, self.variance = p * self.u + q * u, total
        if t is not None:
            self.t = t if self.t is None else self.t + t

    def kernel(self, tangent: bool) -> Zonal:
        if not tangent:
            return float(self.variance[0]) * self.u
        return self.frame.constant(0.0) if self.t is None else self.t
