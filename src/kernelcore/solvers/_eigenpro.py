"""EigenPro: preconditioned stochastic gradient descent that sees K in blocks of rows.

Let K_ss v_i = s lambda_i v_i for s points drawn at random. In the RKHS e_i = k(., S) v_i / sqrt(s
lambda_i) has norm 1 and is close to an eigenfunction of eigenvalue lambda_i. A step on a batch B of
m points with g = f(B) + ridge alpha_B - y_B is

    f <- f - (eta/m) sum_b g_b [k(x_b, .) - sum_(i<=q) (1 - lambda_(q+1)/lambda_i) e_i(x_b) e_i]

(Ma and Belkin 2017, 2019): descent in the kernel k_q in brackets, whose eigenvalues are at most
about lambda_(q+1). Let beta = max k_q(x, x), lambda be the largest eigenvalue of k_q, and consider
the squared norm of the error in the RKHS of k_q along an eigenfunction of eigenvalue lambda_i. Of
this a step on m points drawn at random leaves, in expectation, at most the share

    1 - eta lambda_i (2 - eta (beta + (m - 1) lambda_i)/m)

(Ma, Bassily and Belkin 2018), and just that where k_q(x, x) = beta. Slow errors, with lambda_i far
below lambda, fall fastest for eta = m/beta, which is below the limit of stability, 2m/(beta + (m -
1) lambda), while (m - 1) lambda < beta: up to there a batch of m is worth m single points. The
diagonal need not be 1, as that of an NTK is not.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._keywords import former_attribute, synonyms
from .._types import Array, ArrayLike
from ..engine.memory import budget
from ..engine.progress import Progress
from ..kernels import Kernel
from ..linalg import namespace_of, norm
from ..linalg.arrays import (
    add,
    cast,
    copied,
    joined,
    on_diagonal,
    placed,
    put,
    reshaped,
    take,
    trace,
    zeros,
)
from ..linalg.blas import row_blocks, threaded
from ..scale.matrix import dtype_of, home, of_points
from ..scale.operator import GramOperator, points
from ._iterative import DIVERGED
from ._preconditioners import ROUNDED, Seed, subsample_sizes, top_eigenpairs

SEEN = 1000
"""The points on which the training error is measured after each epoch."""
FEW = 100
"""The least number of eigenvalues to lower, if there are as many: they cost nothing."""
EPOCHS, TOLERANCE = 50, 1e-3
"""The epochs that are made at most, and the residual that ends them, by default."""
SHARE = 0.25
"""The default batch, as a share of beta/lambda, at which eta = m/beta turns unstable.

With this batch eta is (1 + SHARE)/2 = 5/8 of the limit: beta and lambda, which are estimated from a
subsample, may be 1.6 times as large.
"""


class EigenPro(NamedTuple):
    """The result of ``eigenpro``.

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
    rank, batch : int
        The number of eigenvalues that were lowered, and of points in a step.
    step : float
        eta.
    beta, eigenvalue : float
        The largest diagonal entry and eigenvalue (of matrix/n) of the preconditioned kernel.
    """

    alpha: Array
    history: Array
    residuals: Array
    converged: bool
    rank: int
    batch: int
    step: float
    beta: float
    eigenvalue: float


EigenPro.coefficients = former_attribute("coefficients", "alpha")  # type: ignore[attr-defined]


def _spectrum(
    K: Any, ridge: float, rank: int | None, subsample: int | None, rng: np.random.Generator
) -> tuple[Array, Array, Array, float, float]:
    """Compute eigenvectors of a subsample, and what they leave of the kernel on other points.

    The result is the subsample, vectors (s, q), ``(1 - lambda_(q+1)/lambda_i)/(s lambda_i)``, beta
    and lambda; only the vectors are where K is.
    """
    n, dtype = K.shape[0], dtype_of(K)
    if rank is None:
        subsample = min(n, 4000) if subsample is None else subsample
        subsample = _check.count(subsample, "subsample", least=2)
        rank = min(subsample - 1, max(subsample // 10, FEW))
    rank, size = subsample_sizes(n, rank, subsample)
    order = rng.permutation(n)
    chosen, other = order[:size], order[size : 2 * size]
    other = other if len(other) >= size // 2 else order[: 2 * size]
    vectors, weights = lowered(K.block(chosen, chosen), rank, ridge * size / n)
    beta, largest = left(K.block(other, chosen), K.block(other, other), vectors, weights)
    # beta is at most the maximum over all points before anything is taken away.
    diagonal = K.diagonal()
    beta = min(float(namespace_of(diagonal).max(diagonal)), beta)
    if not beta > 0:  # with a kernel that is zero everywhere nothing moves, whatever the step
        beta = largest = 1.0
    return chosen, cast(vectors, dtype), weights, beta, largest


def lowered(inside: Array, rank: int, least: float) -> tuple[Array, Array]:
    """Return eigenvectors (s, q) of K_ss, and ``(1 - lambda_(q+1)/lambda_i)/(s lambda_i)``.

    The vectors are in float64, the weights on the host. Eigenvalues of K_ss are lowered to no less
    than ``least``.
    """
    dtype = np.dtype(_check.dtype_name(inside.dtype))
    values, vectors = top_eigenpairs(inside, rank + 1)
    # Taking eigenvalues away leaves rounding of the size of the trace: they are lowered to no less,
    # and not below the ridge, which is not lowered and would slow down what is.
    rounding = ROUNDED * float(np.finfo(dtype).eps) * trace(inside)
    values[-1] = max(values[-1], rounding, least)
    fine = values[:-1] > values[-1]
    values = np.append(values[:-1][fine], values[-1])
    vectors = take(vectors[:, :-1], fine, 1)
    shares = 1 - values[-1] / values[:-1]
    return vectors, shares / values[:-1]


def left(across: Array, outside: Array, vectors: Array, weights: Array) -> tuple[float, float]:
    """Return beta and lambda of k_q, from k on other points and between these and the subsample.

    On their own points the eigenvectors promise too much.
    """
    roots = placed(np.sqrt(weights), vectors)
    e = across @ cast(vectors * roots, across.dtype)
    rest = outside - e @ e.T
    largest = float(top_eigenpairs(rest, 1)[0][0]) / outside.shape[0]
    return max(float(namespace_of(rest).max(on_diagonal(rest))), largest), largest


def system(
    kernel: Any, X: Any, y: Any, sample_weight: ArrayLike | None, max_memory: float, least: int,
    name: str,
) -> tuple[Any, Array | None, Array]:  # fmt: skip
    """Return K, the roots of weights, by which K is scaled already, or None, and y, checked."""
    max_memory = _check.positive(max_memory, "max_memory")
    rule = f"have at least {least} rows for {name}"
    if isinstance(kernel, Kernel) or X is not None:
        _check.an_instance(kernel, Kernel, "kernel", "a kernel")
        X, _ = points(kernel, X)
        n = X.shape[0]
        _check.must(n >= least, "X", rule, n)
        root = _check.root_weights(sample_weight, n, X.dtype, X)
        # Half of the memory is for K, if that is enough, and half for rows of K.
        K: Any = GramOperator(kernel, X, max_memory=max_memory / 2, scale=root)
    else:
        K, root = of_points(kernel, None, "diagonal", "columns", name="kernel"), None
        _check.must(K.shape[0] >= least, "kernel", rule, K.shape[0])
        _check.not_beside(sample_weight, "sample_weight", "a matrix")
    of = "kernel" if X is None else "X"
    y = _check.targets(y, "y", K.shape[0], dtype_of(K), least=1, of=of, like=home(K, y))
    return K, root, y


def start(initial: ArrayLike | None, y: Array, root: Array | None) -> tuple[Array, Array]:
    """Return coefficients to start from and y, as tables in the coordinates of weights.

    With S = diag(root) and beta = S^-1 alpha the system is (S K S + ridge I) beta = S y.
    """
    xp, table = namespace_of(y), reshaped(y, (y.shape[0], -1))
    if initial is None:
        alpha = xp.zeros_like(table)
    else:
        initial = _check.alike(initial, "initial", y.shape, "y", y.dtype, y, "y")
        alpha = copied(reshaped(initial, table.shape))
    if root is not None:
        table = root[:, None] * table
        alpha /= xp.where(root > 0, root, 1.0)[:, None]
    return alpha, table


def mean_square(off: Array) -> float:
    """Return the mean of squares, in float64."""
    xp, square = namespace_of(off), off**2
    return float(np.mean(square, dtype=np.float64) if xp is np else xp.mean(cast(square, float)))


class _Rows:
    """Rows of K."""

    def __init__(self, block: Array) -> None:
        self.block = block

    def times(self, alpha: Array) -> Array:
        return self.block @ alpha

    def columns(self, chosen: Array) -> Array:
        return take(self.block, chosen, 1)

    def part(self, rows: slice) -> _Rows:
        return _Rows(self.block[rows, :])


class _Apart(_Rows):
    """Rows of a K on a cluster, of which only some columns are brought here.

    Steps on some points, the rows, change alpha there and on the subsample only. The product with
    alpha as it was before them is that of the cluster, and what has changed is added to it.
    """

    def __init__(self, base: Array, block: Array, columns: Array, start: Array) -> None:
        self.base, self.block, self.index, self.start = base, block, columns, start

    @classmethod
    def made(cls, K: GramOperator, which: Array, chosen: Array, alpha: Array) -> _Apart:
        index = np.concatenate([which, np.setdiff1d(chosen, which)])
        return cls(K.times(which, alpha), K.block(which, index), index, take(alpha, index))

    def times(self, alpha: Array) -> Array:
        return self.base + self.block @ (take(alpha, self.index) - self.start)

    def columns(self, chosen: Array) -> Array:
        order = np.argsort(self.index)
        return take(self.block, order[np.searchsorted(self.index, chosen, sorter=order)], 1)

    def part(self, rows: slice) -> _Apart:
        return _Apart(self.base[rows, :], self.block[rows, :], self.index, self.start)


@synonyms(rng="seed")
@threaded
def eigenpro(
    kernel: Any, X: Any, y: Any, ridge: float = 0.0, *,
    epochs: int | None = None, tol: float | None = None, sample_weight: ArrayLike | None = None,
    rank: int | None = None, subsample: int | None = None, batch: int | None = None,
    step: float | None = None, initial: ArrayLike | None = None, max_memory: float = 1e9,
    callback: Callable[[int, Array, float], object] | None = None, progress: bool = False,
    seed: Seed = None, n_threads: int | None = None,
) -> EigenPro:  # fmt: skip
    """Solve ``(K + ridge I) alpha = y`` by EigenPro, seeing ``K = kernel(X)`` in blocks of rows.

    Parameters
    ----------
    kernel : Kernel; or K itself, with X None
        K is an array of shape (n, n), a ``GramOperator`` (for weights w with ``scale=sqrt(w)``, and
        ``sqrt(w) y``), or another operator with ``diagonal()`` and ``columns(which)``.
    X : array of shape (n, d), of signals or of images
        The dtype of all work is that of X; float32 is enough.
    y : array of shape (n,) or (n, r)
    ridge : float
        Added to the diagonal as it is; 0 interpolates.
    epochs : int, optional
        The epochs to make at most, 50 by default. Each sees all n^2 entries once, and a few to
        measure the error. They are computed each time, unless half of ``max_memory`` holds K, a
        little more than ``n^2/2`` numbers: then K is computed once.
    tol : float, optional
        The run ends when ``|y - (K + ridge I) alpha| <= tol |y|`` on up to 1,000 of the points. By
        default 1e-3, or 0 if ``epochs`` is given: then all of them are made.
    sample_weight : array of shape (n,), optional
        Weights of the squared errors: ``(K + ridge W^-1) alpha = y`` is solved. Only for a Kernel.
    rank : int, optional
        q, the number of eigenvalues to lower; by default a tenth of the subsample, or 100 if that
        is more.
    subsample : int, optional
        s, the number of points from which eigenvectors are computed: at most n, by default 4,000
        or, with ``rank``, ``max(2000, 5 rank)``.
    batch : int, optional
        The points in a step: by default a quarter of ``beta/lambda``, or what ``max_memory`` holds.
    step : float, optional
        eta; by default ``batch/beta``, the best for slow eigenfunctions, or for larger batches than
        the default one 5/8 of ``2 batch/(beta + (batch - 1) lambda)``, where it may diverge.
    initial : array of the shape of y, optional
        Coefficients to start from; zero by default.
    max_memory : float
        The bytes for kernel values: K itself, if half of them hold it, and rows of K for as many
        batches as there is room for.
    callback : callable, optional
        Called as ``callback(epoch, alpha, mse)`` after each epoch: the place to measure validation
        errors. A true return value ends the run. alpha is not a copy, and with weights it is still
        divided by their roots.
    progress : bool
        Write a line to stderr every two seconds.
    seed : None, int or Generator
        Draws the subsample and the order of the points.
    n_threads : int, optional
        ``get_threads()`` by default. With 1, products by BLAS take one thread as well.

    Returns
    -------
    EigenPro
        ``alpha, history, residuals, converged, rank, batch, step, beta, eigenvalue``.

    Warns
    -----
    RuntimeWarning
        When the tolerance is not reached after all epochs, and when the iteration diverges, which
        it may with a ``step`` of the caller's; it then stops.

    Notes
    -----
    In an epoch the error along an eigenfunction of eigenvalue ``lambda_i`` (of K/n) below the
    lowered ones falls by about ``exp(-n lambda_i/beta)``. The memory beyond ``max_memory`` is X, y
    and ``subsample rank`` numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.random.default_rng(0).standard_normal((300, 3))
    >>> y = np.sin(X[:, 0])
    >>> fit = kc.solvers.eigenpro(kc.presets.mlp(2).ntk, X, y, epochs=40, seed=0)
    >>> bool(fit.history[-1] < 1e-2 * fit.history[0])
    True
    """
    K, root, y = system(kernel, X, y, sample_weight, max_memory, 2, "eigenpro")
    n, dtype = K.shape[0], dtype_of(K)
    xp = namespace_of(y)
    ridge = _check.non_negative(ridge, "ridge")
    if tol is None:
        tol = TOLERANCE if epochs is None else 0.0
    tol = _check.non_negative(tol, "tol")
    epochs = EPOCHS if epochs is None else _check.count(epochs, "epochs")
    callback = _check.optional_callable(callback, "callback")
    rng = _check.generator(seed, "seed")
    shape = y.shape
    alpha, y = start(initial, y, root)

    kept = K.hold()
    chosen, vectors, weights, beta, eigenvalue = _spectrum(K, ridge, rank, subsample, rng)
    memory = min(max_memory, budget()) if xp is np else max_memory
    room = max(1, int(memory // (n * dtype.itemsize)))
    remote = isinstance(K, GramOperator) and K.remote
    if remote:  # rows have columns for themselves and for the subsample
        half = len(chosen) / 2
        room = max(1, int(math.sqrt(memory / dtype.itemsize + half**2) - half))
    beta, eigenvalue = beta + ridge, eigenvalue + ridge / n
    if batch is None:
        batch = min(n, room, max(1, int(SHARE * beta / eigenvalue)))
    else:
        batch = min(n, _check.count(batch, "batch", least=1))
    if step is None:
        step = min(batch / beta, (1 + SHARE) * batch / (beta + (batch - 1) * eigenvalue))
    eta = _check.positive(step, "step")
    length, weights = eta / batch, placed(weights, y)[:, None]

    seen = np.sort(rng.permutation(n)[:SEEN])
    # Rows of several batches cost less at once than one batch at a time.
    held = min(n, room if batch > room else room // batch * batch)
    several = batch if kept else held
    own = xp is np and not remote
    buffer = np.empty(min(held, max(several, SEEN)) * n if own else 0, dtype)

    def rows(which: Array) -> _Rows:
        """Return rows of K, of the host in memory that the next call takes again."""
        if remote:
            return _Apart.made(K, which, chosen, alpha)
        if xp is not np:
            return _Rows(K.rows(which))
        return _Rows(K.rows(which, buffer[: len(which) * n].reshape(len(which), n)))

    def values(which: Array) -> Array:
        if remote:
            return K.times(which, alpha)
        return joined([rows(which[part]).times(alpha) for part in row_blocks(len(which), held)])

    def batches(order: Array) -> Iterator[tuple[Array, Iterable[tuple[slice, _Rows]]]]:
        """Yield the points of each step and their rows of K, in pieces if memory is short."""
        if batch > held:
            for part in row_blocks(n, batch):
                which = order[part]
                yield which, ((p, rows(which[p])) for p in row_blocks(len(which), held))
            return
        for many in row_blocks(n, several):
            found, block = order[many], rows(order[many])
            for part in row_blocks(len(found), batch):
                yield found[part], [(slice(None), block.part(part))]

    size = float(norm(take(y, seen))) or 1.0

    def measure() -> None:
        """Record the mean squared error and the relative residual on the points ``seen``."""
        off = values(seen) - take(y, seen) if bool(xp.any(alpha != 0)) else -take(y, seen)
        history.append(mean_square(off))
        residuals.append(float(norm(off + ridge * take(alpha, seen))) / size)

    told = Progress("eigenpro", epochs, _check.flag(progress, "progress"))
    history: list[float] = []
    residuals: list[float] = []
    measure()
    ended: object = False
    trouble = ""
    first = max(history[0], np.finfo(dtype).tiny)
    for epoch in range(1, epochs + 1):
        done = 0
        for which, pieces in batches(rng.permutation(n)):
            g, along = zeros((len(which), y.shape[1]), y), zeros((), y)
            for piece, block in pieces:
                g[piece, :] = block.times(alpha) + ridge * take(alpha, which[piece])
                g[piece, :] -= take(y, which[piece])
                along = along + block.columns(chosen).T @ g[piece, :]
            alpha = put(alpha, which, take(alpha, which) - length * g)
            alpha = add(alpha, chosen, length * (vectors @ (weights * (vectors.T @ along))))
            done += len(which)
            told.at(epoch - 1, f"{done} of {n} points, mse {history[-1]:.3g}")
        measure()
        told.at(epoch, f"mse {history[-1]:.3g}, residual {residuals[-1]:.2g}")
        if not history[-1] <= DIVERGED * first:
            trouble = (
                f"eigenpro diverges: the mean squared error is {history[-1]:.3g} after {epoch} "
                f"epochs, {history[0]:.3g} before; pass a smaller step than {eta:.3g}"
            )
            ended = True
        elif callback is not None:
            ended = callback(epoch, reshaped(alpha, shape), history[-1])
        if ended or residuals[-1] <= tol:
            break
    converged = residuals[-1] <= tol
    if tol and not converged and not ended:
        trouble = (
            f"eigenpro did not converge: the relative residual is {residuals[-1]:.3g} after "
            f"{epochs} epochs, the tolerance {tol:.3g}; more epochs or a larger ridge would help"
        )
    if trouble:
        warnings.warn(trouble, RuntimeWarning, stacklevel=4)
    if root is not None:
        alpha *= root[:, None]
    return EigenPro(
        reshaped(alpha, shape), np.array(history), np.array(residuals), converged,
        vectors.shape[1], batch, eta, beta, eigenvalue,
    )  # fmt: skip
