"""Blocks of rows over threads, each with its own products of one thread.

A block is computed whole by one thread, product and all, so that what follows the product finds it
in that core's cache, and results do not depend on the number of threads.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

from ..engine import threads as _threads

F = TypeVar("F", bound=Callable[..., Any])

_lock = threading.Lock()
_depth = 0
_limit = None


@functools.cache
def _controller(scipy: bool):
    """Of the libraries that are there: NumPy's, and SciPy's own where that has been loaded."""
    import numpy  # noqa: F401  -- its library has to be loaded before it is looked for
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """NumPy's products on one thread; the first to enter limits, the last to leave puts back."""
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


def serial() -> AbstractContextManager:
    """A context with all of BLAS on one thread, SciPy's as well: for many small systems."""
    import scipy.linalg  # noqa: F401  -- its library has to be loaded before it is looked for
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


@contextmanager
def threads(n_threads: int | None) -> Iterator[int]:
    """A call on so many threads: NumPy's products inside of it on one, where it is one."""
    with _threads.Call(n_threads) as n, one_thread() if n_threads == 1 else nullcontext():
        yield n


def threaded(function: F) -> F:
    """Decorate what takes ``n_threads`` by keyword: all that it calls keeps to that number."""

    @functools.wraps(function)
    def call(*args, n_threads: int | None = None, **keywords):
        with threads(n_threads):
            return function(*args, n_threads=n_threads, **keywords)

    return call  # type: ignore[return-value]


def share(work: Callable[[int], None], starts: range, n_threads: int) -> None:
    """``work(start)`` for each start, over threads of which each takes the next one."""
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


def row_blocks(n: int, rows: int) -> list[slice]:
    """Slices that cover n rows, ``rows`` at a time."""
    return [slice(i, min(i + rows, n)) for i in range(0, n, max(1, rows))]
