"""The door of the spatial engine: a network becomes a plan, images become tables, blocks are run.

layers --_build--> Builder: stages of steps      what is computed, in which order
       --Plan-->   maps and records              for one image size; _geometry.py
       --Images--> pixels and tables             of one tile of images
       --Points.gram--> driver                   tile by tile
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from typing import TYPE_CHECKING

import numpy as np

from ... import _check
from .. import accuracy as _accuracy
from ..geometry import MERGE, SAVE, SWAP, AxisStage, End, Maps, Window, lower, windows
from . import calls as _calls
from . import dispatch as _dispatch
from . import rows as _dense
from .program import OP, Code, Op

if TYPE_CHECKING:
    from ...architecture import Sequential

Array = np.ndarray

TILE_BYTES = 5_000_000
"""Room for the tables of one side of a tile."""
KEPT = 3
"""Tiles of rows whose tables are kept while columns go on."""
CALL_ENTRIES = 4_000_000_000
"""Entries times steps in one call of the driver: between calls a job can be interrupted."""

LINEAR, RELU, GENERAL = 0, 1, 2  # step_kind in spatial.h
CODES = {"layer": 0, SAVE: 1, SWAP: 2, MERGE: 3}
STEP = np.dtype(
    [(name, "i4") for name in ("code", "kind", "rows", "columns", "grid_columns")]
    + [(name, "i8") for name in ("positions", "at")]
    + [(name, "f8") for name in ("scale", "bias", "trained", "add", "slope", "snap")]
    + [("act", np.dtype([(name, OP[name]) for name in OP.names], align=True))],
    align=True,
)
STAGE = np.dtype(
    [
        (name, "i4")
        for name in (
            "step", "steps", "row_bundles", "column_bundles", "rows", "columns", "row_pools",
            "column_pools",
        )
    ]
    + [("store", "i8"), ("store_size", "i8")]
    + [(name, "i4") for name in ("at", "places_columns", "bundles", "lost")],
    align=True,
)  # fmt: skip
MOST_SLOTS = 16  # most_slots in spatial.h


# ---- the network as stages of steps


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
    layer: object = None  # what has _step, or None
    name: str = ""

    @property
    def gain(self) -> float | None:
        """E[phi^2] = E[phi'^2] at variance 1 where the activation is kappa1, else None."""
        if not 1e-30 < self.scale < 1e30:  # it divides what the tables hold
            return None
        return getattr(self.layer, "_kappa1_gain", None)

    @property
    def kind(self) -> int:
        if self.layer is None:
            return LINEAR
        return GENERAL if self.gain is None else RELU


@dataclasses.dataclass
class Stage:
    grid: tuple[int, int]
    steps: list[Step]
    ends: tuple[End, End] | None = None


class _Small(Exception):
    """A grid leaves a layer no position."""


class Builder:
    """What layers build a plan with; the grid shrinks as they pass."""

    def __init__(self, grid: tuple[int, int], axes: int) -> None:
        self.grid, self.axes = grid, axes
        self.stages = [Stage(grid, [])]
        self.open: list[tuple[tuple[int, int], str]] = []
        self.slots = 0
        self.input_add = 0.0

    @property
    def _steps(self) -> list[Step]:
        return self.stages[-1].steps

    def _sizes(self, sizes: tuple[int, ...]) -> tuple[int, int]:
        return (1, sizes[0]) if len(sizes) == 1 else (sizes[0], sizes[1])

    def _shape(self, grid) -> str:
        return " x ".join(map(str, grid[2 - self.axes :]))

    def _fits(self, least: tuple[int, int], name: str) -> None:
        """Refuse a grid that leaves a layer no position."""
        if any(size < n for size, n in zip(self.grid, least, strict=True)):
            raise _Small(
                f"X must have at least {self._shape(least)} positions where {name} comes: "
                f"got {self._shape(self.grid)}"
            )

    def weights(self, sizes, stride, padding, w_std, b_std, trainable, name: str) -> None:
        """Patch means, then K <- w^2 K + b^2, T <- K + w^2 T."""
        taps, strides = self._sizes(sizes), self._sizes(stride)
        if padding == "valid":
            self._fits(taps, name)
        at = tuple(map(windows, self.grid, taps, strides, (padding, padding)))
        self.grid = (len(at[0]), len(at[1]))
        step = Step(
            "layer", at, self.grid, scale=w_std * w_std / (taps[0] * taps[1]),
            bias=b_std * b_std, trained=float(trainable), name=name,
        )  # fmt: skip
        if trainable and not b_std:
            # T <- scale sum(T + K): whoever wrote K has added it to T already, if it could.
            last = self._steps[-1] if self._steps else None
            if last is None and len(self.stages) == 1:
                self.input_add, step.trained = 1.0, 0.0
            elif last is not None and last.code == "layer" and last.layer is not None:
                last.add, step.trained = 1.0, 0.0
        self._steps.append(step)

    def _identity(self, name: str) -> Step:
        at = tuple(np.arange(n)[:, None] for n in self.grid)
        self._steps.append(Step("layer", at, self.grid, name=name))
        return self._steps[-1]

    def activate(self, layer) -> None:
        last = self._steps[-1] if self._steps else None
        if last is None or last.code != "layer" or last.layer is not None:
            last = self._identity(repr(layer))
        last.layer, last.name = layer, repr(layer)

    def pool(self, ats: tuple[Array, Array], weights: tuple[Array, Array]) -> None:
        self._end((End(ats[0], weights[0]), End(ats[1], weights[1])), (len(ats[0]), len(ats[1])))

    def pool_windows(self, sizes, stride, padding, name: str) -> None:
        taps, strides = self._sizes(sizes), self._sizes(stride)
        if padding == "valid":
            self._fits(taps, name)
        ats = tuple(map(windows, self.grid, taps, strides, (padding, padding)))
        self.pool(ats, tuple(np.full(k, 1 / k) for k in taps))

    def pool_gaussian(self, subsampling, name: str) -> None:
        scales = self._sizes(subsampling) if self.axes == 2 else (0, subsampling[0])
        self._fits((2 * scales[0], 2 * scales[1]), name)
        ats, weights = [], []
        for size, s in zip(self.grid, scales, strict=True):
            if s == 0:  # the axis that signals do not have
                ats.append(np.zeros((1, 1), np.int64))
                weights.append(np.ones(1))
                continue
            at = np.arange(size // s - 1)[:, None] * s + np.arange(2 * s + 1)
            bell = np.exp(-((np.arange(2 * s + 1) - s) ** 2) / (s * s))
            ats.append(np.where(at < size, at, -1))
            weights.append(bell / bell.sum())
        self.pool((ats[0], ats[1]), (weights[0], weights[1]))

    def flatten(self, total: bool) -> None:
        ends = tuple(End(None, np.array([1.0 if total else 1 / n])) for n in self.grid)
        self._end(ends, (1, 1))

    def mean(self) -> None:
        ats = tuple(np.arange(n)[None] for n in self.grid)
        self.pool(ats, tuple(np.full(n, 1 / n) for n in self.grid))

    def _end(self, ends, grid) -> None:
        self.stages[-1].ends = ends
        self.grid = grid
        self.stages.append(Stage(grid, []))

    def save(self) -> None:
        if len(self.open) == MOST_SLOTS:
            raise ValueError(f"layers must nest Residual at most {MOST_SLOTS} deep: got one more")
        self.open.append(self.grid)
        self.slots = max(self.slots, len(self.open))
        self._steps.append(Step(SAVE))

    def swap(self) -> None:
        self.grid, self.open[-1] = self.open[-1], self.grid
        self._steps.append(Step(SWAP))

    def merge(self, empty: bool, name: str) -> None:
        branch = self.open.pop()
        if branch != self.grid:
            raise ValueError(
                f"layers must agree with shortcut in shape: {name} ends in {self._shape(branch)} "
                f"positions, its shortcut in {self._shape(self.grid)}"
            )
        if empty:  # the branch may have needed more pairs than the sum does
            self._identity(name)
        self._steps.append(Step(MERGE))

    def finish(self) -> list[Stage]:
        """The stages; steps after the readout are a stage of their own with a trivial end."""
        if self.stages[-1].steps:
            self.flatten(True)
        return self.stages[:-1]


@functools.lru_cache(64)
def build(network: Sequential, height: int, width: int, axes: int):
    """A network's stages on images of this size."""
    try:
        return _built(network, (height, width), axes)
    except _Small as error:
        fits = _large_enough(network, (height, width), axes)
        raise ValueError(f"{error}; pad X to {fits}" if fits else f"{error}") from None


def _built(network: Sequential, grid: tuple[int, int], axes: int):
    builder = Builder(grid, axes)
    network._build(builder)
    return builder.finish(), builder.input_add, builder.slots


def _large_enough(network: Sequential, grid: tuple[int, int], axes: int) -> str:
    """The least size of at least ``grid`` that leaves every layer its positions, or nothing."""
    most = [8 * max(grid)] * axes

    def fits(axis: int, size: int) -> bool:
        sizes = [*most[:axis], size, *most[axis + 1 :]]
        try:
            _built(network, (1, *sizes)[-2:], axes)
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
    """Maps and records of a network up to some stage, for the driver.

    Its result is one entry, or, when stages are left, equal positions of the next stage's grid.
    """

    def __init__(
        self, network: Sequential, shape: tuple[int, int, int], axes: int, upto: int
    ) -> None:
        stages, self.input_add, self.slots = build(network, shape[0], shape[1], axes)
        self.result = (1, 1) if upto == len(stages) else stages[upto].grid
        self.chosen = stages[:upto]
        self.channels, self.pixel_columns = shape[2], shape[1]
        self.input_scale = 1.0 if network._sum else 1.0 / shape[2]
        maps = Maps()
        axis_plans = []
        for axis in (0, 1):
            lowered = []
            for stage in self.chosen:
                steps = [s.code if s.at is None else Window(s.at[axis]) for s in stage.steps]
                lowered.append(AxisStage(stage.grid[axis], steps, stage.ends[axis]))
            axis_plans.append(lower(lowered, np.eye(self.result[axis], dtype=bool), axis, maps))
        self._records(*axis_plans)
        self._stores(*axis_plans)
        for name, array in maps.arrays().items():
            setattr(self, name, array)
        rows, columns = axis_plans
        self.plane_size = max(
            a * b
            for r, c in zip(rows.most, columns.most, strict=True)
            for a, b in zip(r, c, strict=True)
        )
        slots = [s + n for _, s, n in self.loads.tolist()] + [
            s + 1 for _, s in self.copies.tolist()
        ]
        self.line_size = max([*slots, *(max(c) for c in columns.most)])
        self.work = sum(
            int(np.outer(rows.input_counts[k], columns.input_counts[k]).sum()) * (1 + len(s.steps))
            for k, s in enumerate(self.chosen)
        )
        self.program = _dispatch.driver("spatial").Program(self)

    def _records(self, rows, columns) -> None:
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
                record["scale"], record["slope"] = step.scale, step.scale * (step.gain or 0.0)
                record["bias"] = step.bias / step.scale if step.kind == RELU else step.bias
                record["trained"], record["add"] = step.trained, step.add

        self._level()

    def _level(self) -> None:
        """Put off the factors of T: T <- slope kappa0 sum(T) + add K, with T in units of `unit`.

        In units of the product of all slopes so far a slope is 1; a later step makes up for it, the
        last of a chain or before numbers leave a comfortable range.
        """
        unit = 1.0
        for k, record in enumerate(self.steps):
            if record["kind"] != RELU or record["trained"]:
                continue  # a chain ends before: its last step sees what follows
            goes_on = k + 1 < len(self.steps) and all(
                self.steps[k + 1][name] == value
                for name, value in (("kind", RELU), ("trained", 0.0), ("code", 0))
            )
            stage_ends = any(s["step"] + s["steps"] == k + 1 for s in self.stages[:-1])
            whole = unit * float(record["slope"])
            if goes_on and not stage_ends and 1e-12 < whole < 1e12:
                record["slope"], record["add"] = 1.0, record["add"] / whole
                unit = whole
            else:
                record["slope"], unit = whole, 1.0

    def _stores(self, rows, columns) -> None:
        at: list[int] = []
        widths: list[int] = []
        total = 0
        for k, record in enumerate(self.stages):
            record["row_bundles"], record["column_bundles"] = rows.bundles[k], columns.bundles[k]
            record["rows"], record["columns"] = rows.inputs[k], columns.inputs[k]
            if k < len(self.chosen):
                record["row_pools"], record["column_pools"] = rows.pools[k], columns.pools[k]
            if k == 0:
                continue
            sizes = np.outer(rows.input_counts[k], columns.input_counts[k]).ravel()
            size = int(sizes.sum())
            planes = rows.bundles[k - 1] * columns.bundles[k - 1]
            record["at"], record["places_columns"] = len(at), len(widths)
            record["bundles"] = columns.bundles[k]
            record["store"], record["store_size"] = total, size
            record["lost"] = size if size == 1 and planes > 16 else 0
            at.extend((np.cumsum(sizes) - sizes).tolist())
            widths.extend(columns.input_counts[k])
            total += size + int(record["lost"])
        self.store_at, self.store_columns = np.array(at, np.int64), np.array(widths, np.int32)
        self.store_size = total

    def active(self) -> list[tuple[int, Step]]:
        """Steps with an activation, and their numbers."""
        flat = [step for stage in self.chosen for step in stage.steps]
        return [(k, step) for k, step in enumerate(flat) if step.layer is not None]

    def lay(self, sides: list[Images], dtype: np.dtype) -> tuple[Array, Array, int]:
        """Steps with their operations and where their tables lie; coefficients; table size."""
        steps, coefficients, size = self.steps.copy(), [], 0
        epsilon = float(np.finfo(dtype).eps)
        first = True
        for record, step in zip(steps, (s for st in self.chosen for s in st.steps), strict=True):
            if step.at is None:
                continue
            # u is a quotient of sums with this many roundings each, and eight more.
            terms = step.at[0].shape[1] + step.at[1].shape[1] + (self.channels if first else 0)
            record["snap"] = epsilon / 2 * (8 + terms)
            first = False
        for k, (number, _) in enumerate(self.active()):
            record = steps[number]
            tables = max(side.tables[k].shape[1] for side in sides)
            op = max((side.ops[k] for side in sides), key=lambda op: -1 if op is None else op.n)
            record["at"] = size
            size += tables * int(record["positions"])
            record["act"]["code"] = -1
            if op is not None:
                act = (int(op.code), op.n, 0, len(coefficients), op.a, op.b, op.c, 0.0)
                record["act"] = act
                coefficients.extend(op.coefficients)
        return steps, np.array(coefficients, dtype), size


@functools.lru_cache(64)
def plan(network: Sequential, shape: tuple[int, int, int], axes: int, upto: int) -> Plan:
    return Plan(network, shape, axes, upto)


# ---- images and their tables


class Images:
    """A tile of images with what activations need of each of them alone."""

    def __init__(self, network: Sequential, x: Array, axes: int, n_threads: int) -> None:
        self.x, self.dtype = x, x.dtype
        self.shape = x.shape[1:]
        self.driver = _dispatch.driver("spatial")
        self.width = self.driver.WIDTH[self.dtype.name]
        self.n_threads = _dense.enough(x.size * 10, n_threads)
        self.ops: list[Op | None] = []
        self.tables: list[Array] = []  # (images, tables, positions) each
        self.doubts: list[_accuracy.Doubt] = []
        stages, _, _ = build(network, *self.shape[:2], axes)
        busy = [k for k, s in enumerate(stages) if any(t.layer is not None for t in s.steps)]
        variance = np.empty(x.shape[:3])
        scale = 1.0 if network._sum else 1.0 / self.shape[2]
        flat = variance.reshape(len(x), -1)
        self.driver.pixels(self.pixels(), self.shape[2], scale, flat, self.n_threads)
        self._check(variance, "the input", scale)
        self.dark = self._dark(flat)
        for k in range(max(busy, default=-1) + 1):
            if k:
                made = plan(network, self.shape, axes, k)
                variance = self.selves(made, 1, n_threads)[:, 0].reshape(len(x), *made.result)
                variance = np.maximum(variance.astype(np.float64), 0.0)
            self._walk(stages[k], variance)

    def _dark(self, variance: Array) -> bool:
        """Whether some image is not zero and all of its variances are, or have lost digits."""
        faint = ~(variance >= np.finfo(self.dtype).tiny).any(1)
        return bool(faint.any()) and bool(self.x[faint].any())

    def _check(self, variance: Array, name: str, scale: float = 1.0) -> None:
        """Refuse variances beyond the dtype, or whose sums before ``scale`` are."""
        largest = float(np.finfo(self.dtype).max) * (scale if 1e-12 < scale < 1 else 1.0)
        if not variance.max(initial=0.0) <= largest:  # NaN is not, either
            raise OverflowError(
                f"X must keep the kernel within {self.dtype}: the variance overflows in {name}; "
                "scale X down"
            )

    def _walk(self, stage: Stage, variance: Array) -> None:
        """Variances at every position through the steps of a stage."""
        largest = float(np.finfo(self.dtype).max)
        saved: list[Array] = []
        for step in stage.steps:
            if step.code == SAVE:
                saved.append(variance)
            elif step.code == SWAP:
                variance, saved[-1] = saved[-1], variance
            elif step.code == MERGE:
                variance = variance + saved.pop()
            else:
                old = np.ascontiguousarray(variance)
                variance = np.empty((len(old), *step.grid))
                self.driver.window(
                    old, *step.at, step.scale, step.bias, variance,
                    np.empty((self.n_threads, old.shape[2])), self.n_threads,
                )  # fmt: skip
                self._check(variance, step.name, step.scale)
                if step.layer is not None:
                    # A variance whose reciprocal overflows counts as zero.
                    least = 4 * max(1.0, step.scale) / largest
                    if variance.min(initial=1.0) <= least:
                        variance *= variance > least
                    variance = self._activate(step, variance)

    def _activate(self, step: Step, variance: Array) -> Array:
        n, largest = len(variance), float(np.finfo(self.dtype).max)
        if step.gain is not None:  # kappa1: K <- gain n kappa1(u)
            tables = np.empty((n, 2, variance[0].size), self.dtype)
            self.driver.norms(
                variance.reshape(n, -1), np.sqrt(step.scale), step.gain, largest / 2, tables,
                self.n_threads,
            )  # fmt: skip
            self.ops.append(Op(Code.RELU))
            self.tables.append(tables)
            return np.multiply(variance, step.gain, out=variance)
        rows = variance.reshape(-1)
        made = step.layer._step(rows, float(np.finfo(self.dtype).eps) / 4)
        self._check(made.variance, step.name)
        if made.doubt is not None:
            self.doubts.append(made.doubt)
        old, new = np.sqrt(rows), np.sqrt(made.variance)
        parts = [_reciprocal(old, self.dtype), new]
        if made.op is not None and made.tables is None:
            over = _reciprocal(new, self.dtype)
            parts += [old, over, old * over]
        elif made.op is not None:
            parts += list(made.tables)
        tables = np.empty((n, len(parts), variance[0].size), self.dtype)
        for k, part in enumerate(parts):
            with np.errstate(under="ignore"):
                tables[:, k] = np.clip(part, -largest, largest).reshape(n, -1)
        self.ops.append(made.op)
        self.tables.append(tables)
        return made.variance.reshape(variance.shape)

    def lanes(self, a: Array) -> Array:
        """(images, numbers) as (groups, numbers, lanes); zeros fill the last group."""
        out = np.empty((-(-len(a) // self.width), a.shape[1], self.width), self.dtype)
        self.driver.lanes(a, out, self.n_threads)
        return out

    def pixels(self) -> Array:
        return self.x.reshape(len(self.x), -1)

    def rows(self, steps: Array, numbers: list[int], size: int) -> Array:
        """Tables by image, (images, size), where ``steps`` want them."""
        packed = np.empty((len(self.x), size), self.dtype)
        ends = [int(steps[k]["at"]) for k in numbers[1:]] + [size]
        for tables, number, end in zip(self.tables, numbers, ends, strict=False):
            at, width = int(steps[number]["at"]), tables[0].size
            packed[:, at : at + width] = tables.reshape(len(tables), -1)
            packed[:, at + width : end] = 0  # of a series, coefficients only others have
        return packed

    def selves(self, made: Plan, parts: int, n_threads: int) -> Array:
        """Every image with itself: shape (images, parts, entries of the result)."""
        n_threads = _dense.enough(len(self.x) * made.work, n_threads)
        steps, coefficients, size = made.lay([self], self.dtype)
        tables = self.lanes(self.rows(steps, [k for k, _ in made.active()], size))
        entries = made.result[0] * made.result[1]
        out = np.empty((len(tables), entries * parts, self.width), self.dtype)
        records = steps.view(np.uint8)
        scratch = self.driver.scratch_size(made.program, records, coefficients, parts)
        self.driver.selves(
            _calls.Network(made.program, records, coefficients, size),
            _calls.Images(self.lanes(self.pixels()), tables), parts, out,
            np.empty((n_threads, scratch), self.dtype),
        )  # fmt: skip
        shaped = out.reshape(len(out), entries, parts, self.width).transpose(0, 3, 2, 1)
        return shaped.reshape(-1, parts, entries)[: len(self.x)]


def _reciprocal(x: Array, dtype: np.dtype) -> Array:
    """1/x, and 0 where a product of two is beyond the dtype."""
    least = 2.0 / float(np.finfo(dtype).max) ** 0.5
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > least)


# ---- Gram matrices


class Points:
    """Checked images of a Gram matrix; one axis counts as height 1."""

    def __init__(self, x: Array, y: Array | None, n_threads: int) -> None:
        self.axes = x.ndim - 2
        self.x, self.y = (None if a is None else self._images(a) for a in (x, y))
        self.n_threads = n_threads
        for name, a in (("X", x), ("Y", y)):
            if a is not None:
                _check.finite_images(a, name)

    def _images(self, a: Array) -> Array:
        return a if self.axes == 2 else a[:, None]

    def part(self, rows: slice, columns: slice | None) -> Points:
        """Some images against some others, or against themselves."""
        y = self.x if self.y is None else self.y
        part = copy.copy(self)
        part.x, part.y = self.x[rows], None if columns is None else y[columns]
        return part

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.x.shape[1:]

    def _tables(self, network: Sequential, x: Array) -> Images:
        images = Images(network, x, self.axes, self.n_threads)
        if images.dark:
            # Unless biases make more of nothing, or the network nothing of anything.
            probes = np.stack([np.zeros_like(x[0]), np.ones_like(x[0])])
            probes = Images(network, probes, self.axes, 1)
            none, one = probes.selves(self._plan(network), 1, 1)[:, 0, 0]
            _check.resolved(none < np.finfo(x.dtype).tiny and one > 0, x.dtype)
        return images

    def _plan(self, network: Sequential) -> Plan:
        stages, _, _ = build(network, *self.shape[:2], self.axes)
        return plan(network, self.shape, self.axes, len(stages))

    def _tile(self, made: Plan) -> int:
        """Images in a tile: whole vectors, as many as their tables leave room for."""
        width = _dispatch.driver("spatial").WIDTH[self.x.dtype.name]
        numbers = int(np.prod(self.shape)) + sum(
            (2 + getattr(step.layer, "_row_tables", 3)) * step.grid[0] * step.grid[1]
            for _, step in made.active()
        )
        return max(1, TILE_BYTES // (numbers * self.x.dtype.itemsize * width)) * width

    def diagonal(self, network: Sequential, tangent: bool, factor: float) -> Array:
        """``factor`` times the kernel of every image with itself."""
        made, result = self._plan(network), np.empty(len(self.x), self.x.dtype)
        tile = self._tile(made)
        for k in range(0, len(self.x), tile):
            images = self._tables(network, self.x[k : k + tile])
            _accuracy.tell(images.doubts, tangent)
            values = images.selves(made, 1 + tangent, self.n_threads)[:, int(tangent), 0]
            result[k : k + tile] = values * self.x.dtype.type(factor)
        _check.kernel(result, tangent)
        return result

    def gram(
        self,
        network: Sequential,
        k_out: Array | None,
        t_out: Array | None,
        factor: float,
        combine: int,
    ) -> None:
        """A network's kernels on all pairs of images, into one output or both."""
        y = self.x if self.y is None else self.y
        if len(self.x) == 0 or len(y) == 0:
            return
        made = self._plan(network)
        tile = self._tile(made)
        kept: dict[int, Images] = {}
        for j in range(0, len(y), tile):
            columns = self._tables(network, y[j : j + tile])
            if self.y is None:
                kept[j] = columns
            for i in range(0, len(self.x) if self.y is not None else j + 1, tile):
                if i not in kept:
                    kept[i] = self._tables(network, self.x[i : i + tile])
                rows = kept[i]
                _accuracy.tell(rows.doubts + columns.doubts, t_out is not None)
                self._block(made, rows, columns, i, j, k_out, t_out, factor, combine)
                if len(kept) > KEPT:
                    del kept[i]

    def _block(self, made, rows, columns, i, j, k_out, t_out, factor, combine) -> None:
        driver, dtype = rows.driver, self.x.dtype
        steps, coefficients, size = made.lay([rows, columns], dtype)
        numbers = [k for k, _ in made.active()]
        x_tables = rows.rows(steps, numbers, size)
        y_tables = columns.lanes(
            x_tables if rows is columns else columns.rows(steps, numbers, size)
        )
        x_pixels, y_pixels = rows.pixels(), columns.lanes(columns.pixels())
        parts = 1 if t_out is None else 2
        units = len(y_tables) * len(x_tables)
        n_threads = _dense.enough(units * rows.width * made.work, self.n_threads)
        scratch = driver.scratch_size(made.program, steps.view(np.uint8), coefficients, parts)
        scratch = np.empty((n_threads, scratch), dtype)
        chunk = max(n_threads, CALL_ENTRIES // (made.work * rows.width * len(y_tables)))
        for r in range(0, len(x_tables), chunk):
            driver.gram(
                _calls.Network(made.program, steps.view(np.uint8), coefficients, size),
                _calls.Images(x_pixels[r : r + chunk], x_tables[r : r + chunk]),
                _calls.Images(y_pixels, y_tables),
                (i + r, j, j + len(columns.x)),
                _calls.Target(k_out, t_out, factor, combine, self.y is None),
                scratch,
            )
        for out, tangent in ((k_out, False), (t_out, True)):
            if out is not None:
                _check.kernel(out[i : i + len(rows.x), j : j + len(columns.x)], tangent)
