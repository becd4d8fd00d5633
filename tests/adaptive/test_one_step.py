"""Learning with one gradient step: the algorithm, line by line, and what it finds."""

import numpy as np
import pytest
from sklearn.base import clone

import kernelcore as kc
from kernelcore.adaptive import OneStepRegressor

D = 30


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, D))
    return X, X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 1.0


@pytest.fixture(scope="module")
def model(sample):
    return OneStepRegressor(200, random_state=0).fit(*sample)


def test_the_step_is_that_of_the_algorithm(sample, model):
    X, y = sample
    left = y - y.mean() - X @ (X.T @ y / len(X))
    rng = np.random.RandomState(0)
    a, W = rng.choice([-1.0, 1.0], 100), rng.standard_normal((100, D)) / np.sqrt(D)
    a, W = np.concatenate([a, -a]), np.concatenate([W, W])
    # The output is zero at the start, so that the loss is the mean of (0 - y)^2.
    loss = [-2 * a[j] * (left * (X @ W[j] > 0)) @ X / len(X) for j in range(200)]
    np.testing.assert_allclose(model.gradient_, loss, atol=1e-12)
    np.testing.assert_allclose(model.weights_, -model.step_ * np.array(loss), atol=1e-12)
    assert np.median(np.linalg.norm(model.weights_, axis=1)) == pytest.approx(1.0)
    np.testing.assert_array_equal(model.biases_, rng.standard_normal(200))


def test_the_head_is_a_ridge_chosen_by_leaving_one_out(sample):
    X, y = sample[0][:60], sample[1][:60]
    small = OneStepRegressor(20, random_state=0).fit(X, y)
    Phi = np.maximum(X @ small.weights_.T + small.biases_, 0)
    left = y - small.mean_ - X @ small.linear_
    A = Phi.T @ Phi + small.ridge_ * np.eye(20)
    np.testing.assert_allclose(small.coef_, np.linalg.solve(A, Phi.T @ left), atol=1e-8)
    off = []
    for i in range(60):
        rest = np.arange(60) != i
        fit = np.linalg.solve(
            Phi[rest].T @ Phi[rest] + small.ridge_ * np.eye(20), Phi[rest].T @ left[rest]
        )
        off.append(left[i] - Phi[i] @ fit)
    assert small.loo_ == pytest.approx(np.mean(np.square(off)), rel=1e-6)
    for times in (0.1, 10.0):
        other = OneStepRegressor(20, ridge=times * small.ridge_, random_state=0).fit(X, y)
        assert other.loo_ > small.loo_
    np.testing.assert_allclose(
        small.predict(X), small.mean_ + X @ small.linear_ + Phi @ small.coef_, atol=1e-10
    )


def test_lemma_1():
    """For a quadratic target the series has two terms: ``Hw - w (w'Hw)/2``, over sqrt(2 pi)."""
    n, rng = 50_000, np.random.default_rng(3)
    X = rng.standard_normal((n, D))
    found = OneStepRegressor(10, random_state=0).fit(X, X[:, 0] * X[:, 1])
    H = np.zeros((D, D))
    H[0, 1] = H[1, 0] = 1.0
    draws = np.random.RandomState(0)
    a, w = draws.choice([-1.0, 1.0], 5), draws.standard_normal((5, D))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    mean = w @ H - w * np.einsum("ij,jk,ik->i", w, H, w)[:, None] / 2
    # An entry is twice a mean of n numbers y x 1 with E[(y x)^2] at most 9, for x_0 y.
    np.testing.assert_allclose(
        found.gradient_[:5], -2 * a[:, None] * mean / np.sqrt(2 * np.pi), rtol=0,
        atol=2 * 5 * 3 / np.sqrt(2 * n),
    )  # fmt: skip
    off = np.linalg.norm(found.gradient_ - found.expected_gradient_)
    assert off < 0.4 * np.linalg.norm(found.gradient_)


def test_the_subspace_is_found(model):
    assert set(np.abs(model.subspace(2)).argmax(0)) == {0, 1}
    least = np.linalg.svd(model.subspace(2)[:2], compute_uv=False).min()
    assert np.degrees(np.arccos(least)) < 25  # n = 2.2 d^2 r; noise of this size is expected
    H = np.linalg.eigh(model.hessian_)[1]
    assert np.linalg.svd(H[:2, [0, -1]], compute_uv=False).min() > 0.9


def test_it_learns_what_a_kernel_does_not(sample):
    rng = np.random.default_rng(1)
    X, train = rng.standard_normal((1000, D)), sample[0][:2000]
    y, target = (kc.Hermite(2)(x[:, 0]) + kc.Hermite(3)(x[:, 0]) for x in (X, train))
    kernel = kc.KernelRegressor(kc.presets.mlp(1).ntk).fit(train, target)  # d^3 is 27,000
    ours = OneStepRegressor(200, random_state=0).fit(train, target)
    assert np.mean((ours.predict(X) - y) ** 2) < 0.5 * np.mean((kernel.predict(X) - y) ** 2)
    cubic = OneStepRegressor(200, random_state=0).fit(*_hermite(rng))
    X, y = _hermite(np.random.default_rng(2))
    assert np.mean((cubic.predict(X) - y) ** 2) > 0.8 * y.var()  # its H is zero


def _hermite(rng):
    X = rng.standard_normal((2000, D))
    return X, kc.Hermite(3)(X[:, 0])


def test_the_network_after_the_step_has_kernels(sample, model):
    X = sample[0][:5]
    f = model.network_
    np.testing.assert_allclose(
        f(X), np.maximum(X @ model.weights_.T + model.biases_, 0) @ model.coef_, atol=1e-10
    )
    J = f.jacobian(X)
    np.testing.assert_allclose(f.ntk(X), J @ J.T, atol=1e-8)


def test_another_start_and_conventions(sample):
    X, y = sample
    small = OneStepRegressor(100, symmetric=False, scale=1e-3, random_state=0).fit(X, y)
    assert set(np.abs(small.subspace(2)).argmax(0)) == {0, 1}
    again = clone(small).fit(X.astype(np.float32), y)
    assert again.predict(X).dtype == again.weights_.dtype == np.float32
    fixed = OneStepRegressor(10, step=2.0, random_state=0).fit(X, y)
    assert fixed.step_ == 2.0
