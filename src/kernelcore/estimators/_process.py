"""Gaussian processes: posteriors, and ensembles of trained networks.

With A = k(x, X) (K + noise I)^-1, a draw f0 from a prior with covariance c that is trained on
labels with noise e of its own becomes f0(x) + A (y + e - f0(X)). So the mean is A y, and the
covariance

    c(x, x') - A c(X, x') - c(x, X) A' + A (C + noise I) A'.

If c = k, that is the posterior, k(x, x') - A k(X, x'). If k is an NTK, c the NNGP and the noise
zero, it is that of infinitely wide networks trained to convergence (Lee et al. 2019, equation 16).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted

from .. import _check
from .._keywords import former_attribute, formerly, synonyms
from .._types import Array, ArrayLike, Self
from ..kernels import Kernel
from ..linalg import eigh, namespace_of
from ..linalg.arrays import cast, copied, placed, take, zeros
from ..linalg.factor import with_ridge
from ..solvers import RidgePath
from ._base import FLOATS, IMAGES, KernelLike, OfKernel, on_host, random_numbers
from ._factor import Cholesky, Spectral, arrays

FEWER = ("fewer points", "float32")


class GaussianProcess(MultiOutputMixin, RegressorMixin, OfKernel):
    """Gaussian-process regression: mean, deviation, covariance, samples, likelihood.

    Parameters
    ----------
    kernel : kernel, 'precomputed' or None
        The covariance of the prior, whose mean is zero; as in ``KernelRegressor``. With
        'precomputed' only means are predicted.
    noise_variance : 'likelihood', float or array of shape (n,)
        The variance of the noise of y, for all points or for each; or 'likelihood', to choose the
        one with the largest marginal likelihood. Where ``K + noise_variance I`` is singular,
        directions that K does not resolve are left out.
    initial : kernel, optional
        The covariance of functions before training, if ``kernel`` is the one that trains them:
        ``GaussianProcess(net.ntk, noise_variance=0.0, initial=net.nngp)`` describes all networks of
        infinite width at the end of gradient descent (Lee et al. 2019). With noise, each network
        has labels with noise of its own, and the variance of the noise as its ridge. By default it
        is ``kernel``, which gives the posterior.
    tune : None, 'likelihood', 'loo' or 'cv'
        How to choose ``kernel.hyperparameters()``, as in ``KernelRegressor``; noise that is given
        stays as it is. It must be None if ``initial`` is given.
    random_state : int, RandomState, Generator or None
        For ``tune``, which draws points and places to start from.
    ties : None or 'layers'
        As in ``KernelRegressor``.

    Attributes
    ----------
    noise_variance_ : float or array of shape (n,)
        As given, or chosen.
    alpha_ : array of shape (n,) or (n, r)
        ``(K + noise_variance I)^-1 y``.
    rkhs_norm_ : float, or array of shape (r,)
        The norm of the mean in the RKHS of ``kernel``.
    y_fit_ : array of shape (n,) or (n, r)
        The labels. Outputs are independent and share their covariance.
    X_fit_, kernel_, tuning_, n_features_in_
        As in ``KernelRegressor``.

    Notes
    -----
    Deviations are those of the function; new labels have ``noise_variance_`` more variance.
    Variances that rounding leaves below zero are set to zero. Before a fit, ``predict`` and
    ``sample_y`` are those of the prior. A fit takes n^3/3 flops if the noise is given, and 9 n^3
    otherwise; means at m points then take 2 n m flops, and deviations n^2 m.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X, y = np.array([[-1.0], [0.0], [1.0]]), np.array([0.5, 0.0, 0.5])
    >>> process = kc.GaussianProcess(kc.Gaussian(1.0), noise_variance=1e-6).fit(X, y)
    >>> mean, std = process.predict([[0.0], [9.0]], return_std=True)
    >>> mean.round(3), std.round(3)
    (array([0., 0.]), array([0.001, 1.   ]))
    >>> print(f"{process.log_marginal_likelihood():.3f}")
    -2.851

    A process that has not been fitted predicts the prior:

    >>> kc.GaussianProcess(kc.Gaussian(1.0)).predict([[0.0]], return_std=True)
    (array([0.]), array([1.]))
    """

    _kernels = ("kernel", "initial")
    _former = {"noise": "noise_variance"}
    noise_variance_: Any  # a number, or one for each point
    noise = former_attribute("noise", "noise_variance")
    noise_ = former_attribute("noise_", "noise_variance_")

    @formerly(noise="noise_variance")
    def __init__(
        self, kernel: KernelLike = None, noise_variance: ArrayLike = "likelihood",
        initial: Kernel | None = None, tune: str | None = None, random_state: Any = None,
        ties: str | None = "layers",
    ) -> None:  # fmt: skip
        self.kernel, self.noise_variance, self.initial = kernel, noise_variance, initial
        self.tune, self.random_state, self.ties = tune, random_state, ties

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Factorise the covariance; X and y are as in ``KernelRegressor.fit``."""
        noise: Any = self.noise_variance
        chosen = isinstance(noise, str)
        if chosen:
            _check.choice(noise, "noise_variance", ("likelihood",))
        else:
            there = None if _check.namespace(noise) is np else noise
            noise = _check.amounts(noise, "noise_variance", like=there)
        self._check_tune()
        if self.initial is not None:
            _check.unless(self.tune is not None, "tune", "None with initial", repr(self.tune))
            _check.a_kernel(self.initial, "initial", isinstance(self.initial, Kernel))
            _check.not_precomputed(self._precomputed, "initial must be None")
        X, y = self._read(X, y, multi_output=True, y_numeric=True)
        n, xp = X.shape[0], namespace_of(X)
        self.y_fit_ = copied(cast(y, X.dtype))
        if not chosen:
            rule = f"be a number or one per row of X, {n}"
            _check.shaped(noise.shape in ((), (n,)), noise, "noise_variance", rule)
            noise = _check.beside(noise, "noise_variance", X, "X") if noise.ndim else float(noise)
        rng = random_numbers(self.random_state)
        self._tune(X, self.y_fit_, rng, None, None if chosen else noise)
        held = arrays(n, 0.0, "eigen" if chosen else "cholesky")
        K = self._gram(X, held + (self.initial is not None))
        self._factor: Cholesky | Spectral
        if chosen:
            path = RidgePath(K, self.y_fit_, overwrite_K=xp is np)
            self.noise_variance_ = path.best(noise)
            self._factor = Spectral(path, self.noise_variance_)
        else:
            self.noise_variance_ = noise
            self._factor = factor = Cholesky(K, noise)
            if not factor.sound:
                K, each = factor.restore(), getattr(noise, "ndim", 0)
                if each:
                    K = with_ridge(K, noise, True)
                path = RidgePath(K, self.y_fit_, overwrite_K=xp is np)
                self._factor = Spectral(path, 0.0 if each else noise)
        self.alpha_ = self._factor.solve(self.y_fit_)
        wide, noise = cast(self.alpha_, np.float64), self.noise_variance_
        if getattr(noise, "ndim", 0):
            noise = xp.reshape(noise, (-1, *[1] * (y.ndim - 1)))
        square = xp.maximum(xp.sum(wide * (self.y_fit_ - noise * wide), axis=0), 0.0)
        self.rkhs_norm_ = xp.sqrt(square) if y.ndim > 1 else math.sqrt(square)
        self._initial_gram = None if self.initial is None else self.initial(X)
        return self

    def _prior(self, X: ArrayLike) -> tuple[Array, Kernel]:
        """Return the inputs and the covariance of a process that has not been fitted."""
        kernel = self._resolved() if self.initial is None else self.initial
        _check.not_precomputed(self._precomputed, "predict must not be called before fit")
        rules = IMAGES if kernel._images else {}
        floats: tuple[Any, ...] = FLOATS
        if self._stays(X):
            xp = _check.namespace(X)
            floats = (xp.float64, xp.float32)
        else:
            X = on_host(X, "X")
        return check_array(X, dtype=floats, order="C", **rules), kernel

    def predict(self, X: ArrayLike, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the mean of the function, and its deviation or covariance if asked for.

        Parameters
        ----------
        X : array of shape (m, d), of signals or of images
        return_std, return_cov : bool
            At most one of them may be True.

        Returns
        -------
        mean : array of shape (m,) or (m, r)
        std : array of shape (m,) or (m, r), if asked for
        cov : array of shape (m, m) or (m, m, r), if asked for
        """
        _check.either(return_std=return_std, return_cov=return_cov)
        if return_cov:
            mean, covariance = self._joint(X, "return_cov must be False")
            return mean, _per_output(covariance, mean)
        if not hasattr(self, "alpha_"):
            X, kernel = self._prior(X)
            mean = zeros((X.shape[0],), X)
            return (mean, namespace_of(X).sqrt(kernel.diag(X))) if return_std else mean
        X = self._read_more(X)
        if not return_std:
            return self._expand(X, self.alpha_)
        _check.not_precomputed(self.kernel_ == "precomputed", "return_std must be False")
        xp, m = namespace_of(X), X.shape[0]
        mean = zeros((m, *self.alpha_.shape[1:]), self.alpha_)
        variance = zeros((m,), X)
        for part, K in self._blocks(X):
            mean[part, ...] = K @ self.alpha_
            variance[part] = self._variance(take(X, part), K)
        return mean, _per_output(xp.sqrt(xp.maximum(variance, 0.0)), mean)

    def _joint(self, X: ArrayLike, rule: str) -> tuple[Array, Array]:
        """Return the mean, and the covariance that all outputs share; a matrix breaks ``rule``."""
        if not hasattr(self, "alpha_"):
            X, kernel = self._prior(X)
            return zeros((X.shape[0],), X), kernel(X)
        X = self._read_more(X)
        _check.not_precomputed(self.kernel_ == "precomputed", rule)
        K = self._cross(X)
        return K @ self.alpha_, self._covariance(X, K)

    def _variance(self, X: Array, K: Array) -> Array:
        xp = namespace_of(K)
        if self.initial is None:
            return self.kernel_.diag(X) - xp.sum(xp.square(self._factor.whiten(K.T)), axis=0)
        a = self._factor.solve(K.T).T
        mixed = xp.sum(a * self.initial(X, self.X_fit_), axis=1)
        spread = xp.sum((a @ self._initial_gram) * a, axis=1)
        noise = xp.sum(self.noise_variance_ * xp.square(a), axis=1)
        spread += noise if xp is np else cast(noise, spread.dtype)
        return self.initial.diag(X) - 2 * mixed + spread

    def _covariance(self, X: Array, K: Array) -> Array:
        if isinstance(X, np.ndarray):
            _check.room("covariances", (len(X), len(X)), X.dtype, 3, FEWER)
        if self.initial is None:
            white = self._factor.whiten(K.T)
            return self.kernel_(X) - white.T @ white
        a = self._factor.solve(K.T).T
        mixed = a @ self.initial(self.X_fit_, X)
        spread = a @ self._initial_gram @ a.T + (self.noise_variance_ * a) @ a.T
        return self.initial(X) - mixed - mixed.T + spread

    @synonyms(rng="random_state", seed="random_state")
    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draw functions from the fit, or from the prior before a fit.

        Parameters
        ----------
        X : array of shape (m, d), of signals or of images
        n_samples : int
        random_state : int, RandomState, Generator or None

        Returns
        -------
        array of shape (m, n_samples) or (m, r, n_samples)
        """
        n_samples = _check.count(n_samples, "n_samples", least=1)
        mean, covariance = self._joint(X, "sample_y must not be called")
        xp, m = namespace_of(mean), mean.shape[0]
        values, vectors = eigh(covariance)
        root = vectors * xp.sqrt(xp.maximum(values, 0.0))
        shape = (m, math.prod(mean.shape) // m, n_samples)
        draws = placed(random_numbers(random_state).standard_normal(shape), root, np.float64)
        found = xp.reshape(xp.tensordot(root, draws, axes=1), (*mean.shape, n_samples))
        return mean[..., None] + found

    @formerly(noise="noise_variance")
    def log_marginal_likelihood(
        self, noise_variance: ArrayLike | None = None, gradient: bool = False
    ) -> Any:
        """Return the logarithm of the likelihood of y under the prior and noise, over all outputs.

        Parameters
        ----------
        noise_variance : array_like, optional
            One variance or several, each the same for all points; by default that of the fit.
        gradient : bool
            Whether to return the derivative with respect to the variance as well.

        Returns
        -------
        float, or array of the shape of noise_variance; or two of them
            Noise other than that of the fit costs an eigendecomposition, unless the fit chose it.
        """
        check_is_fitted(self, "alpha_")
        noise = noise_variance
        plain = noise is None and not _check.flag(gradient, "gradient")
        each = noise is None and getattr(self.noise_variance_, "ndim", 0) > 0
        rule = "False where each point has a variance"
        _check.unless(each and gradient, "gradient", rule, "True")
        if isinstance(self._factor, Spectral):
            path = self._factor.path
        elif plain:
            n = self.y_fit_.shape[0]
            outputs = math.prod(self.y_fit_.shape) // n
            xp = namespace_of(self.y_fit_)
            fit = float(xp.sum(cast(self.alpha_, np.float64) * self.y_fit_))
            return -(fit + outputs * (self._factor.log_det() + n * math.log(2 * math.pi))) / 2
        else:
            K = self._factor.restore(copy=True)
            path = RidgePath(K, self.y_fit_, overwrite_K=isinstance(K, np.ndarray))
        if noise is None:
            noise = 0.0 if each else self.noise_variance_
        noise = _check.amounts(noise, "noise_variance")
        found = path.log_marginal_likelihood(noise, gradient)
        if np.ndim(noise):
            return found
        return tuple(float(x) for x in found) if gradient else float(found)


def _per_output(values: Array, mean: Array) -> Array:
    """Return what all outputs share, once for each output of ``mean``."""
    outputs = mean.shape[1:]
    if isinstance(mean, np.ndarray):
        _check.room("a covariance per output", (*values.shape, *outputs), values.dtype, 1, FEWER)
    xp = namespace_of(values)
    return xp.repeat(values[..., None], outputs[0], axis=-1) if outputs else values
