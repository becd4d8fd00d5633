"""Cyclic signals: a convolution over patches, a function of each pair of them, and pooling.

H(q, w) sums ``h(<x_(k+s), y_(k+s')>/q)`` over positions k and places s, s' in the pool: with
``r = s' - s`` it is a sum over offsets between patches, each with the number of times it occurs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ... import _check
from ..._types import Array
from ...program import Apply, Input, Pool, Program, Readout, Weights
from ..memory import aligned
from ..progress import Watch
from . import calls, dispatch
from .dense import ASSIGN, OP, enough

TILE_ROWS, TILE_COLUMNS = 32, 8
"""The rows and panels of a tile, which is the work of about a millisecond."""


def offsets(d: int, pool: int) -> Array:
    """Return how often each offset r <= d/2 between patches occurs, halved where r = -r mod d."""
    r = np.arange(min(pool - 1, d // 2) + 1)
    times = np.maximum(pool - r, 0) + np.maximum(pool - (d - r), 0)
    return np.where(2 * r % d == 0, times / 2, times)


def distinct(patches: Array) -> tuple[Array, Array]:
    """Return the patches that differ, (count, q), and where those at (d, n) are among them."""
    d, n, q = patches.shape
    flat = patches.reshape(-1, q)
    bits = flat.view(f"u{flat.itemsize}").astype(np.uint64)
    keys = bits @ np.random.default_rng(0).integers(2**63, size=q, dtype=np.uint64)
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    if not np.array_equal(bits[first][places], bits):  # unlike patches with equal keys
        first = places = np.arange(len(flat))
    return flat[first], places.reshape(d, n).astype(np.int32)


def look_up(
    table: Array, x: Array, y: Array, weights: Array, factor: float, out: Array, n_threads: int,
    watch: Watch | None,
) -> None:  # fmt: skip
    """Write ``factor`` times the sums of a kernel of patches at places x and y of a table."""
    (d, n), m, dtype = x.shape, y.shape[1], out.dtype
    n_threads = enough(n * m * 2 * d * len(weights), n_threads)
    dispatch.driver("cyclic").look_up(
        table, x, y, weights.astype(dtype), factor, aligned((n_threads, 3 * m), dtype), out,
        watch=watch,
    )  # fmt: skip


class Walk:
    """An interpreter of a program of one convolution: its patch, its pool, and h, a profile."""

    def __init__(self, program: Program) -> None:
        program.run(self)

    def input(self, node: Input) -> None:
        pass  # the sum over a patch, which the weights divide by its length

    def weights(self, node: Weights) -> None:
        assert node.window is not None
        (self.patch,) = node.window.size

    def apply(self, node: Apply) -> None:
        self.h = node.function

    def pool(self, node: Pool) -> None:
        (self.width,) = node.window.size

    def readout(self, node: Readout) -> None:
        pass  # the mean over positions


class Prepared(NamedTuple):
    """A program for signals of one length, as drivers want it."""

    cyclic: calls.Cyclic
    program: calls.Program
    wrapped: Array  # the columns that continue a signal cyclically
    divisor: int  # of the sum over positions and pool


def prepared(program: Program, d: int, norm: Array, dtype: np.dtype) -> Prepared:
    """Prepare a program; refuse what may overflow, by the norms of all signals."""
    walk = Walk(program)
    h, q = walk.h, walk.patch
    weights = offsets(d, walk.width)
    # A patch that is all of x has the same products at every position.
    positions = 1 if q == d else d
    wrapped = np.arange(positions + q + len(weights) - 2) % d
    with np.errstate(over="ignore"):
        # No patch is longer than its row, which bounds the values of h from above.
        variance = norm * norm
        _check.within(variance, dtype, "the variance overflows in the input")
        _check.within(h._size(variance / q), dtype, "the variance overflows in {}", h)
    ops = []
    coefficients: list[float] = []
    for op in h._raw(1 / q):
        ops.append((int(op.code), op.n, 0, len(coefficients), op.a, op.b, op.c, 0.0))
        coefficients += op.coefficients
    most = float(np.finfo(dtype).max)
    constants = np.clip(np.array(coefficients, np.float64), -most, most).astype(dtype)
    return Prepared(
        calls.Cyclic(positions, q, weights.astype(dtype)),
        calls.Program(np.array(ops, OP).view(np.uint8), constants),
        wrapped, positions * walk.width,
    )  # fmt: skip


def gram(
    x: Array, y: Array | None, norm: Array, program: Program, target: calls.Target, n_threads: int,
    diagonal: Array | None = None, watch: Watch | None = None,
) -> None:  # fmt: skip
    """Write the kernel into ``target``, or into ``diagonal`` where ``target`` has no matrix.

    ``norm`` has the norms of X, then those of Y.
    """
    walk, dtype = Walk(program), x.dtype
    if not walk.h._everywhere:
        for a, name in ((x, "X"), (y, "Y")):
            if a is not None:
                _check.patches_within(a, walk.patch, walk.h, name)
    y = x if y is None else y
    n, m, d = len(x), len(y), x.shape[1]
    made = prepared(program, d, norm, dtype)
    positions, q = made.cyclic.positions, made.cyclic.patch
    driver = dispatch.driver("cyclic")
    width = driver.WIDTH[dtype.name]
    whole = np.zeros((-(-m // width) * width, d), dtype)
    whole[:m] = y
    panels = aligned((len(whole) // width, len(made.wrapped), width), dtype)
    panels[...] = whole.reshape(-1, width, d).transpose(0, 2, 1)[:, made.wrapped]
    work = len(made.cyclic.weights) * positions * (8 + len(made.program.coefficients))
    n_threads = enough((n if target.k is None else n * m) * work, n_threads)
    scratch = driver.scratch_size(
        np.empty(0, dtype), positions, q, TILE_ROWS * TILE_COLUMNS * width
    )
    scratch = -(-scratch // 16) * 16
    driver.gram(
        np.ascontiguousarray(x[:, made.wrapped]), panels, made.cyclic, made.program,
        target._replace(factor=target.factor / made.divisor),
        np.empty(0, dtype) if diagonal is None else diagonal,
        (TILE_ROWS, TILE_COLUMNS), aligned((n_threads, scratch), dtype), watch=watch,
    )  # fmt: skip


def diagonal(x: Array, norm: Array, program: Program, factor: float, n_threads: int) -> Array:
    """Return ``factor`` times the kernel of each signal with itself, to the bits of ``gram``."""
    out = np.empty(len(x), x.dtype)
    gram(x, None, norm, program, calls.Target(None, None, factor, ASSIGN, True), n_threads, out)
    return out
