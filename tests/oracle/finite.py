"""A finite network, one position and one unit at a time, on numbers that may be complex.

A derivative in a direction is the imaginary part of the value at ``theta + i h v`` over h, without
any cancellation, so that h is tiny and the derivative exact to rounding.
"""

import cmath
import itertools
import math


def conv(h, shape, w, b, window, stride, padding, scale, shift):
    """Return a convolution of ``h[position][channel]``, by its definition; and its shape."""
    outs, lows = [], []
    for n, k, s in zip(shape, window, stride, strict=True):
        out = (n - k) // s + 1 if padding == "valid" else -(-n // s)
        outs.append(out)
        lows.append(0 if padding == "valid" else max((out - 1) * s + k - n, 0) // 2)
    channels, units = len(next(iter(h.values()))), len(w[0])
    found = {}
    for at in itertools.product(*map(range, outs)):
        column = []
        for tap in itertools.product(*map(range, window)):
            place = [p * s - low + t for p, s, low, t in zip(at, stride, lows, tap, strict=True)]
            if padding == "circular":
                place = [p % n for p, n in zip(place, shape, strict=True)]
            column += h.get(tuple(place), [0.0] * channels)
        found[at] = [
            scale * sum(c * w[i][j] for i, c in enumerate(column)) + (shift * b[j] if b else 0.0)
            for j in range(units)
        ]
    return found, tuple(outs)


def images(x, weights, alpha=1.0):
    """The output of Conv(3, stride 2, b_std 0.5), Tanh, Conv(2, valid), Tanh, mean, Dense(1.5)."""
    shape = len(x), len(x[0])
    h = {(i, j): list(x[i][j]) for i in range(shape[0]) for j in range(shape[1])}
    (w1, b1), (w2, _), (w3, _) = weights
    h, shape = conv(h, shape, w1, b1, (3, 3), (2, 2), "same", len(w1) ** -0.5, 0.5)
    h = {at: [cmath.tanh(v) for v in row] for at, row in h.items()}
    h, shape = conv(h, shape, w2, None, (2, 2), (1, 1), "valid", 1.2 * len(w2) ** -0.5, 0.0)
    rows = [[cmath.tanh(v) for v in row] for row in h.values()]
    mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    return alpha * 1.5 / math.sqrt(len(w3)) * sum(m * w[0] for m, w in zip(mean, w3, strict=True))
