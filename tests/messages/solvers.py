"""Solvers: overflow, matrices of zeros, too few rows, weights."""

import numpy as np

import kernelcore as kc

from . import Case

EYE = np.eye(3)
X = np.arange(6.0).reshape(3, 2)
OVERFLOWS = (
    "K must keep coefficients within float64: (K + ridge I)^-1 y overflows; scale K up or y down"
)
ZERO = "K + ridge I must not be zero: its largest eigenvalue is 0.0; pass a ridge, or a step"


def eigenpro(**more):
    return kc.solvers.eigenpro(kc.Laplacian(1.0), X, np.ones(3), **more)


CASES = [
    Case(OverflowError, OVERFLOWS, lambda: kc.solvers.ridge(1e-320 * EYE, np.ones(3))),
    Case(OverflowError, OVERFLOWS, lambda: kc.solvers.interpolate(1e-320 * EYE, np.ones(3))),
    Case(
        OverflowError, OVERFLOWS, lambda: kc.solvers.RidgePath(1e-320 * EYE, np.ones(3)).alpha(0.0)
    ),
    Case(ValueError, ZERO, lambda: kc.solvers.richardson(0 * EYE, np.ones(3))),
    Case(ValueError, ZERO, lambda: kc.solvers.landweber(0 * EYE, np.ones(3))),
    Case(ValueError, ZERO, lambda: kc.solvers.gradient_descent(0 * EYE, np.ones(3))),
    Case(
        ValueError,
        "X must have at least 2 rows for eigenpro: got 1",
        lambda: kc.solvers.eigenpro(kc.Laplacian(1.0), X[:1], np.ones(1)),
    ),
    Case(
        ValueError,
        "sample_weight must have one entry per row of X, 3: got shape (2,)",
        lambda: eigenpro(sample_weight=np.ones(2)),
    ),
    Case(
        ValueError,
        "sample_weight must not be zero everywhere: got no positive weight",
        lambda: eigenpro(sample_weight=np.zeros(3)),
    ),
    Case(
        ValueError,
        "sample_weight must not be negative: got -1.0",
        lambda: eigenpro(sample_weight=[1.0, -1.0, 1.0]),
    ),
    Case(ValueError, "tol must not be negative: got -1.0", lambda: eigenpro(tol=-1)),
    Case(
        ValueError,
        "scale must have one entry per row of X, 3: got shape (2,)",
        lambda: kc.solvers.RowBlocks(kc.Laplacian(1.0), X, scale=[1.0, 1.0]),
    ),
    Case(
        ValueError,
        "K_test must have one column per row of K, 3: got shape (2, 2)",
        lambda: kc.solvers.RidgePath(EYE, np.ones(3)).predict(np.ones((2, 2)), 1.0),
    ),
]
