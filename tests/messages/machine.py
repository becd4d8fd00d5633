"""The machine: memory that there is not, amounts of it, threads."""

import numpy as np

import kernelcore as kc
from kernelcore import _check

from . import Case

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
