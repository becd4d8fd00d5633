"""Compiled loops that other rooms call: power series, harmonics, waves, thin products.

Series and harmonics are always computed here, in double precision; waves and products have the
dtype of their array.
"""

from __future__ import annotations

import numpy as np

from ..._types import Array
from . import calls, dispatch

# ---- power series


def multiply(a: Array, b: Array) -> Array:
    """Return the product of two series of one length, cut to that length."""
    out = np.empty_like(a)
    dispatch.driver("gegenbauer").multiply(a, b, out)
    return out


def inverse_root(w: Array, gap: float) -> Array:
    """Return ``(1 - w)^(-1/2)``; ``gap`` is 1 - w[0]."""
    out, scratch = np.empty_like(w), np.empty_like(w)
    dispatch.driver("gegenbauer").inverse_root(w, gap, out, scratch)
    return out


def shifted(c: Array, x: float) -> Array:
    """Return the coefficients of a polynomial about x."""
    c = c.copy()
    dispatch.driver("gegenbauer").shift(c, x)
    return c


# ---- harmonics


def lanes() -> int:
    """Return the number that divides the count of points, which are padded to fit."""
    return dispatch.driver("gegenbauer").WIDTH


def project(
    n: Array, x: Array, exponent: Array, base: int, dim: int, first: Array, watched: Array,
    degrees: int, n_threads: int,
) -> Array:  # fmt: skip
    """Sum powers of the cosine, degree by degree (gegenbauer.h); return (jobs, degrees, 4)."""
    out = np.zeros((len(n), degrees, 4))
    dispatch.driver("gegenbauer").project(
        calls.Terms(n, x, exponent, np.empty(n.shape)), (base, dim), first, watched, out, n_threads,
    )  # fmt: skip
    return out


def integrate(t: Array, values: Array, dim: int, degrees: int) -> Array:
    """Sum values times Legendre polynomials over nodes t, for degrees below ``degrees``."""
    out, scratch = np.empty(degrees), np.empty(2 * len(t))
    dispatch.driver("gegenbauer").integrate(t, values, float(dim), out, scratch)
    return out


# ---- waves, in place


def shifted_cosines(out: Array, phases: Array, scale: float) -> None:
    """Set ``out <- scale cos(out + phases)``."""
    dispatch.driver("waves").shifted_cosines(out, phases, scale)


def cosines_and_sines(out: Array, scale: float) -> None:
    """Replace z, the left half of the columns, by ``scale cos z``, the right by ``scale sin z``."""
    dispatch.driver("waves").cosines_and_sines(out, scale)


# ---- products of a tall matrix with few columns, added to y


def thin_rows() -> int:
    """Return the number of rows that a product takes at a time."""
    return dispatch.driver("thin").ROWS


def thin_normal(K: Array, columns: Array, y: Array, room: Array, n_threads: int) -> None:
    """Set ``y <- y + K'K columns``, in one reading of K; ``room`` takes a block of K columns."""
    dispatch.driver("thin").normal(K, columns, y, room, n_threads)


def thin_transposed(K: Array, t: Array, y: Array, rows: int, n_threads: int) -> None:
    """Set ``y <- y + K't``, in blocks of ``rows`` rows."""
    dispatch.driver("thin").transposed(K, t, y, rows, n_threads)
