"""Signals and images: a program becomes a plan, images become tables, the driver runs blocks.

program --Builder--> stages of steps      what is computed, in which order
        --Plan-->    maps and records     for one image size; geometry.py
        --Tile-->    pixels and tables    of some images
        --Images.gram--> driver           tile by tile
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ... import _check
from ..._types import Array, Self
from ...program import (
    Apply,
    Code,
    Expansion,
    Form,
    Homogeneous,
    Input,
    Merge,
    Node,
    Op,
    Pool,
    Program,
    Readout,
    Sampled,
    Save,
    Swap,
    Unchanged,
    Unit,
    Weights,
)
from .. import accuracy
from ..geometry import (
    LEAST_BOX,
    MERGE,
    SAVE,
    SWAP,
    AxisPlan,
    AxisStage,
    End,
    Maps,
    lower,
    overlap,
    windows,
)
from . import calls, dispatch, steps
from .dense import LIMITS, OP, enough, fields
from .inputs import HostInputs

TILE_BYTES = 5_000_000
"""The room for the tables of one side of a tile."""
ALL = contextlib.nullcontext()  # the share of a block where nobody watches
KEPT = 7
"""The number of tiles of rows whose tables are kept for the next columns: 35 MB at most."""

LINEAR, RELU, GENERAL = 0, 1, 2  # step_kind in spatial.h
RELU_OP = Op(Code.RELU)
CODES = {"layer": 0, SAVE: 1, SWAP: 2, MERGE: 3}
STEP = np.dtype(
    [
        *fields("i4 code kind positive rows columns grid_columns", "i8 positions at"),
        *fields("f8 scale bias trained add slope snap"),
        ("act", OP),
    ],
    align=True,
)
STAGE = np.dtype(
    fields(
        "i4 step steps row_bundles column_bundles rows columns row_pools column_pools uniform",
        "i4 overlaps slab",
        "i8 store store_size middle",
        "i4 at places_columns bundles lost",
    ),
    align=True,
)
MOST_SLOTS = 16  # most_slots in program.h
MOST_VECTORS = 8  # most_vectors in host/plane.h
UNITS = 1e6
"""The largest unit of a plane, and one over the smallest: values come that near to overflow."""


# ---- the program as stages of steps


@dataclasses.dataclass
class Step:
    """A step of a stage: windows on both axes, weights, activation; or a residual's move."""

    code: str
    at: tuple[Array, Array] | None = None
    grid: tuple[int, int] = (1, 1)
    scale: float = 1.0
    bias: float = 0.0
    trained: float = 0.0
    add: float = 0.0
    form: Form | None = None  # of the function at its end
    layer: object = None  # for messages
    positive: bool = False  # K is not negative where it begins
    units: tuple[float, float] = (1.0, 1.0)  # of K and T in the planes before and after it

    @property
    def gain(self) -> float | None:
        """The value E[phi^2] = E[phi'^2] at variance 1 where the function is kappa1, else None."""
        if not 1e-30 < self.scale < 1e30:  # the scale divides what the tables hold
            return None
        form = self.form
        return form.gain if isinstance(form, Homogeneous) and form.kappa1 else None

    @property
    def kind(self) -> int:
        if self.form is None:
            return LINEAR
        return GENERAL if self.gain is None else RELU

    @property
    def slope(self) -> float:
        """The factor of ``kappa0 T``, in units of the planes."""
        return self.scale * (self.gain or 0.0) * self.units[0] / self.units[1]

    @property
    def tables(self) -> int:
        """The number of tables per position; about that where functions make their own."""
        if isinstance(self.form, (Homogeneous, Unit)):
            return 2
        return 66 if isinstance(self.form, (Expansion, Sampled)) else 8


@dataclasses.dataclass
class Stage:
    grid: tuple[int, int]
    steps: list[Step]
    ends: tuple[End, End] | None = None


class _Small(Exception):
    """The error of a grid that is too small for a layer."""


class Builder:
    """An interpreter of a program on a grid of positions, which may shrink: stages of steps."""

    def __init__(self, grid: tuple[int, int], axes: int) -> None:
        self.grid, self.axes = grid, axes
        self.stages = [Stage(grid, [])]
        self.open: list[tuple[int, int]] = []
        self.slots = 0
        self.input_add = 0.0

    @property
    def _steps(self) -> list[Step]:
        return self.stages[-1].steps

    def _sizes(self, sizes: tuple[int, ...]) -> tuple[int, int]:
        return (1, sizes[0]) if len(sizes) == 1 else (sizes[0], sizes[1])

    def _shape(self, grid: tuple[int, int]) -> str:
        return " x ".join(map(str, grid[2 - self.axes :]))

    def _fits(self, least: tuple[int, int], node: Node) -> None:
        """Refuse a grid that leaves a layer no position."""
        if any(size < n for size, n in zip(self.grid, least, strict=True)):
            raise _Small(
                f"X must have at least {self._shape(least)} positions where {node.layer} comes: "
                f"got {self._shape(self.grid)}"
            )

    def _windows(self, node: Weights | Pool) -> tuple[tuple[int, int], tuple[Array, Array]]:
        """Return the sizes of a node's windows, and the positions in each of them, by axis."""
        if node.window is None:  # of one position each
            return (1, 1), (np.arange(self.grid[0])[:, None], np.arange(self.grid[1])[:, None])
        many = self.axes if node.window.every else 1
        taps, strides = (self._sizes(x * many) for x in (node.window.size, node.window.stride))
        padding = node.window.padding
        if padding == "valid":
            self._fits(taps, node)
        elif padding == "behind":
            self._fits((2 * strides[0] if self.axes == 2 else 1, 2 * strides[1]), node)
        paddings = (padding if self.axes == 2 else "valid", padding)  # signals have one row
        rows, columns = map(windows, self.grid, taps, strides, paddings)
        return taps, (rows, columns)

    def input(self, node: Input) -> None:
        pass  # a factor of the pixels, which Tile and Plan read off the program

    def weights(self, node: Weights) -> None:
        """Take patch means, then K <- w^2 K + b^2, T <- K + w^2 T."""
        taps, at = self._windows(node)
        self.grid = (len(at[0]), len(at[1]))
        step = Step(
            "layer", at, self.grid, scale=node.w_std * node.w_std / (taps[0] * taps[1]),
            bias=node.b_std * node.b_std, trained=float(node.trained), layer=node.layer,
        )  # fmt: skip
        if node.trained and not node.b_std:
            # T <- scale sum(T + K): the step that wrote K has added it to T already, if it could;
            # poolings in between are linear.
            last = next((s.steps[-1] for s in reversed(self.stages) if s.steps), None)
            if last is None:
                self.input_add, step.trained = 1.0, 0.0
            elif last is not None and last.form is not None and last.form.fuses:
                last.add, step.trained = 1.0, 0.0
        self._steps.append(step)

    def _identity(self, layer: object) -> Step:
        at = (np.arange(self.grid[0])[:, None], np.arange(self.grid[1])[:, None])
        self._steps.append(Step("layer", at, self.grid, layer=layer))
        return self._steps[-1]

    def apply(self, node: Apply) -> None:
        form = node.form
        if isinstance(form, Unchanged):
            return
        last = self._steps[-1] if self._steps else None
        if last is None or last.code != "layer" or last.form is not None:
            last = self._identity(node.layer)
        last.form, last.layer = form, node.layer

    def pool(self, node: Pool) -> None:
        _, ats = self._windows(node)
        many = self.axes if node.window.every else 1
        taps = [(1.0,), *node.taps * many][-2:]
        rows, columns = (End(at, np.array(tap)) for at, tap in zip(ats, taps, strict=True))
        self._end((rows, columns), (len(ats[0]), len(ats[1])))

    def readout(self, node: Readout) -> None:
        rows, columns = (
            End(None, np.array([1.0 if node.total else 1 / n]))
            if node.equal
            else End(np.arange(n)[None], np.full(n, 1 / n))
            for n in self.grid
        )
        self._end((rows, columns), (1, 1))

    def _end(self, ends: tuple[End, End], grid: tuple[int, int]) -> None:
        self.stages[-1].ends = ends
        self.grid = grid
        self.stages.append(Stage(grid, []))

    def save(self, node: Save) -> None:
        if len(self.open) == MOST_SLOTS:
            raise ValueError(f"layers must nest Residual at most {MOST_SLOTS} deep: got one more")
        self.open.append(self.grid)
        self.slots = max(self.slots, len(self.open))
        self._steps.append(Step(SAVE))

    def swap(self, node: Swap) -> None:
        self.grid, self.open[-1] = self.open[-1], self.grid
        self._steps.append(Step(SWAP))

    def merge(self, node: Merge) -> None:
        branch = self.open.pop()
        if branch != self.grid:
            raise ValueError(
                f"layers must agree with shortcut in shape: Residual ends in {self._shape(branch)} "
                f"positions, its shortcut in {self._shape(self.grid)}"
            )
        if node.plain:  # the branch may have needed more pairs than the sum does
            self._identity("Residual")
        self._steps.append(Step(MERGE))

    def finish(self) -> list[Stage]:
        """Return the stages; steps after the readout are one more, with a trivial end."""
        if self.stages[-1].steps:
            self.readout(Readout(equal=True, total=True))
        _annotate(self.stages[:-1])
        return self.stages[:-1]


def _annotate(stages: list[Stage]) -> None:
    """Set ``positive`` and ``units`` of all steps.

    T <- slope kappa0 sum(T) + K, with planes in units of the product of all slopes so far, has no
    slope. The last step of a chain makes up for it, or an earlier one before units grow too large.
    """
    steps = [step for stage in stages for step in stage.steps]
    ends = {id(stage.steps[-1]): stage.ends for stage in stages if stage.steps}
    saved: list[bool] = []
    positive, unit = False, 1.0
    for step, following in itertools.zip_longest(steps, steps[1:]):
        if step.code == SAVE:
            saved.append(positive)
        elif step.code == SWAP:
            positive, saved[-1] = saved[-1], positive
        elif step.code == MERGE:
            positive &= saved.pop()
        elif step.kind == RELU:
            step.positive, before = positive, unit
            step.units = (before, 1.0)
            chained = following is not None and following.kind == RELU
            unit = step.slope if chained and 1 / UNITS < step.slope < UNITS else 1.0
            step.units = (before, unit)
            positive = True
        else:
            positive &= step.kind == LINEAR
        positive &= all((end.weights >= 0).all() for end in ends.get(id(step)) or ())


@functools.lru_cache(64)
def build(program: Program, height: int, width: int, axes: int) -> tuple[list[Stage], float, int]:
    """Return a program's stages on images of this size, ``input_add`` and ``slots``."""
    try:
        return _built(program, (height, width), axes)
    except _Small as error:
        fits = _large_enough(program, (height, width), axes)
        raise ValueError(f"{error}; pad X to {fits}" if fits else f"{error}") from None


def _built(program: Program, grid: tuple[int, int], axes: int) -> tuple[list[Stage], float, int]:
    builder = Builder(grid, axes)
    program.run(builder)
    return builder.finish(), builder.input_add, builder.slots


def _large_enough(program: Program, grid: tuple[int, int], axes: int) -> str:
    """Return the least size from ``grid`` on that leaves every layer its positions, or ""."""
    most = [8 * max(grid)] * axes

    def fits(axis: int, size: int) -> bool:
        height, width = [1, *most[:axis], size, *most[axis + 1 :]][-2:]
        try:
            _built(program, (height, width), axes)
        except (_Small, ValueError):  # or a shortcut that ends in another shape
            return False
        return True

    found = [
        next((size for size in range(least, most[axis] + 1) if fits(axis, size)), None)
        for axis, least in enumerate(grid[2 - axes :])
    ]
    return "" if None in found else " x ".join(map(str, found))


# ---- the plan for one size of images


class Plan:
    """The maps and records of a program up to some stage, for the driver.

    Its result is one entry, or, when stages are left, equal positions of the next stage's grid.
    """

    rows: Array  # these and the other maps are set by their names
    columns: Array
    loads: Array
    copies: Array
    passes: Array

    def __init__(
        self, program: Program, shape: tuple[int, int, int], axes: int, upto: int, joined: bool,
        half: bool,
    ) -> None:  # fmt: skip
        stages, self.input_add, self.slots = build(program, shape[0], shape[1], axes)
        self._last: tuple[list[tuple[int, Op | None]], np.dtype, Layout] | None = None  # of ``lay``
        # Those of images with themselves; the kernel itself has the bits of a pair.
        self.variances = upto < len(stages)
        self.result = stages[upto].grid if self.variances else (1, 1)
        self.chosen = stages[:upto]
        self.channels, self.pixel_columns = shape[2], shape[1]
        self.input_scale = 1.0 if program.input.of == "sum" else 1.0 / shape[2]
        maps = Maps(joined)
        axis_plans = []
        for axis in (0, 1):
            lowered = []
            for stage in self.chosen:
                assert stage.ends is not None
                steps = [s.code if s.at is None else s.at[axis] for s in stage.steps]
                overlaps = any(map(overlap, stage.ends))
                lowered.append(AxisStage(stage.grid[axis], steps, stage.ends[axis], overlaps))
            result = np.eye(self.result[axis], dtype=bool)
            axis_plans.append(lower(lowered, result, axis, maps))
        self._records(*axis_plans)
        self._stores(*axis_plans)
        arrays = maps.arrays()
        for name, array in arrays.items():
            setattr(self, name, array)
        self.flipped = maps.exchanged(arrays)
        rows, columns = axis_plans
        self.plane_size = max(
            a * b
            for r, c in zip(rows.most, columns.most, strict=True)
            for a, b in zip(r, c, strict=True)
        )
        slots = [s + n for _, s, n in self.loads.tolist()]
        slots += [s + 1 for _, s in self.copies.tolist()]
        self.line_size = max([*slots, *(max(c) for c in columns.most)])
        wide = (self.rows[:, 3] > 0).any() or (self.columns[:, 1] >= LEAST_BOX).any()
        self.boxed = int(wide)
        self.work = sum(
            int(np.outer(rows.input_counts[k], columns.input_counts[k]).sum()) * (1 + len(s.steps))
            for k, s in enumerate(self.chosen)
        )
        self.numbers = [k for k, _ in self.active()]
        tables = sum(step.tables * step.grid[0] * step.grid[1] for _, step in self.active())
        self.image_size = math.prod(shape) + tables  # numbers that a tile holds of an image, about
        self.driver = _driver(half)
        self.compiled = self.driver.Program(self)

    def _records(self, rows: AxisPlan, columns: AxisPlan) -> None:
        self.stages = np.zeros(len(self.chosen) + 1, STAGE)
        self.steps = np.zeros(sum(len(stage.steps) for stage in self.chosen), STEP)
        number = 0
        for k, stage in enumerate(self.chosen):
            self.stages[k]["step"], self.stages[k]["steps"] = number, len(stage.steps)
            maps = zip(rows.steps[k], columns.steps[k], strict=True)
            for step in stage.steps:
                record = self.steps[number]
                number += 1
                record["code"], record["kind"] = CODES[step.code], step.kind
                if step.at is None:
                    continue
                record["rows"], record["columns"] = next(maps)
                record["grid_columns"] = step.grid[1]
                record["positions"] = step.grid[0] * step.grid[1]
                record["scale"], record["slope"] = step.scale, step.slope
                over = step.scale * step.units[0] if step.kind == RELU else 1.0
                record["bias"], record["positive"] = step.bias / over, step.positive
                record["trained"], record["add"] = step.trained, step.add

    def _stores(self, rows: AxisPlan, columns: AxisPlan) -> None:
        at: list[int] = []
        widths: list[int] = []
        total = self.slab_size = self.pass_size = self.track_size = 0
        for k, record in enumerate(self.stages):
            record["row_bundles"], record["column_bundles"] = rows.bundles[k], columns.bundles[k]
            record["rows"], record["columns"] = rows.inputs[k], columns.inputs[k]
            if k < len(self.chosen):
                record["row_pools"], record["column_pools"] = rows.pools[k], columns.pools[k]
                record["uniform"] = rows.uniform[k] and columns.uniform[k]
            if k == 0:
                continue
            counts = columns.input_counts[k]
            sizes = np.outer(rows.input_counts[k], counts).ravel()
            size = int(sizes.sum())
            planes = rows.bundles[k - 1] * columns.bundles[k - 1]
            record["at"], record["places_columns"] = len(at), len(widths)
            record["bundles"] = columns.bundles[k]
            record["store"], record["store_size"] = total, size
            at.extend((np.cumsum(sizes) - sizes).tolist())
            widths.extend(counts)
            if rows.between[k - 1] or columns.between[k - 1]:
                total = self._overlapping(k - 1, rows, columns, total)
                continue
            record["lost"] = size if size == 1 and planes > 16 else 0
            total += size + int(record["lost"])
        self.store_at, self.store_columns = np.array(at, np.int64), np.array(widths, np.int32)
        self.store_size = total

    def _overlapping(self, k: int, rows: AxisPlan, columns: AxisPlan, total: int) -> int:
        """Lay out the end of a stage whose windows overlap; return the entries of stores by then.

        Where it fits, columns are pooled in place, the planes with pooled columns take the place of
        the stage's own, and those of the next stage theirs.
        """
        stage, following = self.stages[k], self.stages[k + 1]
        pooled, counts = columns.input_counts[k + 1], rows.last_counts[k]
        stage["overlaps"], stage["slab"] = 1, columns.last_counts[k] != pooled

        def ends(rows: list[int], columns: list[int]) -> Array:
            """Return where planes end, by bundles of rows and columns."""
            before = np.cumsum(rows) - rows
            return before[:, None] * sum(columns) + np.outer(rows, np.cumsum(columns))

        own = ends(rows.input_counts[k], columns.input_counts[k])
        middle = ends(counts, pooled)
        if stage["slab"]:
            own, middle = own[:, -1:], middle[:, -1:]
            self.slab_size = max(self.slab_size, max(counts) * sum(columns.last_counts[k]))
        stage["middle"] = total
        if k and (middle <= own).all():
            stage["middle"] = stage["store"]
        else:
            total += int(middle[-1, -1])
        if counts == rows.input_counts[k + 1]:
            following["store"] = stage["middle"]
        else:
            following["store"] = total
            total += int(following["store_size"])
        # Some lines of the other axis go through a pass at a time, of one or two vectors each.
        for plan, lines in ((rows, columns.input_counts[k + 1]), (columns, counts)):
            vectors = min(2 * max(lines), MOST_VECTORS)
            self.pass_size = max(self.pass_size, vectors * (plan.between[k] + plan.longest[k]))
            self.track_size = max(self.track_size, plan.longest[k])
        return total

    def active(self) -> list[tuple[int, Step]]:
        """Return the steps with an activation, and their numbers."""
        flat = [step for stage in self.chosen for step in stage.steps]
        return [(k, step) for k, step in enumerate(flat) if step.form is not None]

    def lay(self, sides: list[Tile], dtype: np.dtype) -> Layout:
        """Return steps with their operations, and where their tables lie for these images."""
        functions = [
            (
                max(side.tables[k].shape[1] for side in sides),
                max((side.ops[k] for side in sides), key=lambda op: -1 if op is None else op.n),
            )
            for k in range(len(self.numbers))
        ]
        last = self._last
        if last is None or last[:2] != (functions, dtype):
            last = self._last = functions, dtype, _laid(self, tuple(functions), dtype)
        return last[2]


class Layout(NamedTuple):
    """A plan with the operations for some images, and where it expects their tables."""

    plan: Plan
    steps: Array  # STEP
    network: calls.Network
    places: tuple[Plan, bytes, int]  # equal where tables lie at the same places
    scratches: tuple[int, int]  # numbers per thread, for one kernel and for both

    def scratch(self, n_threads: int, parts: int, old: Array | None = None) -> Array:
        """Return the scratch of a call of the driver, ``old`` if it fits."""
        shape, dtype = (n_threads, self.scratches[parts - 1]), self.network.coefficients.dtype
        return calls.room(shape, dtype) if old is None or old.shape != shape else old


@functools.lru_cache(64)
def _laid(made: Plan, functions: tuple[tuple[int, Op | None], ...], dtype: np.dtype) -> Layout:
    """Return what ``lay`` does for functions of so many tables and these operations."""
    steps, size = made.steps.copy(), 0
    coefficients: list[float] = []
    epsilon = float(np.finfo(dtype).eps)
    first = True
    for record, step in zip(steps, (s for st in made.chosen for s in st.steps), strict=True):
        if step.at is None:
            continue
        # u is a quotient of sums with this many roundings each, and eight more.
        terms = step.at[0].shape[1] + step.at[1].shape[1] + (made.channels if first else 0)
        record["snap"] = epsilon / 2 * (8 + terms)
        first = False
    for number, (tables, op) in zip(made.numbers, functions, strict=True):
        record = steps[number]
        record["at"] = size
        size += tables * int(record["positions"])
        record["act"]["code"] = -1
        if op is not None:
            act = (int(op.code), op.n, 0, len(coefficients), op.a, op.b, op.c, 0.0)
            record["act"] = act
            coefficients.extend(op.coefficients)
    constants = np.array(coefficients, dtype)
    network = calls.Network(made.compiled, steps.view(np.uint8), constants, size)
    whole = calls.LINE // dtype.itemsize  # so that every thread's begins with a cache line
    one, both = (
        -(-made.driver.scratch_size(*network[:3], parts) // whole) * whole for parts in (1, 2)
    )
    return Layout(made, steps, network, (made, steps["at"].tobytes(), size), (one, both))


@functools.lru_cache(64)
def plan(
    program: Program, shape: tuple[int, int, int], axes: int, upto: int, joined: bool = False,
    half: bool = False,
) -> Plan:  # fmt: skip
    return Plan(program, shape, axes, upto, joined, half)


def _driver(half: bool) -> ModuleType:
    return dispatch.half("spatial") if half else dispatch.driver("spatial")


# ---- images and their tables


@functools.lru_cache(64)
def _stations(
    program: Program, height: int, width: int, axes: int
) -> tuple[list[Stage], int, int | None]:
    """Return stages, how many have functions in or behind them, and the numbers in all tables.

    That is None where numbers of tables depend on the images.
    """
    stages, _, _ = build(program, height, width, axes)
    busy = [k for k, s in enumerate(stages) if any(t.form is not None for t in s.steps)]
    active = [t for s in stages for t in s.steps if t.form is not None]
    known = all(isinstance(step.form, (Homogeneous, Unit)) for step in active)
    size = sum(step.tables * step.grid[0] * step.grid[1] for step in active) if known else None
    return stages, max(busy, default=-1) + 1, size


class Tile:
    """Some images, and the tables that functions need of single images."""

    joined = False  # whether planes are, see ``geometry.lower``

    def __init__(
        self, program: Program, x: Array, axes: int, n_threads: int, half: bool = False
    ) -> None:
        self.x, self.dtype = x, x.dtype
        self.shape = x.shape[1:]
        self.driver = _driver(half)
        self.width = self.driver.WIDTH[LIMITS[self.dtype].name]
        self.n_threads, self._all_threads = enough(x.size * 10, n_threads), n_threads
        self.ops: list[Op | None] = []
        self.tables: list[Array] = []  # (images, tables, positions) each
        self.doubts: list[accuracy.Doubt] = []
        self._packed: Array | None = None  # all tables, where their number is known beforehand
        self._used = 0
        self._singles: tuple[tuple[Plan, bytes, int], calls.Images] | None = None
        self._lanes: tuple[calls.Images, calls.Images] | None = None
        stages, busy, size = _stations(program, *self.shape[:2], axes)
        if size is not None:
            self._packed = np.empty((len(x), size), self.dtype)
        variance: Array = np.empty(x.shape[:3])
        scale = 1.0 if program.input.of == "sum" else 1.0 / self.shape[2]
        flat = variance.reshape(len(x), -1)
        self._pixel_variances(scale, flat)
        self._check(variance, "the input", scale)
        self.dark = self._dark(flat)
        for k in range(busy):
            if k:
                made = plan(program, self.shape, axes, k, self.joined, half)
                variance = self.selves(made, 1, n_threads)[:, 0].reshape(len(x), *made.result)
                unit = next((s.steps[-1].units[1] for s in reversed(stages[:k]) if s.steps), 1.0)
                variance = np.maximum(variance.astype(np.float64), 0.0) * unit
            self._walk(stages[k], variance)

    def _dark(self, variance: Array) -> bool:
        """Return whether an image that is not zero has only variances of zero or of lost digits."""
        if not variance.min(initial=1.0) < LIMITS[self.dtype].tiny:
            return False
        faint = ~(variance >= LIMITS[self.dtype].tiny).any(1)
        return bool(faint.any()) and self._some(np.asarray(faint))

    def _pixel_variances(self, scale: float, out: Array) -> None:
        """Write the variance at every position of the input, (images, positions)."""
        self.driver.pixels(self.pixels(), self.shape[2], scale, out, self.n_threads)

    def _some(self, faint: Array) -> bool:
        """Return whether one of these images is not zero."""
        return bool(self.x[faint].any())

    def _check(self, variance: Array, name: object, scale: float = 1.0) -> None:
        """Refuse variances that overflow the dtype, or whose sums before ``scale`` do."""
        scale = scale if 1e-30 < scale < 1 else 1.0
        if not variance.max(initial=0.0) <= scale * LIMITS[self.dtype].most:
            _check.beyond(self.dtype, "the variance overflows in {}", name)

    def _walk(self, stage: Stage, variance: Array) -> None:
        """Take the variances at every position through the steps of a stage."""
        largest = LIMITS[self.dtype].most
        saved: list[Array] = []
        free: list[Array] = []  # fresh memory takes longer than what is done with it
        for step in stage.steps:
            if step.code == SAVE:
                saved.append(variance)
            elif step.code == SWAP:
                variance, saved[-1] = saved[-1], variance
            elif step.at is None:  # MERGE, the only other move
                variance = variance + saved.pop()
            else:
                old = np.ascontiguousarray(variance)
                shape = (len(old), *step.grid)
                fits = [k for k, a in enumerate(free) if a.shape == shape]
                variance = free.pop(fits[0]) if fits else np.empty(shape)
                self.driver.window(
                    old, *step.at, step.scale, step.bias, variance,
                    np.empty((self.n_threads, old.shape[2])), self.n_threads,
                )  # fmt: skip
                self._check(variance, step.layer, step.scale * step.units[0])
                if step.form is not None:
                    # A variance whose reciprocal overflows counts as zero.
                    least = 4 * max(1.0, step.scale) / largest
                    if variance.min(initial=1.0) <= least:
                        variance *= variance > least
                    variance = self._activate(step, step.form, variance)
                if not any(old is a for a in saved):
                    free.append(old)

    def _activate(self, step: Step, form: Form, variance: Array) -> Array:
        n, largest = len(variance), LIMITS[self.dtype].most
        if (gain := step.gain) is not None:  # kappa1: K <- gain n kappa1(u)
            tables = self._table(n, 2, variance[0].size)
            before, after = step.units
            self.driver.norms(
                variance.reshape(n, -1), math.sqrt(step.scale * before), gain / after,
                largest / 2, tables, self.n_threads,
            )  # fmt: skip
            self.ops.append(RELU_OP)
            self.tables.append(tables)
            variance *= gain
            return variance
        rows = variance.reshape(-1)
        tolerance = float(np.finfo(self.dtype).eps) / 4
        made = steps.step(form, rows, tolerance, self._all_threads)
        self._check(made.variance, step.layer)
        if made.doubt is not None:
            self.doubts.append(made.doubt)
        old, new = np.sqrt(rows), np.sqrt(made.variance)
        parts = [_reciprocal(old, self.dtype), new]
        if made.op is not None and made.tables is not None:
            parts += list(made.tables)
        elif made.op is not None:
            over = _reciprocal(new, self.dtype)
            parts += [old, over, old * over, *made.more]
        tables = self._table(n, len(parts), variance[0].size)
        for k, part in enumerate(parts):
            with np.errstate(under="ignore"):
                tables[:, k] = np.clip(part, -largest, largest).reshape(n, -1)
        self.ops.append(made.op)
        self.tables.append(tables)
        return made.variance.reshape(variance.shape)

    def _table(self, n: int, count: int, positions: int) -> Array:
        """Return the memory for tables of a step, at the place where a layout will expect them."""
        if self._packed is None:
            return np.empty((n, count, positions), self.dtype)
        first, self._used = self._used, self._used + count * positions
        return self._packed[:, first : self._used].reshape(n, count, positions)

    def pixels(self) -> Array:
        return self.x.reshape(len(self.x), -1)

    def singles(self, layout: Layout) -> calls.Images:
        """Return pixels and tables by image, where ``layout`` expects them; the last are kept."""
        if self._singles is None or self._singles[0] != layout.places:
            images = calls.Images(self.pixels(), self._pack(layout))
            self._singles = layout.places, images
        return self._singles[1]

    def _pack(self, layout: Layout) -> Array:
        size = layout.network.table_size
        if self._packed is not None and size == self._used == self._packed.shape[1]:
            return self._packed
        numbers = layout.plan.numbers
        packed = np.empty((len(self.x), size), self.dtype)
        ends = [int(layout.steps[k]["at"]) for k in numbers[1:]] + [size]
        for tables, number, end in zip(self.tables, numbers, ends, strict=False):
            at, width = int(layout.steps[number]["at"]), tables[0].size
            packed[:, at : at + width] = tables.reshape(len(tables), -1)
            packed[:, at + width : end] = 0  # coefficients of a series that only others have
        return packed

    def lanes(self, layout: Layout) -> calls.Images:
        """Return the same in lanes, (groups, numbers, lanes); zeros fill the last group."""
        singles = self.singles(layout)
        if self._lanes is None or self._lanes[0] is not singles:
            made = []
            for a in singles:
                shape = (-(-len(a) // self.width), a.shape[1], self.width)
                made.append(calls.room(shape, self.dtype))
                self.driver.lanes(a, made[-1], self.n_threads)
            self._lanes = (singles, calls.Images(*made))
        return self._lanes[1]

    def in_rows(self) -> None:
        """Forget the lanes: from now on these images are rows."""
        self._lanes = None

    def selves(self, made: Plan, parts: int, n_threads: int) -> Array:
        """Run every image with itself; return shape (images, parts, entries of the result)."""
        n_threads = enough(len(self.x) * made.work, n_threads)
        layout = made.lay([self], self.dtype)
        images = self.lanes(layout)
        entries = made.result[0] * made.result[1]
        out = np.empty((len(images.pixels), entries * parts, self.width), self.dtype)
        self.driver.selves(layout.network, images, parts, out, layout.scratch(n_threads, parts))
        shaped = out.reshape(len(out), entries, parts, self.width).transpose(0, 3, 2, 1)
        return shaped.reshape(-1, parts, entries)[: len(self.x)]


def _reciprocal(x: Array, dtype: np.dtype) -> Array:
    """Return 1/x, and 0 where a product of two is beyond the dtype."""
    least = 2.0 / float(np.finfo(dtype).max) ** 0.5
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > least)


# ---- Gram matrices


class Pictures:
    """Signals or images ``x`` of one shape, in arrays of any backend, and their tiles."""

    x: Any
    y: Any
    n_threads: int
    _tiles: type[Tile] = Tile

    @property
    def half(self) -> bool:
        """Whether so few images would leave half of the lanes empty."""
        return False

    @property
    def axes(self) -> int:
        return self.x.ndim - 2

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of one image; a signal has height 1."""
        height, width, channels = (1, *self.x.shape[1:])[-3:]
        return height, width, channels

    def _plan(self, program: Program, of: type[Tile] | None = None) -> Plan:
        """Return the plan of all stages, for tiles of a kind; by default these here."""
        stages, _, _ = build(program, *self.shape[:2], self.axes)
        joined = (of or self._tiles).joined
        return plan(program, self.shape, self.axes, len(stages), joined, self.half)

    def _tile(self, program: Program, a: Any, k: int, size: int) -> Any:
        """Return the tile of ``size`` images of ``a`` from image k on."""
        x = a[k : k + size].reshape(-1, *self.shape)
        tile = self._tiles(program, x, self.axes, self.n_threads, self.half)
        if tile.dark:
            # That is fine where biases add variance to a zero image, or all images give zero.
            probes = np.stack([np.zeros(self.shape, x.dtype), np.ones(self.shape, x.dtype)])
            both = Tile(program, probes, self.axes, 1, self.half)
            none, one = both.selves(self._plan(program, Tile), 1, 1)[:, 0, 0]
            _check.resolved(none < np.finfo(x.dtype).tiny and one > 0, x.dtype)
        return tile

    def _tile_size(self, made: Plan) -> int:
        """Return the number of images in a tile, whose tables fit the room."""
        raise NotImplementedError

    def _selves(self, program: Program, tangent: bool, factor: float) -> Array:
        """Return ``factor`` times the kernel of every image with itself, on the host."""
        made, result = self._plan(program), np.empty(len(self.x), self.x.dtype)
        tile = self._tile_size(made)
        for k in range(0, len(self.x), tile):
            images = self._tile(program, self.x, k, tile)
            accuracy.tell(images.doubts, tangent)
            values = images.selves(made, 1 + tangent, self.n_threads)[:, int(tangent), 0]
            result[k : k + tile] = values * self.x.dtype.type(factor)
        _check.kernel(result, tangent)
        return result

    def _blocks(
        self, program: Program, made: Plan, tangent: bool
    ) -> Iterator[tuple[int, int, Any, Any]]:
        """Yield where a block of the matrix begins, and its tiles of rows and columns."""
        y, tile = self.x if self.y is None else self.y, self._tile_size(made)
        kept: dict[int, Any] = {}
        for j in range(0, len(y), tile):
            columns = self._tile(program, y, j, tile)
            if self.y is None:
                kept[j] = columns
            for i in range(0, j + 1 if self.y is None else len(self.x), tile):
                if i not in kept:
                    kept[i] = self._tile(program, self.x, i, tile)
                accuracy.tell(kept[i].doubts + columns.doubts, tangent)
                yield i, j, kept[i], columns
                if len(kept) > KEPT:
                    del kept[i]
            columns.in_rows()

    def part(self, rows: slice, columns: slice | None) -> Self:
        """Return some images against some others, or against themselves."""
        y = self.x if self.y is None else self.y
        part = copy.copy(self)
        part.x, part.y = self.x[rows], None if columns is None else y[columns]
        return part


class Images(Pictures, HostInputs):
    """The signals or images of a Gram matrix, checked; programs fill blocks of the matrix."""

    def __init__(self, X: Any, Y: Any, layer: object, n_threads: int) -> None:
        self.x, self.y = _check.image_pair(X, Y, layer)
        self.layer, self.n_threads = layer, n_threads
        for name, a in (("X", self.x), ("Y", self.y)):
            if a is not None:
                _check.finite_images(a, name)

    @property
    def half(self) -> bool:
        width = dispatch.driver("spatial").WIDTH[LIMITS[self.x.dtype].name]
        return 2 * max(len(self.x), 0 if self.y is None else len(self.y)) <= width

    def against(self, X: Any, n_threads: int) -> Images:
        """Return other images against those of X here, which are known to be finite."""
        other = Images(X, None, self.layer, n_threads)
        _, other.y = _check.image_pair(other.x, self.x, self.layer)
        return other

    def _tile_size(self, made: Plan) -> int:
        """Return the number of images in a tile: whole vectors whose tables fit the room."""
        width = made.driver.WIDTH[LIMITS[self.x.dtype].name]
        size = made.image_size * self.x.dtype.itemsize
        return max(1, TILE_BYTES // (size * width)) * width

    def diagonal(self, program: Program, tangent: bool, factor: float) -> Array:
        """Return ``factor`` times the kernel of every image with itself."""
        return self._selves(program, tangent, factor)

    def gram(
        self, program: Program, k_out: Array | None, t_out: Array | None, factor: float,
        combine: int,
    ) -> None:  # fmt: skip
        """Write ``factor`` times a program's kernels into one output or both."""
        symmetric = self.y is None
        target = calls.Target(k_out, t_out, factor, combine, symmetric)
        y = self.x if self.y is None else self.y
        made = self._plan(program)  # also of no images, for what it refuses
        if len(self.x) == 0 or len(y) == 0:
            return
        scratch: Array | None = None
        done, whole = 0, len(y) ** 2 // 2 if symmetric else len(self.x) * len(y)
        for i, j, rows, columns in self._blocks(program, made, t_out is not None):
            before, done = done, done + len(rows.x) * len(columns.x)
            share = (before / max(whole, done), done / max(whole, done))
            with ALL if self.watch is None else self.share(*share):
                scratch = self._block(made, rows, columns, i, j, target, scratch)

    def _block(
        self, made: Plan, rows: Tile, columns: Tile, i: int, j: int, target: calls.Target,
        scratch: Array | None,
    ) -> Array:  # fmt: skip
        """Write a block; return the scratch, for the next one."""
        layout = made.lay([rows] if rows is columns else [rows, columns], self.x.dtype)
        n, m, width = len(rows.x), len(columns.x), rows.width
        # Lanes go over the side that fills them better: values do not depend on it.
        flipped = not target.symmetric and -(-n // width) * m < n * -(-m // width)
        if flipped:
            singles, lanes, place = columns, rows, calls.Place(j, i, i + n, True)
        else:
            singles, lanes, place = rows, columns, calls.Place(i, j, j + m, False)
        in_lanes = lanes.lanes(layout)
        work = len(in_lanes.pixels) * width * len(singles.x) * made.work
        parts = 1 if target.t is None else 2
        scratch = layout.scratch(enough(work, self.n_threads), parts, scratch)
        rows.driver.gram(
            layout.network, singles.singles(layout), in_lanes, place, target, scratch,
            watch=self.watch,
        )  # fmt: skip
        for out, tangent in ((target.k, False), (target.t, True)):
            if out is not None:
                _check.kernel(out[i : i + len(rows.x), j : j + len(columns.x)], tangent)
        return scratch
