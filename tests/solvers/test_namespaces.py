"""Solvers on arrays of another library, in memory that NumPy cannot read, against numpy.linalg.

Matrices have eigenvalues from 1 to 10, so that rounding is magnified by at most their condition.
"""

import elsewhere
import numpy as np
import pytest
import scipy.linalg
from elsewhere import back, device, library, there  # noqa: F401  -- fixtures
from numpy.testing import assert_allclose, assert_array_equal

import kernelcore as kc
from kernelcore import solvers

N, SPREAD, RIDGE = 36, 10.0, 0.5
KERNEL = kc.Laplacian(1.0)


class Problem:
    """A system, and its solution in float64."""

    def __init__(self, rng, dtype):
        q = np.linalg.qr(rng.standard_normal((N, N)))[0]
        K = (q * np.linspace(1, SPREAD, N)) @ q.T
        self.K = ((K + K.T) / 2).astype(dtype)
        self.y = rng.standard_normal((N, 3)).astype(dtype)
        self.y[:, 1] = 0  # which has converged before the first iteration
        self.eps = float(np.finfo(dtype).eps)
        self.wide = self.K.astype(float)
        self.alpha = self.inverse(RIDGE) @ self.y
        self.test = rng.standard_normal((5, N)).astype(dtype)

    def inverse(self, ridge):
        return np.linalg.inv(self.wide + ridge * np.eye(N))

    def near(self, times=1.0):
        """Backward errors 4 n eps of K, times the condition, on numbers of the size of ``times``.

        (3n + 1) u for a factorisation (Higham 2002, 10.4), n u for a product, less for vectors.
        """
        bound = 4 * N * self.eps * SPREAD
        return {"rtol": bound, "atol": bound * times}


@pytest.fixture
def problem(rng, dtype):
    return Problem(rng, dtype)


def same(got, want, dtype, **near):
    got = back(got)
    assert got.dtype == dtype
    assert_allclose(got, want, **near)


# ---- with the whole matrix


@pytest.mark.parametrize("column", [False, True])
def test_ridge(problem, dtype, column):
    p = problem
    y, want = (p.y[:, 0], p.alpha[:, 0]) if column else (p.y, p.alpha)
    K = there(p.K)
    same(solvers.ridge(K, there(y), RIDGE), want, dtype, **p.near())
    same(solvers.ridge(K, there(y), RIDGE, on_singular="pinv"), want, dtype, **p.near())
    exact = p.inverse(0.0) @ y
    same(solvers.interpolate(K, there(y)), exact, dtype, **p.near())
    assert_array_equal(back(K), p.K)  # it is not overwritten


def test_numbers_are_put_where_the_matrix_is():
    same(solvers.ridge(there(np.eye(2)), [1, 2.0], 1.0), [0.5, 1.0], np.float64)


def test_the_pseudo_inverse(dtype):
    K = there(np.ones((3, 3), dtype))
    found = solvers.ridge(K, there(np.array([3.0, 0.0, 0.0], dtype)), on_singular="pinv")
    same(found, np.full(3, 1 / 3), dtype, atol=30 * np.finfo(dtype).eps)


def test_a_matrix_without_a_factor_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match=r"its smallest eigenvalue is -1; a ridge"):
        solvers.ridge(there(np.array([[1.0, 2.0], [2.0, 1.0]])), there(np.ones(2)))


def test_inner_products(problem):
    p = problem
    K, alpha, few = there(p.K), there(p.y), there(p.y[:5])
    near = {"atol": N * 2.3e-16 * SPREAD * np.square(p.y).sum()}
    wide = p.y.astype(float)
    want = (wide * (p.wide @ wide)).sum(0)
    same(solvers.rkhs_inner(alpha, K), want, np.float64, **near)
    want = wide[:5].T @ p.test.astype(float) @ wide
    same(solvers.rkhs_inner(few, there(p.test), alpha), want, np.float64, **near)


# ---- all ridges


def left_out(K, y, ridge, weights, copies):
    """Residuals of fits without one copy of each point, one by one."""
    out = np.empty(y.shape)
    for i in range(len(K)):
        w = weights.copy()
        w[i] *= 1 - min(1, 1 / copies[i])
        some = w > 0
        A = K[np.ix_(some, some)] + ridge * np.diag(1 / w[some])
        out[i] = y[i] - K[i, some] @ np.linalg.solve(A, y[some])
    return out


@pytest.mark.parametrize("kind", ["plain", "weighted", "copies"])
def test_ridge_path(problem, dtype, kind):
    p = problem
    weights = np.ones(N) if kind == "plain" else np.linspace(0.5, 2, N)
    copies = np.maximum(1, np.arange(N) % 3) if kind == "copies" else weights
    given = {} if kind == "plain" else {"sample_weight": there(weights)}
    if kind == "copies":
        given["copies"] = there(copies)
    path = solvers.RidgePath(there(p.K), there(p.y), **given)
    ridges = np.array([0.1, 2.0])
    wide, near = p.y.astype(float), p.near(4.0)  # weights go from 1/2 to 2
    for k, ridge in enumerate(ridges):
        A = p.wide + ridge * np.diag(1 / weights)
        alpha = np.linalg.solve(A, wide)
        same(path.alpha(ridges)[k, ...], alpha, dtype, **near)
        same(path.fitted(ridges)[k, ...], p.wide @ alpha, dtype, **near)
        want = p.test.astype(float) @ alpha
        same(path.predict(there(p.test), ridges)[k, ...], want, dtype, **p.near(40.0))
        residuals = left_out(p.wide, wide, ridge, weights, copies)
        same(path.loo(ridges)[k, ...], residuals, dtype, **near)
        error = (weights[:, None] * residuals**2).mean(1).sum() / weights.sum()
        assert_allclose(float(path.loo_error(ridges)[k]), error, **near)
        freedom = np.trace(p.wide @ np.linalg.inv(A))
        assert_allclose(float(path.degrees_of_freedom(ridges)[k]), freedom, **near)
        same(
            path.rkhs_norm(ridges)[k, :], np.sqrt((alpha * (p.wide @ alpha)).sum(0)), float, **near
        )
    if kind == "plain":
        G = p.inverse(2.0)
        sign, log = np.linalg.slogdet(G)
        assert sign == 1
        want = 3 * log / 2 - (wide * (G @ wide)).sum() / 2 - 3 * N / 2 * np.log(2 * np.pi)
        value, slope = path.log_marginal_likelihood(2.0, gradient=True)
        assert_allclose(float(value), want, rtol=p.near()["rtol"])
        want = ((wide * (G @ G @ wide)).sum() - 3 * np.trace(G)) / 2
        assert_allclose(float(slope), want, **p.near(N))
        want = N * np.square(G @ wide).mean(1).sum() / np.trace(G) ** 2
        assert_allclose(float(path.gcv(2.0)), want, **near)
        values = np.linalg.eigvalsh(p.wide)[::-1]
        same(path.eigenvalues, values, np.float64, **near)
        basis = back(path.eigenvectors)
        assert_allclose(basis @ np.diag(values) @ basis.T, p.wide, **p.near(10.0))


def test_leave_one_out_at_ridge_zero(rng):
    """Every point twice: without one, its copy predicts it; a point alone is left to the others."""
    K = np.kron(np.ones((2, 2)), np.diag([1.0, 2.0]))
    K = scipy.linalg.block_diag(K, [[3.0]])
    y = rng.standard_normal(5)
    found = solvers.RidgePath(there(K), there(y)).loo([0.0, 0.5])
    twin = [y[0] - y[2], y[1] - y[3], y[2] - y[0], y[3] - y[1], y[4]]
    same(found[0, :], twin, np.float64, atol=1e-12)
    ones = np.ones(5)
    same(found[1, :], left_out(K, y, 0.5, ones, ones), np.float64, atol=1e-12)


@pytest.mark.parametrize("criterion", ["loo", "gcv", "likelihood"])
def test_the_best_ridge(problem, rng, criterion):
    """Of a draw from the process with noise: close to the noise, and so within the range."""
    p = problem
    y = np.linalg.cholesky(p.wide) @ rng.standard_normal((N, 9))
    y += 2 * rng.standard_normal(y.shape)
    path = solvers.RidgePath(there(p.K), there(y))
    found = path.best(criterion)
    cost = {"loo": path.loo_error, "gcv": path.gcv}.get(
        criterion, lambda r: -path.log_marginal_likelihood(r)
    )
    around = back(cost(found * np.exp(np.linspace(-1, 1, 9))))
    assert float(cost(found)) <= around.min() * (1 + 1e-6) + 1e-9
    assert path.best(criterion, [found, 10 * found]) == found


# ---- flows


def test_gradient_flow(problem, dtype):
    p, times = problem, np.array([0.0, 0.3, np.inf])
    start, start_test = 0.1 * p.y, 0.2 * p.y[:5]
    flow = solvers.gradient_flow(
        there(p.K), there(p.y), times, K_test=there(p.test), f0=there(start),
        f0_test=there(start_test), ridge=RIDGE,
    )  # fmt: skip
    A = p.wide + RIDGE * np.eye(N)
    for k, t in enumerate(times):
        left = np.zeros((N, N)) if np.isinf(t) else scipy.linalg.expm(-t * A)
        alpha = np.linalg.solve(A, (np.eye(N) - left) @ (p.y - start))
        same(flow.alpha[k, ...], alpha, dtype, **p.near())
        same(flow.train[k, ...], start + p.wide @ alpha, dtype, **p.near(SPREAD))
        same(flow.test[k, ...], start_test + p.test @ alpha, dtype, **p.near(40.0))
        decay = np.sort(np.linalg.eigvalsh(left))
        same(flow.decay[k, :], decay, np.float64, **p.near())
    same(flow.times, times, np.float64)
    same(flow.eigenvalues, np.linalg.eigvalsh(p.wide)[::-1], np.float64, **p.near(SPREAD))


@pytest.mark.parametrize("all_of_it", [False, True])
def test_ensemble_flow(problem, rng, dtype, all_of_it):
    p, times = problem, np.array([0.2, np.inf])
    root = rng.standard_normal((N + 5, N)) / np.sqrt(N)
    whole = (root @ root.T).astype(dtype)
    nngp, across, prior = whole[:N, :N], whole[N:, :N], whole[N:, N:]
    found = solvers.ensemble_flow(
        there(p.K), there(nngp), there(p.y), times, ntk_test=there(p.test),
        nngp_test=there(across), nngp_test_test=there(prior if all_of_it else np.diag(prior)),
    )  # fmt: skip
    for k, t in enumerate(times):
        left = np.zeros((N, N)) if np.isinf(t) else scipy.linalg.expm(-t * p.wide)
        phi = np.linalg.solve(p.wide, np.eye(N) - left)
        same(found.train_mean[k, ...], p.wide @ phi @ p.y, dtype, **p.near(4.0))
        same(found.train_variance[k, :], np.diag(left @ nngp @ left), dtype, **p.near(4.0))
        A = p.test @ phi
        same(found.test_mean[k, ...], A @ p.y, dtype, **p.near(40.0))
        covariance = prior - A @ across.T - across @ A.T + A @ nngp @ A.T
        same(found.test_variance[k, :], np.diag(covariance), dtype, **p.near(40.0))
        if all_of_it:
            same(found.test_covariance[k, ...], covariance, dtype, **p.near(40.0))
    same(found.times, times, np.float64)


# ---- iterations

ITERATIONS = {
    "conjugate gradients": solvers.conjugate_gradients,
    "richardson": solvers.richardson,
    "landweber": solvers.landweber,
    "heavy ball": lambda *a, **k: solvers.gradient_descent(*a, momentum=0.3, **k),
    "nesterov": solvers.gradient_descent,
}


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("name", ITERATIONS)
def test_iterations(problem, dtype, name, warm):
    p, tol = problem, 1e-3
    more = {"initial": there(p.alpha.astype(dtype) * 0.9)} if warm else {}
    seen = []
    found = ITERATIONS[name](
        there(p.K), there(p.y), RIDGE, tol=tol, max_iter=5000,
        callback=lambda k, alpha, residual: seen.append((back(alpha), residual)) and False, **more,
    )  # fmt: skip
    # |x - x*| <= |A^-1| |r|, and the smallest eigenvalue of A is 1.5
    bound = (tol + 4 * N * p.eps * SPREAD) * np.linalg.norm(p.y) / 1.5
    same(found.alpha, p.alpha, dtype, atol=bound)
    assert found.converged.all()
    assert len(seen) == found.iterations + 1 == len(found.residuals)
    assert_array_equal(seen[-1][0], back(found.alpha))
    left = p.y - p.wide @ seen[-1][0] - RIDGE * seen[-1][0]
    size = np.where(p.y.any(0), np.linalg.norm(p.y, axis=0), 1)
    # products, at most 8 n eps of what is subtracted
    near = {"rtol": 1e-3, "atol": 8 * N * p.eps * SPREAD}
    assert_allclose(found.residuals[-1], np.linalg.norm(left, axis=0) / size, **near)


def test_an_indefinite_matrix_is_given_up(rng):
    y = there(np.ones(3))
    with pytest.warns(RuntimeWarning, match="K \\+ ridge I is not positive definite in float64"):
        found = solvers.conjugate_gradients(there(np.diag([1.0, -1.0, 1.0])), y, max_iter=9)
    assert not found.converged


def test_the_largest_eigenvalue(problem):
    p = problem
    found = solvers.largest_eigenvalue(there(p.K), RIDGE)
    assert SPREAD + RIDGE <= found <= 1.06 * (SPREAD + RIDGE)


def test_what_comes_to_the_host_does_not_grow_with_the_points(rng, dtype):
    counts = []
    for n in (20, 60):
        X = rng.standard_normal((n, 2)).astype(dtype)
        K, y = there(KERNEL(X)), there(rng.standard_normal((n, 2)).astype(dtype))
        with elsewhere.reads() as count, pytest.warns(RuntimeWarning):
            solvers.conjugate_gradients(K, y, 0.1, tol=1e-30, max_iter=4)
        counts.append(count[0])
    assert 0 < counts[0] == counts[1]


LOSSES = {
    "square": (lambda f, y: (f - y) ** 2 / 2, lambda f, y: f - y),
    "logistic": (lambda f, y: np.log(1 + np.exp(-y * f)), lambda f, y: -y / (1 + np.exp(y * f))),
    "squared_hinge": (
        lambda f, y: np.maximum(0, 1 - y * f) ** 2 / 2,
        lambda f, y: -y * np.maximum(0, 1 - y * f),
    ),
    "hinge": (lambda f, y: np.maximum(0, 1 - y * f), lambda f, y: np.where(y * f < 1, -y, 0)),
}


@pytest.mark.parametrize("momentum", [0.0, 0.4])
@pytest.mark.parametrize("loss", LOSSES)
def test_descent_by_the_textbook(problem, dtype, loss, momentum):
    p, (value, slope) = problem, LOSSES[loss]
    y = np.where(p.y[:, 0] > 0, 1, -1).astype(dtype)
    found = solvers.kernel_gradient_descent(
        there(p.K), there(y), loss=loss, iterations=6, step=0.05, momentum=momentum,
        K_validation=there(p.test), y_validation=there(y[:5]),
    )  # fmt: skip
    alpha, change, f = np.zeros(N), np.zeros(N), np.zeros(N)
    best, least = alpha, value(np.zeros(5), y[:5]).mean()
    losses = []
    for k in range(1, 7):
        step = 0.05 / np.sqrt(k) if loss == "hinge" else 0.05
        change = momentum * change - step * slope(f, y)
        alpha = alpha + change
        f = p.wide @ alpha
        losses.append(value(f, y).mean())
        if (validation := value(p.test @ alpha, y[:5]).mean()) < least:
            best, least = alpha, validation
    assert_allclose(found.train_loss[1:], losses, **p.near())
    same(found.alpha, best, dtype, **p.near())
    assert_allclose(found.validation_loss.min(), least, **p.near(10.0))


def test_softmax(problem, dtype):
    p = problem
    labels = np.arange(N) % 3
    found = solvers.kernel_gradient_descent(
        there(p.K), there(labels.astype(dtype)), loss="softmax", iterations=4, step=0.1
    )
    rows = solvers.kernel_gradient_descent(
        there(p.K), there(np.eye(3, dtype=dtype)[labels]), loss="softmax", iterations=4, step=0.1
    )
    alpha = f = np.zeros((N, 3))
    for _ in range(4):
        shares = np.exp(f) / np.exp(f).sum(1, keepdims=True)
        alpha = alpha - 0.1 * (shares - np.eye(3)[labels])
        f = p.wide @ alpha
    same(found.alpha, alpha, dtype, **p.near())
    assert_array_equal(back(found.alpha), back(rows.alpha))


# ---- preconditioners


def test_randomly_pivoted_cholesky(problem, dtype):
    p = problem
    F, pivots = solvers.randomly_pivoted_cholesky(there(p.K), rank=9, block=4, seed=0)
    pivots = back(pivots)
    assert len(set(pivots)) == 9
    columns = p.wide[:, pivots]
    want = columns @ np.linalg.solve(columns[pivots], columns.T)
    F = back(F)
    assert F.dtype == dtype
    assert_allclose(F @ F.T, want, **p.near(SPREAD))
    assert_allclose(F[pivots], np.tril(F[pivots]), **p.near())


@pytest.mark.parametrize("columns", [None, 3])
@pytest.mark.parametrize("method", ["rpcholesky", "uniform"])
def test_nystrom_preconditioner(problem, dtype, method, columns):
    p = problem
    P = solvers.nystrom_preconditioner(there(p.K), rank=9, ridge=RIDGE, method=method, seed=0)
    F, r = back(P.factor).astype(float), p.y[:, 0] if columns is None else p.y
    left = np.trace(p.wide) - np.square(F).sum()
    assert_allclose(P.shift, RIDGE + left / (N - 9), **p.near(N))
    want = np.linalg.solve(F @ F.T + P.shift * np.eye(N), r)
    same(P.solve(there(r)), want, dtype, **p.near())


def test_a_preconditioner_of_rank_zero(dtype):
    P = solvers.LowRank(there(np.zeros((3, 0), dtype)), 2.0)
    same(P.solve(there(np.ones(3, dtype))), np.full(3, 0.5), dtype)


def test_eigenpro_preconditioner(problem, dtype):
    p, rank = problem, 6
    P = solvers.eigenpro_preconditioner(there(p.K), rank=rank, subsample=N, ridge=RIDGE, seed=0)
    values, vectors = np.linalg.eigh(p.wide)
    values, U = values[::-1][: rank + 1], vectors[:, ::-1][:, :rank]
    assert_allclose(P.eigenvalues, values, **p.near(SPREAD))
    D = np.diag(1 - (values[-1] + RIDGE) / (values[:-1] + RIDGE))
    # Eigenvectors turn by the backward error over the gap to the next eigenvalue, 9/35.
    near = {"atol": 4 * N * p.eps * SPREAD * 35 / 9 * np.abs(p.y).max()}
    same(P.solve(there(p.y)), p.y - U @ D @ U.T @ p.y, dtype, **near)
    same(P.solve(there(p.y[:, 0])), (p.y - U @ D @ U.T @ p.y)[:, 0], dtype, **near)


def test_many_points_by_subspace_iteration(rng):
    """The vectors are orthonormal and diagonalise the matrix between them, to rounding."""
    from kernelcore.solvers._preconditioners import SMALL, top_eigenpairs

    n, rank = SMALL + 20, 5
    scales = 0.5 ** np.arange(n)
    q = np.linalg.qr(rng.standard_normal((n, 40)))[0]
    a = (q * scales[:40]) @ q.T
    values, vectors = top_eigenpairs(there(a), rank)
    vectors = back(vectors)
    assert_allclose(values, scales[:rank], rtol=1e-12)
    assert_allclose(vectors.T @ vectors, np.eye(rank), atol=1e-13)
    assert_allclose(vectors.T @ a @ vectors, np.diag(scales[:rank]), atol=1e-13)


def test_block_jacobi(problem, dtype):
    p = problem
    P = solvers.block_jacobi(there(p.K), block=15, ridge=RIDGE)
    A = p.wide + RIDGE * np.eye(N)
    want = np.concatenate(
        [np.linalg.solve(A[s, s], p.y[s]) for s in (slice(0, 15), slice(15, 30), slice(30, N))]
    )
    same(P.solve(there(p.y)), want, dtype, **p.near())


PRECONDITIONERS = {
    "nystrom": lambda K: solvers.nystrom_preconditioner(K, rank=9, ridge=RIDGE, seed=0),
    "eigenpro": lambda K: solvers.eigenpro_preconditioner(K, rank=6, ridge=RIDGE, seed=0),
    "blocks": lambda K: solvers.block_jacobi(K, block=15, ridge=RIDGE),
}


@pytest.mark.parametrize("name", PRECONDITIONERS)
def test_preconditioned_iterations(problem, dtype, name):
    p, tol = problem, 1e-5
    K = there(p.K)
    P = PRECONDITIONERS[name](K)
    bound = (tol + 4 * N * p.eps * SPREAD) * np.linalg.norm(p.y) / 1.5
    for solve in (solvers.conjugate_gradients, solvers.richardson):
        found = solve(K, there(p.y), RIDGE, preconditioner=P, tol=tol)
        same(found.alpha, p.alpha, dtype, atol=bound)


# ---- kernels and their points


@pytest.fixture
def points(rng, dtype, device):  # noqa: F811
    X = rng.standard_normal((N, 3)).astype(dtype)
    y = np.stack([np.sin(X[:, 0]), X[:, 1]], 1).astype(dtype)
    return X, y


@pytest.mark.parametrize("memory", [None, 3000])
@pytest.mark.parametrize("solve", [solvers.conjugate_gradients, solvers.ridge])
def test_an_operator_of_points_on_a_device(points, dtype, solve, memory):
    X, y = points
    K = kc.GramOperator(KERNEL, there(X), max_memory=memory)
    found = solve(K, there(y), RIDGE)
    alpha = back(found if solve is solvers.ridge else found.alpha)
    assert alpha.dtype == dtype
    want = np.linalg.solve(KERNEL(X).astype(float) + RIDGE * np.eye(N), y)
    eps = float(np.finfo(dtype).eps)
    tol = 1e-6 if solve is solvers.conjugate_gradients else 0.0
    assert_allclose(alpha, want, atol=(tol / RIDGE + 4 * N * eps * N / RIDGE) * np.abs(y).sum())


def test_an_operator_that_is_kept_stays_what_it_is(points):
    X, y = points
    K = kc.GramOperator(KERNEL, there(X))
    assert K.hold()
    solvers.RidgePath(K, there(y), sample_weight=there(np.linspace(1, 2, N))).alpha(RIDGE)
    solvers.nystrom_ridge(
        K, None, there(y), RIDGE, centres=N, solver="cg", seed=0,
        sample_weight=there(np.linspace(1, 2, N)),
    )  # fmt: skip
    assert_array_equal(back(K.toarray()), KERNEL(X))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("way", ["kernel", "matrix", "in pieces"])
def test_eigenpro(points, dtype, way, weighted):
    X, y = points
    tol, K = 1e-2, KERNEL(X)
    weight = np.linspace(0.5, 2, N) if weighted and way != "matrix" else np.ones(N)
    more = {"sample_weight": there(weight)} if weighted and way != "matrix" else {}
    if way == "in pieces":  # one row at a time, and batches of seven
        more |= {"max_memory": float(N * K.itemsize), "batch": 7}
    kernel, given = (there(K), None) if way == "matrix" else (KERNEL, there(X))
    found = solvers.eigenpro(
        kernel, given, there(y), RIDGE, tol=tol, epochs=400, rank=5, seed=0, **more
    )
    assert found.converged
    alpha = back(found.alpha)
    assert alpha.dtype == dtype
    want = np.linalg.solve(K.astype(float) + RIDGE * np.diag(1 / weight), y)
    # The residual is that of S K S + ridge I, at all of its points; S is at most 2^(1/2).
    bound = tol * np.linalg.norm(np.sqrt(weight)[:, None] * y) / RIDGE * np.sqrt(2)
    assert np.linalg.norm(alpha - want) <= bound * 1.01


@pytest.mark.parametrize("way", ["kernel", "weighted", "matrix", "in pieces", "low rank"])
def test_askotch(points, dtype, way):
    X, y = points
    tol, K, weight, more = 1e-2, KERNEL(X), np.ones(N), {}
    if way == "weighted":
        weight = np.linspace(0.5, 2, N)
        more = {"sample_weight": there(weight), "sampling": "leverage", "initial": there(y)}
    elif way == "in pieces":  # one row at a time, and blocks of seven
        more = {"max_memory": 2.0 * N * K.itemsize, "blocksize": 7}
    elif way == "low rank":
        more = {"rank": 5, "blocksize": 9}
    kernel, given = (there(K), None) if way == "matrix" else (KERNEL, there(X))
    found = solvers.askotch(kernel, given, there(y), RIDGE, tol=tol, epochs=400, seed=0, **more)
    assert found.converged
    alpha = back(found.alpha)
    assert alpha.dtype == dtype
    want = np.linalg.solve(K.astype(float) + RIDGE * np.diag(1 / weight), y)
    # The residual is that of S K S + ridge I, at all of its points; S is at most 2^(1/2).
    bound = tol * np.linalg.norm(np.sqrt(weight)[:, None] * y) / RIDGE * np.sqrt(2)
    assert np.linalg.norm(alpha - want) <= bound * 1.01


@pytest.mark.parametrize("way", ["kernel", "weighted", "inexact", "in pieces"])
def test_eigenpro_centres(points, dtype, way):
    X, y = points
    weight, more = np.ones(N), {}
    if way == "weighted":
        weight = np.linspace(0.5, 2, N)
        more = {"sample_weight": there(weight), "initial": there(y[:6])}
    elif way == "inexact":
        more = {"projection": "cg", "delay": 1}
    elif way == "in pieces":  # two rows at a time
        more = {"max_memory": 8.0 * 2 * 6 * X.itemsize, "projection": "direct"}
    found = solvers.eigenpro_centres(
        KERNEL,
        there(X),
        there(y),
        RIDGE,
        centres=there(X[:6]),
        tol=1e-3,
        epochs=400,
        seed=0,
        **more,
    )
    assert found.converged
    a, inside = KERNEL(X, X[:6]).astype(float), KERNEL(X[:6]).astype(float)
    want = a @ np.linalg.solve((a.T * weight) @ a + RIDGE * inside, (a.T * weight) @ y)
    got = back(found.predict(there(X)))
    assert got.dtype == dtype
    # the residual's norm is that of predictions up to the spread of what it stands for
    spread = np.linalg.eigvals(np.linalg.solve(a.T @ a, inside @ inside) * N / 6).real.max()
    assert np.linalg.norm(got - want) <= 3 * np.sqrt(spread) * 1e-3 * np.linalg.norm(y)


def test_eigenpro_is_warm_where_it_starts(points, dtype):
    X, y = points
    start = np.linalg.solve(KERNEL(X) + RIDGE * np.eye(N), y).astype(dtype)
    seen = []
    found = solvers.eigenpro(
        KERNEL, there(X), there(y), RIDGE, initial=there(start), epochs=1, seed=0,
        callback=lambda epoch, alpha, mse: seen.append(back(alpha)),
    )  # fmt: skip
    assert found.residuals[0] < 1e-4
    assert_array_equal(seen[-1], back(found.alpha))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["cg", "direct"])
@pytest.mark.parametrize("method", ["uniform", "leverage", "rpcholesky", "given"])
def test_nystrom_ridge(points, dtype, method, solver, weighted):
    X, y = points
    m = 8
    weight = np.linspace(0.5, 2, N) if weighted else np.ones(N)
    more = {"sample_weight": there(weight)} if weighted else {}
    more |= {"centres": there(X[:m])} if method == "given" else {"centres": m, "method": method}
    tol = 1e-5
    model = solvers.nystrom_ridge(
        KERNEL, there(X), there(y), RIDGE, solver=solver, tol=tol, seed=0, **more
    )
    centres = back(model.centres)
    if method == "given":
        assert model.indices is None
    else:
        assert_array_equal(centres, X[back(model.indices)])
    across, inside = KERNEL(X, centres).astype(float), KERNEL(centres).astype(float)
    normal = across.T @ (weight[:, None] * across) + RIDGE * inside
    alpha = np.linalg.solve(normal, across.T @ (weight[:, None] * y))
    Z = X[::2] + dtype.type(0.1)
    found = model.predict(there(Z))
    # Factors of K_mm, whose condition is below 100, once for "rpcholesky" and twice for the others.
    eps = float(np.finfo(dtype).eps)
    bound = (10 * tol + 100 * N * eps * np.linalg.cond(inside)) * np.abs(y).max()
    same(found, KERNEL(Z, centres) @ alpha, dtype, atol=bound)
    same(model.predict(there(X[:0])), np.zeros((0, 2)), dtype)


def test_leave_one_out_of_centres(points, dtype):
    from kernelcore.solvers._nystrom import left_out as without

    X, y = points
    model = solvers.nystrom_ridge(KERNEL, there(X), there(y), RIDGE, centres=8, seed=0)
    found = back(without(model, there(X), there(y), RIDGE, None, None))
    centres = back(model.centres)
    at = back(model.indices)
    assert np.isnan(found[at]).all()
    inside = KERNEL(centres).astype(float)
    for i in np.setdiff1d(np.arange(N), at)[:5]:
        rest = np.arange(N) != i
        across = KERNEL(X[rest], centres).astype(float)
        alpha = np.linalg.solve(across.T @ across + RIDGE * inside, across.T @ y[rest])
        want = y[i] - (KERNEL(X[i : i + 1], centres) @ alpha)[0]
        # Conjugate gradients are not used: 8 centres are few.
        assert_allclose(found[i], want, atol=400 * N * float(np.finfo(dtype).eps))
