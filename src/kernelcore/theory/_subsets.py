"""Predicted errors on the rest of a sample, of which a random part is learned from.

A subset of n of N points, drawn at random, cuts a block out of the N x N Gram matrix K. Where its
eigenvectors are spread over all points, K and the projection to the subset are free in the limit of
large N: the resolvent of the block is that of K at another ridge. With the eigenvalues mu_i of K/N,
r = ridge/N and the power p_i of the labels along eigenvector i,

    n = sum_i s_i,   s_i = (mu_i + r)/(mu_i + c),   w_i = 1/(mu_i + c),
    error on the N - n others = n N sum_i p_i w_i^2 / (sum_i w_i  sum_i w_i s_i).

c is r at n = N, and the error becomes generalised cross-validation. For n much less than N both
equations become those of ``learning_curve``: of that, the points learned from have been taken out,
which are n/N of all points and would make the error too small by as much.
"""

from __future__ import annotations

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..spectrum import Spectrum
from ._curves import ENTRIES
from ._levels import falling, levels


def subset_curve(
    spectrum: Spectrum | ArrayLike, target_power: ArrayLike, n: ArrayLike, ridge: ArrayLike = 0.0
) -> Array:
    """Predict the error of kernel ridge regression on the rest of a sample, from its Gram matrix.

    Parameters
    ----------
    spectrum : Spectrum or array of shape (N,)
        All eigenvalues of K/N, as ``spectrum.empirical(K)`` has them.
    target_power : array of shape (N,)
        The power of the labels along each eigenvector, ``target_power(y)`` of that spectrum; noise
        in the labels is part of it.
    n : array_like
        The number of points that are learned from, of these N; from 1 to N.
    ridge : array_like
        The ridge that is added to the block of K; 0 interpolates.

    Returns
    -------
    array of float64, of the shape of n
        The mean squared difference to the labels at the other points, in the mean over subsets; at
        N, where none is left, generalised cross-validation, the limit. It is infinite where n is
        the rank of K and the ridge is zero.

    Notes
    -----
    It is exact for eigenvectors in random directions as N grows. ``learning_curve`` of the same
    spectrum is the limit of small n/N; it predicts the function behind labels with known noise, and
    also for more points than there are.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 5))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(400)
    >>> K = kc.Gaussian(2.0)(X)
    >>> whole = kc.spectrum.empirical(K)
    >>> kc.theory.subset_curve(whole, whole.target_power(y), [50, 200, 400], ridge=0.1).round(3)
    array([0.045, 0.018, 0.014])
    >>> float(kc.solvers.RidgePath(K, y).gcv(0.1).round(3))
    0.014
    """
    mu = np.exp(levels(spectrum).log_mu)
    size = len(mu)
    many = spectrum.n if hasattr(spectrum, "n") else size
    _check.must(size == many, "spectrum", f"have all {many} eigenvalues of K/n", size)
    power = _check.power(target_power, "target_power", size)[:size]
    n, ridge = _check.together(
        n=_check.amounts(n, "n", zero=False), ridge=_check.amounts(ridge, "ridge")
    )
    most = float(n.max(initial=0.0))
    _check.must(most <= size, "n", f"be at most the number of eigenvalues, {size}", most)
    flat, each = (n.ravel(), ridge.ravel() / size), max(1, ENTRIES // size)
    parts = [
        _block(mu, power, *(a[k : k + each] for a in flat)) for k in range(0, max(1, n.size), each)
    ]
    return np.concatenate(parts).reshape(n.shape)[()]


def _block(mu: Array, power: Array, n: Array, r: Array) -> Array:
    size, rank = len(mu), int((mu > 0).sum())
    log_c = np.log(np.where(r > 0, r, 1.0))
    # Without a ridge all eigenvalues are learned, c = 0, from as many points as there are.
    free = (r == 0) & (n >= rank)
    todo = np.flatnonzero(~free & (n < size))

    def off(x: Array, which: Array) -> tuple[Array, Array]:
        c, ridge = np.exp(x)[:, None], r[todo][which][:, None]
        s = (mu + ridge) / (mu + c)
        total = s.sum(-1)
        return np.log(total / n[todo][which]), (s * (c / (mu + c))).sum(-1) / total

    if len(todo):
        high = np.log((mu.sum() + size * r[todo]) / n[todo]) + 1e-9
        listed = np.log(mu[mu > 0].min(initial=np.inf))
        with np.errstate(divide="ignore"):
            low = np.maximum(np.log(r[todo]), -745.0)
        # Here 1 - s < 1e-17 on all eigenvalues that are not zero.
        low = np.where(r[todo] > 0, low, np.maximum(low, listed - 40)) - 1e-9
        log_c[todo] = falling(off, np.minimum(low, high - 1e-9), high, high - 1e-9)
    c = np.where(free, 0.0, np.exp(log_c))[:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Only ratios count: the largest w is 1.
        w = np.where(mu + c > 0, (mu.min() + c) / (mu + c), 1.0)
        s = (mu + r[:, None]) / (mu + c)
        s = np.where(mu + c > 0, s, ((n - rank) / max(1, size - rank))[:, None])
        top = n * size * (w**2 @ power)
        return np.where(top > 0, top / (w.sum(-1) * (w * s).sum(-1)), 0.0)
