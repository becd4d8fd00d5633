"""The spectrum of a kernel under spiked covariates, on a product of two spheres.

With x = (z1, z2), |z1|^2 = snr d_s and |z2|^2 = d - d_s, all x have the same norm, and the cosine
of two is a t1 + b t2 with the cosines t1, t2 of the parts. The products of harmonics are
eigenfunctions:

    mu_(k1,k2) = integral of kappa(a t1 + b t2) P_k1(t1) P_k2(t2)

over the laws of t1 and t2, with multiplicity N(d_s, k1) N(d - d_s, k2). A part of one dimension is
a sign: its cosine is +-1, and it has degrees 0 and 1 alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _check
from .._types import Array
from ..layers.profiles import as_profile
from ..linalg import eigvalsh_tridiagonal
from ._resolved import ROUNDING, OfCosine, Resolved, Wide, coefficients, series, values_of
from ._sphere import multiplicity, vanishes

MOST_NODES = 1024
"""The most nodes in each direction: a million values of the kernel."""
MOST_POWERS = 64
"""Longer power series are integrated as other functions are, which is faster."""


class SpikedSpectrum(Resolved):
    """The spectrum of a kernel under spiked covariates; made by ``spiked``.

    Attributes
    ----------
    dim, signal_dim, snr, max_degree
        As given.
    degrees : array of shape (levels, 2)
        (k1, k2), of the harmonics in the signal and in the noise, in the order of their sums.
    noise, error, resolved : arrays of shape (levels,)
        Estimates of the absolute and of the relative error, and whether the latter is below 1.
    nodes : tuple of int
        Numbers of quadrature nodes in both directions; (0, 0) where none were needed.
    """

    def __init__(
        self, kernel: OfCosine, dim: int, signal_dim: int, snr: float, max_degree: int
    ) -> None:
        _check.of_cosine(kernel)
        self.kernel = kernel if callable(kernel) else as_profile(kernel, "kernel")
        self.dim, self.signal_dim, self.snr, self.max_degree = dim, signal_dim, snr, max_degree
        noise_dim = dim - signal_dim
        square = snr * signal_dim + noise_dim
        a, b = snr * signal_dim / square, noise_dim / square
        dims = signal_dim, noise_dim
        one, two = ([multiplicity(p, k) for k in range(max_degree + 1)] for p in dims)
        pairs = ((total - k, k) for total in range(max_degree + 1) for k in range(total + 1))
        degrees = np.array([(i, j) for i, j in pairs if one[i] and two[j]])
        k1, k2 = degrees.T
        kappa = values_of(kernel, math.sqrt(square), dim)
        top = float(kappa(np.ones(1))[0])
        self.nodes, self._complete = (0, 0), dim == 2 and max_degree >= 2
        c = coefficients(self.kernel, square)
        if c is not None and len(c.m) <= MOST_POWERS:
            found = _of_powers(c, a, b, *dims, max_degree)
            signs, logs, log_error = (part[k1, k2] for part in found)
            self._complete |= len(c.m) <= max_degree + 1
        else:
            rules = [functools.partial(_rule, p, max_degree) for p in dims]
            value, error, self.nodes = _integrals(kappa, a, b, rules, max_degree)
            size = [np.array([math.log(max(n, 1)) for n in many]) / 2 for many in (one, two)]
            scale = size[0][k1] + size[1][k2]
            with np.errstate(divide="ignore"):
                logs = np.log(np.abs(value[k1, k2])) - scale
                log_error = np.log(error[k1, k2]) - scale
            signs = np.sign(value[k1, k2])
        super().__init__(
            signs, logs, log_error, [one[i] * two[j] for i, j in degrees], top, degrees,
            vanishes(kernel, math.sqrt(square), dim, degrees.sum(1)),
            f"S^{signal_dim - 1} x S^{noise_dim - 1}",
        )  # fmt: skip

    def __repr__(self) -> str:
        return self._summary(
            f"{self.kernel!r}, dim {self.dim}, signal_dim {self.signal_dim}, snr {self.snr:g}"
        )

    def target_power(self, power_by_degree: Sequence[float]) -> Array:
        """Return the power in each level of a target that depends on the signal alone.

        Parameters
        ----------
        power_by_degree : sequence of float
            Entry k is the mean square of the target's part of degree k in z1.

        Returns
        -------
        array of shape (levels,)
            The entries of ``power_by_degree`` at the levels (k, 0), and zero elsewhere.

        Examples
        --------
        >>> import kernelcore as kc
        >>> s = kc.spectrum.spiked(kc.ArcCosine(1), dim=20, signal_dim=3, snr=4.0, max_degree=2)
        >>> s.target_power([0.0, 0.5, 0.5])
        array([0. , 0.5, 0. , 0.5, 0. , 0. ])
        """
        given = _check.coefficients(power_by_degree, "power_by_degree")
        for k, value in enumerate(given):
            _check.non_negative(value, f"power_by_degree[{k}]")
        most = int(self.degrees[:, 0].max()) + 1
        if len(given) > most:
            remedy = "ask for a larger max_degree"
            if most <= self.max_degree:
                remedy = "a signal of one dimension has no other degrees"
            raise ValueError(
                f"power_by_degree must have at most {most} entries: got {len(given)}; {remedy}"
            )
        power = np.zeros(len(self))
        power[(self.degrees[:, 1] == 0) & (self.degrees[:, 0] < len(given))] = given
        return power


def spiked(
    kernel: OfCosine, dim: int, signal_dim: int, snr: float, max_degree: int = 20
) -> SpikedSpectrum:
    """Compute the spectrum of a kernel under the spiked covariates of Ghorbani et al. (2020).

    Covariates are ``x = U z1 + U' z2``, z1 uniform on the sphere of radius sqrt(snr signal_dim) in
    signal_dim dimensions, z2 on that of radius sqrt(dim - signal_dim) in the others, and
    ``[U, U']`` any orthogonal matrix.

    Parameters
    ----------
    kernel : kernel, profile, callable or sequence of coefficients
        A kernel of rows is taken at the norm of x; anything else is a function of the cosine.
    dim, signal_dim : int
        d and d_s; both parts have at least one dimension. A part of one dimension is a sign.
    snr : float
        snr_c, the variance of a coordinate of the signal over that of one of the noise.
    max_degree : int
        The largest k1 + k2 of the levels listed; the mass of the others is ``tail``.

    Returns
    -------
    SpikedSpectrum
        Levels (k1, k2) with eigenvalues, exact multiplicities and error estimates.

    Notes
    -----
    Gauss rules are used in both cosines. Their nodes are doubled in each direction until nothing
    changes by more than 1e-14 of the largest value, or up to 1024; ``error`` has the last change
    and the rounding, at most ``16 eps max |kappa| / sqrt(multiplicity)``. Kernels with an edge at
    cosine 1 need many nodes where both parts have few dimensions. A power series of up to 64
    coefficients that are not negative is right to relative precision. Zeros are exact where the
    values are even or odd to the bit.

    Examples
    --------
    >>> import kernelcore as kc
    >>> s = kc.spectrum.spiked(kc.presets.mlp(2).ntk, dim=256, signal_dim=8, snr=16.0, max_degree=4)
    >>> for degrees, many, value in list(zip(s.degrees, s.multiplicities, s.eigenvalues))[:4]:
    ...     print(degrees, many, f"{value:.8f}")
    [0 0] 1 1.02193251
    [1 0] 8 0.06034977
    [0 1] 248 0.00377828
    [2 0] 35 0.00265396
    """
    dim = _check.count(dim, "dim", least=2)
    signal_dim = _check.count(signal_dim, "signal_dim", least=1)
    if signal_dim >= dim:
        raise ValueError(
            f"signal_dim must leave a dimension to the noise: got {signal_dim} of {dim}"
        )
    snr = _check.positive(snr, "snr")
    max_degree = _check.count(max_degree, "max_degree")
    return SpikedSpectrum(kernel, dim, signal_dim, snr, max_degree)


# ---- power series


def _of_powers(
    c: Wide, a: float, b: float, p1: int, p2: int, max_degree: int
) -> tuple[Array, Array, Array]:
    """Return signs, logarithms and errors at all (k1, k2), from the powers of a t1 + b t2.

    In p dimensions the eigenvalue k of t f is k/(2k+p-2) times the eigenvalue k - 1 of f, and
    (k+p-2)/(2k+p-2) times its eigenvalue k + 1. No power n leads beyond k1 + k2 = n.
    """
    k = np.arange(max(len(c.m), max_degree + 1))
    low1, low2 = (k / np.maximum(2 * k + p - 2, 1) for p in (p1, p2))
    weights = (a * low1)[:, None], (a * (1 - low1))[:, None], b * low2, b * (1 - low2)

    def step(power: Wide) -> Wide:
        moved = [power.shift(by, axis) for axis in (0, 1) for by in (1, -1)]
        terms = [part * weight for part, weight in zip(moved, weights, strict=True)]
        return (terms[0] + terms[1]) + (terms[2] + terms[3])

    return series(c, Wide((k[:, None] == 0) & (k == 0)), step, roundings=6)


# ---- other functions


def _integrals(
    kappa: Callable[[Array], Array], a: float, b: float, rules: Sequence[Any], max_degree: int
) -> tuple[Array, Array, tuple[int, int]]:
    """Return mu sqrt(multiplicity) at all (k1, k2), the error of each, and the numbers of nodes.

    In this normalisation the functions are orthonormal, and no error of kappa grows.
    """
    k = np.arange(max_degree + 1)
    odd = (k[:, None] + k) % 2 == 1

    @functools.cache
    def at(n1: int, n2: int) -> tuple[Array, Array]:
        (t1, v1), (t2, v2) = rules[0](n1), rules[1](n2)
        u = np.clip(a * t1[:, None] + b * t2, -1, 1)
        values = kappa(u.ravel()).reshape(u.shape)
        # u is odd in both nodes at once, to the bit: an even or odd kappa has exact zeros.
        opposite = values[::-1, ::-1]
        weight = v1[0][:, None] * v2[0]
        parts = values + opposite, values - opposite
        even, uneven = (v1 @ (weight * part / 2) @ v2.T for part in parts)
        # A part that vanishes at every node has no errors either.
        there = np.where(odd, (values != opposite).any(), (values != -opposite).any())
        bound = (np.abs(v1) @ v1[0])[:, None] * (np.abs(v2) @ v2[0])
        bound = ROUNDING * np.abs(values).max() * bound * there
        return np.where(odd, uneven, even), bound

    n = [max(32, 2 * (max_degree + 1))] * 2
    enough = 1e-14 * abs(float(kappa(np.ones(1))[0]))
    while True:
        changes = [np.abs(at(*m)[0] - at(*n)[0]) for m in ((2 * n[0], n[1]), (n[0], 2 * n[1]))]
        more = [c.max() > enough and 4 * m <= MOST_NODES for c, m in zip(changes, n, strict=True)]
        if not any(more):
            break
        n = [2 * m if grow else m for m, grow in zip(n, more, strict=True)]
    # The largest change among degrees of one parity: single ones may be small by chance.
    change = sum(np.where(odd, (c * odd).max(), (c * ~odd).max()) for c in changes)
    n1, n2 = 2 * n[0], 2 * n[1]
    value, bound = at(n1, n2)
    return value, change + bound, (len(rules[0](n1)[0]), len(rules[1](n2)[0]))


@functools.lru_cache(maxsize=64)
def _rule(p: int, max_degree: int, n: int) -> tuple[Array, Array]:
    """Return Gauss's rule for the cosine of random points in p dimensions.

    It consists of nodes t and ``v[k] = sqrt(weights) phi_k(t)`` with the orthonormal polynomials of
    the law proportional to (1 - t^2)^((p-3)/2), so that v[0] is sqrt(weights).
    """
    if p == 1:
        t = np.array([-1.0, 1.0])
        degree = np.arange(max_degree + 1)[:, None]
        return t, np.sqrt(0.5) * t**degree * (degree < 2)
    k = np.arange(1, n, dtype=float)
    # t phi_k = b_(k+1) phi_(k+1) + b_k phi_(k-1)
    square = k * (k + p - 3) / ((2 * k + p - 2) * np.maximum(2 * k + p - 4, 1))
    square[0] = 1 / p  # its limit for p = 2
    b = np.sqrt(square)
    t = eigvalsh_tridiagonal(np.zeros(n), b)
    t = (t - t[::-1]) / 2
    # Towards +-1 phi_k grows beyond float64; its share of 1/weight is what matters.
    phi = [Wide(np.zeros(n)), Wide(np.ones(n))]  # from phi_(-1)
    for i in range(n - 1):
        phi.append((phi[-1] * t + phi[-2] * -(b[i - 1] if i else 0.0)) * (1 / b[i]))
    grown = Wide.stack(phi[1:])
    m = grown.at(grown.e.max(0))
    v = m / np.sqrt((m * m).sum(0))
    # v is orthogonal to n^2 eps, from rounding of the nodes near +-1. A step of Newton's method
    # towards the nearest orthogonal matrix squares that.
    v = 1.5 * v - 0.5 * v @ (v.T @ v)
    return t, v[: max_degree + 1]
