"""Rows on a device: sums over coordinates and networks run there, tables are made on the host.

What is known of single rows, a few numbers each, comes from the walk of ``engine/cpu/rows.py``: the
norms of all rows travel to the host, and tables travel back.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from ... import _check
from ..._types import Array
from ...program import Program
from ..cpu import cyclic as host_cyclic
from ..cpu import dense
from ..cpu.dispatch import load
from ..cpu.rows import compiled
from . import cyclic, drivers
from .inputs import DeviceInputs, arrays
from .records import structs

ROWS = {4: 128, 8: 64}
COLUMNS = 64
"""The entries of a tile, by the bytes of a number: ``tile_shape`` in ext/gpu/dense.cu."""


class Side(NamedTuple):
    """What a driver knows of some rows; the arrays that a struct points to are kept here."""

    rows: Any
    norm: Any
    numbers: Any  # scale, sd and tables, (2 + tables, rows)

    def fill(self, struct: Any) -> None:
        scale, sd, n = self.numbers[0], self.numbers[1], len(self.rows)
        struct["rows"], struct["count"], struct["norm"] = self.rows.data.ptr, n, self.norm.data.ptr
        struct["scale"], struct["sd"] = scale.data.ptr, sd.data.ptr
        struct["table"] = sd.data.ptr + sd.nbytes
        struct["stride"] = n


class Rows(DeviceInputs):
    """The rows of a Gram matrix on a device, checked; programs fill blocks of the matrix."""

    shared_from = 2**24

    def __init__(self, X: Any, Y: Any, n_threads: int, known: Array | None = None) -> None:
        self.x, self.y = _check.points(X, Y, arrays())
        if self.y is not None:
            _check.same_device(self.x, self.y)
        self.n_threads = n_threads
        with self.there():
            x, y = self._norms(self.x, "X"), None
            if self.y is not None:
                y = self._norms(self.y, "Y") if known is None else known
        self.norm = x if y is None else np.concatenate([x, y])

    def _norms(self, a: Any, name: str) -> Array:
        cupy = load("cupy")
        norm = cupy.empty(len(a), np.float64)
        blocks = -(-len(a) // drivers.BLOCK)
        if len(a):
            sizes = map(np.int64, a.shape)
            drivers.launch("dense_norms", a.dtype, drivers.Needs(), (blocks,), a, *sizes, norm)
        found = cupy.asnumpy(norm)
        bad = np.flatnonzero(~np.isfinite(found))
        if len(bad):
            row = slice(int(bad[0]), int(bad[0]) + 1)
            _check.finite(cupy.asnumpy(a[row]), found[row], name, row.start)
        return found

    def part(self, rows: slice, columns: slice | None) -> Rows:
        """Return some rows against some columns, or against themselves."""
        cupy, n = load("cupy"), 0 if self.y is None else len(self.x)
        y, part = self.x if self.y is None else self.y, copy.copy(self)
        part.x, part.norm, part.y = cupy.ascontiguousarray(self.x[rows]), self.norm[rows], None
        if columns is not None:
            part.y = cupy.ascontiguousarray(y[columns])
            part.norm = np.concatenate([part.norm, self.norm[n:][columns]])
        return part

    def against(self, X: Any, n_threads: int) -> Rows:
        """Return other rows against those of X here, whose norms are known."""
        return Rows(X, self.x, n_threads, self.norm[: len(self.x)])

    def fill(self, program: Program, k_out: Any, t_out: Any, factor: float, combine: int) -> None:
        """Write ``factor`` times a program's kernels into one output or both."""
        x, dtype, cupy = self.x, self.x.dtype, load("cupy")
        y = x if self.y is None else self.y
        (n, d), m = x.shape, len(y)
        if program.input.domain == "cyclic":
            self._patches(program)

            def fill(to: Any) -> None:
                self.target(to, k_out, t_out, factor, combine)

            cyclic.gram(x, self.y, self.norm, program, fill, factor)
            return
        made = compiled(program, self.norm, d, dtype, self.n_threads, t_out is not None)
        t = made.k if t_out is None else made.tangent(dtype)
        sums = dense.sums(program.input.of, program.input.scale, dtype)
        codes = made.program.ops.view(dense.OP)["code"]
        needs = drivers.Needs(drivers.mask(codes), 1 if t_out is None else 2, 1 << sums.kind)
        up = cupy.asarray
        norm, k, t = up(self.norm), up(np.ascontiguousarray(made.k)), up(np.ascontiguousarray(t))
        tables = up(np.ascontiguousarray(made.tables[:, : len(self.norm)]))
        sides = []
        for rows, first in ((x, 0), (y, 0 if self.y is None else n)):
            numbers = cupy.empty((2 + len(tables), len(rows)), dtype)
            drivers.launch(
                "dense_sides", dtype, needs, (-(-len(rows) // drivers.BLOCK),), norm[first:],
                k[first:], tables, *map(np.int64, (first, tables.shape[1], len(tables), len(rows))),
                np.int32(sums.angular), numbers,
            )  # fmt: skip
            sides.append(Side(rows, norm[first:], numbers))
        ops, coefficients = up(made.program.ops), up(made.program.coefficients)
        job = np.zeros(1, structs(dtype).gram_job)
        for side, name in zip(sides, "xy", strict=True):
            side.fill(job[name][0])
        job["d"], job["factor"], job["slots"] = d, factor, made.program.slots
        job["program"][0] = ops.data.ptr, len(codes), coefficients.data.ptr
        job["k_diagonal"], job["t_diagonal"] = k.data.ptr, t.data.ptr
        job["kind"], job["bump_scale"], job["angular"] = sums.kind, sums.bump, sums.angular
        self.target(job["to"][0], k_out, t_out, factor, combine)
        grid = (-(-m // COLUMNS), -(-n // ROWS[dtype.itemsize]))
        drivers.launch("dense_gram", dtype, needs, grid, job)

    def _patches(self, program: Program) -> None:
        """Refuse patches on which the function is not defined; they are looked at on the host."""
        walk = host_cyclic.Walk(program)
        if walk.h._everywhere:
            return
        for a, name in ((self.x, "X"), (self.y, "Y")):
            if a is not None:
                _check.patches_within(load("cupy").asnumpy(a), walk.patch, walk.h, name)

    def diagonal(self, program: Program, tangent: bool, factor: float) -> Any:
        """Return ``factor`` times the kernel of every row with itself, to the bits of ``gram``."""
        x, cupy = self.x, load("cupy")
        norm = self.norm[: len(x)]
        with self.there():
            if len(x) == 0:
                return cupy.empty(0, x.dtype)
            if program.input.domain == "cyclic":
                self._patches(program)
                out = cupy.empty(len(x), x.dtype)
                cyclic.gram(x, None, norm, program, None, factor, out)
                return out
            made = compiled(program, norm, x.shape[1], x.dtype, self.n_threads, tangent)
            diagonal = made.tangent(x.dtype) if tangent else made.k
            return cupy.asarray((factor * diagonal).astype(x.dtype))
