"""The inputs of a large Gram matrix, read in blocks: arrays of NumPy, files, Zarr, HDF5, Dask."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import hashlib
import math
import mmap
import os
import pathlib
import pickle
from typing import Any

import numpy as np

from .. import _check, _files
from .._types import Array
from ..engine import load
from ..engine.threads import get_threads

SENT_BYTES = 100_000
"""What stands for inputs in a file or a store pickles to less."""
READ_BYTES = 8_000_000
"""What a thread reads at a time where all of it is looked at."""


def opened(store: Any, name: str, mode: str = "r") -> Any:
    """Return the array of a Zarr store, whose metadata anybody may have written.

    ``FileNotFoundError`` is left to the caller. Codecs of pickles are refused: they would run what
    is in the store.
    """
    try:
        array = load("zarr").open_array(store=store, mode=mode)
        kind = np.dtype(array.dtype).kind
        told = repr(array.metadata.to_dict()).lower()
    except FileNotFoundError:
        raise
    except Exception as error:  # of any kind, as the metadata may be anything
        why = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{name} must be an array of Zarr: {store}: {why}") from None
    fine = kind in _files.PLAIN and "pickle" not in told
    _check.must(fine, name, "be an array of Zarr with plain entries", store)
    return array


class Source:
    """Inputs that are cut along their first axis; nothing but the blocks asked for is in memory.

    Whatever has ``shape``, ``dtype`` and slices will do; anything else NumPy makes an array of.
    """

    def __init__(self, a: Any, name: str) -> None:
        self.name = name
        self.given = a
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
        found = _check.real_array(np.asarray(self.a[rows]), self.name)
        return _check.entries(
            found, self.name, first=rows.start
        )  # a kernel would count from rows.start

    def portable(self) -> Source | None:
        """Return inputs that another process opens by itself, if they are in a file or a store."""
        found = _in_a_file(self.given)
        return None if found is None else Source(found, self.name)

    def whole(self) -> Array:
        return _check.real_array(np.asarray(self.a[:]), self.name)

    def digest(self) -> str:
        """Return a number that other values would not have, but with odds of one to 2^128.

        It is the digest of those of blocks, which threads compute.
        """
        each = max(1, math.prod(self.shape[1:]) * self.dtype.itemsize)
        rows = max(1, READ_BYTES // each)

        def part(start: int) -> bytes:
            block = self.read(slice(start, start + rows))
            return hashlib.blake2b(np.ascontiguousarray(block).data, digest_size=16).digest()

        with concurrent.futures.ThreadPoolExecutor(get_threads()) as pool:
            parts = b"".join(pool.map(part, range(0, len(self), rows)))
        return hashlib.blake2b(parts, digest_size=16).hexdigest()

    def about(self) -> dict[str, Any]:
        """Return what a store says about its inputs."""
        return {"shape": list(self.shape), "dtype": str(self.dtype), "digest": self.digest()}


@dataclasses.dataclass(frozen=True)
class Mapped:
    """Part of a file that is an array; it is opened where it is read."""

    path: str
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def __getitem__(self, rows: Any) -> Any:
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)[rows]


@dataclasses.dataclass(frozen=True)
class Dataset:
    """An array of h5py, whose own do not pickle; the file is opened where it is read."""

    path: str
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def __getitem__(self, rows: Any) -> Any:
        with load("h5py").File(self.path, "r") as file:
            return file[self.name][rows]


def _in_a_file(a: Any) -> Any:
    """Return what stands for an array on a disk and pickles small, or None."""
    if isinstance(a, np.memmap):
        return _mapped(a)
    library = type(a).__module__.partition(".")[0]
    if library == "h5py" and a.file.mode == "r":  # HDF5 locks a file that somebody writes to
        return Dataset(os.path.abspath(a.file.filename), a.name, a.dtype, a.shape)
    if library != "zarr" or not hasattr(a, "store_path"):
        return None
    zarr = load("zarr")
    root = getattr(a.store, "root", None)
    if isinstance(root, pathlib.Path):  # Zarr keeps paths as they are given
        store = type(a.store)(root.absolute(), read_only=True)
        return zarr.open_array(store=store, path=a.store_path.path, mode="r")
    if isinstance(a.store, zarr.storage.MemoryStore) or len(pickle.dumps(a)) > SENT_BYTES:
        return None
    return a


def _mapped(a: Any) -> Mapped | None:
    """Return where in its file a memory-mapped array is; a part has the offset of the whole."""
    if a.mode == "c" or not a.flags.c_contiguous or a._mmap is None or not a.size:
        return None
    start = a.offset - a.offset % mmap.ALLOCATIONGRANULARITY
    begins = np.frombuffer(a._mmap, np.uint8).__array_interface__["data"][0]
    offset = start + a.__array_interface__["data"][0] - begins
    return Mapped(str(a.filename), offset, a.dtype, a.shape)
