"""Layers, networks, profiles and kernels as values, and what they are called with."""

import kernelcore as kc

from . import Case

GAUSSIAN = kc.Gaussian(1.0)
NET = kc.presets.mlp(1)

CASES = [
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
        "network must be a Sequential: got int",
        lambda: NET.ntk.replace(network=3),
    ),
    Case(
        TypeError,
        "right must be a kernel: got Gaussian; call it",
        lambda: (GAUSSIAN + GAUSSIAN).replace(right=kc.Gaussian),
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
]
