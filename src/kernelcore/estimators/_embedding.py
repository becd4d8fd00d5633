"""Coordinates from a kernel: principal components, Laplacian eigenmaps, diffusion maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .. import _check
from .._types import Array, ArrayLike, Self
from ..kernels import Gaussian, Kernel
from ..linalg import namespace_of, norm, top_eigh
from ..linalg.arrays import averaged, cast, eps_of, joined, reshaped, summed, trace
from ..spectrum import empirical
from ..spectrum._gram import few
from ._base import KernelLike, OfKernel
from ._regressor import KernelRegressor


class _Embedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OfKernel):
    eigenvalues_: Array

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.eigenvalues_.shape[0]

    def _wide_gram(self, X: Array, rank: int | None, least: int) -> Array:
        """Return the Gram matrix in float64; ``least`` arrays are held for a few eigenvectors."""
        if isinstance(X, np.ndarray):
            n = len(X)
            most, remedy = (least, "fewer points") if few(rank, n) else (3, "a small n_components")
            _check.room("K", (n, n), np.float64, most, (remedy,))
        return cast(self._gram(X), np.float64)

    def transform(self, X: ArrayLike) -> Array:
        """Return the coordinates of X, of the kind that was fitted: shape (m, n_components)."""
        X = self._read_more(X)
        return joined([cast(self._coordinates(K), X.dtype) for _, K in self._blocks(X)])


def _diagonalised(K: Array, rank: int | None) -> tuple[Array, Array, float]:
    """Return eigenvalues, largest first, eigenvectors, and the trace; on a device of a whole K."""
    n, xp = K.shape[0], namespace_of(K)
    if xp is np:
        found = empirical(K, rank)
        assert found.eigenvectors is not None
        return found.eigenvalues * n, found.eigenvectors, found.trace * n
    values, vectors = top_eigh(K, n if rank is None else rank)
    return xp.flip(values), xp.flip(vectors, axis=1), trace(K)


def _upright(vectors: Array) -> Array:
    """Return the columns with signs that make the entry largest in size positive."""
    xp = namespace_of(vectors)
    if xp is not np:
        down = xp.max(vectors, axis=0) < -xp.min(vectors, axis=0)
        return xp.where(down, -vectors, vectors)
    at = np.abs(vectors).argmax(0)
    return vectors * np.where(vectors[at, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def _divided(a: Array, by: Array) -> Array:
    """Return the columns over these numbers, and zero where they are zero."""
    return a / namespace_of(by).where(by == 0, np.inf, by)


class KernelPCA(_Embedding):
    """Principal components of the data, centred in the RKHS.

    Parameters
    ----------
    n_components : int, optional
        At most n. By default the number of eigenvalues above ``n eps`` times the largest.
    kernel : kernel, 'precomputed' or None
        As in ``KernelRegressor``.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the centred Gram matrix, largest first. Divided by n they are the variances
        of the coordinates.
    eigenvectors_ : array of shape (n, n_components)
        In columns of norm 1, whose entry largest in size is positive.
    explained_variance_ratio_ : array of shape (n_components,)
        The eigenvalues divided by the trace.
    X_fit_, kernel_, n_features_in_
        As in ``KernelRegressor``.

    Notes
    -----
    ``spectrum.empirical`` computes the eigenvectors in double precision, fewer than n/20 of them by
    Lanczos' method. Coordinates along eigenvalues that are not resolved are zero.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0], [3.0, 3.0]])
    >>> pca = kc.KernelPCA(2, kc.Polynomial(1)).fit(X)
    >>> pca.transform(X).shape, pca.eigenvalues_.round(3)
    ((5, 2), array([16.4,  2. ]))
    """

    def __init__(self, n_components: int | None = None, kernel: KernelLike = None) -> None:
        self.n_components, self.kernel = n_components, kernel

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Diagonalise the centred Gram matrix; y is not used."""
        rank = self.n_components
        if rank is not None:
            rank = _check.count(rank, "n_components", least=1)
        X, _ = self._read(X)
        n = X.shape[0]
        if rank is not None:
            _check.at_most(rank, n, "n_components", "the number of samples")
        K = self._wide_gram(X, rank, 1)
        xp = namespace_of(K)
        self._means = averaged(K, 0)
        self._mean = averaged(self._means, 0)
        K -= self._means
        K -= self._means[:, None]
        K += self._mean
        values, vectors, total = _diagonalised(K, rank)
        values = xp.maximum(values, 0.0)
        resolved = values > n * eps_of(X) * values[0]
        kept = max(1, int(xp.count_nonzero(resolved))) if rank is None else rank
        self.eigenvalues_ = xp.where(resolved, values, 0.0)[:kept]
        self.eigenvectors_ = _upright(vectors[:, :kept])
        self.explained_variance_ratio_ = self.eigenvalues_ / (total if total > 0 else 1.0)
        self._inverse: KernelRegressor | None = None
        return self

    def fit_transform(self, X: ArrayLike, y: object = None) -> Array:
        """Return ``fit(X).transform(X)``, of shape (n, n_components), from the eigenvectors."""
        return self.fit(X)._known()

    def _known(self) -> Array:
        root = namespace_of(self.eigenvalues_).sqrt(self.eigenvalues_)
        return cast(self.eigenvectors_ * root, self._dtype)

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Return inputs whose coordinates are close to X, which has shape (m, n_components).

        They are predicted by a kernel ridge regression of the training inputs on their coordinates,
        as in Bakir, Weston and Schoelkopf (2004), with the ridge chosen by leave-one-out. It has
        the same kernel, or ``presets.mlp(2, b_std=0.1).ntk`` in place of a kernel of images, which
        takes no coordinates. The first call fits it.
        """
        check_is_fitted(self)
        _check.not_precomputed(self.X_fit_ is None, "inverse_transform must not be called")
        if self._inverse is None:
            known = self._known()
            kernel = super()._default() if self._images else self.kernel_
            flat = reshaped(self.X_fit_, (known.shape[0], -1))
            self._inverse = KernelRegressor(kernel).fit(known, flat)
        found = self._inverse.predict(X)
        return reshaped(found, (found.shape[0], *self.X_fit_.shape[1:]))

    def _coordinates(self, K: Array) -> Array:
        K = cast(K, np.float64)
        K = K - averaged(K, 1)[:, None]
        K -= self._means - self._mean
        root = namespace_of(self.eigenvalues_).sqrt(self.eigenvalues_)
        return _divided(K @ self.eigenvectors_, root)


class SpectralEmbedding(_Embedding):
    """Laplacian eigenmaps or diffusion maps: coordinates in which similar points are close.

    Parameters
    ----------
    n_components : int
        Less than n.
    kernel : kernel, 'precomputed' or None
        The affinities, which must not be negative on the data. None means ``Gaussian(1.0)``.
    method : 'laplacian' or 'diffusion'
        W has the affinities, those of points with themselves included, D their sums along rows, and
        P = D^-1 W. 'laplacian' takes the eigenvectors of ``(D - W) v = mu D v`` with the least mu
        (Belkin and Niyogi 2003) and ``v' D v = 1``. 'diffusion' takes ``lambda^t v``, where
        ``P v = lambda v`` and v has mean square 1 under the stationary distribution of P: Euclidean
        distances are then diffusion distances after t steps (Coifman and Lafon 2006). Both leave
        out the constant eigenvector.
    t : float
        The time of diffusion, for 'diffusion' only.
    alpha : float
        Affinities are first divided by this power of the product of the sums of both points: 1
        removes the density of the points, 0 keeps it.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        mu, smallest first; or lambda, largest first.
    embedding_ : array of shape (n, n_components)
        The entry largest in size of each column is positive.
    X_fit_, kernel_, n_features_in_
        As in ``KernelRegressor``.

    Notes
    -----
    ``transform`` is Nystrom's extension ``v(x) = sum_i P(x, x_i) v_i / lambda``, which agrees with
    ``embedding_`` on the training points. It is zero where lambda is not resolved.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1]])
    >>> maps = kc.SpectralEmbedding(1, kc.Gaussian(1.0)).fit(X)
    >>> np.sign(maps.embedding_[:, 0])
    array([-1., -1., -1.,  1.,  1.])
    """

    def __init__(
        self, n_components: int = 2, kernel: KernelLike = None, method: str = "laplacian",
        t: float = 1.0, alpha: float = 0.0,
    ) -> None:  # fmt: skip
        self.n_components, self.kernel, self.method = n_components, kernel, method
        self.t, self.alpha = t, alpha

    def _default(self) -> Kernel:
        return Gaussian(1.0)

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Diagonalise the affinities; y is not used."""
        rank = _check.count(self.n_components, "n_components", least=1)
        _check.choice(self.method, "method", ("laplacian", "diffusion"))
        t = _check.non_negative(self.t, "t")
        alpha = _check.non_negative(self.alpha, "alpha")
        X, _ = self._read(X, ensure_min_samples=2)
        n = X.shape[0]
        _check.at_most(rank, n - 1, "n_components", "one less than the number of samples")
        W = _check.weights(self._wide_gram(X, rank, 2), "kernel")
        xp = namespace_of(W)
        self._density = _check.connected(summed(W, 1)) ** alpha
        W /= self._density
        W /= self._density[:, None]
        root = xp.sqrt(summed(W, 1))
        W /= root
        W /= root[:, None]
        # Remove the constant, which is known: other eigenvectors may share its eigenvalue 1.
        first = root / norm(root)
        W -= first[:, None] * first
        steps, vectors, _ = _diagonalised(W, rank)
        vectors = _upright(vectors / root[:, None])
        self._steps = xp.where(xp.abs(steps) > n * eps_of(X), steps, 0.0)
        if self.method == "laplacian":
            self.eigenvalues_ = xp.maximum(1 - steps, 0.0)
        else:
            vectors *= norm(root) * xp.maximum(self._steps, 0.0) ** t
            self.eigenvalues_ = steps
        self._vectors = vectors
        self.embedding_ = cast(vectors, X.dtype)
        return self

    def fit_transform(self, X: ArrayLike, y: object = None) -> Array:
        """Return ``fit(X).embedding_``, of shape (n, n_components)."""
        return self.fit(X).embedding_

    def _coordinates(self, K: Array) -> Array:
        # P does not change if a row is divided by its own density
        P = _check.weights(K, "kernel") / self._density
        P /= _check.connected(summed(P, 1))[:, None]
        return _divided(P @ self._vectors, self._steps)
