"""Spectra of Gram matrices as solvers use them: what is not resolved counts as zero."""

from __future__ import annotations

import numpy as np

from .. import _check
from . import _lapack

Array = np.ndarray


class Eigen:
    """K = V diag(values) V', smallest first, without what rounding left below zero or near it.

    Eigenvalues below ``cutoff = max(n eps largest, -smallest)`` are set to zero: n eps is what
    LAPACK resolves, and an eigenvalue below zero shows what errors the entries have. ``f`` is
    overwritten.
    """

    def __init__(self, f: Array, name: str = "K") -> None:
        values, self.vectors = _lapack.eigendecomposition(f)
        values = values.astype(np.float64, copy=False)
        least, most = values[0], values[-1]
        _check.semidefinite(least, most, f.dtype, name)
        self.n = len(values)
        self.cutoff = float(max(self.n * np.finfo(f.dtype).eps * most, -least, 0.0))
        self.null = int(np.count_nonzero(values <= self.cutoff))
        values[: self.null] = 0.0
        self.values = values

    def project(self, y: Array) -> Array:
        """Coefficients of columns along the eigenvectors, (n, r), in double precision."""
        return (self.vectors.T @ y.reshape(self.n, -1)).astype(np.float64, copy=False)

    def expand(self, weights: Array, coefficients: Array) -> Array:
        """``V (weights * coefficients)`` for rows of weights: (rows, n, r)."""
        each = weights.T[:, :, None] * coefficients[:, None, :]
        flat = each.reshape(self.n, -1).astype(self.vectors.dtype, copy=False)
        out = (self.vectors @ flat).reshape(each.shape)
        return np.ascontiguousarray(np.moveaxis(out, 1, 0))

    def diagonals(self, weights: Array) -> Array:
        """The diagonal of ``V diag(weights) V'`` for rows of weights: (rows, n)."""
        out = np.empty((len(weights), self.n))
        for i in range(0, self.n, 64):
            out[:, i : i + 64] = weights @ np.square(self.vectors[i : i + 64], dtype=np.float64).T
        return out

    def inverses(self, ridges: Array) -> Array:
        """``1/(values + ridge)``, and zero where that is zero: (ridges, n)."""
        return reciprocal(self.values + ridges[:, None])


def reciprocal(sums: Array) -> Array:
    """``1/sums``, and zero where they are zero."""
    return np.where(sums > 0, 1 / np.where(sums > 0, sums, 1.0), 0.0)


def decompose(K: Array, name: str = "K", overwrite: bool = False) -> Eigen:
    """Of a checked matrix, in one copy of it or in itself."""
    a = K if overwrite else np.array(K, order="C")
    return Eigen(_lapack.columns(a), name)
