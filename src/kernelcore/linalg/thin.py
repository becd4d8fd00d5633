"""Products of a tall matrix with few columns, in one pass: ``ext/include/kernelcore/thin.h``."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np

from .._types import Array
from ..engine import backend_of, offer
from ..engine import threads as _threads
from ..engine.memory import aligned
from . import blas as _blas

FEW = 20
"""The columns up to which this beats BLAS: it takes 0.6 of the time for 10, 1.5 times for 30."""
BLOCK_BYTES = 2_000_000
"""The bytes of rows of K that are still in cache when K't follows K x."""


def _block_rows(K: Array) -> int:
    """Return the rows of a block: a multiple of the rows that a loop does together."""
    group = backend_of(K).loops.thin_rows()
    return group * max(1, BLOCK_BYTES // (group * max(1, K.shape[1]) * K.itemsize))


def undisturbed(columns: int) -> AbstractContextManager[None]:
    """Return a context for many of these products, with calls of BLAS between them.

    BLAS's threads spin while they wait, which takes cores from what follows. So BLAS gets one
    thread, unless it does the products itself.
    """
    return _blas.one_thread() if columns <= FEW else nullcontext()


def normal_product(K: Array, x: Array) -> Array:
    """Return ``K.T @ (K @ x)``; x of shape (m, r)."""
    if not isinstance(K, np.ndarray):
        own = offer(K, "normal_product")
        return K.T @ (K @ x) if own is None else own(K, x)
    (n, m), r = K.shape, x.shape[1]
    if r > FEW:
        y = np.zeros((m, r), K.dtype)
        step = _block_rows(K)
        for i in range(0, n, step):
            part = K[i : i + step]
            y += part.T @ (part @ x)
        return y
    columns, y = aligned((r, m), K.dtype), aligned((r, m), K.dtype)
    columns[...], y[...] = x.T, 0
    room = np.empty((_block_rows(K), r), K.dtype)
    backend_of(K).loops.thin_normal(K, columns, y, room, _threads.resolve(None))
    return y.T


def transposed_product(K: Array, t: Array) -> Array:
    """Return ``K.T @ t``; t of shape (n, r)."""
    if not isinstance(K, np.ndarray):
        own = offer(K, "transposed_product")
        return K.T @ t if own is None else own(K, t)
    m, r = K.shape[1], t.shape[1]
    if r > FEW:
        return K.T @ t
    y = aligned((r, m), K.dtype)
    y[...] = 0
    t = np.ascontiguousarray(t)
    backend_of(K).loops.thin_transposed(K, t, y, _block_rows(K), _threads.resolve(None))
    return y.T
