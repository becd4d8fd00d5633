"""Derivatives of kernels of rows by their hyper-parameters, tile by tile."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..engine import Inputs, accuracy, backend_of
from ..linalg.blas import row_blocks, share
from ._kernel import Kernel

if TYPE_CHECKING:
    from ._programs import ProgramKernel

TILE = 256
"""The rows and columns of a tile: half a megabyte for each of some ten arrays.

Rows and columns have the same limits, so that series that are known of rows serve columns."""


class Rates(NamedTuple):
    """A kernel of a tile, if it was asked for, and its derivatives by name."""

    value: Any
    by: dict[str, Any]

    def times(self, factor: Any, prefix: str) -> dict[str, Any]:
        """Return the derivatives times a factor, under the names that a kernel of this one has."""
        return {f"{prefix}__{name}": factor * rate for name, rate in self.by.items()}


def inside(names: Sequence[str], part: str) -> tuple[str, ...]:
    """Return those names that lie in a part, as the part calls them."""
    return tuple(name[len(part) + 2 :] for name in names if name.startswith(f"{part}__"))


@functools.lru_cache(64)
def places(kernel: ProgramKernel, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return where numbers stand in a kernel's program: the nodes that change with them."""
    now, known = kernel.hyperparameters(), kernel._program.nodes
    found = []
    for name in names:
        then = kernel.replace(**{name: 2 * now[name]})._program.nodes
        at = [k for k, (a, b) in enumerate(zip(known, then, strict=True)) if a != b]
        found.append(tuple((k, name.rpartition("__")[2]) for k in at))
    return tuple(found)


def of_program(kernel: ProgramKernel, points: Inputs, names: tuple[str, ...]) -> Rates:
    """Return the derivatives of a kernel of inner products."""
    backend, program = backend_of(points.x), kernel._program
    there = places(kernel, names)
    value, rates = backend.tangents(program, there, points.x, points.y, kernel._tangent)
    factor = kernel._factor
    by = {name: factor * rate for name, rate in zip(names, rates, strict=True)}
    return Rates(factor * value, by)


def gradient(
    kernel: Kernel, X: ArrayLike, Y: ArrayLike | None, weights: ArrayLike | None,
    names: Sequence[str] | None, n_threads: int,
) -> Array:  # fmt: skip
    """Return what ``Kernel.hyperparameter_gradient`` says."""
    if kernel._images:
        _check.no_gradient(kernel, "is of signals or images")
    _check.on_the_host(X, "X")
    known = kernel.hyperparameters()
    chosen = tuple(known) if names is None else tuple(names)
    for name in chosen:
        _check.named(name, known, "hyperparameters()")
    given = kernel._open(X, X if Y is None else Y, n_threads)
    dtype, n, m = given.x.dtype, len(given.x), len(given.y)
    points = given
    if dtype != np.float64:
        x, y = given.x.astype(np.float64), given.y.astype(np.float64)
        points = kernel._open(x, y, n_threads)
    starts = range(0, n, TILE)
    if weights is None:
        remedies = ("weights, for sums over X and Y", "float32")
        out = _check.fresh((len(chosen), n, m), dtype, "the gradient", remedies)
    else:
        w = _check.finite_array(weights, "weights")
        rule = f"have one entry per entry of the Gram matrix, ({n}, {m})"
        _check.shaped(w.shape == (n, m), w, "weights", rule)
        sums = np.zeros((len(starts), len(chosen)))

    def block(start: int) -> None:
        rows = slice(start, min(start + TILE, n))
        # of a symmetric matrix, what lies left of the diagonal is counted on its right
        first = start if weights is not None and Y is None else 0
        for part in row_blocks(m - first, TILE):
            columns = slice(part.start + first, part.stop + first)
            tile = points.part(rows, columns)
            tile.n_threads = 1
            with np.errstate(over="ignore", invalid="ignore"):  # looked for in the end
                by = kernel._rates(tile, chosen, False).by
            if weights is None:
                for j, name in enumerate(chosen):
                    out[j, rows, columns] = by[name]
                continue
            each = w[rows, columns]
            if first or Y is None:
                each = each + np.where(np.arange(m)[columns] >= rows.stop, w[columns, rows].T, 0)
            for j, name in enumerate(chosen):
                sums[start // TILE, j] += np.vdot(each, by[name])

    with accuracy.Call():
        share(block, starts if chosen else range(0), n_threads)
    found: Array = out if weights is None else sums.sum(0)
    if not np.isfinite(found).all():
        _check.beyond(dtype, "the gradient overflows")
    return found
