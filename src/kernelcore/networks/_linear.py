"""Networks made linear in their parameters: ``f(x; theta_0) + J (theta - theta_0)``."""

from __future__ import annotations

from collections.abc import Callable

from .._types import Array, ArrayLike
from ._network import Drawn, Network, beside
from ._steps import Tape, still


class Linearized(Network):
    """A network's linearisation in its parameters; it is used and trained as a network is.

    Parameters
    ----------
    network : Network
        At its parameters.

    Attributes
    ----------
    origin : array of shape (p,)
        theta_0, where it has the value and the derivatives of the network.
    theta : array of shape (p,)

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> f = kc.presets.mlp(2).sample(50, seed=0, shape=3)
    >>> X = np.eye(3)
    >>> g = f.linearize().at(f.theta + 1e-6)
    >>> bool(np.abs(g(X) - f.at(g.theta)(X)).max() < 1e-9)
    True
    """

    def __init__(self, network: Network) -> None:
        self.origin = network.theta
        super().__init__(
            network.program, network._drawn, alpha=network.alpha, doubled=network.doubled
        )

    def _take(self, drawn: Drawn) -> None:
        self.origin = beside(self.origin, drawn.theta)
        super()._take(drawn)

    def _point(self) -> Array:
        return self.origin

    def _evaluated(self, h: Array) -> tuple[Array, list[Tape]]:
        tapes = self._passes(h, self._split(self.theta - self.origin, zero=True))
        return self._joined(tapes) + self._joined(tapes, 1), [still(tape) for tape in tapes]

    def _second(self, h: Array, direction: ArrayLike, slopes: Callable[..., object]) -> Array:
        """Return ``J' L'' J v``: the model itself does not bend."""
        v = self._split(self._direction(direction, "direction", self.theta), zero=True)

        def work(s: slice) -> Array:
            f = self._evaluated(h[s, ...])[0]
            tapes = self._passes(h[s, ...], v)
            g = slopes(f, self._joined(tapes, 1), s)
            bend = g[1]  # type: ignore[index]
            if bend is None:
                return self._nothing()
            return self._back([still(tape) for tape in tapes], (bend, None))[0]

        total = self._nothing()
        for found in self._each(self._blocks(len(h), 3), work):
            total += found
        return total
