"""What spectra predict."""

import warnings

import numpy as np
from messages import Case

import kernelcore as kc
from kernelcore.spectrum import Spectrum

EYE = np.eye(3)
SPHERICAL = Spectrum(-np.arange(9.0), [1] * 9, 9.0)
SPHERICAL.degrees, SPHERICAL.dim = np.arange(9), 3
NTK = kc.presets.mlp(1).ntk
HQW = kc.CyclicConvolution(3, 2, [0.0, 0.5, 0.5])


X = np.arange(6.0).reshape(3, 2)
SIGNS = np.array([1.0, -1.0, 1.0])


def drawn(*layers, **options):
    return kc.Sequential(*layers).sample(3, 0, shape=2, **options)


def complexity(*layers, **options):
    return kc.theory.network_complexity(drawn(*layers, **options), X, SIGNS)


def deprecated(call, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return call(**keywords)


CASES = [
    Case(
        ValueError,
        "n must be at most the number of eigenvalues, 3: got 4.0",
        lambda: kc.theory.subset_curve(np.ones(3), np.ones(3), [2, 4]),
    ),
    Case(
        ValueError,
        "spectrum must have all 3 eigenvalues of K/n: got 1",
        lambda: kc.theory.subset_curve(kc.spectrum.empirical(EYE, 1), [1.0, 1.0], 2),
    ),
    Case(
        ValueError,
        "spectrum must be a Spectrum or have shape (levels,): got shape (3, 3); "
        "pass spectrum.gram(K) for a Gram matrix",
        lambda: kc.theory.learning_curve(EYE, [1.0] * 3, 2),
    ),
    Case(
        ValueError,
        "spectrum must be a Spectrum or have shape (levels,): got shape (0,); "
        "pass spectrum.gram(K) for a Gram matrix",
        lambda: kc.theory.effective_dimension([], 1.0),
    ),
    Case(
        ValueError,
        "spectrum must not be negative: got -1e-17",
        lambda: kc.theory.learning_curve([1.0, -1e-17], [1.0, 0.0], 2),
    ),
    Case(
        ValueError,
        "spectrum must be finite: got inf",
        lambda: kc.theory.degrees_of_freedom([1.0, np.inf], 1.0),
    ),
    Case(
        ValueError,
        "target_power must have one entry per level, 2, and may have one more for the rest: "
        "got shape (4,)",
        lambda: kc.theory.learning_curve([1.0, 0.5], [1.0] * 4, 2),
    ),
    Case(
        ValueError,
        "target_power must be a number: got nan",
        lambda: kc.theory.approximation([1.0], [np.nan], 2),
    ),
    Case(
        ValueError,
        "n must be positive: got 0.0",
        lambda: kc.theory.learning_curve([1.0], [1.0], [1, 0]),
    ),
    Case(
        ValueError,
        "ridge must be finite: got inf",
        lambda: kc.theory.gradient_flow_curve([1.0], [1.0], 5, 1.0, ridge=np.inf),
    ),
    Case(
        ValueError,
        "features must be positive: got -2.0",
        lambda: kc.theory.random_features_curve([1.0], [1.0], 5, -2),
    ),
    Case(
        ValueError,
        "ridge must not be negative: got -0.1",
        lambda: kc.theory.modes([1.0], [1.0], 5, -0.1),
    ),
    Case(
        ValueError,
        "n, ridge, noise_variance and features must broadcast together: got shapes (2,), (3,), (), "
        "()",
        lambda: kc.theory.learning_curve([1.0], [1.0], [1, 2], [1, 2, 3]),
    ),
    Case(
        ValueError,
        "target_power must have one entry per degree: got shape (1, 2)",
        lambda: kc.theory.staircase(10, 5, [[0.5, 0.5]]),
    ),
    Case(
        ValueError, "dim must be above 1: got 1.0", lambda: kc.theory.staircase(10, 1, [0.5, 0.5])
    ),
    Case(
        ValueError,
        "pool must be at most dim, 10: got 11",
        lambda: kc.theory.sample_complexity(2, 10, 3, 11),
    ),
    Case(
        TypeError,
        "spectrum must be of a sphere, with degrees and dim: got list",
        lambda: kc.theory.approximation_rate([1.0, 0.5]),
    ),
    Case(
        ValueError,
        "degrees[1] must be at most the highest degree listed, 8: got 9",
        lambda: kc.theory.approximation_rate(SPHERICAL, degrees=(2, 9)),
    ),
    Case(
        ValueError,
        "degrees must hold at least two eigenvalues that are neither zero nor equal: "
        "got 1 from 2 to 2",
        lambda: kc.theory.approximation_rate(SPHERICAL, degrees=(2, 2)),
    ),
    Case(
        TypeError,
        "spectrum must be a Spectrum or an array of eigenvalues: got Ntk; kc.spectrum makes one of "
        "a kernel",
        lambda: kc.theory.learning_curve(NTK, [1.0], 5),
    ),
    Case(
        TypeError,
        "spectrum must be of a sphere, with degrees and dim: got CyclicSpectrum",
        lambda: kc.theory.approximation_rate(kc.spectrum.cyclic(HQW, 5)),
    ),
    Case(
        ValueError,
        "degrees must be a pair (first, last): got 5",
        lambda: kc.theory.approximation_rate(kc.spectrum.sphere(NTK, 5, 30), degrees=5),
    ),
    Case(
        ValueError,
        "degrees must hold at least two eigenvalues that are neither zero nor equal: got 1 from 1 "
        "to 1",
        lambda: kc.theory.approximation_rate(kc.spectrum.sphere(NTK, 5, 3)),
    ),
    Case(
        ValueError,
        "degrees must hold at least two eigenvalues that are neither zero nor equal: got 0 from 1 "
        "to 6",
        lambda: kc.theory.approximation_rate(kc.spectrum.sphere([1.0], 3, 50)),
    ),
    Case(
        ValueError,
        "noise must not be negative: got -0.5",
        lambda: deprecated(lambda **k: kc.theory.modes([1.0], [1.0], 5, **k), noise=-0.5),
    ),
    # Complexity of fits, and convergence.
    Case(
        TypeError,
        "network must be a Network: got Ntk",
        lambda: kc.theory.network_complexity(NTK, X, SIGNS),
    ),
    Case(
        ValueError,
        "network must be layers of weights with activations between them: got weights, save, "
        "apply, weights, swap, merge",
        lambda: complexity(kc.Dense(), kc.Residual(kc.Relu(), kc.Dense())),
    ),
    Case(
        ValueError,
        "network must not be doubled: got two networks",
        lambda: complexity(kc.Dense(), doubled=True),
    ),
    Case(
        ValueError,
        "network must have no biases: got some in layers [0]",
        lambda: complexity(kc.Dense(1.0, 0.1)),
    ),
    Case(
        ValueError,
        "network must have activations that are zero at zero: got Cos(), 1 there",
        lambda: complexity(kc.Dense(), kc.Cos(), kc.Dense()),
    ),
    Case(
        ValueError,
        "network must have activations of bounded slope: got Monomial(2)",
        lambda: complexity(kc.Dense(), kc.Monomial(2), kc.Dense()),
    ),
    Case(
        ValueError,
        "network must have activations of bounded slope: got Sign()",
        lambda: complexity(kc.Dense(), kc.Sign(), kc.Dense()),
    ),
    Case(
        TypeError,
        "reference must be a Network: got float",
        lambda: kc.theory.network_complexity(drawn(kc.Dense()), X, SIGNS, 1.0),
    ),
    Case(
        ValueError,
        "reference must have weights of the shapes of those of network, [(1, 2)]: got [(1, 3)]",
        lambda: kc.theory.network_complexity(
            drawn(kc.Dense()), X, SIGNS, kc.Sequential(kc.Dense()).sample(3, 0, shape=3)
        ),
    ),
    Case(
        ValueError,
        "y must be -1 or 1 for one output: got 2.0",
        lambda: kc.theory.network_complexity(drawn(kc.Dense()), X, [1.0, 2.0, 1.0]),
    ),
    Case(
        ValueError,
        "y must be a class from 0 to 1: got 2.0",
        lambda: kc.theory.network_complexity(drawn(kc.Dense(), outputs=2), X, [0, 1, 2]),
    ),
    Case(
        ValueError,
        "y must have 2 columns: got shape (3, 3)",
        lambda: kc.theory.network_complexity(drawn(kc.Dense(), outputs=2), X, EYE),
    ),
    Case(
        ValueError,
        "ridge must not be negative: got -1.0",
        lambda: kc.theory.kernel_complexity(EYE, SIGNS, -1.0),
    ),
    Case(
        ValueError,
        "f0 must have the shape of y, (3,): got shape (2,)",
        lambda: kc.theory.convergence(EYE, SIGNS, [1.0, 2.0]),
    ),
    Case(
        ValueError,
        "time must not be negative: got -1.0",
        lambda: kc.theory.convergence(EYE, SIGNS).loss(-1.0),
    ),
]
