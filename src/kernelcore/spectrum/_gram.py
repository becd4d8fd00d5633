"""The spectrum of a Gram matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..linalg import lanczos, top_eigh
from ._levels import Spectrum
from ._plot import axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LANCZOS_SHARE = 20
"""For up to 1/20 of the eigenvalues, Lanczos is faster than reducing the whole matrix."""


class GramSpectrum(Spectrum):
    """The eigenvalues of ``K/n``, largest first, each a level of its own; made by ``empirical``.

    Attributes
    ----------
    eigenvalues : array of shape (r,)
        Those of K/n. Where K is singular, rounding leaves some of size ``1e-16 eigenvalues[0]`` and
        of either sign; they are kept as computed.
    log_eigenvalues, mass : arrays of shape (r,)
        Negative eigenvalues count as exact zeros here, so that theory never learns along them.
    eigenvectors : array of shape (n, r)
        In columns, of norm 1.
    trace, tail : float
        ``trace(K)/n``, and the part of it that the listed eigenvalues leave.
    n : int
        The number of rows of K.
    """

    def __init__(
        self, eigenvalues: Array, eigenvectors: Array | None, trace: float, n: int
    ) -> None:
        with np.errstate(divide="ignore"):
            log = np.log(np.maximum(eigenvalues, 0.0))
        super().__init__(log, [1] * len(eigenvalues), trace)
        self._eigenvalues, self._eigenvectors, self.n = eigenvalues, eigenvectors, n

    @property
    def eigenvalues(self) -> Array:
        return self._eigenvalues

    @property
    def eigenvectors(self) -> Array:
        return _check.has(self._eigenvectors, "eigenvectors", "gram was called with vectors=False")

    @property
    def mass(self) -> Array:
        return np.maximum(self._eigenvalues, 0.0)

    def target_power(self, y: ArrayLike) -> Array:
        """Return the power of labels along each eigenvector; its sum is the mean of ``y**2``.

        Parameters
        ----------
        y : array of shape (n,)

        Returns
        -------
        array of shape (r,) or (r + 1,)
            ``(v_i . y)^2 / n``; where only some eigenvectors are listed, the last entry is the
            power along all others. This is the ``target_power`` that ``kc.theory`` takes.

        Examples
        --------
        >>> import kernelcore as kc
        >>> kc.spectrum.empirical([[2.0, 1.0], [1.0, 2.0]]).target_power([3.0, 1.0])
        array([4., 1.])
        """
        y = _check.vector(y, "y", self.n, "row of K")
        power = (self.eigenvectors.T @ y) ** 2 / self.n
        if len(power) == self.n:
            return power
        # From the projection: a difference of sums would cancel where little is left.
        rest = y - self.eigenvectors @ (self.eigenvectors.T @ y)
        return np.append(power, np.mean(rest**2))

    def decay(self, t: ArrayLike) -> Array:
        """Return the factor by which gradient flow shrinks a residual along each eigenvector.

        Parameters
        ----------
        t : array_like
            Times of ``f' = -K (f - y)``, the flow of the loss ``|f - y|^2 / 2``; may be infinite.

        Returns
        -------
        array of shape t.shape + (r,)
            ``exp(-lambda_i t)``, with ``lambda_i = n eigenvalues[i]`` an eigenvalue of K.

        Examples
        --------
        >>> import kernelcore as kc
        >>> kc.spectrum.empirical([[2.0, 1.0], [1.0, 2.0]]).decay(1.0)
        array([0.04978707, 0.36787944])
        """
        t = _check.amounts(t, "t", infinite=True)[..., None]
        _check.room("decay", (t.size, len(self)), np.float64, 2, ("fewer times",))
        with np.errstate(invalid="ignore"):  # infinity times zero
            return np.where(self.mass > 0, np.exp(-t * self.n * self.mass), 1.0)

    def plot(self, theory: Spectrum | None = None, ax: Axes | None = None) -> Axes:
        """Draw eigenvalues against their index, both on logarithmic axes.

        Parameters
        ----------
        theory : Spectrum, optional
            A spectrum to draw on top, with each eigenvalue as often as its multiplicity says, up to
            n of them.
        ax : matplotlib Axes, optional
            New ones by default.

        Returns
        -------
        Axes
        """
        ax = axes(ax)
        shown = np.flatnonzero(self._eigenvalues > 0)
        own = {"markersize": 4, "label": "Gram matrix / n"}
        ax.loglog(shown + 1, self._eigenvalues[shown], ".", **own)
        if theory is not None:
            ax.loglog(*staircase(theory, self.n), color="black", linewidth=1.2, label="theory")
        ax.set(xlabel="index", ylabel="eigenvalue")
        ax.legend()
        return ax


def staircase(spectrum: Spectrum, n: int) -> tuple[Array, Array]:
    """Return the corners of the curve of the n largest eigenvalues against their index, from 1."""
    order = np.argsort(-spectrum.log_eigenvalues, kind="stable")
    order = order[spectrum.log_eigenvalues[order] > -np.inf]
    index, value, last = [], [], 0
    for level in order:
        first, last = last + 1, last + int(spectrum.multiplicities[level])
        if first > n:
            break
        index += [first, min(last, n)]
        value += [np.exp(spectrum.log_eigenvalues[level])] * 2
    return np.array(index), np.array(value)


def few(rank: int | None, n: int) -> bool:
    """Return whether Lanczos' method finds ``rank`` eigenvalues, which needs no copy of K."""
    return rank is not None and rank * LANCZOS_SHARE < n


def empirical(
    K: Any, rank: int | None = None, *, trace: float | None = None, vectors: bool = True
) -> GramSpectrum:
    """Compute the spectrum of a Gram matrix: the eigenvalues of K/n, largest first.

    They tend to the eigenvalues of the kernel with respect to the distribution of the points.

    Parameters
    ----------
    K : array of shape (n, n), ``GramOperator`` or other operator
        It is symmetric up to ``sqrt(eps)`` of its dtype times its largest entry; the lower triangle
        is used, in float64. A ``GramOperator`` is multiplied for few eigenvalues, which costs one
        Gram matrix if memory holds it, and made into an array for more.
    rank : int, optional
        The number of eigenvalues, from the top; all by default. Operators other than
        ``GramOperator`` need it, and at least one eigenvalue has to be left out.
    trace : float, optional
        The trace of such an operator: ``n k(x, x)`` where the diagonal is constant.
    vectors : bool
        Whether to compute eigenvectors, which ``target_power`` needs. Without them the full
        spectrum takes a third of the time.

    Returns
    -------
    GramSpectrum

    Notes
    -----
    The absolute error is about ``n u`` times the largest eigenvalue, u = 1.1e-16, so small ones
    have no correct digits. Fewer than n/20 eigenvalues are found by Lanczos' method (ARPACK) from a
    fixed start, with some ``4 rank`` products with K. It finds equal eigenvalues as often as they
    occur, but only by virtue of restarts and rounding: where many are exactly equal, ask for more
    than n/20. These are found by LAPACK's ``evr``, with 9 n^3 flops, or 4/3 n^3 without vectors, in
    one call that cannot be interrupted: Ctrl-C acts when it is done.

    Examples
    --------
    >>> import kernelcore as kc
    >>> s = kc.spectrum.empirical([[2.0, 1.0], [1.0, 2.0]])
    >>> s.eigenvalues
    array([1.5, 0.5])
    >>> round(kc.spectrum.empirical([[2.0, 1.0], [1.0, 2.0]], rank=1).tail, 12)
    0.5
    """
    from scipy.sparse.linalg import LinearOperator

    from ..scale.matrix import Dense, Multiplies, dtype_of, home, operates, symmetric

    vectors = _check.flag(vectors, "vectors")
    part = symmetric(K if operates(K) else _check.real_array(K, "K"))
    _check.on_the_host(home(part), "K")
    n = part.shape[0]
    most, what = n, "the number of rows of K"
    if isinstance(part, Multiplies):
        rank = _check.given(rank, "rank", "a LinearOperator")
        trace = _check.given(trace, "trace", "a LinearOperator")
        most, what = n - 1, "one less than the rows of K"
    rank = n if rank is None else _check.count(rank, "rank", least=1)
    rank = _check.at_most(rank, most, "rank", what)
    trace = None if trace is None else _check.number(trace, "trace")
    by_products = isinstance(part, Multiplies) or few(rank, n)
    if isinstance(part, Dense) or not by_products:
        narrow = dtype_of(part) != np.float64
        more = narrow + (0 if by_products else 1 + vectors)
        remedies = ("a small rank", *["vectors=False"][:vectors])
        _check.room("K", part.shape, np.float64, 1 + more, remedies)
        K = part.toarray().astype(np.float64, copy=False)
        trace = np.trace(K) if trace is None else trace
    elif trace is None:
        trace = part.diagonal().sum(dtype=np.float64)
    if by_products:
        gram32 = part is K and K.dtype == np.float32  # the operators of others as they are
        if gram32 or not isinstance(K, np.ndarray | LinearOperator):
            K = LinearOperator(part.shape, part.__matmul__, matmat=part.__matmul__, dtype=float)
        values, basis = lanczos(K, rank, vectors=vectors)
    else:
        values, basis = top_eigh(K, rank, vectors=vectors)
    order = np.argsort(-values, kind="stable")
    basis = None if basis is None else basis[:, order]
    return GramSpectrum(values[order] / n, basis, trace / n, n)
