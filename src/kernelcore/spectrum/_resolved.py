"""Spectra with error bounds: an eigenvalue below its bound is marked as unknown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Array, ArrayLike
from ..kernels import Kernel, Polynomial
from ..layers.profiles import Fitted, PowerSeries, Profile, as_profile
from ..series.coefficients import EPS
from . import _plot
from ._levels import Spectrum

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OfCosine = Kernel | Profile | Callable[[Array], Array] | Sequence[float] | Array
ROUNDING = 16 * EPS
"""The error assumed of a kernel's values, relative to the largest of them."""


class Resolved(Spectrum):
    """A spectrum with a bound of the error of each eigenvalue.

    It is made of the signs and the logarithms of eigenvalues as computed, and of logarithms of the
    bounds, ``-inf`` where a zero is exact. ``null`` says which are zero by symmetry, whatever was
    computed; ``where`` is the domain, for the message about a negative eigenvalue.

    Attributes
    ----------
    noise : array of shape (levels,)
        Bounds of the absolute errors, from rounding in the values of the kernel and in the sums.
    error : array of shape (levels,)
        ``noise`` over the eigenvalue.
    resolved : array of bool, shape (levels,)
        False where the eigenvalue is not larger than its noise: it is NaN, and its mass is in the
        tail.
    tail : float
        Exactly zero where all levels are listed and resolved.
    """

    def __init__(
        self, signs: Array, logs: Array, log_error: Array, multiplicities: Sequence[int],
        trace: float, degrees: Array, null: Array, where: str,
    ) -> None:  # fmt: skip
        logs, log_error = (np.where(null, -math.inf, x) for x in (logs, log_error))
        exact = np.isneginf(log_error)
        self.resolved = exact | (logs > log_error)
        negative = np.flatnonzero((signs < 0) & self.resolved & ~np.isneginf(logs))
        if len(negative):
            k = negative[0]
            degree = tuple(map(int, degrees[k])) if degrees.ndim == 2 else int(degrees[k])
            raise ValueError(
                f"kernel must be positive semi-definite on {where}: its eigenvalue of degree "
                f"{degree} is {-math.exp(logs[k]):.6g}"
            )
        self.degrees, self._log_error = degrees, log_error
        super().__init__(np.where(self.resolved, logs, math.nan), multiplicities, trace)

    _complete = True  # whether no level is left out

    @property
    def noise(self) -> Array:
        return np.exp(self._log_error)

    @property
    def error(self) -> Array:
        known = self.resolved & np.isfinite(self.log_eigenvalues)
        error = np.where(self.resolved, 0.0, math.inf)
        error[known] = np.exp(self._log_error[known] - self.log_eigenvalues[known])
        return error

    @property
    def tail(self) -> float:
        # Where nothing is left out, the difference would be rounding alone.
        return 0.0 if self._complete and self.resolved.all() else super().tail

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draw eigenvalues on a logarithmic axis against the degree, or the sum of two degrees.

        Returns the Matplotlib axes.
        """
        total = self.degrees if self.degrees.ndim == 1 else self.degrees.sum(1)
        return _plot.levels(self, total, ax, style)

    def _summary(self, text: str) -> str:
        lost = int(np.sum(~self.resolved))
        of = f"{text}: {len(self)} levels" + (f", {lost} unresolved" if lost else "")
        return f"<{type(self).__name__} of {of}, trace {self.trace:.6g}>"


def values_of(kernel: OfCosine, radius: float, dim: int) -> Callable[[Array], Array]:
    """Return the function of a cosine that a kernel is at that radius; a profile is one itself."""
    if isinstance(kernel, Kernel):
        return lambda u: kernel.profile(u, radius=radius, dim=dim)
    profile = as_profile(kernel, "kernel")
    if isinstance(profile, Fitted) and not isinstance(kernel, Profile):
        return profile._sample  # the callable itself: no fit is better than its values
    return profile


def coefficients(kernel: Any, square: float) -> Wide | None:
    """Return the coefficients of a polynomial of the cosine at norm sqrt(square); else None."""
    if isinstance(kernel, Polynomial):
        n = kernel.degree
        c = Wide.of_integers([math.comb(n, k) for k in range(n + 1)])
        return c * Wide.powers(kernel.scale * square, n) * Wide.powers(kernel.offset, n)[::-1]
    return Wide(kernel.coefficients) if isinstance(kernel, PowerSeries) else None


def series(
    c: Wide, first: Wide, step: Callable[[Wide], Wide], roundings: int
) -> tuple[Array, Array, Array]:
    """Sum ``c_n`` times the eigenvalues of the n-th power, which ``step`` makes of the last ones.

    Only terms of unlike sign cancel. Returns signs, logarithms, and logarithms of the errors.
    """
    power, plus, minus = first, first * 0.0, first * 0.0
    for n, m in enumerate(c.m):
        if n:
            power = step(power)
        if m > 0:
            plus = plus + power * c[n]
        elif m < 0:
            minus = minus + power * abs(c[n])
    total = plus + minus * -1.0
    error = (plus + minus) * (EPS * (roundings * len(c.m) + 4))
    return np.sign(total.m), total.log(), error.log()


class Wide:
    """An array of numbers ``m 2^e``: the precision of float64 without its range."""

    _LEAST = -(2**40)  # the exponent of zero

    def __init__(self, m: ArrayLike, e: ArrayLike = 0) -> None:
        self.m, shift = np.frexp(m)
        self.e = np.where(self.m == 0, self._LEAST, shift + np.asarray(e, np.int64))

    @classmethod
    def of_integers(cls, values: Sequence[int]) -> Wide:
        """Round integers of any size to the precision of float64."""
        shifts = [max(0, v.bit_length() - 64) for v in values]
        return cls([float(v >> s) for v, s in zip(values, shifts, strict=True)], shifts)

    @classmethod
    def powers(cls, x: float, n: int) -> Wide:
        """Return ``x^0, ..., x^n``."""
        m, e = [1.0], [0]
        for _ in range(n):
            new, shift = math.frexp(m[-1] * x)
            m.append(new)
            e.append(e[-1] + shift)
        return cls(m, e)

    def __getitem__(self, key: Any) -> Wide:
        return Wide(self.m[key], self.e[key])

    def __mul__(self, other: Wide | Array | float) -> Wide:
        if isinstance(other, Wide):
            return Wide(self.m * other.m, self.e + other.e)
        return Wide(self.m * other, self.e)

    def __add__(self, other: Wide) -> Wide:
        e = np.maximum(self.e, other.e)
        return Wide(self.at(e) + other.at(e), e)

    def __abs__(self) -> Wide:
        return Wide(np.abs(self.m), self.e)

    def sum(self) -> Wide:
        e = self.e.max()
        return Wide(self.at(e).sum(), e)

    def at(self, e: Array) -> Array:
        """Return the mantissas that go with the exponents e."""
        # Below 2^-1100 of the largest nothing is left of a number.
        return np.ldexp(self.m, np.maximum(self.e - e, -1100).astype(np.int32))

    def log(self) -> Array:
        """Return the logarithm of the absolute value."""
        with np.errstate(divide="ignore"):
            return np.log(np.abs(self.m)) + np.where(self.m == 0, 0, self.e) * math.log(2)

    def shift(self, by: int, axis: int) -> Wide:
        """Move entries along an axis by one, up or down; zero takes the free place."""
        new = Wide(np.roll(self.m, by, axis), np.roll(self.e, by, axis))
        edge = (slice(None),) * axis + (0 if by > 0 else -1,)
        new.m[edge], new.e[edge] = 0.0, self._LEAST
        return new

    @staticmethod
    def stack(parts: Sequence[Wide]) -> Wide:
        return Wide(np.array([p.m for p in parts]), np.array([p.e for p in parts]))
