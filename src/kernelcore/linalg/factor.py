"""Cholesky's factorisation of a symmetric matrix with a ridge on its diagonal.

The transpose of a symmetric matrix in C order is a view of it in Fortran order. LAPACK takes that
view, and no copy is made (``columns``). The factor goes to one triangle and the other one stays as
it was. With it and a copy of the diagonal the matrix can be put back.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .. import _check
from .._types import Array
from ..engine import offer
from . import blocked
from .dense import lapack, namespace_of, triangular_inverse, triangular_solve
from .spectra import eigvalsh, resolution

TILE = 128
"""The rows and columns that are mirrored at a time."""
EXACT = 2000
"""The rows up to which an error reports the smallest eigenvalue; beyond, a bound on it."""


def columns(a: Array) -> Array:
    """Return a contiguous symmetric matrix in Fortran order, in the same memory, if NumPy's."""
    return a.T if isinstance(a, np.ndarray) and a.flags.c_contiguous else a


class Cholesky:
    """The factor of ``a + ridge I = U'U``, or ``L L'``, and what is solved with it.

    Parameters
    ----------
    a : array of shape (n, n)
        Symmetric; one triangle is read.
    ridge : float, or array of shape (n,)
        Added to the diagonal as it is.
    lower : bool
        Which triangle is read and gets the factor: the upper one gets U, the lower one L.
    overwrite : bool
        Work in a, if it is in Fortran order. ``restore`` copies the other triangle back over the
        factor.
    condition : bool
        Whether to estimate the condition number, which ``sound`` needs.

    Attributes
    ----------
    triangle : array of shape (n, n)
        The factor; the other triangle is not cleared.
    order : int
        The order of the first minor that is not positive definite, in which case there is no
        factor; else 0.
    rcond : float
        One over the condition number in the 1-norm, by LAPACK's estimate from above; 0 without a
        factor, NaN where it was not asked for.

    Notes
    -----
    It takes n^3/3 flops. A NumPy array with more than 4000 rows is factored in blocks, and Ctrl-C
    stops that within a second; an array that was to be overwritten is then scratch.

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
        self, a: Array, ridge: float | Array = 0.0, *,
        lower: bool = False, overwrite: bool = False, condition: bool = False,
    ) -> None:  # fmt: skip
        xp = namespace_of(a)
        self.lower, self._ridge = lower, ridge
        self.rcond = 0.0 if condition else math.nan
        # What it takes to put a back: all of a, or the part that is lost.
        self._kept = a.diagonal().copy() if xp is np else a
        shifted = with_ridge(a, ridge, overwrite)
        size = _largest_sum(xp, shifted) if condition else 0.0
        self.order, self.triangle = _factor(xp, shifted, lower)
        if condition and not self.order:
            if xp is not np:
                self.rcond = 1 / (size * _largest_sum(xp, self.solve(_unit(xp, a))))
            else:
                uplo = "L" if lower else "U"
                self.rcond = float(lapack("pocon", shifted)(shifted, size, uplo=uplo)[0])

    @property
    def sound(self) -> bool:
        """Whether what is solved with the factor has any correct digits."""
        eps = namespace_of(self.triangle).finfo(self.triangle.dtype).eps
        return not self.order and self.rcond > resolution(self.triangle.shape[0], eps)

    def solve(self, b: Array) -> Array:
        """Return ``(a + ridge I)^-1 b``, for b of shape (n,) or (n, r)."""
        if namespace_of(self.triangle) is not np:
            half = self.whiten(b)
            return triangular_solve(self.triangle, half, lower=self.lower, transpose=self.lower)
        found = np.array(b.reshape(len(b), -1), self.triangle.dtype, order="F")
        if found.size:
            potrs = lapack("potrs", self.triangle)
            found = potrs(self.triangle, found, lower=self.lower, overwrite_b=True)[0]
        return found.reshape(b.shape)

    def whiten(self, b: Array) -> Array:
        """Return ``U'^-1 b = L^-1 b``, whose squares are those of b under ``(a + ridge I)^-1``."""
        return triangular_solve(self.triangle, b, lower=self.lower, transpose=not self.lower)

    def log_det(self) -> float:
        """Return the logarithm of the determinant of ``a + ridge I``."""
        xp = namespace_of(self.triangle)
        if xp is not np:
            diagonal = xp.astype(xp.linalg.diagonal(self.triangle), xp.float64)
            return 2 * float(xp.sum(xp.log(diagonal)))
        return 2 * float(np.log(self.triangle.diagonal(), dtype=np.float64).sum())

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of ``(a + ridge I)^-1`` in float64; the factor is lost."""
        xp, n = namespace_of(self.triangle), self.triangle.shape[0]
        if xp is np and n > blocked.WHOLE:
            return blocked.inverse_diagonal(self.triangle, self.lower)
        inverse = triangular_inverse(self.triangle, lower=self.lower, overwrite=True)
        inverse = inverse.T if self.lower else inverse
        if xp is not np:
            return xp.sum(xp.astype(inverse, xp.float64) ** 2, axis=1)
        # 64 rows at a time, from their diagonal on: entries left of it are not the inverse's
        out = np.empty(n)
        for i in range(0, n, 64):
            rows = np.triu(inverse[i : i + 64, i:])
            out[i : i + 64] = np.square(rows, dtype=np.float64).sum(1)
        return out

    def restore(self, *, copy: bool = False) -> Array:
        """Return the matrix a, made exactly symmetric: in place of the factor, or in a copy."""
        if namespace_of(self.triangle) is not np:
            return self._kept
        f = np.array(self.triangle, order="F") if copy else self.triangle
        _mirror(f.T if self.lower else f, self._kept)
        return f

    def refuse(self, remedy: str) -> NoReturn:
        """Put a back and raise an error that says what ridge would do; ridge is one number."""
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
        more = math.ceil(more / digit * (1 - 1e-12)) * digit
        _check.indefinite(self.order, words, more, certain, remedy)

    def _least_bound(self) -> float:
        """Bound the smallest eigenvalue from above, by a factorisation that failed.

        With A the minor before the failure, b the column that follows and d its diagonal entry, the
        vector (-A^-1 b, 1) has the quadratic form d - b' A^-1 b, the pivot: the bound is the pivot
        over the vector's square.
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
    a: Array | Callable[[], Array], ridge: float = 0.0, *,
    lower: bool = False, overwrite: bool = False, on_indefinite: str = "raise",
    eps: float | None = None, remedy: str = "a pseudo-inverse",
) -> Cholesky:  # fmt: skip
    """Return the factor of ``a + ridge I``, with one of two policies where there is none.

    Parameters
    ----------
    a, ridge, lower, overwrite
        As in ``Cholesky``, whose ``order`` serves callers that have a policy of their own.
    on_indefinite : {"raise", "jitter"}
        "raise" raises a ``LinAlgError`` with the smallest eigenvalue and the ridge that would do.
        "jitter" adds as little to the diagonal as it takes: ``eps`` times its mean, ten times that,
        and so on. Each attempt needs a again: a is copied, or is a function that returns a new
        matrix in Fortran order, which is overwritten.
    eps : float, optional
        By default that of the dtype of a; pass more where the entries are less exact.
    remedy : str
        What the message of "raise" suggests besides a larger ridge.

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
        matrix = a() if callable(a) else a
        factor = Cholesky(matrix, ridge, lower=lower, overwrite=overwrite)
        return factor.refuse(remedy) if factor.order else factor
    jitter = 0.0
    while True:
        shifted = with_ridge(a(), ridge, True) if callable(a) else with_ridge(a, ridge, False)
        factor = Cholesky(shifted, jitter, lower=lower, overwrite=True)
        if not factor.order:
            return factor
        xp = namespace_of(shifted)
        trace = factor._kept.sum() if xp is np else xp.linalg.trace(factor._kept)
        mean = float(trace) / shifted.shape[0]
        unit = float(xp.finfo(shifted.dtype).eps) if eps is None else eps
        rule = "have a diagonal of positive, finite mean to be factored"
        _check.must(0 < mean < math.inf, "K", rule, mean)
        jitter = 10 * jitter if jitter else unit * mean


def diagonal(f: Array) -> Array:
    """Return the diagonal, as a view that can be written to."""
    return np.einsum("ii->i", f)


def with_ridge(a: Array, ridge: float | Array, overwrite: bool) -> Array:
    """Return ``a + ridge I``; NumPy's in Fortran order, in a itself if that is so and allowed."""
    xp = namespace_of(a)
    if xp is not np:
        each = ridge if isinstance(ridge, float) else _check.cast(ridge, a.dtype)
        return a + each * _unit(xp, a)
    f = a if overwrite and a.flags.f_contiguous else np.array(a, order="F")
    diagonal(f)[...] += np.asarray(ridge).astype(f.dtype)
    return f


def _unit(xp: Any, a: Array) -> Array:
    return xp.eye(a.shape[0], dtype=a.dtype, device=a.device)


def _factor(xp: Any, a: Array, lower: bool) -> tuple[int, Array]:
    """Return the order of the first minor that fails, or 0, and the factor; NumPy's in place of a.

    Of other libraries' functions bisection finds the minor at which they fail.
    """
    if xp is np and len(a) > blocked.WHOLE:
        return blocked.potrf(a, lower), a
    if xp is np:
        return lapack("potrf", a)(a, lower=lower, clean=False, overwrite_a=True)[1], a

    failing = offer(a, "failing") or contextlib.nullcontext

    def attempt(m: int) -> Array | None:
        # Some libraries raise, or do so where they are told to; others return numbers that are not
        # finite.
        try:
            with failing():
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


def _largest_sum(xp: Any, a: Array) -> float:
    """Return the largest sum of magnitudes along a column: the 1-norm."""
    if xp is not np:
        return float(xp.max(xp.sum(xp.abs(a), axis=0)))
    return max(float(np.abs(a[:, j : j + 8]).sum(0).max()) for j in range(0, a.shape[1], 8))


def _mirror(f: Array, on: Array) -> None:
    """Set the upper triangle from the lower one, and the diagonal from ``on``."""
    n = len(f)
    for i in range(0, n, TILE):
        for j in range(i + TILE, n, TILE):
            f[i : i + TILE, j : j + TILE] = f[j : j + TILE, i : i + TILE].T
        part = f[i : i + TILE, i : i + TILE]
        part[...] = np.tril(part, -1) + np.tril(part, -1).T
    diagonal(f)[...] = on
