"""Gaussian processes: posteriors, and ensembles of trained networks.

With A = k(x, X) (K + noise I)^-1 every draw f0 of a prior with covariance c, trained on labels with
noise of their own, becomes f0(x) + A (y + e - f0(X)). So the mean is A y and the covariance

    c(x, x') - A c(X, x') - c(x, X) A' + A (C + noise I) A'.

With c = k it is the posterior, k(x, x') - A k(X, x'); with k an NTK, c the NNGP and no noise it is
that of infinitely wide networks trained to convergence (Lee et al. 2019, equation 16).
"""

from __future__ import annotations

import math

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted

from .. import _check
from .._keywords import former_attribute, formerly, synonyms
from ..kernels import Kernel
from ..linalg import eigh
from ..solvers import RidgePath
from ._base import FLOATS, OfKernel, random_numbers
from ._factor import Cholesky, Spectral, arrays

Array = np.ndarray

FEWER = ("fewer points", "float32")


class GaussianProcess(MultiOutputMixin, RegressorMixin, OfKernel):
    """Gaussian-process regression: mean, deviation, covariance, samples, likelihood.

    Parameters
    ----------
    kernel : kernel, 'precomputed' or None
        The covariance of the prior, whose mean is zero; as in ``KernelRegressor``. A precomputed
        one predicts means only.
    noise_variance : 'likelihood', float or array of shape (n,)
        Variance of the noise of y, the same for all points or one for each; or that it is chosen by
        the largest marginal likelihood. Where ``K + noise_variance I`` is singular, directions that
        K does not resolve are left out.
    initial : kernel, optional
        The covariance of functions before training, where ``kernel`` is the one that trains:
        ``GaussianProcess(net.ntk, noise_variance=0.0, initial=net.nngp)`` are all networks of
        infinite width at the end of gradient descent (Lee et al. 2019). With noise each network has
        labels with noise of its own and its variance as ridge. By default that of ``kernel``: the
        posterior.

    Attributes
    ----------
    noise_variance_ : float or array of shape (n,)
        As given, or chosen.
    alpha_ : array of shape (n,) or (n, r)
        ``(K + noise_variance I)^-1 y``.
    rkhs_norm_ : float, or array of shape (r,)
        Of the mean in the RKHS of ``kernel``.
    y_fit_ : array of shape (n,) or (n, r)
        Outputs are independent and share their covariance.
    X_fit_, kernel_, n_features_in_
        As in ``KernelRegressor``.

    Notes
    -----
    Deviations are of the function; those of new labels have ``noise_variance_`` more variance.
    Variances that rounding leaves below zero are zero. Before a fit ``predict`` and ``sample_y``
    are those of the prior. Work: n^3/3 flops with noise that is given, 9 n^3 otherwise, then 2 n m
    for means and n^2 m for deviations at m points.

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

    The prior, of a process that has seen nothing:

    >>> kc.GaussianProcess(kc.Gaussian(1.0)).predict([[0.0]], return_std=True)
    (array([0.]), array([1.]))
    """

    _kernels = ("kernel", "initial")
    _former = {"noise": "noise_variance"}

    noise = former_attribute("noise", "noise_variance")
    noise_ = former_attribute("noise_", "noise_variance_")

    @formerly(noise="noise_variance")
    def __init__(self, kernel=None, noise_variance="likelihood", initial=None):
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.initial = initial

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def fit(self, X, y):
        """Factorise the covariance.

        Parameters
        ----------
        X : array of shape (n, d), of signals or of images
        y : array of shape (n,) or (n, r)

        Returns
        -------
        self
        """
        noise = self.noise_variance
        if isinstance(noise, str):
            _check.choice(noise, "noise_variance", ("likelihood",))
        else:
            noise = _check.amounts(noise, "noise_variance")
        if self.initial is not None:
            _check.a_kernel(self.initial, "initial", isinstance(self.initial, Kernel))
            _check.not_precomputed(self._precomputed, "initial must be None")
        X, y = self._read(X, y, multi_output=True, y_numeric=True)
        self.y_fit_ = y.astype(X.dtype)
        if not isinstance(noise, str):
            noise = _check.one_or_each(noise, "noise_variance", len(X))
        solver = "eigen" if isinstance(noise, str) else "cholesky"
        K = self._gram(X, arrays(len(X), 0.0, solver) + (self.initial is not None))
        if isinstance(noise, str):
            path = RidgePath(K, self.y_fit_, overwrite_K=True)
            self.noise_variance_ = path.best(noise)
            self._factor = Spectral(path, self.noise_variance_)
        else:
            self.noise_variance_ = noise
            self._factor = self._factorise(K)
        self.alpha_ = self._factor.solve(self.y_fit_)
        wide = self.alpha_.astype(np.float64)
        square = np.maximum((wide * (self.y_fit_ - self._noise(y.ndim) * wide)).sum(0), 0)
        self.rkhs_norm_ = np.sqrt(square) if y.ndim > 1 else math.sqrt(square)
        self._initial_gram = None if self.initial is None else self.initial(X)
        return self

    def _factorise(self, K: Array) -> Cholesky | Spectral:
        """``K + noise_variance_ I`` by Cholesky, or by eigenvectors where it is singular."""
        factor = Cholesky(K, self.noise_variance_)
        if factor.sound:
            return factor
        K, ridge = factor.restore(), self.noise_variance_
        if np.ndim(ridge):
            K[np.diag_indices(len(K))] += ridge.astype(K.dtype)
            ridge = 0.0
        return Spectral(RidgePath(K, self.y_fit_, overwrite_K=True), ridge)

    def _noise(self, ndim: int) -> float | Array:
        """The variances along the first of ``ndim`` axes."""
        noise = self.noise_variance_
        return noise.reshape(-1, *[1] * (ndim - 1)) if np.ndim(noise) else noise

    def _prior(self, X) -> tuple[Array, Kernel]:
        """Inputs and the covariance of a process that has not been fitted."""
        kernel = self._resolved() if self.initial is None else self.initial
        _check.not_precomputed(self._precomputed, "predict must not be called before fit")
        images = {"ensure_2d": False, "allow_nd": True} if kernel._images else {}
        return check_array(X, dtype=FLOATS, order="C", **images), kernel

    def predict(self, X, return_std: bool = False, return_cov: bool = False):
        """Mean of the function, and its deviation or covariance.

        Parameters
        ----------
        X : array of shape (m, d), of signals or of images
        return_std, return_cov : bool
            One of them at most.

        Returns
        -------
        mean : array of shape (m,) or (m, r)
        std : array of shape (m,) or (m, r), if asked for
        cov : array of shape (m, m) or (m, m, r), if asked for
        """
        _check.either(return_std=return_std, return_cov=return_cov)
        if not hasattr(self, "alpha_"):
            X, kernel = self._prior(X)
            mean = np.zeros(len(X), X.dtype)
            if return_cov:
                return mean, kernel(X)
            return (mean, np.sqrt(kernel.diag(X))) if return_std else mean
        X = self._read_more(X)
        if not (return_std or return_cov):
            return self._expand(X, self.alpha_)
        which = "return_std" if return_std else "return_cov"
        _check.not_precomputed(self.kernel_ == "precomputed", f"{which} must be False")
        if return_cov:
            K = self._cross(X)
            return K @ self.alpha_, self._per_output(self._covariance(X, K))
        mean = np.empty((len(X), *self.alpha_.shape[1:]), self.alpha_.dtype)
        variance = np.empty(len(X), X.dtype)
        for part, K in self._blocks(X):
            mean[part] = K @ self.alpha_
            variance[part] = self._variance(X[part], K)
        return mean, self._per_output(np.sqrt(np.maximum(variance, 0)))

    def _per_output(self, values: Array) -> Array:
        outputs = self.alpha_.shape[1:]
        _check.room("a covariance per output", (*values.shape, *outputs), values.dtype, 1, FEWER)
        return np.repeat(values[..., None], outputs[0], axis=-1) if outputs else values

    def _variance(self, X: Array, K: Array) -> Array:
        if self.initial is None:
            return self.kernel_.diag(X) - np.square(self._factor.whiten(K.T)).sum(0)
        a = self._factor.solve(K.T).T
        mixed = (a * self.initial(X, self.X_fit_)).sum(1)
        spread = ((a @ self._initial_gram) * a).sum(1)
        spread += (self.noise_variance_ * np.square(a)).sum(1)
        return self.initial.diag(X) - 2 * mixed + spread

    def _covariance(self, X: Array, K: Array) -> Array:
        _check.room("covariances", (len(X), len(X)), X.dtype, 3, FEWER)
        if self.initial is None:
            white = self._factor.whiten(K.T)
            return self.kernel_(X) - white.T @ white
        a = self._factor.solve(K.T).T
        mixed = a @ self.initial(self.X_fit_, X)
        spread = a @ self._initial_gram @ a.T + (self.noise_variance_ * a) @ a.T
        return self.initial(X) - mixed - mixed.T + spread

    @synonyms(rng="random_state", seed="random_state")
    def sample_y(self, X, n_samples: int = 1, random_state=0) -> Array:
        """Draws of the function after the fit, or of the prior before it.

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
        mean, covariance = self._joint(X)
        values, vectors = eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0))
        shape = (len(mean), mean.size // len(mean), n_samples)
        draws = random_numbers(random_state).standard_normal(shape)
        return mean[..., None] + np.tensordot(root, draws, 1).reshape(*mean.shape, n_samples)

    def _joint(self, X) -> tuple[Array, Array]:
        """Mean, and the covariance that all outputs share."""
        if not hasattr(self, "alpha_"):
            return self.predict(X, return_cov=True)
        X = self._read_more(X)
        _check.not_precomputed(self.kernel_ == "precomputed", "sample_y must not be called")
        K = self._cross(X)
        return K @ self.alpha_, self._covariance(X, K)

    @formerly(noise="noise_variance")
    def log_marginal_likelihood(self, noise_variance=None, gradient: bool = False):
        """Of y, under the prior and noise, summed over outputs.

        Parameters
        ----------
        noise_variance : array_like, optional
            One or several, each the same for all points; that of the fit by default.
        gradient : bool
            Return the derivative with respect to the variance too.

        Returns
        -------
        float, or array of the shape of noise_variance; or two of them
            Other noise than that of the fit costs an eigendecomposition, unless it was chosen.
        """
        check_is_fitted(self, "alpha_")
        noise = noise_variance
        plain = noise is None and not _check.flag(gradient, "gradient")
        each = noise is None and np.ndim(self.noise_variance_)
        _check.unless(
            bool(each and gradient), "gradient", "False where each point has a variance", "True"
        )
        if plain and isinstance(self._factor, Cholesky):
            n, outputs = len(self.y_fit_), self.y_fit_.size // len(self.y_fit_)
            fit = float((self.alpha_.astype(np.float64) * self.y_fit_).sum())
            return -(fit + outputs * (self._factor.log_det() + n * math.log(2 * math.pi))) / 2
        if isinstance(self._factor, Cholesky):
            path = RidgePath(self._factor.matrix(), self.y_fit_, overwrite_K=True)
        else:
            path = self._factor.path
        if noise is None:
            noise = 0.0 if each else self.noise_variance_
        noise = _check.amounts(noise, "noise_variance")
        found = path.log_marginal_likelihood(noise, gradient)
        if np.ndim(noise):
            return found
        return tuple(float(x) for x in found) if gradient else float(found)
