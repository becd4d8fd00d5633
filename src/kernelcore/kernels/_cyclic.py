"""The one-layer convolutional kernel on cyclic signals."""

from __future__ import annotations

import numpy as np

from .. import _check
from ..engine.cpu import calls as _calls
from ..engine.cpu import dispatch as _dispatch
from ..engine.cpu import rows as _dense
from ..engine.cpu.program import RowStep, Walk
from ..engine.cpu.rows import ADD, ASSIGN
from ..engine.memory import aligned
from ..layers.profiles import Profile, as_profile
from ._kernel import Kernel, Scaled, Sum

Array = np.ndarray

TILE_ROWS, TILE_COLUMNS = 32, 8
"""Rows and panels in a tile: work of a millisecond or so."""
TOGETHER = 4_000_000
"""Entries up to which a kernel is evaluated on all pairs of patches at once."""


class CyclicConvolution(Kernel):
    """A convolution of patches of ``q`` and pooling over ``w``, on cyclic signals of length d.

    ``H(q, w) = 1/(d w) sum over k < d and s, s' < w of h(<x_(k+s), y_(k+s')> / q)`` with the
    patches ``x_(k) = (x_k, ..., x_(k+q-1))``, indices mod d (Misiakiewicz and Mei 2022).
    ``H(d, 1)`` is h itself; ``w = d`` pools globally, and no cyclic shift of an input changes it.

    Parameters
    ----------
    patch, pool : int
        q and w, at most d.
    profile : profile, callable, sequence of coefficients, or kernel
        h. Of power series the argument may be any number; other profiles are defined on [-1, 1]
        and want patches of norm at most sqrt(q), as signals of +-1 have. A kernel, such as
        ``ArcCosine(1)`` or ``net.ntk``, is that kernel of the two patches in R^q.

    Notes
    -----
    Profiles run in an engine of their own: sums over windows take log2(q) steps, and nothing
    but the result leaves the cache. Kernels run in the dense engine, d min(2w - 1, d) Gram
    matrices, and need two more matrices of the size of the result, one where Y is None.

    Examples
    --------
    >>> import kernelcore as kc
    >>> h = kc.CyclicConvolution(patch=2, pool=1, profile=[0.0, 0.0, 1.0])
    >>> h([[1.0, 1.0, 1.0]], [[1.0, -1.0, 1.0]])
    array([[0.33333333]])
    """

    _parameters = ("patch", "pool", "profile")

    def __init__(self, patch: int, pool: int, profile) -> None:
        self.patch = _check.count(patch, "patch", least=1)
        self.pool = _check.count(pool, "pool", least=1)
        if isinstance(profile, Kernel) and profile._images:
            raise TypeError(f"profile must be of rows: {profile!r} is a kernel of images")
        self.h = profile if isinstance(profile, Kernel) else as_profile(profile)

    def _values(self) -> tuple:
        return self.patch, self.pool, self.h  # .profile is the method that every kernel has

    def _checked(self, points: _dense.Points) -> Array:
        """How often each offset r <= d/2 between two patches occurs; half, where -r is r."""
        d = points.x.shape[1]
        for name, size in (("patch", self.patch), ("pool", self.pool)):
            if size > d:
                raise ValueError(
                    f"{name} must not exceed the columns of X: {name} is {size}, X has shape "
                    f"{points.x.shape}"
                )
        r = np.arange(min(self.pool - 1, d // 2) + 1)
        times = np.maximum(self.pool - r, 0) + np.maximum(self.pool - (d - r), 0)
        return np.where(2 * r % d == 0, times / 2, times)

    def _into(self, points, out, factor, combine) -> None:
        if isinstance(self.h, (Sum, Scaled)):
            self._linear()._into(points, out, factor, combine)
        elif isinstance(self.h, Profile):
            self._of_profile(points, out, np.empty(0, out.dtype), factor, combine)
        elif combine == ASSIGN:
            self._of_kernel(points, out, factor)
        else:
            own = np.empty_like(out)
            self._of_kernel(points, own, factor)
            if combine == ADD:
                out += own
            else:
                out *= own

    def _diagonal(self, points, factor) -> Array:
        if isinstance(self.h, (Sum, Scaled)):
            return self._linear()._diagonal(points, factor)
        out = np.empty(len(points.x), points.x.dtype)
        if isinstance(self.h, Profile):
            self._of_profile(points, None, out, factor, ASSIGN)
        else:
            self._checked(points)
            for i in range(len(out)):
                row = _dense.Points(points.x[i : i + 1], None, points.n_threads)
                self._of_kernel(row, out[i : i + 1, None], factor)
        return out

    def _profile(self, u, radius, dim) -> Array:
        raise ValueError(f"{self!r} must not be asked for a profile: it depends on the axes")

    def _linear(self) -> Kernel:
        """The same for a sum or a multiple of kernels, by the parts."""
        if isinstance(self.h, Scaled):
            return Scaled(CyclicConvolution(self.patch, self.pool, self.h.kernel), self.h.factor)
        left, right = (
            CyclicConvolution(self.patch, self.pool, h) for h in (self.h.left, self.h.right)
        )
        return Sum(left, right)

    # -- h a profile

    def _of_profile(
        self, points: _dense.Points, out: Array | None, diagonal: Array, factor: float, combine: int
    ) -> None:
        weights = self._checked(points)
        x, y, dtype = points.x, points.x if points.y is None else points.y, points.x.dtype
        n, m, d, q = len(x), len(y), x.shape[1], self.patch
        if not self.h._everywhere:
            for a, name in ((x, "X"), (points.y, "Y")):
                if a is not None:
                    self._within(a, name)
        # A patch that is all of x has the same products at every position.
        positions = 1 if q == d else d
        wrapped = np.arange(positions + q + len(weights) - 2) % d
        driver = _dispatch.driver("cyclic")
        width = driver.WIDTH[dtype.name]
        whole = np.zeros((-(-m // width) * width, d), dtype)
        whole[:m] = y
        panels = aligned((len(whole) // width, len(wrapped), width), dtype)
        panels[...] = whole.reshape(-1, width, d).transpose(0, 2, 1)[:, wrapped]
        with np.errstate(over="ignore"):
            # No patch is longer than its row: an upper bound of what h comes to.
            walk = Walk(points.norm * points.norm, dtype)
            largest = self.h._size(walk.variance / q)
        for op in self.h._raw(1 / q):
            walk.activation(RowStep(op, largest, walk.t, np.empty((0, 0))), repr(self.h))
        program = walk.done()
        most = float(np.finfo(dtype).max)
        work = len(weights) * positions * (8 + len(program.coefficients))
        n_threads = _dense.enough((n if out is None else n * m) * work, points.n_threads)
        like = np.empty(0, dtype)
        scratch = driver.scratch_size(like, positions, q, TILE_ROWS * TILE_COLUMNS * width)
        scratch = -(-scratch // 16) * 16
        coefficients = np.clip(program.coefficients, -most, most).astype(dtype)
        driver.gram(
            np.ascontiguousarray(x[:, wrapped]), panels,
            _calls.Cyclic(positions, q, weights.astype(dtype)),
            _calls.Program(program.ops.view(np.uint8), coefficients),
            _calls.Target(
                out, None, factor / (positions * self.pool), combine, points.symmetric
            ),
            diagonal, (TILE_ROWS, TILE_COLUMNS), aligned((n_threads, scratch), dtype),
        )  # fmt: skip

    def _within(self, a: Array, name: str) -> None:
        """Refuse patches of which a profile on [-1, 1] says nothing."""
        index = np.arange(a.shape[1] + self.patch - 1) % a.shape[1]
        with np.errstate(over="ignore"):
            square = np.square(a, dtype=np.float64)[:, index]
            sums = np.lib.stride_tricks.sliding_window_view(square, self.patch, axis=1).sum(-1)
        slack = (self.patch + 8) * float(np.finfo(a.dtype).eps)
        bad = np.argwhere(sums > self.patch * (1 + slack))
        if len(bad):
            i, k = bad[0]
            raise ValueError(
                f"{name} must have patches of norm at most sqrt({self.patch}) for {self.h!r}: the "
                f"one of row {i} at {k} has norm {np.sqrt(sums[i, k]):.6g}; scale {name} down, or "
                "pass a power series or a kernel"
            )

    # -- h a kernel

    def _of_kernel(self, points: _dense.Points, out: Array, factor: float) -> None:
        weights = self._checked(points)
        n_threads, d = points.n_threads, points.x.shape[1]
        x = self._patches(points.x)
        y = x if points.y is None else self._patches(points.y)
        (n, m), q = out.shape, self.patch
        if n * m * d * d <= TOGETHER:
            # Of all patches at once: more than is needed, but one call instead of many.
            stacked = None if points.symmetric else y.reshape(-1, q)
            pairs = _dense.Points(x.reshape(-1, q), stacked, n_threads)
            gram = np.empty((d * n, d * m), out.dtype)
            self.h._into(pairs, gram, 1.0, ASSIGN)
            blocks = gram.reshape(d, n, d, m)

        def add(part: Array, k: int, j: int, combine: int) -> None:
            """The kernel of the patches at k of x and at j of y, into ``part``."""
            if n * m * d * d > TOGETHER:
                same = points.symmetric and k == j
                pair = _dense.Points(x[k], None if same else y[j], n_threads)
                self.h._into(pair, part, 1.0, combine)
            elif combine == ADD:
                part += blocks[k, :, j]
            else:
                part[...] = blocks[k, :, j]

        # A_r and B_r of cyclic.h, for the same symmetry; where Y is None, B_r is the transpose.
        first = np.empty_like(out)
        second = first.T if points.symmetric else np.empty_like(out)
        for r, weight in enumerate(weights):
            for k in range(d):
                combine = ADD if k else ASSIGN
                add(first, k, (k + r) % d, combine)
                if r and not points.symmetric:
                    add(second, (k + r) % d, k, combine)
            both = first + (second if r else first)
            both *= np.asarray(weight, out.dtype)
            if r:
                out += both
            else:
                out[...] = both
        out *= np.asarray(factor / (d * self.pool), out.dtype)

    def _patches(self, a: Array) -> Array:
        """Shape (d, n, q)."""
        index = (np.arange(a.shape[1])[:, None] + np.arange(self.patch)) % a.shape[1]
        return np.ascontiguousarray(a[:, index].transpose(1, 0, 2))
