"""Complexity and convergence, against brute force over signs, flows, and trained networks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import expm

import kernelcore as kc
from kernelcore import networks, theory
from kernelcore.solvers import RidgePath, kernel_gradient_descent

NET = kc.presets.mlp(1)


# ---- complexity


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_norms_are_those_of_ridge_regression(ridge, rng):
    X, y = rng.standard_normal((15, 3)), rng.standard_normal((15, 2))
    K = NET.ntk(X)
    alpha = np.linalg.solve(K + ridge * np.eye(15), y)
    found = theory.kernel_complexity(K, y, ridge)
    assert_allclose(found.norm, np.sqrt((alpha * (K @ alpha)).sum(0)), rtol=1e-8)
    assert_allclose(found.norm, RidgePath(K, y).rkhs_norm(ridge), rtol=1e-8)
    assert_allclose(found.rademacher, found.norm * np.sqrt(np.trace(K)) / 15, rtol=1e-14)
    one = theory.kernel_complexity(K, y[:, 0], ridge)
    assert isinstance(one.norm, float)
    assert one.norm == pytest.approx(found.norm[0], rel=1e-12)
    assert_allclose(one.margins, y[:, 0] * (K @ alpha)[:, 0], rtol=1e-7, atol=1e-9)


def test_directions_that_are_not_resolved_are_left_out():
    K = np.ones((3, 3))
    found = theory.kernel_complexity(K, np.array([1.0, 1.0, 1.0]))
    assert found.norm == pytest.approx(1.0, rel=1e-12)
    assert theory.kernel_complexity(np.zeros((2, 2)), [1.0, -1.0]).norm == 0


def test_the_bound_is_above_the_mean_over_signs(rng):
    """The supremum over the ball is (B/n) sqrt(s'Ks) exactly; its mean is drawn."""
    X, y = rng.standard_normal((30, 3)), rng.choice([-1.0, 1.0], 30)
    K = kc.Gaussian(1.0)(X)
    found = theory.kernel_complexity(K, y)
    s = rng.choice([-1.0, 1.0], (4000, 30))
    each = found.norm / 30 * np.sqrt(np.einsum("ij,jk,ik->i", s, K, s))
    error = each.std() / np.sqrt(4000)
    assert each.mean() - 3 * error <= found.rademacher
    # Khintchine's inequality with its best constant: the bound is not off by more
    assert each.mean() + 3 * error >= found.rademacher / np.sqrt(2)


def true_and_random(rng, n=200):
    X, digit = kc.data.digits()
    X, digit = X[:n], digit[:n]
    return X / np.linalg.norm(X, axis=1, keepdims=True) * 8, digit, rng.permutation(digit)


def test_random_labels_have_larger_norms(rng):
    X, true, random = true_and_random(rng)
    K = kc.presets.mlp(2).ntk(X)
    good, bad = (theory.kernel_complexity(K, np.eye(10)[labels]) for labels in (true, random))
    # both are fitted: margins of codes are 1
    assert_allclose(good.margins, 1.0, atol=1e-6)
    assert_allclose(bad.margins, 1.0, atol=1e-6)
    assert (good.norm < bad.norm).all()
    assert np.median(good.normalised_margins) > 1.2 * np.median(bad.normalised_margins)


def matrices(f):
    """The layers as the definition has them: w_std/sqrt(fan-in) W."""
    stds = [node.w_std for node in f.program if node.kind == "weights"]
    return [std / np.sqrt(len(w)) * w.T for std, (w, _) in zip(stds, f.weights, strict=True)]


@pytest.mark.parametrize("phi", [kc.Relu(), kc.LeakyRelu(0.2), kc.Tanh(), kc.Erf()], ids=repr)
def test_spectral_complexity_by_singular_values(phi, rng):
    net = kc.presets.mlp(2, phi)
    start, X = net.sample(20, seed=0, shape=4, outputs=3), rng.standard_normal((12, 4))
    f = start.at(start.theta + 0.1 * rng.standard_normal(start.theta.size))
    y = rng.integers(0, 3, 12)
    rho = 2 / np.sqrt(np.pi) if phi == kc.Erf() else 1.0
    A, M = matrices(f), matrices(start)
    last = np.asarray(phi(np.asarray(phi(X @ A[0].T)) @ A[1].T))
    h = last @ A[2].T
    assert_allclose(h, f(X), rtol=1e-10, atol=1e-12)
    sizes = [np.linalg.svd(a, compute_uv=False)[0] for a in A]
    own = np.arange(12), y
    margins = h[own] - np.where(np.eye(3)[y] == 1, -np.inf, h).max(1)
    for reference, base in ((None, [0 * a for a in A]), (start, M)):
        gaps = [sum(np.linalg.norm(row) for row in a - m) for a, m in zip(A, base, strict=True)]
        ratios = [(gap / size) ** (2 / 3) for gap, size in zip(gaps, sizes, strict=True)]
        want = rho**2 * np.prod(sizes) * sum(ratios) ** 1.5
        found = theory.network_complexity(f, X, y, reference)
        assert_allclose(found.spectral_norms, sizes, rtol=1e-10)
        assert_allclose(found.distances, gaps, rtol=1e-10)
        assert found.spectral_complexity == pytest.approx(want, rel=1e-8)
        assert_allclose(found.margins, margins, rtol=1e-9, atol=1e-12)
        unit = want * np.linalg.norm(X) / 12
        assert_allclose(found.normalised_margins, margins / unit, rtol=1e-7, atol=1e-12)
    heads = np.linalg.norm(A[-1], axis=1)
    assert_allclose(found.head_norm, heads, rtol=1e-12)
    assert_allclose(found.rademacher, heads * np.linalg.norm(last) / 12, rtol=1e-10)


def test_the_bound_of_heads_is_above_the_mean_over_signs(rng):
    f, X = NET.sample(30, seed=0, shape=4), rng.standard_normal((20, 4))
    found = theory.network_complexity(f, X, rng.choice([-1.0, 1.0], 20))
    A = matrices(f)
    hidden = np.maximum(X @ A[0].T, 0)
    s = rng.choice([-1.0, 1.0], (4000, 20))
    each = found.head_norm * np.linalg.norm(s @ hidden, axis=1) / 20
    assert each.mean() - 3 * each.std() / np.sqrt(4000) <= found.rademacher
    assert isinstance(found.rademacher, float)


def test_random_labels_need_more_complex_networks(rng):
    X, true, random = true_and_random(rng, n=60)
    start = NET.sample(200, seed=0, shape=64, outputs=10)
    found = []
    for labels in (true, random):
        codes = np.eye(10)[labels]
        trained = networks.train(start, X, codes, steps=3000, tol=0.02, momentum=0.9)
        assert trained.stopped == "tol"
        found.append(theory.network_complexity(trained.network, X, labels, reference=start))
    good, bad = found
    assert (good.margins > 0).all()  # both are fitted
    assert (bad.margins > 0).all()
    assert good.spectral_complexity < bad.spectral_complexity
    assert np.median(good.normalised_margins) > np.median(bad.normalised_margins)
    assert (good.head_norm < bad.head_norm).mean() > 0.5


# ---- convergence


def problem(rng, n=15):
    X, y = rng.standard_normal((n, 3)), rng.standard_normal((n, 2))
    return kc.presets.mlp(2, b_std=0.3).ntk(X), y, rng.standard_normal((n, 2))


def test_flow_by_the_exponential_of_the_matrix(rng):
    K, y, f0 = problem(rng)
    found = theory.convergence(K, y, f0)
    for t in (0.0, 0.1, 3.0):
        off = expm(-t * K) @ (f0 - y)
        assert found.loss(t) == pytest.approx(np.sum(off**2) / 30, rel=1e-9)
        assert found.loss(t) <= found.bound(t) * (1 + 1e-12)
    values = np.linalg.eigvalsh(K)
    assert found.rate == pytest.approx(values[0], rel=1e-10)
    assert found.positive_definite
    assert found.margin == pytest.approx(values[0] / found.rounding, rel=1e-10)
    assert found.largest_step == pytest.approx(2 / values[-1], rel=1e-12)
    assert found.effective_rank == pytest.approx(np.trace(K) / values[-1], rel=1e-12)
    assert found.rank == 15
    assert found.loss(np.inf) == 0


def test_descent_step_by_step(rng):
    K, y, f0 = problem(rng)
    found = theory.convergence(K, y, f0)
    step = 0.9 * found.largest_step
    made = kernel_gradient_descent(K, y, iterations=40, step=step, f0=f0)
    assert_allclose(found.descent_loss(np.arange(41), step), made.train_loss, rtol=1e-8)


def test_what_a_singular_kernel_cannot_reach(rng):
    X = rng.standard_normal((6, 2))
    X[1] = X[0]
    y = rng.standard_normal(6)
    found = theory.convergence(kc.Gaussian(1.0)(X), y)
    assert not found.positive_definite
    assert found.rate == 0
    assert found.rank == 5
    # two labels of one point leave half of their squared difference
    assert found.loss(np.inf) == pytest.approx((y[0] - y[1]) ** 2 / 4 / 6, rel=1e-9)
    assert found.bound(np.inf) == pytest.approx(found.loss(0.0), rel=1e-12)
    none = theory.convergence(np.zeros((2, 2)), [1.0, 1.0])
    assert (none.rate, none.rank, none.effective_rank, none.margin) == (0.0, 0, 0.0, np.inf)
    assert none.largest_step == np.inf
    assert none.loss(5.0) == 0.5


def test_single_precision_is_less_certain(rng):
    K, y, _ = problem(rng)
    wide, narrow = theory.convergence(K, y), theory.convergence(K.astype(np.float32), y)
    assert narrow.rounding == pytest.approx(wide.rounding * 2.0**29, rel=1e-5)


def test_wide_networks_follow_within_the_drift_of_their_kernel(rng):
    """With |K_t - K_0| <= d, the residual r of a flow differs by at most d t |r(0)| / n.

    K_t moves steadily over so short a time, so that the largest change is that at the end; a step
    of descent sees K between two points of its path, and twice the bound allows for that.
    """
    n, X = 20, rng.standard_normal((20, 3))
    y = np.sin(X[:, 0])
    f = kc.Sequential(kc.Dense(1.5, 0.5), kc.Tanh(), kc.Dense()).sample(
        2000, seed=0, doubled=True, shape=3
    )
    found = theory.convergence(f.ntk(X), y)
    result = networks.train(f, X, y, steps=60)
    predicted = found.descent_loss(result.steps, result.step / n)
    drift = np.linalg.norm(result.network.ntk(X) - f.ntk(X), 2)
    apart = 2 * drift * result.times * np.linalg.norm(y) / n
    # losses are |r|^2/(2n)
    got, want = np.sqrt(2 * n * result.losses), np.sqrt(2 * n * predicted)
    assert (np.abs(got - want) <= apart + 1e-10).all()
    assert result.losses[-1] < 0.1 * result.losses[0]
    # which says something: where nine tenths of the loss are gone, less than what is left
    there = np.argmax(predicted < predicted[0] / 10)
    assert apart[there] < 0.3 * want[there]
