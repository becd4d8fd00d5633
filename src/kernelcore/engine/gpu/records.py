"""The structs that drivers are called with, as the headers lay them out; pointers are integers.

A driver gets a struct by value: CuPy passes an array of NumPy that way.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ..cpu.dense import fields

MAPS = """rows row_sums row_sources columns places loads copies runs pools targets cells passes
    tracks items sums terms store_at store_columns""".split()
"""The arrays of a plan, in the order of ``plane_maps``."""

SIDE = np.dtype(
    fields("u8 rows", "i8 count", "u8 scale norm table", "i8 stride", "u8 sd"), align=True
)
PROGRAM = np.dtype(fields("u8 ops", "i4 count", "u8 coefficients"), align=True)


class Structs(NamedTuple):
    """The structs of one floating-point type."""

    gram_job: np.dtype
    spatial_job: np.dtype
    spatial_pairs: np.dtype
    cyclic_job: np.dtype


@functools.cache
def structs(dtype: np.dtype) -> Structs:
    """Return the structs for float32 or float64."""
    real = dtype.str
    to = np.dtype(
        fields("u8 k t", "i8 stride", f"{real} factor", "i4 combine", "? symmetric transposed"),
        align=True,
    )
    gram = [
        *[("x", SIDE), ("y", SIDE), ("d", "i8"), ("program", PROGRAM)],
        *fields("u8 k_diagonal t_diagonal", "f8 factor"),
        ("to", to),
        *fields("i4 kind slots", f"{real} bump_scale", "? angular"),
    ]
    spatial = [
        ("maps", "u8", (len(MAPS),)),
        *fields("u8 stages", "i4 stage_count", "u8 steps coefficients"),
        *fields("i8 channels pixel_columns", f"{real} input_scale input_add"),
        *fields("i8 table_size plane_size line_size store_size", "i4 slots boxed"),
        *fields("i8 slab_size pass_size track_size"),
    ]
    pairs = [
        *fields("u8 x_pixels x_tables y_pixels y_tables", "i8 size n m i0 j0"),
        ("to", to),
        *fields("u8 selves", "i8 entries", "u8 scratch"),
        *fields("i8 scratch_cells between_cells"),
    ]
    cyclic = [
        *fields("u8 x y", "i8 n m length positions patch offsets", "u8 weights"),
        *[("program", PROGRAM), ("to", to)],
    ]
    return Structs(*(np.dtype(f, align=True) for f in (gram, spatial, pairs, cyclic)))
