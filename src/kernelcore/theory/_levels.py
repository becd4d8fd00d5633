"""A spectrum as theory uses it: logarithms, and sums over levels at any resolution."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .. import _check, _keywords
from .._keywords import F
from .._types import Array, ArrayLike
from ..spectrum import Spectrum


def noise_as_deviation(*after: str) -> Callable[[F], F]:
    """Decorate what took ``noise`` before, a standard deviation, by position and then ``after``."""
    return _keywords.formerly(
        lambda name, value: _check.amounts(value, name) ** 2,
        ("noise", *after),
        noise="noise_variance",
    )


class Levels(NamedTuple):
    """Logarithms of eigenvalues and multiplicities, and the mass that is not listed.

    A multiplicity may be beyond float64, an eigenvalue below it; their product is neither.
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
        """How many eigenvalues are not zero; infinite with a tail, or beyond float64."""
        if self.tail > 0:
            return np.inf
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_count[self.log_mu > -np.inf]).sum())

    def log_learned(self, log_c: Array) -> tuple[Array, Array]:
        """Logarithms of L = mu/(mu + c) and of 1 - L: two of shape log_c.shape + (levels,)."""
        x = self.log_mu - log_c[..., None]
        return -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)

    def sums(self, log_c: Array) -> tuple[Array, Array]:
        """Sums z = sum L and s = sum L (1 - L) over eigenvalues, the tail in both as tail/c."""
        learned, left = self.log_learned(log_c)
        with np.errstate(over="ignore"):
            terms = np.exp(self.log_count + learned)
            s = np.exp(self.log_count + learned + left).sum(-1)
            rest = self.tail * np.exp(-log_c) if self.tail else 0.0
        return terms.sum(-1) + rest, s + rest


def levels(spectrum: Spectrum | ArrayLike) -> Levels:
    """The levels of a Spectrum, or of an array of eigenvalues."""
    if isinstance(spectrum, Spectrum):
        log_mu = np.nan_to_num(spectrum.log_eigenvalues, nan=-np.inf, neginf=-np.inf)
        return Levels(log_mu, spectrum.log_multiplicities, spectrum.tail)  # unknown: in the tail
    _check.a_spectrum(spectrum, "spectrum")
    mu = _check.eigenvalue_list(spectrum, "spectrum")
    with np.errstate(divide="ignore"):
        return Levels(np.log(mu), np.zeros(len(mu)), 0.0)
