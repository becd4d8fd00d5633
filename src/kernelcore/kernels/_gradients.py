"""Derivatives of kernels of rows by their first input, tile by tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..engine import Inputs, accuracy, backend_of
from ..linalg.blas import row_blocks, share
from ..program import Program
from ._kernel import Kernel

ROWS, COLUMNS = 256, 1024
"""The size of a tile: 2 MB for each of some six arrays, and little work on rows beside it."""


class Axis(NamedTuple):
    """A part of a derivative by x_k: ``factor g(x_k - y_k)``, for every coordinate k."""

    factor: Array
    g: Callable[[Array], Array]


class Terms(NamedTuple):
    """A kernel of a tile, and its derivative by x: ``y`` times y, ``x`` times x, and parts."""

    value: Any  # zero where it was not asked for
    y: Any
    x: Any
    axes: tuple[Axis, ...] = ()

    def times(self, factor: Array | float) -> Terms:
        """Return these times a factor that does not depend on x."""
        if isinstance(factor, float) and factor == 1.0:
            return self
        axes = tuple(Axis(factor * axis.factor, axis.g) for axis in self.axes)
        return Terms(factor * self.value, factor * self.y, factor * self.x, axes)

    def plus(self, other: Terms, value: Array) -> Terms:
        """Return the sum of two derivatives, that of a kernel of this value."""
        return Terms(value, self.y + other.y, self.x + other.x, self.axes + other.axes)

    def add_to(self, out: Array, x: Array, y: Array, weights: Array) -> None:
        """Add sums over y to out, of shape (r, rows, d)."""
        if np.ndim(self.y):
            sums = self.x @ weights
            for part, w, total in zip(out, weights.T, sums.T, strict=True):
                part += self.y @ (w[:, None] * y)
                part += total[:, None] * x
        for factor, g in self.axes:
            for k in range(x.shape[1]):
                slope = factor * g(x[:, k, None] - y[:, k])
                out[:, :, k] += (slope @ weights).T

    def write(self, out: Array, x: Array, y: Array) -> None:
        """Write the derivative to out, of shape (rows, columns, d)."""
        for k in range(x.shape[1]):
            column = self.y * y[:, k] + self.x * x[:, k, None]
            for factor, g in self.axes:
                column = column + factor * g(x[:, k, None] - y[:, k])
            out[:, :, k] = column


def of_program(program: Program, points: Inputs, tangent: bool) -> Terms:
    """Return the derivative of a kernel of inner products."""
    return Terms(*backend_of(points.x).slopes(program, points.x, points.y, tangent))


def of_distance(value: Any, rate: Array) -> Terms:
    """Return the derivative ``rate (x - y)``."""
    return Terms(value, -rate, rate)


def along_axes(value: Array, factor: Array, g: Callable[[Array], Array]) -> Terms:
    """Return the derivative that is ``factor g(x_k - y_k)`` along every axis k."""
    return Terms(value, 0.0, 0.0, (Axis(factor, g),))


def gradient(
    kernel: Kernel, X: ArrayLike, Y: ArrayLike | None, weights: ArrayLike | None, n_threads: int
) -> Array:
    """Return what ``Kernel.gradient`` says."""
    if kernel._images:
        _check.no_gradient(kernel, "is of signals or images")
    _check.on_the_host(X, "X")
    given = kernel._open(X, X if Y is None else Y, n_threads)
    dtype, (n, d), m = given.x.dtype, given.x.shape, len(given.y)
    points = given
    if dtype != np.float64:
        x, y = given.x.astype(np.float64), given.y.astype(np.float64)
        points = kernel._open(x, y, n_threads)
    out: Array
    if weights is None:
        remedies = ("weights, for sums over Y", "float32")
        out = _check.fresh((n, m, d), dtype, "the gradient", remedies)
    else:
        w = _check.targets(weights, "weights", m, np.float64, of="Y")
        columns = w[:, None] if w.ndim == 1 else w
        out = np.zeros((columns.shape[1], n, d))

    def block(start: int) -> None:
        rows = slice(start, min(start + ROWS, n))
        for part in row_blocks(m, COLUMNS):
            tile = points.part(rows, part)
            tile.n_threads = 1
            with np.errstate(over="ignore", invalid="ignore"):  # looked for in the end
                found = kernel._slopes(tile, False)
                if weights is None:
                    found.write(out[rows, part], tile.x, tile.y)
                else:
                    found.add_to(out[:, rows], tile.x, tile.y, columns[part])

    with accuracy.Call():
        share(block, range(0, n, ROWS), n_threads)
    with np.errstate(over="ignore"):
        out = out.astype(dtype, copy=False)
    if not np.isfinite(out).all():
        _check.beyond(dtype, "the gradient overflows")
    if weights is None:
        return out
    return out[0] if w.ndim == 1 else np.ascontiguousarray(np.moveaxis(out, 0, -1))
