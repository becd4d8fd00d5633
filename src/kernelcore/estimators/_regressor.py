"""Kernel ridge regression."""

from __future__ import annotations

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from .._keywords import formerly, synonyms
from ._base import random_numbers
from ._degrees import warn_of_null_degrees
from ._factor import Weights
from ._ridge import OfRidge

Array = np.ndarray


class KernelRegressor(MultiOutputMixin, RegressorMixin, OfRidge):
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
        ``solvers.RidgePath.best``; for 'cg', 'eigenpro' and 'nystrom' on at most 2,000 of the
        points, drawn at random.
    solver : 'auto', 'cholesky', 'eigen', 'cg', 'eigenpro' or 'nystrom'
        Cholesky (n^3/3 flops) or an eigendecomposition (9 n^3). 'auto' is the former for a ridge
        that is given, unless ``K + ridge I`` turns out singular, and the latter otherwise;
        'cholesky' refuses a singular matrix. The others are for many points:

        - 'cg': conjugate gradients with a preconditioner of rank ``10 sqrt(n)``, to predictions on
          X within ``1e-6 |y|`` of exact ones, or 1e-4 in single precision.
        - 'eigenpro': stochastic descent, to ``1e-3 |y|`` in at most 50 passes over the matrix; at
          least 3 points.
        - 'nystrom': the best fit that is made of ``centres`` only, found by conjugate gradients.

        A warning tells when one has not converged. The last two need the kernel itself and not its
        matrix.
    centres : int or array of shape (m, d), optional
        For 'nystrom': how many rows of X are drawn, all alike and at most n, or the centres
        themselves. By default ``10 sqrt(n)``, rounded.
    max_iter : int, optional
        For 'cg', 'eigenpro' and 'nystrom': at most so many iterations, or passes over the kernel.
    random_state : int, RandomState, Generator or None
        For 'cg', 'eigenpro' and 'nystrom', which draw points.
    tol : float, optional
        For the same: the residual, relative to the norm of y, at which they stop.
    verbose : bool or int
        Whether they, and the Gram matrix of other solvers, print lines of progress to stderr.

    Attributes
    ----------
    alpha_, dual_coef_ : array of shape (n,) or (n, r)
        Coefficients of the fit in the kernel, of the dtype of X: ``f(x) = k(x, X_fit_) alpha_``.
        Of 'nystrom' there are as many as centres. Zero for points of weight zero.
    ridge_ : float
        As given, or chosen.
    rkhs_norm_ : float, or array of shape (r,)
        ``sqrt(alpha' K alpha)``, the norm of the fit, output by output.
    X_fit_ : array of shape (n, d) or (n, H, W, C), or None for 'precomputed'
        The points of the fit, or the centres of 'nystrom'.
    kernel_ : kernel or 'precomputed'
    n_features_in_ : int
        Entries of an input.
    n_iter_ : int
        Iterations or passes that were made; 1 where the solver is direct.
    history_ : array or None
        Relative residuals before the first iteration and after each; None where there are none.

    Notes
    -----
    Kernels of images take X of shape (n, H, W, C), those of signals (n, L, C). Memory to fit: one
    n x n array of the dtype of X, or three with eigenvectors. Of a kernel 'cg' and 'eigenpro' use a
    ``GramOperator``: where a quarter of the memory holds half of the matrix they compute it once,
    and what is beyond that in every pass. Beside it they hold ``10 sqrt(n)`` columns, or a
    subsample and at most 1 GB of rows; 'nystrom' holds n x m or, beyond 4 GB, m x m numbers. To
    predict: 64 MB of kernel values.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> model = kc.KernelRegressor(kc.Gaussian(1.0), ridge=1e-3).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[0.5]]).round(3)
    array([0.479])
    >>> round(model.score(X, np.sin(X[:, 0])), 4)
    1.0
    >>> print(f"{model.rkhs_norm_:.3f}")
    1.618

    Many points, few centres:

    >>> X = np.linspace(-3, 3, 5000)[:, None]
    >>> model = kc.KernelRegressor(
    ...     kc.Gaussian(1.0), ridge=1e-3, solver="nystrom", centres=40, random_state=0
    ... )
    >>> model.fit(X, np.sin(X[:, 0])).predict([[0.5]]).round(3)
    array([0.479])
    >>> model.alpha_.shape, model.X_fit_.shape
    ((40,), (40, 1))
    """

    @formerly(epochs="max_iter")
    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self,
        kernel=None,
        ridge="loo",
        solver="auto",
        centres=None,
        max_iter=None,
        random_state=None,
        tol=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.ridge = ridge
        self.solver = solver
        self.centres = centres
        self.max_iter = max_iter
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose

    def fit(self, X, y, sample_weight=None):
        """Fit the coefficients.

        Parameters
        ----------
        X : array of shape (n, d), of signals or of images
        y : array of shape (n,) or (n, r)
        sample_weight : array of shape (n,), optional
            Weights of the squared errors, not negative. A point of weight 2 counts as two, in the
            choice of a ridge too, and one of weight 0 not at all.

        Returns
        -------
        self

        Warns
        -----
        RuntimeWarning
            When 'cg' or 'nystrom' has not converged, or 'eigenpro' diverges. When the rows of X
            pass for uniform on a sphere and most of y is of degrees up to 4 that the kernel lacks:
            see ``kernel.null_degrees``.
        """
        rules = self._check_solver()
        X, y = self._read(X, y, multi_output=True, y_numeric=True, **rules)
        warn_of_null_degrees(self.kernel_, X, y)
        weights = self._weights(sample_weight, X)
        weights = None if weights is None else Weights(weights, weights)
        self._solve(X, y.astype(X.dtype), random_numbers(self.random_state), weights)
        self.rkhs_norm_ = self.rkhs_norm_ if y.ndim > 1 else float(self.rkhs_norm_)
        return self

    def predict(self, X) -> Array:
        """Values of the fit.

        Parameters
        ----------
        X : array of shape (m, d), of signals or of images

        Returns
        -------
        array of shape (m,) or (m, r)
        """
        return self._expand(self._read_more(X), self.alpha_)
