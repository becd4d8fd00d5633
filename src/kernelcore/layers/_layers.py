"""Layers: small immutable values that networks are written with."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from .. import _check, program
from .._value import Value
from ..program import Form, Node, Window
from ..series.functions import Function

__all__ = ["AvgPool", "Conv", "Dense", "Flatten", "GaussianPool", "GlobalAvgPool", "Input"]

Sizes = int | Sequence[int]  # one for all axes, or one for each


class Layer(Value):
    """The base of all layers."""

    def _nodes(self) -> tuple[Node, ...]:
        """Return what this layer is in a program."""
        raise NotImplementedError


class Applied(Layer):
    """The base of activations and maps, which apply a function to the kernel."""

    _needs_gaussian, _keeps_gaussian = True, False
    _smooth = True  # whether the derivative of the dual is finite at 1

    def _form(self) -> Form:
        """Return how engines compute the function."""
        raise NotImplementedError

    def _series(self, q: float) -> Function | None:
        """Return the dual at variance q over its value at 1, as a series in u, or None."""
        raise NotImplementedError

    def _nodes(self) -> tuple[Node, ...]:
        return (program.Apply(self, layer=self),)


class Input(Layer):
    """The optional first layer: input kernel ``<x, x'>/d``, or ``<x, x'>`` with ``sum=True``.

    Parameters
    ----------
    sum : bool, default False
        Whether coordinates are added up instead of averaged.

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

    def _nodes(self) -> tuple[Node, ...]:
        return (program.Input("sum" if self.sum else "mean", layer=self),)


class Dense(Layer):
    """A fully connected layer of infinite width in the NTK parameterisation.

    It sets ``K <- w_std^2 K + b_std^2`` and ``T <- K + w_std^2 T``; frozen, T without the K.

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

    _parameters: tuple[str, ...] = ("w_std", "b_std", "trainable")
    _tunable = ("w_std", "b_std")
    _defaults = {"b_std": 0.0, "trainable": True}

    def __init__(self, w_std: float = 1.0, b_std: float = 0.0, trainable: bool = True) -> None:
        self.w_std = _check.non_negative(w_std, "w_std")
        self.b_std = _check.non_negative(b_std, "b_std")
        self.trainable = _check.flag(trainable, "trainable")

    def _window(self) -> Window | None:
        return None

    def _nodes(self) -> tuple[Node, ...]:
        parts = (self.w_std, self.b_std, self.trainable, self._window())
        return (program.Weights(*parts, layer=self),)


class Spatial(Layer):
    """The base of the layers that need positions: signals (n, L, C) or images (n, H, W, C)."""

    @functools.cached_property
    def _axes(self) -> int | None:
        """The number of axes of positions this layer is for; None for any."""
        return self._nodes()[0].axes or None

    def _for_axes(self, axes: int) -> str:
        """Return how this layer is written for so many axes, with its first size along each."""
        sizes = getattr(self, self._parameters[0])
        return f"{type(self).__name__}({sizes[:1] * axes!r})"


class Conv(Dense, Spatial):
    """A convolution of infinite width: the mean over a patch, then what ``Dense`` does.

    Parameters
    ----------
    filter_size : int or tuple of int
        ``3`` is 3 x 3 on images, ``(3,)`` a filter of 3 on signals; ``(3, 5)`` is 3 x 5.
    stride : int or tuple of int
    padding : {"same", "valid", "circular"}
        ``same`` (zeros) and ``circular`` leave ``ceil(size / stride)`` positions; the smaller half
        of the padding comes first. ``valid`` pads nothing. The mean always divides by the whole
        filter.
    w_std, b_std, trainable
        As in ``Dense``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> net = kc.Sequential(kc.Conv(3, w_std=2**0.5), kc.Relu(), kc.GlobalAvgPool(), kc.Dense())
    >>> net.nngp(np.ones((1, 4, 4, 3)))
    array([[0.53508098]])
    """

    _parameters = ("filter_size", "stride", "padding", "w_std", "b_std", "trainable")

    def __init__(
        self, filter_size: Sizes, stride: Sizes = 1, padding: str = "same",
        w_std: float = 1.0, b_std: float = 0.0, trainable: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(w_std, b_std, trainable)
        self.filter_size = _check.sizes(filter_size, "filter_size")
        self.stride = _check.sizes(stride, "stride", self.filter_size)
        self.padding = _check.choice(padding, "padding", ("same", "valid", "circular"))

    @property
    def _defaults(self) -> dict[str, object]:  # type: ignore[override]  # depends on the filter
        stride = (1,) * len(self.filter_size)
        return Dense._defaults | {"stride": stride, "padding": "same", "w_std": 1.0}

    def _window(self) -> Window | None:
        return Window(self.filter_size, self.stride, self.padding)


class Pool(Spatial):
    """The base of the layers that average over windows of positions."""


class AvgPool(Pool):
    """The mean over windows.

    Parameters
    ----------
    window : int or tuple of int
        ``2`` is 2 x 2 on images, ``(2,)`` for signals.
    stride : int or tuple of int, optional
        The window by default.
    padding : {"valid", "same", "circular"}
        As in ``Conv``; the mean always divides by the whole window.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Sequential(kc.AvgPool((2,)), kc.Flatten()).nngp([[[1.0], [3.0], [2.0], [2.0]]])
    array([[4.]])
    """

    _parameters = ("window", "stride", "padding")

    def __init__(self, window: Sizes, stride: Sizes | None = None, padding: str = "valid") -> None:
        self.window = _check.sizes(window, "window")
        self.stride = _check.sizes(self.window if stride is None else stride, "stride", self.window)
        self.padding = _check.choice(padding, "padding", ("same", "valid", "circular"))

    @property
    def _defaults(self) -> dict[str, object]:  # type: ignore[override]  # depends on the window
        return {"stride": self.window, "padding": "valid"}

    def _nodes(self) -> tuple[Node, ...]:
        taps = tuple((1 / n,) * n for n in self.window)
        return (program.Pool(Window(self.window, self.stride, self.padding), taps, layer=self),)


class GaussianPool(Pool):
    """A Gaussian filter and subsampling, as in convolutional kernel networks (Bietti 2021).

    With ``s`` the subsampling, the filter has along each axis ``2 s + 1`` taps of standard
    deviation ``s / sqrt 2`` that sum to 1. Windows start at multiples of s and there are
    ``size // s - 1`` of them; a tap past the border counts as zero.

    Parameters
    ----------
    subsampling : int or tuple of int
        One number counts for all axes, of images and of signals.
    sigma : float, optional
        Another standard deviation, in pixels. The filter then has its taps up to 3 sigma from its
        middle, and windows are those of ``same`` padding: ``ceil(size / s)`` of them, centred.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> kc.Sequential(kc.GaussianPool(1), kc.Flatten()).nngp(np.ones((1, 3, 1)))
    array([[0.81051805]])
    """

    _parameters = ("subsampling", "sigma")
    _defaults = {"sigma": None}

    def __init__(self, subsampling: Sizes, sigma: float | None = None) -> None:
        sizes = _check.sizes(subsampling, "subsampling")
        one = not isinstance(subsampling, (tuple, list))
        self.subsampling: int | tuple[int, ...] = sizes[0] if one else sizes
        self.sigma = None if sigma is None else _check.positive(sigma, "sigma")

    def _nodes(self) -> tuple[Node, ...]:
        given, sigma = self.subsampling, self.sigma
        scales = (given,) if isinstance(given, int) else given
        reach = scales if sigma is None else (math.ceil(3 * sigma),) * len(scales)
        twice = [s * s if sigma is None else 2 * sigma * sigma for s in scales]
        bells = [
            np.exp(-((np.arange(2 * r + 1) - r) ** 2) / t)
            for r, t in zip(reach, twice, strict=True)
        ]
        taps = tuple(tuple((bell / bell.sum()).tolist()) for bell in bells)
        sizes = tuple(2 * r + 1 for r in reach)
        padding = "behind" if sigma is None else "same"
        window = Window(sizes, scales, padding, isinstance(given, int))
        return (program.Pool(window, taps, layer=self),)


class Readout(Spatial):
    """The base of the layers after which there are no positions."""


class GlobalAvgPool(Readout):
    """The mean over all positions: the kernel's mean over all pairs of them.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Sequential(kc.GlobalAvgPool()).nngp([[[1.0], [3.0]]])
    array([[4.]])
    """

    def _nodes(self) -> tuple[Node, ...]:
        return (program.Readout(equal=False, layer=self),)


class Flatten(Readout):
    """All positions side by side: the kernel's mean over equal positions, or their sum.

    Parameters
    ----------
    sum : bool, default False
        Whether positions are added up, as if the weights of the next layer had the variance 1.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Sequential(kc.Flatten()).nngp([[[1.0], [3.0]]])
    array([[5.]])
    """

    _parameters = ("sum",)
    _defaults = {"sum": False}

    def __init__(self, sum: bool = False) -> None:
        self.sum = _check.flag(sum, "sum")

    def _nodes(self) -> tuple[Node, ...]:
        return (program.Readout(equal=True, total=self.sum, layer=self),)
