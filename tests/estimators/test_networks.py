"""Random features, linearised networks and trained ones as estimators, on the same data."""

import pickle

import conventions
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import kernelcore as kc
from kernelcore.estimators import _network
from kernelcore.features import (
    FourierFeatures,
    FrozenFeatures,
    NetworkFeatures,
    PatchFeatures,
    SampledFeatures,
    TangentFeatures,
)

IMAGES = kc.Sequential(
    kc.Conv(3, w_std=2**0.5, b_std=0.1), kc.Relu(), kc.AvgPool(2), kc.GlobalAvgPool(), kc.Dense()
)
MODELS = [
    kc.RandomFeatureRegressor(SampledFeatures(n_features=40, kind="ntk", width=30)),
    kc.RandomFeatureClassifier(
        NetworkFeatures(n_features=15, b_std=0.3), targets="simplex", probabilities="calibrated"
    ),
    kc.TangentRegressor(width=30, ridge=0.1),
    kc.TangentClassifier(width=50),
    kc.NetworkRegressor(width=20, steps=40),
    kc.NetworkClassifier(width=20, steps=30, loss="logistic", validation_fraction=0.1),
]


def named(model):
    return f"{MODELS.index(model)}-{type(model).__name__}"


@pytest.fixture(scope="module")
def wave():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 3))
    return X, np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], 1), rng.standard_normal((20, 3))


@pytest.fixture(scope="module")
def pictures():
    X, y = kc.data.digits()
    return X.reshape(-1, 8, 8, 1) / 16, y


@pytest.mark.parametrize("model", MODELS, ids=named)
def test_the_checks_of_scikit_learn(model):
    conventions.check(model)


# ---- random features


@pytest.mark.parametrize("n_features", [20, 200])
def test_random_features_are_a_ridge_on_them(wave, n_features):
    X, Y, new = wave
    features = NetworkFeatures(n_features=n_features, b_std=0.2, seed=5)
    for y in (Y, Y[:, 0]):
        model = kc.RandomFeatureRegressor(features, ridge=0.3).fit(X, y)
        Z, Z_new = model.features_.transform(X), model.features_.transform(new)
        want = Ridge(0.3, fit_intercept=False).fit(Z, y).predict(Z_new)
        # A condition below 1e3
        assert_allclose(model.predict(new), want, atol=1e-10)
        assert_allclose(model.rkhs_norm_, np.linalg.norm(model.coef_, axis=0), rtol=1e-12)
    assert not hasattr(features, "n_features_in_")  # a copy was fitted
    single = kc.RandomFeatureRegressor(features, ridge=0.3).fit(X.astype(np.float32), y)
    got = single.predict(new.astype(np.float32))
    assert got.dtype == np.float32
    assert_allclose(got, want, atol=1e-4)


@pytest.mark.parametrize("n_features", [20, 200])
def test_random_features_are_kernel_ridge_with_their_kernel(wave, n_features):
    """Codes, leave-one-out scores, probabilities and weights are those of a precomputed kernel."""
    X, Y, new = wave
    labels, weights = (Y[:, 1] > 0) + (Y[:, 1] > 0.5), np.arange(60) % 3 / 2.0
    features = NetworkFeatures(n_features=n_features, b_std=0.2, seed=5).fit(X)
    K, across = features.gram(X), features.gram(new, X)
    options = {"ridge": 0.1, "targets": "simplex", "probabilities": "calibrated"}
    model = kc.RandomFeatureClassifier(features, **options).fit(X, labels, weights)
    want = kc.KernelClassifier("precomputed", **options).fit(K, labels, weights)
    # The search for offsets ends where slopes are below 1e-12, in a bowl of curvature 1e-3.
    assert_allclose(model.predict_proba(new), want.predict_proba(across), atol=1e-6)
    assert_array_equal(model.predict(new), want.predict(across))
    assert_allclose(model.decision_function(new), want.decision_function(across), atol=1e-6)


def test_the_ridge_is_chosen_by_leaving_one_out(wave):
    X, Y, _ = wave
    for n_features in (20, 200):
        features = NetworkFeatures(n_features=n_features, b_std=0.2, seed=5).fit(X)
        model = kc.RandomFeatureRegressor(features).fit(X, Y)
        path = kc.solvers.RidgePath(features.gram(X), Y)
        error = path.loo_error(model.ridge_)
        assert error <= 1.001 * path.loo_error(path.best("loo"))  # a grid of four per decade


def test_seeds_of_features(wave):
    X, Y, new = wave
    one, other = (kc.RandomFeatureRegressor(random_state=0).fit(X, Y).predict(new) for _ in "ab")
    assert_array_equal(one, other)
    assert not np.array_equal(kc.RandomFeatureRegressor(random_state=1).fit(X, Y).predict(new), one)
    fixed = [
        kc.RandomFeatureRegressor(FourierFeatures(seed=3), random_state=k).fit(X, Y).predict(new)
        for k in (0, 1)
    ]
    assert_array_equal(*fixed)
    search = GridSearchCV(
        kc.RandomFeatureRegressor(FourierFeatures(seed=0)), {"features__n_features": [10, 100]}
    )
    assert search.fit(X, Y).best_params_ == {"features__n_features": 100}


def test_random_features_of_images(pictures):
    images, labels = pictures
    for features in (
        SampledFeatures(IMAGES, 150, seed=0), PatchFeatures(30, 4, seed=0, activation="threshold"),
    ):  # fmt: skip
        model = kc.RandomFeatureClassifier(features).fit(images[:300], labels[:300])
        assert model.n_features_in_ == 64
        # Chance is 0.1, and a share of 600 has a standard deviation of at most 0.02.
        assert model.score(images[300:900], labels[300:900]) > 0.75
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(images[:9]), model.predict(images[:9]))


def test_frozen_features_of_a_trained_network_are_better_than_random_ones():
    """Two directions in 20: the hidden layer has found them in one gradient step."""
    rng = np.random.default_rng(0)
    X, new = rng.standard_normal((1500, 20)), rng.standard_normal((500, 20))
    trained = kc.OneStepRegressor(100, random_state=0).fit(X, X[:, 0] * X[:, 1]).network_
    net = kc.Sequential(kc.Dense(1.0, b_std=1.0), kc.Relu(), kc.Dense())
    errors = {}
    for name, network in (("random", net.sample(100, 0, shape=20)), ("trained", trained)):
        model = kc.RandomFeatureRegressor(FrozenFeatures(network)).fit(X, X[:, 0] * X[:, 1])
        errors[name] = np.mean((model.predict(new) - new[:, 0] * new[:, 1]) ** 2)
    assert errors["trained"] < 0.5 * errors["random"]


# ---- linearised networks


@pytest.mark.parametrize("layers", [None, 0, [-1]])
def test_tangents_are_a_ridge_on_gradients(wave, layers):
    X, Y, new = wave
    net = kc.presets.mlp(2, b_std=0.2)
    model = kc.TangentRegressor(net, 15, layers, ridge=0.2, random_state=3).fit(X, Y)
    f = model.network_
    J, J_new = f.jacobian(X), f.jacobian(new)
    want = Ridge(0.2, fit_intercept=False).fit(J, Y).coef_.T
    assert_allclose(model.coef_, want, atol=1e-9)
    assert_allclose(model.predict(new), J_new @ want, atol=1e-9)
    one = kc.TangentRegressor(net, 15, layers, ridge=0.2, random_state=3).fit(X, Y[:, 0])
    assert_allclose(one.coef_, want[:, 0], atol=1e-9)
    # the same as the linearised network moved by coef_, but for its output at the start
    linear = f.linearize().at(f.theta + one.coef_)
    assert_allclose(linear(new) - f(new), one.predict(new), atol=1e-9)
    given = kc.TangentRegressor(f, ridge=0.2).fit(X, Y)
    assert_allclose(given.predict(new), model.predict(new), atol=1e-12)
    assert clone(model).get_params().keys() == model.get_params().keys()


def test_tangents_of_two_layers_are_tangent_features(wave):
    """The same network as ``TangentFeatures`` with its weights and a normal readout."""
    X, Y, new = wave
    model = kc.TangentRegressor(width=40, ridge=0.1, random_state=0).fit(X, Y)
    features = TangentFeatures(40, b_std=0.1, readout="normal", seed=0).fit(X)
    (w, b), (a, _) = model.network_.weights
    features.weights_ = w.T / 3**0.5
    features.biases_, features.readout_ = 0.1 * b, a[:, 0]
    want = kc.features.ridge_features(features, X, Y, 0.1).predict(new)
    assert_allclose(model.predict(new), want, atol=1e-9)


def test_tangents_of_images(pictures):
    images, labels = pictures
    model = kc.TangentClassifier(IMAGES, 20, random_state=0).fit(images[:150], labels[:150])
    assert model.score(images[300:700], labels[300:700]) > 0.55  # chance is 0.1
    assert model.predict_proba(images[:5]).shape == (5, 10)
    assert model.kernel_ == model.network_.ntk


def test_tangents_by_centres(wave):
    X, Y, _ = wave
    model = kc.TangentRegressor(width=20, ridge=0.1, solver="nystrom", random_state=0).fit(X, Y)
    exact = kc.TangentRegressor(width=20, ridge=0.1, random_state=0).fit(X, Y)
    assert_allclose(model.predict(X), exact.predict(X), atol=1e-3)  # all points are centres


# ---- trained networks


def test_training_is_that_of_networks(wave):
    X, Y, new = wave
    options = {"steps": 30, "momentum": 0.5, "decay": 1e-3}
    net = kc.presets.mlp(2, b_std=0.1)
    model = kc.NetworkRegressor(net, 12, random_state=4, doubled=True, **options).fit(X, Y)
    x, y = (X - X.mean(0)) / X.std(0), (Y - Y.mean(0)) / Y.std(0)
    seed = int(np.random.RandomState(4).randint(2**31 - 1, size=2)[0])
    f = net.sample(12, seed, outputs=2, doubled=True)
    result = kc.networks.train(f, x, y, **options)
    assert_allclose(model.network_.theta, result.network.theta, rtol=1e-12)
    assert (model.step_, model.n_iter_) == (result.step, 30)
    want = result.network((new - X.mean(0)) / X.std(0)) * Y.std(0) + Y.mean(0)
    assert_allclose(model.predict(new), want, rtol=1e-10, atol=1e-12)
    plain = kc.NetworkRegressor(net, 12, standardize=False, random_state=4, **options).fit(X, Y)
    assert_allclose(plain.predict(new), plain.network_(new), rtol=1e-12)


def test_inputs_and_targets_of_any_scale(wave):
    X, Y, new = wave
    one = kc.NetworkRegressor(width=20, steps=50, random_state=0).fit(X, Y[:, 0])
    other = kc.NetworkRegressor(width=20, steps=50, random_state=0)
    other.fit(1e6 * X + 1e5, 1e-8 * Y[:, 0] + 3)
    # Rounding of 1e6 in inputs, of 3/1e-8 in targets, and 50 steps that amplify neither.
    assert_allclose((other.predict(1e6 * new + 1e5) - 3) / 1e-8, one.predict(new), atol=1e-6)


def test_steps_that_diverge_are_halved(wave):
    X, Y, _ = wave
    options = {"width": 20, "steps": 60, "momentum": 0.0, "random_state": 0}
    model = kc.NetworkRegressor(step=100.0, **options).fit(X, Y[:, 0])
    largest = kc.NetworkRegressor(**options).fit(X, Y[:, 0]).step_ * 2
    assert model.step_ < 100.0
    assert np.log2(100.0 / model.step_) == round(np.log2(100.0 / model.step_))
    assert model.step_ < 10 * largest
    assert model.training_.losses[-1] < model.training_.losses[0]


def test_points_that_are_held_out_end_training(wave):
    X = wave[0]
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(60)  # there is nothing to learn
    model = kc.NetworkRegressor(
        width=100, steps=2000, validation_fraction=0.25, patience=20, random_state=0
    ).fit(X, noise)
    assert model.training_.stopped == "patience"
    assert model.n_iter_ < 2000
    assert model.training_.validation.min() < model.training_.validation[-1]


def test_some_layers_alone_are_trained(wave):
    X, Y, _ = wave
    model = kc.NetworkRegressor(width=20, steps=10, layers=-1, random_state=0).fit(X, Y[:, 0])
    assert model.network_.theta.size == 21  # with a bias
    start = kc.NetworkRegressor(width=20, steps=0, random_state=0).fit(X, Y[:, 0]).network_
    for k in (0, 1):
        assert_array_equal(model.network_.weights[k].w, start.weights[k].w)
    assert not np.array_equal(model.network_.weights[2].w, start.weights[2].w)
    # a network that was trained elsewhere goes on
    further = kc.NetworkRegressor(start, steps=10, layers=-1).fit(X, Y[:, 0])
    assert_allclose(further.network_.theta, model.network_.theta, rtol=1e-12)


@pytest.mark.parametrize("loss", ["softmax", "logistic", "square", "hinge", "squared_hinge"])
def test_losses_of_classes(pictures, loss):
    images, labels = pictures
    X, names = images.reshape(-1, 64), np.array(list("abcdefghij"))[labels]
    model = kc.NetworkClassifier(width=40, steps=60, loss=loss, random_state=0)
    model.fit(X[:300], names[:300])
    assert model.score(X[:300], names[:300]) > 0.97
    # Other writers: chance is 0.1, and a share of 800 has a standard deviation of 0.016.
    assert model.score(X[300:1100], names[300:1100]) > 0.65
    scores = model.decision_function(X[300:320])
    assert scores.shape == (20, 10)
    assert_array_equal(model.classes_[scores.argmax(1)], model.predict(X[300:320]))
    assert hasattr(model, "predict_proba") == (loss in ("softmax", "logistic"))
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(X[300:320])
        assert_allclose(p.sum(1), 1.0, rtol=1e-12)
        assert_array_equal(p.argmax(1), scores.argmax(1))
        e = np.exp(scores) if loss == "softmax" else 1 / (1 + np.exp(-scores))
        assert_allclose(p, e / e.sum(1, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize("loss", ["softmax", "logistic", "hinge"])
def test_losses_of_two_classes(wave, loss):
    X, Y, new = wave
    model = kc.NetworkClassifier(width=20, steps=50, loss=loss, random_state=0).fit(X, Y[:, 0] > 0)
    f = model.network_((new - X.mean(0)) / X.std(0))
    f = f[:, 1] - f[:, 0] if loss == "softmax" else f
    assert_allclose(model.decision_function(new), f, rtol=1e-10, atol=1e-12)
    assert_array_equal(model.predict(new), f > 0)
    if loss != "hinge":
        want = 1 / (1 + np.exp(-f))
        assert_allclose(model.predict_proba(new), np.stack([1 - want, want], 1), atol=1e-12)


def test_trained_networks_of_images(pictures):
    images, labels = pictures
    X, shifted = images[:150].astype(np.float32), 3 * images[300:700].astype(np.float32) + 1
    net = kc.Sequential(*IMAGES.layers[:3], kc.Flatten(), kc.Dense())
    model = kc.NetworkClassifier(net, 10, steps=80, random_state=0).fit(3 * X + 1, labels[:150])
    assert model.mean_.shape == (1,)  # one for each channel
    assert model.network_.dtype == np.float32
    assert model.score(shifted, labels[300:700]) > 0.6  # chance is 0.1
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(shifted[:9]), model.predict(shifted[:9]))


def test_constant_columns_count_as_they_are():
    values = np.array([[1.0, 5.0, 1e9], [2.0, 5.0, 1e9 * (1 + 1e-16)]])
    mean, scale = _network._spread(values, (0,))
    assert_allclose(mean, [1.5, 5.0, 1e9])
    assert_allclose(scale, [0.5, 1.0, 1.0])


def test_one_task_three_ways(wave):
    """All three learn a smooth function of three variables, on the same data."""
    rng = np.random.default_rng(2)
    X, new = rng.standard_normal((300, 3)), rng.standard_normal((300, 3))
    for model in (
        kc.RandomFeatureRegressor(random_state=0),
        kc.TangentRegressor(width=200, random_state=0),
        kc.NetworkRegressor(width=50, steps=300, random_state=0),
    ):
        model.fit(X, np.sin(X[:, 0]) * X[:, 1])
        assert model.score(new, np.sin(new[:, 0]) * new[:, 1]) > 0.9
