"""Cholesky's factorisation of a symmetric matrix with a ridge on its diagonal.

A C-ordered symmetric matrix is, read along its columns, itself. So LAPACK takes the transpose, a
view in Fortran's order, and no copy is made (``columns``). The factor goes to one triangle and the
other one stays as it was: with the diagonal kept aside the matrix can be put back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from .. import _check
from .._types import Array
from . import blocked
from .dense import triangular_inverse, triangular_solve
from .namespace import namespace_of
from .spectra import eigvalsh, resolution

TILE = 128
"""Rows and columns that are mirrored at a time."""
EXACT = 2000
"""Up to so many rows a failure is told by the smallest eigenvalue, beyond by a bound on it."""


def columns(a: Array) -> Array:
    """A contiguous symmetric matrix in Fortran's order, the same memory."""
    return a.T if a.flags.c_contiguous else a


class Cholesky:
    """``a + ridge I = U'U``, or ``L L'``, and what is solved with it.

    Parameters
    ----------
    a : array of shape (n, n)
        Symmetric; one triangle is read.
    ridge : float, or array of shape (n,)
        Added to the diagonal as it is.
    lower : bool
        Which triangle is read and gets the factor: the upper one gets U, the lower one L.
    overwrite : bool
        Work in a, where it is in Fortran's order. ``restore`` takes what the factor's triangle was
        from the other one.
    condition : bool
        Estimate the condition number, which ``sound`` needs.

    Attributes
    ----------
    triangle : array of shape (n, n)
        The factor; the other triangle is not cleared.
    order : int
        That of the first minor that is not positive definite, in which case there is no factor;
        else 0.
    rcond : float
        One over the condition number in the 1-norm, by LAPACK's estimate from above; 0 without a
        factor, NaN where it was not asked for.

    Notes
    -----
    n^3/3 flops. Of a NumPy array with more than 4000 rows it is done in blocks, and Ctrl-C stops it
    within a second; an array that was to be overwritten is scratch then.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import Cholesky
    >>> factor = Cholesky(np.array([[3.0, 2.0], [2.0, 4.0]]), 1.0)
    >>> factor.order, factor.solve(np.array([8.0, 9.0]))
    (0, array([1.375, 1.25 ]))
    >>> Cholesky(np.array([[1.0, 2.0], [2.0, 1.0]])).order
    2
    """

    def __init__(
        self,
        a: Array,
        ridge: float | Array = 0.0,
        *,
        lower: bool = False,
        overwrite: bool = False,
        condition: bool = False,
    ) -> None:
        xp = namespace_of(a)
        self.lower, self._ridge = lower, ridge
        self.rcond = 0.0 if condition else math.nan
        # what it takes to put a back: all of it, or what of it is lost
        self._kept = a.diagonal().copy() if xp is np else a
        shifted = _with_ridge(a, ridge, overwrite)
        size = _largest_sum(xp, shifted) if condition else 0.0
        if xp is not np:
            self.order, self.triangle = _factor(xp, shifted, lower)
            if condition and not self.order:
                inverse = self.solve(_unit(xp, a))
                self.rcond = 1 / (size * _largest_sum(xp, inverse))
            return
        self.order, self.triangle = _potrf(shifted, lower), shifted
        if condition and not self.order:
            (pocon,) = _lapack(("pocon",), shifted)
            self.rcond = float(pocon(shifted, size, uplo="L" if lower else "U")[0])

    @property
    def sound(self) -> bool:
        """Whether what is solved with the factor has any correct digits."""
        eps = namespace_of(self.triangle).finfo(self.triangle.dtype).eps
        return not self.order and self.rcond > resolution(self.triangle.shape[0], eps)

    def solve(self, b: Array) -> Array:
        """``(a + ridge I)^-1 b``, for b of shape (n,) or (n, r)."""
        if namespace_of(self.triangle) is not np:
            half = self.whiten(b)
            return triangular_solve(self.triangle, half, lower=self.lower, transpose=self.lower)
        found = np.array(b.reshape(len(b), -1), self.triangle.dtype, order="F")
        if found.size:
            (potrs,) = _lapack(("potrs",), self.triangle)
            found = potrs(self.triangle, found, lower=self.lower, overwrite_b=True)[0]
        return found.reshape(b.shape)

    def whiten(self, b: Array) -> Array:
        """``U'^-1 b = L^-1 b``, whose squares are those of b under ``(a + ridge I)^-1``."""
        return triangular_solve(self.triangle, b, lower=self.lower, transpose=not self.lower)

    def log_det(self) -> float:
        """The logarithm of the determinant of ``a + ridge I``."""
        xp = namespace_of(self.triangle)
        if xp is not np:
            diagonal = xp.astype(xp.linalg.diagonal(self.triangle), xp.float64)
            return 2 * float(xp.sum(xp.log(diagonal)))
        return 2 * float(np.log(self.triangle.diagonal(), dtype=np.float64).sum())

    def inverse_diagonal(self) -> Array:
        """The diagonal of ``(a + ridge I)^-1`` in float64; the factor is lost."""
        xp, n = namespace_of(self.triangle), self.triangle.shape[0]
        if xp is np and n > blocked.WHOLE:
            return blocked.inverse_diagonal(self.triangle, self.lower)
        inverse = triangular_inverse(self.triangle, lower=self.lower, overwrite=True)
        inverse = inverse.T if self.lower else inverse
        if xp is not np:
            return xp.sum(xp.astype(inverse, xp.float64) ** 2, axis=1)
        # 64 rows at a time, from their diagonal on: what is left of it is not the inverse's
        out = np.empty(n)
        for i in range(0, n, 64):
            rows = np.triu(inverse[i : i + 64, i:])
            out[i : i + 64] = np.square(rows, dtype=np.float64).sum(1)
        return out

    def restore(self) -> Array:
        """The matrix a again, made exactly symmetric; in place of the factor, which is lost."""
        if namespace_of(self.triangle) is not np:
            return self._kept
        _mirror(self.triangle.T if self.lower else self.triangle, self._kept)
        return self.triangle

    def matrix(self) -> Array:
        """The matrix a again, in a copy."""
        if namespace_of(self.triangle) is not np:
            return self._kept
        copy = np.array(self.triangle, order="F")
        _mirror(copy.T if self.lower else copy, self._kept)
        return copy

    def refuse(self, remedy: str) -> NoReturn:
        """Say by how much there is no factor, with a ridge that is a number; a is put back."""
        _check.indefinite(self.order, *self._shortfall(), remedy=remedy)

    def _shortfall(self) -> tuple[str, float, bool]:
        """How far it is, in words; what to add to the ridge; whether that is certain."""
        xp, n, ridge = namespace_of(self.triangle), self.triangle.shape[0], self._ridge
        certain = xp is not np or n <= EXACT
        if certain:
            values = eigvalsh(self.restore())
            least, most = float(values[0]) + ridge, float(values[-1]) + ridge
            words = f"{least:.3g}"
        else:
            least = self._least_bound()
            words = f"at most {least:.3g}"
            most = float(self._kept.sum()) + n * ridge
            self.restore()
        eps = float(xp.finfo(self.triangle.dtype).eps)
        more = max(-1.1 * least, 0.0) + n * eps * abs(most)
        digit = 10.0 ** (math.floor(math.log10(more)) - 1) if more else 1.0
        return words, math.ceil(more / digit * (1 - 1e-12)) * digit, certain

    def _least_bound(self) -> float:
        """A bound from above on the smallest eigenvalue, from a factorisation that failed.

        With A the minor before the failure, b the column that follows and d its diagonal entry, the
        vector (-A^-1 b, 1) has the quadratic form d - b' A^-1 b, the pivot: the bound is that over
        the vector's square.
        """
        f, k = self.triangle.T if self.lower else self.triangle, self.order - 1
        diagonal(f)[k:] = 1  # so that solving with all of f leaves zeros behind the minor
        b = np.zeros(len(f), f.dtype)
        b[:k] = f[k, :k]
        w = triangular_solve(f, b, transpose=True)
        w[k:] = 0
        v = triangular_solve(f, w)
        pivot = self._kept[k] + f.dtype.type(self._ridge)
        return float((pivot - w @ w) / (1 + v @ v))


def cholesky(
    a: Array | Callable[[], Array],
    ridge: float = 0.0,
    *,
    lower: bool = False,
    overwrite: bool = False,
    on_indefinite: str = "raise",
    eps: float | None = None,
    remedy: str = "a pseudo-inverse",
) -> Cholesky:
    """The factor of ``a + ridge I``, with one of two policies where there is none.

    Parameters
    ----------
    a, ridge, lower, overwrite
        As in ``Cholesky``, whose ``order`` is for callers with a policy of their own.
    on_indefinite : {"raise", "jitter"}
        "raise" is ``LinAlgError``, with the smallest eigenvalue and what ridge would do. "jitter"
        adds as little to the diagonal as it takes: ``eps`` times its mean, ten times that, and so
        on. Each try needs a again: it is copied, or given as a function that makes a matrix in
        Fortran's order, which is overwritten.
    eps : float, optional
        That of the dtype of a by default; larger where entries are not known so well.
    remedy : str
        What the message of "raise" names beside a larger ridge.

    Returns
    -------
    Cholesky

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import cholesky
    >>> factor = cholesky(np.ones((2, 2)), on_indefinite="jitter")
    >>> np.triu(factor.triangle).round(6)
    array([[1., 1.],
           [0., 0.]])
    """
    if on_indefinite == "raise":
        factor = Cholesky(a, ridge, lower=lower, overwrite=overwrite)
        return factor.refuse(remedy) if factor.order else factor
    jitter = 0.0
    while True:
        shifted = _with_ridge(a(), ridge, True) if callable(a) else _with_ridge(a, ridge, False)
        factor = Cholesky(shifted, jitter, lower=lower, overwrite=True)
        if not factor.order:
            return factor
        xp = namespace_of(shifted)
        trace = factor._kept.sum() if xp is np else xp.linalg.trace(factor._kept)
        mean = float(trace) / shifted.shape[0]
        unit = float(xp.finfo(shifted.dtype).eps) if eps is None else eps
        jitter = 10 * jitter if jitter else unit * _check.positive_diagonal(mean)


def _lapack(names: tuple[str, ...], a: Array):
    from scipy.linalg import get_lapack_funcs

    return get_lapack_funcs(names, (a,))


def diagonal(f: Array) -> Array:
    """The diagonal, as a view that can be written to."""
    return np.einsum("ii->i", f)


def _with_ridge(a: Array, ridge: float | Array, overwrite: bool) -> Array:
    """``a + ridge I``; of NumPy's arrays in Fortran's order, in a itself if it may and has it."""
    xp = namespace_of(a)
    if xp is not np:
        return a + ridge * _unit(xp, a)
    f = a if overwrite and a.flags.f_contiguous else np.array(a, order="F")
    diagonal(f)[...] += np.asarray(ridge).astype(f.dtype)
    return f


def _unit(xp, a: Array) -> Array:
    return xp.eye(a.shape[0], dtype=a.dtype, device=a.device)


def _potrf(f: Array, lower: bool) -> int:
    """One triangle of f <- its factor; the order of the first minor that fails, or 0."""
    if len(f) > blocked.WHOLE:
        return blocked.potrf(f, lower)
    (potrf,) = _lapack(("potrf",), f)
    return potrf(f, lower=lower, clean=False, overwrite_a=True)[1]


def _factor(xp, a: Array, lower: bool) -> tuple[int, Array]:
    """The same by a namespace's own function, which does not say where it failed: by bisection."""

    def attempt(m: int) -> Array | None:
        # A library raises, or returns what is not finite.
        try:
            found = xp.linalg.cholesky(a[:m, :m], upper=not lower)
        except np.linalg.LinAlgError:
            return None
        return found if bool(xp.all(xp.isfinite(xp.linalg.diagonal(found)))) else None

    fine, fails = 0, a.shape[0]
    whole = attempt(fails)
    if whole is not None:
        return 0, whole
    while fails - fine > 1:
        middle = (fine + fails) // 2
        fine, fails = (fine, middle) if attempt(middle) is None else (middle, fails)
    return fails, a


def _largest_sum(xp, a: Array) -> float:
    """The largest sum of magnitudes along a column: the 1-norm."""
    if xp is not np:
        return float(xp.max(xp.sum(xp.abs(a), axis=0)))
    return max(float(np.abs(a[:, j : j + 8]).sum(0).max()) for j in range(0, a.shape[1], 8))


def _mirror(f: Array, on: Array) -> None:
    """The upper triangle from the lower one, and the diagonal."""
    n = len(f)
    for i in range(0, n, TILE):
        for j in range(i + TILE, n, TILE):
            f[i : i + TILE, j : j + TILE] = f[j : j + TILE, i : i + TILE].T
        part = f[i : i + TILE, i : i + TILE]
        part[...] = np.tril(part, -1) + np.tril(part, -1).T
    diagonal(f)[...] = on
