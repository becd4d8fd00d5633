"""What only LAPACK does, on symmetric matrices in place: all that is not in every array namespace.

A C-ordered symmetric matrix is, read along its columns, itself. So LAPACK takes the transpose, a
view in Fortran's order, and no copy is made. The factor goes to the upper triangle of that view and
the lower one stays as it was: with the diagonal kept aside the matrix can be put back.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, eigvalsh, get_lapack_funcs, solve_triangular

Array = np.ndarray

TILE = 128
"""Rows and columns that are mirrored at a time."""
LARGEST = 32000
"""Divide and conquer asks for 2 n^2 numbers of scratch and counts them in 32 bits."""


def columns(a: Array) -> Array:
    """A contiguous symmetric matrix in Fortran's order, the same memory."""
    return a.T if a.flags.c_contiguous else a


def diagonal(f: Array) -> Array:
    """The diagonal, as a view that can be written to."""
    return np.einsum("ii->i", f)


def factor(f: Array) -> int:
    """Upper triangle of f <- U with f = U'U; the order of the first minor that fails, or 0."""
    (potrf,) = get_lapack_funcs(("potrf",), (f,))
    return potrf(f, lower=False, clean=False, overwrite_a=True)[1]


def solve(f: Array, b: Array) -> Array:
    """U'U x = b; b is in Fortran's order and becomes x."""
    if not b.size:
        return b
    (potrs,) = get_lapack_funcs(("potrs",), (f,))
    return potrs(f, b, lower=False, overwrite_b=True)[0]


def column_norm(f: Array) -> float:
    """The largest sum of magnitudes along a column."""
    return max(float(np.abs(f[:, j : j + 8]).sum(0).max()) for j in range(0, f.shape[1], 8))


def reciprocal_condition(f: Array, norm: float) -> float:
    """Of U'U, by LAPACK's estimate from below of the inverse's norm."""
    (pocon,) = get_lapack_funcs(("pocon",), (f,))
    return float(pocon(f, norm, uplo="U")[0])


def restore(f: Array, kept: Array) -> None:
    """Put back what ``factor`` took: the upper triangle from the lower, and the diagonal."""
    n = len(f)
    for i in range(0, n, TILE):
        for j in range(i + TILE, n, TILE):
            f[i : i + TILE, j : j + TILE] = f[j : j + TILE, i : i + TILE].T
        part = f[i : i + TILE, i : i + TILE]
        part[...] = np.tril(part, -1) + np.tril(part, -1).T
    diagonal(f)[...] = kept


def least_bound(f: Array, kept: Array, order: int) -> float:
    """A bound from above on the smallest eigenvalue, from a factorisation that failed.

    With A the minor before the failure, b the column that follows and d its diagonal entry, the
    vector (-A^-1 b, 1) has the quadratic form d - b' A^-1 b, the pivot: the bound is that over the
    vector's square. ``kept`` is the diagonal before; that of f is lost.
    """
    k = order - 1
    diagonal(f)[k:] = 1  # so that solving with all of f leaves zeros behind the minor
    b = np.zeros(len(f), f.dtype)
    b[:k] = f[k, :k]
    w = solve_triangular(f, b, trans=1, check_finite=False)
    w[k:] = 0
    v = solve_triangular(f, w, check_finite=False)
    return float((kept[k] - w @ w) / (1 + v @ v))


def extreme_eigenvalues(f: Array) -> tuple[float, float]:
    values = eigvalsh(f, check_finite=False)
    return float(values[0]), float(values[-1])


def eigendecomposition(f: Array) -> tuple[Array, Array]:
    """Eigenvalues, smallest first, and eigenvectors in columns; f is overwritten."""
    # Divide and conquer leaves vectors orthogonal to 1e-15, multiple representations to 1e-12.
    driver = "evd" if len(f) <= LARGEST else "evr"
    return eigh(f, overwrite_a=True, check_finite=False, driver=driver)
