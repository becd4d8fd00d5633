"""Rows: programs walk single rows first, which gives tables and diagonals, then all pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _check
from ..._types import Array
from ...program import Apply, Code, Input, Merge, Op, Program, Save, Swap, Weights
from .. import accuracy
from . import calls, cyclic, dense, dispatch, steps
from .dense import OP, Compiled
from .inputs import HostInputs

FLOAT64 = np.dtype(np.float64)


class Walk:
    """An interpreter of a program on rows of given norms: operations, tables and both diagonals.

    The compiled engine carries correlations. All else that it needs (standard deviations, shares,
    Hermite coefficients) depends on single rows, and is tabulated here.
    """

    def __init__(self, norm: Array, d: int, dtype: np.dtype, n_threads: int) -> None:
        self.variance = norm
        self.t = np.zeros_like(norm)
        self._d, self._dtype, self._n_threads = d, np.dtype(dtype), n_threads
        self._tolerance = float(np.finfo(dtype).eps) / 4
        self._ops: list[list[Any]] = []
        self._coefficients: list[float] = []
        self._tables: list[Array] = []
        self._stack: list[tuple[Array, Array]] = []
        self._slots = 0
        self._fusible = False  # whether the last operation may add K to T on its way
        self._doubts: list[accuracy.Doubt] = []

    def _emit(self, op: Op, tables: Array | None = None, add: float = 0.0) -> None:
        table = sum(len(t) for t in self._tables)
        coef = len(self._coefficients)
        self._coefficients.extend(op.coefficients)
        if tables is not None and len(tables):
            self._tables.append(tables)
        self._ops.append([int(op.code), op.n, table, coef, op.a, op.b, op.c, add])
        self._fusible = False

    def _check(self, name: object) -> None:
        """Refuse variances beyond the dtype; ``name`` is the layer, which only an error prints."""
        _check.within(self.variance, self._dtype, "the variance overflows in {}", name)

    def input(self, node: Input) -> None:
        with np.errstate(over="ignore"):
            if node.of == "mean":
                self.variance = self.variance * (self.variance / self._d)
            elif node.of == "sum":
                self.variance = self.variance * self.variance
            else:
                self.variance = np.ones_like(self.variance)
        self._check("the input")

    def weights(self, node: Weights) -> None:
        w, b = node.w_std, node.b_std
        sd = np.sqrt(self.variance)
        with np.errstate(over="ignore", invalid="ignore"):
            self.variance = w * w * self.variance + b * b
            self.t = w * w * self.t + (self.variance if node.trained else 0.0)
        self._check(node.layer)
        if b:
            new = np.sqrt(self.variance)
            self._emit(Op(Code.BIAS), np.stack([w * sd / new, b / new]), float(node.trained))
        elif node.trained and self._fusible:
            self._ops[-1][-1], self._fusible = 1.0, False
        elif node.trained:
            self._emit(Op(Code.TRAINED))

    def apply(self, node: Apply) -> None:
        form = node.form
        step = steps.step(form, self.variance, self._tolerance, self._n_threads)
        old, new = np.sqrt(self.variance), np.sqrt(step.variance)
        if step.doubt is not None:
            self._doubts.append(step.doubt)
        self.variance = step.variance
        with np.errstate(over="ignore", invalid="ignore"):
            self.t = self.t * step.slope
        self._check(node.layer)
        if step.op is None:
            return
        tables = step.tables
        if tables is None:
            inverse = _reciprocal(new)
            tables = np.stack([old, inverse, old * inverse, *step.more])
        self._emit(step.op, tables)
        self._fusible = form.fuses

    def save(self, node: Save) -> None:
        self._stack.append((self.variance, self.t))
        self._slots = max(self._slots, len(self._stack))
        self._emit(Op(Code.SAVE))

    def swap(self, node: Swap) -> None:
        entry = self._stack[-1]
        self._stack[-1] = (self.variance, self.t)
        self.variance, self.t = entry
        self._emit(Op(Code.SWAP))

    def merge(self, node: Merge) -> None:
        variance, t = self._stack.pop()
        current, saved = np.sqrt(self.variance), np.sqrt(variance)
        with np.errstate(over="ignore"):
            self.variance, self.t = self.variance + variance, self.t + t
        self._check("Residual")
        inverse = _reciprocal(np.sqrt(self.variance))
        self._emit(Op(Code.MERGE), np.stack([current * inverse, saved * inverse]))

    def done(self) -> Compiled:
        rows = len(self.variance)
        return Compiled(
            ops=np.array([tuple(o) for o in self._ops], OP),
            coefficients=np.array(self._coefficients, np.float64),
            tables=np.concatenate(self._tables) if self._tables else np.empty((0, rows)),
            k=self.variance,
            t=self.t,
            slots=self._slots,
            doubts=self._doubts,
        )


def _reciprocal(x: Array) -> Array:
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > 0)


def compiled(
    program: Program, norm: Array, d: int, dtype: np.dtype, n_threads: int, tangent: bool
) -> Compiled:
    """Compile a program for rows of these norms in d dimensions; refuse what the dtype loses."""
    walk = Walk(norm, d, dtype, n_threads)
    program.run(walk)
    tiny = float(np.finfo(dtype).tiny)
    if walk.variance.min(initial=1.0) < tiny:
        lost = norm[walk.variance < tiny].any()  # a row of zeros has lost nothing
        _check.resolved(bool(lost) and _alive(program, d), dtype)
    made = walk.done()
    accuracy.tell(made.doubts, tangent)
    return made


def _alive(program: Program, d: int) -> bool:
    """Return whether the kernel is anything but zero, at inputs of variance about 1."""
    walk = Walk(np.array([math.sqrt(d)]), d, FLOAT64, 1)
    program.run(walk)
    return bool(walk.variance[0])


class Rows(HostInputs):
    """The rows of a Gram matrix, checked; programs fill blocks of the matrix."""

    def __init__(self, X: Any, Y: Any, n_threads: int) -> None:
        self.x, self.y = _check.points(X, Y)
        self.n_threads = n_threads
        norms = [dense.norms(self.x, "X", n_threads)]
        if self.y is not None:
            norms.append(dense.norms(self.y, "Y", n_threads))
        self.norm = np.concatenate(norms)  # X and Y together, so that they share tables

    def part(self, rows: slice, columns: slice | None) -> Rows:
        """Return some rows against some columns, or against themselves."""
        y = self.x if self.y is None else self.y
        return Rows(self.x[rows], None if columns is None else y[columns], self.n_threads)

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
        made = compiled(program, norm, x.shape[1], x.dtype, n_threads, t_out is not None)
        dense.gram(x, y, norm, made, node.of, target, n_threads, node.scale, self.watch)

    def diagonal(self, program: Program, tangent: bool, factor: float) -> Array:
        """Return ``factor`` times the kernel of every row with itself, to the bits of ``gram``."""
        if program.input.domain == "cyclic":
            return cyclic.diagonal(self.x, self.norm, program, factor, self.n_threads)
        x, d = self.x, self.x.shape[1]
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
    n_threads = dense.enough(n * 64 * len(made.ops), n_threads)
    u, delta = steps.padded(u), steps.padded(delta)
    t = np.zeros_like(u)
    tables = np.ascontiguousarray(np.broadcast_to(made.tables, (len(made.tables), len(u))))
    saved = np.empty((n_threads, 3 * steps.STRIP * made.slots))
    dispatch.driver("dense").pairs(
        calls.Program(made.ops.view(np.uint8), made.coefficients, made.slots), (tables, tables),
        (u, delta, t), saved,
    )  # fmt: skip
    with np.errstate(over="ignore"):
        return made.k[0] * (t if tangent else u)[:n]
