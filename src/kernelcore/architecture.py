"""Networks: layers in sequence, with residual connections, and how rows walk through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from . import _check
from .engine import accuracy as _accuracy
from .engine import threads as _threads
from .engine.cpu.program import Walk
from .kernels import Nngp, Ntk
from .kernels._kernel import both
from .layers import Dense, Input, Layer, Pool, Readout, Spatial
from .layers.activations import Identity, _Activation
from .layers.maps import DotProduct, Map

if TYPE_CHECKING:
    from .engine.cpu.images import Builder

Array = np.ndarray


class Kernels(NamedTuple):
    """Both kernels of a network on the same inputs."""

    nngp: Array
    ntk: Array


def _checked(layers: tuple, name: str) -> tuple[Layer, ...]:
    flat: list[Layer] = []
    for k, layer in enumerate(layers):
        if isinstance(layer, Sequential):
            flat.extend(layer.layers)
        elif isinstance(layer, Layer):
            flat.append(layer)
        else:
            raise TypeError(f"{name}[{k}] must be a layer: got {_check.kind_of(layer)}")
    return tuple(flat)


def _sequence(layers, name: str) -> tuple:
    return (layers,) if isinstance(layers, Layer) else _check.sequence(layers, name)


class Sequential(Layer):
    """Layers one after the other.

    Parameters
    ----------
    *layers : layers, Sequential or Residual
        Sequences inside are opened up.

    Examples
    --------
    >>> import kernelcore as kc
    >>> net = kc.Sequential(kc.Dense(2**0.5), kc.Relu(), kc.Dense())
    >>> net.ntk([[1.0, 1.0], [1.0, -1.0]])
    array([[2.        , 0.31830989],
           [0.31830989, 2.        ]])
    """

    _parameters = ("layers",)

    def __init__(self, *layers: Layer) -> None:
        self.layers = _checked(layers, "layers")
        for k, layer in enumerate(self.layers):
            if k and isinstance(layer, Input):
                raise ValueError(f"layers[{k}] must not be Input: Input comes first")

    def _rebuilt(self, parameters: dict) -> Sequential:
        return type(self)(*_sequence(parameters["layers"], "layers"))

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self.layers))})"

    @property
    def nngp(self) -> Nngp:
        """The covariance kernel of the network at initialisation (NNGP)."""
        self._validate()
        return Nngp(self)

    @property
    def ntk(self) -> Ntk:
        """The neural tangent kernel."""
        self._validate()
        _differentiable(self.layers)
        return Ntk(self)

    def kernels(self, X, Y=None, *, n_threads: int | None = None) -> Kernels:
        """Both kernels in one pass, as ``(nngp, ntk)``.

        Examples
        --------
        >>> import kernelcore as kc
        >>> both = kc.presets.mlp(1).kernels([[1.0, 1.0]])
        >>> both.nngp, both.ntk
        (array([[1.]]), array([[2.]]))
        """
        self._validate()
        _differentiable(self.layers)
        with _accuracy.Call(), _threads.Call(n_threads):
            return Kernels(*both(self, X, Y, n_threads))

    # -- lowering

    def _validate(self) -> None:
        _order(self.layers, False)
        _positions(self.layers)

    def _spatial(self) -> Spatial | None:
        """What decides the input: the first layer with axes of its own, or any with positions."""
        spatial = [x for x in _leaves(self.layers) if isinstance(x, Spatial)]
        return next((x for x in spatial if x._axes), spatial[0] if spatial else None)

    @property
    def _sum(self) -> bool:
        return bool(self.layers) and isinstance(self.layers[0], Input) and self.layers[0].sum

    def _pass(self, walk: Walk) -> None:
        for layer in self.layers:
            if not isinstance(layer, Input):
                layer._pass(walk)

    def _build(self, builder: Builder) -> None:
        for layer in self.layers:
            layer._build(builder)

    def _trained(self) -> list[Dense]:
        return [layer for layer in _dense(self.layers) if layer.trainable]

    def _training_only(self, which: int) -> Sequential:
        """The same network with the ``which``-th trained Dense alone left trainable."""
        seen = iter(range(len(self._trained())))

        def freeze(layer: Dense) -> Dense:
            if layer.trainable and next(seen) != which:
                return layer._frozen()
            return layer

        return Sequential(*_map_dense(self.layers, freeze))


class Residual(Layer):
    """A branch beside a shortcut: ``K <- K_shortcut + K_branch``, T likewise.

    Parameters
    ----------
    *layers : layers
        The branch; it ends in ``Dense`` or ``Conv`` and does not pool.
    shortcut : layers
        What the other side goes through; nothing by default.

    Examples
    --------
    >>> import kernelcore as kc
    >>> block = kc.Residual(kc.Relu(), kc.Dense(2**0.5))
    >>> kc.Sequential(kc.Dense(), block, block, kc.Dense()).nngp([[1.0, 1.0]])
    array([[4.]])
    """

    _parameters = ("layers", "shortcut")

    def __init__(self, *layers: Layer, shortcut: tuple[Layer, ...] | Layer = ()) -> None:
        self.layers = _checked(layers, "layers")
        self.shortcut = _checked(_sequence(shortcut, "shortcut"), "shortcut")
        for layer in _leaves(self.layers + self.shortcut):
            if isinstance(layer, Input):
                raise ValueError("layers must not hold Input: Input comes first in a network")
            if isinstance(layer, (Pool, Readout)):
                raise ValueError(f"layers must not pool inside Residual: got {layer!r}")
        if not self.layers or not isinstance(self.layers[-1], Dense):
            last = repr(self.layers[-1]) if self.layers else "nothing"
            raise ValueError(f"layers must end in Dense or Conv: the branch ends in {last}")

    def _rebuilt(self, parameters: dict) -> Residual:
        layers = _sequence(parameters["layers"], "layers")
        return type(self)(*layers, shortcut=parameters["shortcut"])

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.layers))
        return f"Residual({inner}{f', shortcut={self.shortcut!r}' if self.shortcut else ''})"

    def _pass(self, walk: Walk) -> None:
        walk.save()
        for layer in self.layers:
            layer._pass(walk)
        walk.swap()
        for layer in self.shortcut:
            layer._pass(walk)
        walk.merge("Residual")

    def _build(self, builder: Builder) -> None:
        builder.save()
        for layer in self.layers:
            layer._build(builder)
        builder.swap()
        for layer in self.shortcut:
            layer._build(builder)
        builder.merge(not self.shortcut, "Residual")


def _leaves(layers: tuple[Layer, ...]) -> Iterator[Layer]:
    for layer in layers:
        if isinstance(layer, Residual):
            yield from _leaves(layer.layers)
            yield from _leaves(layer.shortcut)
        else:
            yield layer


def _dense(layers: tuple[Layer, ...]) -> Iterator[Dense]:
    return (layer for layer in _leaves(layers) if isinstance(layer, Dense))


def _map_dense(layers: tuple[Layer, ...], f: Callable[[Dense], Dense]) -> list[Layer]:
    """The layers with every Dense replaced, in the order of ``_leaves``."""
    mapped: list[Layer] = []
    for layer in layers:
        if isinstance(layer, Residual):
            branch = _map_dense(layer.layers, f)
            mapped.append(Residual(*branch, shortcut=tuple(_map_dense(layer.shortcut, f))))
        else:
            mapped.append(f(layer) if isinstance(layer, Dense) else layer)
    return mapped


def _order(layers: tuple[Layer, ...], gaussian: bool, ready: bool = False) -> bool:
    """Refuse an activation of what is not Gaussian; return whether the output is.

    Weights make Gaussian, activations undo it, a sum is if both sides are. ``ready``: some weights
    came before.
    """
    for layer in layers:
        if isinstance(layer, Residual):
            if not ready:
                raise ValueError(
                    "layers must have a Dense or Conv before Residual: inputs are not Gaussian "
                    "before it"
                )
            sides = [_order(side, gaussian, ready) for side in (layer.layers, layer.shortcut)]
            gaussian = all(sides)
        elif isinstance(layer, _Activation):
            if not gaussian:
                raise ValueError(
                    f"layers must have a Dense or Conv before {layer!r}: inputs are not Gaussian "
                    "before it"
                )
            gaussian = isinstance(layer, Identity)
        elif isinstance(layer, Dense):
            gaussian = ready = True
        elif isinstance(layer, Map):
            gaussian = False
    return gaussian


def _positions(layers: tuple[Layer, ...]) -> None:
    """Refuse spatial layers that disagree in axes, come after the readout, or lack one."""
    first = None
    read = False
    for layer in _leaves(layers):
        if not isinstance(layer, Spatial):
            continue
        if read:
            raise ValueError(
                f"layers must not have {layer!r} after the readout: no positions are left"
            )
        read = isinstance(layer, Readout)
        if first is None and layer._axes:
            first = layer
        elif layer._axes and layer._axes != first._axes:
            raise ValueError(
                f"layers must agree in axes: {first!r} has {first._axes}, "
                f"{layer!r} has {layer._axes}"
            )
    if not read and any(isinstance(layer, Spatial) for layer in _leaves(layers)):
        raise ValueError(
            "layers must end their positions in GlobalAvgPool or Flatten: found neither"
        )


def _differentiable(layers: tuple[Layer, ...], trained: bool = False) -> bool:
    """Refuse a map of infinite slope after weights that are trained; return whether any are."""
    for layer in layers:
        if isinstance(layer, Residual):
            trained = any([_differentiable(s, trained) for s in (layer.layers, layer.shortcut)])
        elif isinstance(layer, Dense):
            trained = trained or layer.trainable
        elif trained and isinstance(layer, DotProduct) and not layer._smooth:
            raise ValueError(
                f"layers must train nothing before {layer!r}: its derivative is infinite at 1; "
                "freeze them, or ask for the nngp"
            )
    return trained
