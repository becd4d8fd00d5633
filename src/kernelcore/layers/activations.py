"""Activations: each class says all there is to know about one activation.

The dual of ``phi`` is ``E[phi(x) phi(y)]`` for centred Gaussian ``x, y``; a network's kernels are
made of it and of the dual of ``phi'``. A class has ``_phi`` and ``_derivative``, the functions;
``_form``, how engines compute the duals; and ``_series``, the dual as a series, for spectra.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..engine import accuracy, backend_of, load, offer, threads
from ..program import Closed, Code, Expansion, Form, Homogeneous, Op, Sampled, Unchanged
from ..series import functions
from ..series.functions import Function, Kappa
from ._layers import Applied

__all__ = [
    "Abs", "Activation", "Cos", "Elu", "Erf", "Exp", "GaussianBump", "Gelu", "Hermite", "Identity",
    "LeakyRelu", "Monomial", "OneKink", "PowerSeries", "RectifiedPower", "Relu", "Selu", "Sigmoid",
    "Sign", "Silu", "Sin", "Softplus", "Step", "Tanh",
]  # fmt: skip


_of = _check.namespace


def _number(value: float, x: Array) -> Any:
    """Return a factor or term of x, which does not change its dtype."""
    return np.asarray(value, x.dtype) if _of(x) is np else value


def _everywhere(value: Any, x: Array) -> Any:
    """Return a number as one of the sides of ``where``: not all libraries take two numbers."""
    xp = _of(x)
    return value if xp is np else xp.zeros_like(x) + value


def _step(x: Array) -> Array:
    """Return 1 where x is positive, 0 where it is negative, else 1/2."""
    xp = _of(x)
    return np.heaviside(x, x.dtype.type(0.5)) if xp is np else (xp.sign(x) + 1) / 2


def _special(name: str, x: Array) -> Array:
    """Evaluate a function of ``scipy.special``; for other arrays their backend has to have it."""
    if _of(x) is np:
        return getattr(load("scipy.special"), name)(x)
    return _check.offered(offer(x, name), x, name)(x)


def _expit(x: Array) -> Array:
    """Return ``1/(1 + e^-x)``."""
    xp = _of(x)
    return load("scipy.special").expit(x) if xp is np else 1 / (1 + xp.exp(-x))


class _Activation(Applied):
    """The base of all activations; ``shift`` turns ``phi(x)`` into ``phi(x + shift)``."""

    _parameters: tuple[str, ...] = ("shift",)
    _defaults = {"shift": 0.0}
    _kinked = False  # whether a Hermite series of it converges slowly
    _sampled = False  # whether ``_series`` is always None, so that spectra have to sample it

    def __init__(self, *, shift: float = 0.0) -> None:
        self.shift = _check.number(shift, "shift")

    def __call__(self, x: ArrayLike) -> Array:
        """Evaluate ``phi(x + shift)``, elementwise."""
        x = _check.array(x, "x")
        return self._phi(x + _number(self.shift, x))

    def derivative(self, x: ArrayLike) -> Array:
        """Evaluate ``phi'(x + shift)``, elementwise; at a kink the mean of both sides.

        Examples
        --------
        >>> import kernelcore as kc
        >>> kc.Relu().derivative([-1.0, 0.0, 2.0])
        array([0. , 0.5, 1. ])
        """
        x = _check.array(x, "x")
        slope = self._derivative(x + _number(self.shift, x))
        return _check.cast(np.asarray(slope) if isinstance(x, np.ndarray) else slope, x.dtype)

    def second_derivative(self, x: ArrayLike) -> Array:
        """Evaluate ``phi''(x + shift)``, elementwise; a kink counts as the mean of both sides.

        Examples
        --------
        >>> import kernelcore as kc
        >>> kc.Softplus().second_derivative([0.0])
        array([0.25])
        """
        x = _check.array(x, "x")
        bend = self._second(x + _number(self.shift, x))
        return _check.cast(np.asarray(bend) if isinstance(x, np.ndarray) else bend, x.dtype)

    # -- what a class has to say

    def _phi(self, x: Array) -> Array:
        raise NotImplementedError

    def _derivative(self, x: Array) -> Array:
        raise NotImplementedError

    def _second(self, x: Array) -> Array:
        raise NotImplementedError

    def dual(self, var1: ArrayLike, var2: ArrayLike, cov: ArrayLike) -> tuple[Array, Array]:
        """Evaluate the dual of the activation and the dual of its derivative.

        Parameters
        ----------
        var1, var2, cov : array_like
            Variances and covariance of a centred Gaussian pair (x, y); broadcast together. A
            covariance beyond ``sqrt(var1 var2)`` counts as that.

        Returns
        -------
        value, slope : arrays of float64
            ``E[phi(x) phi(y)]`` and ``E[phi'(x) phi'(y)]``.

        Examples
        --------
        >>> import kernelcore as kc
        >>> value, slope = kc.Relu().dual(1.0, 1.0, 1.0)
        >>> float(value), float(slope)
        (0.5, 0.5)
        """
        v1, v2 = _check.amounts(var1, "var1"), _check.amounts(var2, "var2")
        v1, v2, k = _check.together(var1=v1, var2=v2, cov=_check.finite_array(cov, "cov"))
        flat = v1.ravel(), v2.ravel(), k.ravel()
        with accuracy.Call():
            value, slope = backend_of(v1).dual(self._form(), *flat, threads.resolve(None))
        return value.reshape(v1.shape), slope.reshape(v1.shape)


# ---- homogeneous: E[phi phi] = gain (sd1 sd2)^degree p(u), p(1) = 1


class _Homogeneous(_Activation):
    """An activation with phi(c x) = c^degree phi(x), c > 0; a shift moves its kink off zero."""

    _degree = 1
    _kinked = True

    def _op(self) -> Op:
        raise NotImplementedError

    def _gain(self) -> float:
        """Return E[phi(z)^2] for a standard normal z."""
        raise NotImplementedError

    def _shifted(self) -> _Activation | None:
        """Return the activation that stands in when there is a shift."""
        return None

    def _form(self) -> Form:
        other = self._shifted()
        if other is not None:
            return other._form()
        op, n, gain = self._op(), self._degree, self._gain()
        slope = gain * (n**2 / abs(2 * n - 1))  # E[phi'(z)^2]; steps count as flat
        return Homogeneous(op, n, gain, slope, op.code == Code.RELU)

    def _series(self, q: float) -> Function | None:
        other = self._shifted()
        return self._unshifted() if other is None else other._series(q)

    def _unshifted(self) -> Function:
        """Return the series without a shift, which is the same at every variance."""
        raise NotImplementedError


class _Kinked(_Homogeneous):
    """A kink of degree n = 0 or 1: ``right x^n`` for x > 0, ``left x^n`` for x < 0."""

    def _sides(self) -> tuple[float, float]:
        """Return left and right."""
        raise NotImplementedError

    def _gain(self) -> float:
        left, right = self._sides()
        return (right**2 + left**2) / 2

    def _shifted(self) -> _Activation | None:
        if self.shift == 0.0:
            return None
        left, right = self._sides()
        b = self.shift
        if self._degree == 0:
            return OneKink(-b, (right, 0.0, 0.0), (left, 0.0, 0.0))
        return OneKink(-b, (right * b, right, 0.0), (left * b, left, 0.0))


class LeakyRelu(_Kinked):
    """The leaky rectifier: ``x`` for x > 0, ``slope x`` for x < 0.

    Parameters
    ----------
    slope : float
        Of the left side.
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> kc.LeakyRelu(0.1)(np.array([-2.0, 3.0]))
    array([-0.2,  3. ])
    """

    _parameters: tuple[str, ...] = ("slope", "shift")

    def __init__(self, slope: float, *, shift: float = 0.0) -> None:
        super().__init__(shift=shift)
        self.slope = _check.number(slope, "slope")

    def _phi(self, x: Array) -> Array:
        return _of(x).where(x > 0, x, _number(self.slope, x) * x)

    def _derivative(self, x: Array) -> Array:
        xp, kink = _of(x), _everywhere((1 + self.slope) / 2, x)
        return xp.where(x > 0, 1.0, xp.where(x < 0, self.slope, kink))

    def _second(self, x: Array) -> Array:
        return _of(x).zeros_like(x)

    def _sides(self) -> tuple[float, float]:
        return self.slope, 1.0

    def _op(self) -> Op:
        s = self.slope
        if s == 0:
            return Op(Code.RELU)
        norm = 1 + s * s
        return Op(Code.LEAKY_RELU, a=(1 - s) ** 2 / norm, b=2 * s / norm, c=(1 + s) ** 2 / norm)

    def _unshifted(self) -> Function:
        if self.slope == 0:
            return Kappa(1)
        op = self._op()
        return functions.Combination((op.a, Kappa(1)), (op.b, functions.Power([0.0, 1.0])))


class Relu(LeakyRelu):
    """The rectifier ``max(0, x)``, without a factor sqrt 2.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Relu(shift=0.5)([-1.0, 2.0])
    array([0. , 2.5])
    """

    _parameters = ("shift",)

    def __init__(self, *, shift: float = 0.0) -> None:
        super().__init__(0.0, shift=shift)

    def _phi(self, x: Array) -> Array:
        return _of(x).maximum(x, 0)

    def _derivative(self, x: Array) -> Array:
        if _of(x) is not np:
            return _step(x)
        out = np.asarray(x > 0, x.dtype)  # an eighth of the time of heaviside
        kinks = x == 0
        if kinks.any():
            out[kinks] = 0.5
        return out


class Abs(LeakyRelu):
    """The absolute value ``|x|``.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Abs()([-1.0, 2.0])
    array([1., 2.])
    """

    _parameters = ("shift",)

    def __init__(self, *, shift: float = 0.0) -> None:
        super().__init__(-1.0, shift=shift)

    def _phi(self, x: Array) -> Array:
        return _of(x).abs(x)


class Step(_Kinked):
    """The step: 1 if x > 0, else 0; its derivative counts as 0, so nothing before it is trained.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Step()([-1.0, 2.0])
    array([0., 1.])
    """

    _degree = 0

    def _phi(self, x: Array) -> Array:
        return _step(x)

    def _derivative(self, x: Array) -> Array:
        return _of(x).zeros_like(x)

    def _second(self, x: Array) -> Array:
        return _of(x).zeros_like(x)

    def _sides(self) -> tuple[float, float]:
        return 0.0, 1.0

    def _op(self) -> Op:
        return Op(Code.STEP)

    def _unshifted(self) -> Function:
        return Kappa(0)


class Sign(Step):
    """The sign of x; its derivative counts as zero, so nothing before it is trained.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Sign()([-1.0, 2.0])
    array([-1.,  1.])
    """

    def _phi(self, x: Array) -> Array:
        return _of(x).sign(x)

    def _sides(self) -> tuple[float, float]:
        return -1.0, 1.0

    def _op(self) -> Op:
        return Op(Code.SIGN)

    def _unshifted(self) -> Function:
        return functions.Combination((2.0, Kappa(0)), (-1.0, functions.Power([1.0])))


class RectifiedPower(_Homogeneous):
    """The rectified power ``max(0, x)^n``; n = 0 is ``Step``, n = 1 is ``Relu``.

    With a shift and n >= 2 the dual is a Hermite series across a kink. Its error is below 2e-6, but
    more where the kink lies three standard deviations out; above 1e-5 a warning says so.

    Parameters
    ----------
    n : int
        The power, not negative.
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.RectifiedPower(2)([-1.0, 3.0])
    array([0., 9.])
    """

    _parameters = ("n", "shift")

    def __init__(self, n: int, *, shift: float = 0.0) -> None:
        super().__init__(shift=shift)
        self.n = _check.count(n, "n")

    @property
    def _degree(self) -> int:  # type: ignore[override]  # it is a parameter
        return self.n

    def _phi(self, x: Array) -> Array:
        return _of(x).maximum(x, 0) ** self.n if self.n else _step(x)

    def _derivative(self, x: Array) -> Array:
        return self.n * RectifiedPower(self.n - 1)._phi(x) if self.n else _of(x).zeros_like(x)

    def _second(self, x: Array) -> Array:
        n = self.n
        return n * RectifiedPower(n - 1)._derivative(x) if n > 1 else _of(x).zeros_like(x)

    def _gain(self) -> float:
        return math.prod(range(1, 2 * self.n, 2)) / 2  # (2n-1)!!/2

    def _op(self) -> Op:
        return Op(Code.RECTIFIED_POWER, n=self.n)

    def _unshifted(self) -> Function:
        return Kappa(self.n)

    def _shifted(self) -> _Activation | None:
        if self.n < 2:
            return (Relu if self.n else Step)(shift=self.shift)
        return Activation(self) if self.shift else None


# ---- closed forms in the variances


class _Closed(_Activation):
    """An activation whose duals are one operation of the variances, with the common tables."""

    def _op(self) -> Op:
        raise NotImplementedError

    def _form(self) -> Form:
        return Closed(self._op())


class _SmoothShift(_Closed):
    """An activation with a closed form without a shift, and a Hermite series with one."""

    def _form(self) -> Form:
        return Activation(self)._form() if self.shift else super()._form()

    def _series(self, q: float) -> Function | None:
        return None if self.shift else self._unshifted(q)

    def _unshifted(self, q: float) -> Function:
        raise NotImplementedError


class Erf(_SmoothShift):
    """The error function ``erf(x)``.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> value, slope = kc.Erf().dual(0.5, 0.5, 0.5)
    >>> round(float(value), 12)  # 2/pi arcsin(1/2)
    0.333333333333
    """

    def _phi(self, x: Array) -> Array:
        return _special("erf", x)

    def _derivative(self, x: Array) -> Array:
        return 2 / math.sqrt(math.pi) * _of(x).exp(-x * x)

    def _second(self, x: Array) -> Array:
        return -2 * x * self._derivative(x)

    def _op(self) -> Op:
        return Op(Code.ERF)

    def _unshifted(self, q: float) -> Function:
        return functions.Arcsine(2 * q / (1 + 2 * q), 1 / (1 + 2 * q))


class Gelu(_SmoothShift):
    """The exact ``x Phi(x)``, Phi the normal distribution function, not the tanh approximation.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Gelu()([0.0, 1.0]).round(4)
    array([0.    , 0.8413])
    """

    def _phi(self, x: Array) -> Array:
        return x * _special("ndtr", x)

    def _derivative(self, x: Array) -> Array:
        return _special("ndtr", x) + x * _of(x).exp(-x * x / 2) / math.sqrt(2 * math.pi)

    def _second(self, x: Array) -> Array:
        return (2 - x * x) * _of(x).exp(-x * x / 2) / math.sqrt(2 * math.pi)

    def _op(self) -> Op:
        return Op(Code.GELU)

    def _unshifted(self, q: float) -> Function:
        return functions.Gelu(q)


class Sin(_Closed):
    """The sine ``sin x``.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Sin()([0.0, 1.0]).round(4)
    array([0.    , 0.8415])
    """

    def _phi(self, x: Array) -> Array:
        return _of(x).sin(x)

    def _derivative(self, x: Array) -> Array:
        return _of(x).cos(x)

    def _second(self, x: Array) -> Array:
        return -self._phi(x)

    def _op(self) -> Op:
        return Op(Code.SINE, a=math.cos(self.shift) ** 2, b=math.sin(self.shift) ** 2)

    def _series(self, q: float) -> Function | None:
        op = self._op()
        return functions.sine(q, op.a, op.b)


class Cos(Sin):
    """The cosine ``cos x``.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Cos()([0.0, 1.0]).round(4)
    array([1.    , 0.5403])
    """

    def _phi(self, x: Array) -> Array:
        return _of(x).cos(x)

    def _derivative(self, x: Array) -> Array:
        return -_of(x).sin(x)

    def _op(self) -> Op:
        return Op(Code.SINE, a=math.sin(self.shift) ** 2, b=math.cos(self.shift) ** 2)


class Exp(_Closed):
    """The exponential ``exp x``.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Exp()([0.0, 1.0]).round(4)
    array([1.    , 2.7183])
    """

    def _phi(self, x: Array) -> Array:
        return _of(x).exp(x)

    def _derivative(self, x: Array) -> Array:
        return _of(x).exp(x)

    def _second(self, x: Array) -> Array:
        return _of(x).exp(x)

    def _op(self) -> Op:
        return Op(Code.EXPONENTIAL, a=math.exp(2 * self.shift))

    def _series(self, q: float) -> Function | None:
        return functions.exponential(q)


class GaussianBump(_Closed):
    """The Gaussian ``exp(-x^2)``.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.GaussianBump()([0.0, 1.0]).round(4)
    array([1.    , 0.3679])
    """

    def _phi(self, x: Array) -> Array:
        return _of(x).exp(-(x**2))

    def _derivative(self, x: Array) -> Array:
        return -2 * x * _of(x).exp(-x * x)

    def _second(self, x: Array) -> Array:
        return (4 * x * x - 2) * _of(x).exp(-x * x)

    def _op(self) -> Op:
        return Op(Code.BUMP, a=self.shift**2)

    def _series(self, q: float) -> Function | None:
        if self.shift:
            return None
        z, gap = 2 * q / (1 + 2 * q), 1 / (1 + 2 * q)
        return functions.Combination((math.sqrt(gap * (1 + z)), functions.Root(z, gap)))


class OneKink(_Closed):
    """A kink: ``p0 + p1 x + p2 e^x`` to the right of it, ``m0 + m1 x + m2 e^x`` to its left.

    Parameters
    ----------
    kink : float
        Where it is.
    right, left : sequences of 3 floats
        ``(p0, p1, p2)`` and ``(m0, m1, m2)``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> kc.OneKink(0.0, (0.0, 1.0, 0.0), (-1.0, 0.0, 1.0))(np.array([-1.0, 2.0]))  # Elu
    array([-0.63212056,  2.        ])
    """

    _sampled = True
    _parameters: tuple[str, ...] = ("kink", "right", "left")
    _defaults: dict[str, object] = {}
    _kinked = True

    def __init__(self, kink: float, right: Sequence[float], left: Sequence[float]) -> None:
        super().__init__()
        self.kink = _check.number(kink, "kink")
        self.right = self._side(right, "right")
        self.left = self._side(left, "left")

    @staticmethod
    def _side(values: Sequence[float], name: str) -> tuple[float, ...]:
        values = _check.coefficients(values, name)
        if len(values) != 3:
            raise ValueError(f"{name} must have 3 entries: got {len(values)}")
        return values

    def _phi(self, x: Array) -> Array:
        xp = _of(x)
        with np.errstate(over="ignore", invalid="ignore"):
            right, left = (
                c[0] + c[1] * x + (c[2] * xp.exp(x) if c[2] else 0.0)
                for c in (self.right, self.left)
            )
        return xp.where(x > self.kink, right, xp.where(x < self.kink, left, (right + left) / 2))

    def _derivative(self, x: Array) -> Array:
        return self._sloping(x, self.right[1], self.left[1])

    def _second(self, x: Array) -> Array:
        return self._sloping(x, 0.0, 0.0)

    def _sloping(self, x: Array, *constants: float) -> Array:
        """Return a derivative: on both sides a constant and the exponential."""
        # In terms of x + shift: classes derived from this one have their kink where x = -shift.
        x = x - self.shift
        xp = _of(x)
        with np.errstate(over="ignore", invalid="ignore"):
            right, left = (
                _everywhere(constant, x) + (c[2] * xp.exp(x) if c[2] else 0.0)
                for constant, c in zip(constants, (self.right, self.left), strict=True)
            )
        return xp.where(x > self.kink, right, xp.where(x < self.kink, left, (right + left) / 2))

    def _op(self) -> Op:
        return Op(Code.ONE_KINK, coefficients=(self.kink, *self.right, *self.left))

    def _series(self, q: float) -> Function | None:
        return None


class _Elu(OneKink):
    """A linear unit: ``scale x`` for x > 0, ``scale alpha (e^x - 1)`` for x < 0."""

    _parameters = ("shift",)
    _defaults = {"shift": 0.0}
    _scale = 1.0
    _alpha = 1.0

    def __init__(self, *, shift: float = 0.0) -> None:
        shift = _check.number(shift, "shift")
        s, low = self._scale, self._scale * self._alpha
        super().__init__(-shift, (s * shift, s, 0.0), (-low, 0.0, low * math.exp(shift)))
        self.shift = shift

    def _phi(self, x: Array) -> Array:
        xp = _of(x)
        low = _number(self._alpha, x) * xp.expm1(xp.minimum(x, 0))
        return _number(self._scale, x) * xp.where(x > 0, x, low)


class Elu(_Elu):
    """The exponential linear unit: ``x`` for x > 0, ``e^x - 1`` for x < 0.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Elu()([-1.0, 2.0]).round(4)
    array([-0.6321,  2.    ])
    """


class Selu(_Elu):
    """The scaled exponential linear unit (Klambauer et al. 2017).

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Selu()([-1.0, 2.0]).round(4)
    array([-1.1113,  2.1014])
    """

    _scale = 1.0507009873554805
    _alpha = 1.6732632423543772


# ---- Hermite series


class _Polynomial(_Activation):
    """A polynomial, whose coefficients in Hermite polynomials are exact."""

    def _series(self, q: float) -> Function | None:
        return functions.Power(backend_of(q).hermite_shares(self._form(), q))


def horner(coefficients: Sequence[float], x: Array) -> Array:
    """Evaluate a polynomial in the dtype of x."""
    value = _of(x).full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        value = value * x + _number(c, x)
    return value


def _differentiated(coefficients: Sequence[float]) -> list[float]:
    return [k * c for k, c in enumerate(coefficients)][1:] or [0.0]


class PowerSeries(_Polynomial):
    """The polynomial ``sum_k coefficients[k] x^k``.

    Parameters
    ----------
    coefficients : sequence of float
        Of the powers, the constant first.
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> kc.PowerSeries((0.0, 1.0, 0.5))(np.array([2.0]))
    array([4.])
    """

    _parameters: tuple[str, ...] = ("coefficients", "shift")

    def __init__(self, coefficients: Sequence[float], *, shift: float = 0.0) -> None:
        super().__init__(shift=shift)
        self.coefficients = _check.coefficients(coefficients, "coefficients")

    def _phi(self, x: Array) -> Array:
        return horner(self.coefficients, x)

    def _derivative(self, x: Array) -> Array:
        return horner(_differentiated(self.coefficients), x)

    def _second(self, x: Array) -> Array:
        return horner(_differentiated(_differentiated(self.coefficients)), x)

    def _form(self) -> Form:
        c, b = self.coefficients, self.shift
        if b:  # the binomial theorem
            c = tuple(
                math.fsum(c[k] * math.comb(k, j) * b ** (k - j) for k in range(j, len(c)))
                for j in range(len(c))
            )
        return Expansion(c)


class Monomial(PowerSeries):
    """The power ``x^n``.

    Parameters
    ----------
    n : int
        The power, not negative.
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Monomial(3)([-1.0, 2.0])
    array([-1.,  8.])
    """

    _parameters: tuple[str, ...] = ("n", "shift")

    def __init__(self, n: int, *, shift: float = 0.0) -> None:
        self.n = _check.count(n, "n")
        super().__init__((0.0,) * self.n + (1.0,), shift=shift)


class Identity(Monomial):
    """The identity ``x``: no activation at all.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Identity(shift=1.0)([-1.0, 2.0])
    array([0., 3.])
    """

    _parameters = ("shift",)

    def __init__(self, *, shift: float = 0.0) -> None:
        super().__init__(1, shift=shift)

    _keeps_gaussian = True

    def _form(self) -> Form:
        return super()._form() if self.shift else Unchanged()


class Hermite(_Polynomial):
    """The normalised probabilists' Hermite polynomial ``He_n / sqrt(n!)``.

    Parameters
    ----------
    n : int
        The degree, not negative.
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Hermite(2)([0.0, 1.0]).round(4)  # (x^2 - 1)/sqrt 2
    array([-0.7071,  0.    ])
    """

    _parameters = ("n", "shift")

    def __init__(self, n: int, *, shift: float = 0.0) -> None:
        super().__init__(shift=shift)
        self.n = _check.count(n, "n")

    def _phi(self, x: Array) -> Array:
        h, last = _of(x).ones_like(x), _of(x).zeros_like(x)
        for k in range(1, self.n + 1):
            h, last = (x * h - math.sqrt(k - 1) * last) / math.sqrt(k), h
        return h

    def _derivative(self, x: Array) -> Array:
        # He_n' = n He_(n-1), over sqrt(n!)
        return math.sqrt(self.n) * Hermite(self.n - 1)._phi(x) if self.n else _of(x).zeros_like(x)

    def _second(self, x: Array) -> Array:
        n = self.n
        return math.sqrt(n) * Hermite(n - 1)._derivative(x) if n else _of(x).zeros_like(x)

    def _form(self) -> Form:
        n, b, root = self.n, self.shift, math.sqrt(math.factorial(self.n))
        # He_n(x + b) = sum_k C(n, k) b^(n-k) He_k(x)
        c = tuple(math.comb(n, k) * b ** (n - k) / root for k in range(n + 1))
        return Expansion(c, hermite=True)


class Activation(_Activation):
    """Any smooth function, through a numerical dual.

    Parameters
    ----------
    fn : callable
        Vectorised, float64 in and out, finite on the real line, smooth. (A function with one kink
        has an exact dual when it is a ``OneKink``.)
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Notes
    -----
    ``phi(sd z)`` is expanded in Hermite polynomials until the rest is below rounding, which for a
    function analytic within distance p of the real line takes orders up to ``(20 sd / p)^2``. Where
    the coefficients are smooth in their order, few of them stand for all: variances up to about
    ``1e4 p^2`` are then exact to rounding. Those of functions with kinks, or that oscillate, end at
    order 2048; ``dual_error`` says what is left. Coefficients are interpolated in sd, to rounding,
    from quadratures that are kept for later calls: ``fn`` must always return the same. The
    activation can be pickled if ``fn`` can.

    Where the dual, or for tangent kernels the derivative's dual, is off by more than 1e-5 of its
    size, the call that uses it gives one ``RuntimeWarning``; a kink costs about 1e-5 of the dual
    and 1e-3 of the derivative's. Where ``E[fn(x)^2]`` is infinite, or most of it lies beyond 13
    standard deviations, there is a ``ValueError``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> softsign = kc.Activation(lambda x: x / np.sqrt(1 + x * x))
    >>> value, slope = softsign.dual(1.0, 1.0, 0.5)
    >>> round(float(value), 6)
    0.162094
    """

    _sampled = True
    _parameters: tuple[str, ...] = ("fn", "shift")

    def __init__(self, fn: Callable[[Array], Array], *, shift: float = 0.0) -> None:
        super().__init__(shift=shift)
        if not callable(fn):
            raise TypeError(f"fn must be callable: got {type(fn).__name__}")
        self.fn = fn

    def _phi(self, x: Array) -> Array:
        return self.fn(x)

    def _derivative(self, x: Array) -> Array:
        if isinstance(self.fn, _Activation):
            return self.fn.derivative(x)
        return _check.without_derivative(self)

    def _second(self, x: Array) -> Array:
        if isinstance(self.fn, _Activation):
            return self.fn.second_derivative(x)
        return _check.without_derivative(self)

    def _form(self) -> Form:
        return Sampled(self)

    def _series(self, q: float) -> Function | None:
        return None

    def dual_error(self, variance: ArrayLike, *, slope: bool = False) -> Array:
        """Estimate the error of the dual that quadrature and the cut of the series make.

        Parameters
        ----------
        variance : array_like
            Of both inputs; of two that differ the error is about the geometric mean of theirs.
        slope : bool
            Whether to estimate the derivative's dual instead, whose error is larger.

        Returns
        -------
        array of float64, of the shape of ``variance``
            The largest error at any correlation, relative to ``E[phi(x)^2]`` or, with ``slope``, to
            ``E[phi'(x)^2]``. The estimate is, as a rule, right within a factor of ten, and rather
            too large. Rounding adds about 1e-15.

        Examples
        --------
        >>> import numpy as np
        >>> import kernelcore as kc
        >>> error = kc.Activation(np.abs).dual_error([1.0])
        >>> bool(1e-6 < error[0] < 1e-3), bool(kc.Tanh().dual_error(400.0)[0] < 1e-13)
        (True, True)
        """
        v = np.atleast_1d(_check.amounts(variance, "variance"))
        error = backend_of(v).dual_error(self._form(), v.ravel(), threads.resolve(None))
        return error[int(_check.flag(slope, "slope"))].reshape(v.shape)


class _Smooth(Activation):
    """A named smooth function without a closed-form dual."""

    _parameters = ("shift",)

    def __init__(self, *, shift: float = 0.0) -> None:
        super().__init__(self._phi, shift=shift)

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), shift=self.shift), ()


class Tanh(_Smooth):
    """The function ``tanh x``, by a Hermite series: error below 1e-13 to variance 1e4.

    Warnings, of errors above 1e-5, begin at a variance of some 1e5.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Tanh()([0.0, 1.0]).round(4)
    array([0.    , 0.7616])
    """

    def _phi(self, x: Array) -> Array:
        return _of(x).tanh(x)

    def _derivative(self, x: Array) -> Array:
        return 1 - _of(x).tanh(x) ** 2

    def _second(self, x: Array) -> Array:
        t = _of(x).tanh(x)
        return -2 * t * (1 - t * t)


class Sigmoid(_Smooth):
    """The function ``1/(1 + e^-x)``, by a Hermite series: error below 1e-13 to variance 1e4.

    Warnings, of errors above 1e-5, begin at a variance of some 1e6; for the derivative's dual,
    which tangent kernels use, at 2e5.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Sigmoid()([0.0, 1.0]).round(4)
    array([0.5   , 0.7311])
    """

    def _phi(self, x: Array) -> Array:
        return _expit(x)

    def _derivative(self, x: Array) -> Array:
        s = self._phi(x)
        return s * (1 - s)

    def _second(self, x: Array) -> Array:
        s = self._phi(x)
        return s * (1 - s) * (1 - 2 * s)


class Silu(_Smooth):
    """The function ``x/(1 + e^-x)``, by a Hermite series: error below 1e-13 to variance 1e4.

    The error stays below 1e-6 at any variance; that of the derivative's dual, which tangent kernels
    use, stays below 1e-5 to some 2e5, where warnings begin.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Silu()([0.0, 1.0]).round(4)
    array([0.    , 0.7311])
    """

    def _phi(self, x: Array) -> Array:
        return x * _expit(x)

    def _derivative(self, x: Array) -> Array:
        s = _expit(x)
        return s * (1 + x * (1 - s))

    def _second(self, x: Array) -> Array:
        s = _expit(x)
        return s * (1 - s) * (2 + x * (1 - 2 * s))


class Softplus(_Smooth):
    """The function ``log(1 + e^x)``, by a Hermite series: error below 1e-13 to variance 1e4.

    The error stays below 1e-6 at any variance; that of the derivative's dual, which tangent kernels
    use, stays below 1e-5 to some 2e5, where warnings begin.

    Parameters
    ----------
    shift : float, default 0
        Of the argument: the activation is ``phi(x + shift)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Softplus()([0.0, 1.0]).round(4)
    array([0.6931, 1.3133])
    """

    def _phi(self, x: Array) -> Array:
        return _of(x).logaddexp(x, 0.0)

    def _derivative(self, x: Array) -> Array:
        return _expit(x)

    def _second(self, x: Array) -> Array:
        s = _expit(x)
        return s * (1 - s)
