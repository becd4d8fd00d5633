"""Rows: programs walk single rows first, which gives tables and diagonals, then all pairs."""

from __future__ import annotations

import copy
import functools
import math
from typing import Any

import numpy as np

from ... import _check
from ..._types import Array
from ...program import (
    Apply,
    Code,
    Form,
    Homogeneous,
    Input,
    Merge,
    OfSum,
    Op,
    Program,
    Save,
    Swap,
    Unchanged,
    Unit,
    Weights,
)
from .. import accuracy
from . import calls, cyclic, dense, dispatch, steps
from .dense import FLOAT64, LIMITS, OP, ROW, Compiled
from .inputs import HostInputs

LANES = 32
"""What rows have is padded to multiples of this, ``row_block`` in host/rows.h."""
ROW_CODES = {"mean": 0, "sum": 1}
ONE, WEIGHTS, HOMOGENEOUS, UNIT, SAVE, SWAP, MERGE, LINEAR = range(2, 10)  # row_code in host/rows.h
FLOOR = 2 / float(np.finfo(np.float64).max)  # the reciprocal of less may overflow


class Lowering:
    """An interpreter of a program: what compiled loops do with rows, and with pairs of them.

    The compiled engine carries correlations. All else that it needs (standard deviations, shares,
    Hermite coefficients) depends on single rows, and is tabulated. Steps of rows are compiled as
    well, but for functions whose tables Python makes: they are in ``functions``, each after a
    segment of compiled steps. Nothing here depends on the rows, and layers are known by their nodes
    alone: equal programs may have layers of other names.
    """

    def __init__(self, program: Program) -> None:
        self.segments: list[list[tuple[Any, ...]]] = [[]]
        self.functions: list[tuple[int, int, Form]] = []  # node, operation, form
        self.ops: list[list[Any]] = []
        self.coefficients: list[float] = []
        self.tables = self.slots = self._open = 0
        self._fusible = False  # whether the last operation may add K to T on its way
        for self._node, node in enumerate(program):
            getattr(self, node.kind)(node)
        self.steps = [np.array(steps, ROW).view(np.uint8) for steps in self.segments]
        self.fused = np.array(_fused(self.segments[-1]), ROW).view(np.uint8)
        self._records: dict[np.dtype, calls.Program] = {}
        self._sums: dict[np.dtype, calls.Sums] = {}
        self.fixed = 2 + 2 * self.slots  # where tables begin

    def _step(self, code: int, n: int = 0, *constants: float) -> None:
        a, b, c = (*constants, 0.0, 0.0, 0.0)[:3]
        self.segments[-1].append((code, n, self.tables, self._node, a, b, c, 0.0))

    def _emit(self, op: Op, tables: int = 0, add: float = 0.0) -> None:
        record = [int(op.code), op.n, self.tables, len(self.coefficients), op.a, op.b, op.c, add]
        self.ops.append(record)
        self.coefficients.extend(op.coefficients)
        self.tables += tables
        self._fusible = False

    def input(self, node: Input) -> None:
        self._input = node
        self.squares = node.of == "squares"  # sums of them, which are distances
        self._step(ROW_CODES.get(node.of, ONE))

    def weights(self, node: Weights) -> None:
        self._step(WEIGHTS, 0, node.w_std, node.b_std, float(node.trained))
        if node.b_std:
            self._emit(Op(Code.BIAS), 2, float(node.trained))
        elif node.trained and self._fusible:
            self.ops[-1][-1], self._fusible = 1.0, False
        elif node.trained:
            self._emit(Op(Code.TRAINED))

    def apply(self, node: Apply) -> None:
        match form := node.form:
            case Unchanged():
                return
            case Unit():
                self._step(UNIT)
                return
            case OfSum(op):
                self._step(HOMOGENEOUS, 1, 1.0, 0.0)
                self._emit(op)
            case Homogeneous(op, degree, gain, slope) if degree in (0, 1, 2):
                self._step(HOMOGENEOUS, degree, gain, slope)
                self._emit(op)
            case _:
                self.functions.append((self._node, len(self.ops), form))
                self.segments.append([])
                self._emit(Op(Code.SERIES))  # in whose place the function puts its own
        self._fusible = form.fuses

    def save(self, node: Save) -> None:
        self._step(SAVE, self._open)
        self._open += 1
        self.slots = max(self.slots, self._open)
        self._emit(Op(Code.SAVE))

    def swap(self, node: Swap) -> None:
        self._step(SWAP, self._open - 1)
        self._emit(Op(Code.SWAP))

    def merge(self, node: Merge) -> None:
        self._open -= 1
        self._step(MERGE, self._open)
        self._emit(Op(Code.MERGE), 2)

    def records(self, dtype: np.dtype) -> calls.Program:
        """Return operations and coefficients, where Python makes none of them."""
        if dtype not in self._records:
            self._records[dtype] = _records(self.ops, self.coefficients, self.slots, dtype)
        return self._records[dtype]

    def sums(self, dtype: np.dtype) -> calls.Sums:
        """Return what the input sums over coordinates."""
        if dtype not in self._sums:
            self._sums[dtype] = dense.sums(self._input.of, self._input.scale, dtype)
        return self._sums[dtype]

    def state(self, n: int) -> Array:
        """Return room for what n rows have: variance, t, two rows per slot, tables."""
        return calls.room((self.fixed + self.tables, -(-n // LANES) * LANES), FLOAT64)


def _fused(steps: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Join neighbours that take v to a v and t to b t + c v, unless constants leave the range.

    Products are exact until they are written.
    """
    Fraction = dispatch.load("fractions").Fraction  # imported late: it takes milliseconds
    made: list[tuple[Any, ...]] = []
    for step in steps:
        code, n, table, node, *constants = step
        a, b, c = map(Fraction, constants[:3])
        if code == WEIGHTS and not b:
            one = a * a, a * a, a * a * c, a * a
        elif code == HOMOGENEOUS and n == 1:
            one = a, b, Fraction(0), a
        else:
            made.append(step)
            continue
        both = one
        if made and made[-1][0] == LINEAR:
            v, t, share, top = made[-1][4:]
            both = one[0] * v, one[1] * t, one[1] * share + one[2] * v, max(top, one[0] * v)
        if not all(not x or 1e-100 < x < 1e100 for x in one):
            made.append(step)
        elif both is not one and all(not x or 1e-100 < x < 1e100 for x in both):
            made[-1] = (*made[-1][:4], *both)
        else:
            made.append((LINEAR, n, table, node, *one))
    return [(*step[:4], *map(float, step[4:])) for step in made]


def _records(
    ops: list[list[Any]], coefficients: list[float], slots: int, dtype: np.dtype
) -> calls.Program:
    records = np.array([tuple(op) for op in ops], OP)
    most = LIMITS[dtype].most
    records["a"] = np.clip(records["a"], -most, most)  # 1/lengthscale may be beyond float32
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.array(coefficients, np.float64).astype(dtype)
    return calls.Program(records.view(np.uint8), rounded, slots)


lowered = functools.lru_cache(256)(Lowering)


class Walk:
    """The rows of given norms on their way through a program: tables and both diagonals."""

    def __init__(
        self, program: Program, norm: Array, d: int, dtype: np.dtype, n_threads: int
    ) -> None:
        self.program, self.low = program, lowered(program)
        self.d, self.dtype, self.n_threads = d, dtype, n_threads
        self.fixed, n = self.low.fixed, len(norm)
        self.state = self.low.state(n)
        self.variance, self.t, self.faint, self.most = norm, self.state[1, :n], False, 0.0
        self.ops, self.coefficients = self.low.ops, self.low.coefficients
        self.more: list[Array] = []  # tables of functions
        self.doubts: list[accuracy.Doubt] = []
        if not self.low.functions and self._segment(self.low.fused) < 0:
            return
        for k, function in enumerate(self.low.functions):
            self._checked(self.low.steps[k])
            self._function(*function)
        self._checked(self.low.steps[-1])

    def _segment(self, steps: Array) -> int:
        """Take rows through compiled steps; return the first whose variances overflow, or -1."""
        state, limits = self.state, LIMITS[self.dtype]
        bad, self.faint, self.most = dispatch.driver("dense").rows(
            steps, self.variance, state, 2, self.fixed, self.d, limits.most, FLOOR, limits.tiny
        )
        if bad < 0:
            self.variance = state[0, : len(self.variance)]
        return bad

    def _checked(self, steps: Array) -> None:
        """Refuse variances that overflow, naming the layer."""
        bad = self._segment(steps)
        if bad >= 0:
            node = self.program[steps.view(ROW)["node"][bad]]
            what = {"input": "the input", "merge": "Residual"}.get(node.kind, node.layer)
            _check.beyond(self.dtype, "the variance overflows in {}", what)

    def _function(self, node: int, at: int, form: Form) -> None:
        """Take rows through a function that Python tabulates, and put its operation in place."""
        if self.ops is self.low.ops:
            self.ops, self.coefficients = [list(op) for op in self.ops], list(self.coefficients)
        step = steps.step(form, self.variance, LIMITS[self.dtype].eps / 4, self.n_threads)
        assert step.op is not None
        old, new = np.sqrt(self.variance), np.sqrt(step.variance)
        if step.doubt is not None:
            self.doubts.append(step.doubt)
        with np.errstate(over="ignore", invalid="ignore"):
            self.t *= step.slope
        _check.within(
            step.variance, self.dtype, "the variance overflows in {}", self.program[node].layer
        )
        self.variance, tables, op = step.variance, step.tables, step.op
        if tables is None:
            inverse = np.divide(1.0, new, out=np.zeros_like(new), where=new > 0)
            tables = np.stack([old, inverse, old * inverse])
        table = self.low.tables + sum(len(t) for t in self.more)
        self.ops[at][:7] = (
            int(op.code), op.n, table, len(self.coefficients), op.a, op.b, op.c,
        )  # fmt: skip
        self.coefficients.extend(op.coefficients)
        self.more += [t for t in (tables, step.more) if len(t)]

    def done(self) -> Compiled:
        tables = self.state[self.fixed :]
        if self.low.functions:
            tables = np.concatenate([tables[:, : len(self.variance)], *self.more])
            program = _records(self.ops, self.coefficients, self.low.slots, self.dtype)
        else:
            program = self.low.records(self.dtype)
        return Compiled(program, tables, self.variance, self.t, self.doubts, self.most)


def compiled(
    program: Program, norm: Array, d: int, dtype: np.dtype, n_threads: int, tangent: bool
) -> Compiled:
    """Compile a program for rows of these norms in d dimensions; refuse what the dtype loses."""
    low = lowered(program)
    if not low.functions:  # most calls end here, and small ones take no longer than this
        n, state, limits = len(norm), low.state(len(norm)), LIMITS[dtype]
        bad, faint, most = dispatch.driver("dense").rows(
            low.fused, norm, state, 2, low.fixed, d, limits.most, FLOOR, limits.tiny
        )
        if bad < 0 and not faint:
            k, t = state[0, :n], state[1, :n]
            return Compiled(low.records(dtype), state[low.fixed :], k, t, [], most)
    walk = Walk(program, norm, d, dtype, n_threads)
    if walk.faint:
        lost = norm[walk.variance < LIMITS[dtype].tiny].any()  # a row of zeros has lost nothing
        _check.resolved(bool(lost) and _alive(program, d), dtype)
    made = walk.done()
    accuracy.tell(made.doubts, tangent)
    return made


def _near_enough(low: Lowering, norm: Array, dtype: np.dtype) -> None:
    """Refuse rows whose squared distances overflow, unless the kernel is zero so far away."""
    most = LIMITS[dtype].most
    if not low.squares or 2 * float(norm.max()) <= math.sqrt(most):
        return
    code, scale = low.ops[0][0], low.ops[0][4]
    root = math.sqrt(scale) if code == Code.MATERN_OF else scale
    exponent = root * (most if code == Code.EXPONENTIAL_OF else math.sqrt(most))
    if exponent < -2 * math.log(LIMITS[dtype].tiny):  # powers of it may count, too
        _check.beyond(dtype, "squared distances overflow")


def _alive(program: Program, d: int) -> bool:
    """Return whether the kernel is anything but zero, at inputs of variance about 1."""
    return bool(Walk(program, np.array([math.sqrt(d)]), d, FLOAT64, 1).variance[0])


class Rows(HostInputs):
    """The rows of a Gram matrix, checked; programs fill blocks of the matrix."""

    def __init__(self, X: Any, Y: Any, n_threads: int, known: Array | None = None) -> None:
        self.x, self.y = _check.points(X, Y)
        self.n_threads = n_threads
        n = len(self.x)
        if self.y is None:
            self.norm = dense.norms(self.x, "X", n_threads)
            return
        # X and Y together, so that they share tables; ``known`` are the norms of Y.
        self.norm = calls.room((n + len(self.y),), FLOAT64)
        dense.norms(self.x, "X", n_threads, self.norm[:n])
        if known is None:
            dense.norms(self.y, "Y", n_threads, self.norm[n:])
        else:
            self.norm[n:] = known

    def part(self, rows: slice, columns: slice | None) -> Rows:
        """Return some rows against some columns, or against themselves."""
        n = 0 if self.y is None else len(self.x)
        y, part = self.x if self.y is None else self.y, copy.copy(self)
        part.x, part.norm, part.y = np.ascontiguousarray(self.x[rows]), self.norm[rows], None
        if columns is not None:
            part.y = np.ascontiguousarray(y[columns])
            part.norm = np.concatenate([part.norm, self.norm[n:][columns]])
        return part

    def against(self, X: Any, n_threads: int) -> Rows:
        """Return other rows against those of X here, whose norms are known."""
        return Rows(X, self.x, n_threads, self.norm[: len(self.x)])

    def gram(
        self, program: Program, k_out: Array | None, t_out: Array | None, factor: float,
        combine: int,
    ) -> None:  # fmt: skip
        """Write ``factor`` times a program's kernels into one output or both."""
        x, y, norm, n_threads, node = self.x, self.y, self.norm, self.n_threads, program.input
        target = calls.Target(k_out, t_out, factor, combine, y is None)
        if node.domain == "cyclic":
            cyclic.gram(x, y, norm, program, target, n_threads, watch=self.watch)
            return
        if len(norm) == 0:
            return
        low = lowered(program)
        _near_enough(low, norm, x.dtype)
        made = compiled(program, norm, x.shape[1], x.dtype, n_threads, t_out is not None)
        sums = low.sums(x.dtype)
        dense.gram(x, y, norm, made, sums, target, n_threads, self.watch)

    def diagonal(self, program: Program, tangent: bool, factor: float) -> Array:
        """Return ``factor`` times the kernel of every row with itself, to the bits of ``gram``."""
        if program.input.domain == "cyclic":
            return cyclic.diagonal(self.x, self.norm, program, factor, self.n_threads)
        x, d = self.x, self.x.shape[1]
        if len(x) == 0:
            return np.empty(0, x.dtype)
        made = compiled(program, self.norm[: len(x)], d, x.dtype, self.n_threads, tangent)
        diagonal = made.tangent(x.dtype) if tangent else made.k
        return (factor * diagonal).astype(x.dtype)


def profile(
    program: Program, u: Array, radius: float, d: int, tangent: bool, n_threads: int
) -> Array:
    """Evaluate a kernel at cosines ``u`` of inputs of norm ``radius`` in R^d, in float64."""
    if program.input.of in ("mean", "sum"):
        delta = 1 - np.abs(u)
    else:
        u, delta = 2 * radius**2 * (1 - u), np.zeros_like(u)  # the squared distance
    made = compiled(program, np.array([radius]), d, FLOAT64, n_threads, tangent)
    n = len(u)
    n_threads = dense.enough(n * 64 * len(made.program.ops) // OP.itemsize, n_threads)
    u, delta = steps.padded(u), steps.padded(delta)
    t = np.zeros_like(u)
    tables = np.repeat(made.tables[:, :1], len(u), axis=1)
    saved = np.empty((n_threads, 3 * steps.STRIP * made.program.slots))
    driver = dispatch.driver("dense")
    driver.pairs(made.program, (tables, tables), (u, delta, t), saved)
    with np.errstate(over="ignore"):
        return made.k[0] * (t if tangent else u)[:n]
