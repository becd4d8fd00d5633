"""Kernels of networks of finite width: tangent kernels at any theta, and those of hidden units."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..engine import ASSIGN, Inputs, backend_of
from ..engine.memory import budget
from ..kernels import Kernel
from ..linalg import namespace_of
from ..linalg.arrays import joined, reshaped, summed, zeros
from ..linalg.blas import product, row_blocks
from ._network import Network
from ._steps import Activate, Weigh, backward, forward

SHARE = 0.2
"""The share of the memory budget for what inputs of one side leave behind."""


class OfTraces(Kernel):
    """A kernel that is a sum over inner products of what each input leaves behind."""

    def _beside(self, combine: int, symmetric: bool) -> int:
        return 0 if combine == ASSIGN else 1

    def _into(self, points: Inputs, out: Array, factor: float, combine: int) -> None:
        if combine != ASSIGN:
            self._apart(points, out, factor, combine)
            return
        x, y = points.x, points.x if points.y is None else points.y
        if not out.size:
            return
        rows = self._rows(x)
        for i in row_blocks(len(x), rows):
            left = self._left(x[i, ...])
            for j in row_blocks(len(y), rows):
                if points.y is None and j.start < i.start:
                    continue
                same = points.y is None and i == j
                right = left if same else self._left(y[j, ...])
                block = self._between(left, right)
                block *= factor
                # products of BLAS may differ from their transposes in the last bit
                out[i, j] = (block + block.T) / 2 if same else block
                if points.y is None and not same:
                    out[j, i] = block.T

    def _diagonal(self, points: Inputs, factor: float) -> Array:
        found = zeros((len(points.x),), points.x)
        if not found.size:
            return found
        for i in row_blocks(len(found), self._rows(points.x)):
            found[i] = self._squares(self._left(points.x[i, ...]))
        return found * factor

    def _rows(self, x: Array) -> int:
        """Return how many inputs are taken at a time: all, if memory allows."""
        self._begin(x)
        each = self._numbers() * np.dtype(_check.dtype_name(x.dtype)).itemsize
        return max(1, int(SHARE * budget() // each))

    def _begin(self, x: Array) -> None:
        """Make ready for inputs like these."""
        raise NotImplementedError

    def _numbers(self) -> int:
        """Return the numbers that an input leaves behind."""
        raise NotImplementedError

    def _left(self, x: Array) -> list[Any]:
        """Return what inputs leave behind."""
        raise NotImplementedError

    def _between(self, a: list[Any], b: list[Any]) -> Array:
        """Return the kernel of some inputs with others."""
        raise NotImplementedError

    def _squares(self, a: list[Any]) -> Array:
        """Return the kernel of every input with itself."""
        raise NotImplementedError

    def _profile(self, u: Array, radius: float, dim: int) -> Array:
        _check.no_profile(self, "is of a finite network")

    def _radius(self, dim: int) -> float | None:
        return 1.0


class _OfNetwork(OfTraces):
    """The same for a ``Network``."""

    _parameters: tuple[str, ...] = ("network",)
    network: Network

    @property
    def _images(self) -> bool:
        return self.network.program.input.domain == "positions"

    def _open(self, X: Any, Y: Any, n_threads: int) -> Inputs:
        return backend_of(X, Y).open(self.network.program, X, Y, n_threads)

    def _accepts(self, points: Inputs) -> None:
        points.takes(self.network.program)

    def _begin(self, x: Array) -> None:
        self.network._inputs(x[:1, ...])


class Trace(NamedTuple):
    """What inputs leave behind in a layer of weights, for its term of the tangent kernel.

    Either columns c and slopes g of all positions, whose term is a sum over pairs of positions of
    ``(c c')(g g')``; or, where that is cheaper, derivatives by the weights.
    """

    c: Array  # (n P, fan-in), or (n, fan-in units) of derivatives
    g: Array | None  # (n P, units), all outputs side by side
    positions: int
    scale: float
    shift: float


def between(a: list[Trace], b: list[Trace]) -> Array:
    """Return the sum of the terms of all layers, for some inputs with others."""
    total: Any = None
    for s, t in zip(a, b, strict=True):
        term = product(s.c, t.c.T)
        if s.g is not None and t.g is not None:
            slopes = product(s.g, t.g.T)
            term *= s.scale
            if s.shift:
                term += s.shift
            term *= slopes
            if s.positions > 1:
                p = s.positions
                pairs = reshaped(term, (len(term) // p, p, -1, p))
                term = namespace_of(term).sum(pairs, axis=(1, 3))
        if total is None:
            total = term
        else:
            total += term
    if total is None:  # nothing is trained
        raise ValueError("network must have layers that are trained: all are frozen")
    return total


def squares(a: list[Trace]) -> Array:
    """Return the same for every input with itself."""
    total: Any = 0.0
    for t in a:
        if t.g is None:
            total = total + _squares(t.c)
            continue
        p = t.positions
        c, g = (reshaped(x, (len(x) // p, p, -1)) for x in (t.c, t.g))
        term = (c @ _turned(c) * t.scale + t.shift) * (g @ _turned(g))
        total = total + namespace_of(term).sum(term, axis=(1, 2))
    return total


def _turned(a: Array) -> Array:
    """Return the transposes of all matrices of a stack."""
    return a.transpose(0, 2, 1) if isinstance(a, np.ndarray) else a.mT


def _squares(a: Array) -> Array:
    """Return the squares of the norms of rows."""
    return np.einsum("ij,ij->i", a, a) if isinstance(a, np.ndarray) else summed(a * a, 1)


class EmpiricalNtk(_OfNetwork):
    """The tangent kernel of a finite network at its theta, ``network.ntk``.

    Where a network has k outputs, it is the mean of their k kernels. No Jacobian is held: in a
    dense layer the term is ``(A A') o (D D')``, A its inputs and D the derivatives by its outputs.

    Parameters
    ----------
    network : Network

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> f = kc.presets.mlp(2).sample(100, seed=0)
    >>> X = np.random.default_rng(0).standard_normal((5, 3))
    >>> J = f.jacobian(X)
    >>> bool(np.allclose(f.ntk(X), J @ J.T))
    True
    """

    def __init__(self, network: Network) -> None:
        self.network = _check.an_instance(network, Network, "network", "a Network")

    def __repr__(self) -> str:
        return f"{self.network!r}.ntk"

    def terms(self, X: ArrayLike, Y: ArrayLike | None = None) -> Array:
        """Return one summand for each layer of weights that is trained: (layers, n, m).

        Examples
        --------
        >>> import numpy as np
        >>> import kernelcore as kc
        >>> f = kc.presets.mlp(1).sample(10, seed=0)
        >>> X = np.eye(2)
        >>> bool(np.allclose(f.ntk.terms(X).sum(0), f.ntk(X)))
        True
        """
        network = self.network
        network._inputs(X)
        frozen = network._drawn.frozen[0]
        layers = [k for k, fixed in enumerate(frozen) if fixed is None]
        each = [network.training(k).ntk(X, Y) for k in layers]
        return namespace_of(*each).stack(each)

    def _numbers(self) -> int:
        return sum(
            self._direct(step)[1] for part in self.network._drawn.frozen
            for step in self._trained(part)
        ) or 1  # fmt: skip

    def _trained(self, frozen: Any) -> list[Weigh]:
        return [s for s, fixed in zip(self.network._weighs(), frozen, strict=True) if fixed is None]

    def _direct(self, step: Weigh) -> tuple[bool, int]:
        """Return whether derivatives are cheaper than pairs of positions; numbers of an input."""
        n, m = step.sizes
        p, k = step.positions, self.network.outputs
        pairs, straight = p * p * (n + k * m), k * n * m
        direct = straight < pairs
        return direct, k * n * m + k * m if direct else p * (n + k * m)

    def _left(self, x: Array) -> list[Trace]:
        network = self.network
        h = network._inputs(x)
        parts = list(network._each(network._blocks(len(h)), lambda s: self._traced(h[s, ...])))
        return [stacked(traces) for traces in zip(*parts, strict=True)]

    def _traced(self, h: Array) -> list[Trace]:
        """Return the traces of a block of inputs, for each part and layer that is trained."""
        network, traces = self.network, []
        tapes = network._evaluated(h)[1]
        steps, k = network._made.steps, network.outputs
        for part, (tape, at, sign) in enumerate(
            zip(tapes, network._at, network._signs(), strict=True)
        ):
            found: dict[int, tuple[Weigh, Array, list[Array]]] = {}

            def told(step: Any, g: Any, kept: Any, slopes: Any, found: Any = found) -> None:
                found.setdefault(step.place, (step, kept[0], []))[2].append(g[0])

            for j in range(k):
                u = zeros((len(h), 1, k), network.theta)
                u[:, 0, j] = sign / math.sqrt(k)
                backward(steps, tape, (u, None), at, None, told, slopes=False)
            frozen = network._drawn.frozen[part]
            traces += [self._trace(*found[k]) for k, w in enumerate(frozen) if w is None]
        return traces

    def _trace(self, step: Weigh, c: Array, slopes: list[Array]) -> Trace:
        n, p = c.shape[:2]
        if not self._direct(step)[0]:
            g = joined([reshaped(s, (n * p, -1)) for s in slopes], axis=1)
            return Trace(reshaped(c, (n * p, -1)), g, p, step.scale**2, step.shift**2)
        found = [reshaped(_turned(c) @ s, (n, -1)) * step.scale for s in slopes]
        found += [summed(s, 1) * step.shift for s in slopes if step.shift]
        return Trace(joined(found, axis=1), None, p, 1.0, 0.0)

    def _between(self, a: list[Trace], b: list[Trace]) -> Array:
        return between(a, b)

    def _squares(self, a: list[Trace]) -> Array:
        return squares(a)


def stacked(traces: tuple[Trace, ...]) -> Trace:
    """Return the traces of blocks of inputs as one."""
    if len(traces) == 1:
        return traces[0]
    g = None if traces[0].g is None else joined([t.g for t in traces if t.g is not None])
    return traces[0]._replace(c=joined([t.c for t in traces]), g=g)


class EmpiricalConjugate(_OfNetwork):
    """The kernel of the hidden units of a layer, ``network.conjugate(layer)``.

    Parameters
    ----------
    network : Network
    layer : int, default -1
        Counts layers of hidden units; negative ones from the end.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> f = kc.presets.mlp(1).sample(20_000, seed=0)
    >>> X = np.eye(2)
    >>> bool(np.abs(f.conjugate()(X) - kc.ArcCosine(1)(X) / 4).max() < 0.02)
    True
    """

    _parameters = ("network", "layer")

    def __init__(self, network: Network, layer: int = -1) -> None:
        self.network = _check.an_instance(network, Network, "network", "a Network")
        self.layer = layer

    def __repr__(self) -> str:
        return f"{self.network!r}.conjugate({self.layer})"

    def _end(self) -> int:
        """Return the number of steps up to the layer."""
        steps = self.network._made.steps
        found = [k + 1 for k, step in enumerate(steps) if isinstance(step, Activate)]
        return found[_check.index(self.layer, len(found), "layer")]

    def _numbers(self) -> int:
        return self.network._made.cost

    def _left(self, x: Array) -> list[Array]:
        network, end = self.network, self._end()
        h = network._inputs(x)

        def work(s: slice) -> list[Array]:
            found = []
            for at in network._at:
                out = forward_to(network, h[s, ...], at, end)
                found.append(reshaped(out, (len(out), -1)))
            return found

        parts = list(network._each(network._blocks(len(h)), work))
        return [joined(list(each)) for each in zip(*parts, strict=True)]

    def _between(self, a: list[Array], b: list[Array]) -> Array:
        total: Any = sum(product(s, t.T) / s.shape[1] for s, t in zip(a, b, strict=True))
        return total / len(a)

    def _squares(self, a: list[Array]) -> Array:
        total: Any = sum(_squares(s) / s.shape[1] for s in a)
        return total / len(a)


def forward_to(network: Network, h: Array, at: Any, end: int) -> Array:
    """Return what is between two steps, of shape (n, P, C)."""
    return forward(network._made.steps[:end], h, at).out[0]
