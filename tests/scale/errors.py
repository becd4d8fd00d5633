"""Gram operators and what stands for a matrix."""

import numpy as np
from messages import Case
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator

import kernelcore as kc

EYE, ONES = np.eye(3), np.ones(3)
X = np.arange(6.0).reshape(3, 2)
KERNEL = kc.Laplacian(1.0)
OPERATOR = kc.GramOperator(KERNEL, X)
SIGNALS = kc.Sequential(kc.Conv((3,)), kc.Relu(), kc.GlobalAvgPool(), kc.Dense()).ntk
MULTIPLIES = aslinearoperator(EYE)
LACKS = "besides @: got MatrixLinearOperator; pass a GramOperator or an array"
SPARSE = "K must be a dense array: got csr_array; pass K.toarray()"


class WithDiagonal:
    """Products and a diagonal."""

    shape = (3, 3)

    def __matmul__(self, x):
        return x

    def diagonal(self):
        return ONES


CASES = [
    Case(TypeError, "kernel must be a kernel: got ndarray", lambda: kc.GramOperator(EYE, X)),
    Case(
        ValueError,
        "X must have at least one row: got shape (0, 4, 2)",
        lambda: kc.GramOperator(SIGNALS, np.empty((0, 4, 2))),
    ),
    Case(
        ValueError,
        "Y must have at least one row: got shape (0, 2)",
        lambda: kc.GramOperator(KERNEL, X, X[:0]),
    ),
    Case(
        ValueError,
        "Y must have as many columns as X: X has shape (3, 2), Y has shape (3, 1)",
        lambda: kc.GramOperator(KERNEL, X, X[:, :1]),
    ),
    Case(
        ValueError,
        "max_memory must be positive: got -1.0",
        lambda: kc.GramOperator(KERNEL, X, max_memory=-1),
    ),
    Case(
        ValueError,
        "n_threads must be at least 1: got 0",
        lambda: kc.GramOperator(KERNEL, X, n_threads=0),
    ),
    Case(
        ValueError,
        "Y must not be given with scale: got ndarray",
        lambda: kc.GramOperator(KERNEL, X, X, scale=ONES),
    ),
    Case(
        ValueError,
        "scale must have one entry per row of X, 3: got shape (2,)",
        lambda: kc.GramOperator(KERNEL, X, scale=[1.0, 1.0]),
    ),
    # products
    Case(
        ValueError,
        "x must have one row per column of K, 3, and shape (n,) or (n, r): got shape (2,)",
        lambda: OPERATOR @ np.ones(2),
    ),
    Case(
        ValueError,
        "x must have one row per column of K, 2, and shape (n,) or (n, r): got shape (2, 1, 1)",
        lambda: kc.GramOperator(KERNEL, X, X[:2]).matmat(np.ones((2, 1, 1))),
    ),
    Case(
        ValueError,
        "x must have one row per row of K, 3, and shape (n,) or (n, r): got shape (2,)",
        lambda: kc.GramOperator(KERNEL, X, X[:2]).rmatvec(np.ones(2)),
    ),
    Case(
        TypeError,
        "x must be a dense array: got csr_array; pass x.toarray()",
        lambda: OPERATOR @ csr_array(EYE),
    ),
    # parts
    Case(IndexError, "columns must be from -3 to 2: got 3", lambda: OPERATOR.columns([0, 3])),
    Case(IndexError, "rows must be from -3 to 2: got -4", lambda: OPERATOR.rows(-4)),
    Case(
        TypeError,
        "rows must be integers, a slice or a mask of length 3: got float64 of shape (1,)",
        lambda: OPERATOR.block([0.5], [1]),
    ),
    Case(
        TypeError,
        "columns must be integers, a slice or a mask of length 3: got bool of shape (2,)",
        lambda: OPERATOR.columns([True, False]),
    ),
    Case(
        ValueError,
        "out must have shape (1, 3): got shape (2, 3)",
        lambda: OPERATOR.rows([0], np.empty((2, 3))),
    ),
    # what K is
    Case(
        TypeError,
        "K must be an array, or have a shape and multiply with @: got Laplacian",
        lambda: kc.solvers.conjugate_gradients(KERNEL, ONES),
    ),
    Case(
        ValueError,
        "K must be square: got shape (3, 2)",
        lambda: kc.solvers.conjugate_gradients(kc.GramOperator(KERNEL, X, X[:2]), ONES),
    ),
    Case(
        ValueError,
        "K must be symmetric: got that of X and Y; leave Y out",
        lambda: kc.solvers.ridge(kc.GramOperator(KERNEL, X, X + 1), ONES),
    ),
    Case(
        TypeError,
        f"K must have diagonal() and columns() {LACKS}",
        lambda: kc.solvers.nystrom_preconditioner(MULTIPLIES, rank=1),
    ),
    Case(
        TypeError,
        f"K must have diagonal() and columns() {LACKS}",
        lambda: kc.solvers.randomly_pivoted_cholesky(MULTIPLIES, rank=1),
    ),
    Case(
        TypeError,
        "K must have columns() besides @: got WithDiagonal; pass a GramOperator or an array",
        lambda: kc.solvers.nystrom_preconditioner(WithDiagonal(), rank=1),
    ),
    Case(
        TypeError,
        f"K must have columns() {LACKS}",
        lambda: kc.solvers.eigenpro_preconditioner(MULTIPLIES, rank=1),
    ),
    Case(
        TypeError,
        f"K must have columns() {LACKS}",
        lambda: kc.solvers.block_jacobi(MULTIPLIES),
    ),
    Case(TypeError, SPARSE, lambda: kc.solvers.block_jacobi(csr_array(EYE))),
    Case(TypeError, SPARSE, lambda: kc.solvers.ridge(csr_array(EYE), ONES)),
    Case(
        ValueError,
        "K @ x must be finite: got nan",
        lambda: kc.solvers.ridge(aslinearoperator(EYE * np.nan), ONES),
    ),
    # a matrix in the place of a kernel and its points
    Case(
        ValueError,
        "X must not be given with a matrix: got ndarray",
        lambda: kc.solvers.block_jacobi(OPERATOR, X),
    ),
    Case(
        TypeError,
        f"kernel must have diagonal() and columns() {LACKS}",
        lambda: kc.solvers.eigenpro(MULTIPLIES, None, ONES),
    ),
    Case(
        TypeError,
        "kernel must be a kernel: got GramOperator",
        lambda: kc.solvers.eigenpro(OPERATOR, X, ONES),
    ),
    Case(
        ValueError,
        "kernel must have at least 2 rows for eigenpro: got 1",
        lambda: kc.solvers.eigenpro(EYE[:1, :1], None, [1.0]),
    ),
    Case(
        ValueError,
        "sample_weight must not be given with a matrix: got ndarray",
        lambda: kc.solvers.eigenpro(OPERATOR, None, ONES, sample_weight=ONES),
    ),
    Case(
        ValueError,
        "y must have one row per row of kernel, 3, and shape (n,) or (n, r): got shape (2,)",
        lambda: kc.solvers.eigenpro(OPERATOR, None, ONES[:2]),
    ),
    Case(
        ValueError,
        "X must not be given with a GramOperator: got ndarray",
        lambda: kc.solvers.nystrom_ridge(OPERATOR, X, ONES, centres=2),
    ),
    Case(
        ValueError,
        "kernel must be a GramOperator without scale: got one with it; pass sample_weight",
        lambda: kc.solvers.nystrom_ridge(
            kc.GramOperator(KERNEL, X, scale=ONES), None, ONES, centres=2
        ),
    ),
    Case(
        TypeError,
        "kernel must be a kernel: got ndarray",
        lambda: kc.solvers.RowBlocks(EYE, X),
    ),
    Case(
        ValueError,
        "max_memory must be positive: got 0.0",
        lambda: kc.solvers.RowBlocks(KERNEL, X, max_memory=0),
    ),
    Case(
        ValueError,
        "X must have at least one row: got shape (0, 2)",
        lambda: kc.solvers.RowBlocks(KERNEL, np.empty((0, 2))),
    ),
    Case(
        ValueError,
        "scale must have one entry per row of X, 3: got shape (2,)",
        lambda: kc.solvers.RowBlocks(kc.Laplacian(1.0), X, scale=[1.0, 1.0]),
    ),
]
