"""Arrays in files that others may have written: what is too large, damaged or made to mislead.

Nothing is unpickled, and no array is made that is larger than what the file holds.
"""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
import zlib
from os import PathLike

import numpy as np

from . import _check
from ._types import Array

PLAIN = "biufcUS"
"""Kinds of dtypes that files hold; no objects, which would have to be unpickled."""
DAMAGE = (
    OSError, ValueError, KeyError, EOFError, MemoryError, OverflowError, RecursionError,
    SyntaxError, TypeError, NotImplementedError, RuntimeError, tokenize.TokenError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What reading a file that is truncated, or made to mislead, may raise."""
HEADS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def array(data: bytes) -> Array:
    """Return the array of a file ``.npy`` in memory, whose head has to fit what follows it."""
    stream = io.BytesIO(data)
    shape, by_columns, dtype = HEADS[np.lib.format.read_magic(stream)](stream)
    size = math.prod(shape) * dtype.itemsize
    fine = dtype.kind in PLAIN and min(shape, default=0) >= 0
    fine = fine and size == len(data) - stream.tell()
    _check.must(fine, "arrays", "be as their head says", dtype)
    sides = shape[::-1] if by_columns else shape
    found = np.ndarray(sides, dtype, data, stream.tell())
    return (found.T if by_columns else found).copy()


def names(path: str | PathLike[str]) -> list[str]:
    """Return the names of the arrays of a file ``.npz``."""
    with zipfile.ZipFile(path) as file:
        return [name.removesuffix(".npy") for name in file.namelist()]


def of_npz(path: str | PathLike[str], name: str) -> Array:
    """Return an array of a file ``.npz``, if memory holds as much as it claims to have."""
    with zipfile.ZipFile(path) as file:
        entry = file.getinfo(f"{name}.npy")
        _check.room(name, (entry.file_size,), np.uint8, 2, ())
        return array(file.read(entry))
