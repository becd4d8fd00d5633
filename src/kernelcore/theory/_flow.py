"""Predicted error of kernel gradient flow.

The flow a' = y - (K + ridge I) a of the coefficients of f = k(., X) a has, as a function of time,
the Laplace transform (K + ridge + p)^-1 y / p: ridge regression with a complex ridge. Its error is
quadratic in a, so it is the inverse transform, in two variables and both at t, of

    E(p1, p2) / (p1 p2),   E = [sum_i (1-L1_i)(1-L2_i) f_i^2 + g s_0^2] / (1-g),
    g = (1/n) sum_i L1_i L2_i,   Lj_i = mu_i/(mu_i + c_j),   n = sum_i mu_i/(mu_i + c_j) + z_j/c_j,

z_j = ridge + tail + p_j and s_0^2 the variance of the noise: the two-point deterministic equivalent
of the resolvents. Off the negative real axis all of this is analytic, because resolvents of K are,
so Talbot's contour converges geometrically in the number of nodes, at any t: Trefethen, Weideman
and Schmelzer 2006, equation (4.1), 3.89^-nodes.
"""

from __future__ import annotations

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..spectrum import Spectrum
from ._curves import modes
from ._levels import Levels, levels, noise_as_deviation

NODES = 24
"""The contour has an error of 1e-13; rounding grows as exp(0.34 nodes), to 4e-13 here."""
STEPS = 2000
"""A bound on iterations; Newton's method takes about ten."""


def talbot(nodes: int) -> tuple[Array, Array]:
    """Return nodes p t in the upper half plane, and weights: f(t) = 2 Re sum w F(p) / t."""
    theta = np.pi * np.arange(1, nodes, 2) / nodes
    turn = 0.6407 * theta
    p = nodes * (0.5017 * theta / np.tan(turn) - 0.6122 + 0.2645j * theta)
    slope = nodes * (0.5017 / np.tan(turn) - 0.5017 * turn / np.sin(turn) ** 2 + 0.2645j)
    return p, np.exp(p) * slope / (1j * nodes)


def resolve(of: Levels, n: float, z: Array) -> Array:
    """Solve n = sum mu/(mu + c) + z/c for c, with z in the upper half plane.

    c = z/n + (1/n) sum mu c/(mu + c) maps the upper half plane strictly into itself, so there is
    one fixed point in it and iteration converges to it (Earle and Hamilton 1970); a root that
    Newton's method finds there is that one. Newton's step is taken where it stays in the half plane
    and lessens the residual, and the map's step elsewhere.
    """
    mu, mass = np.exp(of.log_mu), of.mass

    def image(c: Array, z: Array) -> tuple[Array, Array]:
        part = mass / (mu + c[:, None])
        return (z + c * part.sum(-1)) / n, (part * mu / (mu + c[:, None])).sum(-1) / n

    c = (z + mass.sum()) / n
    active = np.arange(len(z))
    value, slope = image(c, z)
    for _ in range(STEPS):
        at, to, change = c[active], value, slope
        newton = at + (to - at) / (1 - change)
        new, steeper = image(newton, z[active])
        better = (newton.imag > 0) & (np.abs(new - newton) < np.abs(to - at))
        if not better.all():
            plain, plainer = image(to, z[active])
            new, steeper = np.where(better, new, plain), np.where(better, steeper, plainer)
        # Newton's step from a residual of 1e-9 leaves one of 1e-18: done, whether or not rounding
        # lets the residual lessen.
        done = np.abs(to - at) < 1e-9 * np.abs(at) * np.abs(1 - change)
        c[active] = np.where(better | done, newton, to)
        active, value, slope = active[~done], new[~done], steeper[~done]
        if not len(active):
            break
    return c


def _at(
    of: Levels, power: Array, n: float, t: float, ridge: float, noise_variance: float, nodes: int
) -> float:
    """Return the error at one n and one finite t > 0."""
    p, weight = talbot(nodes)
    z = (ridge + of.tail) * t + p
    scaled = of._replace(log_mu=of.log_mu + np.log(t), tail=0.0)
    c = resolve(scaled, n, z)
    mu, mass = np.exp(scaled.log_mu), scaled.mass
    # Nodes below the axis are the conjugates; one of the two sums runs over the upper half only.
    c1, z1, w1 = c, z, weight / p
    c2, z2, w2 = (np.concatenate([x, x.conj()]) for x in (c1, z1, w1))
    left1, left2 = (c[:, None] / (mu + c[:, None]) for c in (c1, c2))
    learned1, learned2 = (mass / (mu + c[:, None]) for c in (c1, c2))
    gn = (mu * (1 / (mu + c1[:, None]))) @ learned2.T
    # n - gn = sum L1 (1 - L2) + z1/c1, and the same with 1 and 2 exchanged: their mean.
    free = ((learned1 @ left2.T + left1 @ learned2.T) + (z1 / c1)[:, None] + z2 / c2) / 2
    residual = (left1 * power[:-1]) @ left2.T + power[-1]
    pair = (n * residual + noise_variance * gn) / free
    return 2 * (w1 @ pair @ w2).real


@noise_as_deviation("ridge")
def gradient_flow_curve(
    spectrum: Spectrum | ArrayLike,
    target_power: ArrayLike,
    n: ArrayLike,
    times: ArrayLike,
    *,
    noise_variance: ArrayLike = 0.0,
    ridge: ArrayLike = 0.0,
) -> Array:
    """Predict the test error of kernel gradient flow at time t from spectrum and target.

    The flow is that of the loss ``|f(X) - y|^2 / 2`` from f = 0: ``f' = -k(., X) (f(X) - y)``, so a
    residual along an eigenvector of K decays as ``exp(-lambda t)``, lambda an eigenvalue of K (not
    of K/n). For a mean over n samples multiply times by n.

    Parameters
    ----------
    spectrum, target_power, n, noise_variance
        As in ``modes``.
    times : array_like
        Times, at least 0; at infinity the result is that of ``learning_curve``. They broadcast
        with n.
    ridge : array_like
        The strength of weight decay: the flow tends to ridge regression with ``K + ridge I``.

    Returns
    -------
    array of float64, of the shape of n and times together
        Mean squared error on new inputs, less the variance of the noise, in the mean over training
        sets.

    Notes
    -----
    The absolute error is 1e-11 of the sum of target_power and noise_variance, or of the predicted
    error where that is larger, near n = rank; other numbers of nodes change no more. A prediction
    that has fallen by a factor of 1e-5 has six digits. The work for each n and time is about ten
    passes over the levels for 12 complex numbers, and products of matrices (12, levels) and
    (levels, 24).

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> power_law = np.arange(1.0, 201.0) ** -2
    >>> target = power_law / power_law.sum()
    >>> t = [0, 0.1, 1, 10, 100, np.inf]
    >>> kc.theory.gradient_flow_curve(power_law, target, 50, t, noise_variance=0.25).round(3)
    array([1.   , 0.19 , 0.099, 0.139, 0.289, 0.34 ])
    """
    of = levels(spectrum)
    power = _check.power(target_power, "target_power", len(of.log_mu))
    n, times, noise_variance, ridge = _check.together(
        n=_check.amounts(n, "n", zero=False, infinite=True),
        times=_check.amounts(times, "times", infinite=True),
        noise_variance=_check.amounts(noise_variance, "noise_variance"),
        ridge=_check.amounts(ridge, "ridge"),
    )
    error = np.empty(n.shape)
    # The flow is faster for larger n: at n = infinity it ends at once.
    still, ended = times == 0, (times > 0) & (np.isinf(times) | np.isinf(n))
    error[still] = power.sum()
    error[ended] = modes(
        spectrum, power, n[ended], ridge[ended],
        noise_variance=noise_variance[ended], learnability=False,
    ).error  # fmt: skip
    for k in map(tuple, np.argwhere(~(still | ended))):
        error[k] = max(0.0, _at(of, power, n[k], times[k], ridge[k], noise_variance[k], NODES))
    return error[()]
