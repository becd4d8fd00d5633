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
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import _check
from ..kernels import Kernel
from ..solvers import RidgePath
from ._base import OfKernel
from ._factor import Cholesky, Spectral

Array = np.ndarray


class GaussianProcess(MultiOutputMixin, RegressorMixin, OfKernel):
    """Gaussian-process regression: mean, deviation, covariance, samples, likelihood.

    Parameters
    ----------
    kernel : kernel, 'precomputed' or None
        The covariance of the prior, whose mean is zero; as in ``KernelRegressor``. A precomputed
        one predicts means only.
    noise : 'likelihood' or float
        Variance of the noise of y, or that it is chosen by the largest marginal likelihood. Where
        ``K + noise I`` is singular, directions that K does not resolve are left out.
    initial : kernel, optional
        The covariance of functions before training, where ``kernel`` is the one that trains:
        ``GaussianProcess(net.ntk, noise=0.0, initial=net.nngp)`` are all networks of infinite
        width at the end of gradient descent (Lee et al. 2019). With noise each network has labels
        with noise of its own and ``noise`` as ridge. By default that of ``kernel``: the posterior.

    Attributes
    ----------
    noise_ : float
        As given, or chosen.
    alpha_ : array of shape (n,) or (n, r)
        ``(K + noise I)^-1 y``.
    rkhs_norm_ : float, or array of shape (r,)
        Of the mean in the RKHS of ``kernel``.
    y_fit_ : array of shape (n,) or (n, r)
        Outputs are independent and share their covariance.
    X_fit_, kernel_, n_features_in_
        As in ``KernelRegressor``.

    Notes
    -----
    Deviations are of the function; those of new labels have ``noise_`` more variance. Variances
    that rounding leaves below zero are zero. Work: n^3/3 flops with noise that is given, 9 n^3
    otherwise, then 2 n m for means and n^2 m for deviations at m points.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X, y = np.array([[-1.0], [0.0], [1.0]]), np.array([0.5, 0.0, 0.5])
    >>> process = kc.GaussianProcess(kc.Gaussian(1.0), noise=1e-6).fit(X, y)
    >>> mean, std = process.predict([[0.0], [9.0]], return_std=True)
    >>> mean.round(3), std.round(3)
    (array([0., 0.]), array([0.001, 1.   ]))
    >>> print(f"{process.log_marginal_likelihood():.3f}")
    -2.851
    """

    def __init__(self, kernel=None, noise="likelihood", initial=None):
        self.kernel = kernel
        self.noise = noise
        self.initial = initial

    def fit(self, X, y):
        """Factorise the covariance.

        Parameters
        ----------
        X : array of shape (n, d), or of images
        y : array of shape (n,) or (n, r)

        Returns
        -------
        self
        """
        if isinstance(self.noise, str):
            _check.choice(self.noise, "noise", ("likelihood",))
        else:
            _check.non_negative(self.noise, "noise")
        if self.initial is not None:
            _check.a_kernel(self.initial, "initial", isinstance(self.initial, Kernel))
            _check.not_precomputed(self._precomputed, "initial must be None")
        X, y = self._read(X, y, multi_output=True, y_numeric=True)
        self.y_fit_ = y.astype(X.dtype)
        K = self._gram(X)
        if isinstance(self.noise, str):
            path = RidgePath(K, self.y_fit_, overwrite_K=True)
            self.noise_ = path.best(self.noise)
            self._factor = Spectral(path, self.noise_)
        else:
            self.noise_ = float(self.noise)
            self._factor = Cholesky(K, self.noise_)
            if not self._factor.sound:
                path = RidgePath(self._factor.restore(), self.y_fit_, overwrite_K=True)
                self._factor = Spectral(path, self.noise_)
        self.alpha_ = self._factor.solve(self.y_fit_)
        wide = self.alpha_.astype(np.float64)
        square = np.maximum((wide * (self.y_fit_ - self.noise_ * wide)).sum(0), 0)
        self.rkhs_norm_ = np.sqrt(square) if y.ndim > 1 else math.sqrt(square)
        self._initial_gram = None if self.initial is None else self.initial(X)
        return self

    def predict(self, X, return_std: bool = False, return_cov: bool = False):
        """Mean of the function, and its deviation or covariance.

        Parameters
        ----------
        X : array of shape (m, d), or of images
        return_std, return_cov : bool
            One of them at most.

        Returns
        -------
        mean : array of shape (m,) or (m, r)
        std : array of shape (m,) or (m, r), if asked for
        cov : array of shape (m, m) or (m, m, r), if asked for
        """
        X = self._read_more(X)
        _check.either(return_std=return_std, return_cov=return_cov)
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
        return np.repeat(values[..., None], outputs[0], axis=-1) if outputs else values

    def _variance(self, X: Array, K: Array) -> Array:
        if self.initial is None:
            return self.kernel_.diag(X) - np.square(self._factor.whiten(K.T)).sum(0)
        a = self._factor.solve(K.T).T
        mixed = (a * self.initial(X, self.X_fit_)).sum(1)
        spread = ((a @ self._initial_gram) * a).sum(1) + self.noise_ * np.square(a).sum(1)
        return self.initial.diag(X) - 2 * mixed + spread

    def _covariance(self, X: Array, K: Array) -> Array:
        if self.initial is None:
            white = self._factor.whiten(K.T)
            return self.kernel_(X) - white.T @ white
        a = self._factor.solve(K.T).T
        mixed = a @ self.initial(self.X_fit_, X)
        spread = a @ self._initial_gram @ a.T + self.noise_ * (a @ a.T)
        return self.initial(X) - mixed - mixed.T + spread

    def sample_y(self, X, n_samples: int = 1, random_state=0) -> Array:
        """Draws of the function after the fit.

        Parameters
        ----------
        X : array of shape (m, d), or of images
        n_samples : int
        random_state : int, RandomState or None

        Returns
        -------
        array of shape (m, n_samples) or (m, r, n_samples)
        """
        n_samples = _check.count(n_samples, "n_samples", least=1)
        X = self._read_more(X)
        _check.not_precomputed(self.kernel_ == "precomputed", "sample_y must not be called")
        K = self._cross(X)
        mean = K @ self.alpha_
        values, vectors = np.linalg.eigh(self._covariance(X, K))
        root = vectors * np.sqrt(np.maximum(values, 0))
        shape = (len(X), mean.size // len(X), n_samples)
        draws = check_random_state(random_state).standard_normal(shape)
        return mean[..., None] + np.tensordot(root, draws, 1).reshape(*mean.shape, n_samples)

    def log_marginal_likelihood(self, noise=None, gradient: bool = False):
        """Of y, under the prior and noise, summed over outputs.

        Parameters
        ----------
        noise : array_like, optional
            Variances; that of the fit by default.
        gradient : bool
            Return the derivative with respect to the variance too.

        Returns
        -------
        float, or array of the shape of noise; or two of them
            Other noise than that of the fit costs an eigendecomposition, unless it was chosen.
        """
        check_is_fitted(self)
        plain = noise is None and not _check.flag(gradient, "gradient")
        if plain and isinstance(self._factor, Cholesky):
            n, outputs = len(self.y_fit_), self.y_fit_.size // len(self.y_fit_)
            fit = float((self.alpha_.astype(np.float64) * self.y_fit_).sum())
            return -(fit + outputs * (self._factor.log_det() + n * math.log(2 * math.pi))) / 2
        if isinstance(self._factor, Cholesky):
            path = RidgePath(self._factor.matrix(), self.y_fit_, overwrite_K=True)
        else:
            path = self._factor.path
        noise = self.noise_ if noise is None else _check.amounts(noise, "noise")
        found = path.log_marginal_likelihood(noise, gradient)
        if np.ndim(noise):
            return found
        return tuple(float(x) for x in found) if gradient else float(found)
