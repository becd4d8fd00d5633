"""A program with finite widths: the steps that lead from inputs to outputs, and back.

Values between steps have shape (n, P, C): inputs, positions, channels; rows have one position.
Channels are scaled such that ``<h, h'>/C`` tends to the K of the program as widths grow. A step
knows its value, its derivative in a direction (tangent), and both of these on the way back.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _check, program
from .._types import Array
from ..engine.geometry import windows
from ..layers.activations import _Activation
from ..linalg import namespace_of
from ..linalg.arrays import placed, reshaped, summed, take
from ..program import Program

Pair = tuple[Array, Array | None]  # a value, and its derivative in a direction: None for zero


def plus(a: Array | None, b: Array | None) -> Array | None:
    """Return a sum, in which None is zero."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


class Windows:
    """Positions under windows, along all axes together: gathered, and given back."""

    def __init__(self, window: program.Window, shape: tuple[int, ...], layer: Any) -> None:
        axes = len(shape)
        sizes, strides = (s * axes if window.every else s for s in (window.size, window.stride))
        each = [windows(*of, window.padding) for of in zip(shape, sizes, strides, strict=True)]
        self.shape = tuple(len(at) for at in each)
        _check.must(
            min(self.shape) > 0, "inputs", f"have room for the windows of {layer!r}",
            f"positions {' x '.join(map(str, shape))}",
        )  # fmt: skip
        self.at = functools.reduce(_joined, zip(each, shape, strict=True), (ONE, 1))[0]
        self.inputs = math.prod(shape)
        self.taps = self.at.shape[1]
        # Under one tap a position is at most once, so that the way back is a gathering, too.
        self.back = np.full((self.inputs, self.taps), -1)
        for k in range(self.taps):
            there = np.flatnonzero(self.at[:, k] >= 0)
            self.back[self.at[there, k], k] = there

    def columns(self, h: Array) -> Array:
        """Return what is under each window, side by side: shape (n, windows, taps C)."""
        return reshaped(_gathered(h, self.at), (len(h), len(self.at), -1))

    def spread(self, g: Array) -> Array:
        """Return the sum of what windows give back to each position."""
        g = reshaped(g, (len(g), len(self.at), self.taps, -1))
        out = None
        for k in range(self.taps):
            out = plus(out, _gathered(g[:, :, k, :], self.back[:, k : k + 1])[:, :, 0, :])
        assert out is not None
        return out

    def sums(self, h: Array, taps: Sequence[float]) -> Array:
        """Return the sum over each window, in which positions have the weights of taps."""
        return _weighted(h, self.at, taps)

    def spread_sums(self, g: Array, taps: Sequence[float]) -> Array:
        """Return the transpose of ``sums``, applied to g."""
        return _weighted(g, self.back, taps)


ONE = np.zeros((1, 1), np.int64)


def _joined(before: tuple[Array, int], axis: tuple[Array, int]) -> tuple[Array, int]:
    """Return the windows of some axes and one more, and the number of positions of all."""
    (a, n), (b, m) = before, axis
    both = np.where((a[:, None, :, None] < 0) | (b[None, :, None] < 0), -1,
                    a[:, None, :, None] * m + b[None, :, None])  # fmt: skip
    return both.reshape(len(a) * len(b), -1), n * m


def _gathered(h: Array, at: Array) -> Array:
    """Return h of shape (n, P, C) at some positions, zero where they are negative."""
    outside = at < 0
    if isinstance(h, np.ndarray):
        out = h[:, at]
        if outside.any():
            out[:, outside] = 0
        return out
    out = reshaped(take(h, np.maximum(at, 0).ravel(), 1), (len(h), *at.shape, h.shape[2]))
    if not outside.any():
        return out
    xp = namespace_of(h)
    return xp.where(placed(outside[None, :, :, None], h), xp.zeros_like(out), out)


def _weighted(h: Array, at: Array, taps: Sequence[float]) -> Array:
    """Return the sum over taps of h at their positions, times their weights."""
    out = taps[0] * _gathered(h, at[:, :1])[:, :, 0, :]
    for k in range(1, len(taps)):
        out += taps[k] * _gathered(h, at[:, k : k + 1])[:, :, 0, :]
    return out


class Weights(NamedTuple):
    """What a step of weights multiplies by: a matrix of shape (fan-in, units), and biases."""

    w: Array
    b: Array | None


class Step:
    """A step without parameters that is linear; ``kept`` is what the way back needs."""

    place: int | None = None  # of its parameters, among all steps that have some

    def forward(self, h: Pair, at: Any = None, along: Any = None) -> tuple[Pair, Any]:
        return (self.apply(h[0]), None if h[1] is None else self.apply(h[1])), None

    def backward(
        self, g: Pair, kept: Any, at: Any = None, along: Any = None, inputs: bool = True
    ) -> tuple[Pair, Any]:
        return (self.adjoint(g[0]), None if g[1] is None else self.adjoint(g[1])), None

    def apply(self, h: Array) -> Array:
        raise NotImplementedError

    def adjoint(self, g: Array) -> Array:
        raise NotImplementedError


class Pool(Step):
    """Weighted sums over windows."""

    def __init__(self, cut: Windows, taps: Sequence[float]) -> None:
        self.cut, self.taps = cut, taps

    def apply(self, h: Array) -> Array:
        return self.cut.sums(h, self.taps)

    def adjoint(self, g: Array) -> Array:
        return self.cut.spread_sums(g, self.taps)


class Mean(Step):
    """The mean over all positions, times a factor."""

    def __init__(self, positions: int, factor: float) -> None:
        self.positions, self.factor = positions, factor / positions

    def apply(self, h: Array) -> Array:
        return namespace_of(h).sum(h, axis=1, keepdims=True) * self.factor

    def adjoint(self, g: Array) -> Array:
        shape = (len(g), self.positions, g.shape[2])
        return namespace_of(g).broadcast_to(g, shape) * self.factor


class Flat(Step):
    """All positions side by side, times a factor."""

    def __init__(self, positions: int, factor: float) -> None:
        self.positions, self.factor = positions, factor

    def apply(self, h: Array) -> Array:
        h = reshaped(h, (len(h), 1, -1))
        return h if self.factor == 1 else h * self.factor

    def adjoint(self, g: Array) -> Array:
        g = reshaped(g, (len(g), self.positions, -1))
        return g if self.factor == 1 else g * self.factor


class Activate(Step):
    """An activation; the input is kept, with its derivative."""

    def __init__(self, activation: _Activation) -> None:
        self.activation = activation

    def forward(self, h: Pair, at: Any = None, along: Any = None) -> tuple[Pair, Any]:
        z, dz = h
        change = None if dz is None else self.activation.derivative(z) * dz
        return (self.activation(z), change), h

    def backward(
        self, g: Pair, kept: Any, at: Any = None, along: Any = None, inputs: bool = True
    ) -> tuple[Pair, Any]:
        (value, dg), (z, dz) = g, kept
        slope = self.activation.derivative(z)
        change = None if dg is None else dg * slope
        if dz is not None:
            change = plus(change, value * self.activation.second_derivative(z) * dz)
        slope *= value
        return (slope, change), None


class Weigh(Step):
    """Weights: ``z = scale c W + shift b``, c the inputs under each window."""

    def __init__(
        self, place: int, cut: Windows | None, positions: int, sizes: tuple[int, int],
        scale: float, shift: float,
    ) -> None:  # fmt: skip
        self.place, self.cut, self.positions, self.sizes = place, cut, positions, sizes
        self.scale, self.shift = scale, shift

    def forward(self, h: Pair, at: Any = None, along: Any = None) -> tuple[Pair, Any]:
        c, dc = (self._columns(x) for x in h)
        assert c is not None
        change = None if dc is None else self._times(dc, at.w, None)
        if along is not None:
            change = plus(change, self._times(c, along.w, along.b))
        return (self._times(c, at.w, at.b), change), (c, dc)

    def backward(
        self, g: Pair, kept: Any, at: Any = None, along: Any = None, inputs: bool = True,
        slopes: bool = True,
    ) -> tuple[Pair, Any]:  # fmt: skip
        """Return what goes back to the inputs, and the derivatives by the weights if asked for."""
        (c, dc), (value, dg) = kept, g
        found = self.slopes(c, value) if slopes else None
        change: Weights | None = None
        if dg is not None and slopes:
            change = self.slopes(c, dg)
        if dc is not None and slopes:
            more = self.slopes(dc, value)._replace(b=None)
            change = more if change is None else Weights(change.w + more.w, change.b)
        back: Any = (None, None)
        if inputs:
            back = (
                self._back(value, at.w),
                plus(
                    None if dg is None else self._back(dg, at.w),
                    None if along is None else self._back(value, along.w),
                ),
            )
        return back, (found, change)

    def slopes(self, c: Array, g: Array) -> Weights:
        """Return the derivatives by the weights of the sum of ``g z``."""
        rows = _rows(g)
        b = summed(rows, 0) * self.shift if self.shift else None
        w = _rows(c).T @ rows
        w *= self.scale
        return Weights(w, b)

    def _columns(self, h: Array | None) -> Array | None:
        return h if h is None or self.cut is None else self.cut.columns(h)

    def _times(self, c: Array, w: Array, b: Array | None) -> Array:
        z = _rows(c) @ w
        z *= self.scale
        if b is not None and self.shift:
            z += b * self.shift
        return reshaped(z, (*c.shape[:2], -1))

    def _back(self, g: Array, w: Array) -> Array:
        out = _rows(g) @ w.T
        out *= self.scale
        out = reshaped(out, (*g.shape[:2], -1))
        return out if self.cut is None else self.cut.spread(out)


def _rows(h: Array) -> Array:
    """Return all positions of all inputs one below the other."""
    return reshaped(h, (-1, h.shape[2]))


class Save(Step):
    """The start of a branch."""


class Swap(Step):
    """The end of the branch, and the start of the shortcut."""


class Merge(Step):
    """The end of the shortcut."""


class Tape(NamedTuple):
    """A pass through all steps: outputs, and what was kept on the way."""

    out: Pair
    kept: list[Any]


def still(tape: Tape) -> Tape:
    """Return a tape without derivatives in a direction."""
    return Tape(
        (tape.out[0], None), [None if pair is None else (pair[0], None) for pair in tape.kept]
    )


def forward(steps: Sequence[Step], h: Array, at: Sequence[Any], along: Any = None) -> Tape:
    """Go through all steps; ``along`` is a direction of the parameters, or None."""
    value: Pair = (h, None)
    kept: list[Any] = []
    stack: list[Pair] = []
    for step in steps:
        match step:
            case Save():
                stack.append(value)
                kept.append(None)
            case Swap():
                value, stack[-1] = stack[-1], value
                kept.append(None)
            case Merge():
                branch = stack.pop()
                value = value[0] + branch[0], plus(value[1], branch[1])
                kept.append(None)
            case _:
                where = (None, None)
                if step.place is not None:
                    where = at[step.place], None if along is None else along[step.place]
                value, keeps = step.forward(value, *where)
                kept.append(keeps)
    return Tape(value, kept)


def backward(
    steps: Sequence[Step], tape: Tape, g: Pair, at: Sequence[Any], along: Any = None,
    found: Any = None, inputs: bool = False, slopes: bool = True,
) -> Pair:  # fmt: skip
    """Go back through all steps; ``found(step, g, kept, (slopes, change))`` is told of weights.

    Derivatives by the weights are left out where ``slopes`` is False. Returns what arrives at the
    inputs, if they are asked for.
    """
    first = next((k for k, step in enumerate(steps) if step.place is not None), len(steps))
    stack: list[Pair] = []
    for k in reversed(range(len(steps))):
        step = steps[k]
        match step:
            case Merge():
                stack.append(g)
            case Swap():
                g, stack[-1] = stack[-1], g
            case Save():
                other = stack.pop()
                g = g[0] + other[0], plus(g[1], other[1])
            case _:
                where = (None, None)
                if step.place is not None:
                    where = at[step.place], None if along is None else along[step.place]
                before, onward = g, inputs or k > first
                if isinstance(step, Weigh):
                    g, made = step.backward(g, tape.kept[k], *where, onward, slopes)
                    if found is not None:
                        found(step, before, tape.kept[k], made)
                else:
                    g, _ = step.backward(g, tape.kept[k], *where, onward)
                if k == first and not inputs:
                    return g
    return g


# ---- programs


class Sized(NamedTuple):
    """Steps of a program for inputs of one shape, and the sizes of its weights."""

    steps: list[Step]
    entry: float  # what inputs are multiplied by
    weights: list[program.Weights]
    sizes: list[tuple[int, int]]
    taps: list[int]  # the positions under a window of each
    width: int  # of the outputs
    cost: int  # numbers that a pass keeps for one input, about


def sized(lowered: Program, shape: tuple[int, ...], widths: Sequence[int], ntk: bool) -> Sized:
    """Return the steps of a program; ``widths`` has one entry for every layer of weights."""
    found = lowered.run(_Sizing(lowered, shape, widths, ntk))
    assert isinstance(found, Sized)
    return found


class _Sizing:
    """The interpreter that gives every node its sizes."""

    def __init__(
        self, lowered: Program, shape: tuple[int, ...], widths: Sequence[int], ntk: bool
    ) -> None:
        self.left, self.ntk = len(lowered), ntk
        self.positions, self.channels = shape[:-1], shape[-1]
        self.widths = iter(widths)
        self.made = Sized([], 1.0, [], [], [], 0, 0)
        self.cost = 0
        self.stack: list[tuple[tuple[int, ...], int]] = []

    def _add(self, step: Step) -> Sized | None:
        self.made.steps.append(step)
        self.cost += math.prod(self.positions) * self.channels
        return self._end()

    def _end(self) -> Sized | None:
        self.left -= 1
        return None if self.left else self.made._replace(width=self.channels, cost=self.cost)

    def input(self, node: program.Input) -> Sized | None:
        assert node.of in ("mean", "sum")  # as in every Sequential
        entry = math.sqrt(self.channels) if node.of == "sum" else 1.0
        self.made = self.made._replace(entry=entry)
        return self._end()

    def weights(self, node: program.Weights) -> Sized | None:
        cut = None
        if node.window is not None:
            cut = Windows(node.window, self.positions, node.layer)
            self.positions = cut.shape
            self.cost += math.prod(cut.shape) * cut.taps * self.channels
        taps = 1 if cut is None else cut.taps
        sizes = taps * self.channels, next(self.widths)
        self.channels = sizes[1]
        scale, shift = (node.w_std / math.sqrt(sizes[0]), node.b_std) if self.ntk else (1.0, 1.0)
        place = len(self.made.sizes)
        self.made.weights.append(node)
        self.made.sizes.append(sizes)
        self.made.taps.append(taps)
        shift = shift if node.b_std else 0.0
        return self._add(Weigh(place, cut, math.prod(self.positions), sizes, scale, shift))

    def apply(self, node: program.Apply) -> Sized | None:
        _check.must(
            isinstance(node.function, _Activation), "network",
            "have activations alone between its weights", repr(node.function),
        )  # fmt: skip
        return self._add(Activate(node.function))

    def pool(self, node: program.Pool) -> Sized | None:
        cut = Windows(node.window, self.positions, node.layer)
        taps = node.taps * len(self.positions) if node.window.every else node.taps
        products = [float(math.prod(each)) for each in itertools.product(*taps)]
        self.positions = cut.shape
        return self._add(Pool(cut, products))

    def readout(self, node: program.Readout) -> Sized | None:
        count = math.prod(self.positions)
        factor = (math.sqrt(count) if node.equal else float(count)) if node.total else 1.0
        if node.equal:
            self.channels *= count
        self.positions = ()
        return self._add((Flat if node.equal else Mean)(count, factor))

    def save(self, node: program.Save) -> Sized | None:
        self.stack.append((self.positions, self.channels))
        return self._add(Save())

    def swap(self, node: program.Swap) -> Sized | None:
        branch = self.positions, self.channels
        self.positions, self.channels = self.stack.pop()
        self.stack.append(branch)
        return self._add(Swap())

    def merge(self, node: program.Merge) -> Sized | None:
        branch, here = self.stack.pop(), (self.positions, self.channels)
        _check.must(
            branch == here, "network", f"have equal shapes on both sides of {node.layer!r}",
            f"{_shown(*branch)} and {_shown(*here)}",
        )  # fmt: skip
        return self._add(Merge())


def _shown(positions: tuple[int, ...], channels: int) -> str:
    return " x ".join(map(str, (*positions, channels)))
