"""Compiled loops that other rooms call: power series, harmonics, waves, thin products.

Series and harmonics are always computed here, in double precision; waves and products follow their
array.
"""

from __future__ import annotations

import numpy as np

from . import calls, dispatch

Array = np.ndarray


# ---- power series


def multiply(a: Array, b: Array) -> Array:
    """The product of two series of one length, cut to it."""
    out = np.empty_like(a)
    dispatch.driver("gegenbauer").multiply(a, b, out)
    return out


def inverse_root(w: Array, gap: float) -> Array:
    """``(1 - w)^(-1/2)``; ``gap`` is 1 - w[0]."""
    out, scratch = np.empty_like(w), np.empty_like(w)
    dispatch.driver("gegenbauer").inverse_root(w, gap, out, scratch)
    return out


def shifted(c: Array, x: float) -> Array:
    """The coefficients of a polynomial about x."""
    c = c.copy()
    dispatch.driver("gegenbauer").shift(c, x)
    return c


# ---- harmonics


def lanes() -> int:
    """What the number of points is rounded up to."""
    return dispatch.driver("gegenbauer").WIDTH


def project(
    n: Array, x: Array, exponent: Array, base: int, dim: int, first: Array, watched: Array,
    degrees: int, n_threads: int,
) -> Array:  # fmt: skip
    """Sums of powers of the cosine, degree by degree (gegenbauer.h); (jobs, degrees, 4)."""
    out = np.zeros((len(n), degrees, 4))
    dispatch.driver("gegenbauer").project(
        calls.Terms(n, x, exponent, np.empty(n.shape)), (base, dim), first, watched, out, n_threads,
    )  # fmt: skip
    return out


def integrate(t: Array, values: Array, dim: int, degrees: int) -> Array:
    """Sums over nodes t of values times Legendre polynomials of degrees below ``degrees``."""
    out, scratch = np.empty(degrees), np.empty(2 * len(t))
    dispatch.driver("gegenbauer").integrate(t, values, float(dim), out, scratch)
    return out


# ---- waves, in place


def shifted_cosines(out: Array, phases: Array, scale: float) -> None:
    """``out <- scale cos(out + phases)``."""
    dispatch.driver("waves").shifted_cosines(out, phases, scale)


def cosines_and_sines(out: Array, scale: float) -> None:
    """The first half of the columns become ``scale cos``, and the second ``scale sin`` of them."""
    dispatch.driver("waves").cosines_and_sines(out, scale)


# ---- products of a tall matrix with few columns, added to y


def thin_rows() -> int:
    """Rows that are done together."""
    return dispatch.driver("thin").ROWS


def thin_normal(K: Array, columns: Array, y: Array, room: Array, n_threads: int) -> None:
    """``y <- y + K'K columns``, in one reading of K; room for K times the columns of a block."""
    dispatch.driver("thin").normal(K, columns, y, room, n_threads)


def thin_transposed(K: Array, t: Array, y: Array, rows: int, n_threads: int) -> None:
    """``y <- y + K't``, in blocks of so many rows."""
    dispatch.driver("thin").transposed(K, t, y, rows, n_threads)
