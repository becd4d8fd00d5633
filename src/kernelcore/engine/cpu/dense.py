"""The compiled dense engine: a program compiled for some rows, and calls of the driver."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ... import _check
from ..._types import Array
from ..accuracy import Doubt
from ..progress import Watch
from . import calls, dispatch

ASSIGN, ADD, MULTIPLY = 0, 1, 2  # combination, in tile.h
REDUCTIONS = {"mean": 0, "sum": 0, "products": 0, "squares": 1, "sizes": 2, "bumps": 3}
"""The numbers in ``product.h`` of what an input sums over coordinates."""


def fields(*groups: str) -> list[tuple[str, str]]:
    """Return the fields of a C struct; each group is a type and the names that have it."""
    return [(name, kind) for kind, *names in map(str.split, groups) for name in names]


OP = np.dtype(fields("i4 code n table coef", "f8 a b c add"), align=True)
PACKED_BYTES = 16_000_000
"""Room for the packed rows of one side; a matrix that needs more is computed in blocks."""
TILE_ROWS, TILE_BYTES = 96, 1920
"""The rows of a tile, and the bytes in each. Its values, 180 KB, stay in a second-level cache."""


class Compiled(NamedTuple):
    """A program compiled for one set of rows, and its diagonals on them."""

    ops: Array
    coefficients: Array
    tables: Array  # (tables, rows), float64
    k: Array  # diagonal of the kernel
    t: Array  # and of the tangent kernel
    slots: int
    doubts: list[Doubt]

    def tangent(self, dtype: np.dtype) -> Array:
        """Return the tangent kernel's diagonal, which grows with depth where variances do not."""
        _check.within(self.t, dtype, "the tangent kernel overflows")
        return self.t


def enough(work: int, n_threads: int) -> int:
    """Return how many threads ``work`` operations keep busy: starting one takes microseconds."""
    return min(n_threads, 1 + work // 200_000)


def norms(a: Array, name: str, n_threads: int) -> Array:
    """Return the norm of every row; refuse rows that are not finite."""
    norm = np.zeros(len(a))
    dispatch.driver("dense").norms(a, norm, enough(a.size, n_threads))
    _check.finite(a, norm, name)
    return norm


def gram(
    x: Array, y: Array | None, norm: Array, compiled: Compiled, of: str, target: calls.Target,
    n_threads: int, bump: float = 1.0, watch: Watch | None = None,
) -> None:  # fmt: skip
    """Run a program on all pairs of rows; ``norm`` has the norms of X, then those of Y."""
    driver, dtype, symmetric = dispatch.driver("dense"), x.dtype, y is None
    t_diagonal = compiled.k if target.t is None else compiled.tangent(dtype)
    y = x if y is None else y
    n, m, d = len(x), len(y), x.shape[1]
    if n == 0 or m == 0:
        return
    n_threads = enough(n * m * (d + 32 * len(compiled.ops)), n_threads)
    panel = driver.PANEL[dtype.name]
    x_panels, y_panels = -(-n // panel), -(-m // panel)

    # Networks use unit rows, distances and plain products the rows as they are.
    angular = of in ("mean", "sum")
    if angular:
        # A norm whose reciprocal overflows counts as zero.
        least = 2.0 / float(np.finfo(dtype).max)
        scale = np.divide(1.0, norm, out=np.zeros(len(norm)), where=norm > least)
    else:
        scale = np.ones(len(norm))
    sides = [slice(0, n), slice(0, n) if symmetric else slice(n, n + m)]
    lengths = [n, y_panels * panel]

    def row_arrays(a: Array, kind: np.dtype = dtype) -> list[Array]:
        return [_cast(a[..., s], w, kind) for s, w in zip(sides, lengths, strict=True)]

    ops = compiled.ops.copy()
    largest = float(np.finfo(dtype).max)
    ops["a"] = np.clip(ops["a"], -largest, largest)  # 1/lengthscale may be beyond float32

    block = min(max(1, PACKED_BYTES // (panel * d * dtype.itemsize)), max(x_panels, y_panels))
    rows, columns = _tile(panel, min(block, x_panels), min(block, y_panels), n_threads, dtype)
    scratch = driver.scratch_size(np.empty(0, dtype), rows, columns, compiled.slots)
    shared = symmetric and block >= y_panels  # one block: rows are the columns
    room = (0 if shared else min(block, x_panels), min(block, y_panels))
    driver.gram(
        *map(
            calls.Rows, (x, y), row_arrays(scale), row_arrays(norm, np.dtype(np.float64)),
            row_arrays(compiled.tables), row_arrays(np.sqrt(compiled.k)),
            [np.empty(panels * panel * d, dtype) for panels in room],
        ),
        calls.Program(ops.view(np.uint8), compiled.coefficients.astype(dtype), compiled.slots),
        calls.Sums(REDUCTIONS[of], min(bump, largest), angular),
        target,
        [(target.factor * diagonal[:n]).astype(dtype) for diagonal in (compiled.k, t_diagonal)],
        calls.Tiles(block, rows, columns),
        np.empty((n_threads, scratch), dtype),
        watch=watch,
    )  # fmt: skip


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


def _cast(a: Array, length: int, dtype: np.dtype) -> Array:
    """Return a C-contiguous copy whose last axis is padded with zeros to ``length``."""
    padded = np.zeros((*a.shape[:-1], length), dtype)
    with np.errstate(over="ignore", under="ignore"):
        padded[..., : a.shape[-1]] = a
    return padded


def product(x: Array, y: Array, n_threads: int) -> Array:
    """Return ``x @ y.T`` with every entry a function of its two rows alone, to the last bit."""
    norm = np.concatenate([norms(x, "X", n_threads), norms(y, "Y", n_threads)])
    one = np.ones(len(norm))
    plain = Compiled(np.empty(0, OP), np.empty(0), np.empty((0, len(norm))), one, one, 0, [])
    out = np.empty((len(x), len(y)), x.dtype)
    gram(x, y, norm, plain, "products", calls.Target(out, None, 1.0, ASSIGN, False), n_threads)
    return out
