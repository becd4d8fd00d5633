"""What needs a device: the drivers as they run there, against the CPU."""

import numpy as np
import pytest

import kernelcore as kc
from kernelcore.engine.gpu import devices, images, rows, sharing

pytestmark = pytest.mark.gpu
EPS = {np.float32: 2.0**-23, np.float64: 2.0**-52}
CONV = kc.Conv(3, w_std=1.4)
ROWS = [
    kc.presets.mlp(3, b_std=0.1).ntk, kc.Gaussian(4.0), kc.Laplacian(6.0), kc.Cauchy(3.0),
    kc.Sequential(kc.Dense(1.2), kc.Tanh(), kc.Dense(1.2), kc.Gelu(), kc.Dense()).ntk,
    kc.CyclicConvolution(5, 3, [0.3, 0.5, 0.2]),
]  # fmt: skip
IMAGES = [
    kc.Sequential(CONV, kc.Relu(), CONV, kc.Relu(), end, kc.Dense()).ntk
    for end in (kc.GlobalAvgPool(), kc.Flatten())
] + [kc.Sequential(CONV, kc.Relu(), kc.AvgPool(2), CONV, kc.Gelu(), kc.Flatten(), kc.Dense()).ntk]


def both(kernel, X):
    cupy = devices.cupy()
    there = cupy.asarray(X)
    return cupy.asnumpy(kernel(there)), cupy.asnumpy(kernel.diag(there)), kernel(X)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("kernel", ROWS, ids=repr)
def test_rows(kernel, dtype):
    """The order of operations is the CPU's, and so are roots, quotients and fused products."""
    X = np.random.default_rng(0).standard_normal((300, 40)).astype(dtype)
    found, diagonal, expected = both(kernel, X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=4 * EPS[dtype] * expected.max())
    np.testing.assert_array_equal(diagonal, found.diagonal())


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("kernel", IMAGES, ids=repr)
def test_images(kernel, dtype):
    """As on the twin: sums of positive numbers in another order."""
    X = np.random.default_rng(0).standard_normal((5, 16, 16, 3)).astype(dtype)
    found, diagonal, expected = both(kernel, X)
    np.testing.assert_allclose(found, expected, rtol=4 * 70 * EPS[dtype])
    np.testing.assert_array_equal(diagonal, found.diagonal())


@pytest.mark.parametrize("kernel", [ROWS[0], IMAGES[0]], ids=repr)
def test_devices_share_a_matrix(kernel, monkeypatch):
    """On a machine with one device that is the whole work; with several, the order is random."""
    cupy, rng = devices.cupy(), np.random.default_rng(0)
    X = cupy.asarray(rng.standard_normal((70, 40) if kernel is ROWS[0] else (9, 16, 16, 3)))
    alone, count = kernel(X), cupy.cuda.runtime.getDeviceCount()
    for inputs in (rows.Rows, images.Images):
        monkeypatch.setattr(inputs, "shared_from", 1)
    monkeypatch.setattr(sharing, "others", lambda home: tuple(range(count)))
    np.testing.assert_array_equal(cupy.asnumpy(kernel(X)), cupy.asnumpy(alone))
    with cupy.cuda.Device(count - 1):
        last = cupy.asarray(X)
    assert kernel(last).device.id == count - 1


def test_work_is_in_the_order_of_the_stream():
    cupy = devices.cupy()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        X = cupy.random.default_rng(0).standard_normal((2000, 300))
        K = ROWS[0](X)
        total = K.sum()
    stream.synchronize()
    np.testing.assert_allclose(float(total), ROWS[0](cupy.asnumpy(X)).sum(), rtol=1e-12)


def test_no_memory_is_an_error_and_leaves_the_rest(monkeypatch):
    cupy = devices.cupy()
    pool = cupy.cuda.MemoryPool()
    pool.set_limit(size=50_000_000)
    with cupy.cuda.using_allocator(pool.malloc):
        X = cupy.zeros((5000, 2), np.float32)
        with pytest.raises(
            MemoryError, match=r"^K of 5000 x 5000 float32 must fit into the memory"
        ):
            ROWS[0](X)
        assert ROWS[0](X[:100]).shape == (100, 100)


def test_a_matrix_is_where_its_points_are():
    cupy = devices.cupy()
    K = kc.Gaussian(1.0)(cupy.zeros((3, 2), np.float32))
    assert isinstance(K, cupy.ndarray)
    assert K.device == cupy.cuda.Device()
