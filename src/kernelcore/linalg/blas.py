"""Blocks of rows over threads, each with its own products of one thread.

A block is computed whole by one thread, product and all, so that what follows the product finds it
in that core's cache, and results do not depend on the number of threads.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

_lock = threading.Lock()
_depth = 0
_limit = None


@functools.cache
def _controller():
    import numpy  # noqa: F401  -- its library has to be loaded before it is looked for
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """NumPy's products on one thread; the first to enter limits, the last to leave puts back."""
    global _depth, _limit
    with _lock:
        if _depth == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _limit.restore_original_limits()


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
