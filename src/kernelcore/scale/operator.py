"""Gram matrices as operators: they multiply and return their parts without being held whole.

GramOperator   K of a kernel and its points: products, diagonal, columns, rows, blocks, tiles
RowBlocks      the same under its former name

K is cut into tiles of whole rows, or into squares where they would be few rows. If it is symmetric,
a block of rows has the square on the diagonal, and tiles to the right of it, which stand for their
mirror images as well. Tiles are computed when they are first needed. As many as fit into memory are
kept, and the others are computed anew each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .. import _check
from .._types import Array, ArrayLike
from ..engine import offer
from ..engine import threads as _threads
from ..engine.memory import budget
from ..kernels import Kernel
from ..linalg.arrays import cast, copied, joined, on_diagonal, take, zeros
from ..linalg.blas import GROUP, SMALL, row_blocks, share
from .client import resolve

Tile = tuple[slice, slice, Array]
Which: TypeAlias = "ArrayLike | slice"  # integers, a slice, or a mask
Index: TypeAlias = "Array | slice"  # the same when checked: integers, or the slice of all

ALL = slice(None)
BLOCK_BYTES = 128_000_000
"""The most that a block holds; blocks keep all threads busy."""
ENGINE = 0.04
"""The share of what is left for tiles that goes to scratch of the engine and to sums."""
SHARE = 0.5
"""The share of the memory budget for tiles that are kept, where nothing else is said."""


def points(kernel: Kernel, X: Any, Y: Any = None) -> tuple[Array, Array | None]:
    """Return inputs that the kernel takes, in the shape that they have, at least one of each."""
    kernel._open(X, Y, 1)
    X = _check.some_rows(_check.of_any_backend(X, "X"), "X")
    return X, None if Y is None else _check.some_rows(_check.of_any_backend(Y, "Y"), "Y")


class _Products(LinearOperator):
    """An operator whose products are arrays of the library of what it multiplies."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def dot(self, x: Any) -> Any:
        if isinstance(x, LinearOperator) or np.isscalar(x):
            return super().dot(x)
        return self.matmat(x)

    def matmat(self, X: Any) -> Any:
        """Return ``K @ X``, for X of shape (m,) or (m, r)."""
        X = _check.multiplied(X, self.shape[1], "column")
        return self._matmat(X) if X.ndim == 2 else self._matmat(X[:, None])[:, 0]

    def rmatmat(self, X: Any) -> Any:
        """Return ``K.T @ X``, for X of shape (n,) or (n, r)."""
        return self.T.matmat(_check.multiplied(X, self.shape[0], "row"))

    matvec, rmatvec = matmat, rmatmat

    def _adjoint(self) -> LinearOperator:
        return self.T


class GramOperator(_Products):
    """The Gram matrix of a kernel as a SciPy ``LinearOperator``, never larger than memory allows.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d), of signals (n, L, C) or of images (n, H, W, C)
        The points, whose dtype K has. They are not copied: each part of K is that of the values
        they have when it is computed. If they are on a device, K and all parts of it are, too.
    Y : array of the kind of X, optional
        Other points, for K of shape (n, m). By default they are X, and K is symmetric.
    max_memory : float, optional
        Bytes for kernel values, by default half of ``get_memory()``. What fits is computed once and
        kept; the rest is computed anew for each product, a block of rows at a time, and at least
        one row.
    n_threads : int, optional
        ``get_threads()`` by default. No result depends on it.
    scale : array of shape (n,), optional
        Makes K into ``S K S`` with ``S = diag(scale)``, for problems with weights. Not with Y.
    client : dask.distributed.Client, optional
        A cluster whose workers compute K and multiply by it; by default that of ``set_client``, and
        False for none. ``max_memory`` is then that of all workers together, by default 0.4 of what
        they have; K stays with them if all of it fits, and nothing of it is kept here.

    Attributes
    ----------
    shape : (int, int)
    dtype : dtype
    symmetric : bool
        Whether Y was left out.
    passes : int
        How many products have been computed.
    remote : bool
        Whether the workers of a cluster compute K.
    kernel, X, Y, max_memory, n_threads, scale
        As given.

    Notes
    -----
    ``K @ x``, ``matmat``, ``matvec`` and their transposes take ``x`` of shape (m,) or (m, r) of any
    array library and return its arrays; if the points are on a device, x has to be there. The first
    product costs the kernel of ``n (n + 1)/2`` pairs where K is symmetric, or n m, and computes
    every tile once; later ones cost only the tiles that are not kept, and 2 n m r flops. A little
    more than half of its bytes is enough to keep all of a symmetric K; on a device parts are read
    from it only if all of its bytes are there, and else computed.

    ``columns``, ``rows`` and ``block`` read K if all of it is kept, and otherwise compute the
    entries asked for; ``hold`` computes all of K at once. If the points are rows, entries are those
    of ``kernel(X)`` to the last bit. For images ``k(x, y)`` and ``k(y, x)`` round differently:
    products, tiles and kept entries are those of ``kernel(X)``, computed parts may be those of its
    transpose. Products on a cluster are summed in the order of its tiles, whoever computes them;
    tiles follow from the measured cost of an entry, and with other tiles sums round differently.

    Products must not run in several threads at once. A pickle holds the points and no values of K.

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
        self, kernel: Kernel, X: ArrayLike, Y: ArrayLike | None = None, *,
        max_memory: float | None = None, n_threads: int | None = None,
        scale: ArrayLike | None = None, client: Any = None,
    ) -> None:  # fmt: skip
        self.kernel = _check.an_instance(kernel, Kernel, "kernel", "a kernel")
        self.X, self.Y = points(self.kernel, X, Y)
        self.symmetric = self.Y is None
        self._on_host = _check.namespace(self.X) is np
        n, m = self.X.shape[0], (self.X if self.Y is None else self.Y).shape[0]
        super().__init__(np.dtype(_check.dtype_name(self.X.dtype)), (n, m))
        if n_threads is not None:
            _check.count(n_threads, "n_threads", least=1)
        self.n_threads = n_threads
        self.scale: Array | None = None
        if scale is not None:
            _check.not_beside(Y, "Y", "scale")
            found = _check.vector(scale, "scale", n, "row of X", self.X)
            self.scale = found.astype(self.dtype) if self._on_host else cast(found, self.dtype)
        if max_memory is not None:
            max_memory = _check.positive(max_memory, "max_memory")
        self._spread: Any = None
        if self._on_host and (client := resolve(client)) is not None:
            from .spread import Spread

            both = self.X, self.X if self.Y is None else self.Y
            self._spread = Spread(client, self.kernel, X, Y, both, max_memory)
            max_memory = self._spread.max_memory
        elif max_memory is None:
            max_memory = (offer(self.X, "budget") or (lambda: SHARE * budget()))()
        self.max_memory = max_memory
        self.passes = 0
        self._lay()

    def _cut(self) -> list[tuple[slice, slice]]:
        """Return where the tiles are."""
        n, m = self.shape
        most = int(min(self.max_memory / 4, BLOCK_BYTES) // self.dtype.itemsize)
        rows = most // m
        width = m
        if not self._on_host and n * m * self.dtype.itemsize <= self.max_memory:
            rows = n  # in one tile, of which parts are taken
        elif rows < 2 * GROUP <= math.isqrt(most):
            rows = width = math.isqrt(most)  # else few rows are multiplied by one thread
        grid = []
        for part in row_blocks(n, max(1, rows)):
            if self.symmetric:
                grid.append((part, part))
            start = part.stop if self.symmetric else 0
            grid += [
                (part, slice(start + c.start, start + c.stop))
                for c in row_blocks(m - start, max(1, width))
            ]
        return grid

    def _lay(self) -> None:
        """Decide where the tiles are, and which of them are kept."""
        self._grid = self._cut()
        sizes = [(r.stop - r.start) * (c.stop - c.start) for r, c in self._grid]
        room = 0 if self._spread else self.max_memory // self.dtype.itemsize
        if sum(sizes) > room:
            room -= max(sizes)  # for the one that is computed anew
            room -= int(ENGINE * room)
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

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": {}, "_scratch": np.empty(0, self.dtype), "_spread": None}

    # ---- tiles

    def tiles(self) -> Iterator[Tile]:
        """Yield all of K, a tile at a time: slices of rows and columns, and the entries.

        Yields
        ------
        rows, columns : slice
        tile : array
            ``K[rows, columns]``; every entry of K is in one tile. If K is symmetric, tiles lie on
            and above the diagonal, and one with different rows and columns stands for its mirror
            image, ``K[columns, rows] = tile.T``, as well. Tiles that are kept are read-only.

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
        """Return tile k; unless ``lasting``, in memory that the next one may overwrite."""
        if k in self._kept:
            return self._kept[k]
        rows, columns = self._grid[k]
        keep, out = k in self._keeps, None
        if self._on_host and not (keep or lasting):
            if not self._scratch.size:
                self._scratch = np.empty(self._most, self.dtype)
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            out = self._scratch[: shape[0] * shape[1]].reshape(shape)
        tile = self._computed(rows, columns, out)
        if keep:
            if self._on_host:
                tile.flags.writeable = False
            self._kept[k] = tile
        return tile

    def hold(self) -> bool:
        """Compute all of K now if it fits into ``max_memory``, and return whether it does.

        Products keep tiles by themselves, some of them where not all fit. Call this before asking
        for many columns or rows, as preconditioners do: they are then only read.

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
        for k in range(len(self._grid)):
            self._tile(k)
        return self._readable

    @property
    def remote(self) -> bool:
        """Whether the workers of a cluster compute K, from where it is better not brought here."""
        return self._spread is not None

    @property
    def _readable(self) -> bool:
        """Whether all of K is kept, in tiles that parts are read from."""
        whole = len(self._kept) == len(self._grid)
        return whole and (self._on_host or len(self._grid) == 1)

    def _parts(self) -> Iterator[Tile]:
        """Do the same in memory that the next tile may overwrite."""
        for k, (rows, columns) in enumerate(self._grid):
            yield rows, columns, self._tile(k, lasting=False)

    # ---- products

    def _matmat(self, x: Any, transposed: bool = False) -> Any:
        if not self._on_host:
            return self._there(x, transposed)
        if self._spread is not None:
            self.passes += 1
            return self._scaled(x, lambda values: self._spread.product(values, transposed))
        xp = x.__array_namespace__() if hasattr(x, "__array_namespace__") else np
        if xp is np:
            _check.on_the_host(x, "x")
        dtype = xp.result_type(xp.asarray(self._scratch[:0]), x)
        out = xp.zeros((self.shape[1 if transposed else 0], x.shape[1]), dtype=dtype)
        for rows, columns, part in self._parts():
            tile = xp.asarray(part)
            if not transposed:
                self._add(out, rows, tile, x[columns, :])
            if transposed or (self.symmetric and columns != rows):
                self._add(out, columns, tile.T, x[rows, :])
        self.passes += 1
        return out

    def _there(self, x: Any, transposed: bool) -> Any:
        """Return the product where the points are, a tile at a time."""
        x = _check.beside(x, "x", self.X, "K")
        dtype = _check.namespace(x).result_type(self.X.dtype, x.dtype)
        out = zeros((self.shape[1 if transposed else 0], x.shape[1]), self.X, dtype)
        for k, (rows, columns) in enumerate(self._grid):
            tile = self._tile(k)
            if not transposed:
                out[rows, :] += tile @ x[columns, :]
            if transposed or (self.symmetric and columns != rows):
                out[columns, :] += tile.T @ x[rows, :]
        self.passes += 1
        return out

    def _scaled(self, x: Any, multiply: Callable[[Array], Array], which: Any = ALL) -> Any:
        """Return a product with rows of ``S K S``, of one with K on arrays of NumPy."""
        xp = x.__array_namespace__() if hasattr(x, "__array_namespace__") else np
        values = _check.real_array(x, "x")
        if self.scale is None:
            return xp.asarray(multiply(values))
        found = multiply(values * self.scale[:, None]) * self.scale[which][:, None]
        return xp.asarray(found)

    def times(self, which: Which, x: Any) -> Any:
        """Return the product of some rows with x, ``K[which] @ x``, of shape (k,) or (k, r).

        It is that of ``rows(which)``, which are never all in memory at once. On a cluster they are
        multiplied where they are computed.

        Examples
        --------
        >>> import numpy as np
        >>> import kernelcore as kc
        >>> K = kc.GramOperator(kc.Polynomial(1), np.arange(4.0)[:, None])
        >>> K.times([1, 3], np.ones(4))
        array([10., 22.])
        """
        x = _check.multiplied(x, self.shape[1], "column")
        if x.ndim == 1:
            return self.times(which, x[:, None])[:, 0]
        at = _check.indices(which, self.shape[0], "which")
        if self._spread is not None:
            at = np.arange(self.shape[0]) if isinstance(at, slice) else at
            return self._scaled(x, lambda values: self._spread.times(at, values), at)
        if isinstance(at, slice):
            return self.matmat(x)
        most = max(
            1, int(min(self.max_memory, BLOCK_BYTES) // (self.shape[1] * self.dtype.itemsize))
        )
        return joined([self.rows(at[part]) @ x for part in row_blocks(len(at), most)])

    def _add(self, out: Any, rows: slice, a: Any, x: Any) -> None:
        add_product(out, rows, a, x, self.n_threads)

    def _transpose(self) -> _Products:
        return self if self.symmetric else _Transposed(self)

    # ---- parts

    def diagonal(self) -> Array:
        """Return the diagonal, of shape (min(n, m),), without computing the rest of K."""
        if self.symmetric:
            diagonal = self.kernel.diag(self.X)
            return diagonal if self.scale is None else diagonal * self.scale**2
        # Kernels have no method for pairs: compute small blocks, and keep their diagonals.
        parts = row_blocks(min(self.shape), 16)
        return joined([on_diagonal(self._computed(p, p)) for p in parts])

    def columns(self, which: Which) -> Array:
        """Return some columns, of shape (n, k); ``which`` is as in ``block``."""
        return self.block(ALL, which)

    def rows(self, which: Which, out: Array | None = None) -> Array:
        """Return some rows, of shape (k, m); ``which`` and ``out`` are as in ``block``."""
        return self.block(which, ALL, out)

    def block(self, rows: Which, columns: Which, out: Array | None = None) -> Array:
        """Return the entries where some rows meet some columns.

        Parameters
        ----------
        rows, columns : integers, a slice, or a mask
            These are k rows and l columns. If K is symmetric, the same object for both halves the
            work.
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
        if not self._readable:
            return self._computed(i, j, out)
        if not self._on_host:
            return copied(take(take(self._tile(0), i), j, 1))  # slices are views
        sizes = zip((i, j), self.shape, strict=True)
        shape = tuple(n if isinstance(x, slice) else len(x) for x, n in sizes)
        out = _check.out(out, shape, self.dtype)
        for down, across, tile in self.tiles():
            _pick(out, i, j, down, across, tile)
            if self.symmetric and across != down:
                _pick(out.T, j, i, down, across, tile)
        return out

    def toarray(self) -> Array:
        """Return all of K as an array, which the caller may overwrite.

        It is read if all of K is kept, or computed in one call of the kernel. A ``MemoryError``
        tells if it does not fit into memory.
        """
        return self.block(ALL, ALL)

    def _computed(self, rows: Index, columns: Index, out: Array | None = None) -> Array:
        found = None if self._spread is None else self._spread.block(rows, columns, out)
        if found is None:
            Y = None  # which halves the work
            if self.Y is not None or columns is not rows:
                Y = take(self.X if self.Y is None else self.Y, columns)
            found = self.kernel(take(self.X, rows), Y, out=out, n_threads=self.n_threads)
        if self.scale is not None:
            found *= take(self.scale, rows)[:, None]
            found *= take(self.scale, columns)
        return found


def add_product(out: Any, rows: slice, a: Any, x: Any, n_threads: int | None) -> None:
    """Add ``a @ x`` to ``out[rows]`` in groups of rows, each computed by one thread.

    BLAS divides a product by its number of threads, on which the last bits would depend.
    """
    n, m = a.shape

    def group(i: int) -> None:
        j = min(i + GROUP, n)
        out[rows.start + i : rows.start + j, :] += a[i:j, :] @ x

    small = n * m * x.shape[1] <= SMALL
    share(group, range(0, n, GROUP), 1 if small else _threads.resolve(n_threads))


def _pick(out: Array, i: Index, j: Index, rows: slice, columns: slice, tile: Array) -> None:
    """Copy those entries (i, j) of a matrix that a tile has into ``out``; a slice means all."""

    def within(index: Index, part: slice) -> tuple[Any, Any]:
        """Return the places in ``out`` and in the tile."""
        if isinstance(index, slice):
            return part, index
        at = np.flatnonzero((part.start <= index) & (index < part.stop))
        return at, index[at] - part.start

    (down, row), (across, column) = within(i, rows), within(j, columns)
    if isinstance(i, slice) or isinstance(j, slice):
        out[down, across] = tile[row, column]
    else:
        out[np.ix_(down, across)] = tile[np.ix_(row, column)]


class _Transposed(_Products):
    """The transpose of a K that is not symmetric."""

    def __init__(self, K: GramOperator) -> None:
        self.K = K
        super().__init__(K.dtype, K.shape[::-1])

    def _matmat(self, x: Any) -> Any:
        return self.K._matmat(x, transposed=True)

    def _transpose(self) -> GramOperator:
        return self.K

    def diagonal(self) -> Array:
        return self.K.diagonal()

    def columns(self, which: Which) -> Array:
        return self.K.rows(which).T

    def rows(self, which: Which) -> Array:
        return self.K.columns(which).T

    def block(self, rows: Which, columns: Which) -> Array:
        return self.K.block(columns, rows).T


class RowBlocks(GramOperator):
    """A ``GramOperator`` of one set of points that keeps 1 GB by default.

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
        self, kernel: Kernel, X: ArrayLike, *,
        max_memory: float = 1e9, n_threads: int | None = None, scale: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(kernel, X, max_memory=max_memory, n_threads=n_threads, scale=scale)
