"""Kernels: of networks, classical ones, and their sums, products and multiples.

    Kernel -- Nngp, Ntk                     a network's
           -- ArcCosine, Polynomial         of the angle and the norms
           -- Gaussian, Laplacian, Cauchy, Matern     of a distance
           -- Sum, Product                  of kernels

Every kernel evaluates into an array that may already hold another one (assign, add, multiply), so
that sums and products need no second matrix.
"""

from __future__ import annotations

import functools
import math
import time
from typing import TYPE_CHECKING

import numpy as np

from .. import _check
from .._value import Value
from ..engine import accuracy as _accuracy
from ..engine import threads as _threads
from ..engine.cpu import dispatch as _dispatch
from ..engine.cpu import images as _spatial
from ..engine.cpu import rows as _dense
from ..engine.cpu.program import FLOAT64, Code, Compiled, Op, RowStep, Walk, run_pairs
from ..engine.cpu.rows import ADD, ASSIGN, MULTIPLY, Reduction
from ..engine.progress import Progress
from ..layers.activations import RectifiedPower

if TYPE_CHECKING:
    from ..architecture import Sequential
    from ..spectrum._zonal import Frame, Zonal

Array = np.ndarray
Points = _dense.Points | _spatial.Points


class Kernel(Value):
    """Base of all kernels: Gram matrix, diagonal and profile."""

    # NumPy leaves the operators to this class, so that an array times a kernel is a TypeError and
    # not an array of kernels.
    __array_ufunc__ = None

    def __call__(
        self,
        X,
        Y=None,
        *,
        out: Array | None = None,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> Array:
        """The Gram matrix.

        Parameters
        ----------
        X : array of shape (n, d), float32 or float64
            Integers and booleans count as float64. Copied if not C-contiguous.
        Y : array of shape (m, d), optional
            X by default; then half of the symmetric matrix is computed and mirrored.
        out : array of shape (n, m), optional
            Where to write; C-contiguous, of the dtype of X.
        n_threads : int, optional
            ``get_threads()`` by default. The result does not depend on it.
        progress : bool
            Whether to write a line to stderr every two seconds. The values are the same.

        Returns
        -------
        K : array of shape (n, m), of the dtype of X
            Entry (i, j) depends on rows i and j alone, to the last bit: not on threads, on other
            rows, or on the order of the arguments.

        Notes
        -----
        Of two rows, both of shape (d,), it is one number: scikit-learn asks so, once per pair,
        where ``KernelRidge``, ``Nystroem`` and others are given a kernel. ``kernel="precomputed"``
        and ``K = k(X)`` come to the same in a small part of the time.

        Examples
        --------
        >>> import kernelcore as kc
        >>> k = kc.Gaussian(1.0)
        >>> k([[0.0], [1.0]])
        array([[1.        , 0.60653066],
               [0.60653066, 1.        ]])
        >>> float(k([0.0], [1.0]))
        0.6065306597126334
        """
        if Y is not None and not self._images:
            X, Y = _check.real_array(X, "X"), _check.real_array(Y, "Y")
            if X.ndim == Y.ndim == 1:
                return self(X[None], Y[None], out=out, n_threads=n_threads)[0, 0]
        points = self._open(X, Y, _threads.resolve(n_threads))
        x, y = points.x, points.y
        result = _check.out(out, (len(x), len(x if y is None else y)), x.dtype)
        _check.apart(result, {"X": x, "Y": y})
        with _accuracy.Call(), _threads.Call(n_threads):
            if _check.flag(progress, "progress"):
                self._by_blocks(points, result)
            else:
                self._into(points, result, 1.0, ASSIGN)
        return result

    def _by_blocks(self, points: Points, out: Array) -> None:
        """The same in blocks of rows, each twice as large until one takes a second."""
        n, m = out.shape
        symmetric = points.y is None
        shown = Progress("Gram matrix, entries", n * (n + 1) // 2 if symmetric else n * m, True)
        start, size, done = 0, max(1, min(64, n // 64)), 0
        while start < n:
            began = time.monotonic()
            rows, rest = slice(start, start + size), slice(start + size, None)
            columns = slice(None)
            if symmetric:
                block = np.empty((len(out[rows]),) * 2, out.dtype)
                self._into(points.part(rows, None), block, 1.0, ASSIGN)
                out[rows, rows] = block
                done += len(block) * (len(block) + 1) // 2
                columns = rest
            block = np.empty(out[rows, columns].shape, out.dtype)
            self._into(points.part(rows, columns), block, 1.0, ASSIGN)
            out[rows, columns] = block
            if symmetric:
                out[columns, rows] = block.T
            done += block.size
            shown.at(done)
            start += size
            if time.monotonic() - began < 1:
                size *= 2

    def diag(self, X, *, n_threads: int | None = None) -> Array:
        """The diagonal of ``k(X)``, to the bit, without the rest: shape (n,).

        ``n_threads`` as for ``k(X)``.
        """
        points = self._open(X, None, _threads.resolve(n_threads))
        with _accuracy.Call(), _threads.Call(n_threads):
            return self._diagonal(points, 1.0)

    def profile(self, u, *, radius: float | None = None, dim: int = 1) -> Array:
        """The kernel of two inputs of norm ``radius`` whose cosine is ``u``.

        Parameters
        ----------
        u : array_like
            Cosines, in [-1, 1].
        radius : float, optional
            Norm of both inputs: ``sqrt(dim)`` for networks, so that the input variance is 1, and
            1 for classical kernels. Sums and products of the two kinds need it.
        dim : int
            The dimension, by which networks divide ``<x, x'>``.

        Returns
        -------
        array of float64, of the shape of u

        Examples
        --------
        >>> import kernelcore as kc
        >>> kc.presets.mlp(1).ntk.profile([0.0, 1.0])
        array([0.31830989, 2.        ])
        """
        u = _check.cosines(u, "u")
        dim = _check.count(dim, "dim", least=1)
        radius = self._sphere(radius, dim)
        with _accuracy.Call():
            return self._profile(u.ravel(), radius, dim).reshape(u.shape)

    def null_degrees(self, max_degree: int) -> Array:
        """The degrees, up to ``max_degree``, whose eigenvalue on every sphere is exactly zero.

        No target of such a degree can be learned. Spheres of the default radius, centred at 0.

        Examples
        --------
        >>> import kernelcore as kc
        >>> kc.presets.mlp(1).ntk.null_degrees(8)
        array([3, 5, 7])
        >>> kc.presets.mlp(2).ntk.null_degrees(8)
        array([], dtype=int64)
        """
        from ..spectrum import _sphere

        return _sphere.null_degrees(self, _check.count(max_degree, "max_degree"))

    def __add__(self, other: Kernel) -> Sum:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        other = _scalar(other)
        return NotImplemented if other is None else Scaled(self, other)

    __rmul__ = __mul__

    def __radd__(self, other) -> Kernel:
        # The sum of a list of kernels begins with 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __truediv__(self, other) -> Kernel:
        other = _scalar(other)
        return (
            NotImplemented if other is None else Scaled(self, 1 / _check.positive(other, "divisor"))
        )

    def __pow__(self, exponent) -> Kernel:
        """The product of ``exponent`` copies, at least one; each is evaluated."""
        return functools.reduce(Product, [self] * _check.count(exponent, "exponent", least=1))

    def _sphere(self, radius: float | None, dim: int) -> float:
        """The radius given, or the default one."""
        radius = self._radius(dim) if radius is None else radius
        if radius is None:
            raise ValueError(
                "radius must be given: the parts of this kernel have unlike default radii"
            )
        return _check.positive(radius, "radius")

    # -- what a kernel has to say

    _images = False  # whether inputs are signals or images

    def _open(self, X, Y, n_threads: int) -> Points:
        """The inputs, checked."""
        return _dense.Points(*_check.points(X, Y), n_threads)

    def _into(self, points: Points, out: Array, factor: float, combine: int) -> None:
        """``factor`` times the Gram matrix into ``out``, in place of it, added or multiplied."""
        raise NotImplementedError

    def _diagonal(self, points: Points, factor: float) -> Array:
        """``factor`` times the diagonal, by the same operations as ``_into``."""
        raise NotImplementedError

    def _add_diagonal(self, points: Points, out: Array, factor: float) -> None:
        """The same added to ``out``, in the order in which ``_into`` adds."""
        out += self._diagonal(points, factor)

    def _profile(self, u: Array, radius: float, dim: int) -> Array:
        raise NotImplementedError

    def _zonal(self, frame: Frame, radius: float, dim: int) -> Zonal:
        """The profile as series, for spectra; raises ``Unknown`` where it has none."""
        from ..series.functions import Unknown

        raise Unknown(repr(self))

    def _radius(self, dim: int) -> float | None:
        """The default radius of the sphere; None when parts disagree."""
        return 1.0

    def _alike(self, radius: float, dim: int) -> tuple[float, int]:
        """Radius and dimension of the least dimension in which the profile is the same."""
        return radius, dim


# ---- algebra


def _scalar(value) -> float | None:
    """A number, or the only one of an array without axes; None of anything else."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return value if isinstance(value, (int, float, np.integer, np.floating)) else None


class Scaled(Kernel):
    """A multiple of a kernel."""

    _parameters = ("kernel", "factor")

    def __init__(self, kernel: Kernel, factor: float) -> None:
        self.factor = _check.non_negative(factor, "factor")
        self.kernel = _check.an_instance(kernel, Kernel, "kernel", "a kernel")

    @property
    def _images(self) -> bool:  # type: ignore[override]
        return self.kernel._images

    def _open(self, X, Y, n_threads):
        return self.kernel._open(X, Y, n_threads)

    def __repr__(self) -> str:
        return f"{self.factor!r} * {_inner(self.kernel)}"

    def _into(self, points, out, factor, combine) -> None:
        self.kernel._into(points, out, factor * self.factor, combine)

    def _diagonal(self, points, factor) -> Array:
        return self.kernel._diagonal(points, factor * self.factor)

    def _add_diagonal(self, points, out, factor) -> None:
        self.kernel._add_diagonal(points, out, factor * self.factor)

    def _profile(self, u, radius, dim) -> Array:
        return self.factor * self.kernel._profile(u, radius, dim)

    def _zonal(self, frame, radius, dim):
        return self.factor * self.kernel._zonal(frame, radius, dim)

    def _radius(self, dim):
        return self.kernel._radius(dim)

    def _alike(self, radius, dim):
        return self.kernel._alike(radius, dim)


class _Pair(Kernel):
    _parameters = ("left", "right")
    _symbol = ""
    _same = ASSIGN  # how the second part joins the first

    def __init__(self, left: Kernel, right: Kernel) -> None:
        for part, name in ((left, "left"), (right, "right")):
            _check.an_instance(part, Kernel, name, "a kernel")
        if left._images != right._images:
            raise TypeError(
                f"kernels must be of one kind of input: {left!r} and {right!r} are of "
                f"{' and '.join('images' if k._images else 'rows' for k in (left, right))}"
            )
        self.left, self.right = left, right

    @property
    def _images(self) -> bool:  # type: ignore[override]
        return self.left._images

    def _open(self, X, Y, n_threads):
        self.right._open(X, Y, n_threads)  # both check
        return self.left._open(X, Y, n_threads)

    def __repr__(self) -> str:
        return f"{_inner(self.left)} {self._symbol} {_inner(self.right)}"

    def _radius(self, dim):
        a, b = self.left._radius(dim), self.right._radius(dim)
        return a if a == b else None

    def _alike(self, radius, dim):
        a, b = self.left._alike(radius, dim), self.right._alike(radius, dim)
        return a if a == b else (radius, dim)

    def _apart(self, points, out, factor, combine) -> None:
        """By way of a matrix of its own, where the parts cannot join ``out`` one by one."""
        own = _check.fresh(out.shape, out.dtype, beside=1)
        self._into(points, own, factor, ASSIGN)
        if combine == ADD:
            out += own
        else:
            out *= own


class Sum(_Pair):
    """The sum of two kernels."""

    _symbol = "+"

    def _into(self, points, out, factor, combine) -> None:
        if combine == MULTIPLY:
            self._apart(points, out, factor, combine)
            return
        self.left._into(points, out, factor, combine)
        self.right._into(points, out, factor, ADD)

    def _diagonal(self, points, factor) -> Array:
        out = self.left._diagonal(points, factor)
        self.right._add_diagonal(points, out, factor)
        return out

    def _add_diagonal(self, points, out, factor) -> None:
        self.left._add_diagonal(points, out, factor)
        self.right._add_diagonal(points, out, factor)

    def _profile(self, u, radius, dim) -> Array:
        return self.left._profile(u, radius, dim) + self.right._profile(u, radius, dim)

    def _zonal(self, frame, radius, dim):
        return self.left._zonal(frame, radius, dim) + self.right._zonal(frame, radius, dim)


class Product(_Pair):
    """The product of two kernels."""

    _symbol = "*"

    def _into(self, points, out, factor, combine) -> None:
        if combine == ADD:
            self._apart(points, out, factor, combine)
            return
        self.left._into(points, out, factor, combine)
        self.right._into(points, out, 1.0, MULTIPLY)

    def _diagonal(self, points, factor) -> Array:
        return self.left._diagonal(points, factor) * self.right._diagonal(points, 1.0)

    def _profile(self, u, radius, dim) -> Array:
        return self.left._profile(u, radius, dim) * self.right._profile(u, radius, dim)

    def _zonal(self, frame, radius, dim):
        return self.left._zonal(frame, radius, dim) * self.right._zonal(frame, radius, dim)


def _inner(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, (Sum, Product, Scaled)) else repr(kernel)


# ---- of angle and norms


class _Angular(Kernel):
    """A program that starts from correlations."""

    _tangent = False
    _factor = 1.0

    def _alike(self, radius, dim):
        return radius, 1

    def _variance(self, norm: Array, d: int) -> Array:
        """Of inputs of these norms."""
        with np.errstate(over="ignore"):
            return norm * norm

    def _pass(self, walk) -> None:
        """Send a walk, of rows or of series, through the program."""
        raise NotImplementedError

    def _compile(self, norm: Array, d: int, dtype: np.dtype) -> Compiled:
        walk = Walk(self._variance(norm, d), dtype)
        self._pass(walk)
        tiny = float(np.finfo(dtype).tiny)
        if walk.variance.min(initial=1.0) < tiny:
            lost = norm[walk.variance < tiny].any()  # a row of zeros has lost nothing
            _check.resolved(lost and self._alive(d), dtype)
        return walk.done()

    def _alive(self, d: int) -> bool:
        """Whether the kernel is anything but zero, at inputs of variance about 1."""
        walk = Walk(self._variance(np.array([math.sqrt(d)]), d))
        self._pass(walk)
        return bool(walk.variance[0])

    def _into(self, points, out, factor, combine) -> None:
        program = points.compiled(self._compile)
        _accuracy.tell(program.doubts, self._tangent)
        outputs = (None, out) if self._tangent else (out, None)
        points.gram(program, Reduction.PRODUCTS, *outputs, factor * self._factor, combine)

    def _diagonal(self, points, factor) -> Array:
        program = points.compiled(self._compile)
        _accuracy.tell(program.doubts, self._tangent)
        diagonal = program.tangent(points.x.dtype) if self._tangent else program.k
        return (factor * self._factor * diagonal).astype(points.x.dtype)

    def _profile(self, u, radius, dim) -> Array:
        program = self._compile(np.array([radius]), dim, FLOAT64)
        _accuracy.tell(program.doubts, self._tangent)
        n_threads = _dense.enough(len(u) * 64 * len(program.ops), _threads.resolve(None))
        k, t = run_pairs(program, u, 1 - np.abs(u), n_threads)
        return self._factor * (t if self._tangent else k)

    def _zonal(self, frame, radius, dim):
        from ..spectrum import _zonal

        walk = _zonal.Walk(frame, float(self._variance(np.array([radius]), dim)[0]))
        self._pass(walk)
        return self._factor * walk.kernel(self._tangent)


class _OfNetwork(_Angular):
    _parameters = ("network",)

    def __init__(self, network: Sequential) -> None:
        self.network = network

    def _rebuilt(self, parameters: dict) -> Kernel:
        from ..architecture import Sequential

        network = _check.an_instance(parameters["network"], Sequential, "network", "a Sequential")
        return network.ntk if self._tangent else network.nngp

    @property
    def _images(self) -> bool:  # type: ignore[override]
        return self.network._spatial() is not None

    def _open(self, X, Y, n_threads: int) -> Points:
        layer = self.network._spatial()
        if layer is None:
            return _dense.Points(*_check.points(X, Y), n_threads)
        return _spatial.Points(*_check.image_pair(X, Y, layer), n_threads)

    def _into(self, points, out, factor, combine) -> None:
        if isinstance(points, _dense.Points):
            super()._into(points, out, factor, combine)
        else:
            outputs = (None, out) if self._tangent else (out, None)
            points.gram(self.network, *outputs, factor, combine)

    def _diagonal(self, points, factor) -> Array:
        if isinstance(points, _dense.Points):
            return super()._diagonal(points, factor)
        return points.diagonal(self.network, self._tangent, factor)

    def _profile(self, u, radius, dim) -> Array:
        if self._images:
            raise ValueError(f"{self!r} must not be asked for a profile: it is of images")
        return super()._profile(u, radius, dim)

    def _variance(self, norm, d):
        with np.errstate(over="ignore"):
            return norm * norm if self.network._sum else norm * (norm / d)

    def _pass(self, walk) -> None:
        self.network._pass(walk)

    def _radius(self, dim):
        return 1.0 if self.network._sum else math.sqrt(dim)

    def _alike(self, radius, dim):
        return radius if self.network._sum else radius / math.sqrt(dim), 1


class Nngp(_OfNetwork):
    """The covariance of a random infinitely wide network; ``net.nngp``."""

    def __repr__(self) -> str:
        return f"{self.network!r}.nngp"


class Ntk(_OfNetwork):
    """The neural tangent kernel; ``net.ntk``."""

    _tangent = True

    def __repr__(self) -> str:
        return f"{self.network!r}.ntk"

    def terms(self, X, Y=None, *, n_threads: int | None = None) -> Array:
        """The summands of the NTK, one per trained ``Dense`` or ``Conv``: shape (layers, n, m).

        Training some layers only is the sum over theirs. Work: one Gram matrix each.

        Examples
        --------
        >>> import kernelcore as kc
        >>> kc.presets.mlp(1).ntk.terms([[1.0, 1.0]]).ravel()
        array([1., 1.])
        """
        points = self._open(X, Y, _threads.resolve(n_threads))
        layers = len(self.network._trained())
        x, y = points.x, points.y
        shape = (layers, len(x), len(x if y is None else y))
        result = _check.fresh(shape, x.dtype, "terms", ("float32",))
        with _accuracy.Call(), _threads.Call(n_threads):
            for which in range(layers):
                Ntk(self.network._training_only(which))._into(points, result[which], 1.0, ASSIGN)
        return result


def both(network: Sequential, X, Y, n_threads: int | None) -> tuple[Array, Array]:
    """Both kernels of a network in one pass."""
    kernel = Nngp(network)
    points = kernel._open(X, Y, _threads.resolve(n_threads))
    x, y = points.x, points.y
    shape = (len(x), len(x if y is None else y))
    k, t = _check.fresh(shape, x.dtype, beside=1), _check.fresh(shape, x.dtype, beside=1)
    if isinstance(points, _dense.Points):
        program = points.compiled(kernel._compile)
        _accuracy.tell(program.doubts, tangent=True)
        points.gram(program, Reduction.PRODUCTS, k, t, 1.0, ASSIGN)
    else:
        points.gram(network, k, t, 1.0, ASSIGN)
    return k, t


class ArcCosine(_Angular):
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

    def _pass(self, walk) -> None:
        RectifiedPower(self.order)._pass(walk)


class Polynomial(_Angular):
    """``(scale <x, y> + offset)^degree``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Polynomial(2)([[1.0, 2.0]])
    array([[36.]])
    """

    _parameters = ("degree", "scale", "offset")
    _defaults = {"scale": 1.0, "offset": 1.0}

    def __init__(self, degree: int, scale: float = 1.0, offset: float = 1.0) -> None:
        self.degree = _check.count(degree, "degree", least=1)
        self.scale = _check.positive(scale, "scale")
        self.offset = _check.non_negative(offset, "offset")

    def _pass(self, walk) -> None:
        op = Op(Code.POLYNOMIAL, n=self.degree, a=self.scale, b=self.offset)
        with np.errstate(over="ignore"):
            new = (self.scale * walk.variance + self.offset) ** self.degree
        walk.activation(RowStep(op, new, np.zeros_like(new)), self)


# ---- of a distance


class _Radial(Kernel):
    """A function of a sum over coordinates."""

    _parameters = ("lengthscale",)
    _reduction = Reduction.SQUARES
    _bump = 1.0

    def _alike(self, radius, dim):
        return radius, 1

    def __init__(self, lengthscale: float) -> None:
        self.lengthscale = _check.positive(lengthscale, "lengthscale")

    def _op(self) -> Op:
        raise NotImplementedError

    def _program(self, rows: int) -> Compiled:
        walk = Walk(np.ones(rows))
        walk.activation(RowStep(self._op(), walk.variance, walk.t, np.empty((0, 0))), self)
        return walk.done()

    def _into(self, points, out, factor, combine) -> None:
        program = self._program(points.rows)
        points.gram(program, self._reduction, out, None, factor, combine, self._bump)

    def _diagonal(self, points, factor) -> Array:
        return np.full(len(points.x), factor, points.x.dtype)

    def _profile(self, u, radius, dim) -> Array:
        square = 2 * radius**2 * (1 - u)
        return run_pairs(self._program(1), square, np.zeros_like(u), _threads.resolve(None))[0]


class _NotRadial(_Radial):
    """A sum over coordinates that the angle does not determine."""

    def _profile(self, u, radius, dim) -> Array:
        raise ValueError(f"{self!r} must not be asked for a profile: it depends on the axes")


class Gaussian(_Radial):
    """``exp(-|x - y|^2 / (2 lengthscale^2))``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.Gaussian(1.0)([[0.0], [1.0]])
    array([[1.        , 0.60653066],
           [0.60653066, 1.        ]])
    """

    def _op(self) -> Op:
        return Op(Code.EXPONENTIAL_OF, a=0.5 * (1 / self.lengthscale) * (1 / self.lengthscale))

    def _zonal(self, frame, radius, dim):
        from ..series.functions import Exponential

        return frame.cosine().apply(Exponential((radius / self.lengthscale) ** 2))[0]


class Laplacian(_NotRadial):
    """``exp(-|x - y| / lengthscale)`` with the Euclidean norm, or the sum of sizes (norm=1)."""

    _parameters = ("lengthscale", "norm")
    _defaults = {"norm": 2}

    def __init__(self, lengthscale: float, norm: int = 2) -> None:
        super().__init__(lengthscale)
        self.norm = _check.count(norm, "norm")
        if self.norm not in (1, 2):
            raise ValueError(f"norm must be 1 or 2: got {norm!r}")

    @property
    def _reduction(self) -> Reduction:  # type: ignore[override]
        return Reduction.SIZES if self.norm == 1 else Reduction.SQUARES

    def _op(self) -> Op:
        code = Code.EXPONENTIAL_OF if self.norm == 1 else Code.LAPLACIAN
        return Op(code, a=1 / self.lengthscale)

    def _profile(self, u, radius, dim) -> Array:
        return (_NotRadial if self.norm == 1 else _Radial)._profile(self, u, radius, dim)

    def _zonal(self, frame, radius, dim):
        if self.norm == 1:
            return super()._zonal(frame, radius, dim)
        return Matern(0.5, self.lengthscale)._zonal(frame, radius, dim)


class Cauchy(_NotRadial):
    """The product over coordinates of ``1 / (1 + (x_k - y_k)^2 / lengthscale^2)``."""

    _reduction = Reduction.BUMPS

    @property
    def _bump(self) -> float:  # type: ignore[override]
        return 1 / self.lengthscale

    def _op(self) -> Op:
        return Op(Code.CAUCHY)


class Matern(_Radial):
    """The Matern kernel of smoothness ``nu`` (Rasmussen and Williams, equation 4.14).

    Half-integers up to 20.5 run in the compiled engine; other values take SciPy's Bessel function,
    on one thread.

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

    def _op(self) -> Op:
        p = int(self.nu - 0.5)
        c = tuple(
            math.factorial(p) * math.factorial(2 * p - i) * 2**i
            / (math.factorial(2 * p) * math.factorial(p - i) * math.factorial(i))
            for i in range(p + 1)
        )  # fmt: skip
        return Op(Code.MATERN, n=p, a=math.sqrt(2 * self.nu) / self.lengthscale, coefficients=c)

    def _bessel(self, square: Array) -> Array:
        """2^(1-nu)/Gamma(nu) r^nu K_nu(r), in place; r = sqrt(2 nu) distance / lengthscale.

        log K_nu by the ratios K_(v+1)/K_v = 2v/r + K_(v-1)/K_v from order below 1: K_nu itself
        overflows for large nu.
        """
        special = _dispatch.load("scipy.special")
        steps = math.ceil(self.nu) - 1
        v = self.nu - steps  # in (0, 1]
        for block in np.array_split(square.reshape(-1), max(1, square.size // 2**16)):
            distance = np.sqrt(block.astype(np.float64))
            with np.errstate(over="ignore"):
                r = np.clip(math.sqrt(2 * self.nu) * distance / self.lengthscale, 1e-100, 1e5)
            low = special.kve(v, r)
            log_k, ratio = np.log(low) - r, special.kve(v + 1, r) / low
            for k in range(steps):
                log_k += np.log(ratio)
                ratio = 2 * (v + k + 1) / r + 1 / ratio
            log_value = (
                (1 - self.nu) * math.log(2) - special.gammaln(self.nu) + self.nu * np.log(r) + log_k
            )
            block[:] = np.where(distance > 0, np.minimum(np.exp(log_value), 1.0), 1.0)
        return square

    def _into(self, points, out, factor, combine) -> None:
        if self._half_integer:
            super()._into(points, out, factor, combine)
            return
        own = out if combine == ASSIGN else _check.fresh(out.shape, out.dtype, beside=1)
        points.gram(Walk(np.ones(points.rows)).done(), Reduction.SQUARES, own, None, 1.0, ASSIGN)
        self._bessel(own)
        if factor != 1.0:
            own *= factor
        if combine == ADD:
            out += own
        elif combine == MULTIPLY:
            out *= own

    def _program(self, rows: int) -> Compiled:
        return super()._program(rows) if self._half_integer else Walk(np.ones(rows)).done()

    def _profile(self, u, radius, dim) -> Array:
        if self._half_integer:
            return super()._profile(u, radius, dim)
        return self._bessel(2 * radius**2 * (1 - u))

    def _zonal(self, frame, radius, dim):
        if not self._half_integer:
            return super()._zonal(frame, radius, dim)
        from ..series import functions as _functions

        a = math.sqrt(2 * self.nu) * math.sqrt(2) * radius / self.lengthscale
        return frame.cosine().apply(_functions.Matern(self.nu, a))[0]
