"""Tiles of a Gram matrix on a cluster of Dask: what its workers run, and who looks after them."""

from __future__ import annotations

import contextlib
import queue
import statistics
import time
import uuid
import zlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _check
from .._types import Array
from ..engine import load
from ..kernels import Kernel
from . import cost
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


def checked(client: Any) -> Any:
    _check.installed("distributed", "client")
    client = _check.an_instance(
        client, load("distributed").Client, "client", "a dask.distributed.Client"
    )
    _check.must(client.status == "running", "client", "be connected", f"a {client.status} one")
    return client


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


class Work(NamedTuple):
    """What the tasks of a job have in common: it is small.

    Inputs are None where they are in memory, and come beside it; y is x where there is no other.
    """

    kernel: Kernel
    tiles: Tiles
    x: Source | None
    y: Source | None
    writer: Writer | None


class Done(NamedTuple):
    """What a task returns: who has computed the tile, its checksum, and itself if not stored."""

    worker: str
    checksum: int
    values: Array | None


def block(values: Array) -> Array:
    """Return a block of the inputs: as the result of a task it can be had again from anywhere."""
    return values


def computed(work: Work, place: Place, a: Any, b: Any) -> Done:
    """Compute a tile in the thread that Dask has given, and store it where there is a store.

    Inputs that are None are read here; on the diagonal there is no second one.
    """
    rows, columns = work.tiles.at(place)
    if work.x is not None:
        a = work.x.read(rows)
    if work.y is not None and not work.tiles.diagonal(place):
        b = work.y.read(columns)
    values = work.kernel(a, b, n_threads=1)
    done = Done(load("distributed").get_worker().address, _checksum(values), values)
    if work.writer is None:
        return done
    work.writer.write(place, work.tiles, values)
    return done._replace(values=None)


def _checksum(values: Any) -> int:
    return zlib.crc32(np.ascontiguousarray(values).data)


# ---- who looks after them


class Attempt(NamedTuple):
    """A task that computes a tile, and when it was submitted."""

    future: Any
    began: float


class Flight:
    """The tiles of a job on their way through a cluster."""

    def __init__(
        self, client: Any, job: Job, writer: Writer | None = None, found: StoredGram | None = None
    ) -> None:
        self.client, self.address, self.found = client, client.scheduler.address, found
        self.inputs = job.x, job.x if job.y is None else job.y
        x = job.x.portable()
        y = x if job.y is None else job.y.portable()
        self.work = Work(job.kernel, job.tiles, x, y, writer)
        self.done = 0
        self.name = uuid.uuid4().hex[:8]
        self.blocks: dict[Place, Any] = {}
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
            there = self.done if self.found is None else len(self.found.done())
            place = "memory; call again with store= to keep them"
            if self.found is not None:
                place = f"{self.found.name}; call again to go on"
            raise ConnectionError(
                f"the Dask scheduler at {self.address} is gone: {there} of "
                f"{len(self.work.tiles)} tiles are in {place}"
            )

    def stop(self) -> None:
        """Cancel what is on its way, and let go of the inputs."""
        left = [attempt.future for attempts in self.flying.values() for attempt in attempts]
        self.flying.clear()
        self.blocks.clear()
        if left and self.client.status == "running":
            with contextlib.suppress(OSError, AttributeError):  # the scheduler went meanwhile
                self.client.cancel(left, force=True)

    # ---- tasks

    def submit(self, place: Place, workers: list[str] | None = None) -> None:
        """Send a tile to some workers, or to any; to none that hangs, which Dask takes for idle."""
        if workers is None and self.silent:
            workers = self.talking
        attempts = self.flying.setdefault(place, [])
        i, j = place
        a = self.given(0, i, workers)
        b = None if self.work.tiles.diagonal(place) else self.given(1, j, workers)
        future = self.client.submit(
            computed, self.work, place, a, b, pure=False, retries=RETRIES,
            key=f"kernelcore-tile-{i}-{j}-{self.name}-{len(attempts)}", workers=workers,
        )  # fmt: skip
        self.places[future.key] = place
        attempts.append(Attempt(future, time.monotonic()))
        future.add_done_callback(self.landed.put)

    def given(self, axis: int, k: int, workers: list[str] | None) -> Any:
        """Return a block of the inputs as a task, which is sent once, or None if workers read it.

        Data that Dask scatters is lost with the worker that has it; a task is run again.
        """
        if (self.work.x, self.work.y)[axis] is not None:
            return None
        key = self.block_of(axis, k)
        if key not in self.blocks:
            values = self.inputs[axis].read(self.work.tiles.span(k, axis))
            # What is large here are inputs, which have to be sent.
            quiet = {"distributed.admin.large-graph-warning-threshold": "1 TB"}
            with load("dask").config.set(quiet):
                self.blocks[key] = self.client.submit(
                    block, values, pure=False, retries=RETRIES,
                    key=f"kernelcore-block-{'xy'[key[0]]}-{k}-{self.name}-{uuid.uuid4().hex[:8]}",
                    workers=workers,
                )  # fmt: skip
        return self.blocks[key]

    def block_of(self, axis: int, k: int) -> Place:
        return 0 if self.work.tiles.symmetric else axis, k

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
            same = _checksum(found.array[self.work.tiles.at(place)]) == done.checksum
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
            self.blocks.clear()  # else they would be waited for
        self.silent = silent
        self.talking = [name for name in heard if name not in silent]

    def elsewhere(self, place: Place, processing: dict[str, Any]) -> None:
        """Try a tile on workers that do not have it yet, or on those that talk."""
        keys = {attempt.future.key for attempt in self.flying[place]}
        for at in map(self.block_of, (0, 1), place):
            if at in self.blocks and self.blocks[at].status != "finished":
                keys.add(self.blocks.pop(at).key)  # it waits behind what hangs
        busy = {name for name, tasks in processing.items() if keys.intersection(tasks)}
        others = [name for name in self.talking if name not in busy]
        if others or self.silent:
            self.submit(place, others or self.talking)
