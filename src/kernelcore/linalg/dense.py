"""Triangles, products of which one triangle is kept, and what every namespace has by itself.

Where one triangle of a result counts, the other one is not cleared.
"""

from __future__ import annotations

import numpy as np

from .._types import Array
from .namespace import namespace_of


def _triangle(xp, t: Array, lower: bool) -> Array:
    """Zeros in the other triangle."""
    return xp.tril(t) if lower else xp.triu(t)


def _transposed(xp, t: Array, transpose: bool) -> Array:
    return xp.matrix_transpose(t) if transpose else t


def triangular_solve(
    t: Array, b: Array, *, lower: bool = False, transpose: bool = False, overwrite: bool = False
) -> Array:
    """The x with ``t x = b`` or ``t' x = b``, of which one triangle of t is read.

    Parameters
    ----------
    t : array of shape (n, n)
    b : array of shape (n,) or (n, r)
    lower, transpose : bool
    overwrite : bool
        Work in b, which is in C's order: its transpose has BLAS's.

    Returns
    -------
    array of the shape of b

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import triangular_solve
    >>> triangular_solve(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([2.0, 3.0]), lower=True)
    array([1., 2.])
    """
    xp = namespace_of(t, b)
    if xp is not np:  # the standard has no substitution
        return xp.linalg.solve(_transposed(xp, _triangle(xp, t, lower), transpose), b)
    from scipy.linalg import get_blas_funcs, solve_triangular

    if not overwrite:
        return solve_triangular(t, b, lower=lower, trans=int(transpose), check_finite=False)
    (trsm,) = get_blas_funcs(("trsm",), (b,))
    return trsm(1.0, t, b.T, side=1, lower=lower, trans_a=not transpose, overwrite_b=1).T


def triangular_inverse(t: Array, *, lower: bool = False, overwrite: bool = False) -> Array:
    """The inverse of one triangle of t, in that triangle.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import triangular_inverse
    >>> np.triu(triangular_inverse(np.array([[2.0, 1.0], [0.0, 1.0]])))
    array([[ 0.5, -0.5],
           [ 0. ,  1. ]])
    """
    xp = namespace_of(t)
    if xp is not np:
        return xp.linalg.inv(_triangle(xp, t, lower))
    from scipy.linalg import get_lapack_funcs

    (trtri,) = get_lapack_funcs(("trtri",), (t,))
    return trtri(t, lower=lower, overwrite_c=overwrite)[0]


def triangular_square(t: Array, *, overwrite: bool = False) -> Array:
    """``T T'`` of the upper triangle of t, in that triangle.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import triangular_square
    >>> np.triu(triangular_square(np.array([[1.0, 2.0], [0.0, 3.0]])))
    array([[5., 6.],
           [0., 9.]])
    """
    xp = namespace_of(t)
    if xp is not np:
        upper = xp.triu(t)
        return upper @ xp.matrix_transpose(upper)
    from scipy.linalg import get_lapack_funcs

    (lauum,) = get_lapack_funcs(("lauum",), (t,))
    return lauum(t, lower=False, overwrite_c=overwrite)[0]


def gram_product(x: Array, total: Array | None = None, *, lower: bool = False) -> Array:
    """``x'x``, or that added to ``total``: one triangle of it, in Fortran's order.

    Parameters
    ----------
    x : array of shape (n, m)
    total : array of shape (m, m), optional
        In Fortran's order; overwritten.
    lower : bool

    Returns
    -------
    array of shape (m, m)

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import gram_product
    >>> np.triu(gram_product(np.array([[1.0, 2.0], [3.0, 4.0]])))
    array([[10., 14.],
           [ 0., 20.]])
    """
    xp = namespace_of(x) if total is None else namespace_of(x, total)
    if xp is not np:
        square = xp.matrix_transpose(x) @ x
        return square if total is None else total + square
    from scipy.linalg import get_blas_funcs

    (syrk,) = get_blas_funcs(("syrk",), (x,))
    a, trans = (x, 1) if x.flags.f_contiguous else (x.T, 0)
    if total is None:
        return syrk(1.0, a, trans=trans, lower=lower)
    return syrk(1.0, a, trans=trans, lower=lower, beta=1.0, c=total, overwrite_c=True)


def symmetric_product(a: Array, x: Array, *, lower: bool = False) -> Array:
    """``a x`` of a symmetric matrix of which one triangle is read; x of shape (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import symmetric_product
    >>> symmetric_product(np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([1.0, 1.0]))
    array([3., 5.])
    """
    xp = namespace_of(a, x)
    if xp is not np:
        half = _triangle(xp, a, lower)
        return half @ x + xp.matrix_transpose(half) @ x - xp.linalg.diagonal(a) * x
    from scipy.linalg import get_blas_funcs

    (symv,) = get_blas_funcs(("symv",), (a, x))
    return symv(1.0, a, x, lower=lower)


def qr(a: Array) -> tuple[Array, Array]:
    """Orthonormal columns and an upper triangle whose product is a; also of many, (..., n, m).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import qr
    >>> q, r = qr(np.array([[3.0], [4.0]]))
    >>> np.abs(r)
    array([[5.]])
    """
    q, r = namespace_of(a).linalg.qr(a)
    return q, r


def lstsq(a: Array, b: Array) -> Array:
    """The x of least norm among those that minimise ``|a x - b|``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import lstsq
    >>> lstsq(np.array([[1.0], [1.0]]), np.array([1.0, 3.0])).round(12)
    array([2.])
    """
    xp = namespace_of(a, b)
    if xp is not np:
        return xp.linalg.pinv(a) @ b
    return np.linalg.lstsq(a, b, rcond=None)[0]


def norm(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """Euclidean norms along an axis, or of all entries.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import norm
    >>> norm(np.array([[3.0, 4.0], [0.0, 1.0]]), axis=1)
    array([5., 1.])
    """
    xp = namespace_of(x)
    if xp is not np:
        return xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims)
    return np.linalg.norm(x, axis=axis, keepdims=keepdims)


def helmert(n: int) -> np.ndarray:
    """Orthonormal rows, n - 1 of them, that sum to zero each."""
    from scipy.linalg import helmert

    return helmert(n)
