"""Weights of samples and of classes: a weight is a number of copies, in every solver and choice."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import kernelcore as kc
from kernelcore.solvers import RidgePath

KERNEL = kc.presets.mlp(1, b_std=0.3).ntk


@pytest.fixture
def data(rng):
    """Points with whole weights, zero among them; and the same as copies."""
    X = rng.standard_normal((40, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(40)
    weight = rng.integers(0, 4, 40)
    return X, y, weight, np.repeat(np.arange(40), weight)


EACH = [
    (solver, ridge)
    for solver in ("auto", "cholesky", "eigen", "cg", "eigenpro", "nystrom")
    for ridge in (0.2, "loo", "gcv", "likelihood")
    if solver != "eigenpro" or ridge == 0.2  # where others choose a tiny one it takes long
]


@pytest.mark.parametrize(("solver", "ridge"), EACH)
def test_weights_are_copies(data, solver, ridge, rng):
    X, y, weight, often = data
    more = {"tol": 1e-11, "max_iter": 20000} if solver in ("cg", "eigenpro", "nystrom") else {}
    model = kc.KernelRegressor(KERNEL, ridge, solver, centres=X[:30], random_state=0, **more)
    direct = "auto" if solver != "nystrom" else solver
    want = clone(model).set_params(solver=direct).fit(X[often], y[often])
    model.fit(X, y, sample_weight=weight)
    assert model.ridge_ == pytest.approx(want.ridge_, rel=1e-6)
    Z = rng.standard_normal((20, 2))
    assert_allclose(model.predict(Z), want.predict(Z), atol=1e-6)
    assert_allclose(model.rkhs_norm_, want.rkhs_norm_, rtol=1e-6)
    if solver != "nystrom":
        assert (model.alpha_[weight == 0] == 0).all()
        assert model.X_fit_.shape == X.shape


def test_criteria_with_weights_are_those_of_copies(data):
    X, y, weight, often = data
    there = weight > 0
    path = RidgePath(KERNEL(X[there]), y[there], sample_weight=weight[there])
    copies = RidgePath(KERNEL(X[often]), y[often])
    for ridge in (0.01, 0.3, 10.0):
        assert path.loo_error(ridge) == pytest.approx(copies.loo_error(ridge), rel=1e-8)
        assert path.gcv(ridge) == pytest.approx(copies.gcv(ridge), rel=1e-8)
        for a, b in zip(
            path.log_marginal_likelihood(ridge, True),
            copies.log_marginal_likelihood(ridge, True),
            strict=True,
        ):
            assert a == pytest.approx(b, rel=1e-8)
        assert path.degrees_of_freedom(ridge) == pytest.approx(
            copies.degrees_of_freedom(ridge), rel=1e-8
        )
        which = np.repeat(np.arange(there.sum()), weight[there])
        assert_allclose(path.fitted(ridge)[which], copies.fitted(ridge), rtol=1e-8, atol=1e-10)
        assert_allclose(path.loo(ridge)[which], copies.loo(ridge), rtol=1e-7, atol=1e-10)


def test_a_point_of_small_weight_is_left_out_whole(data):
    """By brute force: the fit without point i, whatever it weighs."""
    X, y = data[:2]
    weight = np.linspace(0.1, 1, 40)
    K, ridge = KERNEL(X), 0.3
    path = RidgePath(K, y, sample_weight=weight)
    for i in (0, 17, 39):
        rest = np.arange(40) != i
        A = K[np.ix_(rest, rest)] + ridge * np.diag(1 / weight[rest])
        want = y[i] - K[i, rest] @ np.linalg.solve(A, y[rest])
        assert path.loo(ridge)[i] == pytest.approx(want, rel=1e-9)
    want = scipy.stats.multivariate_normal(cov=K + ridge * np.diag(1 / weight)).logpdf(y)
    assert path.log_marginal_likelihood(ridge) == pytest.approx(want, rel=1e-9)
    # importance without copies: a heavy point, too, is left out whole
    heavy = RidgePath(K, y, sample_weight=5 * weight, copies=np.ones(40))
    rest = np.arange(40) != 39
    A = K[np.ix_(rest, rest)] + ridge * np.diag(0.2 / weight[rest])
    want = y[39] - K[39, rest] @ np.linalg.solve(A, y[rest])
    assert heavy.loo(ridge)[39] == pytest.approx(want, rel=1e-9)
    want = scipy.stats.multivariate_normal(cov=K + ridge * np.diag(0.2 / weight)).logpdf(y)
    assert heavy.log_marginal_likelihood(ridge) == pytest.approx(want, rel=1e-9)


def test_weights_scale_with_the_ridge(data, rng):
    """Weights of c all over are a ridge of ridge/c."""
    X, y = data[:2]
    Z = rng.standard_normal((9, 2))
    for solver in ("cholesky", "eigen"):
        model = kc.KernelRegressor(KERNEL, 0.6, solver).fit(X, y, np.full(40, 3.0))
        want = kc.KernelRegressor(KERNEL, 0.2, solver).fit(X, y)
        assert_allclose(model.predict(Z), want.predict(Z), rtol=1e-9)
        assert_allclose(model.fit(X, y, 3.0).predict(Z), want.predict(Z), rtol=1e-9)


@pytest.mark.parametrize("probabilities", ["softmax", "calibrated"])
@pytest.mark.parametrize("targets", ["one_hot", "centred", "simplex"])
@pytest.mark.parametrize("solver", ["auto", "cg", "nystrom"])
def test_weights_of_a_classifier_are_copies(data, solver, targets, probabilities):
    X, y, weight, often = data
    labels = np.digitize(y, [-0.4, 0.4])
    more = {"tol": 1e-10, "max_iter": 20000} if solver != "auto" else {}
    model = kc.KernelClassifier(
        KERNEL, 0.2, targets, solver, probabilities, centres=X[:30], random_state=0, **more
    )
    want = clone(model).fit(X[often], labels[often])
    model.fit(X, labels, sample_weight=weight)
    assert_allclose(model.predict_proba(X), want.predict_proba(X), atol=1e-6)
    assert_allclose(model.decision_function(X), want.decision_function(X), atol=1e-6)


def test_weights_of_classes(data):
    X, y = data[:2]
    labels = np.where(y > 0.8, "rare", "common")
    weights = {"rare": 5.0, "common": 0.5}
    model = kc.KernelClassifier(KERNEL, 0.2, class_weight=weights).fit(X, labels)
    each = np.array([weights[label] for label in labels])
    want = kc.KernelClassifier(KERNEL, 0.2).fit(X, labels, each)
    assert_allclose(model.decision_function(X), want.decision_function(X), rtol=1e-9)
    plain = kc.KernelClassifier(KERNEL, 10.0).fit(X, labels)
    balanced = kc.KernelClassifier(KERNEL, 10.0, class_weight="balanced").fit(X, labels)
    assert (balanced.predict(X) == "rare").sum() > (plain.predict(X) == "rare").sum()
    count = np.bincount(labels == "rare")
    by_hand = {"common": 20 / count[0], "rare": 20 / count[1]}
    same = kc.KernelClassifier(KERNEL, 10.0, class_weight=by_hand).fit(X, labels)
    assert_allclose(same.predict_proba(X), balanced.predict_proba(X), rtol=1e-9)
    both = kc.KernelClassifier(KERNEL, 10.0, class_weight=by_hand).fit(X, labels, np.full(40, 2.0))
    half = kc.KernelClassifier(KERNEL, 5.0, class_weight=by_hand).fit(X, labels)
    assert_allclose(both.decision_function(X), half.decision_function(X), rtol=1e-9)


def test_weights_of_a_smoother_are_copies(data, rng):
    X, y, weight, often = data
    model = kc.KernelSmoother(kc.Gaussian(0.3)).fit(X, y, weight)
    want = kc.KernelSmoother(kc.Gaussian(0.3)).fit(X[often], y[often])
    Z = np.concatenate([rng.standard_normal((20, 2)), [[900.0, 0.0], [-900.0, 3.0]]])
    assert_allclose(model.predict(Z), want.predict(Z), rtol=1e-12)
    mean = kc.KernelSmoother(kc.Gaussian(0.3), empty="mean").fit(X, y, weight)
    assert mean.predict([[900.0, 0.0]])[0] == pytest.approx(y[often].mean())


def test_a_matrix_with_weights(data, rng):
    X, y, weight, _ = data
    Z = rng.standard_normal((9, 2))
    for solver in ("auto", "cg"):
        model = kc.KernelRegressor(KERNEL, 0.2, solver, random_state=0).fit(X, y, weight)
        matrix = kc.KernelRegressor("precomputed", 0.2, solver, random_state=0)
        matrix.fit(KERNEL(X), y, weight)
        assert_allclose(matrix.predict(KERNEL(Z, X)), model.predict(Z), atol=1e-5)


def test_a_variance_for_every_point(data, rng):
    """Against numpy, and against weights: noise/w_i is a weight of w_i."""
    X, y, _, _ = data
    noise = rng.random(40) + 0.05
    model = kc.GaussianProcess(KERNEL, noise_variance=noise).fit(X, y)
    assert_array_equal(model.noise_variance_, noise)
    Z = rng.standard_normal((9, 2))
    A = KERNEL(X) + np.diag(noise)
    k = KERNEL(Z, X)
    mean, cov = model.predict(Z, return_cov=True)
    assert_allclose(mean, k @ np.linalg.solve(A, y), rtol=1e-9, atol=1e-12)
    assert_allclose(cov, KERNEL(Z) - k @ np.linalg.solve(A, k.T), atol=1e-10)
    assert_allclose(model.predict(Z, return_std=True)[1] ** 2, cov.diagonal(), atol=1e-10)
    want = scipy.stats.multivariate_normal(cov=A).logpdf(y)
    assert model.log_marginal_likelihood() == pytest.approx(want, rel=1e-10)
    fit = kc.KernelRegressor(KERNEL, 1.0).fit(X, y, 1 / noise)
    assert_allclose(fit.predict(Z), mean, rtol=1e-7, atol=1e-9)
    assert model.rkhs_norm_ == pytest.approx(fit.rkhs_norm_, rel=1e-7)
    net = kc.presets.mlp(1, b_std=0.3)
    drawn = kc.GaussianProcess(net.ntk, noise, initial=net.nngp).fit(X, y)
    a = np.linalg.solve(A, k.T).T
    c = net.nngp(Z, X)
    spread = net.nngp(Z) - a @ c.T - c @ a.T + a @ (net.nngp(X) + np.diag(noise)) @ a.T
    assert_allclose(drawn.predict(Z, return_cov=True)[1], spread, atol=1e-10)
    # zero noise at copies makes the matrix singular: what it does not resolve is left out
    twice = kc.GaussianProcess(KERNEL, np.zeros(80)).fit(np.tile(X, (2, 1)), np.tile(y, 2))
    assert_allclose(twice.predict(X), y, atol=1e-6)
