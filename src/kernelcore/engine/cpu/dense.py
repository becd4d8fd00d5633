"""The compiled dense engine: a program compiled for some rows, and calls of the driver."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ... import _check
from ..._types import Array
from ..accuracy import Doubt
from ..progress import Watch
from . import calls, dispatch

FLOAT64 = np.dtype(np.float64)
ASSIGN, ADD, MULTIPLY = 0, 1, 2  # combination, in tile.h
REDUCTIONS = {"mean": 0, "sum": 0, "products": 0, "squares": 1, "sizes": 2, "bumps": 3}
"""The numbers in ``product.h`` of what an input sums over coordinates."""


def fields(*groups: str) -> list[tuple[str, str]]:
    """Return the fields of a C struct; each group is a type and the names that have it."""
    return [(name, kind) for kind, *names in map(str.split, groups) for name in names]


OP = np.dtype(fields("i4 code n table coef", "f8 a b c add"), align=True)
ROW = np.dtype(
    fields("i4 code n table node", "f8 a b c top"), align=True
)  # row_step, in host/rows.h
PACKED_BYTES = 16_000_000
"""Room for the packed rows of one side; a matrix that needs more is computed in blocks."""
THIN_BYTES = 1_000_000
"""The same for a thread where one panel meets many, which are used once and leave no cache."""
OWN_BYTES = 100_000
"""A tile of one panel against panels of no more than this packs them itself."""
LEAST_BLOCK, PART_BYTES = 40, 2_000_000
"""Rows of which fewer panels fit are packed some coordinates at a time: the panels of a block, and
the room for them, which a second-level cache nearly holds."""
THIN = 12
"""Up to this many columns a matrix with more rows is computed as its transpose: strips of entries
along a row are whole panels, while rows may be as few as they are."""
TILE_ROWS, TILE_BYTES = 96, 1920
"""The rows of a tile, and the bytes in each. Its values, 180 KB, stay in a second-level cache."""


class Limits(NamedTuple):
    """What a dtype is called and holds; NumPy takes microseconds to ask."""

    name: str
    most: float
    tiny: float
    eps: float


LIMITS = {
    np.dtype(kind): Limits(kind, float(info.max), float(info.tiny), float(info.eps))
    for kind in ("float32", "float64")
    for info in (np.finfo(kind),)
}


class Compiled(NamedTuple):
    """A program compiled for one set of rows, and its diagonals on them."""

    program: calls.Program
    tables: Array  # (tables, rows or more), float64
    k: Array  # diagonal of the kernel
    t: Array  # and of the tangent kernel
    doubts: list[Doubt]
    most: float  # of t

    def tangent(self, dtype: np.dtype) -> Array:
        """Return the tangent kernel's diagonal, which grows with depth where variances do not."""
        if not self.most <= LIMITS[dtype].most:
            _check.within(self.t, dtype, "the tangent kernel overflows")
        return self.t


def enough(work: int, n_threads: int) -> int:
    """Return how many threads ``work`` operations keep busy: starting one takes microseconds."""
    return min(n_threads, 1 + work // 200_000)


def norms(a: Array, name: str, n_threads: int, norm: Array | None = None) -> Array:
    """Return the norm of every row; refuse rows that are not finite."""
    norm = calls.room((len(a),), FLOAT64) if norm is None else norm
    if not dispatch.driver("dense").norms(a, norm, enough(a.size, n_threads)):
        _check.finite(a, norm, name)
    return norm


class Layout(NamedTuple):
    """How a Gram matrix is cut, and the numbers in the room that a call needs, per table."""

    tiles: calls.Tiles
    per_table: int


@functools.lru_cache(256)
def _layout(
    panel: int, n: int, m: int, d: int, dtype: np.dtype, n_threads: int, program: tuple[int, int],
    symmetric: bool,
) -> Layout:  # fmt: skip
    """Lay out n rows against m, for a program of so many operations and slots."""
    driver = dispatch.driver("dense")
    if transposed := m <= THIN and m < n:
        n, m = m, n
    n_threads = enough(n * m * (d + 32 * program[0]), n_threads)
    x_panels, y_panels = -(-n // panel), -(-m // panel)
    most = max(x_panels, y_panels)
    wide = panel * d * dtype.itemsize
    if x_panels == 1 < y_panels:
        block, size = min(max(4 * n_threads, n_threads * THIN_BYTES // wide), most), d
    else:
        block, size = min(max(1, PACKED_BYTES // wide), most), d
    if block < min(LEAST_BLOCK, most) and x_panels > 1:
        block = min(LEAST_BLOCK, most)
        size = driver.DEPTH * max(1, PART_BYTES * d // (block * wide * driver.DEPTH))
    rows, columns = _tile(panel, min(block, x_panels), min(block, y_panels), n_threads, dtype)
    like = np.empty(0, dtype)
    shared = symmetric and block >= y_panels  # one block: rows are the columns
    size = min(size, d)
    x_packed, y_packed = 0 if shared else min(block, x_panels), min(block, y_panels)
    tiles = -(-min(block, x_panels) // rows) * -(-min(block, y_panels) // columns)
    scratch = driver.scratch_size(like, rows, columns, program[1])
    if n == 1 and not symmetric:
        block, x_packed, y_packed, scratch = y_panels, 0, 0, scratch + d
    elif x_panels == 1 < y_panels and columns * wide <= OWN_BYTES:
        block, y_packed, scratch = y_panels, 0, scratch + columns * panel * d
    each = _whole(scratch, dtype)
    begin = [0]
    for numbers in (
        x_packed * panel * size, y_packed * panel * size, n_threads * each,
        0 if size == d else tiles * driver.tile_size(like, rows, columns),
    ):  # fmt: skip
        begin.append(begin[-1] + _whole(numbers, dtype))
    return Layout(
        calls.Tiles(
            block, rows, columns, size, transposed, y_packed > 0, n_threads,
            packed=begin[1], scratch=begin[2], each=each, waiting=begin[3], tables=begin[4],
        ),
        y_panels * panel + (0 if symmetric else n),
    )  # fmt: skip


def _whole(numbers: int, dtype: np.dtype) -> int:
    """Return that many numbers or a few more, which fill cache lines."""
    line = calls.LINE // dtype.itemsize
    return -(-numbers // line) * line


def gram(
    x: Array, y: Array | None, norm: Array, compiled: Compiled, sums: calls.Sums,
    target: calls.Target, n_threads: int, watch: Watch | None = None,
) -> None:  # fmt: skip
    """Run a program on all pairs of rows; ``norm`` has the norms of X, then those of Y."""
    dtype, symmetric, program = x.dtype, y is None, compiled.program
    t = compiled.k if target.t is None else compiled.tangent(dtype)
    y = x if y is None else y
    n, (m, d) = len(x), y.shape
    if n == 0 or m == 0:
        return
    driver = dispatch.driver("dense")
    count = len(program.ops) // OP.itemsize
    tiles, per_table = _layout(
        driver.PANEL[LIMITS[dtype].name], n, m, d, dtype, n_threads, (count, program.slots),
        symmetric,
    )  # fmt: skip
    first, second = 0, 0 if symmetric else n
    if tiles.transposed:
        x, y, first, second = y, x, second, first
    driver.gram(
        x, y, calls.Tables(norm, compiled.tables, compiled.k, t, first, second), program, sums,
        target, tiles,
        calls.room((tiles.tables + (2 + len(compiled.tables)) * per_table,), dtype), watch=watch,
    )  # fmt: skip


@functools.lru_cache(256)
def sums(of: str, scale: float, dtype: np.dtype) -> calls.Sums:
    """Return what an input sums: networks use unit rows, distances and products rows as such."""
    return calls.Sums(REDUCTIONS[of], min(scale, LIMITS[dtype].most), of in ("mean", "sum"))


def _tile(
    panel: int, x_panels: int, y_panels: int, n_threads: int, dtype: np.dtype
) -> tuple[int, int]:
    """Return how many panels of rows and columns make a tile that leaves every thread enough."""
    rows = max(1, TILE_ROWS // panel)
    columns = max(1, TILE_BYTES // (panel * dtype.itemsize))
    while -(-x_panels // rows) * -(-y_panels // columns) < 8 * n_threads:
        if columns > 4:
            columns //= 2
        elif rows > 1:
            rows //= 2
        else:
            break
    return rows, columns


def product(x: Array, y: Array, n_threads: int) -> Array:
    """Return ``x @ y.T`` with every entry a function of its two rows alone, to the last bit."""
    norm = np.concatenate([norms(x, "X", n_threads), norms(y, "Y", n_threads)])
    one = np.ones(len(norm))
    none = np.empty((0, len(norm)))
    program = calls.Program(np.empty(0, np.uint8), np.empty(0, x.dtype))
    plain = Compiled(program, none, one, one, [], 1.0)
    out = np.empty((len(x), len(y)), x.dtype)
    target = calls.Target(out, None, 1.0, ASSIGN, False)
    gram(x, y, norm, plain, sums("products", 1.0, x.dtype), target, n_threads)
    return out
