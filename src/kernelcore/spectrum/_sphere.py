"""Spectra on the sphere: of kernels and profiles, by powers of the cosine or by quadrature."""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..engine import loops
from ..kernels import Kernel, Scaled, Sum
from ..kernels._powers import alike, null_degrees, powers_of, rate_of
from ..layers.profiles import Profile, ProfileLike, as_profile
from ..linalg import lstsq
from ..series.coefficients import EPS
from . import _plot
from ._levels import Spectrum
from ._sums import LONG, Sums, steep

Key = tuple[Any, float, int]  # a kernel or profile, radius, dimension
Curve = Callable[..., Array]  # a function of the cosine
SAMPLED = 1e-13  # error of an eigenvalue by quadrature, relative to kappa(1)
SPREAD = 12.5  # standard deviations of a cosine that are sampled
MOST_DIM = 1 << 53  # beyond it float64 cannot tell a dimension from the next
WANTED = 1e-10  # relative error that powers are meant to keep


class Decay(NamedTuple):
    """A power law ``mu_k ~ (k + (dim - 2)/2)^exponent``; made by ``SphereSpectrum.decay``.

    Attributes
    ----------
    exponent, error : float
        And half of its change when the range is halved.
    first, last : int
        The degrees that were fitted.
    intercept : float
        ``log mu`` at 1.
    """

    exponent: float
    error: float  # of the exponent: half of its change when the range is halved
    first: int
    last: int
    intercept: float  # log mu at 1


class SphereSpectrum(Spectrum):
    """The eigenvalues ``mu_k`` of a kernel on the sphere of R^dim, by degree; made by ``sphere``.

    Attributes
    ----------
    degrees : array of int, shape (max_degree + 1,)
    eigenvalues, log_eigenvalues : arrays of float64
        With respect to the uniform probability measure; exactly zero (``-inf``) where parity says
        so, NaN where not resolved.
    multiplicities, log_multiplicities : arrays
        ``N(dim, k)`` as exact Python integers, made when asked for, and their logarithms.
    error : array of float64
        Estimated relative error of each eigenvalue.
    resolved : array of bool
        Whether that is below 1.
    trace : float
        ``kappa(1)``, which is the sum of ``mu_k N(dim, k)`` over all degrees.
    profile : callable
        kappa, a function of the cosine.
    dim : int
    radius : float
    """

    def __init__(
        self, kernel: Kernel | Profile, dim: int, radius: float, log_eigenvalues: Array,
        error: Array, trace: float, profile: Curve,
    ) -> None:  # fmt: skip
        self.kernel, self.dim, self.radius, self.profile = kernel, dim, radius, profile
        self.degrees = np.arange(len(log_eigenvalues))
        self.error = error
        self.resolved = ~(error >= 1)
        log_eigenvalues = np.where(self.resolved, log_eigenvalues, math.nan)
        super().__init__(log_eigenvalues, None, trace)

    def __repr__(self) -> str:
        rest = f"dim={self.dim}, max_degree={len(self) - 1}, radius={self.radius}"
        return f"SphereSpectrum({self.kernel!r}, {rest})"

    @property
    def multiplicities(self) -> Array:
        return np.array([multiplicity(self.dim, k) for k in range(len(self))], object)

    @functools.cached_property
    def log_multiplicities(self) -> Array:
        return log_multiplicities(self.dim, len(self) - 1)

    def __call__(self, t: ArrayLike) -> Array:
        """Evaluate the kernel at cosines t from the degrees listed: off by at most ``tail``.

        Examples
        --------
        >>> import kernelcore as kc
        >>> s = kc.spectrum.sphere(kc.Gaussian(1.0), dim=5, max_degree=20)
        >>> s([0.0, 1.0])
        array([0.36787944, 1.        ])
        """
        t = _check.cosines(t, "t")
        total = np.zeros(t.shape)
        # The mass that is not resolved is in the tail.
        for mass, p in zip(np.nan_to_num(self.mass), polynomials(self.dim, t), strict=False):
            total += mass * p
        return total

    def decay(
        self, first: int | None = None, last: int | None = None, parity: int | None = None
    ) -> Decay:
        """Fit a power law in ``k + (dim - 2)/2`` to the logarithms of the eigenvalues.

        Parameters
        ----------
        first, last : int, optional
            Range of degrees; by default the upper half of those that are resolved and not zero.
        parity : {None, 0, 1}
            0 takes even degrees alone and 1 odd ones: for deep kernels their constants differ.

        Examples
        --------
        >>> import kernelcore as kc
        >>> s = kc.spectrum.sphere(kc.presets.mlp(1).ntk, dim=5, max_degree=400)
        >>> round(s.decay().exponent, 3)
        -5.0
        """
        _check.unless(parity not in (None, 0, 1), "parity", "None, 0 or 1", repr(parity))
        there = np.isfinite(self.log_eigenvalues) & (self.degrees > 0)
        if parity is not None:
            there &= self.degrees % 2 == parity
        known = self.degrees[there]
        top = int(known[-1]) if len(known) else 0
        last = top if last is None else _check.count(last, "last")
        first = (last + 1) // 2 if first is None else _check.count(first, "first")
        there &= (self.degrees >= first) & (self.degrees <= last)
        k = self.degrees[there]
        if len(k) < 4:
            raise ValueError(
                f"first and last must leave four degrees that are resolved and not zero: got "
                f"{len(k)} in {first}..{last}"
            )
        # Degrees are divided by (dim - 2)/2, in the sum with which rounding might lose them.
        unit = (self.dim - 2) / 2 or 1.0
        x = np.log1p(k / unit) if self.dim > 2 else np.log(k)
        y = self.log_eigenvalues[there]
        slope, intercept = np.polyfit(x, y, 1)
        intercept -= slope * math.log(unit)
        half = len(k) // 2
        low, high = (np.polyfit(x[part], y[part], 1)[0] for part in np.s_[:half, half:])
        error = float(abs(high - low) / 2)
        return Decay(float(slope), error, int(k[0]), int(k[-1]), float(intercept))

    def asymptotic_tail(self) -> float:
        """Estimate the mass beyond the last degree from the decay before it; NaN if there is none.

        For kernels with a root at t = 1, such as those of ReLU, Laplacian and Matern,
        ``mu_k N(dim, k)`` is, per parity, a power of ``nu = k + (dim - 2)/2`` times a series in
        ``1/nu^2``. ``tail`` is found from the trace instead, so that each checks the other.

        Examples
        --------
        >>> import kernelcore as kc
        >>> s = kc.spectrum.sphere(kc.presets.mlp(3).ntk, dim=5, max_degree=300)
        >>> bool(abs(s.asymptotic_tail() - s.tail) < 1e-10 * s.trace)
        True
        """
        from scipy.special import zeta

        total, terms = 0.0, np.arange(6)
        for parity in (0, 1):
            k = self.degrees[self.degrees % 2 == parity]
            k = k[len(k) // 2 :]
            log = (self.log_eigenvalues + self.log_multiplicities)[k]
            if np.isneginf(log).all():
                continue
            if len(k) < 16 or not np.isfinite(log).all():
                return math.nan
            nu = k + (self.dim - 2) / 2
            # The power is an even integer close to the slope at the far end.
            power = 2 * round(-float(np.polyfit(np.log(nu[-8:]), log[-8:], 1)[0]) / 2)
            if not 2 <= power <= 100:
                return math.nan
            scaled = np.exp(log + power * np.log(nu))
            basis = (nu[-1] / nu[:, None]) ** (2 * terms)
            c = lstsq(basis, scaled)
            if np.abs(basis @ c / scaled - 1).max() > 1e-8:
                return math.nan
            # The sum of nu^-s over nu_last + 2, nu_last + 4, .. is 2^-s zeta(s, nu_last/2 + 1).
            s = power + 2 * terms
            c = c * nu[-1] ** (2.0 * terms)
            total += float((c * 2.0**-s * zeta(s, nu[-1] / 2 + 1)).sum())
        return total

    def plot(self, ax: Any = None, fit: bool = True, **style: Any) -> Any:
        """Draw eigenvalues against degree, on logarithmic axes, with the fitted power law.

        Returns the Matplotlib axes.
        """
        degrees = np.where(self.degrees > 0, self.degrees, math.nan)  # 0 has no logarithm
        ax = _plot.levels(self, degrees, ax, style)
        color = ax.get_lines()[-1].get_color()
        if fit and np.sum(np.isfinite(self.log_eigenvalues) & (self.degrees > 0)) >= 8:
            law = self.decay()
            x = np.geomspace(law.first, law.last, 50)
            y = (law.intercept + law.exponent * np.log(x + (self.dim - 2) / 2)) / _plot.LOG10
            ax.plot(x, y, color=color, lw=1, alpha=0.7)
            ax.annotate(f"{law.exponent:.2f}", (law.last, y[-1]), (4, 0), color=color, va="center",
                        textcoords="offset points", fontsize="small")  # fmt: skip
        ax.set(xscale="log", xlabel="degree $k$", ylabel=r"eigenvalue $\mu_k$")
        return ax


def multiplicity(dim: int, degree: int) -> int:
    """Return ``N(dim, degree)``, the exact number of spherical harmonics of that degree.

    The sphere of one dimension is a pair of points.

    Parameters
    ----------
    dim, degree : int

    Examples
    --------
    >>> import kernelcore as kc
    >>> [kc.spectrum.multiplicity(3, k) for k in range(4)]
    [1, 3, 5, 7]
    """
    dim, degree = _check.count(dim, "dim", least=1), _check.count(degree, "degree")
    if dim == 1 or degree == 0:
        return int(degree < 2)
    return (2 * degree + dim - 2) * math.comb(degree + dim - 3, degree - 1) // degree


def log_multiplicities(dim: int, max_degree: int) -> Array:
    """Return ``log N(dim, k)`` for k up to max_degree: an array of shape (max_degree + 1,).

    Parameters
    ----------
    dim, max_degree : int

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> np.exp(kc.spectrum.log_multiplicities(3, 3)).round(12)
    array([1., 3., 5., 7.])
    """
    dim = _check.count(dim, "dim", least=2)
    max_degree = _check.count(max_degree, "max_degree")
    k = np.arange(1, max_degree, dtype=np.longdouble)
    # N(k+1)/N(k) = (2k + dim)(k + dim - 2)/((2k + dim - 2)(k + 1))
    steps = np.log((2 * k + dim) * (k + dim - 2) / ((2 * k + dim - 2) * (k + 1)))
    logs = np.concatenate([[0.0], np.log([np.longdouble(dim)]), steps])[: max_degree + 1]
    return np.cumsum(logs).astype(np.float64)


def polynomials(dim: int, t: Array) -> Iterator[Array]:
    """Yield P_0(t), P_1(t), .. without end."""
    last, now = np.zeros_like(t), np.ones_like(t)
    for k in itertools.count():
        yield now
        new = ((2 * k + dim - 2) * t * now - k * last) / (k + dim - 2) if k else t * now
        last, now = now, new


# ---- making one


def sphere(
    kernel: Kernel | ProfileLike, dim: int, max_degree: int = 100, *, radius: float | None = None
) -> SphereSpectrum:
    """Compute Mercer eigenvalues on the sphere, by degree.

    ``mu_k = (w_(p-2)/w_(p-1)) int kappa(t) P_k(t) (1 - t^2)^((p-3)/2) dt``, p = dim, with
    ``P_k(1) = 1`` and ``w_(p-2)/w_(p-1) = Gamma(p/2)/(sqrt(pi) Gamma((p-1)/2))``: the eigenvalue,
    with respect to the uniform probability measure, of all ``N(dim, k)`` harmonics of degree k.

    Parameters
    ----------
    kernel : Kernel, profile, callable or sequence of coefficients
        A dense kernel, or kappa itself: a profile, a vectorised function of the cosine, or the
        coefficients of its powers.
    dim : int, at least 2
        The dimension of the space, up to 2^53; that of the sphere is one less.
    max_degree : int
    radius : float, optional
        The radius of the sphere, for kernels: by default ``sqrt(dim)`` for networks and 1 for
        classical kernels. Sums and products of the two kinds need it.

    Returns
    -------
    SphereSpectrum

    Notes
    -----
    Kernels whose duals have closed forms, and power series, are summed in powers of the cosine,
    where all terms are non-negative: relative errors are below 1e-10 however small the eigenvalue.
    A RuntimeWarning says so where they are not, because the coefficients settle too slowly (a kink
    behind a power of the cosine, which is singular all around the unit circle).
    Other kernels and functions are sampled: the absolute error is 1e-13 kappa(1) / sqrt(N(dim, k)),
    and an eigenvalue below it is NaN and not ``resolved``. ``error`` has the estimates. A function
    of the cosine with a negative eigenvalue is no kernel, and is refused.

    The time does not grow with the dimension: it is milliseconds at 10^15.

    Examples
    --------
    >>> import kernelcore as kc
    >>> s = kc.spectrum.sphere(kc.presets.mlp(1).ntk, dim=5, max_degree=5)
    >>> s.eigenvalues
    array([0.421875 , 0.2      , 0.03125  , 0.       , 0.0010376, 0.       ])
    >>> s.multiplicities
    array([1, 5, 14, 30, 55, 91], dtype=object)
    >>> s = kc.spectrum.sphere(kc.presets.mlp(3).ntk, dim=1000, max_degree=400)
    >>> float(s.log_eigenvalues[-1].round(2))
    -842.53
    """
    dim = _check.at_most(_check.count(dim, "dim", least=2), MOST_DIM, "dim", "2^53")
    max_degree = _check.count(max_degree, "max_degree")
    if isinstance(kernel, Kernel):
        radius = kernel._at_radius(radius, dim)
        profile: Curve = functools.partial(kernel.profile, radius=radius, dim=dim)
        key: Key = (kernel, *alike(kernel, radius, dim))
    else:
        _check.of_cosine(kernel)
        kernel = as_profile(kernel, "kernel")
        if radius is not None:
            raise ValueError("radius must be left out: a profile is a function of the cosine")
        radius, profile, key = 1.0, kernel, (kernel, 1.0, 1)
    trace = float(profile(1.0))
    log, error = _eigenvalues(key, dim, max_degree)
    closed = not np.isposinf(error).all()
    if _rough(log, error).any():
        fn = getattr(kernel, "fn", None) or profile  # a callable itself, not its fit
        sampled, noise = _by_nodes(fn, dim, max_degree, abs(trace))
        better = noise < error
        log, error = np.where(better, sampled, log), np.where(better, noise, error)
        null = null_degrees(*key, max_degree)
        log[null], error[null] = -math.inf, 0.0
        rough = _rough(log, error)
        if closed and isinstance(kernel, Kernel) and rough.any():
            warnings.warn(
                f"{rough.sum()} eigenvalues may be off by more than {WANTED:.0e} of "
                "their size: the coefficients of the kernel's powers settle too slowly; see error",
                RuntimeWarning,
                stacklevel=2,
            )
    return SphereSpectrum(kernel, dim, radius, log, error, trace, profile)


def _rough(log: Array, error: Array) -> Array:
    """Return where an error exceeds both WANTED and the rounding of the logarithm."""
    return error > WANTED + 4 * EPS * np.abs(np.nan_to_num(log, neginf=0.0))


def _eigenvalues(key: Key, dim: int, degree: int) -> tuple[Array, Array]:
    """Return logarithms and relative errors by powers; NaN and infinity without a series."""
    kernel = key[0]
    if isinstance(kernel, Sum):  # part by part: their singularities need not agree
        parts = (kernel.left, kernel.right)
        (a, da), (b, db) = (_eigenvalues((k, *alike(k, *key[1:])), dim, degree) for k in parts)
        with np.errstate(invalid="ignore"):  # an eigenvalue that is not known is NaN
            log = np.logaddexp(a, b)
            share = np.where(np.isneginf(log), 0.0, np.exp(a - log))
            error = share * da + (1 - share) * db
        return log, np.where(np.isnan(error), math.inf, error)
    if isinstance(kernel, Scaled):
        log, error = _eigenvalues((kernel.kernel, *key[1:]), dim, degree)
        with np.errstate(divide="ignore"):
            return log + np.log(kernel.factor), error
    rate = rate_of(*key[:2])
    if LONG < rate < math.inf:
        return steep(rate, dim, degree)
    reach = degree + 128
    while True:
        powers = powers_of(*key, reach) if rate < math.inf else None
        if powers is None:
            return np.full(degree + 1, math.nan), np.full(degree + 1, math.inf)
        sums = Sums(powers, dim, degree)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(sums.size > 0, sums.last / sums.size, 0.0)
        if powers.closed or share.max() <= EPS or powers.full:
            break
        reach = degree + 2 * (reach - degree)
    k = np.arange(degree + 1)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        condition = np.where(sums.size > 0, sums.size / np.abs(sums.mantissa), 1.0)
        log = sums.log()
        error = (sums.error + 2 * EPS * k + powers.error) * condition
        error += EPS * np.abs(log)  # the rounding of the logarithm
        error[sums.size == 0] = 0.0  # there are no terms
        if not powers.closed:
            # The terms that were cut are about as large as the last, times an unknown factor.
            error += np.where(share > EPS, len(powers.exact) * share, 0.0)
            error[len(powers.exact) :] = math.inf
        _definite(np.where(error < 1, np.sign(sums.mantissa) * np.exp(log), 0.0), dim)
    return log, error


def _definite(eigenvalues: Array, dim: int) -> None:
    """Refuse a kernel with an eigenvalue that is negative beyond its error."""
    bad = np.flatnonzero(eigenvalues < 0)
    if len(bad):
        raise ValueError(
            f"kernel must be positive semi-definite on the sphere of R^{dim}: its eigenvalue of "
            f"degree {bad[0]} is {eigenvalues[bad[0]]:.6g}"
        )


# ---- by quadrature


def _by_nodes(profile: Curve, dim: int, degree: int, top: float) -> tuple[Array, Array]:
    panels = max(32, degree // 16)
    (coarse, _), (fine, zero) = (_sampled(profile, dim, degree, m) for m in (panels, 2 * panels))
    zero |= top == 0
    change = np.abs(fine - coarse)
    _definite(np.where(fine < -(SAMPLED * top + change), fine, 0.0), dim)
    # The mean square of P_k is 1/N(dim, k): no error of the values becomes more than its root.
    noise = SAMPLED * top * np.exp(-log_multiplicities(dim, degree) / 2) + change
    log = np.full(degree + 1, math.nan)
    np.log(fine, out=log, where=fine > noise)
    log[zero] = -math.inf
    error = np.divide(noise, fine, out=np.full(degree + 1, math.inf), where=fine > noise)
    return log, np.where(zero, 0.0, error)


def _sampled(profile: Curve, dim: int, degree: int, panels: int) -> tuple[Array, Array]:
    """Return the eigenvalues, and which are zero by symmetry.

    Gauss's rule is in the angle, in which kernels are smooth where they are not in the cosine. It
    has that many panels on each side of the equator, where all the measure is in high dimension, up
    to SPREAD/sqrt(dim) from it: beyond there is a measure of 1e-34, and 1e-17 of any degree.
    """
    x, w = np.polynomial.legendre.leggauss(32)
    width = min(math.pi / 2, SPREAD / math.sqrt(max(dim - 2, 1))) / panels
    angle = (width * (np.arange(panels)[:, None] + (1 + x) / 2)).ravel()  # from the equator
    with np.errstate(under="ignore"):
        log_sine = np.log1p(-2 * np.sin(angle / 2) ** 2)
        weights = np.tile(w, panels) * np.exp((dim - 2) * log_sine)
    weights = np.append(weights[::-1], weights) / (2 * weights.sum())  # of probability
    t = np.append(np.sin(angle[::-1]), -np.sin(angle))
    values = np.asarray(profile(t), np.float64)
    out = loops.integrate(t, weights * values, dim, degree + 1)
    # The nodes come in pairs: a function that is even or odd to rounding has zeros. None are known
    # where all values underflow.
    largest = np.abs(values).max()
    even, odd = (
        0 < largest and np.abs(values + sign * values[::-1]).max() <= 16 * EPS * largest
        for sign in (-1, 1)
    )
    zero = np.where(np.arange(degree + 1) % 2, even, odd)
    return np.where(zero, 0.0, out), zero


def vanishes(kernel: Any, radius: float, dim: int, degrees: Array) -> Array:
    """Return at which of these degrees a kernel or profile is exactly zero.

    Degrees past 64 are taken to be as 63 and 64: parity alone decides, except for polynomials.
    """
    if isinstance(kernel, Kernel):
        radius, dim = alike(kernel, radius, dim)
    elif isinstance(kernel, Profile):
        radius, dim = 1.0, 1
    else:
        return np.zeros(len(degrees), bool)
    low = np.where(degrees > 64, 64 - degrees % 2, degrees)
    return np.isin(low, null_degrees(kernel, radius, dim, 64))
