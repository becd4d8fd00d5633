"""Asymptotics in high dimension: the staircase, and the table of sample sizes."""

from __future__ import annotations

import numpy as np

from .. import _check
from .._types import Array, ArrayLike


def staircase(
    n: ArrayLike, dim: ArrayLike, target_power: ArrayLike, features: ArrayLike | None = None
) -> Array:
    """Return the test error of inner-product kernels in high dimension, which learn by degrees.

    With ``d^l <= min(n, N) < d^(l+1)`` the power of degrees above l is left (Mei, Misiakiewicz and
    Montanari 2021). They prove it as d grows, away from the steps and from n = N, where random
    features have their peak; ``learning_curve`` has the curve at finite d.

    Parameters
    ----------
    n : array_like
        Number of samples.
    dim : array_like
        d, above 1; for spiked covariates pass ``spiked_dimension``.
    target_power : array of shape (degrees,)
        Power of the target in degree 0, 1, 2, ...
    features : array_like, optional
        N; infinite by default.

    Returns
    -------
    array of float64, of the shape of n, dim and features together

    Examples
    --------
    >>> import kernelcore as kc
    >>> power = [0, 0.5, 0.3, 0.2]
    >>> kc.theory.staircase([10, 50, 1000, 2500, 10**6], 50, power).round(6)
    array([1. , 0.5, 0.5, 0.2, 0. ])
    >>> float(kc.theory.staircase(10**6, 50, power, features=100).round(6))
    0.5
    """
    power = _check.power_by_degree(target_power, "target_power")
    features = np.inf if features is None else features
    n, dim, features = _check.together(
        n=_check.amounts(n, "n", zero=False, infinite=True),
        dim=_check.above_one(dim, "dim"),
        features=_check.amounts(features, "features", zero=False, infinite=True),
    )
    least = np.minimum(n, features)
    # Powers, not a quotient of logarithms, whose rounding might take n = d^l for less.
    with np.errstate(over="ignore"):
        reached = (least[..., None] >= dim[..., None] ** np.arange(len(power))).sum(-1)
    return np.append(np.cumsum(power[::-1])[::-1], 0.0)[reached]


class SampleSizes(dict[str, float]):
    """Sample sizes by kernel; made by ``sample_complexity``, and printed as a table.

    Attributes
    ----------
    rates : dict of str to str
        How they grow, in words.
    title : str
    """

    def __init__(self, sizes: dict[str, float], rates: dict[str, str], title: str) -> None:
        super().__init__(sizes)
        self.rates, self.title = rates, title

    def __str__(self) -> str:
        width = max(map(len, self))
        rows = [f"{k:<{width}}  {self.rates[k]:<12}  {v:>12,.6g}" for k, v in self.items()]
        return "\n".join([self.title, *rows])


def sample_complexity(degree: int, dim: int, patch: int, pool: int) -> SampleSizes:
    """Return the samples that kernels need to learn a local, cyclically invariant polynomial.

    This is the order of n, without constants, at which H(q, w) on the hypercube fits polynomials of
    degree l that are q-local and invariant under cyclic shifts (Misiakiewicz and Mei 2022).

    Parameters
    ----------
    degree, dim, patch, pool : int
        l, d, q and w; ``patch`` and ``pool`` at most ``dim``.

    Returns
    -------
    SampleSizes
        A dict from the name of the kernel to n, with ``.rates`` for the formulas.

    Examples
    --------
    >>> import kernelcore as kc
    >>> sizes = kc.theory.sample_complexity(degree=3, dim=30, patch=10, pool=5)
    >>> sizes["H(q, w)"]
    600.0
    >>> print(sizes)
    degree 3, d = 30, q = 10, w = 5
    H(d, 1)  d^l                 27,000
    H(d, d)  d^(l-1)                900
    H(q, 1)  d q^(l-1)            3,000
    H(q, w)  d q^(l-1)/w            600
    H(q, d)  q^(l-1)                100
    """
    degree = _check.count(degree, "degree", least=1)
    dim = _check.count(dim, "dim", least=1)
    patch = _check.at_most(_check.count(patch, "patch", least=1), dim, "patch", "dim")
    pool = _check.at_most(_check.count(pool, "pool", least=1), dim, "pool", "dim")
    d, q, less = np.float64(dim), np.float64(patch), degree - 1
    with np.errstate(over="ignore"):  # to infinity
        table = {
            "H(d, 1)": ("d^l", d**degree),
            "H(d, d)": ("d^(l-1)", d**less),
            "H(q, 1)": ("d q^(l-1)", d * q**less),
            "H(q, w)": ("d q^(l-1)/w", d * q**less / pool),
            "H(q, d)": ("q^(l-1)", q**less),
        }
    sizes = {name: float(size) for name, (_, size) in table.items()}
    rates = {name: rate for name, (rate, _) in table.items()}
    return SampleSizes(sizes, rates, f"degree {degree}, d = {dim}, q = {patch}, w = {pool}")
