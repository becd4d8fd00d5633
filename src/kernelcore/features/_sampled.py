"""Hidden units and sketched gradients of finite networks, as features of any of their kernels.

A gradient by the weights of a layer is a sum over positions of products a (x) g, a what weights
multiply and g the derivative by what they give. With random signs u and v the products of
projections ``s(x) = sum over positions (u'a)(v'g)`` have ``E[s(x) s(x')] = <gradient, gradient'>``,
whatever a and g are, so that no gradient is held.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import _check, presets
from .._types import Array, ArrayLike, Self
from ..architecture import Sequential
from ..networks import Network
from ..networks._empirical import forward_to
from ..networks._network import BLOCK, LEAST, NTK, checked, linked, sample, widths_of
from ..networks._steps import Activate, Flat, Mean, Pool, Step, Weigh, backward, sized
from ._transformer import OfShapes, seeded_class

KINDS = ("nngp", "ntk")
OF_A_NETWORK = ("units", "gradient")
FEWER = ("fewer features",)


class Cut(NamedTuple):
    """Where a network is cut for its features: weights that are left out, and what follows."""

    at: int  # steps before
    readout: Weigh | None  # None where all steps stay
    after: list[Step]


def cut(steps: Sequence[Step]) -> Cut:
    """Return the last weights, or none where more than pooling follows them, as a shortcut."""
    last = max(k for k, step in enumerate(steps) if isinstance(step, Weigh))
    readout, after = steps[last], list(steps[last + 1 :])
    if isinstance(readout, Weigh) and all(isinstance(s, (Pool, Mean, Flat)) for s in after):
        return Cut(last, readout, after)
    return Cut(len(steps), None, [])


def read_out(h: Array, where: Cut) -> Array:
    """Return what the last weights multiply, such that inner products are the covariances.

    A bias is one more channel. What follows is linear and the same for all channels, so that it can
    be applied before the weights.
    """
    step = where.readout
    if step is None:
        return h.reshape(len(h), -1) / h.dtype.type(math.sqrt(h.shape[2]))
    c = step._columns(h)
    assert c is not None
    c = c * c.dtype.type(step.scale)
    if step.shift:
        c = np.concatenate([c, np.full((*c.shape[:2], 1), step.shift, c.dtype)], axis=2)
    channels = c.shape[2]
    for later in where.after:
        c = later.forward((c, None))[0][0]
    found = c.reshape(len(c), -1)
    if found.shape[1] > channels:  # all positions side by side, of which there is a mean
        found = found / found.dtype.type(math.sqrt(found.shape[1] / channels))
    return found


class Signs(NamedTuple):
    """Random signs for the gradient by the weights of a layer: those of u with the bias, and v."""

    u: Array  # (fan-in, or one more, N)
    v: Array  # (units, as many times as there are ways back, N)


class _OfNetwork(OfShapes):
    """The base of features that are read off a network."""

    network_: Network
    n_features: int
    _ways: Array  # (ways back, outputs): combinations of outputs whose gradients are summed
    _signs: list[list[Signs | None]]  # of each part and layer; None where it is not trained
    _held: dict[Any, tuple[Network, list[list[Signs | None]]]]  # the same in other dtypes

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | ({"_held": {}} if "_held" in self.__dict__ else {})

    def _host(self, X: ArrayLike, name: str = "X") -> Array:
        program = self._program()
        return super()._host(X, name) if program.decisive is None else checked(program, X, name)

    def _program(self) -> Any:
        raise NotImplementedError

    def _arrays(self, dtype: np.dtype[Any]) -> dict[str, Array]:
        self._in(dtype)  # before threads ask for it
        return {}

    def _in(self, dtype: np.dtype[Any]) -> tuple[Network, list[list[Signs | None]]]:
        """Return the network, and signs, in a dtype."""
        if dtype not in self._held:
            signs = [
                [None if s is None else Signs(*(a.astype(dtype) for a in s)) for s in part]
                for part in self._signs
            ]
            self._held[dtype] = self.network_._cast(dtype), signs
        return self._held[dtype]

    def _begin(self, network: Network) -> None:
        self.network_, self._signs, self._held = network, [], {}

    # ---- gradients

    def _draw_signs(self, rng: np.random.Generator, ways: Array) -> int:
        """Draw signs for all layers that are trained, and return how many features there are."""
        self._ways = ways / math.sqrt(ways.shape[1])
        network, n = self.network_, _check.count(self.n_features, "n_features", least=1)
        trained = network.theta.size > 0
        _check.must(trained, "network", "have layers that are trained", "none")
        for step in network._made.steps:
            if isinstance(step, Activate):
                step.activation.derivative(0.0)  # raises if it has none
        sizes = [(s.sizes[0] + (s.shift > 0), s.sizes[1]) for s in network._weighs()]
        total = sum(a + len(ways) * b for a, b in sizes) * len(network._drawn.frozen)
        _check.room("signs", (total, n), np.float64, 1, FEWER)
        for frozen in network._drawn.frozen:
            part: list[Signs | None] = []
            for (fan_in, units), fixed in zip(sizes, frozen, strict=True):
                shapes = (fan_in, n), (len(ways) * units, n)
                part.append(None if fixed is not None else Signs(*(_signs(rng, s) for s in shapes)))
            self._signs.append(part)
        return n

    def _sketch(self, h: Array, out: Array) -> None:
        """Write sketches of the gradients of a few inputs."""
        network, signs = self._in(out.dtype)
        out[...] = 0
        tapes = network._evaluated(h)[1]
        for tape, at, sign, own in zip(tapes, network._at, network._signs(), signs, strict=True):
            found: dict[int, tuple[Weigh, Array, list[Array]]] = {}

            def told(step: Any, g: Any, kept: Any, slopes: Any, found: Any = found) -> None:
                found.setdefault(step.place, (step, kept[0], []))[2].append(g[0])

            for way in (self._ways * sign).astype(out.dtype):
                u = np.broadcast_to(way, (len(h), 1, len(way)))
                backward(network._made.steps, tape, (u, None), at, None, told, slopes=False)
            for place, (step, c, slopes) in found.items():
                if (drawn := own[place]) is not None:
                    g = slopes[0] if len(slopes) == 1 else np.concatenate(slopes, axis=2)
                    out += _projected(step, c, g, drawn)
        out *= out.dtype.type(1 / math.sqrt(out.shape[1]))

    def _numbers(self) -> int:
        """Return the numbers that the features of one input need on their way."""
        made, more, n = self.network_._made, 0, self.n_features_out_
        for step in self.network_._weighs() if self._signs else ():
            units = len(self._ways) * step.sizes[1]
            direct = _direct(step, units, n)
            more = max(more, (units if direct else 2 * step.positions) * n)
        return made.cost + more

    def _block_rows(self, n: int, d: int) -> int:
        most = max(1, BLOCK // max(1, self._numbers()))
        return max(1, min(most, max(LEAST, -(-n // 8))))


def _combined(network: Network, rng: np.random.Generator) -> Array:
    """Return combinations of outputs whose gradients stand for all.

    Those of two units are orthogonal in the limit, so that one sum of all with random signs is
    enough; those of one unit at two positions are not.
    """
    units = network.widths[-1]
    places = network.outputs // units
    return np.kron(np.eye(places), _signs(rng, (1, units)))


def _signs(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return 2 * rng.integers(0, 2, shape, np.int8) - 1


def _direct(step: Weigh, units: int, n: int) -> bool:
    """Return whether to sum over positions before projections, which makes gradients of a layer."""
    fan_in = step.sizes[0]
    if step.positions == 1:
        return False
    return step.positions * fan_in * units + fan_in * units * n < (
        step.positions * (fan_in + units) * n
    )


def _projected(step: Weigh, c: Array, g: Array, signs: Signs) -> Array:
    """Return the sum over positions of ``(u'a)(v'g)``, a being c times its scale, and the bias."""
    (n, positions, fan_in), (u, v), real = c.shape, signs, c.dtype.type
    units, columns = v.shape
    if _direct(step, units, columns):
        slopes = g.transpose(0, 2, 1) @ c
        slopes *= real(step.scale)
        each = (slopes.reshape(n * units, fan_in) @ u[:fan_in]).reshape(n, units, columns)
        if step.shift:
            each += real(step.shift) * g.sum(1)[:, :, None] * u[fan_in]
        return np.einsum("ijk,jk->ik", each, v)
    left = c.reshape(n * positions, fan_in) @ u[:fan_in]
    left *= real(step.scale)
    if step.shift:
        left += real(step.shift) * u[fan_in]
    left *= g.reshape(n * positions, units) @ v
    return left.reshape(n, positions, columns).sum(1) if positions > 1 else left


@seeded_class
@dataclass(repr=False, eq=False)
class SampledFeatures(_OfNetwork):
    """Features of the NNGP or NTK of any network: read off one of finite width.

    Parameters
    ----------
    network : Sequential, optional
        Of rows, signals or images; ``presets.mlp(2, b_std=0.1)`` by default.
    n_features : int
        N, the number of columns of the result, or about as many.
    kind : {"nngp", "ntk"}
        "nngp": the hidden units before the last weights, pooled as the network says, of a network
        that is drawn with N of them. Where there is one for every position (``Flatten``) there are
        as many channels as N has room for; a bias of the last weights adds a column. Where a
        network does not end in weights, these are N outputs.
        "ntk": the gradient of a network that is drawn, by all parameters that are trained, in N
        random directions: sums over layers of products of two random projections. No gradient is
        held, and inner products are those of gradients without bias.
    width : int or sequence of int, optional
        The units of hidden layers, but for those that become features; N by default.
    seed : int, numpy.random.Generator or None

    Attributes
    ----------
    network_ : Network
        The network that was drawn.

    Notes
    -----
    Of a network with one hidden layer, ``E[Z Z']`` is the kernel. Deeper ones have a bias of the
    order of one over ``width``, and errors that fall as its root.

    A block of inputs is computed at a time: beyond the result, memory holds the network and some
    32 MB for each thread. With n inputs, P positions and width w, an NNGP of convolutions takes
    about ``18 n P w^2`` flops for each 3 x 3 layer, and a layer of the NTK three times that and
    ``2 n N`` times the smaller of ``P 10 w`` and ``9 w^2``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> images = np.random.default_rng(0).standard_normal((4, 6, 6, 2))
    >>> net = kc.Sequential(
    ...     kc.Conv(3, w_std=2**0.5), kc.Relu(), kc.AvgPool(2), kc.Conv(2, w_std=2**0.5), kc.Relu(),
    ...     kc.GlobalAvgPool(), kc.Dense(),
    ... )
    >>> features = kc.features.SampledFeatures(net, 2000, width=500, seed=0).fit(images)
    >>> bool(np.abs(features.gram(images) - net.nngp(images)).max() < 0.1)
    True
    >>> sketch = kc.features.SampledFeatures(net, 2000, kind="ntk", width=500, seed=0)
    >>> sketch.fit(images).kernel_ == net.ntk, sketch.n_features_out_
    (True, 2000)
    """

    network: Sequential | None = None
    n_features: int = 1000
    _: KW_ONLY
    kind: str = "nngp"
    width: int | Sequence[int] | None = None
    seed: int | np.random.Generator | None = None

    def _sequential(self) -> Sequential:
        given = presets.mlp(2, b_std=0.1) if self.network is None else self.network
        return _check.an_instance(given, Sequential, "network", "a Sequential")

    def _program(self) -> Any:
        return self._sequential().program

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Draw the network for inputs like those of X, of which the shape and the dtype matter.

        Parameters
        ----------
        X : array of shape (n, d), (n, L, C) or (n, H, W, C), n at least 1
        y : ignored

        Returns
        -------
        self
        """
        x = _check.some_rows(self._host(X), "X")
        self._drawn_for(x.shape[1:], x.dtype, _check.generator(self.seed, "seed"))
        return self._fitted(x.shape[1:])

    def _draw(self, d: int, rng: np.random.Generator) -> dict[str, Array]:
        self._drawn_for((d,), np.dtype(np.float64), rng)
        return {}

    def _drawn_for(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator
    ) -> None:
        net = self._sequential()
        n = _check.count(self.n_features, "n_features", least=1)
        tangent = _check.choice(self.kind, "kind", KINDS) == "ntk"
        units, outputs = self._units(shape, n, tangent)
        network = sample(
            net.program, units, rng, shape=shape, outputs=outputs, parameterization=NTK,
            doubled=False, alpha=1.0, dtype=dtype,
        )  # fmt: skip
        self._begin(network)
        if tangent:
            self._limit(net.ntk, self._draw_signs(rng, _combined(network, rng)))
            return
        self._cut = cut(network._made.steps)
        nothing = network._inputs(np.zeros((1, *shape), dtype))
        one = forward_to(network, nothing, network._at[0], self._cut.at)
        self._limit(net.nngp, read_out(one, self._cut).shape[1])

    def _units(self, shape: tuple[int, ...], n: int, tangent: bool) -> tuple[list[int], int | None]:
        """Return the units of all hidden layers, and the number of outputs."""
        lowered = self._program()
        found, width = linked(lowered), n if self.width is None else self.width
        where = cut(sized(lowered, shape, widths_of(lowered, 1, 1), True).steps)
        features = found.fed if where.readout is not None and not tangent else None
        others = [k for k in found.hidden if k != features]
        if isinstance(width, (Sequence, np.ndarray)):
            given = [_check.count(k, "width", least=1) for k in width]
            rule = f"have one entry for each of the {len(others)} other hidden layers"
            _check.must(len(given) == len(others), "width", rule, len(given))
        else:
            given = [_check.count(width, "width", least=1)] * len(others)
        units = dict(zip(others, given, strict=True))
        if where.readout is not None and features is not None:
            # A unit is seen at so many positions and taps.
            units[features] = max(1, n // where.readout.sizes[0])
        outputs = None
        if where.readout is None:  # outputs are as many as hidden units, which are added to them
            outputs = max(given, default=n) if tangent else n
        return [units[k] for k in found.hidden], outputs

    def _block(self, x: Array, out: Array, arrays: dict[str, Array]) -> None:
        network = self._in(out.dtype)[0]
        h = network._inputs(x)
        if self._signs:
            self._sketch(h, out)
        else:
            out[...] = read_out(forward_to(network, h, network._at[0], self._cut.at), self._cut)


@seeded_class
@dataclass(repr=False, eq=False)
class FrozenFeatures(_OfNetwork):
    """Features of a network that is given, trained or not: its hidden units, or its gradient.

    Parameters
    ----------
    network : Network
        As ``Sequential.sample`` draws it, or ``networks.train`` returns it.
    kind : {"units", "gradient"}
        "units": those of a layer over the root of their number; ``Z @ Z.T`` is
        ``network.conjugate(layer)``. "gradient": by the parameters that are trained, in
        ``n_features`` random directions, as in ``SampledFeatures``; ``Z @ Z.T`` tends to
        ``network.ntk``.
    layer : int
        Of "units": counted by activations from 0, or from the last by negative numbers.
    n_features : int
        Of "gradient".
    seed : int, numpy.random.Generator or None
        Of "gradient".

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> f = kc.presets.mlp(1).sample(100, seed=0)
    >>> trained = kc.networks.train(f, X, X[:, 0] ** 2, steps=50).network
    >>> features = kc.features.FrozenFeatures(trained).fit(X)
    >>> bool(np.allclose(features.gram(X), trained.conjugate()(X)))
    True
    """

    network: Network | None = None
    _: KW_ONLY
    kind: str = "units"
    layer: int = -1
    n_features: int = 1000
    seed: int | np.random.Generator | None = None

    def _given(self) -> Network:
        return _check.an_instance(self.network, Network, "network", "a Network")

    def _program(self) -> Any:
        return self._given().program

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Check the inputs, and draw signs for gradients.

        Parameters
        ----------
        X : array of shape (n, d), (n, L, C) or (n, H, W, C), n at least 1
        y : ignored

        Returns
        -------
        self
        """
        x, network = _check.some_rows(self._host(X), "X"), self._given()
        gradient = _check.choice(self.kind, "kind", OF_A_NETWORK) == "gradient"
        network._inputs(x[:1])
        self._begin(network)
        if gradient:
            rng = _check.generator(self.seed, "seed")
            self._limit(network.ntk, self._draw_signs(rng, np.eye(network.outputs)))
            return self._fitted(x.shape[1:])
        kernel = network.conjugate(self.layer)
        self._end = kernel._end()
        columns = [u.shape[1] for u in self._units(network, network._inputs(x[:1]))]
        self._limit(kernel, sum(columns))
        return self._fitted(x.shape[1:])

    def _units(self, network: Network, h: Array) -> list[Array]:
        found = [forward_to(network, h, at, self._end) for at in network._at]
        return [u.reshape(len(u), -1) for u in found]

    def _block(self, x: Array, out: Array, arrays: dict[str, Array]) -> None:
        network = self._in(out.dtype)[0]
        h = network._inputs(x)
        if self._signs:
            self._sketch(h, out)
            return
        np.concatenate(self._units(network, h), axis=1, out=out)
        out *= out.dtype.type(1 / math.sqrt(out.shape[1]))
