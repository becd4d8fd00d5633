"""What an entry of a Gram matrix costs on this machine, and the tiles that follow from it."""

from __future__ import annotations

import time

import numpy as np

from .._types import Array
from ..kernels import Kernel

MOST_BYTES = 64_000_000
"""The most that a tile holds."""
MOST_SECONDS = 60.0
"""The longest that a tile takes, as far as can be told from a few inputs."""
WHOLE = 32
"""Tiles are multiples of so many inputs, which fill vectors, where they are larger."""


def entry_seconds(
    kernel: Kernel, inputs: Array, n_threads: int | None = None, seconds: float = 0.05
) -> float:
    """Return the seconds of an entry, from a square of inputs that takes about ``seconds``.

    The shorter of two runs counts, since the first loads what is needed, and others disturb.
    """
    size = min(2, len(inputs))
    while True:
        some = inputs[:size]
        spent = min(_seconds(kernel, some, n_threads) for _ in range(2))
        if spent >= seconds or size == len(inputs):
            return spent / max(1, size * size)
        size = int(min(len(inputs), np.ceil(size * max(2.0, np.sqrt(seconds / spent)))))


def _seconds(kernel: Kernel, some: Array, n_threads: int | None) -> float:
    other = some.copy()  # so that all entries are computed
    start = time.perf_counter()
    kernel(some, other, n_threads=n_threads)
    return time.perf_counter() - start


def tile_size(n: int, itemsize: int, entry: float, seconds: float = MOST_SECONDS) -> int:
    """Return the inputs of a tile's side, so that it takes so many seconds and bytes at most."""
    side = min((MOST_BYTES / itemsize) ** 0.5, (seconds / max(entry, 1e-12)) ** 0.5)
    size = int(max(1, min(side, n)))
    return size if size <= WHOLE or size == n else size // WHOLE * WHOLE
