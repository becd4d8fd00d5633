"""Targets of the papers, as functions of rows, and noise on labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..layers.activations import Relu
from ._covariates import Seed

LAWS = ("product", "sphere")


def _rows(X: ArrayLike, least: int) -> Array:
    x = np.asarray(_check.rows(X, "X"), np.float64)
    return _check.shaped(x.shape[1] >= least, x, "X", f"have at least {least} columns")


class Chains:
    """A sum over degrees k of random combinations of products of k neighbouring coordinates.

    These are targets of Ghorbani et al. (2020), products of Hermite polynomials of degree 1 under
    the normal law, parities on the hypercube, and harmonics on the sphere. The coefficients are
    exponential variables, scaled so that each degree has its power exactly.

    Parameters
    ----------
    dim : int
        The number of coordinates that count, the first ones of X.
    target_power : sequence of float
        The mean square of the part of degree 0, 1, ..
    seed : int, numpy.random.Generator or None
    law : {"product", "sphere"}
        That of the first ``dim`` coordinates: independent, of mean 0 and variance 1, or uniform on
        the sphere of radius ``sqrt(dim)``. Points of another radius are divided by it.

    Examples
    --------
    >>> import kernelcore as kc
    >>> f = kc.data.Chains(10, [0.0, 0.0, 0.5, 0.5], seed=0)
    >>> y = f(kc.data.hypercube(100_000, 20, seed=1))
    >>> bool(abs((y**2).mean() - 1) < 0.02)
    True
    """

    def __init__(
        self, dim: int, target_power: ArrayLike, seed: Seed = None, *, law: str = "product"
    ) -> None:
        self.dim = _check.count(dim, "dim", least=1)
        self.target_power = power = _check.power_by_degree(target_power, "target_power")
        self.law = _check.choice(law, "law", LAWS)
        _check.at_most(len(power) - 1, self.dim, "the degree of target_power", "dim")
        rng = _check.generator(seed, "seed")
        self._parts: list[tuple[int, Array]] = []
        # On the sphere of radius sqrt(d), E x_1^2 .. x_k^2 = d^k / (d (d+2) .. (d+2k-2)).
        moment = 1.0
        for k, wanted in enumerate(power):
            if k and law == "sphere":
                moment *= self.dim / (self.dim + 2 * k - 2)
            c = rng.exponential(size=self.dim - k + 1 if k else 1)
            if wanted:
                self._parts.append((k, c * math.sqrt(wanted / (moment * (c @ c)))))

    def __repr__(self) -> str:
        return f"Chains({self.dim}, {self.target_power.tolist()}, law={self.law!r})"

    def __call__(self, X: ArrayLike) -> Array:
        """Evaluate the function at the rows of X: shape (n,), float64."""
        x = _rows(X, self.dim)[:, : self.dim]
        if self.law == "sphere":
            square = (x * x).sum(1, keepdims=True)
            x = x * np.sqrt(self.dim / _check.every(square > 0, square, "X", "have no zero rows"))
        y, chain, length = np.zeros(len(x)), np.ones((len(x), self.dim + 1)), 0
        for k, c in self._parts:
            while length < k:
                length += 1
                end = self.dim - length + 1
                chain = chain[:, :end] * x[:, length - 1 : length - 1 + end]
            y += chain[:, : len(c)] @ c
        return y


class Subspace:
    """A target ``g(U'x)`` that depends on a few directions of x alone.

    Parameters
    ----------
    directions : array of shape (dim,) or (dim, r)
        U, the directions in columns.
    g : callable
        Takes the projections, of shape (n, r) or (n,) as the directions are, and returns (n,).

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> f = kc.data.Subspace([1.0, 0.0, 0.0], np.square)
    >>> f([[3.0, 1.0, 1.0]])
    array([9.])
    """

    def __init__(self, directions: ArrayLike, g: Callable[[Array], Array]) -> None:
        U = _check.finite_array(directions, "directions")
        self.directions = _check.shaped(U.ndim in (1, 2), U, "directions", "have one or two axes")
        self.g = g

    def __call__(self, X: ArrayLike) -> Array:
        """Evaluate the function at the rows of X: shape (n,)."""
        x = _check.rows(X, "X")
        _check.shaped(
            x.shape[1] == len(self.directions), x, "X", f"have {len(self.directions)} columns"
        )
        return np.asarray(self.g(x @ self.directions))


def neuron(weights: ArrayLike, activation: Callable[[Any], Array] | None = None) -> Subspace:
    """Return the target ``activation(<w, x>)``; the activation is ReLU by default.

    Parameters
    ----------
    weights : array of shape (d,)
        w.
    activation : callable, optional

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.data.neuron([1.0, -1.0])([[3.0, 1.0], [1.0, 3.0]])
    array([2., 0.])
    """
    w = _check.finite_array(weights, "weights")
    return Subspace(
        _check.shaped(w.ndim == 1, w, "weights", "have shape (dim,)"), activation or Relu()
    )


def hermite(power: Sequence[float]) -> Callable[[Array], Array]:
    """Return ``g(z) = sum_k sqrt(power_k / r) sum_j He_k(z_j) / sqrt(k!)`` of r projections.

    For directions that are orthonormal and a standard normal x, the part of degree k >= 1 of
    ``Subspace(U, hermite(power))`` has the mean square ``power_k``.

    Parameters
    ----------
    power : sequence of float
        By degree, from 0.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> g = kc.data.hermite([0.0, 0.0, 1.0])
    >>> g(np.array([0.0, 1.0, 3.0])).round(4)  # (z^2 - 1)/sqrt(2)
    array([-0.7071,  0.    ,  5.6569])
    """
    given = _check.power_by_degree(power, "power")
    scaled = [math.sqrt(p / math.factorial(k)) for k, p in enumerate(given)]

    def g(z: Array) -> Array:
        values = np.polynomial.hermite_e.hermeval(z, scaled)
        return values if values.ndim == 1 else values.sum(1) / math.sqrt(values.shape[1])

    return g


def _cyclic_chain(X: ArrayLike, degree: int, sign: int) -> Array:
    degree = _check.count(degree, "degree", least=1)
    x = _rows(X, degree)
    chain = np.prod([np.roll(x, -k, axis=1) for k in range(degree)], axis=0)
    return chain @ (float(sign) ** np.arange(x.shape[1])) / math.sqrt(x.shape[1])


def low_frequency(X: ArrayLike, degree: int = 3) -> Array:
    """Return f_LF of Misiakiewicz and Mei (2022), which cyclic shifts do not change: shape (n,).

    It is ``d^(-1/2) sum_i x_i x_(i+1) .. x_(i+degree-1)``, with indices modulo d, and has power 1
    on the hypercube if the degree is below d.

    Parameters
    ----------
    X : array of shape (n, d)
        Cyclic signals.
    degree : int, default 3
        The number of factors of a product.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.data.low_frequency([[1.0, 1.0, 1.0, 1.0]])
    array([2.])
    """
    return _cyclic_chain(X, degree, 1)


def high_frequency(X: ArrayLike, degree: int = 3) -> Array:
    """Return f_HF of Misiakiewicz and Mei (2022), whose sign a cyclic shift by one changes.

    It is ``d^(-1/2) sum_i (-1)^i x_i x_(i+1) .. x_(i+degree-1)``, for an even d, of shape (n,).

    Parameters
    ----------
    X : array of shape (n, d)
        Cyclic signals.
    degree : int, default 3
        The number of factors of a product.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.data.high_frequency([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, -1.0]])
    array([0., 1.])
    """
    return _cyclic_chain(X, degree, -1)


def heaviside(X: ArrayLike) -> Array:
    """Return 1 where the first coordinate is at least 0, and else 0: shape (n,).

    Parameters
    ----------
    X : array of shape (n, d)

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.data.heaviside([[-0.5], [0.0], [0.5]])
    array([0., 1., 1.])
    """
    return (_rows(X, 1)[:, 0] >= 0).astype(np.float64)


def label_noise(y: ArrayLike, variance: float, *, seed: Seed = None) -> Array:
    """Add independent normal noise to targets.

    Parameters
    ----------
    y : array
    variance : float
        Of the noise.
    seed : int, numpy.random.Generator or None

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> noisy = kc.data.label_noise(np.zeros(10_000), 0.25, seed=0)
    >>> bool(abs(noisy.var() - 0.25) < 0.02)
    True
    """
    y = _check.finite_array(y, "y")
    deviation = math.sqrt(_check.non_negative(variance, "variance"))
    return y + deviation * _check.generator(seed, "seed").standard_normal(y.shape)


def random_labels(y: ArrayLike, share: float, *, seed: Seed = None) -> Array:
    """Replace a share of labels by others that are drawn from the classes of y, all alike.

    Parameters
    ----------
    y : array of shape (n,)
    share : float
        From 0 to 1: how many labels are drawn anew; some of them come out as they were.
    seed : int, numpy.random.Generator or None

    Examples
    --------
    >>> import kernelcore as kc
    >>> _, y = kc.data.digits()
    >>> bool(0.4 < (kc.data.random_labels(y, 0.5, seed=0) != y).mean() < 0.5)
    True
    """
    labels = np.array(y)
    share = _check.non_negative(share, "share")
    _check.must(share <= 1, "share", "be at most 1", share)
    rng = _check.generator(seed, "seed")
    drawn = rng.permutation(len(labels))[: round(share * len(labels))]
    classes = np.unique(labels)
    labels[drawn] = classes[rng.integers(0, len(classes), len(drawn))]
    return labels
