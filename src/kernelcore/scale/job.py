"""Gram matrices as lists of tiles: in memory, in a store, on a cluster."""

from __future__ import annotations

import concurrent.futures
import itertools
import math
import os
import pathlib
import random
import sys
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..engine.memory import budget
from ..engine.progress import Progress
from ..kernels import Kernel
from . import cost
from .client import resolve
from .source import Source
from .store import Place, StoredGram, Tiles, Writer, on_pages, within

TILES = 4
"""The tiles in memory at a time: computed, mirrored, encoded, and the one before."""


class Job:
    """A Gram matrix to compute: kernel, inputs, and tiles."""

    def __init__(self, kernel: Kernel, x: Source, y: Source | None, size: int) -> None:
        self.kernel, self.x, self.y = kernel, x, y
        shape = len(x), len(x if y is None else y)
        self.tiles = Tiles(shape, size, y is None)

    def compute(
        self, place: Place, n_threads: int | None = None, scratch: Array | None = None
    ) -> Array:
        """Return a tile: the entries of ``kernel(X, Y)``, to the last bit."""
        rows, columns = self.tiles.at(place)
        a = self.x.read(rows)
        if self.y is None:
            b = None if place[0] == place[1] else self.x.read(columns)
        else:
            b = self.y.read(columns)
        shape = rows.stop - rows.start, columns.stop - columns.start
        out = None if scratch is None else within(scratch, shape)
        return self.kernel(a, b, out=out, n_threads=n_threads)

    def about(self) -> dict[str, Any]:
        """Return what a store says about the matrix; two jobs that say the same are the same."""
        return {
            "kernel": _readable(self.kernel),
            "dtype": str(self.x.dtype),
            "x": self.x.about(),
            "y": None if self.y is None else self.y.about(),
        }


def _readable(kernel: Kernel) -> str:
    text = repr(kernel)
    if " at 0x" in text:
        raise ValueError(
            f"kernel must print as what it is, to be told from others in a store: got {text}; "
            "use a closed form or a function of NumPy in the place of one of your own"
        )
    return text


def gram(
    kernel: Kernel, X: ArrayLike, Y: ArrayLike | None = None, *,
    store: Any = None, tile: int | None = None, client: Any = None,
    progress: bool | None = None, resume: bool = True, compress: bool = False,
) -> Any:  # fmt: skip
    """Evaluate a Gram matrix of any size: in memory, into a store, here or on a cluster.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d), (n, L, C) or (n, H, W, C)
        Of NumPy, memory-mapped, of Zarr, h5py, Dask, or whatever else has ``shape``, ``dtype`` and
        slices. With a store it is read in blocks.
    Y : array of shape (m, ...), optional
        X by default; then each pair is computed once.
    store : str, path or Zarr store, optional
        Where to keep the matrix, as a Zarr array; by default it is kept in memory. A call that
        finds part of the matrix there computes what is missing, so that a job which was killed is
        called again. A store of another kernel or other inputs is refused.
    tile : int, optional
        The rows and columns of a tile. By default they follow from the measured cost of an entry:
        at most 64 MB, and at most 60 s of work; with a client 5 s, and four for each thread.
    client : dask.distributed.Client, optional
        The cluster whose workers compute the tiles, each of them in one thread; by default that of
        ``set_client``, and False for none. Workers write to the store themselves, which must be one
        that all of them see; without a store the matrix is put together here. Memory-mapped and
        Zarr arrays they read themselves, and all else is sent to them once, in blocks.
    progress : bool, optional
        Whether to write lines to stderr; by default if it is a terminal.
    resume : bool
        Whether a store that exists may be of use; if not, it is refused.
    compress : bool
        Whether the store is compressed, by Zstandard.

    Returns
    -------
    array of shape (n, m), or StoredGram
        In memory ``kernel(X, Y)``. In a store the same values to the last bit, which are read by
        slices: ``K[:100]``, ``K[:]``; ``K @ x`` multiplies a tile at a time.

    Notes
    -----
    A tile is written when it is complete, with a checksum, and with its mirror image where the
    matrix is symmetric; on a local disk it is then there for good. Tiles that were there before are
    read once, and computed again where they are damaged. Several processes may work on one store:
    each takes tiles that are not there yet, in an order of its own.

    On a cluster, tiles of a worker that dies are computed by others, and so are those that take
    more than 10 s and ten times as long as most, since their worker may hang. If the scheduler is
    gone, a ``ConnectionError`` says so; what is in the store is used by the next call, with another
    client or none. The bits are those of ``kernel(X, Y)`` all the same.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     K = kc.gram(kc.Gaussian(1.0), X, store=f"{folder}/k.zarr", tile=30)
    ...     print(bool((K[:] == kc.Gaussian(1.0)(X)).all()), len(K.done()))
    True 10
    """
    _check.an_instance(kernel, Kernel, "kernel", "a kernel")
    shown = sys.stderr.isatty() if progress is None else _check.flag(progress, "progress")
    x, y = Source(X, "X"), None if Y is None else Source(Y, "Y")
    client = resolve(client)
    if client is not None:
        store = _absolute(store)
    elif store is None:
        return kernel(x.whole(), None if y is None else y.whole(), progress=shown)
    found = None if store is None else _existing(store)
    if tile is not None:
        size = _check.count(tile, "tile", least=1)
    elif found is not None:
        size = found.tiling.size
    else:
        size = _measured(kernel, x, y, client)
    job = Job(kernel, x, y, size)
    if store is None:
        return _gathered(job, client, shown)
    _check.room("a tile of K", (size, size), x.dtype, TILES, ("a smaller tile",))
    writer = Writer(
        store, {**job.about(), "tile": size}, job.tiles, x.dtype,
        _check.flag(compress, "compress"), _check.flag(resume, "resume"),
    )  # fmt: skip
    _filled(job, writer, StoredGram(store), client, shown)
    return StoredGram(store)


def _existing(store: Any) -> StoredGram | None:
    try:
        return StoredGram(store)
    except FileNotFoundError:
        return None


def _absolute(store: Any) -> Any:
    """Return a store that is the same one for processes in other folders."""
    if isinstance(store, (str, os.PathLike)) and "://" not in str(store):
        return pathlib.Path(store).absolute()
    root = getattr(store, "root", None)
    if isinstance(root, pathlib.Path) and not root.is_absolute():
        return type(store)(root.absolute())
    return store


def _measured(kernel: Kernel, x: Source, y: Source | None, client: Any = None) -> int:
    """Return a size of tiles that suits the kernel, and the cluster where there is one."""
    m = len(x if y is None else y)
    n = max(len(x), m)
    if len(x) == 0:
        return 1
    some = x.read(slice(0, min(len(x), cost.SAMPLE)))
    if client is None:
        n = min(n, max(1, math.isqrt(budget() // (TILES * x.dtype.itemsize))))
        return cost.tile_size(n, x.dtype.itemsize, cost.entry_seconds(kernel, some))
    from . import cluster

    entry = cost.entry_seconds(kernel, some, n_threads=1)
    size = cost.tile_size(n, x.dtype.itemsize, entry, cluster.TASK_SECONDS)
    return cluster.shared(Tiles((len(x), m), size, y is None), cluster.threads(client))


def _gathered(job: Job, client: Any, shown: bool) -> Array:
    """Return the matrix of tiles that a cluster computes."""
    from .cluster import flight, gather

    _check.room("K", job.tiles.shape, job.x.dtype)
    out = np.empty(job.tiles.shape, job.x.dtype)
    return gather(flight(client, job), out, Told(job, 0, shown))


def _filled(job: Job, writer: Writer, found: StoredGram, client: Any, shown: bool) -> None:
    """Compute the tiles that are missing or damaged."""
    with writer.held():
        there = found.done()
        damaged = found.damaged(there)
        todo = [place for place in job.tiles if place in damaged or place not in there]
        random.Random().shuffle(todo)  # so that several processes take different ones
        told = Told(job, len(job.tiles) - len(todo), shown)
        # Somebody else may have computed one meanwhile.
        missing = (place for place in todo if place in damaged or not found.has(place))
        if client is None:
            _here(job, missing, writer, told)
        else:
            from .cluster import flight

            flight(client, job, writer, found).run(missing, lambda place, values: told())


def _here(job: Job, places: Iterable[Place], writer: Writer, told: Told) -> None:
    """Compute tiles in this process; one and its mirror image are written beside the next."""
    size = math.prod(job.tiles.sizes)
    mirror, *scratch = (on_pages(size, job.x.dtype) for _ in range(3))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        writing: list[concurrent.futures.Future[None]] = []

        def wait() -> None:
            for each in writing:
                each.result()
            if writing:
                told()

        for place, room in zip(places, itertools.cycle(scratch)):
            values = job.compute(place, scratch=room)
            wait()
            writing = [
                pool.submit(writer.write_one, chunk, place, job.tiles, values, mirror)
                for chunk in job.tiles.both(place)
            ]
        wait()


class Told:
    """Lines on stderr: tiles that are done, entries per second, and the time that is left."""

    def __init__(self, job: Job, done: int, shown: bool) -> None:
        self.done, self.began, self.first = done, time.monotonic(), done
        self.progress = Progress("Gram matrix, tiles", len(job.tiles), shown)

    def __call__(self) -> None:
        self.done += 1
        each = (time.monotonic() - self.began) / (self.done - self.first)
        left = each * (self.progress.total - self.done)
        self.progress.at(self.done, f"{each:.3g} s each, {left:.0f} s left")
