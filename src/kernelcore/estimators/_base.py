"""What all estimators do with their kernel: which it is, its inputs, and its values in blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .. import _check, _keywords, presets
from ..kernels import Kernel

Array = np.ndarray

FLOATS = (np.float64, np.float32)
BLOCK = 2**26
"""Bytes of kernel values that exist at a time when predicting."""


def random_numbers(random_state) -> np.random.RandomState:
    """A source of random numbers from what scikit-learn takes, or from a Generator."""
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    return check_random_state(random_state)


class OfKernel(BaseEstimator):
    """Base of all estimators: ``kernel`` is a kernel, None for the default, or 'precomputed'."""

    _kernels = ("kernel",)  # parameters that are kernels
    _former: dict[str, str] = {}  # old names of parameters

    def get_params(self, deep: bool = True) -> dict:
        """Parameters by name; with ``deep`` those of kernels too, as ``kernel__lengthscale``."""
        params = super().get_params(deep)
        for name in self._kernels if deep else ():
            if isinstance(value := params[name], Kernel):
                inside = value.parameters(deep=True)
                params |= {f"{name}__{key}": x for key, x in inside.items()}
        return params

    def set_params(self, **params):
        """Set parameters; ``kernel__lengthscale=2.0`` puts a changed kernel in place of the old."""
        inside: dict[str, dict] = {name: {} for name in self._kernels}
        for key in list(params):
            if key in self._former:
                _keywords.deprecated(key, self._former[key])
                params[self._former[key]] = params.pop(key)
                continue
            name, found, inner = key.partition("__")
            if found and name in inside:
                inside[name][inner] = params.pop(key)
        super().set_params(**params)
        for name, changes in inside.items():
            if changes:
                value = getattr(self, name)
                kernel = _check.a_kernel(value, name, isinstance(value, Kernel))
                setattr(self, name, kernel.replace(**changes))
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        return tags

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _default(self) -> Kernel:
        # without a bias, one-dimensional data shows only its sign
        return presets.mlp(2, b_std=0.1).ntk

    def _resolved(self) -> Kernel | str:
        if self._precomputed:
            return self.kernel
        kernel = self._default() if self.kernel is None else self.kernel
        return _check.a_kernel(kernel, "kernel", isinstance(kernel, Kernel), ", 'precomputed'")

    @property
    def _images(self) -> bool:
        return self.kernel_ != "precomputed" and self.kernel_._images

    def _read(self, X, y=None, **rules):
        """Inputs and labels to fit, checked; what is known of inputs is set."""
        self.kernel_ = self._resolved()
        if self._images:
            rules |= {"ensure_2d": False, "allow_nd": True}
        if y is not None or self.__sklearn_tags__().target_tags.required:
            X, y = validate_data(self, X, y, dtype=FLOATS, order="C", **rules)
        else:
            X = validate_data(self, X, dtype=FLOATS, order="C", **rules)
        if self._images:
            self.n_features_in_ = int(np.prod(X.shape[1:]))
        self._dtype = X.dtype
        if self._precomputed:
            X = _check.gram(X, "X")
        self.X_fit_ = None if self._precomputed else X
        return X if y is None else (X, y)

    def _read_more(self, X) -> Array:
        """Inputs to predict, checked against those of the fit and taken to their dtype."""
        check_is_fitted(self)
        if not self._images:
            return validate_data(self, X, dtype=self._dtype, order="C", reset=False)
        X = check_array(X, dtype=self._dtype, order="C", ensure_2d=False, allow_nd=True)
        return _check.like_fitted(X, self.X_fit_.shape)

    def _weights(self, sample_weight, X: Array) -> Array | None:
        """Weights of points, checked."""
        return None if sample_weight is None else _check.sample_weights(sample_weight, len(X))

    def _gram(self, X: Array, arrays: int = 1, remedies: tuple[str, ...] = ("float32",)) -> Array:
        """Of the inputs of a fit: an array that may be overwritten.

        Refused before it is computed where the budget does not hold so many of its size.
        """
        _check.room("K", (len(X), len(X)), X.dtype, arrays + self._precomputed, remedies)
        if self._precomputed:
            return np.array(X)
        return self.kernel_(X, progress=bool(getattr(self, "verbose", False)))

    def _cross(self, X: Array) -> Array:
        return X if self.kernel_ == "precomputed" else self.kernel_(X, self.X_fit_)

    def _blocks(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Parts of X, and the kernel of each with all inputs of the fit."""
        n = X.shape[1] if self.kernel_ == "precomputed" else len(self.X_fit_)
        rows = max(1, BLOCK // (n * X.dtype.itemsize))
        for i in range(0, len(X), rows):
            part = slice(i, i + rows)
            yield part, self._cross(X[part])

    def _expand(self, X: Array, alpha: Array) -> Array:
        """``k(X, X_fit_) @ alpha``."""
        out = np.empty((len(X), *alpha.shape[1:]), alpha.dtype)
        for part, K in self._blocks(X):
            out[part] = K @ alpha
        return out
