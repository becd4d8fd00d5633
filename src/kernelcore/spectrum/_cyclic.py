"""The spectrum of H(q, w) on the hypercube, by orbits of cyclic shifts.

Of the d shifts of a set S of coordinates in Z_d, R lie inside the window {0, ..., q-1}. Its orbit
has o members, and on their characters H(q, w) has for j = 0, d/o, 2d/o, ... the eigenvalue (that of
Misiakiewicz and Mei 2022 for q <= d/2, where o = d)

    xi_l R F_j / d,    l = |S|,    F_j = |sum over s < w of exp(2 pi i j s/d)|^2 / w

with xi_l the eigenvalues of h on {-1, 1}^q. Sets are counted by l, o and R, never listed: S is a
cyclic sequence of gaps, the zeros between neighbours, and R = sum of max(0, gap - (d-q) + 1).
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from .. import _check
from .._types import Array
from ..kernels import CyclicConvolution, Kernel, Scaled
from ._hypercube import HypercubeSpectrum, binomials
from ._resolved import Resolved

Key = tuple[int, int, tuple[int, int]]
"""A level: l, R, and the frequency that F_j depends on; R = 0 is that of all zeros of a degree."""


class CyclicSpectrum(Resolved):
    """The spectrum of H(q, w) on {-1, 1}^dim; made by ``cyclic``.

    Attributes
    ----------
    dim, patch, pool : int
        d, q and w.
    degrees, shifts, gains : arrays of shape (levels,)
        l, R and F of each level. All exact zeros of a degree are one level, with R = F = 0.
    noise, error, resolved : arrays of shape (levels,)
        Bounds of the absolute and of the relative error, and whether the latter is below 1.
    """

    def __init__(self, kernel: CyclicConvolution, factor: float, dim: int) -> None:
        self.dim, self.patch, self.pool = dim, kernel.patch, kernel.pool
        self._text = f"{kernel!r}" if factor == 1 else f"{factor!r} * {kernel!r}"
        inner = HypercubeSpectrum(kernel.h, self.patch)
        counts = self._counts(inner)
        keys = list(counts)
        degrees, self.shifts = (np.array([key[i] for key in keys]) for i in (0, 1))
        self.gains = np.array([self._gain(key[2]) if key[1] else 0.0 for key in keys])
        with np.errstate(divide="ignore"):
            scale = np.log(factor) + np.log(self.shifts) + np.log(self.gains) - math.log(dim)
        inside = np.minimum(degrees, self.patch)  # larger sets are zeros
        logs = np.where(self.shifts > 0, inner.log_eigenvalues[inside], -np.inf) + scale
        log_error = np.where(self.shifts > 0, inner._log_error[inside], -np.inf) + scale
        order = np.lexsort((-logs, degrees))
        self.shifts, self.gains = self.shifts[order], self.gains[order]
        self._index = {keys[k]: i for i, k in enumerate(order)}
        many = [counts[keys[k]] for k in order]
        super().__init__(
            np.ones(len(keys)), logs[order], log_error[order], many, 0.0, degrees[order],
            np.zeros(len(keys), bool), f"{{-1, 1}}^{dim}",
        )  # fmt: skip
        # The mass of h at unresolved degrees counts with the mean of F, which is 1 except for sets
        # that are their own shifts.
        self.trace = math.fsum(np.nan_to_num(self.mass)) + factor * inner.tail

    def __repr__(self) -> str:
        return self._summary(f"{self._text} on {{-1, 1}}^{self.dim}")

    def _counts(self, inner: HypercubeSpectrum) -> dict[Key, int]:
        d = self.dim
        pooled = {
            o: Counter(_frequency(j, self.pool, d) for j in range(0, d, d // o))
            for o in _divisors(d)
        }
        silent = np.isneginf(inner.log_eigenvalues) & inner.resolved
        counts: dict[Key, int] = Counter()
        for degree, rest in enumerate(binomials(d)):
            if degree <= self.patch and not silent[degree]:
                for shifts, o, orbits in _orbits(d, degree, self.patch):
                    for frequency, times in pooled[o].items():
                        if frequency[0]:
                            counts[degree, shifts, frequency] += orbits * times
                            rest -= orbits * times
            if rest:
                counts[degree, 0, (0, 0)] = rest
        return counts

    def _gain(self, frequency: tuple[int, int]) -> float:
        a, b = frequency
        if b == 0:
            return float(self.pool)
        x = math.pi / self.dim
        return (math.sin(x * a) / math.sin(x * b)) ** 2 / self.pool

    def target_power(self, sets: Sequence[Sequence[int]], coefficients: Sequence[float]) -> Array:
        """Return the power of a target in each level.

        Parameters
        ----------
        sets : sequence of sequences of int
            Coordinates, from 0 to dim - 1: the target is the sum of ``coefficients[k]`` times the
            product of the coordinates in ``sets[k]``.
        coefficients : sequence of float

        Returns
        -------
        array of shape (levels,)
            Its sum is the mean square of the target. Zeros are zero to rounding: about 1e-32 of
            the sum is left there.

        Examples
        --------
        >>> import kernelcore as kc
        >>> s = kc.spectrum.cyclic(kc.CyclicConvolution(3, 2, [0.0, 0.5, 0.3, 0.2]), dim=6)
        >>> sets = [[i, (i + 1) % 6, (i + 2) % 6] for i in range(6)]
        >>> low, high = (s.target_power(sets, [e**i / 6**0.5 for i in range(6)]) for e in (1, -1))
        >>> print(s.gains[low.argmax()], s.gains[high.argmax()])
        2.0 0.0
        """
        coefficients = _check.coefficients(coefficients, "coefficients")
        sets = _check.sets(sets, len(coefficients))
        d = self.dim
        orbits: dict[tuple[int, ...], Array] = {}
        for k, (members, c) in enumerate(zip(sets, coefficients, strict=True)):
            members = sorted(_check.count(i, f"sets[{k}]") for i in members)
            wrong = len(set(members)) < len(members) or max(members, default=0) >= d
            _check.unless(wrong, f"sets[{k}]", f"different coordinates below {d}", f"{members}")
            # The shift that puts one member at 0 and makes the rest least names the orbit.
            turned = ((tuple(sorted((i - m) % d for i in members)), m) for m in members or [0])
            least, at = min(turned)
            orbits.setdefault(least, np.zeros(d))[at] += c
        power = np.zeros(len(self))
        for least, line in orbits.items():
            o = next(o for o in _divisors(d) if {(i + o) % d for i in least} == set(least))
            shifts = _shifts(least, d, self.patch)
            each = np.abs(np.fft.fft(line.reshape(-1, o).sum(0))) ** 2 / o
            for k, value in enumerate(each):
                key = len(least), shifts, _frequency(k * (d // o), self.pool, d)
                key = key if key in self._index else (len(least), 0, (0, 0))
                power[self._index[key]] += value
        return power


def cyclic(kernel: Kernel, dim: int) -> CyclicSpectrum:
    """Compute the spectrum of H(q, w) under the uniform measure on {-1, 1}^dim, for every q and w.

    Parameters
    ----------
    kernel : CyclicConvolution, or a multiple of one
        ``patch`` and ``pool`` are at most dim; h is a profile or a kernel of rows.
    dim : int
        d.

    Returns
    -------
    CyclicSpectrum
        All 2^dim eigenvalues, in levels of equal degree l, number of shifts R inside the window
        and gain F of the pooling, by degree and then from the largest eigenvalue down.

    Notes
    -----
    Neither points nor sets are listed: they are counted, in exact integers, with about dim^3
    operations at most for each degree that h has.

    Examples
    --------
    >>> import kernelcore as kc
    >>> s = kc.spectrum.cyclic(kc.CyclicConvolution(2, 4, [0.0, 0.5, 0.5]), dim=4)
    >>> for degree, many, value in zip(s.degrees, s.multiplicities, s.eigenvalues):
    ...     print(degree, many, f"{value:.4g}")
    0 1 1
    1 1 0.5
    1 3 0
    2 1 0.25
    2 5 0
    3 4 0
    4 1 0
    """
    dim = _check.count(dim, "dim", least=1)
    factor = 1.0
    while isinstance(kernel, Scaled):
        factor *= kernel.factor
        kernel = kernel.kernel
    if not isinstance(kernel, CyclicConvolution):
        raise TypeError(
            f"kernel must be a CyclicConvolution or a multiple of one: got {type(kernel).__name__}"
        )
    for name, size in (("patch", kernel.patch), ("pool", kernel.pool)):
        if size > dim:
            raise ValueError(f"{name} must not exceed dim: {name} is {size}, dim is {dim}")
    return CyclicSpectrum(kernel, factor, dim)


def _divisors(d: int) -> list[int]:
    return [o for o in range(1, d + 1) if d % o == 0]


def _frequency(j: int, w: int, d: int) -> tuple[int, int]:
    """Return (a, b) with F_j = sin^2(pi a/d) / (w sin^2(pi b/d)); (w, 0) at j = 0, (0, 0) for zero.

    Every F_j = 1/w has (1, 1), so that there are few levels.
    """
    if w == 1:
        return 1, 1
    if j == 0:
        return w, 0
    a, b = (min(k, d - k) for k in (j * w % d, j))
    if a == 0:
        return 0, 0
    return (1, 1) if a == b else (a, b)


def _shifts(members: Sequence[int], d: int, q: int) -> int:
    """Return R of a sorted set that contains 0, or of the empty one."""
    if not members:
        return d
    gaps = np.diff([*members, d]) - 1
    return int(np.maximum(0, gaps - (d - q) + 1).sum())


def _orbits(d: int, size: int, q: int) -> Iterator[tuple[int, int, int]]:
    """Yield (R, o, number of orbits) of the sets of that size with R > 0."""
    if size == 0:
        yield d, 1, 1
        return
    # S has period o if it repeats a set of Z_o, with size o/d members and R o/d shifts.
    periods = [o for o in _divisors(d) if size * o % d == 0]
    for shifts in range(1, d + 1):
        possible = [o for o in periods if shifts * o % d == 0]
        repeating = {o: _sets(o, size * o // d, shifts * o // d, d - q) for o in possible}
        exact: dict[int, int] = {}
        for o in possible:
            exact[o] = repeating[o] - sum(exact[p] for p in exact if o % p == 0)
            if exact[o]:
                yield shifts, o, exact[o] // o


def _sets(o: int, size: int, shifts: int, gap: int) -> int:
    """Count sets of that size in Z_o whose sum over gaps of max(0, zeros - gap + 1) is ``shifts``.

    A set with a member singled out is one of o rotations of a sequence of ``size`` gaps. k of the
    gaps are long, of ``gap`` zeros or more, and share ``shifts`` in parts of at least 1; the others
    are shorter.
    """
    sequences = 0
    for k in range(1, min(size, shifts) + 1):
        # A long gap has gap - 1 zeros more than it adds to the sum.
        rest = o - size - shifts - k * (gap - 1)
        if rest < 0 and gap >= 1:
            break
        ways = math.comb(size, k) * math.comb(shifts - 1, k - 1)
        sequences += ways * _short(size - k, rest, gap)
    return sequences * o // size


@functools.lru_cache(maxsize=2**16)
def _short(parts: int, total: int, gap: int) -> int:
    """Count sequences of ``parts`` numbers below ``gap`` with that sum, by inclusion-exclusion."""
    if parts == 0 or total < 0:
        return int(total == 0)
    if total > parts * (gap - 1):
        return 0
    return sum(
        (-1) ** i * math.comb(parts, i) * math.comb(total - i * gap + parts - 1, parts - 1)
        for i in range(total // gap + 1)
    )
