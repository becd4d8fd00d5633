"""Drivers of the device on the host twin, behind arrays that stand in for CuPy's, against the CPU.

Rows are summed in the order of the CPU, and have its bits; but where two rows are so close that
their distance is summed along vectors. Images have the CPU's operations on every entry. What they
add up to is summed in another order: see ``bound``.
"""

import itertools

import numpy as np
import pytest
from gpu import standin, twin
from messages import stable

import kernelcore as kc
from kernelcore import engine
from kernelcore.engine.gpu import drivers
from kernelcore.engine.gpu import images as _images
from kernelcore.layers import _layers, activations, maps
from kernelcore.program import Code

DTYPES = (np.float32, np.float64)
EPS = {np.float32: 2.0**-23, np.float64: 2.0**-52}


def up(a):
    return None if a is None else standin.asarray(a)


def both(kernel, X, Y=None):
    """The kernel on the device, and on the CPU."""
    return kernel(up(X), up(Y))._view, kernel(X, Y)


# ---- rows


def points(n, dtype, d=37, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)).astype(dtype)


def rows(dtype):
    """More rows than a tile has; two copies, an opposite, two zeros."""
    X, Y = points(131, dtype), points(67, dtype, seed=1)
    Y[3], Y[4], Y[5], X[9] = X[5], -X[6], 0, 0
    return X, Y


RAMP = kc.Relu(shift=0.3)
ACTIVATIONS = [
    kc.Abs(), kc.Activation(np.arctan), kc.Cos(), kc.Elu(), kc.Erf(), kc.Exp(),
    kc.GaussianBump(), kc.Gelu(), kc.Hermite(3), kc.Identity(), kc.LeakyRelu(0.2),
    kc.Monomial(2), kc.OneKink(0.0, (0.0, 1.0, 0.0), (-0.5, 0.0, 0.7)),
    kc.PowerSeries([0.1, 1.0, 0.3]),
    kc.RectifiedPower(2), kc.RectifiedPower(5), kc.Relu(), RAMP, kc.Selu(), kc.Sigmoid(), kc.Sign(),
    kc.Silu(), kc.Sin(), kc.Softplus(), kc.Step(), kc.Step(shift=0.2), kc.Tanh(),
]  # fmt: skip
MAPS = [
    kc.DotProduct(kc.profiles.Exp(0.6)), kc.DotProduct([0.5, 0.3, 0.2]), kc.Project(),
    kc.DotProduct(lambda u: 1 / (2 - u)),
]  # fmt: skip


def network(activation):
    return kc.Sequential(
        kc.Dense(1.2, 0.1), activation, kc.Dense(1.1), kc.Relu(), kc.Dense(1.0, 0.2)
    )


def kernels_of(network):
    """Both kernels, or the NNGP kernel alone where there is no derivative."""
    try:
        return network.nngp, network.ntk
    except TypeError:
        return (network.nngp,)


KERNELS = [
    kc.Gaussian(4.0), kc.Laplacian(6.0), kc.Laplacian(40.0, norm=1), kc.Cauchy(3.0),
    kc.Matern(1.5, 4.0), kc.Matern(2.5, 4.0), kc.Matern(0.7, 4.0), kc.Polynomial(3),
    kc.ArcCosine(0), kc.ArcCosine(1), kc.ArcCosine(2),
    kc.presets.mlp(3).ntk, kc.Gaussian(4.0) + kc.Laplacian(6.0), 2 * kc.Gaussian(4.0),
    kc.Gaussian(4.0) * kc.ArcCosine(1),
    kc.Sequential(kc.Dense(), kc.Residual(kc.Relu(), kc.Dense()), kc.Relu(), kc.Dense()).ntk,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("activation", [*ACTIVATIONS, *MAPS], ids=stable)
def test_networks_on_rows_have_the_bits_of_the_cpu(device, activation, dtype):
    X, Y = rows(dtype)
    for kernel in kernels_of(network(activation)):
        np.testing.assert_array_equal(*both(kernel, X[:20], Y[:12]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_of_rows_have_the_bits_of_the_cpu(device, kernel, dtype):
    X, Y = rows(dtype)
    np.testing.assert_array_equal(*both(kernel, X, Y))
    np.testing.assert_array_equal(*both(kernel, X))
    np.testing.assert_array_equal(kernel.diag(up(X))._view, kernel.diag(X))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 70), (130, 1), (0, 3), (3, 0), (65, 129)])
def test_matrices_of_any_shape(device, shape, dtype):
    X, Y = points(shape[0], dtype), points(shape[1], dtype, seed=1)
    np.testing.assert_array_equal(*both(kc.presets.mlp(2).ntk, X, Y))


@pytest.mark.parametrize("d", [1, 15, 16, 17, 128, 129, 300])
def test_sums_over_any_number_of_coordinates(device, d):
    X = points(5, np.float32, d)
    for kernel in (kc.presets.mlp(1).ntk, kc.Gaussian(5.0), kc.Laplacian(9.0, norm=1)):
        np.testing.assert_array_equal(*both(kernel, X))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_are_close(device, dtype):
    """1 - u is summed in another order: d terms, each with two roundings, relative to itself."""
    X = points(40, dtype)
    Y = X + points(40, dtype, seed=1) * 10.0 ** np.linspace(-6, -2, 40)[:, None].astype(dtype)
    found, expected = both(kc.presets.mlp(2).ntk, X, Y)
    # The NTK has slope 1/(pi sqrt(2 delta)) of kappa0 at most, so that an error of e delta in
    # delta gives one of e sqrt(delta) < e.
    np.testing.assert_allclose(found, expected, rtol=2 * 37 * EPS[dtype])


# ---- images


def bound(dtype, side):
    """Of sums over side^4 entries, all positive or small: by halves and in rows.

    A thread adds side^2/256 entries of a plane and the block eight times; the CPU adds side and
    side. Poolings and windows add a few tens on both sides. Roundings of both are relative to sums
    of sizes, of which no entry here is less than a quarter.
    """
    return 4 * (2 * side + 8 + 30) * EPS[dtype]


def pictures(n, dtype, side=8, channels=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, side, side, channels)).astype(dtype)


def conv(size=3, b_std=0.0, **options):
    return kc.Conv(size, w_std=1.4, b_std=b_std, **options)


def stack(*layers, end=None):
    return kc.Sequential(*layers, end or kc.GlobalAvgPool(), kc.Dense(1.1))


RELU = kc.Relu()
IMAGES = {
    "GlobalAvgPool": stack(conv(), RELU, conv(), RELU),
    "Flatten": stack(conv(), RELU, conv(), RELU, end=kc.Flatten()),
    "bias": stack(conv(b_std=0.2), RELU, conv(b_std=0.1), RELU),
    "Dense": stack(conv(), RELU, kc.Dense(1.2, 0.1), RELU),
    "Input": kc.Sequential(kc.Input(sum=True), conv(), RELU, kc.Flatten(), kc.Dense()),
    "circular": stack(conv(padding="circular"), RELU, conv(padding="circular"), RELU),
    "valid": stack(conv(padding="valid"), RELU, conv(2, padding="valid"), RELU),
    "stride": stack(conv(stride=2), RELU, conv(), RELU),
    "rectangle": stack(conv((3, 2)), RELU, conv((1, 3), stride=(1, 2)), RELU),
    "wide": stack(conv(7), RELU, conv(9, padding="circular"), RELU),
    "AvgPool": stack(conv(), RELU, kc.AvgPool(2), conv(), RELU, kc.AvgPool(2), conv(), RELU),
    "overlapping": stack(conv(), RELU, kc.AvgPool(3, stride=1, padding="same"), conv(), RELU),
    "overlapping wide": stack(
        conv(), RELU, kc.AvgPool(7, stride=1, padding="same"), conv(), RELU, end=kc.Flatten()
    ),
    "overlapping stride": stack(conv(), RELU, kc.AvgPool(3, stride=2), conv(), RELU),
    "GaussianPool": stack(conv(), RELU, kc.GaussianPool(2), conv(), RELU),
    "Residual": stack(conv(), kc.Residual(RELU, conv()), RELU),
    "shortcut": stack(conv(), kc.Residual(RELU, conv(stride=2), shortcut=conv(1, stride=2)), RELU),
    "nested": stack(conv(), kc.Residual(kc.Residual(RELU, conv()), RELU, conv()), RELU),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", IMAGES)
def test_networks_on_images_agree_with_the_cpu(device, name, dtype):
    X, Y = pictures(3, dtype), pictures(2, dtype, seed=1)
    Y[1] = X[0]
    for kernel in kernels_of(IMAGES[name]):
        for found, expected in (
            both(kernel, X, Y), both(kernel, X), (kernel.diag(up(X))._view, kernel.diag(X)),
        ):  # fmt: skip
            np.testing.assert_allclose(found, expected, rtol=bound(dtype, 8))


@pytest.mark.parametrize("activation", [*ACTIVATIONS, *MAPS], ids=stable)
def test_activations_on_images_agree_with_the_cpu(device, activation):
    """In float64, where duals that are computed from covariances show what they are good for.

    Two entries in a patch have correlations off by 10 roundings; a dual may have slope 1/sqrt(eps)
    there only where it is a copy, and copies are exact.
    """
    X = pictures(2, np.float64, side=5)
    for kernel in kernels_of(stack(conv(), activation, conv(), activation)):
        found, expected = both(kernel, X)
        scale = np.sqrt(np.outer(*2 * (np.abs(expected.diagonal()),)))
        assert np.abs(found - expected).max() <= (40 * scale * EPS[np.float64]).max()


def test_signals(device):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 12, 2))
    net = kc.Sequential(
        kc.Conv((3,), w_std=1.4), RELU, kc.AvgPool((2,)), kc.Conv((3,)), RELU, kc.GlobalAvgPool(),
        kc.Dense(),
    )  # fmt: skip
    np.testing.assert_allclose(*both(net.ntk, X), rtol=bound(np.float64, 12))


@pytest.mark.parametrize("name", ["GlobalAvgPool", "AvgPool", "overlapping", "nested"])
def test_planes_that_do_not_fit_shared_memory_have_the_same_bits(device, name):
    X, kernel = pictures(2, np.float32), IMAGES[name].ntk
    small = kernel(up(X))._view
    assert not any("large" in name for _, name in device.launched)
    device.attributes["MaxSharedMemoryPerBlockOptin"] = 3000
    np.testing.assert_array_equal(kernel(up(X))._view, small)
    assert (0, "spatial_tangent_large_f32") in device.launched


@pytest.mark.parametrize("name", ["GlobalAvgPool", "AvgPool"])
def test_blocks_and_tiles_change_no_bit(device, name, monkeypatch):
    X, kernel = pictures(5, np.float32, side=6), IMAGES[name].ntk
    whole = kernel(up(X))._view
    device.attributes["MultiProcessorCount"] = 1
    monkeypatch.setattr(_images, "PER_PROCESSOR", 1)
    monkeypatch.setattr(_images, "TILE_BYTES", 1)
    np.testing.assert_array_equal(kernel(up(X))._view, whole)
    np.testing.assert_array_equal(kernel(up(X[:2]), up(X[2:]))._view, whole[:2, 2:])


# ---- cyclic signals


PROFILES = [[0.3, 0.5, 0.2, 0.1], kc.profiles.Exp(0.6), kc.profiles.Kappa1(), np.cosh]


@pytest.mark.parametrize("profile", PROFILES[1:], ids=repr)
def test_profiles_of_cyclic_signals(device, profile):
    X = np.sign(points(4, np.float64, 9))
    kernel = kc.CyclicConvolution(3, 2, profile)
    np.testing.assert_allclose(*both(kernel, X), rtol=(9 + 12) * EPS[np.float64])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("patch", "pool", "d"), [(1, 1, 7), (3, 2, 9), (5, 9, 9), (9, 1, 9), (22, 4, 30)]
)
def test_cyclic_signals_agree_with_the_cpu(device, patch, pool, d, dtype):
    X = np.sign(points(4, dtype, d))
    kernel = kc.CyclicConvolution(patch, pool, PROFILES[0])
    # Sums of d positive numbers, by halves and in four parts.
    np.testing.assert_allclose(*both(kernel, X), rtol=(d + 12) * EPS[dtype])
    np.testing.assert_allclose(*both(kernel, X, X[:2]), rtol=(d + 12) * EPS[dtype])
    found = kernel.diag(up(X))._view
    np.testing.assert_array_equal(found, kernel(up(X))._view.diagonal())


@pytest.mark.parametrize(
    ("patch", "pool", "h"),
    [
        (3, 2, kc.ArcCosine(1)),
        (2, 5, kc.ArcCosine(1)),
        (3, 2, 2 * kc.Gaussian(2.0) + kc.ArcCosine(0)),
        (3, 2, kc.Gaussian(2.0) * kc.ArcCosine(1)),
    ],
)
def test_kernels_of_patches(device, patch, pool, h):
    X, Y = points(3, np.float64, 5), points(2, np.float64, 5, seed=1)
    kernel = kc.CyclicConvolution(patch, pool, h)
    # Sums of d * pool positive numbers in some order, each with the bits of the CPU.
    near = {"rtol": 2 * 25 * EPS[np.float64]}
    np.testing.assert_allclose(*both(kernel, X, Y), **near)
    found, expected = both(kernel, X)
    np.testing.assert_allclose(found, expected, **near)
    np.testing.assert_array_equal(kernel.diag(up(X))._view, found.diagonal())


# ---- waves


@pytest.mark.parametrize("dtype", DTYPES)
def test_waves_have_the_bits_of_the_cpu(device, dtype):
    z, phases = 30 * points(7, dtype), points(1, dtype)[0]
    offered = engine.offer(up(z), "loops")
    for name, *more in (("shifted_cosines", phases), ("cosines_and_sines",)):
        columns = z.shape[1] - (not more)
        host = z[:, :columns].copy()
        there = up(host)
        getattr(offered, name)(there, *map(up, more), 0.7)
        getattr(engine.loops, name)(host, *more, 0.7)
        np.testing.assert_array_equal(there._view, host)


def test_what_is_not_offered():
    assert engine.offer(points(1, np.float32), "loops") is None
    assert not hasattr(engine.BACKENDS[1], "nothing")


# ---- projections


def test_projections_have_the_bits_of_one_lane(device):
    """A job is a thread that runs the loops of the CPU, here at one lane: sums in another order."""
    n = np.tile(np.arange(0.0, 40, 2), (2, 1))
    x = np.array([0.7, 0.5])[:, None] ** n / (1 + n)
    first, watched = np.array([0, 0]), np.array([3, 4])
    expected = engine.loops.project(n.copy(), x.copy(), 0 * n, 3, 5, first, watched, 6, 1)
    out = standin.empty((2, 6, 4), np.float64)
    sizes = [np.int64(k) for k in (2, 20, 3, 5)]
    drivers.launch(
        "gegenbauer_project", np.dtype(np.float64), drivers.Needs(), (1,), up(n), up(x), up(0 * n),
        standin.empty(n.shape), *sizes, up(first), up(watched), np.int64(6), out,
    )  # fmt: skip
    found = out._view
    np.testing.assert_array_equal(found[..., 3], expected[..., 3])
    np.testing.assert_allclose(found[..., :3], expected[..., :3], rtol=20 * EPS[np.float64])


def test_integrals_have_the_bits_of_one_lane(device):
    t, w = np.polynomial.legendre.leggauss(16)
    expected = engine.loops.integrate(t, w * np.exp(t), 3, 8)
    out = standin.empty(8)
    drivers.launch(
        "gegenbauer_integrate", np.dtype(np.float64), drivers.Needs(), (1,), up(t),
        up(w * np.exp(t)), np.int64(16), np.float64(3), np.int64(8), standin.empty(32), out,
    )  # fmt: skip
    # Sums of 16 terms that add up to at most e in size.
    np.testing.assert_allclose(out._view, expected, rtol=0, atol=16 * np.e * EPS[np.float64])


# ---- what travels


def test_only_norms_and_variances_travel_to_the_host(device):
    X = points(20, np.float32)
    kc.presets.mlp(3).ntk(up(X), up(X[:5]))
    assert device.copied == 8 * 25
    device.copied = 0
    IMAGES["GlobalAvgPool"].ntk(up(pictures(3, np.float32)))
    assert device.copied == 3 * 8 * 64 + 3  # and a byte for each image that is finite


# ---- threads


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_order_of_threads_changes_no_bit(device, dtype):
    """Each launch runs in three orders, with two poisons of shared memory: twin.py compares."""
    device.devices = [twin.Device("every")]
    X = points(70, dtype, 20)
    both(kc.presets.mlp(2, b_std=0.1).ntk, X)
    both(kc.Laplacian(3.0), X, X[:5])
    both(kc.CyclicConvolution(5, 3, [0.3, 0.5, 0.2]), np.sign(X[:2]))
    for name in ("GlobalAvgPool", "AvgPool", "overlapping", "circular", "nested"):
        both(IMAGES[name].ntk, pictures(2, dtype, side=4))


# ---- all that there is


def test_every_activation_is_compared():
    assert {type(a).__name__ for a in ACTIVATIONS} == set(activations.__all__)
    assert {type(m).__name__ for m in MAPS} == set(maps.__all__)


def layers_in(layers):
    for layer in layers:
        yield layer
        for inner in ("layers", "shortcut"):
            yield from layers_in(getattr(layer, inner, None) or ())


def test_every_layer_and_padding_is_compared():
    found = list(itertools.chain(*(layers_in(net.layers) for net in IMAGES.values())))
    assert {type(layer).__name__ for layer in found} >= set(_layers.__all__)
    paddings = {layer.padding for layer in found if isinstance(layer, kc.Conv)}
    assert paddings == {"same", "valid", "circular"}


def test_every_operation_is_compared(device):
    """The codes of all programs that run here, as the drivers are told them."""
    wanted = set()

    def needs(name, dtype, needs, *rest, **more):
        wanted.update(code for code in Code if needs.ops >> code & 1)

    signals = np.sign(points(2, np.float64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drivers, "launch", needs)
        patch.setattr(standin, "asnumpy", lambda a: np.ones(a.shape))
        networks = (k for a in [*ACTIVATIONS, *MAPS] for k in kernels_of(network(a)))
        for kernel, dtype in itertools.product([*KERNELS, *networks], DTYPES):
            kernel(up(points(2, dtype)))
        for profile in PROFILES:
            kc.CyclicConvolution(3, 2, profile)(up(signals))
    assert wanted == set(Code)
