"""Networks of finite width: values, derivatives, kernels, training, and their limits."""

import pickle

import numpy as np
import pytest
from oracle import finite

import kernelcore as kc
from kernelcore import networks
from kernelcore.layers import activations
from kernelcore.networks import _network

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((6, 4))
SIGNALS = RNG.standard_normal((3, 9, 2))
PICTURES = RNG.standard_normal((4, 6, 6, 2))
NETS = {
    "dense": (kc.presets.mlp(2), ROWS),
    "biases": (
        kc.Sequential(
            kc.Dense(1.2, b_std=0.3), kc.Tanh(), kc.Dense(b_std=0.2), kc.Gelu(), kc.Dense(b_std=1.0)
        ),
        ROWS,
    ),
    "residual": (
        kc.Sequential(
            kc.Dense(), kc.Residual(kc.Tanh(), kc.Dense(1.1), shortcut=(kc.Dense(0.7),)),
            kc.Residual(kc.Erf(), kc.Dense()), kc.Sin(), kc.Dense(),
        ),
        ROWS,
    ),
    "frozen": (
        kc.Sequential(kc.Dense(trainable=False), kc.Tanh(), kc.Dense(), kc.Tanh(), kc.Dense()),
        ROWS,
    ),
    "images": (
        kc.Sequential(
            kc.Conv(3, w_std=1.3, b_std=0.2), kc.Tanh(), kc.AvgPool(2, padding="same"),
            kc.Conv(3, stride=2, padding="circular"), kc.Softplus(), kc.GlobalAvgPool(),
            kc.Dense(b_std=0.5),
        ),
        PICTURES,
    ),
    "signals": (
        kc.Sequential(
            kc.Input(sum=True), kc.Conv((3,), padding="valid"), kc.Tanh(), kc.GaussianPool(1),
            kc.Flatten(sum=True), kc.Dense(),
        ),
        SIGNALS,
    ),
}  # fmt: skip
OPTIONS = {
    "plain": {},
    "doubled": {"doubled": True, "alpha": 2.0},
    "two outputs": {"outputs": 2},
    "standard": {"parameterization": "standard"},
}


@pytest.fixture(params=NETS)
def case(request):
    return NETS[request.param]


def drawn(net, x, width=5, seed=1, **options):
    return net.sample(width, seed, shape=x.shape[1:], **options)


def near(found, expected, times=1.0):
    """Check sums of products of numbers of size one, which round some hundred times."""
    size = 1e3 * np.finfo(float).eps * max(1.0, np.abs(expected).max()) * times
    np.testing.assert_allclose(found, expected, rtol=0, atol=size)


# ---- values and derivatives


def test_values_and_derivatives_are_those_of_the_definition():
    """By a network that is computed position by position, with complex numbers for derivatives."""
    net = kc.Sequential(
        kc.Conv(3, stride=2, b_std=0.5), kc.Tanh(), kc.Conv(2, padding="valid", w_std=1.2),
        kc.Tanh(), kc.GlobalAvgPool(), kc.Dense(1.5),
    )  # fmt: skip
    x = PICTURES[:2, :5]
    f = drawn(net, x, width=(3, 4), alpha=0.7)
    v = RNG.standard_normal(f.theta.size)
    h = 1e-30
    turned = [
        (w.w + 1j * h * d.w, None if w.b is None else (w.b + 1j * h * d.b).tolist())
        for w, d in zip(f.weights, f.at(v).weights, strict=True)
    ]
    expected = np.array([
        finite.images(image.tolist(), [(w.tolist(), b) for w, b in turned], 0.7) for image in x
    ])  # fmt: skip
    near(f(x), expected.real)
    near(f.jvp(x, v), expected.imag / h)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_derivatives_agree_with_each_other_and_with_differences(case, options):
    net, x = case
    f = drawn(net, x, **options)
    v, u = RNG.standard_normal(f.theta.size), RNG.standard_normal(f(x).shape)
    along, J = f.jvp(x, v), f.jacobian(x)
    near(along, J @ v)
    near(f.vjp(x, u), np.tensordot(u, J, u.ndim))
    # Central differences are off by h^2/6 times third derivatives, and by eps/h.
    h = 1e-5
    ahead, behind = (f.at(f.theta + s * h * v) for s in (1, -1))
    close = {"rtol": 0, "atol": 1e-6}
    np.testing.assert_allclose((ahead(x) - behind(x)) / (2 * h), along, **close)
    bends = (ahead.vjp(x, u) - behind.vjp(x, u)) / (2 * h)
    np.testing.assert_allclose(f.hessian_product(x, u, v), bends, **close)
    K = J @ J.T if J.ndim == 2 else np.einsum("iop,jop->ij", J, J) / J.shape[1]
    near(f.ntk(x), K)
    near(f.ntk.diag(x), K.diagonal())
    near(f.ntk(x[:2], x[2:]), K[:2, 2:])
    near((2 * f.ntk + net.nngp)(x), 2 * K + net.nngp(x))


@pytest.mark.parametrize("loss", ["square", "logistic", "softmax", "hinge", "squared_hinge"])
def test_losses(loss):
    outputs = 3 if loss == "softmax" else None
    f = drawn(kc.presets.mlp(1), ROWS, outputs=outputs)
    y = {"square": ROWS[:, 0], "softmax": np.arange(6) % 3}.get(loss, np.sign(ROWS[:, 0]))
    found = f.gradient(ROWS, y, loss=loss)
    out = f(ROWS)
    expected = {
        "square": lambda: (out - y) ** 2 / 2,
        "logistic": lambda: np.log1p(np.exp(-y * out)),
        "hinge": lambda: np.maximum(0, 1 - y * out),
        "squared_hinge": lambda: np.maximum(0, 1 - y * out) ** 2 / 2,
        "softmax": lambda: np.log(np.exp(out).sum(1)) - out[np.arange(6), y],
    }[loss]()
    near(found.value, expected.mean())
    v, h = RNG.standard_normal(f.theta.size), 1e-5
    ahead, behind = (f.at(f.theta + s * h * v).gradient(ROWS, y, loss=loss) for s in (1, -1))
    assert (ahead.value - behind.value) / (2 * h) == pytest.approx(found.gradient @ v, abs=1e-8)
    np.testing.assert_allclose(
        f.loss_hessian_product(ROWS, y, v, loss=loss),
        (ahead.gradient - behind.gradient) / (2 * h), rtol=0, atol=1e-7,
    )  # fmt: skip


@pytest.mark.parametrize(
    "name", [n for n in activations.__all__ if n not in ("Activation", "OneKink")]
)
@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_second_derivatives(name, shift):
    options = {"LeakyRelu": (0.2,), "RectifiedPower": (3,), "Monomial": (3,), "Hermite": (4,)}
    options["PowerSeries"] = ((1.0, 2.0, -1.0, 0.5),)
    phi = getattr(kc, name)(*options.get(name, ()), shift=shift)
    x, h = np.array([-2.1, -0.7, 0.4, 1.3]), 1e-5
    slope = (phi.derivative(x + h) - phi.derivative(x - h)) / (2 * h)
    np.testing.assert_allclose(phi.second_derivative(x), slope, rtol=1e-8, atol=1e-8)
    assert phi.second_derivative(x.astype(np.float32)).dtype == np.float32


def test_second_derivatives_of_functions_of_others():
    phi, x = kc.OneKink(0.0, (0.0, 1.0, 0.0), (-1.0, 0.0, 1.0)), np.array([-1.0, 1.0])
    np.testing.assert_allclose(phi.second_derivative(x), kc.Elu().second_derivative(x))
    np.testing.assert_array_equal(
        kc.Activation(kc.Tanh()).second_derivative(x), kc.Tanh().second_derivative(x)
    )


# ---- what a network is


def test_doubled_networks_begin_at_zero(case):
    net, x = case
    f, one = drawn(net, x, doubled=True), drawn(net, x)
    assert not f(x).any()
    assert f.theta.size == 2 * one.theta.size
    near(f.ntk(x), one.ntk(x))


def test_weights_are_drawn_when_inputs_arrive():
    net = kc.presets.mlp(2)
    f = net.sample(7, seed=3)
    assert repr(f) == "<Network of inputs that it has not seen>"
    np.testing.assert_array_equal(f(ROWS), net.sample(7, 3, shape=4)(ROWS))
    assert (f.widths, f.shape, f.outputs) == ((7, 7, 1), (4,), 1)
    assert net.sample(7, seed=3)(ROWS.astype(np.float32)).dtype == np.float32
    assert "inputs with 7, 7, 1 units, 84 parameters" in repr(f)


@pytest.mark.parametrize(("how", "spread"), [("standard", 1 / 4), ("xavier", 2 / 404)])
def test_other_parameterisations_draw_with_their_spread(how, spread):
    f = kc.Sequential(kc.Dense(3.0, b_std=0.5), kc.Relu(), kc.Dense()).sample(
        400, 0, shape=4, parameterization=how
    )
    w, b = f.weights[0]
    # The variance of 1600 normal numbers is off by sqrt(2/1600), four times in a thousand draws.
    assert w.var() == pytest.approx(9 * spread, rel=4 * (2 / 1600) ** 0.5)
    assert b.var() == pytest.approx(0.25, rel=4 * (2 / 400) ** 0.5)


def test_a_subset_of_layers_is_trained():
    f = drawn(kc.presets.mlp(2), ROWS, doubled=True)
    last = f.training(-1)
    terms = f.ntk.terms(ROWS, ROWS[:2])
    near(terms.sum(0), f.ntk(ROWS, ROWS[:2]))
    near(terms[2], f.training(2).ntk(ROWS, ROWS[:2]))
    np.testing.assert_array_equal(last(ROWS), f(ROWS))
    end = networks.train(last, ROWS, ROWS[:, 0], steps=5).network
    for before, after, trained in zip(f.weights, end.weights, [0, 0, 1] * 2, strict=True):
        assert (before.w != after.w).any() == trained


def test_results_do_not_depend_on_threads_and_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(_network, "BLOCK", 4000)
    x = RNG.standard_normal((300, 4)).astype(np.float32)
    f = kc.presets.mlp(2).sample(30, seed=0, dtype=np.float32)
    found = []
    for count in (1, 2, 3):
        kc.set_threads(count)
        found.append((f(x), f.gradient(x, x[:, 0]).gradient, f.ntk(x), f.jvp(x, f.theta)))
    kc.set_threads(None)
    assert len(f._blocks(300)) > 8
    for others in found[1:]:
        for a, b in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(a, b)
    assert all(a.dtype == np.float32 for a in found[0])


def test_inputs_of_all_kinds():
    f = drawn(kc.presets.mlp(1), ROWS)
    fixed = ROWS.copy()
    fixed.flags.writeable = False
    for x in (ROWS.tolist(), np.asfortranarray(ROWS), fixed, ROWS.astype(np.float64)):
        np.testing.assert_array_equal(f(x), f(ROWS))
    near(f(ROWS[2:3]), f(ROWS)[2:3])
    assert f(ROWS[:0]).shape == (0,)
    assert not f.vjp(ROWS[:0], np.zeros(0)).any()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(ROWS), f(ROWS))
    later = kc.presets.mlp(1).sample(5, seed=1)
    copied = pickle.loads(pickle.dumps(later))  # before it has seen inputs, and after
    np.testing.assert_array_equal(copied(ROWS), later(ROWS))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(later))(ROWS), later(ROWS))
    assert f.scaled(3.0)(ROWS) == pytest.approx(3 * f(ROWS))
    assert f.conjugate(0)(ROWS).shape == (6, 6)


def test_kernels_are_operators():
    f = drawn(kc.presets.mlp(2), ROWS)
    for kernel in (f.ntk, f.conjugate()):
        K = kc.GramOperator(kernel, ROWS, max_memory=100)
        near(K @ ROWS, kernel(ROWS) @ ROWS)
        assert len(list(K.tiles())) > 6


# ---- limits


@pytest.mark.parametrize("name", ["dense", "residual", "images"])
def test_kernels_tend_to_those_of_infinite_width(name):
    """The error falls as width^(-1/2); its mean over draws and pairs has a spread of a few %."""
    net, x = NETS[name]
    widths = np.array([16, 64, 256])
    nngp, ntk = net.nngp(x), net.ntk(x)
    last = net.layers[-1]
    off = np.zeros((2, 3))
    for i, width in enumerate(widths):
        for seed in range(12):
            f = drawn(net, x, int(width), seed)
            off[0, i] += np.linalg.norm(f.ntk(x) - ntk)
            if name != "images":  # else positions are left after the last activation
                K = last.w_std**2 * f.conjugate()(x) + last.b_std**2
                off[1, i] += np.linalg.norm(K - nngp)
    for errors in off[: 1 if name == "images" else 2]:
        slope = np.polyfit(np.log(widths), np.log(errors), 1)[0]
        assert -0.7 < slope < -0.35
        assert errors[-1] / 12 < 0.3 * np.linalg.norm(ntk)


def test_linearised_training_is_kernel_descent():
    f = drawn(kc.presets.mlp(2), ROWS, 40, doubled=True)
    y, step, steps = ROWS[:, 0], 0.7, 25
    end = networks.train(f.linearize(), ROWS, y, step=step, steps=steps).network
    K, a = f.ntk(ROWS), np.zeros(6)
    for _ in range(steps):
        a -= step * (K @ a - y) / 6
    near(end(ROWS), K @ a)
    other = RNG.standard_normal((3, 4))
    near(end(other), f.ntk(other, ROWS) @ a)
    v = RNG.standard_normal(f.theta.size)
    J = f.jacobian(ROWS)
    near(end.loss_hessian_product(ROWS, y, v), J.T @ (J @ v) / 6)
    assert not end.hessian_product(ROWS, y, v).any()
    near(end.jacobian(ROWS), J)


def test_wide_networks_train_as_their_linearisations():
    net = kc.Sequential(kc.Dense(b_std=1.0), kc.Tanh(), kc.Dense())
    off = []
    for width in (50, 800):
        pairs = [
            networks.coupled(
                drawn(net, ROWS, width, seed, doubled=True), ROWS, ROWS[:, 0], steps=40, every=40
            )
            for seed in range(3)
        ]
        off.append(np.mean([pair.distance[-1] for pair in pairs]))
    # The distance falls about as 1/width: 16 times, here at least 16^0.75.
    assert off[1] < off[0] / 8
    assert pairs[0].moved[-1] > pairs[0].apart[-1] > 0
    assert pairs[0].steps.tolist() == [0, 40]


def test_laziness_has_the_norms_of_all_derivatives():
    net = kc.Sequential(kc.Dense(b_std=0.5), kc.Tanh(), kc.Dense())
    x, y = ROWS[:1], np.ones(1)
    f = drawn(net, x, 6, doubled=True)
    found = networks.laziness(f, x, y, tol=1e-12, rounds=1000)
    H = np.array([f.hessian_product(x, y, e) for e in np.eye(f.theta.size)])
    assert found.jacobian == pytest.approx(np.linalg.norm(f.jacobian(x), 2), rel=1e-5)
    assert found.hessian == pytest.approx(np.linalg.norm(H, 2), rel=1e-5)
    assert found.residual == 1.0
    assert found.kappa == pytest.approx(found.hessian / found.jacobian**2)
    # Several outputs: no combination of their Hessians is larger than what the search has found.
    many, u = networks.laziness(f, ROWS, ROWS[:, 0]), RNG.standard_normal((10, 6))
    for way in u / np.linalg.norm(u, axis=1, keepdims=True):
        H = np.array([f.hessian_product(ROWS, way, e) for e in np.eye(f.theta.size)])
        assert np.linalg.norm(H, 2) < many.hessian * 1.01


# ---- training


@pytest.mark.parametrize(
    "options",
    [{}, {"momentum": 0.8}, {"method": "adam", "step": 0.02}, {"batch": 10}, {"decay": 1e-4}],
    ids=str,
)
def test_training_descends(options):
    x = RNG.standard_normal((30, 4))
    f = kc.presets.mlp(1).sample(100, seed=0)
    result = networks.train(f, x, np.sin(x[:, 0]), steps=300, every=10, seed=0, **options)
    assert result.losses[-1] < 0.05 * result.losses[0]
    assert result.steps.tolist() == list(range(0, 301, 10))
    assert result.stopped == "steps"
    again = networks.train(f, x, np.sin(x[:, 0]), steps=300, every=10, seed=0, **options)
    np.testing.assert_array_equal(again.network.theta, result.network.theta)


def test_gradient_flow_is_the_limit_of_small_steps():
    """For a linearised network the flow is known: ``f(t) = (I - exp(-K t/n)) y``."""
    f = drawn(kc.presets.mlp(1), ROWS, 30, doubled=True)
    y, time = ROWS[:, 0], 20.0
    flow = networks.train(f.linearize(), ROWS, y, method="flow", time=time, rtol=1e-8)
    values, vectors = np.linalg.eigh(f.ntk(ROWS))
    expected = vectors @ ((1 - np.exp(-values * time / 6)) * (vectors.T @ y))
    np.testing.assert_allclose(flow.network(ROWS), expected, rtol=0, atol=1e-6)
    assert flow.stopped == "time"
    assert flow.times[-1] == time
    assert flow.losses[0] == pytest.approx((y**2).mean() / 2)


def test_training_stops_early(capsys, monkeypatch):
    monkeypatch.setattr("kernelcore.engine.progress.Progress.__init__.__defaults__", (0.0,))
    x = RNG.standard_normal((20, 4))
    f = kc.presets.mlp(1).sample(50, seed=0)
    y = x[:, 0]
    found = networks.train(f, x, y, tol=0.1, steps=1000)
    assert found.stopped == "tol"
    assert found.losses[-1] <= 0.1 < found.losses[-2]
    noise = networks.train(f, x, y, steps=1000, validation=(-x, y), patience=3)
    assert noise.stopped == "patience"
    assert noise.validation.argmin() == len(noise.validation) - 4
    best = noise.network.gradient(-x, y).value
    assert best == pytest.approx(noise.validation.min())
    asked = []
    ended = networks.train(f, x, y, callback=lambda k, net, v: asked.append(k) or k == 2, steps=9)
    assert ended.stopped == "callback"
    assert asked == [0, 1, 2]
    networks.train(f, x, y, steps=2, progress=True)
    assert capsys.readouterr().err.splitlines()[-1].startswith("training, steps: 2/2, 0 s, loss 0.")
