"""Spectra of Gram matrices as solvers use them: how far an eigenvalue is known, and what follows.

An eigenvalue below the error ``linalg.resolution`` may be any number from zero on. This does not
matter if the ridge is larger. A smaller ridge would multiply the part of y along such eigenvectors
by 1/ridge, and the rounding of k(x, X) by as much.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from .._types import Array
from ..linalg import columns, eigh, namespace_of, resolution
from ..linalg.arrays import (
    cast,
    eps_of,
    placed,
    reshaped,
    zeros,
)
from ..linalg.spectra import LARGEST

ROWS = 64
"""The rows of eigenvectors that are squared at a time."""


def scratch(n: int) -> int:
    """Return how many more arrays of its size K takes for its eigenvectors if overwritten."""
    return 2 if n <= LARGEST else 1


class Eigen:
    """The decomposition K = V diag(values) V', smallest first; negative values count as zero.

    The first ``null`` values are not resolved: they are at most ``cutoff``, the larger one of
    ``sqrt(n) eps largest`` and ``-smallest``, since an eigenvalue below zero shows what errors the
    entries have. K is checked already, and contiguous where it is overwritten.
    """

    def __init__(self, K: Array, name: str = "K", overwrite: bool = True) -> None:
        xp = namespace_of(K)
        if xp is np:
            K = columns(K if overwrite else np.array(K, order="C"))
            _check.room(name, K.shape, K.dtype, 1 + scratch(len(K)), ("float32",))
        eps = eps_of(K)
        values, self.vectors = eigh(K, overwrite=True)
        values = cast(values, np.float64)
        least, most = float(values[0]), float(values[-1])
        _check.semidefinite(least, most, eps, name)
        self.n = values.shape[0]
        self.cutoff = max(resolution(self.n, eps) * most, -least, 0.0)
        self.null = int(xp.count_nonzero(values <= self.cutoff))
        self.values = xp.maximum(values, 0.0)
        self.resolved = xp.where(self.values > self.cutoff, self.values, 0.0)

    @property
    def xp(self) -> Any:
        return namespace_of(self.values)

    def project(self, y: Array) -> Array:
        """Return coefficients of columns along the eigenvectors, (n, r), in float64."""
        return cast(self.vectors.T @ reshaped(y, (self.n, -1)), np.float64)

    def expand(self, weights: Array, coefficients: Array) -> Array:
        """Return ``V (weights * coefficients)`` for rows of weights: (rows, n, r)."""
        xp, shape = self.xp, (weights.shape[0], *coefficients.shape)
        if xp is np:
            _check.room("alpha at all ridges or times", shape, np.float64, 3, ("fewer of them",))
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks
            each = weights.T[:, :, None] * coefficients[:, None, :]
            flat = cast(reshaped(each, (self.n, -1)), self.vectors.dtype)
            out = xp.moveaxis(reshaped(self.vectors @ flat, each.shape), 1, 0)
        return np.ascontiguousarray(out) if xp is np else out

    def diagonals(self, weights: Array) -> Array:
        """Return the diagonal of ``V diag(weights) V'`` for rows of weights: (rows, n)."""
        xp, out = self.xp, zeros((weights.shape[0], self.n), weights)
        for i in range(0, self.n, ROWS):
            rows = slice(i, min(i + ROWS, self.n))
            part = cast(self.vectors[rows, :], np.float64)
            out[:, rows] = weights @ xp.square(part).T
        return out

    def sums(self, ridges: Array) -> Array:
        """Return ``values + ridge``, to divide by, for ridges of the host: (ridges, n).

        Along eigenvectors that are not resolved a positive ridge counts as ``cutoff`` at least, and
        at ridge 0 the sum is zero: the pseudo-inverse leaves them out.
        """
        sums = self.values + placed(ridges, self.values)[:, None]
        if self.null:
            raised = np.where(ridges > 0, np.maximum(ridges, self.cutoff), 0.0)
            raised = placed(raised, self.values)[:, None]
            lowest = self.values[: self.null] + raised
            sums[:, : self.null] = self.xp.where(raised > 0, lowest, 0.0)
        return sums

    def inverses(self, ridges: Array) -> Array:
        """Return the reciprocals of ``sums``, and zero where those are zero: (ridges, n)."""
        return reciprocal(self.sums(ridges))


def reciprocal(sums: Array) -> Array:
    """Return ``1/sums``, and zero where they are zero."""
    xp = namespace_of(sums)
    with np.errstate(over="ignore"):  # sums below the normal numbers
        return xp.where(sums > 0, 1 / xp.where(sums > 0, sums, 1.0), 0.0)


def each_product(K: Array, alpha: Array, ndim: int) -> Array:
    """Return K times each array of a stack of coefficients with ``ndim`` axes, (n,) or (n, r)."""
    return (K @ alpha[..., None])[..., 0] if ndim == 1 else K @ alpha
