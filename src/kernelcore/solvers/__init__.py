"""From a Gram matrix to predictions.

    ridge, interpolate        one ridge: Cholesky in place
    RidgePath                 all ridges, leave-one-out, likelihood: one eigendecomposition
    gradient_flow             training in closed form at any time, from any initial function
      ensemble_flow           the same for all networks at once: mean and variance
    kernel_gradient_descent   other losses, step by step, stopped early
    rkhs_inner                inner products and norms of expansions in a kernel

Everywhere a predictor is ``f(x) = f0(x) + k(x, X) alpha``, and ``ridge`` is added to K as it is:
that of the objective ``|f(X) - y|^2 + ridge |f|^2``. With a mean over n samples of squares and the
penalty ``lambda |f|^2`` it is ``n lambda``, with a mean of halved squares ``2 n lambda``.
"""

from ._descent import Descent, kernel_gradient_descent
from ._direct import interpolate, ridge, rkhs_inner
from ._flow import Ensemble, Flow, ensemble_flow, gradient_flow
from ._path import RidgePath

__all__ = [
    "Descent",
    "Ensemble",
    "Flow",
    "RidgePath",
    "ensemble_flow",
    "gradient_flow",
    "interpolate",
    "kernel_gradient_descent",
    "ridge",
    "rkhs_inner",
]
