"""Solutions for one ridge, by Cholesky in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..linalg import Cholesky, cholesky, columns, namespace_of
from ..linalg.arrays import reshaped, summed
from ..scale.matrix import across, home, operates, symmetric, whole
from ._eigen import Eigen


def ridge(
    K: Any, y: ArrayLike, ridge: float = 0.0, *,
    overwrite_K: bool = False, on_singular: str = "raise",
) -> Array:  # fmt: skip
    """Return the coefficients of kernel ridge regression, ``(K + ridge I) alpha = y``.

    Predictions are ``k(x, X) alpha``, the minimum of ``|f(X) - y|^2 + ridge |f|^2`` over the RKHS.

    Parameters
    ----------
    K : array of shape (n, n), float32 or float64, ``GramOperator`` or other operator
        Symmetric up to ``sqrt(eps)`` times its largest entry; one triangle of it is used. The array
        of a ``GramOperator`` costs one Gram matrix unless it is kept, that of another operator n
        products; all work is done in that array.
    y : array of shape (n,) or (n, r)
        Converted to the dtype of K.
    ridge : float
        Added to the diagonal as it is. For ``|f - y|^2 / n + lambda |f|^2`` pass ``n lambda``.
    overwrite_K : bool
        Work in K itself, which must be contiguous and writable. It becomes scratch, also after
        Ctrl-C; after an error it is as before, made exactly symmetric.
    on_singular : 'raise' or 'pinv'
        What to do when ``K + ridge I`` is not positive definite: raise ``LinAlgError``, with the
        smallest eigenvalue and a jitter that would help; or take the pseudo-inverse. With 'pinv' a
        matrix with a condition number above ``1/(sqrt(n) eps)`` counts as singular, too.

    Returns
    -------
    array of the shape of y and the dtype of K

    Notes
    -----
    LAPACK's potrf and potrs take n^3/3 + 2 n^2 r flops and are backward stable: alpha solves a
    system whose matrix is off by at most ``4 n (3n + 1) u |K + ridge I|`` (Higham 2002, Theorem
    10.4), in practice by a few u. The memory is one n x n array, or none with ``overwrite_K``; the
    pseudo-inverse takes three more. It treats a ridge as ``RidgePath`` does: at ridge 0 eigenvalues
    of K below ``cutoff = max(sqrt(n) eps largest, -smallest)`` are left out, and along them a
    positive ridge counts as ``cutoff`` at least. A matrix whose smallest eigenvalue is below
    ``-sqrt(eps)`` times the largest is refused.

    Ctrl-C stops the factorisation within a second. The pseudo-inverse takes an eigendecomposition,
    which cannot be interrupted.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.solvers.ridge([[3.0, 2.0], [2.0, 4.0]], [8.0, 8.0], ridge=1.0)
    array([1.5, 1. ])
    >>> kc.solvers.ridge([[1.0, 1.0], [1.0, 1.0]], [3.0, 1.0], on_singular="pinv")
    array([1., 1.])
    """
    amount = _check.non_negative(ridge, "ridge")
    on_singular = _check.choice(on_singular, "on_singular", ("raise", "pinv"))
    remedies = ("overwrite_K=True", "conjugate_gradients", "float32")
    a, free = whole(K, overwrite=_check.flag(overwrite_K, "overwrite_K"), remedies=remedies)
    xp = namespace_of(a)
    y = _check.targets(y, "y", a.shape[0], a.dtype, like=a)
    if xp is np:
        a = a if free else np.array(a, order="C")
        y = np.array(y, order="F")  # y may be a part of K
    if on_singular == "raise":
        alpha = cholesky(columns(a), amount, overwrite=True, remedy="on_singular='pinv'").solve(y)
        return _check.coefficients_within(alpha)
    factor = Cholesky(columns(a), amount, overwrite=True, condition=True)
    if factor.sound:
        alpha = factor.solve(y)
    else:
        eigen = Eigen(factor.restore())
        alpha = eigen.expand(eigen.inverses(np.array([amount])), eigen.project(y))[0, ...]
    return reshaped(_check.coefficients_within(alpha), y.shape)


def interpolate(K: Any, y: ArrayLike, *, overwrite_K: bool = False) -> Array:
    """Return the coefficients of the interpolant with the least RKHS norm, ``K alpha = y``.

    This is ``ridge`` with ridge 0 and the pseudo-inverse where K is singular: eigenvalues below
    ``max(sqrt(n) eps largest, -smallest)`` count as zero, and the part of y along them is not
    fitted.

    Parameters
    ----------
    K, y, overwrite_K
        As in ``ridge``.

    Returns
    -------
    array of the shape of y and the dtype of K

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.solvers.interpolate([[2.0, 1.0], [1.0, 2.0]], [3.0, 0.0])
    array([ 2., -1.])
    """
    return ridge(K, y, overwrite_K=overwrite_K, on_singular="pinv")


def rkhs_inner(alpha: ArrayLike, K: Any, beta: ArrayLike | None = None) -> Array:
    """Return the inner product of expansions in a kernel, ``alpha' K beta``.

    The expansions are ``f = sum_i alpha_i k(., x_i)`` and ``g = sum_j beta_j k(., z_j)``, and
    ``K = k(X, Z)``. The root of the inner product of f with itself is its norm in the RKHS.

    Parameters
    ----------
    alpha : array of shape (n,) or (n, r)
    K : array of shape (n, m), or operator
        An operator is multiplied if there is no ``beta``, else made into an array.
    beta : array of shape (m,) or (m, s), optional
        By default alpha.

    Returns
    -------
    array of float64, of shape (), (r,), (s,) or (r, s)
        One number per column of alpha and column of beta. Without ``beta`` these are the squared
        norms of the columns alone, of shape () or (r,).

    Examples
    --------
    >>> import kernelcore as kc
    >>> float(kc.solvers.rkhs_inner([1.0, 2.0], [[2.0, 1.0], [1.0, 2.0]]))
    14.0
    """
    if beta is None:
        K = symmetric(K)
        alpha = _check.targets(alpha, "alpha", K.shape[0], np.float64, like=home(K, alpha))
        xp = namespace_of(alpha)
        return xp.asarray(summed(alpha * (K @ alpha), 0))
    like = None if operates(K) else K
    alpha = _check.finite_array(alpha, "alpha", like)
    beta = _check.finite_array(beta, "beta", like)
    K = across(K, "K", beta.shape[0] if beta.ndim else 0, np.float64, of="beta", like=beta)
    alpha = _check.targets(alpha, "alpha", K.shape[0], np.float64, like=like)
    beta = _check.targets(beta, "beta", K.shape[1], np.float64, like=like)
    return namespace_of(alpha).asarray(alpha.T @ (K @ beta))
