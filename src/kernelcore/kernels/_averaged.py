"""Kernels that are averaged over symmetries of their inputs.

    k_G(x, y) = mean over g, g' in G of k(g x, g' y)

It is the kernel of the features that are averaged over G, so that functions in its RKHS do not
change along G. Where k(g x, g y) = k(x, y), one of the two means does.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .. import _check
from .._types import Array
from .._value import Value
from ..engine import ADD, ASSIGN, MULTIPLY, Inputs
from ..linalg import namespace_of
from ..linalg.arrays import joined, take
from ._kernel import Kernel

BLOCK = 64
"""The rows of which a whole block is computed for its diagonal: single calls cost more."""


class Symmetry(Value):
    """The base of what inputs can be averaged over: a cyclic group that acts on arrays."""

    def orbit(self, X: Any) -> list[Any]:
        """Return X and what the other members of the group make of it."""
        raise NotImplementedError


class Flip(Symmetry):
    """Mirror images along an axis of the array: 2 swaps left and right, 1 top and bottom.

    Parameters
    ----------
    axis : int
        Of the array of all inputs, whose axis 0 counts them.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> kc.Flip(1).orbit(np.array([[1.0, 2.0, 3.0]]))[1]
    array([[3., 2., 1.]])
    """

    _parameters = ("axis",)

    def __init__(self, axis: int) -> None:
        self.axis = _check.count(axis, "axis", least=1)

    def orbit(self, X: Any) -> list[Any]:
        _check.shaped(X.ndim > self.axis, X, "X", f"have an axis {self.axis}")
        return [X, namespace_of(X).flip(X, axis=self.axis)]


class Shift(Symmetry):
    """Cyclic shifts along an axis of the array, by multiples of ``step``.

    Parameters
    ----------
    axis : int
        Of the array of all inputs, whose axis 0 counts them.
    step : int, default 1
        A divisor of the length of that axis.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> [x.tolist() for x in kc.Shift(1).orbit(np.array([[1.0, 2.0, 3.0]]))]
    [[[1.0, 2.0, 3.0]], [[3.0, 1.0, 2.0]], [[2.0, 3.0, 1.0]]]
    """

    _parameters = ("axis", "step")
    _defaults = {"step": 1}

    def __init__(self, axis: int, step: int = 1) -> None:
        self.axis = _check.count(axis, "axis", least=1)
        self.step = _check.count(step, "step", least=1)

    def orbit(self, X: Any) -> list[Any]:
        _check.shaped(X.ndim > self.axis, X, "X", f"have an axis {self.axis}")
        size = X.shape[self.axis]
        _check.shaped(size % self.step == 0, X, "X", f"have a multiple of {self.step} there")
        xp = namespace_of(X)
        return [xp.roll(X, k, axis=self.axis) for k in range(0, max(1, size), self.step)]


class Permutation(Symmetry):
    """A permutation of the columns of rows and its powers: column k becomes column ``order[k]``.

    Parameters
    ----------
    order : sequence of int
        Each column once.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> kc.Permutation((1, 0, 2)).orbit(np.array([[1.0, 2.0, 3.0]]))[1]
    array([[2., 1., 3.]])
    """

    _parameters = ("order",)

    def __init__(self, order: Sequence[int]) -> None:
        given = _check.integers(order, "order")
        fine = sorted(given) == list(range(len(given)))
        _check.must(fine, "order", "have each number below its length once", given)
        self.order = given

    def orbit(self, X: Any) -> list[Any]:
        fine = X.ndim == 2 and X.shape[1] == len(self.order)
        _check.shaped(fine, X, "X", f"have shape (n, {len(self.order)})")
        identity, power, found = tuple(range(len(self.order))), self.order, [X]
        while power != identity:
            found.append(take(X, list(power), axis=1))
            power = tuple(power[k] for k in self.order)
        return found


class Averaged(Kernel):
    """A kernel whose inputs are averaged over symmetries, such as flips of images.

    Parameters
    ----------
    kernel : Kernel
    symmetries : Flip, Shift, Permutation, or a sequence of those
        Each is a cyclic group; several, which have to commute, are combined in all ways.
    joint : bool
        Whether ``k(g x, g y) = k(x, y)`` is known of the kernel, as for flips and networks whose
        convolutions are centred. As many Gram matrices are then computed as there are symmetries,
        and not their square; nothing checks it.

    Notes
    -----
    ``k(X)`` is symmetric to the bit, and differs from ``k(X, X)`` by rounding.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> images = np.random.default_rng(0).random((3, 6, 6, 1))
    >>> k = kc.Averaged(kc.presets.cntk(3, gap=False).ntk, kc.Flip(2))
    >>> bool(np.allclose(k(images, images[:, :, ::-1]), k(images)))
    True
    """

    _parameters = ("kernel", "symmetries", "joint")
    _defaults = {"joint": False}

    def __init__(
        self, kernel: Kernel, symmetries: Symmetry | Sequence[Symmetry], joint: bool = False
    ) -> None:
        self.kernel = _check.an_instance(kernel, Kernel, "kernel", "a kernel")
        given = (symmetries,) if isinstance(symmetries, Symmetry) else tuple(symmetries)
        _check.must(len(given) > 0, "symmetries", "have at least one entry", "none")
        for one in given:
            _check.an_instance(one, Symmetry, "symmetries", "Flip, Shift, Permutation or several")
        self.symmetries, self.joint = given, _check.flag(joint, "joint")

    def _orbit(self, X: Array) -> list[Array]:
        found = [X]
        for symmetry in self.symmetries:
            found = [moved for one in found for moved in symmetry.orbit(one)]
        return found

    def _pairs(self, points: Inputs) -> list[tuple[Inputs, int, float]]:
        """Return moved inputs, how often they count, and their share of the mean.

        Of a symmetric matrix, one with other inputs on both sides stands for its transpose, too.
        """
        x = self._orbit(points.x)
        y = x if points.y is None else self._orbit(points.y)
        share = 1 / len(y) if self.joint else 1 / (len(x) * len(y))
        firsts = range(1) if self.joint else range(len(x))
        # With k(gx, gy) = k(x, y), g and its inverse have transposed matrices; both are computed.
        twice = points.y is None and not self.joint
        found = []
        for i, j in itertools.product(firsts, range(len(y))):
            if twice and j < i:
                continue
            same = points.y is None and i == j
            moved = self.kernel._open(x[i], None if same else y[j], points.n_threads)
            found.append((moved, 1 + (twice and not same), share))
        return found

    def _into(self, points: Inputs, out: Array, factor: float, combine: int) -> None:
        if combine == MULTIPLY:
            self._apart(points, out, factor, combine)
            return
        pairs = self._pairs(points)
        for k, (moved, count, share) in enumerate(pairs):
            with points.share(k / len(pairs), (k + 1) / len(pairs)):
                moved.watch = points.watch
                if count == 1:
                    self.kernel._into(moved, out, factor * share, combine if k == 0 else ADD)
                    continue
                own = points.output()
                self.kernel._into(moved, own, factor * share, ASSIGN)
                out += own + own.T
        if points.y is None and self.joint:  # symmetric up to rounding alone
            for i in range(1, len(out)):
                out[i, :i] = out[:i, i]

    def _beside(self, combine: int, symmetric: bool) -> int:
        own = 2 if symmetric and not self.joint else 0
        return own + (combine == MULTIPLY) + self.kernel._beside(ADD, symmetric)

    def _diagonal(self, points: Inputs, factor: float) -> Array:
        total: Any = None
        for moved, count, share in self._pairs(points):
            if moved.y is None:
                part = self.kernel._diagonal(moved, factor * share)
            else:
                part = self._beside_each_other(moved, factor * share)
                part = part + part if count == 2 else part
            total = part if total is None else total + part
        return total

    def _beside_each_other(self, points: Inputs, factor: float) -> Array:
        """Return the kernel of each input with the one at its place on the other side."""
        found = []
        size = 1 if self._images else BLOCK
        for start in range(0, len(points.x), size):
            rows = slice(start, min(start + size, len(points.x)))
            part = points.part(rows, rows)
            out = part.output()
            self.kernel._into(part, out, factor, ASSIGN)
            found += [out[i : i + 1, i] for i in range(len(out))]
        return joined(found) if found else self.kernel._diagonal(points, factor)

    def _profile(self, u: Array, radius: float, dim: int) -> Array:
        _check.no_profile(self, "depends on the axes")
