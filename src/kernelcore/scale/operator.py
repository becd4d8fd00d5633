"""Gram matrices as operators: they multiply, and give their parts, without being held whole.

GramOperator   K of a kernel and its points: products, diagonal, columns, rows, blocks, tiles
RowBlocks      the same under its former name

K is cut into tiles of whole rows. A symmetric one has two to a block of rows, the square on the
diagonal and all that is right of it, which stands for its mirror image as well. Tiles are computed
when they are first needed. As many as the memory holds are kept, the others made anew each time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .. import _check
from ..engine import threads as _threads
from ..engine.memory import budget
from ..kernels import Kernel
from ..linalg.blas import row_blocks, share

Array = np.ndarray
Tile = tuple[slice, slice, Array]

ALL = slice(None)
BLOCK_BYTES = 128_000_000
"""A block is large enough to keep all threads busy, and no larger than this."""
GROUP = 512
"""Rows of a product that one thread computes: the same ones for any number of threads."""
SMALL = 2**20
"""Up to so many multiplications are done before a second thread has started."""


def points(kernel: Kernel, X, Y=None) -> tuple[Array, Array | None]:
    """Inputs that the kernel takes, in the shape that they have, at least one of each."""
    kernel._open(X, Y, 1)
    X = _check.some_points(_check.real_array(X, "X"), "X")
    return X, None if Y is None else _check.some_points(_check.real_array(Y, "Y"), "Y")


class _Products(LinearOperator):
    """Products in the namespace of what is multiplied: SciPy's would be NumPy's arrays always."""

    def dot(self, x):
        if isinstance(x, LinearOperator) or np.isscalar(x):
            return super().dot(x)
        return self.matmat(x)

    def matmat(self, X):
        """``K @ X``, for X of shape (m,) or (m, r)."""
        X = _check.multiplied(X, self.shape[1], "column")
        return self._matmat(X) if X.ndim == 2 else self._matmat(X[:, None])[:, 0]

    def rmatmat(self, X):
        """``K.T @ X``, for X of shape (n,) or (n, r)."""
        return self.T.matmat(_check.multiplied(X, self.shape[0], "row"))

    matvec, rmatvec = matmat, rmatmat

    def _matvec(self, x):
        return self.matmat(x)

    def _adjoint(self):
        return self.T


class GramOperator(_Products):
    """The Gram matrix of a kernel as a SciPy ``LinearOperator``, never larger than memory allows.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d), of signals (n, L, C) or of images (n, H, W, C)
        The points; the dtype of K is theirs. They are not copied: K is that of the values they have
        when a part of it is computed.
    Y : array of the kind of X, optional
        Of other points, for K of shape (n, m). By default X, and K is symmetric.
    max_memory : float, optional
        Bytes for kernel values: a quarter of the memory there is by default. What fits is computed
        once and kept, the rest anew for each product, a block of rows at a time. At least one row
        is held whatever this says.
    n_threads : int, optional
        ``get_threads()`` by default. No result depends on it.
    scale : array of shape (n,), optional
        Makes K into ``S K S`` with ``S = diag(scale)``, as problems with weights want it. Not
        beside Y.

    Attributes
    ----------
    shape : (int, int)
    dtype : dtype
    symmetric : bool
        Whether there is no Y.
    passes : int
        How many products were computed.
    kernel, X, Y, max_memory, n_threads, scale
        As given.

    Notes
    -----
    ``K @ x``, ``matmat``, ``matvec`` and their transposes take ``x`` of shape (m,) or (m, r) of any
    array library and return its arrays. The first product costs the kernel of ``n (n + 1)/2`` pairs
    where K is symmetric, or n m, and computes every tile once; the next ones cost only the tiles
    that are not kept, and 2 n m r flops. All of a symmetric K is kept if a little more than half of
    its bytes are there.

    ``columns``, ``rows`` and ``block`` read K if all of it is kept, and otherwise compute what they
    are asked for; ``hold`` computes all of K at once. For rows entries are those of
    ``kernel(X)`` to the last bit. For images the kernel of two of them and its mirror image round
    differently: products, tiles and what is kept have ``kernel(X)``, computed parts may have its
    mirror image.

    A product is not safe in several threads at once. A pickle holds the points and no values of K.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> K = kc.GramOperator(kc.Laplacian(1.0), X)
    >>> bool(np.allclose(K @ np.ones(50), kc.Laplacian(1.0)(X) @ np.ones(50)))
    True
    >>> K
    <50x50 GramOperator of Laplacian(1.0) with dtype=float64, 1 of 1 tiles kept>
    >>> kc.solvers.conjugate_gradients(K, X[:, 0], 1e-3).converged.item()
    True
    """

    def __init__(
        self,
        kernel: Kernel,
        X,
        Y=None,
        *,
        max_memory: float | None = None,
        n_threads: int | None = None,
        scale=None,
    ) -> None:
        self.kernel = _check.an_instance(kernel, Kernel, "kernel", "a kernel")
        self.X, self.Y = points(self.kernel, X, Y)
        self.symmetric = Y is None
        n, m = len(self.X), len(self.X if self.symmetric else self.Y)
        super().__init__(self.X.dtype, (n, m))
        if n_threads is not None:
            _check.count(n_threads, "n_threads", least=1)
        self.n_threads = n_threads
        if scale is not None:
            _check.not_beside(Y, "Y", "scale")
            scale = _check.vector(scale, "scale", n, "row of X").astype(self.dtype)
        self.scale = scale
        self.max_memory = _check.positive(
            budget() if max_memory is None else max_memory, "max_memory"
        )
        self.passes = 0
        self._lay()

    def _lay(self) -> None:
        """Where the tiles are, and which of them are kept."""
        n, m = self.shape
        row = m * self.dtype.itemsize
        rows = int(min(self.max_memory / 4, BLOCK_BYTES) // row)
        self._grid: list[tuple[slice, slice]] = []
        for part in row_blocks(n, min(n, max(1, rows))):
            if not self.symmetric:
                self._grid.append((part, slice(0, m)))
                continue
            self._grid.append((part, part))
            if part.stop < n:
                self._grid.append((part, slice(part.stop, n)))
        sizes = [(r.stop - r.start) * (c.stop - c.start) for r, c in self._grid]
        room = self.max_memory // self.dtype.itemsize
        if sum(sizes) > room:
            room -= max(sizes)  # of the one that is made anew
        self._keeps: set[int] = set()
        for k, size in enumerate(sizes):
            if size <= room:
                self._keeps.add(k)
                room -= size
        self._most = max((s for k, s in enumerate(sizes) if k not in self._keeps), default=0)
        self._kept: dict[int, Array] = {}
        self._scratch = np.empty(0, self.dtype)

    def __repr__(self) -> str:
        n, m = self.shape
        return (
            f"<{n}x{m} {type(self).__name__} of {self.kernel!r} with dtype={self.dtype}, "
            f"{len(self._kept)} of {len(self._grid)} tiles kept>"
        )

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_kept": {}, "_scratch": np.empty(0, self.dtype)}

    # ---- tiles

    def tiles(self) -> Iterator[Tile]:
        """All of K, a tile at a time: slices of its rows and columns, and its entries.

        Yields
        ------
        rows, columns : slice
        tile : array
            ``K[rows, columns]``, every entry of K in one tile. Of a symmetric K there are those on
            and above the diagonal: one whose rows and columns are not the same stands for its
            mirror image, ``K[columns, rows] = tile.T``, too. Read-only where it is kept.

        Examples
        --------
        >>> import numpy as np
        >>> import kernelcore as kc
        >>> K = kc.GramOperator(kc.Gaussian(1.0), np.arange(5.0)[:, None], max_memory=400)
        >>> [tile.shape for rows, columns, tile in K.tiles()]
        [(2, 2), (2, 3), (2, 2), (2, 1), (1, 1)]
        >>> bool(np.isclose(sum(np.trace(t) for r, c, t in K.tiles() if r == c), 5))
        True
        """
        for k, (rows, columns) in enumerate(self._grid):
            yield rows, columns, self._tile(k)

    def _tile(self, k: int, lasting: bool = True) -> Array:
        """The tile of that number; unless ``lasting``, in memory that the next one may take."""
        if k in self._kept:
            return self._kept[k]
        rows, columns = self._grid[k]
        keep, out = k in self._keeps, None
        if not (keep or lasting):
            if not self._scratch.size:
                self._scratch = np.empty(self._most, self.dtype)
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            out = self._scratch[: shape[0] * shape[1]].reshape(shape)
        tile = self._computed(rows, columns, out)
        if keep:
            tile.flags.writeable = False
            self._kept[k] = tile
        return tile

    @property
    def _held(self) -> bool:
        """Whether all of K is kept by now."""
        return len(self._kept) == len(self._grid)

    def hold(self) -> bool:
        """Compute all of K now if memory holds it, and say whether it does.

        Products do so on the way, and keep some tiles where not all of them fit. Worth it before
        many columns or rows are asked for, as preconditioners do: these are then only read.

        Examples
        --------
        >>> import numpy as np
        >>> import kernelcore as kc
        >>> K = kc.GramOperator(kc.Gaussian(1.0), np.zeros((3, 1)))
        >>> K.hold(), K
        (True, <3x3 GramOperator of Gaussian(1.0) with dtype=float64, 1 of 1 tiles kept>)
        """
        if len(self._keeps) < len(self._grid):
            return False
        for k in sorted(self._keeps):
            self._tile(k)
        return True

    # ---- products

    def _matmat(self, x):
        return self._multiply(x, transposed=False)

    def _rmatmat(self, x):
        return self._multiply(x, transposed=not self.symmetric)

    def _multiply(self, x, transposed: bool):
        xp = x.__array_namespace__() if hasattr(x, "__array_namespace__") else np
        dtype = xp.result_type(xp.asarray(self._scratch[:0]), x)
        out = xp.zeros((self.shape[1 if transposed else 0], x.shape[1]), dtype=dtype)
        for k, (rows, columns) in enumerate(self._grid):
            tile = xp.asarray(self._tile(k, lasting=False))
            if not transposed:
                self._add(out, rows, tile, x[columns, :])
            if transposed or (self.symmetric and columns != rows):
                self._add(out, columns, tile.T, x[rows, :])
        self.passes += 1
        return out

    def _add(self, out, rows: slice, a, x) -> None:
        """``out[rows] += a @ x``, in groups of rows, each by one thread.

        Threads of BLAS share a product differently for every number of them, to other last bits.
        """
        n, m = a.shape

        def group(i: int) -> None:
            j = min(i + GROUP, n)
            out[rows.start + i : rows.start + j, :] += a[i:j, :] @ x

        small = n * m * x.shape[1] <= SMALL
        share(group, range(0, n, GROUP), 1 if small else _threads.resolve(self.n_threads))

    def _transpose(self):
        return self if self.symmetric else _Transposed(self)

    # ---- parts

    def diagonal(self) -> Array:
        """The diagonal, of shape (min(n, m),), from the pairs on it alone."""
        if self.symmetric:
            diagonal = self.kernel.diag(self.X)
            return diagonal if self.scale is None else diagonal * self.scale**2
        n = min(self.shape)
        # There is no kernel of pairs: a few rows at a time, of which the diagonals are kept.
        return np.concatenate([self._computed(p, p).diagonal() for p in row_blocks(n, 16)])

    def columns(self, which) -> Array:
        """Some columns, of shape (n, k).

        Parameters
        ----------
        which : integers, a slice, or a mask
        """
        return self.block(ALL, which)

    def rows(self, which, out: Array | None = None) -> Array:
        """Some rows, of shape (k, m).

        Parameters
        ----------
        which : integers, a slice, or a mask
        out : array of shape (k, m), optional
            Where to write; C-contiguous, of the dtype of K.
        """
        return self.block(which, ALL, out)

    def block(self, rows, columns, out: Array | None = None) -> Array:
        """The entries where some rows meet some columns.

        Parameters
        ----------
        rows, columns : integers, a slice, or a mask
            Of k and l of them. The same object for both costs half of a symmetric block.
        out : array of shape (k, l), optional
            Where to write; C-contiguous, of the dtype of K.

        Returns
        -------
        array of shape (k, l)

        Examples
        --------
        >>> import numpy as np
        >>> import kernelcore as kc
        >>> kc.GramOperator(kc.Polynomial(1), np.arange(4.0)[:, None]).block([1, 3], slice(2, 4))
        array([[ 3.,  4.],
               [ 7., 10.]])
        """
        i = _check.indices(rows, self.shape[0], "rows")
        same = self.symmetric and columns is rows
        j = i if same else _check.indices(columns, self.shape[1], "columns")
        if not self._held:
            return self._computed(i, j, out)
        sizes = zip((i, j), self.shape, strict=True)
        shape = tuple(n if isinstance(x, slice) else len(x) for x, n in sizes)
        out = _check.out(out, shape, self.dtype)
        for down, across, tile in self.tiles():
            _pick(out, i, j, down, across, tile)
            if self.symmetric and across != down:
                _pick(out.T, j, i, down, across, tile)
        return out

    def toarray(self) -> Array:
        """All of K as an array, which is the caller's to overwrite.

        From what is kept where that is all of K, or in one call of the kernel. Refused where memory
        does not hold it.
        """
        return self.block(ALL, ALL)

    def _computed(self, rows, columns, out: Array | None = None) -> Array:
        """Entries at rows and columns, each an index array or a slice, by the kernel."""
        if not self.symmetric:
            return self.kernel(self.X[rows], self.Y[columns], out=out, n_threads=self.n_threads)
        Y = None if columns is rows else self.X[columns]  # then half of the entries are enough
        out = self.kernel(self.X[rows], Y, out=out, n_threads=self.n_threads)
        if self.scale is not None:
            out *= self.scale[rows, None]
            out *= self.scale[columns]
        return out


def _pick(out: Array, i, j, rows: slice, columns: slice, tile: Array) -> None:
    """Entries (i, j) of a matrix into ``out``, where a tile has them; a slice is all."""

    def within(index, part: slice):
        """Where in ``out`` and where in the tile."""
        if isinstance(index, slice):
            return part, index
        at = np.flatnonzero((part.start <= index) & (index < part.stop))
        return at, index[at] - part.start

    (at, row), (beside, column) = within(i, rows), within(j, columns)
    if isinstance(i, slice) or isinstance(j, slice):
        out[at, beside] = tile[row, column]
    else:
        out[np.ix_(at, beside)] = tile[np.ix_(row, column)]


class _Transposed(_Products):
    """``K.T`` of a K that is not symmetric: its products and parts, the other way round."""

    def __init__(self, K: GramOperator) -> None:
        self.K = K
        super().__init__(K.dtype, K.shape[::-1])

    def _matmat(self, x):
        return self.K._rmatmat(x)

    def _rmatmat(self, x):
        return self.K._matmat(x)

    def _transpose(self):
        return self.K

    def diagonal(self) -> Array:
        return self.K.diagonal()

    def columns(self, which) -> Array:
        return self.K.rows(which).T

    def rows(self, which) -> Array:
        return self.K.columns(which).T

    def block(self, rows, columns) -> Array:
        return self.K.block(columns, rows).T


class RowBlocks(GramOperator):
    """``GramOperator`` of one set of points, which keeps 1 GB by default.

    Parameters
    ----------
    kernel, X, max_memory, n_threads, scale
        See ``GramOperator``.

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
    ) -> None:
        super().__init__(kernel, X, max_memory=max_memory, n_threads=n_threads, scale=scale)
