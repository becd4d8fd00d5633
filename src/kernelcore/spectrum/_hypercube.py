"""Fourier-Walsh spectra of inner-product kernels on the hypercube.

On {-1, 1}^d the characters chi_S(x), the products of the coordinates in S, are eigenfunctions of
every function kappa of u = <x, y>/d, and |S| = l alone decides the eigenvalue:

    xi_l = sum over j of C(d, j)/2^d kappa(1 - 2j/d) P_l(j),    P_l(j) = K_l(j)/C(d, l)

with the Krawtchouk polynomials K_l. |P_l| <= 1 and sum_j C(d, j)/2^d P_l(j)^2 = 1/C(d, l), so that
an error of kappa of size e becomes one of at most e/sqrt(C(d, l)).
"""

from __future__ import annotations

import functools
import math
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._types import Array
from ..kernels import Gaussian, Scaled, Sum
from ..layers.profiles import Exp, as_profile
from ..series.coefficients import EPS
from ._resolved import ROUNDING, OfCosine, Resolved, Wide, coefficients, series, values_of
from ._sphere import vanishes


class HypercubeSpectrum(Resolved):
    """The spectrum of an inner-product kernel on {-1, 1}^dim; made by ``hypercube``.

    Attributes
    ----------
    dim : int
    degrees : array of shape (dim + 1,)
        0, ..., dim; there are C(dim, l) Fourier-Walsh functions of degree l.
    noise, error, resolved : arrays of shape (dim + 1,)
        Bounds of the absolute and of the relative error, and whether the latter is below 1.
    """

    def __init__(self, kernel: OfCosine, dim: int) -> None:
        _check.of_cosine(kernel)
        self.kernel = kernel if callable(kernel) else as_profile(kernel, "kernel")
        self.dim, degrees = dim, np.arange(dim + 1)
        part = _part(self.kernel, dim)
        super().__init__(
            part.signs, part.logs, part.log_error, binomials(dim), part.top, degrees,
            vanishes(self.kernel, math.sqrt(dim), dim, degrees), f"{{-1, 1}}^{dim}",
        )  # fmt: skip

    def __repr__(self) -> str:
        return self._summary(f"{self.kernel!r} on {{-1, 1}}^{self.dim}")


def hypercube(kernel: OfCosine, dim: int) -> HypercubeSpectrum:
    """Compute the spectrum of an inner-product kernel under the uniform measure on {-1, 1}^dim.

    Parameters
    ----------
    kernel : kernel, profile, callable or sequence of coefficients
        A kernel of rows is taken at norm sqrt(dim), which all corners have; anything else is a
        function of ``<x, y>/dim``. A callable is evaluated, without a fit, at the cosines
        ``1 - 2j/dim`` themselves.
    dim : int

    Returns
    -------
    HypercubeSpectrum
        Degrees 0 to dim with eigenvalues, exact multiplicities and error bounds.

    Notes
    -----
    The relative error is about ``n eps`` for power series with n coefficients that are not negative
    (``PowerSeries``, ``Power``, ``Polynomial``) and ``eps |log xi_l|`` for ``Exp`` and
    ``Gaussian``, however small the eigenvalue; sums and multiples have the error of their parts.
    For others it is the absolute error that is bounded, by ``16 eps max |kappa| / sqrt(C(dim, l))``
    of the kernel as it is computed; an eigenvalue that is not larger is NaN and not ``resolved``.
    Null degrees, such as those of ReLU kernels, are exact zeros; so are degrees of the wrong parity
    where the values are even or odd to the bit.

    The work is dim^2, or n dim for a series: half a second at dim 3,000.

    Examples
    --------
    >>> import kernelcore as kc
    >>> s = kc.spectrum.hypercube([0.0, 0.0, 1.0], dim=4)
    >>> s.eigenvalues
    array([0.25 , 0.   , 0.125, 0.   , 0.   ])
    >>> s.multiplicities
    array([1, 4, 6, 4, 1], dtype=object)
    >>> kc.spectrum.hypercube(kc.presets.mlp(1).ntk, dim=20)
    <HypercubeSpectrum of Sequential(Dense(1.0), Relu(), Dense(1.4142135623730951)).ntk on {-1, \
1}^20: 21 levels, trace 2>
    """
    return HypercubeSpectrum(kernel, _check.count(dim, "dim", least=1))


@functools.lru_cache(maxsize=8)
def binomials(d: int) -> tuple[int, ...]:
    return tuple(accumulate(range(d), lambda c, k: c * (d - k) // (k + 1), initial=1))


class _Part(NamedTuple):
    """The eigenvalues of a summand: signs, logarithms of their sizes and of bounds of errors."""

    signs: Array
    logs: Array
    log_error: Array
    top: float  # kappa(1)


def _part(kernel: Any, d: int) -> _Part:
    if isinstance(kernel, Scaled):
        signs, logs, log_error, top = _part(kernel.kernel, d)
        with np.errstate(divide="ignore"):
            more = float(np.log(kernel.factor))
        return _Part(signs, logs + more, log_error + more, kernel.factor * top)
    if isinstance(kernel, Sum):
        # Each part by its own formula, so that a precise one stays precise.
        a, b = (_part(k, d) for k in (kernel.left, kernel.right))
        total = Wide(a.signs) * _exp(a.logs) + Wide(b.signs) * _exp(b.logs)
        error = np.logaddexp(a.log_error, b.log_error)
        return _Part(np.sign(total.m), total.log(), error, a.top + b.top)
    if isinstance(kernel, Gaussian):
        return _exponential((1 / kernel.lengthscale) * (1 / kernel.lengthscale), d)
    if isinstance(kernel, Exp):
        return _exponential(kernel._rate / d, d)
    kappa, c = values_of(kernel, math.sqrt(d), d), coefficients(kernel, d)
    if c is not None:
        return _series(c, d, float(kappa(np.ones(()))))
    # The cosines 1 - 2j/d, each with its negative to the bit.
    return _sums(kappa(np.arange(d, -d - 1, -2) / d), d)


def _exp(logs: Array) -> Wide:
    e = np.where(np.isneginf(logs), 0, np.floor(logs / math.log(2)))
    return Wide(np.exp(logs - e * math.log(2)), e)


def _exponential(rate: float, d: int) -> _Part:
    """Find the part of exp(rate (<x, y> - d)), the product over coordinates of a + b x_i y_i."""
    b = -math.expm1(-2 * rate) / 2
    degrees = np.arange(d + 1)
    with np.errstate(divide="ignore"):
        logs = (d - degrees) * math.log1p(-b) + degrees * np.log(b)
    error = logs + np.log(4 * EPS * (1 + np.abs(np.maximum(logs, -1e300))))
    return _Part(np.ones(d + 1), logs, error, 1.0)


def _series(c: Wide, d: int, top: float) -> _Part:
    """Find the part of sum_n c_n u^n from the eigenvalues xi of the powers.

    u chi_S is (1/d) sum_i of the characters of S with i added or removed, so that xi_l of u^(n+1)
    is l/d times xi_(l-1) of u^n, and (d - l)/d times its xi_(l+1).
    """
    up, down = np.arange(d + 1) / d, np.arange(d, -1, -1) / d

    def step(power: Wide) -> Wide:
        return power.shift(1, 0) * up + power.shift(-1, 0) * down

    return _Part(*series(c, Wide(np.arange(d + 1) == 0), step, roundings=2), top)


def _sums(kappa: Array, d: int) -> _Part:
    """Find the part from the values at 1 - 2j/d, by Krawtchouk sums.

    The recurrence P_(l+1) = ((d - 2j) P_l - l P_(l-1))/(d - l) from P_0 = 1 is stable for j <= d/2
    up to l = d/2, as P_l is the larger solution until both oscillate. P_l(d-j) = (-1)^l P_l(j) and
    P_(d-l)(j) = (-1)^j P_l(j) give the rest, and split kappa into its even and odd parts.
    """
    half = d // 2
    j = np.arange(half + 1)
    other = kappa[::-1][: half + 1]
    parts = (kappa[: half + 1] + other) / 2, (kappa[: half + 1] - other) / 2
    folded = Wide.of_integers(binomials(d)[: half + 1]) * np.where(2 * j == d, 1.0, 2.0)
    weight = Wide(folded.m, folded.e - d)
    terms = [weight * part for part in parts]
    alternating = (-1.0) ** j
    before, now = Wide(np.zeros(half + 1)), Wide(np.ones(half + 1))
    values, sizes = [Wide(0.0)] * (d + 1), [Wide(0.0)] * (d + 1)
    for degree in range(half + 1):
        mirrored = d - degree
        values[degree] = (now * terms[degree % 2]).sum()
        values[mirrored] = (now * terms[mirrored % 2] * alternating).sum()
        sizes[degree] = sizes[mirrored] = (abs(now) * weight).sum()
        if degree < half:
            new = (now * (d - 2.0 * j) + before * -float(degree)) * (1 / (d - degree))
            before, now = now, new
    total = Wide.stack(values)
    # A part that vanishes at every point has no errors either.
    there = np.array([bool(part.any()) for part in parts])[np.arange(d + 1) % 2]
    error = Wide.stack(sizes) * (ROUNDING * np.abs(kappa).max()) * there
    return _Part(np.sign(total.m), total.log(), error.log(), float(kappa[0]))
