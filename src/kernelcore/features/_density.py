"""Spectral densities p(w) of kernels of a difference: k(x - y) = E cos(w'(x - y)), w from p."""

from __future__ import annotations

import math

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..kernels import Cauchy, Gaussian, Laplacian
from ._fourier import Stationary, frequencies, spectral


class SpectralDensity:
    """The law of the frequencies of a Gaussian, Laplacian, Cauchy or Matern kernel (Bochner).

    Parameters
    ----------
    kernel : Gaussian, Laplacian, Cauchy or Matern
    dim : int
        The dimension of the inputs.

    Notes
    -----
    At lengthscale 1 it is the standard normal law for the Gaussian kernel; Student's t of 2 nu
    degrees of freedom for Matern, and so Cauchy's law for the Laplacian; independent Cauchy
    variables for the Laplacian of the 1-norm, and independent ``exp(-|w|)/2`` for the Cauchy
    kernel. A lengthscale divides the frequencies.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> p = kc.features.SpectralDensity(kc.Gaussian(2.0), dim=1)
    >>> p([[0.0], [0.5]]).round(6)
    array([0.797885, 0.483941])
    >>> w = p.sample(100_000, seed=0)
    >>> bool(abs(np.cos(w[:, 0]).mean() - np.exp(-1 / 8)) < 0.01)
    True
    """

    def __init__(self, kernel: Stationary, dim: int) -> None:
        spectral(kernel)  # which refuses kernels without one
        self.kernel = kernel
        self.dim = _check.count(dim, "dim", least=1)

    def __repr__(self) -> str:
        return f"SpectralDensity({self.kernel!r}, {self.dim})"

    def log(self, w: ArrayLike) -> Array:
        """Evaluate ``log p`` at the rows of w: shape (n,), float64."""
        kernel, d = self.kernel, self.dim
        x = np.asarray(_check.rows(w, "w"), np.float64)
        _check.shaped(x.shape[1] == d, x, "w", f"have {d} columns")
        x = x * kernel.lengthscale
        scale = d * math.log(kernel.lengthscale)
        if isinstance(kernel, Cauchy):
            return scale - np.abs(x).sum(1) - d * math.log(2)
        if isinstance(kernel, Laplacian) and kernel.norm == 1:
            return scale - np.log1p(x * x).sum(1) - d * math.log(math.pi)
        square = (x * x).sum(1)
        if isinstance(kernel, Gaussian):
            return scale - square / 2 - d / 2 * math.log(2 * math.pi)
        nu = 0.5 if isinstance(kernel, Laplacian) else kernel.nu
        top = math.lgamma(nu + d / 2) - math.lgamma(nu) - d / 2 * math.log(2 * math.pi * nu)
        return scale + top - (nu + d / 2) * np.log1p(square / (2 * nu))

    def __call__(self, w: ArrayLike) -> Array:
        """Evaluate p at the rows of w: shape (n,), float64."""
        return np.exp(self.log(w))

    def sample(self, n: int, seed: int | np.random.Generator | None = None) -> Array:
        """Draw n frequencies: shape (n, dim), float64."""
        n, rng = _check.count(n, "n"), _check.generator(seed, "seed")
        return frequencies(self.kernel, n, self.dim, rng)
