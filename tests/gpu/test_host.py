"""Parts that are for the host alone: arrays of a device are refused, each by its own name."""

import inspect
import re

import numpy as np
import pytest
from gpu import standin

import kernelcore as kc
from kernelcore import features, spectrum, theory

NTK, CYCLIC = kc.presets.mlp(1).ntk, kc.CyclicConvolution(2, 2, [0.1, 0.5, 0.4])
X = np.eye(4)[:, :3] + 0.1
POWER, VALUES, U = np.full(3, 0.1), 0.5 ** np.arange(3), np.array([-0.5, 1.0])
SPHERE, DRAWN = spectrum.sphere(NTK, 5, 6), spectrum.RandomFunction(3, POWER, seed=0)
RATES = {"n": [9.0], "ridge": [0.1], "noise_variance": [0.1]}
LEVELS = {"spectrum": VALUES, "target_power": POWER}
SPEED = theory.convergence(np.eye(3), POWER)
NETWORK = kc.presets.mlp(1).sample(5, seed=0, shape=3)

# What works on the host: a function, and arguments of which each that is an array is then moved.
CALLS = [
    (kc.Gaussian(1.0).profile, {"u": U}),
    (kc.Relu().dual, {"var1": U**2, "var2": U**2, "cov": 0 * U}),
    (kc.Tanh().dual_error, {"variance": U**2}),
    (kc.profiles.Exp(0.5), {"u": U}),
    (kc.profiles.Exp(0.5).derivative, {"u": U}),
    (kc.profiles.PowerSeries, {"coefficients": POWER}),
    (kc.PowerSeries, {"coefficients": POWER}),
    (kc.DotProduct, {"profile": POWER}),
    (features.feature_error, {"features": features.FourierFeatures(n_features=4), "X": X}),
    (spectrum.Spectrum, {"log_eigenvalues": POWER, "multiplicities": None, "trace": 9.0}),
    (spectrum.RandomFunction, {"dim": 3, "target_power": POWER, "seed": 0}),
    (DRAWN.__call__, {"X": X}),
    (spectrum.degree_power, {"X": X, "y": X[:, 0], "max_degree": 1}),
    (spectrum.legendre, {"dim": 3, "max_degree": 2, "t": U}),
    (spectrum.projection, {"X": X, "y": X[:, 0], "degree": 1, "Z": X}),
    (spectrum.empirical, {"K": np.eye(3)}),
    (spectrum.empirical(np.eye(3)).decay, {"t": U**2}),
    (spectrum.empirical(np.eye(3)).rkhs_norm, {"target_power": POWER}),
    (spectrum.empirical(np.eye(3)).target_power, {"y": POWER}),
    (spectrum.cyclic(CYCLIC, 5).rkhs_norm, {"target_power": np.full(11, 0.1)}),
    (spectrum.cyclic(CYCLIC, 5).target_power, {"sets": [[0], [1], [2]], "coefficients": POWER}),
    (spectrum.hypercube(NTK, 5).rkhs_norm, {"target_power": np.full(6, 0.1)}),
    (spectrum.spiked(NTK, 9, 2, 2.0, 2).rkhs_norm, {"target_power": np.full(6, 0.1)}),
    (spectrum.spiked(NTK, 9, 2, 2.0, 2).target_power, {"power_by_degree": POWER}),
    (spectrum.Spectrum(np.log(VALUES), None, 2.0).rkhs_norm, {"target_power": POWER}),
    (SPHERE.__call__, {"t": U}),
    (SPHERE.rkhs_norm, {"target_power": np.full(7, 0.1)}),
    (theory.approximation, {**LEVELS, "norm": [0.5]}),
    (
        theory.approximation_rate,
        {"spectrum": SPHERE, "target_power": np.full(7, 0.1), "degrees": (1, 6)},
    ),
    (theory.convergence, {"K": np.eye(3), "y": POWER, "f0": POWER}),
    (SPEED.loss, {"time": U**2}),
    (SPEED.bound, {"time": U**2}),
    (SPEED.descent_loss, {"iterations": U**2, "step": 0.1}),
    (theory.kernel_complexity, {"K": np.eye(3), "y": POWER}),
    (theory.network_complexity, {"network": NETWORK, "X": X, "y": np.ones(4)}),
    (theory.degrees_of_freedom, {"spectrum": VALUES, "ridge": [0.1]}),
    (theory.effective_dimension, {"spectrum": VALUES, "ridge": [0.1]}),
    (theory.gradient_flow_curve, {**LEVELS, **RATES, "times": [1.0]}),
    (theory.learning_curve, {**LEVELS, **RATES}),
    (theory.modes, {**LEVELS, **RATES, "features": [9.0]}),
    (theory.random_features_curve, {**LEVELS, **RATES, "features": [9.0]}),
    (theory.spiked_dimension, {"dim": [9.0], "signal_dim": [2.0], "snr": [2.0]}),
    (theory.subset_curve, {**LEVELS, "n": [2.0], "ridge": [0.1]}),
    (theory.staircase, {"n": [9.0], "dim": [5], "target_power": POWER, "features": [9.0]}),
]


@pytest.mark.parametrize(("function", "given"), CALLS, ids=lambda v: getattr(v, "__qualname__", ""))
def test_arrays_of_a_device_are_refused(function, given):
    function(**given)
    with standin.installed():
        for name in given:
            if name == "sets" or not isinstance(given[name], (np.ndarray, list)):
                continue
            rule = f"{name} must be in the memory of the host: got cupy.ndarray on a device; copy"
            with pytest.raises(TypeError, match=f"^{re.escape(rule)} it to a NumPy array$"):
                function(**given | {name: standin.asarray(np.asarray(given[name]))})


def public(room):
    """Functions and classes of a room, and the methods of these."""
    for thing in (getattr(room, name) for name in room.__all__):
        yield thing
        for name, method in inspect.getmembers(thing, inspect.isfunction):
            if name[0] != "_" or name == "__call__":
                yield method


def test_every_array_of_spectra_and_theory_is_tried():
    tried = {
        (f.__qualname__, name) for f, given in CALLS if hasattr(f, "__qualname__") for name in given
    }
    taken = {
        (function.__qualname__, name)
        for room in (spectrum, theory)
        for function in public(room)
        for name, p in inspect.signature(function).parameters.items()
        if "ArrayLike" in str(p.annotation)
    }
    assert taken
    assert taken <= tried
