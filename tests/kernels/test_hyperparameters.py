"""Hyper-parameters of kernels by name, and derivatives by them, against differences and mpmath."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import networks as oracle

import kernelcore as kc

EPS = np.finfo(float).eps


def deep(activation, w_std=1.2):
    """Two hidden layers with biases."""
    parts = [part for _ in range(2) for part in (kc.Dense(w_std, 0.3), activation)]
    return kc.Sequential(*parts, kc.Dense(0.9, 0.2))


ACTIVATIONS = [
    kc.Relu(), kc.LeakyRelu(0.2), kc.Abs(), kc.RectifiedPower(2), kc.Erf(), kc.Relu(shift=0.4),
    kc.Gelu(), kc.Sin(), kc.Cos(shift=0.3), kc.GaussianBump(shift=0.4), kc.Tanh(), kc.Identity(),
    kc.Hermite(3), kc.PowerSeries((0.1, 0.5, 0.2)),
]  # fmt: skip
RESIDUAL = kc.Sequential(
    kc.Dense(1.2, 0.1), kc.Residual(kc.Erf(), kc.Dense(1.1), shortcut=kc.Dense(0.8)), kc.Relu(),
    kc.Dense(trainable=False),
)  # fmt: skip
MAPS = kc.Sequential(
    kc.Input(sum=True), kc.Dense(1.1, 0.2), kc.DotProduct(kc.profiles.Exp(0.8)), kc.Dense(1, 0.2),
    kc.DotProduct([0.1, 0.5, 0.4]), kc.Project(), kc.DotProduct(np.exp), kc.Dense(), kc.Relu(),
    kc.Dense(),
)  # fmt: skip
KERNELS = [
    kc.Gaussian(1.7), kc.Laplacian(2.0), kc.Laplacian(2.0, norm=1), kc.Cauchy(1.5),
    kc.Polynomial(3, 0.5, 1.0), *(kc.Matern(nu, 1.7) for nu in (0.3, 0.5, 1.0, 1.5, 2.0, 7.3)),
    *(deep(phi).ntk for phi in ACTIVATIONS), deep(kc.Exp(), 0.4).ntk, deep(kc.Relu()).nngp,
    deep(kc.Tanh()).nngp, kc.Sequential(kc.Dense(1.1, 0.3), kc.Sign()).nngp, RESIDUAL.ntk, MAPS.ntk,
    RESIDUAL.ntk + 2 * kc.Gaussian(1.0), RESIDUAL.nngp * (0.5 * kc.Cauchy(2.0)) * kc.ArcCosine(1),
]  # fmt: skip


def difference(kernel, name, X, Y, h):
    """The derivative of the Gram matrix by differences of order four, by steps of h."""
    value = kernel.hyperparameters()[name]
    a, b, c, d = (kernel.replace(**{name: value + t * h})(X, Y) for t in (2, 1, -1, -2))
    return (8 * (b - c) - (a - d)) / (12 * h)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradient_is_the_derivative(kernel, rng):
    # The rule is off by a fifteenth of its difference from one of twice the step, to leading order;
    # values are good to some 20 units of rounding.
    X, Y, h = rng.standard_normal((3, 4)), rng.standard_normal((5, 4)), 5e-4
    for name, got in zip(
        kernel.hyperparameters(), kernel.hyperparameter_gradient(X, Y), strict=True
    ):
        want, coarse = (difference(kernel, name, X, Y, step) for step in (h, 2 * h))
        off = np.abs(got - want)
        assert (off <= np.abs(coarse - want) / 4 + 30 * EPS * np.abs(kernel(X, Y)).max() / h).all()


def test_gradient_of_a_network_in_fifty_digits(rng):
    """The recursion in mpmath, and its own numerical derivative at 50 digits."""
    X = rng.standard_normal((3, 4))
    sizes = (1.3, 0.4, 1.1, 0.2)
    net = kc.Sequential(kc.Dense(*sizes[:2]), kc.Erf(), kc.Dense(*sizes[2:]))
    got = net.ntk.hyperparameter_gradient(X)
    with mp.workdps(50):
        for k in range(4):

            def entry(value, i, j, k=k):
                s = [value if k == m else mp.mpf(x) for m, x in enumerate(sizes)]
                layers = (oracle.Dense(*s[:2]), oracle.Act("Erf"), oracle.Dense(*s[2:]))
                found = oracle.kernels(layers, X[[i]], X[[j]], arithmetic=oracle.Exact)
                return found[1][0, 0]

            for i, j in ((0, 0), (0, 1), (1, 2)):
                want = mp.diff(lambda v, i=i, j=j: entry(v, i, j), mp.mpf(sizes[k]))
                assert_allclose(got[k, i, j], float(want), rtol=100 * EPS, atol=100 * EPS)


@pytest.mark.parametrize("kernel", [RESIDUAL.ntk, kc.Laplacian(2.0), deep(kc.Tanh()).ntk], ids=repr)
def test_weights_sum_over_tiles(kernel, rng):
    X, Y = rng.standard_normal((270, 2)), rng.standard_normal((300, 2))
    w = rng.standard_normal((270, 300))
    each = kernel.hyperparameter_gradient(X, Y)
    want, size = np.einsum("ij,pij->p", w, each), np.einsum("ij,pij->p", np.abs(w), np.abs(each))
    # sums of 81,000 terms in another order: errors grow as the root, and add up at worst
    tolerance = 1000 * EPS * size
    assert (np.abs(kernel.hyperparameter_gradient(X, Y, w) - want) <= tolerance).all()
    w = w[:, :270]  # which is not symmetric
    want = kernel.hyperparameter_gradient(X, X, w)
    got = kernel.hyperparameter_gradient(X, weights=w, n_threads=1)
    # next to the diagonal, where rows are less than 1e-3 of a radian apart, ten digits are lost
    assert (np.abs(got - want) <= tolerance + 1e-10 * size).all()
    assert_array_equal(got, kernel.hyperparameter_gradient(X, weights=w, n_threads=3))


def test_derivatives_on_the_diagonal_are_those_of_the_diagonal(rng):
    # where duals of functions with kinks have an infinite second derivative, which counts for none
    X, kernel, h = rng.standard_normal((5, 3)), deep(kc.Relu()).ntk, 1e-4
    for name, got in zip(kernel.hyperparameters(), kernel.hyperparameter_gradient(X), strict=True):
        value = kernel.hyperparameters()[name]
        up, down = (kernel.replace(**{name: value + t}).diag(X) for t in (h, -h))
        # the error of differences is h^2 times a third derivative, here of a polynomial
        assert_allclose(np.diag(got), (up - down) / (2 * h), rtol=1e-6)


def test_some_names_in_any_order(rng):
    X, kernel = rng.standard_normal((4, 2)), 2 * kc.Matern(1.5, 3.0) + kc.Gaussian(1.0)
    assert list(kernel.hyperparameters()) == [
        "left__kernel__lengthscale", "left__factor", "right__lengthscale",
    ]  # fmt: skip
    whole = kernel.hyperparameter_gradient(X)
    names = ["right__lengthscale", "left__factor"]
    assert_array_equal(kernel.hyperparameter_gradient(X, names=names), whole[[2, 1]])
    assert kernel.hyperparameter_gradient(X, names=[]).shape == (0, 4, 4)
    assert kernel.hyperparameter_gradient(X, weights=np.ones((4, 4)), names=[]).shape == (0,)


def test_what_can_be_chosen_is_positive():
    net = kc.Sequential(kc.Dense(1.5, 0.1), kc.Relu(), kc.Dense())
    names = [f"network__layers__{k}" for k in ("0__w_std", "0__b_std", "2__w_std")]
    assert net.ntk.hyperparameters() == dict(zip(names, (1.5, 0.1, 1.0), strict=True))
    assert kc.Polynomial(2, 1.0, 0.0).hyperparameters() == {"scale": 1.0}
    assert kc.ArcCosine(1).hyperparameters() == {}
    assert "network__layers__1__w_std" in kc.presets.cntk(2).ntk.hyperparameters()
    assert RESIDUAL.ntk.hyperparameters()["network__layers__1__shortcut__0__w_std"] == 0.8
    for kernel in KERNELS:
        assert kernel.replace(**kernel.hyperparameters()) == kernel


def test_single_precision_is_rounded_from_double(rng):
    X = rng.standard_normal((4, 3)).astype(np.float32)
    got = RESIDUAL.ntk.hyperparameter_gradient(X)
    assert got.dtype == np.float32
    want = RESIDUAL.ntk.hyperparameter_gradient(X.astype(float))
    assert_array_equal(got, want.astype(np.float32))


def test_rows_of_zeros_and_no_rows(rng):
    X, none = np.zeros((2, 3)), np.ones((0, 3))
    for kernel in (kc.presets.mlp(2, b_std=0.1).ntk, deep(kc.Tanh()).ntk, kc.Laplacian(1.0)):
        assert np.isfinite(kernel.hyperparameter_gradient(X, rng.standard_normal((3, 3)))).all()
        assert np.isfinite(kernel.hyperparameter_gradient(X)).all()
        p = len(kernel.hyperparameters())
        assert kernel.hyperparameter_gradient(none, X).shape == (p, 0, 2)
