"""EigenPro with projected centres: stochastic descent for f = k(., Z) a, seeing K_nm in rows.

The centres Z are any p points. A step on a batch B of m of the n training points is that of
``_eigenpro``, in the RKHS, with functions e_i from a subsample of the centres:

    f <- f - (eta/m) Q k(., B) g,    g = f(B) - y_B
    Q = I - sum_i (1 - lambda_(q+1)/lambda_i) e_i e_i'

Then f goes back to the span of k(., Z), by K_ZZ^-1 times its values on Z: after each step (version
3, Abedsoltan, Belkin and Pandit 2023), or after several, with the points of their batches as
centres in between (version 4, Abedsoltan, Ma, Pandit and Belkin 2024). The e_i are in the span, so
that Q commutes with the projection: only k(., B) g has to be projected, and f rests where
K_ZX (f(X) - y) = 0, at the least squares. With e_i from points of X, as published, it would rest
elsewhere.

The least squares leave residuals g, and steps of their size go on for ever at some distance from
them. From the second epoch on a step is therefore (Defazio, Bach and Lacoste-Julien 2014)

    f <- f - eta Q [k(., B) (g - t_B)/m + k(., Z) u],    u = K_ZZ^-1 K_ZX t / n

with t the residuals that points had when they were last visited. On average the bracket is what it
was, but it falls to zero with what is left to do; so does what projections lose, exact or not. This
takes n numbers per output. The first epoch is that of the papers.

If K_ZX K_XZ is about (n/p) K_ZZ^2, as it is for centres that are drawn from X, predictions on X are
off by (n p)^(1/2) |u|: the norm in which ``nystrom_ridge`` states its residual.
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
from ..kernels import Kernel
from ..linalg import cholesky, namespace_of, norm
from ..linalg.arrays import add, cast, copied, joined, placed, put, reshaped, take, zeros
from ..linalg.blas import product, row_blocks, serial, threaded
from ..scale.matrix import of_kernel
from ..scale.operator import GramOperator
from ._eigenpro import EPOCHS, FEW, SEEN, SHARE, TOLERANCE, left, lowered, mean_square
from ._iterative import DIVERGED, conjugate_gradients
from ._nystrom import NystromRidge, given_centres
from ._preconditioners import Seed, nystrom_preconditioner, subsample_sizes

INNER, ROUNDS, COLUMNS = 1e-3, 50, 500
"""The tolerance and the most iterations of inexact projections, and their preconditioner's rank."""


TEMPORARY = {"direct": 0.5, "cg": 2.0}
"""The temporary centres by default, in units of the others.

In an epoch t of them take n t/2 entries of K, beside n p, and a projection comes n/t times: one of
8 p^2 flops per output by a factor, of some 20 p^2 entries by iterations.
"""


class EigenProCentres(NamedTuple):
    """The result of ``eigenpro_centres``.

    Attributes
    ----------
    kernel : Kernel
    centres : array of shape (p, d), of signals or of images
    alpha : array of shape (p,) or (p, r)
        Coefficients: predictions are ``kernel(x, centres) @ alpha``.
    indices : array of shape (p,), or None
        The rows of X that are the centres.
    history : array of shape (epochs + 1,)
        The mean squared error, weighted if the points are, before the first epoch and after each,
        always on the same up to 1,000 training points.
    residuals : array of shape (epochs,)
        The residual of the normal equations after each epoch, in a norm that is close to the
        relative error of predictions on X. If centres are copies of each other, it is rounding.
    converged : bool
        Whether the last residual is at most ``tol``.
    rank, batch, delay : int
        The number of eigenvalues that were lowered, of points in a step, and of steps between
        projections.
    step : float
        eta.
    beta, eigenvalue : float
        The largest diagonal entry and eigenvalue (of matrix/n) of the preconditioned kernel.
    """

    kernel: Kernel
    centres: Array
    alpha: Array
    indices: Array | None
    history: Array
    residuals: Array
    converged: bool
    rank: int
    batch: int
    delay: int
    step: float
    beta: float
    eigenvalue: float

    def predict(self, X: Any, *, n_threads: int | None = None) -> Array:
        """Return ``kernel(X, centres) @ alpha``, in blocks of rows: shape (n,) or (n, r)."""
        model = NystromRidge(self.kernel, self.centres, self.alpha, None, "", None)
        return model.predict(X, n_threads=n_threads)


class _Projection:
    """Solves with K_ZZ: by its factor, or by conjugate gradients on what is never held."""

    def __init__(
        self, kernel: Kernel, centres: Array, how: str, memory: float, rng: np.random.Generator
    ) -> None:
        p = centres.shape[0]
        self.factor = None
        if how == "direct":
            self.factor = cholesky(lambda: kernel(centres), lower=True, on_indefinite="jitter")
            return
        self.inside = GramOperator(kernel, centres, max_memory=memory)
        self.inside.hold()
        rank = min(p, COLUMNS)
        self.near = nystrom_preconditioner(self.inside, rank=rank, seed=rng)

    def __call__(self, b: Array, near: Array) -> Array:
        """Return K_ZZ^-1 b, from a guess that is near it."""
        if self.factor is not None:
            return self.factor.solve(b)
        with warnings.catch_warnings():  # a solution that is not quite one will do
            warnings.simplefilter("ignore", RuntimeWarning)
            # To the tolerance of what is off, not of b: with a ridge u does not fall to zero.
            return near + conjugate_gradients(
                self.inside, b - self.inside @ near, preconditioner=self.near, tol=INNER,
                max_iter=ROUNDS,
            ).alpha  # fmt: skip


@synonyms(rng="seed")
@threaded
def eigenpro_centres(
    kernel: Any, X: Any, y: Any, ridge: float = 0.0, *,
    centres: int | ArrayLike, epochs: int | None = None, tol: float | None = None,
    sample_weight: ArrayLike | None = None, rank: int | None = None, subsample: int | None = None,
    batch: int | None = None, delay: int | None = None, step: float | None = None,
    projection: str = "auto", initial: ArrayLike | None = None, max_memory: float = 1e9,
    callback: Callable[[int, Array, float], object] | None = None, progress: bool = False,
    seed: Seed = None, n_threads: int | None = None,
) -> EigenProCentres:  # fmt: skip
    """Fit predictors ``k(., centres) a`` by EigenPro 3 or 4, seeing ``K_nm`` in blocks of rows.

    It minimises ``|K_nm a - y|^2 + ridge a' K_mm a``, as ``nystrom_ridge`` does, for so many
    centres that their matrix is too large for a factorisation or so many points that few passes
    have to do.

    Parameters
    ----------
    kernel : Kernel; or ``GramOperator`` of the points, with X None
    X : array of shape (n, d), of signals or of images
        The dtype of all work is that of X; float32 is enough.
    y : array of shape (n,) or (n, r)
    ridge : float
    centres : int, or array of the kind of X
        The number of centres to draw uniformly from the rows of X, or the centres themselves.
    epochs : int, optional
        The epochs to make at most, 50 by default. Each sees all n p entries of ``K_nm`` once, those
        between batches and temporary centres, and a few to measure the error. ``K_nm`` is computed
        each time, unless half of ``max_memory`` holds it.
    tol : float, optional
        The run ends when the residual of the normal equations, which is close to the relative error
        of the predictions on X, is at most this. By default 1e-3, or 0 if ``epochs`` is given: then
        all of them are made.
    sample_weight : array of shape (n,), optional
        Weights of the squared errors.
    rank, subsample : int, optional
        The eigenvalues to lower, and the centres from which eigenvectors are computed; see
        ``eigenpro``.
    batch : int, optional
        The points in a step: by default a quarter of ``beta/lambda``; at most what ``max_memory``
        holds.
    delay : int, optional
        The steps from one projection to the next. With 1 it is EigenPro 3; by default EigenPro 4,
        with temporary centres that are half as many as the others, or twice with "cg".
    step : float, optional
        eta; see ``eigenpro``.
    projection : {"auto", "direct", "cg"}
        How to solve with ``K_mm``: by its factor, or inexactly by conjugate gradients with a
        preconditioner, computing its entries each time unless an eighth of ``max_memory`` holds
        them. By default the factor if an eighth of ``max_memory`` holds it.
    initial : array of the shape of alpha, optional
        Coefficients to start from; zero by default.
    max_memory : float
        The bytes for kernel values.
    callback : callable, optional
        Called as ``callback(epoch, alpha, mse)`` after each epoch. A true return value ends the
        run. alpha is not a copy.
    progress : bool
        Write a line to stderr every two seconds.
    seed : None, int or Generator
        Draws the centres, the subsample and the order of the points.
    n_threads : int, optional
        ``get_threads()`` by default. With 1, products by BLAS take one thread as well.

    Returns
    -------
    EigenProCentres
        ``centres, alpha, history, residuals, converged, ...`` and ``predict(X)``.

    Warns
    -----
    RuntimeWarning
        When the tolerance is not reached after all epochs, and when the iteration diverges; it then
        stops.

    Notes
    -----
    In an epoch the error along an eigenfunction of eigenvalue ``lambda_i`` (of K/n) below the
    lowered ones falls by about ``exp(-n lambda_i/beta)``. The memory beyond ``max_memory`` is X,
    twice y, and ``rank`` numbers per centre. Results do not depend on the number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> y = np.sin(X[:, 0])
    >>> fit = kc.solvers.eigenpro_centres(kc.presets.mlp(2).ntk, X, y, 1.0, centres=50, seed=0)
    >>> best = kc.solvers.nystrom_ridge(kc.presets.mlp(2).ntk, X, y, 1.0, centres=fit.centres)
    >>> bool(np.abs(fit.predict(X) - best.predict(X)).max() < 0.01)
    True
    """
    max_memory = _check.positive(max_memory, "max_memory")
    K = of_kernel(kernel, X)
    kernel, X, dtype = K.kernel, K.X, K.dtype
    xp, n = namespace_of(X), X.shape[0]
    y = _check.targets(y, "y", n, dtype, least=1, of="X", like=X)
    ridge = _check.non_negative(ridge, "ridge")
    if tol is None:
        tol = TOLERANCE if epochs is None else 0.0
    tol = _check.non_negative(tol, "tol")
    epochs = EPOCHS if epochs is None else _check.count(epochs, "epochs")
    batch = None if batch is None else _check.count(batch, "batch", least=1)
    delay = None if delay is None else _check.count(delay, "delay", least=1)
    step = None if step is None else _check.positive(step, "step")
    projection = _check.choice(projection, "projection", ("auto", "direct", "cg"))
    callback = _check.optional_callable(callback, "callback")
    rng = _check.generator(seed, "seed")
    root = _check.root_weights(sample_weight, n, dtype, X)
    told = Progress("eigenpro_centres", epochs, _check.flag(progress, "progress"))

    indices, Z = given_centres(centres, K, rng)
    p, outputs = Z.shape[0], y.shape[1:]
    y = reshaped(y, (n, -1))
    shape = (p, y.shape[1])
    if root is not None:
        y = root[:, None] * y
    alpha = zeros(shape, y)
    if initial is not None:
        whole = (p, *outputs)
        initial = _check.alike(initial, "initial", whole, "the coefficients", dtype, y, "X")
        alpha = copied(reshaped(initial, shape))

    memory = min(max_memory, budget()) if xp is np else max_memory
    across = GramOperator(kernel, X, Z, max_memory=memory / 2)

    def values(which: Array) -> Array:
        """Return rows of K_nm, scaled by the roots of weights."""
        block = across.rows(which)
        return block if root is None else block * take(root, which)[:, None]

    def between(rows: Array, columns: Array) -> Array:
        """Return k between points, scaled as well."""
        block = kernel(take(X, rows), take(X, columns))
        return block if root is None else block * (take(root, rows)[:, None] * take(root, columns))

    history: list[float] = []
    residuals: list[float] = []
    trouble, ended, converged = "", False, False
    # BLAS has one thread for what is small: entries of K and products with them have all.
    with serial():
        across.hold()
        # ---- Q, of centres, and its step, for the points
        size = min(p, 4000) if subsample is None else _check.count(subsample, "subsample", least=1)
        if rank is None:
            size = _check.at_most(size, p, "subsample", "the number of points")
            rank = min(size - 1, max(size // 10, FEW))
        else:
            rank, size = subsample_sizes(p, rank, subsample)
        chosen = rng.permutation(p)[:size]
        inside = kernel(take(Z, chosen))
        vectors, weights = lowered(inside, rank, ridge * size / n)
        some = np.sort(rng.permutation(n)[: max(size, SEEN)])
        beta, eigenvalue = left(
            take(values(some), chosen, 1), between(some, some), vectors, weights
        )
        vectors, weights = cast(vectors, dtype), placed(weights, y)[:, None]
        on_centres = product(vectors.T, kernel(take(Z, chosen), Z))
        diagonal = kernel.diag(X) if root is None else kernel.diag(X) * root**2
        beta, eigenvalue = min(float(xp.max(diagonal)), beta), eigenvalue + ridge / n
        if not beta > 0:  # with a kernel that is zero everywhere nothing moves, whatever the step
            beta = eigenvalue = 1.0
        room = max(1, int(memory / 8 // (p * dtype.itemsize)))
        if batch is None:
            batch = max(1, int(SHARE * beta / eigenvalue))
        batch = min(n, room, batch)
        if step is None:
            step = min(batch / beta, (1 + SHARE) * batch / (beta + (batch - 1) * eigenvalue))
        length = step / batch
        if projection == "auto":
            projection = "direct" if p * p * dtype.itemsize <= memory / 8 else "cg"
        if delay is None:
            delay = max(1, int(TEMPORARY[projection] * p) // batch)
        project = _Projection(kernel, Z, projection, memory / 8, rng)

        seen = np.sort(rng.permutation(n)[:SEEN])
        whole_y = float(norm(y)) or 1.0

        def measure() -> None:
            parts = (seen[part] for part in row_blocks(len(seen), room))
            history.append(
                mean_square(joined([product(values(w), alpha) - take(y, w) for w in parts]))
            )

        measure()
        first = max(history[0], np.finfo(dtype).tiny)
        last = zeros(y.shape, y)  # t
        normal = zeros(shape, y, np.float64)  # K_ZX t / n, up to the last projection
        mean = zeros(shape, y)  # u
        for epoch in range(1, epochs + 1):
            order = rng.permutation(n)
            steps = row_blocks(n, batch)
            moved: list[Array] = []
            begun, gain = 0, zeros(shape, y, np.float64)
            for number, part in enumerate(steps):
                which = order[part]
                block = values(which)
                g = product(block, alpha) - take(y, which)
                if moved:
                    g = g + product(between(which, order[begun : part.start]), joined(moved))
                fresh = g - take(last, which)  # in the first epoch, g
                last = put(last, which, g)
                gain += product(block.T, fresh)
                moved.append(-length * fresh)
                along = product(take(block, chosen, 1).T, fresh)
                # Q of the mean and of the ridge's gradient, which are in the span
                b = mean + (ridge / n) * alpha
                alpha -= len(which) * length * b
                along = vectors.T @ along + len(which) * product(on_centres, b)
                alpha = add(alpha, chosen, length * (vectors @ (weights * along)))
                if (number + 1) % delay == 0 or number + 1 == len(steps):
                    normal += gain / n
                    columns = joined([cast(gain, dtype), cast(normal, dtype)], 1)
                    found = project(columns, joined([zeros(shape, y), mean], 1))
                    alpha -= length * found[:, : shape[1]]
                    if epoch > 1 or number + 1 == len(steps):
                        mean = copied(found[:, shape[1] :])
                    begun, moved, gain = part.stop, [], zeros(shape, y, np.float64)
                told.at(epoch - 1, f"{part.stop} of {n} points, mse {history[-1]:.3g}")
            measure()
            off = float(norm(mean + (ridge / n) * alpha))
            residuals.append(math.sqrt(n) * math.sqrt(p) * off / whole_y)
            told.at(epoch, f"mse {history[-1]:.3g}, residual {residuals[-1]:.2g}")
            converged = residuals[-1] <= tol
            if not history[-1] <= DIVERGED * first:
                trouble = (
                    f"eigenpro_centres diverges: the mean squared error is {history[-1]:.3g} after "
                    f"{epoch} epochs, {history[0]:.3g} before; pass a smaller step than {step:.3g}"
                )
                ended = True
            elif callback is not None:
                ended = bool(callback(epoch, reshaped(alpha, (p, *outputs)), history[-1]))
            if ended or converged:
                break
    if tol and not converged and not ended and epochs:
        trouble = (
            f"eigenpro_centres did not converge: the residual is {residuals[-1]:.3g} after "
            f"{epochs} epochs, the tolerance {tol:.3g}; more epochs, fewer centres or a larger "
            "ridge would help"
        )
    if trouble:
        warnings.warn(trouble, RuntimeWarning, stacklevel=4)
    return EigenProCentres(
        kernel, Z, reshaped(alpha, (p, *outputs)), indices, np.array(history), np.array(residuals),
        converged, vectors.shape[1], batch, delay, step, beta, eigenvalue,
    )  # fmt: skip
