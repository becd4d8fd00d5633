"""Iterative solvers, preconditioners, EigenPro and Nystrom ridge, against numpy.linalg."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import LinearOperator

import kernelcore as kc
from kernelcore import solvers

NTK = kc.presets.mlp(2, b_std=0.1).ntk
STATIONARY = {
    "richardson": solvers.richardson,
    "landweber": solvers.landweber,
    "descent": lambda *a, **k: solvers.gradient_descent(*a, momentum=0.0, **k),
    "heavy ball": lambda *a, **k: solvers.gradient_descent(*a, momentum=0.5, **k),
    "nesterov": solvers.gradient_descent,
}
ALL = STATIONARY | {"conjugate gradients": solvers.conjugate_gradients}


def with_spectrum(rng, values):
    """A symmetric matrix with these eigenvalues."""
    q = np.linalg.qr(rng.standard_normal((len(values),) * 2))[0]
    a = (q * values) @ q.T
    return (a + a.T) / 2


def residual(K, ridge, x, y):
    return np.linalg.norm(y - K @ x - ridge * x, axis=0) / np.linalg.norm(y, axis=0)


class Counted:
    """Multiplies, and says how often and with how many columns."""

    def __init__(self, K):
        self.K, self.shape, self.columns = K, K.shape, []

    def __matmul__(self, x):
        self.columns.append(x.shape[1])
        return self.K @ x


@pytest.fixture
def data(rng):
    X = rng.standard_normal((300, 5))
    y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], 1)
    return X, y


# ---- the solvers


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("columns", [None, 3])
def test_a_well_conditioned_system(name, columns, rng):
    K = with_spectrum(rng, np.geomspace(1, 20, 60))
    y = rng.standard_normal(60 if columns is None else (60, columns))
    found = ALL[name](K, y, 0.5, tol=1e-10, max_iter=20000)
    want = np.linalg.solve(K + 0.5 * np.eye(60), y)
    # |x - x*| <= |A^-1| |r| and |y| <= |A| |x*|
    error = np.linalg.norm(found.alpha - want, axis=0) / np.linalg.norm(want, axis=0)
    assert (error <= 20.5 / 1.5 * 1e-10 * 1.01).all()
    assert found.converged.all()
    assert found.alpha.shape == y.shape
    assert found.residuals.shape == (found.iterations + 1, *y.shape[1:])
    assert found.converged.shape == y.shape[1:]
    assert_allclose(found.residuals[0], 1.0)
    assert_allclose(found.residuals[-1], residual(K, 0.5, found.alpha, y), rtol=1e-3)


@pytest.mark.parametrize("name", ["richardson", "landweber", "descent"])
def test_residuals_never_grow_where_theory_says_so(name, rng):
    K = with_spectrum(rng, np.geomspace(1e-6, 1, 50))
    with pytest.warns(RuntimeWarning, match="did not converge"):
        found = STATIONARY[name](K, rng.standard_normal(50), max_iter=200)
    assert (np.diff(found.residuals) <= 1e-14).all()


def test_descent_follows_its_closed_form(rng):
    values = np.geomspace(1e-2, 1, 20)
    K, y = np.diag(values), rng.standard_normal(20)
    with pytest.warns(RuntimeWarning):
        found = solvers.richardson(K, y, step=0.9, max_iter=7)
    assert_allclose(found.alpha, (1 - (1 - 0.9 * values) ** 7) / values * y, rtol=1e-13)
    with pytest.warns(RuntimeWarning):
        found = solvers.landweber(K, y, step=0.9, max_iter=7)
    assert_allclose(found.alpha, (1 - (1 - 0.9 * values**2) ** 7) / values * y, rtol=1e-11)


def test_momentum_by_the_textbook(rng):
    K, y = with_spectrum(rng, np.linspace(0.1, 1, 15)), rng.standard_normal(15)
    step = 0.8
    x = before = np.zeros(15)
    for _ in range(6):  # Polyak
        x, before = x + step * (y - K @ x) + 0.6 * (x - before), x
    with pytest.warns(RuntimeWarning):
        found = solvers.gradient_descent(K, y, step=step, momentum=0.6, max_iter=6)
    assert_allclose(found.alpha, x, rtol=1e-12)
    x = before = np.zeros(15)
    for k in range(6):  # Nesterov, ridge 0
        ahead = x + k / (k + 3) * (x - before)
        x, before = ahead + step * (y - K @ ahead), x
    with pytest.warns(RuntimeWarning):
        found = solvers.gradient_descent(K, y, step=step, max_iter=6)
    assert_allclose(found.alpha, x, rtol=1e-12)


def test_momentum_needs_the_root_of_the_iterations(rng):
    K, y = with_spectrum(rng, np.geomspace(1e-9, 1, 40)), rng.standard_normal(40)
    fast = solvers.gradient_descent(K, y, 1e-3, max_iter=10**5)
    slow = solvers.gradient_descent(K, y, 1e-3, momentum=0.0, max_iter=10**6)
    assert fast.iterations < 20 * np.sqrt(1e3)
    assert slow.iterations > 10 * fast.iterations
    assert_allclose(fast.alpha, slow.alpha, atol=1e-6 * 1e3 * 2 * np.linalg.norm(y))


def test_conjugate_gradients_keep_to_their_bound(rng):
    """The error in the norm of A: 2 ((sqrt c - 1)/(sqrt c + 1))^k, and never growing."""
    K, y = with_spectrum(rng, np.geomspace(1, 100, 80)), rng.standard_normal(80)
    want, errors = np.linalg.solve(K, y), []

    def norm(i, x, r):
        errors.append(np.sqrt((x - want) @ K @ (x - want)))

    solvers.conjugate_gradients(K, y, tol=1e-9, callback=norm)
    errors = np.array(errors) / errors[0]
    assert (errors <= 2 * (9 / 11) ** np.arange(len(errors)) + 1e-9).all()
    assert (np.diff(errors) <= 1e-12).all()


def test_conjugate_gradients_end_after_as_many_steps_as_eigenvalues(rng):
    K = with_spectrum(rng, np.repeat([1.0, 3.0, 10.0], 20))
    found = solvers.conjugate_gradients(K, rng.standard_normal((60, 4)), tol=1e-10)
    assert found.iterations == 3


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6, 1e8, 1e10, 1e12])
def test_ill_conditioned_systems_say_how_far_they_came(condition, rng):
    """Whatever is reported is the residual of what is returned; converged means converged."""
    n = 100
    K = with_spectrum(rng, np.geomspace(1 / condition, 1, n))
    y = rng.standard_normal((n, 2))
    y[:, 1] = K @ y[:, 0]  # a target that the kernel likes
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = solvers.conjugate_gradients(K, y, tol=1e-9, max_iter=3000)
    true = residual(K, 0.0, found.alpha, y)
    # y - A x is itself known to n u |A| |x|
    known = n * 1.1e-16 * np.linalg.norm(found.alpha, axis=0) / np.linalg.norm(y, axis=0)
    assert (np.abs(found.residuals[-1] - true) <= 0.2 * true + known + 1e-10).all()
    assert_array_equal(found.converged, found.residuals[-1] <= 1e-9)
    assert bool(said) == (not found.converged.all())
    if condition <= 1e6:
        assert found.converged.all()
    for message in said:
        worst = found.residuals[-1][~found.converged].max()
        assert f"the relative residual is {worst:.3g} after" in str(message.message)
        assert "the tolerance 1e-09" in str(message.message)
    # numpy.linalg agrees as far as the residual allows
    want = np.linalg.solve(K, y)
    apart = np.linalg.norm(found.alpha - want, axis=0)
    assert (apart <= condition * (true + n * 1.1e-16 * condition) * np.linalg.norm(y, axis=0)).all()


def test_a_preconditioner_makes_ill_conditioned_systems_easy(rng):
    X = rng.standard_normal((250, 2))
    K, ridge = kc.Gaussian(1.0)(X), 1e-8  # condition about 1e10
    y = K @ rng.standard_normal(250)
    P = solvers.nystrom_preconditioner(K, rank=150, ridge=ridge, seed=0)
    found = solvers.conjugate_gradients(K, y, ridge, preconditioner=P, tol=1e-8)
    assert found.iterations <= 15
    with pytest.warns(RuntimeWarning):
        plain = solvers.conjugate_gradients(K, y, ridge, tol=1e-8, max_iter=100)
    assert not plain.converged
    assert residual(K, ridge, found.alpha, y) <= 1e-8


@pytest.mark.parametrize("name", ALL)
def test_warm_start(name, rng):
    K, y = with_spectrum(rng, np.geomspace(1, 10, 40)), rng.standard_normal((40, 2))
    cold = ALL[name](K, y, tol=1e-4, max_iter=5000)
    x0 = cold.alpha.copy()
    warm = ALL[name](K, y, initial=x0, tol=1e-4, max_iter=5000)
    assert warm.iterations == 0
    assert_array_equal(warm.alpha, x0)
    further = ALL[name](K, y, initial=x0, tol=1e-8, max_iter=5000)
    afresh = ALL[name](K, y, tol=1e-8, max_iter=5000)
    assert 0 < further.iterations <= afresh.iterations
    assert_allclose(further.alpha, afresh.alpha, rtol=0, atol=2e-8 * np.linalg.norm(y))
    assert_array_equal(x0, cold.alpha)


@pytest.mark.parametrize("name", ALL)
def test_columns_converge_by_themselves(name, rng):
    K = with_spectrum(rng, np.r_[np.geomspace(1, 5, 38), 6.0, 8.0])
    easy = np.linalg.eigh(K)[1][:, -1]
    y = np.stack([rng.standard_normal(40), np.zeros(40), easy], 1)
    counted = Counted(K)
    together = ALL[name](counted, y, tol=1e-6, max_iter=5000)
    assert together.converged.all()
    assert (together.alpha[:, 1] == 0).all()
    assert counted.columns[-1] == 1  # the last products are for the hard one alone
    for j in range(3):
        alone = ALL[name](K, y[:, j], tol=1e-6, max_iter=5000)
        assert_allclose(together.alpha[:, j], alone.alpha, atol=1e-12)
        got = together.residuals[: alone.iterations + 1, j]
        assert_allclose(got, alone.residuals, rtol=1e-6, atol=1e-12)
        assert (together.residuals[alone.iterations :, j] == got[-1]).all()


@pytest.mark.parametrize("name", ALL)
def test_whatever_multiplies(name, rng, dtype):
    K = with_spectrum(rng, np.geomspace(1, 5, 30)).astype(dtype)
    y = rng.standard_normal((30, 2)).astype(dtype)
    operator = LinearOperator(K.shape, matmat=lambda x: K @ x, matvec=lambda x: K @ x, dtype=dtype)
    wants = ALL[name](K, y, tol=1e-4)
    assert wants.alpha.dtype == dtype
    for other in (operator, Counted(K)):
        got = ALL[name](other, y, tol=1e-4)
        assert got.alpha.dtype == dtype
        assert_allclose(got.alpha, wants.alpha, rtol=1e-5, atol=1e-5)


def test_a_list_is_an_array_and_y_takes_the_dtype_of_K(rng):
    found = solvers.conjugate_gradients([[2, 1], [1, 2]], [3, 3])
    assert_allclose(found.alpha, [1, 1])
    K = np.eye(3, dtype=np.float32)
    assert solvers.conjugate_gradients(K, np.ones(3)).alpha.dtype == np.float32


@pytest.mark.parametrize("name", ALL)
def test_callback_sees_each_iteration_and_may_stop(name, rng):
    K, y = with_spectrum(rng, np.geomspace(1, 50, 30)), rng.standard_normal((30, 2))
    seen = []

    def callback(iteration, x, r):
        seen.append((iteration, x.shape, r.copy()))
        return iteration == 3

    found = ALL[name](K, y, callback=callback)  # no warning: it was asked to
    assert [s[0] for s in seen] == [0, 1, 2, 3]
    assert found.iterations == 3
    assert all(s[1] == (30, 2) for s in seen)
    assert_array_equal(np.array([s[2] for s in seen]), found.residuals)
    assert not found.converged.any()


def test_progress(rng, monkeypatch, capsys):
    from kernelcore.engine import progress as _progress

    clock = iter(np.arange(1000) * 10.0)
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(clock))
    solvers.conjugate_gradients(np.eye(3), np.ones(3), progress=True)
    assert "conjugate_gradients: 1/1000" in capsys.readouterr().err


def test_warning_says_how_far(rng):
    K, y = np.diag([1.0, 1e-4]), np.ones((2, 1))
    text = (
        "richardson did not converge in 1 of 1 columns: the relative residual is 0.706 after 20 "
        "iterations, the tolerance 1e-06; more iterations or a preconditioner would help"
    )
    with pytest.warns(RuntimeWarning, match=f"^{text}$"):
        solvers.richardson(K, y, step=1.0, max_iter=20)


def test_divergence_is_told():
    with pytest.warns(RuntimeWarning, match="it diverges with step 3; pass a smaller"):
        found = solvers.richardson(np.eye(2), np.ones(2), step=3.0)
    assert found.iterations < 30


@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("smooth", [False, True])
def test_a_singular_matrix_gives_the_best_coefficients_on_the_way(n, smooth, dtype, rng):
    """Rounding makes conjugate gradients climb: what comes back is no worse than the start."""
    x = np.linspace(-1, 1, n)[:, None].astype(dtype)
    K = kc.Gaussian(0.5)(x)
    y = (np.sin(5 * x[:, 0]) if smooth else rng.standard_normal(n)).astype(dtype)
    said = []

    def watch(i, alpha, r):
        said.append(float(r))

    tol = 1e-7 if dtype == np.float32 else 1e-13
    with pytest.warns(RuntimeWarning, match="a larger ridge (would help|is needed)$"):
        found = solvers.conjugate_gradients(K, y, tol=tol, callback=watch)
    true = float(residual(K.astype(float), 0.0, found.alpha.astype(float), y.astype(float)))
    assert true <= 1 + 1e-6
    assert found.residuals[-1] == pytest.approx(true, rel=0.05, abs=1e-14)
    assert max(said) >= found.residuals[-1]
    if smooth:
        assert true < 1e-3


def test_descent_that_diverges_gives_back_where_it_started(rng):
    K, y = with_spectrum(rng, np.linspace(1, 2, 30)), rng.standard_normal(30)
    with pytest.warns(RuntimeWarning, match="it diverges with step 10; pass a smaller"):
        found = solvers.richardson(K, y, step=10.0)
    assert (found.alpha == 0).all()
    assert found.residuals[-1] == 1


def test_indefinite_matrices_are_told():
    with pytest.warns(
        RuntimeWarning, match="is not positive definite in float64; a larger ridge is needed"
    ):
        solvers.conjugate_gradients(np.diag([1.0, -1.0]), np.array([1.0, 2.0]))


def test_rounding_is_told(rng):
    K = with_spectrum(rng, np.geomspace(1e-5, 1, 50)).astype(np.float32)
    with pytest.warns(RuntimeWarning, match="rounding in float32 allows no less|would help"):
        found = solvers.conjugate_gradients(K, rng.standard_normal(50), tol=1e-7)
    assert not found.converged


def test_the_largest_eigenvalue_is_bounded(rng, dtype):
    for values in (np.geomspace(1e-8, 3, 200), np.linspace(1, 3, 200), np.r_[np.ones(199), 3.0]):
        got = solvers.largest_eigenvalue(with_spectrum(rng, values).astype(dtype), 0.25)
        assert 3.25 <= got <= 3.25 * 1.3
    for n in (1, 2, 5, 300):
        a = rng.standard_normal((n, n))  # no gap at the top
        want = np.linalg.norm(a @ a.T, 2)
        assert want <= solvers.largest_eigenvalue((a @ a.T).astype(dtype)) <= 1.3 * want
    # after as many products as there are eigenvalues nothing is left but the margin
    assert_allclose(solvers.largest_eigenvalue(np.eye(4, dtype=dtype)), 1.05, rtol=1e-5)
    assert solvers.largest_eigenvalue(np.zeros((4, 4), dtype)) == 0


# ---- rows in blocks


@pytest.mark.parametrize("memory", [1.0, 30_000.0, 300_000.0, 1e9])
def test_row_blocks_multiply_like_the_matrix(memory, data, dtype):
    X = data[0].astype(dtype)
    K, whole = solvers.RowBlocks(NTK, X, max_memory=memory), NTK(X)
    x = data[1].astype(dtype)
    bound = 300 * np.finfo(dtype).eps * (np.abs(whole) @ np.abs(x))
    for _ in range(2):  # the second time some blocks are kept
        got = K @ x
        assert got.dtype == dtype
        assert (np.abs(got - whole @ x) <= bound).all()
        assert (K @ x[:, 0]).shape == (300,)
    assert K.passes == 4
    held = sum(b.nbytes for b in K._kept.values()) + K._scratch.nbytes
    assert held <= max(memory, 300 * dtype.itemsize)
    assert_array_equal(K.diagonal(), np.diag(whole))
    assert_array_equal(K.columns([3, 7]), whole[:, [3, 7]])


def test_row_blocks_solve(data):
    X, y = data
    K = solvers.RowBlocks(NTK, X, max_memory=1e5)
    P = solvers.nystrom_preconditioner(K, rank=100, ridge=0.1, seed=0)
    found = solvers.conjugate_gradients(K, y, 0.1, preconditioner=P, tol=1e-9)
    assert K.passes == found.iterations
    want = np.linalg.solve(NTK(X) + 0.1 * np.eye(300), y)
    assert_allclose(found.alpha, want, rtol=1e-5, atol=1e-7)


def test_row_blocks_of_images(rng):
    X = rng.standard_normal((9, 4, 4, 1))
    net = kc.Sequential(kc.Conv(3), kc.Relu(), kc.GlobalAvgPool(), kc.Dense())
    K = solvers.RowBlocks(net.ntk, X, max_memory=500)
    assert_allclose(K @ np.ones(9), net.ntk(X) @ np.ones(9), rtol=1e-12)


# ---- preconditioners


def preconditioners(K, ridge, seed=0):
    return {
        "rpcholesky": solvers.nystrom_preconditioner(K, rank=100, ridge=ridge, seed=seed),
        "uniform": solvers.nystrom_preconditioner(
            K, rank=100, ridge=ridge, method="uniform", seed=seed
        ),
        "eigenpro": solvers.eigenpro_preconditioner(K, rank=50, ridge=ridge, seed=seed),
        "jacobi": solvers.block_jacobi(K, block=100, ridge=ridge),
    }


def test_preconditioners_save_iterations(rng, dtype):
    X = np.sort(rng.standard_normal((400, 1)), 0).astype(dtype)  # neighbours beside each other
    K, y = kc.Laplacian(1.0)(X), np.sin(3 * X[:, 0])
    tol = 1e-3 if dtype == np.float32 else 1e-8
    plain = solvers.conjugate_gradients(K, y, 1e-2, tol=tol)
    for name, P in preconditioners(K, 1e-2).items():
        found = solvers.conjugate_gradients(K, y, 1e-2, preconditioner=P, tol=tol)
        assert found.converged
        assert found.alpha.dtype == dtype
        assert found.iterations < 0.6 * plain.iterations, name
        assert_allclose(K @ found.alpha, K @ plain.alpha, atol=2 * tol * np.linalg.norm(y))
    rich = solvers.richardson(K, y, 1e-2, tol=1e-3, max_iter=10**4)
    for name in ("rpcholesky", "eigenpro"):
        P = preconditioners(K, 1e-2)[name]
        found = solvers.richardson(K, y, 1e-2, preconditioner=P, tol=1e-3)
        assert found.iterations < rich.iterations / 5, name


def test_preconditioners_are_symmetric_and_positive(data):
    K = NTK(data[0])
    for name, P in preconditioners(K, 0.1).items():
        inverse = P.solve(np.eye(300))
        assert_allclose(
            inverse, inverse.T, rtol=0, atol=1e-10 * np.abs(inverse).max(), err_msg=name
        )
        assert np.linalg.eigvalsh((inverse + inverse.T) / 2)[0] > 0, name
        assert_allclose(P.solve(np.arange(300.0)), inverse @ np.arange(300.0), rtol=1e-7)


@pytest.mark.parametrize("method", ["rpcholesky", "uniform"])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_full_rank_is_exact(method, ridge, rng):
    K, y = with_spectrum(rng, np.geomspace(1, 100, 60)), rng.standard_normal(60)
    P = solvers.nystrom_preconditioner(K, rank=60, ridge=ridge, method=method, seed=1)
    want = np.linalg.solve(K + ridge * np.eye(60), y)
    found = solvers.conjugate_gradients(K, y, ridge, preconditioner=P, tol=1e-8)
    assert found.iterations <= 4  # the shift is not quite zero
    if ridge:
        assert found.iterations == 1
        assert_allclose(P.solve(y), want, rtol=1e-9)
    one = solvers.block_jacobi(K, block=60, ridge=ridge)
    assert_allclose(one.solve(y), want, rtol=1e-9)


def test_a_kernel_with_points_is_its_matrix(data):
    X, _ = data
    K = NTK(X)
    for a, b in [
        (solvers.nystrom_preconditioner(NTK, X, rank=40, ridge=0.1, seed=3),
         solvers.nystrom_preconditioner(K, rank=40, ridge=0.1, seed=3)),
        (solvers.eigenpro_preconditioner(NTK, X, rank=10, subsample=50, seed=3),
         solvers.eigenpro_preconditioner(K, rank=10, subsample=50, seed=3)),
        (solvers.block_jacobi(NTK, X, block=70, ridge=0.1),
         solvers.block_jacobi(K, block=70, ridge=0.1)),
    ]:  # fmt: skip
        assert_array_equal(a.solve(np.ones(300)), b.solve(np.ones(300)))


def test_deflation_lowers_the_first_eigenvalues(data):
    K = NTK(data[0])
    values = np.linalg.eigvalsh(K)[::-1]
    P = solvers.eigenpro_preconditioner(K, rank=20, subsample=300, seed=0)
    assert_allclose(P.eigenvalues, values[:21], rtol=1e-10)
    assert_allclose(np.linalg.eigvals(P.solve(K)).real.max(), values[20], rtol=1e-8)


def test_subspace_iteration(rng):
    values = 1 / np.arange(1.0, 1201) ** 1.5
    a = with_spectrum(rng, values)
    got, V = solvers._preconditioners.top_eigenpairs(a, 30)
    assert_allclose(V.T @ V, np.eye(30), atol=1e-12)
    assert_allclose(V.T @ a @ V, np.diag(got), atol=1e-12)
    assert (got <= values[:30] * (1 + 1e-10)).all()  # Ritz values are below
    assert_allclose(got, values[:30], rtol=1e-2)


# ---- randomly pivoted Cholesky


@pytest.mark.parametrize("block", [1, 7, None])
def test_the_factor_is_nystroms(block, data, dtype):
    X = data[0].astype(dtype)
    F, pivots = solvers.randomly_pivoted_cholesky(NTK, X, rank=60, block=block, seed=5)
    assert F.dtype == dtype
    assert F.shape == (300, 60)
    assert len(set(pivots.tolist())) == 60
    K = NTK(X.astype(np.float64))
    want = K[:, pivots] @ np.linalg.solve(K[np.ix_(pivots, pivots)], K[pivots])
    scale = np.abs(K).max() * np.finfo(dtype).eps
    condition = np.linalg.cond(K[np.ix_(pivots, pivots)])
    assert_allclose(F @ F.T, want, rtol=0, atol=10 * scale * condition)
    assert_allclose(np.triu(F[pivots], 1), 0, atol=100 * scale * np.sqrt(condition))
    rest = np.linalg.eigvalsh(K - F.astype(np.float64) @ F.T)
    assert rest[0] > -100 * scale * np.sqrt(condition)


def test_blocks_do_not_change_the_law_of_pivots():
    """Chances of pairs of pivots by enumeration, against draws one by one and in blocks."""
    K = np.array([[4.0, 1.5, 0.0, 0.5], [1.5, 1.0, 0.2, 0], [0, 0.2, 2.0, 1.0], [0.5, 0, 1.0, 3.0]])
    want = np.zeros((4, 4))
    for i in range(4):
        left = np.diag(K - np.outer(K[i], K[i]) / K[i, i]).copy()
        left[i] = 0
        want[i] = K[i, i] / np.trace(K) * left / left.sum()
    draws = 1000
    for block in (1, 2):
        rng, seen = np.random.default_rng(0), np.zeros((4, 4))
        for _ in range(draws):
            _, p = solvers.randomly_pivoted_cholesky(K, rank=2, block=block, seed=rng)
            seen[tuple(p)] += 1
        # five standard deviations of a multinomial
        assert (np.abs(seen / draws - want) <= 5 * np.sqrt(want / draws) + 1e-12).all()


def test_numerical_rank_ends_the_factor(rng):
    Z = rng.standard_normal((50, 4))
    F, pivots = solvers.randomly_pivoted_cholesky(Z @ Z.T, rank=30, seed=0)
    assert F.shape == (50, 4)
    assert len(pivots) == 4
    assert_allclose(F @ F.T, Z @ Z.T, atol=1e-12)


def test_pivoting_finds_what_uniform_columns_miss(rng):
    """A few far points carry most of the trace."""
    X = rng.standard_normal((500, 3)) * 0.1
    X[:10] *= 100
    K = kc.ArcCosine(1)(X)
    left = {}
    for method in ("rpcholesky", "uniform"):
        P = solvers.nystrom_preconditioner(K, rank=20, method=method, seed=1)
        left[method] = np.trace(K - P.factor @ P.factor.T)
    assert left["rpcholesky"] < 0.05 * left["uniform"]


# ---- EigenPro


def test_eigenpro_reaches_the_direct_solution(data):
    """An NTK, whose diagonal is far from 1."""
    X, y = data
    K = NTK(X)
    assert np.ptp(np.diag(K)) > 1
    fit = solvers.eigenpro(NTK, X, y, 2.0, epochs=40, rank=40, subsample=200, batch=20, seed=0)
    want = np.linalg.solve(K + 2.0 * np.eye(300), y)
    # squares fall by exp(-(n lambda_i + ridge)/beta) an epoch, less the quarter that a batch of
    # beta/(4 lambda) takes
    assert fit.batch < 0.25 * fit.beta / fit.eigenvalue
    off = np.exp(-0.75 * 40 * 2.0 / fit.beta / 2)
    assert off < 3e-3
    error = np.linalg.norm(fit.alpha - want, axis=0)
    assert (error <= off * np.linalg.norm(want, axis=0)).all()
    assert fit.alpha.shape == y.shape
    assert fit.history.shape == (41,)
    left = np.sqrt(np.mean((K @ want - y) ** 2))
    assert_allclose(np.sqrt(fit.history[-1]), left, rtol=0, atol=off * np.sqrt(np.mean(y**2)))


def test_eigenpro_constants(data):
    X, y = data
    K = NTK(X)
    values, vectors = np.linalg.eigh(K)
    values, vectors = values[::-1], vectors[:, ::-1]
    fit = solvers.eigenpro(NTK, X, y, epochs=0, rank=30, subsample=300, seed=0)
    # with all points as the subsample: the kernel with its first eigenvalues lowered
    lowered = (vectors * np.minimum(values, values[30])) @ vectors.T
    assert_allclose(fit.eigenvalue, values[30] / 300, rtol=1e-6)
    assert_allclose(fit.beta, np.diag(lowered).max(), rtol=1e-6)
    assert fit.batch == max(1, int(0.25 * fit.beta / fit.eigenvalue))
    assert_allclose(fit.step, fit.batch / fit.beta)
    assert (fit.alpha == 0).all()
    for batch in (1, 2 * fit.batch, 300):
        other = solvers.eigenpro(NTK, X, y, epochs=0, rank=30, subsample=300, batch=batch, seed=0)
        limit = 2 * batch / (fit.beta + (batch - 1) * fit.eigenvalue)
        assert_allclose(other.step, min(batch / fit.beta, 5 / 8 * limit))


def test_the_step_of_eigenpro_by_enumeration():
    """What its module says of a step in any kernel with a constant diagonal: all batches of two."""
    angle = 2 * np.pi * np.arange(8) / 8
    X = np.stack([np.cos(angle), np.sin(angle)], 1)
    K, m = NTK(X), 2
    beta, e = K[0, 0], np.random.default_rng(0).standard_normal(8)
    values, vectors = np.linalg.eigh(K / 8)
    for eta in (0.5 * m / beta, m / beta, 1.3 * m / beta):
        after = [e - eta / m * K[:, b] @ e[b] for b in map(list, np.ndindex(8, 8))]
        norm = np.mean([a @ np.linalg.solve(K, a) for a in after])
        left = 1 - eta * values * (2 - eta * (beta + (m - 1) * values) / m)
        assert_allclose(norm, (left * (vectors.T @ e) ** 2 / (8 * values)).sum(), rtol=1e-9)


def test_eigenpro_stays_stable_up_to_any_batch(data):
    X, y = data
    for batch in (1, 60, 300):
        fit = solvers.eigenpro(NTK, X, y, 0.5, epochs=10, rank=30, batch=batch, seed=0)
        assert (np.diff(fit.history) < 0.1 * fit.history[:-1]).all()
        assert fit.history[-1] < 0.1 * fit.history[0]


def test_eigenpro_beats_descent_without_it(data):
    X, y = data
    fit = solvers.eigenpro(NTK, X, y[:, 0], epochs=10, seed=0)
    assert fit.alpha.shape == (300,)
    with pytest.warns(RuntimeWarning):
        plain = solvers.richardson(NTK(X), y[:, 0], max_iter=10)
    error = np.mean((y[:, 0] - NTK(X) @ plain.alpha) ** 2)
    assert fit.history[-1] < 0.1 * error


def test_eigenpro_in_little_memory_is_the_same(data, dtype):
    X, y = data[0].astype(dtype), data[1]
    one = solvers.eigenpro(NTK, X, y, epochs=3, batch=50, seed=2)
    scale = np.abs(one.alpha).max()
    eps = np.finfo(dtype).eps
    for rows in (7, 50, 120):  # a batch in pieces, one, and two of them at a time
        memory = rows * 300 * dtype.itemsize
        few = solvers.eigenpro(NTK, X, y, epochs=3, batch=50, seed=2, max_memory=memory)
        assert few.alpha.dtype == dtype
        assert_allclose(few.alpha, one.alpha, rtol=0, atol=1e4 * eps * scale)
    small = solvers.eigenpro(NTK, X, y, epochs=0, seed=2, max_memory=3 * 300 * dtype.itemsize)
    assert small.batch == 3


def test_eigenpro_seeds_warm_start_and_callback(data):
    X, y = data
    calls = []
    a = solvers.eigenpro(NTK, X, y, epochs=4, seed=7, callback=lambda *x: calls.append(x[0]))
    b = solvers.eigenpro(NTK, X, y, epochs=4, seed=7)
    c = solvers.eigenpro(NTK, X, y, epochs=4, seed=8)
    assert calls == [1, 2, 3, 4]
    assert_array_equal(a.alpha, b.alpha)
    assert (a.alpha != c.alpha).any()
    on = solvers.eigenpro(NTK, X, y, epochs=1, seed=9, initial=a.alpha)
    assert_allclose(on.history[0], a.history[-1], rtol=1e-9)
    assert on.history[-1] < on.history[0]
    stop = solvers.eigenpro(NTK, X, y, epochs=9, seed=7, callback=lambda e, x, m: e == 2)
    assert len(stop.history) == 3


def test_eigenpro_divergence_is_told(data):
    X, y = data
    with pytest.warns(RuntimeWarning, match="^eigenpro diverges: the mean squared error is"):
        fit = solvers.eigenpro(NTK, X, y, epochs=50, step=1e4, seed=0)
    assert len(fit.history) < 51


def test_eigenpro_leaves_eigenvalues_that_are_rounding(rng, dtype):
    """Of these kernels few eigenvalues are above it: fewer than the rank asked for."""
    X = rng.uniform(-1, 1, (200, 2)).astype(dtype)
    y = X[:, 0] * X[:, 1]
    for kernel in (kc.Gaussian(2.0), kc.Polynomial(2)):
        fit = solvers.eigenpro(kernel, X, y, epochs=3, rank=150, seed=0)
        values = np.linalg.eigvalsh(kernel(X.astype(np.float64)))[::-1]
        least = 30 * np.finfo(dtype).eps * values.sum()
        assert fit.rank == np.count_nonzero(values > least) < 100
        assert_allclose(fit.eigenvalue * 200, least, rtol=0.1)
        assert fit.history[-1] < 1e-2 * fit.history[0]
    zero = solvers.eigenpro(kc.presets.mlp(1).ntk, np.zeros((9, 2)), np.ones(9), epochs=2, seed=0)
    assert_array_equal(zero.history, np.ones(3))


# ---- Nystrom ridge


@pytest.mark.parametrize("solver", ["direct", "cg"])
@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_all_points_as_centres_is_ridge_regression(solver, ridge, data):
    X, y = data
    model = solvers.nystrom_ridge(NTK, X, y, ridge, centres=300, solver=solver, tol=1e-10, seed=0)
    K = NTK(X)
    want = K @ np.linalg.solve(K + ridge * np.eye(300), y)
    assert model.solver == solver
    assert_array_equal(np.sort(model.indices), np.arange(300))
    assert_array_equal(model.centres, X[model.indices])
    assert_allclose(model.predict(X), want, atol=1e-6)


@pytest.mark.parametrize("method", ["uniform", "leverage", "rpcholesky"])
def test_centres_are_the_least_squares_on_them(method, data):
    X, y = data
    models = [
        solvers.nystrom_ridge(
            NTK, X, y, 0.1, centres=80, method=method, solver=solver, tol=1e-10, seed=4
        )
        for solver in ("direct", "cg")
    ]
    for model in models:
        across, inside = NTK(X, model.centres), NTK(model.centres)
        want = np.linalg.solve(across.T @ across + 0.1 * inside, across.T @ y)
        assert_allclose(model.predict(X), across @ want, atol=1e-7)
        assert_array_equal(model.centres, X[model.indices])
        assert len(set(model.indices.tolist())) == 80
    assert_array_equal(models[0].indices, models[1].indices)
    again = solvers.nystrom_ridge(NTK, X, y, 0.1, centres=80, method=method, seed=5)
    assert (again.indices != models[0].indices).any()


def test_given_centres(data):
    X, y = data
    C = X[:50] + 0.01
    for solver in ("direct", "cg"):
        model = solvers.nystrom_ridge(NTK, X, y[:, 0], 0.1, centres=C, solver=solver, tol=1e-10)
        across = NTK(X, C)
        want = np.linalg.solve(across.T @ across + 0.1 * NTK(C), across.T @ y[:, 0])
        assert model.indices is None
        assert model.alpha.shape == (50,)
        assert_allclose(model.predict(X), across @ want, atol=1e-7)


@pytest.mark.parametrize("size", [1, 7, 64, 65, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_substitution_by_blocks(size, dtype, rng, monkeypatch):
    """Componentwise: |x - exact| is within 2 n u |U^-1| |U| |x| of any order of substitution, and
    n u |U^-1| |U| |U^-1| |b| more for the inverted blocks (Higham 2002, sections 8.2 and 14.2).
    """
    monkeypatch.setattr(solvers._nystrom, "STEP", 64)
    upper = np.asfortranarray(
        np.triu(rng.standard_normal((size, size)) / np.sqrt(size)) + 2 * np.eye(size), dtype
    )
    upper[np.tril_indices(size, -1)] = np.nan  # never read
    b = rng.standard_normal((size, 3)).astype(dtype)
    exact = np.triu(upper).astype(np.longdouble)
    inverse = np.linalg.inv(np.triu(upper).astype(np.float64))
    U = solvers._nystrom._Upper(upper)
    for got, a, inv in (
        (U.solve(b), exact, inverse),
        (U.solve_transposed(b), exact.T, inverse.T),
    ):
        residual = (b - a @ got.astype(np.longdouble)).astype(np.float64)
        sizes = np.abs(np.asarray(a, np.float64))
        room = sizes @ np.abs(got) + sizes @ np.abs(inv) @ np.abs(b)
        assert got.dtype == dtype
        assert (np.abs(residual) <= 2 * size * np.finfo(dtype).eps * room).all()


def test_streaming_is_the_whole(data, monkeypatch):
    X, y = data
    one = solvers.nystrom_ridge(NTK, X, y, 0.1, centres=60, solver="direct", seed=0)
    monkeypatch.setattr(solvers._nystrom, "BLOCK_BYTES", 8 * 60 * 17)
    few = solvers.nystrom_ridge(NTK, X, y, 0.1, centres=60, solver="direct", seed=0)
    assert_allclose(few.predict(X), one.predict(X), atol=1e-9)


def test_float32_stands_small_ridges(rng):
    """Sums of K_mn K_nm in float32 would not be positive definite here."""
    X = rng.standard_normal((2000, 20)).astype(np.float32)
    y = np.sin(X[:, :2].sum(1))
    kernel, ridge = kc.Laplacian(5.0), 1e-4
    models = {
        s: solvers.nystrom_ridge(kernel, X, y, ridge, centres=400, solver=s, tol=1e-5, seed=0)
        for s in ("cg", "direct")
    }
    C = models["cg"].centres.astype(np.float64)
    across = kernel(X.astype(np.float64), C)
    want = np.linalg.solve(across.T @ across + ridge * kernel(C), across.T @ y)
    for model in models.values():
        assert model.alpha.dtype == np.float32
        assert_allclose(model.predict(X), across @ want, atol=2e-4)
    assert len(models["cg"].residuals) < 40


@pytest.mark.parametrize("method", ["uniform", "leverage"])
def test_a_slight_ridge_is_left_out_of_the_preconditioner(method, monkeypatch, rng):
    from kernelcore.solvers import _nystrom

    X, kernel = rng.standard_normal((900, 4)), kc.Laplacian(3.0)
    y = np.sin(X[:, 0])
    made = []
    real = _nystrom._Normal.__init__

    def noted(self, *given):
        real(self, *given)
        made.append(self)

    monkeypatch.setattr(_nystrom._Normal, "__init__", noted)
    kinds = []
    for ridge in (0.0, 1e-6, 1e-3, 1.0, 100.0):
        model = solvers.nystrom_ridge(
            kernel, X, y, ridge, centres=100, method=method, solver="cg", tol=1e-10, seed=0
        )
        across, inside = kernel(X, model.centres), kernel(model.centres)
        want = np.linalg.solve(across.T @ across + ridge * inside, across.T @ y)
        assert_allclose(across @ model.alpha, across @ want, atol=1e-8)
        kinds.append(type(made[-1].A))
        if kinds[-1] is _nystrom._Turned:
            T, root = np.triu(made[-1].T.upper), made[-1].A.root[:, 0]
            assert ridge <= _nystrom.SLIGHT * np.linalg.eigvalsh(T * root**2 @ T.T)[0]
    assert kinds[0] is kinds[1] is _nystrom._Turned
    assert kinds[-1] is _nystrom._Upper


def test_what_auto_chooses(data):
    X, y = data
    pick = lambda **k: solvers.nystrom_ridge(NTK, X, y[:, 0], 0.1, seed=0, **k).solver  # noqa: E731
    assert pick(centres=60) == "direct"
    assert pick(centres=61) == "cg"
    assert pick(centres=250, max_memory=1e5) == "direct"


def test_leverage_prefers_points_that_stand_alone(rng):
    X = rng.standard_normal((400, 2)) * 0.05
    X[:20] = rng.standard_normal((20, 2)) * 5
    model = solvers.nystrom_ridge(
        kc.Gaussian(0.5), X, X[:, 0], 1e-3, centres=40, method="leverage", seed=0
    )
    assert (model.indices < 20).sum() >= 15


def test_cg_of_nystrom_says_when_it_stops_short(data):
    X, y = data
    with pytest.warns(RuntimeWarning, match="did not converge"):
        solvers.nystrom_ridge(NTK, X, y, 0.1, centres=80, solver="cg", max_iter=2, seed=0)


# ---- names and weights


def test_old_names_of_coefficients(rng):
    K, y = np.eye(3), np.ones(3)
    with pytest.warns(DeprecationWarning, match="^x0 is deprecated; use initial$"):
        found = solvers.conjugate_gradients(K, y, x0=y)
    with pytest.warns(DeprecationWarning, match="^x is deprecated; use alpha$"):
        assert_array_equal(found.x, y)
    X = rng.standard_normal((20, 2))
    y = X[:, 0]
    for model in (
        solvers.eigenpro(NTK, X, y, epochs=1, seed=0),
        solvers.nystrom_ridge(NTK, X, y, 1.0, centres=5, rng=0),
    ):
        with pytest.warns(DeprecationWarning, match="^coefficients is deprecated; use alpha$"):
            assert model.coefficients is model.alpha


def test_rng_is_another_name_of_seed(rng):
    X = rng.standard_normal((40, 2))
    K = NTK(X)
    for call in (
        lambda **s: solvers.eigenpro(NTK, X, X[:, 0], epochs=2, **s).alpha,
        lambda **s: solvers.nystrom_ridge(NTK, X, X[:, 0], 0.1, centres=9, **s).alpha,
        lambda **s: solvers.randomly_pivoted_cholesky(K, rank=9, **s)[0],
        lambda **s: solvers.nystrom_preconditioner(K, rank=9, **s).factor,
        lambda **s: solvers.eigenpro_preconditioner(K, rank=9, subsample=20, **s).vectors,
    ):
        want = call(seed=3)
        assert_array_equal(call(rng=3), want)
        assert_array_equal(call(rng=np.random.default_rng(3)), want)
        assert (call(seed=4) != want).any()


def test_eigenpro_runs_until_it_has_converged(rng):
    X = rng.standard_normal((300, 3))
    y = np.sin(X)
    fit = solvers.eigenpro(NTK, X, y, 0.1, seed=0)
    assert fit.converged
    assert fit.residuals[-1] <= 1e-3 < fit.residuals[-2]
    assert len(fit.residuals) == len(fit.history) <= 51
    true = np.linalg.norm(y - NTK(X) @ fit.alpha - 0.1 * fit.alpha) / np.linalg.norm(y)
    assert fit.residuals[-1] == pytest.approx(true, rel=1e-9)  # all points are looked at
    close = solvers.eigenpro(NTK, X, y, 0.1, tol=1e-6, epochs=400, seed=0)
    assert close.residuals[-1] <= 1e-6
    with pytest.warns(
        RuntimeWarning,
        match=r"^eigenpro did not converge: the relative residual is .* after 2 epochs, the "
        r"tolerance 1e-06; more epochs or a larger ridge would help$",
    ):
        few = solvers.eigenpro(NTK, X, y, 0.1, tol=1e-6, epochs=2, seed=0)
    assert not few.converged
    # without tol the epochs that are asked for are made, and nothing is said
    assert len(solvers.eigenpro(NTK, X, y, 0.1, epochs=2, seed=0).history) == 3


@pytest.mark.parametrize("columns", [None, 2])
def test_weights_are_repetitions(columns, rng):
    """A weight of 3 is the same as three copies, and one of zero as none."""
    X = rng.standard_normal((120, 3))
    y = np.sin(X @ rng.standard_normal(3 if columns is None else (3, columns)))
    weight = rng.integers(0, 4, 120)
    often = np.repeat(np.arange(120), weight)
    Z = rng.standard_normal((30, 3))
    copies = NTK(X[often])
    exact = np.linalg.solve(copies + 0.3 * np.eye(len(often)), y[often])
    want = NTK(Z, X[often]) @ exact
    fit = solvers.eigenpro(
        NTK, X, y, 0.3, sample_weight=weight, tol=1e-9, epochs=2000, rank=30, seed=0
    )
    # |alpha - alpha*| <= |r| / ridge, in coordinates with weights
    assert_allclose(NTK(Z, X) @ fit.alpha, want, atol=1e-5)
    assert (fit.alpha[weight == 0] == 0).all()
    centres = X[:40]
    a = NTK(X[often], centres)
    inside = np.linalg.solve(a.T @ a + 0.3 * NTK(centres), a.T @ y[often])
    want = NTK(Z, centres) @ inside
    for solver in ("cg", "direct"):
        model = solvers.nystrom_ridge(
            NTK, X, y, 0.3, centres=centres, sample_weight=weight, solver=solver, tol=1e-10
        )
        assert_allclose(model.predict(Z), want, atol=1e-6)
    for method in ("uniform", "leverage", "rpcholesky"):
        model = solvers.nystrom_ridge(
            NTK, X, y, 0.3, centres=40, sample_weight=weight, method=method, tol=1e-10, seed=0
        )
        a, inside = NTK(X[often], model.centres), NTK(model.centres)
        best = np.linalg.solve(a.T @ a + 0.3 * inside, a.T @ y[often])
        assert_allclose(model.predict(Z), NTK(Z, model.centres) @ best, atol=1e-6)


def test_scaled_rows_and_columns(rng):
    X, scale = rng.standard_normal((60, 3)), rng.random(60)
    scaled = scale[:, None] * NTK(X) * scale
    K = solvers.RowBlocks(NTK, X, scale=scale, max_memory=20000)
    v = rng.standard_normal((60, 2))
    assert_allclose(K @ v, scaled @ v, rtol=1e-12, atol=1e-12)
    assert_allclose(K.diagonal(), scaled.diagonal(), rtol=1e-14)
    assert_allclose(K.columns([3, 7]), scaled[:, [3, 7]], rtol=1e-14)
    F, _ = solvers.randomly_pivoted_cholesky(K, rank=60, seed=0)
    assert_allclose(F @ F.T, scaled, atol=1e-10)
