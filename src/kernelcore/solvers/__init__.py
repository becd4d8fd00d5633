"""From a Gram matrix to predictions, by iterations and with fewer centres."""

from ._blocks import RowBlocks
from ._eigenpro import EigenPro
from ._eigenpro import eigenpro
from ._iterative import Solution
from ._iterative import conjugate_gradients
from ._iterative import gradient_descent
from ._iterative import landweber
from ._iterative import largest_eigenvalue
from ._iterative import richardson
from ._nystrom import NystromRidge
from ._nystrom import nystrom_ridge
from ._preconditioners import BlockJacobi
from ._preconditioners import Deflation
from ._preconditioners import LowRank
from ._preconditioners import block_jacobi
from ._preconditioners import eigenpro_preconditioner
from ._preconditioners import nystrom_preconditioner
from ._preconditioners import randomly_pivoted_cholesky
