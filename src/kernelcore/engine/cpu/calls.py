"""The records that compiled drivers are called with; ``ext/cpu/*.pxi`` read them field by field.

Arrays are C-contiguous and, unless something else is said, of the dtype of the result.
"""

from __future__ import annotations

import math
import sys
import threading
from typing import Any, NamedTuple

import numpy as np

from ..._types import Array

LINE = 64
"""The bytes of a cache line, on which vectors are loaded fastest."""


KEPT_LEAST, KEPT_MOST = 1 << 14, 1 << 23
"""The bytes of the smallest array whose memory a thread keeps for its next call, and of all such.
The system takes longer to hand out pages than loops take to fill them."""


class _Kept(threading.local):
    def __init__(self) -> None:
        self.all: list[tuple[Array, int]] = []  # bytes, and the first that begins a cache line


_kept = _Kept()


def room(shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Return an array that is not initialised and, unless it is small, begins with a cache line."""
    size = math.prod(shape) * dtype.itemsize
    if size < KEPT_LEAST:
        return np.empty(shape, dtype)
    kept = _kept.all
    for k in range(len(kept)):
        raw, first = kept[k]
        fits = size + LINE <= raw.size <= 4 * size
        del raw
        # Free is what no other array looks at: one reference is the list's, one that of the call.
        if fits and sys.getrefcount(kept[k][0]) == 2:
            return np.ndarray(shape, dtype, kept[k][0], first)
    raw = np.empty(size + LINE, np.uint8)
    first = -raw.ctypes.data % LINE
    if size <= KEPT_MOST // 4:
        kept.append((raw, first))
        while sum(a.size for a, _ in kept) > KEPT_MOST:
            del kept[0]
    return np.ndarray(shape, dtype, raw, first)


class Program(NamedTuple):
    """Operations (``program.h``) and their constants."""

    ops: Array  # bytes
    coefficients: Array
    slots: int = 0  # open residual connections


class Target(NamedTuple):
    """Where values go: whole (n, m) matrices, None for one that is not wanted."""

    k: Array | None
    t: Array | None
    factor: float
    combine: int  # combination, in entry.h
    symmetric: bool  # entries j >= i are computed, and mirrored


class Tables(NamedTuple):
    """What is known of single rows, those of X and then those of Y, in float64."""

    norm: Array
    tables: Array  # (tables, rows)
    k: Array  # diagonal of the kernel
    t: Array  # and of the tangent kernel
    x: int  # where the rows of X begin
    y: int


class Sums(NamedTuple):
    """What is summed over the coordinates of two rows."""

    kind: int  # reduction, in product.h
    bump: float  # 1/lengthscale
    angular: bool  # the sums are correlations


class Tiles(NamedTuple):
    """How a Gram matrix of rows is cut, in panels, and where parts of the room of a call begin.

    Blocks of X are packed at 0, unless X is one row. Sums wait where coordinates come in parts.
    """

    block: int
    rows: int
    columns: int
    coordinates: int  # that are packed at a time: all, or whole blocks of them (product.h)
    transposed: bool  # entry (i, j) is written at (j, i)
    apart: bool  # blocks of Y are packed, too; or else tiles pack their own columns
    n_threads: int
    packed: int  # blocks of Y
    scratch: int
    each: int  # the numbers of scratch per thread
    waiting: int
    tables: int  # in the dtype of the result: 2 and all tables, a number per row each


class Cyclic(NamedTuple):
    """A convolution on cyclic signals, for ``cyclic.gram``."""

    positions: int
    patch: int
    weights: Array  # (offsets,)


class Network(NamedTuple):
    """A network with positions, for ``spatial.gram`` and ``spatial.selves``."""

    program: Any  # the driver's Program of a plan
    steps: Array  # bytes
    coefficients: Array
    table_size: int  # numbers per image


class Images(NamedTuple):
    """Images with their tables: (images, numbers), or in lanes, (groups, numbers, lanes)."""

    pixels: Array
    tables: Array


class Place(NamedTuple):
    """Where a block of ``spatial.gram`` lies: images one by one are rows, or, flipped, columns."""

    first: int  # of the images one by one
    lanes: int  # first of those in lanes
    end: int  # and one beyond the last
    flipped: bool


class Terms(NamedTuple):
    """Terms of power series, for ``gegenbauer.project``: (jobs, count) each, float64."""

    n: Array  # powers
    x: Array  # mantissas, changed
    exponent: Array  # of two, changed
    scale: Array  # room
