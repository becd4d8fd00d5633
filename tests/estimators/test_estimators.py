"""Estimators against brute force, scikit-learn's own, and the definitions."""

import math
import pathlib
import pickle
import re
import subprocess
import sys
import warnings

import conventions
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import decomposition, svm
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelcore as kc
from kernelcore.estimators import _base, _degrees, _factor, _ridge

GAUSSIAN = kc.Gaussian(0.8)
NET = kc.presets.mlp(2, b_std=0.1)
IMAGES = kc.presets.cntk(3).ntk
MODELS = [
    kc.KernelRegressor(),
    kc.KernelRegressor(kc.Laplacian(2.0), ridge=0.1),
    kc.KernelClassifier(),
    kc.KernelClassifier(ridge=0.1, targets="simplex", probabilities="calibrated"),
    kc.KernelClassifier(targets="centred", probabilities=None),
    kc.KernelRegressor(ridge=0.1, solver="cg", random_state=0),
    kc.KernelRegressor(ridge=0.1, solver="eigenpro", random_state=0),
    kc.KernelClassifier(ridge=0.1, solver="nystrom", random_state=0),
    kc.GaussianProcess(),
    kc.GaussianProcess(NET.ntk, noise_variance=0.01, initial=NET.nngp),
    kc.KernelSmoother(),
    kc.KernelPCA(),
    kc.KernelPCA(2, GAUSSIAN),
    kc.SpectralEmbedding(),
    kc.SpectralEmbedding(1, method="diffusion", t=2.0, alpha=1.0),
]
SUPERVISED = MODELS[:11]


def takes_matrices(model):
    return getattr(model, "solver", "") not in ("eigenpro", "nystrom")


def named(model):
    return f"{MODELS.index(model)}-{type(model).__name__}"


def wave(rng, n=40, outputs=None, noise=0.1):
    X = rng.standard_normal((n, 2))
    y = np.sin(2 * X[:, 0]) + noise * rng.standard_normal(n)
    return (X, y) if outputs is None else (X, np.stack([y, X[:, 1] ** 2, y - 1][:outputs], 1))


def three(rng, n=45):
    """Three classes that overlap, with shares of 1/2, 1/3 and 1/6 or so."""
    labels = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    return rng.standard_normal((n, 2)) + 1.5 * np.eye(3)[labels][:, :2], labels


# ---- scikit-learn's rules


@pytest.mark.parametrize("model", MODELS, ids=named)
def test_the_checks_of_scikit_learn(model):
    drawn = getattr(model, "solver", "") == "eigenpro"
    conventions.check(model, "the order of points is drawn" if drawn else None)


NO_PRIOR = [model for model in SUPERVISED if not isinstance(model, kc.GaussianProcess)]


@pytest.mark.parametrize("model", NO_PRIOR, ids=named)
def test_predict_before_fit(model):
    text = f"This {type(model).__name__} instance is not fitted yet."
    with pytest.raises(NotFittedError, match=re.escape(text)):
        model.predict([[0.0]])


@pytest.mark.parametrize("model", SUPERVISED, ids=named)
def test_labels_that_do_not_fit(model):
    X = np.eye(3)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, [0, 1])
    with pytest.raises(ValueError, match="Input y contains NaN"):
        model.fit(X, [0.0, 1.0, np.nan])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(X * np.nan, [0, 1, 0])


@pytest.mark.parametrize("model", MODELS, ids=named)
def test_clones_and_pickles(model, rng):
    X, labels = three(rng)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.kernel is model.kernel  # kernels never change
    copy.fit(X, labels)
    again = pickle.loads(pickle.dumps(copy))
    call = "predict" if hasattr(copy, "predict") else "transform"
    assert_array_equal(getattr(again, call)(X), getattr(copy, call)(X))
    assert again.kernel == model.kernel
    assert copy.set_params(kernel=GAUSSIAN).kernel is GAUSSIAN


def test_grid_search_over_depth_and_ridge_in_a_pipeline():
    X, y = make_moons(80, noise=0.2, random_state=0)
    pipeline = make_pipeline(StandardScaler(), kc.KernelClassifier())
    depths = [kc.presets.mlp(depth, b_std=0.1).ntk for depth in (1, 3)]
    grid = {
        "kernelclassifier__kernel": [*depths, kc.Gaussian(1.0)],
        "kernelclassifier__ridge": [1e-3, 0.1, "loo"],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert len(search.cv_results_["mean_test_score"]) == 9
    assert search.best_score_ > 0.9
    assert search.best_params_["kernelclassifier__kernel"] in grid["kernelclassifier__kernel"]
    assert search.predict(X).shape == (80,)


def test_a_precomputed_matrix_is_cut_by_rows_and_columns(rng):
    X, y = wave(rng, 60)
    got = cross_val_score(kc.KernelRegressor("precomputed", ridge=0.1), GAUSSIAN(X), y)
    assert_allclose(got, cross_val_score(kc.KernelRegressor(GAUSSIAN, ridge=0.1), X, y), rtol=1e-8)


@pytest.mark.parametrize("model", list(filter(takes_matrices, SUPERVISED[1:10])), ids=named)
def test_precomputed_predicts_the_same(model, rng):
    X, labels = three(rng)
    Z = rng.standard_normal((7, 2))
    model = clone(model).set_params(kernel=GAUSSIAN)
    if isinstance(model, kc.GaussianProcess):
        model.set_params(initial=None)
    want = model.fit(X, labels).predict(Z)
    K = GAUSSIAN(X)
    kept = K.copy()
    other = clone(model).set_params(kernel="precomputed").fit(K, labels)
    assert_array_equal(K, kept)
    assert_allclose(other.predict(GAUSSIAN(Z, X)), want, atol=1e-12)


def test_kernels_are_kernels_of_support_vector_machines(rng):
    X, labels = three(rng)
    Z = rng.standard_normal((20, 2))
    whole = svm.SVC(kernel="precomputed").fit(NET.ntk(X), labels)
    called = svm.SVC(kernel=NET.ntk).fit(X, labels)
    want = whole.decision_function(NET.ntk(Z, X))
    assert_allclose(called.decision_function(Z), want, rtol=1e-10)
    assert_array_equal(clone(called).fit(X, labels).predict(Z), called.predict(Z))


def test_without_scikit_learn():
    code = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] == "sklearn":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name == "sklearn" else real(name, *a)
sys.meta_path.insert(0, Absent())
import numpy as np, kernelcore as kc
from kernelcore import *
assert kc.solvers.ridge(kc.Gaussian(1.0)(np.eye(2)), [1.0, 2.0], 0.1).shape == (2,)
assert "KernelRegressor" in dir(kc)
for name in ("KernelRegressor", "KernelPCA"):
    try:
        getattr(kc, name)
    except ImportError as error:
        print(error)
"""
    path = str(pathlib.Path(kc.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r})\n{code}"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    needs = "needs scikit-learn; install it with: pip install 'kernelcore[sklearn]'"
    assert run.stderr == ""
    lines = [f"kernelcore.{name} {needs}" for name in ("KernelRegressor", "KernelPCA")]
    assert run.stdout.splitlines() == lines


# ---- regression


@pytest.mark.parametrize("outputs", [None, 1, 3])
@pytest.mark.parametrize("solver", ["auto", "cholesky", "eigen"])
def test_regressor_is_that_of_scikit_learn(rng, solver, outputs):
    X, y = wave(rng, outputs=outputs)
    Z = rng.standard_normal((9, 2))
    model = kc.KernelRegressor(GAUSSIAN, ridge=0.3, solver=solver).fit(X, y)
    other = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.5 / 0.8**2).fit(X, y)
    assert_allclose(model.predict(Z), other.predict(Z), atol=1e-12)
    assert_allclose(model.dual_coef_, other.dual_coef_, atol=1e-12)
    assert model.predict(Z).shape == (9, *y.shape[1:])
    assert model.n_features_in_ == 2


def brute_force(K, y, ridge):
    """Leave-one-out residuals, one fit for each."""
    out = np.empty(y.shape)
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        a = K[np.ix_(rest, rest)] + ridge * np.eye(len(rest))
        out[i] = y[i] - K[i, rest] @ np.linalg.solve(a, y[rest])
    return out


@pytest.mark.parametrize("outputs", [None, 2])
def test_the_ridge_by_leave_one_out_is_the_best_of_brute_force(rng, outputs):
    X, y = wave(rng, 50, outputs, noise=0.3)
    K = GAUSSIAN(X)
    model = kc.KernelRegressor(GAUSSIAN).fit(X, y)
    assert 1e-3 < model.ridge_ < 10
    error = {r: np.mean(brute_force(K, y, r) ** 2) for r in model.ridge_ * np.array([0.9, 1, 1.1])}
    assert min(error, key=error.get) == model.ridge_
    grid = np.geomspace(1e-6, 1e3, 40)
    assert error[model.ridge_] <= min(np.mean(brute_force(K, y, r) ** 2) for r in grid)


@pytest.mark.parametrize("criterion", ["gcv", "likelihood"])
def test_other_criteria_are_those_of_the_path(rng, criterion):
    X, y = wave(rng)
    path = kc.solvers.RidgePath(GAUSSIAN(X), y)
    model = kc.KernelRegressor(GAUSSIAN, ridge=criterion).fit(X, y)
    assert model.ridge_ == path.best(criterion)
    assert_allclose(model.alpha_, path.alpha(model.ridge_), atol=1e-12)


@pytest.mark.parametrize("ridge", [1e-3, 2.0, "loo"])
@pytest.mark.parametrize("outputs", [None, 3])
def test_the_norm_is_that_of_the_coefficients(rng, ridge, outputs):
    X, y = wave(rng, outputs=outputs)
    for model in (kc.KernelRegressor(GAUSSIAN, ridge), kc.GaussianProcess(GAUSSIAN, 0.2)):
        model.fit(X, y)
        want = np.sqrt((model.alpha_ * (GAUSSIAN(X) @ model.alpha_)).sum(0))
        assert_allclose(model.rkhs_norm_, want, rtol=1e-9)
        assert isinstance(model.rkhs_norm_, float) == (outputs is None)


def test_a_singular_matrix_is_interpolated_with_the_least_norm(rng):
    X, y = wave(rng, 12)
    X, y = np.concatenate([X, X[:3]]), np.concatenate([y, y[:3]])
    model = kc.KernelRegressor(kc.Laplacian(1.0), ridge=0.0).fit(X, y)
    assert_allclose(model.predict(X), y, atol=1e-10)
    assert_allclose(model.alpha_[:3], model.alpha_[-3:], atol=1e-10)
    norm = math.sqrt(y[:12] @ np.linalg.solve(kc.Laplacian(1.0)(X[:12]), y[:12]))
    assert_allclose(model.rkhs_norm_, norm, rtol=1e-9)


@pytest.mark.parametrize("model", SUPERVISED, ids=named)
def test_blocks_predict_what_the_whole_does(model, rng, monkeypatch):
    X, labels = three(rng)
    Z = rng.standard_normal((25, 2))
    model = clone(model).fit(X, labels)
    whole = model.predict(Z)
    monkeypatch.setattr(_base, "BLOCK", 7 * 45 * 8)
    assert [K.shape for _, K in model._blocks(Z)] == [(7, 45)] * 3 + [(4, 45)]
    # the kernel to the bit, the product with it up to the order of sums
    assert_allclose(model.predict(Z), whole, atol=1e-12)
    if isinstance(model, kc.GaussianProcess):
        cov = model.predict(Z, return_cov=True)[1]
        assert_allclose(model.predict(Z, return_std=True)[1] ** 2, np.diag(cov), atol=1e-9)


def test_leave_one_out_from_the_factor_is_that_of_the_path(rng):
    for n in (1, 63, 64, 65, 150):
        X, y = wave(rng, n, outputs=2)
        K = NET.ntk(X)
        by_factor = _factor.fit(K.copy(), y, 0.1, "auto", leave_one_out=True)
        by_path = _factor.fit(K.copy(), y, 0.1, "eigen", leave_one_out=True)
        for a, b in zip(by_factor, by_path, strict=True):
            assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        assert_allclose(by_factor.residuals, brute_force(K, y, 0.1), atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_small_ridges_in_single_precision_are_solved_in_double(rng, monkeypatch, weighted):
    """K is single; what is solved with it has the digits that its entries have.

    Coefficients are rounded once; leave-one-out residuals and norms are not rounded at all.
    """
    X, y = wave(rng, 150, outputs=2)
    K, y = kc.Gaussian(3.0)(X.astype(np.float32)), y.astype(np.float32)
    weights = _factor.weights_of(rng.uniform(0.5, 2.0, 150), X) if weighted else None
    ridge, calls = 2e-5, []
    assert not _factor.Cholesky(K.copy(), ridge).sound
    monkeypatch.setattr(_factor, "_by_path", lambda *rest: calls.append(rest))
    got = _factor.fit(K.copy(), y, ridge, "auto", True, weights)
    monkeypatch.undo()
    assert not calls
    wide = (K.astype(np.float64), y.astype(np.float64), ridge, "cholesky", True, weights)
    want = _factor.fit(*wide)
    assert got.alpha.dtype == np.float32
    assert_allclose(got.alpha, want.alpha, rtol=1e-6, atol=1e-6 * np.abs(want.alpha).max())
    assert_allclose(got.residuals, want.residuals, rtol=1e-8, atol=1e-10)
    assert_allclose(got.norm, want.norm, rtol=1e-8)


def test_a_ridge_below_the_errors_of_entries_cuts_them_off(rng, monkeypatch):
    """Or one for which there is no memory: eigenvectors are taken, of K as it is."""
    K = kc.Gaussian(3.0)(wave(rng, 100)[0].astype(np.float32))
    y = np.ones(100, np.float32)
    kinds = []

    def by_path(K, *rest):
        kinds.append(K.dtype)

    monkeypatch.setattr(_factor, "_by_path", by_path)
    for ridge in (0.0, 1e-8):
        _factor.fit(K.copy(), y, ridge, "auto")
    monkeypatch.setattr(_factor._check, "budget", lambda: 2 * K.nbytes)
    _factor.fit(K.copy(), y, 1e-4, "auto")
    assert kinds == [np.float32] * 3


@pytest.mark.parametrize("model", MODELS, ids=named)
def test_single_precision_stays_single(model, rng):
    X, labels = three(rng)
    wide = clone(model).fit(X, labels)
    narrow = clone(model).fit(X.astype(np.float32), labels)
    call = "transform"
    if hasattr(model, "predict"):
        call = "decision_function" if hasattr(model, "decision_function") else "predict"
    got = getattr(narrow, call)(X)  # taken to the dtype of the fit
    assert got.dtype == np.float32
    if getattr(model, "n_components", 1) is None:
        got = got[:, :2]  # how many are resolved is another matter
    want = getattr(wide, call)(X)
    assert_allclose(got, want[:, :2] if got.shape != want.shape else want, atol=5e-3)


# ---- solvers that never hold the matrix


def exact(kernel, X, y, ridge):
    """Predictions on X and the norm of the fit, in double precision."""
    K = kernel(X.astype(np.float64))
    alpha = np.linalg.solve(K + ridge * np.eye(len(X)), y)
    return K @ alpha, np.sqrt((alpha * (K @ alpha)).sum(0))


def assert_close_to_exact(model, X, y, residual):
    """With r = y - (K + ridge I) alpha predictions on X are off by K A^-1 r, at most |r|.

    And the norm by at most sqrt(r' A^-1 K A^-1 r) <= |r|/(2 sqrt(ridge)).
    """
    want, norm = exact(model.kernel, X, y, model.ridge)
    scale = residual * np.linalg.norm(y, axis=0)
    assert (np.linalg.norm(model.predict(X) - want, axis=0) <= scale).all()
    assert (np.abs(model.rkhs_norm_ - norm) <= scale / (2 * math.sqrt(model.ridge))).all()
    alpha, K = model.alpha_.astype(np.float64), model.kernel(model.X_fit_.astype(np.float64))
    own = np.sqrt((alpha * (K @ alpha)).sum(0))
    assert_allclose(model.rkhs_norm_, own, rtol=1e4 * np.finfo(X.dtype).eps)


@pytest.mark.parametrize("outputs", [None, 3])
def test_conjugate_gradients_end_at_their_tolerance(rng, dtype, outputs):
    X, y = wave(rng, 250, outputs)
    X = X.astype(dtype)
    model = kc.KernelRegressor(NET.ntk, 0.1, "cg", random_state=0).fit(X, y)
    assert model.alpha_.dtype == model.predict(X).dtype == dtype
    assert_close_to_exact(model, X, y, 1e-6 if dtype == np.float64 else 1e-4)
    matrix = kc.KernelRegressor("precomputed", 0.1, "cg", random_state=0).fit(NET.ntk(X), y)
    atol = 2 * (1e-6 if dtype == np.float64 else 1e-4) * np.linalg.norm(y)
    assert_allclose(matrix.predict(NET.ntk(X)), model.predict(X), atol=atol)


@pytest.mark.parametrize("outputs", [None, 3])
def test_eigenpro_ends_at_its_tolerance_as_fast_as_its_rate(rng, outputs):
    """Squares of errors fall by exp(-ridge/beta) an epoch, less what batches of a quarter take."""
    X, y = wave(rng, 250, outputs)
    model = kc.KernelRegressor(GAUSSIAN, 1.0, "eigenpro", tol=1e-6, max_iter=200, random_state=0)
    model.fit(X, y)
    assert_close_to_exact(model, X, y, 2e-6 if outputs is None else 6e-6)  # tol is of all columns
    seed = np.random.RandomState(0).randint(2**31 - 1)
    beta = kc.solvers.eigenpro(GAUSSIAN, X, y, 1.0, epochs=0, seed=seed).beta
    assert 1 < beta < 2  # the ridge, and at most the diagonal
    assert model.n_iter_ <= 2 * beta / 0.75 * math.log(1e6)


@pytest.mark.parametrize("n", [150, 250])  # summed squares, and conjugate gradients
@pytest.mark.parametrize("outputs", [None, 3])
def test_all_points_as_centres(rng, n, outputs):
    X, y = wave(rng, n, outputs)
    kernel = kc.Laplacian(1.0)
    model = kc.KernelRegressor(kernel, 0.1, "nystrom", centres=n, random_state=0).fit(X, y)
    # normal equations: the condition of K (K + ridge I), times n u
    values = np.linalg.eigvalsh(kernel(X))
    condition = values[-1] * (values[-1] + 0.1) / (values[0] * (values[0] + 0.1))
    assert_close_to_exact(model, X, y, n * 2.0**-53 * condition)


@pytest.mark.parametrize("centres", [None, 20, "given"])
def test_few_centres_are_least_squares_on_them(rng, centres):
    X, y = wave(rng, 400)
    given = rng.standard_normal((30, 2)) if centres == "given" else centres
    model = kc.KernelRegressor(NET.ntk, 0.1, "nystrom", centres=given, random_state=0).fit(X, y)
    C = model.X_fit_
    assert len(C) == {None: 200, 20: 20, "given": 30}[centres] == len(model.dual_coef_)
    known = given if centres == "given" else X
    assert (np.abs(C[:, None] - known).sum(-1).min(1) == 0).all()
    # |K_nm a - y|^2 + ridge a' K_mm a as one least-squares problem
    values, vectors = np.linalg.eigh(NET.ntk(C))
    root = (vectors * np.sqrt(np.maximum(values, 0))).T
    a = np.linalg.lstsq(
        np.concatenate([NET.ntk(X, C), math.sqrt(0.1) * root]), np.r_[y, np.zeros(len(C))],
        rcond=1e-13,
    )[0]  # fmt: skip
    Z = rng.standard_normal((9, 2))
    assert_allclose(model.predict(Z), NET.ntk(Z, C) @ a, atol=1e-5)
    assert_allclose(model.rkhs_norm_, math.sqrt(a @ NET.ntk(C) @ a), rtol=1e-5)


@pytest.mark.parametrize("solver", ["cg", "eigenpro", "nystrom"])
def test_classes_by_solvers_without_the_matrix(rng, solver):
    X, labels = three(rng, 120)
    kernel = kc.Laplacian(1.0)
    common = {"ridge": 1.0, "targets": "simplex", "random_state": 3}
    more = {"solver": solver, "centres": 120, "tol": 1e-6, "max_iter": 200}
    model = kc.KernelClassifier(kernel, **common, **more).fit(X, labels)
    want = kc.KernelClassifier(kernel, **common, solver="cholesky").fit(X, labels)
    # residuals below tol |codes|, which have a norm below 1 each, and predictions off by no more
    off = 1e-6 * math.sqrt(120)
    assert_allclose(model.decision_function(X), want.decision_function(X), atol=off)
    assert_allclose(model.rkhs_norm_, want.rkhs_norm_, atol=off)
    assert model.X_fit_.shape == (120, 2)
    # scores of points left out are exact for all of them
    assert_allclose(model.temperature_, want.temperature_, rtol=1e-5)
    assert_allclose(model.predict_proba(X), want.predict_proba(X), atol=1e-4)
    assert_allclose(model.predict_proba(X).sum(1), 1, rtol=1e-12)
    again = kc.KernelClassifier(kernel, **common, **more, probabilities=None).fit(X, labels)
    assert_allclose(again.decision_function(X), model.decision_function(X), atol=2 * off)
    assert model.n_iter_ == max(1, len(model.history_) - 1) if solver != "nystrom" else True


@pytest.mark.parametrize("solver", ["cg", "eigenpro"])
def test_beyond_a_size_a_tenth_is_held_out(rng, solver, monkeypatch):
    """The temperature is the best for a tenth of the points that the others did not see."""
    monkeypatch.setattr(_ridge, "EXACT", 100)
    X, labels = three(rng, 120)
    kernel = kc.Laplacian(1.0)
    model = kc.KernelClassifier(kernel, 1.0, solver=solver, tol=1e-6, max_iter=200, random_state=3)
    model.fit(X, labels)
    assert len(model.alpha_) == len(model.X_fit_) == 120
    numbers = np.random.RandomState(3)
    numbers.randint(2**31 - 1)  # of the fit to all points
    held, rest = np.split(numbers.permutation(120), [12])
    K = kernel(X[rest]) + np.eye(108)
    scores = kernel(X[held], X[rest]) @ np.linalg.solve(K, np.eye(3)[labels[rest]])
    best = scipy.optimize.minimize_scalar(
        lambda log: entropy(scores, labels[held], np.exp(log)), bounds=(-7, 7), method="bounded"
    )
    assert_allclose(entropy(scores, labels[held], model.temperature_), best.fun, rtol=1e-5)
    matrix = clone(model).set_params(kernel="precomputed") if solver == "cg" else clone(model)
    matrix.fit(kernel(X) if solver == "cg" else X, labels)
    assert_allclose(matrix.temperature_, model.temperature_, rtol=1e-4)


def test_a_held_out_part_of_a_matrix(rng):
    X, labels = three(rng, 60)
    model = kc.KernelClassifier(GAUSSIAN, 0.1, solver="cg", random_state=0).fit(X, labels)
    other = clone(model).set_params(kernel="precomputed").fit(GAUSSIAN(X), labels)
    assert_allclose(other.temperature_, model.temperature_, rtol=1e-4)


def test_solvers_that_do_not_converge_say_so(rng):
    X, y = wave(rng, 20)
    X = np.concatenate([X, X])  # singular, and labels that contradict each other
    model = kc.KernelRegressor(kc.Laplacian(1.0), 0.0, "cg", random_state=0)
    with pytest.warns(RuntimeWarning, match="^conjugate_gradients did not converge: the relative"):
        model.fit(X, np.r_[y, y + 1])


def test_solvers_in_a_grid_search(rng):
    X, y = wave(rng, 90)
    grid = {"solver": ["cg", "nystrom", "cholesky"], "centres": [10, 90], "ridge": [0.1, 1.0]}
    model = kc.KernelRegressor(GAUSSIAN, random_state=0)
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, y)
    found = search.cv_results_
    for ridge in grid["ridge"]:
        # 90 centres are all 60 points there are
        which = (found["param_centres"] == 90) & (found["param_ridge"] == ridge)
        scores = found["mean_test_score"][which.astype(bool)]
        assert_allclose(scores, scores[0], atol=1e-4)


# ---- degrees that a kernel lacks


def on_sphere(rng, n, dim):
    X = rng.standard_normal((n, dim))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def cubic(X):
    """A harmonic of degree 3."""
    return np.sqrt(len(X[0])) ** 3 * X[:, 0] * X[:, 1] * X[:, 2]


@pytest.mark.parametrize(("n", "dim"), [(300, 3), (300, 5), (700, 12)])
def test_a_target_of_a_null_degree_is_told(rng, n, dim, dtype):
    X = 2 * on_sphere(rng, n, dim).astype(dtype)
    y = cubic(X)
    text = (
        r"y has a share of (0\.\d\d|1\.00) \+- 0\.\d\d of its variance in degree 3 of the sphere "
        "that X lies on, where the eigenvalue of the kernel is zero: it cannot be learned from any "
        "number of samples; a network with b_std > 0 or of another depth has all degrees"
    )
    kernel = kc.presets.mlp(1).ntk
    with pytest.warns(RuntimeWarning, match=f"^{text}$") as said:
        kc.KernelRegressor(kernel, 0.1).fit(X, y)
    assert said[0].filename == __file__
    with pytest.warns(RuntimeWarning, match=f"^{text}$"):
        kc.KernelRegressor(kernel, 0.1).fit(X, np.stack([y, 2 * y, np.ones(n)], 1))
    # not of kernels that have it; nor of rows of other norms, nor of few
    kc.KernelRegressor(kc.presets.mlp(1, b_std=0.1).ntk, 0.1).fit(X, y)
    kc.KernelRegressor(kc.presets.mlp(2).ntk, 0.1).fit(X, y)
    kc.KernelRegressor(kernel, 0.1).fit(X * rng.uniform(0.99, 1, (n, 1)).astype(dtype), y)
    kc.KernelRegressor(kernel, 0.1).fit(X[:49], y[:49])
    kc.KernelRegressor("precomputed", 0.1).fit(kernel(X), y)


def test_classes_of_a_null_degree_are_told(rng):
    X = on_sphere(rng, 500, 3)
    model = kc.KernelClassifier(kc.ArcCosine(1), 0.1)
    with pytest.warns(RuntimeWarning, match="^y has a share of"):
        # the sign of a cubic is odd, most of it of degree 3
        model.fit(X, cubic(X) > 0)
    model.fit(X, X[:, 0] > 0)


def test_degrees_of_other_rows_have_no_meaning(rng):
    """Close together, or in a plane, cubics are much like functions that can be learned."""
    near = on_sphere(rng, 400, 3) + np.array([3, 0, 0])
    flat = on_sphere(rng, 400, 2) @ np.eye(2, 3)
    kernel = kc.presets.mlp(1).ntk
    for X in (near / np.linalg.norm(near, axis=1, keepdims=True), flat):
        kc.KernelRegressor(kernel, 0.1).fit(X, X[:, 0] ** 3)


def test_half_of_the_variance_is_told_within_its_error(rng):
    """Two standard errors on one side, or 2.3 % of draws with half of it in degree 3."""
    kernel, told = kc.presets.mlp(1).ntk, 0
    for _ in range(60):
        X = on_sphere(rng, 200, 3)
        f = [kc.spectrum.RandomFunction(3, power, seed=rng) for power in ([0, 1], [0, 0, 0, 1])]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            _degrees.warn_of_null_degrees(kernel, X, f[0](X) + f[1](X))
        told += len(said)
    assert told <= 6  # by chance more in 1 of 1000 tests


# ---- images


@pytest.mark.parametrize("model", MODELS, ids=named)
def test_images(model, rng):
    X = rng.standard_normal((14, 5, 4, 2))
    labels = np.arange(14) % 3
    kernel = IMAGES
    if hasattr(model, "empty") or hasattr(model, "method"):
        kernel = IMAGES * IMAGES  # not negative
    model = clone(model).set_params(kernel=kernel)
    if hasattr(model, "initial"):
        model.set_params(initial=kc.presets.cntk(3).nngp if model.initial else None)
    model.fit(X, labels)
    assert model.n_features_in_ == 40
    call = "predict" if hasattr(model, "predict") else "transform"
    got = getattr(model, call)(X[:5])
    if takes_matrices(model) and not getattr(model, "initial", None):
        other = clone(model).set_params(kernel="precomputed").fit(kernel(X), labels)
        assert_allclose(getattr(other, call)(kernel(X[:5], X)), got, atol=1e-9)
    with pytest.raises(ValueError, match=r"^X must have the positions and channels of the fit"):
        getattr(model, call)(X[:5, 1:])


def test_images_in_a_grid_search(rng):
    X = rng.standard_normal((18, 4, 4, 1))
    y = np.arange(18) % 2
    X[y == 1, :2] += 2
    grid = {"kernel": [kc.presets.cntk(depth).ntk for depth in (2, 3)]}
    search = GridSearchCV(kc.KernelClassifier(), grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.8


# ---- classes


@pytest.mark.parametrize("targets", ["one_hot", "centred", "simplex"])
@pytest.mark.parametrize("ridge", [0.2, "loo"])
def test_scores_are_those_of_the_codes(rng, targets, ridge):
    X, labels = three(rng)
    names = np.array(["x", "y", "z"])[labels]
    Z = rng.standard_normal((11, 2))
    model = kc.KernelClassifier(GAUSSIAN, ridge, targets=targets).fit(X, names)
    one_hot = np.eye(3)[labels]
    centre = {"one_hot": 0.0, "centred": 1 / 3, "simplex": one_hot.mean(0)}[targets]
    a = GAUSSIAN(X) + model.ridge_ * np.eye(len(X))
    want = centre + GAUSSIAN(Z, X) @ np.linalg.solve(a, one_hot - centre)
    assert_allclose(model.decision_function(Z), want, atol=1e-10)
    assert_array_equal(model.predict(Z), np.array(["x", "y", "z"])[want.argmax(1)])
    assert model.alpha_.shape == (45, 2 if targets == "simplex" else 3)
    assert_array_equal(model.classes_, ["x", "y", "z"])


def test_far_from_the_data_simplex_codes_give_shares(rng):
    X, labels = three(rng)
    model = kc.KernelClassifier(GAUSSIAN, targets="simplex").fit(X, labels)
    assert_allclose(model.decision_function([[90.0, 0.0]])[0], np.bincount(labels) / 45)


def test_two_classes_have_one_decision(rng):
    X, labels = three(rng)
    labels = np.where(labels == 0, "b", "a")
    for targets in ("one_hot", "centred", "simplex"):
        model = kc.KernelClassifier(GAUSSIAN, 0.1, targets=targets).fit(X, labels)
        decision = model.decision_function(X)
        assert decision.shape == (45,)
        assert_array_equal(model.predict(X), np.where(decision > 0, "b", "a"))
        want = 1 / (1 + np.exp(-decision / model.temperature_))
        assert_allclose(model.predict_proba(X)[:, 1], want, rtol=1e-12)


def entropy(scores, labels, temperature, offsets=0.0):
    """Of labels that are 1 - 1/(n + 2) sure."""
    n, count = scores.shape
    sure = np.where(np.eye(count)[labels], 1 - 1 / (n + 2), 1 / (n + 2) / (count - 1))
    z = scores / temperature + offsets
    return -np.sum(sure * (z - np.log(np.exp(z).sum(1, keepdims=True)))) / len(z)


@pytest.mark.parametrize("ridge", [0.2, "loo"])
@pytest.mark.parametrize("targets", ["one_hot", "simplex"])
def test_the_temperature_is_the_best_for_points_left_out(rng, ridge, targets):
    X, labels = three(rng)
    model = kc.KernelClassifier(GAUSSIAN, ridge, targets=targets).fit(X, labels)
    one_hot = np.eye(3)[labels]
    centre = one_hot.mean(0) if targets == "simplex" else 0.0
    scores = one_hot - brute_force(GAUSSIAN(X), one_hot - centre, model.ridge_)
    best = scipy.optimize.minimize_scalar(
        lambda log: entropy(scores, labels, np.exp(log)), bounds=(-7, 7), method="bounded"
    )
    got = entropy(scores, labels, model.temperature_)
    assert_allclose(got, best.fun, rtol=1e-6)
    z = model.decision_function(X) / model.temperature_
    assert_allclose(model.predict_proba(X), scipy.special.softmax(z, 1), rtol=1e-10)
    assert_allclose(model.predict_log_proba(X), scipy.special.log_softmax(z, 1), rtol=1e-10)
    assert_array_equal(model.offsets_, np.zeros(3))


def test_calibration_has_the_best_offsets(rng):
    X, labels = three(rng, 120)
    model = kc.KernelClassifier(GAUSSIAN, 0.2, probabilities="calibrated").fit(X, labels)
    scores = np.eye(3)[labels] - brute_force(GAUSSIAN(X), np.eye(3)[labels], 0.2)
    best = scipy.optimize.minimize(
        lambda p: entropy(scores, labels, np.exp(p[0]), p[1:]), np.zeros(4), method="BFGS"
    )
    got = entropy(scores, labels, model.temperature_, model.offsets_)
    assert_allclose(got, best.fun, rtol=1e-6)
    assert abs(model.offsets_.sum()) < 1e-12
    # at the best offsets the mean probability of a class is its share, up to the doubt in labels
    left_out = scipy.special.softmax(scores / model.temperature_ + model.offsets_, 1).mean(0)
    assert_allclose(left_out, np.bincount(labels) / 120, atol=0.03)


def test_probabilities_of_classes_that_are_apart_stay_off_zero_and_one():
    X = np.r_[np.linspace(-3, -2, 20), np.linspace(2, 3, 20)][:, None]
    labels = np.repeat([0, 1], 20)
    p = kc.KernelClassifier(kc.Gaussian(1.0)).fit(X, labels).predict_proba(X)
    assert_array_equal(p.argmax(1), labels)
    assert 0.95 < p.max() < 0.995  # 41/42 on average


def test_no_probabilities_where_none_were_asked_for(rng):
    model = kc.KernelClassifier(GAUSSIAN, probabilities=None).fit(*three(rng))
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "temperature_")


# ---- Gaussian processes


def reference(noise):
    return GaussianProcessRegressor(RBF(0.8), alpha=noise, optimizer=None)


@pytest.mark.parametrize("noise", [1e-4, 0.3])
@pytest.mark.parametrize("outputs", [None, 3])
def test_process_is_that_of_scikit_learn(rng, noise, outputs):
    X, y = wave(rng, outputs=outputs)
    Z = 2 * rng.standard_normal((15, 2))
    model, other = kc.GaussianProcess(GAUSSIAN, noise).fit(X, y), reference(noise).fit(X, y)
    got, want = model.predict(Z, return_std=True), other.predict(Z, return_std=True)
    assert_allclose(got[0], want[0], atol=1e-9)
    assert_allclose(got[1], want[1], atol=1e-9)
    got, want = model.predict(Z, return_cov=True), other.predict(Z, return_cov=True)
    assert_allclose(got[1], want[1], atol=1e-9)
    assert_allclose(
        model.log_marginal_likelihood(), other.log_marginal_likelihood_value_, rtol=1e-9
    )


def test_likelihood_and_its_gradient_are_those_of_scikit_learn(rng):
    X, y = wave(rng)
    noises = np.array([0.01, 0.1, 1.0])
    kernel = ConstantKernel(1.0, "fixed") * RBF(0.8, "fixed") + WhiteKernel(0.5)
    other = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, y)
    want = [other.log_marginal_likelihood([math.log(v)], eval_gradient=True) for v in noises]
    for noise in (0.5, "likelihood"):
        model = kc.GaussianProcess(GAUSSIAN, noise).fit(X, y)
        value, slope = model.log_marginal_likelihood(noises, gradient=True)
        assert_allclose(value, [v for v, _ in want], rtol=1e-8)
        assert_allclose(noises * slope, [g[0] for _, g in want], rtol=1e-7)  # in the logarithm
        at = model.log_marginal_likelihood()
        assert isinstance(at, float)
        assert_allclose(at, model.log_marginal_likelihood(model.noise_variance_, gradient=True)[0])
    fitted = GaussianProcessRegressor(kernel, alpha=0.0).fit(X, y)
    assert_allclose(model.noise_variance_, np.exp(fitted.kernel_.theta[0]), rtol=1e-3)


def test_samples_have_the_mean_and_covariance_of_the_posterior(rng):
    X, y = wave(rng, outputs=2)
    Z = rng.standard_normal((4, 2))
    model = kc.GaussianProcess(GAUSSIAN, 0.1).fit(X, y)
    mean, cov = model.predict(Z, return_cov=True)
    count = 20000
    draws = model.sample_y(Z, count, random_state=1)
    assert draws.shape == (4, 2, count)
    deviation = np.sqrt(np.diagonal(cov).T)  # (4, 2), five standard errors
    assert (np.abs(draws.mean(-1) - mean) < 5 * deviation / math.sqrt(count)).all()
    for k in range(2):
        size = np.outer(deviation[:, k], deviation[:, k])
        assert (np.abs(np.cov(draws[:, k]) - cov[..., k]) < 5 * 1.5 * size / count**0.5).all()
    assert_array_equal(draws, model.sample_y(Z, count, random_state=1))
    assert kc.GaussianProcess(GAUSSIAN, 0.1).fit(X, y[:, 0]).sample_y(Z).shape == (4, 1)


def test_without_noise_the_process_passes_through_the_data(rng):
    X, y = wave(rng, 20)
    X, y = np.concatenate([X, X[:2]]), np.concatenate([y, y[:2]])  # singular
    mean, std = kc.GaussianProcess(kc.Laplacian(1.0), 0.0).fit(X, y).predict(X, return_std=True)
    assert_allclose(mean, y, atol=1e-8)
    assert_allclose(std, 0, atol=1e-6)


def test_an_ensemble_is_the_end_of_the_flow(rng):
    X, y = wave(rng, 12, outputs=2)
    Z = rng.standard_normal((5, 2))
    model = kc.GaussianProcess(NET.ntk, 0.0, initial=NET.nngp).fit(X, y)
    flow = kc.solvers.ensemble_flow(
        NET.ntk(X), NET.nngp(X), y, np.inf,
        ntk_test=NET.ntk(Z, X), nngp_test=NET.nngp(Z, X), nngp_test_test=NET.nngp(Z),
    )  # fmt: skip
    mean, cov = model.predict(Z, return_cov=True)
    assert_allclose(mean, flow.test_mean, atol=1e-8)
    assert_allclose(cov[..., 0], flow.test_covariance, atol=1e-8)
    # Lee et al. (2019), equation 16, word for word
    theta = np.linalg.inv(NET.ntk(X))
    a = NET.ntk(Z, X) @ theta
    mixed = a @ NET.nngp(X, Z)
    assert_allclose(cov[..., 1], NET.nngp(Z) + a @ NET.nngp(X) @ a.T - mixed - mixed.T, atol=1e-8)


@pytest.mark.parametrize("noise", [0.1, "likelihood"])
def test_an_ensemble_of_one_kernel_is_the_posterior(rng, noise):
    X, y = wave(rng)
    Z = rng.standard_normal((6, 2))
    plain = kc.GaussianProcess(NET.nngp, noise).fit(X, y)
    drawn = kc.GaussianProcess(NET.nngp, noise, initial=NET.nngp).fit(X, y)
    for which in ("return_std", "return_cov"):
        for a, b in zip(
            plain.predict(Z, **{which: True}), drawn.predict(Z, **{which: True}), strict=True
        ):
            assert_allclose(a, b, atol=1e-10)


# ---- smoothing and embedding


@pytest.mark.parametrize("outputs", [None, 2])
def test_smoother_is_a_weighted_mean(rng, outputs):
    X, y = wave(rng, outputs=outputs)
    Z = rng.standard_normal((9, 2))
    square = ((Z[:, None] - X) ** 2).sum(-1)
    weights = np.exp(-square / (2 * 0.8**2))
    want = (weights @ y) / weights.sum(1).reshape(-1, *[1] * (y.ndim - 1))
    assert_allclose(kc.KernelSmoother(GAUSSIAN).fit(X, y).predict(Z), want, rtol=1e-12)


def test_smoother_far_away(rng):
    X, y = wave(rng)
    far = np.array([[1e3, 0.0], [-1e3, 0.0]])
    nearest = [X[:, 0].argmax(), X[:, 0].argmin()]
    assert_allclose(kc.KernelSmoother(GAUSSIAN).fit(X, y).predict(far), y[nearest])
    mean = kc.KernelSmoother(GAUSSIAN, empty="mean").fit(X, y)
    assert_allclose(mean.predict(far), y.mean())
    matrix = kc.KernelSmoother("precomputed").fit(GAUSSIAN(X), y)
    assert_allclose(matrix.predict(np.zeros((1, 40))), y.mean())
    # where weights are tiny but not zero, they still weigh
    two = kc.KernelSmoother(kc.Gaussian(1.0)).fit([[0.0], [1.0]], [0.0, 1.0])
    assert_allclose(two.predict([[38.4]]), 1 / (1 + math.exp(-37.9)), rtol=1e-12)


@pytest.mark.parametrize("kernel", [GAUSSIAN, NET.ntk], ids=["gaussian", "ntk"])
def test_components_are_those_of_scikit_learn(rng, kernel):
    X, Z = rng.standard_normal((40, 3)), rng.standard_normal((8, 3))
    model = kc.KernelPCA(5, kernel).fit(X)
    other = decomposition.KernelPCA(5, kernel="precomputed", eigen_solver="dense").fit(kernel(X))
    assert_allclose(model.eigenvalues_, other.eigenvalues_, rtol=1e-10)
    assert_allclose(model.transform(X), other.transform(kernel(X)), atol=1e-8)
    assert_allclose(model.transform(Z), other.transform(kernel(Z, X)), atol=1e-8)
    assert_allclose(model.fit_transform(X), model.transform(X), atol=1e-8)
    assert_array_equal(model.get_feature_names_out()[:2], ["kernelpca0", "kernelpca1"])


def test_a_linear_kernel_gives_principal_components(rng):
    X = rng.standard_normal((50, 4)) @ np.diag([3.0, 2.0, 1.0, 0.5]) + 5
    model = kc.KernelPCA(kernel=kc.Polynomial(1, 1.0)).fit(X)
    other = decomposition.PCA().fit(X)
    assert model.eigenvalues_.shape == (4,)  # the others are rounding
    assert_allclose(np.abs(model.transform(X)), np.abs(other.transform(X)), atol=1e-9)
    assert_allclose(model.explained_variance_ratio_, other.explained_variance_ratio_, rtol=1e-10)


def test_few_components_of_many_points(rng):
    X = rng.standard_normal((150, 3))
    few, all_of_them = kc.KernelPCA(3, NET.ntk).fit(X), kc.KernelPCA(kernel=NET.ntk).fit(X)
    assert_allclose(few.transform(X), all_of_them.transform(X)[:, :3], atol=1e-7)


def test_laplacian_eigenmaps_solve_their_equation(rng):
    X = rng.standard_normal((30, 2))
    W = GAUSSIAN(X)
    D = np.diag(W.sum(1))
    values, vectors = scipy.linalg.eigh(D - W, D)
    model = kc.SpectralEmbedding(4, GAUSSIAN).fit(X)
    assert_allclose(model.eigenvalues_, values[1:5], rtol=1e-9)
    assert_allclose(np.abs(model.embedding_), np.abs(vectors[:, 1:5]), atol=1e-9)
    largest = np.abs(model.embedding_).argmax(0)
    assert (model.embedding_[largest, range(4)] > 0).all()
    assert_allclose(model.transform(X), model.embedding_, atol=1e-9)


@pytest.mark.parametrize("t", [1, 3])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_distances_in_a_diffusion_map_are_diffusion_distances(rng, t, alpha):
    X = rng.standard_normal((20, 2))
    W = GAUSSIAN(X)
    q = W.sum(1) ** alpha
    W = W / np.outer(q, q)
    P = np.linalg.matrix_power(W / W.sum(1, keepdims=True), t)
    stationary = W.sum(1) / W.sum()
    want = (((P[:, None] - P) ** 2) / stationary).sum(-1)
    model = kc.SpectralEmbedding(19, GAUSSIAN, method="diffusion", t=t, alpha=alpha).fit(X)
    assert_allclose(((model.embedding_[:, None] - model.embedding_) ** 2).sum(-1), want, atol=1e-9)
    resolved = model.eigenvalues_ > 1e-6
    assert_allclose(model.transform(X)[:, resolved], model.embedding_[:, resolved], atol=1e-8)


def test_new_points_lie_between_their_neighbours():
    angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], 1)
    kernel = kc.Gaussian(0.3)
    model = kc.SpectralEmbedding(2, kernel, method="diffusion", t=0.0).fit(ring[::2])
    got = model.transform(ring[1::2])
    radius = np.linalg.norm(model.embedding_, axis=1)
    # on a circle the coordinates are a circle; the extension of its functions is exact there
    assert_allclose(np.linalg.norm(got, axis=1), radius, rtol=1e-6)
    middle = (model.embedding_ + np.roll(model.embedding_, -1, 0)) / 2
    assert_allclose(got * math.cos(np.pi / 100), middle, atol=1e-6)


def test_the_default_is_a_network_with_biases():
    model = kc.KernelRegressor().fit([[1.0], [2.0], [4.0]], [0.0, 1.0, 0.0])
    assert model.kernel_ == kc.presets.mlp(2, b_std=0.1).ntk
    assert kc.KernelSmoother().fit([[1.0]], [0.0]).kernel_ == kc.Gaussian(1.0)


# ---- kernels in a grid


def test_parameters_of_the_kernel_in_a_grid(rng):
    """The kernel itself stays as it is: the estimator gets a changed one."""
    X, y = wave(rng, 60)
    kernel = kc.Gaussian(1.0)
    grid = {"kernel__lengthscale": [0.01, 0.5, 100.0], "ridge": [1e-3]}
    search = GridSearchCV(kc.KernelRegressor(kernel), grid, cv=3).fit(X, y)
    assert search.best_params_ == {"kernel__lengthscale": 0.5, "ridge": 1e-3}
    assert search.best_estimator_.kernel == kc.Gaussian(0.5)
    assert kernel == kc.Gaussian(1.0)
    scores = [
        cross_val_score(kc.KernelRegressor(kc.Gaussian(length), 1e-3), X, y, cv=3).mean()
        for length in (0.01, 0.5, 100.0)
    ]
    assert_allclose(search.cv_results_["mean_test_score"], scores, rtol=1e-9)


def test_parameters_of_kernels_by_name():
    model = kc.GaussianProcess(kc.Matern(1.5, 2.0) + 2 * kc.Gaussian(1.0), initial=kc.Gaussian(3.0))
    params = model.get_params()
    assert params["kernel__left__nu"] == 1.5
    assert params["kernel__right__factor"] == 2
    assert params["initial__lengthscale"] == 3.0
    assert "kernel__left" not in model.get_params(deep=False)
    model.set_params(kernel__right__kernel__lengthscale=4.0, initial__lengthscale=5.0)
    assert model.kernel == kc.Matern(1.5, 2.0) + 2 * kc.Gaussian(4.0)
    assert model.initial == kc.Gaussian(5.0)
    model.set_params(kernel=kc.Gaussian(1.0), kernel__lengthscale=2.0)
    assert model.kernel == kc.Gaussian(2.0)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(ValueError, match="width"):
        model.set_params(kernel__width=1.0)
    net = kc.KernelRegressor(kc.presets.mlp(1).ntk)
    net.set_params(kernel__network__layers__0__b_std=0.5)
    assert net.kernel.network.layers[0] == kc.Dense(1.0, b_std=0.5)


# ---- names


def test_old_names_of_parameters(rng):
    X, y = wave(rng, 20)
    with pytest.warns(DeprecationWarning, match="^noise is deprecated; use noise_variance$"):
        model = kc.GaussianProcess(GAUSSIAN, noise=0.1)
    assert model.noise_variance == 0.1
    with pytest.warns(DeprecationWarning, match="^noise is deprecated; use noise_variance$"):
        model.set_params(noise=0.2)
    with pytest.warns(DeprecationWarning, match="^noise is deprecated; use noise_variance$"):
        assert model.noise == 0.2
    model.fit(X, y)
    with pytest.warns(DeprecationWarning, match="^noise_ is deprecated; use noise_variance_$"):
        assert model.noise_ == 0.2
    with pytest.warns(DeprecationWarning, match="^noise is deprecated; use noise_variance$"):
        assert model.log_marginal_likelihood(noise=0.2) == model.log_marginal_likelihood(0.2)
    for kind in (kc.KernelRegressor, kc.KernelClassifier):
        with pytest.warns(DeprecationWarning, match="^epochs is deprecated; use max_iter$"):
            assert kind(epochs=3).max_iter == 3
        with pytest.warns(DeprecationWarning, match="^epochs is deprecated; use max_iter$"):
            assert kind().set_params(epochs=4).max_iter == 4


def test_random_numbers_by_any_name(rng):
    X, y = wave(rng, 60)
    model = kc.KernelRegressor(GAUSSIAN, 0.1, "nystrom", centres=9, random_state=5)
    assert kc.KernelRegressor(rng=5).random_state == kc.KernelRegressor(seed=5).random_state == 5
    assert kc.KernelClassifier(rng=5).random_state == 5
    want = model.fit(X, y).X_fit_
    assert_array_equal(model.fit(X, y).X_fit_, want)
    drawn = [
        clone(model).set_params(random_state=np.random.default_rng(k)).fit(X, y).X_fit_
        for k in (1, 1, 2)
    ]
    assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()
    process = kc.GaussianProcess(GAUSSIAN, 0.1).fit(X, y)
    assert_array_equal(process.sample_y(X, rng=3), process.sample_y(X, random_state=3))


# ---- how iterations went


def test_iterations_are_told(rng):
    X, y = wave(rng, 200)
    rough = kc.KernelRegressor(kc.Laplacian(1.0), 1e-6, "cg", max_iter=1, random_state=0)
    with pytest.warns(RuntimeWarning, match="^conjugate_gradients did not converge: "):
        rough.fit(X, y)
    assert rough.n_iter_ == 1
    assert rough.history_.shape == (2,)
    rough.set_params(max_iter=None)
    loose = clone(rough).set_params(tol=0.1).fit(X, y)
    tight = clone(rough).set_params(tol=1e-9).fit(X, y)
    assert loose.n_iter_ < tight.n_iter_
    assert loose.history_[-1] <= 0.1
    assert tight.history_[-1] <= 1e-9
    fit = kc.KernelRegressor(NET.ntk, 0.1, "eigenpro", random_state=0).fit(X, y)
    off = y - NET.ntk(X) @ fit.alpha_ - 0.1 * fit.alpha_
    assert np.linalg.norm(off) <= 1e-3 * np.linalg.norm(y)
    assert fit.history_.shape == (fit.n_iter_ + 1,)


# ---- the prior, and the way back


def test_a_process_that_has_seen_nothing(rng):
    Z = rng.standard_normal((6, 2))
    process = kc.GaussianProcess(GAUSSIAN)
    mean, cov = process.predict(Z, return_cov=True)
    assert (mean == 0).all()
    assert_array_equal(cov, GAUSSIAN(Z))
    assert_array_equal(process.predict(Z, return_std=True)[1], np.ones(6))
    assert_array_equal(process.predict(Z.astype(np.float32)), np.zeros(6, np.float32))
    draws = process.sample_y(Z, 20000, random_state=0)
    # the standard error of a covariance of unit normals is at most sqrt(2/n)
    assert_allclose(np.cov(draws), cov, atol=5 * math.sqrt(2 / 20000))
    wide = kc.GaussianProcess(NET.ntk, initial=NET.nngp).predict(Z, return_cov=True)[1]
    assert_array_equal(wide, NET.nngp(Z))
    images = rng.standard_normal((3, 4, 4, 1))
    assert_array_equal(
        kc.GaussianProcess(IMAGES).predict(images, return_cov=True)[1], IMAGES(images)
    )
    with pytest.raises(NotFittedError):
        process.log_marginal_likelihood()


def test_inputs_from_their_components(rng):
    X = rng.standard_normal((80, 3)) @ np.diag([3.0, 1.0, 0.5])
    linear = kc.KernelPCA(3, kc.Polynomial(1)).fit(X)
    assert_allclose(linear.inverse_transform(linear.transform(X)), X, atol=1e-5)
    angle = np.linspace(0, 6, 120)
    ring = np.c_[np.cos(angle), np.sin(angle)]
    pca = kc.KernelPCA(4, kc.Gaussian(1.0)).fit(ring)
    noisy = ring + 0.1 * rng.standard_normal(ring.shape)
    back = pca.inverse_transform(pca.transform(noisy))
    # what is left out is noise: points come back nearer to the ring
    assert (
        np.abs(np.linalg.norm(back, axis=1) - 1).mean()
        < 0.6 * np.abs(np.linalg.norm(noisy, axis=1) - 1).mean()
    )
    single = kc.KernelPCA(4, kc.Gaussian(1.0)).fit(ring.astype(np.float32))
    assert single.inverse_transform(single.transform(ring)).dtype == np.float32
    images = rng.random((20, 4, 4, 1))
    pca = kc.KernelPCA(19, IMAGES).fit(images)
    again = pca.inverse_transform(pca.transform(images))
    assert again.shape == images.shape
    assert np.abs(again - images).mean() < 0.3 * np.abs(images - images.mean(0)).mean()
