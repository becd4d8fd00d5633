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

__all__ = ["ckn", "cntk", "mlp", "myrtle", "pooled_cntk"]


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


def cntk(
    depth: int, gap: bool = True, fix: bool = False, axes: int = 2, pool: int | None = None
) -> Sequential:
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
    pool : int, optional
        The window of local average pooling (Li et al. 2019) in the place of the global one: the
        mean over windows at every position, and the sum over positions. For images with a border of
        zeros it is the kernel without pooling, averaged over as many shifted copies.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> kc.presets.cntk(3).ntk(np.ones((1, 4, 4, 3)))
    array([[2.33434801]])
    >>> kc.presets.cntk(3, axes=1).ntk(np.ones((1, 16, 2)))
    array([[5.0152323]])
    >>> kc.presets.cntk(2, pool=3).layers[3:]
    (AvgPool((3, 3), stride=(1, 1), padding='same'), Flatten(sum=True), Dense(1.0))
    """
    depth = _check.count(depth, "depth", least=2)
    gap, fix = _check.flag(gap, "gap"), _check.flag(fix, "fix")
    axes = _check.count(axes, "axes", least=1)
    filters = (3,) * _check.at_most(axes, 2, "axes", "those of images")
    first, later = (Conv(filters, w_std=math.sqrt(2), trainable=t) for t in (not fix, True))
    layers = [Input(sum=True), first, Relu(), *[later, Relu()] * (depth - 2)]
    readout: list[Layer] = [GlobalAvgPool() if gap else Flatten(sum=True)]
    if pool is not None:
        _check.must(gap, "pool", "not be given with gap=False", pool)
        readout = [*_local(pool, axes), Flatten(sum=True)]
    return Sequential(*layers, *readout, Dense(trainable=not fix))


def myrtle(depth: int, kernel: str = "relu", pool: int | None = None) -> Sequential:
    """Return a network whose ``.nngp`` is Myrtle's (Shankar et al. 2020), number for number.

    Parameters
    ----------
    depth : {5, 7, 10}
    kernel : {"relu", "exp"}
        The map after each convolution: kappa1, or ``exp(u - 1)``.
    pool : int, optional
        As in ``cntk``, the window of local average pooling in the place of the last pooling, which
        is over 8 x 8 positions and then all. Images may then have any sides that 4 divides.

    Notes
    -----
    With ``Averaged(myrtle(5).nngp, Flip(2), joint=True)`` it is averaged over mirror images, as
    published; so is any kernel.

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
    ends: list[list[Layer]] = [[AvgPool(2)], [AvgPool(2)], [AvgPool(8), GlobalAvgPool()]]
    if pool is not None:
        ends[-1] = [*_local(pool), Flatten()]
    for count, end in zip(blocks[depth], ends, strict=True):
        layers += [*block * count, *end]
    return Sequential(*layers, Project(), DotProduct(profile))


def ckn(
    patches: int | Sequence[int] = 2,
    pools: int | Sequence[int] | None = None,
    profiles: ProfileLike | Sequence[ProfileLike] | None = None,
    *,
    sigmas: float | Sequence[float] | None = None,
    antialias: float | None = None,
    non_expansive: bool = False,
    pool: int | None = None,
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
        The profile of each layer; ``profiles.Exp(0.6)`` by default, which is published, and which
        expands distances by up to 1.67 (``profile.lipschitz``).
    sigmas : float or sequence of float, optional
        sigma_k, the standard deviation of the pooling after each layer, in pixels of that layer;
        by default, and as published, that of ``GaussianPool``.
    antialias : float, optional
        sigma_0 of the filter A_0 before the first layer; none by default.
    non_expansive : bool
        Whether to refuse profiles whose maps are not non-expansive, as stability to deformations
        asks for.
    pool : int, optional
        The window of local average pooling at every position, as in ``cntk``, on top of the last
        Gaussian pooling.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.presets.ckn((3,), (2,)).layers[1:4]
    (Conv((3, 3), w_std=3.0), DotProduct(profiles.Exp(0.6)), GaussianPool(2))
    >>> kc.presets.ckn((3,), (2,), kc.profiles.Kappa1(), sigmas=1.5, antialias=0.7).layers[1]
    GaussianPool(1, sigma=0.7)
    """
    sizes, pooling = _stages(patches, pools, sigmas)
    if profiles is None or isinstance(profiles, Profile) or callable(profiles):
        profiles = [Exp(0.6) if profiles is None else profiles] * len(sizes)
    elif not isinstance(profiles, (list, tuple)):
        raise TypeError(
            f"profiles must be a profile or a sequence of them: got {type(profiles).__name__}"
        )
    _one_per_layer(profiles, "profiles", len(sizes))
    layers = _filtered(antialias)
    non_expansive = _check.flag(non_expansive, "non_expansive")
    for patch, gaussian, given in zip(sizes, pooling, profiles, strict=True):
        profile = as_profile(given)
        fine = not non_expansive or profile.lipschitz <= 1
        _check.must(
            fine, "profiles", "be non-expansive", f"{profile!r} of constant {profile.lipschitz:.3g}"
        )
        layers += [Conv(patch, w_std=float(patch)), DotProduct(profile), gaussian]
    local = [] if pool is None else _local(pool)
    return Sequential(*layers, *local, Flatten(sum=True))


def pooled_cntk(
    patches: int | Sequence[int] = 2,
    pools: int | Sequence[int] | None = None,
    *,
    sigmas: float | Sequence[float] | None = None,
    antialias: float | None = None,
) -> Sequential:
    """Return the network whose ``.ntk`` is the convolutional NTK of Bietti and Mairal (2019).

    It has ReLU and Gaussian pooling, ``Phi(x) = A_n M(x_n, y_n)`` with
    ``x_k = P_k A_(k-1) phi_1(x_(k-1))`` and ``y_k = P_k A_(k-1) M(x_(k-1), y_(k-1))``, summed over
    positions. Its ``.nngp`` is ``ckn`` with the profile kappa1: the same, where only the last layer
    is trained.

    Parameters
    ----------
    patches, pools, sigmas, antialias
        As in ``ckn``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> images = np.ones((1, 8, 8, 1))
    >>> kc.presets.pooled_cntk((3,), (2,)).ntk(images).round(6)
    array([[118.957614]])
    """
    sizes, pooling = _stages(patches, pools, sigmas)
    layers = _filtered(antialias)
    for k, (patch, pool) in enumerate(zip(sizes, pooling, strict=True)):
        # Later weights undo the factor 1/2 of the layer before.
        w_std = patch * (math.sqrt(2) if k else 1.0)
        layers += [Conv(patch, w_std=w_std), Relu(), pool]
    return Sequential(*layers, Flatten(sum=True), Dense(math.sqrt(2)))


def _local(pool: int, axes: int = 2) -> list[Layer]:
    """Return local average pooling, which leaves every position in its place."""
    window = (_check.count(pool, "pool", least=1),) * axes
    return [AvgPool(window, stride=(1,) * axes, padding="same")]


def _stages(patches: Any, pools: Any, sigmas: Any) -> tuple[list[int], list[GaussianPool]]:
    """Return patch sizes, and the pooling after each."""
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
    steps, widths = (
        list(given) if isinstance(given, (list, tuple)) else [given] * len(sizes)
        for given in (pools, sigmas)
    )
    _one_per_layer(steps, "pools", len(sizes))
    _one_per_layer(widths, "sigmas", len(sizes))
    steps = [_check.count(step, f"pools[{k}]", least=1) for k, step in enumerate(steps)]
    return sizes, [GaussianPool(*pair) for pair in zip(steps, widths, strict=True)]


def _one_per_layer(values: Sequence[Any], name: str, count: int) -> None:
    if len(values) != count:
        raise ValueError(
            f"{name} must have one entry per layer: got {len(values)} for {count} patches"
        )


def _filtered(antialias: float | None) -> list[Layer]:
    """Return the layers before the first patch."""
    layers: list[Layer] = [Input(sum=True)]
    if antialias is not None:
        layers.append(GaussianPool(1, _check.positive(antialias, "antialias")))
    return layers
