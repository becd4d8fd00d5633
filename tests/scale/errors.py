"""Operators that hold no matrix."""

import numpy as np
from messages import Case

import kernelcore as kc

X = np.arange(6.0).reshape(3, 2)
EYE = np.eye(3)
LAPLACIAN = kc.Laplacian(1.0)

CASES = [
    Case(
        TypeError,
        "kernel must be a kernel: got ndarray",
        lambda: kc.solvers.RowBlocks(EYE, X),
    ),
    Case(
        ValueError,
        "max_memory must be positive: got 0.0",
        lambda: kc.solvers.RowBlocks(LAPLACIAN, X, max_memory=0),
    ),
    Case(
        ValueError,
        "X must have at least one row: got shape (0, 2)",
        lambda: kc.solvers.RowBlocks(LAPLACIAN, np.empty((0, 2))),
    ),
    Case(
        ValueError,
        "scale must have one entry per row of X, 3: got shape (2,)",
        lambda: kc.solvers.RowBlocks(kc.Laplacian(1.0), X, scale=[1.0, 1.0]),
    ),
]
