"""Derivatives of a program's kernels of rows by numbers of the program, in forward mode.

A walk carries K, T and the variances of a tile, and for each number the derivatives of all four.
Weights ``K <- w^2 K + b^2``, ``T <- K + w^2 T`` are polynomials of their numbers; what a function
does follows from its dual ``D(v1, v2, c)`` and from that of its derivative, by the chain rule.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._types import Array
from ...program import (
    Apply,
    Form,
    Homogeneous,
    Input,
    Merge,
    Powers,
    Program,
    Save,
    Swap,
    Unchanged,
    Weights,
)
from . import dispatch
from .derivatives import Dual, _inverse, dual

Places = tuple[tuple[int, str], ...]
"""Where a number stands: nodes, and the name that it has there."""


class State(NamedTuple):
    """K and T of a tile and the variances of both sides, or the derivatives of all four."""

    k: Any
    t: Any
    v1: Array
    v2: Array

    def times(self, factor: float) -> State:
        return State(*(factor * part for part in self))

    def plus(self, other: State) -> State:
        return State(*(a + b for a, b in zip(self, other, strict=True)))


class Walk:
    """An interpreter of a program of rows: a tile, with derivatives by some numbers."""

    def __init__(self, x: Array, y: Array, tangent: bool, places: tuple[Places, ...]) -> None:
        self.x, self.y, self.tangent, self.places = x, y, tangent, places
        self.place = 0
        self.rates: dict[int, State] = {}  # of the numbers that were met
        self.saved: list[tuple[State, dict[int, State]]] = []

    def _here(self, name: str) -> list[int]:
        """Return which numbers stand at this node, under a name."""
        return [j for j, places in enumerate(self.places) if (self.place, name) in places]

    def _add(self, j: int, rate: State) -> None:
        self.rates[j] = self.rates[j].plus(rate) if j in self.rates else rate

    def input(self, node: Input) -> None:
        # series want columns that are padded, and rows where the sides change places
        width = dispatch.driver("slopes").WIDTH
        x, y = (np.pad(a, ((0, -len(a) % width), (0, 0))) for a in (self.x, self.y))
        scale = 1 / x.shape[1] if node.of == "mean" else 1.0
        squares = (np.einsum("ij,ij->i", a, a) * scale for a in (x, y))
        self.at = State(x @ (scale * y.T), 0.0, *squares)

    def weights(self, node: Weights) -> None:
        w, before = node.w_std**2, self.at
        self.rates = {j: rate.times(w) for j, rate in self.rates.items()}
        for j in self._here("w_std"):
            self._add(j, before.times(2 * node.w_std))
        for j in self._here("b_std"):
            more = 2 * node.b_std
            sides = (np.full_like(v, more) for v in (before.v1, before.v2))
            self._add(j, State(more, 0.0, *sides))
        k, t, v1, v2 = before.times(w)
        bias = node.b_std**2
        self.at = State(k + bias, t, v1 + bias, v2 + bias)
        if node.trained and self.tangent:
            self.at = self.at._replace(t=self.at.t + self.at.k)
            self.rates = {j: rate._replace(t=rate.t + rate.k) for j, rate in self.rates.items()}

    def apply(self, node: Apply) -> None:
        form, function = node.form, node.function
        if isinstance(form, Unchanged):
            return
        k, t, v1, v2 = self.at
        d, by_v2, slope_v2 = _by_both(form, v1, v2, k, function)
        own1, own2 = (dual(form, v, v, v, function) for v in (v1, v2))
        rise1, rise2 = (2 * own.v + own.c for own in (own1, own2))

        def chain(rate: State) -> State:
            side = rate.v1[:, None]
            along = d.c * rate.k + d.v * side + by_v2 * rate.v2
            if not self.tangent:
                return State(along, 0.0, rise1 * rate.v1, rise2 * rate.v2)
            bend = d.slope_c * rate.k + d.slope_v * side + slope_v2 * rate.v2
            return State(along, d.slope * rate.t + t * bend, rise1 * rate.v1, rise2 * rate.v2)

        self.rates = {j: chain(rate) for j, rate in self.rates.items()}
        if isinstance(form, Powers):
            for name in ("scale", "offset"):
                for j in self._here(name):
                    self._add(j, State(_power(form, name, k), 0.0, *_sides(form, name, v1, v2)))
        self.at = State(d.value, d.slope * t, own1.value, own2.value)

    def save(self, node: Save) -> None:
        self.saved.append((self.at, self.rates))

    def swap(self, node: Swap) -> None:
        (self.at, self.rates), self.saved[-1] = self.saved[-1], (self.at, self.rates)

    def merge(self, node: Merge) -> None:
        at, rates = self.saved.pop()
        self.at = self.at.plus(at)
        for j, rate in rates.items():
            self._add(j, rate)


def _by_both(
    form: Form, v1: Array, v2: Array, c: Array, function: Any
) -> tuple[Dual, Array, Array]:
    """Return the dual, and the derivatives by v2 of it and of what multiplies T."""
    d = dual(form, v1[:, None], v2, c, function)
    if isinstance(form, Homogeneous):  # a function of c and v1 v2
        ratio = v1[:, None] * _inverse(v2)
        return d, d.v * ratio, d.slope_v * ratio
    other = dual(form, v2[:, None], v1, np.ascontiguousarray(c.T), function)
    return d, np.transpose(other.v), np.transpose(other.slope_v)


def _power(form: Powers, name: str, c: Array) -> Array:
    """Return the derivative of ``(scale c + offset)^degree`` by one of its numbers."""
    rate = form.degree * (form.scale * c + form.offset) ** (form.degree - 1)
    return rate * c if name == "scale" else rate


def _sides(form: Powers, name: str, v1: Array, v2: Array) -> tuple[Array, Array]:
    return _power(form, name, v1), _power(form, name, v2)


def tangents(
    program: Program, places: tuple[Places, ...], x: Array, y: Array, tangent: bool
) -> tuple[Array, list[Array]]:
    """Return one of a program's kernels of rows in float64, and its derivatives by numbers."""
    walk = Walk(x, y, tangent, places)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for walk.place, node in enumerate(program):
            getattr(walk, node.kind)(node)
    n, m = len(x), len(y)

    def of(state: State) -> Array:
        value = state.t if tangent else state.k
        return np.broadcast_to(value, walk.at.k.shape)[:n, :m]

    none = np.zeros((n, m))
    return of(walk.at), [of(walk.rates[j]) if j in walk.rates else none for j in range(len(places))]
