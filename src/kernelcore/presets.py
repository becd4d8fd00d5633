"""Networks by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import _check
from .architecture import Sequential
from .layers import AvgPool, Conv, Dense, Flatten, GaussianPool, GlobalAvgPool, Input, Layer
from .layers.activations import Relu, _Activation
from .layers.maps import DotProduct, Project
from .layers.profiles import Exp, Kappa1, Profile, ProfileLike, as_profile


def mlp(
    depth: int,
    activation: _Activation | None = None,
    w_std: float | None = None,
    b_std: float = 0.0,
) -> Sequential:
    """Return a fully connected network of ``depth`` hidden layers.

    Parameters
    ----------
    depth : int
        The number of hidden layers; 0 is a linear model.
    activation : activation, optional
        ``Relu()`` by default.
    w_std : float, optional
        For every layer; by default 1 for the first and sqrt 2 for the others. With ReLU the
        kernels on the sphere of radius sqrt(d) are then ``S_l = kappa1(S_(l-1))`` and
        ``T_l = T_(l-1) kappa0(S_(l-1)) + S_l``, from ``S_0 = T_0 = u``.
    b_std : float
        For every layer.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.presets.mlp(1)
    Sequential(Dense(1.0), Relu(), Dense(1.4142135623730951))
    """
    depth = _check.count(depth, "depth")
    activation = Relu() if activation is None else activation
    _check.an_instance(activation, _Activation, "activation", "an activation")
    first, later = (1.0, math.sqrt(2)) if w_std is None else (w_std, w_std)
    return Sequential(Dense(first, b_std), *[activation, Dense(later, b_std)] * depth)


def cntk(depth: int, gap: bool = True, fix: bool = False, axes: int = 2) -> Sequential:
    """Return the network whose ``.ntk`` is the CNTK of Arora et al. (2019), number for number.

    Parameters
    ----------
    depth : int
        The number of convolutions plus one, at least 2.
    gap : bool
        Whether global average pooling, or else a sum over positions, comes before the last layer.
    fix : bool
        Whether the first convolution and the last layer stay as they were initialised.
    axes : {2, 1}
        2 for images, as published; 1 for signals (n, L, C), with filters of 3.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> kc.presets.cntk(3).ntk(np.ones((1, 4, 4, 3)))
    array([[2.33434801]])
    >>> kc.presets.cntk(3, axes=1).ntk(np.ones((1, 16, 2)))
    array([[5.0152323]])
    """
    depth = _check.count(depth, "depth", least=2)
    gap, fix = _check.flag(gap, "gap"), _check.flag(fix, "fix")
    axes = _check.count(axes, "axes", least=1)
    filters = (3,) * _check.at_most(axes, 2, "axes", "those of images")
    first, later = (Conv(filters, w_std=math.sqrt(2), trainable=t) for t in (not fix, True))
    layers = [Input(sum=True), first, Relu(), *[later, Relu()] * (depth - 2)]
    readout = GlobalAvgPool() if gap else Flatten(sum=True)
    return Sequential(*layers, readout, Dense(trainable=not fix))


def myrtle(depth: int, kernel: str = "relu") -> Sequential:
    """Return a network whose ``.nngp`` is Myrtle's (Shankar et al. 2020), number for number.

    Parameters
    ----------
    depth : {5, 7, 10}
    kernel : {"relu", "exp"}
        The map after each convolution: kappa1, or ``exp(u - 1)``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> kc.presets.myrtle(5).nngp(np.ones((1, 32, 32, 3)))
    array([[1.]])
    """
    blocks = {5: (2, 1, 1), 7: (2, 2, 2), 10: (3, 3, 3)}
    _check.unless(_check.count(depth, "depth") not in blocks, "depth", "5, 7 or 10", depth)
    relu = _check.choice(kernel, "kernel", ("relu", "exp")) == "relu"
    profile = Kappa1() if relu else Exp(1.0)
    layers: list[Layer] = [Input(sum=True)]
    block = [Conv(3, w_std=math.sqrt(2)), Relu()] if relu else [Conv(3), DotProduct(profile)]
    for pool, count in zip((AvgPool(2), AvgPool(2), AvgPool(8)), blocks[depth], strict=True):
        layers += block * count + [pool]
    return Sequential(*layers, GlobalAvgPool(), Project(), DotProduct(profile))


def ckn(
    patches: int | Sequence[int] = 2,
    pools: int | Sequence[int] | None = None,
    profiles: ProfileLike | Sequence[ProfileLike] | None = None,
) -> Sequential:
    """Return a convolutional kernel network; ``.nngp`` is Bietti's (2021), number for number.

    Parameters
    ----------
    patches : int or sequence of int
        Patch size of each layer; or 1, 2 or 3 as the number of layers of the published settings:
        patches 3 throughout, pooling 5, (2, 5) or (2, 2, 2).
    pools : int or sequence of int, optional
        The subsampling of the Gaussian pooling after each layer.
    profiles : profile or sequence of profiles, optional
        The profile of each layer; ``profiles.Exp(0.6)`` by default.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.presets.ckn((3,), (2,)).layers[1:4]
    (Conv((3, 3), w_std=3.0), DotProduct(profiles.Exp(0.6)), GaussianPool(2))
    """
    if isinstance(patches, (list, tuple)):
        sizes = [_check.count(p, f"patches[{k}]", least=1) for k, p in enumerate(patches)]
        if not sizes:
            raise ValueError("patches must have at least one entry: got none")
        if pools is None:
            raise ValueError("pools must be given with a sequence of patches: got None")
    else:
        defaults = {1: (5,), 2: (2, 5), 3: (2, 2, 2)}
        count = _check.count(patches, "patches")
        _check.unless(count not in defaults, "patches", "1, 2, 3 or a sequence of sizes", patches)
        sizes = [3] * count
        pools = defaults[count] if pools is None else pools
    steps: list[Any] = list(pools) if isinstance(pools, (list, tuple)) else [pools] * len(sizes)
    if profiles is None or isinstance(profiles, Profile) or callable(profiles):
        profiles = [Exp(0.6) if profiles is None else profiles] * len(sizes)
    elif not isinstance(profiles, (list, tuple)):
        raise TypeError(
            f"profiles must be a profile or a sequence of them: got {type(profiles).__name__}"
        )
    for name, values in (("pools", steps), ("profiles", profiles)):
        if len(values) != len(sizes):
            raise ValueError(
                f"{name} must have one entry per layer: got {len(values)} for {len(sizes)} patches"
            )
    layers: list[Layer] = [Input(sum=True)]
    for k, (patch, pool, profile) in enumerate(zip(sizes, steps, profiles, strict=True)):
        pool = _check.count(pool, f"pools[{k}]", least=1)
        layers += [Conv(patch, w_std=float(patch)), DotProduct(as_profile(profile))]
        layers.append(GaussianPool(pool))
    return Sequential(*layers, Flatten(sum=True))
