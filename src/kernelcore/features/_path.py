"""Ridge regression on features at all ridges, with leave-one-out errors, in two passes over them.

With Z'WZ = V diag(lambda) V' and U = Z V, a fit is ``U (lambda + ridge)^-1 V'Z'W y``, and the
leave-one-out residual of a point is its residual over ``1 - w_i sum_j U_ij^2/(lambda_j + ridge)``.
Features are computed once for Z'WZ and once more for all ridges that are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from .._types import Array
from ..linalg import eigh, gram_product

RIDGES = np.logspace(-9, 1, 41)
"""Ridges that are tried, in units of the largest eigenvalue of the features' products."""


class FeaturePath:
    """All ridges of a regression on features, where these are fewer than the points.

    Parameters
    ----------
    chunks : callable
        It yields slices of points with their features, of shape (points, N).
    y : array of shape (n, r), float64
    weights, copies : arrays of shape (n,), optional
        Weights of squared errors, and how many samples each point stands for when one is left out.
    """

    def __init__(
        self, chunks: Callable[[], Iterable[tuple[slice, Array]]], y: Array, columns: int,
        weights: Array | None = None, copies: Array | None = None,
    ) -> None:  # fmt: skip
        self.y, self._chunks = y, chunks
        self._weights = np.ones(len(y)) if weights is None else weights
        self._one = np.ones(len(y)) if copies is None else 1 / np.maximum(copies, 1.0)
        a, b = np.zeros((columns, columns)).T, np.zeros((columns, y.shape[1]))
        for rows, z in self._wide():
            root = np.sqrt(self._weights[rows])[:, None]
            z = z * root
            a = gram_product(z, a, lower=True)
            b += z.T @ (root * y[rows])
        values, vectors = eigh(a, overwrite=True)
        keep = values > len(values) * np.finfo(np.float64).eps * max(values[-1], 0.0)
        if not keep.any():  # features of zero
            keep[-1], values[-1] = True, max(values[-1], np.finfo(np.float64).tiny)
        self.values, self.vectors = values[keep], vectors[:, keep]
        self._along = self.vectors.T @ b

    def _wide(self) -> Iterator[tuple[slice, Array]]:
        for rows, z in self._chunks():
            yield rows, np.asarray(z, np.float64)

    def coefficients(self, ridge: float) -> Array:
        """Return those of the features, of shape (N, r)."""
        return self.vectors @ (self._along / (self.values + ridge)[:, None])

    def _left_out(self, ridges: Array) -> Iterator[tuple[slice, Array]]:
        """Yield leave-one-out residuals of some points at all ridges: (ridges, points, r)."""
        inverse = 1 / (self.values[:, None] + ridges)
        for rows, z in self._wide():
            u = z @ self.vectors
            share = self._one[rows, None] * self._weights[rows, None] * ((u * u) @ inverse)
            fitted = np.stack([u @ (self._along * each[:, None]) for each in inverse.T])
            yield rows, (self.y[rows] - fitted) / (1 - share.T[:, :, None])

    def left_out(self, ridge: float) -> Array:
        """Return leave-one-out residuals, of shape (n, r)."""
        found = np.empty_like(self.y)
        for rows, residuals in self._left_out(np.array([ridge])):
            found[rows] = residuals[0]
        return found

    def loo_error(self, ridges: Array) -> Array:
        """Return the mean of their squares over points and outputs, by weights."""
        total = np.zeros(len(ridges))
        for rows, residuals in self._left_out(ridges):
            total += np.einsum("gir,i->g", residuals**2, self._weights[rows])
        return total / (self._weights.sum() * self.y.shape[1])

    def best(self) -> tuple[float, float]:
        """Return the ridge with the least leave-one-out error, and that error."""
        ridges = RIDGES * self.values[-1]
        errors = self.loo_error(ridges)
        at = int(np.argmin(errors))
        return float(ridges[at]), float(errors[at])
