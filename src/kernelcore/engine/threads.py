"""How many threads the compiled work may use."""

from __future__ import annotations

import math
import os
import threading

from .. import _check
from . import cgroup

_chosen: int | None = None
_forked = False


def _after_fork() -> None:
    # A parallel region in a forked child waits for threads that were not copied (libgomp).
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def available() -> int:
    """Return how many CPUs affinity and cgroup allow this process, at least one."""
    if hasattr(os, "sched_getaffinity"):
        n = len(os.sched_getaffinity(0))
    else:
        n = os.cpu_count() or 1
    # Half the time of a CPU still gets a thread, which is only slower.
    return max(1, math.ceil(min(n, cgroup.cpus())))


def _from_environment() -> int | None:
    text = os.environ.get("KERNELCORE_NUM_THREADS", "")
    if not text:
        return None
    try:
        n = int(text)
    except ValueError:
        n = 0
    if n < 1:
        raise ValueError(f"KERNELCORE_NUM_THREADS must be a positive integer: got {text!r}")
    return n


def set_threads(n: int | None) -> None:
    """Use ``n`` threads from now on; None goes back to the default.

    The default is the environment variable ``KERNELCORE_NUM_THREADS``, else the CPUs that affinity
    and cgroup allow. ``OMP_NUM_THREADS`` has no effect: compiled loops are told their number.

    Parameters
    ----------
    n : int or None

    Notes
    -----
    BLAS and LAPACK, which NumPy and SciPy call, have threads of their own; the environment variable
    ``OPENBLAS_NUM_THREADS`` or threadpoolctl sets how many. Within a call that is given
    ``n_threads=1`` they use one as well.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.set_threads(2)
    >>> kc.get_threads()
    2
    >>> kc.set_threads(None)
    """
    global _chosen
    _chosen = None if n is None else _check.count(n, "n", least=1)


def get_threads() -> int:
    """Return the number of threads that compiled work uses when ``n_threads`` is not given.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.get_threads() >= 1
    True
    """
    return _chosen or _from_environment() or available()


class _Here(threading.local):
    n: int | None = None  # of the call that this thread is in


_here = _Here()


def resolve(n_threads: int | None) -> int:
    """Return the number of threads for one call; always one in a forked child.

    None stands for the number that the enclosing call was given, or else for the default.
    """
    if n_threads is None:
        n = _here.n or get_threads()
    elif type(n_threads) is int and n_threads > 0:
        n = n_threads
    else:
        n = _check.count(n_threads, "n_threads", least=1)
    return 1 if _forked else n


class Call:
    """The context of a public call, ``with Call(n_threads) as n:``: all work in it uses n threads.

    It reaches functions that take no ``n_threads``, such as the dual of an activation.
    """

    def __init__(self, n_threads: int | None) -> None:
        self.n = resolve(n_threads)

    def __enter__(self) -> int:
        self.outer, _here.n = _here.n, self.n
        return self.n

    def __exit__(self, *error: object) -> None:
        _here.n = self.outer
