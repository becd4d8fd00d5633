"""Networks: layers in sequence, with residual connections, lowered to programs."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _check, program
from ._types import Array, ArrayLike, Self
from .engine import accuracy, load, threads
from .kernels import Nngp, Ntk
from .layers import Dense, Input, Layer
from .program import Node, Program

if TYPE_CHECKING:
    from .networks import Network


class Kernels(NamedTuple):
    """Both kernels of a network on the same inputs; made by ``Sequential.kernels``.

    Attributes
    ----------
    nngp : array of shape (n, m)
        The covariance of the random network.
    ntk : array of shape (n, m)
        The tangent kernel.

    Examples
    --------
    >>> import kernelcore as kc
    >>> both = kc.presets.mlp(1).kernels([[1.0, 1.0]])
    >>> both.nngp.shape, both.ntk.shape
    ((1, 1), (1, 1))
    """

    nngp: Array
    ntk: Array


def _checked(layers: tuple[Any, ...], name: str) -> tuple[Layer, ...]:
    for k, layer in enumerate(layers):
        _check.an_instance(layer, Layer, f"{name}[{k}]", "a layer")
    opened = (layer.layers if isinstance(layer, Sequential) else (layer,) for layer in layers)
    return tuple(itertools.chain.from_iterable(opened))


def _sequence(layers: Any, name: str) -> tuple[Any, ...]:
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

    def _rebuilt(self, parameters: dict[str, object]) -> Self:
        return type(self)(*_sequence(parameters["layers"], "layers"))

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self.layers))})"

    @property
    def nngp(self) -> Nngp:
        """The covariance kernel of the network at initialisation (NNGP)."""
        return Nngp(self)

    @property
    def ntk(self) -> Ntk:
        """The neural tangent kernel."""
        _differentiable(self.program)
        return Ntk(self)

    def kernels(
        self, X: ArrayLike, Y: ArrayLike | None = None, *, n_threads: int | None = None
    ) -> Kernels:
        """Evaluate both kernels in one pass; return ``(nngp, ntk)``.

        Examples
        --------
        >>> import kernelcore as kc
        >>> both = kc.presets.mlp(1).kernels([[1.0, 1.0]])
        >>> both.nngp, both.ntk
        (array([[1.]]), array([[2.]]))
        """
        kernel = self.ntk
        with accuracy.Call(), threads.Call(n_threads):
            return Kernels(*kernel._both(X, Y, n_threads))

    def sample(
        self, width: int | Sequence[int], seed: Any = None, *, shape: Any = None,
        outputs: int | None = None, parameterization: str = "ntk", doubled: bool = False,
        alpha: float = 1.0, dtype: Any = None,
    ) -> Network:  # fmt: skip
        """Draw a network of finite width, whose kernels tend to those of this one.

        Parameters
        ----------
        width : int or sequence of int
            The units of hidden layers, or channels; a sequence has one number for each of them.
        seed : int, numpy.random.Generator or None
        shape : int or tuple of int, optional
            The shape of an input. By default weights are drawn when the first inputs arrive, and
            are put where these are, on a device for example.
        outputs : int, optional
            The number of outputs; by default there is one, and outputs have no axis for it.
        parameterization : {'ntk', 'standard', 'xavier'}
            Weights are standard normal, and multiplied by ``w_std/sqrt(fan-in)`` in each pass; or
            they are drawn with that standard deviation, or with that of Xavier,
            ``w_std sqrt(2/(fan-in + fan-out))``. Biases likewise, with ``b_std``; there are none
            where that is 0.
        doubled : bool
            Take the difference of two equal networks over sqrt 2: the output is zero at the start,
            and the tangent kernel is that of one.
        alpha : float
            What outputs are multiplied by.
        dtype : float32 or float64, optional
            That of the first inputs by default; float64 where ``shape`` is given.

        Examples
        --------
        >>> import numpy as np
        >>> import kernelcore as kc
        >>> net, X = kc.presets.mlp(2), np.eye(3)
        >>> f = net.sample(2000, seed=0)
        >>> f(X).shape
        (3,)
        >>> bool(np.abs(f.ntk(X) - net.ntk(X)).max() < 0.2)
        True
        """
        network: Network = load("kernelcore.networks").sample(
            self.program, width, seed, shape=shape, outputs=outputs, alpha=alpha, dtype=dtype,
            parameterization=parameterization, doubled=doubled,
        )  # fmt: skip
        return network

    @functools.cached_property
    def program(self) -> Program:
        """The lowered network: a value that engines, spectra and finite networks interpret.

        Examples
        --------
        >>> import kernelcore as kc
        >>> net = kc.Sequential(kc.Conv(3), kc.Relu(), kc.AvgPool(2), kc.Flatten(), kc.Dense())
        >>> print(net.program)
        program of images
        0  input    <x, x'> / channels at positions
        1  weights  w_std 1, b_std 0, trained, window 3 x 3, stride 1 x 1, same
        2  apply    Relu()
        3  pool     mean, window 2 x 2, stride 2 x 2, valid
        4  readout  mean over equal positions
        5  weights  w_std 1, b_std 0, trained
        """
        nodes = self._nodes()
        if not nodes or not isinstance(nodes[0], program.Input):
            nodes = (program.Input(), *nodes)
        if any(node.axes is not None for node in nodes):
            nodes = (nodes[0].replace(domain="positions"), *nodes[1:])
        _gaussian(nodes)
        _positions(nodes)
        return Program(nodes)

    def _nodes(self) -> tuple[Node, ...]:
        return tuple(node for layer in self.layers for node in layer._nodes())


class Residual(Layer):
    """A branch and a shortcut that are added: ``K <- K_shortcut + K_branch``, T likewise.

    Parameters
    ----------
    *layers : layers
        The branch; it ends in ``Dense`` or ``Conv`` and does not pool.
    shortcut : layers
        The layers of the shortcut; none by default.

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
        for node in self._nodes():
            if isinstance(node, program.Input):
                raise ValueError("layers must not hold Input: Input comes first in a network")
            if isinstance(node, (program.Pool, program.Readout)):
                raise ValueError(f"layers must not pool inside Residual: got {node.layer!r}")
        if not self.layers or not isinstance(self.layers[-1], Dense):
            last = repr(self.layers[-1]) if self.layers else "nothing"
            raise ValueError(f"layers must end in Dense or Conv: the branch ends in {last}")

    def _rebuilt(self, parameters: dict[str, Any]) -> Self:
        layers = _sequence(parameters["layers"], "layers")
        return type(self)(*layers, shortcut=parameters["shortcut"])

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.layers))
        return f"Residual({inner}{f', shortcut={self.shortcut!r}' if self.shortcut else ''})"

    def _nodes(self) -> tuple[Node, ...]:
        branch, shortcut = (
            [node for layer in side for node in layer._nodes()]
            for side in (self.layers, self.shortcut)
        )
        merge = program.Merge(plain=not self.shortcut, layer=self)
        return (program.Save(), *branch, program.Swap(), *shortcut, merge)


# ---- what a network must not be


def _gaussian(nodes: tuple[Node, ...]) -> None:
    """Refuse an activation of what is not Gaussian.

    Weights make outputs Gaussian, functions undo that, and a sum is Gaussian if both sides are.
    """
    text = "layers must have a Dense or Conv before {}: inputs are not Gaussian before it"
    gaussian = ready = False  # whether outputs are Gaussian, and whether weights came before
    stack: list[bool] = []
    for node in nodes:
        match node:
            case program.Weights():
                gaussian = ready = True
            case program.Apply(function):
                if function._needs_gaussian and not gaussian:
                    raise ValueError(text.format(repr(node.layer)))
                gaussian = function._keeps_gaussian
            case program.Save():
                if not ready:
                    raise ValueError(text.format("Residual"))
                stack.append(gaussian)
            case program.Swap():
                gaussian, stack[-1] = stack[-1], gaussian
            case program.Merge():
                gaussian = stack.pop() and gaussian


def _positions(nodes: tuple[Node, ...]) -> None:
    """Refuse spatial layers that disagree in axes, come after the readout, or lack one."""
    read, spatial = False, [node for node in nodes if node.axes is not None]
    first = next((node for node in spatial if node.axes), None)  # others are for any axes
    for node in spatial:
        if read:
            raise ValueError(
                f"layers must not have {node.layer!r} after the readout: no positions are left"
            )
        read = isinstance(node, program.Readout)
        if node.axes and first is not None and node.axes != first.axes:
            raise ValueError(
                f"layers must agree in axes: {first.layer!r} has {first.axes}, "
                f"{node.layer!r} has {node.axes}"
            )
    if spatial and not read:
        raise ValueError(
            "layers must end their positions in GlobalAvgPool or Flatten: found neither"
        )


def _differentiable(lowered: Program) -> None:
    """Refuse a function of infinite slope after weights that are trained."""
    trained, stack = False, []
    for node in lowered:
        match node:
            case program.Weights():
                trained = trained or node.trained
            case program.Apply(function):
                if trained and not function._smooth:
                    raise ValueError(
                        f"layers must train nothing before {node.layer!r}: its derivative is "
                        "infinite at 1; freeze them, or ask for the nngp"
                    )
            case program.Save():
                stack.append(trained)
            case program.Swap():
                trained, stack[-1] = stack[-1], trained
            case program.Merge():
                trained = stack.pop() or trained
