"""Kernel ridge regression."""

from __future__ import annotations

from typing import Any

from sklearn.base import MultiOutputMixin, RegressorMixin

from .. import _check
from .._keywords import formerly, synonyms
from .._types import Array, ArrayLike, Self
from ._base import KernelLike, random_numbers
from ._ridge import Data, OfRidge


class KernelRegressor(MultiOutputMixin, RegressorMixin, OfRidge):
    """Kernel ridge regression, ``f(x) = k(x, X) (K + ridge I)^-1 y``.

    Parameters
    ----------
    kernel : kernel, 'precomputed', None, or a list of kernels
        None means ``presets.mlp(2, b_std=0.1).ntk``. With 'precomputed', X is the Gram matrix when
        fitting, and the kernel of test points with training points when predicting. A list is one
        for ``tune`` to choose from, of depths for example.
    ridge : 'loo', 'gcv', 'likelihood' or float
        It is added to the diagonal of K as it is: to minimise a mean of n squares plus
        ``lambda |f|^2``, pass ``n lambda``. 0 interpolates, with the least norm. A word says how
        ``solvers.RidgePath.best`` chooses: by the least leave-one-out error, the least generalised
        cross-validation or the largest marginal likelihood. For 'cg', 'eigenpro' and 'nystrom' it
        sees at most 2,000 of the points, drawn at random.
    solver : 'auto', 'cholesky', 'eigen', 'cg', 'eigenpro' or 'nystrom'
        Cholesky takes n^3/3 flops, an eigendecomposition 9 n^3. 'auto' is the former if the ridge
        is given and ``K + ridge I`` is not singular, and otherwise the latter; 'cholesky' refuses a
        singular matrix. Where K does not fit into ``get_memory()``, 'auto' becomes 'cg', on a K
        that is kept in part, or stored in a temporary folder if that is faster, or 'eigenpro'; a
        line on stderr says which and why, and ``plan_`` keeps it. The others are for many points:

        - 'cg': conjugate gradients with a preconditioner of rank ``10 sqrt(n)``, until predictions
          on X are within ``1e-6 |y|`` of exact ones, or 1e-4 in single precision.
        - 'eigenpro': stochastic descent, to ``1e-3 |y|`` in at most 50 passes over the matrix; it
          needs at least 3 points.
        - 'nystrom': the best fit that uses ``centres`` only, found by conjugate gradients.

        They warn if they have not converged. The last two need the kernel itself, not its matrix.
    centres : int or array of shape (m, d), optional
        The centres of 'nystrom', or how many rows of X are drawn for them, uniformly and at most n.
        By default ``10 sqrt(n)``, rounded.
    max_iter : int, optional
        The most iterations of 'cg' and 'nystrom', or passes of 'eigenpro' over the kernel.
    random_state : int, RandomState, Generator or None
        For 'cg', 'eigenpro' and 'nystrom', which draw points.
    tol : float, optional
        The residual, relative to the norm of y, at which the same three stop.
    verbose : bool or int
        Whether they, and the Gram matrix of other solvers, print lines of progress to stderr.
    tune : None, 'likelihood', 'loo' or 'cv'
        How to choose ``kernel.hyperparameters()``: by the largest marginal likelihood, or by the
        least squared error of points that are left out one by one, or in five parts that are drawn.
        Each is allowed to change by a factor of 1,000. A ridge that is a word is chosen along with
        them, and then once more for the whole of X by its own criterion. At most 500 points,
        drawn at random, are used. None leaves the kernel as it is.
    ties : None or 'layers'
        Which hyper-parameters ``tune`` moves together. 'layers' multiplies all w_std of a network
        by one factor, and all b_std by another, so that a deep one has as few to choose as a
        shallow one; None lets each change alone.

    Attributes
    ----------
    alpha_, dual_coef_ : array of shape (n,) or (n, r)
        Coefficients of the fit, of the dtype of X: ``f(x) = k(x, X_fit_) alpha_``. 'nystrom' has
        one per centre. They are zero for points of weight zero.
    ridge_ : float
        As given, or chosen.
    rkhs_norm_ : float, or array of shape (r,)
        ``sqrt(alpha' K alpha)``, the norm of the fit, output by output.
    X_fit_ : array of shape (n, d) or (n, H, W, C), or None for 'precomputed'
        The points of the fit, or the centres of 'nystrom'.
    kernel_ : kernel or 'precomputed'
        The kernel of the fit: as given, or chosen.
    tuning_ : Tuning or None
        What ``tune`` has found: ``criterion, before, after, parameters, ridge, evaluations, points,
        exact``, where ``before`` and ``after`` are the criterion at the kernel that is given and at
        ``kernel_``, each at its best ridge.
    n_features_in_ : int
        The number of entries of an input.
    n_iter_ : int
        The iterations or passes that were made; 1 if the solver is direct.
    history_ : array or None
        Relative residuals before the first iteration and after each; None if the solver is direct.
    plan_ : Choice or None
        What 'auto' has chosen: ``solver, matrix, rank, memory, seconds, reason``; it prints as a
        line. None if a solver was named, or X is on a device.

    Notes
    -----
    Kernels of images take X of shape (n, H, W, C), those of signals (n, L, C). A fit holds one
    n x n array of the dtype of X, or three with eigenvectors. 'cg' and 'eigenpro' make a
    ``GramOperator`` of a kernel: if half of the matrix fits into half of ``get_memory()`` they
    compute it once, and otherwise the rest in every pass. They also hold ``10 sqrt(n)`` columns, or
    a subsample and at most 1 GB of rows; 'nystrom' holds n x m numbers or, beyond 4 GB, m x m. A
    prediction holds 64 MB of kernel values. Gram matrices and predictions are computed on the
    cluster that ``set_client`` names, where there is one.

    ``tune`` minimises by L-BFGS-B in logarithms, with exact derivatives, from the kernel that is
    given and from the best of six places near it that are drawn. One step takes an inverse and
    a few Gram matrices; some ten times as many with activations whose duals are numerical. Kernels
    without derivatives, as those of images, are searched by Nelder and Mead's method instead.

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

    A lengthscale that the data choose:

    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> model = kc.KernelRegressor(kc.Gaussian(0.1), tune="loo", random_state=0)
    >>> bool(model.fit(X, np.sin(X[:, 0])).kernel_.lengthscale > 0.5)
    True
    >>> bool(model.tuning_.after < model.tuning_.before)
    True
    """

    @formerly(epochs="max_iter")
    @synonyms(rng="random_state", seed="random_state")
    def __init__(
        self, kernel: KernelLike = None, ridge: str | float = "loo", solver: str = "auto",
        centres: ArrayLike | None = None, max_iter: int | None = None, random_state: Any = None,
        tol: float | None = None, verbose: bool | int = 0, tune: str | None = None,
        ties: str | None = "layers",
    ) -> None:  # fmt: skip
        self.kernel, self.ridge, self.solver = kernel, ridge, solver
        self.centres, self.max_iter, self.random_state = centres, max_iter, random_state
        self.tol, self.verbose, self.tune, self.ties = tol, verbose, tune, ties

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : array of shape (n, d), of signals or of images
        y : array of shape (n,) or (n, r)
        sample_weight : array of shape (n,), optional
            Weights of the squared errors, which must not be negative. A point of weight 2 counts as
            two points, also when a ridge is chosen, and a point of weight 0 not at all.

        Warns
        -----
        RuntimeWarning
            If 'cg' or 'nystrom' has not converged, or 'eigenpro' diverges. If the rows of X pass
            for uniform on a sphere and most of y is of degrees up to 4 that the kernel lacks: see
            ``kernel.null_degrees``.
        """
        rules = self._check_solver()
        X, y = self._read(X, y, multi_output=True, y_numeric=True, **rules)
        data = Data(X, _check.cast(y, X.dtype), self._weights(sample_weight, X))
        rng = random_numbers(self.random_state)
        self._prepare(data, rng)
        self._solve(data, rng)
        if y.ndim == 1:
            self.rkhs_norm_ = float(self.rkhs_norm_)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Evaluate the fit at X, of the kind that was fitted: shape (m,) or (m, r)."""
        return self._values(self._read_more(X))

    def gradient(self, X: ArrayLike) -> Array:
        """Evaluate the derivative of predictions by their input at X: (m, d) or (m, d, r).

        It is that of ``kernel.gradient``, for kernels of rows, and takes a few times as long as
        ``predict``.

        Examples
        --------
        >>> import numpy as np
        >>> import kernelcore as kc
        >>> X = np.linspace(-3, 3, 40)[:, None]
        >>> model = kc.KernelRegressor(kc.Gaussian(1.0), ridge=1e-3).fit(X, np.sin(X[:, 0]))
        >>> model.gradient([[0.5]]).round(2)
        array([[0.88]])
        """
        return self._slope(X, self.alpha_)
