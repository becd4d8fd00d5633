"""Kernels that are programs: of networks, of the angle and the norms, and of a distance."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._types import Array, ArrayLike, Self
from ..engine import ASSIGN, Inputs, accuracy, backend_of, load, threads
from ..layers.activations import RectifiedPower
from ..program import Apply, Code, Form, Input, OfSum, Op, Powers, Program
from ..series import functions
from ..series.functions import Function
from ._kernel import Kernel

if TYPE_CHECKING:
    from ._gradients import Terms
    from ._hyperparameters import Rates

__all__ = [
    "ArcCosine", "Cauchy", "Gaussian", "Laplacian", "Matern", "Nngp", "Ntk", "Polynomial",
    "ProgramKernel",
]  # fmt: skip


class ProgramKernel(Kernel):
    """A multiple of one of the two kernels of a program."""

    _tangent = False
    _factor = 1.0

    @property
    def _program(self) -> Program:
        raise NotImplementedError

    @property
    def _images(self) -> bool:
        return self._program.input.domain == "positions"

    def _open(self, X: Any, Y: Any, n_threads: int) -> Inputs:
        return backend_of(X, Y).open(self._program, X, Y, n_threads)

    def _accepts(self, points: Inputs) -> None:
        points.takes(self._program)

    def _into(self, points: Inputs, out: Array, factor: float, combine: int) -> None:
        k_out, t_out = (None, out) if self._tangent else (out, None)
        points.gram(self._program, k_out, t_out, factor * self._factor, combine)

    def _diagonal(self, points: Inputs, factor: float) -> Array:
        return points.diagonal(self._program, self._tangent, factor * self._factor)

    def _profile(self, u: Array, radius: float, dim: int) -> Array:
        """Evaluate the kernel; refuse one that the angle does not determine."""
        if self._images:
            _check.no_profile(self, "is of images")
        if self._program.input.domain == "cyclic" or self._program.input.of in ("sizes", "bumps"):
            _check.no_profile(self, "depends on the axes")
        profile, n_threads = backend_of(u).profile, threads.resolve(None)
        return self._factor * profile(self._program, u, radius, dim, self._tangent, n_threads)

    def _slopes(self, points: Inputs, value: bool) -> Terms:
        from ._gradients import of_program

        if self._program.input.domain == "cyclic":
            _check.no_gradient(self, "is of cyclic signals")
        return of_program(self._program, points, self._tangent).times(self._factor)

    def _rates(self, points: Inputs, names: tuple[str, ...], value: bool) -> Rates:
        from ._hyperparameters import Rates, of_program

        if self._program.input.domain == "cyclic":
            _check.no_gradient(self, "is of cyclic signals")
        return of_program(self, points, names) if names or value else Rates(0.0, {})

    def _radius(self, dim: int) -> float | None:
        return math.sqrt(dim) if self._program.input.of == "mean" else 1.0


# ---- of networks


class _OfNetwork(ProgramKernel):
    """A kernel of a network, which has a ``program`` and both kernels: ``nngp`` and ``ntk``."""

    _parameters = ("network",)

    def __init__(self, network: Any) -> None:
        self.network = network
        _ = network.program  # which refuses layers that are no network

    def _rebuilt(self, parameters: dict[str, object]) -> Self:
        kind = type(self.network)
        network = _check.an_instance(parameters["network"], kind, "network", "a Sequential")
        return network.ntk if self._tangent else network.nngp

    def __repr__(self) -> str:
        return f"{self.network!r}.{'ntk' if self._tangent else 'nngp'}"

    @property
    def _program(self) -> Program:
        return self.network.program


class Nngp(_OfNetwork):
    """The covariance kernel of a random network of infinite width, ``net.nngp``."""


class Ntk(_OfNetwork):
    """The neural tangent kernel of a network, ``net.ntk``."""

    _tangent = True

    def terms(
        self, X: ArrayLike, Y: ArrayLike | None = None, *, n_threads: int | None = None
    ) -> Array:
        """Return the NTK's summands, one per trained ``Dense`` or ``Conv``: shape (layers, n, m).

        The NTK of some layers is the sum of their terms. Each takes the work of a Gram matrix.

        Examples
        --------
        >>> import kernelcore as kc
        >>> kc.presets.mlp(1).ntk.terms([[1.0, 1.0]]).ravel()
        array([1., 1.])
        """
        points = self._open(X, Y, threads.resolve(n_threads))
        places = self._program.trained
        result = points.output(terms=len(places))
        with accuracy.Call(), threads.Call(n_threads), points.there():
            for term, place in zip(result, places, strict=True):
                points.gram(self._program.training_only(place), None, term, 1.0, ASSIGN)
        return result

    def _both(self, X: Any, Y: Any, n_threads: int | None) -> tuple[Array, Array]:
        """Return both kernels of the network, in one pass."""
        points = self._open(X, Y, threads.resolve(n_threads))
        k, t = points.output(beside=1), points.output(beside=1)
        points.gram(self._program, k, t, 1.0, ASSIGN)
        return k, t


# ---- of the angle and the norms


class ArcCosine(ProgramKernel):
    """Cho and Saul's arc-cosine kernel ``|x|^n |y|^n J_n(theta) / pi`` on the raw inputs.

    Parameters
    ----------
    order : int
        n; 0, 1 and 2 are their step, ramp and quarter-pipe. ``k(x, x) = (2n-1)!! |x|^(2n)``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.ArcCosine(1)([[1.0, 0.0], [0.0, 2.0]])
    array([[1.        , 0.63661977],
           [0.63661977, 4.        ]])
    """

    _parameters = ("order",)
    _factor = 2.0

    def __init__(self, order: int) -> None:
        self.order = _check.count(order, "order")

    @functools.cached_property
    def _program(self) -> Program:
        return Program([Input("sum"), Apply(RectifiedPower(self.order), layer=self)])


class Polynomial(ProgramKernel):
    """The polynomial kernel ``(scale <x, y> + offset)^degree``.

    Parameters
    ----------
    degree : int
    scale, offset : float, default 1

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Polynomial(2)([[1.0, 2.0]])
    array([[36.]])
    """

    _parameters = ("degree", "scale", "offset")
    _tunable = ("scale", "offset")
    _defaults = {"scale": 1.0, "offset": 1.0}

    def __init__(self, degree: int, scale: float = 1.0, offset: float = 1.0) -> None:
        self.degree = _check.count(degree, "degree", least=1)
        self.scale = _check.positive(scale, "scale")
        self.offset = _check.non_negative(offset, "offset")

    @functools.cached_property
    def _program(self) -> Program:
        return Program([Input("sum"), Apply(self, layer=self)])

    def _form(self) -> Form:
        op = Op(Code.POLYNOMIAL, n=self.degree, a=self.scale, b=self.offset)
        return Powers(op, self.degree, self.scale, self.offset)

    def _series(self, q: float) -> Function | None:
        n, top = self.degree, self.scale * q + self.offset
        a, b = self.scale * q / top, self.offset / top
        return functions.Power([math.comb(n, i) * a**i * b ** (n - i) for i in range(n + 1)])


# ---- of a distance


class _Radial(ProgramKernel):
    """A kernel that is a function of a sum over coordinates."""

    _parameters: tuple[str, ...] = ("lengthscale",)
    _tunable = ("lengthscale",)

    def __init__(self, lengthscale: float) -> None:
        self.lengthscale = _check.positive(lengthscale, "lengthscale")

    def _input(self) -> Input:
        return Input("squares")

    @functools.cached_property
    def _program(self) -> Program:
        return Program([self._input(), Apply(self, layer=self)])

    def _op(self) -> Op:
        raise NotImplementedError

    def _form(self) -> Form:
        return OfSum(self._op())

    def _series(self, radius: float) -> Function | None:
        """Return the kernel as a function of the cosine, on the sphere of that radius."""
        return None

    def _slopes(self, points: Inputs, value: bool) -> Terms:
        from ._gradients import of_distance

        rate = self._rate(points)
        return of_distance(self._filled(points, 1) if value else 0.0, rate)

    def _rate(self, points: Inputs) -> Array:
        """Return twice the derivative of the kernel by the squared distance."""
        raise NotImplementedError

    def _rates(self, points: Inputs, names: tuple[str, ...], value: bool) -> Rates:
        from ._hyperparameters import Rates

        by = {name: self._by_lengthscale(points) for name in names}
        return Rates(self._filled(points, 1) if value else 0.0, by)

    def _by_lengthscale(self, points: Inputs) -> Array:
        """Return the derivative by the lengthscale: distances only count divided by it."""
        return self._rate(points) * _sums(points, "squares") * (-1 / self.lengthscale)


class Gaussian(_Radial):
    """The Gaussian kernel ``exp(-|x - y|^2 / (2 lengthscale^2))``.

    Parameters
    ----------
    lengthscale : float
        In the units of the inputs.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Gaussian(1.0)([[0.0], [1.0]])
    array([[1.        , 0.60653066],
           [0.60653066, 1.        ]])
    """

    def _op(self) -> Op:
        return Op(Code.EXPONENTIAL_OF, a=0.5 * (1 / self.lengthscale) * (1 / self.lengthscale))

    def _series(self, radius: float) -> Function | None:
        return functions.exponential((radius / self.lengthscale) ** 2)

    def _rate(self, points: Inputs) -> Array:
        return self._filled(points, 1) * (-1 / self.lengthscale / self.lengthscale)


class Laplacian(_Radial):
    """The kernel ``exp(-|x - y| / lengthscale)``, of the Euclidean norm or the 1-norm (norm=1).

    Parameters
    ----------
    lengthscale : float
        In the units of the inputs.
    norm : {1, 2}, default 2

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Laplacian(1.0)([[0.0, 0.0]], [[3.0, 4.0]]).round(6)
    array([[0.006738]])
    """

    _parameters = ("lengthscale", "norm")
    _defaults = {"norm": 2}

    def __init__(self, lengthscale: float, norm: int = 2) -> None:
        super().__init__(lengthscale)
        self.norm = _check.count(norm, "norm")
        _check.unless(self.norm not in (1, 2), "norm", "1 or 2", self.norm)

    def _input(self) -> Input:
        return Input("sizes" if self.norm == 1 else "squares")

    def _op(self) -> Op:
        code = Code.EXPONENTIAL_OF if self.norm == 1 else Code.LAPLACIAN
        return Op(code, a=1 / self.lengthscale)

    def _series(self, radius: float) -> Function | None:
        return None if self.norm == 1 else Matern(0.5, self.lengthscale)._series(radius)

    def _slopes(self, points: Inputs, value: bool) -> Terms:
        if self.norm == 2:
            return super()._slopes(points, value)
        from ._gradients import along_axes

        K = self._filled(points, 1)
        return along_axes(K, K / -self.lengthscale, np.sign)

    def _by_lengthscale(self, points: Inputs) -> Array:
        if self.norm == 2:
            return super()._by_lengthscale(points)
        return self._filled(points, 1) * _sums(points, "sizes") / self.lengthscale**2

    def _rate(self, points: Inputs) -> Array:
        r = _sums(points, "squares")
        np.sqrt(r, out=r)
        rate = r * (-1 / self.lengthscale)
        np.exp(rate, out=rate)
        r[r == 0] = np.inf
        r *= -self.lengthscale
        rate /= r
        return rate


class Cauchy(_Radial):
    """The kernel that is the product over k of ``1 / (1 + (x_k - y_k)^2 / lengthscale^2)``.

    Parameters
    ----------
    lengthscale : float
        In the units of the inputs.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Cauchy(1.0)([[0.0, 0.0]], [[1.0, 1.0]])
    array([[0.25]])
    """

    def _input(self) -> Input:
        return Input("bumps", scale=1 / self.lengthscale)

    def _op(self) -> Op:
        return Op(Code.CAUCHY)

    def _slopes(self, points: Inputs, value: bool) -> Terms:
        from ._gradients import along_axes

        K, square = self._filled(points, 1), self.lengthscale**2
        return along_axes(K, -2 * K, lambda step: step / (square + step * step))

    def _by_lengthscale(self, points: Inputs) -> Array:
        square, total = self.lengthscale**2, points.output()
        total[:] = 0.0
        for a, b in zip(points.x.T, points.y.T, strict=True):
            step = np.square(a[:, None] - b)
            total += step / (square + step)
        return self._filled(points, 1) * total * (2 / self.lengthscale)


def _sums(points: Inputs, of: str) -> Array:
    """Return squared distances, or sums of the sizes of differences."""
    out = points.output()
    points.gram(Program([Input(of)]), out, None, 1.0, ASSIGN)
    return out


MOST_NU = 6.0
"""The largest nu of a Matern kernel whose polynomials are found."""
EDGE = 2.0
"""The argument of the Bessel function where one side's polynomials end and the other's begin."""


def _log_matern(nu: float, r: Array) -> Array:
    """Return the logarithm of ``e^r 2^(1-nu)/Gamma(nu) r^nu K_nu(r)``.

    log K_nu is found by the ratios K_(v+1)/K_v = 2v/r + K_(v-1)/K_v from order below 1: K_nu itself
    overflows for large nu.
    """
    special = load("scipy.special")
    steps = math.ceil(nu) - 1
    v = nu - steps  # in (0, 1]
    low = special.kve(v, r)
    log_k, ratio = np.log(low), special.kve(v + 1, r) / low
    for k in range(steps):
        log_k = log_k + np.log(ratio)
        ratio = 2 * (v + k + 1) / r + 1 / ratio
    return (1 - nu) * math.log(2) - special.gammaln(nu) + nu * np.log(r) + log_k


@functools.lru_cache(64)
def _polynomials(nu: float) -> tuple[float, ...]:
    """Return the coefficients of ``matern_of`` in radial.h."""
    special = load("scipy.special")
    n = round(nu)
    e, edge = nu - n, EDGE
    near, y = edge * edge, np.cos(np.pi * (np.arange(64) + 0.5) / 64)
    x = near * (1 + y) / 2
    # -(nu - n) Gamma(1 - nu)/Gamma(1 + nu) 4^-nu 0F1(1 + nu, x/4), without the pole at nu = n
    b = -((-1.0) ** n) / np.sinc(e) / (special.gamma(nu) * special.gamma(1 + nu)) * 4.0**-nu
    b = b * special.hyp0f1(1 + nu, x / 4)
    grow = np.log(x) if e == 0 else np.expm1(e * np.log(x)) / e
    r = np.sqrt(x)
    a = np.exp(_log_matern(nu, r) - r) - x**n * grow * b
    far = 2 * edge / (1 + y)
    c = np.exp(_log_matern(nu, far) - (nu - 0.5) * np.log(far))
    # A and B are entire: more than 12 terms are rounding.
    parts = ((a, 12), (b, 12), (c, 24))
    out = [near, e, float(n), (nu - 0.5) / 2]
    for epsilon in (2.0**-27, 2.0**-51):
        fits = [_powers(y, values, most, epsilon) for values, most in parts]
        out += [float(len(f)) for f in fits] + [float(v) for f in fits for v in f]
    return tuple(out)


def _powers(y: Array, values: Array, most: int, epsilon: float) -> Array:
    """Return a polynomial through values at Chebyshev points, good to epsilon, highest first."""
    chebyshev = np.polynomial.chebyshev
    series = chebyshev.chebfit(y, values, len(y) // 2)[:most]
    least = epsilon * np.abs(values).max()
    keep = int(np.flatnonzero(np.abs(series) > least).max(initial=0)) + 1
    return chebyshev.cheb2poly(series[:keep])[::-1]


class Matern(_Radial):
    """The Matern kernel of smoothness ``nu`` (Rasmussen and Williams, equation 4.14).

    Half-integers up to 20.5, and all nu up to 6, run in the compiled engine, the latter by
    polynomials that are found once for each nu; other values take SciPy's Bessel function, on one
    thread.

    Parameters
    ----------
    nu : float
        The smoothness; 0.5 is the Laplacian kernel, infinity would be the Gaussian one.
    lengthscale : float
        In the units of the inputs.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Matern(1.5, 1.0)([[0.0]], [[1.0]])
    array([[0.48335772]])
    """

    _parameters = ("nu", "lengthscale")

    def __init__(self, nu: float, lengthscale: float) -> None:
        super().__init__(lengthscale)
        self.nu = _check.positive(nu, "nu")

    @property
    def _half_integer(self) -> bool:
        return (2 * self.nu) % 2 == 1 and self.nu <= 20.5

    @property
    def _compiled(self) -> bool:
        return self._half_integer or self.nu <= MOST_NU

    def _op(self) -> Op:
        if not self._half_integer:
            root = math.sqrt(2 * self.nu) / self.lengthscale
            return Op(Code.MATERN_OF, a=root * root, coefficients=_polynomials(self.nu))
        p = int(self.nu - 0.5)
        c = tuple(
            math.factorial(p) * math.factorial(2 * p - i) * 2**i
            / (math.factorial(2 * p) * math.factorial(p - i) * math.factorial(i))
            for i in range(p + 1)
        )  # fmt: skip
        return Op(Code.MATERN, n=p, a=math.sqrt(2 * self.nu) / self.lengthscale, coefficients=c)

    def _bessel(self, square: Array) -> Array:
        """Evaluate the kernel of squared distances, in place."""
        for block in np.array_split(square.reshape(-1), max(1, square.size // 2**16)):
            distance = np.sqrt(block.astype(np.float64))
            with np.errstate(over="ignore"):
                r = np.clip(math.sqrt(2 * self.nu) * distance / self.lengthscale, 1e-100, 1e5)
            value = np.exp(_log_matern(self.nu, r) - r)
            block[:] = np.where(distance > 0, np.minimum(value, 1.0), 1.0)
        return square

    @functools.cached_property
    def _program(self) -> Program:
        return super()._program if self._compiled else Program([Input("squares")])

    def _into(self, points: Inputs, out: Array, factor: float, combine: int) -> None:
        if self._compiled:
            super()._into(points, out, factor, combine)
        elif combine != ASSIGN:
            self._apart(points, out, factor, combine)
        else:
            super()._into(points, out, 1.0, ASSIGN)
            self._bessel(out)
            if factor != 1.0:
                out *= factor

    def _beside(self, combine: int, symmetric: bool) -> int:
        return int(combine != ASSIGN and not self._compiled)

    def _profile(self, u: Array, radius: float, dim: int) -> Array:
        if self._compiled:
            return super()._profile(u, radius, dim)
        return self._bessel(2 * radius**2 * (1 - u))

    def _series(self, radius: float) -> Function | None:
        a = math.sqrt(2 * self.nu) * math.sqrt(2) * radius / self.lengthscale
        return functions.matern(self.nu, a) if self._half_integer else None

    def _rate(self, points: Inputs) -> Array:
        """Return the rate, which has a Matern kernel of nu - 1 and the same scaled distance r.

        ``d/dr (r^nu K_nu) = -r^nu K_(nu-1)``; for nu below 1, ``K_(nu-1) = K_(1-nu)``.
        """
        nu, length = self.nu, self.lengthscale
        if nu > 1:
            other = Matern(nu - 1, length * math.sqrt((nu - 1) / nu))
            return other._filled(points, 1) * (-nu / (nu - 1) / length / length)
        special = load("scipy.special")
        r = np.sqrt(_sums(points, "squares")) * (math.sqrt(2 * nu) / length)
        there = r > 0
        r = np.where(there, r, 1.0)
        rate = r ** (nu - 1) * special.kv(1 - nu, r)
        rate *= -(2 ** (1 - nu)) / special.gamma(nu) * 2 * nu / length / length
        return np.where(there, rate, 0.0)
