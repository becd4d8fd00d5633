"""Networks by name."""

from __future__ import annotations

import math

from . import _check
from .activations import Relu, _Activation
from .architecture import Sequential
from .layers import Dense


def mlp(
    depth: int,
    activation: _Activation | None = None,
    w_std: float | None = None,
    b_std: float = 0.0,
) -> Sequential:
    """A fully connected network of ``depth`` hidden layers.

    Parameters
    ----------
    depth : int
        Hidden layers; 0 is a linear model.
    activation : activation, optional
        ``Relu()`` by default.
    w_std : float, optional
        Of every layer; by default 1 for the first and sqrt 2 for the others. With ReLU the kernels
        on the sphere of radius sqrt(d) are then ``S_l = kappa1(S_(l-1))`` and
        ``T_l = T_(l-1) kappa0(S_(l-1)) + S_l``, from ``S_0 = T_0 = u``.
    b_std : float
        Of every layer.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.presets.mlp(1)
    Sequential(Dense(1.0), Relu(), Dense(1.4142135623730951))
    """
    depth = _check.count(depth, "depth")
    activation = Relu() if activation is None else activation
    if not isinstance(activation, _Activation):
        raise TypeError(f"activation must be an activation: got {type(activation).__name__}")
    first, later = (1.0, math.sqrt(2)) if w_std is None else (w_std, w_std)
    layers: list = [Dense(first, b_std)]
    for _ in range(depth):
        layers += [activation, Dense(later, b_std)]
    return Sequential(*layers)
