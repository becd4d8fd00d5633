"""From a Gram matrix to predictions.

    conjugate_gradients, richardson,      (K + ridge I) x = y for whatever multiplies, many columns
      landweber, gradient_descent
    nystrom_preconditioner, eigenpro_preconditioner, block_jacobi     what makes them fast
    RowBlocks                             K that multiplies and is never held
    randomly_pivoted_cholesky             a low-rank factor of K from its columns
    eigenpro                              stochastic descent that sees K in blocks of rows
    nystrom_ridge                         ridge regression with m centres

Everywhere ``ridge`` is added to K as it is.
"""

from ._blocks import RowBlocks
from ._eigenpro import EigenPro, eigenpro
from ._iterative import (
    Solution,
    conjugate_gradients,
    gradient_descent,
    landweber,
    largest_eigenvalue,
    richardson,
)
from ._nystrom import NystromRidge, nystrom_ridge
from ._preconditioners import (
    BlockJacobi,
    Deflation,
    LowRank,
    block_jacobi,
    eigenpro_preconditioner,
    nystrom_preconditioner,
    randomly_pivoted_cholesky,
)

__all__ = [
    "BlockJacobi",
    "Deflation",
    "EigenPro",
    "LowRank",
    "NystromRidge",
    "RowBlocks",
    "Solution",
    "block_jacobi",
    "conjugate_gradients",
    "eigenpro",
    "eigenpro_preconditioner",
    "gradient_descent",
    "landweber",
    "largest_eigenvalue",
    "nystrom_preconditioner",
    "nystrom_ridge",
    "randomly_pivoted_cholesky",
    "richardson",
]
