"""All kinds of points through what takes a kernel, and all kinds of K through what takes K."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import kernelcore as kc
from kernelcore import solvers

TAIL = (kc.Relu(), kc.GlobalAvgPool(), kc.Dense(1.0, 0.3))
NETWORKS = {
    "rows": (kc.presets.mlp(1, b_std=0.3), (3,)),
    "signals": (kc.Sequential(kc.Conv((3,), w_std=1.4), *TAIL), (6, 2)),
    "images": (kc.Sequential(kc.Conv(3, w_std=1.4), *TAIL), (4, 3, 1)),
}
N, RIDGE, TOL = 24, 0.5, 1e-9


class Problem:
    """Points of a kind with labels, the matrix, and what ridge regression makes of them."""

    def __init__(self, kind: str) -> None:
        rng = np.random.default_rng(7)
        net, shape = NETWORKS[kind]
        self.kernel, self.nngp = net.ntk, net.nngp
        self.X, self.Z = rng.standard_normal((N, *shape)), rng.standard_normal((5, *shape))
        self.y = rng.standard_normal((N, 2))
        self.K, self.across = self.kernel(self.X), self.kernel(self.Z, self.X)
        self.alpha = np.linalg.solve(self.K + RIDGE * np.eye(N), self.y)
        self.f = self.across @ self.alpha

    def alpha_error(self, tol: float) -> float:
        """|alpha - A^-1 y| <= |A^-1| |r| with |A^-1| <= 1/ridge and |r| <= tol |y|."""
        return tol * np.linalg.norm(self.y) / RIDGE

    def f_error(self, tol: float) -> float:
        """The same of ``k(z, X) alpha``."""
        return np.linalg.norm(self.across, 2) * self.alpha_error(tol)

    def operator(self, **options):
        return kc.GramOperator(self.kernel, self.X, **options)


PROBLEMS = {kind: Problem(kind) for kind in NETWORKS}


@pytest.fixture(params=NETWORKS)
def problem(request):
    return PROBLEMS[request.param]


# ---- a kernel and its points, of all kinds


ITERATIVE = {
    "cg": solvers.conjugate_gradients,
    "richardson": solvers.richardson,
    "landweber": solvers.landweber,
    "gradient_descent": solvers.gradient_descent,
}
PRECONDITIONERS = {
    "nystrom": lambda *K: solvers.nystrom_preconditioner(*K, rank=8, ridge=RIDGE, seed=0),
    "uniform": lambda *K: solvers.nystrom_preconditioner(
        *K, rank=8, ridge=RIDGE, method="uniform", seed=0
    ),
    "eigenpro": lambda *K: solvers.eigenpro_preconditioner(*K, rank=4, ridge=RIDGE, seed=0),
    "block_jacobi": lambda *K: solvers.block_jacobi(*K, block=7, ridge=RIDGE),
}


@pytest.mark.parametrize("solver", ITERATIVE)
def test_iterative_solvers_of_an_operator(solver, problem):
    check_iterative(ITERATIVE[solver], problem.operator(), problem)


@pytest.mark.parametrize("memory", [1.0, 0.5 * 8 * N * N])
def test_none_or_some_of_an_operator_is_kept(memory, problem):
    check_iterative(solvers.conjugate_gradients, problem.operator(max_memory=memory), problem)


def check_iterative(solver, K, p):
    """With a ridge that leaves a condition of 3, so that a few dozen iterations are enough."""
    ridge = np.linalg.norm(p.K, 2) / 2
    found = solver(K, p.y, ridge, tol=TOL)
    assert found.converged.all()
    want = np.linalg.solve(p.K + ridge * np.eye(N), p.y)
    assert_allclose(found.alpha, want, atol=TOL * np.linalg.norm(p.y) / ridge)


@pytest.mark.parametrize("way", ["kernel", "kept", "not kept"])
@pytest.mark.parametrize("name", PRECONDITIONERS)
def test_preconditioners(name, way, problem):
    K = problem.operator(max_memory=1.0 if way == "not kept" else None)
    assert K.hold() == (way != "not kept")
    P = PRECONDITIONERS[name](*([problem.kernel, problem.X] if way == "kernel" else [K]))
    want = PRECONDITIONERS[name](problem.K).solve(problem.y)
    # Entries of images may round as their mirror images; what solves with them has condition
    # numbers below 1e4.
    assert_allclose(P.solve(problem.y), want, rtol=1e-10, atol=1e-10)
    found = solvers.conjugate_gradients(K, problem.y, RIDGE, preconditioner=P, tol=TOL)
    assert_allclose(found.alpha, problem.alpha, atol=problem.alpha_error(TOL))


@pytest.mark.parametrize("way", ["kernel", "operator"])
def test_randomly_pivoted_cholesky(way, problem):
    K = (problem.kernel, problem.X) if way == "kernel" else (problem.operator(),)
    F, pivots = solvers.randomly_pivoted_cholesky(*K, rank=N, seed=1)
    assert sorted(pivots) == list(range(N))
    assert_allclose(F @ F.T, problem.K, atol=N * 1e-15 * np.trace(problem.K))


@pytest.mark.parametrize("way", ["kernel", "kept", "not kept", "rows in parts"])
@pytest.mark.parametrize("weighted", [False, True])
def test_eigenpro(weighted, way, problem):
    p, root = problem, np.linspace(0.5, 1.5, N)[:, None]
    # A batch of all points is gradient descent with a preconditioner: it converges.
    options = {"tol": 1e-7, "epochs": 5000, "rank": 10, "seed": 0}
    if way in ("kernel", "rows in parts"):
        memory = {} if way == "kernel" else {"max_memory": 4 * 8 * N}
        if weighted:
            options["sample_weight"] = root[:, 0] ** 2
        alpha = solvers.eigenpro(p.kernel, p.X, p.y, RIDGE, **options, **memory).alpha
    else:
        scale = root[:, 0] if weighted else None
        K = p.operator(scale=scale, max_memory=None if way == "kept" else 1.0)
        y = root * p.y if weighted else p.y
        alpha = solvers.eigenpro(K, None, y, RIDGE, **options).alpha
        alpha = root * alpha if weighted else alpha
    weight = root[:, 0] ** 2 if weighted else np.ones(N)
    want = np.linalg.solve(p.K + RIDGE * np.diag(1 / weight), p.y)
    # In coordinates with roots of weights, at most 1.5, as in alpha_error.
    assert_allclose(alpha, want, atol=1.5**2 * p.alpha_error(1e-7))


@pytest.mark.parametrize("way", ["kernel", "kept", "not kept"])
@pytest.mark.parametrize("solver", ["cg", "direct"])
@pytest.mark.parametrize("method", ["uniform", "leverage", "rpcholesky"])
def test_nystrom_ridge_with_all_points_as_centres(method, solver, way, problem):
    K = problem.operator(max_memory=1.0 if way == "not kept" else None)
    K.hold()
    kernel, X = (problem.kernel, problem.X) if way == "kernel" else (K, None)
    model = solvers.nystrom_ridge(
        kernel, X, problem.y, RIDGE, centres=N, method=method, solver=solver, tol=TOL, seed=0
    )
    assert model.centres.shape == problem.X.shape
    assert_array_equal(model.centres, problem.X[model.indices])
    # Normal equations square the condition of K, below 1e4 here.
    assert_allclose(model.predict(problem.Z), problem.f, atol=1e-7)


def test_nystrom_ridge_with_given_centres(problem):
    p = problem
    inside, across = p.kernel(p.X[:9]), p.K[:, :9]
    alpha = np.linalg.solve(across.T @ across + RIDGE * inside, across.T @ p.y)
    for kernel, X in ((p.kernel, p.X), (p.operator(), None)):
        model = solvers.nystrom_ridge(kernel, X, p.y, RIDGE, centres=p.X[:9], tol=TOL)
        assert_allclose(model.predict(p.Z), p.across[:, :9] @ alpha, atol=1e-7)


REGRESSORS = ["auto", "cholesky", "eigen", "cg", "eigenpro", "nystrom"]


@pytest.mark.parametrize("solver", REGRESSORS)
@pytest.mark.parametrize("weighted", [False, True])
def test_regressor(weighted, solver, problem):
    p = problem
    weight = np.linspace(0.5, 1.5, N) if weighted else np.ones(N)
    model = kc.KernelRegressor(
        p.kernel, RIDGE, solver, centres=N, tol=1e-7, max_iter=5000, random_state=0
    )
    model.fit(p.X, p.y, weight if weighted else None)
    alpha = np.linalg.solve(p.K + RIDGE * np.diag(1 / weight), p.y)
    assert_allclose(model.predict(p.Z), p.across @ alpha, atol=2 * p.f_error(1e-7))
    norm = np.sqrt((alpha * (p.K @ alpha)).sum(0))
    assert_allclose(model.rkhs_norm_, norm, rtol=1e-5)


@pytest.mark.parametrize("solver", REGRESSORS)
def test_classifier(solver, problem):
    p = problem
    labels = (p.y[:, 0] > 0).astype(int)
    model = kc.KernelClassifier(
        p.kernel, RIDGE, solver=solver, centres=N, tol=1e-7, max_iter=5000, random_state=0
    ).fit(p.X, labels)
    codes = np.linalg.solve(p.K + RIDGE * np.eye(N), np.eye(2)[labels])
    assert_array_equal(model.predict(p.Z), (p.across @ codes).argmax(1))
    assert_allclose(model.predict_proba(p.Z).sum(1), 1.0)


@pytest.mark.parametrize("solver", ["cg", "eigenpro", "nystrom"])
def test_ridges_are_chosen_for_all_kinds(solver, problem):
    p = problem
    model = kc.KernelRegressor(p.kernel, "loo", solver, centres=N, max_iter=5000, random_state=0)
    want = solvers.RidgePath(p.K, p.y).best("loo")
    assert_allclose(model.fit(p.X, p.y).ridge_, want, rtol=1e-3)


def test_other_estimators(problem):
    p = problem
    process = kc.GaussianProcess(p.kernel, RIDGE).fit(p.X, p.y)
    mean, spread = process.predict(p.Z, return_std=True)
    white = np.linalg.solve(p.K + RIDGE * np.eye(N), p.across.T)
    variance = p.kernel.diag(p.Z) - (p.across * white.T).sum(1)
    assert_allclose(mean, p.f, rtol=1e-9, atol=1e-9)
    assert_allclose(spread**2, np.stack([variance] * 2, 1), rtol=1e-7, atol=1e-9)

    weights = p.nngp(p.Z, p.X)
    assert (weights > 0).all()
    smooth = kc.KernelSmoother(p.nngp).fit(p.X, p.y).predict(p.Z)
    assert_allclose(smooth, weights @ p.y / weights.sum(1)[:, None], rtol=1e-12)

    centred = (np.eye(N) - 1 / N) @ p.K @ (np.eye(N) - 1 / N)
    pca = kc.KernelPCA(3, p.kernel).fit(p.X)
    values = np.linalg.eigvalsh(centred)[::-1]
    assert_allclose(pca.eigenvalues_, values[:3], rtol=1e-10)
    assert_allclose((pca.transform(p.X) ** 2).sum(0), values[:3], rtol=1e-9)
    assert pca.inverse_transform(pca.transform(p.Z)).shape == p.Z.shape

    W = p.nngp(p.X)
    maps = kc.SpectralEmbedding(2, p.nngp).fit(p.X)
    P = np.linalg.eigvals(W / W.sum(1)[:, None]).real
    assert_allclose(maps.eigenvalues_, np.sort(1 - P)[1:3], atol=1e-10)
    assert_allclose(maps.transform(p.X), maps.embedding_, atol=1e-9)


# ---- the kernel is computed once


@pytest.mark.parametrize("ridge", [RIDGE, "loo"])
@pytest.mark.parametrize("solver", ["cg", "eigenpro"])
@pytest.mark.parametrize("classes", [False, True])
def test_fits_cost_one_gram_matrix(classes, solver, ridge, problem, monkeypatch):
    p, entries, call = problem, [], kc.Kernel.__call__

    def counted(self, X, Y=None, **options):
        entries.append(len(X) * (len(X) + 1) // 2 if Y is None else len(X) * len(Y))
        return call(self, X, Y, **options)

    monkeypatch.setattr(kc.Kernel, "__call__", counted)
    make = kc.KernelClassifier if classes else kc.KernelRegressor
    y = (p.y[:, 0] > 0).astype(int) if classes else p.y
    make(p.kernel, ridge, solver=solver, tol=0.1, max_iter=500, random_state=0).fit(p.X, y)
    assert sum(entries) == N * (N + 1) // 2


# ---- arrays and operators


class Duck:
    """A shape and products."""

    def __init__(self, K):
        self.K, self.shape = K, K.shape

    def __matmul__(self, x):
        return self.K @ x


class Generous(Duck):
    """What preconditioners need, too."""

    def __init__(self, K):
        super().__init__(K)
        self.dtype = K.dtype

    def diagonal(self):
        return self.K.diagonal()

    def columns(self, which):
        return self.K[:, which]


ROWS = PROBLEMS["rows"]
OPERANDS = {
    "list": lambda kernel, X, Y=None: kernel(X, Y).tolist(),
    "LinearOperator": lambda kernel, X, Y=None: aslinearoperator(kernel(X, Y)),
    "products": lambda kernel, X, Y=None: Duck(kernel(X, Y)),
    "parts": lambda kernel, X, Y=None: Generous(kernel(X, Y)),
    "kept": lambda kernel, X, Y=None: held(kc.GramOperator(kernel, X, Y)),
    "in tiles": lambda kernel, X, Y=None: kc.GramOperator(kernel, X, Y, max_memory=4000),
    "RowBlocks": lambda kernel, X, Y=None: (
        kc.GramOperator(kernel, X, Y) if Y is not None else solvers.RowBlocks(kernel, X)
    ),
}


def held(K):
    K.hold()
    return K


EXACT = {
    "ridge": lambda K, of: solvers.ridge(K, ROWS.y, RIDGE),
    "interpolate": lambda K, of: solvers.interpolate(K, ROWS.y),
    "pinv": lambda K, of: solvers.ridge(K, ROWS.y, on_singular="pinv"),
    "RidgePath": lambda K, of: solvers.RidgePath(K, ROWS.y).alpha([0.1, 1.0]),
    "RidgePath, weighted": lambda K, of: solvers.RidgePath(
        K, ROWS.y, sample_weight=np.arange(1.0, N + 1)
    ).loo(0.1),
    "RidgePath.predict": lambda K, of: solvers.RidgePath(K, ROWS.y).predict(
        of(ROWS.kernel, ROWS.Z, ROWS.X), RIDGE
    ),
    "gradient_flow": lambda K, of: solvers.gradient_flow(
        K, ROWS.y, [0.1, np.inf], K_test=of(ROWS.kernel, ROWS.Z, ROWS.X)
    ).test,
    "ensemble_flow": lambda K, of: solvers.ensemble_flow(
        K, of(ROWS.nngp, ROWS.X), ROWS.y, [0.5],
        ntk_test=of(ROWS.kernel, ROWS.Z, ROWS.X), nngp_test=of(ROWS.nngp, ROWS.Z, ROWS.X),
        nngp_test_test=of(ROWS.nngp, ROWS.Z),
    ).test_covariance,
    "rkhs_inner": lambda K, of: solvers.rkhs_inner(
        ROWS.y[:5], of(ROWS.kernel, ROWS.Z, ROWS.X), ROWS.y
    ),
    "spectrum.gram": lambda K, of: kc.spectrum.gram(K, 3, trace=1.0).eigenvalues
    if isinstance(K, Duck) or type(K).__name__ == "MatrixLinearOperator"
    else kc.spectrum.gram(K).eigenvalues[:3],
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("operand", OPERANDS)
def test_direct_solvers_make_the_array(operand, name):
    of = OPERANDS[operand]
    want = EXACT[name](ROWS.K, lambda kernel, X, Y=None: kernel(X, Y))
    got = EXACT[name](of(ROWS.kernel, ROWS.X), of)
    if name == "spectrum.gram":  # Lanczos beside LAPACK
        assert_allclose(got, want, atol=N * 1.1e-16 * want[0] * 10)
    else:  # products with the identity have no rounding
        assert_array_equal(got, want)


@pytest.mark.parametrize("name", ITERATIVE)
@pytest.mark.parametrize("operand", OPERANDS)
def test_iterative_solvers_multiply(operand, name):
    K = OPERANDS[operand](ROWS.kernel, ROWS.X)
    check_iterative(ITERATIVE[name], K, ROWS)


@pytest.mark.parametrize("operand", OPERANDS)
def test_descent_norms_and_bounds_multiply(operand):
    K = OPERANDS[operand](ROWS.kernel, ROWS.X)
    validation = OPERANDS[operand](ROWS.kernel, ROWS.Z, ROWS.X)
    options = {"iterations": 30, "step": 0.01, "y_validation": ROWS.y[:5]}
    got = solvers.kernel_gradient_descent(K, ROWS.y, K_validation=validation, **options)
    alpha, f = np.zeros_like(ROWS.y), np.zeros_like(ROWS.y)
    losses = []
    for _ in range(30):
        alpha = alpha - 0.01 * (f - ROWS.y)
        f = ROWS.K @ alpha
        losses.append(((ROWS.across @ alpha - ROWS.y[:5]) ** 2).sum(1).mean() / 2)
    assert_allclose(got.validation_loss[1:], losses, rtol=1e-10)
    want = (ROWS.alpha * (ROWS.K @ ROWS.alpha)).sum(0)
    assert_allclose(solvers.rkhs_inner(ROWS.alpha, K), want, rtol=1e-12)
    top = np.linalg.eigvalsh(ROWS.K)[-1]
    assert top <= solvers.largest_eigenvalue(K) <= 1.06 * top


PARTS = PRECONDITIONERS | {
    "pivoted": lambda K: solvers.randomly_pivoted_cholesky(K, rank=9, seed=0)[0],
    "eigenpro itself": lambda K: solvers.eigenpro(K, None, ROWS.y, RIDGE, epochs=3, seed=0),
    "askotch itself": lambda K: solvers.askotch(K, None, ROWS.y, RIDGE, epochs=3, rank=2, seed=0),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("operand", OPERANDS)
def test_parts_or_a_clear_word(operand, name):
    K = OPERANDS[operand](ROWS.kernel, ROWS.X)
    if operand in ("LinearOperator", "products"):
        with pytest.raises(TypeError, match=r"columns\(\) besides @: got .*; pass a GramOperator"):
            PARTS[name](K)
        return
    got, want = PARTS[name](K), PARTS[name](ROWS.K)
    if name in PRECONDITIONERS:
        got, want = got.solve(ROWS.y), want.solve(ROWS.y)
    elif name.endswith("itself"):
        got, want = got.alpha, want.alpha
    assert_array_equal(got, want)  # the same entries, in the same operations


@pytest.mark.parametrize("memory", [None, 3e4])
def test_few_eigenvalues_of_an_operator_are_taken_from_products(memory, rng, dtype):
    X = rng.standard_normal((100, 3)).astype(dtype)
    K = kc.GramOperator(kc.Laplacian(1.0), X, max_memory=memory)
    found = kc.spectrum.gram(K, 3)
    assert K.passes > 3
    want = kc.spectrum.gram(K.toarray(), 3)
    # The products are in float64 whatever K is in.
    assert_allclose(found.eigenvalues, want.eigenvalues, rtol=1e-12)
    assert_allclose(found.trace, want.trace, rtol=1e-14)
    assert_allclose(np.abs((found.eigenvectors * want.eigenvectors).sum(0)), 1, rtol=1e-10)


def test_descent_in_the_dtype_of_an_operator(rng):
    X, y = rng.standard_normal((20, 2)).astype(np.float32), rng.standard_normal(20)
    K = kc.GramOperator(kc.Gaussian(1.0), X)
    assert solvers.kernel_gradient_descent(K, y, iterations=2).alpha.dtype == np.float32
    plain = LinearOperator(K.shape, K.matvec, matmat=K.matmat, dtype=np.float32)
    assert solvers.kernel_gradient_descent(plain, y, iterations=2).alpha.dtype == np.float64
    assert solvers.ridge(plain, y, 0.1).dtype == np.float32


def test_an_operator_that_is_not_symmetric_is_refused():
    def shear(x):
        return np.triu(np.ones((3, 3))) @ x

    K = LinearOperator((3, 3), shear, matmat=shear, dtype=float)
    with pytest.raises(ValueError, match=r"^K must be symmetric: K\[0, 1\] and K\[1, 0\] differ"):
        solvers.ridge(K, np.ones(3))
