"""Kernels and their sums, products and multiples.

Every kernel is evaluated into an array that may already hold another one (assign, add, multiply),
so that sums of kernels and products of kernels need no second matrix; products of sums do.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from .._value import Value
from ..engine import ADD, ASSIGN, MULTIPLY, Inputs, accuracy, threads
from ..engine.progress import Progress

if TYPE_CHECKING:
    from ._gradients import Terms
    from ._hyperparameters import Rates


MOST_DEGREES = 10_000
"""The highest degree that ``null_degrees`` looks at."""


class Kernel(Value):
    """The base of all kernels: Gram matrix, diagonal and profile.

    Examples
    --------
    >>> import kernelcore as kc
    >>> k = kc.Gaussian(1.0)
    >>> isinstance(k, kc.Kernel)
    True
    >>> (2 * k + k * k).diag([[0.0], [1.0]])
    array([3., 3.])
    """

    # NumPy leaves the operators to this class, so that an array times a kernel is a TypeError and
    # not an array of kernels.
    __array_ufunc__ = None

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, *,
        out: Array | None = None, n_threads: int | None = None, progress: bool = False,
    ) -> Array:  # fmt: skip
        """Evaluate the Gram matrix.

        Parameters
        ----------
        X : array of shape (n, d), (n, L, C) or (n, H, W, C), float32 or float64
            Rows; or signals or images with their channels last, for networks with convolutions or
            pooling. Integers and booleans count as float64. Copied if not C-contiguous.
        Y : array of shape (m, ...), optional
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
            Entry (i, j) depends on the inputs i of X and j of Y alone, to the last bit, and not on
            threads or on the other inputs. For rows it does not depend on their order either; for
            signals and images ``k(X, Y)`` and ``k(Y, X).T`` differ by rounding.

        Notes
        -----
        For two rows, both of shape (d,), K is one number: scikit-learn asks for it once per pair
        where ``KernelRidge``, ``Nystroem`` and others are given a kernel. ``kernel="precomputed"``
        and ``K = k(X)`` give the same in a small part of the time.

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
            x, y = _check.of_any_backend(X, "X"), _check.of_any_backend(Y, "Y")
            if x.ndim == y.ndim == 1:
                return self(x[None], y[None], out=out, n_threads=n_threads)[0, 0]
            X, Y = x, y
        n_threads = threads.resolve(n_threads)
        with accuracy.Call():
            return self._filled(self._open(X, Y, n_threads), n_threads, out, progress)

    def _filled(
        self, points: Inputs, n_threads: int, out: Array | None = None, progress: bool = False
    ) -> Array:
        """Return the Gram matrix of inputs that are open."""
        symmetric, n = points.y is None, len(points.x)
        result = points.output(out, beside=self._beside(ASSIGN, symmetric))
        shown = progress is not False and _check.flag(progress, "progress")
        if shown:
            entries = n * (n + 1) // 2 if symmetric else n * len(points.y)
            told = Progress("Gram matrix, entries", entries, True)
            points.watch = told.watch()
        with threads.Call(n_threads), points.there():
            self._into(points, result, 1.0, ASSIGN)
        if shown:
            told.at(entries)
        return result

    def _against(self, known: Inputs, X: ArrayLike) -> Array:
        """Return ``self(X, Y)`` for a Y that was opened as ``known`` and has not changed since."""
        n_threads = threads.resolve(None)
        with accuracy.Call():
            return self._filled(known.against(X, n_threads), n_threads)

    def diag(self, X: ArrayLike, *, n_threads: int | None = None) -> Array:
        """Evaluate the diagonal of ``k(X)``, to the bit, without the rest: shape (n,).

        ``n_threads`` is that of ``k(X)``.
        """
        n_threads = threads.resolve(n_threads)
        points = self._open(X, None, n_threads)
        with accuracy.Call(), threads.Call(n_threads), points.there():
            return self._diagonal(points, 1.0)

    def profile(self, u: ArrayLike, *, radius: float | None = None, dim: int = 1) -> Array:
        """Evaluate the kernel of two inputs of norm ``radius`` whose cosine is ``u``, in float64.

        Parameters
        ----------
        u : array_like
            Cosines, in [-1, 1]; the result has their shape.
        radius : float, optional
            Norm of both inputs: ``sqrt(dim)`` for networks, so that the input variance is 1, and
            1 for classical kernels. Sums and products of the two kinds need it.
        dim : int
            The dimension, by which networks divide ``<x, x'>``.

        Examples
        --------
        >>> import kernelcore as kc
        >>> kc.presets.mlp(1).ntk.profile([0.0, 1.0])
        array([0.31830989, 2.        ])
        """
        u = _check.cosines(u, "u")
        dim = _check.count(dim, "dim", least=1)
        radius = self._at_radius(radius, dim)
        with accuracy.Call():
            return self._profile(u.ravel(), radius, dim).reshape(u.shape)

    def gradient(
        self, X: ArrayLike, Y: ArrayLike | None = None, weights: ArrayLike | None = None, *,
        n_threads: int | None = None,
    ) -> Array:  # fmt: skip
        """Evaluate the derivative of ``k(x, y)`` by its first input, for kernels of rows.

        Parameters
        ----------
        X, Y : array of shape (n, d), (m, d)
            As for the Gram matrix; NumPy only.
        weights : array of shape (m,) or (m, r), optional
            Coefficients of a sum over Y. The array of all derivatives is then never held.
        n_threads : int, optional
            ``get_threads()`` by default. The result does not depend on it.

        Returns
        -------
        array of shape (n, m, d); with weights (n, d) or (n, d, r), of the dtype of X
            Entry (i, j, k) is the derivative by ``X[i, k]`` of ``k(X[i], Y[j])``; with weights,
            ``sum_j weights[j] grad k(X[i], Y[j])``, which is the derivative of a prediction.

        Notes
        -----
        All arithmetic is in float64. Where the derivative jumps, as that of a Laplacian does at
        x = y and that of an NTK with kinks where x is a multiple of y, it is the mean over
        opposite directions. Near such a place, at an angle t between x and y, the derivative of
        an NTK is good to ``1e-16 / t^2``.

        Examples
        --------
        >>> import kernelcore as kc
        >>> k, X, Y = kc.Gaussian(1.0), [[0.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]]
        >>> k.gradient(X, Y).round(4)
        array([[[0.6065, 0.    ],
                [0.    , 0.2707]]])
        >>> k.gradient(X, Y, [1.0, -1.0]).round(4)
        array([[ 0.6065, -0.2707]])
        """
        from ._gradients import gradient

        return gradient(self, X, Y, weights, threads.resolve(n_threads))

    def hyperparameters(self) -> dict[str, float]:
        """Return the numbers of the kernel that data may choose, by name.

        They are lengthscales, ``w_std`` and ``b_std`` of layers, factors of multiples, and scale
        and offset of polynomials, as far as they are positive: a network without biases has none to
        choose. Names are those of ``parameters(deep=True)``, and ``replace`` changes them.

        Examples
        --------
        >>> import kernelcore as kc
        >>> k = 2 * kc.Matern(1.5, 3.0)
        >>> k.hyperparameters()
        {'kernel__lengthscale': 3.0, 'factor': 2.0}
        >>> k.replace(kernel__lengthscale=1.0)
        2.0 * Matern(1.5, 1.0)
        >>> list(kc.presets.mlp(1).ntk.hyperparameters())
        ['network__layers__0__w_std', 'network__layers__2__w_std']
        """
        return self._tuned()

    def hyperparameter_gradient(
        self, X: ArrayLike, Y: ArrayLike | None = None, weights: ArrayLike | None = None, *,
        names: Sequence[str] | None = None, n_threads: int | None = None,
    ) -> Array:  # fmt: skip
        """Evaluate the derivatives of the Gram matrix by hyper-parameters, for kernels of rows.

        Parameters
        ----------
        X, Y : array of shape (n, d), (m, d)
            As for the Gram matrix; NumPy only.
        weights : array of shape (n, m), optional
            Coefficients of a sum over all entries. The derivatives are then never held, and of a
            symmetric matrix half is computed: the gradient of any function of K takes this.
        names : sequence of str, optional
            Some of ``hyperparameters()``, in any order; by default all of them.
        n_threads : int, optional
            ``get_threads()`` by default. The result does not depend on it.

        Returns
        -------
        array of shape (p, n, m), of the dtype of X; with weights (p,), float64
            One derivative for each name; with weights ``sum_ij weights[i, j] dK[i, j]``.

        Notes
        -----
        Derivatives are exact, in forward mode; all arithmetic is in float64. At an angle t between
        two rows those of an NTK with kinks are good to ``1e-16 / t^2``.

        Examples
        --------
        >>> import kernelcore as kc
        >>> k, X = kc.Gaussian(1.0), [[0.0], [1.0]]
        >>> k.hyperparameter_gradient(X).round(4)
        array([[[0.    , 0.6065],
                [0.6065, 0.    ]]])
        >>> k.hyperparameter_gradient(X, weights=[[1.0, 1.0], [1.0, 1.0]]).round(4)
        array([1.2131])
        """
        from ._hyperparameters import gradient

        return gradient(self, X, Y, weights, names, threads.resolve(n_threads))

    def null_degrees(self, max_degree: int) -> Array:
        """Return the degrees up to ``max_degree`` whose eigenvalue on every sphere is exactly zero.

        No target of such a degree can be learned. The spheres have the default radius and centre 0.

        Examples
        --------
        >>> import kernelcore as kc
        >>> kc.presets.mlp(1).ntk.null_degrees(8)
        array([3, 5, 7])
        >>> kc.presets.mlp(2).ntk.null_degrees(8)
        array([], dtype=int64)
        """
        from ._powers import alike, null_degrees

        max_degree = _check.count(max_degree, "max_degree")
        _check.at_most(max_degree, MOST_DEGREES, "max_degree", "the highest that is looked at")
        self.profile(1.0)  # refuses kernels that the angle does not determine
        radius, dim = alike(self, self._at_radius(None, 1), 1)
        return null_degrees(self, radius, dim, max_degree).copy()

    def __add__(self, other: Kernel) -> Sum:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        factor = _scalar(other)
        return NotImplemented if factor is None else Scaled(self, factor)

    __rmul__ = __mul__

    def __radd__(self, other: int) -> Kernel:
        # The sum of a list of kernels begins with 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __truediv__(self, other: float) -> Kernel:
        divisor = _scalar(other)
        if divisor is None:
            return NotImplemented
        return Scaled(self, 1 / _check.positive(divisor, "divisor"))

    def __pow__(self, exponent: int) -> Kernel:
        """Return the product of ``exponent`` copies, at least one; each is evaluated."""
        return functools.reduce(Product, [self] * _check.count(exponent, "exponent", least=1))

    def _at_radius(self, radius: float | None, dim: int) -> float:
        radius = self._radius(dim) if radius is None else radius
        if radius is None:
            raise ValueError(
                "radius must be given: the parts of this kernel have unlike default radii"
            )
        return _check.positive(radius, "radius")

    # -- what a kernel has to say; by default it is made of others, its parameters

    @property
    def _parts(self) -> list[Kernel]:
        return [value for value in self._values() if isinstance(value, Kernel)]

    @property
    def _images(self) -> bool:
        """Whether inputs are signals or images."""
        return self._parts[0]._images

    def _open(self, X: Any, Y: Any, n_threads: int) -> Inputs:
        """Check the inputs and return them."""
        first, *others = self._parts
        points = first._open(X, Y, n_threads)
        for part in others:
            part._accepts(points)
        return points

    def _accepts(self, points: Inputs) -> None:
        """Refuse inputs that another kernel has opened and that this one does not take."""
        for part in self._parts:
            part._accepts(points)

    def _into(self, points: Inputs, out: Array, factor: float, combine: int) -> None:
        """Put ``factor`` times the Gram matrix into ``out``: assigned, added or multiplied."""
        raise NotImplementedError

    def _beside(self, combine: int, symmetric: bool) -> int:
        """Return how many more matrices of the size of ``out`` exist at a time in ``_into``."""
        return 0

    def _apart(self, points: Inputs, out: Array, factor: float, combine: int) -> None:
        """Evaluate into a second matrix first, which is then added to ``out`` or multiplies it."""
        own = points.output()
        self._into(points, own, factor, ASSIGN)
        if combine == ADD:
            out += own
        else:
            out *= own

    def _diagonal(self, points: Inputs, factor: float) -> Array:
        """Return ``factor`` times the diagonal, by the same operations as ``_into``."""
        raise NotImplementedError

    def _add_diagonal(self, points: Inputs, out: Array, factor: float) -> None:
        """Add the same to ``out``, in the order in which ``_into`` adds."""
        out += self._diagonal(points, factor)

    def _profile(self, u: Array, radius: float, dim: int) -> Array:
        raise NotImplementedError

    def _slopes(self, points: Inputs, value: bool) -> Terms:
        """Return the derivative by x of the kernel of rows in float64, and its value if asked."""
        _check.no_gradient(self)

    def _rates(self, points: Inputs, names: tuple[str, ...], value: bool) -> Rates:
        """Return derivatives by hyper-parameters in float64, and the kernel's value if asked."""
        _check.no_gradient(self)

    def _radius(self, dim: int) -> float | None:
        """Return the default radius of the sphere; None where parts disagree."""
        first, *others = (part._radius(dim) for part in self._parts)
        return first if all(radius == first for radius in others) else None


# ---- algebra


def _scalar(value: Any) -> Any:
    """Return a number as it is, or that of an array without axes; None for anything else."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return value if isinstance(value, (int, float, np.integer, np.floating)) else None


class Scaled(Kernel):
    """A multiple of a kernel."""

    _parameters = ("kernel", "factor")
    _tunable = ("factor",)

    def __init__(self, kernel: Kernel, factor: float) -> None:
        self.factor = _check.non_negative(factor, "factor")
        self.kernel = _check.an_instance(kernel, Kernel, "kernel", "a kernel")

    def __repr__(self) -> str:
        return f"{self.factor!r} * {_inner(self.kernel)}"

    def _into(self, points: Inputs, out: Array, factor: float, combine: int) -> None:
        self.kernel._into(points, out, factor * self.factor, combine)

    def _beside(self, combine: int, symmetric: bool) -> int:
        return self.kernel._beside(combine, symmetric)

    def _diagonal(self, points: Inputs, factor: float) -> Array:
        return self.kernel._diagonal(points, factor * self.factor)

    def _add_diagonal(self, points: Inputs, out: Array, factor: float) -> None:
        self.kernel._add_diagonal(points, out, factor * self.factor)

    def _profile(self, u: Array, radius: float, dim: int) -> Array:
        return self.factor * self.kernel._profile(u, radius, dim)

    def _slopes(self, points: Inputs, value: bool) -> Terms:
        return self.kernel._slopes(points, value).times(self.factor)

    def _rates(self, points: Inputs, names: tuple[str, ...], value: bool) -> Rates:
        from ._hyperparameters import Rates, inside

        whole = value or "factor" in names
        found = self.kernel._rates(points, inside(names, "kernel"), whole)
        by = found.times(self.factor, "kernel")
        return Rates(self.factor * found.value, by | {"factor": found.value})


class _Pair(Kernel):
    """Two kernels; the right one joins ``out`` by ``_join``, which ``_other`` does not mix with."""

    _parameters = ("left", "right")
    _symbol = ""
    _join, _other = ADD, MULTIPLY

    def __init__(self, left: Kernel, right: Kernel) -> None:
        for part, name in ((left, "left"), (right, "right")):
            _check.an_instance(part, Kernel, name, "a kernel")
        if left._images != right._images:
            raise TypeError(
                f"kernels must be of one kind of input: {left!r} and {right!r} are of "
                f"{' and '.join('images' if k._images else 'rows' for k in (left, right))}"
            )
        self.left, self.right = left, right

    def __repr__(self) -> str:
        return f"{_inner(self.left)} {self._symbol} {_inner(self.right)}"

    def _into(self, points: Inputs, out: Array, factor: float, combine: int) -> None:
        if combine == self._other:  # (a + b) c is not a + b c: the parts cannot join one by one
            self._apart(points, out, factor, combine)
            return
        with points.share(0.0, 0.5):
            self.left._into(points, out, factor, combine)
        with points.share(0.5, 1.0):
            self.right._into(points, out, factor if self._join == ADD else 1.0, self._join)

    def _beside(self, combine: int, symmetric: bool) -> int:
        if combine == self._other:
            return 1 + self._beside(ASSIGN, symmetric)
        parts = ((self.left, combine), (self.right, self._join))
        return max(kernel._beside(how, symmetric) for kernel, how in parts)

    def _both(self, points: Inputs, names: tuple[str, ...], value: bool) -> list[Rates]:
        """Return the derivatives of both kernels by their own hyper-parameters."""
        from ._hyperparameters import inside

        parts = ((self.left, "left"), (self.right, "right"))
        return [kernel._rates(points, inside(names, part), value) for kernel, part in parts]


class Sum(_Pair):
    """The sum of two kernels."""

    _symbol = "+"

    def _diagonal(self, points: Inputs, factor: float) -> Array:
        out = self.left._diagonal(points, factor)
        self.right._add_diagonal(points, out, factor)
        return out

    def _add_diagonal(self, points: Inputs, out: Array, factor: float) -> None:
        self.left._add_diagonal(points, out, factor)
        self.right._add_diagonal(points, out, factor)

    def _profile(self, u: Array, radius: float, dim: int) -> Array:
        return self.left._profile(u, radius, dim) + self.right._profile(u, radius, dim)

    def _slopes(self, points: Inputs, value: bool) -> Terms:
        left, right = self.left._slopes(points, value), self.right._slopes(points, value)
        return left.plus(right, left.value + right.value)

    def _rates(self, points: Inputs, names: tuple[str, ...], value: bool) -> Rates:
        from ._hyperparameters import Rates

        left, right = self._both(points, names, value)
        by = left.times(1.0, "left") | right.times(1.0, "right")
        return Rates(left.value + right.value, by)


class Product(_Pair):
    """The product of two kernels."""

    _symbol = "*"
    _join, _other = MULTIPLY, ADD

    def _diagonal(self, points: Inputs, factor: float) -> Array:
        return self.left._diagonal(points, factor) * self.right._diagonal(points, 1.0)

    def _profile(self, u: Array, radius: float, dim: int) -> Array:
        return self.left._profile(u, radius, dim) * self.right._profile(u, radius, dim)

    def _slopes(self, points: Inputs, value: bool) -> Terms:
        left, right = self.left._slopes(points, True), self.right._slopes(points, True)
        product = left.value * right.value
        return left.times(right.value).plus(right.times(left.value), product)

    def _rates(self, points: Inputs, names: tuple[str, ...], value: bool) -> Rates:
        from ._hyperparameters import Rates

        left, right = self._both(points, names, True)
        by = left.times(right.value, "left") | right.times(left.value, "right")
        return Rates(left.value * right.value, by)


def _inner(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, (Sum, Product, Scaled)) else repr(kernel)
