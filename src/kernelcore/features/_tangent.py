"""Gradients of a two-layer network at initialisation as features of the tangent kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np

from .. import _check
from .._types import Array
from ..architecture import Sequential
from ..engine.progress import Progress
from ..layers import Dense
from ..layers.activations import Activation, RectifiedPower, Relu, Step, _Activation
from ..linalg import namespace_of
from ..linalg.arrays import joined, take, zeros
from ..linalg.blas import row_blocks
from ._network import apply, checked, power_of
from ._transformer import HELD, Transformer, multiply, normal_rows, seeded_class

LAYERS = ("both", "first", "second")


@seeded_class
@dataclass(repr=False, eq=False)
class TangentFeatures(Transformer):
    """The gradient of a random network of one hidden layer: features of its NTK.

    The network is ``f(x) = (s2 / sqrt N) sum_j a_j phi(h_j) + c2 b'`` with
    ``h_j = (s1 / sqrt d) w_j'x + c1 b_j``, s and c the ``w_std`` and ``b_std`` of both layers.

    Parameters
    ----------
    width : int
        N, the number of hidden units.
    activation : activation, optional
        ``Relu()`` by default.
    layers : {"both", "first", "second"}
        The layers whose parameters the gradient is taken in. "first":
        ``s2/sqrt(N) a_j phi'(h_j) (s1/sqrt(d) x, c1)``, unit by unit, N (d + 1) columns, or N d
        where ``b_std`` is 0; "second": ``s2/sqrt(N) phi(h_j)``, N columns, and ``c2`` where it is
        not 0; "both": the columns of the first, then those of the second.
    w_std : float, optional
        For both layers; by default 1 for the first and sqrt 2 for the second, as ``presets.mlp``.
    b_std : float
        For both layers.
    readout : {"signs", "normal"}
        How a_j is drawn: as random signs, or as normal numbers, which have the same kernel and a
        larger variance.
    derivative : callable, optional
        The derivative of an ``Activation(fn)``; other activations know theirs.
    seed : int, numpy.random.Generator or None

    Notes
    -----
    The result is d times as large as the matrix product it contains, and takes as long as writing
    it; ``gram`` and the dual of ``ridge_features`` never form it.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.random.default_rng(0).standard_normal((4, 3))
    >>> features = kc.features.TangentFeatures(20_000, seed=0).fit(X)
    >>> features.kernel_ == kc.presets.mlp(1).ntk, features.n_features_out_
    (True, 80000)
    >>> bool(np.abs(features.gram(X) - kc.presets.mlp(1).ntk(X)).max() < 0.1)
    True
    """

    width: int = 100
    activation: _Activation | None = None
    _: KW_ONLY
    layers: str = "both"
    w_std: float | None = None
    b_std: float = 0.0
    readout: str = "signs"
    derivative: Callable[[Array], Array] | None = None
    seed: int | np.random.Generator | None = None

    def _draw(self, d: int, rng: np.random.Generator) -> dict[str, Array]:
        phi = self._phi = checked(self.activation)
        if self.derivative is None:
            phi.derivative(0.0)  # raises if it has none
        elif not callable(self.derivative):
            raise TypeError(f"derivative must be callable: got {type(self.derivative).__name__}")
        n = _check.count(self.width, "width", least=1)
        layers = _check.choice(self.layers, "layers", LAYERS)
        first, second = layers != "second", layers != "first"
        stds = (1.0, math.sqrt(2)) if self.w_std is None else (self.w_std, self.w_std)
        one = self._one = Dense(stds[0], self.b_std, trainable=first)
        two = self._two = Dense(stds[1], self.b_std, trainable=second)
        signs = _check.choice(self.readout, "readout", ("signs", "normal")) == "signs"
        arrays = {"weights_": normal_rows(n, d, rng, False) * (one.w_std / math.sqrt(d))}
        arrays["readout_"] = rng.choice([-1.0, 1.0], n) if signs else rng.standard_normal(n)
        if one.b_std:
            arrays["biases_"] = one.b_std * rng.standard_normal(n)
        self._wide = n * (d + (one.b_std > 0)) if first else 0
        columns = self._wide + (n + (two.b_std > 0) if second else 0)
        self._limit(Sequential(one, phi, two).ntk, columns)
        return arrays

    def _slope(self, h: Array) -> Array:
        slope = self._phi.derivative if self.derivative is None else self.derivative
        return np.asarray(slope(h), h.dtype) if isinstance(h, np.ndarray) else slope(h)

    def _factors(self, x: Array, arrays: dict[str, Array]) -> tuple[Array, Array, Array]:
        """Return signals and inputs, whose product is the gradient of layer one, and units."""
        h = x @ arrays["weights_"].T
        if "biases_" in arrays:
            h += arrays["biases_"]
        signals, scale = h, self._two.w_std / math.sqrt(h.shape[1])
        if self._wide:
            signals = self._slope(h) * arrays["readout_"]
            signals *= scale
        if self._two.trainable:
            apply(self._phi, h)
            h *= scale
        inputs = x * (self._one.w_std / math.sqrt(x.shape[1]))
        if self._one.b_std:
            bias = zeros((x.shape[0], 1), x) + self._one.b_std
            inputs = joined([inputs, bias], axis=1)
        return signals, inputs, h

    def _block(self, x: Array, out: Array, arrays: dict[str, Array]) -> None:
        signals, inputs, units = self._factors(x, arrays)
        n = units.shape[1]
        if self._wide and not isinstance(x, np.ndarray):
            gradients = signals[:, :, None] * inputs[:, None, :]
            out[:, : self._wide] = namespace_of(x).reshape(gradients, (-1, self._wide))
        elif self._wide:
            for row, signal, given in zip(out, signals, inputs, strict=True):
                part = row[: self._wide].reshape(n, inputs.shape[1])
                np.multiply(signal[:, None], given, out=part)
        if self._two.trainable:
            out[:, self._wide : self._wide + n] = units
            if self._two.b_std:
                out[:, -1] = self._two.b_std

    def _gram(self, x: Array, y: Array, n_threads: int, told: Progress) -> Array:
        arrays = self._arrays(x.dtype)
        if isinstance(x, np.ndarray):
            _check.room("K", (len(x), len(y)), x.dtype, 1, HELD)
        result = zeros((x.shape[0], y.shape[0]), x)
        step = max(1, 2**21 // arrays["weights_"].shape[0])
        for i in row_blocks(x.shape[0], step):
            a = self._factors(take(x, i), arrays)
            for j in row_blocks(y.shape[0], step):
                b = a if y is x and i == j else self._factors(take(y, j), arrays)
                if self._wide:
                    multiply(a[0], b[0].T, result, i, j)
                    result[i, j] *= a[1] @ b[1].T
                if self._two.trainable:
                    result[i, j] += a[2] @ b[2].T
                    result[i, j] += self._two.b_std**2
                told.at(i.start)
        return result

    def _variance(self, X: Array) -> Array | None:
        phi, slope = self._phi, self._slope
        relu = power_of(phi) == 1
        if not relu and phi._kinked:
            return None
        # An entry is the mean over units of s2^2 (A + c a^2 B): A = phi phi, B = phi' phi', c the
        # kernel of the first layer. These are the duals of A^2, A B and B^2.
        squares: tuple[_Activation, ...] = (RectifiedPower(2), Relu(), Step())
        if not relu:
            squares = (
                Activation(lambda t: phi(t) ** 2),
                Activation(lambda t: phi(t) * slope(t)),
                Activation(lambda t: slope(t) ** 2),
            )
        before = Dense(self._one.w_std, self._one.b_std)
        aa, ab, bb = (Sequential(before, f, Dense()).nngp(X) for f in squares)
        value, tangent = Sequential(before, phi, Dense(1.0, trainable=False)).kernels(X)
        with_a, with_w = float(self._two.trainable), float(self._one.trainable)
        c = with_w * Sequential(before).nngp(X)
        fourth = 1.0 if self.readout == "signs" else 3.0
        second = with_a * aa + 2 * with_a * c * ab + fourth * c**2 * bb
        mean = with_a * value + with_w * tangent
        return self._two.w_std**4 * np.maximum(second - mean**2, 0) / len(self.weights_)
