"""Layers: small immutable values that networks are written with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _check
from ._value import Value

if TYPE_CHECKING:
    from ._program import Walk


class Layer(Value):
    """Base of all layers."""

    def _pass(self, walk: Walk) -> None:
        """Send the rows of a walk through this layer."""
        raise NotImplementedError


class Input(Layer):
    """Optional first layer: the input kernel is ``<x, x'>/d``, or ``<x, x'>`` with ``sum=True``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Sequential(kc.Input(sum=True), kc.Dense()).nngp([[3.0, 4.0]])
    array([[25.]])
    """

    _parameters = ("sum",)
    _defaults = {"sum": False}

    def __init__(self, sum: bool = False) -> None:
        self.sum = _check.flag(sum, "sum")


class Dense(Layer):
    """A fully connected layer of infinite width in the NTK parameterisation.

    ``K <- w_std^2 K + b_std^2`` and ``T <- K + w_std^2 T``, without the first term when frozen.

    Parameters
    ----------
    w_std, b_std : float, not negative
        Standard deviations of weights (times sqrt of the fan-in) and biases at initialisation.
    trainable : bool
        Whether weights and biases are trained: a frozen layer leaves its term out of the NTK.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Dense(2**0.5, b_std=0.1)
    Dense(1.4142135623730951, b_std=0.1)
    """

    _parameters = ("w_std", "b_std", "trainable")
    _defaults = {"b_std": 0.0, "trainable": True}

    def __init__(self, w_std: float = 1.0, b_std: float = 0.0, trainable: bool = True) -> None:
        self.w_std = _check.non_negative(w_std, "w_std")
        self.b_std = _check.non_negative(b_std, "b_std")
        self.trainable = _check.flag(trainable, "trainable")

    def _pass(self, walk: Walk) -> None:
        walk.dense(self.w_std, self.b_std, self.trainable, repr(self))


class Spatial(Layer):
    """Base of the layers that need positions: signals (n, L, C) or images (n, H, W, C)."""


class Conv(Spatial):
    """A convolution: the mean over a patch, then as ``Dense``.

    Parameters
    ----------
    filter_size : int or tuple of int
        ``3`` is 3 x 3 on images, ``(3,)`` a filter of 3 on signals, ``(3, 5)`` unequal.
    stride : int or tuple of int
    padding : {"same", "valid", "circular"}
    w_std, b_std, trainable
        As in ``Dense``.
    """

    _parameters = ("filter_size", "stride", "padding", "w_std", "b_std", "trainable")
    _defaults = {
        "stride": (1, 1), "padding": "same", "w_std": 1.0, "b_std": 0.0, "trainable": True
    }  # fmt: skip

    def __init__(
        self, filter_size, stride=1, padding: str = "same",
        w_std: float = 1.0, b_std: float = 0.0, trainable: bool = True,
    ) -> None:  # fmt: skip
        self.filter_size = _check.sizes(filter_size, "filter_size")
        self.stride = _check.sizes(stride, "stride", axes=len(self.filter_size))
        self.padding = _check.choice(padding, "padding", ("same", "valid", "circular"))
        self.w_std = _check.non_negative(w_std, "w_std")
        self.b_std = _check.non_negative(b_std, "b_std")
        self.trainable = _check.flag(trainable, "trainable")


class AvgPool(Spatial):
    """The mean over windows; the stride defaults to the window."""

    _parameters = ("window", "stride", "padding")
    _defaults = {"padding": "valid"}

    def __init__(self, window, stride=None, padding: str = "valid") -> None:
        self.window = _check.sizes(window, "window")
        self.stride = (
            self.window if stride is None else _check.sizes(stride, "stride", len(self.window))
        )
        self.padding = _check.choice(padding, "padding", ("same", "valid", "circular"))


class GlobalAvgPool(Spatial):
    """The mean over all positions."""


class Flatten(Spatial):
    """All positions side by side: the mean over equal positions, or their sum."""

    _parameters = ("sum",)
    _defaults = {"sum": False}

    def __init__(self, sum: bool = False) -> None:
        self.sum = _check.flag(sum, "sum")
