"""Activations and their duals.

The dual of ``phi`` is ``E[phi(x) phi(y)]`` for centred Gaussian ``x, y``; a network's kernels are
made of it and of the dual of ``phi'``. Each class says which compiled operation computes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import _check
from ..engine import accuracy as _accuracy
from ..engine import hermite as _hermite
from ..engine.cpu import dispatch as _dispatch
from ..engine.cpu.program import Code, Op, RowStep, Walk, raw_dual
from ._layers import Layer

if TYPE_CHECKING:
    from ..engine.accuracy import Doubt
    from ..engine.cpu.images import Builder

Array = np.ndarray
_FULL = float(np.finfo(np.float64).eps) / 4


class _Activation(Layer):
    """Base of all activations; ``shift`` turns ``phi(x)`` into ``phi(x + shift)``."""

    _parameters = ("shift",)
    _defaults = {"shift": 0.0}
    _row_tables = 3  # what a step tabulates per position, about: for the size of tiles

    def __init__(self, *, shift: float = 0.0) -> None:
        self.shift = _check.number(shift, "shift")

    def _phi(self, x: Array) -> Array:
        raise NotImplementedError

    def __call__(self, x) -> Array:
        """``phi(x + shift)``, elementwise."""
        x = _check.real_array(x, "x")
        return self._phi(x + np.asarray(self.shift, x.dtype))

    def _step(self, variance: Array, tolerance: float) -> RowStep:
        """What happens to rows of these variances."""
        raise NotImplementedError

    def _dual(self, v1: Array, v2: Array, cov: Array) -> tuple[Array, Array]:
        raise NotImplementedError

    def _pass(self, walk: Walk) -> None:
        walk.activation(self._step(walk.variance, walk.tolerance), self)

    def _build(self, builder: Builder) -> None:
        builder.activate(self)

    def dual(self, var1, var2, cov) -> tuple[Array, Array]:
        """The dual of the activation and of its derivative.

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
        arrays = [
            _check.finite_array(x, name)
            for x, name in ((var1, "var1"), (var2, "var2"), (cov, "cov"))
        ]
        for a, name in zip(arrays[:2], ("var1", "var2"), strict=True):
            if (a < 0).any():
                raise ValueError(f"{name} must not be negative: got {a[a < 0].flat[0]}")
        try:
            v1, v2, k = np.broadcast_arrays(*arrays)
        except ValueError:
            shapes = ", ".join(str(a.shape) for a in arrays)
            raise ValueError(
                f"var1, var2 and cov must broadcast together: got shapes {shapes}"
            ) from None
        with _accuracy.Call():
            value, slope = self._dual(v1.ravel(), v2.ravel(), k.ravel())
        return value.reshape(v1.shape), slope.reshape(v1.shape)


# ---- homogeneous: E[phi phi] = gain (sd1 sd2)^degree p(u), p(1) = 1


class _Homogeneous(_Activation):
    """phi(c x) = c^degree phi(x) for c > 0; the kink moves off zero with a shift."""

    _degree = 1
    _row_tables = 0

    def _op(self) -> Op:
        raise NotImplementedError

    def _gain(self) -> float:
        """E[phi(z)^2] for a standard normal z."""
        raise NotImplementedError

    def _slope(self) -> float:
        """E[phi'(z)^2] / E[phi(z)^2]."""
        return 1.0

    def _shifted(self) -> _Activation | None:
        """The activation that stands in when there is a shift."""
        return None

    def _step(self, variance: Array, tolerance: float) -> RowStep:
        other = self._shifted()
        if other is not None:
            return other._step(variance, tolerance)
        n = self._degree
        with np.errstate(over="ignore"):
            power = variance ** (n - 1) if n > 0 else np.zeros_like(variance)
            new = self._gain() * variance**n
        return RowStep(self._op(), new, self._gain() * self._slope() * power, np.empty((0, 0)))

    def _dual(self, v1: Array, v2: Array, cov: Array) -> tuple[Array, Array]:
        other = self._shifted()
        if other is not None:
            return other._dual(v1, v2, cov)
        none = np.empty((0, len(v1)))
        u, slope = raw_dual(self._op(), none, none, v1, v2, cov)
        s1, s2, n = np.sqrt(v1), np.sqrt(v2), self._degree
        u, slope = self._gain() * u, self._gain() * slope
        with np.errstate(over="ignore", under="ignore"):
            if n == 0:
                return u, np.zeros_like(u)
            # Correlation first: a zero stays zero whatever overflows later.
            return u * s1**n * s2**n, slope * s1 ** (n - 1) * s2 ** (n - 1)


class _Kinked(_Homogeneous):
    """Homogeneous of degree 0 or 1: ``right x^n`` for x > 0, ``left x^n`` for x < 0."""

    def _sides(self) -> tuple[float, float]:
        raise NotImplementedError

    def _shifted(self) -> _Activation | None:
        if self.shift == 0.0:
            return None
        left, right = self._sides()
        b = self.shift
        if self._degree == 0:
            return OneKink(-b, (right, 0.0, 0.0), (left, 0.0, 0.0))
        return OneKink(-b, (right * b, right, 0.0), (left * b, left, 0.0))


class LeakyRelu(_Kinked):
    """``x`` for x > 0, ``slope x`` for x < 0.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> kc.LeakyRelu(0.1)(np.array([-2.0, 3.0]))
    array([-0.2,  3. ])
    """

    _parameters = ("slope", "shift")

    def __init__(self, slope: float, *, shift: float = 0.0) -> None:
        super().__init__(shift=shift)
        self.slope = _check.number(slope, "slope")

    def _phi(self, x: Array) -> Array:
        return np.where(x > 0, x, np.asarray(self.slope, x.dtype) * x)

    def _sides(self) -> tuple[float, float]:
        return self.slope, 1.0

    @property
    def _kappa1_gain(self) -> float | None:
        return 0.5 if self.slope == 0 and self.shift == 0 else None

    def _gain(self) -> float:
        return (1 + self.slope**2) / 2

    def _op(self) -> Op:
        s = self.slope
        if s == 0:
            return Op(Code.RELU)
        norm = 1 + s * s
        return Op(Code.LEAKY_RELU, a=(1 - s) ** 2 / norm, b=2 * s / norm, c=(1 + s) ** 2 / norm)


class Relu(LeakyRelu):
    """``max(0, x)``, without a factor sqrt 2."""

    _parameters = ("shift",)

    def __init__(self, *, shift: float = 0.0) -> None:
        super().__init__(0.0, shift=shift)

    def _phi(self, x: Array) -> Array:
        return np.maximum(x, 0)


class Abs(LeakyRelu):
    """``|x|``."""

    _parameters = ("shift",)

    def __init__(self, *, shift: float = 0.0) -> None:
        super().__init__(-1.0, shift=shift)

    def _phi(self, x: Array) -> Array:
        return np.abs(x)


class Step(_Kinked):
    """1 for x > 0, else 0; its derivative counts as zero, so nothing before it is trained."""

    _degree = 0

    def _phi(self, x: Array) -> Array:
        return np.heaviside(x, np.asarray(0.5, x.dtype))

    def _sides(self) -> tuple[float, float]:
        return 0.0, 1.0

    def _gain(self) -> float:
        return 0.5

    def _slope(self) -> float:
        return 0.0

    def _op(self) -> Op:
        return Op(Code.STEP)


class Sign(Step):
    """The sign of x; its derivative counts as zero, so nothing before it is trained."""

    def _phi(self, x: Array) -> Array:
        return np.sign(x)

    def _sides(self) -> tuple[float, float]:
        return -1.0, 1.0

    def _gain(self) -> float:
        return 1.0

    def _op(self) -> Op:
        return Op(Code.SIGN)


class RectifiedPower(_Homogeneous):
    """``max(0, x)^n``; n = 0 is ``Step``, n = 1 is ``Relu``.

    With a shift and n >= 2 the dual is a Hermite series across a kink: error below 2e-6, and more
    where the kink lies three standard deviations out; above 1e-5 a warning says so.
    """

    _parameters = ("n", "shift")

    def __init__(self, n: int, *, shift: float = 0.0) -> None:
        super().__init__(shift=shift)
        self.n = _check.count(n, "n")

    @property
    def _degree(self) -> int:  # type: ignore[override]
        return self.n

    def _phi(self, x: Array) -> Array:
        return (
            np.heaviside(x, np.asarray(0.5, x.dtype)) if self.n == 0 else np.maximum(x, 0) ** self.n
        )

    def _gain(self) -> float:
        return math.prod(range(1, 2 * self.n, 2)) / 2  # (2n-1)!!/2

    def _slope(self) -> float:
        return self.n**2 / (2 * self.n - 1)

    def _op(self) -> Op:
        return Op(Code.RECTIFIED_POWER, n=self.n)

    def _shifted(self) -> _Activation | None:
        if self.n == 0:
            return Step(shift=self.shift)
        if self.n == 1:
            return Relu(shift=self.shift)
        if self.shift == 0.0:
            return None
        return Activation(self)


# ---- closed forms in the variances


class _Closed(_Activation):
    """An operation of the variances, with the common tables."""

    def _op(self) -> Op:
        raise NotImplementedError

    def _step(self, variance: Array, tolerance: float) -> RowStep:
        value, slope = self._dual(variance, variance, variance)
        return RowStep(self._op(), value, slope)

    def _dual(self, v1: Array, v2: Array, cov: Array) -> tuple[Array, Array]:
        return raw_dual(self._op(), np.sqrt(v1)[None], np.sqrt(v2)[None], v1, v2, cov)


class _SmoothShift(_Closed):
    """Closed form without a shift, Hermite series with one."""

    def _series(self) -> Activation:
        return Activation(self)

    def _step(self, variance: Array, tolerance: float) -> RowStep:
        if self.shift:
            return self._series()._step(variance, tolerance)
        return super()._step(variance, tolerance)

    def _dual(self, v1: Array, v2: Array, cov: Array) -> tuple[Array, Array]:
        if self.shift:
            return self._series()._dual(v1, v2, cov)
        return super()._dual(v1, v2, cov)


class Erf(_SmoothShift):
    """The error function ``erf(x)``."""

    def _phi(self, x: Array) -> Array:
        erf = _dispatch.load("scipy.special").erf
        return erf(x)

    def _op(self) -> Op:
        return Op(Code.ERF)


class Gelu(_SmoothShift):
    """``x Phi(x)``, Phi the normal distribution function (exact, not the tanh approximation)."""

    def _phi(self, x: Array) -> Array:
        ndtr = _dispatch.load("scipy.special").ndtr
        return x * ndtr(x)

    def _op(self) -> Op:
        return Op(Code.GELU)


class Sin(_Closed):
    """``sin x``."""

    def _phi(self, x: Array) -> Array:
        return np.sin(x)

    def _op(self) -> Op:
        return Op(Code.SINE, a=math.cos(self.shift) ** 2, b=math.sin(self.shift) ** 2)


class Cos(_Closed):
    """``cos x``."""

    def _phi(self, x: Array) -> Array:
        return np.cos(x)

    def _op(self) -> Op:
        return Op(Code.SINE, a=math.sin(self.shift) ** 2, b=math.cos(self.shift) ** 2)


class Exp(_Closed):
    """``exp x``."""

    def _phi(self, x: Array) -> Array:
        return np.exp(x)

    def _op(self) -> Op:
        return Op(Code.EXPONENTIAL, a=math.exp(2 * self.shift))


class GaussianBump(_Closed):
    """``exp(-x^2)``."""

    def _phi(self, x: Array) -> Array:
        return np.exp(-(x**2))

    def _op(self) -> Op:
        return Op(Code.BUMP, a=self.shift**2)


class OneKink(_Closed):
    """``p0 + p1 x + p2 e^x`` to the right of a kink, ``m0 + m1 x + m2 e^x`` to its left.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> kc.OneKink(0.0, (0.0, 1.0, 0.0), (-1.0, 0.0, 1.0))(np.array([-1.0, 2.0]))  # Elu
    array([-0.63212056,  2.        ])
    """

    _parameters = ("kink", "right", "left")
    _defaults: dict[str, object] = {}

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
        with np.errstate(over="ignore", invalid="ignore"):
            right, left = (
                c[0] + c[1] * x + (c[2] * np.exp(x) if c[2] else 0.0)
                for c in (self.right, self.left)
            )
        return np.where(x > self.kink, right, np.where(x < self.kink, left, (right + left) / 2))

    def _op(self) -> Op:
        return Op(Code.ONE_KINK, coefficients=(self.kink, *self.right, *self.left))


class _Elu(OneKink):
    """scale x for x > 0, scale alpha (e^x - 1) for x < 0."""

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
        low = np.asarray(self._alpha, x.dtype) * np.expm1(np.minimum(x, 0))
        return np.asarray(self._scale, x.dtype) * np.where(x > 0, x, low)


class Elu(_Elu):
    """``x`` for x > 0, ``e^x - 1`` for x < 0."""


class Selu(_Elu):
    """The scaled exponential linear unit (Klambauer et al. 2017)."""

    _scale = 1.0507009873554805
    _alpha = 1.6732632423543772


# ---- Hermite series


class _Series(_Activation):
    """Through the coefficients of ``phi(sd z)`` in Hermite polynomials."""

    _row_tables = 64
    _numerical = False  # whether they are found by quadrature, and cut

    def _coefficients(self, sd: Array, tolerance: float) -> tuple[Array, Array, Doubt | None]:
        """Coefficients (count, rows), the variance of the result, and what may be wrong."""
        raise NotImplementedError

    def _step(self, variance: Array, tolerance: float) -> RowStep:
        a, new, doubt = self._coefficients(np.sqrt(variance), tolerance)
        n = np.arange(len(a))[:, None]
        # Summed in order: zeros at a row's end, there for the sake of others, change nothing.
        derivative = np.add.accumulate(n * a * a, axis=0)[-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(variance > 0, derivative / variance, 0.0)
            tables = np.where(new > 0, a / np.sqrt(new), 0.0)
        op = Op(Code.SERIES, n=len(a), a=float(self._numerical))
        return RowStep(op, new, slope, tables, doubt)

    def _dual(self, v1: Array, v2: Array, cov: Array) -> tuple[Array, Array]:
        value, slope = self._sum(v1, v2, cov)
        null = (v1 == 0) | (v2 == 0)
        if null.any():
            # E[phi' phi'] is a limit there, taken where quadrature still resolves it.
            least = 1e-10
            w1, w2 = np.where(v1 == 0, least, v1)[null], np.where(v2 == 0, least, v2)[null]
            both = (v1 == 0)[null] & (v2 == 0)[null]
            slope[null] = self._sum(w1, w2, np.where(both, least, cov[null]))[1]
        return value, slope

    def _sum(self, v1: Array, v2: Array, cov: Array) -> tuple[Array, Array]:
        a, _, doubt = self._coefficients(np.sqrt(np.concatenate([v1, v2])), _FULL)
        if doubt is not None:
            _accuracy.tell([doubt], tangent=True)
        # Over its largest coefficient a row neither overflows nor underflows.
        size = np.maximum(np.abs(a).max(0), np.finfo(float).tiny)
        a = a / size
        x, y = np.ascontiguousarray(a[:, : len(v1)]), np.ascontiguousarray(a[:, len(v1) :])
        value, slope = raw_dual(Op(Code.SERIES, n=len(a)), x, y, v1, v2, cov)
        p, q = size[: len(v1)], size[len(v1) :]
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            return value * p * q, slope * (p / np.sqrt(v1)) * (q / np.sqrt(v2))


class PowerSeries(_Series):
    """The polynomial ``sum_k coefficients[k] x^k``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> kc.PowerSeries((0.0, 1.0, 0.5))(np.array([2.0]))
    array([4.])
    """

    _parameters = ("coefficients", "shift")

    def __init__(self, coefficients: Sequence[float], *, shift: float = 0.0) -> None:
        super().__init__(shift=shift)
        self.coefficients = _check.coefficients(coefficients, "coefficients")

    def _phi(self, x: Array) -> Array:
        y = np.zeros_like(x)
        for c in reversed(self.coefficients):
            y = y * x + np.asarray(c, x.dtype)
        return y

    def _powers(self) -> tuple[float, ...]:
        """Coefficients after the shift, by the binomial theorem."""
        c, b = self.coefficients, self.shift
        if b == 0:
            return c
        return tuple(
            math.fsum(c[k] * math.comb(k, j) * b ** (k - j) for k in range(j, len(c)))
            for j in range(len(c))
        )

    def _coefficients(self, sd: Array, tolerance: float) -> tuple[Array, Array, Doubt | None]:
        with np.errstate(over="ignore", invalid="ignore"):
            a = _hermite.of_powers(self._powers(), sd)
            return a, (a * a).sum(0), None


class Monomial(PowerSeries):
    """``x^n``."""

    _parameters = ("n", "shift")

    def __init__(self, n: int, *, shift: float = 0.0) -> None:
        self.n = _check.count(n, "n")
        super().__init__((0.0,) * self.n + (1.0,), shift=shift)


class Identity(Monomial):
    """``x``: no activation at all."""

    _parameters = ("shift",)

    def __init__(self, *, shift: float = 0.0) -> None:
        super().__init__(1, shift=shift)

    def _step(self, variance: Array, tolerance: float) -> RowStep:
        if self.shift:
            return super()._step(variance, tolerance)
        return RowStep(None, variance, np.ones_like(variance))

    def _build(self, builder: Builder) -> None:
        if self.shift:
            super()._build(builder)

    def _dual(self, v1: Array, v2: Array, cov: Array) -> tuple[Array, Array]:
        r = np.sqrt(v1) * np.sqrt(v2)
        return np.clip(cov, -r, r) + self.shift**2, np.ones_like(cov)


class Hermite(_Series):
    """The normalised probabilists' Hermite polynomial ``He_n / sqrt(n!)``."""

    _parameters = ("n", "shift")

    def __init__(self, n: int, *, shift: float = 0.0) -> None:
        super().__init__(shift=shift)
        self.n = _check.count(n, "n")

    def _phi(self, x: Array) -> Array:
        h, last = np.ones_like(x), np.zeros_like(x)
        for k in range(1, self.n + 1):
            h, last = (x * h - math.sqrt(k - 1) * last) / math.sqrt(k), h
        return h

    def _coefficients(self, sd: Array, tolerance: float) -> tuple[Array, Array, Doubt | None]:
        n, b, root = self.n, self.shift, math.sqrt(math.factorial(self.n))
        # He_n(x + b) = sum_k C(n, k) b^(n-k) He_k(x)
        c = tuple(math.comb(n, k) * b ** (n - k) / root for k in range(n + 1))
        with np.errstate(over="ignore", invalid="ignore"):
            a = _hermite.of_hermites(c, sd)
            return a, (a * a).sum(0), None


class Activation(_Series):
    """Any smooth function, through a numerical dual.

    Parameters
    ----------
    fn : callable
        Vectorised, float64 in and out, finite on the real line, smooth. (A function with one kink
        has an exact dual when it is a ``OneKink``.)

    Notes
    -----
    ``phi(sd z)`` is expanded in Hermite polynomials, per row, until the rest is below rounding or
    there are 2048 terms; ``dual_error`` tells what is left. For a function analytic within
    distance p of the real line about ``(20 sd / p)^2`` terms reach full precision: variances up
    to about ``4 p^2``. Pickles if ``fn`` does.

    Where the dual, or for tangent kernels the derivative's dual, is off by more than 1e-5 of its
    size, whatever uses it gives one ``RuntimeWarning``; a kink costs about 1e-5 of the dual and
    1e-3 of the derivative's. Where ``E[fn(x)^2]`` is infinite, or most of it beyond 13 standard
    deviations, that is a ``ValueError``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> softsign = kc.Activation(lambda x: x / np.sqrt(1 + x * x))
    >>> value, slope = softsign.dual(1.0, 1.0, 0.5)
    >>> round(float(value), 6)
    0.162094
    """

    _parameters = ("fn", "shift")
    _numerical = True

    def __init__(self, fn: Callable[[Array], Array], *, shift: float = 0.0) -> None:
        super().__init__(shift=shift)
        if not callable(fn):
            raise TypeError(f"fn must be callable: got {type(fn).__name__}")
        self.fn = fn

    def _phi(self, x: Array) -> Array:
        return self.fn(x)

    def _coefficients(self, sd: Array, tolerance: float) -> tuple[Array, Array, Doubt | None]:
        a, variance, error = _hermite.by_quadrature(self, sd, tolerance)
        return a, variance, _accuracy.doubt(repr(self), sd * sd, error)

    def dual_error(self, variance, *, slope: bool = False) -> Array:
        """About how far off the dual is, by quadrature and by cutting the series.

        Parameters
        ----------
        variance : array_like
            Of both of a pair; of two that differ the error is about the geometric mean of theirs.
        slope : bool
            Of the derivative's dual instead, which is off by more.

        Returns
        -------
        array of float64, of the shape of ``variance``
            The largest error at any correlation, relative to ``E[phi(x)^2]`` or, with ``slope``, to
            ``E[phi'(x)^2]``: an estimate, as a rule within a factor of ten, towards too much.
            Rounding adds about 1e-15.

        Examples
        --------
        >>> import numpy as np
        >>> import kernelcore as kc
        >>> error = kc.Activation(np.tanh).dual_error([1.0, 400.0])
        >>> bool(error[0] == 0), bool(1e-6 < error[1] < 1e-4)
        (True, True)
        """
        v = np.atleast_1d(_check.amounts(variance, "variance"))
        error = _hermite.by_quadrature(self, np.sqrt(v.ravel()), _FULL)[2]
        return error[int(_check.flag(slope, "slope"))].reshape(v.shape)


class _Smooth(Activation):
    """A named smooth function without a closed-form dual."""

    _parameters = ("shift",)

    def __init__(self, *, shift: float = 0.0) -> None:
        super().__init__(self._phi, shift=shift)

    def __reduce__(self):
        return _restore, (type(self), self.shift)


def _restore(cls: type, shift: float):
    return cls(shift=shift)


class Tanh(_Smooth):
    """``tanh x``, through a Hermite series: error below 1e-13 for variances to 10, 1e-10 to 30.

    A warning, above 1e-5, begins at a variance of some 400; of the derivative's dual, for tangent
    kernels, at 100.
    """

    def _phi(self, x: Array) -> Array:
        return np.tanh(x)


class Sigmoid(_Smooth):
    """``1/(1 + e^-x)``, through a Hermite series: error below 1e-13 for variances to 30.

    A warning, above 1e-5, begins at a variance of some 2000; of the derivative's dual, for tangent
    kernels, at 400.
    """

    def _phi(self, x: Array) -> Array:
        expit = _dispatch.load("scipy.special").expit
        return expit(x)


class Silu(_Smooth):
    """``x/(1 + e^-x)``, through a Hermite series: error below 1e-13 for variances to 30.

    It stays below 1e-6 at any; that of the derivative's dual, for tangent kernels, below 1e-5 to
    some 600, where a warning begins.
    """

    def _phi(self, x: Array) -> Array:
        expit = _dispatch.load("scipy.special").expit
        return x * expit(x)


class Softplus(_Smooth):
    """``log(1 + e^x)``, through a Hermite series: error below 1e-13 for variances to 30.

    It stays below 1e-6 at any; that of the derivative's dual, for tangent kernels, below 1e-5 to
    some 1500, where a warning begins.
    """

    def _phi(self, x: Array) -> Array:
        return np.logaddexp(0, x)
