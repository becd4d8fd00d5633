"""How lazily a network trains: its curvature against its slope, before any step is taken."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..linalg import norm
from ..linalg.arrays import placed, reshaped
from ._network import Network


class Laziness(NamedTuple):
    """The result of ``laziness``: kappa (Chizat, Oyallon and Bach 2019), in Euclidean norms.

    Attributes
    ----------
    kappa : float
        ``residual hessian / jacobian^2``: far below 1, training is that of the linearised network.
    residual : float
        ``|y - f(X)|``.
    jacobian : float
        The largest singular value of the derivatives of all outputs by theta.
    hessian : float
        The largest ``|sum_i u_i f''(x_i)|`` over unit vectors u, in the spectral norm.
    distance : float
        ``residual / jacobian``, about as far as theta has to move.
    change : float
        ``distance hessian / jacobian``, about the relative change of the derivatives on the way.
    """

    kappa: float
    residual: float
    jacobian: float
    hessian: float
    distance: float
    change: float


def laziness(
    network: Network, X: ArrayLike, y: ArrayLike, *, rounds: int = 100, tol: float = 1e-4,
    seed: Any = 0,
) -> Laziness:  # fmt: skip
    """Predict how far training moves a network from its linearisation.

    Norms are found by the power method, on products with Jacobians and Hessians, in at most
    ``rounds`` rounds or to a relative change of ``tol``; that of the Hessians alternates between
    theta and the outputs, and may end below the largest.

    Parameters
    ----------
    network : Network
    X, y : arrays
        Inputs, and targets of the shape of the outputs.
    rounds : int, default 100
    tol : float, default 1e-4
    seed : int, numpy.random.Generator or None
        Of the vectors that the power method begins with.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X, y = np.eye(3), np.ones(3)
    >>> net = kc.Sequential(kc.Dense(), kc.Tanh(), kc.Dense())
    >>> f = net.sample(50, seed=0, shape=3, doubled=True)
    >>> one, ten = (kc.networks.laziness(f.scaled(a), X, y).kappa for a in (1.0, 10.0))
    >>> bool(np.isclose(one / ten, 10.0))
    True
    """
    _check.an_instance(network, Network, "network", "a Network")
    rounds = _check.count(rounds, "rounds", least=1)
    f = network(X)
    u = network._cotangent(y, len(f), "y") - reshaped(f, (len(f), -1))
    residual = float(norm(u))
    shape = f.shape
    rng = _check.generator(seed, "seed")

    def unit(a: Array) -> Array:
        size = float(norm(a))
        return a / size if size > 0 else a

    def draw(shape: Any) -> Array:
        return placed(rng.standard_normal(shape), network.theta)

    v = draw(network.theta.shape)
    top = 0.0
    for _ in range(rounds):
        pulled = network.vjp(X, network.jvp(X, unit(v)))
        last, top = top, math.sqrt(float(norm(pulled)))
        v = pulled
        if top - last <= tol * top:
            break
    way = draw(shape)
    v, bend = draw(network.theta.shape), 0.0
    for _ in range(rounds):
        v = unit(v)
        # Two products, so that eigenvalues of opposite sign do not alternate.
        once = network.hessian_product(X, unit(way), v)
        v = network.hessian_product(X, unit(way), unit(once))
        last, bend = bend, float(norm(once))
        way = _bends(network, X, unit(v), shape)
        if abs(bend - last) <= tol * bend:
            break
    distance = residual / top if top > 0 else math.inf
    change = distance * bend / top if top > 0 else math.inf
    return Laziness(change, residual, top, bend, distance, change)


def _bends(network: Network, X: ArrayLike, v: Array, shape: tuple[int, ...]) -> Array:
    """Return ``v' f''(x_i) v`` for every output, by differences of slopes along v.

    Any direction u near the best one will do, as the next round takes its own products.
    """
    h = float(np.finfo(network.dtype).eps) ** (1 / 3) * max(1.0, float(norm(network.theta)))
    ahead, behind = (network.at(network.theta + s * h * v).jvp(X, v) for s in (1.0, -1.0))
    return reshaped((ahead - behind) / (2 * h), shape)
