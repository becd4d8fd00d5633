"""Spectra, what they predict, and random features."""

import warnings

import numpy as np

import kernelcore as kc

from . import Case

NTK = kc.presets.mlp(1).ntk
CNTK = kc.presets.cntk(2).ntk
CYCLIC = kc.CyclicConvolution(3, 2, [0.0, 0.5, 0.5])


def deprecated(call, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return call(**keywords)


CASES = [
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
        TypeError,
        "spectrum must be a Spectrum or an array of eigenvalues: got Ntk; kc.spectrum makes one of "
        "a kernel",
        lambda: kc.theory.learning_curve(NTK, [1.0], 5),
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
        lambda: kc.spectrum.cyclic(CYCLIC, 5).target_power([0, 1], [1.0, 1.0]),
    ),
    Case(
        TypeError,
        "sets must be a sequence of sequences of coordinates, as [[0, 1], [2]]: got None",
        lambda: kc.spectrum.cyclic(CYCLIC, 5).target_power(None, [1.0]),
    ),
    Case(
        TypeError,
        "spectrum must be of a sphere, with degrees and dim: got CyclicSpectrum",
        lambda: kc.theory.approximation_rate(kc.spectrum.cyclic(CYCLIC, 5)),
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
        "X must have at least one row: got shape (0, 3)",
        lambda: kc.spectrum.projection(np.zeros((0, 3)), [], 1, np.ones((2, 3))),
    ),
    Case(
        ValueError,
        f"{CNTK!r} must not be asked for a profile: it is of images",
        lambda: CNTK.null_degrees(5),
    ),
    Case(
        ValueError,
        f"{CYCLIC!r} must not be asked for a profile: it depends on the axes",
        lambda: (CYCLIC + CYCLIC).null_degrees(5),
    ),
    Case(
        TypeError,
        "FourierFeatures must not be given both seed and random_state: they are one argument",
        lambda: kc.features.FourierFeatures(seed=1, random_state=1),
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
        "noise must not be negative: got -0.5",
        lambda: deprecated(lambda **k: kc.theory.modes([1.0], [1.0], 5, **k), noise=-0.5),
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
]
