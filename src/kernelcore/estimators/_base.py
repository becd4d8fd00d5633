"""The base of all estimators: their kernel, its inputs, and its values in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .. import _check, _keywords, presets
from .._types import Array, ArrayLike, Self
from ..engine.memory import budget
from ..kernels import Kernel
from ..linalg.arrays import copied, joined, take
from ..linalg.blas import row_blocks
from ..scale.client import get_client
from ..scale.operator import GramOperator
from . import _tuning
from ._tuning import Tuning

KernelLike: TypeAlias = Kernel | str | list[Kernel] | None

FLOATS = (np.float64, np.float32)
IMAGES = {"ensure_2d": False, "allow_nd": True}
"""What scikit-learn's checks must know of inputs that are no rows."""
FEW = 2**16
"""Pairs of points for which no cluster is asked."""
BLOCK = 2**26
"""The bytes of kernel values that exist at a time when predicting."""


def random_numbers(random_state: Any) -> np.random.RandomState:
    """Return a source of random numbers for what scikit-learn takes, or for a Generator."""
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    return check_random_state(random_state)


def own(X: Array) -> Array:
    """Return a copy that does not change, so that what is known of it stays true."""
    if not isinstance(X, np.ndarray):
        return copied(X)
    X = np.array(X, order="C")
    X.flags.writeable = False
    return X


def on_host(x: Any, name: str) -> Any:
    """Return another library's array as NumPy's, unless it is on a device; else what is given."""
    return x if _check.namespace(x) is np else _check.real_array(x, name)


class OfKernel(BaseEstimator):
    """An estimator whose ``kernel`` is a kernel, None for the default, or 'precomputed'."""

    _kernels: tuple[str, ...] = ("kernel",)  # parameters that are kernels
    _former: dict[str, str] = {}  # old names of parameters
    tune: str | None = None  # parameters of those that choose hyper-parameters
    ties: str | None = None
    tuning_: Tuning | None
    kernel_: Any  # a kernel, or 'precomputed'
    X_fit_: Any  # an array, or None of a precomputed kernel

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters by name; with ``deep`` also ``kernel__lengthscale`` and the like."""
        params = super().get_params(deep)
        for name in self._kernels if deep else ():
            if isinstance(value := params[name], Kernel):
                inside = value.parameters(deep=True)
                params |= {f"{name}__{key}": x for key, x in inside.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``kernel__lengthscale=2.0`` replaces the kernel by a changed one."""
        inside: dict[str, dict[str, Any]] = {name: {} for name in self._kernels}
        for key in list(params):
            name, _, inner = key.partition("__")
            if key in self._former:
                _keywords.deprecated(key, self._former[key])
                params[self._former[key]] = params.pop(key)
            elif inner and name in inside:
                inside[name][inner] = params.pop(key)
        super().set_params(**params)
        for name, changes in inside.items():
            if changes:
                value = getattr(self, name)
                kernel = _check.a_kernel(value, name, isinstance(value, Kernel))
                setattr(self, name, kernel.replace(**changes))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        return tags

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _default(self) -> Kernel:
        # without a bias, one-dimensional data shows only its sign
        return presets.mlp(2, b_std=0.1).ntk

    def _resolved(self) -> Any:
        """Return the kernel that ``kernel`` stands for, or 'precomputed'."""
        if self._precomputed:
            return self.kernel
        return self._candidates()[0]

    def _candidates(self) -> list[Kernel]:
        """Return the kernels that ``tune`` chooses from; without it there is one."""
        kernel: Any = self._default() if self.kernel is None else self.kernel
        several = self.tune is not None and isinstance(kernel, (list, tuple))
        found = list(kernel) if several else [kernel]
        _check.must(bool(found), "kernel", "have some kernels to choose from", kernel)
        for each in found:
            _check.a_kernel(each, "kernel", isinstance(each, Kernel), ", 'precomputed'")
        kinds = {"images" if each._images else "rows" for each in found}
        rule = "have kernels of one kind of input"
        _check.must(len(kinds) == 1, "kernel", rule, " and ".join(sorted(kinds)))
        return found

    def _check_tune(self, criteria: tuple[str, ...] = _tuning.CRITERIA) -> None:
        allowed: tuple[Any, ...] = (None, *criteria)
        _check.choice(self.tune, "tune", allowed)
        _check.choice(self.ties, "ties", _tuning.TIES)
        _check.not_precomputed(self.tune is not None and self._precomputed, "tune must be None")

    def _tune(
        self, X: Array, y: Array, rng: np.random.RandomState, weights: Any = None,
        ridge: float | Array | None = None,
    ) -> None:  # fmt: skip
        """Set ``kernel_`` as ``tune`` says, and ``tuning_``; points of weight zero do not count."""
        self.tuning_ = None
        if self.tune is None:
            return
        if not isinstance(X, np.ndarray):
            _check.on_the_host(X, "X")
        there = np.arange(len(X)) if weights is None else np.flatnonzero(weights.positive)
        if len(there) > _tuning.TUNED_ON:
            there = np.sort(rng.choice(there, _tuning.TUNED_ON, replace=False))
        weights = None if weights is None else weights.at(there)
        of = self._criterion(y[there], rng, weights, ridge, there)
        found = _tuning.tuned(self._candidates(), X[there], of, self.tune, rng, self.ties)
        self.kernel_, self.tuning_ = found

    def _criterion(
        self, y: Array, rng: np.random.RandomState, weights: Any, ridge: Any, there: Array
    ) -> _tuning.Criterion:
        total, copies = weights or (None, None)
        if isinstance(ridge, np.ndarray) and ridge.ndim:
            ridge = ridge[there].astype(np.float64)
        assert self.tune is not None
        return _tuning.OfRidge(self.tune, y, ridge, rng, total, copies)

    @property
    def _images(self) -> bool:
        return self.kernel_ != "precomputed" and self.kernel_._images

    def _stays(self, X: Any) -> bool:
        """Return whether inputs stay in the memory of a device, and all that is made of them.

        A matrix does so in any library; a kernel makes arrays of NumPy of what NumPy can read.
        """
        there = _check.on_a_device(X)
        enabled = bool(get_config()["array_api_dispatch"])
        _check.dispatched(enabled or not there, X, "X")
        return enabled and _check.namespace(X) is not np and (there or self._precomputed)

    def _read(self, X: Any, y: Any = None, **rules: Any) -> tuple[Array, Array]:
        """Check the inputs and labels of a fit, and set the attributes that describe inputs."""
        self.kernel_ = self._resolved()
        if self._images:
            rules |= IMAGES
        floats: tuple[Any, ...] = FLOATS
        if self._stays(X):
            xp = _check.namespace(X)
            floats = (xp.float64, xp.float32)
            y = None if y is None else _check.beside(y, "y", X, "X", any_dtype=True)
        elif get_config()["array_api_dispatch"]:
            X, y = on_host(X, "X"), on_host(y, "y")
        found = validate_data(self, X, y, dtype=floats, order="C", **rules)
        X, y = (found, None) if y is None else found
        if self._images:
            self.n_features_in_ = int(np.prod(X.shape[1:]))
        self._dtype = X.dtype
        if self._precomputed:
            X, self.X_fit_ = _check.gram(X, "X"), None
        else:
            self.X_fit_ = X = own(X)
        self._opened: dict[str, Any] = {}  # filled by predictions, which leave attributes alone
        self._place = None if isinstance(X, np.ndarray) else X[:0, ...]
        return X, y

    def _read_more(self, X: Any) -> Array:
        """Check inputs to predict against those of the fit, and convert them to its dtype."""
        check_is_fitted(self)
        if self._place is None:
            X = on_host(X, "X")
        else:
            self._stays(X)
            X = _check.beside(X, "X", self._place, "the fit")
        if not self._images:
            return validate_data(self, X, dtype=self._dtype, order="C", reset=False)
        X = check_array(X, dtype=self._dtype, order="C", **IMAGES)
        shape = self.X_fit_.shape[1:]
        rule = f"have the positions and channels of the fit, {shape}"
        return _check.shaped(X.shape[1:] == shape, X, "X", rule)

    def _gram(self, X: Array, arrays: int = 1, remedies: tuple[str, ...] = ("float32",)) -> Array:
        """Return the Gram matrix of a fit, which may be overwritten.

        The memory budget must hold ``arrays`` arrays of its size; that is checked first.
        """
        if isinstance(X, np.ndarray):
            _check.room("K", (len(X), len(X)), X.dtype, arrays + self._precomputed, remedies)
        if self._precomputed:
            return np.array(X) if isinstance(X, np.ndarray) else copied(X)
        if get_client() is not None:
            return GramOperator(self.kernel_, X).toarray()
        return self.kernel_(X, progress=bool(getattr(self, "verbose", False)))

    def _cross(self, X: Array) -> Array:
        if self.kernel_ == "precomputed":
            return X
        known = self.X_fit_
        if isinstance(known, np.ndarray) and known.flags.writeable:
            # Someone has put another array there, or changes this one.
            return self.kernel_(X, known)
        kernel, of, opened = self._opened.get("X_fit_", (None, None, None))
        if kernel is not self.kernel_ or of is not known:
            opened = self.kernel_._open(known, None, 1)
            self._opened["X_fit_"] = self.kernel_, known, opened
        return self.kernel_._against(opened, X)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return state | {"_opened": {}} if "_opened" in state else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if isinstance(known := self.__dict__.get("X_fit_"), np.ndarray):
            known.flags.writeable = False  # a copy, which nobody else has

    def _blocks(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Yield parts of X, and the kernel of each with all inputs of the fit."""
        n = X.shape[1] if self.kernel_ == "precomputed" else self.X_fit_.shape[0]
        itemsize = np.dtype(_check.dtype_name(X.dtype)).itemsize
        rows = min(BLOCK, budget() // 4) // (n * itemsize)
        for part in row_blocks(X.shape[0], rows):
            yield part, self._cross(take(X, part))

    def _expand(self, X: Array, alpha: Array) -> Array:
        many = X.shape[0] * alpha.shape[0] > FEW
        if many and get_client() is not None and self.kernel_ != "precomputed":
            return GramOperator(self.kernel_, X, self.X_fit_) @ alpha
        return joined([K @ alpha for _, K in self._blocks(X)])

    def _slope(self, X: ArrayLike, alpha: Array) -> Array:
        """Return the derivative of ``k(x, X_fit_) alpha`` by x at X: (m, d) or (m, d, r)."""
        X = self._read_more(X)
        _check.not_precomputed(self.kernel_ == "precomputed", "gradient must not be asked for")
        return self._sloped(X, alpha)

    def _sloped(self, X: Array, alpha: Array) -> Array:
        return self.kernel_.gradient(X, self.X_fit_, alpha)
