"""Which solver suits a problem: from the number of points, the memory, and the cost of an entry."""

from __future__ import annotations

import importlib.util
import math
import shutil
import tempfile
from collections.abc import Callable
from typing import NamedTuple

from .. import _check
from ..engine.threads import get_threads
from .plan import DISK_RATE, PASSES, _time

OPERATOR, FACTOR = 0.5, 0.25
"""The shares of the budget for tiles of K that are kept, and for a preconditioner."""
COPIES = 3
"""The arrays of the size of its factor that exist while a preconditioner is made."""
LEAST_RANK = 30
"""The columns without which a preconditioner is of no use."""
READ_GAIN = 2.0
"""A store pays from products on that are so many times as fast as computing K again."""


class Choice(NamedTuple):
    """A solver, as ``solver='auto'`` chooses it; ``print`` tells what it is and why.

    Attributes
    ----------
    solver : {'direct', 'cg', 'eigenpro'}
        A factorisation, conjugate gradients with a preconditioner, or stochastic descent.
    matrix : {'in memory', 'out of core', 'on the fly', 'on the cluster'}
        Where K is: in memory; in a store that is removed afterwards; computed anew in each product,
        but for tiles that are kept; or with the workers of a cluster.
    rank : int
        Of the preconditioner; 0 where there is none.
    memory : float
        Bytes for K and for the preconditioner here.
    seconds : float or None
        Of all products, as far as they were estimated: 50 of them.
    reason : str
    """

    solver: str
    matrix: str
    rank: int
    memory: float
    seconds: float | None
    reason: str

    def __str__(self) -> str:
        names = {
            "direct": "a factorisation",
            "cg": f"conjugate gradients with a preconditioner of rank {self.rank}",
            "eigenpro": "EigenPro",
        }
        took = "" if self.seconds is None else f", about {_time(self.seconds)}"
        return f"{names[self.solver]}, K {self.matrix}{took}: {self.reason}"


def choose(
    n: int, itemsize: int, *, arrays: int, budget: float, entry: Callable[[], float],
    precomputed: bool = False, remote: bool = False, storable: bool = True,
) -> Choice:  # fmt: skip
    """Choose a solver for n points, of which a factorisation holds ``arrays`` matrices of n x n.

    ``entry()`` measures the seconds of an entry, of one thread; it is called where that matters.
    A matrix that is given, ``precomputed``, is in memory already. ``remote`` is a cluster.
    """
    square = n * n * itemsize
    if (need := arrays * square) <= budget:
        why = f"it needs {_check.in_bytes(need)} of {_check.in_bytes(budget)}"
        return Choice("direct", "in memory", 0, need, None, why)
    why = f"a factorisation needs {_check.in_bytes(need)}, the budget is {_check.in_bytes(budget)}"
    rank = min(n, round(10 * math.sqrt(n)), int(FACTOR * budget / (COPIES * n * itemsize)))
    held = float(COPIES * n * rank * itemsize)
    if precomputed:
        return Choice("cg", "in memory", max(1, rank), held, None, why)
    if remote:
        solver = "cg" if rank >= min(n, LEAST_RANK) else "eigenpro"
        return Choice(solver, "on the cluster", max(1, rank), held, None, why)
    if square / 2 <= OPERATOR * budget:
        return Choice("cg", "in memory", max(1, rank), held + square / 2, None, why)
    again = PASSES * entry() * n * n / 2 / get_threads()
    if rank < min(n, LEAST_RANK):
        return Choice("eigenpro", "on the fly", 0, OPERATOR * budget, 2 * again, why)
    read = PASSES * square / 2 / DISK_RATE
    if storable and again > READ_GAIN * read and importlib.util.find_spec("zarr") is not None:
        free = shutil.disk_usage(tempfile.gettempdir()).free
        if 1.1 * square < free:
            why += f", and {_check.in_bytes(square)} on disk are read faster than computed again"
            held += OPERATOR * budget
            return Choice("cg", "out of core", rank, held, again / PASSES + read, why)
    return Choice("cg", "on the fly", rank, held + OPERATOR * budget, again, why)
