"""What rows look up of a numerical dual: interpolants in their standard deviation.

The normalised Hermite coefficients of a function are smooth in sd. Each octave of sd is divided
into four cells, which are made when a row first asks for them and are then kept: a cell has all
tables as polynomials in sd, from quadratures at its Chebyshev nodes. Cells depend on the function
and on the precision alone, so that a row's tables depend on nothing but its sd. Functions that need
all orders (``hermite.climbs``) have no cells, but a quadrature for each sd.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import _check
from ..._types import Array
from ...program import Sampled
from . import dispatch, hermite, ladder

NODES = 16
"""The number of quadratures for a cell; a quarter of an octave of a smooth function needs 13."""
_COSINES = np.cos(np.pi * np.arange(NODES)[:, None] * (np.arange(NODES) + 0.5) / NODES)
PARTS = 4
HALVINGS = 3
"""How often a cell is cut into two where its polynomials do not resolve it."""
MOST_CELLS = 512
_LEAST, _LARGEST = 2.0**-500, 2.0**500  # beyond, rows have quadratures of their own
_EPS = float(np.finfo(float).eps)
_NO_CELL, _ZERO = -(2**62), 2**62  # keys of rows without a cell, and of those with sd = 0


class Tables(NamedTuple):
    """Of some rows: the new sd, ``E[phi'^2]``, and coefficients over the new sd, (count, rows).

    Coefficients are ``ladder.packed``.
    """

    sd: Array
    slope: Array
    coefficients: Array
    error: Array  # (2, rows), as quadrature estimates it


class _Cell(NamedTuple):
    polynomials: Array  # (2 + count, terms): of the new sd, of the slope, of the coefficients
    error: Array


class _Part(NamedTuple):
    """Some rows: a cell's polynomials at t, or values where t is None."""

    rows: Array
    t: Array | None
    values: Array
    error: Array


class Interpolant:
    """The tables of a function for numbers of some precision."""

    def __init__(self, form: Sampled, tolerance: float) -> None:
        self.fn, self.tolerance = form.fn, tolerance
        single = tolerance > np.finfo(np.float32).eps / 8
        self.each = (ladder.SINGLE if single else ladder.EACH) if laddered(form) else 0
        self.parity = parity(form)
        self._cells: dict[tuple[int, int], _Cell | None] = {}

    def __call__(self, sd: Array, n_threads: int) -> Tables:
        """Return the tables of rows."""
        found = self._look_up(sd, np.arange(len(sd)), 0, n_threads)
        count = max((len(part.values) for part in found), default=3)
        _check.room("tables of numerical duals", (count, len(sd)), float, 2, ("fewer points",))
        values, errors = np.empty((count, len(sd))), np.empty((2, len(sd)))
        interpolate = dispatch.driver("dense").interpolate
        for at, t, some, error in found:
            if t is None:
                values[: len(some), at] = some
            else:
                interpolate(some, t, at, values)
            if len(some) < count:
                values[len(some) :, at] = 0.0
            errors[:, at] = error
        # Squares add up to 1 to rounding, not to the interpolants' errors: a row and its copy have
        # correlation 1. They are added in order: zeros at a row's end change nothing.
        a = values[2:]
        size, square = np.zeros(len(sd)), np.empty(len(sd))
        for row in a:
            size += np.multiply(row, row, out=square)
        size[size == 0] = 1.0
        a /= np.sqrt(size)
        return Tables(values[0], values[1], a, errors)

    def _look_up(self, sd: Array, at: Array, level: int, n_threads: int) -> list[_Part]:
        """Return, cell by cell, what rows ``at`` of these sd find there."""
        if len(sd) == 0:
            return []
        if not self.each:  # errors of the rule at a kink are not smooth in sd
            return [self._alone(sd, at, n_threads)]
        fraction, exponent = np.frexp(sd)
        parts = PARTS << level
        within = (fraction - 0.5) * (2 * parts)
        part = np.floor(within)
        t = 2 * (within - part) - 1
        keys = exponent * np.int64(parts) + part.astype(np.int64)
        if not (sd.min() >= _LEAST and sd.max() <= _LARGEST):
            keys[~((sd >= _LEAST) & (sd <= _LARGEST))] = _NO_CELL
            keys[sd == 0] = _ZERO
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=_NO_CELL - 1))
        found: list[_Part] = []
        for rows in np.split(order, starts[1:]):
            key = int(keys[rows[0]])
            cell = None if key == _NO_CELL else self._cell(level, key, n_threads)
            if cell is not None:
                found.append(_Part(at[rows], t[rows], cell.polynomials, cell.error[:, None]))
            elif key == _NO_CELL or level == HALVINGS:
                found.append(self._alone(sd[rows], at[rows], n_threads))
            else:
                found += self._look_up(sd[rows], at[rows], level + 1, n_threads)
        return found

    def _alone(self, sd: Array, at: Array, n_threads: int) -> _Part:
        """Return what rows without a cell have."""
        values, error = self._quadrature(sd, n_threads)
        return _Part(at, None, self._packed(values), error)

    def _packed(self, values: Array) -> Array:
        packed = ladder.packed(values[2:], self.parity)
        return np.ascontiguousarray(np.concatenate([values[:2], packed]))

    def _quadrature(self, sd: Array, n_threads: int) -> tuple[Array, Array]:
        """Return the tables of a cell, with their first two rows, at given points."""
        a, variance, error = quadrature(
            self.fn, self.each, sd, n_threads, self.tolerance, self.parity
        )
        new = np.sqrt(variance)
        # Terms are summed in order: zeros at a row's end, which longer rows need, change nothing.
        derivative = np.add.accumulate(orders(self.each, len(a))[:, None] * a * a, axis=0)[-1]
        square = sd * sd
        slope = np.divide(derivative, square, out=np.zeros_like(sd), where=square > 0)
        a = np.divide(a, new, out=np.zeros_like(a), where=new > 0)
        return np.concatenate([new[None], slope[None], a]), error

    def _cell(self, level: int, key: int, n_threads: int) -> _Cell | None:
        """Return a cell, which is made when it is not there; None where it is not resolved."""
        if (level, key) not in self._cells:
            if len(self._cells) >= MOST_CELLS:
                self._cells.pop(next(iter(self._cells)), None)
            self._cells[level, key] = self._make(level, key, n_threads)
        return self._cells[level, key]

    def _make(self, level: int, key: int, n_threads: int) -> _Cell | None:
        if key == _ZERO:
            values, error = self._quadrature(np.zeros(1), n_threads)
            return _Cell(self._packed(values[: 2 + self._length(values[2:])]), error[:, 0])
        parts = PARTS << level
        exponent, part = divmod(key, parts)
        sd = np.ldexp(0.5 + (part + (1 + _COSINES[1]) / 2) / (2 * parts), exponent)
        try:
            values, error = self._quadrature(sd, n_threads)
        except ValueError:  # the function is infinite at one of the nodes, but not for every row
            return None
        count = len(values) - 2
        weights = ladder.weights(ladder.octaves_in(count, self.each), self.each)
        size = np.maximum(np.abs(values[:2]).max(1), np.finfo(float).tiny)
        size = np.concatenate([size, np.sqrt(weights)])[:, None]
        # The last two may stand for a rest, a root of what is right to rounding.
        size[-2:] = np.maximum(size[-2:], 1 / np.maximum(np.abs(values[-2:]).max(1), 1e-6)[:, None])
        polynomials = (values[:, None] * _COSINES).sum(2) * (2 / NODES)
        polynomials[:, 0] /= 2
        seen = np.abs(polynomials / size)
        least = max(self.tolerance / 4, _EPS)
        allowed = np.full((len(values), 1), 16 * least)
        allowed[1] += 1e-3 * error[1].max()  # of a slope that is known no better
        if not (seen[:, -2:] <= allowed).all():
            return None
        terms = int(np.flatnonzero((seen > least / 2).any(0)).max(initial=0)) + 1
        kept = self._length(values[2:] / np.sqrt(weights)[:, None])
        return _Cell(self._packed(polynomials[: 2 + kept, :terms]), error.max(1))

    def _length(self, a: Array) -> int:
        """Return how many coefficients matter, each by its size: a partner's may be large."""
        least = max(self.tolerance, 4 * _EPS)
        kept = int(np.flatnonzero((np.abs(a) > least).any(1)).max(initial=1)) + 1
        if kept > ladder.first(self.each):
            kept = ladder.length(ladder.octaves_in(kept, self.each), self.each)
        return min(kept, len(a))


def orders(each: int, count: int) -> Array:
    """Return the orders of the first ``count`` coefficients; ``each`` is 0 where all are there."""
    if not each:
        return np.arange(count)
    return ladder.orders(ladder.octaves_in(count, each), each)[:count]


def quadrature(
    fn: Callable[[Any], Any], each: int, sd: Array, n_threads: int, tolerance: float = _EPS / 4,
    parity: int = ladder.NEITHER,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return coefficients, variance and errors at each sd by itself."""
    if not each:
        return hermite.by_quadrature(fn, sd, tolerance, n_threads)
    a, variance, error = hermite.on_ladder(fn, sd, each, n_threads)
    if parity != ladder.NEITHER:
        # Rounding, or what a function that is not of this parity everywhere is off by.
        others = a[2 + parity % 2 :: 2]
        missed = np.divide((others**2).sum(0), variance, out=0 * variance, where=variance > 0)
        error += np.where(missed > 1e-12, missed, 0.0)
        others[...] = 0.0
    return a, variance, error


def laddered(form: Sampled) -> bool:
    """Return whether the coefficients of a function are those of ``ladder``."""
    try:
        hash(form)
    except TypeError:  # such a function has duals, but is in no network
        return hermite.climbs(form.fn, 1)
    return _laddered(form)


@functools.lru_cache(64)
def _laddered(form: Sampled) -> bool:
    return hermite.climbs(form.fn, 1)


def parity(form: Sampled) -> int:
    """Return which coefficients of ``ladder`` are there."""
    return hermite.parity(form.fn) if laddered(form) else ladder.NEITHER


@functools.lru_cache(64)
def interpolant(form: Sampled, tolerance: float) -> Interpolant:
    """Return the tables of a function, which are kept for the next call."""
    return Interpolant(form, tolerance)
