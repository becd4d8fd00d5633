"""Networks, presets, changed copies, keywords, names."""

import numpy as np
from messages import Case

import kernelcore as kc
from kernelcore import _keywords, program
from kernelcore.engine.cpu import steps

X = np.arange(6.0).reshape(3, 2)
NET = kc.presets.mlp(1)


class OnADevice:
    """What arrays of CUDA devices have."""

    __module__ = "errors"
    __cuda_array_interface__ = {"version": 3}


FROZEN = kc.Dense(trainable=False)


def with_nan(value, dtype=float):
    x = np.ones((3, 4), dtype)
    x[1, 2] = value
    return x


KAPPA0 = kc.profiles.Kappa0()
IMAGES, SIGNALS = np.ones((2, 4, 5, 3)), np.ones((2, 6, 2))
CONV, LINE = kc.Conv(3), kc.Conv((3,))
POOLED = kc.Sequential(CONV, kc.Relu(), kc.GlobalAvgPool(), kc.Dense())


def flat(*layers):
    return kc.Sequential(*layers, kc.Flatten()).nngp


def pixel(x, at, value):
    x = x.copy()
    x[at] = value
    return x


GAUSSIAN = kc.Gaussian(1.0)


@_keywords.synonyms(rng="seed")
def draw(seed=None):
    return seed


CASES = [
    Case(ValueError, "depth must be at least 0: got -1", lambda: kc.presets.mlp(-1)),
    Case(TypeError, "depth must be an integer: got str", lambda: kc.presets.mlp("2")),
    Case(TypeError, "activation must be an activation: got str", lambda: kc.presets.mlp(1, "relu")),
    Case(TypeError, "n_threads must be an integer: got str", lambda: NET.kernels(X, n_threads="2")),
    # Networks that cannot be.
    Case(TypeError, "layers[0] must be a layer: got int", lambda: kc.Sequential(3)),
    Case(
        TypeError,
        "layers[1] must be a layer: got Relu; call it",
        lambda: kc.Sequential(kc.Dense(), kc.Relu),
    ),
    Case(
        TypeError,
        "layers[1] must be a layer: got Gaussian",
        lambda: kc.Sequential(kc.Dense(), kc.Gaussian(1)),
    ),
    Case(
        TypeError,
        "shortcut[0] must be a layer: got str",
        lambda: kc.Residual(kc.Dense(), shortcut=("x",)),
    ),
    Case(
        TypeError,
        "shortcut must be a layer or a sequence of layers: got int",
        lambda: kc.Residual(kc.Dense(), shortcut=5),
    ),
    Case(
        ValueError,
        "layers[1] must not be Input: Input comes first",
        lambda: kc.Sequential(kc.Dense(), kc.Input()),
    ),
    Case(
        ValueError,
        "layers must not hold Input: Input comes first in a network",
        lambda: kc.Residual(kc.Input(), kc.Dense()),
    ),
    Case(
        ValueError,
        "layers must end in Dense or Conv: the branch ends in Relu()",
        lambda: kc.Residual(kc.Dense(), kc.Relu()),
    ),
    Case(
        ValueError,
        "layers must end in Dense or Conv: the branch ends in nothing",
        lambda: kc.Residual(),
    ),
    Case(
        ValueError,
        "layers must have a Dense or Conv before Relu(): inputs are not Gaussian before it",
        lambda: kc.Sequential(kc.Relu(), kc.Dense()).nngp,
    ),
    Case(
        ValueError,
        "layers must have a Dense or Conv before Erf(shift=0.5): inputs are not Gaussian before it",
        lambda: kc.Sequential(kc.Input(), kc.Erf(shift=0.5)).ntk,
    ),
    Case(
        ValueError,
        "layers must have a Dense or Conv before Residual: inputs are not Gaussian before it",
        lambda: kc.Sequential(kc.Residual(kc.Dense()), kc.Dense()).kernels(X),
    ),
    # What an activation leaves is not Gaussian, so the dual of the next one says nothing about it:
    # relu of relu is relu, not half of it. A residual connection passes that on through its
    # shortcut.
    Case(
        ValueError,
        "layers must have a Dense or Conv before Sin(): inputs are not Gaussian before it",
        lambda: kc.Sequential(kc.Dense(), kc.Relu(), kc.Sin(), kc.Dense()).ntk(X),
    ),
    Case(
        ValueError,
        "layers must have a Dense or Conv before Erf(): inputs are not Gaussian before it",
        lambda: kc.Sequential(kc.Dense(), kc.Relu(), kc.Residual(kc.Dense()), kc.Erf()).nngp(X),
    ),
    Case(ValueError, "X must be finite: X[1, 2] is nan", lambda: NET.kernels(with_nan(np.nan))),
    # Maps with no derivative at 1.
    *(
        Case(
            ValueError,
            "layers must train nothing before DotProduct(profiles.Kappa0()): its derivative is "
            "infinite at 1; freeze them, or ask for the nngp",
            call,
        )
        for call in (
            lambda: kc.Sequential(kc.Dense(), kc.DotProduct(KAPPA0)).ntk,
            lambda: kc.Sequential(FROZEN, kc.Dense(), kc.DotProduct(KAPPA0), FROZEN).kernels(X),
            lambda: (
                kc.Sequential(
                    FROZEN, kc.Residual(kc.Dense(), shortcut=FROZEN), kc.DotProduct(KAPPA0)
                ).ntk
            ),
            lambda: (
                kc.Sequential(kc.Dense(), kc.Residual(FROZEN, shortcut=kc.DotProduct(KAPPA0))).ntk
            ),
        )
    ),
    Case(
        ValueError,
        "layers must have a Dense or Conv before Relu(): inputs are not Gaussian before it",
        lambda: kc.Sequential(kc.Dense(), kc.Project(), kc.Relu()).nngp,
    ),
    # Positions.
    Case(
        ValueError,
        "layers must end their positions in GlobalAvgPool or Flatten: found neither",
        lambda: kc.Sequential(CONV, kc.Relu(), kc.Dense()).ntk,
    ),
    *(
        Case(
            ValueError,
            f"layers must not have {name} after the readout: no positions are left",
            call,
        )
        for name, call in (
            ("Conv((3, 3))", lambda: kc.Sequential(CONV, kc.Relu(), kc.Flatten(), CONV).nngp),
            ("Flatten()", lambda: flat(kc.GlobalAvgPool())),
            ("Conv((3,))", lambda: kc.Sequential(LINE, kc.Flatten(), kc.Residual(LINE)).ntk),
        )
    ),
    Case(
        ValueError,
        "layers must agree in axes: Conv((3, 3)) has 2, AvgPool((2,)) has 1",
        lambda: flat(CONV, kc.Relu(), kc.AvgPool((2,))),
    ),
    Case(
        ValueError,
        "layers must agree in axes: GaussianPool((2,)) has 1, Conv((3, 3)) has 2",
        lambda: flat(kc.GaussianPool((2,)), CONV),
    ),
    Case(
        ValueError,
        "layers must not pool inside Residual: got AvgPool((2, 2))",
        lambda: kc.Residual(kc.Relu(), kc.AvgPool(2), CONV),
    ),
    Case(
        ValueError,
        "layers must not pool inside Residual: got Flatten()",
        lambda: kc.Residual(CONV, shortcut=kc.Flatten()),
    ),
    Case(
        ValueError,
        "X must have at least 3 x 3 positions where AvgPool((3, 3)) comes: got 2 x 3; "
        "pad X to 5 x 5",
        lambda: kc.Sequential(kc.Conv(2, 2), kc.AvgPool(3), kc.Flatten()).kernels(IMAGES),
    ),
    Case(
        ValueError,
        "X must be finite: X[1, 0, 2, 1] is nan",
        lambda: POOLED.kernels(pixel(IMAGES, (1, 0, 2, 1), np.nan)),
    ),
    # Presets.
    Case(ValueError, "depth must be at least 2: got 1", lambda: kc.presets.cntk(1)),
    Case(TypeError, "gap must be True or False: got str", lambda: kc.presets.cntk(3, "gap")),
    Case(TypeError, "fix must be True or False: got int", lambda: kc.presets.cntk(3, fix=1)),
    Case(
        ValueError,
        "pool must not be given with gap=False: got 3",
        lambda: kc.presets.cntk(3, gap=False, pool=3),
    ),
    Case(ValueError, "pool must be at least 1: got 0", lambda: kc.presets.myrtle(5, pool=0)),
    Case(
        ValueError,
        "profiles must be non-expansive: got profiles.Exp(0.6) of constant 1.67",
        lambda: kc.presets.ckn(2, non_expansive=True),
    ),
    Case(ValueError, "depth must be 5, 7 or 10: got 6", lambda: kc.presets.myrtle(6)),
    Case(TypeError, "depth must be an integer: got str", lambda: kc.presets.myrtle("5")),
    Case(
        ValueError,
        "kernel must be one of 'relu', 'exp': got 'gauss'",
        lambda: kc.presets.myrtle(5, "gauss"),
    ),
    Case(
        ValueError,
        "patches must be 1, 2, 3 or a sequence of sizes: got 4",
        lambda: kc.presets.ckn(4),
    ),
    Case(
        ValueError,
        "patches must have at least one entry: got none",
        lambda: kc.presets.ckn((), ()),
    ),
    Case(ValueError, "patches[1] must be at least 1: got 0", lambda: kc.presets.ckn((3, 0), 2)),
    Case(
        ValueError,
        "pools must be given with a sequence of patches: got None",
        lambda: kc.presets.ckn((3, 3)),
    ),
    Case(
        ValueError,
        "pools must have one entry per layer: got 1 for 2 patches",
        lambda: kc.presets.ckn(2, (2,)),
    ),
    Case(TypeError, "pools[0] must be an integer: got float", lambda: kc.presets.ckn(1, 2.5)),
    Case(
        ValueError,
        "profiles must have one entry per layer: got 2 for 1 patches",
        lambda: kc.presets.ckn(1, 2, [kc.profiles.Exp(0.5)] * 2),
    ),
    Case(
        TypeError,
        "profiles must be a profile or a sequence of them: got float",
        lambda: kc.presets.ckn(1, profiles=0.6),
    ),
    # Names.
    Case(AttributeError, "module 'kernelcore' has no attribute 'Rleu'", lambda: kc.Rleu),
    # Keywords by two names at once.
    Case(
        TypeError,
        "draw must not be given both seed and rng: they are one argument",
        lambda: draw(seed=1, rng=1),
    ),
    # Changed copies.
    Case(
        AttributeError,
        "Gaussian must not change after construction: lengthscale was set; "
        "build another, or call replace(lengthscale=...)",
        lambda: setattr(GAUSSIAN, "lengthscale", -3),
    ),
    Case(
        AttributeError,
        "Dense must not change after construction: w_std was deleted; build another",
        lambda: delattr(kc.Dense(), "w_std"),
    ),
    Case(
        ValueError,
        "changes must name parameters of Matern: got 'length'; it has nu, lengthscale",
        lambda: kc.Matern(1.5, 1.0).replace(length=2.0),
    ),
    Case(
        ValueError,
        "changes must name parameters of lengthscale: got 'x'; it has none",
        lambda: GAUSSIAN.replace(lengthscale__x=2.0),
    ),
    Case(
        ValueError,
        "changes must name parameters of layers: got '7'; it has 0, 1, 2",
        lambda: NET.replace(layers__7__w_std=2.0),
    ),
    Case(
        TypeError,
        "layers must be a layer or a sequence of layers: got int",
        lambda: NET.replace(layers=3),
    ),
    Case(
        TypeError,
        "activation must be an activation: got Relu; call it",
        lambda: kc.presets.mlp(2, kc.Relu),
    ),
    Case(
        ValueError,
        "axes must be at most those of images, 2: got 3",
        lambda: kc.presets.cntk(3, axes=3),
    ),
    # Programs, and arrays of other machines.
    Case(
        TypeError,
        "form must be one that engines know: got Form",
        lambda: steps.step(program.Form(), np.ones(1), 0.0, 1),
    ),
    Case(
        TypeError,
        "X must be in the memory of the host: got errors.OnADevice on a device; copy it to a "
        "NumPy array",
        lambda: NET.ntk(OnADevice()),
    ),
]
