"""Kernels that adapt."""

import numpy as np
from messages import Case

import kernelcore as kc

X = np.arange(12.0).reshape(6, 2)
Y = np.arange(6.0)
ELU = kc.Sequential(kc.Dense(), kc.Elu(), kc.Dense())
MEMORY = "the gradient must fit into memory: 2.0 GB are needed for 5000 x 5000 x 10 float64, the "


def fit(make=kc.RecursiveFeatureMachine, **more):
    return make(**more).fit(X, Y > 2 if make is kc.RecursiveFeatureClassifier else Y)


def with_memory(amount, call):
    kc.set_memory(amount)
    try:
        return call()
    finally:
        kc.set_memory(None)


CASES = [
    Case(ValueError, "rounds must be at least 0: got -1", lambda: fit(rounds=-1)),
    Case(TypeError, "diagonal must be True or False: got str", lambda: fit(diagonal="yes")),
    Case(
        ValueError,
        "RecursiveFeatureClassifier must not be fitted with kernel 'precomputed': it has no values "
        "beyond those of X; pass the kernel itself",
        lambda: fit(kc.RecursiveFeatureClassifier, kernel="precomputed"),
    ),
    Case(
        TypeError,
        "Elu() must not be asked for a gradient: it has no derivative here that is known",
        lambda: fit(kernel=ELU.nngp),
    ),
    Case(
        TypeError,
        f"{kc.CyclicConvolution(2, 1, [0.0, 1.0])!r} must not be asked for a gradient: it is of "
        "cyclic signals",
        lambda: fit(kernel=kc.CyclicConvolution(2, 1, [0.0, 1.0])),
    ),
    Case(
        TypeError,
        f"{kc.presets.cntk(1).ntk!r} must not be asked for a gradient: it is of signals or images",
        lambda: kc.presets.cntk(1).ntk.gradient(np.ones((2, 4, 4, 1))),
    ),
    Case(
        ValueError,
        "gradient must not be asked for with kernel 'precomputed': it has no values beyond those "
        "of X; pass the kernel itself",
        lambda: kc.KernelRegressor("precomputed", 1.0).fit(np.eye(6), Y).gradient(np.eye(6)),
    ),
    Case(
        ValueError,
        "weights must have one row per row of Y, 6, and shape (n,) or (n, r): got shape (5,)",
        lambda: kc.Gaussian(1.0).gradient(X, X, Y[:5]),
    ),
    Case(
        OverflowError,
        "X must keep the kernel within float64: the gradient overflows; scale X down",
        lambda: kc.Polynomial(9).gradient(np.full((1, 2), 1e20)),
    ),
    Case(
        MemoryError,
        f"{MEMORY}budget is 1.0 GB; use weights, for sums over Y, float32 or kernelcore.set_memory",
        lambda: with_memory("1GB", lambda: kc.Gaussian(1.0).gradient(np.zeros((5000, 10)))),
    ),
]
