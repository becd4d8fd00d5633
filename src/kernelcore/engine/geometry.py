"""Which pairs of positions a spatial network needs, and the index maps that lead through them.

Layers act on the two axes of an image independently, so everything here is about one axis: pairs
(p, p') of positions in the two images. Boolean matrices say, from the result backwards, which pairs
are needed. These are split into bundles of offsets p' - p that no layer before the next pooling
joins. The compiled engine (``plane.h``) is given one map per bundle and step.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._types import Array

LEAST_BOX = 6
"""The least width of windows that are summed by blocks (``least_box`` in host/plane.h)."""

Pairs = tuple[tuple[int, int], ...]
Sources = tuple[tuple[int, ...], ...]
Index = tuple[Array, Array]


def windows(size: int, taps: int, stride: int, padding: str) -> Array:
    """Return the positions under each window, shape (outputs, taps); -1 where there is padding.

    ``same`` and ``circular``: ceil(size / stride) outputs, the smaller half of the padding first;
    ``behind``: size // stride - 1 outputs, the padding last.
    """
    if padding == "valid":
        outputs, low = (size - taps) // stride + 1, 0
    elif padding == "behind":
        outputs, low = size // stride - 1, 0
    else:
        outputs = -(-size // stride)
        low = max((outputs - 1) * stride + taps - size, 0) // 2
    at = np.arange(max(outputs, 0))[:, None] * stride - low + np.arange(taps)
    if padding == "circular":
        return at % size
    return np.where((at >= 0) & (at < size), at, -1)


class End(NamedTuple):
    """The end of a stage: the positions and weights of pooling windows.

    Positions are None where only pairs of equal positions count.
    """

    at: Array | None
    weights: Array


SAVE, SWAP, MERGE = "save", "swap", "merge"


class AxisStage(NamedTuple):
    """One axis of a stage: its size, its steps (windows, SAVE, SWAP or MERGE) and its end."""

    size: int
    steps: list[Array | str]
    end: End
    overlaps: bool  # the windows of its end do, on this axis or on the other one


def overlap(end: End) -> bool:
    """Return whether some position is in several windows."""
    return end.at is not None and bool((np.bincount(end.at[end.at >= 0]) > 1).any())


class Maps:
    """The arrays that ``plane.h`` reads, as lists that grow.

    ``joined``: planes are, and whoever reads them knows lines of several parts.
    """

    KINDS = {
        "rows": "outputs first most box span near",
        "row_sums": "x y first count",
        "columns": "outputs taps place load loads copy copies run runs three",
        "places": "x y",
        "loads": "from slot count",
        "copies": "from slot",
        "runs": "out count slot step x y move",
        "pools": "first count",
        "targets": "bundle first count",
        "cells": "out first count",
        "passes": "track tracks outputs box weight",
        "tracks": "item items sum sums phase",
        "items": "a b c",
        "sums": "a b c begin end tap",
    }

    def __init__(self, joined: bool = False) -> None:
        self.joined = joined
        self.records: dict[str, list[Sequence[int]]] = {name: [] for name in self.KINDS}
        self.sources: list[int] = []
        self.terms: list[Array] = []
        self.term_count = 0
        self._known: dict[tuple[Any, ...], int] = {}

    def _extend(self, name: str, rows: Iterable[Sequence[int]]) -> int:
        first = len(self.records[name])
        self.records[name].extend(rows)
        return first

    def add_terms(self, sources: Array, weights: Array) -> int:
        """Add terms of poolings; return the number of the first."""
        terms, first = np.empty(len(weights), TERM), self.term_count
        terms["from"], terms["weight_float"], terms["weight"] = sources, weights, weights
        self.terms.append(terms)
        self.term_count += len(terms)
        return first

    def arrays(self) -> dict[str, Array]:
        made: dict[str, Array] = {
            name: np.array(rows, np.int32).reshape(-1, len(self.KINDS[name].split()))
            for name, rows in self.records.items()
        }
        made["row_sources"] = np.array(self.sources, np.int32)
        made["terms"] = np.concatenate(self.terms) if self.terms else np.empty(0, TERM)
        return made

    @classmethod
    def exchanged(cls, made: Mapping[str, Array]) -> dict[str, Array]:
        """Return those of the arrays that name positions, with x and y exchanged."""
        other = {"x": "y", "y": "x"}
        found = {}
        for name, text in cls.KINDS.items():
            fields = text.split()
            if "x" in fields:
                order = [fields.index(other.get(field, field)) for field in fields]
                found[name] = np.ascontiguousarray(made[name][:, order])
        return found

    def add(self, axis: int, bundles: list[tuple[Pairs, Sources]], taps: int) -> int:
        """Add one map per bundle; return the number of the first."""
        key = (axis, taps, tuple(bundles))
        if key not in self._known:
            make = self._row_map if axis == 0 else self._column_map
            made = [make(pairs, sources, taps) for pairs, sources in bundles]
            self._known[key] = self._extend("rows" if axis == 0 else "columns", made)
        return self._known[key]

    def _row_map(self, pairs: Pairs, sources: Sources, taps: int) -> tuple[int, ...]:
        rows = []
        for (x, y), taken in zip(pairs, sources, strict=True):
            rows.append((x, y, len(self.sources), sum(s >= 0 for s in taken)))
            self.sources.extend(s for s in taken if s >= 0)
        most = max((r[3] for r in rows), default=0)
        span = 1 + max((max(taken, default=-1) for taken in sources), default=-1)
        box = taps if taps >= LEAST_BOX and _boxed(sources, taps, span) else 0
        near = all(abs(s - r) < 2 for r, taken in enumerate(sources) for s in taken if s >= 0)
        return len(pairs), self._extend("row_sums", rows), most, box, span, int(near)

    def _column_map(self, pairs: Pairs, sources: Sources, taps: int) -> tuple[int, ...]:
        loads, copies, runs = lines(pairs, sources, taps)
        return (
            len(pairs), taps, self._extend("places", pairs),
            self._extend("loads", loads), len(loads),
            self._extend("copies", copies), len(copies),
            self._extend("runs", runs), len(runs),
            _three(len(pairs), loads, copies, runs, self.joined) if taps == 3 else 0,
        )  # fmt: skip


TERM = np.dtype([("from", "i4"), ("weight_float", "f4"), ("weight", "f8")])


def _boxed(sources: Sources, taps: int, span: int) -> bool:
    """Return whether sums over blocks of ``taps`` rows give all sums (``row_map`` in plane.h)."""
    for row in sources:
        taken = [s for s in row if s >= 0]
        if taken and taken != list(range(taken[0], taken[0] + len(taken))):
            return False
        if taken and taken[0] // taps == taken[-1] // taps:
            if taken[0] % taps and (taken[-1] + 1) % taps and taken[-1] + 1 != span:
                return False
    return True


def _three(outputs: int, loads: list[Any], copies: list[Any], runs: list[Any], joined: bool) -> int:
    """Return which of the simplest lines of three taps this is (``plane.h``), or 0."""
    plain = all(step == move == 1 for _, _, _, step, _, _, move in runs)
    if joined and plain and len(runs) == 2:
        parts = [(out, count, slot) for out, count, slot, *_ in runs]
        zeros = [(-1, at) for _, count, slot in parts for at in (slot, slot + count + 1)]
        if copies == zeros and loads == [[out, slot + 1, count] for out, count, slot in parts]:
            return 3
    neighbours = loads == [[0, 1, outputs]] and plain and all(r[2] == r[0] for r in runs)
    ends = [[(-1, 0), (-1, outputs + 1)], [(outputs, 0), (1, outputs + 1)]]
    return 1 + ends.index(copies) if neighbours and copies in ends else 0


@functools.lru_cache(4096)
def lines(pairs: Pairs, sources: Sources, taps: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Lay out the slots of a line so that every output sums ``taps`` neighbouring ones.

    Outputs are laid out greedily: the next one reuses the end of the last where it can.
    """
    slots: list[int] = []
    runs: list[list[int]] = []
    last, step, fresh = 0, 0, True
    for q, (taken, (x, y)) in enumerate(zip(sources, pairs, strict=True)):
        found = None
        if q:
            # The first two outputs settle how far neighbours are apart; 0 taps are positions only.
            for s in range(min(taps, 1), taps + 1) if fresh else (step,):
                shared = slots[last + s :]
                if list(taken[: len(shared)]) == shared:
                    found = s
                    slots.extend(taken[len(shared) :])
                    break
        if found is None:
            last, fresh = len(slots), True
            slots.extend(taken)
            runs.append([q, 1, last, 1, x, y, 1])
            continue
        step, last, fresh = found, last + found, False
        run = runs[-1]
        move, dy = x - pairs[q - 1][0], y - pairs[q - 1][1]
        if move == dy and (run[1] == 1 or (move == run[6] and step == run[3])):
            run[1], run[3], run[6] = run[1] + 1, step, move
        else:  # positions jump, as they do where a circular plane wraps around
            runs.append([q, 1, last, step, x, y, 1])
    first: dict[int, int] = {}
    loads: list[list[int]] = []
    copies = []
    for slot, source in enumerate(slots):
        if source < 0:
            copies.append((-1, slot))
        elif source in first:
            copies.append((first[source], slot))
        else:
            first[source] = slot
            if (
                loads
                and loads[-1][0] + loads[-1][2] == source
                and loads[-1][1] + loads[-1][2] == slot
            ):
                loads[-1][2] += 1
            else:
                loads.append([source, slot, 1])
    return loads, copies, runs


@dataclasses.dataclass
class AxisPlan:
    """The maps of one axis: per stage the first map of its input and of every window step."""

    inputs: list[int]
    steps: list[list[int]]
    pools: list[int]
    bundles: list[int]
    input_counts: list[list[int]]  # positions per bundle
    most: list[list[int]]  # largest number of positions in a bundle, per state of a stage
    last_counts: list[list[int]]  # positions per bundle, at the end of a stage
    uniform: list[bool]  # per stage: its end gives every position of a bundle one weight and target
    between: list[int]  # and overlapping windows so many pairs between two passes
    longest: list[int]  # and in a track

    def add_input(self, axis: int, maps: Maps, bundles: list[Pairs]) -> None:
        """Add the maps of a stage's input, which take from nothing."""
        self.bundles.append(len(bundles))
        self.input_counts.append([len(pairs) for pairs in bundles])
        self.inputs.append(maps.add(axis, [(p, ((),) * len(p)) for p in bundles], 0))


def lower(stages: list[AxisStage], result: Array, axis: int, maps: Maps) -> AxisPlan:
    """Make all maps of an axis; ``result``, a unit matrix, marks the pairs wanted at the end.

    Joined planes have offsets that differ by the size of a stage's input in one bundle: all bundles
    then have as many pairs as there are positions, as threads would have it.
    """
    traced: list[_Trace] = []
    for stage in reversed(stages):
        traced.insert(0, _Trace(stage, traced[0].need[0] if traced else result, maps.joined))
    plan = AxisPlan([], [], [], [], [], [], [], [], [], [])
    for trace in traced:
        trace.place(axis, maps, plan)
    last = [_sorted_pairs(result, (0,))]
    plan.add_input(axis, maps, last)
    inputs = [(trace.lists[0], trace.index[0]) for trace in traced[1:]]
    inputs.append((last, _index(last, len(result))))
    for stage, trace, (lists, index) in zip(stages, traced, inputs, strict=True):
        plan.last_counts.append([len(pairs) for pairs in trace.lists[trace.last]])
        end = _pool_passes if stage.overlaps else _pool
        end(stage.end, trace, lists, index, maps, plan)
    return plan


def _needed(end: End, need: Array, size: int) -> Array:
    """Return which pairs of a stage's last grid its end uses."""
    if end.at is None:
        return np.eye(size, dtype=bool)
    touches = _touches(end.at, size)
    return (touches.T.astype(np.int64) @ need @ touches) > 0


def _touches(at: Array, size: int) -> Array:
    """Return which windows have which positions."""
    touches = np.zeros((len(at), size), bool)
    rows, taps = np.nonzero(at >= 0)
    touches[rows, at[rows, taps]] = True
    return touches


def _sorted_pairs(need: Array, offsets: Iterable[int]) -> Pairs:
    """Return the pairs with one of these offsets, by offset from the largest on."""
    pairs: list[tuple[int, int]] = []
    for d in sorted(offsets, reverse=True):
        on = np.flatnonzero(np.diagonal(need, d)) + max(0, -d)
        pairs.extend((int(p), int(p) + d) for p in on)
    return tuple(pairs)


def _index(lists: list[Pairs], size: int) -> Index:
    """Return the bundle of every pair and the pair's number in it; -1 for pairs not needed."""
    bundle, number = np.full((size, size), -1), np.full((size, size), -1)
    for b, pairs in enumerate(lists):
        if pairs:
            x, y = np.array(pairs).T
            bundle[x, y] = b
            number[x, y] = np.arange(len(pairs))
    return bundle, number


def _joined(need: Array, at: Array | None) -> set[tuple[int, int]]:
    """Return (offset after, offset before) for all needed pairs that take from another pair."""
    x, y = np.nonzero(need)
    size = 1 + max(len(need), 0 if at is None else int(at.max(initial=0)) + 1)
    found: set[int] = set()
    for tap in [np.arange(len(need))] if at is None else at.T:
        on = (tap[x] >= 0) & (tap[y] >= 0)
        code = (y - x)[on] * 4 * size + (tap[y] - tap[x])[on] + 2 * size
        found |= set(np.unique(code).tolist())
    return {(code // (4 * size), code % (4 * size) - 2 * size) for code in found}


class _Trace:
    """A stage's states, one before and one after each step: the pairs needed, and the bundles.

    ``wanted`` marks the pairs that the next stage needs.
    """

    def __init__(self, stage: AxisStage, wanted: Array, joined: bool) -> None:
        moves: list[tuple[tuple[int, ...], int, Array | None]] = []
        sizes, stack, now = [stage.size], [], 0
        for step in stage.steps:
            if isinstance(step, str) and step == SAVE:
                stack.append(now)
            elif isinstance(step, str) and step == SWAP:
                now, stack[-1] = stack[-1], now
            else:
                at = None if isinstance(step, str) else step
                before: tuple[int, ...] = (now, stack.pop()) if at is None else (now,)
                sizes.append(sizes[now] if at is None else len(at))
                now = len(sizes) - 1
                moves.append((before, now, at))
        self.moves, self.last = moves, now
        self.need = [np.zeros((n, n), bool) for n in sizes]
        self.need[now] = _needed(stage.end, wanted, sizes[now])
        for states, after, at in reversed(moves):
            for state in states:
                self.need[state] |= self.need[after] if at is None else self._back(after, at, state)
        self._split(joined)

    def _back(self, after: int, at: Array, state: int) -> Array:
        need = np.zeros_like(self.need[state])
        for tap in at.T:
            on = tap >= 0
            grid = np.ix_(tap[on], tap[on])
            need[grid] |= self.need[after][np.ix_(on, on)]
        return need

    def _split(self, joined: bool) -> None:
        """Put offsets that a step joins into one bundle, by union-find over (state, offset)."""
        parent: dict[tuple[int, int], tuple[int, int]] = {}

        def root(node: tuple[int, int]) -> tuple[int, int]:
            while parent.setdefault(node, node) != node:
                parent[node] = node = parent[parent[node]]
            return node

        for state, need in enumerate(self.need):
            x, y = np.nonzero(need)
            for d in np.unique(y - x):
                root((state, int(d)))
        known: dict[tuple[bytes, Any], Any] = {}  # layers are often alike
        for before, after, at in self.moves:
            key = (self.need[after].tobytes(), None if at is None else at.tobytes())
            if key not in known:
                known[key] = _joined(self.need[after], at)
            for state in before:
                for out, came in known[key]:
                    parent[root((state, came))] = root((after, out))
        size = len(self.need[0])
        for state, d in [node for node in parent if joined and node[0] == 0]:
            if (state, d - size) in parent:
                parent[root((state, d - size))] = root((state, d))
        groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for node in parent:
            groups.setdefault(root(node), []).append(node)
        ordered = sorted(groups.values(), key=lambda nodes: sorted(nodes))
        offsets: list[list[list[int]]] = [[[] for _ in ordered] for _ in self.need]
        for b, nodes in enumerate(ordered):
            for state, d in nodes:
                offsets[state][b].append(d)
        self.lists: list[list[Pairs]] = []
        for need, bundles in zip(self.need, offsets, strict=True):
            name = (need.tobytes(), str(bundles))
            if name not in known:
                known[name] = [_sorted_pairs(need, bundle) for bundle in bundles]
            self.lists.append(known[name])
        self.index = [
            _index(lists, len(need)) for lists, need in zip(self.lists, self.need, strict=True)
        ]

    def place(self, axis: int, maps: Maps, plan: AxisPlan) -> None:
        plan.add_input(axis, maps, self.lists[0])
        plan.most.append([max(map(len, lists)) for lists in self.lists])
        numbers = []
        known: dict[tuple[int, int, bytes], int] = {}
        for before, after, at in self.moves:
            if at is None:
                continue
            key = (id(self.lists[before[0]]), id(self.lists[after]), at.tobytes())
            if key in known:
                numbers.append(known[key])
                continue
            number = self.index[before[0]][1]
            bundles = []
            for pairs in self.lists[after]:
                x, y = np.array(pairs, np.int64).reshape(-1, 2).T
                i, j = at[x], at[y]
                taken = np.where((i >= 0) & (j >= 0), number[i, j], -1)
                bundles.append((pairs, tuple(map(tuple, taken.tolist()))))
            known[key] = maps.add(axis, bundles, at.shape[1])
            numbers.append(known[key])
        plan.steps.append(numbers)


def _pool(
    end: End, trace: _Trace, lists: list[Pairs], index: Index, maps: Maps, plan: AxisPlan
) -> None:
    """Add what each bundle of a stage adds to those of the next: terms by target and output."""
    coarse_bundle, coarse_number = index
    fine_bundle, fine_number = trace.index[trace.last]
    if end.at is None:
        fx = fy = np.arange(len(fine_bundle))
        px = py = np.zeros_like(fx)
        weights = np.full(len(fx), end.weights[0])
    else:
        outs = np.array([p for pairs in lists for p in pairs], np.int64).reshape(-1, 2)
        a, b = np.indices((end.at.shape[1],) * 2).reshape(2, -1)
        fx, fy = end.at[outs[:, 0]][:, a], end.at[outs[:, 1]][:, b]
        on = (fx >= 0) & (fy >= 0)
        weights = np.broadcast_to(end.weights[a] * end.weights[b], on.shape)[on]
        px, py = (np.broadcast_to(outs[:, [k]], on.shape)[on] for k in (0, 1))
        fx, fy = fx[on], fy[on]
    keys = np.stack(
        [fine_bundle[fx, fy], coarse_bundle[px, py], coarse_number[px, py], fine_number[fx, fy]], 1
    )
    keys, inverse = np.unique(keys, axis=0, return_inverse=True)
    totals = np.bincount(inverse.ravel(), weights, len(keys))
    first_term = maps.add_terms(keys[:, 3], totals)

    def starts(columns: int) -> Array:
        """Return where one of the first columns changes."""
        return np.flatnonzero(np.diff(keys[:, :columns], axis=0, prepend=-2).any(axis=1))

    def extend(name: str, of: Array | None, at: Array, base: int, end: int) -> int:
        """Add a record for each group: what it is ``of``, its first member, their number."""
        columns = [base + at, np.diff(at, append=end)]
        return maps._extend(name, np.stack(columns if of is None else [of, *columns], 1).tolist())

    cell, target = starts(3), starts(2)
    whole = sum(map(len, trace.lists[trace.last]))
    plan.uniform.append(
        len(cell) == len(np.unique(keys[:, 0])) and len(keys) == whole and np.ptp(totals) == 0
    )
    first_cell = extend("cells", keys[cell, 2], cell, first_term, len(keys))
    at = np.searchsorted(cell, target)
    first_target = extend("targets", keys[target, 1], at, first_cell, len(cell))
    plan.between.append(0)
    plan.longest.append(0)
    at = np.searchsorted(keys[target, 0], np.arange(len(trace.lists[0])))
    plan.pools.append(extend("pools", None, at, first_target, len(target)))


def _pool_passes(
    end: End, trace: _Trace, lists: list[Pairs], index: Index, maps: Maps, plan: AxisPlan
) -> None:
    """Add the two passes of overlapping windows, over the positions of one image and the other."""
    assert end.at is not None
    fine_lists, fine_index = trace.lists[trace.last], trace.index[trace.last]
    plan.uniform.append(False)
    size, taps = len(fine_index[0]), end.at.shape[1]
    if lists == fine_lists and end.at.shape == (size, 1) and end.weights[0] == 1:
        plan.pools.append(-1)
        plan.between.append(0)
        plan.longest.append(0)
        return
    need = index[0] >= 0  # (q, q')
    middle = need @ _touches(end.at, size)  # (q, p')
    number = (np.cumsum(middle.T) - 1).reshape(middle.T.shape).T  # as the first pass writes them
    between = np.stack([number, np.zeros_like(number), np.zeros_like(number)], 2)
    weights, box = (end.weights, end.weights), 0
    if np.ptp(end.weights) == 0:
        # The first pass divides by a power of two, so that one rounding is left.
        power = 2.0 ** math.ceil(math.log2(taps))
        weights = (np.full(taps, 1 / power), end.weights**2 * power)
        box = taps if taps >= LEAST_BOX else 0
    passes, longest = [], 0
    for wanted, source, target, taken in (
        (
            middle.T,
            _places(fine_lists, fine_index).swapaxes(0, 1),
            between.swapaxes(0, 1),
            weights[0],
        ),
        (need, between, _places(lists, index), weights[1]),
    ):
        made, most = _pass(end.at, wanted, source, target, taken, box, maps)
        passes.append(made)
        longest = max(longest, most)
    plan.pools.append(maps._extend("passes", passes))
    plan.between.append(int(middle.sum()))
    plan.longest.append(longest)


def _places(lists: list[Pairs], index: Index) -> Array:
    """Return pairs in the bundles before, pairs in the bundle and the number in it, by pair."""
    counts = np.array([len(pairs) for pairs in lists])
    bundle, number = index
    return np.stack([(np.cumsum(counts) - counts)[bundle], counts[bundle], number], 2)


def _pass(
    at: Array,
    wanted: Array,
    source: Array,
    target: Array,
    weights: Array,
    box: int,
    maps: Maps,
) -> tuple[tuple[int, ...], int]:
    """Make a pass that sums over windows on lines; return its record and the longest track.

    wanted: (line, window); source: places by line and position, target: by line and window; box:
    the blocks for windows of equal weights.
    """
    size = source.shape[1]
    # The windows as intervals: positions go on beyond the end where circular ones come round.
    reach, skipped = (at >= 0).sum(1), (at >= 0).argmax(1)
    low = at[np.arange(len(at)), skipped]
    high = low + reach - 1
    position = np.arange(size + at.shape[1])
    covers = (position >= low[:, None]) & (position <= high[:, None])
    line, position = np.nonzero(wanted @ covers)
    fresh = np.diff(line, prepend=-1).astype(bool) | (np.diff(position, prepend=-1) != 1)
    track, first = np.cumsum(fresh) - 1, np.flatnonzero(fresh)
    items = np.diff(first, append=len(line))
    number = np.zeros((len(wanted), covers.shape[1]), np.int64)
    number[line, position] = np.arange(len(line))
    out, window = np.nonzero(wanted)
    begin = number[out, low[window]]
    of = track[begin]
    begin -= first[of]
    end = begin + reach[window] - 1
    if box:
        within = low[window] // box == high[window] // box
        aligned = low[window] % box == 0
        assert (end == items[of] - 1)[within & ~aligned].all()
        begin, end = (
            np.where(within & aligned, -1, begin),
            np.where(within & ~aligned, items[of], end),
        )
    order = np.lexsort((begin, end, of))
    tap = maps.add_terms(np.zeros(len(weights)), weights)
    sums = np.column_stack([target[out, window], begin, end, tap + skipped[window]])[order]
    many = np.bincount(of)
    first_item = maps._extend("items", source[line, position % size].tolist())
    first_sum = maps._extend("sums", sums.tolist())
    phase = position[first] % box if box else np.zeros_like(first)
    tracks = [first_item + first, items, first_sum + np.cumsum(many) - many, many, phase]
    first_track = maps._extend("tracks", np.column_stack(tracks).tolist())
    return (first_track, len(first), len(sums), box, tap), int(max(items.max(), many.max()))
