"""Cyclic signals on a device: what the host prepares for its own driver, for that of the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import Array
from ...program import Program
from ..cpu import cyclic as host
from ..cpu.dense import OP
from ..cpu.dispatch import load
from . import drivers, memory
from .records import structs


def gram(
    x: Any, y: Any, norm: Array, program: Program, fill: Any, factor: float, diagonal: Any = None
) -> None:
    """Write the kernel where ``fill`` tells, or into ``diagonal``; ``norm`` as for rows."""
    cupy, dtype = load("cupy"), x.dtype
    made = host.prepared(program, x.shape[1], norm, dtype)
    up = cupy.asarray
    wrapped = up(made.wrapped)
    a = cupy.ascontiguousarray(x[:, wrapped])
    b = a if y is None else cupy.ascontiguousarray(y[:, wrapped])
    weights = up(made.cyclic.weights)
    ops, constants = up(made.program.ops), up(made.program.coefficients)
    codes = made.program.ops.view(OP)["code"]
    job = np.zeros(1, structs(dtype).cyclic_job)
    job["x"], job["y"], job["n"], job["m"] = a.data.ptr, b.data.ptr, len(a), len(b)
    job["length"], job["positions"] = a.shape[1], made.cyclic.positions
    job["patch"], job["offsets"] = made.cyclic.patch, len(weights)
    job["weights"] = weights.data.ptr
    job["program"][0] = ops.data.ptr, len(codes), constants.data.ptr
    if fill is not None:
        fill(job["to"][0])
    job["to"]["factor"] = factor / made.divisor
    job["to"]["symmetric"] = y is None
    count = len(a) * (1 if diagonal is not None else len(b))
    blocks = min(count, 16 * cupy.cuda.Device().attributes["MultiProcessorCount"])
    numbers = 3 * (made.cyclic.positions + made.cyclic.patch)
    small = numbers * dtype.itemsize <= drivers.PLAIN_BYTES - drivers.BLOCK * dtype.itemsize
    if not small:
        each = numbers * dtype.itemsize
        blocks = memory.most(blocks, lambda k: k * each, "the scratch of a pair of signals")
    room = cupy.empty(0 if small else blocks * numbers, dtype)
    drivers.launch(
        "cyclic_gram", dtype, drivers.Needs(drivers.mask(codes)), (blocks,), job, diagonal,
        None if small else room,
        shared_bytes=numbers * dtype.itemsize if small else 0,
    )  # fmt: skip
