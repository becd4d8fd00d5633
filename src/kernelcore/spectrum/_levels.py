"""What all spectra have in common: levels of equal eigenvalues."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import _check
from .._types import Array, ArrayLike

NOTHING = 1e-27
"""A share of the power of a target that is less than rounding leaves where there is none."""


class Spectrum:
    """The eigenvalues of a kernel with respect to a probability measure, one per level.

    The eigenvalues of ``k(X)/n`` for n random points tend to these, each as often as its
    multiplicity.

    Parameters
    ----------
    log_eigenvalues : array of shape (levels,)
        Natural logarithms; ``-inf`` stands for an exact zero, NaN for a value that is not known.
    multiplicities : sequence of int
        How often each occurs, as exact integers; None in a subclass that makes them when asked.
    trace : float
        The mean of ``k(x, x)``: the sum of all eigenvalues, listed or not.

    Attributes
    ----------
    eigenvalues : array of shape (levels,)
        ``exp(log_eigenvalues)``; zero where that underflows.
    log_multiplicities, mass : arrays of shape (levels,)
        ``mass`` is eigenvalue times multiplicity.
    tail : float
        The part of the trace that the levels leave out or that is not known, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> s = kc.spectrum.Spectrum(np.log([0.5, 0.1]), [1, 5], trace=1.25)
    >>> s.mass, s.tail
    (array([0.5, 0.5]), 0.25)
    """

    def __init__(
        self, log_eigenvalues: ArrayLike, multiplicities: Sequence[int] | None, trace: float
    ) -> None:
        _check.on_the_host(log_eigenvalues, "log_eigenvalues")
        self.log_eigenvalues = np.asarray(log_eigenvalues, np.float64)
        _check.levels(self.log_eigenvalues, multiplicities)
        self._multiplicities = () if multiplicities is None else multiplicities
        self.trace = _check.number(trace, "trace")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} levels, trace {self.trace:.6g}>"

    @property
    def eigenvalues(self) -> Array:
        return np.exp(self.log_eigenvalues)

    @property
    def multiplicities(self) -> Array:
        """The multiplicities as an array of Python integers, which are exact."""
        return np.array(list(self._multiplicities), np.object_)

    @property
    def log_multiplicities(self) -> Array:
        return np.array([math.log(m) if m else -math.inf for m in self._multiplicities])

    @property
    def mass(self) -> Array:
        return np.exp(self.log_eigenvalues + self.log_multiplicities)

    @property
    def tail(self) -> float:
        return max(0.0, self.trace - math.fsum(np.nan_to_num(self.mass)))

    def rkhs_norm(self, target_power: ArrayLike) -> float:
        """Return the norm, in the RKHS of the kernel, of a function with this power on each level.

        Parameters
        ----------
        target_power : array of shape (levels,) or (levels + 1,)
            The mean square of the function's part in each level, all eigenfunctions of the level
            together, as ``kc.theory`` takes it; one more entry is the power on all levels that are
            not listed.

        Returns
        -------
        float
            ``sqrt(sum target_power / eigenvalues)``. Infinite where the function has power on a
            level whose eigenvalue is zero, or on levels that are not listed; less than 1e-27 of
            the whole power is taken for rounding there. Power on a level whose eigenvalue is not
            known (NaN) is refused.

        Examples
        --------
        >>> import kernelcore as kc
        >>> s = kc.spectrum.sphere(kc.presets.mlp(1).ntk, dim=3, max_degree=3)
        >>> round(s.rkhs_norm([0.0, 0.0, 1.0, 0.0]), 6), s.rkhs_norm([0.0, 0.0, 0.0, 1.0])
        (3.577709, inf)

        For a Gram matrix it is the norm of the interpolant, ``sqrt(y @ inv(K) @ y)``:

        >>> s = kc.spectrum.empirical([[2.0, 0.0], [0.0, 0.5]])
        >>> round(s.rkhs_norm(s.target_power([2.0, 1.0])), 6)
        2.0
        """
        power = _check.power(target_power, "target_power", len(self))
        log = np.append(self.log_eigenvalues, -math.inf)
        there = power > np.where(np.isfinite(log), 0.0, NOTHING * power.sum())
        if np.isneginf(log[there]).any():
            return math.inf
        _check.known(log, there, power)
        if not there.any():
            return 0.0
        # The square may be beyond float64 where its root is not.
        square = np.logaddexp.reduce(np.log(power[there]) - log[there])
        with np.errstate(over="ignore"):
            return float(np.exp(square / 2))

    def __len__(self) -> int:
        return len(self.log_eigenvalues)
