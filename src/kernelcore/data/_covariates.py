"""Distributions of inputs on which the papers have their theorems."""

from __future__ import annotations

import math

import numpy as np

from .. import _check
from .._types import Array
from ..linalg import norm

Seed = int | np.random.Generator | None


def _drawn(n: int, dim: int, seed: Seed) -> tuple[int, int, np.random.Generator]:
    n, dim = _check.count(n, "n"), _check.count(dim, "dim", least=1)
    _check.room("all points", (n, dim), np.float64, 2, ("fewer of them",))
    return n, dim, _check.generator(seed, "seed")


def sphere(n: int, dim: int, radius: float | None = None, *, seed: Seed = None) -> Array:
    """Draw points that are uniform on a sphere.

    Parameters
    ----------
    n, dim : int
    radius : float, optional
        ``sqrt(dim)`` by default, where kernels of networks have input variance 1.
    seed : int, numpy.random.Generator or None

    Returns
    -------
    array of shape (n, dim), float64

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = kc.data.sphere(1000, 4, seed=0)
    >>> bool(np.allclose((X**2).sum(1), 4)), bool(np.abs(X.mean(0)).max() < 0.1)
    (True, True)
    """
    n, dim, rng = _drawn(n, dim, seed)
    radius = math.sqrt(dim) if radius is None else _check.positive(radius, "radius")
    x = rng.standard_normal((n, dim))
    return x * (radius / norm(x, axis=1, keepdims=True))


def hypercube(n: int, dim: int, *, seed: Seed = None) -> Array:
    """Draw points that are uniform on {-1, 1}^dim: shape (n, dim), float64.

    Parameters
    ----------
    n, dim : int
        How many, and of how many coordinates.
    seed : int, numpy.random.Generator or None

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.data.hypercube(2, 3, seed=0)
    array([[ 1.,  1.,  1.],
           [-1., -1., -1.]])
    """
    n, dim, rng = _drawn(n, dim, seed)
    return 2.0 * rng.integers(0, 2, (n, dim)) - 1.0


def gaussian(n: int, dim: int, *, seed: Seed = None) -> Array:
    """Draw standard normal points: shape (n, dim), float64.

    Parameters
    ----------
    n, dim : int
        How many, and of how many coordinates.
    seed : int, numpy.random.Generator or None

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.data.gaussian(3, 2, seed=0).shape
    (3, 2)
    """
    n, dim, rng = _drawn(n, dim, seed)
    return rng.standard_normal((n, dim))


def spiked(n: int, dim: int, signal_dim: int, snr: float, *, seed: Seed = None) -> Array:
    """Draw the spiked covariates of Ghorbani, Mei, Misiakiewicz and Montanari (2020).

    The first ``signal_dim`` coordinates are uniform on the sphere of radius
    ``sqrt(snr signal_dim)``, the others on that of radius ``sqrt(dim - signal_dim)``; both are
    independent. ``spectrum.spiked`` has the eigenvalues of kernels under this law.

    Parameters
    ----------
    n, dim : int
    signal_dim : int
        d_s, from 1, where the signal is a sign, to ``dim - 1``.
    snr : float
        snr_c, the variance of a coordinate of the signal over that of one of the noise.
    seed : int, numpy.random.Generator or None

    Returns
    -------
    array of shape (n, dim), float64

    Examples
    --------
    >>> import kernelcore as kc
    >>> X = kc.data.spiked(500, 30, 1, 9.0, seed=0)
    >>> sorted(set(X[:, 0].round(6).tolist()))
    [-3.0, 3.0]
    """
    n, dim, rng = _drawn(n, dim, seed)
    signal_dim = _check.count(signal_dim, "signal_dim", least=1)
    signal_dim = _check.at_most(signal_dim, dim - 1, "signal_dim", "dim - 1")
    snr = _check.positive(snr, "snr")
    signal = sphere(n, signal_dim, math.sqrt(snr * signal_dim), seed=rng)
    return np.hstack([signal, sphere(n, dim - signal_dim, seed=rng)])
