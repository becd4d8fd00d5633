"""Kernel matrices that are never held whole: products, columns and diagonals of them.

RowBlocks    K @ x in blocks of rows, each computed when it is needed
source       an array, a kernel with its points, or RowBlocks: columns, diagonal, blocks
"""

from __future__ import annotations

import numpy as np

from .. import _check
from ..kernels import Kernel

Array = np.ndarray

BLOCK_BYTES = 128_000_000
"""A block is large enough to keep all threads busy, and no larger than this."""


def points(kernel: Kernel, X, name: str = "X") -> Array:
    """The rows of X as the kernel takes them: checked, contiguous, at least one."""
    return _check.some_points(kernel._open(X, None, 1).x, name)


def row_blocks(n: int, rows: int):
    """Slices that cover n rows, ``rows`` at a time."""
    return [slice(i, min(i + rows, n)) for i in range(0, n, max(1, rows))]


class RowBlocks:
    """A kernel matrix that multiplies with ``@`` and is never held whole.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d), or images
        The points; the dtype of the matrix is theirs.
    max_memory : float
        Bytes for kernel values. One block is computed at a time, and what memory is left keeps
        blocks from the first product on. At least one row is held whatever this says.
    n_threads : int, optional
        ``get_threads()`` by default.
    scale : array of shape (n,), optional
        Rows and columns are multiplied by it: the matrix is ``S K S`` with ``S = diag(scale)``.

    Attributes
    ----------
    shape : (int, int)
    dtype : dtype
    passes : int
        How many products were computed.

    Notes
    -----
    A block is made of the entries on and right of the diagonal and serves both triangles, so a
    product evaluates ``n (n + b)/2`` entries, b rows to a block, less those kept.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> K = kc.solvers.RowBlocks(kc.Gaussian(1.0), X, max_memory=4000)
    >>> bool(np.allclose(K @ np.ones(50), kc.Gaussian(1.0)(X) @ np.ones(50)))
    True
    """

    def __init__(
        self, kernel, X, *, max_memory: float = 1e9, n_threads: int | None = None, scale=None
    ):
        self.kernel = _check.an_instance(kernel, Kernel, "kernel", "a kernel")
        self.X = points(self.kernel, X)
        self.n_threads = n_threads
        n = len(self.X)
        if scale is not None:
            scale = _check.vector(scale, "scale", n, "row of X").astype(self.X.dtype)
        self.scale = scale
        self.shape, self.dtype, self.passes = (n, n), self.X.dtype, 0
        self.max_memory = _check.positive(max_memory, "max_memory")
        row = n * self.dtype.itemsize
        rows = int(min(self.max_memory / 4, BLOCK_BYTES) // row)
        self._blocks = row_blocks(n, min(n, max(1, rows)))
        self._scratch = np.empty(0, self.dtype)
        self._left = self.max_memory - rows * row
        self._kept: dict[int, Array] = {}

    def diagonal(self) -> Array:
        """The diagonal, shape (n,)."""
        return self._points().diagonal()

    def columns(self, which) -> Array:
        """Columns of the matrix, shape (n, len(which))."""
        return self._points().columns(which)

    def _points(self) -> Points:
        return Points(self.kernel, self.X, self.scale, self.n_threads)

    def __matmul__(self, x) -> Array:
        x = np.asarray(x)
        whole = x if x.ndim == 2 else x[:, None]
        out = np.zeros(whole.shape, np.result_type(self.dtype, x.dtype))
        for k, rows in enumerate(self._blocks):
            block = self._block(k, rows)
            end = rows.stop - rows.start
            out[rows] += block @ whole[rows.start :]
            if rows.stop < len(whole):
                out[rows.stop :] += block[:, end:].T @ whole[rows]
        self.passes += 1
        return out.reshape(x.shape)

    def _block(self, k: int, rows: slice) -> Array:
        """Rows of the matrix from their diagonal entries on."""
        if k in self._kept:
            return self._kept[k]
        shape = (rows.stop - rows.start, len(self.X) - rows.start)
        size = shape[0] * shape[1]
        if keep := size * self.dtype.itemsize <= self._left:
            block = np.empty(shape, self.dtype)
        else:
            if self._scratch.size < size:
                self._scratch = np.empty(size, self.dtype)
            block = self._scratch[:size].reshape(shape)
        self._points().block(rows, slice(rows.start, None), out=block)
        if keep:
            self._kept[k] = block
            self._left -= block.nbytes
        return block


class _Entries:
    """The same answers from an array."""

    def __init__(self, K: Array) -> None:
        self.K, self.shape, self.dtype = K, K.shape, K.dtype

    def diagonal(self) -> Array:
        return self.K.diagonal()

    def columns(self, which) -> Array:
        return self.K[:, which]

    def block(self, rows, columns) -> Array:
        return self.K[np.ix_(rows, columns)]


class Points:
    """The same answers from a kernel and its points, rows and columns times ``scale``."""

    def __init__(
        self, kernel: Kernel, X: Array, scale: Array | None = None, n_threads: int | None = None
    ) -> None:
        self.kernel, self.X, self.scale, self.n_threads = kernel, X, scale, n_threads
        self.shape, self.dtype = (len(X), len(X)), X.dtype

    def diagonal(self) -> Array:
        diagonal = self.kernel.diag(self.X, n_threads=self.n_threads)
        return diagonal if self.scale is None else diagonal * self.scale**2

    def columns(self, which) -> Array:
        return self.block(slice(None), which)

    def block(self, rows, columns, out: Array | None = None) -> Array:
        """Entries at rows and columns, each an index array or a slice."""
        Y = None if columns is rows else self.X[columns]  # then half of the entries are enough
        out = self.kernel(self.X[rows], Y, out=out, n_threads=self.n_threads)
        if self.scale is not None:
            out *= self.scale[rows, None]
            out *= self.scale[columns]
        return out


def source(K, X) -> _Entries | Points:
    """Whatever stands for a kernel matrix, as something to ask for parts of it."""
    if isinstance(K, Kernel):
        return Points(K, points(K, _check.given(X, "X", "a kernel")))
    _check.not_beside(X, "X", "a matrix")
    if isinstance(K, RowBlocks):
        return K._points()
    K = _check.real_array(K, "K")
    _check.square(K.shape, "K")
    return _Entries(K)
