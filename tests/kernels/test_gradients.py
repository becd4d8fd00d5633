"""Derivatives of kernels by their first input, against differences of their values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kernelcore as kc
from kernelcore.engine.cpu import derivatives, dispatch

EPS = np.finfo(float).eps


def deep(activation, w_std=1.2):
    """Two hidden layers with biases."""
    parts = [part for _ in range(2) for part in (kc.Dense(w_std, 0.3), activation)]
    return kc.Sequential(*parts, kc.Dense(0.9, 0.2))


ACTIVATIONS = [
    kc.Relu(), kc.LeakyRelu(0.2), kc.Abs(), kc.RectifiedPower(2), kc.RectifiedPower(3), kc.Erf(),
    kc.Relu(shift=0.4), kc.LeakyRelu(0.2, shift=-0.5), kc.Gelu(), kc.Sin(), kc.Cos(shift=0.3),
    kc.GaussianBump(), kc.GaussianBump(shift=0.4), kc.Tanh(), kc.Softplus(shift=0.2),
    kc.Identity(), kc.Identity(shift=0.5), kc.Monomial(2), kc.Hermite(3),
    kc.PowerSeries((0.1, 0.5, 0.2)),
]  # fmt: skip
RESIDUAL = kc.Sequential(
    kc.Dense(1.2, 0.1), kc.Residual(kc.Erf(), kc.Dense(1.1), shortcut=kc.Dense(0.8)), kc.Relu(),
    kc.Dense(),
)  # fmt: skip
MAPS = kc.Sequential(
    kc.Input(sum=True), kc.Dense(1.1, 0.2), kc.DotProduct(kc.profiles.Exp(0.8)), kc.Dense(1, 0.2),
    kc.DotProduct([0.1, 0.5, 0.4]), kc.Project(), kc.DotProduct(np.exp), kc.Dense(), kc.Relu(),
    kc.Dense(),
)  # fmt: skip
KERNELS = [
    kc.Gaussian(1.7), kc.Laplacian(2.0), kc.Laplacian(2.0, norm=1), kc.Cauchy(1.5),
    kc.Polynomial(3, 0.5, 1.0), *(kc.Matern(nu, 1.7) for nu in (0.3, 0.5, 1.0, 1.5, 2.0, 7.3)),
    *(kc.ArcCosine(n) for n in range(5)), *(deep(phi).ntk for phi in ACTIVATIONS),
    deep(kc.Exp(), 0.4).ntk, deep(kc.Relu()).nngp, deep(kc.Tanh()).nngp,
    kc.Sequential(kc.Dense(1.1, 0.3), kc.Sign()).nngp,
    kc.Sequential(kc.DotProduct(kc.profiles.Kappa0())).nngp, RESIDUAL.ntk, MAPS.ntk,
    RESIDUAL.ntk + 2 * kc.Gaussian(1.0), RESIDUAL.nngp * kc.Cauchy(2.0) * kc.Laplacian(3.0),
]  # fmt: skip


def slope(function, X, h):
    """The derivative of f(X), along new last axis, by differences of order four."""
    found = []
    for e in np.eye(X.shape[1]) * h:
        a, b, c, d = (function(X + t * e) for t in (2, 1, -1, -2))
        found.append((8 * (b - c) - (a - d)) / (12 * h))
    return np.stack(found, -1)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradient_is_the_derivative(kernel, rng):
    # The rule is off by a fifteenth of its difference from one of twice the step, to leading order;
    # values are good to some 20 units of rounding.
    X, Y, h = rng.standard_normal((3, 4)), rng.standard_normal((5, 4)), 5e-4
    want, coarse = (slope(lambda x: kernel(x, Y), X, step) for step in (h, 2 * h))
    off = np.abs(kernel.gradient(X, Y) - want)
    assert (off <= np.abs(coarse - want) / 4 + 30 * EPS * np.abs(kernel(X, Y)).max() / h).all()


@pytest.mark.parametrize("kernel", [RESIDUAL.ntk, kc.Laplacian(2.0), kc.Cauchy(1.0)], ids=repr)
def test_weights_sum_over_tiles(kernel, rng):
    X, Y = rng.standard_normal((270, 2)), rng.standard_normal((1030, 2))
    w = rng.standard_normal((1030, 2))
    want = np.einsum("ijk,jr->ikr", kernel.gradient(X, Y), w)
    # sums of 1030 terms, in another order
    assert_allclose(kernel.gradient(X, Y, w), want, rtol=0, atol=1200 * EPS * np.abs(want).max())
    one = kernel.gradient(X, Y, w[:, 0], n_threads=1)
    assert_allclose(one, want[..., 0], rtol=0, atol=1200 * EPS * np.abs(want).max())
    assert_array_equal(one, kernel.gradient(X, Y, w[:, 0], n_threads=3))
    assert_array_equal(kernel.gradient(X, None, w[:270, 0]), kernel.gradient(X, X, w[:270, 0]))


@pytest.mark.parametrize("level", dispatch.built_levels("slopes"))
def test_compiled_loops_say_what_numpy_does(level, rng, monkeypatch):
    X, Y = rng.standard_normal((6, 3)), rng.standard_normal((7, 3))
    Y[:2] = X[:2]  # where derivatives jump
    driver = __import__(f"kernelcore._cpu.slopes_{level}", fromlist=["slopes"])
    assert driver.STEP_SIZE == derivatives.STEP.itemsize
    compiled = (kc.Relu(), kc.Abs(), kc.Sign(), kc.Erf(), kc.Sin(shift=0.2), kc.Exp())
    programs = [deep(phi, 0.5).program for phi in compiled]

    def found():
        return [derivatives.slopes(p, X, Y, tangent) for p in programs for tangent in (False, True)]

    monkeypatch.setattr(dispatch, "driver", lambda name: driver)
    fast = found()
    monkeypatch.setattr(derivatives, "_compiled", lambda form: None)
    for a, b in zip(fast, found(), strict=True):
        # both round some 100 times; at angles above 0.01, roots of 1 - u^2 lose 4 digits
        assert_allclose(np.stack(a), np.stack(b), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("kernel", [kc.Laplacian(2.0), deep(kc.Relu()).ntk], ids=repr)
def test_a_jump_counts_as_its_mean(kernel, rng):
    # k(x + e, x) = k(x, x) + g e + c |e| + O(e^2): differences of opposite steps leave g
    X, h = rng.standard_normal((1, 4)), 1e-5
    want = [(kernel(X + e, X) - kernel(X - e, X)).item() / (2 * h) for e in np.eye(4) * h]
    assert_allclose(kernel.gradient(X, X)[0, 0], want, atol=100 * h)


def test_single_precision_is_rounded_from_double(rng):
    X, Y = (rng.standard_normal((n, 3)).astype(np.float32) for n in (4, 5))
    got = RESIDUAL.ntk.gradient(X, Y)
    assert got.dtype == np.float32
    want = RESIDUAL.ntk.gradient(X.astype(float), Y.astype(float))
    assert_array_equal(got, want.astype(np.float32))


def test_no_rows_have_no_gradients():
    none, some = np.ones((0, 2)), np.ones((3, 2))
    for kernel in (RESIDUAL.ntk, kc.Laplacian(1.0), kc.Cauchy(1.0)):
        assert kernel.gradient(none, some).shape == (0, 3, 2)
        assert_array_equal(kernel.gradient(some, none, np.ones((0, 4))), np.zeros((3, 2, 4)))


def test_rows_of_zeros_have_finite_gradients(rng):
    X = np.zeros((2, 3))
    for kernel in (kc.presets.mlp(2).ntk, deep(kc.Tanh()).ntk, MAPS.nngp, kc.ArcCosine(0)):
        assert np.isfinite(kernel.gradient(X, rng.standard_normal((3, 3)))).all()
        assert np.isfinite(kernel.gradient(X, X)).all()


def test_memory_is_asked_for_first():
    kc.set_memory("100MB")
    try:
        with pytest.raises(MemoryError, match=r"^the gradient must fit .*; use weights, for sums "):
            kc.Gaussian(1.0).gradient(np.zeros((3000, 10)))
    finally:
        kc.set_memory(None)
