"""How training with a kernel converges, from the eigenvalues of its Gram matrix.

The flow ``f' = -K (f - y)`` of the loss ``|f - y|^2 / 2`` lets the residual decay along each
eigenvector of K as ``exp(-lambda t)``, and descent by steps s as ``(1 - s lambda)^k``: the slowest
rate is the smallest eigenvalue, if that is positive (Jacot et al. 2018, Du et al. 2019).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..linalg import eigh, resolution


class Convergence(NamedTuple):
    """The result of ``convergence``.

    Attributes
    ----------
    eigenvalues : array of shape (n,)
        Those of K, largest first.
    power : array of shape (n,)
        The squared residual at the start along their eigenvectors, summed over outputs; it sums to
        that of the whole.
    rounding : float
        The error of eigenvalues: ``sqrt(n) eps`` times the largest, eps of the dtype of K.
    """

    eigenvalues: Array
    power: Array
    rounding: float

    @property
    def rate(self) -> float:
        """The rate of the slowest decay, the smallest eigenvalue; 0 where it is not resolved."""
        least = float(self.eigenvalues[-1])
        return least if least > self.rounding else 0.0

    @property
    def positive_definite(self) -> bool:
        """Whether K is, beyond doubt of rounding: then every target is reached."""
        return self.rate > 0

    @property
    def margin(self) -> float:
        """How many times its rounding error the smallest eigenvalue is."""
        return float(self.eigenvalues[-1]) / self.rounding if self.rounding else math.inf

    @property
    def largest_step(self) -> float:
        """The step of descent below which it converges, two over the largest eigenvalue."""
        most = float(self.eigenvalues[0])
        return 2 / most if most > 0 else math.inf

    @property
    def rank(self) -> int:
        """The number of eigenvalues above their rounding error."""
        return int((self.eigenvalues > self.rounding).sum())

    @property
    def effective_rank(self) -> float:
        """The trace over the largest eigenvalue."""
        most = float(self.eigenvalues[0])
        return float(self.eigenvalues.sum()) / most if most > 0 else 0.0

    def loss(self, time: ArrayLike) -> Array:
        """Return the mean of half the squared residuals of the points after a time of the flow."""
        t = _check.amounts(time, "time", infinite=True)
        rates = self._known()
        with np.errstate(invalid="ignore"):  # no end of time at no rate: nothing changes
            decay = np.exp(-np.multiply.outer(t, rates))
        return self._after(np.where(rates > 0, decay, 1.0))

    def descent_loss(self, iterations: ArrayLike, step: float) -> Array:
        """Return the same after so many steps of descent."""
        k = _check.amounts(iterations, "iterations")
        step = _check.positive(step, "step")
        return self._after((1 - step * self._known()) ** k[..., None])

    def bound(self, time: ArrayLike) -> Array:
        """Return ``exp(-2 rate t)`` times the loss at the start: no loss of the flow is above."""
        t = _check.amounts(time, "time", infinite=True)
        # at no rate and no end of time nothing has changed
        return np.exp(-2 * self.rate * np.where(self.rate > 0, t, 0.0)) * self._start

    @property
    def _start(self) -> float:
        return float(self.power.sum()) / (2 * len(self.power))

    def _known(self) -> Array:
        return np.where(self.eigenvalues > self.rounding, self.eigenvalues, 0.0)

    def _after(self, decay: Array) -> Array:
        return np.square(decay) @ self.power / (2 * len(self.power))


def convergence(K: ArrayLike, y: ArrayLike, f0: ArrayLike | None = None) -> Convergence:
    """Return how gradient flow and descent with a kernel converge on a sample.

    Parameters
    ----------
    K : array of shape (n, n)
        A symmetric Gram matrix, of an NTK for example.
    y : array of shape (n,) or (n, r)
        Targets.
    f0 : array of the shape of y, optional
        The function at the start; zero by default.

    Notes
    -----
    Time is that of ``solvers.gradient_flow``, of the sum of ``(f - y)^2 / 2``, and steps are those
    of ``solvers.kernel_gradient_descent``. ``networks.train`` descends on the mean: its steps and
    times are n times as long. A network that is wide stays as close to the prediction as its kernel
    stays to K.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> found = kc.theory.convergence(np.diag([4.0, 1.0]), [1.0, 1.0])
    >>> found.positive_definite, found.rate, found.largest_step, found.effective_rank
    (True, 1.0, 0.5, 1.25)
    >>> found.loss([0.0, 1.0]).round(4)
    array([0.5   , 0.0339])
    """
    _check.on_the_host(K, "K")
    K = _check.gram(K, "K")
    eps, n = float(np.finfo(K.dtype).eps), len(K)
    y = _check.targets(y, "y", n, np.dtype(np.float64), least=1)
    off = np.zeros_like(y)
    if f0 is not None:
        off = _check.alike(f0, "f0", y.shape, "y", np.dtype(np.float64), y)
    values, vectors = eigh(np.asarray(K, np.float64))
    along = vectors.T @ (y - off).reshape(n, -1)
    power = np.square(along).sum(1)[::-1].copy()
    largest = max(float(values[-1]), 0.0)
    return Convergence(values[::-1].copy(), power, resolution(n, eps) * largest)
