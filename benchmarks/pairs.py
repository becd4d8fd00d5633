"""Pairs of images: what they cost in entries and in seconds."""

import time

import numpy as np
from probe import network, points

SIDE, CHANNELS, THREADS = 32, 3, 2
FIVE, FIVE_FLAT, TEN = "cr" * 5 + "go", "cr" * 5 + "fo", "cr" * 10 + "go"  # letters of probe.py
MYRTLE = "crcrpcrpcrgo"


def entries(letters):
    """Entries of one pair, summed over convolutions: all pairs of positions of each one's grid, or
    the equal positions where a Flatten is to come.
    """
    total, side = 0, SIDE
    for letter in letters:
        if letter == "c":
            total += side**2 if "f" in letters else side**4
        side //= 2 if letter == "p" else 1
    return total


def images(n, dtype=np.float32):
    return points(n, SIDE, SIDE, CHANNELS, dtype=dtype)


def batch(net, kernel, shape, n_threads=THREADS, dtype=np.float32):
    """A function that returns the seconds per pair of K(X, Y), n images against m others."""
    n, m = shape
    x = images(n + m, dtype=dtype)
    call = getattr(network(net) if isinstance(net, str) else net, kernel)

    def measure():
        start = time.perf_counter()
        call(x[:n], x[n:], n_threads=n_threads)
        return (time.perf_counter() - start) / (n * m)

    call(x[:1], x[n : n + 1], n_threads=n_threads)  # modules loaded, the plan made
    return measure
