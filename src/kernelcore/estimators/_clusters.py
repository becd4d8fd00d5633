"""Clusters from a kernel: k-means in its RKHS, and of Laplacian eigenmaps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClusterMixin

from .. import _check
from .._keywords import synonyms
from .._types import Array, ArrayLike, Self
from ..kernels import Gaussian, Kernel
from ..linalg.arrays import numbers
from ._base import KernelLike, OfKernel, random_numbers
from ._embedding import SpectralEmbedding


class Clusters(NamedTuple):
    """A partition: its labels, the sum of squares within it, and the iterations that led there."""

    labels: Array
    inertia: float
    iterations: int


class Centres(NamedTuple):
    """Means in the RKHS: coefficients of points, of shape (n, k), and their squared norms."""

    coefficients: Array
    squares: Array

    def distances(self, K: Array) -> Array:
        """Return squared distances to each, less the square of the point itself."""
        return self.squares - 2 * (K @ self.coefficients)


def centres(K: Array, labels: Array, weights: Array, count: int) -> Centres:
    """Return the weighted means of the points of each label."""
    members = weights[:, None] * (labels[:, None] == np.arange(count))
    total = members.sum(0)
    coefficients = np.divide(members, total, out=np.zeros_like(members), where=total > 0)
    squares = np.einsum("ij,ij->j", coefficients, K @ coefficients)
    # a cluster without points, which has no mean, is nobody's
    return Centres(coefficients, np.where(total > 0, squares, np.inf))


def partition(
    K: Array, count: int, weights: Array, n_init: int, max_iter: int, rng: np.random.RandomState
) -> Clusters:
    """Return the best of several runs of Lloyd's algorithm."""
    runs = [_lloyd(K, _start(K, count, weights, rng), weights, max_iter) for _ in range(n_init)]
    best = min(runs, key=lambda run: run.inertia)
    # clusters are numbered in the order of their first points
    _, first, which = np.unique(best.labels, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    return best._replace(labels=order[which].astype(np.int32))


def _start(K: Array, count: int, weights: Array, rng: np.random.RandomState) -> Array:
    """Return labels by points that are drawn far from each other (k-means++)."""
    on = np.diagonal(K)
    nearest, labels = np.full(len(K), np.inf), np.zeros(len(K), np.intp)
    for k in range(count):
        chance = weights * (nearest if k else 1.0)
        total = chance.sum()
        # where all points are met already, any will do
        chance = chance / total if total > 0 else weights / weights.sum()
        at = rng.choice(len(K), p=chance)
        off = np.maximum(on - 2 * K[at] + on[at], 0.0)
        closer = off < nearest
        labels[closer], nearest[closer] = k, off[closer]
    return labels


def _lloyd(K: Array, labels: Array, weights: Array, max_iter: int) -> Clusters:
    on, count, done = np.diagonal(K), int(labels.max()) + 1, 0
    while True:
        means = centres(K, labels, weights, count)
        off = means.distances(K)
        if done == max_iter:
            break
        new = off.argmin(1)
        done += 1
        if np.array_equal(new, labels):
            break
        labels = new
    own = on + off[np.arange(len(K)), labels]
    return Clusters(labels, float(weights @ np.maximum(own, 0.0)), done)


class _Clusters(ClusterMixin, OfKernel):
    labels_: Array

    def _settings(self) -> tuple[int, int, int]:
        count = _check.count(self.n_clusters, "n_clusters", least=1)
        n_init = _check.count(self.n_init, "n_init", least=1)
        return count, n_init, _check.count(self.max_iter, "max_iter", least=1)


class KernelKMeans(_Clusters):
    """Clusters of points that are close to their mean in the RKHS of a kernel.

    Parameters
    ----------
    n_clusters : int
        At most n.
    kernel : kernel, 'precomputed' or None
        As in ``KernelRegressor``; ``Polynomial(1)`` is ordinary k-means.
    n_init : int
        The runs of Lloyd's algorithm, of which the best is kept. Each begins with points that are
        drawn far from each other (Arthur and Vassilvitskii 2007).
    max_iter : int
        The most iterations of a run.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    labels_ : array of shape (n,)
        Clusters are numbered in the order of their first points.
    inertia_ : float
        The weighted sum of squared distances in the RKHS to the mean of the cluster.
    n_iter_ : int
        The iterations of the best run.
    X_fit_, kernel_, n_features_in_
        As in ``KernelRegressor``.

    Notes
    -----
    An iteration takes ``2 n^2 n_clusters`` flops. The matrix is held in double precision.

    References
    ----------
    Schoelkopf, Smola and Mueller, Nonlinear component analysis as a kernel eigenvalue problem,
    Neural Computation 10 (1998); Dhillon, Guan and Kulis, Kernel k-means, KDD (2004).

    Examples
    --------
    >>> import kernelcore as kc
    >>> X = [[0.0], [0.1], [5.0], [5.2], [0.2]]
    >>> model = kc.KernelKMeans(2, kc.Gaussian(1.0), random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 1, 1, 0], dtype=int32)
    >>> model.predict([[4.0]])
    array([1], dtype=int32)
    """

    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self, n_clusters: int = 8, kernel: KernelLike = None, n_init: int = 10,
        max_iter: int = 300, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.n_clusters, self.kernel, self.n_init = n_clusters, kernel, n_init
        self.max_iter, self.random_state = max_iter, random_state

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the clusters; y is not used.

        A point of weight 2 counts as two points, and a point of weight 0 belongs to the cluster
        whose mean is closest, without moving it.
        """
        count, n_init, max_iter = self._settings()
        X, _ = self._read(X)
        if not isinstance(X, np.ndarray):
            _check.on_the_host(X, "X")
            X = numbers(X)
        n = len(X)
        _check.at_most(count, n, "n_clusters", "the number of samples")
        weights = np.ones(n)
        if sample_weight is not None:
            weights = _check.sample_weights(sample_weight, n, X)
        _check.room("K", (n, n), np.float64, 1, ("fewer points",))
        K = self._gram(X).astype(np.float64, copy=False)
        rng = random_numbers(self.random_state)
        found = partition(K, count, weights, n_init, max_iter, rng)
        self.labels_, self.inertia_, self.n_iter_ = found
        self._centres = centres(K, found.labels, weights, count)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return the cluster whose mean is closest, of shape (m,)."""
        X = self._read_more(X)
        found = [self._centres.distances(numbers(K)).argmin(1) for _, K in self._blocks(X)]
        return np.concatenate(found).astype(np.int32)


class SpectralClustering(_Clusters):
    """Clusters of a graph of affinities: k-means of its Laplacian eigenmaps.

    Parameters
    ----------
    n_clusters : int
        Less than n.
    kernel : kernel, 'precomputed' or None
        The affinities, which must not be negative on the data. None means ``Gaussian(1.0)``.
    n_components : int, optional
        The number of eigenvectors; by default ``n_clusters - 1``, since the constant one, which
        tells no points apart, is left out.
    n_init, max_iter, random_state
        As in ``KernelKMeans``.

    Attributes
    ----------
    labels_ : array of shape (n,)
        Clusters are numbered in the order of their first points.
    embedding_ : SpectralEmbedding
        Fitted to the same points.
    inertia_, n_iter_, X_fit_, kernel_, n_features_in_
        As in ``KernelKMeans``, of the coordinates.

    Notes
    -----
    Eigenvectors are those of the random walk on the graph, as Shi and Malik (2000) take them to
    relax the normalised cut (von Luxburg 2007). New points get coordinates by Nystrom's extension.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    >>> ring = np.stack([np.cos(angle), np.sin(angle)], 1)
    >>> X = np.concatenate([ring, 3 * ring])
    >>> labels = kc.SpectralClustering(2, kc.Gaussian(0.3), random_state=0).fit_predict(X)
    >>> bool((labels == np.repeat([0, 1], 40)).all())
    True
    """

    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self, n_clusters: int = 8, kernel: KernelLike = None, n_components: int | None = None,
        n_init: int = 10, max_iter: int = 300, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.n_clusters, self.kernel, self.n_components = n_clusters, kernel, n_components
        self.n_init, self.max_iter, self.random_state = n_init, max_iter, random_state

    def _default(self) -> Kernel:
        return Gaussian(1.0)

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find the clusters; y is not used."""
        count, n_init, max_iter = self._settings()
        given = self.n_components
        rank = max(1, count - 1) if given is None else _check.count(given, "n_components", 1)
        X, _ = self._read(X, ensure_min_samples=2)
        if not isinstance(X, np.ndarray):
            _check.on_the_host(X, "X")
            X = numbers(X)
        _check.at_most(count, len(X) - 1, "n_clusters", "one less than the number of samples")
        self.embedding_ = SpectralEmbedding(rank, self.kernel).fit(X)
        E = self.embedding_._vectors
        rng = random_numbers(self.random_state)
        weights = np.ones(len(E))
        found = partition(E @ E.T, count, weights, n_init, max_iter, rng)
        self.labels_, self.inertia_, self.n_iter_ = found
        # the means themselves, which coordinates have
        members = self.labels_[:, None] == np.arange(count)
        self._means = members.T @ E / np.maximum(members.sum(0), 1)[:, None]
        self._means[~members.any(0)] = np.inf
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return the cluster whose mean is closest to the coordinates of new points: (m,)."""
        X = self._read_more(X)
        E = self.embedding_.transform(X).astype(np.float64)
        off = np.square(E[:, None, :] - self._means).sum(-1)
        return off.argmin(1).astype(np.int32)
