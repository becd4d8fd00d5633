"""Estimators, beside what scikit-learn's own checks ask for."""

import sys
from unittest import mock

import numpy as np
from messages import Case

import kernelcore as kc

X = np.arange(6.0).reshape(3, 2)
NET = kc.presets.mlp(1)
NTK = NET.ntk
K2 = np.array([[2.0, 1.0], [1.0, 2.0]])
Y2 = np.array([1.0, -1.0])
RING = np.array([0, 1, 0])


def regress(X=X, y=(1.0, 2.0, 3.0), **more):
    return kc.KernelRegressor(**more).fit(X, y)


def classify(y=RING, **more):
    return kc.KernelClassifier(**more).fit(X, y)


def process(**more):
    return kc.GaussianProcess(**{"noise_variance": 0.1, **more}).fit(X, [1.0, 2.0, 3.0])


def of_matrix(maker=kc.GaussianProcess, **more):
    return maker(kernel="precomputed", **more).fit(K2, Y2)


def noisy(noise_variance):
    return kc.GaussianProcess(noise_variance=noise_variance).fit(X, np.ones(3))


def without_scikit_learn(call):
    with mock.patch.dict(sys.modules, {"sklearn": None}):
        return call()


CASES = [
    Case(
        ImportError,
        "kernelcore.KernelRegressor needs scikit-learn; install it with: pip install "
        "'kernelcore[sklearn]'",
        lambda: without_scikit_learn(lambda: kc.KernelRegressor),
    ),
    Case(ValueError, "ridge must not be negative: got -1.0", lambda: regress(ridge=-1.0)),
    Case(ValueError, "ridge must be finite: got nan", lambda: regress(ridge=np.nan)),
    Case(TypeError, "ridge must be a real number: got NoneType", lambda: classify(ridge=None)),
    Case(
        ValueError,
        "ridge must be one of 'loo', 'gcv', 'likelihood': got 'best'",
        lambda: regress(ridge="best"),
    ),
    Case(
        ValueError,
        "solver must be one of 'auto', 'cholesky', 'eigen', 'cg', 'eigenpro', 'nystrom': got 'svd'",
        lambda: regress(solver="svd"),
    ),
    Case(
        ValueError,
        "solver must not be 'eigenpro' with kernel 'precomputed': it has no values beyond those of "
        "X; pass the kernel itself",
        lambda: of_matrix(kc.KernelRegressor, ridge=1.0, solver="eigenpro"),
    ),
    Case(
        ValueError,
        "solver must not be 'nystrom' with kernel 'precomputed': it has no values beyond those of "
        "X; pass the kernel itself",
        lambda: of_matrix(kc.KernelClassifier, ridge=1.0, solver="nystrom"),
    ),
    Case(
        ValueError,
        "centres must be at least 1: got 0",
        lambda: regress(ridge=1.0, solver="nystrom", centres=0),
    ),
    Case(
        TypeError,
        "max_iter must be an integer: got float",
        lambda: regress(ridge=1.0, solver="eigenpro", max_iter=2.5),
    ),
    Case(
        np.linalg.LinAlgError,
        "K + ridge I must be positive definite: its first 2 rows and columns are not, and its "
        "smallest eigenvalue is -1; a ridge larger by 1.1 would do and damp what lies along "
        "eigenvalues below it, solver='auto' leaves that out",
        lambda: regress([[1, 2], [2, 1]], Y2, kernel="precomputed", ridge=0, solver="cholesky"),
    ),
    Case(
        np.linalg.LinAlgError,
        "K must be positive semi-definite: its smallest eigenvalue is -1, its largest 3",
        lambda: regress([[1, 2], [2, 1]], Y2, kernel="precomputed", ridge=0),
    ),
    Case(
        TypeError,
        "kernel must be a kernel, 'precomputed' or None: got 'rbf'",
        lambda: regress(kernel="rbf"),
    ),
    Case(
        TypeError,
        "kernel must be a kernel, 'precomputed' or None: got Sequential; pass its ntk or nngp",
        lambda: classify(kernel=NET),
    ),
    Case(
        TypeError,
        "kernel must be a kernel, 'precomputed' or None: got Gaussian; call it",
        lambda: kc.KernelPCA(kernel=kc.Gaussian).fit(X),
    ),
    Case(
        ValueError,
        "X must be square: got shape (3, 2)",
        lambda: regress(kernel="precomputed"),
    ),
    Case(
        ValueError,
        "X must be symmetric: X[0, 1] and X[1, 0] differ by 1; pass (X + X.T) / 2 if that is "
        "rounding",
        lambda: kc.KernelPCA(kernel="precomputed").fit([[2.0, 1.0], [0.0, 2.0]]),
    ),
    Case(
        ValueError,
        "X must have the positions and channels of the fit, (4, 4, 1): got shape (2, 4, 5, 1)",
        lambda: regress(np.ones((3, 4, 4, 1)), kernel=kc.presets.cntk(2).ntk).predict(
            np.ones((2, 4, 5, 1))
        ),
    ),
    Case(
        ValueError,
        "X must be images (n, H, W, C) for Conv((3, 3), w_std=1.4142135623730951): "
        "got shape (3, 2); pass X.reshape(len(X), H, W, C)",
        lambda: regress(kernel=kc.presets.cntk(2).ntk),
    ),
    Case(
        ValueError,
        "y must have at least two classes: got one class, 'a'",
        lambda: classify(["a", "a", "a"]),
    ),
    Case(
        ValueError,
        "targets must be one of 'one_hot', 'centred', 'simplex': got 'ecoc'",
        lambda: classify(targets="ecoc"),
    ),
    Case(
        ValueError,
        "probabilities must be one of 'softmax', 'calibrated', None: got True",
        lambda: classify(probabilities=True),
    ),
    Case(
        ValueError,
        "noise_variance must be one of 'likelihood': got 'loo'",
        lambda: process(noise_variance="loo"),
    ),
    Case(
        ValueError,
        "noise_variance must not be negative: got -0.1",
        lambda: process(noise_variance=-0.1),
    ),
    Case(
        ValueError,
        "noise_variance must be a number: got nan",
        lambda: process().log_marginal_likelihood(np.nan),
    ),
    Case(TypeError, "initial must be a kernel or None: got float", lambda: process(initial=1.0)),
    Case(
        ValueError,
        "initial must be None with kernel 'precomputed': it has no values beyond those of X; "
        "pass the kernel itself",
        lambda: of_matrix(initial=NTK),
    ),
    Case(
        ValueError,
        "return_std must be False with kernel 'precomputed': it has no values beyond those of X; "
        "pass the kernel itself",
        lambda: of_matrix().predict(K2, return_std=True),
    ),
    Case(
        ValueError,
        "sample_y must not be called with kernel 'precomputed': it has no values beyond those of "
        "X; pass the kernel itself",
        lambda: of_matrix().sample_y(K2),
    ),
    Case(
        ValueError,
        "return_std and return_cov must not both be True: got both",
        lambda: process().predict(X, return_std=True, return_cov=True),
    ),
    Case(
        TypeError,
        "return_std must be True or False: got int",
        lambda: process().predict(X, return_std=1),
    ),
    Case(ValueError, "n_samples must be at least 1: got 0", lambda: process().sample_y(X, 0)),
    Case(
        ValueError,
        "empty must be one of 'nearest', 'mean': got 'zero'",
        lambda: kc.KernelSmoother(empty="zero").fit(X, RING),
    ),
    Case(
        ValueError,
        "kernel must not be negative on X: got -1; try kc.Gaussian",
        lambda: kc.KernelSmoother("precomputed").fit(K2, Y2).predict([[1.0, -1.0]]),
    ),
    Case(
        ValueError,
        "n_components must be at most the number of samples, 3: got 4",
        lambda: kc.KernelPCA(4).fit(X),
    ),
    Case(
        ValueError,
        "n_components must be at most one less than the number of samples, 2: got 3",
        lambda: kc.SpectralEmbedding(3).fit(X),
    ),
    Case(
        ValueError,
        "method must be one of 'laplacian', 'diffusion': got 'isomap'",
        lambda: kc.SpectralEmbedding(method="isomap").fit(X),
    ),
    Case(ValueError, "t must not be negative: got -1.0", lambda: kc.SpectralEmbedding(t=-1).fit(X)),
    Case(
        ValueError,
        "X must have rows with affinity to some of the fit: 1 have none; pass a wider kernel",
        lambda: kc.SpectralEmbedding(1).fit(X).transform([[0.0, 0.0], [99.0, 0.0]]),
    ),
    # Weights, variances, iterations, kernels that are to change.
    Case(
        ValueError,
        "sample_weight must have one entry per row of X, 3: got shape (2,)",
        lambda: kc.KernelRegressor().fit(X, np.ones(3), [1.0, 1.0]),
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
        lambda: noisy([0.1, 0.1]),
    ),
    Case(
        ValueError,
        "gradient must be False where each point has a variance: got True",
        lambda: noisy([0.1, 0.1, 0.2]).log_marginal_likelihood(gradient=True),
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
    Case(
        ValueError,
        "gradient must not be asked for with kernel 'precomputed': it has no values beyond those "
        "of X; pass the kernel itself",
        lambda: of_matrix(kc.KernelRegressor, ridge=1.0).gradient(K2),
    ),
    Case(
        TypeError,
        "features must be a Transformer or None: got Ntk",
        lambda: kc.RandomFeatureRegressor(NTK).fit(X, np.ones(3)),
    ),
    Case(
        ValueError,
        "ridge must be one of 'loo': got 'gcv'",
        lambda: kc.RandomFeatureClassifier(ridge="gcv").fit(X, RING),
    ),
    Case(
        TypeError,
        "network must be a Sequential, a Network or None: got Ntk",
        lambda: kc.TangentRegressor(NTK).fit(X, np.ones(3)),
    ),
    Case(
        TypeError,
        "network must be a Sequential, a Network or None: got Ntk",
        lambda: kc.NetworkRegressor(NTK).fit(X, np.ones(3)),
    ),
    Case(
        ValueError,
        "layers must be from -2 to 1: got 2",
        lambda: kc.TangentRegressor(layers=2).fit(X, np.ones(3)),
    ),
    Case(
        ValueError,
        "method must be one of 'descent', 'adam', 'flow': got 'sgd'",
        lambda: kc.NetworkRegressor(method="sgd").fit(X, np.ones(3)),
    ),
    Case(
        ValueError,
        "validation_fraction must be in [0, 1): got 1.0",
        lambda: kc.NetworkRegressor(validation_fraction=1.0).fit(X, np.ones(3)),
    ),
    Case(
        ValueError,
        "y must have at least two classes: got one class, 1.0",
        lambda: kc.NetworkClassifier().fit(X, np.ones(3)),
    ),
    # Hyper-parameters that data choose.
    Case(
        ValueError,
        "ties must be one of None, 'layers': got 'all'",
        lambda: regress(tune="loo", ties="all"),
    ),
    Case(
        ValueError,
        "tune must be one of None, 'likelihood', 'loo', 'cv': got 'aic'",
        lambda: regress(tune="aic"),
    ),
    Case(
        ValueError,
        "tune must be one of None, 'loo', 'cv': got 'likelihood'",
        lambda: kc.KernelSmoother(tune="likelihood").fit(X, RING),
    ),
    Case(
        ValueError,
        "tune must be None with kernel 'precomputed': it has no values beyond those of X; pass the "
        "kernel itself",
        lambda: of_matrix(kc.KernelRegressor, tune="loo"),
    ),
    Case(
        ValueError,
        "tune must be None with initial: got 'loo'",
        lambda: process(kernel=NTK, initial=NET.nngp, tune="loo"),
    ),
    Case(
        ValueError,
        "kernel must have some kernels to choose from: got []",
        lambda: regress(kernel=[], tune="loo"),
    ),
    Case(
        ValueError,
        "kernel must have kernels of one kind of input: got images and rows",
        lambda: regress(kernel=[NTK, kc.presets.cntk(2).ntk], tune="loo"),
    ),
    Case(
        TypeError,
        "kernel must be a kernel, 'precomputed' or None: got list",
        lambda: regress(kernel=[NTK]),
    ),
    # Clusters.
    Case(
        ValueError,
        "n_clusters must be at most the number of samples, 3: got 4",
        lambda: kc.KernelKMeans(4).fit(X),
    ),
    Case(
        ValueError,
        "n_clusters must be at most one less than the number of samples, 2: got 3",
        lambda: kc.SpectralClustering(3).fit(X),
    ),
    Case(
        ValueError, "n_init must be at least 1: got 0", lambda: kc.KernelKMeans(2, n_init=0).fit(X)
    ),
]
