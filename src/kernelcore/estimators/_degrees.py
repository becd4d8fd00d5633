"""Targets on a sphere that a kernel cannot learn: those of degrees whose eigenvalue is zero.

For x_i uniform on the sphere and i != j, the mean of N(d, k) y_i y_j P_k(<x_i, x_j>) is the power
of y in degree k. The mean of P_k alone is zero, with variance 2/(N(d, k) m (m - 1)) over m points.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._types import Array
from ..linalg import norm
from ..spectrum import legendre
from ..spectrum._sphere import log_multiplicities, vanishes

HIGHEST = 4
"""The highest degree tested; harmonics up to it are orthogonal if moments up to twice it agree."""
FEW, MANY = 50, 500
"""The rows from which powers are estimated: fewer leave errors unknown, more take too long."""
SIGMAS = 4
"""The standard errors beyond which rows do not pass for uniform; the power must exceed two."""


def warn_of_null_degrees(kernel: Any, X: Array, y: Array) -> None:
    """Warn if most of y is of degrees up to 4 that the kernel lacks.

    Nothing is said unless all rows have the same norm and pass for uniform on the sphere up to
    degree 8, because degrees have no meaning for other rows. At most 500 rows are read, and none
    that is on a device.
    """
    if not isinstance(X, np.ndarray) or kernel == "precomputed" or kernel._images:
        return
    if X.shape[1] < 2 or len(X) < FEW:
        return
    norms = norm(X, axis=1)
    radius, eps = float(norms.max()), float(np.finfo(X.dtype).eps)
    if not radius - norms.min() <= 100 * eps * radius or not radius:
        return
    dim, degrees = X.shape[1], np.arange(1, HIGHEST + 1)
    # zeros are the same for all radii; few digits let the cache find them the next time
    null = degrees[vanishes(kernel, float(f"{radius:.3g}"), dim, degrees)]
    if not len(null):
        return
    m = min(len(X), MANY)
    chosen = np.random.default_rng(0).choice(len(X), m, replace=False)
    x = X[chosen].astype(np.float64) / radius
    off = y[chosen].reshape(m, -1).astype(np.float64)
    off -= off.mean(0)
    total = np.square(off).sum() / m
    p = legendre(dim, 2 * HIGHEST, np.clip(x @ x.T, -1, 1))
    times = np.exp(log_multiplicities(dim, 2 * HIGHEST))
    p[:, np.arange(m), np.arange(m)] = 0.0
    bound = SIGMAS * np.sqrt(2 * m * (m - 1) / times[1:])
    if (np.abs(p[1:].sum((1, 2))) > bound).any() or not total:
        return
    each = (np.tensordot(times[null], p[null], 1) * (off @ off.T)).sum(1) / (m - 1) / total
    # for means over pairs the jackknife's error is too large on average (Efron and Stein 1981)
    share, error = each.mean(), 2 * each.std(ddof=1) / np.sqrt(m)
    if share - 2 * error > 0.5:
        names = " and ".join(map(str, null))
        warnings.warn(
            f"y has a share of {min(share, 1):.2f} +- {error:.2f} of its variance in degree "
            f"{names} of the sphere that X lies on, where the eigenvalue of the kernel is zero: it "
            "cannot be learned from any number of samples; a network with b_std > 0 or of another "
            "depth has all degrees",
            RuntimeWarning,
            stacklevel=4,
        )
