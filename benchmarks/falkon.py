"""Falkon's algorithm in plain NumPy (Rudi, Carratino and Rosasco 2017), to stand beside ours.

With m centres, ``K_mm = T' T`` and ``T T'/m + ridge/n I = A' A``, conjugate gradients solve

    B' (K_nm' K_nm + ridge K_mm) B b = B' K_nm' y,    B = T^-1 A^-1 / sqrt(n),    a = B b.
"""

import time

import numpy as np
from scipy.linalg import solve_triangular

ROWS = 2000  # of a block of K_nm


class Blocks:
    """K_nm in blocks of rows: as many are kept as there is memory for, the rest made each time."""

    def __init__(self, kernel, X, centres, max_memory):
        self.kernel, self.X, self.centres = kernel, X, centres
        self.room = int(max_memory // (ROWS * len(centres) * X.itemsize))
        self.kept = {}

    def __iter__(self):
        for k, start in enumerate(range(0, len(self.X), ROWS)):
            rows = slice(start, start + ROWS)
            block = self.kept.get(k)
            if block is None:
                block = self.kernel(self.X[rows], self.centres)
            if k < self.room:
                self.kept[k] = block
            yield rows, block


def falkon(kernel, X, y, ridge, centres, tol, max_iter, max_memory, note):
    """Coefficients of the centres; ``note(seconds, residuals)`` hears of every iteration.

    Residuals are relative, in the preconditioned norm; a column stops moving when it is done.
    """
    start = time.perf_counter()
    n, m = len(X), len(centres)
    K_mm = kernel(centres, centres)
    jitter = m * np.finfo(X.dtype).eps * np.eye(m, dtype=X.dtype)
    T = np.linalg.cholesky(K_mm + jitter).T
    A = np.linalg.cholesky(T @ T.T / m + X.dtype.type(ridge / n) * np.eye(m, dtype=X.dtype)).T
    blocks = Blocks(kernel, X, centres, max_memory)

    def spread(b):
        return solve_triangular(T, solve_triangular(A, b)) / np.sqrt(X.dtype.type(n))

    def gathered(a):
        a = solve_triangular(A, solve_triangular(T, a, trans=1), trans=1)
        return a / np.sqrt(X.dtype.type(n))

    def applied(b):
        a = spread(b)
        total = ridge * (K_mm @ a)
        for _, block in blocks:
            total += block.T @ (block @ a)
        return gathered(total.astype(X.dtype))

    right = np.zeros((m, y.shape[1]), X.dtype)
    for rows, block in blocks:
        right += block.T @ y[rows]
    r = gathered(right)
    b, p = np.zeros_like(r), r.copy()
    square = first = (r * r).sum(0)
    for _ in range(max_iter):
        q = applied(p)
        on = square > tol**2 * first
        length = np.where(on, square / (p * q).sum(0), 0)
        b += length * p
        r -= length * q
        last, square = square, (r * r).sum(0)
        p = r + np.where(on, square / last, 0) * p
        left = np.sqrt(square / first)
        note(time.perf_counter() - start, left)
        if left.max() <= tol:
            break
    return spread(b)
