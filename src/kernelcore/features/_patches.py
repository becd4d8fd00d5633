"""Whitened patches as filters (Coates, Lee and Ng 2011; Coates and Ng 2011).

A patch p is normalised, ``(p - mean)/sqrt(variance + contrast)``, and whitened. Its features are
how far it is from learned filters, or its products with them beyond a threshold; they are summed
over regions of the image.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from .. import _check, program
from .._types import Array, ArrayLike, Self
from ..linalg import eigh, norm
from ..linalg.blas import row_blocks
from ..networks._network import BLOCK
from ..networks._steps import Windows
from ._transformer import OfShapes, seeded_class

FILTERS = ("kmeans", "patches")
ACTIVATIONS = ("triangle", "threshold")
CONTRAST = 10 / 255**2
"""What is added to the variance of a patch, in units of the squared range of the pixels."""


@seeded_class
@dataclass(repr=False, eq=False)
class PatchFeatures(OfShapes):
    """Responses of whitened patches to filters that are patches themselves, summed over regions.

    These features follow the images that they are fitted to, and tend to no kernel that is known:
    ``kernel_`` is None.

    Parameters
    ----------
    n_filters : int
        K.
    patch, stride : int
        The side of patches, and the step from one to the next.
    pool : int
        The regions along each axis over which responses are summed: 2 for quadrants.
    filters : {"kmeans", "patches"}
        Centres of clusters of whitened patches, by Lloyd's iterations, or some of them as they are.
    activation : {"triangle", "threshold"}
        "triangle": ``max(0, mean_j |x - d_j| - |x - d_k|)``, K columns for each region.
        "threshold": ``max(0, d_k'x - threshold)`` and ``max(0, -d_k'x - threshold)`` for filters
        of norm 1, 2 K columns.
    threshold : float
    contrast : float, optional
        What is added to the variance of a patch before dividing by its root; by default 10 for
        pixels from 0 to 255, and in proportion for others.
    whiten : float or None
        epsilon: whitened patches are ``V (L + epsilon)^(-1/2) V' (p - mean)``, L and V the
        eigenvalues and eigenvectors of the covariance of patches (ZCA). None leaves it out.
    n_patches : int
        How many patches filters are learned from, at most.
    max_iter : int
        Of Lloyd's iterations.
    seed : int, numpy.random.Generator or None

    Attributes
    ----------
    filters_ : array of shape (K, size of a patch)
        In the space of whitened patches.
    mean_, whitening_ : arrays of shape (size of a patch,) and (size of a patch,) * 2
    contrast_ : float

    Notes
    -----
    Images have shape (n, H, W, C) and signals (n, L, C). With P patches of D numbers, an image
    takes ``2 P D (D + K)`` flops, and a block of images some 32 MB for each thread.

    References
    ----------
    Coates, Lee and Ng, An analysis of single-layer networks in unsupervised feature learning,
    AISTATS 2011. Coates and Ng, The importance of encoding versus training with sparse coding and
    vector quantization, ICML 2011.

    Examples
    --------
    >>> import kernelcore as kc
    >>> X, y = kc.data.digits()
    >>> images = X.reshape(-1, 8, 8, 1)
    >>> features = kc.features.PatchFeatures(50, patch=4, seed=0).fit(images[:500])
    >>> features.transform(images[:3]).shape
    (3, 200)
    """

    n_filters: int = 400
    patch: int = 6
    _: KW_ONLY
    stride: int = 1
    pool: int = 2
    filters: str = "kmeans"
    activation: str = "triangle"
    threshold: float = 0.25
    contrast: float | None = None
    whiten: float | None = 0.1
    n_patches: int = 100_000
    max_iter: int = 10
    seed: int | np.random.Generator | None = None

    _axes = None  # signals and images alike

    def _host(self, X: ArrayLike, name: str = "X") -> Array:
        return _check.finite_images(_check.images(X, self, name), name)

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn the filters from patches of X.

        Parameters
        ----------
        X : array of shape (n, H, W, C) or (n, L, C), n at least 1
        y : ignored

        Returns
        -------
        self
        """
        x = _check.some_rows(self._host(X), "X")
        k = _check.count(self.n_filters, "n_filters", least=1)
        sizes = [_check.count(getattr(self, s), s, least=1) for s in ("patch", "stride", "pool")]
        _check.choice(self.filters, "filters", FILTERS)
        signed = _check.choice(self.activation, "activation", ACTIVATIONS) == "threshold"
        self._threshold = _check.non_negative(self.threshold, "threshold")
        rng = _check.generator(self.seed, "seed")
        window = program.Window((sizes[0],), (sizes[1],), "valid", every=True)
        self._cut = Windows(window, x.shape[1:-1], self)
        _check.at_most(sizes[2], min(self._cut.shape), "pool", "the patches along an axis")
        self._regions = _regions(self._cut.shape, sizes[2])
        if self.contrast is None:
            self.contrast_ = CONTRAST * max(float(x.max() - x.min()), np.finfo(x.dtype).tiny) ** 2
        else:
            self.contrast_ = _check.positive(self.contrast, "contrast")
        some = self._some(x, rng)
        mean, whitening = some.mean(0), np.eye(some.shape[1])
        if self.whiten is not None:
            epsilon = _check.positive(self.whiten, "whiten")
            off = some - mean
            values, vectors = eigh(off.T @ off / len(off))
            whitening = (vectors / np.sqrt(np.maximum(values, 0) + epsilon)) @ vectors.T
        some = (some - mean) @ whitening
        _check.at_most(k, len(some), "n_filters", "the patches there are")
        found = some[rng.choice(len(some), k, replace=False)]
        if self.filters == "kmeans":
            found = _lloyd(some, found, _check.count(self.max_iter, "max_iter", least=1))
        if signed:
            found = found / np.maximum(norm(found, axis=1, keepdims=True), 1e-300)
        arrays = {"mean_": mean, "whitening_": whitening, "filters_": found}
        for name, a in arrays.items():
            setattr(self, name, a.astype(x.dtype))
        self._drawn, self._size = tuple(arrays), found.shape
        self.kernel_, self.n_features_out_ = None, len(self._regions) * k * (2 if signed else 1)
        return self._fitted(x.shape[1:])

    def _some(self, x: Array, rng: np.random.Generator) -> Array:
        """Return normalised patches from random places, in float64; all if they are few."""
        at, n = self._cut.at, _check.count(self.n_patches, "n_patches", least=2)
        every = len(x) * len(at)
        which = np.arange(every) if every <= n else rng.integers(0, every, n)
        h = x.reshape(len(x), self._cut.inputs, x.shape[-1])
        image, place = np.divmod(which, len(at))
        found = h[image[:, None], at[place]].reshape(len(which), -1)
        return self._normalised(found.astype(np.float64))

    def _normalised(self, p: Array) -> Array:
        """Return patches of equal brightness and contrast."""
        p = p - p.mean(-1, keepdims=True)
        size = max(1, p.shape[-1] - 1)
        variance = np.einsum("...i,...i->...", p, p)[..., None] / p.dtype.type(size)
        p /= np.sqrt(variance + p.dtype.type(self.contrast_))
        return p

    def _block_rows(self, n: int, d: int) -> int:
        k, size = self._size
        each = len(self._cut.at) * (4 * size + 3 * k)
        return max(1, min(BLOCK // each, -(-n // 8)))

    def _block(self, x: Array, out: Array, arrays: dict[str, Array]) -> None:
        n, real = len(x), x.dtype.type
        p = self._cut.columns(x.reshape(n, self._cut.inputs, x.shape[-1]))
        p = self._normalised(p) - arrays["mean_"]
        p = p.reshape(-1, p.shape[2]) @ arrays["whitening_"]
        filters, regions = arrays["filters_"], self._regions.astype(x.dtype)
        products = p @ filters.T
        pooled = out.reshape(n, len(regions), -1)
        k = len(filters)
        if self.activation == "threshold":
            for start, sign in ((0, 1), (k, -1)):
                part = np.maximum(real(sign) * products - real(self._threshold), 0)
                pooled[:, :, start : start + k] = regions @ part.reshape(n, -1, k)
            return
        squares = np.einsum("ij,ij->i", p, p)[:, None] + np.einsum("ij,ij->i", filters, filters)
        squares -= 2 * products
        distances = np.sqrt(np.maximum(squares, 0))
        part = np.maximum(distances.mean(1, keepdims=True) - distances, 0)
        pooled[...] = regions @ part.reshape(n, -1, k)


def _regions(shape: tuple[int, ...], pool: int) -> Array:
    """Return which patches are in each region: (regions, patches); the first are the larger."""
    found: Array = np.ones((1, 1))
    for size in shape:
        axis = np.zeros((pool, size))
        for k, places in enumerate(np.array_split(np.arange(size), pool)):
            axis[k, places] = 1
        found = np.kron(found, axis)
    return found


def _lloyd(x: Array, centres: Array, rounds: int) -> Array:
    """Return centres of clusters; one that loses all its points stays where it is."""
    before = None
    for _ in range(rounds):
        half = np.einsum("ij,ij->i", centres, centres) / 2
        labels = np.concatenate(
            [
                np.argmax(x[rows] @ centres.T - half, axis=1)
                for rows in row_blocks(len(x), max(1, BLOCK // len(centres)))
            ]
        )
        if before is not None and np.array_equal(labels, before):
            break
        before = labels
        counts = np.bincount(labels, minlength=len(centres))
        order = np.argsort(labels, kind="stable")
        starts = np.cumsum(counts) - counts
        there = np.flatnonzero(counts)
        sums = np.add.reduceat(x[order], starts[there], axis=0)
        centres = centres.copy()
        centres[there] = sums / counts[there, None]
    return centres
