"""Coordinates from a kernel: principal components, Laplacian eigenmaps, diffusion maps."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .. import _check
from ..kernels import Gaussian, Kernel
from ..linalg import norm
from ..spectrum import empirical
from ..spectrum._gram import few
from ._base import OfKernel
from ._regressor import KernelRegressor

Array = np.ndarray


class _Embedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OfKernel):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def _project(self, X, weights) -> Array:
        """Rows of the kernel, made into coordinates by ``weights`` block by block."""
        X = self._read_more(X)
        out = np.empty((len(X), len(self.eigenvalues_)), X.dtype)
        for part, K in self._blocks(X):
            out[part] = weights(K)
        return out


def _upright(vectors: Array) -> Array:
    """Columns with signs such that the entry largest in size is positive."""
    at = np.abs(vectors).argmax(0)
    return vectors * np.where(vectors[at, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


class KernelPCA(_Embedding):
    """Principal components of the data in the RKHS, centred there.

    Parameters
    ----------
    n_components : int, optional
        At most n. By default as many as there are eigenvalues above ``n eps`` times the largest.
    kernel : kernel, 'precomputed' or None
        As in ``KernelRegressor``.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Of the centred Gram matrix, largest first; over n they are the variances of the coordinates.
    eigenvectors_ : array of shape (n, n_components)
        In columns, of norm 1; the entry largest in size is positive.
    explained_variance_ratio_ : array of shape (n_components,)
        Shares of the trace.
    X_fit_, kernel_, n_features_in_
        As in ``KernelRegressor``.

    Notes
    -----
    In double precision, by ``spectrum.empirical``: Lanczos' method for less than n/20 components.
    Coordinates along eigenvalues that are not resolved are zero.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0], [3.0, 3.0]])
    >>> pca = kc.KernelPCA(2, kc.Polynomial(1)).fit(X)
    >>> pca.transform(X).shape, pca.eigenvalues_.round(3)
    ((5, 2), array([16.4,  2. ]))
    """

    def __init__(self, n_components=None, kernel=None):
        self.n_components = n_components
        self.kernel = kernel

    def fit(self, X, y=None):
        """Diagonalise the centred Gram matrix; y is not used."""
        rank = self.n_components
        if rank is not None:
            rank = _check.count(rank, "n_components", least=1)
        X = self._read(X)
        if rank is not None:
            _check.at_most(rank, len(X), "n_components", "the number of samples")
        arrays, remedy = (1, "fewer points") if few(rank, len(X)) else (3, "a small n_components")
        _check.room("K", (len(X), len(X)), np.float64, arrays, (remedy,))
        K = self._gram(X).astype(np.float64, copy=False)
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
        self._inverse = None
        return self

    def fit_transform(self, X, y=None) -> Array:
        """``fit(X).transform(X)``, from the eigenvectors: shape (n, n_components)."""
        self.fit(X)
        return (self.eigenvectors_ * np.sqrt(self.eigenvalues_)).astype(self._dtype)

    def transform(self, X) -> Array:
        """Coordinates of points.

        Parameters
        ----------
        X : array of shape (m, d), of signals or of images

        Returns
        -------
        array of shape (m, n_components)
        """
        return self._project(X, self._coordinates)

    def inverse_transform(self, X) -> Array:
        """Inputs whose coordinates are close to these.

        A kernel ridge regression of the inputs of the fit on their coordinates, as in Bakir, Weston
        and Schoelkopf (2004), with the same kernel and the ridge by leave-one-out; for kernels of
        images, which take no coordinates, with ``presets.mlp(2, b_std=0.1).ntk``. It is fitted when
        it is first asked for.

        Parameters
        ----------
        X : array of shape (m, n_components)

        Returns
        -------
        array of shape (m, d), of signals or of images
        """
        check_is_fitted(self)
        _check.not_precomputed(self.X_fit_ is None, "inverse_transform must not be called")
        if self._inverse is None:
            known = (self.eigenvectors_ * np.sqrt(self.eigenvalues_)).astype(self._dtype)
            kernel = super()._default() if self._images else self.kernel_
            self._inverse = KernelRegressor(kernel).fit(known, self.X_fit_.reshape(len(known), -1))
        return self._inverse.predict(X).reshape(len(X), *self.X_fit_.shape[1:])

    def _coordinates(self, K: Array) -> Array:
        K = K.astype(np.float64)
        K -= K.mean(1, keepdims=True)
        K -= self._means - self._mean
        root = np.sqrt(self.eigenvalues_)
        return (K @ self.eigenvectors_) / np.where(root > 0, root, np.inf)


class SpectralEmbedding(_Embedding):
    """Laplacian eigenmaps or diffusion maps: coordinates in which affine points are close.

    Parameters
    ----------
    n_components : int
        Less than n.
    kernel : kernel, 'precomputed' or None
        Of the affinities, not negative on the data. None is ``Gaussian(1.0)``.
    method : 'laplacian' or 'diffusion'
        With W the affinities, that of a point to itself among them, D their sums along rows and
        P = D^-1 W: eigenvectors of ``(D - W) v = mu D v`` with the least mu (Belkin and Niyogi
        2003), ``v' D v = 1``; or ``lambda^t v`` with ``P v = lambda v`` of mean square 1 under the
        stationary distribution of P, in which Euclidean distances are diffusion distances after t
        steps (Coifman and Lafon 2006). The constant one is left out.
    t : float
        Time of diffusion; only for 'diffusion'.
    alpha : float
        Affinities are first divided by the product of both sums to this power: with 1 the density
        of the points drops out, with 0 it stays.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        mu, smallest first; or lambda, largest first.
    embedding_ : array of shape (n, n_components)
        Each column has the entry largest in size positive.
    X_fit_, kernel_, n_features_in_
        As in ``KernelRegressor``.

    Notes
    -----
    ``transform`` is Nystrom's extension ``v(x) = sum_i P(x, x_i) v_i / lambda``, which repeats
    ``embedding_`` on the training points. Where lambda is not resolved it is zero.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1]])
    >>> maps = kc.SpectralEmbedding(1, kc.Gaussian(1.0)).fit(X)
    >>> np.sign(maps.embedding_[:, 0])
    array([-1., -1., -1.,  1.,  1.])
    """

    def __init__(self, n_components=2, kernel=None, method="laplacian", t=1.0, alpha=0.0):
        self.n_components = n_components
        self.kernel = kernel
        self.method = method
        self.t = t
        self.alpha = alpha

    def _default(self) -> Kernel:
        return Gaussian(1.0)

    def fit(self, X, y=None):
        """Diagonalise the affinities; y is not used."""
        rank = _check.count(self.n_components, "n_components", least=1)
        _check.choice(self.method, "method", ("laplacian", "diffusion"))
        t = _check.non_negative(self.t, "t")
        alpha = _check.non_negative(self.alpha, "alpha")
        X = self._read(X, ensure_min_samples=2)
        n = len(X)
        _check.at_most(rank, n - 1, "n_components", "one less than the number of samples")
        arrays, remedy = (2, "fewer points") if few(rank, n) else (3, "a small n_components")
        _check.room("K", (n, n), np.float64, arrays, (remedy,))
        W = _check.weights(self._gram(X), "kernel").astype(np.float64, copy=False)
        self._density = _check.connected(W.sum(1)) ** alpha
        W /= self._density
        W /= self._density[:, None]
        sums = W.sum(1)
        root = np.sqrt(sums)
        W /= root
        W /= root[:, None]
        # Without the constant, whose eigenvalue is 1; it is known, and others may have it too.
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

    def fit_transform(self, X, y=None) -> Array:
        """``fit(X).embedding_``, of shape (n, n_components)."""
        return self.fit(X).embedding_

    def transform(self, X) -> Array:
        """Coordinates of points.

        Parameters
        ----------
        X : array of shape (m, d), of signals or of images

        Returns
        -------
        array of shape (m, n_components)
        """
        return self._project(X, self._coordinates)

    def _coordinates(self, K: Array) -> Array:
        # what a row is divided by drops out of P
        P = _check.weights(K, "kernel") / self._density
        P /= _check.connected(P.sum(1))[:, None]
        return (P @ self._vectors) / np.where(self._steps == 0, np.inf, self._steps)
