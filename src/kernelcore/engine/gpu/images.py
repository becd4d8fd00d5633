"""Signals and images on a device: pairs run there, tables of single images are made on the host.

The walk of ``engine/cpu/images.py`` makes the tables from variances, which travel to the host: at
the positions of the input, and behind a pooling at those that are left.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ... import _check
from ..._types import Array
from ...program import Program
from ..cpu import images as host
from ..cpu.dispatch import load
from . import drivers, memory
from .inputs import DeviceInputs, arrays
from .records import MAPS, structs

TILE_BYTES = 64_000_000
"""The room for the tables of one side of a tile."""
TILE = 128
"""The images of a side, at most: a launch then takes a second or two, between which people are told
of progress, and heard if they interrupt."""
SPARE = 2**20
"""The room for what else is on its way: steps, coefficients, variances of a few images."""
PER_PROCESSOR = 8
"""The blocks of threads that are in flight on a multiprocessor, at most."""


class Maps(NamedTuple):
    """A plan on a device: the arrays that its struct points to, and the scratch of a block.

    ``fast`` cells are for planes in shared memory, ``slow`` ones for what is between stages.
    """

    arrays: list[Any]
    stages: Any
    fast: int
    slow: int
    between: int


@functools.lru_cache(64)
def _maps(made: host.Plan, device: int) -> Maps:
    up = load("cupy").asarray
    arrays = [up(np.ascontiguousarray(getattr(made, name)).view(np.uint8)) for name in MAPS]
    rows = int(made.rows[:, 0].max(initial=0))
    outputs = int(made.passes[:, 2].max(initial=0))
    lines = max(rows, int(made.store_columns.max(initial=0)))
    stages = up(made.stages.view(np.uint8))
    fast = (2 + made.slots) * made.plane_size + rows * made.line_size
    between = outputs * lines
    slow = made.store_size + made.slab_size + between
    return Maps(arrays, stages, int(fast), int(slow), between)


class Tile(host.Tile):
    """Some images on a device, and the tables that functions need of single images."""

    joined = True
    _there: tuple[tuple[host.Plan, bytes, int], Any] | None = None  # tables, and where they lie

    def _pixel_variances(self, scale: float, out: Array) -> None:
        cupy = load("cupy")
        found = cupy.empty(out.size, np.float64)
        drivers.launch(
            "spatial_pixels", self.dtype, drivers.Needs(), (-(-out.size // drivers.BLOCK),),
            self.x, np.int64(out.size), np.int64(self.shape[2]), np.float64(scale), found,
        )  # fmt: skip
        out[...] = cupy.asnumpy(found).reshape(out.shape)

    def _some(self, faint: Array) -> bool:
        return bool(self.x[load("cupy").asarray(faint)].any())

    def on_device(self, layout: host.Layout) -> tuple[Any, Any]:
        """Return pixels and tables, where ``layout`` expects them; the last are kept."""
        if self._there is None or self._there[0] != layout.places:
            self._there = layout.places, load("cupy").asarray(self._pack(layout))
        return self.x, self._there[1]

    def selves(self, made: host.Plan, parts: int, n_threads: int) -> Array:
        """Run every image with itself; return shape (images, parts, entries of the result)."""
        cupy, layout = load("cupy"), made.lay([self], self.dtype)
        entries = made.result[0] * made.result[1]
        out = cupy.empty((len(self.x), entries, parts), self.dtype)
        run(layout, self, self, parts, selves=out)
        return cupy.asnumpy(out).transpose(0, 2, 1)


def run(
    layout: host.Layout, rows: Tile, columns: Tile, parts: int, *, place: tuple[int, int] = (0, 0),
    fill: Any = None, selves: Any = None,
) -> None:  # fmt: skip
    """Run pairs of images; ``fill`` fills the struct of where their kernels go."""
    cupy, made, dtype = load("cupy"), layout.plan, rows.dtype
    device = cupy.cuda.Device()
    maps = _maps(made, device.id)
    steps = cupy.asarray(layout.network.steps)
    coefficients = cupy.asarray(layout.network.coefficients)
    job = np.zeros(1, structs(dtype).spatial_job)
    job["maps"][0] = [a.data.ptr for a in maps.arrays]
    job["stages"], job["stage_count"] = maps.stages.data.ptr, len(made.stages)
    job["steps"], job["coefficients"] = steps.data.ptr, coefficients.data.ptr
    job["table_size"] = layout.network.table_size
    for name in (
        "channels", "pixel_columns", "input_scale", "input_add", "plane_size", "line_size",
        "store_size", "slots", "slab_size",
    ):  # fmt: skip
        job[name] = getattr(made, name)
    cell = parts * dtype.itemsize
    of = device.attributes
    room = of["MaxSharedMemoryPerBlockOptin"] - drivers.BLOCK * cell  # a sum for each thread
    large = maps.fast * cell > room
    pairs = np.zeros(1, structs(dtype).spatial_pairs)
    each = PER_PROCESSOR
    if not large:
        each = min(each, of["MaxSharedMemoryPerMultiprocessor"] // (maps.fast * cell + 1024))
    count = len(rows.x) * (1 if selves is not None else len(columns.x))
    blocks = min(count, max(1, each) * of["MultiProcessorCount"])
    cells = maps.slow + (maps.fast if large else 0)
    for side, name in ((rows, "x"), (columns, "y")):
        pixels, tables = side.on_device(layout)
        pairs[f"{name}_pixels"], pairs[f"{name}_tables"] = pixels.data.ptr, tables.data.ptr
    blocks = memory.most(blocks, lambda k: k * cells * cell, "the scratch of a pair of images")
    scratch = cupy.empty(blocks * cells * parts, dtype)
    pairs["size"], pairs["n"], pairs["m"] = int(np.prod(rows.shape)), len(rows.x), len(columns.x)
    pairs["i0"], pairs["j0"] = place
    pairs["scratch"], pairs["scratch_cells"] = scratch.data.ptr, cells
    pairs["between_cells"] = maps.between
    if selves is not None:
        pairs["selves"], pairs["entries"] = selves.data.ptr, selves.shape[1]
    else:
        fill(pairs["to"][0])
    name = f"spatial_{('covariance', 'tangent')[parts - 1]}{'_large' if large else ''}"
    general = layout.steps["act"]["code"][layout.steps["kind"] == host.GENERAL]
    needs = drivers.Needs(drivers.mask(general), parts)
    shared = 0 if large else maps.fast * cell
    drivers.launch(name, dtype, needs, (blocks,), job, pairs, shared_bytes=shared)


class Images(host.Pictures, DeviceInputs):
    """The signals or images of a Gram matrix on a device, checked."""

    _tiles = Tile
    shared_from = 64

    def __init__(self, X: Any, Y: Any, layer: Any, n_threads: int) -> None:
        self.x, self.y = _check.image_pair(X, Y, layer, arrays())
        if self.y is not None:
            _check.same_device(self.x, self.y)
        self.layer, self.n_threads = layer, n_threads
        with self.there():
            for name, a in (("X", self.x), ("Y", self.y)):
                self._finite(a, name)

    def _finite(self, a: Any, name: str) -> None:
        """Refuse images that are not finite; the first of them travels to the host."""
        if a is None or not len(a):
            return
        cupy = load("cupy")
        fine = cupy.asnumpy(cupy.isfinite(a.reshape(len(a), -1)).all(axis=1))
        if not fine.all():
            i = int(fine.argmin())
            _check.finite_images(cupy.asnumpy(a[i : i + 1]), name, first=i)

    def against(self, X: Any, n_threads: int) -> Images:
        """Return other images against those of X here."""
        return Images(X, self.x, self.layer, n_threads)

    def _tile_size(self, made: host.Plan) -> int:
        """Return the number of images in a tile: as many as there is room for, with those kept."""
        itemsize = self.x.dtype.itemsize
        each = made.image_size * itemsize
        images = len(self.x) + (0 if self.y is None else len(self.y))
        size = min(TILE, images, max(1, TILE_BYTES // each))
        maps = _maps(made, load("cupy").cuda.Device().id)  # which stays, beside the room
        scratch = 2 * (maps.fast + maps.slow) * itemsize

        def need(size: int) -> int:
            return min((host.KEPT + 2) * size, images) * each + scratch + SPARE

        return memory.most(size, need, "the tables of an image")

    def diagonal(self, program: Program, tangent: bool, factor: float) -> Any:
        """Return ``factor`` times the kernel of every image with itself."""
        with self.there():
            return load("cupy").asarray(self._selves(program, tangent, factor))

    def fill(self, program: Program, k_out: Any, t_out: Any, factor: float, combine: int) -> None:
        """Write ``factor`` times a program's kernels into one output or both."""
        made, parts = self._plan(program), 1 if t_out is None else 2
        launches = drivers.Launches(self.watch)
        n, m = len(self.x), len(self.x if self.y is None else self.y)
        pairs, done = n * (n + 1) / 2 if self.y is None else n * m, 0.0

        def target(to: Any) -> None:
            self.target(to, k_out, t_out, factor, combine)

        for i, j, rows, columns in self._blocks(program, made, t_out is not None):
            layout = made.lay([rows] if rows is columns else [rows, columns], self.x.dtype)
            launches.wait(1)
            run(layout, rows, columns, parts, place=(i, j), fill=target)
            half = self.y is None and i == j
            done += len(rows.x) * (len(rows.x) + 1) / 2 if half else len(rows.x) * len(columns.x)
            launches.add(done / pairs)
        if self.watch is not None:
            launches.wait(0)
        for out, tangent in ((k_out, False), (t_out, True)):
            if out is not None and not np.isfinite([float(out.max()), float(out.min())]).all():
                _check.kernel(np.array(np.inf, self.x.dtype), tangent)
