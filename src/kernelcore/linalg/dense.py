"""Namespaces, triangular systems, symmetric products, and functions that every namespace has.

Where one triangle of a result counts, the other one is not cleared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from .._types import Array
from ..engine import offer


def namespace_of(*arrays: Any) -> Any:
    """Return the namespace that all arrays share: NumPy itself, or another library's.

    Another library's is as ``array_api_compat`` gives it, so that functions have the names and
    arguments of the Python array API standard (https://data-apis.org/array-api). Arrays of NumPy
    need no package for that, and none is imported for them.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import namespace_of
    >>> namespace_of(np.eye(2), np.ones(2)) is np
    True
    """
    for a in arrays:
        if type(a) is not np.ndarray:
            break
    else:  # in a tenth of a microsecond: solvers ask for every step
        return np
    if all(isinstance(a, np.ndarray) for a in arrays):
        return np
    found = {_check.namespace(a) for a in arrays}
    if len(found) > 1 or np in found:  # what is no array counts as NumPy's
        _check.one_library(arrays)
    return found.pop()


def _triangle(xp: Any, t: Array, lower: bool) -> Array:
    return xp.tril(t) if lower else xp.triu(t)


def _blas(name: str, *arrays: Array) -> Any:
    from scipy.linalg import get_blas_funcs

    return get_blas_funcs(name, arrays)


def lapack(name: str, a: Array) -> Any:
    """Return a routine of LAPACK for the dtype of a."""
    from scipy.linalg import get_lapack_funcs

    return get_lapack_funcs(name, (a,))


def triangular_solve(
    t: Array, b: Array, *, lower: bool = False, transpose: bool = False, overwrite: bool = False
) -> Array:
    """Return the x with ``t x = b`` or, if ``transpose``, ``t' x = b``; one triangle of t is read.

    b and x have shape (n,) or (n, r). ``overwrite`` works in b, which is then in C order: its
    transpose has the order of BLAS.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import triangular_solve
    >>> triangular_solve(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([2.0, 3.0]), lower=True)
    array([1., 2.])
    """
    xp = namespace_of(t, b)
    if xp is not np:  # the standard has no substitution
        own = offer(t, "solve_triangular")
        if own is not None:
            return own(t, b, lower=lower, transpose=transpose)
        half = _triangle(xp, t, lower)
        return xp.linalg.solve(xp.matrix_transpose(half) if transpose else half, b)
    if not overwrite:
        from scipy.linalg import solve_triangular

        return solve_triangular(t, b, lower=lower, trans=int(transpose), check_finite=False)
    how = {"side": 1, "lower": lower, "trans_a": not transpose, "overwrite_b": 1}
    return _blas("trsm", b)(1.0, t, b.T, **how).T


def triangular_inverse(t: Array, *, lower: bool = False, overwrite: bool = False) -> Array:
    """Return the inverse of one triangle of t, in that triangle.

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
    return lapack("trtri", t)(t, lower=lower, overwrite_c=overwrite)[0]


def triangular_square(t: Array, *, overwrite: bool = False) -> Array:
    """Return ``T T'`` of the upper triangle T of t, in that triangle.

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
    return lapack("lauum", t)(t, lower=False, overwrite_c=overwrite)[0]


def gram_product(x: Array, total: Array | None = None, *, lower: bool = False) -> Array:
    """Return one triangle of ``x'x``, or of ``total + x'x``, in Fortran order.

    x has shape (n, m). ``total``, of shape (m, m) and in Fortran order, is overwritten.

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
    a, trans = (x, 1) if x.flags.f_contiguous else (x.T, 0)
    onto = {} if total is None else {"beta": 1.0, "c": total, "overwrite_c": True}
    return _blas("syrk", x)(1.0, a, trans=trans, lower=lower, **onto)


def symmetric_product(a: Array, x: Array, *, lower: bool = False) -> Array:
    """Return ``a x`` for a symmetric a, of which one triangle is read, and x of shape (n,).

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
    return _blas("symv", a, x)(1.0, a, x, lower=lower)


def qr(a: Array) -> tuple[Array, Array]:
    """Return orthonormal columns and an upper triangle whose product is a, or each of a stack.

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
    """Return the x of least norm among those that minimise ``|a x - b|``.

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
    """Return the Euclidean norms along an axis, or of all entries.

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


def helmert(n: int) -> Array:
    """Return n - 1 orthonormal rows, each of which sums to zero."""
    from scipy.linalg import helmert

    return helmert(n)
