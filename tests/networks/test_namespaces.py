"""Finite networks on arrays of another library, in memory that NumPy cannot read, against NumPy."""

import numpy as np
import pytest
from elsewhere import back, device, library, there  # noqa: F401  -- fixtures
from numpy.testing import assert_allclose, assert_array_equal

import kernelcore as kc
from kernelcore import networks
from kernelcore.networks import _network

N = 16
pytestmark = pytest.mark.usefixtures("device")
RNG = np.random.default_rng(0)
CASES = {
    "dense": (kc.presets.mlp(2, b_std=0.3), (3,)),
    "residual": (
        kc.Sequential(
            kc.Dense(b_std=0.2), kc.Residual(kc.Tanh(), kc.Dense(1.1), shortcut=(kc.Dense(0.7),)),
            kc.Sin(), kc.Dense(trainable=False), kc.Softplus(), kc.Dense(),
        ),
        (3,),
    ),
    "images": (
        kc.Sequential(
            kc.Input(sum=True), kc.Conv(3, w_std=1.3, b_std=0.2), kc.Tanh(),
            kc.AvgPool(2, padding="same"), kc.Conv(2, stride=2, padding="circular"), kc.Sigmoid(),
            kc.GlobalAvgPool(), kc.Dense(b_std=0.5),
        ),
        (5, 4, 2),
    ),
    "signals": (
        kc.Sequential(
            kc.Conv((3,), padding="valid"), kc.Relu(), kc.GaussianPool(1), kc.Flatten(sum=True),
            kc.Dense(),
        ),
        (9, 2),
    ),
}  # fmt: skip
OPTIONS = {
    "plain": {},
    "doubled": {"doubled": True, "alpha": 2.0, "outputs": 2, "parameterization": "standard"},
}


@pytest.fixture(params=CASES)
def case(request, dtype):
    net, shape = CASES[request.param]
    return net, RNG.standard_normal((N, *shape)).astype(dtype)


def near(found, want, dtype):
    """Check sums of at most a hundred products in a few layers, in the order of their library."""
    found = back(found)
    assert found.dtype == dtype
    bound = 1e3 * np.finfo(dtype).eps * max(1.0, np.abs(want).max())
    assert_allclose(found, want, rtol=0, atol=bound)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_outputs_and_derivatives(case, options, dtype, monkeypatch):
    net, x = case
    f, g = net.sample(4, 1, **options), net.sample(4, 1, **options)
    want, X = f(x), there(x)
    near(g(X), want, dtype)  # drawn where inputs are
    assert_array_equal(back(g.theta), f.theta)
    u = RNG.standard_normal(want.shape).astype(dtype)
    v = RNG.standard_normal(f.theta.size).astype(dtype)
    U, V = there(u), there(v)
    near(g.jvp(X, V), f.jvp(x, v), dtype)
    near(g.vjp(X, U), f.vjp(x, u), dtype)
    near(g.jacobian(X[:2, ...]), f.jacobian(x[:2]), dtype)
    near(g.hessian_product(X, U, V), f.hessian_product(x, u, v), dtype)
    near(g.loss_hessian_product(X, U, V), f.loss_hessian_product(x, u, v), dtype)
    found, loss = g.gradient(X, U), f.gradient(x, u)
    near(found.gradient, loss.gradient, dtype)
    near(found.outputs, loss.outputs, dtype)
    assert found.value == pytest.approx(loss.value, rel=1e3 * float(np.finfo(dtype).eps))
    near(f.linearize().at(V)(X), f.linearize().at(v)(x), dtype)
    monkeypatch.setattr(_network, "LEAST", 1)
    monkeypatch.setattr(_network, "BLOCK", N // 2 * g._made.cost)
    assert len(g._blocks(N)) == 2
    near(g.vjp(X, U), f.vjp(x, u), dtype)
    near(g(X), want, dtype)


def test_kernels(case, dtype):
    net, x = case
    f, g, X = net.sample(4, 1), net.sample(4, 1), there(x)
    near(g.ntk(X), f.ntk(x), dtype)
    near(g.ntk(X[:5, ...], X), f.ntk(x[:5], x), dtype)
    near(g.ntk.diag(X), f.ntk.diag(x), dtype)
    near(g.ntk.terms(X), f.ntk.terms(x), dtype)
    near(g.conjugate(0)(X), f.conjugate(0)(x), dtype)
    near((2 * g.ntk + g.conjugate())(X), (2 * f.ntk + f.conjugate())(x), dtype)
    y = x.reshape(N, -1)[:, 0]
    K, y = kc.GramOperator(g.ntk, X), there(y)
    near(kc.solvers.ridge(K, y, 1.0), kc.solvers.ridge(f.ntk(x), back(y), 1.0), dtype)


@pytest.mark.parametrize("loss", ["square", "logistic", "softmax", "hinge", "squared_hinge"])
@pytest.mark.parametrize("options", [{"momentum": 0.5}, {"method": "adam", "batch": 5}], ids=str)
def test_training(loss, options):
    outputs = 3 if loss == "softmax" else None
    x = RNG.standard_normal((N, 3))
    y = {"square": x[:, 0], "softmax": np.arange(N) % 3.0}.get(loss, np.sign(x[:, 0]))
    net = kc.presets.mlp(1, b_std=0.5)
    f, g = (net.sample(6, 1, outputs=outputs) for _ in range(2))
    given = options | {"loss": loss, "steps": 15, "seed": 0, "decay": 1e-3}
    want = networks.train(f, x, y, validation=(x[:5], y[:5]), **given)
    X, Y = there(x), there(y)
    found = networks.train(g, X, Y, validation=(X[:5, ...], Y[:5]), **given)
    near(found.network.theta, want.network.theta, np.float64)
    assert_allclose(found.losses, want.losses, rtol=1e-10)
    assert_allclose(found.validation, want.validation, rtol=1e-10)
    assert found.step == pytest.approx(want.step, rel=1e-10)


def test_what_is_found_of_training():
    x = RNG.standard_normal((N, 3))
    f = kc.presets.mlp(1, kc.Tanh()).sample(6, 1, shape=3, doubled=True)
    g, X = f.at(there(f.theta)), there(x)
    for a, b in zip(
        networks.laziness(g, X, X[:, 0]), networks.laziness(f, x, x[:, 0]), strict=True
    ):
        assert a == pytest.approx(b, rel=1e-6)
    a, b = networks.coupled(g, X, X[:, 0], steps=5), networks.coupled(f, x, x[:, 0], steps=5)
    assert_allclose(a.distance, b.distance, rtol=1e-6, atol=1e-12)
    assert_allclose(a.moved, b.moved, rtol=1e-10)


def test_parameters_take_the_network_along():
    net, x = CASES["residual"][0], RNG.standard_normal((N, 3))
    f = net.sample(4, 1, shape=3)
    away = f.at(there(f.theta))
    near(away(there(x)), f(x), np.float64)
    near(away(x.tolist()), f(x), np.float64)
    assert " parameters of " in repr(away)
    home = away.at(f.theta)
    assert_array_equal(home(x), f(x))
    near(away.training(0).vjp(there(x), there(x[:, 0])), f.training(0).vjp(x, x[:, 0]), float)
