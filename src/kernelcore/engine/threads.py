"""How many threads the compiled work may use."""

from __future__ import annotations

import os

from .. import _check

_chosen: int | None = None
_forked = False


def _after_fork() -> None:
    # A parallel region in a forked child waits for threads that were not copied (libgomp).
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def available() -> int:
    """The CPUs that affinity and cgroup allow this process, at least one."""
    if hasattr(os, "sched_getaffinity"):
        n = len(os.sched_getaffinity(0))
    else:
        n = os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        if quota != "max":
            n = min(n, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        pass
    return max(1, n)


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

    The default is ``KERNELCORE_NUM_THREADS``, else the CPUs that affinity and cgroup allow.

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
    """The number of threads that compiled work uses when ``n_threads`` is not given."""
    return _chosen or _from_environment() or available()


def resolve(n_threads: int | None) -> int:
    """The number of threads for one call; always one in a forked child."""
    n = get_threads() if n_threads is None else _check.count(n_threads, "n_threads", least=1)
    return 1 if _forked else n
