"""What a model knows of the points of its fit is never wrong: they are its own, and unchanged."""

import copy
import pickle

import numpy as np
import pytest

import kernelcore as kc
from kernelcore.engine.cpu import dense

NETWORK = kc.presets.mlp(2, b_std=0.1)
CONVOLUTION = kc.Sequential(kc.Conv(2), kc.Relu(), kc.Flatten(), kc.Dense())
KERNELS = [NETWORK.ntk, kc.Gaussian(2.0), kc.Gaussian(2.0) + 0.5 * NETWORK.nngp, CONVOLUTION.ntk]


def data(kernel, dtype, n=30):
    shape = (n, 3, 3, 2) if kernel._images else (n, 7)
    X = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    return X, X.reshape(n, -1)[:, 0].copy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("options", [{}, {"solver": "nystrom", "centres": 9, "random_state": 0}])
def test_predictions_are_those_of_a_fresh_call_to_the_bit(kernel, dtype, options):
    X, y = data(kernel, dtype)
    model = kc.KernelRegressor(kernel, ridge=0.1, **options).fit(X, y)
    for points in (X[:1], X[3:9], X[:1]):
        fresh = kernel(points, np.array(model.X_fit_)) @ model.alpha_
        assert model.predict(points).tobytes() == fresh.tobytes()


def test_points_that_change_after_the_fit_change_no_prediction():
    X, y = data(NETWORK.ntk, "float64")
    centres = X[:8].copy()
    for options in ({}, {"solver": "nystrom", "centres": centres}):
        model = kc.KernelRegressor(NETWORK.ntk, ridge=0.1, **options).fit(X, y)
        new = X[:4].copy()
        expected = model.predict(new)
        before = X.copy(), centres.copy()
        X *= 2
        centres *= 2
        assert (model.predict(new) == expected).all()
        X[...], centres[...] = before


def test_points_that_are_put_in_place_are_seen():
    X, y = data(NETWORK.ntk, "float64")
    model = kc.KernelRegressor(NETWORK.ntk, ridge=0.1).fit(X, y)
    model.predict(X[:2])
    with pytest.raises(ValueError, match="read-only"):
        model.X_fit_[0] = 1
    other = 3 * X
    model.X_fit_ = other
    assert (model.predict(X[:2]) == NETWORK.ntk(X[:2], other) @ model.alpha_).all()
    other *= 2  # which is seen as well: it is not the model's own
    assert (model.predict(X[:2]) == NETWORK.ntk(X[:2], other) @ model.alpha_).all()
    model.kernel_ = NETWORK.nngp
    assert (model.predict(X[:2]) == NETWORK.nngp(X[:2], other) @ model.alpha_).all()


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_and_pickles_predict_the_same_and_hold_the_points_once(again):
    X, y = data(NETWORK.ntk, "float32")
    model = kc.KernelRegressor(NETWORK.ntk, ridge=0.1).fit(X, y)
    size = len(pickle.dumps(model))
    expected = model.predict(X[:3])
    assert len(pickle.dumps(model)) == size
    other = again(model)
    assert not other.X_fit_.flags.writeable
    assert (other.predict(X[:3]) == expected).all()


def test_norms_of_the_fit_are_computed_once(monkeypatch):
    X, y = data(NETWORK.ntk, "float32")
    model = kc.GaussianProcess(NETWORK.ntk, noise_variance=0.1).fit(X, y)
    model.predict(X[:1])
    norms, seen = dense.norms, []
    monkeypatch.setattr(dense, "norms", lambda a, *rest: seen.append(len(a)) or norms(a, *rest))
    model.predict(X[:1])
    model.predict(X[:2])
    assert seen == [1, 2]


def test_an_operator_sees_points_that_change():
    X, _ = data(NETWORK.ntk, "float64")
    K = kc.GramOperator(NETWORK.ntk, X)
    K.columns([0])
    X *= 2
    assert (K.columns([0, 4]) == NETWORK.ntk(X, X[[0, 4]])).all()
    assert (K.block([1], [2, 3]) == NETWORK.ntk(X[[1]], X[[2, 3]])).all()
