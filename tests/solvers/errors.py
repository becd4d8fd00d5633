"""Solvers: with the whole matrix, and by iteration."""

import numpy as np
from messages import Case

import kernelcore as kc

X = np.arange(6.0).reshape(3, 2)


def read_only(shape):
    a = np.empty(shape)
    a.flags.writeable = False
    return a


EYE = np.eye(3)


def entry(i, j, value):
    k = np.eye(400)
    k[i, j] = value
    return k


K2 = np.array([[2.0, 1.0], [1.0, 2.0]])
Y2 = np.array([1.0, -1.0])


def descend(y=Y2, **more):
    return kc.solvers.kernel_gradient_descent(K2, y, **{"iterations": 3, **more})


def flow(y=Y2, times=1.0, **more):
    return kc.solvers.gradient_flow(K2, y, times, **more)


def ensemble(**more):
    whole = {"ntk_test": K2, "nngp_test": K2, "nngp_test_test": K2, **more}
    return kc.solvers.ensemble_flow(K2, whole.pop("nngp", K2), Y2, 1.0, **whole)


class Zeros:
    """Multiplies, wrongly."""

    shape = (3, 3)

    def __init__(self, value, shape):
        self.value, self.of = value, shape

    def __matmul__(self, x):
        return np.full(self.of, self.value)


LAPLACIAN = kc.Laplacian(1.0)
cg, nystrom = kc.solvers.conjugate_gradients, kc.solvers.nystrom_ridge
OVERFLOWS = (
    "K must keep coefficients within float64: (K + ridge I)^-1 y overflows; scale K up or y down"
)
ZERO = "K + ridge I must not be zero: its largest eigenvalue is 0.0; pass a ridge, or a step"


def askotch(**more):
    return kc.solvers.askotch(kc.Laplacian(1.0), X, np.ones(3), **more)


def on_centres(X=X, **more):
    return kc.solvers.eigenpro_centres(kc.Laplacian(1.0), X, np.ones(3), **{"centres": 2, **more})


def eigenpro(**more):
    return kc.solvers.eigenpro(kc.Laplacian(1.0), X, np.ones(3), **more)


CASES = [
    # With the whole matrix.
    Case(ValueError, "ridge must not be negative: got -1.0", lambda: kc.solvers.ridge(K2, Y2, -1)),
    Case(ValueError, "ridge must be finite: got nan", lambda: kc.solvers.ridge(K2, Y2, np.nan)),
    Case(
        ValueError,
        "on_singular must be one of 'raise', 'pinv': got 'jitter'",
        lambda: kc.solvers.ridge(K2, Y2, on_singular="jitter"),
    ),
    Case(
        TypeError,
        "overwrite_K must be True or False: got int",
        lambda: kc.solvers.ridge(K2, Y2, overwrite_K=1),
    ),
    Case(
        ValueError,
        "K must be square: got shape (2, 3)",
        lambda: kc.solvers.ridge(np.ones((2, 3)), Y2),
    ),
    Case(
        ValueError,
        "K must be symmetric: K[0, 1] and K[1, 0] differ by 1; pass (K + K.T) / 2 if that is "
        "rounding",
        lambda: kc.solvers.ridge([[2.0, 1.0], [0.0, 2.0]], Y2),
    ),
    Case(
        ValueError,
        "K must be finite: K[1, 0] is nan",
        lambda: kc.solvers.ridge([[2.0, 1.0], [np.nan, 2.0]], Y2),
    ),
    Case(
        TypeError,
        "K must be a NumPy array to be overwritten: got list",
        lambda: kc.solvers.ridge(K2.tolist(), Y2, overwrite_K=True),
    ),
    Case(
        TypeError,
        "K must be float32 or float64 to be overwritten: got int64",
        lambda: kc.solvers.ridge(np.eye(2, dtype=np.int64), Y2, overwrite_K=True),
    ),
    Case(
        ValueError,
        "K must be contiguous to be overwritten: got strides (64, 16)",
        lambda: kc.solvers.ridge(np.ones((4, 4))[::2, ::2], Y2, overwrite_K=True),
    ),
    Case(
        ValueError,
        "K must be writable to be overwritten: got a read-only array",
        lambda: kc.solvers.ridge(read_only((2, 2)), Y2, overwrite_K=True),
    ),
    Case(
        ValueError,
        "y must have one row per row of K, 2, and shape (n,) or (n, r): got shape (3,)",
        lambda: kc.solvers.ridge(K2, np.ones(3)),
    ),
    Case(
        ValueError,
        "y must have one row per row of K, 2, and shape (n,) or (n, r): got shape ()",
        lambda: kc.solvers.ridge(K2, 1.0),
    ),
    Case(ValueError, "y must be finite: got nan", lambda: kc.solvers.ridge(K2, [1.0, np.nan])),
    Case(
        np.linalg.LinAlgError,
        "K + ridge I must be positive definite: its first 2 rows and columns are not, and its "
        "smallest eigenvalue is -1; a ridge larger by 1.1 would do and damp what lies along "
        "eigenvalues below it, on_singular='pinv' leaves that out",
        lambda: kc.solvers.ridge([[1.0, 2.0], [2.0, 1.0]], Y2),
    ),
    Case(
        np.linalg.LinAlgError,
        "K must be positive semi-definite: its smallest eigenvalue is -1, its largest 3",
        lambda: kc.solvers.ridge([[1.0, 2.0], [2.0, 1.0]], Y2, 0.5, on_singular="pinv"),
    ),
    Case(
        np.linalg.LinAlgError,
        "K must be positive semi-definite: its smallest eigenvalue is -1, its largest 3",
        lambda: kc.solvers.RidgePath([[1.0, 2.0], [2.0, 1.0]], Y2),
    ),
    Case(
        ValueError,
        "y must have at least one column: got shape (2, 0)",
        lambda: kc.solvers.RidgePath(K2, np.ones((2, 0))),
    ),
    Case(
        ValueError,
        "ridge must not be negative: got -2.0",
        lambda: kc.solvers.RidgePath(K2, Y2).alpha([1.0, -2.0]),
    ),
    Case(
        ValueError,
        "ridge must be positive where K is singular: got 0.0, and 1 eigenvalues are zero",
        lambda: kc.solvers.RidgePath(np.ones((2, 2)), Y2).log_marginal_likelihood(0.0),
    ),
    Case(
        ValueError,
        "criterion must be one of 'loo', 'gcv', 'likelihood': got 'aic'",
        lambda: kc.solvers.RidgePath(K2, Y2).best("aic"),
    ),
    Case(
        ValueError,
        "ridges must not be empty: got shape (0,)",
        lambda: kc.solvers.RidgePath(K2, Y2).best(ridges=[]),
    ),
    Case(
        ValueError,
        "ridges must be positive: got 0.0",
        lambda: kc.solvers.RidgePath(K2, Y2).best(ridges=[0.0]),
    ),
    Case(
        ValueError,
        "alpha must have one row per row of K, 2, and shape (n,) or (n, r): got shape (3,)",
        lambda: kc.solvers.rkhs_inner(np.ones(3), K2),
    ),
    Case(
        ValueError,
        "K must have one column per row of beta, 3: got shape (2, 2)",
        lambda: kc.solvers.rkhs_inner(Y2, K2, np.ones(3)),
    ),
    Case(ValueError, "times must not be negative: got -1.0", lambda: flow(times=-1)),
    Case(
        ValueError,
        "K_test must have one column per row of K, 2: got shape (2, 3)",
        lambda: flow(K_test=np.ones((2, 3))),
    ),
    Case(
        ValueError,
        "K_test must be finite: K_test[0, 1] is inf",
        lambda: flow(K_test=[[0.0, np.inf]]),
    ),
    Case(ValueError, "f0 must have the shape of y, (2,): got shape (1,)", lambda: flow(f0=[1.0])),
    Case(
        ValueError,
        "f0_test must be given with f0 and K_test: got None",
        lambda: flow(f0=Y2, K_test=K2),
    ),
    Case(
        ValueError, "f0 must be given with f0_test: got None", lambda: flow(K_test=K2, f0_test=Y2)
    ),
    Case(
        ValueError, "K_test must be given with f0_test: got None", lambda: flow(f0=Y2, f0_test=Y2)
    ),
    Case(
        ValueError,
        "f0_test must have the shape of predictions on K_test, (2,): got shape (1,)",
        lambda: flow(f0=Y2, K_test=K2, f0_test=[1.0]),
    ),
    Case(
        ValueError,
        "nngp must have the shape of ntk, (2, 2): got shape (3, 3)",
        lambda: ensemble(nngp=np.eye(3)),
    ),
    Case(
        ValueError,
        "nngp_test must be given with ntk_test: got None",
        lambda: ensemble(nngp_test=None),
    ),
    Case(
        ValueError,
        "nngp_test must have the shape of ntk_test, (2, 2): got shape (1, 2)",
        lambda: ensemble(nngp_test=K2[:1]),
    ),
    Case(
        ValueError,
        "nngp_test_test must have shape (2,) or (2, 2): got shape (3,)",
        lambda: ensemble(nngp_test_test=np.ones(3)),
    ),
    Case(
        ValueError,
        "loss must be one of 'square', 'logistic', 'softmax', 'squared_hinge', 'hinge': got 'cosh'",
        lambda: descend(loss="cosh"),
    ),
    Case(ValueError, "step must be positive: got 0.0", lambda: descend(step=0)),
    Case(ValueError, "momentum must be in [0, 1): got 1.0", lambda: descend(momentum=1)),
    Case(ValueError, "iterations must be at least 0: got -1", lambda: descend(iterations=-1)),
    Case(
        ValueError,
        "y must be -1 or 1 for loss 'logistic': got 0.0",
        lambda: descend([0, 1], loss="logistic"),
    ),
    Case(
        ValueError,
        "y must be classes 0, 1, ...: got 0.5",
        lambda: descend([0.5, 1], loss="softmax"),
    ),
    Case(
        ValueError,
        "y must have rows of probabilities: row 1 is [0.5 0.6]",
        lambda: descend([[0.5, 0.5], [0.5, 0.6]], loss="softmax"),
    ),
    Case(
        ValueError,
        "f0 must have the shape of predictions on K, (2, 3): got shape (2,)",
        lambda: descend([0, 2], loss="softmax", f0=Y2),
    ),
    Case(
        ValueError,
        "K_validation must be given with patience: got None",
        lambda: descend(patience=3),
    ),
    Case(
        ValueError,
        "patience must be at least 1: got 0",
        lambda: descend(patience=0, K_validation=K2, y_validation=Y2),
    ),
    Case(
        ValueError,
        "K_validation must be given with y_validation: got None",
        lambda: descend(y_validation=Y2),
    ),
    Case(
        ValueError,
        "y_validation must be given with K_validation: got None",
        lambda: descend(K_validation=K2),
    ),
    Case(
        ValueError,
        "K_validation must not be empty: got shape (0, 2)",
        lambda: descend(K_validation=K2[:0], y_validation=Y2[:0]),
    ),
    Case(
        ValueError,
        "y_validation must have one row per row of K_validation, 2, and shape (n,) or (n, r): "
        "got shape (1,)",
        lambda: descend(K_validation=K2, y_validation=[1.0]),
    ),
    Case(
        ValueError,
        "y_validation must have the shape of predictions on K_validation, (2, 2): got shape (2, 3)",
        lambda: descend([0, 1], loss="softmax", K_validation=K2, y_validation=[0, 2]),
    ),
    Case(
        ValueError,
        "f0_validation must be given with f0 and K_validation: got None",
        lambda: descend(f0=Y2, K_validation=K2, y_validation=Y2),
    ),
    Case(
        ValueError,
        "step must keep descent from diverging: with 1e+200 the loss is inf after 1 iterations; "
        "leave it out for one that the spectrum allows",
        lambda: descend(step=1e200),
    ),
    # By iteration.
    Case(
        ValueError,
        "y must have one row per row of K, 3, and shape (n,) or (n, r): got shape (4,)",
        lambda: cg(EYE, np.ones(4)),
    ),
    Case(
        ValueError,
        "y must have one row per row of X, 3, and shape (n,) or (n, r): got shape (3, 1, 1)",
        lambda: nystrom(LAPLACIAN, X, np.ones((3, 1, 1)), centres=2),
    ),
    Case(
        ValueError,
        "y must have at least one column: got shape (3, 0)",
        lambda: cg(EYE, np.ones((3, 0))),
    ),
    Case(ValueError, "y must be finite: got nan", lambda: cg(EYE, [1.0, np.nan, 1.0])),
    Case(
        ValueError,
        "initial must have the shape of y, (3,): got shape (3, 1)",
        lambda: cg(EYE, np.ones(3), initial=np.ones((3, 1))),
    ),
    Case(
        ValueError,
        "initial must have the shape of y, (3,): got shape (2,)",
        lambda: kc.solvers.eigenpro(LAPLACIAN, X, np.ones(3), initial=np.ones(2)),
    ),
    Case(ValueError, "ridge must not be negative: got -1.0", lambda: cg(EYE, np.ones(3), -1.0)),
    Case(ValueError, "ridge must be finite: got nan", lambda: cg(EYE, np.ones(3), np.nan)),
    Case(ValueError, "tol must be positive: got 0.0", lambda: cg(EYE, np.ones(3), tol=0)),
    Case(
        ValueError,
        "max_iter must be at least 0: got -1",
        lambda: cg(EYE, np.ones(3), max_iter=-1),
    ),
    Case(
        TypeError,
        "progress must be True or False: got int",
        lambda: cg(EYE, np.ones(3), progress=1),
    ),
    Case(
        ValueError,
        "K must be square: got shape (3, 2)",
        lambda: cg(np.ones((3, 2)), np.ones(3)),
    ),
    Case(
        TypeError,
        "K must be an array, or have a shape and multiply with @: got Laplacian",
        lambda: cg(LAPLACIAN, np.ones(3)),
    ),
    Case(
        ValueError,
        "K @ x must have the shape of x, (3, 1): got shape (3,)",
        lambda: cg(Zeros(0.0, (3,)), np.ones(3)),
    ),
    Case(
        ValueError,
        "K @ x must be finite: got nan",
        lambda: cg(Zeros(np.nan, (3, 1)), np.ones(3)),
    ),
    Case(
        TypeError,
        "preconditioner must have a method solve: got ndarray",
        lambda: cg(EYE, np.ones(3), preconditioner=EYE),
    ),
    Case(
        TypeError,
        "callback must be callable or None: got str",
        lambda: cg(EYE, np.ones(3), callback="print"),
    ),
    Case(
        ValueError,
        "momentum must be in [0, 1): got 1.0",
        lambda: kc.solvers.gradient_descent(EYE, np.ones(3), momentum=1.0),
    ),
    Case(
        ValueError,
        "momentum must be one of 'nesterov': got 'polyak'",
        lambda: kc.solvers.gradient_descent(EYE, np.ones(3), momentum="polyak"),
    ),
    Case(
        ValueError,
        "step must be positive: got -1.0",
        lambda: kc.solvers.richardson(EYE, np.ones(3), step=-1.0),
    ),
    Case(
        ValueError,
        "centres must have at least one row: got shape (0, 2)",
        lambda: nystrom(LAPLACIAN, X, np.ones(3), centres=np.empty((0, 2))),
    ),
    Case(
        ValueError,
        "centres must be of one kind with the rows of X, of shape (2,): got shape (1, 3)",
        lambda: nystrom(LAPLACIAN, X, np.ones(3), centres=np.ones((1, 3))),
    ),
    Case(
        ValueError,
        "centres must be at most the number of rows of X, 3: got 4",
        lambda: nystrom(LAPLACIAN, X, np.ones(3), centres=4),
    ),
    Case(
        ValueError,
        "method must be one of 'uniform', 'leverage', 'rpcholesky': got 'random'",
        lambda: nystrom(LAPLACIAN, X, np.ones(3), centres=2, method="random"),
    ),
    Case(
        ValueError,
        "solver must be one of 'auto', 'cg', 'direct': got 'lu'",
        lambda: nystrom(LAPLACIAN, X, np.ones(3), centres=2, solver="lu"),
    ),
    Case(
        TypeError,
        "seed must be None, an integer or a numpy.random.Generator: got str",
        lambda: kc.solvers.randomly_pivoted_cholesky(EYE, rank=1, seed="0"),
    ),
    Case(
        ValueError,
        "rank must be at most the rows of K, 3: got 4",
        lambda: kc.solvers.randomly_pivoted_cholesky(EYE, rank=4),
    ),
    Case(
        ValueError,
        "X must be given with a kernel: got None",
        lambda: kc.solvers.randomly_pivoted_cholesky(LAPLACIAN, rank=1),
    ),
    Case(
        ValueError,
        "X must not be given with a matrix: got ndarray",
        lambda: kc.solvers.block_jacobi(EYE, X),
    ),
    Case(
        ValueError,
        "K must be finite: K[0, 2] is nan",
        lambda: kc.solvers.block_jacobi(entry(0, 2, np.nan)),
    ),
    Case(
        np.linalg.LinAlgError,
        "K + ridge I must be positive definite: its block of rows 2 to 2 is not; pass a larger "
        "ridge",
        lambda: kc.solvers.block_jacobi(np.diag([1.0, 1.0, 0.0]), block=2),
    ),
    Case(
        ValueError,
        "K must be positive semi-definite and not zero: its diagonal entry 1 is -1.0",
        lambda: kc.solvers.randomly_pivoted_cholesky(np.diag([1.0, -1.0]), rank=1),
    ),
    Case(
        ValueError,
        "rank must be at most one less than the number of points, 2: got 3",
        lambda: kc.solvers.eigenpro_preconditioner(EYE, rank=3),
    ),
    Case(
        ValueError,
        "subsample must be at least 3: got 2",
        lambda: kc.solvers.eigenpro_preconditioner(EYE, rank=2, subsample=2),
    ),
    Case(
        ValueError,
        "epochs must be at least 0: got -1",
        lambda: kc.solvers.eigenpro(LAPLACIAN, X, np.ones(3), epochs=-1),
    ),
    # Weights.
    Case(
        ValueError,
        "sample_weight must have one entry per row of K, 3: got shape (2,)",
        lambda: kc.solvers.RidgePath(np.eye(3), np.ones(3), sample_weight=[1.0, 1.0]),
    ),
    Case(
        ValueError,
        "copies must be positive: got 0.0",
        lambda: kc.solvers.RidgePath(np.eye(3), np.ones(3), copies=[1.0, 0.0, 1.0]),
    ),
    # Overflow, matrices of zeros, too few rows, weights.
    Case(OverflowError, OVERFLOWS, lambda: kc.solvers.ridge(1e-320 * EYE, np.ones(3))),
    Case(OverflowError, OVERFLOWS, lambda: kc.solvers.interpolate(1e-320 * EYE, np.ones(3))),
    Case(
        OverflowError, OVERFLOWS, lambda: kc.solvers.RidgePath(1e-320 * EYE, np.ones(3)).alpha(0.0)
    ),
    Case(ValueError, ZERO, lambda: kc.solvers.richardson(0 * EYE, np.ones(3))),
    Case(ValueError, ZERO, lambda: kc.solvers.landweber(0 * EYE, np.ones(3))),
    Case(ValueError, ZERO, lambda: kc.solvers.gradient_descent(0 * EYE, np.ones(3))),
    Case(
        ValueError,
        "X must have at least 2 rows for eigenpro: got 1",
        lambda: kc.solvers.eigenpro(kc.Laplacian(1.0), X[:1], np.ones(1)),
    ),
    Case(
        ValueError,
        "sample_weight must have one entry per row of X, 3: got shape (2,)",
        lambda: eigenpro(sample_weight=np.ones(2)),
    ),
    Case(
        ValueError,
        "sample_weight must not be zero everywhere: got no positive weight",
        lambda: eigenpro(sample_weight=np.zeros(3)),
    ),
    Case(
        ValueError,
        "sample_weight must not be negative: got -1.0",
        lambda: eigenpro(sample_weight=[1.0, -1.0, 1.0]),
    ),
    Case(ValueError, "tol must not be negative: got -1.0", lambda: eigenpro(tol=-1)),
    Case(ValueError, "tol must not be negative: got -1.0", lambda: askotch(tol=-1)),
    Case(ValueError, "tol must not be negative: got -1.0", lambda: on_centres(tol=-1)),
    Case(ValueError, "delay must be at least 1: got 0", lambda: on_centres(delay=0)),
    Case(ValueError, "batch must be at least 1: got 0", lambda: on_centres(batch=0)),
    Case(
        ValueError,
        "projection must be one of 'auto', 'direct', 'cg': got 'svd'",
        lambda: on_centres(projection="svd"),
    ),
    Case(
        ValueError,
        "subsample must be at most the number of points, 2: got 3",
        lambda: on_centres(subsample=3),
    ),
    Case(
        ValueError,
        "centres must be at most the number of rows of X, 3: got 4",
        lambda: on_centres(centres=4),
    ),
    Case(
        ValueError,
        "centres must be of one kind with the rows of X, of shape (2,): got shape (1, 3)",
        lambda: on_centres(centres=np.ones((1, 3))),
    ),
    Case(
        ValueError,
        "initial must have the shape of the coefficients, (2,): got shape (3,)",
        lambda: on_centres(initial=np.ones(3)),
    ),
    Case(
        ValueError,
        "K must have a diagonal of positive, finite mean to be factored: got 0.0",
        lambda: kc.solvers.eigenpro_centres(
            kc.presets.mlp(1).ntk, np.zeros((3, 2)), np.ones(3), centres=2
        ),
    ),
    Case(ValueError, "nu must be at least 1: got 0.5", lambda: askotch(nu=0.5)),
    Case(ValueError, "mu must be at most 1/nu, 0.333: got 0.5", lambda: askotch(mu=0.5)),
    Case(ValueError, "mu must be positive: got 0.0", lambda: askotch(mu=0)),
    Case(ValueError, "rank must be at least 1: got 0", lambda: askotch(rank=0)),
    Case(ValueError, "blocksize must be at least 1: got 0", lambda: askotch(blocksize=0)),
    Case(
        ValueError,
        "sampling must be one of 'uniform', 'leverage': got 'dpp'",
        lambda: askotch(sampling="dpp"),
    ),
    Case(TypeError, "accelerate must be True or False: got int", lambda: askotch(accelerate=1)),
    Case(
        ValueError,
        "K_test must have one column per row of K, 3: got shape (2, 2)",
        lambda: kc.solvers.RidgePath(EYE, np.ones(3)).predict(np.ones((2, 2)), 1.0),
    ),
]
