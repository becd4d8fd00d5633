"""What all spectra have in common: levels of equal eigenvalues."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Array = np.ndarray


class Spectrum:
    """Eigenvalues of a kernel with respect to a probability measure, one per level.

    The eigenvalues of ``k(X)/n`` for n random points tend to them, each as often as its
    multiplicity.

    Parameters
    ----------
    log_eigenvalues : array of shape (levels,)
        Natural logarithms; ``-inf`` stands for a zero that is exact, NaN for what is not known.
    multiplicities : sequence of int
        How often each occurs, as exact integers.
    trace : float
        The mean of ``k(x, x)``: the sum of all eigenvalues, listed or not.

    Attributes
    ----------
    eigenvalues : array of shape (levels,)
        ``exp(log_eigenvalues)``; zero where that underflows.
    log_multiplicities, mass : arrays of shape (levels,)
        ``mass`` is eigenvalue times multiplicity.
    tail : float
        The part of the trace that the levels leave out, or that is not known, not negative.
    """

    def __init__(self, log_eigenvalues: Array, multiplicities: Sequence[int], trace: float) -> None:
        self.log_eigenvalues = np.asarray(log_eigenvalues, np.float64)
        self._multiplicities = multiplicities
        self.trace = float(trace)

    @property
    def eigenvalues(self) -> Array:
        return np.exp(self.log_eigenvalues)

    @property
    def multiplicities(self) -> Array:
        """Exact integers, in an array of Python's."""
        exact = np.empty(len(self._multiplicities), object)
        exact[:] = list(self._multiplicities)
        return exact

    @property
    def log_multiplicities(self) -> Array:
        return np.array([math.log(m) if m else -math.inf for m in self._multiplicities])

    @property
    def mass(self) -> Array:
        return np.exp(self.log_eigenvalues + self.log_multiplicities)

    @property
    def tail(self) -> float:
        return max(0.0, self.trace - math.fsum(np.nan_to_num(self.mass)))

    def __len__(self) -> int:
        return len(self.log_eigenvalues)
