"""Ridge regression on m centres: the f = k(., C) a that minimises |f(X) - y|^2 + ridge |f|^2.

With K_mm = T'T and b = T a the features Phi = K_nm T^-1 have (Phi'Phi + ridge I) b = Phi'y. If the
centres are drawn from the points, Phi'Phi is near (n/m) T W T' with their weights W, and with
A'A = (n/m) T W T' + ridge I the matrix

    A^-T (T^-T K_mn K_nm T^-1 + ridge I) A^-1

is near the identity, however small the ridge (Rudi, Carratino and Rosasco 2017): conjugate
gradients take a dozen iterations, in float32. A ridge that is slight compared with (n/m) T W T' is
left out of A'A, whose factor is then known already. The other way, to sum K_mn K_nm, squares the
condition of K_mm and is done in float64. Randomly pivoted Cholesky finds centres and Phi itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _check
from .._keywords import former_attribute, synonyms
from .._types import Array, ArrayLike
from ..engine.memory import aligned, budget
from ..engine.progress import Progress
from ..kernels import Kernel
from ..linalg import (
    cholesky,
    gram_product,
    namespace_of,
    triangular_inverse,
    triangular_solve,
    triangular_square,
)
from ..linalg.arrays import (
    cast,
    copied,
    numbers,
    on_diagonal,
    placed,
    put,
    reshaped,
    summed,
    take,
    zeros,
)
from ..linalg.blas import row_blocks, threaded
from ..linalg.thin import normal_product, transposed_product, undisturbed
from ..scale.matrix import of_kernel
from ..scale.operator import ALL, BLOCK_BYTES, GramOperator
from ._iterative import conjugate_gradients, largest_eigenvalue
from ._path import without_a_copy
from ._preconditioners import Seed, leverage_scores, pivoted

STEP = 512
"""The rows of a block in substitution."""
SLIGHT = 0.1
"""A ridge up to this share of the smallest eigenvalue is left out of a preconditioner."""
FREE = 0.01
"""The least 1 - H_ii from which a leave-one-out residual is computed."""
PER_COLUMN = 60
"""Up to this many centres for each column of y one factorisation is faster than iterations.

It takes n m^2 flops in float64, against some 13 iterations of 4 n m per column. For 60,000 points
and ten columns: 0.93 s against 1.31 with 500 centres, 1.93 against 1.53 with 800.
"""


@dataclass(eq=False, repr=False)
class NystromRidge:
    """A fitted model that ``nystrom_ridge`` returns.

    Attributes
    ----------
    kernel : Kernel
    centres : array of shape (m, d), of signals or of images
    alpha : array of shape (m,) or (m, r)
        Coefficients: predictions are ``kernel(x, centres) @ alpha``.
    indices : array of shape (m,), or None
        The rows of X that are the centres.
    solver : str
        The solver that was used.
    residuals : array of shape (iterations + 1,) or (iterations + 1, r), or None
        The residuals of conjugate gradients, in the preconditioned norm.
    """

    kernel: Kernel
    centres: Array
    alpha: Array
    indices: Array | None
    solver: str
    residuals: Array | None

    coefficients = former_attribute("coefficients", "alpha")

    @threaded
    def predict(self, X: Any, *, n_threads: int | None = None) -> Array:
        """Return ``kernel(X, centres) @ alpha``, in blocks of rows: shape (n,) or (n, r)."""
        if _check.on_a_device(self.centres):
            X = _check.beside(X, "X", self.centres, "centres")
        else:
            X = _check.real_array(X, "X")
        self.kernel._open(X, self.centres, 1)
        out = zeros((X.shape[0], *self.alpha.shape[1:]), X)
        for part, block in _blocks(self.kernel, X, self.centres, X.dtype):
            out[part, ...] = block @ self.alpha
        return out


def _blocks(
    kernel: Kernel, X: Array, centres: Array, dtype: Any = np.float64
) -> Iterator[tuple[slice, Array]]:
    """Yield ``kernel(X, centres)`` in blocks of rows, each in the memory of the last one."""
    n, m = X.shape[0], centres.shape[0]
    itemsize = np.dtype(_check.dtype_name(_check.dtype_in(np, dtype))).itemsize
    rows = min(n, max(1, BLOCK_BYTES // (itemsize * m)))
    buffer = np.empty((rows, m), X.dtype) if isinstance(X, np.ndarray) else None
    for part in row_blocks(n, rows):
        out = None if buffer is None else buffer[: part.stop - part.start]
        yield part, cast(kernel(take(X, part), centres, out=out), dtype)


def _shares(X: Array, m: int, indices: Array | None, weights: Any, root: Array | None) -> Array:
    """Return how many of n points each centre stands for, by their weights if they have some.

    Only the preconditioner sees this: a centre of weight near zero counts a little.
    """
    xp, n = namespace_of(X), X.shape[0]
    share = np.full(m, n / m) if weights is None else n / (m * weights)
    share = placed(share, X, np.float64)
    if root is None:
        return share
    square = cast(root, np.float64) ** 2
    own = xp.mean(square) if indices is None else take(square, indices)
    return share * xp.maximum(own, 1e-3 * xp.mean(square))


def _leverage(K: Any, m: int, ridge: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw centres by leverage scores; return their indices j, and n p_j if p_j are the chances."""
    share = leverage_scores(K, m, ridge, rng)
    chosen = rng.choice(len(share), m, replace=False, p=share)
    return chosen, len(share) * share[chosen]


class _Upper:
    """Substitution with an upper triangle for few columns: a block of rows at a time, by products.

    Blocks on the diagonal are inverted once. This is twice as fast as trtrs, which reads memory no
    better for ten columns than for one.
    """

    def __init__(self, upper: Array) -> None:
        self.upper, self.parts = upper, row_blocks(upper.shape[0], STEP)
        triu = namespace_of(upper).triu
        self.inverses = [triu(triangular_inverse(upper[p, p])) for p in self.parts]

    def solve(self, b: Array) -> Array:
        x = copied(b)
        for part, inverse in zip(self.parts[::-1], self.inverses[::-1], strict=True):
            x[part, :] = inverse @ x[part, :]
            x[: part.start, :] -= self.upper[: part.start, part] @ x[part, :]
        return x

    def solve_transposed(self, b: Array) -> Array:
        x = copied(b)
        for part, inverse in zip(self.parts, self.inverses, strict=True):
            x[part, :] = inverse.T @ x[part, :]
            x[part.stop :, :] -= self.upper[part, part.stop :].T @ x[part, :]
        return x


class _Turned:
    """Substitution with R T', R = diag(root), by the blocks of T that ``_Upper`` has inverted."""

    def __init__(self, T: _Upper, root: Array) -> None:
        self.T, self.root, self.home = T, root[:, None], root
        self.shape, self.dtype = T.upper.shape, root.dtype

    def solve(self, b: Array) -> Array:
        return self.T.solve_transposed(b / self.root)

    def solve_transposed(self, b: Array) -> Array:
        return self.T.solve(b) / self.root

    def __matmul__(self, b: Array) -> Array:
        """Return the inverse of T R^2 T' times b."""
        return self.solve(self.solve_transposed(b))

    def dwarfs(self, ridge: float) -> bool:
        """Return whether the ridge is slight compared with all eigenvalues of T R^2 T'."""
        # an upper bound on the smallest eigenvalue, which costs nothing, first
        least = float(namespace_of(self.home).min(on_diagonal(self.T.upper) * self.home)) ** 2
        return ridge <= SLIGHT * least and ridge * largest_eigenvalue(self) <= SLIGHT


class _Normal:
    """The preconditioned normal matrix, as an operator."""

    def __init__(
        self, across: Array, inside: Callable[[], Array], ridge: float, shares: Array
    ) -> None:
        """Factor ``inside()``, which is K_mm in memory that may be overwritten."""
        m = across.shape[1]
        self.across, self.ridge, self.home = across, ridge, across
        self.shape, self.dtype = (m, m), across.dtype
        # The transpose of K_mm, which is symmetric, is K_mm in LAPACK's order.
        upper = cholesky(lambda: inside().T, on_indefinite="jitter").triangle
        self.T = _Upper(upper)
        root = cast(namespace_of(shares).sqrt(shares), self.dtype)
        self.A: _Turned | _Upper = _Turned(self.T, root)
        if not self.A.dwarfs(ridge):
            a = cholesky(  # of T W T', from its factor T sqrt(W)
                lambda: triangular_square(upper * root, overwrite=True),
                ridge, on_indefinite="jitter",
            )  # fmt: skip
            self.A = _Upper(a.triangle)

    def __matmul__(self, p: Array) -> Array:
        b = self.A.solve(p)
        square = normal_product(self.across, self.T.solve(b))
        return self.A.solve_transposed(self.T.solve_transposed(square) + self.ridge * b)

    def right(self, y: Array) -> Array:
        return self.A.solve_transposed(self.T.solve_transposed(transposed_product(self.across, y)))

    def coefficients(self, x: Array) -> Array:
        return self.T.solve(self.A.solve(x))


def _direct(
    kernel: Kernel, X: Array, y: Array, ridge: float, centres: Array, root: Array | None,
    told: Progress,
) -> Array:  # fmt: skip
    """Sum K_mn K_nm and K_mn y over blocks of rows, in float64, and solve by one factorisation."""
    m = centres.shape[0]
    # in Fortran order, which zeros have in any
    total, right = zeros((m, m), X, np.float64).T, zeros((m, y.shape[1]), X, np.float64)
    for part, block in _blocks(kernel, X, centres):
        if root is not None:
            block *= root[part][:, None]
        total = gram_product(block, total, lower=True)
        right += block.T @ y[part, :]
        told.at(part.stop)
    total += ridge * kernel(centres)
    return cholesky(total, lower=True, on_indefinite="jitter").solve(right)


def left_out(
    model: NystromRidge, X: Array, y: Array, ridge: float, weights: Any, copies: Array | None
) -> Array:
    """Return leave-one-out residuals of a model on its own points: shape of y, float64.

    The centres are kept. Residuals are NaN at points that are centres, since without the point
    nothing holds the coefficient of its centre and other points are predicted better; and where
    1 - H_ii is below ``FREE``, because it and the residual are then differences that cancel.

    The hat matrix K_nm (K_mn W K_nm + ridge K_mm)^-1 K_mn W has H_ii = w_i |L^-1 k_i|^2 on its
    diagonal, with the Cholesky factor L of the matrix in the middle, which is summed in float64.
    """
    kernel, centres, xp = model.kernel, model.centres, namespace_of(X)
    weight = zeros((X.shape[0],), X, np.float64) + 1.0 if weights is None else weights
    middle = ridge * cast(kernel(centres), np.float64)
    for part, block in _blocks(kernel, X, centres):
        middle += (block.T * weight[part]) @ block
    lower = xp.tril(cholesky(middle, lower=True, on_indefinite="jitter").triangle)
    out = zeros(y.shape, X, np.float64)
    for part, block in _blocks(kernel, X, centres):
        half = triangular_solve(lower, copied(block.T), lower=True, overwrite=True)
        leverage = weight[part] * summed(half * half, 0)
        share = xp.where(1 - leverage > FREE, 1 - leverage, np.nan)
        off = y[part, ...] - block @ model.alpha
        residual = reshaped(off, (off.shape[0], -1)) / share[:, None]
        some = None if copies is None else copies[part]
        out[part, ...] = reshaped(without_a_copy(residual, share[:, None], some), off.shape)
    if model.indices is not None:
        lost = zeros((centres.shape[0], *y.shape[1:]), X, np.float64) + np.nan
        out = put(out, numbers(model.indices).astype(np.intp), lost)
    return out


def centres_themselves(centres: Any, K: GramOperator) -> Array | None:
    """Return centres that are given as points, checked, or None for a number of them."""
    X = K.X
    if not isinstance(centres, np.ndarray | list | tuple) and _check.namespace(centres) is np:
        return None
    points = cast(_check.beside(centres, "centres", X, "X"), K.dtype)
    rule = f"be of one kind with the rows of X, of shape {X.shape[1:]}"
    _check.shaped(points.shape[1:] == X.shape[1:], points, "centres", rule)
    _check.some_rows(points, "centres")
    K.kernel._open(points, None, 1)
    return points


def number_of_centres(centres: Any, n: int) -> int:
    m = _check.count(centres, "centres", least=1)
    return _check.at_most(m, n, "centres", "the number of rows of X")


def given_centres(
    centres: Any, K: GramOperator, rng: np.random.Generator
) -> tuple[Array | None, Array]:
    """Return indices, or None, and centres: points that are given, or rows of X drawn uniformly."""
    points = centres_themselves(centres, K)
    if points is not None:
        return None, points
    indices = rng.choice(K.shape[0], number_of_centres(centres, K.shape[0]), replace=False)
    return placed(indices, K.X), take(K.X, indices)


@synonyms(rng="seed")
@threaded
def nystrom_ridge(
    kernel: Any, X: Any, y: ArrayLike, ridge: float = 0.0, *,
    centres: int | ArrayLike, sample_weight: ArrayLike | None = None, method: str = "uniform",
    solver: str = "auto", tol: float = 1e-3, max_iter: int = 200, max_memory: float = 4e9,
    progress: bool = False, seed: Seed = None, n_threads: int | None = None,
) -> NystromRidge:  # fmt: skip
    """Fit kernel ridge regression with predictors ``k(., centres) a`` only.

    It minimises ``|K_nm a - y|^2 + ridge a' K_mm a``: with all points as centres this is the ridge
    regression on ``K + ridge I``.

    Parameters
    ----------
    kernel : Kernel; or ``GramOperator`` of the points, with X None
    X : array of shape (n, d), of signals or of images
        The dtype of all work is that of X; float32 is enough.
    y : array of shape (n,) or (n, r)
    ridge : float
    centres : int, or array of the kind of X
        The number of centres to draw from the rows of X, or the centres themselves.
    sample_weight : array of shape (n,), optional
        Weights of the squared errors. They do not change which centres are drawn.
    method : {"uniform", "leverage", "rpcholesky"}
        How to draw centres: uniformly, by approximate ridge leverage scores, or by randomly pivoted
        Cholesky, which needs memory for ``n m`` numbers and twice the time.
    solver : {"auto", "cg", "direct"}
        Conjugate gradients on ``K_nm``, which is held; or sums over blocks of its rows, ``m^2``
        numbers in float64, and one factorisation. By default the latter is used if ``K_nm`` is
        larger than ``max_memory`` or ``kernelcore.get_memory()``, or m is at most 60 times the
        columns of y and K is not on a cluster. "rpcholesky" has its own solver.
    tol, max_iter
        The tolerance of conjugate gradients, a relative residual in the preconditioned norm, which
        is close to the relative error of the predictions on X; and their iterations at most.
    max_memory : float
        The bytes that decide "auto".
    progress : bool
        Write a line to stderr every two seconds.
    seed : None, int or Generator
    n_threads : int, optional
        ``get_threads()`` by default. With 1, products by BLAS take one thread as well.

    Returns
    -------
    NystromRidge
        With ``centres``, ``alpha`` and ``predict(X)``.

    Warns
    -----
    RuntimeWarning
        When conjugate gradients have not converged, with the residual.

    Notes
    -----
    ``n m`` entries of the kernel are computed once, or read from a ``GramOperator`` that keeps
    them. Two factorisations take ``m^3`` flops and an iteration ``4 n m`` per column; sums take
    ``n m^2`` in float64.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.linspace(-3, 3, 400)[:, None]
    >>> model = kc.solvers.nystrom_ridge(kc.Gaussian(1.0), X, np.sin(X[:, 0]), 1e-6, centres=30,
    ...                                  seed=0)
    >>> bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 1e-3)
    True
    """
    K: Any = of_kernel(kernel, X)
    kernel, X = K.kernel, K.X
    xp, n, dtype = namespace_of(X), K.shape[0], K.dtype
    y = _check.targets(y, "y", n, dtype, least=1, of="X", like=X)
    ridge = _check.non_negative(ridge, "ridge")
    method = _check.choice(method, "method", ("uniform", "leverage", "rpcholesky"))
    solver = _check.choice(solver, "solver", ("auto", "cg", "direct"))
    max_memory = _check.positive(max_memory, "max_memory")
    rng = _check.generator(seed, "seed")
    told = Progress("nystrom_ridge", n, _check.flag(progress, "progress"))
    table, outputs = reshaped(y, (n, -1)), y.shape[1:]
    root = _check.root_weights(sample_weight, n, dtype, X)
    if root is not None:
        table = root[:, None] * table
    indices = weights = None
    points = centres_themselves(centres, K)
    if points is None:
        m = number_of_centres(centres, n)
        if method == "rpcholesky":
            factor, pivots = pivoted(K, m, None, rng, progress)
            triangle = take(factor, pivots)
            triangle = np.asfortranarray(triangle) if xp is np else triangle
            if root is not None:
                factor *= root[:, None]
            square = gram_product(factor, lower=True)
            inner = cholesky(square, ridge, lower=True, on_indefinite="jitter")
            b = inner.solve(factor.T @ table)
            a = triangular_solve(triangle, b, lower=True, transpose=True)
            a, indices = reshaped(a, (-1, *outputs)), placed(pivots, X)
            return NystromRidge(kernel, take(X, pivots), a, indices, "factor", None)
        if method == "leverage":
            indices, weights = _leverage(K, m, ridge, rng)
        else:
            indices = rng.choice(n, m, replace=False)
        points = take(X, indices)
    m = points.shape[0]
    if solver == "auto":
        memory = min(max_memory, budget()) if xp is np else max_memory
        fits = (n + 2 * m) * m * dtype.itemsize <= memory
        many = m > PER_COLUMN * table.shape[1] or K.remote  # K_nm is brought here from a cluster
        solver = "cg" if fits and many else "direct"
    kept = None if indices is None else placed(indices, X)
    if solver == "direct":
        if xp is np:
            _check.room("K_mm", (m, m), np.float64, 3, ("fewer centres",))
        a = cast(_direct(kernel, X, table, ridge, points, root, told), dtype)
        return NystromRidge(kernel, points, reshaped(a, (m, *outputs)), kept, solver, None)
    remedies = ("solver='direct'", "fewer centres", "float32")
    out = None
    if xp is np:
        _check.room("K_nm", (n, m), dtype, 1, remedies)
        out = aligned((n, m), dtype)
    if indices is None:
        across = kernel(X, points, out=out, progress=progress)
    else:
        across = K.block(ALL, indices, out=out)
    if root is not None:
        across *= root[:, None]
    anew, shares = indices is None or root is not None, _shares(X, m, indices, weights, root)
    inside = (lambda: kernel(points)) if anew else (lambda: take(across, indices))
    normal = _Normal(across, inside, ridge, shares)
    with undisturbed(table.shape[1]):
        found = conjugate_gradients(
            normal, normal.right(table), tol=tol, max_iter=max_iter, progress=progress
        )
    a, residuals = normal.coefficients(found.alpha), found.residuals
    a, residuals = reshaped(a, (m, *outputs)), residuals.reshape(-1, *outputs)
    return NystromRidge(kernel, points, a, kept, solver, residuals)
