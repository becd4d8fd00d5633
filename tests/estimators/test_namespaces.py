"""Estimators of inputs on a device, where scikit-learn dispatches arrays: fits without NumPy."""

import elsewhere
import numpy as np
import pytest
import sklearn
from elsewhere import back, library, there  # noqa: F401  -- a fixture
from numpy.testing import assert_allclose, assert_array_equal

import kernelcore as kc

N, RIDGE = 40, 0.1
KERNEL = kc.Gaussian(1.0)


@pytest.fixture(autouse=True)
def dispatching(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # which scikit-learn asks for
    with elsewhere.attached(), sklearn.config_context(array_api_dispatch=True):
        yield


class Data:
    def __init__(self, rng, dtype):
        self.X = rng.standard_normal((N, 3)).astype(dtype)
        self.y = np.stack([np.sin(self.X[:, 0]), self.X[:, 1]], 1).astype(dtype)
        self.Z = self.X[:7] + dtype.type(0.1)
        self.K = KERNEL(self.X).astype(float)
        self.across = KERNEL(self.Z, self.X).astype(float)
        self.weights = np.linspace(0.0, 2.0, N)  # the first point counts as absent
        # A backward error of 4 N eps, times the condition, which is at most N/RIDGE; and on values
        # of the size of 1, of which N are summed.
        self.bound = 4 * N * float(np.finfo(dtype).eps) * N / RIDGE


@pytest.fixture
def data(rng, dtype):
    return Data(rng, dtype)


def fitted(d, weights=None):
    """Predictions by numpy.linalg."""
    if weights is None:
        return d.across @ np.linalg.solve(d.K + RIDGE * np.eye(N), d.y)
    some = weights > 0
    A = d.K[np.ix_(some, some)] + RIDGE * np.diag(1 / weights[some])
    return d.across[:, some] @ np.linalg.solve(A, d.y[some])


TOLERANCE = {"cg": 1e-4, "eigenpro": 1e-2, "nystrom": 1e-4}
"""How far predictions may be off: residuals of 1e-6, 1e-3 and 1e-6, over the ridge."""


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["auto", "cholesky", "eigen", "cg", "eigenpro", "nystrom"])
def test_regressor(data, dtype, solver, weighted):
    d = data
    tol = None if solver == "eigenpro" else 1e-6
    model = kc.KernelRegressor(
        KERNEL, RIDGE, solver, centres=N, tol=tol, max_iter=2000, random_state=0
    )
    model.fit(there(d.X), there(d.y), *([there(d.weights)] if weighted else []))
    found = back(model.predict(there(d.Z)))
    assert found.dtype == dtype
    want = fitted(d, d.weights if weighted else None)
    assert_allclose(found, want, atol=d.bound + TOLERANCE.get(solver, 0) * np.linalg.norm(d.y))
    assert back(model.alpha_).dtype == dtype
    if solver != "nystrom":
        assert_array_equal(back(model.X_fit_), d.X)
    norm = back(model.rkhs_norm_)
    if not weighted and solver not in TOLERANCE:
        alpha = np.linalg.solve(d.K + RIDGE * np.eye(N), d.y)
        assert_allclose(norm, np.sqrt((alpha * (d.K @ alpha)).sum(0)), atol=d.bound * N)


@pytest.mark.parametrize("solver", ["auto", "eigen", "cg"])
def test_a_matrix(data, solver):
    d = data
    dtype = d.X.dtype
    model = kc.KernelRegressor("precomputed", RIDGE, solver, tol=1e-6)
    model.fit(there(d.K.astype(dtype)), there(d.y[:, 0]))
    found = back(model.predict(there(d.across.astype(dtype))))
    atol = d.bound + TOLERANCE.get(solver, 0) * np.linalg.norm(d.y)
    assert_allclose(found, fitted(d)[:, 0], atol=atol)
    assert isinstance(model.rkhs_norm_, float)


@pytest.mark.parametrize("solver", ["auto", "cholesky", "cg", "nystrom"])
def test_the_ridge_is_chosen_as_on_the_host(data, solver):
    d = data
    y = d.y + np.random.default_rng(0).normal(0, 0.3, d.y.shape).astype(d.y.dtype)
    host, device = (
        kc.KernelRegressor(KERNEL, "loo", solver, centres=N, random_state=0).fit(*given)
        for given in ((d.X, y), (there(d.X), there(y)))
    )
    # The search ends within 1e-4 of the logarithm; in float32 the criterion is flat for 1e-2.
    near = 1e-3 if d.X.dtype == np.float64 else 3e-2
    assert_allclose(device.ridge_, host.ridge_, rtol=near)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("probabilities", ["softmax", "calibrated", None])
@pytest.mark.parametrize("targets", ["one_hot", "centred", "simplex"])
@pytest.mark.parametrize("solver", ["auto", "nystrom"])
def test_classifier(data, targets, probabilities, weighted, solver):
    d = data
    labels = 3 * ((d.X[:, 0] > 0) + 1 * (d.X[:, 1] > 0.5))
    model = kc.KernelClassifier(
        KERNEL, RIDGE, targets, solver, probabilities, centres=N // 2, random_state=0
    )
    weights = [d.weights] if weighted else []
    host = model.fit(d.X, labels, *weights)
    scores, classes = host.decision_function(d.Z), host.predict(d.Z)
    shares = None if probabilities is None else host.predict_proba(d.Z)
    model.fit(there(d.X), there(labels), *map(there, weights))
    atol = 4 * d.bound + 1e-3 * (solver == "nystrom")
    assert_allclose(back(model.decision_function(there(d.Z))), scores, atol=atol)
    clear = np.diff(np.sort(scores, 1)[:, -2:], axis=1)[:, 0] > 2 * atol
    assert clear.any()
    assert_array_equal(back(model.predict(there(d.Z)))[clear], classes[clear])
    assert_array_equal(back(model.classes_), [0, 3, 6])
    assert back(model.predict(there(d.Z))).dtype == labels.dtype
    if shares is not None:
        found = back(model.predict_proba(there(d.Z)))
        assert_allclose(found.sum(1), 1, rtol=1e-12)
        assert_allclose(found, shares, atol=10 * atol)


def test_few_points_are_held_out_where_none_is_left_out(data, monkeypatch):
    from kernelcore.estimators import _ridge

    monkeypatch.setattr(_ridge, "EXACT", 10)
    d = data
    labels = (d.X[:, 0] > 0).astype(float)
    model = kc.KernelClassifier(KERNEL, RIDGE, solver="cg", random_state=0, tol=1e-6)
    want = model.fit(d.X, labels, d.weights).predict_proba(d.Z)
    model.fit(there(d.X), there(labels), there(d.weights))
    assert_allclose(back(model.predict_proba(there(d.Z))), want, atol=10 * d.bound + 1e-3)
    assert back(model.decision_function(there(d.Z))).shape == (7,)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize(
    ("noise", "initial"),
    [
        *((noise, None) for noise in ("one", "each", "chosen", "none")),
        *((noise, kc.Laplacian(1.0)) for noise in ("one", "each")),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_process(data, dtype, noise, outputs, initial):
    d = data
    y = d.y if outputs == 2 else d.y[:, 0]
    variance = {"one": 0.1, "each": there(np.linspace(0.1, 0.3, N)), "none": 0.0}
    model = kc.GaussianProcess(KERNEL, variance.get(noise, "likelihood"), initial)
    before, spread = model.predict(there(d.Z), return_std=True)
    prior = KERNEL if initial is None else initial
    assert_array_equal(back(before), np.zeros(7))
    assert_allclose(back(spread), np.sqrt(prior.diag(d.Z)), rtol=1e-6)
    model.fit(there(d.X), there(y))
    found = model.noise_variance_
    at = back(found) if noise == "each" else np.full(N, found)
    if noise in ("none", "chosen"):  # what is not resolved counts as noise of that size
        at = np.maximum(at, np.sqrt(N) * float(np.finfo(dtype).eps) * N)
    A = np.linalg.solve(d.K + np.diag(at), d.across.T).T
    X, Z = d.X.astype(float), d.Z.astype(float)
    mixed, C = A @ prior(X, Z), prior(X) + np.diag(at)
    covariance = prior(Z) - mixed - mixed.T + A @ C @ A.T
    # Errors of the factor are magnified by the condition; without noise the pseudo-inverse knows
    # values to the root of what it leaves out.
    loose = noise in ("none", "chosen")
    atol = 20 * np.sqrt(float(np.finfo(dtype).eps)) * N if loose else 10 * d.bound
    mean, cov = model.predict(there(d.Z), return_cov=True)
    assert back(mean).dtype == dtype
    assert_allclose(back(mean), A @ y, atol=atol)
    each = back(cov) if outputs == 1 else back(cov)[..., 1]
    assert_allclose(each, covariance, atol=atol)
    std = back(model.predict(there(d.Z), return_std=True)[1])
    std = std if outputs == 1 else std[:, 1]
    assert_allclose(std**2, np.maximum(np.diag(each), 0), atol=atol)
    draws = back(model.sample_y(there(d.Z), 4, random_state=1))
    assert draws.shape == (7, *y.shape[1:], 4)
    assert np.abs(draws - back(mean)[..., None]).max() <= 6 * np.sqrt(
        max(np.linalg.eigvalsh(covariance)[-1], 0) + atol
    ) * np.sqrt(7)
    if not loose:
        sign, log = np.linalg.slogdet(d.K + np.diag(at))
        wide = d.y[:, :outputs].astype(float)
        fit = (wide * np.linalg.solve(d.K + np.diag(at), wide)).sum()
        want = -(fit + outputs * (log + N * np.log(2 * np.pi))) / 2
        assert sign == 1
        assert_allclose(model.log_marginal_likelihood(), want, atol=d.bound * N)
    if noise == "one":
        found = back(model.log_marginal_likelihood([0.1, 0.2]))
        assert_allclose(found[0], model.log_marginal_likelihood(), atol=d.bound * N)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("empty", ["nearest", "mean"])
def test_smoother(data, dtype, empty, weighted):
    d = data
    kernel = kc.Gaussian(0.3)
    Z = np.concatenate([d.Z, d.X[3:5] + dtype.type(100)])  # the last are far from all points
    w = d.weights if weighted else np.ones(N)
    model = kc.KernelSmoother(kernel, empty)
    model.fit(there(d.X), there(d.y), *([there(w)] if weighted else []))
    K = kernel(d.Z.astype(float), d.X.astype(float)) * w
    near = (K @ d.y) / K.sum(1)[:, None]
    far = np.average(d.y, axis=0, weights=w)
    eps = float(np.finfo(dtype).eps)
    found = back(model.predict(there(Z)))
    # Distances of the size of 10 in units of 0.3 are rounded by 10 eps/0.09 in the exponent.
    assert_allclose(found[:7], near, atol=2000 * eps)
    if empty == "mean":
        assert_allclose(found[7:], np.stack([far, far]), atol=N * eps)
    else:
        some = np.flatnonzero(w > 0)
        off = np.square(d.X[some][None] - Z[7:, None].astype(float)).sum(-1)
        assert_array_equal(found[7:], d.y[some][off.argmin(1)])


EMBEDDINGS = {
    "KernelPCA": kc.KernelPCA(2, KERNEL),
    "laplacian": kc.SpectralEmbedding(2, KERNEL, alpha=0.5),
    "diffusion": kc.SpectralEmbedding(2, KERNEL, "diffusion", t=2.0),
}


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings(data, dtype, name):
    """Coordinates of the host: eigenvectors turn by errors over gaps, of more than 1/30 here."""
    d, model = data, EMBEDDINGS[name]
    want, values = model.fit_transform(d.X), model.eigenvalues_
    more = model.transform(d.Z)
    assert np.abs(np.diff(values)).min() > values.max() / 30
    found = model.fit_transform(there(d.X))
    near = {"atol": 30 * 4 * N * float(np.finfo(dtype).eps) * max(1.0, np.abs(want).max())}
    assert back(found).dtype == dtype
    assert_allclose(back(found), want, **near)
    assert_allclose(back(model.transform(there(d.Z))), more, **near)
    assert_allclose(back(model.eigenvalues_), values, rtol=near["atol"])
    if name == "KernelPCA":
        assert_allclose(back(model.transform(there(d.X))), want, **near)
        again = back(model.inverse_transform(found))
        assert again.shape == d.X.shape
        assert again.dtype == dtype
        # By a ridge that leave-one-out chooses, to 3 % at worst; inputs have size 1.
        assert_allclose(again, model.fit(d.X).inverse_transform(want), atol=0.05)


def test_components_of_a_matrix_are_those_that_are_resolved(rng):
    Z = rng.standard_normal((9, 3))
    K = Z @ Z.T
    model = kc.KernelPCA(kernel="precomputed").fit(there(K))
    assert back(model.eigenvalues_).shape == (3,)
    centred = Z - Z.mean(0)
    again = back(model.fit_transform(there(K)))
    assert_allclose(again @ again.T, centred @ centred.T, atol=1e-13)
    assert_allclose(back(model.explained_variance_ratio_).sum(), 1)


def test_arrays_of_the_host_become_numpy_arrays(data):
    import array_api_strict

    d = data
    host = array_api_strict.asarray
    model = kc.KernelRegressor(KERNEL, RIDGE).fit(host(d.X), host(d.y))
    assert isinstance(model.alpha_, np.ndarray)
    assert_allclose(model.predict(host(d.Z)), fitted(d), atol=d.bound)
    assert_array_equal(kc.GaussianProcess(KERNEL).predict(host(d.Z)), np.zeros(7))
    pca = kc.KernelPCA(2, KERNEL)
    assert_array_equal(pca.fit(host(d.X)).transform(host(d.Z)), pca.fit(d.X).transform(d.Z))


def test_images(rng):
    X, y = rng.standard_normal((6, 4, 4, 2)), rng.standard_normal(6)
    kernel = kc.presets.cntk(2).ntk
    model = kc.KernelRegressor(kernel, 0.5).fit(there(X), there(y))
    want = kernel(X[:2] + 1, X) @ np.linalg.solve(kernel(X) + 0.5 * np.eye(6), y)
    assert_allclose(back(model.predict(there(X[:2] + 1))), want, rtol=1e-10)
