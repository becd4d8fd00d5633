"""A network lowered to operations, and the walk of single rows through it.

The compiled engine carries correlations; what it needs of the rows (standard deviations, shares,
Hermite coefficients) is tabulated here, once per row, together with both kernels' diagonals.
"""

from __future__ import annotations

import dataclasses
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from . import calls as _calls
from . import dispatch as _dispatch

if TYPE_CHECKING:
    from ..accuracy import Doubt

Array = np.ndarray


class Code(IntEnum):
    """Operations; the numbers are those of ``program.h``."""

    TRAINED = 0
    BIAS = 1
    SAVE = 2
    SWAP = 3
    MERGE = 4
    RELU = 5
    LEAKY_RELU = 6
    STEP = 7
    SIGN = 8
    RECTIFIED_POWER = 9
    ERF = 10
    GELU = 11
    SINE = 12
    EXPONENTIAL = 13
    BUMP = 14
    POLYNOMIAL = 15
    SERIES = 16
    EXPONENTIAL_OF = 17
    LAPLACIAN = 18
    MATERN = 19
    CAUCHY = 20
    ONE_KINK = 21
    EXPONENTIAL_PROFILE = 22
    POWER_PROFILE = 23
    CHEBYSHEV_PROFILE = 24
    COSINE = 25
    POWER_OF = 26
    CHEBYSHEV_OF = 27


OP = np.dtype(
    [("code", "i4"), ("n", "i4"), ("table", "i4"), ("coef", "i4")]
    + [(name, "f8") for name in ("a", "b", "c", "add")]
)
STRIP = 256
FLOAT64 = np.dtype(np.float64)


@dataclasses.dataclass(frozen=True)
class Op:
    """One operation with its constants; a hashable value."""

    code: Code
    n: int = 0
    a: float = 0.0
    b: float = 0.0
    c: float = 0.0
    coefficients: tuple[float, ...] = ()


@dataclasses.dataclass
class RowStep:
    """What an activation does to rows of given variances.

    ``tables`` follow the layout that ``program.h`` gives for the operation; None stands for the
    common one (sd, 1/sd_new, sd/sd_new), an empty array for none. ``doubt``: what a numerical dual
    is off by, where that is too much.
    """

    op: Op | None
    variance: Array
    slope: Array
    tables: Array | None = None
    doubt: Doubt | None = None


@dataclasses.dataclass
class Compiled:
    """A program for one set of rows: what the driver is called with."""

    ops: Array
    coefficients: Array
    tables: Array  # (tables, rows), float64
    sd: Array
    k: Array  # diagonals
    t: Array
    slots: int
    doubts: list[Doubt]

    def tangent(self, dtype: np.dtype) -> Array:
        """The diagonal of the tangent kernel, which grows with depth where variances do not."""
        if not (self.t <= float(np.finfo(dtype).max)).all():
            raise OverflowError(
                f"X must keep the kernel within {dtype}: the tangent kernel overflows; scale X down"
            )
        return self.t


class Walk:
    """Collects operations and tables while rows pass through the layers."""

    def __init__(self, variance: Array, dtype: np.dtype = FLOAT64) -> None:
        self.variance = variance
        self.t = np.zeros_like(variance)
        self.tolerance = float(np.finfo(dtype).eps) / 4
        self._largest = float(np.finfo(dtype).max)
        self._dtype = np.dtype(dtype)
        self._ops: list[list[Any]] = []
        self._coefficients: list[float] = []
        self._tables: list[Array] = []
        self._stack: list[tuple[Array, Array]] = []
        self.slots = 0
        self.doubts: list[Doubt] = []
        self._check("the input")

    def _emit(self, op: Op, tables: Array | None = None, add: float = 0.0) -> None:
        table = sum(len(t) for t in self._tables)
        coef = len(self._coefficients)
        self._coefficients.extend(op.coefficients)
        if tables is not None and len(tables):
            self._tables.append(tables)
        self._ops.append([int(op.code), op.n, table, coef, op.a, op.b, op.c, add])

    def _check(self, name: object) -> None:
        """``name`` is the layer, which is written only into an error."""
        if not (self.variance <= self._largest).all():
            raise OverflowError(
                f"X must keep the kernel within {self._dtype}: the variance overflows in {name}; "
                "scale X down"
            )

    def dense(self, w_std: float, b_std: float, trainable: bool, name: object) -> None:
        """K <- w^2 K + b^2, T <- K + w^2 T."""
        sd = np.sqrt(self.variance)
        with np.errstate(over="ignore", invalid="ignore"):
            self.variance = w_std * w_std * self.variance + b_std * b_std
            self.t = w_std * w_std * self.t + (self.variance if trainable else 0.0)
        self._check(name)
        if b_std:
            new = np.sqrt(self.variance)
            self._emit(Op(Code.BIAS), np.stack([w_std * sd / new, b_std / new]), float(trainable))
        elif trainable:
            fusible = self._ops and Code.RELU <= self._ops[-1][0] <= Code.CHEBYSHEV_PROFILE
            if fusible and self._ops[-1][-1] == 0.0:
                self._ops[-1][-1] = 1.0
            else:
                self._emit(Op(Code.TRAINED))

    def activation(self, step: RowStep, name: object) -> None:
        old, new = np.sqrt(self.variance), np.sqrt(step.variance)
        if step.doubt is not None:
            self.doubts.append(step.doubt)
        self.variance = step.variance
        with np.errstate(over="ignore", invalid="ignore"):
            self.t = self.t * step.slope
        self._check(name)
        if step.op is None:
            return
        tables = step.tables
        if tables is None:
            inverse = _reciprocal(new)
            tables = np.stack([old, inverse, old * inverse])
        self._emit(step.op, tables)

    def save(self) -> None:
        self._stack.append((self.variance, self.t))
        self.slots = max(self.slots, len(self._stack))
        self._emit(Op(Code.SAVE))

    def swap(self) -> None:
        entry = self._stack[-1]
        self._stack[-1] = (self.variance, self.t)
        self.variance, self.t = entry
        self._emit(Op(Code.SWAP))

    def merge(self, name: object) -> None:
        """The sum of the current part (shortcut) and the saved one (branch)."""
        variance, t = self._stack.pop()
        current, saved = np.sqrt(self.variance), np.sqrt(variance)
        with np.errstate(over="ignore"):
            self.variance, self.t = self.variance + variance, self.t + t
        self._check(name)
        inverse = _reciprocal(np.sqrt(self.variance))
        self._emit(Op(Code.MERGE), np.stack([current * inverse, saved * inverse]))

    def done(self) -> Compiled:
        rows = len(self.variance)
        tables = np.concatenate(self._tables) if self._tables else np.empty((0, rows))
        return Compiled(
            ops=np.array([tuple(o) for o in self._ops], OP),
            coefficients=np.array(self._coefficients, np.float64),
            tables=tables,
            sd=np.sqrt(self.variance),
            k=self.variance,
            t=self.t,
            slots=self.slots,
            doubts=self.doubts,
        )


def _reciprocal(x: Array) -> Array:
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > 0)


def _padded(x: Array) -> Array:
    """Copied to a length that is a multiple of the strip, zeros behind."""
    n = -(-x.shape[-1] // STRIP) * STRIP
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])])


def correlations(a: Array, c: Array, k: Array) -> tuple[Array, Array]:
    """Correlation and 1 - |correlation| for flat arrays of variances and covariances."""
    # Powers of two bring every product into range without rounding.
    i, j = np.frexp(a)[1] // 2, np.frexp(c)[1] // 2
    a, c, k = np.ldexp(a, -2 * i), np.ldexp(c, -2 * j), np.ldexp(np.ldexp(k, -i), -j)
    a, c, k = _padded(a), _padded(c), _padded(k)
    u, delta = np.empty_like(a), np.empty_like(a)
    _dispatch.driver("dense").correlate(a, c, k, u, delta)
    return u, delta


def raw_dual(op: Op, x_tables: Array, y_tables: Array, a: Array, c: Array, k: Array):
    """What a single operation makes of flat arrays: both outputs of the driver, not normalised."""
    u, delta = correlations(a, c, k)
    t = np.zeros_like(u)
    record = np.array([(int(op.code), op.n, 0, 0, op.a, op.b, op.c, 0.0)], OP)
    coefficients = np.array(op.coefficients, np.float64)
    _dispatch.driver("dense").pairs(
        _calls.Program(record.view(np.uint8), coefficients),
        (_padded(x_tables), _padded(y_tables)), (u, delta, t), np.empty((1, 0)), raw=True,
    )  # fmt: skip
    return u[: len(a)], t[: len(a)]


def run_pairs(program: Compiled, u: Array, delta: Array, n_threads: int) -> tuple[Array, Array]:
    """Both kernels for rows all alike (one table column) at correlations ``u``."""
    n = len(u)
    u, delta = _padded(u), _padded(delta)
    t = np.zeros_like(u)
    tables = np.ascontiguousarray(np.broadcast_to(program.tables, (len(program.tables), len(u))))
    saved = np.empty((n_threads, 3 * STRIP * program.slots))
    _dispatch.driver("dense").pairs(
        _calls.Program(program.ops.view(np.uint8), program.coefficients, program.slots),
        (tables, tables), (u, delta, t), saved,
    )  # fmt: skip
    with np.errstate(over="ignore"):
        return program.k[0] * u[:n], program.k[0] * t[:n]
