"""From a Gram matrix to predictions.

    ridge, interpolate        one ridge: Cholesky in place
    RidgePath                 all ridges, leave-one-out, likelihood: one eigendecomposition
    gradient_flow             training in closed form at any time, from any initial function
      ensemble_flow           the same for all networks at once: mean and variance
    kernel_gradient_descent   other losses, step by step, stopped early
    rkhs_inner                inner products and norms of expansions in a kernel
    conjugate_gradients, richardson, landweber, gradient_descent      for any K that multiplies
      nystrom_preconditioner, eigenpro_preconditioner, block_jacobi   make them fast
    randomly_pivoted_cholesky a low-rank factor of K from its columns
    eigenpro                  stochastic descent that sees K in blocks of rows
    askotch                   the same in steps that solve for blocks of points, accelerated
    nystrom_ridge             ridge regression with m centres
      eigenpro_centres        the same by stochastic descent, for more of them

K is an array, a ``kc.GramOperator`` or anything with a shape that multiplies with ``@``. A solver
that needs the array of an operator makes it by n products; preconditioners and ``eigenpro`` need
``diagonal`` and ``columns``, which arrays and ``GramOperator`` have. ``RowBlocks`` is the old name
of ``GramOperator``.

Arrays may be NumPy's or those of another library, such as CuPy (with ``array_api_compat``): all
work is then done where K is, or X, and the other arguments have to be there as well. Histories, and
eigenvalues of preconditioners, are NumPy's.

Every predictor is ``f(x) = f0(x) + k(x, X) alpha``, and ``ridge`` is added to K as it is, as in the
objective ``|f(X) - y|^2 + ridge |f|^2``. For the mean of n squares and the penalty ``lambda |f|^2``
pass ``n lambda``, for the mean of halved squares ``2 n lambda``.
"""

from ..scale.operator import RowBlocks
from ._askotch import ASkotch, askotch
from ._descent import Descent, kernel_gradient_descent
from ._direct import interpolate, ridge, rkhs_inner
from ._eigenpro import EigenPro, eigenpro
from ._eigenpro_centres import EigenProCentres, eigenpro_centres
from ._flow import Ensemble, Flow, ensemble_flow, gradient_flow
from ._iterative import (
    Solution,
    conjugate_gradients,
    gradient_descent,
    landweber,
    largest_eigenvalue,
    richardson,
)  # fmt: skip
from ._nystrom import NystromRidge, nystrom_ridge
from ._path import RidgePath
from ._preconditioners import (
    BlockJacobi,
    Deflation,
    LowRank,
    block_jacobi,
    eigenpro_preconditioner,
    nystrom_preconditioner,
    randomly_pivoted_cholesky,
)  # fmt: skip

__all__ = [
    "ASkotch", "BlockJacobi", "Deflation", "Descent", "EigenPro", "EigenProCentres", "Ensemble",
    "Flow", "LowRank", "NystromRidge", "RidgePath", "RowBlocks", "Solution", "askotch",
    "block_jacobi", "conjugate_gradients", "eigenpro", "eigenpro_centres",
    "eigenpro_preconditioner", "ensemble_flow", "gradient_descent", "gradient_flow", "interpolate",
    "kernel_gradient_descent", "landweber", "largest_eigenvalue", "nystrom_preconditioner",
    "nystrom_ridge", "randomly_pivoted_cholesky", "richardson", "ridge", "rkhs_inner",
]  # fmt: skip
