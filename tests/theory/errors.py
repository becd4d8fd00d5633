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


def deprecated(call, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return call(**keywords)


CASES = [
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
]
