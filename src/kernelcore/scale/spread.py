"""A Gram matrix that the workers of a cluster compute, for a ``GramOperator``.

A product costs each pair once. Workers multiply by the tiles that they compute, and send back what
they add to the product: an entry of K never travels. Tiles stay with the workers if all of them fit
into their memory. Sums are made here, in the order of the tiles, so that no bit depends on who has
computed what.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _check
from .._types import Array
from ..engine.memory import budget
from ..kernels import Kernel
from ..linalg.arrays import take
from . import cluster, cost
from .cluster import LEFT, RIGHT, Blocks, Entries, Flight, Product, Tile, flight, gather, offered
from .job import Job
from .source import Source
from .store import Place, Tiles

MEMORY = 0.4
"""The share of a worker's memory for tiles; beyond 0.6 Dask writes to disk."""
NEAR = 0.2
"""Parts of K that take fewer seconds are computed here."""


class Spread:
    """The tiles of a Gram matrix on a cluster.

    X and Y are inputs as they are given, which may be in files; ``points`` are those of both sides
    as arrays of NumPy.
    """

    def __init__(
        self, client: Any, kernel: Kernel, X: Any, Y: Any, points: tuple[Array, Array],
        max_memory: float | None,
    ) -> None:  # fmt: skip
        self.client, self.kernel, self.points = client, kernel, points
        self.x = Source(X, "X")
        self.y = self.x if Y is None else Source(Y, "Y")
        symmetric, itemsize = Y is None, self.x.dtype.itemsize
        n, m = shape = len(self.x), len(self.y)
        sample = self.x.read(slice(0, min(n, cost.SAMPLE)))
        self.entry = cost.entry_seconds(kernel, sample, n_threads=1)
        self.max_memory = memory(client) if max_memory is None else max_memory
        whole = Tiles(shape, max(shape), symmetric)
        size = _size(client, whole, self.x.dtype, self.entry)
        self.kept = (n * m / (1 + symmetric) + n * size) * itemsize <= self.max_memory
        if not self.kept:  # a task needs no memory for all of its tile
            side = math.sqrt(cluster.TASK_SECONDS / max(self.entry, 1e-12))
            whole.size = int(max(1, min(side, max(shape))))
            size = cluster.shared(whole, cluster.threads(client))
        self.tiles = Tiles(shape, size, symmetric)
        self.blocks = Blocks(client)
        other = None if symmetric else self.y
        self.entries = offered(self.blocks, kernel, self.tiles, self.x, other)
        self.blocks.tiles = self.entries

    def product(self, x: Array, transposed: bool) -> Array:
        """Return ``K x``, or ``K' x``."""
        return self._multiplied(Product(self.entries, transposed, self.kept), x)

    def times(self, which: Array, x: Array) -> Array:
        """Return ``K[which] x``."""
        with self._beside(which, 0, math.inf) as entries:
            return self._multiplied(Product(entries, False, False), x)

    def _multiplied(self, task: Product, x: Array) -> Array:
        tiles, kind = task.entries.tiles, np.result_type(self.x.dtype, x.dtype)
        out = np.zeros((tiles.shape[1 if task.transposed else 0], x.shape[1]), kind)
        self.blocks.reads[LEFT] = lambda k: x[tiles.span(k, 0)]
        self.blocks.reads[RIGHT] = lambda k: x[tiles.span(k, 1)]
        order = iter(tiles)
        turn, ready = next(order, None), {}

        def finished(place: Place, values: Array | None) -> None:
            nonlocal turn
            ready[place] = values
            while turn in ready:
                task.add(out, turn, ready.pop(turn))
                turn = next(order, None)

        try:
            Flight(self.client, task, self.blocks).run(tiles, finished)
        finally:
            self.blocks.drop(LEFT, RIGHT)
        return out

    def block(self, rows: Any, columns: Any, out: Array | None) -> Array | None:
        """Return some rows and columns, or None where they are quickly computed here.

        Either is the slice of all, or integers.
        """
        which, sides = (rows, columns), (self.x, self.y)
        n, m = (
            len(side) if isinstance(i, slice) else len(i)
            for i, side in zip(which, sides, strict=True)
        )
        shape = n, m
        if n * m * self.entry < NEAR:
            return None
        out = _check.fresh(shape, self.x.dtype) if out is None else out
        whole = [isinstance(i, slice) for i in which]
        if whole[0] != whole[1]:  # blocks of the whole side may be with the workers already
            axis = whole.index(False)
            with self._beside(which[axis], axis, cost.MOST_BYTES) as entries:
                return gather(Flight(self.client, Tile(entries), self.blocks), out)
        x, y = (
            side if isinstance(i, slice) else Source(take(points, i), side.name)
            for side, points, i in zip(sides, self.points, which, strict=True)
        )
        same = self.tiles.symmetric and columns is rows
        size = _size(self.client, Tiles(shape, max(shape), same), self.x.dtype, self.entry)
        return gather(flight(self.client, Job(self.kernel, x, None if same else y, size)), out)

    @contextlib.contextmanager
    def _beside(self, which: Array, axis: int, most: float) -> Iterator[Entries]:
        """Send some inputs beside all of the other side, in tiles of ``most`` bytes at most."""
        other = self.tiles.size
        shape = [len(which), len(which)]
        shape[1 - axis] = self.tiles.shape[1 - axis]
        seconds, size = self.entry * other, self.x.dtype.itemsize * other
        few = cluster.SHARE * cluster.threads(self.client) / -(-shape[1 - axis] // other)
        side = min(cluster.TASK_SECONDS / max(seconds, 1e-12), most / size, len(which) / few)
        sizes = [max(1, math.ceil(side))] * 2
        sizes[1 - axis] = other
        tiles = Tiles((shape[0], shape[1]), sizes[0], False, sizes[1])
        some = Source(take(self.points[axis], which), "XY"[axis])
        self.blocks.offer("some", some, tiles, axis)
        names, readers = list(self.entries.names), list(self.entries.sides)
        names[axis], readers[axis] = "some", None
        try:
            yield Entries(self.kernel, tiles, (readers[0], readers[1]), (names[0], names[1]))
        finally:
            self.blocks.drop("some")


def memory(client: Any) -> float:
    """Return the bytes for tiles in all workers; one without a limit counts as this machine."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return sum(MEMORY * about["memory_limit"] or budget() for about in workers)


def _size(client: Any, tiles: Tiles, dtype: np.dtype[Any], entry: float) -> int:
    """Return the side of tiles that are held: enough of them for all workers."""
    size = cost.tile_size(tiles.size, dtype.itemsize, entry, cluster.TASK_SECONDS)
    return cluster.shared(Tiles(tiles.shape, size, tiles.symmetric), cluster.threads(client))
