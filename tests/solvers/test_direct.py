"""Ridge regression by direct methods: one ridge in place, or all from one decomposition."""

import tracemalloc

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

import kernelcore as kc
from kernelcore.linalg import Cholesky, factor, spectra
from kernelcore.solvers import RidgePath, interpolate, ridge, rkhs_inner

EPS = {np.dtype("float32"): 2.0**-23, np.dtype("float64"): 2.0**-52}


def known(rng, values):
    """A symmetric matrix with these eigenvalues, and its eigenvectors."""
    q = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    k = (q * values) @ q.T
    return (k + k.T) / 2, q


def smooth(rng, n, d=3, dtype=np.float64):
    x = rng.standard_normal((n, d))
    return kc.presets.mlp(2, b_std=0.3).ntk(x).astype(dtype)


# ---- one ridge


@pytest.mark.parametrize("condition", [1e1, 1e6, 1e12])
@pytest.mark.parametrize("outputs", [None, 1, 5])
def test_ridge_is_backward_stable(rng, dtype, condition, outputs):
    n, eps = 90, EPS[dtype]
    k, _ = known(rng, np.geomspace(1, max(1 / condition, 30 * n * eps), n))
    k = k.astype(dtype)
    k = (k + k.T) / 2
    y = rng.standard_normal(n if outputs is None else (n, outputs)).astype(dtype)
    alpha = ridge(k, y)
    assert alpha.shape == y.shape
    assert alpha.dtype == dtype
    # Higham 2002, Theorem 10.4, is n^2 eps; rounding errors that do not conspire are sqrt(n) eps,
    # and constants of 2 for factor and solve: 8 sqrt(n).
    residual = k.astype(float) @ alpha.astype(float) - y
    bound = 8 * np.sqrt(n) * eps * np.linalg.norm(k, 2) * np.linalg.norm(alpha, axis=0)
    assert (np.linalg.norm(residual, axis=0) <= bound).all()


def test_ridge_against_mpmath(rng):
    """Forward error: the condition number times the backward error."""
    n, condition = 12, 1e12
    k, _ = known(rng, np.geomspace(1, 1 / condition, n))
    y = rng.standard_normal(n)
    mp.mp.dps = 50
    want = np.array(mp.lu_solve(mp.matrix(k), mp.matrix(y)), dtype=float).ravel()
    bound = 8 * np.sqrt(n) * 2.0**-52 * condition
    for got in (ridge(k, y), interpolate(k, y), RidgePath(k, y).alpha(0.0)):
        assert np.linalg.norm(got - want) <= bound * np.linalg.norm(want)


def test_ridge_against_numpy(rng, dtype):
    k = smooth(rng, 60, dtype=dtype)
    y = rng.standard_normal((60, 3)).astype(dtype)
    want = np.linalg.solve(k.astype(float) + 0.7 * np.eye(60), y.astype(float))
    condition = (np.linalg.norm(k, 2) + 0.7) / 0.7
    np.testing.assert_allclose(
        ridge(k, y, 0.7), want, atol=8 * 8 * EPS[dtype] * condition * np.abs(want).max()
    )


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_order_and_layout_do_not_matter(rng, dtype, order, overwrite):
    k = smooth(rng, 40, dtype=dtype)
    k = (k + k.T) / 2
    y = rng.standard_normal((40, 2)).astype(dtype)
    want = ridge(k, y, 0.1)
    given = np.array(k, order=order)
    np.testing.assert_array_equal(ridge(given, y, 0.1, overwrite_K=overwrite), want)
    assert (given == k).all() == (not overwrite)
    strided = np.zeros((80, 80), dtype)[::2, ::2]
    strided[...] = k
    np.testing.assert_array_equal(ridge(strided, np.asfortranarray(y), 0.1), want)


def test_read_only_lists_and_integers(rng):
    k = np.array([[3, 1], [1, 3]])
    for given in (k, k.tolist(), k.astype(float), k.astype(">f8")):
        np.testing.assert_allclose(ridge(given, [4, 0], 1), [16 / 15, -4 / 15], rtol=1e-15)
    fixed = k.astype(float)
    fixed.flags.writeable = False
    np.testing.assert_allclose(ridge(fixed, [4, 0], 1), [16 / 15, -4 / 15], rtol=1e-15)


def test_edges_of_shape():
    np.testing.assert_array_equal(ridge([[4.0]], [6.0]), [1.5])
    np.testing.assert_array_equal(ridge([[2.0]], [[3.0, 4.0]], 2.0), [[0.75, 1.0]])
    assert ridge(np.eye(3), np.empty((3, 0))).shape == (3, 0)
    assert interpolate(np.ones((3, 3)), np.empty((3, 0))).shape == (3, 0)
    with pytest.raises(np.linalg.LinAlgError):
        ridge([[0.0]], [1.0])
    np.testing.assert_array_equal(interpolate([[0.0]], [1.0]), [0.0])


def test_permutations_carry_over(rng):
    k = smooth(rng, 50)
    y, order = rng.standard_normal(50), rng.permutation(50)
    got = ridge(k[np.ix_(order, order)], y[order], 0.5)
    np.testing.assert_allclose(got, ridge(k, y, 0.5)[order], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("overwrite", "copies"), [(True, 0), (False, 1)])
def test_memory(rng, overwrite, copies):
    n = 1500
    k = np.ones((n, n))
    np.fill_diagonal(k, 2.0)
    y = rng.standard_normal((n, 2))
    ridge(np.eye(2), np.ones(2))  # SciPy loaded
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        ridge(k, y, 0.1, overwrite_K=overwrite)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak <= (copies + 0.05) * k.nbytes


def test_labels_may_be_a_part_of_the_matrix(rng):
    k = smooth(rng, 30)
    want = ridge(k, k[:, 3].copy(), 0.5)
    np.testing.assert_array_equal(ridge(k, k[:, 3], 0.5, overwrite_K=True), want)


@pytest.mark.parametrize(("i", "j"), [(3, 290), (290, 3), (299, 298), (5, 130), (0, 1)])
def test_mistakes_are_found_in_every_corner(i, j):
    """The check goes tile by tile, and through one triangle of tiles."""
    k = np.eye(300)
    k[i, j] = 1e-3
    first, second = sorted((i, j))
    text = (
        rf"^K must be symmetric: K\[{first}, {second}\] and K\[{second}, {first}\] differ by 0.001;"
    )
    with pytest.raises(ValueError, match=text):
        ridge(k, np.ones(300))
    for bad in (np.nan, np.inf, -np.inf):
        k[i, j] = bad
        with pytest.raises(ValueError, match=rf"^K must be finite: K\[{i}, {j}\] is {bad}$"):
            ridge(k, np.ones(300))
    k[i, j] = k[j, i] = np.nan
    with pytest.raises(ValueError, match=rf"^K must be finite: K\[{first}, {second}\] is nan$"):
        ridge(k, np.ones(300))


# ---- singular matrices


def test_a_failure_leaves_the_matrix_and_names_a_ridge_that_helps(rng, dtype):
    n = 300
    values = np.concatenate([[-0.02], np.geomspace(1e-3, 3, n - 1)])
    k = known(rng, values)[0].astype(dtype)
    k = (k + k.T) / 2
    for order in "CF":
        for amount in (0.0, 0.005):
            given = np.array(k, order=order)
            with pytest.raises(np.linalg.LinAlgError) as caught:
                ridge(given, np.ones(n), amount, overwrite_K=True)
            np.testing.assert_array_equal(given, k)
            text = str(caught.value)
            least = float(text.split("smallest eigenvalue is ")[1].split(";")[0])
            assert least == pytest.approx(amount - 0.02, rel=1e-2)
            more = float(text.split("larger by ")[1].split()[0])
            ridge(k, np.ones(n), amount + more)
            assert more < 1.3 * (0.02 - amount) + n * EPS[dtype] * 3.3


def test_a_large_failure_is_bounded(rng, monkeypatch):
    monkeypatch.setattr(factor, "EXACT", 10)
    for n in (11, 200):
        for least in (-1.0, -1e-6):
            values = np.concatenate([[least], np.geomspace(1e-2, 3, n - 1)])
            k = known(rng, values)[0]
            kept = k.copy()
            with pytest.raises(np.linalg.LinAlgError, match=r"might do") as caught:
                ridge(k, np.ones(n), overwrite_K=True)
            np.testing.assert_array_equal(k, kept)
            bound = float(str(caught.value).split("at most ")[1].split(";")[0])
            assert least * 1.01 <= bound < 0


def test_the_bound_is_a_rayleigh_quotient():
    """Of a matrix whose third minor fails: -A^-1 b with A = I, b = (1, 1), d = 1."""
    k = np.array([[1.0, 0, 1, 0], [0, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]])
    for lower in (False, True):
        found = Cholesky(k, lower=lower)
        assert found.order == 3
        bound = found._least_bound()
        assert bound == pytest.approx((1 - 2) / 3)
        assert np.linalg.eigvalsh(k)[0] <= bound
        np.testing.assert_array_equal(found.restore(), k)


@pytest.mark.parametrize("overwrite", [False, True])
def test_pseudo_inverse(rng, dtype, overwrite):
    n, rank = 70, 20
    k = known(rng, np.append(np.geomspace(1, 0.1, rank), np.zeros(n - rank)))[0].astype(dtype)
    y = rng.standard_normal((n, 2)).astype(dtype)
    values, vectors = np.linalg.eigh(k.astype(float))
    top = vectors[:, -rank:] / values[-rank:] @ vectors[:, -rank:].T
    for order in "CF":
        given = np.array(k, order=order)
        got = interpolate(given, y, overwrite_K=overwrite)
        # alpha = sum of y's coefficients over eigenvalues known to n eps, above 0.1
        np.testing.assert_allclose(got, top @ y, atol=10 * n * EPS[dtype] / 0.1**2)
        assert got.dtype == dtype
        if not overwrite:
            np.testing.assert_array_equal(given, k)
    shifted = ridge(k, y, 0.5, on_singular="pinv")
    want = np.linalg.solve(k.astype(float) + 0.5 * np.eye(n), y)
    np.testing.assert_allclose(shifted, want, atol=20 * np.sqrt(n) * EPS[dtype] * 3)


def test_singular_though_a_factor_exists(rng):
    """Rounding may leave a zero eigenvalue just above zero: interpolation does not divide by it."""
    seen = 0
    for _ in range(30):
        z = rng.standard_normal((6, 5))
        k = z @ z.T
        y = k @ rng.standard_normal(6)
        seen += Cholesky(k).order == 0
        alpha = interpolate(k, y)
        np.testing.assert_allclose(alpha, np.linalg.pinv(k, 1e-12, True) @ y, atol=1e-9)
        np.testing.assert_allclose(k @ alpha, y, atol=1e-10)
    assert seen > 3


def test_interpolation_has_least_norm(rng):
    """Duplicated points with equal labels: every interpolant agrees, the least is the split one."""
    x = rng.standard_normal((8, 2))
    y = rng.standard_normal(8)
    kernel = kc.Gaussian(1.0)
    alone = interpolate(kernel(x), y)
    both = interpolate(kernel(np.concatenate([x, x[:3]])), np.concatenate([y, y[:3]]))
    np.testing.assert_allclose(both[:3] + both[8:], alone[:3], rtol=1e-9)
    np.testing.assert_allclose(both[:3], both[8:], rtol=1e-9)
    np.testing.assert_allclose(both[3:8], alone[3:], rtol=1e-9)


# ---- norms


def test_inner_products(rng):
    x, z = rng.standard_normal((5, 2)), rng.standard_normal((4, 2))
    kernel = kc.Laplacian(1.0)
    a, b = rng.standard_normal((5, 2)), rng.standard_normal(4)
    want = sum(
        a[i] * b[j] * float(kernel(x[i : i + 1], z[j : j + 1])[0, 0])
        for i in range(5) for j in range(4)
    )  # fmt: skip
    np.testing.assert_allclose(rkhs_inner(a, kernel(x, z), b), want, rtol=1e-13)
    k = kernel(x)
    np.testing.assert_allclose(rkhs_inner(a, k), np.diag(a.T @ k @ a), rtol=1e-13)
    assert rkhs_inner(a, k, a).shape == (2, 2)
    assert rkhs_inner(b, kernel(z)).shape == ()
    y = rng.standard_normal(5)
    alpha = ridge(k, y)
    assert rkhs_inner(alpha, k) == pytest.approx(y @ np.linalg.solve(k, y), rel=1e-12)
    assert RidgePath(k, y).rkhs_norm(0.0) == pytest.approx(rkhs_inner(alpha, k) ** 0.5, rel=1e-12)


# ---- all ridges

RIDGES = np.array([[1e-4, 1e-2], [1.0, 100.0]])


@pytest.mark.parametrize("outputs", [None, 3])
def test_path_against_single_ridges(rng, outputs):
    n = 40
    k = smooth(rng, n)
    y = rng.standard_normal(n if outputs is None else (n, outputs))
    path = RidgePath(k, y)
    assert path.alpha(RIDGES).shape == RIDGES.shape + y.shape
    for at in np.ndindex(RIDGES.shape):
        amount = RIDGES[at]
        alpha = np.linalg.solve(k + amount * np.eye(n), y)
        error = n * 2.0**-52 * np.linalg.norm(k, 2) / amount  # condition times backward error
        hat = k @ np.linalg.inv(k + amount * np.eye(n))
        tolerance = {"rtol": 4 * error, "atol": 4 * error * np.abs(alpha).max()}
        np.testing.assert_allclose(path.alpha(RIDGES)[at], alpha, **tolerance)
        np.testing.assert_allclose(path.alpha(amount), path.alpha(RIDGES)[at], **tolerance)
        np.testing.assert_allclose(path.fitted(RIDGES)[at], k @ alpha, rtol=1e-9, atol=1e-10)
        assert path.degrees_of_freedom(RIDGES)[at] == pytest.approx(np.trace(hat), rel=1e-9)
        norm = np.sqrt(np.einsum("i...,i...", alpha, k @ alpha))
        np.testing.assert_allclose(path.rkhs_norm(RIDGES)[at], norm, rtol=1e-9)
        left = np.mean(np.sum((y - hat @ y) ** 2, 0)) / n
        gcv = left / (1 - np.trace(hat) / n) ** 2
        assert path.gcv(RIDGES)[at] == pytest.approx(gcv, rel=1e-8)


@pytest.mark.parametrize("amount", [1e-8, 1e-3, 1.0])
def test_leave_one_out_against_refits(rng, amount):
    n = 25
    k = smooth(rng, n)
    y = rng.standard_normal((n, 2))
    path = RidgePath(k, y)
    want = np.empty_like(y)
    for i in range(n):
        rest = np.arange(n) != i
        alpha = np.linalg.solve(k[np.ix_(rest, rest)] + amount * np.eye(n - 1), y[rest])
        want[i] = y[i] - k[i, rest] @ alpha
    np.testing.assert_allclose(path.loo(amount), want, rtol=1e-8)
    assert path.loo_error([amount])[0] == pytest.approx(np.mean(want**2), rel=1e-9)


def test_leave_one_out_of_interpolation(rng):
    n = 15
    k = smooth(rng, n)
    y = rng.standard_normal(n)
    want = np.empty(n)
    for i in range(n):
        rest = np.arange(n) != i
        want[i] = y[i] - k[i, rest] @ np.linalg.solve(k[np.ix_(rest, rest)], y[rest])
    np.testing.assert_allclose(RidgePath(k, y).loo(0.0), want, rtol=1e-8)


def test_leave_one_out_of_a_singular_matrix(rng):
    """Points 0, 1, 2 are one point, the others are not: limits of ridge to zero, and refits."""
    x = rng.standard_normal((9, 2))
    x[1] = x[2] = x[0]
    k = kc.Laplacian(1.0)(x)
    y = rng.standard_normal((9, 2))
    path = RidgePath(k, y)
    assert path._eigen.null == 2
    want = np.empty_like(y)
    for i in range(9):
        rest = np.arange(9) != i
        want[i] = y[i] - k[i, rest] @ np.linalg.pinv(k[np.ix_(rest, rest)], 1e-12, True) @ y[rest]
    got = path.loo([0.0, 1e-9])
    np.testing.assert_allclose(got[0], want, atol=1e-12)
    np.testing.assert_allclose(got[1], want, atol=1e-6)
    assert path.gcv(0.0) == pytest.approx(path.gcv(1e-9), rel=1e-6)
    left = y[:3] - y[:3].mean(0)
    assert path.gcv(0.0) == pytest.approx(9 * np.mean(np.sum(left**2, 0)) / 2**2, rel=1e-12)
    np.testing.assert_allclose(path.fitted(0.0)[:3], np.tile(y[:3].mean(0), (3, 1)), atol=1e-12)
    assert path.degrees_of_freedom(0.0) == pytest.approx(7, rel=1e-14)


def test_likelihood_and_its_gradient(rng):
    n = 30
    k = smooth(rng, n)
    y = rng.standard_normal((n, 2))
    path = RidgePath(k, y)
    amounts = np.array([1e-3, 0.1, 5.0])
    got, slope = path.log_marginal_likelihood(amounts, gradient=True)
    want = [
        sum(multivariate_normal(np.zeros(n), k + a * np.eye(n)).logpdf(column) for column in y.T)
        for a in amounts
    ]
    np.testing.assert_allclose(got, want, rtol=1e-10)
    h = 1e-5  # of log ridge: h^2 from the difference, 1e-16/h from rounding
    up, down = (path.log_marginal_likelihood(amounts * np.exp(s)) for s in (h, -h))
    scale = np.abs(got) + n
    np.testing.assert_allclose(slope * amounts / scale, (up - down) / (2 * h) / scale, atol=1e-8)
    np.testing.assert_array_equal(path.log_marginal_likelihood(amounts), got)


@pytest.mark.parametrize("criterion", ["loo", "gcv", "likelihood"])
def test_best_ridge(rng, criterion):
    n = 80
    x = rng.uniform(-2, 2, (n, 1))
    y = np.sin(2 * x[:, 0]) + 0.3 * rng.standard_normal(n)
    path = RidgePath(kc.Gaussian(0.7)(x), y)
    cost = {
        "loo": path.loo_error,
        "gcv": path.gcv,
        "likelihood": lambda r: -path.log_marginal_likelihood(r),
    }[criterion]
    best = path.best(criterion)
    assert isinstance(best, float)
    # the least of a fine grid over all of its range is not better, and minimise agrees
    fine = np.geomspace(1e-12, 1e3, 2000)
    assert cost(best) <= cost(fine).min() * (1 + np.sign(cost(best)) * 1e-9)
    found = minimize_scalar(
        lambda s: float(cost(np.exp(s))), bounds=np.log([best / 2, 2 * best]), method="bounded"
    )
    assert np.log(best) == pytest.approx(found.x, abs=1e-3)
    assert path.best(criterion, [1e-6, best, 10.0]) == best
    if criterion == "likelihood":
        assert 0.03 < best < 0.3  # the noise has variance 0.09


def test_best_ridge_at_the_ends(rng):
    k = smooth(rng, 20)
    rough = RidgePath(np.eye(20), np.ones(20)).best("likelihood")  # any covariance c I: c = 1
    assert rough == pytest.approx(20 * 2.0**-52, rel=1e-9)
    none = RidgePath(k, np.zeros(20))
    assert none.best("likelihood") < 1e-10
    zero = RidgePath(np.zeros((4, 4)), np.ones(4))
    assert zero.best("likelihood") == pytest.approx(1.0, rel=1e-3)


def test_path_of_float32(rng):
    k, y = smooth(rng, 40), rng.standard_normal(40)
    path, narrow = RidgePath(k, y), RidgePath(k.astype(np.float32), y)
    assert narrow.alpha(1.0).dtype == narrow.loo([1.0, 2.0]).dtype == np.float32
    # 40 eps of the norm, over the ridge
    error = 40 * 2.0**-23 * np.linalg.norm(k, 2)
    np.testing.assert_allclose(narrow.alpha(1.0), path.alpha(1.0), atol=error * np.abs(y).max())
    np.testing.assert_allclose(narrow.loo_error([1.0]), path.loo_error([1.0]), rtol=error)
    assert narrow.log_marginal_likelihood(1.0) == pytest.approx(
        path.log_marginal_likelihood(1.0), abs=40 * error
    )


def test_path_in_place_and_attributes(rng):
    k, y = smooth(rng, 30), rng.standard_normal(30)
    path = RidgePath(k, y)
    np.testing.assert_allclose(
        (path.eigenvectors * path.eigenvalues) @ path.eigenvectors.T, k, atol=1e-12 * k.max()
    )
    assert (np.diff(path.eigenvalues) <= 0).all()
    assert path.cutoff == pytest.approx(10 * 2.0**-52 * path.eigenvalues[0], abs=0)
    large = RidgePath(smooth(rng, 400), np.zeros(400))
    assert large.cutoff == pytest.approx(20 * 2.0**-52 * large.eigenvalues[0], abs=0)
    for order in "CF":
        given = np.array(k, order=order)
        there = RidgePath(given, y, overwrite_K=True)
        np.testing.assert_allclose(there.alpha(0.1), path.alpha(0.1), rtol=1e-9, atol=1e-9)
    assert path.alpha([]).shape == (0, 30)
    assert path.loo_error([]).shape == (0,)


def test_path_of_a_permutation(rng):
    k, y, order = smooth(rng, 30), rng.standard_normal(30), rng.permutation(30)
    path, other = RidgePath(k, y), RidgePath(k[np.ix_(order, order)], y[order])
    np.testing.assert_allclose(other.loo(0.1), path.loo(0.1)[order], rtol=1e-9)
    assert other.gcv(0.1) == pytest.approx(path.gcv(0.1), rel=1e-10)


def test_an_eigenvalue_below_zero_sets_the_cutoff(rng):
    """Entries known to ten digits leave eigenvalues of -1e-10; those of +1e-10 mean nothing."""
    k, _ = known(rng, np.concatenate([[-1e-10, 1e-12, 0.5e-10], np.geomspace(0.1, 1, 20)]))
    path = RidgePath(k, np.ones(23))
    assert path.cutoff == pytest.approx(1e-10, rel=1e-4)
    assert (path.eigenvalues[-3:] == 0).all()
    assert path.eigenvalues[-4] == pytest.approx(0.1)


def test_large_matrices_take_the_other_driver(rng, monkeypatch):
    k, y = smooth(rng, 30), rng.standard_normal(30)
    want = RidgePath(k, y).alpha(0.1)
    monkeypatch.setattr(spectra, "LARGEST", 10)
    np.testing.assert_allclose(RidgePath(k, y).alpha(0.1), want, rtol=1e-9, atol=1e-9)


# ---- one model, whatever solves it


def solve_exactly(K, y):
    """K^-1 y by Cholesky's factorisation in extended precision."""
    L = K.astype(np.longdouble)
    for j in range(len(L)):
        L[j:, j] -= L[j:, :j] @ L[j, :j]
        L[j:, j] /= np.sqrt(L[j, j])
    x = y.astype(np.longdouble)
    for j in range(len(L)):
        x[j] = (x[j] - L[j, :j] @ x[:j]) / L[j, j]
    for j in reversed(range(len(L))):
        x[j] = (x[j] - L[j + 1 :, j] @ x[j + 1 :]) / L[j, j]
    return x


def data(rng, name):
    """A kernel with points: well conditioned, of fast decay, of low rank, with copies."""
    x = rng.standard_normal((60, 4))
    kernels = {
        "ntk": kc.presets.mlp(2, b_std=0.1).ntk,
        "gaussian": kc.Gaussian(4.0),
        "low rank": kc.Polynomial(1),
        "copies": kc.presets.mlp(2, b_std=0.1).ntk,
    }
    if name == "copies":
        x[30:] = x[:30]
    return kernels[name], x, rng.standard_normal((25, 4))


@pytest.mark.parametrize("name", ["ntk", "gaussian", "low rank", "copies"])
def test_predictions_agree_as_far_as_the_condition_allows(rng, dtype, name):
    """Eigenvectors and Cholesky against extended precision, from ridges below rounding upwards.

    With A = K + ridge I and a backward error E the predictions k' A^-1 y are off by
    k' A^-1 E A^-1 y and by what their own sum rounds off, n eps |k| |alpha|.
    """
    kernel, x, z = data(rng, name)
    x, z = x.astype(dtype), z.astype(dtype)
    n, K, k = len(x), kernel(x), kernel(z, x)
    y = rng.standard_normal(n).astype(dtype)
    path, size = RidgePath(K, y), np.linalg.norm(y)
    told = 0
    for amount in np.geomspace(1e-3, 1e9, 13) * path.cutoff:
        exact = K.astype(np.longdouble) + amount * np.eye(n)
        try:
            with np.errstate(invalid="raise"):
                alpha = solve_exactly(exact, y)
                along = np.stack([solve_exactly(exact, row) for row in k])
        except FloatingPointError:  # rounded entries are not positive semi-definite
            continue
        backward = 2 * path.cutoff * np.linalg.norm(along.astype(float), axis=1)
        allowed = (backward + n * EPS[dtype] * np.linalg.norm(k, axis=1)) * float(
            np.linalg.norm(alpha)
        )
        want = k.astype(np.longdouble) @ alpha
        got = {"path": k @ path.alpha(amount), "pinv": k @ ridge(K, y, amount, on_singular="pinv")}
        if amount >= path.cutoff:
            got["cholesky"] = k @ ridge(K, y, amount)
        for solver, f in got.items():
            assert (np.abs(f - want) <= allowed).all(), (solver, amount / path.cutoff)
        told += bool((allowed < 0.1 * size).any())
        # below what is resolved nothing blows up: on the training points a fit never exceeds y
        assert (
            np.linalg.norm(K @ path.alpha(amount))
            <= 1.1 * size + n * EPS[dtype] * float(np.linalg.norm(K, 2)) / path.cutoff * size
        )
    assert told >= 5


@pytest.mark.parametrize("criterion", ["loo", "gcv", "likelihood"])
@pytest.mark.parametrize("name", ["ntk", "gaussian", "low rank", "copies"])
def test_a_chosen_ridge_is_one_that_the_dtype_resolves(rng, dtype, criterion, name):
    kernel, x, z = data(rng, name)
    y = kernel(x, x[:5]) @ np.ones(5)  # without noise: the smaller the ridge the better
    K = kernel(x.astype(dtype))
    path = RidgePath(K, y.astype(dtype))
    best = path.best(criterion)
    least = EPS[dtype] * float(np.trace(K))
    assert best >= (least if path.eigenvalues[-1] > 0 else max(least, path.cutoff)) * (1 - 1e-9)
    got = kernel(z.astype(dtype), x.astype(dtype)) @ path.alpha(best)
    want = kernel(z, x[:5]) @ np.ones(5)
    # a function in the RKHS, of norm below 5 sqrt(k), and a ridge of the size of rounding
    error = np.sqrt(max(best, path.cutoff) * kernel.diag(z)) * 5 * np.sqrt(K.max())
    assert (np.abs(got - want) <= 2 * error).all()


def test_path_predicts(rng):
    k, y = smooth(rng, 30), rng.standard_normal((30, 2))
    across = rng.standard_normal((7, 30))
    path = RidgePath(k, y)
    np.testing.assert_array_equal(path.predict(across, 0.1), across @ path.alpha(0.1))
    several = path.predict(across, [[0.1, 1.0, 2.0]])
    assert several.shape == (1, 3, 7, 2)
    np.testing.assert_allclose(several[0, 2], across @ path.alpha(2.0), rtol=1e-13)
    single = RidgePath(k, y[:, 0])
    np.testing.assert_allclose(single.predict(across, 1.0), several[0, 1, :, 0], rtol=1e-10)
    assert single.predict(across, [0.1, 1.0]).shape == (2, 7)


def test_a_tiny_matrix_with_a_ridge_is_no_problem(rng):
    y = rng.standard_normal(3)
    np.testing.assert_allclose(ridge(np.eye(3) * 1e-320, y, 0.5), 2 * y)
    np.testing.assert_allclose(RidgePath(np.eye(3) * 1e-320, y).alpha(0.5), 2 * y)
