"""Threads, CPU levels and memory, of calls and of the environment."""

from unittest import mock

import numpy as np
from messages import Case, where

import kernelcore as kc
from kernelcore import _check
from kernelcore.engine.cpu import dispatch

NTK = kc.presets.mlp(1).ntk
USABLE = [level for level in dispatch.built_levels() if level in dispatch.machine_levels()]


def level():
    """The level of this environment; the answer of the process stays cached."""
    return dispatch.level.__wrapped__()


def level_of_none():
    with mock.patch.object(dispatch, "built_levels", return_value=()):
        return level()


UNIT = "must be a number of bytes, or have a unit as in 8GB or 512MiB"


def within(amount, call):
    """A call while the budget is another."""
    kc.set_memory(amount)
    try:
        return call()
    finally:
        kc.set_memory(None)


def nothing_left(dtype):
    """A new array where NumPy gets no memory."""
    empty = np.empty
    np.empty = raising
    try:
        return _check.fresh((2000, 3000), np.dtype(dtype))
    finally:
        np.empty = empty


def raising(*args):
    raise MemoryError


CASES = [
    Case(TypeError, "n must be an integer: got float", lambda: kc.set_threads(2.0)),
    Case(ValueError, "n must be at least 1: got 0", lambda: kc.set_threads(0)),
    *(
        Case(
            ValueError,
            f"KERNELCORE_NUM_THREADS must be a positive integer: got {text!r}",
            where(call, KERNELCORE_NUM_THREADS=text),
        )
        for text in ("two", "0", "-3", "1.5")
        for call in (kc.get_threads, lambda: NTK([[1.0]]))
    ),
    Case(
        ValueError,
        f"KERNELCORE_CPU_LEVEL must be one of {', '.join(USABLE)} on this machine: got 'v9'",
        where(level, KERNELCORE_CPU_LEVEL="v9"),
    ),
    Case(
        ImportError,
        "kernelcore has no compiled modules; install it with: pip install kernelcore",
        level_of_none,
    ),
    *(
        Case(ValueError, f"amount {UNIT}: got {text!r}", lambda text=text: kc.set_memory(text))
        for text in ("", "much", "8G", "8 GB of it", "-1GB", "1.2.3", "nan", "١GB", "8GBB")
    ),
    Case(ValueError, "amount must be positive: got 0.0", lambda: kc.set_memory("0MB")),
    Case(ValueError, "amount must be positive: got -5.0", lambda: kc.set_memory(-5)),
    Case(ValueError, "amount must be finite: got inf", lambda: kc.set_memory(np.inf)),
    Case(ValueError, "amount must be finite: got inf", lambda: kc.set_memory("1e999")),
    Case(TypeError, "amount must be a real number: got list", lambda: kc.set_memory([1])),
    Case(TypeError, "amount must be a real number: got bool", lambda: kc.set_memory(True)),
    Case(
        MemoryError,
        "K must fit into memory: 800.0 TB are needed for 10000000 x 10000000 float64, the budget "
        "is 19.2 GB; use GramOperator, float32 or kernelcore.set_memory",
        lambda: within("19.2GB", lambda: kc.Gaussian(1.0)(np.zeros((10**7, 1)))),
    ),
    Case(
        MemoryError,
        "K must fit into memory: 48.0 MB are needed for 2000 x 3000 float64, and the system gives "
        "no more; use GramOperator, float32 or fewer points",
        lambda: nothing_left("f8"),
    ),
    Case(
        MemoryError,
        "K must fit into memory: 24.0 MB are needed for 2000 x 3000 float32, and the system gives "
        "no more; use GramOperator or fewer points",
        lambda: nothing_left("f4"),
    ),
    Case(
        ValueError,
        "n_threads must be at least 1: got 0",
        lambda: kc.Gaussian(1.0).diag([[1.0]], n_threads=0),
    ),
    Case(
        TypeError,
        "n_threads must be an integer: got str",
        lambda: kc.solvers.nystrom_ridge(
            kc.Gaussian(1.0), [[1.0]], [1.0], centres=1, n_threads="2"
        ),
    ),
    Case(
        TypeError,
        "progress must be True or False: got int",
        lambda: kc.solvers.randomly_pivoted_cholesky(np.eye(3), rank=1, progress=1),
    ),
]
