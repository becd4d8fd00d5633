"""Estimators: weights, variances, iterations, kernels that are to change."""

import numpy as np

import kernelcore as kc

from . import Case

X = np.arange(6.0).reshape(3, 2)
RING = [0, 1, 0]


def classify(**more):
    return kc.KernelClassifier(**more).fit(X, RING)


def process(noise_variance):
    return kc.GaussianProcess(noise_variance=noise_variance).fit(X, np.ones(3))


CASES = [
    Case(
        ValueError,
        "sample_weight must have one entry per row of X, 3: got shape (2,)",
        lambda: kc.KernelRegressor().fit(X, np.ones(3), [1.0, 1.0]),
    ),
    Case(
        ValueError,
        "sample_weight must have one entry per row of K, 3: got shape (2,)",
        lambda: kc.solvers.RidgePath(np.eye(3), np.ones(3), sample_weight=[1.0, 1.0]),
    ),
    Case(
        ValueError,
        "copies must be positive: got 0.0",
        lambda: kc.solvers.RidgePath(np.eye(3), np.ones(3), copies=[1.0, 0.0, 1.0]),
    ),
    Case(
        TypeError,
        "class_weight must be a dict, 'balanced' or None: got list",
        lambda: classify(class_weight=[1.0, 2.0]),
    ),
    Case(
        ValueError,
        "class_weight must be one of 'balanced': got 'equal'",
        lambda: classify(class_weight="equal"),
    ),
    Case(
        ValueError,
        "class_weight must have labels of y: got 7, not in [0, 1]",
        lambda: classify(class_weight={7: 1.0}),
    ),
    Case(
        ValueError,
        "class_weight[0] must not be negative: got -1.0",
        lambda: classify(class_weight={0: -1.0}),
    ),
    Case(
        ValueError,
        "noise_variance must be a number or one per row of X, 3: got shape (2,)",
        lambda: process([0.1, 0.1]),
    ),
    Case(
        ValueError,
        "gradient must be False where each point has a variance: got True",
        lambda: process([0.1, 0.1, 0.2]).log_marginal_likelihood(gradient=True),
    ),
    Case(
        ValueError,
        "predict must not be called before fit with kernel 'precomputed': it has no values beyond "
        "those of X; pass the kernel itself",
        lambda: kc.GaussianProcess("precomputed").predict(X),
    ),
    Case(
        ValueError,
        "inverse_transform must not be called with kernel 'precomputed': it has no values beyond "
        "those of X; pass the kernel itself",
        lambda: kc.KernelPCA(1, "precomputed").fit(np.eye(3)).inverse_transform(np.ones((1, 1))),
    ),
    Case(
        ValueError,
        "max_iter must be at least 1: got 0",
        lambda: kc.KernelRegressor(max_iter=0).fit(X, np.ones(3)),
    ),
    Case(
        ValueError,
        "tol must be positive: got 0.0",
        lambda: kc.KernelRegressor(tol=0.0).fit(X, np.ones(3)),
    ),
    Case(
        TypeError,
        "kernel must be a kernel or None: got NoneType",
        lambda: kc.KernelRegressor().set_params(kernel__lengthscale=1.0),
    ),
]
