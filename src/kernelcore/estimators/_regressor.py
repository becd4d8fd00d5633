"""Kernel ridge regression."""

from __future__ import annotations

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from . import _factor
from ._base import OfKernel

Array = np.ndarray


class KernelRegressor(MultiOutputMixin, RegressorMixin, OfKernel):
    """Kernel ridge regression, ``f(x) = k(x, X) (K + ridge I)^-1 y``.

    Parameters
    ----------
    kernel : kernel, 'precomputed' or None
        None is ``presets.mlp(2, b_std=0.1).ntk``. With 'precomputed' X is the Gram matrix, and
        that of test with training points when predicting.
    ridge : 'loo', 'gcv', 'likelihood' or float
        Added to K as it is: a mean over n samples of squares plus ``lambda |f|^2`` has
        ``n lambda``. 0 interpolates, with the least norm. A word says how it is chosen: least
        leave-one-out error, least generalised cross-validation or largest marginal likelihood, by
        ``solvers.RidgePath.best``.
    solver : 'auto', 'cholesky' or 'eigen'
        Cholesky (n^3/3 flops) or an eigendecomposition (9 n^3). 'auto' is the former for a ridge
        that is given, unless ``K + ridge I`` turns out singular, of which the pseudo-inverse is
        taken; 'cholesky' refuses it.

    Attributes
    ----------
    alpha_, dual_coef_ : array of shape (n,) or (n, r)
        Coefficients of the fit in the kernel, of the dtype of X.
    ridge_ : float
        As given, or chosen.
    rkhs_norm_ : float, or array of shape (r,)
        ``sqrt(alpha' K alpha)``, the norm of the fit, output by output.
    X_fit_ : array of shape (n, d) or (n, H, W, C), or None for 'precomputed'
    kernel_ : kernel or 'precomputed'
    n_features_in_ : int
        Entries of an input.

    Notes
    -----
    Kernels of images take X of shape (n, H, W, C), those of signals (n, L, C). Memory to fit: one
    n x n array of the dtype of X, or three with eigenvectors; to predict: 64 MB of kernel values.

    Examples
    --------
    >>> import kernelcore as kc
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> model = kc.KernelRegressor(kc.Gaussian(1.0), ridge=1e-3).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[0.5]]).round(3)
    array([0.479])
    >>> round(model.score(X, np.sin(X[:, 0])), 4)
    1.0
    >>> print(f"{model.rkhs_norm_:.3f}")
    1.618
    """

    def __init__(self, kernel=None, ridge="loo", solver="auto"):
        self.kernel = kernel
        self.ridge = ridge
        self.solver = solver

    def fit(self, X, y):
        """Fit the coefficients.

        Parameters
        ----------
        X : array of shape (n, d), or of images
        y : array of shape (n,) or (n, r)

        Returns
        -------
        self
        """
        _factor.check(self.ridge, self.solver)
        X, y = self._read(X, y, multi_output=True, y_numeric=True)
        found = _factor.fit(self._gram(X), y.astype(X.dtype), self.ridge, self.solver)
        self.alpha_, self.ridge_ = found.alpha, found.ridge
        self.rkhs_norm_ = found.norm if y.ndim > 1 else float(found.norm)
        return self

    @property
    def dual_coef_(self) -> Array:
        return self.alpha_

    def predict(self, X) -> Array:
        """Values of the fit.

        Parameters
        ----------
        X : array of shape (m, d), or of images

        Returns
        -------
        array of shape (m,) or (m, r)
        """
        return self._expand(self._read_more(X), self.alpha_)
