"""Approximate inverses of K + ridge I for iterative solvers.

LowRank       (F F' + shift I)^-1 by Woodbury's identity, with F from some columns of K
Deflation     I - U D U', which lowers the eigenvalues of the first eigenvectors to the next one
BlockJacobi   the inverse of the blocks on the diagonal
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _check
from .._keywords import synonyms
from .._types import Array, ArrayLike
from ..engine.progress import Progress
from ..linalg import (
    Cholesky,
    cholesky,
    gram_product,
    namespace_of,
    qr,
    top_eigh,
    triangular_solve,
)
from ..linalg.arrays import (
    cast,
    contiguous,
    copied,
    dots,
    numbers,
    placed,
    put,
    reshaped,
    sum_of_squares,
    take,
    total,
    zeros,
)
from ..linalg.blas import row_blocks
from ..scale.matrix import Matrix, dtype_of, of_points, room
from ..scale.operator import BLOCK_BYTES

Seed = int | np.random.Generator | None

PROPOSALS = 256
"""The pivots that are proposed at a time: their columns are computed together."""
ROUNDED = 30
"""The least shift, in units of eps times the trace."""
SMALL, SUBSPACE_SHARE = 1000, 5
"""Beyond this size and up to 1/5 of the eigenvectors subspace iteration beats reduction."""
PILOT = 1000
"""The largest number of points from which leverage scores are estimated."""
OVERSAMPLED, POWERS = 20, 4
"""The further vectors of subspace iteration, and its products after the first."""


@synonyms(rng="seed")
def randomly_pivoted_cholesky(
    K: Any, X: ArrayLike | None = None, *,
    rank: int, block: int | None = None, seed: Seed = None, progress: bool = False,
) -> tuple[Array, Array]:  # fmt: skip
    """Factor K approximately, by columns drawn in proportion to what is left of the diagonal.

    Parameters
    ----------
    K : array of shape (n, n), ``GramOperator``, other operator with ``diagonal()`` and
        ``columns(which)``, or Kernel
        Symmetric positive semi-definite. The matrix of a kernel is never formed, and the columns of
        a ``GramOperator`` are computed unless all of it is kept already.
    X : array of shape (n, d), of signals or of images
        The points, if K is a kernel.
    rank : int
        The number of columns to take, at most n.
    block : int, optional
        How many columns are proposed together, ``min(256, rank)`` by default. It changes the time
        but not the law of the pivots.
    seed : None, int or Generator
    progress : bool
        Write a line to stderr every two seconds.

    Returns
    -------
    F : array of shape (n, rank)
        ``F F'`` is the Nystrom approximation of K with these pivots. F has fewer columns if the
        rank of K, up to rounding, is lower.
    pivots : array of shape (rank,), int
        The indices of the columns; ``F[pivots]`` is lower triangular.

    Notes
    -----
    The method is that of Chen, Epperly, Tropp and Webber 2023; proposals are rejected as in
    Epperly, Tropp and Webber 2024. With ``l`` columns the expected trace of ``K - F F'`` is within
    a factor 1 + e of the best of rank r if ``l >= r/e + r log(1/(e eta))``, where eta is the
    relative trace that the best one leaves. It takes ``n rank`` entries of K, ``n rank^2``
    multiplications, and memory for ``n rank`` numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> F, pivots = kc.solvers.randomly_pivoted_cholesky(kc.Gaussian(1.0), X, rank=8, seed=0)
    >>> bool(np.abs(F @ F.T - kc.Gaussian(1.0)(X)).max() < 1e-6)
    True
    """
    part = of_points(K, X, "diagonal", "columns")
    F, pivots = pivoted(part, rank, block, seed, progress)
    return F, placed(pivots, F)


def pivoted(
    part: Matrix, rank: int, block: int | None, seed: Seed, progress: bool
) -> tuple[Array, Array]:
    """Do the same for a K that has been looked at; the pivots are on the host."""
    n, dtype = part.shape[0], dtype_of(part)
    rank = _check.at_most(_check.count(rank, "rank", least=1), n, "rank", "the rows of K")
    room(part, "the factor", (n, rank), 1, ("a smaller rank", "float32"))
    block = PROPOSALS if block is None else _check.count(block, "block", least=1)
    rng = _check.generator(seed, "seed")
    told = Progress("randomly_pivoted_cholesky", rank, _check.flag(progress, "progress"))
    left = _check.entries(copied(cast(part.diagonal(), np.float64)), "diagonal")
    left, xp = _check.diagonal(left, "K"), namespace_of(left)
    # A diagonal entry is the difference of numbers of the size of the first ones.
    noise = 4 * float(np.finfo(dtype).eps) * left
    rows = zeros((rank, n), left, dtype)  # F', so that columns are contiguous
    pivots: list[int] = []
    while len(pivots) < rank:
        left[left <= noise] = 0.0
        sums = np.cumsum(left) if xp is np else xp.cumulative_sum(left)
        if (whole := float(sums[-1])) <= 0:
            break
        draws = placed(whole * rng.random(min(block, rank)), sums)
        drawn = numbers(xp.searchsorted(sums, draws, side="right")).astype(np.intp)
        drawn = np.minimum(drawn, n - 1)
        k = len(pivots)
        found = rows[:k, :]
        inside = copied(cast(part.block(drawn, drawn), np.float64))
        inside -= cast(take(found, drawn, 1).T, np.float64) @ take(found, drawn, 1)
        # Proposals are looked at one by one, on the host: a square of at most ``block`` rows.
        taken, lower = _accept(numbers(inside), numbers(take(noise, drawn)), rng, rank - k)
        if not len(taken):
            continue
        chosen = drawn[taken]
        columns = _check.entries(part.columns(chosen), "K")
        new = columns.T - take(found, chosen, 1).T @ found
        new = triangular_solve(placed(lower, rows), new, lower=True, overwrite=True)
        rows[k : k + len(chosen), :] = new
        left -= dots(new, new)
        left = put(left, chosen, zeros((len(chosen),), left))
        pivots += chosen.tolist()
        told.at(len(pivots))
    return rows[: len(pivots), :].T, np.array(pivots, np.intp)


def _accept(
    inside: Array, noise: Array, rng: np.random.Generator, most: int
) -> tuple[Array, Array]:
    """Return the proposals that one-by-one sampling would take, and the factor of their block.

    Proposals were drawn by the diagonal at the start; each is kept with a probability that is the
    share of its entry that the proposals before it left.
    """
    start, draws = inside.diagonal().copy(), rng.random(len(inside))
    taken: list[int] = []
    columns: list[Array] = []
    for i in range(len(inside)):
        if len(taken) == most:
            break
        if inside[i, i] <= max(noise[i], draws[i] * start[i]):
            continue
        column = inside[:, i] / math.sqrt(inside[i, i])
        inside -= np.outer(column, column)
        taken.append(i)
        columns.append(column)
    lower = np.array(columns).reshape(len(taken), -1).T[taken]
    return np.array(taken, np.intp), np.tril(lower)


class LowRank:
    """The preconditioner ``(F F' + shift I)^-1`` that ``nystrom_preconditioner`` returns.

    Attributes
    ----------
    factor : array of shape (n, k)
    shift : float
    """

    def __init__(self, factor: Array, shift: float) -> None:
        self.factor, self.shift = factor, shift
        # Jitter here leaves the inverse symmetric and positive definite.
        self._inner = cholesky(gram_product(factor), shift, on_indefinite="jitter")

    def solve(self, r: ArrayLike) -> Array:
        """Return the inverse times r, of shape (n,) or (n, k)."""
        xp, factor, shift = namespace_of(self.factor), self.factor, self.shift
        given = _check.as_given(r, "r", factor, "the preconditioner")
        if not factor.shape[1]:
            return given / shift
        weights = self._inner.solve(factor.T @ cast(given, factor.dtype))
        off = given - reshaped(factor @ weights, given.shape)
        return off / (factor.dtype.type(shift) if xp is np else shift)


@synonyms(rng="seed")
def nystrom_preconditioner(
    K: Any, X: ArrayLike | None = None, *,
    rank: int, ridge: float = 0.0, method: str = "rpcholesky", block: int | None = None,
    seed: Seed = None, progress: bool = False,
) -> LowRank:  # fmt: skip
    """Return the inverse of ``F F' + shift I`` with ``F F'`` a Nystrom approximation of K.

    Parameters
    ----------
    K, X, rank, block, seed, progress
        See ``randomly_pivoted_cholesky``.
    ridge : float
        The ridge of the system to be solved.
    method : {"rpcholesky", "uniform"}
        How columns are drawn. "uniform" saves nothing and misses what only a few points have.

    Returns
    -------
    LowRank
        With ``solve(r)``. The shift is the ridge plus the mean of the eigenvalues that ``F F'``
        leaves out, ``trace(K - F F')/(n - rank)``, so that those are not far from 1 afterwards. It
        is exact if rank = n.

    Notes
    -----
    See Diaz, Epperly, Frangella, Tropp and Webber 2023. It takes ``2 n rank^2`` flops once,
    ``4 n rank`` per column and application, and memory for ``n rank`` numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> K = kc.Laplacian(1.0)(X)
    >>> P = kc.solvers.nystrom_preconditioner(K, rank=50, ridge=1e-3, seed=0)
    >>> with_it = kc.solvers.conjugate_gradients(K, X[:, 0], 1e-3, preconditioner=P)
    >>> without = kc.solvers.conjugate_gradients(K, X[:, 0], 1e-3)
    >>> with_it.iterations < without.iterations / 2
    True
    """
    ridge = _check.non_negative(ridge, "ridge")
    method = _check.choice(method, "method", ("rpcholesky", "uniform"))
    part = of_points(K, X, "diagonal", "columns")
    n, dtype = part.shape[0], dtype_of(part)
    eps = float(np.finfo(dtype).eps)
    if method == "rpcholesky":
        factor, _ = pivoted(part, rank, block, seed, progress)
    else:
        rank = _check.at_most(_check.count(rank, "rank", least=1), n, "rank", "the rows of K")
        room(part, "the factor", (n, rank), 2, ("a smaller rank", "float32"))
        chosen = _check.generator(seed, "seed").choice(n, rank, replace=False)
        columns = _check.entries(part.columns(chosen), "K")
        inside = cast(take(columns, chosen), np.float64)
        lower = cholesky(inside, lower=True, on_indefinite="jitter", eps=eps).triangle
        right = contiguous(columns.T)
        factor = triangular_solve(cast(lower, dtype), right, lower=True, overwrite=True).T
    trace = total(part.diagonal())
    tail = max(0.0, trace - sum_of_squares(factor))
    # Woodbury's difference is divided by the shift: with less it would be rounding alone.
    least = ROUNDED * eps * trace
    return LowRank(factor, max(ridge + tail / max(1, n - factor.shape[1]), least))


class Deflation:
    """The preconditioner ``I - U D U'`` that ``eigenpro_preconditioner`` returns.

    Attributes
    ----------
    vectors : array of shape (n, k)
        U, with orthonormal columns.
    eigenvalues : array of shape (k + 1,)
        Estimates of eigenvalues of K; the others are lowered to the last one.
    """

    def __init__(self, vectors: Array, eigenvalues: Array, ridge: float) -> None:
        self.vectors, self.eigenvalues = vectors, eigenvalues
        damped = (eigenvalues[-1] + ridge) / (eigenvalues[:-1] + ridge)
        self._weights = placed(1 - damped, vectors)

    def solve(self, r: ArrayLike) -> Array:
        """Return the inverse times r, of shape (n,) or (n, k)."""
        given = _check.as_given(r, "r", self.vectors, "the preconditioner")
        along = self.vectors.T @ cast(given, self.vectors.dtype)
        part = along * self._weights if given.ndim == 1 else (along.T * self._weights).T
        return given - self.vectors @ part


@synonyms(rng="seed")
def eigenpro_preconditioner(
    K: Any, X: ArrayLike | None = None, *,
    rank: int, subsample: int | None = None, ridge: float = 0.0, seed: Seed = None,
) -> Deflation:  # fmt: skip
    """Return EigenPro's preconditioner, which lowers the first eigenvalues of K to the next one.

    Parameters
    ----------
    K, X
        See ``randomly_pivoted_cholesky``.
    rank : int
        The number of eigenvalues that are lowered.
    subsample : int, optional
        The number of points from which eigenvectors are computed, more than ``rank``;
        ``min(n, max(2000, 5 rank))`` by default.
    ridge : float
        The ridge of the system to be solved.
    seed : None, int or Generator

    Returns
    -------
    Deflation
        With ``solve(r)``.

    Notes
    -----
    See Ma and Belkin 2017. Eigenvectors of the subsample's matrix are continued to all points by
    Nystrom's formula and made orthogonal. Eigenvalues fall to ``lambda_(rank+1)`` and not to 1: the
    step of gradient descent grows by ``lambda_1/lambda_(rank+1)``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> K = kc.Laplacian(1.0)(np.linspace(0, 1, 100)[:, None])
    >>> P = kc.solvers.eigenpro_preconditioner(K, rank=10, seed=0)
    >>> before = kc.solvers.largest_eigenvalue(K)
    >>> kc.solvers.largest_eigenvalue(K, preconditioner=P) < before / 50
    True
    """
    ridge = _check.non_negative(ridge, "ridge")
    part = of_points(K, X, "columns")
    n, dtype = part.shape[0], dtype_of(part)
    rank, subsample = subsample_sizes(n, rank, subsample)
    room(part, "columns of K", (n, subsample), 1, ("a smaller subsample", "float32"))
    chosen = _check.generator(seed, "seed").choice(n, subsample, replace=False)
    columns = _check.entries(part.columns(chosen), "K")
    values, vectors = top_eigenpairs(take(columns, chosen), rank + 1)
    least = np.maximum(values[:-1], values[0] * 1e-14)
    basis = qr(columns @ cast(vectors[:, :-1] / placed(least, vectors), dtype))[0]
    return Deflation(basis, values * (n / subsample), ridge)


def subsample_sizes(n: int, rank: int, subsample: int | None) -> tuple[int, int]:
    """Return how many eigenvectors of how many points are to be computed, checked."""
    rank = _check.count(rank, "rank", least=1)
    rank = _check.at_most(rank, n - 1, "rank", "one less than the number of points")
    if subsample is None:
        return rank, min(n, max(2000, 5 * rank))
    subsample = _check.count(subsample, "subsample", least=rank + 1)
    return rank, _check.at_most(subsample, n, "subsample", "the number of points")


def top_eigenpairs(a: Array, rank: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues, largest first and not below zero, and vectors; in float64.

    The eigenvalues are on the host, as few as they are.
    A few of many are found by subspace iteration and Rayleigh-Ritz. Then the vectors V are
    orthonormal and V'aV is diagonal to rounding, which is all that preconditioners need, and they
    are close to eigenvectors where eigenvalues fall.
    """
    n = a.shape[0]
    vectors: Any  # top_eigh returns None only if it is not asked for them
    if n <= SMALL or rank * SUBSPACE_SHARE > n:
        values, vectors = top_eigh(cast(a, np.float64), rank)
        return np.maximum(numbers(values)[::-1], 0.0), namespace_of(a).flip(vectors, axis=1)
    start = np.random.default_rng(0).standard_normal((n, rank + OVERSAMPLED))
    basis = qr(a @ placed(start, a))[0]
    for _ in range(POWERS):
        basis = qr(a @ basis)[0]
    basis = qr(cast(basis, np.float64))[0]
    values, vectors = top_eigh(basis.T @ (a @ basis), basis.shape[1])
    values = numbers(values)
    keep = np.argsort(-values)[:rank]
    return np.maximum(values[keep], 0.0), basis @ take(vectors, keep, 1)


def leverage_scores(K: Any, size: int, ridge: float, rng: np.random.Generator) -> Array:
    """Return l_i = (k_ii - k_iJ (K_JJ + c I)^-1 k_Ji) / ridge, in shares of their sum.

    J are p points drawn uniformly, at most ``size``, and c = ridge p/n (Rudi, Calandriello,
    Carratino and Rosasco 2018). One score per point goes to the host, to be drawn by.
    """
    n, dtype = K.shape[0], dtype_of(K)
    pilot = rng.choice(n, min(n, size, PILOT), replace=False)
    inside = cast(K.block(pilot, pilot), np.float64)
    eps = float(np.finfo(dtype).eps)
    factor = cholesky(inside, ridge * len(pilot) / n, lower=True, on_indefinite="jitter", eps=eps)
    lower = cast(factor.triangle, dtype)
    scores = copied(cast(K.diagonal(), np.float64))
    least = eps * float(namespace_of(scores).max(scores))
    for part in row_blocks(n, max(1, BLOCK_BYTES // (len(pilot) * dtype.itemsize))):
        across = contiguous(K.block(np.arange(part.start, part.stop), pilot).T)
        half = triangular_solve(lower, across, lower=True, overwrite=True)
        scores[part] -= dots(half, half)
    scores = np.maximum(numbers(scores), least)
    return scores / scores.sum()


class BlockJacobi:
    """The inverse of the blocks on the diagonal, which ``block_jacobi`` returns.

    Attributes
    ----------
    blocks : list of slice
        The rows of each block.
    factors : list of Cholesky
        Of the blocks.
    """

    def __init__(self, blocks: list[slice], factors: list[Cholesky]) -> None:
        self.blocks, self.factors = blocks, factors

    def solve(self, r: ArrayLike) -> Array:
        """Return the inverse times r, of shape (n,) or (n, k)."""
        like = self.factors[0].triangle
        given = _check.as_given(r, "r", like, "the preconditioner")
        given = given if isinstance(like, np.ndarray) else cast(given, like.dtype)
        out = zeros(given.shape, like)
        for rows, factor in zip(self.blocks, self.factors, strict=True):
            out[rows, ...] = factor.solve(given[rows, ...])
        return out


def block_jacobi(
    K: Any, X: ArrayLike | None = None, *, block: int = 512, ridge: float = 0.0
) -> BlockJacobi:
    """Return the inverse of the blocks of ``K + ridge I`` on the diagonal, of consecutive points.

    Parameters
    ----------
    K, X
        See ``randomly_pivoted_cholesky``.
    block : int
        The rows of a block. Blocks help most if points that are close to each other are
        neighbours in K.
    ridge : float
        The ridge of the system to be solved.

    Returns
    -------
    BlockJacobi
        With ``solve(r)``. It takes ``n block^2 / 3`` flops once, and ``2 n block`` per column and
        application.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> P = kc.solvers.block_jacobi(np.diag([1.0, 2.0, 4.0]), block=2)
    >>> P.solve(np.ones(3))
    array([1.  , 0.5 , 0.25])
    """
    part = of_points(K, X, "columns")
    block = _check.count(block, "block", least=1)
    ridge = _check.non_negative(ridge, "ridge")
    blocks, factors = row_blocks(part.shape[0], block), []
    shape = (part.shape[0], min(block, part.shape[0]))
    room(part, "all blocks", shape, 1, ("a smaller block", "float32"))
    for rows in blocks:
        which = np.arange(rows.start, rows.stop)
        inside = _check.entries(part.block(which, which), "K")
        factors.append(Cholesky(inside, ridge, lower=True))
        _check.definite_block(factors[-1].order, rows, "K")
    return BlockJacobi(blocks, factors)
