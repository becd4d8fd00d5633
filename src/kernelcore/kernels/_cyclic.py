"""The one-layer convolutional kernel on cyclic signals."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import _check
from .._types import Array
from ..engine import ADD, ASSIGN, Inputs, distinct, look_up, offsets
from ..layers.profiles import Profile, ProfileLike, as_profile
from ..program import Apply, Input, Pool, Program, Readout, Weights, Window
from ._kernel import Kernel, Scaled, Sum
from ._programs import ProgramKernel

TOGETHER = 4_000_000
"""The entries up to which a kernel is evaluated on all pairs of unlike patches at once."""


class CyclicConvolution(ProgramKernel):
    """A convolution of patches of ``q`` and pooling over ``w``, on cyclic signals of length d.

    ``H(q, w) = 1/(d w) sum over k < d and s, s' < w of h(<x_(k+s), y_(k+s')> / q)`` with the
    patches ``x_(k) = (x_k, ..., x_(k+q-1))``, indices mod d (Misiakiewicz and Mei 2022).
    ``H(d, 1)`` is h itself; ``w = d`` pools globally, and no cyclic shift of an input changes it.

    Parameters
    ----------
    patch, pool : int
        q and w, at most d.
    profile : profile, callable, sequence of coefficients, or kernel
        h. The argument of a power series may be any number; other profiles are defined on [-1, 1]
        and need patches of norm at most sqrt(q), as signals of +-1 have. A kernel, such as
        ``ArcCosine(1)`` or ``net.ntk``, is evaluated on the two patches in R^q.

    Notes
    -----
    Profiles run in an engine of their own: sums over windows take log2(q) steps, and nothing
    but the result leaves the cache. Kernels run in the dense engine: on all pairs of patches that
    differ, if these are few, as of signs, and else d min(2w - 1, d) Gram matrices, which need two
    more matrices of the size of the result. On a GPU they are always the latter.

    Examples
    --------
    >>> import kernelcore as kc
    >>> h = kc.CyclicConvolution(patch=2, pool=1, profile=[0.0, 0.0, 1.0])
    >>> h([[1.0, 1.0, 1.0]], [[1.0, -1.0, 1.0]])
    array([[0.33333333]])
    """

    _parameters = ("patch", "pool", "profile")

    def __init__(self, patch: int, pool: int, profile: ProfileLike | Kernel) -> None:
        self.patch = _check.count(patch, "patch", least=1)
        self.pool = _check.count(pool, "pool", least=1)
        if isinstance(profile, Kernel) and profile._images:
            raise TypeError(f"profile must be of rows: {profile!r} is a kernel of images")
        self.h = profile if isinstance(profile, Kernel) else as_profile(profile)

    def _values(self) -> tuple[Any, ...]:
        return self.patch, self.pool, self.h  # .profile is the method that every kernel has

    @functools.cached_property
    def _program(self) -> Program:
        def window(size: int) -> Window:
            return Window((size,), (1,), "circular")

        nodes = [Input("sum", "cyclic"), Weights(1.0, 0.0, False, window(self.patch))]
        if isinstance(self.h, Profile):
            nodes.append(Apply(self.h, layer=self))
        taps = (self.pool**-0.5,) * self.pool
        return Program([*nodes, Pool(window(self.pool), (taps,)), Readout(equal=True)])

    def _fits(self, points: Inputs) -> None:
        d = points.x.shape[1]
        for name, size in (("patch", self.patch), ("pool", self.pool)):
            _check.at_most(size, d, name, "the number of columns of X")

    def _into(self, points: Inputs, out: Array, factor: float, combine: int) -> None:
        self._fits(points)
        if self._linear is not None:
            self._linear._into(points, out, factor, combine)
        elif isinstance(self.h, Profile):
            super()._into(points, out, factor, combine)
        elif combine != ASSIGN:
            self._apart(points, out, factor, combine)
        else:
            self._of_kernel(self.h, points, out, factor)

    def _beside(self, combine: int, symmetric: bool) -> int:
        if self._linear is not None:
            return self._linear._beside(combine, symmetric)
        if isinstance(self.h, Profile):
            return 0
        # A_r and, of two inputs, B_r; or A_r and a copy of it while it is transposed.
        inside = max(self.h._beside(how, False) for how in (ASSIGN, ADD))
        own = 1 + max(1, inside) if symmetric else 2 + inside
        return own + (combine != ASSIGN)

    def _diagonal(self, points: Inputs, factor: float) -> Array:
        self._fits(points)
        if self._linear is not None:
            return self._linear._diagonal(points, factor)
        if isinstance(self.h, Profile):
            return super()._diagonal(points, factor)
        xp = _check.namespace(points.x)
        there = {} if xp is np else {"device": points.x.device}
        out = xp.empty(len(points.x), dtype=points.x.dtype, **there)
        for i in range(len(out)):
            one = points.part(slice(i, i + 1), None)
            self._of_kernel(self.h, one, out[i : i + 1, None], factor)
        return out

    @property
    def _linear(self) -> Kernel | None:
        """This kernel by the parts of h, if that is a sum or a multiple of kernels."""
        if not isinstance(self.h, (Sum, Scaled)):
            return None
        parts = [(k, v) for k, v in self.h.parameters().items() if isinstance(v, Kernel)]
        return self.h.replace(**{name: self.replace(profile=part) for name, part in parts})

    # -- h a kernel

    def _of_kernel(self, h: Kernel, points: Inputs, out: Array, factor: float) -> None:
        symmetric, n_threads, d = points.y is None, points.n_threads, points.x.shape[1]
        weights = offsets(d, self.pool)
        x = self._patches(points.x)
        y = x if points.y is None else self._patches(points.y)
        factor /= d * self.pool
        if isinstance(x, np.ndarray):
            rows, x_places = distinct(x)
            columns, y_places = (rows, x_places) if symmetric else distinct(y)
            if len(rows) * len(columns) <= TOGETHER:
                # One call instead of many, for more than is needed or, of signs, for less. The sums
                # have the order of those below.
                table = np.empty((len(rows), len(columns)), out.dtype)
                pairs = h._open(rows, None if symmetric else columns, n_threads)
                h._into(pairs, table, 1.0, ASSIGN)
                look_up(table, x_places, y_places, weights, factor, out, n_threads, points.watch)
                return

        def add(part: Array, k: int, j: int, combine: int) -> None:
            """Write the kernel of the patches at k of x and at j of y into ``part``, or add it."""
            pair = h._open(x[k], None if symmetric and k == j else y[j], n_threads)
            h._into(pair, part, 1.0, combine)

        # A_r and B_r of cyclic.h, by the same symmetry; where Y is None, B_r is A_r transposed.
        first = points.output()
        second = first.T if symmetric else points.output()
        for r, weight in enumerate(weights):
            for k in range(d):
                combine = ADD if k else ASSIGN
                add(first, k, (k + r) % d, combine)
                if r and not symmetric:
                    add(second, (k + r) % d, k, combine)
            first += second if r else first
            first *= float(weight)
            if points.watch is not None:
                points.watch(r / len(weights))
            if r:
                out += first
            else:
                out[...] = first
        out *= float(factor)

    def _patches(self, a: Array) -> Array:
        """Return all patches, shape (d, n, q)."""
        (n, d), xp = a.shape, _check.namespace(a)
        index = (np.arange(d)[:, None] + np.arange(self.patch)) % d
        if xp is np:
            return np.ascontiguousarray(a[:, index].transpose(1, 0, 2))
        patches = xp.take(a, xp.asarray(index.ravel(), device=a.device), axis=1)
        return xp.permute_dims(xp.reshape(patches, (n, d, self.patch)), (1, 0, 2))
