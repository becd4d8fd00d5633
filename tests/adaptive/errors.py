"""Kernels that adapt."""

import numpy as np
from messages import Case

import kernelcore as kc

X = np.arange(12.0).reshape(6, 2)
Y = np.arange(6.0)
ELU = kc.Sequential(kc.Dense(), kc.Elu(), kc.Dense())


def fit(make=kc.RecursiveFeatureMachine, **more):
    return make(**more).fit(X, Y > 2 if make is kc.RecursiveFeatureClassifier else Y)


CASES = [
    Case(ValueError, "rounds must be at least 0: got -1", lambda: fit(rounds=-1)),
    Case(TypeError, "diagonal must be True or False: got str", lambda: fit(diagonal="yes")),
    Case(ValueError, "folds must be at least 2: got 1", lambda: fit(folds=1)),
    Case(
        ValueError,
        "folds must be at most the number of different points, 6: got 7",
        lambda: fit(folds=7),
    ),
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
        ValueError,
        "width must be even for a symmetric start: got 3",
        lambda: fit(kc.OneStepRegressor, width=3),
    ),
    Case(
        ValueError,
        "y must be more than a linear function of X: got no gradient",
        lambda: kc.OneStepRegressor(2).fit(X - X.mean(0), np.zeros(6)),
    ),
    Case(
        ValueError,
        "rank must be at most the columns of X, 2: got 3",
        lambda: kc.OneStepRegressor(20, random_state=0).fit(X - 5, (X - 5)[:, 0] ** 2).subspace(3),
    ),
]
