"""What all random features share: parameters, fitting, blocks of rows."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from .. import _check, _keywords
from .._types import Array, ArrayLike, Self
from ..engine import threads as _threads
from ..engine.progress import Progress
from ..kernels import Kernel
from ..linalg import blas as _blas
from ..linalg import qr
from ..linalg.arrays import cast, placed, take, zeros

T = TypeVar("T")
seeded = _keywords.synonyms(rng="seed", random_state="seed")
"""Let a function take its seed under the names that NumPy and scikit-learn have for it, too."""

ALL = slice(None)
HELD = ("ridge_features", "float32")
"""What to use where features, or their inner products, do not fit into memory."""


def seeded_class(cls: type[T]) -> type[T]:
    """Let the constructor of a class take its seed under those names."""
    cls.__init__ = seeded(cls.__init__)  # type: ignore[method-assign]
    return cls


def not_fitted(what: object) -> Exception:
    """Return scikit-learn's own error if it is installed, else one that is caught the same way."""
    text = f"{type(what).__name__} must be fitted first: call fit(X)"
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return NotFitted(text)
    return NotFittedError(text)


class NotFitted(ValueError, AttributeError):
    """Raised without scikit-learn by a transformer that has no features yet."""


def normal_rows(m: int, d: int, rng: np.random.Generator, orthogonal: bool) -> Array:
    """Draw m normal rows; ``orthogonal`` makes each orthogonal to the others of a block of d."""
    _check.room("weights_", (m, d), np.float64, 3 if orthogonal else 2, ("fewer features",))
    if not orthogonal:
        return rng.standard_normal((m, d))
    q, r = qr(rng.standard_normal((-(-m // d), d, d)))
    # These signs make them uniform over rotations and reflections (Mezzadri 2007).
    q *= np.sign(np.einsum("kii->ki", r))[:, None, :]
    rows = q.transpose(0, 2, 1).reshape(-1, d)[:m]
    return rows * np.sqrt(rng.chisquare(d, m))[:, None]


class Transformer:
    """The base of random features: a map of rows to features that is drawn once.

    Attributes
    ----------
    kernel_ : Kernel
        The limit of ``Z @ Z.T``.
    weights_ : array of shape (m, ``n_features_in_``)
        The weights, in the dtype of the rows that were fitted.
    n_features_in_, n_features_out_ : int

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.eye(3)
    >>> Z = kc.features.FourierFeatures(kc.Gaussian(1.0), 1000, random_state=0).fit_transform(X)
    >>> bool(np.abs(Z @ Z.T - kc.Gaussian(1.0)(X)).max() < 0.1)
    True
    """

    seed: int | np.random.Generator | None
    kernel_: Any
    weights_: Array

    # -- parameters, as scikit-learn wants them

    @classmethod
    def _signature(cls) -> dict[str, inspect.Parameter]:
        return dict(list(inspect.signature(cls.__init__).parameters.items())[1:])

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the arguments of the constructor, and if deep, those of features among them."""
        own = {name: getattr(self, name) for name in self._signature()}
        inner = [(n, v) for n, v in own.items() if deep and isinstance(v, Transformer)]
        return own | {f"{n}__{key}": x for n, v in inner for key, x in v.get_params().items()}

    @seeded
    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor; they apply from the next ``fit`` on."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"{name} must be a parameter of {type(self).__name__}: "
                    f"it has {', '.join(known)}"
                )
            own, _, inner = name.partition("__")
            if inner:
                getattr(self, own).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        parts = []
        for name, parameter in self._signature().items():
            value = getattr(self, name)
            if value is not parameter.default and value != parameter.default:
                parts.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float64", "float32"]),
            input_tags=InputTags(),
            non_deterministic=not isinstance(self.seed, (int, np.integer)),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    # -- what a family defines

    def _draw(self, d: int, rng: np.random.Generator) -> dict[str, Array]:
        """Check the parameters, call ``_limit``, and return float64 arrays by name."""
        raise NotImplementedError

    def _block(self, x: Array, out: Array, arrays: dict[str, Array]) -> None:
        """Write the features of a few rows to every entry of ``out``, which is C-contiguous."""
        raise NotImplementedError

    def _block_rows(self, n: int, d: int) -> int:
        """Return how many of n rows of d columns make a block.

        As many as columns, so that what each product packs is small compared with it; fewer where
        the product is small and should stay in the cache; at least eight blocks, for the threads.
        It does not depend on the number of threads, because results would, too.
        """
        return max(64, min(-(-n // 8), max(128, min(d, 1024))))

    def _variance(self, X: Array) -> Array | None:
        """Return the variance of each entry of ``Z @ Z.T``; None where no formula is known."""
        return None

    def _largest(self) -> tuple[int, float] | None:
        """Return the number of independent terms of an entry, and their bound; None without."""
        return None

    # -- use

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Draw the features for rows like those of X.

        Parameters
        ----------
        X : array of shape (n, d), n at least 1
            Only the number of columns, the dtype and the library matter: the weights, which are
            drawn on the host, go where X is.
        y : ignored

        Returns
        -------
        self
        """
        x = _check.some_rows(self._points(X), "X")
        arrays = self._draw(x.shape[1], _check.generator(self.seed, "seed"))
        for name, a in arrays.items():
            setattr(self, name, a.astype(x.dtype) if isinstance(x, np.ndarray) else placed(a, x))
        self._drawn = tuple(arrays)
        self.n_features_in_ = x.shape[1]
        return self

    def transform(
        self, X: ArrayLike, *, out: Array | None = None, n_threads: int | None = None
    ) -> Array:
        """Return the features of the rows of X.

        Parameters
        ----------
        X : array of shape (n, d), float32 or float64
            Integers and booleans count as float64. Copied if not C-contiguous. It is where the
            rows were that the features were fitted to.
        out : array of shape (n, ``n_features_out_``), optional
            Where to write; C-contiguous, of the dtype of X.
        n_threads : int, optional
            ``get_threads()`` by default. The result does not depend on it.

        Returns
        -------
        Z : array of shape (n, ``n_features_out_``), of the dtype of X
            It is computed in blocks of rows: beyond the result, memory holds the weights, cast if
            their dtype is another, and a few blocks.
        """
        x, n_threads = self._rows(X), _threads.resolve(n_threads)
        shape = (x.shape[0], self.n_features_out_)
        if isinstance(x, np.ndarray):
            result = _check.out(out, shape, x.dtype, "features", HELD)
            _check.apart(result, {"X": x})
        else:
            _check.not_beside(out, "out", "X of another library than NumPy")
            result = zeros(shape, x)
        self._fill(x, result, n_threads)
        return result

    def fit_transform(self, X: ArrayLike, y: object = None, **keywords: Any) -> Array:
        """Call ``fit(X)`` and return ``transform(X)``."""
        return self.fit(X, y).transform(X, **keywords)

    def gram(
        self, X: ArrayLike, Y: ArrayLike | None = None, *,
        n_threads: int | None = None, progress: bool = False,
    ) -> Array:  # fmt: skip
        """Return ``Z(X) @ Z(Y).T``, the kernel of these very features, without holding them all.

        Parameters
        ----------
        X : array of shape (n, d)
        Y : array of shape (m, d), optional
            X by default.
        n_threads : int, optional
            ``get_threads()`` by default. With 1, products by BLAS take one thread as well.
        progress : bool
            Write a line to stderr every two seconds.

        Returns
        -------
        K : array of shape (n, m), of the dtype of X
        """
        x = self._rows(X)
        y = x if Y is None else self._rows(Y, "Y")
        _check.same_dtype(x, y)
        told = Progress("gram of features, rows", x.shape[0], _check.flag(progress, "progress"))
        with _blas.threads(n_threads) as n:
            return self._gram(x, y, n, told)

    def _gram(self, x: Array, y: Array, n_threads: int, told: Progress) -> Array:
        result = _result(x, y)
        for i, a in self._chunks(x, n_threads):
            for j, b in self._chunks(x[: i.start, :] if y is x else y, n_threads):
                multiply(a, b.T, result, i, j)
                if y is x:
                    result[j, i] = result[i, j].T
                told.at(i.start)
            if y is x:
                multiply(a, a.T, result, i, i)
        return result

    def _chunks(self, x: Array, n_threads: int) -> Iterator[tuple[slice, Array]]:
        """Yield slices of rows with their features, which the next ones overwrite."""
        n = x.shape[0]
        step = min(chunk_rows(self.n_features_out_), n)
        shape = (step, self.n_features_out_)
        room = np.empty(shape, x.dtype) if isinstance(x, np.ndarray) else None
        for rows in _blas.row_blocks(n, step):
            size = rows.stop - rows.start
            z = zeros((size, shape[1]), x) if room is None else room[:size]
            self._fill(take(x, rows), z, n_threads)
            yield rows, z

    def _host(self, X: ArrayLike, name: str = "X") -> Array:
        """Return inputs of the kind that these features are for, in an array of NumPy."""
        return _check.table(X, name)

    def _points(self, X: ArrayLike, name: str = "X") -> Array:
        """Return the same, or rows of another library where they are."""
        return self._host(X, name) if _check.namespace(X) is np else _check.any_table(X, name)

    def _rows(self, X: ArrayLike, name: str = "X") -> Array:
        if not self.__sklearn_is_fitted__():
            raise not_fitted(self)
        if _check.namespace(getattr(self, "weights_", None)) is np:  # a network's are NumPy's
            a = _check.table(X, name)
        else:
            a = _check.any_table(_check.beside(X, name, self.weights_, "weights_"), name)
        return _check.columns(a, self.n_features_in_, name, type(self).__name__)

    def _fill(self, x: Array, out: Array, n_threads: int) -> None:
        arrays = self._arrays(x.dtype)
        step = self._block_rows(x.shape[0], math.prod(x.shape[1:]))
        if not isinstance(x, np.ndarray):
            self._block(x, out, arrays)
            return

        def work(start: int) -> None:
            self._block(x[start : start + step], out[start : start + step], arrays)

        _blas.share(work, range(0, len(x), step), n_threads)

    def _arrays(self, dtype: np.dtype[Any]) -> dict[str, Array]:
        return {name: cast(getattr(self, name), dtype) for name in self._drawn}

    def _limit(self, kernel: Kernel, columns: int) -> None:
        self.kernel_, self.n_features_out_ = kernel, columns


class OfShapes(Transformer):
    """The base of features of rows, signals or images in arrays of NumPy."""

    _shape: tuple[int, ...]  # of an input

    def _points(self, X: ArrayLike, name: str = "X") -> Array:
        return self._host(X, name)

    def _rows(self, X: ArrayLike, name: str = "X") -> Array:
        if not self.__sklearn_is_fitted__():
            raise not_fitted(self)
        a = self._host(X, name)
        if len(self._shape) == 1:
            return _check.columns(a, self.n_features_in_, name, type(self).__name__)
        fine = a.shape[1:] == self._shape
        _check.must(fine, name, f"have inputs of shape {self._shape}", a.shape[1:])
        return a

    def _fitted(self, shape: tuple[int, ...]) -> Self:
        self._shape, self.n_features_in_ = shape, math.prod(shape)
        return self


def _result(x: Array, y: Array) -> Array:
    """Return the array of inner products of features of x with those of y."""
    shape = (x.shape[0], y.shape[0])
    if isinstance(x, np.ndarray):
        return _check.fresh(shape, x.dtype, remedies=HELD)
    return zeros(shape, x)


def multiply(a: Array, b: Array, out: Array, rows: Any = ALL, columns: Any = ALL) -> None:
    """Write ``a @ b`` to some rows and columns of ``out``."""
    if isinstance(out, np.ndarray):
        np.matmul(a, b, out=out[rows, columns])
    else:
        out[rows, columns] = a @ b


def chunk_rows(columns: int) -> int:
    """Return how many rows of features are held at a time: 64 MB of float64."""
    return max(1, 2**23 // columns)
