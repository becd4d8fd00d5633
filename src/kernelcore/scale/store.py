"""Gram matrices in a Zarr store: a tile is a chunk, which is there as a whole or not at all.

A matrix is one array of Zarr's version 3, which anybody can read. Its attributes say what it is of.
A chunk is committed by renaming a file that is complete, and carries a checksum. Where a chunk is
missing Zarr gives NaN, and ``StoredGram`` an error.
"""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import os
import pathlib
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .. import _check
from .._types import Array
from .._version import __version__
from ..engine import load
from ..engine.memory import budget
from .operator import ALL, SHARE, GramOperator
from .source import opened

FORMAT = 2
"""The layout of a store. Another one is refused."""
KEY = "kernelcore"
LOCK = ".kernelcore-lock"
STRIP = 64
"""The rows that are transposed at a time."""
PAGE = 4096
"""The bytes of a page, and of what a disk takes at a time."""
PIECE = 1024 * PAGE
"""The bytes that are written at a time."""
DAMAGE = (ValueError, RuntimeError)
"""What Zarr raises for chunks whose checksum or size is wrong."""

MOST_TILES = 10**7
"""The tiles that a store may have: a list of them is kept."""

Place = tuple[int, int]  # of a tile, counted in tiles


def _zarr() -> Any:
    _check.installed("zarr", "store")
    return load("zarr")


class Tiles:
    """The tiles of a matrix: those on and above the diagonal where it is symmetric."""

    def __init__(
        self, shape: tuple[int, int], size: int, symmetric: bool, width: int | None = None
    ) -> None:
        """Cut into squares of a size, or where there is a width into tiles of size x width."""
        self.shape, self.size, self.symmetric = shape, size, symmetric
        self.sizes = size, size if width is None else width
        self.counts = tuple(-(-n // k) for n, k in zip(shape, self.sizes, strict=True))

    def __iter__(self) -> Iterator[Place]:
        for i, j in itertools.product(*map(range, self.counts)):
            if i <= j or not self.symmetric:
                yield i, j

    def __len__(self) -> int:
        n, m = self.counts
        return n * (n + 1) // 2 if self.symmetric else n * m

    def span(self, k: int, axis: int) -> slice:
        """Return the rows, or columns, of the k-th tile."""
        size = self.sizes[axis]
        return slice(k * size, min((k + 1) * size, self.shape[axis]))

    def at(self, place: Place) -> tuple[slice, slice]:
        return self.span(place[0], 0), self.span(place[1], 1)

    def diagonal(self, place: Place) -> bool:
        """Return whether a tile is its own mirror image."""
        return self.symmetric and place[0] == place[1]

    def both(self, place: Place) -> set[Place]:
        """Return the tile, and its mirror image where there is one."""
        return {place, place[::-1]} if self.symmetric else {place}


class StoredGram(GramOperator):
    """A Gram matrix in a Zarr store, which ``gram(..., store=)`` has computed: a ``GramOperator``.

    Slices of it are NumPy arrays: ``K[:100, :100]``, or ``K[:]`` for all. Products and all solvers
    read it a tile at a time. A tile that is missing or damaged is an error, and never a number.

    Parameters
    ----------
    store : str, path or Zarr store
    max_memory : float, optional
        Bytes for tiles that are kept once they are read, by default half of ``get_memory()``.
    n_threads : int, optional
        ``get_threads()`` by default. No result depends on it.

    Attributes
    ----------
    shape, dtype, symmetric, passes, max_memory, n_threads
        As in ``GramOperator``.
    kernel : str
        The kernel as it prints. The points are not in the store.
    about : dict
        All that the store says about itself: version, inputs and their digests.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> folder = tempfile.TemporaryDirectory()
    >>> K = kc.gram(kc.Laplacian(1.0), X, store=f"{folder.name}/k.zarr", tile=50)
    >>> K[0, :2]
    array([1.        , 0.98994983])
    >>> kc.solvers.conjugate_gradients(K, X[:, 0], 1e-3).converged.item()
    True
    >>> folder.cleanup()
    """

    def __init__(
        self, store: Any, *, max_memory: float | None = None, n_threads: int | None = None
    ) -> None:
        self.array, self.about = _opened(store)
        self.name = where(store)
        LinearOperator.__init__(self, np.dtype(self.array.dtype), self.array.shape)
        nothing: Any = None
        self.X = self.Y = self.scale = nothing
        self.symmetric = self.about["y"] is None
        self.kernel: Any = self.about["kernel"]
        self.tiling = Tiles(self.shape, self.array.chunks[0], self.symmetric)
        self._on_host, self._complete, self._spread, self.passes = True, False, None, 0
        self.n_threads = n_threads if n_threads is None else _check.count(n_threads, "n_threads", 1)
        self.max_memory = _check.positive(
            SHARE * budget() if max_memory is None else max_memory, "max_memory"
        )
        self._lay()

    def __repr__(self) -> str:
        n, m = self.shape
        done = f"{len(self.done())} of {len(self.tiling)} tiles"
        return f"<{n}x{m} {type(self).__name__} of {self.kernel} in {self.name}, {done}>"

    # ---- what is there

    def done(self) -> set[Place]:
        """Return the tiles that a listing of the store finds, with their mirror images."""
        there = set(_listed(self.array))
        return {place for place in self.tiling if self.tiling.both(place) <= there}

    def has(self, place: Place) -> bool:
        """Return whether a tile and its mirror image are there, without a listing."""
        both = self.tiling.both(place)
        if _is_local(self.array):  # a file system answers at once, Zarr's loop after milliseconds
            return all(_path(self.array, each).exists() for each in both)
        store, path = self.array.store, self.array.store_path.path

        async def found() -> bool:
            for i, j in both:
                if not await store.exists(f"{path}/c/{i}/{j}" if path else f"c/{i}/{j}"):
                    return False
            return True

        return bool(load("zarr.core.sync").sync(found()))

    def damaged(self, places: Iterable[Place]) -> set[Place]:
        """Return those of some tiles that do not read, or whose mirror image does not."""
        return {p for p in places if not all(self._reads(q) for q in self.tiling.both(p))}

    def _reads(self, place: Place) -> bool:
        try:
            self.array[self.tiling.at(place)]
        except DAMAGE:
            return False
        return True

    # ---- reading

    def _whole(self) -> None:
        """Refuse a matrix of which tiles are missing."""
        left = 0 if self._complete else len(self.tiling) - len(self.done())
        if left:
            raise OSError(
                f"{self.name} must be complete: {left} of {len(self.tiling)} tiles are missing; "
                "kernelcore.gram with the same arguments computes them"
            )
        self._complete = True

    def _read(self, rows: Any, columns: Any) -> Array:
        """Return some rows and columns, given as slices or integers."""
        self._whole()
        try:
            return np.asarray(self.array.oindex[rows, columns])
        except DAMAGE as error:
            bad = min(self.damaged(self.tiling), default=None)
            if bad is None:  # not the fault of the store
                raise
            raise OSError(
                f"tile {bad} of {self.name} must be as it was written: its checksum is wrong; "
                "kernelcore.gram with the same arguments computes it again"
            ) from error

    def __getitem__(self, key: Any) -> Array:
        rows, columns = key if isinstance(key, tuple) and len(key) == 2 else (key, ALL)
        return self._read(rows, columns)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        _check.room("K", self.shape, self.dtype)
        return self.toarray().astype(dtype or self.dtype, copy=False)

    def _cut(self) -> list[tuple[slice, slice]]:
        return [self.tiling.at(place) for place in self.tiling]

    def _computed(self, rows: Any, columns: Any, out: Array | None = None) -> Array:
        found = self._read(rows, columns)
        if out is None:
            return found
        out[...] = found
        return out

    def diagonal(self) -> Array:
        """Return the diagonal, of shape (min(n, m),), from the tiles that it runs through."""
        spans = [self.tiling.span(k, 0) for k in range(min(self.tiling.counts))]
        return np.concatenate([self._read(s, s).diagonal() for s in spans])


class Writer:
    """A store that a job writes tiles to: a new one, or one of the same job."""

    def __init__(
        self, store: Any, about: dict[str, Any], tiles: Tiles, dtype: np.dtype[Any],
        compress: bool, resume: bool,
    ) -> None:  # fmt: skip
        _zarr()
        self.name = where(store)
        try:
            array, new = opened(store, "store", "r+"), False
        except FileNotFoundError:
            try:
                array, new = _created(store, about, tiles, dtype, compress), True
            except load("zarr.errors").ContainsArrayError:  # somebody was faster
                array, new = opened(store, "store", "r+"), False
        if not new:
            found = _about(array)
            _same_format(found, self.name)
            _laid_out(array, found, self.name)
            _same_job(found, about, self.name)
            if not resume:
                raise FileExistsError(
                    f"store must be new where resume=False: {self.name} has a Gram matrix; "
                    "remove it, or leave resume=True"
                )
        self.array = array.with_config({"write_empty_chunks": True})
        self._root = getattr(array.store, "root", None)
        self._plain = _is_local(array) and len(array.compressors) == 1  # the checksum

    def write(self, place: Place, tiles: Tiles, values: Array) -> None:
        """Commit a tile and its mirror image; locally for good."""
        for chunk in sorted(tiles.both(place)):
            self.write_one(chunk, place, tiles, values)

    def write_one(
        self, chunk: Place, place: Place, tiles: Tiles, values: Array, scratch: Array | None = None
    ) -> None:
        """Commit a tile, or its mirror image, which ``scratch`` has room for."""
        found = values if chunk == place else _transposed(values, scratch)
        if self._plain:
            self._commit(chunk, found)
            return
        self.array[tiles.at(chunk)] = found
        if isinstance(self._root, pathlib.Path):
            path = _path(self.array, chunk)
            _sync(path)
            _sync(path.parent)

    def _commit(self, place: Place, values: Array) -> None:
        """Write the file of a chunk as Zarr would, but without its copies: bytes and checksum."""
        path, size = _path(self.array, place), self.array.chunks
        kind = values.dtype.newbyteorder("<")
        if values.shape != size:  # where the matrix ends chunks are filled up
            whole = np.full(size, np.nan, kind)
            whole[: values.shape[0], : values.shape[1]] = values
            values = whole
        data = np.ascontiguousarray(values, kind).reshape(-1).view(np.uint8)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
        try:
            _write(partial, data)
            os.replace(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        _sync(path.parent)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the store with others that write to it; who is alone first sweeps what is stray."""
        if not isinstance(self._root, pathlib.Path):
            yield
            return
        try:
            import fcntl
        except ImportError:  # not a Unix: nothing is swept
            yield
            return
        with open(self._root / LOCK, "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                pass
            else:
                for stray in self._root.rglob("*.partial"):
                    stray.unlink(missing_ok=True)
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield


def _is_local(array: Any) -> bool:
    """Return whether chunks are files, laid out as Zarr's own class does it."""
    return type(array.store) is load("zarr.storage").LocalStore


def _path(array: Any, place: Place) -> pathlib.Path:
    """Return the file of a chunk in a local store."""
    return pathlib.Path(array.store.root, array.store_path.path, "c", *map(str, place))


def _opened(store: Any) -> tuple[Any, dict[str, Any]]:
    """Return the array of a store, to be read, and what it says about itself."""
    _zarr()
    try:
        array = opened(store, "store")
    except FileNotFoundError:
        raise FileNotFoundError(f"store must have a Gram matrix: {where(store)} has none") from None
    about = _about(array)
    _same_format(about, where(store))
    _laid_out(array, about, where(store))
    return array, about


def _about(array: Any) -> dict[str, Any]:
    """Return what a store says about itself; nothing where that is no dictionary."""
    attributes = array.metadata.attributes  # Zarr takes any JSON for them
    found = attributes.get(KEY) if isinstance(attributes, dict) else None
    return dict(found) if isinstance(found, dict) else {}


def _laid_out(array: Any, about: dict[str, Any], name: str) -> None:
    """Refuse a store whose metadata are not those of a Gram matrix in tiles."""
    chunks = getattr(array, "chunks", ())
    fine = array.ndim == 2 and np.dtype(array.dtype) in (np.float32, np.float64)
    fine = fine and len(set(chunks)) == 1 and min(chunks) > 0 and {"kernel", "y"} <= about.keys()
    square = fine and (about["y"] is not None or array.shape[0] == array.shape[1])
    _check.must(square, name, "be laid out as a Gram matrix", f"shape {array.shape} in {chunks}")
    counts = [-(-n // k) for n, k in zip(array.shape, chunks, strict=True)]
    most = counts[0] * counts[1]
    _check.must(most <= MOST_TILES, name, f"have at most {MOST_TILES} tiles", most)


def _created(
    store: Any, about: dict[str, Any], tiles: Tiles, dtype: np.dtype[Any], compress: bool
) -> Any:
    zarr, codecs = _zarr(), load("zarr.codecs")
    smaller = [codecs.BloscCodec(cname="zstd", clevel=1, shuffle="shuffle")] if compress else []
    return zarr.create_array(
        store=store, shape=tiles.shape, chunks=(tiles.size, tiles.size), dtype=dtype,
        fill_value=np.nan, compressors=[*smaller, codecs.Crc32cCodec()], zarr_format=3,
        attributes={KEY: {"format": FORMAT, "version": __version__, **about}},
    )  # fmt: skip


def where(store: Any) -> str:
    """Return a name of a store for people."""
    path = isinstance(store, (str, os.PathLike))
    return str(store if path else getattr(store, "root", store))


def _same_format(about: dict[str, Any], name: str) -> None:
    if about.get("format") != FORMAT:
        said = f"kernelcore {about['version']}" if "version" in about else "something else"
        raise ValueError(
            f"store must be one that kernelcore {__version__} has written: {name} is of {said}; "
            "use another store, or that version"
        )


def _same_job(found: dict[str, Any], about: dict[str, Any], name: str) -> None:
    for key, ours in about.items():
        theirs = found.get(key)
        if theirs != ours:
            raise ValueError(
                f"store must be of the same {WHAT[key]}: {name} has {_said(theirs)}, "
                f"this call {_said(ours)}; use another store"
            )


WHAT = {"kernel": "kernel", "dtype": "dtype", "x": "X", "y": "Y", "tile": "tile"}


def _said(value: Any) -> str:
    try:
        shape = " x ".join(map(str, value["shape"]))
        return f"{shape} {value['dtype']} with digest {value['digest'][:8]}"
    except (KeyError, TypeError):  # text, none, or what somebody else has written
        return "none" if value is None else str(value)


def _listed(array: Any) -> list[Place]:
    """Return the chunks that are there; names that are not of chunks are of others."""
    store, prefix = array.store, array.store_path.path
    start = f"{prefix}/c/" if prefix else "c/"

    async def keys() -> list[str]:
        return [key async for key in store.list_prefix(start)]

    places = []
    for key in load("zarr.core.sync").sync(keys()):
        parts = key.removeprefix(start).split("/")
        if len(parts) == 2 and all(part.isdecimal() for part in parts):
            places.append((int(parts[0]), int(parts[1])))
    return places


def _write(path: pathlib.Path, data: Array) -> None:
    """Write a file for good: bytes from memory, and their CRC32C behind them.

    They do not stay in the page cache, since a matrix would fill the memory twice. A checksum keeps
    other threads of Python waiting, a write does not, so that a piece of each follows the other.
    """
    extend = load("google_crc32c").extend
    checksum = 0
    with open(path, "wb", buffering=0) as file:
        direct = _past_cache(file, data.ctypes.data % PAGE == 0)
        for start in range(0, data.size, PIECE):
            piece = data[start : start + PIECE]
            checksum = extend(checksum, piece)
            try:
                direct = direct and _past_cache(file, piece.size % PAGE == 0)
                _write_all(file, piece)
            except OSError as error:
                if not direct or error.errno != errno.EINVAL:
                    raise
                direct = _past_cache(file, False)
                file.seek(start)
                _write_all(file, piece)
        _past_cache(file, False)
        _write_all(file, checksum.to_bytes(4, "little"))
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _past_cache(file: io.FileIO, wanted: bool) -> bool:
    """Say whether a file is written without a copy in the page cache; return whether it is.

    It takes half of the time and nearly none of the processor's. Not every system has it; a file
    system without it may say so here or when it writes. Memory has to be in whole pages.
    """
    direct = getattr(os, "O_DIRECT", 0)
    if not direct:
        return False
    import fcntl

    flags = fcntl.fcntl(file, fcntl.F_GETFL) & ~direct
    try:
        fcntl.fcntl(file, fcntl.F_SETFL, flags | (direct if wanted else 0))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False
    return wanted


def _write_all(file: io.FileIO, data: Any) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _sync(path: pathlib.Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _transposed(values: Array, scratch: Array | None) -> Array:
    """Return a copy of the transpose, by strips that stay in a cache: four times as fast."""
    shape = values.shape[::-1]
    out = np.empty(shape, values.dtype) if scratch is None else within(scratch, shape)
    for i in range(0, len(values), STRIP):
        out[:, i : i + STRIP] = values[i : i + STRIP].T
    return out


def on_pages(size: int, dtype: np.dtype[Any]) -> Array:
    """Return a vector that begins with a page, so that tiles in it are written without a copy."""
    raw = np.empty(size * dtype.itemsize + PAGE, np.uint8)
    first = -raw.ctypes.data % PAGE
    return raw[first : first + size * dtype.itemsize].view(dtype)


def within(scratch: Array, shape: tuple[int, int]) -> Array:
    """Return an array at the start of a vector; fresh memory would cost as much as a kernel."""
    return scratch[: shape[0] * shape[1]].reshape(shape)
