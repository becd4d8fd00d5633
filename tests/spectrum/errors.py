"""Spectra."""

import numpy as np
from messages import Case, without

import kernelcore as kc

X = np.arange(6.0).reshape(3, 2)
NTK = kc.presets.mlp(1).ntk
EYE = np.eye(3)


def operator():
    from scipy.sparse.linalg import aslinearoperator

    return aslinearoperator(EYE)


def entry(i, j, value):
    k = np.eye(400)
    k[i, j] = value
    return k


HQW = kc.CyclicConvolution(3, 2, (0.0, 0.5, 0.5))
S = kc.spectrum.sphere(NTK, 3, 6)
CAUCHY = kc.Cauchy(1.0)

CASES = [
    # Of Gram matrices.
    Case(ValueError, "K must be square: got shape (3, 2)", lambda: kc.spectrum.gram(X)),
    Case(ValueError, "K must be square: got shape (3,)", lambda: kc.spectrum.gram(np.ones(3))),
    Case(
        ValueError,
        "K must have at least one row: got shape (0, 0)",
        lambda: kc.spectrum.gram(np.ones((0, 0))),
    ),
    Case(
        ValueError,
        "K must be finite: K[300, 5] is nan",
        lambda: kc.spectrum.gram(entry(300, 5, np.nan)),
    ),
    Case(
        ValueError,
        "K must be symmetric: K[2, 300] and K[300, 2] differ by 0.25; "
        "pass (K + K.T) / 2 if that is rounding",
        lambda: kc.spectrum.gram(entry(300, 2, 0.25)),
    ),
    Case(
        TypeError,
        "K must be real, got complex128; pass K.real or its magnitude",
        lambda: kc.spectrum.gram(1j * EYE),
    ),
    Case(ValueError, "rank must be at least 1: got 0", lambda: kc.spectrum.gram(EYE, 0)),
    Case(
        ValueError,
        "rank must be at most the number of rows of K, 3: got 4",
        lambda: kc.spectrum.gram(EYE, 4),
    ),
    Case(
        ValueError,
        "rank must be at most one less than the rows of K, 2: got 3",
        lambda: kc.spectrum.gram(operator(), 3, trace=3.0),
    ),
    Case(
        ValueError,
        "rank must be given with a LinearOperator: got None",
        lambda: kc.spectrum.gram(operator(), trace=3.0),
    ),
    Case(
        ValueError,
        "trace must be given with a LinearOperator: got None",
        lambda: kc.spectrum.gram(operator(), 1),
    ),
    Case(
        TypeError,
        "vectors must be True or False: got int",
        lambda: kc.spectrum.gram(EYE, vectors=1),
    ),
    Case(
        ValueError,
        "eigenvectors must be computed first: gram was called with vectors=False",
        lambda: kc.spectrum.gram(EYE, vectors=False).eigenvectors,
    ),
    Case(
        ValueError,
        "y must have one entry per row of K, 3: got shape (2,)",
        lambda: kc.spectrum.gram(EYE).target_power([1.0, 2.0]),
    ),
    Case(
        ValueError,
        "y must be finite: got inf",
        lambda: kc.spectrum.gram(EYE).target_power([1.0, 2.0, np.inf]),
    ),
    Case(
        ValueError,
        "t must not be negative: got -1.0",
        lambda: kc.spectrum.gram(EYE).decay([0.0, -1.0]),
    ),
    # On the sphere.
    Case(ValueError, "dim must be at least 2: got 1", lambda: kc.spectrum.sphere(NTK, 1)),
    Case(TypeError, "dim must be an integer: got float", lambda: kc.spectrum.sphere(NTK, 3.0)),
    Case(
        ValueError,
        "max_degree must be at least 0: got -1",
        lambda: kc.spectrum.sphere(NTK, 3, -1),
    ),
    Case(
        ValueError,
        "radius must be positive: got 0.0",
        lambda: kc.spectrum.sphere(NTK, 3, radius=0),
    ),
    Case(
        ValueError,
        "radius must be given: the parts of this kernel have unlike default radii",
        lambda: kc.spectrum.sphere(NTK + kc.Gaussian(1.0), 3),
    ),
    Case(
        ValueError,
        "radius must be left out: a profile is a function of the cosine",
        lambda: kc.spectrum.sphere(np.exp, 3, radius=1.0),
    ),
    Case(
        TypeError,
        "kernel must be a profile, a callable or a sequence of coefficients: got str",
        lambda: kc.spectrum.sphere("ntk", 3),
    ),
    Case(
        ValueError,
        f"{CAUCHY!r} must not be asked for a profile: it depends on the axes",
        lambda: kc.spectrum.sphere(CAUCHY, 3),
    ),
    Case(
        ValueError,
        "kernel must be positive semi-definite on the sphere of R^3: its eigenvalue of degree 2 is "
        "-0.133333",
        lambda: kc.spectrum.sphere([1.0, 0.0, -1.0], 3, 4),
    ),
    Case(
        ValueError,
        "kernel must be positive semi-definite on the sphere of R^3: its eigenvalue of degree 2 is "
        "-0.133333",
        lambda: kc.spectrum.sphere(lambda t: 1 - t**2, 3, 4),
    ),
    Case(ValueError, "parity must be None, 0 or 1: got 2", lambda: S.decay(parity=2)),
    Case(
        ValueError,
        "first and last must leave four degrees that are resolved and not zero: got 2 in 3..6",
        lambda: S.decay(),
    ),
    Case(ValueError, "last must be at least 0: got -3", lambda: S.decay(last=-3)),
    Case(
        ValueError,
        "target_power must have one entry per level, 7, and may have one more for the rest: got "
        "shape (2,)",
        lambda: S.rkhs_norm([1.0, 2.0]),
    ),
    Case(
        ValueError,
        "target_power must not be negative: got -1.0",
        lambda: S.rkhs_norm([0, 0, 0, 0, 0, 0, -1.0]),
    ),
    Case(ValueError, "t must be in [-1, 1]: got 2.0", lambda: S([2.0])),
    Case(
        ValueError,
        "dim must be at least 2: got 1",
        lambda: kc.spectrum.legendre(1, 3, 0.5),
    ),
    Case(
        ValueError,
        "X must have at least three rows: got 2",
        lambda: kc.spectrum.degree_power(np.eye(2), [1.0, 2.0], 1),
    ),
    Case(
        ValueError,
        "y must have one value per row of X, 3: got shape (2,)",
        lambda: kc.spectrum.degree_power(np.eye(3), [1.0, 2.0], 1),
    ),
    Case(
        ValueError,
        "X must have rows of finite, positive norm: row 1 has not",
        lambda: kc.spectrum.degree_power(np.diag([1.0, 0.0, 1.0]), [1.0, 2.0, 3.0], 1),
    ),
    Case(
        ValueError,
        "Z must have 3 columns: got shape (2, 2)",
        lambda: kc.spectrum.projection(np.eye(3), [1.0, 2.0, 3.0], 1, np.eye(2)),
    ),
    Case(
        ValueError,
        "target_power must not be negative: got -0.5",
        lambda: kc.spectrum.RandomFunction(3, [0.5, -0.5], seed=0),
    ),
    Case(
        ValueError,
        "X must have 3 columns: got shape (2, 2)",
        lambda: kc.spectrum.RandomFunction(3, [0.5], seed=0)(np.eye(2)),
    ),
    # On the hypercube, of cyclic signals, and under spiked covariates.
    Case(
        TypeError,
        "kernel must be a profile, a callable or a sequence of coefficients: got int",
        lambda: kc.spectrum.hypercube(3, 4),
    ),
    Case(
        TypeError,
        "kernel must be a kernel, a profile, a callable or a sequence of coefficients: got Kappa1; "
        "call it",
        lambda: kc.spectrum.hypercube(kc.profiles.Kappa1, 4),
    ),
    Case(ValueError, "dim must be at least 1: got 0", lambda: kc.spectrum.hypercube(NTK, 0)),
    Case(TypeError, "dim must be an integer: got float", lambda: kc.spectrum.hypercube(NTK, 4.0)),
    Case(
        ValueError,
        "Laplacian(1.0, norm=1) must not be asked for a profile: it depends on the axes",
        lambda: kc.spectrum.hypercube(kc.Laplacian(1.0, norm=1), 4),
    ),
    Case(
        ValueError,
        "kernel must be positive semi-definite on {-1, 1}^4: its eigenvalue of degree 1 is -0.25",
        lambda: kc.spectrum.hypercube([1.0, -1.0], 4),
    ),
    Case(
        ValueError,
        "kernel must be positive semi-definite on {-1, 1}^3: its eigenvalue of degree 0 is -1",
        lambda: kc.spectrum.cyclic(kc.CyclicConvolution(3, 2, lambda u: u - 1), 8),
    ),
    Case(
        ValueError,
        "kernel must be positive semi-definite on S^1 x S^7: its eigenvalue of degree (1, 0) is "
        "-0.1",
        lambda: kc.spectrum.spiked([1.0, -1.0], 10, 2, 1.0),
    ),
    Case(
        TypeError,
        "kernel must be a CyclicConvolution or a multiple of one: got Sum",
        lambda: kc.spectrum.cyclic(HQW + HQW, 8),
    ),
    Case(
        TypeError,
        "kernel must be a CyclicConvolution or a multiple of one: got Gaussian",
        lambda: kc.spectrum.cyclic(2.0 * kc.Gaussian(1.0), 8),
    ),
    Case(
        ValueError,
        "patch must not exceed dim: patch is 3, dim is 2",
        lambda: kc.spectrum.cyclic(HQW, 2),
    ),
    Case(
        ValueError,
        "pool must not exceed dim: pool is 5, dim is 4",
        lambda: kc.spectrum.cyclic(2.0 * kc.CyclicConvolution(3, 5, (0.0, 1.0)), 4),
    ),
    Case(
        ValueError,
        "sets must have as many entries as coefficients: got 1 and 2",
        lambda: kc.spectrum.cyclic(HQW, 4).target_power([[0, 1]], [1.0, 2.0]),
    ),
    Case(
        ValueError,
        "sets[1] must be different coordinates below 4: got [1, 4]",
        lambda: kc.spectrum.cyclic(HQW, 4).target_power([[0, 1], [4, 1]], [1.0, 2.0]),
    ),
    Case(
        ValueError,
        "sets[0] must be different coordinates below 4: got [1, 1]",
        lambda: kc.spectrum.cyclic(HQW, 4).target_power([[1, 1]], [1.0]),
    ),
    Case(
        ValueError,
        "sets[0] must be at least 0: got -1",
        lambda: kc.spectrum.cyclic(HQW, 4).target_power([[-1, 1]], [1.0]),
    ),
    Case(
        ValueError,
        "signal_dim must leave a dimension to the noise: got 10 of 10",
        lambda: kc.spectrum.spiked(NTK, 10, 10, 1.0),
    ),
    Case(
        ValueError,
        "signal_dim must be at least 1: got 0",
        lambda: kc.spectrum.spiked(NTK, 10, 0, 1.0),
    ),
    Case(ValueError, "dim must be at least 2: got 1", lambda: kc.spectrum.spiked(NTK, 1, 1, 1.0)),
    Case(ValueError, "snr must be positive: got 0.0", lambda: kc.spectrum.spiked(NTK, 10, 2, 0.0)),
    Case(
        ValueError,
        "max_degree must be at least 0: got -1",
        lambda: kc.spectrum.spiked(NTK, 10, 2, 1.0, max_degree=-1),
    ),
    Case(
        ValueError,
        "power_by_degree must have at most 3 entries: got 4; ask for a larger max_degree",
        lambda: kc.spectrum.spiked(NTK, 10, 2, 1.0, max_degree=2).target_power([0, 0, 0, 1]),
    ),
    Case(
        ValueError,
        "power_by_degree[1] must not be negative: got -1.0",
        lambda: kc.spectrum.spiked(NTK, 10, 2, 1.0, max_degree=2).target_power([0, -1]),
    ),
    # What is no kernel, no spectrum, no power.
    Case(
        TypeError,
        "kernel must be a kernel, a profile, a callable or a sequence of coefficients: got "
        "Sequential; pass its ntk or nngp",
        lambda: kc.spectrum.sphere(kc.presets.mlp(1), 5, 3),
    ),
    Case(
        TypeError,
        "kernel must be a kernel, a profile, a callable or a sequence of coefficients: got "
        "Gaussian; call it",
        lambda: kc.spectrum.hypercube(kc.Gaussian, 5),
    ),
    Case(
        TypeError,
        "kernel must be a kernel, a profile, a callable or a sequence of coefficients: got "
        "Sequential; pass its ntk or nngp",
        lambda: kc.spectrum.spiked(kc.presets.mlp(1), 6, 2, 1.0),
    ),
    Case(
        ValueError,
        "multiplicities must have one entry per level, 2: got 1",
        lambda: kc.spectrum.Spectrum([0.0, -1.0], [1], 1.0),
    ),
    Case(
        ValueError,
        "log_eigenvalues must be a sequence of logarithms, none of them inf: got [inf]",
        lambda: kc.spectrum.Spectrum([np.inf], [1], 1.0),
    ),
    Case(
        TypeError,
        "trace must be a real number: got NoneType",
        lambda: kc.spectrum.Spectrum([0.0], [1], None),
    ),
    Case(
        TypeError,
        "sets must be a sequence of sequences of coordinates, as [[0, 1], [2]]: got [0, 1]",
        lambda: kc.spectrum.cyclic(HQW, 5).target_power([0, 1], [1.0, 1.0]),
    ),
    Case(
        TypeError,
        "sets must be a sequence of sequences of coordinates, as [[0, 1], [2]]: got None",
        lambda: kc.spectrum.cyclic(HQW, 5).target_power(None, [1.0]),
    ),
    Case(
        ValueError,
        "X must have at least one row: got shape (0, 3)",
        lambda: kc.spectrum.projection(np.zeros((0, 3)), [], 1, np.ones((2, 3))),
    ),
    Case(
        TypeError,
        "seed must be None, an integer or a numpy.random.Generator: got str",
        lambda: kc.spectrum.RandomFunction(3, [1.0], "one"),
    ),
    Case(
        ValueError,
        "power_by_degree must have at most 2 entries: got 3; a signal of one dimension has no "
        "other degrees",
        lambda: kc.spectrum.spiked(NTK, 10, 1, 1.0, max_degree=4).target_power([0, 0.5, 0.5]),
    ),
    Case(
        TypeError, "degree must be an integer: got float", lambda: kc.spectrum.multiplicity(3, 2.5)
    ),
    Case(ValueError, "dim must be at least 1: got 0", lambda: kc.spectrum.multiplicity(0, 2)),
    Case(
        ValueError,
        "dim must be at least 2: got 1",
        lambda: kc.spectrum.log_multiplicities(1, 3),
    ),
    Case(
        ValueError,
        "dim must be at most 2^53, 9007199254740992: got 9007199254740993",
        lambda: kc.spectrum.sphere(NTK, 2**53 + 1, 3),
    ),
    Case(
        ValueError,
        "target_power must be zero on levels whose eigenvalue is not resolved: got 0.25 on level 5",
        lambda: kc.spectrum.sphere(np.exp, 10**6, 5).rkhs_norm([0, 1, 0, 0, 0, 0.25]),
    ),
    Case(
        ImportError,
        "plot needs matplotlib; install it with: pip install 'kernelcore[plot]'",
        without("matplotlib", kc.spectrum.sphere(NTK, 3, 4).plot),
    ),
]
