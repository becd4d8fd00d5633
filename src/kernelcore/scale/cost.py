"""What an entry of a Gram matrix costs on this machine, and the tiles that follow from it."""

from __future__ import annotations

import math
import time

import numpy as np

from .._types import Array
from ..engine.threads import get_threads
from ..kernels import Kernel

MOST_BYTES = 64_000_000
"""The most that a tile holds."""
MOST_SECONDS = 60.0
"""The longest that a tile takes, as far as can be told from a few inputs."""
SAMPLE = 1024
"""The inputs that the cost of an entry is measured with, at most."""
RUNS = 8
"""The runs that the mean cost of an entry is taken of, about."""
LANES = 16
"""The columns that fill the vectors of any driver."""
WHOLE = 32
"""Tiles are multiples of so many inputs, which fill vectors, where they are larger."""


def entry_seconds(
    kernel: Kernel, inputs: Array, n_threads: int | None = None, seconds: float = 0.05
) -> float:
    """Return the seconds of an entry, from a block of inputs that takes about ``seconds``.

    The shorter of two runs counts, since the first loads what is needed, and others disturb.
    """
    rows, most = 1, len(inputs)
    while True:
        x, y = _block(inputs, rows)
        spent = min(_seconds(kernel, x, y, n_threads) for _ in range(2))
        if spent >= seconds or rows == most:
            return spent / max(1, len(x) * len(y))
        rows = int(min(most, np.ceil(rows * max(2.0, np.sqrt(seconds / spent)))))


def core_seconds(kernel: Kernel, inputs: Array, seconds: float = 0.05) -> float:
    """Return the seconds that an entry takes a core while all cores are busy, as a mean.

    They share caches, memory and power, so that one alone is faster; and a long job meets every
    disturbance, so that the fastest of several runs would promise too much.
    """
    cores = get_threads()
    each = entry_seconds(kernel, inputs, cores, seconds / RUNS)
    rows = int(max(1, min(len(inputs), math.sqrt(seconds / RUNS / max(each, 1e-12)))))
    x, y = _block(inputs, rows if rows < cores else rows // cores * cores)  # no core waits
    spent, count = 0.0, 0
    while spent < seconds:
        spent, count = spent + _seconds(kernel, x, y, cores), count + 1
    return cores * spent / max(1, count * len(x) * len(y))


def _block(inputs: Array, rows: int) -> tuple[Array, Array]:
    """Return some inputs, and others: about as many, in whole vectors as far as there are inputs.

    A tile has whole ones, too; with 17 columns half of the work would be on empty lanes.
    """
    columns = min(len(inputs), max(LANES, rows))
    if columns > LANES:
        columns -= columns % LANES
    return inputs[:rows], inputs[:columns].copy()


def _seconds(kernel: Kernel, x: Array, y: Array, n_threads: int | None) -> float:
    start = time.perf_counter()
    kernel(x, y, n_threads=n_threads)
    return time.perf_counter() - start


def tile_size(n: int, itemsize: int, entry: float, seconds: float = MOST_SECONDS) -> int:
    """Return the inputs of a tile's side, so that it takes so many seconds and bytes at most."""
    side = min((MOST_BYTES / itemsize) ** 0.5, (seconds / max(entry, 1e-12)) ** 0.5)
    size = int(max(1, min(side, n)))
    return size if size <= WHOLE or size == n else size // WHOLE * WHOLE
