"""A spectrum as theory uses it: logarithms, sums over levels at any resolution, and their roots."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .. import _check, _keywords
from .._keywords import F
from .._types import Array, ArrayLike
from ..spectrum import Spectrum

STEPS = 400
"""More than bisection alone needs to close any bracket of logarithms."""


def noise_as_deviation(*after: str) -> Callable[[F], F]:
    """Decorate a function that formerly took a deviation ``noise`` by position, then ``after``."""
    return _keywords.formerly(
        lambda name, value: _check.amounts(value, name) ** 2,
        ("noise", *after),
        noise="noise_variance",
    )


class Levels(NamedTuple):
    """The logarithms of eigenvalues and multiplicities, and the mass that is not listed.

    A multiplicity may overflow in float64 and an eigenvalue underflow; their product does neither.
    """

    log_mu: Array
    log_count: Array
    tail: float

    @property
    def mass(self) -> Array:
        return np.exp(self.log_mu + self.log_count)

    @property
    def trace(self) -> float:
        return float(self.mass.sum()) + self.tail

    @property
    def rank(self) -> float:
        """The number of eigenvalues that are not zero; infinite with a tail, or beyond float64."""
        if self.tail > 0:
            return np.inf
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_count[self.log_mu > -np.inf]).sum())

    def log_learned(self, log_c: Array) -> tuple[Array, Array]:
        """Return logarithms of L = mu/(mu + c) and of 1 - L, of shape log_c.shape + (levels,)."""
        x = self.log_mu - log_c[..., None]
        return -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)

    def sums(self, log_c: Array) -> tuple[Array, Array]:
        """Return z = sum L and s = sum L (1 - L) over eigenvalues; the tail adds tail/c to both."""
        learned, left = self.log_learned(log_c)
        with np.errstate(over="ignore"):
            terms = np.exp(self.log_count + learned)
            s = np.exp(self.log_count + learned + left).sum(-1)
            rest = self.tail * np.exp(-log_c) if self.tail else 0.0
        return terms.sum(-1) + rest, s + rest


def levels(spectrum: Spectrum | ArrayLike) -> Levels:
    """Return the levels of a Spectrum, or of an array of eigenvalues."""
    if isinstance(spectrum, Spectrum):
        log_mu = np.nan_to_num(spectrum.log_eigenvalues, nan=-np.inf, neginf=-np.inf)
        # The mass of unknown eigenvalues is in the tail.
        return Levels(log_mu, spectrum.log_multiplicities, spectrum.tail)
    _check.a_spectrum(spectrum, "spectrum")
    mu = _check.eigenvalue_list(spectrum, "spectrum")
    with np.errstate(divide="ignore"):
        return Levels(np.log(mu), np.zeros(len(mu)), 0.0)


def falling(
    of: Callable[[Array, Array], tuple[Array, Array]], low: Array, high: Array, start: Array
) -> Array:
    """Solve for the zeros of many falling functions at once, to the last bit of x.

    ``of(x, which)`` returns the functions ``which`` and minus their derivatives; they are not
    negative at low and not positive at high. Newton's method is used, and bisection where it would
    leave the bracket or does not halve its steps, as on the plateaux between levels.
    """
    low, high, x = low.copy(), high.copy(), np.clip(start, low, high)
    last = high - low
    which = np.arange(len(x))
    for _ in range(STEPS):
        if not len(which):
            break
        at = x[which]
        off, slope = of(at, which)
        low[which] = np.where(off >= 0, at, low[which])
        high[which] = np.where(off <= 0, at, high[which])
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            to = at + off / slope
        width = high[which] - low[which]
        newton = (to >= low[which]) & (to <= high[which]) & (np.abs(to - at) <= last[which] / 2)
        to = np.where(newton, to, low[which] + width / 2)
        to = np.where(off == 0, at, to)
        last[which] = np.where(newton, np.abs(to - at), width)
        x[which] = to
        which = which[np.abs(to - at) > 2e-16 * np.maximum(1.0, np.abs(to))]
    return x
