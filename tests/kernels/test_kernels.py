"""Classical kernels, diagonals, profiles, algebra, and kernels as values."""

import copy
import math
import pickle

import mpmath as mp
import numpy as np
import pytest
from oracle import kernels as oracle

import kernelcore as kc

DIM = 4
NET = kc.presets.mlp(2)
RESIDUAL = kc.Sequential(
    kc.Dense(1.2, 0.1),
    kc.Residual(kc.Erf(), kc.Dense(1.1), shortcut=kc.Dense(0.8)),
    kc.Relu(),
    kc.Dense(),
)


def points(rng, n, dtype):
    """Rows at distances from 0 to 10, one of them a copy, one zero, one close to another."""
    x = (rng.standard_normal((n, DIM)) * rng.uniform(0.1, 3, (n, 1))).astype(dtype)
    x[-1] = x[0]
    x[-2] = x[1] * dtype.type(1 + 1e-3)
    return x


# Bounds, in units of roundings u = eps/2, relative to the value or to `size`:
#   distance   differences 1, squares and sum d + 2: a sum s is good to (d + 4) u, a root to half
#   exponent   the constant and its product 2 more, hence |log k| times as much, and exp itself 4
#   product    each of d factors 1 + e^2 with e to 2 u: at most 6 u each
#   inner      unit rows 2 each, the sum d: (d + 4) u of |x| |y|


def exponential_bound(want, a, b):
    return (DIM + 8) * abs(float(mp.log(want))) + 8


MATERN_LENGTHSCALE = 1.3


def matern_bound(nu):
    # |d log k / d log r| = r K_(nu-1)(r)/K_nu(r) <= r, and 2p + 8 for the polynomial. Through the
    # Bessel function the exponents nu log r, log Gamma, r and log K each carry a rounding of their
    # size, and SciPy's K_nu is good to 1e-13.
    p = nu - 0.5

    def bound(want, a, b):
        r = float(mp.sqrt(2 * nu * oracle.squared(a, b))) / MATERN_LENGTHSCALE
        if p == int(p) and nu <= 20.5:
            return (DIM + 8) * r + 2 * p + 12
        sizes = nu * abs(math.log(r)) + math.lgamma(nu) + 2 * r if r else 0
        return (DIM + 8) * r + 8 * sizes + 1024

    return bound


CLASSICAL = {
    "gaussian": (kc.Gaussian(1.7), oracle.gaussian(1.7), exponential_bound),
    "narrow": (kc.Gaussian(0.05), oracle.gaussian(0.05), exponential_bound),
    "laplacian": (kc.Laplacian(2.3), oracle.laplacian(2.3), exponential_bound),
    "manhattan": (
        kc.Laplacian(2.3, norm=1), oracle.laplacian(2.3, 1), exponential_bound
    ),
    "cauchy": (kc.Cauchy(0.8), oracle.cauchy(0.8), lambda want, a, b: 8 * DIM + 4),
    **{
        f"matern {nu}": (
            kc.Matern(nu, MATERN_LENGTHSCALE),
            oracle.matern(nu, MATERN_LENGTHSCALE),
            matern_bound(nu),
        )
        for nu in (
            0.5, 1.5, 2.5, 4.5, 20.5, 0.3, 0.7, 1.0, 1 + 1e-9, 1.99, 2.0, 3.7, 5.9, 30.25, 200.25
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSICAL)
def test_kernels_of_a_distance(name, dtype, rng):
    kernel, value, bound = CLASSICAL[name]
    x, y = points(rng, 9, dtype), points(rng, 6, dtype)
    y[2] = x[3]
    u, tiny = np.finfo(dtype).eps / 2, float(np.finfo(dtype).tiny)
    for left, right, got in ((x, y, kernel(x, y)), (x, x, kernel(x))):
        want = oracle.entries(value, left, right)
        assert got.dtype == dtype
        for i, j in np.ndindex(got.shape):
            a, b = ([mp.mpf(float(v)) for v in row] for row in (left[i], right[j]))
            allowed = bound(want[i, j], a, b) * u * want[i, j] + tiny
            assert abs(float(got[i, j]) - want[i, j]) <= allowed, (
                i,
                j,
                got[i, j],
                mp.nstr(want[i, j], 17),
            )
    assert (np.diagonal(kernel(x)) == 1).all()
    assert kernel(x)[0, -1] == 1


ANGULAR = {
    **{
        f"polynomial {degree} {scale} {offset}": (
            kc.Polynomial(degree, scale, offset), oracle.polynomial(degree, scale, offset), degree
        )
        for degree, scale, offset in ((1, 1.0, 0.0), (2, 1.0, 1.0), (3, 0.5, 0.0), (7, 0.1, 2.0))
    },
    **{f"arc-cosine {n}": (kc.ArcCosine(n), oracle.arc_cosine(n), n) for n in (0, 1, 2, 3, 6)},
}  # fmt: skip


@pytest.mark.parametrize("name", ANGULAR)
def test_kernels_of_angle_and_norms(name, dtype, rng):
    kernel, value, degree = ANGULAR[name]
    x, y = points(rng, 7, dtype), points(rng, 5, dtype)
    u = np.finfo(dtype).eps / 2
    for left, right, got in ((x, y, kernel(x, y)), (x, x, kernel(x))):
        want = oracle.entries(value, left, right)
        assert got.dtype == dtype
        own = [
            [value(a, a) for a in ([mp.mpf(float(v)) for v in row] for row in side)]
            for side in (left, right)
        ]
        for i, j in np.ndindex(got.shape):
            # The inner product to (d + 4) u of the norms, its power (degree + 1) times that, the
            # standard deviations, powers themselves, twice 2 degree; relative to the diagonals.
            # Step's kappa0 has an infinite slope at u = 1, but 1 - u comes from the rows there.
            size = mp.sqrt(own[0][i] * own[1][j])
            allowed = (2 * (DIM + 4) * (degree + 1) + 4 * degree + 16) * u * size
            assert abs(float(got[i, j]) - want[i, j]) <= allowed, (
                i,
                j,
                got[i, j],
                mp.nstr(want[i, j], 17),
            )
        if left is right:
            assert (
                np.abs(np.diagonal(got) / np.array(own[0], float) - 1) <= (4 * degree + 4) * u
            ).all()


@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_the_oracle_agrees_with_cho_and_saul(order, rng):
    x, y = rng.standard_normal((3, DIM)), rng.standard_normal((2, DIM))
    got, want = (
        oracle.entries(f(order), x, y) for f in (oracle.arc_cosine, oracle.arc_cosine_integral)
    )
    assert (abs(got / want - 1) < 1e-40).all()


def test_arc_cosine_is_the_covariance_of_a_rectified_layer(rng):
    """2 E[relu^n relu^n] of the raw inputs: Input(sum), Dense, RectifiedPower."""
    x = rng.standard_normal((6, 3))
    for order in range(4):
        net = kc.Sequential(kc.Input(sum=True), kc.Dense(), kc.RectifiedPower(order))
        np.testing.assert_array_equal(kc.ArcCosine(order)(x), 2 * net.nngp(x))


# ---- diagonals

DIAGONALS = {
    "nngp": NET.nngp, "ntk": NET.ntk, "residual": RESIDUAL.ntk, "polynomial": kc.Polynomial(3),
    "arc-cosine": kc.ArcCosine(2), "gaussian": kc.Gaussian(1.0), "bessel": kc.Matern(1.2, 1.0),
    "cauchy": kc.Cauchy(1.0), "multiple": 0.3 * NET.ntk, "twice": 0.7 * (0.3 * NET.ntk),
    "sum": NET.ntk + RESIDUAL.nngp, "product": NET.ntk * RESIDUAL.nngp * kc.ArcCosine(1),
    "mixed": 0.3 * (NET.ntk + 0.7 * kc.Gaussian(1.0)) * (RESIDUAL.ntk * 1.1 + NET.nngp),
    "nested": (NET.ntk * kc.ArcCosine(1) + NET.nngp) * 0.1 + (RESIDUAL.ntk + NET.ntk) * NET.nngp,
    "right": NET.ntk + (RESIDUAL.nngp + 0.3 * (kc.ArcCosine(1) + NET.nngp)),
}  # fmt: skip


@pytest.mark.parametrize("name", DIAGONALS)
def test_diag_is_the_diagonal_to_the_bit(name, dtype, rng):
    kernel, x = DIAGONALS[name], points(rng, 40, dtype)
    got = kernel.diag(x)
    assert got.dtype == dtype
    assert got.shape == (40,)
    np.testing.assert_array_equal(got, np.diagonal(kernel(x)))
    np.testing.assert_array_equal(got, np.diagonal(kernel(x, x.copy())))


# ---- profiles

COSINES = np.array([-1.0, -0.95, -0.3, 0.0, 0.2, 0.7, 0.99, 1.0])


def on_sphere(u, radius, dim):
    """A row, and one for each cosine, all of the same norm."""
    x, y = np.zeros((1, dim)), np.zeros((len(u), dim))
    x[0, 0] = radius
    y[:, 0], y[:, 1] = radius * u, radius * np.sqrt(1 - u * u)
    return x, y


PROFILES = {
    "nngp": NET.nngp, "ntk": NET.ntk, "residual": RESIDUAL.ntk,
    "erf": kc.presets.mlp(2, kc.Erf(), 1.2, 0.2).ntk,
    "tanh": kc.presets.mlp(1, kc.Tanh()).nngp, "polynomial": kc.Polynomial(3, 0.5, 0.2),
    "arc-cosine": kc.ArcCosine(2), "gaussian": kc.Gaussian(0.9), "laplacian": kc.Laplacian(1.1),
    "matern": kc.Matern(2.5, 0.8), "bessel": kc.Matern(1.2, 0.8), "sum": NET.ntk + 2 * NET.nngp,
    "product": kc.Gaussian(1.0) * kc.Polynomial(2),
    "mixed": (NET.ntk + kc.Gaussian(1.0)) * kc.ArcCosine(1),
}  # fmt: skip


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize(("radius", "dim"), [(1.0, 2), (1.7, 3), (0.2, 5)])
def test_profile_is_the_kernel_on_a_sphere(name, radius, dim):
    kernel = PROFILES[name]
    x, y = on_sphere(COSINES, radius, dim)
    want = kernel(x, y)[0]
    got = kernel.profile(COSINES, radius=radius, dim=dim)
    assert got.dtype == np.float64
    # Rounding y moves its cosine and its norm by eps; kernels of |x - y| or of the angle move by
    # that over the sine, which is 0.14 at least where it is not zero, and there y is exact.
    top = kernel.profile(1.0, radius=radius, dim=dim)
    np.testing.assert_allclose(got, want, rtol=0, atol=200 * 2.0**-52 * float(top))


def test_default_radius():
    u = COSINES.reshape(2, 4)
    for dim in (1, 3, 784):
        # Networks: sqrt(dim), an input variance of 1, so that the dimension drops out.
        got = NET.ntk.profile(u, dim=dim)
        assert got.shape == (2, 4)
        np.testing.assert_allclose(got, NET.ntk.profile(u), rtol=1e-14)
        np.testing.assert_array_equal(got, NET.ntk.profile(u, radius=math.sqrt(dim), dim=dim))
        np.testing.assert_array_equal(
            kc.Gaussian(1.0).profile(u, dim=dim), kc.Gaussian(1.0).profile(u, radius=1.0)
        )
    # In one dimension the two defaults agree, and sums of both kinds need no radius.
    both = NET.ntk + kc.Gaussian(1.0)
    np.testing.assert_array_equal(both.profile(u), both.profile(u, radius=1.0))
    assert NET.ntk.profile(1).shape == ()
    assert NET.ntk.profile([]).shape == (0,)


def test_profile_of_an_input_that_sums():
    """<x, x'> instead of <x, x'>/d: a unit radius gives the input variance 1."""
    summed = kc.Sequential(kc.Input(sum=True), *NET.layers)
    for dim in (1, 3):
        np.testing.assert_array_equal(
            summed.ntk.profile(COSINES, radius=1.0, dim=dim), NET.ntk.profile(COSINES)
        )
        np.testing.assert_allclose(
            summed.ntk.profile(COSINES, dim=dim), NET.ntk.profile(COSINES), rtol=1e-14
        )


# ---- algebra


def algebra(a, b, c):
    """Kernels or matrices alike."""
    yield a + b
    yield a * b
    yield 2.5 * a
    yield a * 0.5 + b
    yield a + b + c
    yield a * b * c
    yield (a + b) * c
    yield a * (b + c)
    yield a + b * c
    yield (a * b) + (b * c)
    yield (a + b) * (b + c)
    yield 0.25 * (a + 3 * b) * (2 * (b * c)) + 0.1 * (c + a * a)
    yield ((a + b) * (a + c)) * ((b * c) + (a + a))


@pytest.mark.parametrize("symmetric", [True, False])
def test_algebra_is_that_of_matrices(dtype, rng, symmetric):
    x, y = points(rng, 31, dtype), None if symmetric else points(rng, 14, dtype)
    parts = NET.ntk, kc.Gaussian(1.4), kc.Polynomial(2, 0.3)
    combined = list(algebra(*parts))
    separate = list(algebra(*(k(x, y).astype(np.float64) for k in parts)))
    # Terms of unlike sign may cancel in a sum: the same expression of sizes bounds the roundings,
    # of which none of these has more than 12.
    sizes = list(algebra(*(np.abs(k(x, y)).astype(np.float64) for k in parts)))
    for kernel, want, size in zip(combined, separate, sizes, strict=True):
        out = np.full(want.shape, np.nan, dtype)
        got = kernel(x, y, out=out)
        assert got is out
        assert (np.abs(got - want) <= 12 * np.finfo(dtype).eps * size).all(), kernel


def test_multiples_of_numpy_numbers():
    for factor in (2, 2.0, np.float32(2), np.float64(2), np.int64(2)):
        assert factor * NET.ntk == 2.0 * NET.ntk
        assert NET.ntk * factor == 2.0 * NET.ntk
    zero = 0 * NET.ntk
    np.testing.assert_array_equal(zero(np.ones((2, 3))), np.zeros((2, 2)))


# ---- kernels and layers are values

VALUES = {
    repr(value): value
    for value in (
        kc.Input(), kc.Input(sum=True), kc.Dense(), kc.Dense(2**0.5, 0.1, False), kc.Conv(3),
        kc.Conv((3,), 2, "circular", 1.5, 0.1, False), kc.Conv((3, 5), (2, 1)), kc.AvgPool(2),
        kc.AvgPool((2, 3), (1, 2), "same"), kc.GlobalAvgPool(), kc.Flatten(), kc.Flatten(sum=True),
        kc.Relu(), kc.Relu(shift=0.5), kc.LeakyRelu(0.1), kc.Abs(), kc.Step(), kc.Sign(shift=1),
        kc.RectifiedPower(2), kc.Erf(), kc.Gelu(shift=-0.5), kc.Sin(), kc.Cos(), kc.Exp(),
        kc.GaussianBump(), kc.Hermite(3), kc.Monomial(2, shift=0.1), kc.PowerSeries([0, 1, 0.5]),
        kc.Identity(), kc.Tanh(),
        kc.Sigmoid(), kc.Silu(shift=0.2), kc.Softplus(), kc.Elu(), kc.Selu(shift=0.1),
        kc.OneKink(0.5, (1, 2, 0), (0, 1, 1)), NET, RESIDUAL, kc.Sequential(), RESIDUAL.layers[1],
        NET.nngp, RESIDUAL.ntk, kc.Gaussian(1), kc.Laplacian(2, norm=1), kc.Cauchy(0.5),
        kc.Matern(1.5, 2), kc.Polynomial(3), kc.Polynomial(2, 0.5, 0), kc.ArcCosine(1),
        *algebra(NET.ntk, kc.Gaussian(2), kc.Cauchy(1)),
    )
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values_print_compare_copy_and_pickle(name):
    value = VALUES[name]
    names = {k: getattr(kc, k) for k in kc.__all__}
    for other in (
        eval(repr(value), names),
        copy.copy(value),
        copy.deepcopy(value),
        *(pickle.loads(pickle.dumps(value, p)) for p in range(2, pickle.HIGHEST_PROTOCOL + 1)),
    ):
        assert other == value
        assert hash(other) == hash(value)
        assert repr(other) == repr(value)
        assert not other != value


def test_unlike_values_differ():
    distinct = list(VALUES.values())
    for i, a in enumerate(distinct):
        assert [b == a for b in distinct].index(True) == i, a
        assert a != "something else"
    assert len(set(distinct)) == len(distinct)
    assert NET.nngp != NET.ntk
    assert kc.Relu() != kc.LeakyRelu(0.0)


def half(x):
    return x / (2 + x * x)


def test_callables_compare_by_function_and_pickle_with_it(rng):
    a, b = kc.Activation(half), kc.Activation(half, shift=0.5)
    assert a == kc.Activation(half)
    assert a != b
    assert pickle.loads(pickle.dumps(b)) == b
    x = rng.standard_normal((3, 2))
    net = kc.Sequential(kc.Dense(), b, kc.Dense())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(net.ntk))(x), net.ntk(x))


def test_pickled_kernels_compute_the_same(rng, dtype):
    x = points(rng, 8, dtype)
    for kernel in (*PROFILES.values(), kc.presets.mlp(1, kc.Elu()).ntk):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(x), kernel(x))


def test_sequences_inside_are_opened_up():
    inner = kc.Sequential(kc.Relu(), kc.Dense(2.0))
    assert kc.Sequential(kc.Dense(), inner, inner) == kc.Sequential(
        kc.Dense(), kc.Relu(), kc.Dense(2.0), kc.Relu(), kc.Dense(2.0)
    )
    block = kc.Residual(inner, shortcut=kc.Sequential(kc.Dense()))
    assert block == kc.Residual(kc.Relu(), kc.Dense(2.0), shortcut=(kc.Dense(),))


def test_preset_mlp():
    assert kc.presets.mlp(0) == kc.Sequential(kc.Dense())
    net = kc.presets.mlp(2, kc.Erf(), w_std=1.5, b_std=0.1)
    dense = kc.Dense(1.5, 0.1)
    assert net == kc.Sequential(dense, kc.Erf(), dense, kc.Erf(), dense)
