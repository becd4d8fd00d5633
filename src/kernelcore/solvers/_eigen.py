"""Spectra of Gram matrices as solvers use them: how far an eigenvalue is known, and what follows.

An eigenvalue below the error ``linalg.resolution`` may be any number from zero on. This does not
matter if the ridge is larger. A smaller ridge would multiply the part of y along such eigenvectors
by 1/ridge, and the rounding of k(x, X) by as much.
"""

from __future__ import annotations

import numpy as np

from .. import _check
from .._types import Array
from ..linalg import columns, eigh, resolution
from ..linalg.spectra import LARGEST


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
        f = columns(K if overwrite else np.array(K, order="C"))
        _check.room(name, f.shape, f.dtype, 1 + scratch(len(f)), ("float32",))
        values, self.vectors = eigh(f, overwrite=True)
        values = values.astype(np.float64, copy=False)
        least, most = values[0], values[-1]
        _check.semidefinite(least, most, f.dtype, name)
        self.n = len(values)
        self.cutoff = float(max(resolution(self.n, np.finfo(f.dtype).eps) * most, -least, 0.0))
        self.null = int(np.count_nonzero(values <= self.cutoff))
        self.values = np.maximum(values, 0.0)
        self.resolved = np.where(self.values > self.cutoff, self.values, 0.0)

    def project(self, y: Array) -> Array:
        """Return coefficients of columns along the eigenvectors, (n, r), in float64."""
        return (self.vectors.T @ y.reshape(self.n, -1)).astype(np.float64, copy=False)

    def expand(self, weights: Array, coefficients: Array) -> Array:
        """Return ``V (weights * coefficients)`` for rows of weights: (rows, n, r)."""
        shape = (len(weights), *coefficients.shape)
        _check.room("alpha at all ridges or times", shape, np.float64, 3, ("fewer of them",))
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks
            each = weights.T[:, :, None] * coefficients[:, None, :]
            flat = each.reshape(self.n, -1).astype(self.vectors.dtype, copy=False)
            out = (self.vectors @ flat).reshape(each.shape)
        return np.ascontiguousarray(np.moveaxis(out, 1, 0))

    def diagonals(self, weights: Array) -> Array:
        """Return the diagonal of ``V diag(weights) V'`` for rows of weights: (rows, n)."""
        out = np.empty((len(weights), self.n))
        for i in range(0, self.n, 64):
            out[:, i : i + 64] = weights @ np.square(self.vectors[i : i + 64], dtype=np.float64).T
        return out

    def sums(self, ridges: Array) -> Array:
        """Return ``values + ridge``, to divide by: (ridges, n).

        Along eigenvectors that are not resolved a positive ridge counts as ``cutoff`` at least, and
        at ridge 0 the sum is zero: the pseudo-inverse leaves them out.
        """
        sums = self.values + ridges[:, None]
        if self.null:
            raised = np.where(ridges > 0, np.maximum(ridges, self.cutoff), 0.0)[:, None]
            sums[:, : self.null] = np.where(raised > 0, self.values[: self.null] + raised, 0.0)
        return sums

    def inverses(self, ridges: Array) -> Array:
        """Return the reciprocals of ``sums``, and zero where those are zero: (ridges, n)."""
        return reciprocal(self.sums(ridges))


def reciprocal(sums: Array) -> Array:
    """Return ``1/sums``, and zero where they are zero."""
    with np.errstate(over="ignore"):  # sums below the normal numbers
        return np.where(sums > 0, 1 / np.where(sums > 0, sums, 1.0), 0.0)


def each_product(K: Array, alpha: Array, ndim: int) -> Array:
    """Return K times each array of a stack of coefficients with ``ndim`` axes, (n,) or (n, r)."""
    return (K @ alpha[..., None])[..., 0] if ndim == 1 else K @ alpha
