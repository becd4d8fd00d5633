"""Profiles: functions p of a cosine, for ``DotProduct`` and ``CyclicConvolution``.

A profile is a value: it compares, hashes, prints and pickles by its parameters, and ``p(u)`` and
``p.derivative(u)`` evaluate it. ``as_profile`` makes one of a callable or of coefficients.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from .._value import Value
from ..program import Code, Op
from ..series import functions
from ..series.functions import Function
from .activations import Relu, horner

__all__ = ["Exp", "Fitted", "Kappa0", "Kappa1", "Power", "PowerSeries", "Profile", "as_profile"]


class Profile(Value):
    """The base of all profiles: functions of the cosine, called on arrays.

    Examples
    --------
    >>> import kernelcore as kc
    >>> isinstance(kc.profiles.Exp(1.0), kc.profiles.Profile)
    True
    >>> kc.profiles.Power(2).derivative(3.0)
    array(6.)
    """

    _everywhere = False  # whether p is meant for numbers beyond [-1, 1] as well

    def __call__(self, u: ArrayLike) -> Array:
        """Evaluate ``p(u)``, elementwise, in float64; u in [-1, 1], any for power series."""
        return np.asarray(self._value(self._domain(u)))

    def derivative(self, u: ArrayLike) -> Array:
        """Evaluate ``p'(u)``, elementwise, in float64; it may be infinite."""
        return np.asarray(self._derivative(self._domain(u)))

    @property
    def lipschitz(self) -> float:
        """The Lipschitz constant of the map z -> phi(z), ``<phi, phi'> = |z| |z'| p(cosine)``.

        It is ``sqrt(max(p(1), p'(1)))`` for profiles without negative coefficients; maps whose
        constant is at most 1 are non-expansive (Bietti and Mairal 2019). It is infinite for kappa0.

        Examples
        --------
        >>> import kernelcore as kc
        >>> kc.profiles.Kappa1().lipschitz, round(kc.profiles.Exp(0.6).lipschitz, 4)
        (1.0, 1.6667)
        """
        with np.errstate(divide="ignore", over="ignore"):
            return math.sqrt(max(float(self(1.0)), float(self.derivative(1.0))))

    def __repr__(self) -> str:
        return f"profiles.{super().__repr__()}"

    def _domain(self, u: ArrayLike) -> Array:
        return _check.finite_array(u, "u") if self._everywhere else _check.cosines(u, "u")

    def _value(self, u: Array) -> Array:
        raise NotImplementedError

    def _derivative(self, u: Array) -> Array:
        raise NotImplementedError

    def _size(self, t: Array) -> Array:
        """Return a bound of ``|p|`` on [-t, t], for t in the domain."""
        return np.ones_like(t)

    def _op(self) -> Op:
        """Return the operation on correlations: p(u)/p(1)."""
        raise NotImplementedError

    def _raw(self, scale: float) -> list[Op]:
        """Return the operations that make p(t) of a sum, t being ``scale`` times the sum."""
        return [Op(Code.COSINE, a=scale), self._op()]

    def _series(self) -> Function | None:
        """Return ``p(u)/p(1)`` as a series; None where there is none."""
        raise NotImplementedError


ProfileLike = Profile | Callable[[Array], Array] | Sequence[float]  # what ``as_profile`` takes


class Exp(Profile):
    """The exponential ``exp((u - 1) / s^2)``: on the unit sphere, a Gaussian of lengthscale s.

    Parameters
    ----------
    s : float
        The lengthscale.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.profiles.Exp(0.5)([0.5, 1.0])
    array([0.13533528, 1.        ])
    """

    _parameters = ("s",)

    def __init__(self, s: float) -> None:
        self.s = _check.positive(s, "s")

    @property
    def _rate(self) -> float:
        return min((1 / self.s) * (1 / self.s), sys.float_info.max)

    def _value(self, u: Array) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            return np.exp((u - 1) * self._rate)

    def _derivative(self, u: Array) -> Array:
        return self._rate * self._value(u)

    def _op(self) -> Op:
        return Op(Code.EXPONENTIAL_PROFILE, a=self._rate)

    def _series(self) -> Function | None:
        return functions.exponential(self._rate)


class Kappa0(Profile):
    """Cho and Saul's kappa0, ``1 - arccos(u) / pi``; its derivative is infinite at +-1.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.profiles.Kappa0()([-1.0, 0.0, 1.0])
    array([0. , 0.5, 1. ])
    """

    def _value(self, u: Array) -> Array:
        return 2 * Relu().dual(1.0, 1.0, u)[1]

    def _derivative(self, u: Array) -> Array:
        with np.errstate(divide="ignore"):
            return 1 / (math.pi * np.sqrt((1 - u) * (1 + u)))

    def _op(self) -> Op:
        return Op(Code.STEP)

    def _series(self) -> Function | None:
        return functions.Kappa(0)


class Kappa1(Profile):
    """Cho and Saul's kappa1, ``u kappa0(u) + sqrt(1 - u^2) / pi``; its derivative is kappa0.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.profiles.Kappa1()([-1.0, 0.0, 1.0])
    array([0.        , 0.31830989, 1.        ])
    """

    def _value(self, u: Array) -> Array:
        return 2 * Relu().dual(1.0, 1.0, u)[0]

    def _derivative(self, u: Array) -> Array:
        return Kappa0()._value(u)

    def _op(self) -> Op:
        return Op(Code.RELU)

    def _series(self) -> Function | None:
        return functions.Kappa(1)


class PowerSeries(Profile):
    """The polynomial ``coefficients[0] + coefficients[1] u + ...``, on all numbers.

    Parameters
    ----------
    coefficients : sequence of float
        Of the powers, the constant first.

    Examples
    --------
    >>> import kernelcore as kc
    >>> h = kc.profiles.PowerSeries([0.0, 0.5, 0.5])
    >>> h([0.5, 1.0]), h.derivative(2.0)
    (array([0.375, 1.   ]), array(2.5))
    """

    _parameters: tuple[str, ...] = ("coefficients",)
    _everywhere = True

    def __init__(self, coefficients: Sequence[float] | Array) -> None:
        self.coefficients = _check.coefficients(coefficients, "coefficients")

    def _value(self, u: Array) -> Array:
        return horner(self.coefficients, u)

    def _derivative(self, u: Array) -> Array:
        return horner([k * c for k, c in enumerate(self.coefficients)][1:] or [0.0], u)

    def _size(self, t: Array) -> Array:
        return horner([abs(c) for c in self.coefficients], t)

    def _op(self) -> Op:
        top = math.fsum(self.coefficients)
        c = [x / top for x in self.coefficients]
        c += [0.0] * (len(c) % 2)
        # (1 - u^n)/(1 - u) = 1 + u + ... + u^(n-1)
        gap = [math.fsum(c[k + 1 :]) for k in range(len(c))]
        return Op(Code.POWER_PROFILE, n=len(c) // 2, coefficients=(*c, *gap))

    def _series(self) -> Function | None:
        op = self._op()
        return functions.Power(op.coefficients[: 2 * op.n])

    def _raw(self, scale: float) -> list[Op]:
        c = self.coefficients
        return [Op(Code.POWER_OF, n=len(c), a=scale, coefficients=c)]


class Power(PowerSeries):
    """The power ``u^n``.

    Parameters
    ----------
    n : int
        Not negative.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.profiles.Power(2)([-1.0, 0.5])
    array([1.  , 0.25])
    """

    _parameters = ("n",)

    def __init__(self, n: int) -> None:
        self.n = _check.count(n, "n")
        super().__init__((0.0,) * self.n + (1.0,))


class Fitted(Profile):
    """Any function, approximated by a Chebyshev series on [-1, 1].

    Parameters
    ----------
    fn : callable
        Vectorised, float64 in and out, finite on [-1, 1].
    max_degree : int
        The degree is doubled from 16 until the coefficients reach rounding, up to this degree.

    Attributes
    ----------
    coefficients : tuple of float
        Of ``T_0, T_1, ...``. The profile is their sum, not ``fn``.
    error : float
        The largest ``|fn(u) - p(u)|`` found between the nodes of the fit. A function analytic
        about [-1, 1] is fitted to rounding, others as well as the degree allows; none is refused,
        so look at the error. Towards +-1 the derivative is off by up to degree^2 times as much.

    Examples
    --------
    >>> import kernelcore as kc
    >>> p = kc.profiles.Fitted(lambda u: 1 / (1.5 - u))
    >>> p([0.0, 1.0]), p.error < 1e-14
    (array([0.66666667, 2.        ]), True)
    >>> 1e-4 < kc.profiles.Fitted(abs).error < 1e-2
    True
    """

    _parameters = ("fn", "max_degree")
    _defaults = {"max_degree": 512}

    def __init__(self, fn: Callable[[Array], Array], max_degree: int = 512) -> None:
        if not callable(fn):
            raise TypeError(f"fn must be callable: got {type(fn).__name__}")
        self.fn = fn
        self.max_degree = _check.count(max_degree, "max_degree", least=1)
        degree = min(16, self.max_degree)
        while not self._fit(degree):
            degree = min(2 * degree, self.max_degree)

    def _fit(self, degree: int) -> bool:
        """Interpolate at that degree; return whether it is enough, or the largest allowed."""
        values, between = self._sample(_nodes(degree)), _nodes(4 * degree)[1::2]
        size, c = np.abs(values).max(), _interpolate(values)
        enough = np.abs(c[-(-3 * degree // 4) :]).max() <= 4 * _EPS * size
        if enough:
            c = c[: int(np.flatnonzero(np.abs(c) > _EPS / 2 * size).max(initial=0)) + 1]
        self.coefficients = tuple(map(float, c))
        self.error = float(np.abs(self._sample(between) - self._value(between)).max())
        # The nodes may lie where a function that oscillates looks calm; points between do not.
        return degree == self.max_degree or bool(enough and self.error <= 1000 * _EPS * size)

    def _sample(self, u: Array) -> Array:
        values = _check.one_per_entry(_check.real_array(self.fn(u), "fn(u)"), u.shape)
        bad = ~np.isfinite(values)
        if bad.any():
            raise ValueError(f"fn must be finite on [-1, 1]: got {values[bad][0]} at {u[bad][0]}")
        return np.asarray(values, np.float64)

    def _value(self, u: Array) -> Array:
        return np.polynomial.chebyshev.chebval(u, self.coefficients)

    def _derivative(self, u: Array) -> Array:
        return np.polynomial.chebyshev.chebval(u, _differentiated(self.coefficients))

    def _size(self, t: Array) -> Array:
        return np.full_like(t, math.fsum(map(abs, self.coefficients)))

    def _op(self) -> Op:
        top = math.fsum(self.coefficients)
        c = np.array([x / top for x in self.coefficients], np.longdouble)
        # (1 - T_n)/(1 - u) = n + 2 sum_(k<n) (n - k) T_k (Fejer): sums of sums of c from the end
        after = np.append(np.cumsum(c[:0:-1])[::-1], 0)
        gap = 2 * np.cumsum(after[::-1])[::-1]
        gap[0] /= 2
        parts = (c, _differentiated(c), gap)
        flat = tuple(float(x) for part in parts for x in part)
        return Op(Code.CHEBYSHEV_PROFILE, n=len(c), coefficients=flat)

    def _series(self) -> Function | None:
        return None  # fitted on [-1, 1] alone

    def _raw(self, scale: float) -> list[Op]:
        c = self.coefficients
        return [Op(Code.CHEBYSHEV_OF, n=len(c), a=scale, coefficients=c)]


_EPS = float(np.finfo(np.float64).eps)


def _nodes(degree: int) -> Array:
    """Return the extrema of T_degree from 1 to -1, exactly symmetric."""
    return np.sin(math.pi / (2 * degree) * np.arange(degree, -degree - 1, -2))


def _interpolate(values: Array) -> Array:
    """Return the Chebyshev coefficients of the polynomial with these values at the nodes."""
    n = len(values) - 1
    c = np.fft.rfft(np.concatenate([values, values[-2:0:-1]])).real / n
    c[[0, n]] /= 2
    return c


def _differentiated(c: Sequence[float] | Array) -> Array:
    """Return as many Chebyshev coefficients of the derivative: d_(k-1) = d_(k+1) + 2 k c_k."""
    n = len(c)
    d = np.zeros(n + 2, np.longdouble)
    for k in range(n - 1, 0, -1):
        d[k - 1] = d[k + 1] + 2 * k * c[k]
    d[0] /= 2
    return d[:n].astype(np.float64)


def as_profile(obj: Any, name: str = "profile") -> Profile:
    """Return a profile as it is, a callable ``Fitted``, coefficients as a ``PowerSeries``.

    Parameters
    ----------
    obj : Profile, callable or sequence of float
    name : str
        What an error calls it.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.profiles.as_profile([0.0, 0.0, 1.0])
    profiles.PowerSeries((0.0, 0.0, 1.0))
    """
    if isinstance(obj, Profile):
        return obj
    _check.on_the_host(obj, name)
    row = isinstance(obj, np.ndarray) and obj.ndim == 1
    if row or (isinstance(obj, Sequence) and not isinstance(obj, str)):
        return PowerSeries(obj)
    a_class = isinstance(obj, type) and issubclass(obj, Profile)
    if callable(obj) and not isinstance(obj, Value) and not a_class:
        return Fitted(obj)
    kernel = isinstance(obj, Value) and hasattr(obj, "diag")
    got = _check.kind_of(obj) + ("; pass its profile method" if kernel else "")
    raise TypeError(
        f"{name} must be a profile, a callable or a sequence of coefficients: got {got}"
    )
