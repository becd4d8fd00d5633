"""Values and derivatives of finite networks, against passes that autograd differentiates."""

import math

import numpy as np
import pytest
from autograd import differential_operators as autograd
from described import build
from oracle import autodiff
from oracle.networks import Act, Dense, Residual
from oracle.spatial import AvgPool, Conv, Flatten, GaussianPool, GlobalAvgPool, Input

import kernelcore as kc
from kernelcore.layers import activations

N, WIDTH = 3, 4
RNG = np.random.default_rng(0)
INPUTS = {
    "rows": RNG.standard_normal((N, 3)),
    "signals": RNG.standard_normal((N, 9, 2)),
    "images": RNG.standard_normal((N, 6, 5, 2)),
}
END = (Act("Tanh"), GlobalAvgPool(), Dense(1.3, 0.4))
NETWORKS = {
    "dense": (Dense(1.2, 0.3), Act("Tanh"), Dense(0.9), Act("Gelu"), Dense(1.1, 1.0)),
    "one layer": (Input(sum=True), Dense(1.2, 0.3)),
    "residual": (
        Dense(), Residual((Act("Tanh"), Dense(1.1, 0.2)), (Dense(0.7),)),
        Residual((Act("Erf"), Dense(), Act("Sin"), Dense(0.8, 0.1))), Act("Silu"), Dense(),
    ),
    "frozen": (
        Dense(1.2, 0.5, False), Act("Tanh"), Dense(1.1, 0.3), Act("Sin"), Dense(0.9, 0.2, False),
        Act("Erf"), Dense(),
    ),
    "frozen end": (Dense(1.2, 0.5), Act("Tanh"), Dense(1.1, 0.3, False)),
    "same": (Conv((3, 2), (1, 2), "same", 1.3, 0.2), *END),
    "valid": (Conv((2, 3), (2, 1), "valid", 1.3), *END),
    "circular": (Conv((3, 3), (2, 2), "circular", 1.3, 0.2), *END),
    "poolings": (
        Conv((3, 3), (1, 1), "same", 1.3), Act("Erf"), AvgPool((2, 2), (2, 1), "same"),
        Conv((2, 2), (1, 1), "circular", 1.2, 0.1, False), Act("Tanh"),
        AvgPool((2, 2), (1, 1), "circular"), AvgPool((2, 1), (1, 1)), Dense(0.9, 0.3),
        Act("Softplus"), Flatten(), Dense(),
    ),
    "Gaussian": (Conv((3, 3), (1, 1)), Act("Gelu"), GaussianPool(1), Flatten(sum=True), Dense(1.4)),
    "sides": (
        Conv((3, 3), (1, 1), "same", 1.2),
        Residual(
            (Act("Tanh"), Conv((3, 3), (2, 2), "same", 1.1, 0.2)), (Conv((1, 1), (2, 2), "same"),)
        ),
        *END,
    ),
    "signals": (
        Input(sum=True), Conv((3,), (2,), "valid", 1.2, 0.2), Act("Tanh"), GaussianPool(1),
        Conv((2,), (1,), "circular"), Act("Sin"), AvgPool((2,), (1,), "same"), *END[1:],
    ),
}  # fmt: skip
OPTIONS = {
    "plain": {},
    "doubled": {"doubled": True, "alpha": 2.0, "outputs": 2},
    "standard": {"parameterization": "standard", "outputs": 2},
}
FAN_IN = 90
"""The largest number of products that a unit adds, Flatten of 4 x 5 positions of 4 channels."""


def inputs_of(network):
    windows = [len(layer[0]) for layer in network if isinstance(layer, (Conv, AvgPool))]
    return INPUTS[("rows", "signals", "images")[max(windows, default=0)]]


def near(found, expected):
    """Compare sums of at most FAN_IN products in up to five layers, there and back.

    Each rounds by at most (fan-in + 3) eps/2 of the sum of their sizes, which exceeds the sum
    itself by sqrt(fan-in) on average where terms have random signs.
    """
    bound = 10 * (FAN_IN + 3) / 2 * math.sqrt(FAN_IN) * np.finfo(float).eps
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound * max(1, np.abs(expected).max()))


def function_of(network, x, f, options):
    """The outputs as a function of theta."""
    parts, ntk = 2 if f.doubled else 1, options.get("parameterization", "ntk") == "ntk"
    signs = [f.alpha / math.sqrt(parts) * sign for sign in (1, -1)[:parts]]
    layers, size = len(f.weights) // parts, f.theta.size // parts

    def outputs(theta):
        total = 0.0
        for k, sign in enumerate(signs):
            own = theta[k * size : (k + 1) * size]
            weights = autodiff.filled(network, own, f.weights[k * layers : (k + 1) * layers])
            total = total + sign * autodiff.outputs(network, x, weights, ntk)
        return total if f.outputs > 1 else total[:, 0]

    return outputs


@pytest.mark.filterwarnings("ignore:Output seems independent")  # Hessians of one layer
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("name", NETWORKS)
def test_derivatives_are_those_of_automatic_differentiation(name, options, rng):
    network = NETWORKS[name]
    x = inputs_of(network)
    f = kc.Sequential(*build(network)).sample(WIDTH, 1, shape=x.shape[1:], **options)
    f = f.at(rng.standard_normal(f.theta.size))  # so that both parts of a doubled network differ
    outputs = function_of(network, x, f, options)
    expected = outputs(f.theta)
    u, v = rng.standard_normal(expected.shape), rng.standard_normal(f.theta.size)
    near(f(x), expected)
    J = autograd.jacobian(outputs)(f.theta)
    near(f.jacobian(x), J)
    near(f.jvp(x, v), autograd.make_jvp(outputs)(f.theta)(v)[1])
    near(f.vjp(x, u), autograd.make_vjp(outputs)(f.theta)[0](u))
    bend = autograd.hessian_vector_product(lambda theta: (u * outputs(theta)).sum())
    near(f.hessian_product(x, u, v), bend(f.theta, v))

    def loss(theta):
        return ((outputs(theta) - u) ** 2).sum() / (2 * N)

    found = f.gradient(x, u)
    near(found.value, loss(f.theta))
    near(found.gradient, autograd.grad(loss)(f.theta))
    near(f.loss_hessian_product(x, u, v), autograd.hessian_vector_product(loss)(f.theta, v))
    K = np.tensordot(J, J, (-1, -1))
    near(f.ntk(x), K if J.ndim == 2 else np.einsum("iojo->ij", K) / f.outputs)


@pytest.mark.parametrize(
    "name", [n for n in activations.__all__ if n not in ("Activation", "OneKink", "Step", "Sign")]
)
def test_every_activation_is_differentiated(name, rng):
    params = {"LeakyRelu": (0.2,), "RectifiedPower": (3,), "Monomial": (3,), "Hermite": (3,)}
    params["PowerSeries"] = ((1.0, 2.0, -1.0, 0.5),)
    network = (Dense(0.8, 0.2), Act(name, params.get(name, ()), 0.3), Dense(0.7))
    x = INPUTS["rows"]
    f = kc.Sequential(*build(network)).sample(WIDTH, 1, shape=3)
    outputs = function_of(network, x, f, {})
    u, v = rng.standard_normal(N), rng.standard_normal(f.theta.size)
    near(f(x), outputs(f.theta))
    near(f.vjp(x, u), autograd.make_vjp(outputs)(f.theta)[0](u))
    bend = autograd.hessian_vector_product(lambda theta: (u * outputs(theta)).sum())
    near(f.hessian_product(x, u, v), bend(f.theta, v))
