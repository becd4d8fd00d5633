"""Ridge regression on features, in the primal or the dual, without holding all features."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..engine import threads as _threads
from ..engine.progress import Progress
from ..linalg import Cholesky, gram_product, namespace_of, symmetric_product
from ..linalg.arrays import cast, on_diagonal, take, zeros
from ..linalg.blas import row_blocks
from ..solvers import RidgePath
from ._path import FeaturePath
from ._transformer import Transformer, chunk_rows, multiply

SOLVERS = ("auto", "primal", "dual")


@dataclass(eq=False, repr=False)
class FeatureRidge:
    """A fitted linear function of features; made by ``ridge_features``.

    Attributes
    ----------
    coefficients : array of shape (N,) or (N, outputs), float64
    solver : {"primal", "dual", "bounded"}
    ridge : float
        As given, or chosen.
    """

    features: Transformer | None
    coefficients: Array
    solver: str
    ridge: float

    def __repr__(self) -> str:
        n = self.coefficients.shape[0]
        return f"FeatureRidge({self.features!r}, {n} coefficients, {self.solver})"

    @property
    def norm(self) -> Array:
        """The norm of each output in the RKHS of ``Z @ Z.T``, and in the limit that of K."""
        xp = namespace_of(self.coefficients)
        return xp.sqrt(xp.sum(self.coefficients**2, axis=0))

    def predict(self, X: ArrayLike) -> Array:
        """Evaluate the function at the rows of X, which are features if the fit was on features.

        Returns
        -------
        array of shape (n,) or (n, outputs), of the dtype of X
        """
        x = _source(self.features, X, self.coefficients)
        wanted = self.coefficients.shape[0]
        fine = self.features is not None or x.shape[1] == wanted
        _check.shaped(fine, x, "X", f"have one column per feature, {wanted}")
        c = cast(self.coefficients, x.dtype)
        result = zeros((x.shape[0], *c.shape[1:]), x)
        for rows, z in _chunks(self.features, x, wanted):
            multiply(z, c, result, rows, ...)
        return result


def ridge_features(
    features: Transformer | None, X: ArrayLike, y: ArrayLike, ridge: float | str, *,
    solver: str = "auto", bound: float | None = None, progress: bool = False,
) -> FeatureRidge:  # fmt: skip
    """Fit by ridge regression on features: ``min |Z c - y|^2 + ridge |c|^2``.

    Predictions are those of kernel ridge regression with ``K = Z @ Z.T`` and ``K + ridge I``.

    Parameters
    ----------
    features : Transformer or None
        A fitted transformer, or None if X are features already.
    X : array of shape (n, d), or of signals or images for features of these
    y : array of shape (n,) or (n, outputs)
    ridge : float, not negative, or 'loo'
        'loo' is the one with the least leave-one-out error, of 41 in the primal, and as
        ``solvers.RidgePath`` finds it in the dual.
    solver : {"auto", "primal", "dual"}
        Whether to solve with ``Z'Z + ridge`` of size N or ``Z Z' + ridge`` of size n; by default
        the smaller of both.
    bound : float, optional
        C: minimise subject to ``|c_j| <= C / sqrt(N)`` (Rahimi and Recht 2009: ``|theta_j| <= C/N``
        of features without their factor ``1/sqrt(N)``), in the primal, by L-BFGS-B.
    progress : bool
        Write a line to stderr every two seconds.

    Returns
    -------
    FeatureRidge

    Notes
    -----
    Memory holds one matrix of the smaller size in float64, two in the dual, and 64 MB of features
    at a time (those of ``transform``, cast if they are float32). The primal takes n N^2 flops; the
    dual takes n^2 N, and computes features of all but the first 64 MB again for each chunk, or
    n^2 (N + d) for ``TangentFeatures``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> features = kc.features.FourierFeatures(kc.Gaussian(0.3), 2000, seed=0).fit(X)
    >>> fit = kc.features.ridge_features(features, X, np.sin(5 * X[:, 0]), 1e-3)
    >>> fit.solver, bool(np.abs(fit.predict(X) - np.sin(5 * X[:, 0])).max() < 0.01)
    ('dual', True)
    """
    x = _check.some_rows(_source(features, X), "X")
    n, here = x.shape[0], isinstance(x, np.ndarray)
    n_features = x.shape[1] if features is None else features.n_features_out_
    target = cast(_check.finite_array(y, "y", x, "X"), np.float64)
    rule = f"have one value or row per row of X, {n}"
    _check.shaped(target.ndim in (1, 2) and target.shape[0] == n, target, "y", rule)
    if isinstance(ridge, str):
        _check.choice(ridge, "ridge", ("loo",))
        if not here:  # its passes are NumPy's
            _check.not_beside(ridge, "ridge 'loo'", "X of another library than NumPy")
        _check.not_beside(bound, "bound", "ridge 'loo'")
    else:
        ridge = _check.non_negative(ridge, "ridge")
    _check.choice(solver, "solver", SOLVERS)
    told = Progress("ridge_features, rows", n, _check.flag(progress, "progress"))
    if bound is not None:
        if not here:  # L-BFGS-B is SciPy's
            _check.not_beside(bound, "bound", "X of another library than NumPy")
        bound = _check.positive(bound, "bound")
        _check.unless(
            solver == "dual", "solver", "'auto' or 'primal' where a bound is given", repr(solver)
        )
        _check.room("Z'Z", (n_features, n_features), np.float64, 2, ("fewer features",))
        solver = "bounded"
    elif solver == "auto":
        solver = "primal" if n_features <= n else "dual"
    c = zeros((n_features, *target.shape[1:]), x, np.float64)
    if solver == "dual":
        if here:
            _check.room("ZZ'", (n, n), np.float64, 2, ("solver='primal'", "fewer points"))
        wide = cast(x, np.float64)
        K = wide @ wide.T if features is None else features.gram(wide, progress=progress)
        if isinstance(ridge, str):
            path = RidgePath(K, target, overwrite_K=True)
            ridge = path.best(ridge)
            alpha = path.alpha(ridge)
        else:
            alpha = _solve(K, target, ridge)
        for rows, z in _chunks(features, x, n_features):
            c += cast(z.T, np.float64) @ alpha[rows, ...]
        return FeatureRidge(features, c, solver, ridge)
    remedies = ("solver='dual'", "fewer features")
    if here:
        _check.room("Z'Z", (n_features, n_features), np.float64, 1, remedies)
    if isinstance(ridge, str):
        every = FeaturePath(
            lambda: _chunks(features, x, n_features), target.reshape(n, -1), n_features
        )
        ridge = every.best()[0]
        return FeatureRidge(features, every.coefficients(ridge).reshape(c.shape), solver, ridge)
    # the lower half of Z'Z, in Fortran order; c becomes Z'y
    a = zeros((n_features, n_features), x, np.float64).T
    for rows, z in _chunks(features, x, n_features):
        wide = cast(z, np.float64)
        a = gram_product(wide, a, lower=True)
        c += wide.T @ target[rows, ...]
        told.at(rows.stop)
    c = _solve(a, c, ridge) if bound is None else _bounded(a, c, ridge, bound)
    return FeatureRidge(features, c, solver, ridge)


def _source(features: Transformer | None, X: ArrayLike, like: Any = None) -> Array:
    """Return rows, where ``like`` is if that is given."""
    if features is None:
        if isinstance(like, np.ndarray):
            return _check.table(X, "X")
        if like is not None:
            X = _check.beside(X, "X", like, "coefficients")
        return _check.any_table(X, "X")
    _check.an_instance(features, Transformer, "features", "a Transformer or None")
    return features._rows(X)


def _chunks(features: Transformer | None, x: Array, columns: int) -> Iterator[tuple[slice, Array]]:
    """Yield slices of rows with their features, which the next ones overwrite."""
    if features is not None:
        return features._chunks(x, _threads.resolve(None))
    return ((rows, take(x, rows)) for rows in row_blocks(x.shape[0], chunk_rows(columns)))


def _solve(a: Array, b: Array, ridge: float) -> Array:
    """Return (a + ridge I)^-1 b from the lower half of a, which is overwritten."""
    size = float(namespace_of(a).max(on_diagonal(a)))
    factor = Cholesky(a, ridge, lower=True, overwrite=True)
    if factor.order:
        least = a.shape[0] * np.finfo(float).eps * max(size, np.finfo(float).tiny)
        raise ValueError(
            f"ridge must make the system positive definite: {ridge} does not, from row "
            f"{factor.order - 1} on; {least:.1e} is at the rounding of its entries"
        )
    return factor.solve(b)


def _bounded(a: Array, b: Array, ridge: float, bound: float) -> Array:
    """Find the minimum in a box, for each output by itself."""
    from scipy.optimize import minimize

    limit = bound / math.sqrt(len(a))
    try:
        start = np.clip(_solve(a.copy(order="F"), b, ridge), -limit, limit)
    except ValueError:  # a box has a minimum where the whole space has none
        start = np.zeros_like(b)
    np.einsum("ii->i", a)[...] += ridge
    columns = []
    for column, first in zip(b.reshape(len(b), -1).T, start.reshape(len(b), -1).T, strict=True):
        scale = max(float(np.abs(column).max()), np.finfo(float).tiny)

        def value(c: Array, column: Array = column, scale: float = scale) -> tuple[float, Array]:
            product = symmetric_product(a, c, lower=True)
            return (c @ product / 2 - c @ column) / scale, (product - column) / scale

        done = minimize(
            value, first, jac=True, method="L-BFGS-B",
            bounds=[(-limit, limit)] * len(a),
            options={"maxiter": 20_000, "maxfun": 40_000, "gtol": 1e-8, "ftol": 0.0, "maxcor": 30},
        )  # fmt: skip
        gradient = value(done.x)[1]
        left = float(np.abs(np.clip(done.x - gradient, -limit, limit) - done.x).max())
        if left > 1e-6:
            warnings.warn(
                f"the bounded fit did not converge: projected gradient {left:.1e} of that at 0 "
                f"after {done.nit} iterations",
                RuntimeWarning,
                stacklevel=4,
            )
        columns.append(done.x)
    return np.stack(columns, axis=-1).reshape(b.shape)
