"""Pooled features of patches: random features of the convolutional kernel on cyclic signals."""

from __future__ import annotations

import copy
import math
from dataclasses import KW_ONLY, dataclass

import numpy as np

from .. import _check
from .._types import Array
from ..kernels import CyclicConvolution
from ..linalg import namespace_of
from ..linalg.arrays import placed, take, zeros
from ._network import NetworkFeatures
from ._transformer import Transformer, seeded_class


@seeded_class
@dataclass(repr=False, eq=False)
class ConvolutionalFeatures(Transformer):
    """One random map for every patch, summed over windows, for ``CyclicConvolution``.

    With z the features of a patch and ``x_(k) = (x_k, ..., x_(k+q-1))``, indices mod d, column
    block k is ``(z(x_(k)) + ... + z(x_(k+w-1))) / sqrt(d w)``: a convolutional layer of random
    filters and average pooling.

    Parameters
    ----------
    features : Transformer, optional
        The map of a patch, ``NetworkFeatures()`` by default; its seed is ignored.
    patch, pool : int
        q and w, at most d. With pool d all blocks would be the same, so only one is returned.
    seed : int, numpy.random.Generator or None

    Notes
    -----
    ``n_features_out_`` is d times that of ``features``, or equal to it where ``pool`` is d.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> x = [[1.0, 0.0, 0.5, 0.0], [0.0, 0.5, 0.0, 1.0]]
    >>> units = kc.features.NetworkFeatures(n_features=20_000)
    >>> features = kc.features.ConvolutionalFeatures(units, patch=2, pool=4, seed=0)
    >>> Z = features.fit_transform(x)
    >>> bool(np.abs(Z @ Z.T - features.kernel_(x)).max() < 0.02)
    True
    """

    features: Transformer | None = None
    patch: int = 3
    pool: int = 1
    _: KW_ONLY
    seed: int | np.random.Generator | None = None

    def _draw(self, d: int, rng: np.random.Generator) -> dict[str, Array]:
        given = NetworkFeatures() if self.features is None else self.features
        self._each = copy.copy(_check.an_instance(given, Transformer, "features", "a Transformer"))
        q, w = _check.count(self.patch, "patch", least=1), _check.count(self.pool, "pool", least=1)
        for name, size in (("patch", q), ("pool", w)):
            _check.at_most(size, d, name, "the number of columns of X")
        arrays = self._each._draw(q, rng)
        positions = 1 if w == d else d
        columns = positions * self._each.n_features_out_
        self._limit(CyclicConvolution(q, w, self._each.kernel_), columns)
        self._patches = (np.arange(d)[:, None] + np.arange(q)) % d
        self._scale = 1 / math.sqrt(w if w == d else d * w)
        return arrays

    def _block_rows(self, n: int, d: int) -> int:
        return max(1, super()._block_rows(n, d) // d)

    def _block(self, x: Array, out: Array, arrays: dict[str, Array]) -> None:
        (n, d), m = x.shape, self._each.n_features_out_
        if not isinstance(x, np.ndarray):
            out[...] = self._scale * self._pooled(x, arrays)
            return
        patches = np.ascontiguousarray(x[:, self._patches]).reshape(n * d, -1)
        if self.pool == 1 < d:
            self._each._block(patches, out.reshape(n * d, m), arrays)
        else:
            each = np.empty((n * d, m), x.dtype)
            self._each._block(patches, each, arrays)
            each = each.reshape(n, d, m)
            if self.pool == d:
                each.sum(1, out=out)
            else:
                np.matmul(self._windows(d).astype(x.dtype), each, out=out.reshape(n, d, m))
        out *= self._scale

    def _windows(self, d: int) -> Array:
        """Return which positions k + s, s < w, go into position k: (d, d)."""
        k = np.arange(d)
        return (k - k[:, None]) % d < self.pool

    def _pooled(self, x: Array, arrays: dict[str, Array]) -> Array:
        """Do the same for arrays of another library, without the scale."""
        xp, (n, d), m = namespace_of(x), x.shape, self._each.n_features_out_
        patches = xp.reshape(take(x, self._patches.reshape(-1), 1), (n * d, -1))
        each = zeros((n * d, m), x)
        self._each._block(patches, each, arrays)
        each = xp.reshape(each, (n, d, m))
        if self.pool == d:
            return xp.sum(each, axis=1)
        if self.pool > 1:
            each = placed(self._windows(d).astype(float), x) @ each
        return xp.reshape(each, (n, d * m))
