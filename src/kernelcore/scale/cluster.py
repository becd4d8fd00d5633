"""Tiles of a Gram matrix on a cluster of Dask: what its workers run, and who looks after them."""

from __future__ import annotations

import contextlib
import queue
import statistics
import time
import uuid
import zlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from .. import _check
from .._types import Array
from ..engine import load
from ..kernels import Kernel
from . import cost
from .operator import BLOCK_BYTES, GramOperator, add_product
from .source import Source
from .store import Place, StoredGram, Tiles, Writer

if TYPE_CHECKING:
    from .job import Job

TASK_SECONDS = 5.0
"""What a task takes, as far as its tile can be chosen: much longer than Dask needs for it."""
SHARE = 4
"""The tiles for each thread, at least, so that no worker waits long for the last one."""
AHEAD = 2
"""The tasks on their way for each thread: the next is there when one ends."""
RETRIES = 3
"""How often a task that failed is run again. Tasks of workers that died are run again anyway."""
LATE = 10.0
"""A tile that has taken so many seconds is tried elsewhere, ..."""
TIMES = 10.0
"""... if this is also so many times the median."""
SILENT = 5.0
"""A worker that the scheduler heard of so many seconds before the last of the others hangs."""
PAUSE = 1.0
"""The seconds between two looks at the workers."""
CONNECT = 10.0
"""The seconds that a scheduler has to answer."""
LEFT, RIGHT, TILE = "left", "right", "tile"
"""The names of blocks that are multiplied, and of tiles that stay with workers."""

Key: TypeAlias = tuple[Any, ...]  # the name of a block, and its place
Task: TypeAlias = "Tile | Product"


def checked(client: Any) -> Any:
    _check.installed("distributed", "client")
    client = _check.an_instance(
        client, load("distributed").Client, "client", "a dask.distributed.Client"
    )
    _check.must(client.status == "running", "client", "be connected", f"a {client.status} one")
    return client


def connected_to(address: str) -> Any:
    """Return a client of the scheduler at an address."""
    _check.installed("distributed", "client")
    try:
        return load("distributed").Client(address, timeout=CONNECT)
    except (OSError, ValueError):
        raise ConnectionError(
            f"no Dask scheduler answers at {address}; start one with: dask scheduler"
        ) from None


def threads(client: Any) -> int:
    """Return the threads of all workers, at least one."""
    return max(1, sum(client.nthreads().values()))


def shared(tiles: Tiles, n_threads: int) -> int:
    """Return the size of tiles of which there are enough for so many threads, if it can be."""
    size, longer = tiles.size, max(tiles.shape)
    while size > 1 and len(Tiles(tiles.shape, size, tiles.symmetric)) < SHARE * n_threads:
        size = min(size - 1, -(-longer // (-(-longer // size) + 1)))
    return size


# ---- what workers run


class Entries(NamedTuple):
    """Kernel and inputs of the tiles of a matrix, as far as workers read them: it is small.

    Inputs are None where they are sent, block by block, under a name for each side.
    """

    kernel: Kernel
    tiles: Tiles
    sides: tuple[Source | None, Source | None]
    names: tuple[str, str]

    def keys(self, place: Place) -> tuple[Key | None, Key | None]:
        """Return which blocks a tile has to be sent; on the diagonal there is no second one."""
        found = [
            (name, k) if side is None else None
            for side, name, k in zip(self.sides, self.names, place, strict=True)
        ]
        return found[0], None if self.tiles.diagonal(place) else found[1]

    def inputs(self, place: Place, sent: tuple[Any, Any]) -> tuple[Array, Array | None]:
        """Return the inputs of a tile; the second are None on the diagonal."""
        (x, y), (rows, columns) = self.sides, self.tiles.at(place)
        a = sent[0] if x is None else x.read(rows)
        if self.tiles.diagonal(place):
            return a, None
        return a, sent[1] if y is None else y.read(columns)

    def values(self, place: Place, sent: tuple[Any, Any]) -> Array:
        return self.kernel(*self.inputs(place, sent), n_threads=1)


class Tile(NamedTuple):
    """A task that computes a tile, and stores it where there is a store."""

    entries: Entries
    writer: Writer | None = None

    def keys(self, place: Place) -> tuple[Key | None, ...]:
        return self.entries.keys(place)

    def run(self, place: Place, *sent: Any) -> Array | None:
        values = self.entries.values(place, (sent[0], sent[1]))
        if self.writer is not None:
            self.writer.write(place, self.entries.tiles, values)
        return values


class Product(NamedTuple):
    """A task that multiplies by a tile, and by its mirror image where K is symmetric.

    What it returns are the rows of ``K x`` and below them those of ``K' x``, as far as asked for.
    """

    entries: Entries
    transposed: bool
    kept: bool  # the tile is another task, whose result stays with its worker
    writer: None = None

    def keys(self, place: Place) -> tuple[Key | None, ...]:
        i, j = place
        both = self.entries.tiles.symmetric and i != j
        left = (RIGHT, i) if both else (LEFT, i) if self.transposed else None
        right = None if self.transposed else (RIGHT, j)
        if self.kept:
            return (TILE, i, j), None, left, right
        return *self.entries.keys(place), left, right

    def run(self, place: Place, a: Any, b: Any, left: Any, right: Any) -> Array:
        if self.kept:
            # A tile that another worker has sent may lie at any byte. NumPy would multiply by a
            # copy of its transpose, which BLAS may sum in another order.
            a = np.require(a, requirements="A")
            return swept([(slice(0, a.shape[0]), slice(0, a.shape[1]), a)], a.shape, left, right)
        x, y = self.entries.inputs(place, (a, b))
        K = GramOperator(
            self.entries.kernel, x, y, max_memory=BLOCK_BYTES, n_threads=1, client=False
        )
        if y is None:
            return np.asarray(K @ right)
        return swept(K._parts(), K.shape, left, right)

    def add(self, out: Array, place: Place, values: Any) -> None:
        """Add what a task has returned to the product."""
        rows, columns = self.entries.tiles.at(place)
        if self.transposed:
            out[columns] += values
            return
        n = rows.stop - rows.start
        out[rows] += values[:n]
        if len(values) > n:
            out[columns] += values[n:]


def swept(parts: Iterable[Any], shape: tuple[int, int], left: Any, right: Any) -> Array:
    """Return ``K right`` and below it ``K' left``, of parts of K; either may be None."""
    n, m = (0 if right is None else shape[0]), (0 if left is None else shape[1])
    given = left if right is None else right
    out: Array | None = None
    for rows, columns, tile in parts:
        if out is None:
            out = np.zeros((n + m, given.shape[1]), np.result_type(tile, given))
        if right is not None:
            add_product(out[:n], rows, tile, right[columns], 1)
        if left is not None:
            add_product(out[n:], columns, tile.T, left[rows], 1)
    assert out is not None
    return out


class Done(NamedTuple):
    """What a task returns: who has run it, a checksum, and its values if they are not stored."""

    worker: str
    checksum: int
    values: Array | None


def block(values: Array) -> Array:
    """Return a block of the inputs: as the result of a task it can be had again from anywhere."""
    return values


def tile(entries: Entries, place: Place, *sent: Any) -> Array:
    """Return a tile, which stays with the worker."""
    return entries.values(place, (sent[0], sent[1]))


def computed(task: Task, place: Place, *sent: Any) -> Done:
    """Run a task in the thread that Dask has given; what is None it reads by itself."""
    values = task.run(place, *sent)
    done = Done(load("distributed").get_worker().address, _checksum(values), values)
    return done if task.writer is None else done._replace(values=None)


def _checksum(values: Any) -> int:
    return zlib.crc32(np.ascontiguousarray(values).data)


# ---- what they are sent


class Blocks:
    """Blocks of inputs on their way to workers, each of which is sent once, as a task.

    Data that Dask scatters is lost with the worker that has it; a task is run again.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.name = uuid.uuid4().hex[:8]
        self.made: dict[Key, Any] = {}
        self.reads: dict[str, Callable[[int], Array]] = {}
        self.tiles: Entries | None = None  # of tiles that stay with the workers

    def offer(self, name: str, source: Source, tiles: Tiles, axis: int) -> None:
        """Let tasks have blocks of inputs, as the tiles cut them along an axis."""
        self.reads[name] = lambda k: source.read(tiles.span(k, axis))

    def get(self, key: Key | None, workers: list[str] | None) -> Any:
        """Return a block as a task, which may be at some workers or at any."""
        if key is None:
            return None
        if key not in self.made:
            options: dict[str, Any] = {"pure": False, "retries": RETRIES, "workers": workers}
            options["key"] = "-".join(
                map(str, ("kernelcore", *key, self.name, uuid.uuid4().hex[:8]))
            )
            if key[0] == TILE:
                assert self.tiles is not None
                place = key[1], key[2]
                sent = [self.get(k, workers) for k in self.tiles.keys(place)]
                self.made[key] = self.client.submit(tile, self.tiles, place, *sent, **options)
            else:
                # What is large here are inputs, which have to be sent.
                quiet = {"distributed.admin.large-graph-warning-threshold": "1 TB"}
                with load("dask").config.set(quiet):
                    values = self.reads[key[0]](key[1])
                    self.made[key] = self.client.submit(block, values, **options)
        return self.made[key]

    def waits(self, key: Key | None) -> str | None:
        """Let go of a block that is not there yet, and return the name of its task."""
        if key is None or key not in self.made or self.made[key].status == "finished":
            return None
        return str(self.made.pop(key).key)

    def drop(self, *names: str) -> None:
        """Let go of all blocks of these names, or of all."""
        for key in [key for key in self.made if not names or key[0] in names]:
            del self.made[key]


# ---- who looks after them


class Attempt(NamedTuple):
    """A task that computes a tile, and when it was submitted."""

    future: Any
    began: float


class Flight:
    """The tiles of a job on their way through a cluster."""

    def __init__(
        self, client: Any, task: Task, blocks: Blocks, found: StoredGram | None = None
    ) -> None:
        self.client, self.address, self.found = client, client.scheduler.address, found
        self.task, self.tiles, self.blocks = task, task.entries.tiles, blocks
        self.done = 0
        self.name = uuid.uuid4().hex[:8]
        self.flying: dict[Place, list[Attempt]] = {}
        self.places: dict[str, Place] = {}
        self.landed: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.took: list[float] = []
        self.seen: set[str] = set()  # workers of which a tile was read back
        self.silent: set[str] = set()
        self.talking: list[str] = []
        self.looked = time.monotonic()

    def run(self, todo: Iterable[Place], finished: Callable[[Place, Array | None], None]) -> None:
        """Compute tiles, and say which one is finished."""
        waiting, more = iter(todo), True
        self.most = AHEAD * threads(self.client)
        try:
            while more or self.flying:
                while more and len(self.flying) < self.most:
                    place = next(waiting, None)
                    if place is None:
                        more = False
                    else:
                        self.submit(place)
                self.look()
                self.land(finished)
        except Exception as error:
            # A call may fail, and all futures be cancelled, before the client knows why.
            broken = isinstance(error, load("distributed.comm").CommClosedError)
            lost = getattr(error, "reason", None) == "scheduler-connection-lost"
            self.connected(not (broken or lost))
            raise
        finally:
            self.stop()

    def connected(self, still: bool = True) -> None:
        """Refuse to go on without a scheduler, or with one that is new."""
        if not still or self.client.status != "running":
            total = len(self.tiles)
            if self.found is not None:
                there = len(self.found.done())
                left = f"{there} of {total} tiles are in {self.found.name}; call again to go on"
            elif isinstance(self.task, Tile):
                left = f"{self.done} of {total} tiles are in memory; call again with store= to "
                left += "keep them"
            else:
                left = "the product has to be computed again, with another client"
            raise ConnectionError(f"the Dask scheduler at {self.address} is gone: {left}")

    def stop(self) -> None:
        """Cancel what is on its way."""
        left = [attempt.future for attempts in self.flying.values() for attempt in attempts]
        self.flying.clear()
        if left and self.client.status == "running":
            with contextlib.suppress(OSError, AttributeError):  # the scheduler went meanwhile
                self.client.cancel(left, force=True)

    # ---- tasks

    def submit(self, place: Place, workers: list[str] | None = None) -> None:
        """Send a tile to some workers, or to any; to none that hangs, which Dask takes for idle."""
        if workers is None and self.silent:
            workers = self.talking
        attempts = self.flying.setdefault(place, [])
        sent = [self.blocks.get(key, workers) for key in self.task.keys(place)]
        i, j = place
        future = self.client.submit(
            computed, self.task, place, *sent, pure=False, retries=RETRIES,
            key=f"kernelcore-tile-{i}-{j}-{self.name}-{len(attempts)}", workers=workers,
        )  # fmt: skip
        self.places[future.key] = place
        attempts.append(Attempt(future, time.monotonic()))
        future.add_done_callback(self.landed.put)

    def land(self, finished: Callable[[Place, Array | None], None]) -> None:
        """Take a task that has ended, if one does within a while."""
        try:
            future = self.landed.get(timeout=PAUSE)
        except queue.Empty:
            return
        place = self.places.pop(future.key)
        if place not in self.flying:
            return  # another attempt was faster
        if future.status in ("error", "cancelled"):
            future.result()  # raises what the worker has raised
        try:
            done = future.result(timeout=self.limit())
        except load("distributed").TimeoutError:
            return  # the worker hangs or has died since; the tile will be late
        if done.values is None:
            self.seen_by_all(place, done)
        elif _checksum(done.values) != done.checksum:
            self.submit(place)
            return
        attempts = self.flying.pop(place)
        now = time.monotonic()
        self.took += [now - began for task, began in attempts if task.key == future.key]
        others = [task for task, _ in attempts if task.key != future.key]
        if others:
            self.client.cancel(others, force=True)
        self.done += 1
        finished(place, done.values)

    def seen_by_all(self, place: Place, done: Done) -> None:
        """Refuse a store that is another one for a worker; its first tile is read back."""
        found = self.found
        assert found is not None
        if done.worker in self.seen:
            same = found.has(place)
        else:
            same = _checksum(found.array[self.tiles.at(place)]) == done.checksum
            self.seen.add(done.worker)
        if not same:
            raise OSError(
                f"store must be one that all workers see: tile {place}, which {done.worker} has "
                f"written, is not in {found.name}; use a folder or service that they share"
            )

    # ---- workers

    def limit(self) -> float:
        """Return the seconds after which a tile is late."""
        return max(LATE, TIMES * statistics.median(self.took or [cost.MOST_SECONDS]))

    def look(self) -> None:
        """See which workers there are, and try elsewhere what is late."""
        self.connected()
        now = time.monotonic()
        if now - self.looked < PAUSE:
            return
        self.looked = now
        self.most = AHEAD * threads(self.client)
        late = [
            place
            for place, attempts in self.flying.items()
            # Longer each time: a tile may just be slow.
            if now - attempts[-1].began > self.limit() * 2 ** (len(attempts) - 1)
        ]
        if late or self.silent:
            self.listen()
        if late:
            processing = self.client.processing()
            for place in late:
                self.elsewhere(place, processing)

    def listen(self) -> None:
        """Find the workers that hang: inputs that they hold are not to be had from them."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        heard = {name: about["last_seen"] for name, about in workers.items()}
        last = max(heard.values(), default=0.0)
        silent = {name for name, at in heard.items() if last - at > SILENT}
        if silent - self.silent or set(self.talking) - heard.keys():
            self.blocks.drop()  # else they would be waited for
        self.silent = silent
        self.talking = [name for name in heard if name not in silent]

    def elsewhere(self, place: Place, processing: dict[str, Any]) -> None:
        """Try a tile on workers that do not have it yet, or on those that talk."""
        keys = {attempt.future.key for attempt in self.flying[place]}
        for key in self.task.keys(place):
            if (name := self.blocks.waits(key)) is not None:
                keys.add(name)  # it waits behind what hangs
        busy = {name for name, tasks in processing.items() if keys.intersection(tasks)}
        others = [name for name in self.talking if name not in busy]
        if others or self.silent:
            self.submit(place, others or self.talking)


def flight(
    client: Any, job: Job, writer: Writer | None = None, found: StoredGram | None = None
) -> Flight:
    """Return the flight of a job."""
    blocks = Blocks(client)
    entries = offered(blocks, job.kernel, job.tiles, job.x, job.y)
    return Flight(client, Tile(entries, writer), blocks, found)


def offered(blocks: Blocks, kernel: Kernel, tiles: Tiles, x: Source, y: Source | None) -> Entries:
    """Return the entries of tiles, whose inputs are among the blocks where workers need them."""
    blocks.offer("x", x, tiles, 0)
    rows = x.portable()
    if y is None:
        return Entries(kernel, tiles, (rows, rows), ("x", "x"))
    blocks.offer("y", y, tiles, 1)
    return Entries(kernel, tiles, (rows, y.portable()), ("x", "y"))


def gather(flight: Flight, out: Array, told: Callable[[], None] = lambda: None) -> Array:
    """Bring tiles together in an array."""
    tiles = flight.tiles

    def finished(place: Place, values: Array | None) -> None:
        assert values is not None
        for where in tiles.both(place):
            out[tiles.at(where)] = values if where == place else values.T
        told()

    flight.run(tiles, finished)
    return out
