"""Memory: how much of it may be used, and arrays aligned for compiled loops."""

from __future__ import annotations

import math
import os

import numpy as np

from .. import _check
from .._types import Array
from . import cgroup

LINE = 64  # bytes of a cache line
SHARE = 0.8
"""The budget's share of the limit. The rest is for what is not counted: the arguments, scratch of
LAPACK and of threads, the interpreter, and other processes where the machine itself is the limit.
"""

_chosen: int | None = None


def aligned(shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Return an empty array on a cache line: no vector straddles two, which is a fifth faster."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.empty(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + size].view(dtype).reshape(shape)


def _address_space() -> float:
    """Return the bytes that ``ulimit -v`` leaves to the process."""
    try:
        import resource
    except ImportError:  # not a Unix
        return math.inf
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return math.inf if soft == resource.RLIM_INFINITY else soft


def _physical() -> float:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return math.inf


def limit() -> tuple[int, str]:
    """Return the budget, and where it comes from."""
    if _chosen is not None:
        return _chosen, "by kernelcore.set_memory"
    text = os.environ.get("KERNELCORE_MEMORY", "")
    if text:
        return _check.byte_count(text, "KERNELCORE_MEMORY"), "by KERNELCORE_MEMORY"
    limits = {
        "physical memory": _physical(),
        "what its cgroup may have": cgroup.memory(),
        "its address space (ulimit -v)": _address_space(),
    }
    what = min(limits, key=limits.__getitem__)
    if math.isinf(limits[what]):
        return 2**63 - 1, "unlimited: the memory of this machine is unknown"
    return int(SHARE * limits[what]), f"{100 * SHARE:.0f} % of {what}"


def set_memory(amount: float | str | None) -> None:
    """Hold large arrays to ``amount`` bytes from now on; None goes back to the default.

    A call that needs more raises ``MemoryError`` before anything is computed. The message says how
    much is needed, how much there may be, and what else would do.

    Parameters
    ----------
    amount : number, str or None
        Bytes, also with a unit: ``"8GB"`` is 8e9 bytes, ``"512MiB"`` is 512 x 1024^2. The default
        is the environment variable ``KERNELCORE_MEMORY``, written in the same way, else 80 % of
        what this process may have: of the physical memory, the limits of its cgroup and those
        above, and that of its address space (``ulimit -v``), whichever is the least.

    Notes
    -----
    The need of a call is that of its matrices which exist at the same time: a Gram matrix that is
    asked for, the matrix that a solver is given and the copies that it works in. What other calls
    have left in memory does not count, nor do arrays below 10 MB.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> kc.set_memory("100MB")
    >>> kc.get_memory()
    100000000
    >>> kc.Gaussian(1.0)(np.zeros((10_000, 3)))
    Traceback (most recent call last):
    ...
    MemoryError: K must fit into memory: 800.0 MB are needed for 10000 x 10000 float64, the budget \
is 100.0 MB; use GramOperator, float32 or kernelcore.set_memory
    >>> kc.set_memory(None)
    """
    global _chosen
    _chosen = None if amount is None else _check.byte_count(amount, "amount")


def get_memory() -> int:
    """Return the bytes that large arrays are held to; ``kernelcore info`` says where from.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.get_memory() > 0
    True
    """
    return limit()[0]


budget = _check.budget = get_memory  # the name by which other rooms call it
