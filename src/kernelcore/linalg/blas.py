"""Blocks of rows over threads, each with its own products of one thread.

One thread computes a block, its product included, so that the product is in that core's cache for
what follows, and results do not depend on the number of threads.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar, cast

import numpy as np

from ..engine import threads as _threads

F = TypeVar("F", bound=Callable[..., Any])

GROUP = 512
"""The rows of a product that one thread computes: the same ones for any number of threads."""
SMALL = 2**20
"""The multiplications that are done before a second thread would have started."""

_lock = threading.Lock()
_depth = 0
_limit: Any = None


@functools.cache
def _controller(scipy: bool) -> Any:
    """Return the controller of loaded libraries: NumPy's, and SciPy's where that is loaded."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit NumPy's products to one thread, from the first to enter until the last to leave."""
    global _depth, _limit
    with _lock:
        if _depth == 0:
            _limit = _controller("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _limit.restore_original_limits()


def serial() -> AbstractContextManager[Any]:
    """Return a context with all BLAS on one thread, SciPy's as well: for many small systems."""
    import scipy.linalg  # noqa: F401  -- its library has to be loaded before it is looked for
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


@contextmanager
def threads(n_threads: int | None) -> Iterator[int]:
    """Let a call use ``n_threads``; if that is 1, NumPy's products in it use one thread, too."""
    with _threads.Call(n_threads) as n, one_thread() if n_threads == 1 else nullcontext():
        yield n


def threaded(function: F) -> F:
    """Decorate a function with the keyword ``n_threads``: all that it calls keeps to it."""

    @functools.wraps(function)
    def call(*args: Any, n_threads: int | None = None, **keywords: Any) -> Any:
        with threads(n_threads):
            return function(*args, n_threads=n_threads, **keywords)

    return cast(F, call)


def share(work: Callable[[int], None], starts: range, n_threads: int) -> None:
    """Call ``work(start)`` for each start; each thread takes the next start when it is free."""
    left, turn = iter(starts), threading.Lock()

    def take() -> None:
        while True:
            with turn:
                start = next(left, None)
            if start is None:
                return
            work(start)

    n_threads = min(n_threads, len(starts))
    with one_thread():
        if n_threads < 2:
            take()
            return
        with ThreadPoolExecutor(n_threads) as pool:
            for done in [pool.submit(take) for _ in range(n_threads)]:
                done.result()


def product(a: Any, x: Any) -> Any:
    """Return ``a @ x``, for NumPy in groups of rows, each computed by one thread; x has columns.

    BLAS divides a product by its number of threads, on which the last bits would depend.
    """
    if not isinstance(a, np.ndarray):
        return a @ x
    out = np.empty((a.shape[0], x.shape[1]), np.result_type(a, x))

    def group(i: int) -> None:
        np.matmul(a[i : i + GROUP], x, out=out[i : i + GROUP])

    n_threads = 1 if a.size * x.shape[1] <= SMALL else _threads.resolve(None)
    share(group, range(0, a.shape[0], GROUP), n_threads)
    return out


def row_blocks(n: int, rows: int) -> list[slice]:
    """Return slices that cover n rows, ``rows`` at a time."""
    return [slice(i, min(i + rows, n)) for i in range(0, n, max(1, rows))]
