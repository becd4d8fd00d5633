"""What estimators give with default settings, on the digits: every dtype and solver, rows, images.

The claims are of agreement: float32 loses at most half a point of accuracy against float64, solvers
of one model have one prediction and one probability, and probabilities are as good as a temperature
that was fitted to the very points they are judged by, up to a tenth.
"""

import numpy as np
import pytest
import scipy.optimize
import scipy.special
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss

import kernelcore as kc
from kernelcore.estimators import _ridge

NTK = kc.presets.mlp(2, b_std=0.1).ntk
CNTK = kc.presets.cntk(4).ntk
SOLVERS = ["auto", "cholesky", "eigen", "cg", "eigenpro", "nystrom"]


@pytest.fixture(scope="module")
def digits():
    return kc.data.digits()


def split(digits, kind, n, dtype):
    X, y = digits
    X = (X if kind == "rows" else X.reshape(-1, 8, 8, 1)).astype(dtype)
    return X[:n], y[:n], X[n:], y[n:]


def best_temperature(scores, labels):
    """The least log loss that any temperature reaches on these points."""

    def loss(log):
        return log_loss(labels, scipy.special.softmax(scores / np.exp(log), 1))

    return scipy.optimize.minimize_scalar(loss, bounds=(-8, 4), method="bounded").fun


@pytest.mark.parametrize(
    "kernel", [NTK, pytest.param(CNTK, marks=pytest.mark.slow)], ids=["rows", "images"]
)
def test_classes_in_both_dtypes(digits, kernel):
    kind = "rows" if kernel is NTK else "images"
    found = {}
    for dtype in ("float32", "float64"):
        A, a, B, b = split(digits, kind, 500, dtype)
        found[dtype] = kc.KernelClassifier(kernel).fit(A, a).score(B[900:1200], b[900:1200])
    assert found["float64"] > 0.95
    assert found["float32"] >= found["float64"] - 0.005


@pytest.mark.slow
def test_regression_and_processes_in_both_dtypes(digits):
    for model in (kc.KernelRegressor(), kc.GaussianProcess(NTK)):
        found = {}
        for dtype in ("float32", "float64"):
            A, a, B, b = split(digits, "rows", 1500, dtype)
            found[dtype] = model.fit(A, a.astype(dtype)).score(B, b.astype(dtype))
        assert found["float64"] > 0.8
        assert found["float32"] == pytest.approx(found["float64"], abs=0.005)


@pytest.mark.parametrize("noise", [0.0, "likelihood"])
def test_a_process_without_noise_and_a_smooth_kernel(dtype, noise):
    """Most eigenvalues of this matrix are below rounding, in either precision."""
    x = np.linspace(-3, 3, 200)[:, None].astype(dtype)
    y = np.sin(2 * x[:, 0])
    z = np.linspace(-2.9, 2.9, 77)[:, None].astype(dtype)
    model = kc.GaussianProcess(kc.Gaussian(1.0), noise_variance=noise).fit(x, y)
    mean, std = model.predict(z, return_std=True)
    # an interpolant is off by sqrt(ridge) |f|; sqrt(eps) stands for the ridge that rounding is
    error = 30 * np.sqrt(np.finfo(dtype).eps)
    assert_allclose(mean, np.sin(2 * z[:, 0]), atol=error)
    assert (std <= 10 * error).all()


@pytest.fixture(scope="module")
def by_solver(digits):
    """A classifier by every solver, with one ridge and with defaults alone."""
    A, a, _, _ = split(digits, "rows", 600, "float64")
    return {
        (solver, ridge): kc.KernelClassifier(
            ridge=ridge, solver=solver, random_state=0, centres=A if ridge == 1.0 else None
        ).fit(A, a)
        for solver in SOLVERS
        for ridge in (1.0, "loo")
    }


@pytest.mark.parametrize("ridge", [1.0, "loo"])
def test_one_model_has_one_probability(digits, by_solver, ridge):
    _, _, B, b = split(digits, "rows", 600, "float64")
    want = by_solver["cholesky", ridge]
    for solver in SOLVERS:
        if (solver, ridge) == ("nystrom", "loo"):
            continue  # another model: of 245 centres
        model = by_solver[solver, ridge]
        assert model.ridge_ == pytest.approx(want.ridge_, rel=1e-9)
        assert model.temperature_ == pytest.approx(want.temperature_, rel=1e-3)
        # eigenpro stops at residuals of 1e-3
        assert_allclose(model.decision_function(B), want.decision_function(B), atol=2e-2)
        assert_allclose(model.predict_proba(B), want.predict_proba(B), atol=5e-2)
        assert log_loss(b, model.predict_proba(B)) == pytest.approx(
            log_loss(b, want.predict_proba(B)), rel=0.02
        )


@pytest.mark.parametrize("solver", SOLVERS)
def test_probabilities_are_as_good_as_a_fitted_temperature(digits, by_solver, solver):
    _, _, B, b = split(digits, "rows", 600, "float64")
    model = by_solver[solver, "loo"]
    got = log_loss(b, model.predict_proba(B))
    assert got <= 1.1 * best_temperature(model.decision_function(B), b)


@pytest.mark.parametrize("n", [100, 300])
def test_probabilities_from_few_points(digits, n):
    A, a, B, b = split(digits, "rows", n, "float64")
    for model in (kc.KernelClassifier(), kc.KernelClassifier(targets="simplex")):
        model.fit(A, a)
        got = log_loss(b, model.predict_proba(B))
        assert got <= 1.1 * best_temperature(model.decision_function(B), b)


@pytest.fixture(scope="module")
def regressor(digits):
    """One with defaults alone."""
    A, a, _, _ = split(digits, "rows", 600, "float64")
    return kc.KernelRegressor().fit(A, a)


@pytest.mark.parametrize("solver", SOLVERS)
def test_defaults_of_a_regressor_agree(digits, regressor, solver):
    A, a, B, b = split(digits, "rows", 600, "float64")
    want = regressor
    model = kc.KernelRegressor(solver=solver, random_state=0, centres=600).fit(A, a)
    assert model.ridge_ == pytest.approx(want.ridge_, rel=1e-9)
    assert model.score(B, b) == pytest.approx(want.score(B, b), abs=0.005)
    assert model.n_iter_ >= 1
    if solver in ("cg", "eigenpro", "nystrom"):
        assert len(model.history_) == model.n_iter_ + 1
    else:
        assert model.history_ is None


def test_a_ridge_is_chosen_on_some_of_many_points(rng, monkeypatch):
    assert _ridge.CHOSEN_ON == 2000  # as documented
    monkeypatch.setattr(_ridge, "CHOSEN_ON", 400)
    X = rng.standard_normal((500, 2))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(500)
    model = kc.KernelRegressor(kc.Gaussian(1.0), solver="nystrom", centres=100, random_state=0)
    model.fit(X, y)
    some = np.sort(np.random.RandomState(0).choice(500, 400, replace=False))
    want = kc.solvers.RidgePath(kc.Gaussian(1.0)(X[some]), y[some]).best("loo")
    assert model.ridge_ == pytest.approx(want, rel=1e-9)
