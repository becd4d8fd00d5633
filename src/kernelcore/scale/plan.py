"""What a Gram matrix would cost: measured here for a second, and scheduled on workers on paper."""

from __future__ import annotations

import dataclasses
import heapq
import math
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._types import Array
from ..engine.memory import budget
from ..engine.threads import get_threads
from ..kernels import Kernel
from . import cost
from .store import Tiles

TASK_SECONDS = 30.0
"""What a task of a cluster takes where tiles are chosen: overheads vanish, and little is lost."""
SPREAD = 0.1
"""The standard deviation of the logarithm of a task's time, on machines that others use as well."""
SLOW, SLOWER = 0.02, 2.0
"""The share of workers that are slow, and by how much."""
LAST = 100
"""The tasks of a worker that are scheduled one by one."""
RUNTIME_BYTES = 200_000_000
"""What Python, NumPy and the libraries of a worker hold."""
DISK_RATE = 5e8
"""Bytes per second that a store is read with: 0.53 GB were, checksums included, from 10 GB."""
LINK_RATE, LATENCY = 1.25e9, 50e-6
"""Bytes per second of a worker's network, 10 Gbit/s; the seconds of a short message."""
START_SECONDS = 1e-3
"""What Dask's scheduler, which is one process, needs for a task, as its manual has it."""
PASSES = 50
"""Products of an iterative solver with a good preconditioner, or epochs of EigenPro."""


class Solver(NamedTuple):
    """What a solver would cost on this machine, once K is there or while it is computed."""

    name: str
    seconds: float
    memory: float
    fits: bool
    note: str


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a Gram matrix would cost, as ``kc.plan`` tells it; ``print`` shows it as a table.

    Attributes
    ----------
    kernel : str
    n, m : int
    entries : int
        Pairs that are computed: half of them where Y is X.
    entry_seconds : float
        Of a core of this machine while all of them are busy.
    core_hours, wall_seconds : float
        Of all entries on one core; of the schedule on ``workers``.
    tile, tiles : int
        The side of a tile, and how many there are.
    lost : float
        The share of the workers' time in which they wait for the last ones.
    memory, disk, network : float
        Bytes of a worker, of the store, and to and from all workers.
    workers : int
    solvers : list of Solver
    finished : array of shape (workers,)
        When each worker is done, in seconds.
    """

    kernel: str
    n: int
    m: int
    entries: int
    entry_seconds: float
    core_hours: float
    wall_seconds: float
    tile: int
    tiles: int
    lost: float
    memory: float
    disk: float
    network: float
    workers: int
    solvers: list[Solver]
    finished: Array = dataclasses.field(repr=False, compare=False)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the lines of the table: what it is, and how much."""
        size, wide = _check.in_bytes, self.workers
        yield "kernel", textwrap.shorten(self.kernel, 80, placeholder=" ...")
        yield "matrix", f"{self.n} x {self.m}, {self.entries:.4g} entries to compute"
        yield "an entry", f"{_time(self.entry_seconds)} on a core of this machine, all of them busy"
        yield "work", f"{self.core_hours:.4g} core-hours"
        yield "wall time", f"{_time(self.wall_seconds)} with {wide} worker{'s' * (wide > 1)}"
        each = self.entry_seconds * self.tile**2
        yield "tiles", f"{self.tiles} of {self.tile} x {self.tile}, {_time(each)} each"
        yield "lost", f"{100 * self.lost:.1f} % of the workers' time, waiting for the last"
        yield "memory", f"{size(self.memory)} a worker"
        yield "disk", size(self.disk)
        yield "network", f"{size(self.network)} to and from workers"
        for s in self.solvers:
            fits = "fits" if s.fits else "does not fit into memory here"
            yield s.name, f"{_time(s.seconds)}, {size(s.memory)}, {fits}: {s.note}"

    def __str__(self) -> str:
        return _table(self.rows())

    def plot(self, ax: Any = None) -> Any:
        """Draw when the workers are done, and return the axes."""
        _check.installed("matplotlib", "plot")
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(7, 3.5), layout="constrained")[1] if ax is None else ax
        unit, name = (3600.0, "hours") if self.wall_seconds > 7200 else (60.0, "minutes")
        ends = np.sort(self.finished)[::-1] / unit
        ax.barh(np.arange(len(ends)), ends, height=1.0, color="#4477aa")
        ideal = self.core_hours * 3600 / self.workers / unit
        ax.axvline(ideal, color="#cc6677", label="all work, shared equally")
        ax.set(xlabel=name, ylabel="workers", ylim=(-0.5, len(ends) - 0.5))
        ax.set_title(f"{self.tiles} tiles on {self.workers} workers: {100 * self.lost:.1f} % lost")
        ax.legend(loc="lower left")
        return ax


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = list(rows)
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in lines)


def _time(seconds: float) -> str:
    """Return a time in the unit that people would use."""
    for limit, unit, name in (
        (1e-6, 1e-9, "ns"), (1e-3, 1e-6, "us"), (1.0, 1e-3, "ms"), (120.0, 1.0, "s"),
        (7200.0, 60.0, "min"), (2 * 86400.0, 3600.0, "h"),
    ):  # fmt: skip
        if seconds < limit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 86400:.3g} days"


def schedule(
    tasks: Sequence[float], workers: int, before: float = 0.0, seed: int = 0, measured: bool = False
) -> Array:
    """Return when each worker is done, if each takes the next task when it has finished one.

    Times vary, and some workers are slow, by the constants of this module, unless the times of the
    tasks are ``measured`` ones. There are ``before`` seconds of other tasks first, during which all
    workers are busy, each at its speed.
    """
    rng = np.random.default_rng(seed)
    share, spread = (0.0, 0.0) if measured else (SLOW, SPREAD)
    slow = np.where(rng.random(workers) < share, SLOWER, 1.0)
    ends = np.full(workers, before / (1 / slow).sum())
    free = [(end, k) for k, end in enumerate(ends.tolist())]
    for task in tasks:
        now, k = heapq.heappop(free)
        now += task * slow[k] * math.exp(spread * rng.standard_normal())
        ends[k] = now
        heapq.heappush(free, (now, k))
    return ends


def _flops(dtype: np.dtype[Any], size: int = 1024) -> float:
    """Return the flops per second of a product of BLAS here."""
    a = np.ones((size, size), dtype)
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - start)
    return float(2 * size**3 / best)


def _solvers(n: int, outputs: int, itemsize: int, seconds: float, room: float) -> list[Solver]:
    """Return what each would cost, where all entries take ``seconds`` here."""
    rate, square = _flops(np.dtype(f"f{itemsize}")), n * n * itemsize
    direct = n**3 / 3 / rate
    read = PASSES * (square / 2 / DISK_RATE + 2 * n * n * outputs / rate)
    again = PASSES * (seconds + 2 * n * n * outputs / rate)
    m = min(n, 10_000)
    nystrom = seconds * 2 * m / n + (n * m**2 + m**3 / 3) / rate
    said = [
        ("direct", direct, 1.1 * square, "K in memory, factored"),
        ("out of core", read, 1e9, f"{PASSES} products with a stored K, a tile at a time"),
        ("on the fly", again, 1e9, f"{PASSES} products or epochs that compute K again"),
        ("nystrom", nystrom, (n + m) * m * itemsize, f"{m} centres"),
    ]
    return [Solver(name, t, memory, memory <= room, note) for name, t, memory, note in said]


def plan(
    kernel: Kernel, *, n: int, shape: int | tuple[int, ...], m: int | None = None,
    workers: int = 1, dtype: Any = np.float32, tile: int | None = None, outputs: int = 10,
    seconds: float = 1.0,
) -> Plan:  # fmt: skip
    """Tell what a Gram matrix would cost, after measuring its kernel here for a second.

    Parameters
    ----------
    kernel : Kernel
    n : int
        The number of inputs.
    shape : int or tuple of int
        The shape of one input: ``784``, ``(32, 32, 3)``.
    m : int, optional
        The number of other inputs; by default the matrix is symmetric.
    workers : int
        Cores that compute tiles.
    dtype : float32 or float64
    tile : int, optional
        The side of a tile; by default one that takes about 30 s.
    outputs : int
        Right-hand sides of the solvers.
    seconds : float
        How long to measure, about. Longer is more exact.

    Returns
    -------
    Plan
        ``print(plan)`` shows a table, and ``plan.plot()`` when workers are done.

    Notes
    -----
    Inputs are random numbers: kernels take the same time for any. Cores of the workers count as
    those of this machine while all of them are busy. The schedule lets times of tasks vary by a
    tenth and every fiftieth worker be half as fast.

    Examples
    --------
    >>> import kernelcore as kc
    >>> p = kc.plan(kc.presets.mlp(2).ntk, n=50_000, shape=784, workers=8, seconds=0.01)
    >>> p.entries, p.disk
    (1250025000, 10000000000)
    """
    _check.an_instance(kernel, Kernel, "kernel", "a kernel")
    n, workers = _check.count(n, "n", least=1), _check.count(workers, "workers", least=1)
    other = None if m is None else _check.count(m, "m", least=1)
    sides = (shape,) if isinstance(shape, (int, np.integer)) else _check.integers(shape, "shape")
    sides = tuple(_check.count(k, "shape", least=1) for k in sides)
    real = np.zeros(0, dtype).dtype
    _check.must(real in (np.float32, np.float64), "dtype", "be float32 or float64", real)
    bytes_each = math.prod(sides) * real.itemsize
    count = max(1, min(n, cost.SAMPLE, int(cost.MOST_BYTES // bytes_each)))
    _check.room("inputs of this shape", (count, *sides), np.float64, 2, ("a smaller shape",))
    inputs = np.random.default_rng(0).standard_normal((count, *sides)).astype(real)
    entry = cost.core_seconds(kernel, inputs, seconds)
    columns = n if other is None else other
    entries = n * (n + 1) // 2 if other is None else n * columns
    if tile is None:
        most = max(n, columns)
        size = cost.tile_size(most, real.itemsize, entry, TASK_SECONDS)
        size = max(1, min(size, math.isqrt(n * columns // (4 * workers)) or 1))
    else:
        size = _check.count(tile, "tile", least=1)
    tiles = Tiles((n, columns), size, other is None)
    last = _last(tiles, LAST * workers)
    finished = schedule([entry * k for k in last], workers, entry * (entries - sum(last)))
    wall = float(finished.max())
    blocks = len(tiles) * 2 * size * bytes_each
    disk = n * columns * real.itemsize
    return Plan(
        kernel=repr(kernel), n=n, m=columns, entries=entries, entry_seconds=entry,
        core_hours=entries * entry / 3600, wall_seconds=wall, tile=size, tiles=len(tiles),
        lost=float(1 - finished.mean() / wall), memory=4.0 * size**2 * real.itemsize
        + 2 * size * bytes_each + RUNTIME_BYTES, disk=disk, network=blocks + disk,
        workers=workers, finished=finished,
        solvers=_solvers(n, outputs, real.itemsize, entries * entry / get_threads(), budget()),
    )  # fmt: skip


def _last(tiles: Tiles, most: int) -> list[int]:
    """Return the entries of the last tiles; those on the diagonal are half of a square."""
    sizes: list[int] = []
    for i in reversed(range(tiles.counts[0])):
        row = []
        for j in range(i if tiles.symmetric else 0, tiles.counts[1]):
            rows, columns = tiles.at((i, j))
            n, m = rows.stop - rows.start, columns.stop - columns.start
            row.append(n * (n + 1) // 2 if tiles.symmetric and i == j else n * m)
        sizes = row + sizes
        if len(sizes) >= most:
            break
    return sizes[-most:]


# ---- passes of EigenPro over a cluster, on paper


@dataclasses.dataclass(frozen=True)
class Epoch:
    """A pass of EigenPro over all points on a cluster, on paper; ``print`` shows it as a table.

    In a step, all workers multiply the rows of K of a batch by the coefficients, each its columns;
    sums over workers give the residuals of the batch, and then what the preconditioner takes of
    them. Where a worker has one part of the columns in each step, it holds the points and
    coefficients of that part, and the points of a batch are sent to it. Where there are more parts,
    which are taken as they come, it holds all of them.

    Attributes
    ----------
    n, dim, outputs, workers, batch, subsample, rank, parts : int
    itemsize : int
        Bytes of a number.
    entry_seconds : float
        Of one worker, with the products.
    finished : array of shape (workers,)
        When each worker is done with a step, in seconds, in a simulated schedule.
    """

    n: int
    dim: int
    outputs: int
    workers: int
    batch: int
    subsample: int
    rank: int
    parts: int
    itemsize: int
    entry_seconds: float
    finished: Array = dataclasses.field(repr=False, compare=False)

    @property
    def steps(self) -> int:
        """The steps of a pass."""
        return -(-self.n // self.batch)

    @property
    def flops(self) -> int:
        """Multiplications and additions of a pass in inner products, of points and with alpha."""
        return 2 * self.n**2 * (self.dim + self.outputs)

    @property
    def step_bytes(self) -> int:
        """What a worker receives in a step, and in sums sends on.

        A sum over workers, by halving and doubling, brings nearly twice its bytes to everybody:
        first partial sums, then the whole. The sums are the residuals of the batch and what the
        eigenvectors take of them.
        """
        sums = 2 * (self.batch + self.rank) * self.outputs
        if self.parts == 1:
            return self.itemsize * (self.batch * self.dim + sums)
        return self.itemsize * (self.subsample * self.outputs + sums)

    @property
    def memory(self) -> int:
        """Bytes of a worker: points, targets, coefficients, rows of K, and its eigenvectors."""
        held = self.n if self.parts > 1 else -(-self.n // self.workers)
        columns = -(-self.n // (self.workers * self.parts))
        vectors = -(-self.subsample // self.workers) * self.rank
        points = held * (self.dim + 2 * self.outputs) + self.batch * self.dim
        return self.itemsize * (points + self.batch * columns + vectors) + RUNTIME_BYTES

    @property
    def seconds(self) -> dict[str, float]:
        """What a step takes: each of its parts, none of which overlap."""
        shared = self.batch * self.n / self.workers * self.entry_seconds
        messages = 2 * math.ceil(math.log2(max(2, self.workers)))  # of a sum
        return {
            "computing": shared,
            "waiting for the slowest worker": float(self.finished.max()) - shared,
            "bytes through a worker's link": self.step_bytes / LINK_RATE,
            "latency of two sums": 2 * messages * LATENCY,
            "one scheduler for all tasks": self.parts * self.workers * START_SECONDS,
        }

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the lines of the table: what it is, and how much."""
        size, parts = _check.in_bytes, self.seconds
        whole = sum(parts.values())
        yield "a pass", f"{self.n:.3g}^2 = {self.n**2:.3g} entries, {self.flops:.3g} flops"
        yield "on one worker", _time(self.n**2 * self.entry_seconds)
        yield (
            "steps",
            f"{self.steps} of {self.batch} points, in {self.parts * self.workers} tasks each",
        )
        for name, seconds in parts.items():
            yield name, f"{_time(seconds)} a step, {_time(self.steps * seconds)} a pass"
        yield "sum", f"{_time(whole)} a step, {_time(self.steps * whole)} a pass"
        every = self.steps * self.step_bytes
        yield "network", f"{size(self.step_bytes)} a worker and step, {size(every)} a pass"
        yield "network of all", f"{size(every * self.workers)} a pass"
        yield "memory", f"{size(self.memory)} a worker"
        yield "once", f"{size(self.itemsize * self.subsample**2)} in one place, for eigenvectors"
        computing, *others = parts
        worst = max(others, key=parts.__getitem__)
        yield "breaks first", f"{worst}, {parts[worst] / parts[computing]:.2g} times the computing"

    def __str__(self) -> str:
        return _table(self.rows())


def epoch(
    *, n: int, dim: int, workers: int, entry_seconds: float, batch: int, outputs: int = 10,
    subsample: int = 4000, rank: int = 400, parts: int = 1, itemsize: int = 4,
) -> Epoch:  # fmt: skip
    """Tell what a pass of EigenPro would take on a cluster; the step is simulated.

    The arguments are attributes of ``Epoch``, which says what is counted.

    Examples
    --------
    >>> from kernelcore.scale.plan import epoch
    >>> e = epoch(n=10**7, dim=16, workers=1000, entry_seconds=2e-9, batch=600)
    >>> e.steps, e.flops
    (16667, 5200000000000000)
    """
    counts = {
        name: _check.count(value, name, least=1)
        for name, value in {
            "n": n, "dim": dim, "workers": workers, "batch": batch, "outputs": outputs,
            "subsample": subsample, "rank": rank, "parts": parts, "itemsize": itemsize,
        }.items()
    }  # fmt: skip
    entry_seconds = _check.positive(entry_seconds, "entry_seconds")
    task = batch * n / (workers * parts) * entry_seconds
    finished = schedule([task] * (parts * workers), workers)
    return Epoch(**counts, entry_seconds=entry_seconds, finished=finished)
