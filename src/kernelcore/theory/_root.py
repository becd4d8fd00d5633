"""Roots of falling functions of a logarithm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._types import Array

STEPS = 400
"""More than bisection alone needs to close any bracket of logarithms."""


def falling(
    of: Callable[[Array, Array], tuple[Array, Array]], low: Array, high: Array, start: Array
) -> Array:
    """Where a falling function crosses zero, many at once, to the last bit of x.

    ``of(x, which)`` returns the function and minus its derivative for the problems ``which``; it is
    not negative at low and not positive at high. Newton's method, with bisection where it would
    leave the bracket or does not halve its steps, as on the plateaux between levels.
    """
    low, high, x = low.copy(), high.copy(), np.clip(start, low, high)
    last = high - low
    which = np.arange(len(x))
    for _ in range(STEPS):
        if not len(which):
            break
        at = x[which]
        off, slope = of(at, which)
        low[which] = np.where(off >= 0, at, low[which])
        high[which] = np.where(off <= 0, at, high[which])
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            to = at + off / slope
        width = high[which] - low[which]
        newton = (to >= low[which]) & (to <= high[which]) & (np.abs(to - at) <= last[which] / 2)
        to = np.where(newton, to, low[which] + width / 2)
        to = np.where(off == 0, at, to)
        last[which] = np.where(newton, np.abs(to - at), width)
        x[which] = to
        which = which[np.abs(to - at) > 2e-16 * np.maximum(1.0, np.abs(to))]
    return x
