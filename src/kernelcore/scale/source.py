"""The inputs of a large Gram matrix, read in blocks: arrays of NumPy, files, Zarr, HDF5, Dask."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np

from .. import _check
from .._types import Array

READ_BYTES = 64_000_000
"""The most that is read at a time where all of it is looked at."""


class Source:
    """Inputs that are cut along their first axis; nothing but the blocks asked for is in memory.

    Whatever has ``shape``, ``dtype`` and slices will do; anything else NumPy makes an array of.
    """

    def __init__(self, a: Any, name: str) -> None:
        self.name = name
        lazy = all(hasattr(a, key) for key in ("shape", "dtype", "__getitem__"))
        if isinstance(a, np.ndarray) or not lazy:
            a = _check.real_array(a, name)
        _check.on_the_host(a, name)
        self.a, self.shape = a, tuple(int(k) for k in a.shape)
        _check.shaped(len(self.shape) > 1, a, name, "have shape (n, d), (n, L, C) or (n, H, W, C)")
        self.dtype = self.read(slice(0, 0)).dtype

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, rows: slice) -> Array:
        """Return some inputs as an array of float32 or float64."""
        return _check.real_array(np.asarray(self.a[rows]), self.name)

    def whole(self) -> Array:
        return self.read(slice(0, len(self)))

    def digest(self) -> str:
        """Return a number that other values would not have, but with odds of one to 2^128."""
        each = max(1, math.prod(self.shape[1:]) * self.dtype.itemsize)
        found = hashlib.blake2b(digest_size=16)
        for start in range(0, len(self), max(1, READ_BYTES // each)):
            block = self.read(slice(start, start + max(1, READ_BYTES // each)))
            found.update(np.ascontiguousarray(block).data)
        return found.hexdigest()

    def about(self) -> dict[str, Any]:
        """Return what a store says about its inputs."""
        return {"shape": list(self.shape), "dtype": str(self.dtype), "digest": self.digest()}
