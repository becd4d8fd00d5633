"""Gradient flow in closed form.

f(x, t) = f0(x) + k(x, X) a(t) with a' = y - f(X, t) - ridge a is linear, so along each eigenvector
of K, with eigenvalue lambda and mu = lambda + ridge,

    a(t) = phi (y - f0),   phi = (1 - e^(-mu t))/mu,   f(X, t) = f0 + lambda phi (y - f0).

Without ridge this is f' = -K (f - y) on the training points. A network of infinite width starts
from a draw of its NNGP process and flows with its NTK, Theta. The flow is linear in that draw, so
with A = Theta(x, X) phi(Theta) mean and covariance over draws are (Lee et al. 2019, equations 14,
15)

    A y,    K(x, x') - A K(X, x') - K(x, X) A' + A K(X, X) A'.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..linalg import namespace_of
from ..linalg.arrays import (
    cast,
    dots,
    on_diagonal,
    placed,
    reshaped,
    zeros,
)
from ..linalg.blas import row_blocks
from ..scale.matrix import across, values, whole
from ._eigen import Eigen, each_product, reciprocal, scratch

ROWS = 256
"""The rows of a matrix that are multiplied at a time."""


class Flow(NamedTuple):
    """The result of ``gradient_flow``; the shape of ``times`` comes first in every array.

    Attributes
    ----------
    times : array
    train : array of shape times.shape + y.shape
        Predictions on the training points.
    test : array of shape times.shape + (m,) or times.shape + (m, r), or None
        Predictions ``f0_test + K_test alpha``.
    alpha : array of shape times.shape + y.shape
        Coefficients, for other points.
    decay : array of shape times.shape + (n,)
        ``exp(-(lambda + ridge) t)``, the share of the residual that is left along each eigenvector
        of K, in the order of ``eigenvalues``.
    eigenvalues : array of shape (n,)
        The eigenvalues of K, largest first; zero where they are not resolved.
    """

    times: Array
    train: Array
    test: Array | None
    alpha: Array
    decay: Array
    eigenvalues: Array


class Ensemble(NamedTuple):
    """The result of ``ensemble_flow``: means and variances over random initialisations.

    Attributes
    ----------
    times : array
    train_mean : array of shape times.shape + y.shape
    train_variance : array of shape times.shape + (n,)
        The same for every output.
    test_mean : array of shape times.shape + (m,) or times.shape + (m, r), or None
    test_variance : array of shape times.shape + (m,), or None
    test_covariance : array of shape times.shape + (m, m), or None
        Given if all covariances of the NNGP on the test points were.
    """

    times: Array
    train_mean: Array
    train_variance: Array
    test_mean: Array | None
    test_variance: Array | None
    test_covariance: Array | None


def _grown(eigen: Eigen, times: Array, ridge: float) -> tuple[Array, Array]:
    """Return ``phi`` and the decay at times of the host, (times, n)."""
    xp, mu = eigen.xp, eigen.sums(np.array([ridge]))[0, :]
    # Where mu = 0 K is not resolved, so nothing is learned; k(x, X) is zero but for rounding.
    with np.errstate(invalid="ignore"):
        power = xp.where(mu > 0, placed(times, mu)[:, None] * mu, 0.0)
    return -xp.expm1(-power) * reciprocal(mu), xp.exp(-power)


def gradient_flow(
    K: Any, y: ArrayLike, times: ArrayLike, *,
    K_test: Any = None, f0: ArrayLike | None = None, f0_test: ArrayLike | None = None,
    ridge: float = 0.0,
) -> Flow:  # fmt: skip
    """Solve the gradient flow of ``|f(X) - y|^2 / 2`` in the RKHS, in closed form at any times.

    On the training points ``f' = -K (f - y)``: residuals along an eigenvector of K with eigenvalue
    lambda decay as ``exp(-lambda t)``.

    Parameters
    ----------
    K : array of shape (n, n), float32 or float64, or operator, of which the array is made
        Symmetric positive semi-definite.
    y : array of shape (n,) or (n, r)
    times : array_like
        Not negative; infinity is the limit, ``f0 + k(x, X) K^-1 (y - f0)``.
    K_test : array of shape (m, n) or operator, optional
        ``k(x, X)`` of other points.
    f0 : array of the shape of y, optional
        The initial function on the training points, zero by default.
    f0_test : array of shape (m,) or (m, r)
        The initial function on the other points; needed if both f0 and K_test are given.
    ridge : float
        The weight decay towards f0: the flow tends to ridge regression with ``K + ridge I``.

    Notes
    -----
    After k steps eta of gradient descent t is ``k eta``. Other losses have other scales of time:
    with ``|f - y|^2 / n`` (the mean of squares, without 1/2) and its own t', ``t = 2 t'/n``; with a
    mean over samples of ``|f - y|^2 / 2`` and a rate eta, ``t = eta t'/n``.

    One eigendecomposition takes 9 n^3 flops, then each time 4 n^2 r. Along eigenvalues below
    ``cutoff = max(sqrt(n) eps largest, -smallest)`` a positive ridge counts as ``cutoff`` at least,
    and without ridge nothing is learned; predictions lack at most
    ``t sqrt(cutoff k(x, x)) |y - f0|`` by that.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> flow = kc.solvers.gradient_flow([[2.0, 1.0], [1.0, 2.0]], [3.0, 1.0], [0, 1, np.inf])
    >>> flow.train.round(3)
    array([[0.   , 0.   ],
           [2.533, 1.268],
           [3.   , 1.   ]])
    >>> flow.decay.round(3)
    array([[1.   , 1.   ],
           [0.05 , 0.368],
           [0.   , 0.   ]])
    """
    K, free = whole(K, beside=scratch)
    xp, n = namespace_of(K), K.shape[0]
    y = _check.targets(y, "y", n, K.dtype, like=K)
    times = _check.amounts(times, "times", infinite=True)
    amount = _check.non_negative(ridge, "ridge")
    if f0_test is not None:
        _check.given(K_test, "K_test", "f0_test")
        _check.given(f0, "f0", "f0_test")
    start = xp.zeros_like(y) if f0 is None else _check.alike(f0, "f0", y.shape, "y", K.dtype, K)
    if K_test is not None:
        K_test = across(K_test, "K_test", n, K.dtype, like=K)
        start_test = zeros((K_test.shape[0], *y.shape[1:]), K)
        if f0 is not None:
            _check.given(f0_test, "f0_test", "f0 and K_test")
            shape, of = start_test.shape, "predictions on K_test"
            start_test = _check.alike(f0_test, "f0_test", shape, of, K.dtype, K)
    eigen = Eigen(K, overwrite=free)
    phi, decay = _grown(eigen, times.reshape(-1), amount)
    along = eigen.project(y - start)
    alpha = reshaped(eigen.expand(phi, along), times.shape + y.shape)
    train = start + reshaped(eigen.expand(eigen.values * phi, along), times.shape + y.shape)
    test = None if K_test is None else start_test + each_product(K_test, alpha, y.ndim)
    decay = reshaped(xp.flip(decay, axis=1), (*times.shape, n))
    times = placed(times, eigen.values)
    return Flow(times, train, test, alpha, decay, xp.flip(eigen.resolved))


def ensemble_flow(
    ntk: Any, nngp: Any, y: ArrayLike, times: ArrayLike, *,
    ntk_test: Any = None, nngp_test: Any = None, nngp_test_test: Any = None,
) -> Ensemble:  # fmt: skip
    """Return mean and variance of all networks of infinite width, trained by gradient flow until t.

    Over random initialisations the outputs of a wide network are a Gaussian process before, during
    and after training: it starts as that of the NNGP, and each draw flows with the NTK.

    Parameters
    ----------
    ntk, nngp : arrays of shape (n, n), float32 or float64, or operators, made into arrays
        The kernels on the training points; symmetric positive semi-definite.
    y : array of shape (n,) or (n, r)
    times : array_like
        As in ``gradient_flow``, on the same scale.
    ntk_test, nngp_test : arrays of shape (m, n), optional
        The kernels of the test points with the training points.
    nngp_test_test : array of shape (m,) or (m, m)
        The NNGP of the test points: ``net.nngp.diag(Z)``, or ``net.nngp(Z)`` for covariances.

    Returns
    -------
    Ensemble
        The variances are those of each output; outputs are independent.

    Notes
    -----
    At t = 0 this is the prior of the NNGP. At infinity it is no posterior of a Gaussian process,
    unless the two kernels are equal (only the last layer is trained): then it is that of the NNGP
    without noise. The absolute error is about n u times the largest eigenvalue of the NNGP times
    the condition of what the NTK has learned by then; variances that rounding leaves below zero are
    set to zero.

    The work is 9 n^3 flops, then 2 n^3 + 2 m n^2 for each time, and 2 m^2 n more for covariances.
    The memory, apart from arguments and results, is four n x n arrays, or two and two of m x n;
    with covariances two of m x m and two of m x n more.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> net = kc.presets.mlp(2, b_std=0.1)
    >>> x, z = np.array([[0.0], [1.0]]), np.array([[0.5]])
    >>> ensemble = kc.solvers.ensemble_flow(
    ...     net.ntk(x), net.nngp(x), [1.0, -1.0], [0, np.inf],
    ...     ntk_test=net.ntk(z, x), nngp_test=net.nngp(z, x), nngp_test_test=net.nngp.diag(z),
    ... )
    >>> bool(np.isclose(ensemble.test_variance[0, 0], net.nngp.diag(z)[0]))
    True
    >>> ensemble.train_mean[1].round(6), abs(ensemble.train_variance[1]).round(6)
    (array([ 1., -1.]), array([0., 0.]))
    """
    ntk, free = whole(ntk, "ntk", beside=lambda n: 3)  # nngp among them
    xp, n, dtype = namespace_of(ntk), ntk.shape[0], ntk.dtype
    here: dict[str, Any] = {"like": ntk, "of": "ntk"}
    nngp = _check.alike(whole(nngp, "nngp")[0], "nngp", ntk.shape, "ntk", dtype, **here)
    y = _check.targets(y, "y", n, dtype, **here)
    times = _check.amounts(times, "times", infinite=True)
    tested = {"ntk_test": ntk_test, "nngp_test": nngp_test, "nngp_test_test": nngp_test_test}
    present = [name for name, value in tested.items() if value is not None]
    for name, value in tested.items() if present else ():
        _check.given(value, name, present[0])
    if present:
        ntk_test = across(ntk_test, "ntk_test", n, dtype, **here)
        nngp_test, shape = values(nngp_test, "nngp_test"), ntk_test.shape
        nngp_test = _check.alike(nngp_test, "nngp_test", shape, "ntk_test", dtype, **here)
        m, name = ntk_test.shape[0], "nngp_test_test"
        prior = cast(_check.finite_array(values(nngp_test_test, name), name, **here), dtype)
        fine = prior.shape in ((m,), (m, m))
        _check.shaped(fine, prior, name, f"have shape ({m},) or ({m}, {m})")
        shape = (times.size, *prior.shape)
        if xp is np:
            _check.room("covariances at all times", shape, dtype, 1, ("fewer of them", "float32"))
    eigen = Eigen(ntk, "ntk", free)
    basis = eigen.vectors
    phi, decay = _grown(eigen, times.reshape(-1), 0.0)
    along = eigen.project(y)
    mean = reshaped(eigen.expand(eigen.values * phi, along), times.shape + y.shape)
    nngp = basis.T @ nngp @ basis
    phi, decay = cast(phi, dtype), cast(decay, dtype)
    rows = range(times.size)

    def stack(parts: list[Array], *shape: int) -> Array:
        """Make one array of the parts at all times, each of this shape."""
        each = xp.stack(parts) if parts else zeros((0, *shape), ntk)
        return reshaped(each, times.shape + shape)

    variance = stack([_squares(basis, decay[k, :], nngp) for k in rows], n)
    at = placed(times, eigen.values)
    if not present:
        return Ensemble(at, mean, variance, None, None, None)
    ntk_test, nngp_test = ntk_test @ basis, nngp_test @ basis
    coefficients = cast(along, dtype)
    means = [ntk_test @ (phi[k, :][:, None] * coefficients) for k in rows]
    test_mean = stack(means, m, *y.shape[1:])
    covariance = None
    if prior.ndim == 2:
        covariance = zeros((times.size, m, m), ntk)
        for k in rows:
            learned = ntk_test * phi[k, :]
            rest = learned @ nngp
            rest /= 2
            rest -= nngp_test
            half = learned @ rest.T
            covariance[k, ...] = half
            covariance[k, ...] += half.T
            covariance[k, ...] += prior
        covariance = reshaped(covariance, (*times.shape, m, m))
        spread = xp.maximum(on_diagonal(covariance), 0.0)
    else:
        each = [prior + _squares(ntk_test, phi[k, :], nngp, nngp_test) for k in rows]
        spread = xp.maximum(stack(each, m), 0.0)
    return Ensemble(at, mean, variance, test_mean, spread, covariance)


def _squares(a: Array, weights: Array, k: Array, mixed: Array | None = None) -> Array:
    """Return the diagonal of ``b k b' - 2 mixed b'``, ``b = a diag(weights)``.

    Without ``mixed`` it has squares, which are not below 0. It is computed in blocks of rows, so
    that at many times no further memory of the size of a is taken.
    """
    xp, n = namespace_of(a), a.shape[0]
    out = zeros((n,), a)
    for rows in row_blocks(n, ROWS):
        b = a[rows, :] * weights
        out[rows] = _inner(b @ k, b)
        if mixed is None:
            out[rows] = xp.maximum(out[rows], 0.0)
        else:
            out[rows] -= 2 * _inner(mixed[rows, :], b)
    return out


def _inner(a: Array, b: Array) -> Array:
    """Return the inner products of rows."""
    if isinstance(a, np.ndarray):
        return np.einsum("ij,ij->i", a, b)
    return cast(dots(a, b, axis=1), a.dtype)
