"""Random features."""

import numpy as np
from messages import Case

import kernelcore as kc

X = np.arange(6.0).reshape(3, 2)
FLOAT32 = X.astype(np.float32)


def with_nan(value, dtype=float):
    x = np.ones((3, 4), dtype)
    x[1, 2] = value
    return x


FOURIER = kc.features.FourierFeatures(n_features=4, seed=0)
FITTED = kc.features.FourierFeatures(n_features=4, seed=0).fit(X)
TANGENTS = kc.features.TangentFeatures
PATCHES = kc.features.PatchFeatures(3, 2)
IMAGES = np.random.default_rng(0).standard_normal((5, 4, 4, 1))


class Sparse:
    """What a sparse matrix looks like from outside."""

    def toarray(self):
        return X


def fit(features, x=X):
    return lambda: features.fit(x)


def ridge(*given, **keywords):
    return lambda: kc.features.ridge_features(*given, **keywords)


CASES = [
    Case(
        ValueError,
        "w must have 2 columns: got shape (1, 1)",
        lambda: kc.features.SpectralDensity(kc.Gaussian(1.0), 2)([[1.0]]),
    ),
    Case(
        TypeError,
        "X must be dense: got a sparse Sparse; pass X.toarray()",
        fit(FOURIER, Sparse()),
    ),
    Case(
        TypeError,
        "X must hold numbers: an array of objects holds something else; argument must be a string "
        "or a real number",
        fit(FOURIER, np.array([[{}]], object)),
    ),
    Case(
        ValueError,
        "X must be real: Complex data not supported, got complex128; pass X.real or its magnitude",
        fit(FOURIER, X + 1j),
    ),
    Case(
        ValueError,
        "X must have shape (n, d): got shape (3,); Reshape your data to X[:, None] if its entries "
        "are points, X[None, :] if it is one point",
        fit(FOURIER, X[:, 0]),
    ),
    Case(
        ValueError,
        "X must have at least one column: 0 feature(s) (shape=(3, 0)) while a minimum of 1 is "
        "required.",
        fit(FOURIER, X[:, :0]),
    ),
    Case(ValueError, "X must be finite: X[1, 2] is NaN", fit(FOURIER, with_nan(np.nan))),
    Case(ValueError, "X must be finite: X[1, 2] is infinity", fit(FOURIER, with_nan(-np.inf))),
    Case(ValueError, "X must have at least one row: got shape (0, 2)", fit(FOURIER, X[:0])),
    Case(
        ValueError,
        "X must have 2 columns: X has 1 features, but FourierFeatures is expecting 2 features as "
        "input",
        lambda: FITTED.transform(X[:, :1]),
    ),
    Case(
        ValueError,
        "Y must have 2 columns: X has 1 features, but FourierFeatures is expecting 2 features as "
        "input",
        lambda: FITTED.gram(X, X[:, :1]),
    ),
    Case(
        TypeError,
        "Y must have the dtype of X: X is float64, Y is float32; convert one of them",
        lambda: FITTED.gram(X, FLOAT32),
    ),
    Case(
        ValueError,
        "FourierFeatures must be fitted first: call fit(X)",
        lambda: FOURIER.transform(X),
    ),
    Case(
        ValueError,
        "gamma must be a parameter of FourierFeatures: it has kernel, n_features, kind, "
        "orthogonal, seed",
        lambda: FOURIER.set_params(gamma=1.0),
    ),
    Case(
        ValueError,
        "out must have shape (3, 4): got shape (3, 3)",
        lambda: FITTED.transform(X, out=np.empty((3, 3))),
    ),
    Case(
        ValueError,
        "out must not overlap X: they share memory; pass a copy",
        lambda: kc.features.FourierFeatures(n_features=2).fit(X).transform(X, out=X),
    ),
    Case(
        TypeError,
        "seed must be None, an integer or a numpy.random.Generator: got str",
        fit(kc.features.FourierFeatures(seed="0")),
    ),
    Case(ValueError, "seed must be at least 0: got -1", fit(kc.features.FourierFeatures(seed=-1))),
    Case(
        TypeError,
        "kernel must be Gaussian, Laplacian, Cauchy or Matern: got ArcCosine(1)",
        fit(kc.features.FourierFeatures(kc.ArcCosine(1))),
    ),
    Case(
        ValueError,
        "n_features must be even for kind 'cos_sin': got 5",
        fit(kc.features.FourierFeatures(n_features=5)),
    ),
    Case(
        ValueError,
        "n_features must be at least 1: got 0",
        fit(kc.features.FourierFeatures(n_features=0)),
    ),
    Case(
        ValueError,
        "kind must be one of 'cos_sin', 'cos': got 'sin'",
        fit(kc.features.FourierFeatures(kind="sin")),
    ),
    Case(
        ValueError,
        "orthogonal must be False for Cauchy(1.0): it is not rotation invariant, and no direction "
        "of its frequencies can be turned",
        fit(kc.features.FourierFeatures(kc.Cauchy(1.0), orthogonal=True)),
    ),
    Case(
        ValueError,
        "weights must be one of 'normal', 'sphere': got 'cube'",
        fit(kc.features.ArcCosineFeatures(weights="cube")),
    ),
    Case(
        TypeError,
        "activation must be an activation: got str",
        fit(kc.features.NetworkFeatures("relu")),
    ),
    Case(
        TypeError,
        "activation must have a derivative that is known: got Activation(<ufunc 'sin'>); pass "
        "derivative=",
        fit(TANGENTS(5, kc.Activation(np.sin))),
    ),
    Case(TypeError, "derivative must be callable: got float", fit(TANGENTS(5, derivative=1.0))),
    Case(
        ValueError,
        "layers must be one of 'both', 'first', 'second': got 'third'",
        fit(TANGENTS(5, layers="third")),
    ),
    Case(
        TypeError,
        "features must be a Transformer or None: got str",
        ridge("fourier", X, X, 1.0),
    ),
    Case(
        ValueError,
        "y must have one value or row per row of X, 3: got shape (2,)",
        ridge(FITTED, X, [1.0, 2.0], 1.0),
    ),
    Case(ValueError, "y must be finite: got nan", ridge(FITTED, X, [1.0, 2.0, np.nan], 1.0)),
    Case(ValueError, "ridge must not be negative: got -1.0", ridge(FITTED, X, X, -1.0)),
    Case(
        ValueError,
        "solver must be one of 'auto', 'primal', 'dual': got 'cg'",
        ridge(FITTED, X, X, 1.0, solver="cg"),
    ),
    Case(
        ValueError,
        "solver must be 'auto' or 'primal' where a bound is given: got 'dual'",
        ridge(FITTED, X, X, 1.0, solver="dual", bound=1.0),
    ),
    Case(
        ValueError,
        "ridge must make the system positive definite: 0.0 does not, from row 1 on; 2.7e-15 is at "
        "the rounding of its entries",
        ridge(None, np.ones((3, 4)), np.ones(3), 0.0),
    ),
    Case(
        ValueError,
        "X must have one column per feature, 2: got shape (3, 1)",
        lambda: kc.features.ridge_features(None, X, X, 1.0).predict(X[:, :1]),
    ),
    Case(
        TypeError,
        "features must be a Transformer: got str",
        fit(kc.features.ConvolutionalFeatures("relu")),
    ),
    Case(
        ValueError,
        "patch must be at least 1: got 0",
        fit(kc.features.ConvolutionalFeatures(patch=0)),
    ),
    Case(
        ValueError,
        "patch must be at most the number of columns of X, 2: got 3",
        fit(kc.features.ConvolutionalFeatures()),
    ),
    Case(
        ValueError,
        "pool must be at most the number of columns of X, 2: got 4",
        fit(kc.features.ConvolutionalFeatures(patch=1, pool=4)),
    ),
    Case(
        ValueError,
        "features__seed must be a parameter of ConvolutionalFeatures: it has features, patch, "
        "pool, seed",
        lambda: kc.features.ConvolutionalFeatures().set_params(features__seed=1),
    ),
    Case(
        TypeError,
        "features must be a Transformer: got NoneType",
        lambda: kc.features.feature_error(None, X),
    ),
    Case(
        ValueError,
        "n_draws must be at least 2: got 1",
        lambda: kc.features.feature_error(FOURIER, X, 1),
    ),
    Case(
        TypeError,
        "FourierFeatures must not be given both seed and random_state: they are one argument",
        lambda: kc.features.FourierFeatures(seed=1, random_state=1),
    ),
    Case(
        TypeError,
        "network must be a Sequential: got Ntk",
        fit(kc.features.SampledFeatures(kc.presets.mlp(1).ntk)),
    ),
    Case(
        ValueError,
        "kind must be one of 'nngp', 'ntk': got 'ck'",
        fit(kc.features.SampledFeatures(kind="ck")),
    ),
    Case(
        ValueError,
        "width must have one entry for each of the 1 other hidden layers: got 2",
        fit(kc.features.SampledFeatures(width=[3, 4])),
    ),
    Case(
        ValueError,
        "network must have layers that are trained: got none",
        fit(
            kc.features.SampledFeatures(kc.Sequential(kc.Dense(trainable=False)), kind="ntk"),
        ),
    ),
    Case(
        TypeError,
        "activation must have a derivative that is known: got Activation(<ufunc 'tanh'>); pass "
        "derivative=",
        fit(
            kc.features.SampledFeatures(
                kc.Sequential(kc.Dense(), kc.Activation(np.tanh), kc.Dense()), kind="ntk"
            )
        ),
    ),
    Case(
        ValueError,
        "X must have inputs of shape (4, 4, 1): got (4, 5, 1)",
        lambda: PATCHES.fit(IMAGES).transform(np.ones((2, 4, 5, 1))),
    ),
    Case(
        ValueError,
        "SampledFeatures must be fitted first: call fit(X)",
        lambda: kc.features.SampledFeatures().transform(X),
    ),
    Case(
        TypeError,
        "network must be a Network: got NoneType",
        fit(kc.features.FrozenFeatures()),
    ),
    Case(
        ValueError,
        "kind must be one of 'units', 'gradient': got 'ntk'",
        fit(kc.features.FrozenFeatures(kc.presets.mlp(1).sample(3), kind="ntk")),
    ),
    Case(
        ValueError,
        "X must be signals (n, L, C) or images (n, H, W, C) for PatchFeatures(n_filters=3, "
        "patch=2): got shape (3, 2); pass X[..., None] for signals of one channel, "
        "X.reshape(len(X), H, W, C) for images",
        fit(PATCHES),
    ),
    Case(
        ValueError,
        "inputs must have room for the windows of PatchFeatures(n_filters=3): got positions 4 x 4",
        fit(kc.features.PatchFeatures(3), IMAGES),
    ),
    Case(
        ValueError,
        "n_filters must be at most the patches there are, 45: got 100",
        fit(kc.features.PatchFeatures(100, 2), IMAGES),
    ),
    Case(
        ValueError,
        "pool must be at most the patches along an axis, 3: got 4",
        fit(kc.features.PatchFeatures(3, 2, pool=4), IMAGES),
    ),
    Case(
        ValueError,
        "filters must be one of 'kmeans', 'patches': got 'gabor'",
        fit(kc.features.PatchFeatures(filters="gabor"), IMAGES),
    ),
    Case(
        ValueError,
        "activation must be one of 'triangle', 'threshold': got 'relu'",
        fit(kc.features.PatchFeatures(activation="relu"), IMAGES),
    ),
    Case(
        ValueError,
        "features must tend to a kernel: got PatchFeatures(n_filters=3, patch=2)",
        lambda: kc.features.feature_error(PATCHES, IMAGES),
    ),
    Case(
        ValueError,
        "ridge must be one of 'loo': got 'gcv'",
        ridge(FITTED, X, np.ones(3), "gcv"),
    ),
    Case(
        ValueError,
        "bound must not be given with ridge 'loo': got float",
        ridge(FITTED, X, np.ones(3), "loo", bound=1.0),
    ),
]
