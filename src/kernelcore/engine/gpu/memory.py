"""Memory of the current device: how much is free, and how much of what is wanted there is room for.

What is given back stays in CuPy's pool, so that whoever has asked for room finds it there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _check
from ..cpu.dispatch import load


def free() -> int:
    """Return the bytes that are free, those in CuPy's pool among them."""
    cupy = load("cupy")
    unused, _ = cupy.cuda.runtime.memGetInfo()
    return int(unused) + int(cupy.get_default_memory_pool().free_bytes())


def matrix(shape: tuple[int, ...], dtype: np.dtype[Any], what: str = "K") -> Any:
    """Return a new array for a result."""
    try:
        return load("cupy").empty(shape, dtype)
    except MemoryError:
        need = int(np.prod(shape, dtype=object)) * dtype.itemsize
        what = f"{what} of {' x '.join(map(str, shape))} {dtype}"
        _check.device_room(what, need, free(), "use GramOperator or fewer points")


def most(count: int, need: Callable[[int], int], what: str) -> int:
    """Return how many there is room for, where so many need ``need`` bytes.

    That is all of them, or half of them, and so on.
    """
    while True:
        try:
            load("cupy").empty(need(count), np.uint8)
            return count
        except MemoryError:
            if count <= 1:
                _check.device_room(what, need(1), free(), "free some, or use smaller inputs")
        count = (count + 1) // 2
