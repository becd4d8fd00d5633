"""ASkotch: block steps with approximate inverses of blocks, accelerated.

Of the system A alpha = y, A = K + ridge I, a step solves the equations of a block B of points for
the coefficients of B, approximately:

    alpha_B <- alpha_B - P^-1 (A_B alpha - y_B) / L,      P = F F' + rho I

with F F' a Nystrom approximation of K_BB and L the largest eigenvalue of P^-1 A_BB: a projection on
the solutions of these equations, in the norm of A, if P = A_BB and L = 1. The squared norm of the
error in A falls by 1 - mu a step in expectation, where mu is the smallest eigenvalue of the mean of
A^(1/2) S P^-1 S' A^(1/2) / L over the blocks, S the columns of the identity that belong to one.

With Nesterov's momentum (Rathore, Frangella, Yang, Derezinski and Udell 2024) a step is taken from
a point z, and d is what it takes away from z:

    alpha <- z - d,   v <- (1 - c) v + c z - d / sqrt(mu nu),   z <- a v + (1 - a) alpha

with c = sqrt(mu/nu) and a = 1/(1 + sqrt(nu/mu)). It falls by 1 - c then. nu is between 1 and 1/mu,
about n over the points of a block; with nu = 1/mu nothing is accelerated.

An error along an eigenvector that has a smaller mu_i than the mu of these formulas falls by about
mu_i/sqrt(mu nu), so that mu can be estimated from what residuals do in an epoch. It starts at 1/nu
and follows them; where a residual has grown the momentum was too large, and begins anew.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._keywords import synonyms
from .._types import Array, ArrayLike
from ..engine.memory import budget
from ..engine.progress import Progress
from ..linalg import cholesky, namespace_of, norm
from ..linalg.arrays import add, copied, joined, reshaped, take
from ..linalg.blas import product, row_blocks, serial, threaded
from ..scale.matrix import dtype_of
from ._eigenpro import EPOCHS, SEEN, TOLERANCE, mean_square, start, system
from ._iterative import DIVERGED, largest_eigenvalue
from ._preconditioners import Seed, leverage_scores, nystrom_preconditioner

BLOCKS, LARGEST = 10, 1000
"""By default this many blocks, or more of at most so many points, are inverted exactly.

An inverse takes b^2/3 flops per row of a block, a row n entries of K of a hundred flops or more.
"""
CAREFUL, CHANGE = 0.7, 4.0
"""The share of an estimate of mu that is taken, and the factor by which mu changes at most."""


class ASkotch(NamedTuple):
    """The result of ``askotch``.

    Attributes
    ----------
    alpha : array of shape (n,) or (n, r)
        Coefficients: predictions are ``kernel(x, X) @ alpha``.
    history : array of shape (epochs + 1,)
        The mean squared error, weighted if the points are, before the first epoch and after each,
        always on the same up to 1,000 training points.
    residuals : array of shape (epochs + 1,)
        ``|y - (K + ridge I) alpha| / |y|`` on the same points.
    converged : bool
        Whether the last residual is at most ``tol``.
    blocksize, rank : int
        The points in a block, at most, and the rank of the approximations of blocks.
    mu, nu : float
        The parameters of the acceleration in the last epoch.
    """

    alpha: Array
    history: Array
    residuals: Array
    converged: bool
    blocksize: int
    rank: int
    mu: float
    nu: float


def _inverse(
    inside: Array, ridge: float, rank: int, rng: np.random.Generator
) -> tuple[Callable[[Array], Array], float]:
    """Return what multiplies by P^-1, and L."""
    if rank >= inside.shape[0]:
        return cholesky(inside, ridge, lower=True, on_indefinite="jitter").solve, 1.0
    P = nystrom_preconditioner(inside, rank=rank, ridge=ridge, seed=rng)
    return P.solve, largest_eigenvalue(inside, ridge, preconditioner=P)


@synonyms(rng="seed")
@threaded
def askotch(
    kernel: Any, X: Any, y: Any, ridge: float = 0.0, *,
    epochs: int | None = None, tol: float | None = None, sample_weight: ArrayLike | None = None,
    blocksize: int | None = None, rank: int | None = None, sampling: str = "uniform",
    accelerate: bool = True, mu: float | None = None, nu: float | None = None,
    initial: ArrayLike | None = None, max_memory: float = 1e9,
    callback: Callable[[int, Array, float], object] | None = None, progress: bool = False,
    seed: Seed = None, n_threads: int | None = None,
) -> ASkotch:  # fmt: skip
    """Solve ``(K + ridge I) alpha = y`` by ASkotch: accelerated steps on blocks of points.

    Parameters
    ----------
    kernel, X, y, ridge, sample_weight, initial, callback, progress, n_threads
        See ``eigenpro``.
    epochs : int, optional
        The epochs to make at most, 50 by default. Each sees n rows of K, about all n^2 entries, and
        a few to measure the error. They are computed each time, unless half of ``max_memory`` holds
        K, a little more than ``n^2/2`` numbers: then K is computed once.
    tol : float, optional
        The run ends when ``|y - (K + ridge I) alpha| <= tol |y|`` on up to 1,000 of the points. By
        default 1e-3, or 0 if ``epochs`` is given: then all of them are made.
    blocksize : int, optional
        The points in a block at most; by default a tenth of them, at most 1,000, or what
        ``max_memory`` holds. Blocks of an epoch are of equal size, up to one point.
    rank : int, optional
        The columns of a block from which it is approximated, by randomly pivoted Cholesky; by
        default at most 1,000. Blocks with no more points are inverted as they are.
    sampling : {"uniform", "leverage"}
        How blocks are drawn: an epoch visits each point once, in random order; or every block is
        drawn by itself, half of its points uniformly and half by
        approximate ridge leverage scores.
    accelerate : bool
        Whether to use momentum; without it this is Skotch.
    mu, nu : float, optional
        The parameters of the momentum, ``1 <= nu <= 1/mu``. By default nu is the number of blocks,
        and mu is estimated after each epoch.
    max_memory : float
        The bytes for kernel values: K itself, if half of them hold it, and rows of K.
    seed : None, int or Generator
        Draws the blocks and columns of them.

    Returns
    -------
    ASkotch
        ``alpha, history, residuals, converged, blocksize, rank, mu, nu``.

    Warns
    -----
    RuntimeWarning
        When the tolerance is not reached after all epochs, and when the iteration diverges, which
        it may with parameters of the caller's; it then stops.

    Notes
    -----
    An epoch takes ``2 n^2`` flops per column of y and ``n blocksize^2/3`` for inverses, or ``2 n
    rank^2`` and 12 products with each block for approximate ones, which need more epochs. The
    memory beyond ``max_memory`` is X, y, four arrays of the shape of alpha, and two blocks.
    Results do not depend on the number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.random.default_rng(0).standard_normal((300, 3))
    >>> y = np.sin(X[:, 0])
    >>> fit = kc.solvers.askotch(kc.presets.mlp(2).ntk, X, y, 1e-2, seed=0)
    >>> fit.converged, bool(fit.residuals[-1] <= 1e-3)
    (True, True)
    """
    K, root, y = system(kernel, X, y, sample_weight, max_memory, 1, "askotch")
    n, dtype, shape, xp = K.shape[0], dtype_of(K), y.shape, namespace_of(y)
    ridge = _check.non_negative(ridge, "ridge")
    if tol is None:
        tol = TOLERANCE if epochs is None else 0.0
    tol = _check.non_negative(tol, "tol")
    epochs = EPOCHS if epochs is None else _check.count(epochs, "epochs")
    sampling = _check.choice(sampling, "sampling", ("uniform", "leverage"))
    accelerate = _check.flag(accelerate, "accelerate")
    callback = _check.optional_callable(callback, "callback")
    rng = _check.generator(seed, "seed")
    alpha, y = start(initial, y, root)

    memory = min(max_memory, budget()) if xp is np else max_memory
    room = max(1, int(memory / 2 // (n * dtype.itemsize)))
    if blocksize is None:
        most = min(LARGEST, -(-n // BLOCKS), room)
    else:
        most = min(n, _check.count(blocksize, "blocksize", least=1))
    count = -(-n // most)  # blocks of equal size
    blocksize = -(-n // count)
    rank = LARGEST if rank is None else _check.count(rank, "rank", least=1)
    rank = min(rank, blocksize)
    nu = float(count) if nu is None else _check.positive(nu, "nu")
    _check.must(nu >= 1, "nu", "be at least 1", nu)
    follows = mu is None and accelerate
    mu = 1 / nu if mu is None else _check.positive(mu, "mu")
    _check.must(mu * nu <= 1 + 1e-12, "mu", f"be at most 1/nu, {1 / nu:.3g}", mu)

    held = min(room, max(blocksize, min(n, SEEN)))
    buffer = np.empty(held * n if xp is np else 0, dtype)

    def rows(which: Array) -> Array:
        """Return rows of K, of the host in memory that the next call takes again."""
        if xp is not np:
            return K.rows(which)
        return K.rows(which, buffer[: len(which) * n].reshape(len(which), n))

    def values(which: Array, x: Array) -> tuple[Array, Array]:
        """Return K_B x and K_BB."""
        found, inside = [], []
        for part in row_blocks(len(which), held):
            block = rows(which[part])
            found.append(product(block, x))
            inside.append(take(block, which, 1))
        return joined(found), joined(inside)

    def blocks() -> list[Array]:
        if sampling == "uniform":
            return np.array_split(rng.permutation(n), count)
        return [rng.choice(n, blocksize, replace=False, p=chances) for _ in range(count)]

    def measure() -> None:
        """Record the mean squared error and the relative residual on the points ``seen``."""
        off = -take(y, seen)
        if bool(xp.any(alpha != 0)):
            off = off + joined([product(rows(seen[p]), alpha) for p in row_blocks(len(seen), held)])
        history.append(mean_square(off))
        residuals.append(float(norm(off + ridge * take(alpha, seen))) / size)

    told = Progress("askotch", epochs, _check.flag(progress, "progress"))
    history: list[float] = []
    residuals: list[float] = []
    trouble, ended, chances = "", False, None
    # BLAS has one thread for what is small: rows of K and products with them have all.
    with serial():
        K.hold()
        if sampling == "leverage":  # and half uniform: points that scores neglect count as well
            chances = (leverage_scores(K, blocksize, ridge, rng) + 1 / n) / 2
        seen = np.sort(rng.permutation(n)[:SEEN])
        size = float(norm(take(y, seen))) or 1.0
        measure()
        first = max(history[0], np.finfo(dtype).tiny)
        v, z = copied(alpha), copied(alpha)
        for epoch in range(1, epochs + 1):
            share, further = math.sqrt(mu / nu), 1 / math.sqrt(mu * nu)
            ahead = 1 / (1 + math.sqrt(nu / mu))
            for done, which in enumerate(blocks()):
                found, inside = values(which, z)
                solve, largest = _inverse(inside, ridge, rank, rng)
                off = found + ridge * take(z, which) - take(y, which)
                taken = solve(off) / (dtype.type(largest) if xp is np else largest)
                if accelerate:
                    v += share * (z - v)
                    v = add(v, which, -further * taken)
                alpha = add(z, which, -taken)
                z = alpha + ahead * (v - alpha) if accelerate else alpha
                told.at(epoch - 1, f"{done} of {count} blocks, mse {history[-1]:.3g}")
            measure()
            told.at(epoch, f"mse {history[-1]:.3g}, residual {residuals[-1]:.2g}")
            if not history[-1] <= DIVERGED * first:
                trouble = (
                    f"askotch diverges: the mean squared error is {history[-1]:.3g} after {epoch} "
                    f"epochs, {history[0]:.3g} before; pass a larger nu than {nu:.3g}, or none"
                )
                ended = True
            elif callback is not None:
                ended = bool(callback(epoch, reshaped(alpha, shape), history[-1]))
            if ended or residuals[-1] <= tol or epoch == epochs:
                break
            if accelerate and not residuals[-1] < residuals[-2]:
                v, z = copied(alpha), copied(alpha)
                mu = min(1 / nu, CHANGE * mu) if follows else mu
            elif follows:
                rate = 2 * math.log(residuals[-2] / residuals[-1]) / count
                mu = min(mu, max(CAREFUL * rate * math.sqrt(mu * nu), mu / CHANGE))
    converged = residuals[-1] <= tol
    if tol and not converged and not ended:
        trouble = (
            f"askotch did not converge: the relative residual is {residuals[-1]:.3g} after "
            f"{epochs} epochs, the tolerance {tol:.3g}; more epochs or a larger ridge would help"
        )
    if trouble:
        warnings.warn(trouble, RuntimeWarning, stacklevel=4)
    if root is not None:
        alpha *= root[:, None]
    return ASkotch(
        reshaped(alpha, shape), np.array(history), np.array(residuals), converged, blocksize, rank,
        mu, nu,
    )  # fmt: skip
