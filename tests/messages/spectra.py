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
