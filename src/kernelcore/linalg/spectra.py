"""Eigenvalues and eigenvectors of symmetric matrices.

None of this can be interrupted: LAPACK computes it in one call, and Ctrl-C acts after that.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._types import Array
from .dense import namespace_of

LARGEST = 32000
"""The largest n for divide and conquer, which counts 2 n^2 numbers of scratch in 32 bits."""


def resolution(n: int, eps: float) -> float:
    """Return the error of eigenvalues of an n x n matrix, relative to the largest.

    LAPACK's eigenvalues and vectors are those of K + E exactly. Rounding errors of n reflections
    add up like independent ones, so |E| is about sqrt(n) eps |K| at most, and so are the errors of
    entries that were rounded to the dtype. For small n, where a few errors weigh more, the result
    is 10 eps.
    """
    return max(10.0, math.sqrt(n)) * float(eps)


def eigh(a: Array, *, overwrite: bool = False) -> tuple[Array, Array]:
    """Return the eigenvalues, smallest first, and the eigenvectors in columns.

    The lower triangle of a is read. ``overwrite`` works in a, which is then in Fortran order.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import eigh
    >>> eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))[0]
    array([1., 3.])
    """
    xp = namespace_of(a)
    if xp is not np or not overwrite:
        values, vectors = xp.linalg.eigh(a)
        return values, vectors
    import scipy.linalg

    # Divide and conquer leaves vectors orthogonal to 1e-15, multiple representations to 1e-12.
    driver = "evd" if len(a) <= LARGEST else "evr"
    return scipy.linalg.eigh(a, overwrite_a=True, check_finite=False, driver=driver)


def eigvalsh(a: Array) -> Array:
    """Return the eigenvalues, smallest first."""
    xp = namespace_of(a)
    if xp is not np:
        return xp.linalg.eigvalsh(a)
    import scipy.linalg

    return scipy.linalg.eigvalsh(a, check_finite=False)


def top_eigh(a: Array, count: int, *, vectors: bool = True) -> tuple[Array, Array | None]:
    """Return the largest eigenvalues, ascending, and their eigenvectors if asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import top_eigh
    >>> top_eigh(np.diag([3.0, 1.0, 2.0]), 2, vectors=False)
    (array([2., 3.]), None)
    """
    xp, n = namespace_of(a), a.shape[0]
    if xp is np:
        import scipy.linalg

        part = {"subset_by_index": (n - count, n - 1), "eigvals_only": not vectors}
        found = scipy.linalg.eigh(a, check_finite=False, **part)
        return found if vectors else (found, None)
    if not vectors:
        return xp.linalg.eigvalsh(a)[n - count :], None
    values, basis = xp.linalg.eigh(a)
    return values[n - count :], basis[:, n - count :]


def lanczos(a: Any, count: int, *, vectors: bool = True) -> tuple[Array, Array | None]:
    """Return what ``top_eigh`` returns, in any order, by Lanczos's method from a fixed start.

    ``a`` is an array or a ``LinearOperator``. For arrays that are not NumPy's this is ``top_eigh``.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    if not isinstance(a, LinearOperator) and namespace_of(a) is not np:
        return top_eigh(a, count, vectors=vectors)
    start = np.random.default_rng(0).standard_normal(a.shape[0])
    found = eigsh(a, count, which="LA", v0=start, return_eigenvectors=vectors)
    return found if vectors else (found, None)


def eigvalsh_tridiagonal(on: Array, off: Array) -> Array:
    """Return the eigenvalues, smallest first, of a matrix with entries on and next to the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import eigvalsh_tridiagonal
    >>> eigvalsh_tridiagonal(np.zeros(2), np.ones(1))
    array([-1.,  1.])
    """
    xp = namespace_of(on, off)
    if xp is np:
        import scipy.linalg

        return scipy.linalg.eigvalsh_tridiagonal(on, off)
    like = {"dtype": on.dtype, "device": on.device}
    n = on.shape[0]
    beside = xp.concat([off, xp.zeros(1, **like)]) * xp.eye(n, k=-1, **like)
    return xp.linalg.eigvalsh(on * xp.eye(n, **like) + beside + xp.matrix_transpose(beside))
