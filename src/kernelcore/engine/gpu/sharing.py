"""Several devices: each takes blocks of rows of a Gram matrix, until none is left.

An entry depends on its two inputs alone, so that no bit depends on which device computes it.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...program import Program
from .. import accuracy, threads
from ..cpu.dense import ADD, ASSIGN
from ..cpu.dispatch import load
from ..devices import get_devices
from . import memory

if TYPE_CHECKING:
    from .inputs import DeviceInputs

BLOCK_BYTES = 256_000_000
"""The most that a block of rows has, on the device that computes it and again at home."""
SHARES = 4
"""The blocks for each device, at least: who is done early takes another."""


def others(home: Any) -> tuple[int, ...]:
    """Return the devices that share work; none where they are the one of the points."""
    chosen = get_devices()
    return () if chosen is None or chosen == (home.id,) else chosen


class _Rows:
    """The rows that no device has taken yet."""

    def __init__(self, n: int) -> None:
        self._n, self._next, self._lock = n, 0, threading.Lock()

    def take(self, most: int) -> slice:
        with self._lock:
            start = self._next
            self._next = min(start + most, self._n)
            return slice(start, self._next)

    def stop(self) -> None:
        with self._lock:
            self._next = self._n


def gram(
    inputs: DeviceInputs, numbers: tuple[int, ...], program: Program, outs: Sequence[Any],
    factor: float, combine: int,
) -> None:  # fmt: skip
    """Write a program's kernels into ``outs``, two arrays or None, as ``inputs.gram`` does."""
    cupy, home, n = load("cupy"), inputs.x.device.id, len(inputs.x)
    m = n if inputs.y is None else len(inputs.y)
    each = sum(out is not None for out in outs) * m * inputs.x.dtype.itemsize
    least = max(1, min(-(-n // (SHARES * len(numbers))), BLOCK_BYTES // each))
    todo, call, told = _Rows(n), accuracy.current(), _Told(inputs, n * m)
    cupy.cuda.get_current_stream().synchronize()  # other threads have streams of their own

    def work(number: int) -> None:
        with cupy.cuda.Device(number), accuracy.within(call), threads.Call(inputs.n_threads):
            here = inputs.moved()
            while True:
                rows = todo.take(memory.most(least, lambda k: k * each, "a row of K"))
                if rows.start == rows.stop:
                    return
                across = [slice(0, m)]
                if inputs.y is None:
                    across = [rows, slice(rows.stop, n)]
                for columns in across:
                    if columns.start < columns.stop:
                        block(here.part(rows, None if columns is rows else columns), rows, columns)

    def block(part: DeviceInputs, rows: slice, columns: slice) -> None:
        shape = rows.stop - rows.start, columns.stop - columns.start
        k, t = (None if out is None else memory.matrix(shape, out.dtype) for out in outs)
        part.fill(program, k, t, factor, ASSIGN)
        cupy.cuda.get_current_stream().synchronize()
        mirrored = inputs.y is None and columns is not rows
        with cupy.cuda.Device(home):
            for out, values in zip(outs, (k, t), strict=True):
                if out is not None:
                    values = cupy.asarray(values)
                    _put(out[rows, columns], values, combine)
                    if mirrored:
                        _put(out[columns, rows], values.T, combine)
            cupy.cuda.get_current_stream().synchronize()
        told(shape[0] * shape[1] * (2 if mirrored else 1))

    with concurrent.futures.ThreadPoolExecutor(len(numbers)) as pool:
        jobs = [pool.submit(work, number) for number in numbers]
        try:
            for job in concurrent.futures.as_completed(jobs):
                job.result()
        finally:
            todo.stop()


def _put(out: Any, values: Any, combine: int) -> None:
    if combine == ASSIGN:
        out[...] = values
    elif combine == ADD:
        out += values
    else:
        out *= values


class _Told:
    """Who watches is told of the entries that are done, by one thread at a time."""

    def __init__(self, inputs: DeviceInputs, entries: int) -> None:
        self._watch, self._entries, self._done = inputs.watch, entries, 0
        self._lock = threading.Lock()

    def __call__(self, entries: int) -> None:
        with self._lock:
            self._done += entries
            if self._watch is not None:
                self._watch(self._done / self._entries)
