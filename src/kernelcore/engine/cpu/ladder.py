"""Sums over all orders of a Hermite series from few of them.

The terms of Mehler's series, ``a_n(sd1) a_n(sd2) u^n``, are smooth in n for n of one parity. From
order ``4 e`` on an octave is therefore summed by e terms of each parity, as an integral would be:

    sum_n f(n)  =  sum_n weight(n) f(n),  n < 4 e and n = 2 (e + k) 2^b + (0 or 1),  k < e, b >= 1.

The weights are those with which it holds for f = u^n and f = n u^n at all 0 <= u < 1, to 1e-15
with e = 8 and to 4e-9 with e = 4, which float32 has; and hence for mixtures of these: powers of n
and exp(-sqrt n), which is what coefficients of smooth functions look like. ``series.h`` sums.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ..._types import Array

EACH = 8
"""The number of orders of one parity in an octave, in double precision."""
SINGLE = 4
"""The same in single precision: every other one of them."""
NEITHER, EVEN, ODD = range(3)
"""Of which parity a function is, but for a multiple of x or a constant: ``parity`` in series.h."""
_WKB = 256  # from this order on Hermite functions come from their asymptotics

# Of the first orders, by pairs; of the first octave; and of any later one, over 2^b. Least squares.
_WEIGHTS = {EACH: np.array([
    1.0, 1.0, 0.9999999999999577, 1.0000000000083769,
    0.9999999994190301, 1.000000021281901, 0.9999995192859119, 1.0000072628030778,
    0.9999229102179494, 1.000592455442128, 0.9966508933073702, 1.0139428818493,
    0.9581031137991497, 1.0847394420163623, 0.9141887110885307, 0.9157364124095144,
    0.7535380438256236, 1.0932724492741184, 0.9291970593794484, 1.055980022882881,
    0.959285412056, 1.0293754202479761, 1.0064071131559478, 0.830800635279827,
    0.7739775449234583, 1.0884688256048878, 0.931250267624119, 1.055067617924753,
    0.9596369203257312, 1.0292718405454724, 1.0064272298543586, 0.830798736980268,
]), SINGLE: np.array([
    0.9999999999968764, 0.9999999995671017, 1.0000004644991385, 0.9999741130035212,
    1.0005597444187926, 0.9936368252627272, 1.0433185977232253, 0.8117075386796073,
    0.7682219177902232, 1.1010372501616401, 0.9483306158467042, 0.8857279481679454,
    0.7510760178316049, 1.10472793445599, 0.9472432329410516, 0.8859110196813269,
])}  # fmt: skip


def first(each: int) -> int:
    """Return the number of the first orders, all of which are there."""
    return 4 * each


def length(octaves: int, each: int) -> int:
    """Return the number of orders up to the end of an octave."""
    return first(each) + 2 * each * octaves


def octaves_in(count: int, each: int) -> int:
    """Return how many octaves, begun or whole, are among the first ``count`` orders."""
    return max(0, -(-(count - first(each)) // (2 * each)))


@functools.lru_cache(128)
def orders(octaves: int, each: int = EACH) -> Array:
    """Return the orders, in the order of tables: the first ones, then octave by octave."""
    steps = np.arange(each, 2 * each)
    pairs = [np.arange(2 * each), *(steps << b for b in range(1, octaves + 1))]
    return (2 * np.concatenate(pairs)[:, None] + [0, 1]).ravel()


@functools.lru_cache(128)
def weights(octaves: int, each: int = EACH) -> Array:
    """Return the weights of ``orders``."""
    low, second, later = np.split(_WEIGHTS[each], [2 * each, 3 * each])
    scaled = [second * 2.0, *(later * 2.0**b for b in range(2, octaves + 1))]
    return np.repeat(np.concatenate([low, *scaled[:octaves]]), 2)


def packed(a: Array, parity: int) -> Array:
    """Return tables of the orders that are there: the one of 0 and 1 that is alone, then others."""
    if parity == NEITHER:
        return a
    alone = parity % 2
    return np.concatenate([a[alone : alone + 1], a[1 - alone :: 2]])


def unpacked(tables: Array, parity: int) -> Array:
    """Return the orders of ``packed`` in their places, with zeros where none are."""
    if parity == NEITHER:
        return tables
    alone = parity % 2
    a = np.zeros((2 * len(tables) - 2, *tables.shape[1:]))
    a[alone], a[1 - alone :: 2] = tables[0], tables[1:]
    return a


def octaves_of(step: float, each: int = EACH) -> int:
    """Return how many octaves a rule of this step resolves: orders to 8 / step^2, 2.8 radians."""
    return round(math.log2(8 / step**2 / first(each)))


@functools.lru_cache(1)
def functions(step: float, reach: float) -> tuple[Array, Array]:
    """Return ``sqrt(weight) h_n(z) exp(-z^2/4)`` for even and odd orders, at z = 0, step, .. reach.

    Signs may differ from those of h_n: they are the same in every series. The functions solve
    ``y'' + (E - z^2/4) y = 0``, E = n + 1/2. High orders have ``y = sqrt(c/w) cos p``, or the sine,
    with ``p' = w`` and asymptotic series of w and p in 1/E^2 (WKB), of which the terms left out
    are below 1e-14 from order 256 on.
    """
    octaves = octaves_of(step)
    n, root = orders(octaves), np.sqrt(weights(octaves))
    z = np.arange(round(reach / step) + 1) * step
    out = np.empty((len(n), len(z)))
    places = dict(zip(n.tolist(), range(len(n)), strict=True))
    last, h = np.zeros_like(z), np.exp(-z * z / 4)
    for k in range(min(_WKB, int(n[-1]) + 1)):
        if k in places:
            out[places[k]] = h
        last, h = h, (z * h - math.sqrt(k) * last) / math.sqrt(k + 1)
    for at in np.flatnonzero(n >= _WKB).tolist():
        out[at] = _oscillation(float(n[at]) + 0.5, z, at % 2)
    out *= root[:, None]
    return np.ascontiguousarray(out[0::2]), np.ascontiguousarray(out[1::2])


def _oscillation(e: float, z: Array, odd: int) -> Array:
    """Return a Hermite function of high order, up to its sign; z = 2 sqrt(e) sin b, t = tan b."""
    sine = z / (2 * math.sqrt(e))
    square = (1 - sine) * (1 + sine)
    t2, y, eps = sine * sine / square, 1 / square, e**-2
    t = np.sqrt(t2)
    first = (1 / 8 + 5 / 48 * t2) * t
    inner = -221 / 512 - 1105 / 9216 * t2
    inner = -19 / 256 + t2 * (-259 / 768 + t2 * (-2949 / 5120 + t2 * inner))
    phase = e * (np.arcsin(sine) + sine * np.sqrt(square)) + e * eps * (first + eps * inner * t)
    p1 = y * y * (5 * y - 3) / 16
    p2 = y**4 * (-9 / 32 + y * (81 / 64 - y * (135 / 128)))
    w = np.sqrt(e * square * (1 + eps * (p1 + eps * p2)))
    wave = np.sin(phase) if odd else np.cos(phase)
    return (2 / math.pi) ** 0.25 / np.sqrt(w) * wave
