"""Approximation by a ball of the RKHS.

Within norm B the best approximation of f in mean square has mu/(mu + tau) times the coefficients of
f, where tau is the Lagrange multiplier of the constraint:

    A^2 = sum f_i^2 (tau/(mu_i + tau))^2,   B^2 = sum f_i^2 mu_i/(mu_i + tau)^2,   dA^2/dB^2 = -tau.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..spectrum import Spectrum, SphereSpectrum
from ..spectrum._resolved import Resolved
from ._levels import Levels, falling, levels


class Approximation(NamedTuple):
    """The result of ``approximation``, in arrays of the shape of the radii; nothing is squared.

    Attributes
    ----------
    error : array
        The least distance A(B) in L2 from the target to the ball of radius B.
    norm : array
        The norm of the best approximation: B, or that of the target where the ball holds it.
    exponent : array
        ``d log A / d log B = -tau B^2/A^2``, exactly, at that radius.
    multiplier : array
        tau.
    """

    error: Array
    norm: Array
    exponent: Array
    multiplier: Array


class Rate(NamedTuple):
    """A power law ``A ~ B^exponent`` with its points; made by ``approximation_rate``.

    Attributes
    ----------
    exponent, deviation : float
        The slope of the least-squares line in logarithms, and its standard error.
    norm, error : arrays
        The points.
    """

    exponent: float
    deviation: float
    norm: Array
    error: Array


def _squares(of: Levels, power: Array, log_tau: Array) -> tuple[Array, Array, Array]:
    """Return A^2, B^2, and minus the derivative of log B^2 in log tau."""
    with np.errstate(divide="ignore"):
        log_power = np.log(power[:-1])
    learned, left = of.log_learned(log_tau)
    # f^2 mu/(mu + tau)^2 = f^2 L (1 - L)/tau
    inside = np.exp(log_power + learned + left - log_tau[..., None])
    b = inside.sum(-1)
    a = np.exp(log_power + 2 * left).sum(-1) + power[-1]
    with np.errstate(invalid="ignore"):
        return a, b, 2 * (inside * np.exp(left)).sum(-1) / b


def approximation(
    spectrum: Spectrum | ArrayLike, target_power: ArrayLike, norm: ArrayLike
) -> Approximation:
    """Compute how well a ball of the RKHS approximates a target, in L2.

    Parameters
    ----------
    spectrum, target_power
        As in ``modes``; the multiplicities do not matter.
    norm : array_like
        The radius B of the ball, positive; infinity is the whole space.

    Returns
    -------
    Approximation

    Examples
    --------
    >>> import kernelcore as kc
    >>> best = kc.theory.approximation([1.0, 0.01], [1.0, 1.0], norm=[0.5, 2.0, 20.0])
    >>> best.error.round(4)  # the target has norm sqrt(1 + 100)
    array([1.1137, 0.8255, 0.    ])
    """
    of = levels(spectrum)
    power = _check.power(target_power, "target_power", len(of.log_mu))
    norm = _check.amounts(norm, "norm", zero=False, infinite=True)
    flat = norm.ravel()
    shape = (len(flat), len(of.log_mu))
    _check.room("all levels at all norms", shape, np.float64, 4, ("fewer of them",))
    within = (power[:-1] > 0) & (of.log_mu > -np.inf)
    with np.errstate(over="ignore"):  # the squared norm of the target
        whole = (power[:-1][within] * np.exp(-of.log_mu[within])).sum()
    outside = power[:-1][~within].sum() + power[-1]
    tau, error = np.zeros(len(flat)), np.full(len(flat), np.sqrt(outside))
    reached = np.full(len(flat), np.sqrt(whole))
    todo = np.flatnonzero(flat < np.sqrt(whole))
    if len(todo):
        target = 2 * np.log(flat[todo])
        # B^2 <= sum f^2 mu/tau^2; with tau below 1e-17 of all mu nothing of f is left out.
        high = (np.log(power[:-1] @ np.exp(of.log_mu)) - target) / 2 + 1e-9
        low = np.minimum(np.full(len(todo), of.log_mu[within].min() - 40), high - 1e-9)

        def off(x: Array, which: Array) -> tuple[Array, Array]:
            _, b, slope = _squares(of, power, x)
            with np.errstate(divide="ignore"):
                return np.log(b) - target[which], slope

        log_tau = falling(off, low, high, high)
        a, b, _ = _squares(of, power, log_tau)
        tau[todo], error[todo], reached[todo] = np.exp(log_tau), np.sqrt(a), np.sqrt(b)
    with np.errstate(invalid="ignore", divide="ignore"):
        exponent = np.where(tau > 0, -tau * reached**2 / error**2, 0.0)
    return Approximation(*(x.reshape(norm.shape) for x in (error, reached, exponent, tau)))


def approximation_rate(
    spectrum: SphereSpectrum,
    target_power: ArrayLike | None = None,
    degrees: tuple[int, int] | None = None,
) -> Rate:
    """Fit the exponent at which balls of the RKHS approximate Lipschitz functions on the sphere.

    Up to logarithms it is ``-1/(d/2 - 1)`` where eigenvalues fall as ``k^-d`` (kappa0, NTK) and
    ``-1/(d/2)`` where they fall as ``k^-(d+2)`` (kappa1): Bach 2017, and Bietti and Mairal 2019 for
    NTKs.

    Parameters
    ----------
    spectrum : sphere spectrum
        With ``degrees`` and ``dim``.
    target_power : array of shape (levels,) or (levels + 1,), optional
        By default the most that a Lipschitz function may have: ``(k + (d-2)/2)^-3`` in each degree
        k >= 1 whose eigenvalue is not zero, and as the last entry the sum over degrees not listed.
    degrees : tuple of two ints, optional
        The degrees between which the cut-off, where ``mu_k = tau``, moves: by default a fortieth to
        an eighth of the highest, so that degrees that are not listed do not matter.

    Returns
    -------
    Rate
        The rate in L2; Bach's corollary is in the supremum norm.

    Notes
    -----
    ``approximation(...).exponent`` is the slope at a point. The slope tends to its limit as a power
    of the cut-off degree, slowly where the exponent is large: for the NTK in three dimensions it is
    5 % off with 2,000 degrees and less than 1 % with 20,000.

    Examples
    --------
    >>> import kernelcore as kc
    >>> spectrum = kc.spectrum.sphere(kc.ArcCosine(1), dim=4, max_degree=2000)
    >>> round(kc.theory.approximation_rate(spectrum).exponent, 3)  # -1/(d/2)
    -0.5
    """
    spectrum = _check.of_sphere(spectrum, "spectrum", Resolved)
    of, dim, degree = levels(spectrum), spectrum.dim, np.asarray(spectrum.degrees)
    listed = of.log_mu > -np.inf
    top = int(degree[-1])
    if degrees is None:
        degrees = max(1, top // 40), max(1, top // 8)
    low, high = _check.pair(degrees, "degrees")
    low = _check.count(low, "degrees[0]", least=1)
    high = _check.count(high, "degrees[1]", least=low)
    high = _check.at_most(high, top, "degrees[1]", "the highest degree listed")
    inside = listed & (degree >= low) & (degree <= high)
    log_mu = _check.range_of_degrees(of.log_mu[inside], low, high)
    if target_power is None:
        from scipy.special import zeta

        shift = (dim - 2) / 2
        place = np.where(degree >= 1, degree + shift, np.inf)
        last = degree[listed][-2:]
        step = float(last[-1] - last[0])  # 2 where parity leaves out every other degree
        rest = step**-3 * zeta(3, (last[-1] + step + shift) / step)
        power = np.append(np.where(listed, place**-3.0, 0.0), rest)
    else:
        power = _check.power(target_power, "target_power", len(of.log_mu))
    a, b, _ = _squares(of, power, np.linspace(log_mu.max(), log_mu.min(), 30))
    x, y = np.log(b) / 2, np.log(a) / 2
    (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
    return Rate(float(slope), float(np.sqrt(covariance[0, 0])), np.exp(x), np.exp(y))
