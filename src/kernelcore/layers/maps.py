"""Maps of a kernel, by the cosine and the norms, that are no expectation over Gaussian weights.

With ``n = sqrt(K11 K22)`` and ``u = K/n`` these are maps of convolutional kernel networks (Mairal
2016) and of Myrtle kernels (Shankar et al. 2020).
"""

from __future__ import annotations

import math

import numpy as np

from ..program import Form, Homogeneous, Unit
from ..series.functions import Function
from ._layers import Applied
from .profiles import Kappa1, ProfileLike, as_profile

__all__ = ["DotProduct", "Project"]


class Map(Applied):
    """The base of maps, which need no weights before them and leave nothing Gaussian."""

    _needs_gaussian = False


class DotProduct(Map):
    """A homogeneous map: ``K <- n p(u)`` and ``T <- T p'(u)``.

    Parameters
    ----------
    profile : profile, callable or sequence of coefficients
        p, as ``profiles.as_profile`` takes it: positive at 1 and nowhere larger in size, as it is
        for positive definite kernels. With ``profiles.Kappa0()``, whose derivative is infinite at
        1, there is no NTK where something before it is trained.

    Examples
    --------
    >>> import kernelcore as kc
    >>> net = kc.Sequential(kc.Input(sum=True), kc.DotProduct(kc.profiles.Exp(1.0)))
    >>> net.nngp([[2.0, 0.0]], [[2.0, 0.0], [0.0, 3.0]])
    array([[4.        , 2.20727665]])
    """

    _parameters = ("profile",)

    def __init__(self, profile: ProfileLike) -> None:
        self.profile = as_profile(profile)
        self._top = float(self.profile(1.0))
        if not self._top > 0:
            raise ValueError(f"profile must be positive at 1: {self.profile!r} is {self._top}")
        u = np.cos(np.linspace(0, math.pi, 513))
        size = np.abs(self.profile(u))
        worst = int(size.argmax())
        slack = 1e-9 * self._top + getattr(self.profile, "error", 0.0)
        if size[worst] > self._top + slack:
            raise ValueError(
                f"profile must be largest at 1: {self.profile!r} is {self._top} there, and "
                f"{size[worst]:.6g} in size at {u[worst]:.6g}"
            )
        self._slope = float(self.profile.derivative(1.0))
        self._smooth = math.isfinite(self._slope)

    def _form(self) -> Form:
        # An infinite slope is refused where it would meet anything but zero.
        slope = self._slope if self._smooth else 0.0
        kappa1 = isinstance(self.profile, Kappa1)
        return Homogeneous(self.profile._op(), 1, self._top, slope, kappa1)

    def _series(self, q: float) -> Function | None:
        return self.profile._series()


class Project(Map):
    """The map onto the unit sphere: ``K <- K/n``, ``T <- T/n``; where n is zero both stay zero.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Sequential(kc.Dense(), kc.Project()).nngp([[3.0, 4.0], [6.0, 8.0]])
    array([[1., 1.],
           [1., 1.]])
    """

    def _form(self) -> Form:
        return Unit()

    def _series(self, q: float) -> Function | None:
        return None  # not asked for: a correlation stays as it is
