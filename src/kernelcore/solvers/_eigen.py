"""Spectra of Gram matrices as solvers use them: what is not resolved counts as zero."""

from __future__ import annotations

import numpy as np

from .. import _check
from . import _lapack

Array = np.ndarray

PRODUCTS = 20
"""Of Lanczos' method for the largest eigenvalue: a few digits, which a step size needs."""


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


def largest(K, dtype) -> float:
    """The largest eigenvalue of what multiplies, from below, by Lanczos' method."""
    n = K.shape[0]
    q = np.random.default_rng(0).standard_normal(n).astype(dtype)
    basis, main, side = [q / np.linalg.norm(q)], [], []
    for _ in range(min(PRODUCTS, n)):
        w = K @ basis[-1]
        main.append(float(w @ basis[-1]))
        for _ in range(2):  # once is not enough beside a large eigenvalue
            known = np.stack(basis)
            w = w - known.T @ (known @ w)
        side.append(float(np.linalg.norm(w)))
        if side[-1] <= np.finfo(dtype).eps * max(map(abs, main)):
            break
        basis.append(w / side[-1])
    beside = side[: len(main) - 1]
    return float(np.linalg.eigvalsh(np.diag(main) + np.diag(beside, 1) + np.diag(beside, -1))[-1])
