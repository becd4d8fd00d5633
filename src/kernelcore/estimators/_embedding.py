"""Coordinates from a kernel: principal components, Laplacian eigenmaps, diffusion maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .. import _check
from .._types import Array, ArrayLike, Self
from ..kernels import Gaussian, Kernel
from ..linalg import norm
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

    def _stays(self, X: Any) -> bool:
        _check.on_the_host(X, "X")  # where spectra are computed
        return False

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def _wide_gram(self, X: Array, rank: int | None, least: int) -> Array:
        """Return the Gram matrix in float64; ``least`` arrays are held for a few eigenvectors."""
        n = len(X)
        arrays, remedy = (least, "fewer points") if few(rank, n) else (3, "a small n_components")
        _check.room("K", (n, n), np.float64, arrays, (remedy,))
        return self._gram(X).astype(np.float64, copy=False)

    def transform(self, X: ArrayLike) -> Array:
        """Return the coordinates of X, of the kind that was fitted: shape (m, n_components)."""
        X = self._read_more(X)
        return np.concatenate([self._coordinates(K).astype(X.dtype) for _, K in self._blocks(X)])


def _upright(vectors: Array) -> Array:
    """Return the columns with signs that make the entry largest in size positive."""
    at = np.abs(vectors).argmax(0)
    return vectors * np.where(vectors[at, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


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
        if rank is not None:
            _check.at_most(rank, len(X), "n_components", "the number of samples")
        K = self._wide_gram(X, rank, 1)
        self._means = K.mean(0)
        self._mean = self._means.mean()
        K -= self._means
        K -= self._means[:, None]
        K += self._mean
        found = empirical(K, rank)
        values = np.maximum(found.eigenvalues * len(X), 0.0)
        resolved = values > len(X) * np.finfo(X.dtype).eps * values[0]
        kept = max(1, np.count_nonzero(resolved)) if rank is None else rank
        self.eigenvalues_ = np.where(resolved, values, 0.0)[:kept]
        self.eigenvectors_ = _upright(found.eigenvectors[:, :kept])
        total = found.trace * len(X)
        self.explained_variance_ratio_ = self.eigenvalues_ / (total if total > 0 else 1.0)
        self._inverse: KernelRegressor | None = None
        return self

    def fit_transform(self, X: ArrayLike, y: object = None) -> Array:
        """Return ``fit(X).transform(X)``, of shape (n, n_components), from the eigenvectors."""
        self.fit(X)
        return (self.eigenvectors_ * np.sqrt(self.eigenvalues_)).astype(self._dtype)

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
            known = (self.eigenvectors_ * np.sqrt(self.eigenvalues_)).astype(self._dtype)
            kernel = super()._default() if self._images else self.kernel_
            self._inverse = KernelRegressor(kernel).fit(known, self.X_fit_.reshape(len(known), -1))
        found = self._inverse.predict(X)
        return found.reshape(len(found), *self.X_fit_.shape[1:])

    def _coordinates(self, K: Array) -> Array:
        K = K.astype(np.float64)
        K -= K.mean(1, keepdims=True)
        K -= self._means - self._mean
        root = np.sqrt(self.eigenvalues_)
        return (K @ self.eigenvectors_) / np.where(root > 0, root, np.inf)


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
        n = len(X)
        _check.at_most(rank, n - 1, "n_components", "one less than the number of samples")
        W = _check.weights(self._wide_gram(X, rank, 2), "kernel")
        self._density = _check.connected(W.sum(1)) ** alpha
        W /= self._density
        W /= self._density[:, None]
        sums = W.sum(1)
        root = np.sqrt(sums)
        W /= root
        W /= root[:, None]
        # Remove the constant, which is known: other eigenvectors may share its eigenvalue 1.
        first = root / norm(root)
        W -= first[:, None] * first
        found = empirical(W, rank)
        steps = found.eigenvalues * n
        vectors = _upright(found.eigenvectors / root[:, None])
        self._steps = np.where(np.abs(steps) > n * np.finfo(X.dtype).eps, steps, 0.0)
        if self.method == "laplacian":
            self.eigenvalues_ = np.maximum(1 - steps, 0.0)
        else:
            vectors *= norm(root) * np.maximum(self._steps, 0) ** t
            self.eigenvalues_ = steps
        self._vectors = vectors
        self.embedding_ = vectors.astype(X.dtype)
        return self

    def fit_transform(self, X: ArrayLike, y: object = None) -> Array:
        """Return ``fit(X).embedding_``, of shape (n, n_components)."""
        return self.fit(X).embedding_

    def _coordinates(self, K: Array) -> Array:
        # P does not change if a row is divided by its own density
        P = _check.weights(K, "kernel") / self._density
        P /= _check.connected(P.sum(1))[:, None]
        return (P @ self._vectors) / np.where(self._steps == 0, np.inf, self._steps)
