"""The door of the dense engine: norms, tables, scratch, one call of the driver."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np

from ... import _check
from . import calls as _calls
from . import dispatch as _dispatch
from .program import Compiled, Walk

Array = np.ndarray

ASSIGN, ADD, MULTIPLY = 0, 1, 2  # combination, in tile.h

PACKED_BYTES = 16_000_000
"""Room for the packed rows of one side; beyond it the matrix is done in blocks."""
TILE_ROWS, TILE_BYTES = 96, 1920
"""A tile: rows, and bytes in each. Its values, 180 KB, stay in a second-level cache."""


class Reduction(IntEnum):
    """What is summed over coordinates; the numbers are those of ``product.h``."""

    PRODUCTS = 0
    SQUARES = 1
    SIZES = 2
    BUMPS = 3


class Points:
    """Checked inputs of a Gram matrix, with what is computed of them once.

    ``raw``: plain inner products, not correlations.
    """

    def __init__(self, x: Array, y: Array | None, n_threads: int, raw: bool = False) -> None:
        self.x, self.y, self.n_threads, self.raw = x, y, n_threads, raw
        self.symmetric = y is None
        self.driver = _dispatch.driver("dense")
        parts = [("X", x)] if y is None else [("X", x), ("Y", y)]
        norms = []
        for name, a in parts:
            norm = np.zeros(len(a))
            self.driver.norms(a, norm, enough(a.size, n_threads))
            _check.finite(a, norm, name)
            norms.append(norm)
        self.norm = np.concatenate(norms)

    def part(self, rows: slice, columns: slice | None) -> Points:
        """Some rows against some columns, or against themselves."""
        y = self.x if self.y is None else self.y
        return Points(self.x[rows], None if columns is None else y[columns], self.n_threads)

    @property
    def rows(self) -> int:
        return len(self.norm)

    def compiled(self, compile: Callable[[Array, int, np.dtype], Compiled]) -> Compiled:
        """A kernel's program for these rows; X and Y together, so that they share tables."""
        return compile(self.norm, self.x.shape[1], self.x.dtype)

    def gram(
        self,
        program: Compiled,
        reduction: Reduction,
        k_out: Array | None,
        t_out: Array | None,
        factor: float,
        combine: int,
        bump: float = 1.0,
    ) -> None:
        """Run ``program`` on all pairs of rows, into one output or both."""
        x, dtype = self.x, self.x.dtype
        t_diagonal = program.k if t_out is None else program.tangent(dtype)
        y = x if self.y is None else self.y
        n, m, d = len(x), len(y), x.shape[1]
        if n == 0 or m == 0:
            return
        n_threads = enough(n * m * (d + 32 * len(program.ops)), self.n_threads)
        panel = self.driver.PANEL[dtype.name]
        x_panels, y_panels = -(-n // panel), -(-m // panel)

        # Networks work on unit rows, distances on the rows as they are.
        angular = reduction == Reduction.PRODUCTS and not self.raw
        if angular:
            # A norm whose reciprocal overflows counts as zero.
            least = 2.0 / float(np.finfo(dtype).max)
            scale = np.divide(1.0, self.norm, out=np.zeros(self.rows), where=self.norm > least)
        else:
            scale = np.ones(self.rows)
        sides = [slice(0, n), slice(0, n) if self.symmetric else slice(n, n + m)]
        lengths = [n, y_panels * panel]

        def row_arrays(a: Array, kind: np.dtype = dtype) -> list[Array]:
            return [_cast(a[..., s], w, kind) for s, w in zip(sides, lengths, strict=True)]

        ops = program.ops.copy()
        largest = float(np.finfo(dtype).max)
        ops["a"] = np.clip(ops["a"], -largest, largest)  # 1/lengthscale may be beyond float32

        block = max(1, PACKED_BYTES // (panel * d * dtype.itemsize))
        block = min(block, max(x_panels, y_panels))
        rows, columns = self._tile(panel, min(block, x_panels), min(block, y_panels), n_threads)
        like = np.empty(0, dtype)
        scratch = self.driver.scratch_size(like, rows, columns, program.slots)
        shared = self.symmetric and block >= y_panels  # one block: rows are the columns
        room = (0 if shared else min(block, x_panels), min(block, y_panels))
        self.driver.gram(
            *map(
                _calls.Rows, (x, y), row_arrays(scale), row_arrays(self.norm, np.dtype(np.float64)),
                row_arrays(program.tables), row_arrays(program.sd),
                [np.empty(panels * panel * d, dtype) for panels in room],
            ),
            _calls.Program(ops.view(np.uint8), program.coefficients.astype(dtype), program.slots),
            _calls.Sums(int(reduction), min(bump, largest), angular),
            _calls.Target(k_out, t_out, factor, combine, self.symmetric),
            [(factor * diagonal[:n]).astype(dtype) for diagonal in (program.k, t_diagonal)],
            _calls.Tiles(block, rows, columns),
            np.empty((n_threads, scratch), dtype),
        )  # fmt: skip

    def _tile(self, panel: int, x_panels: int, y_panels: int, n_threads: int) -> tuple[int, int]:
        """Panels in a tile's rows and columns: small enough to keep every thread busy."""
        rows = max(1, TILE_ROWS // panel)
        columns = max(1, TILE_BYTES // (panel * self.x.dtype.itemsize))
        while -(-x_panels // rows) * -(-y_panels // columns) < 8 * n_threads:
            if columns > 4:
                columns //= 2
            elif rows > 1:
                rows //= 2
            else:
                break
        return rows, columns


def enough(work: int, n_threads: int) -> int:
    """No more threads than this many operations keep busy: starting one costs microseconds."""
    return min(n_threads, 1 + work // 200_000)


def product(x: Array, y: Array, n_threads: int) -> Array:
    """``x @ y.T`` with every entry a function of its two rows alone, to the last bit."""
    points = Points(x, y, n_threads, raw=True)
    out = np.empty((len(x), len(y)), x.dtype)
    points.gram(
        Walk(np.ones(points.rows), x.dtype).done(), Reduction.PRODUCTS, out, None, 1.0, ASSIGN
    )
    return out


def _cast(a: Array, length: int, dtype: np.dtype) -> Array:
    """The last axis padded with zeros to ``length``, C-contiguous, in the engine's dtype."""
    padded = np.zeros((*a.shape[:-1], length), dtype)
    with np.errstate(over="ignore", under="ignore"):
        padded[..., : a.shape[-1]] = a
    return padded
