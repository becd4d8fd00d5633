"""What needs a device: the drivers as they run there, against the CPU."""

import numpy as np
import pytest

import kernelcore as kc
from kernelcore.engine.gpu import devices

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


def test_a_matrix_is_where_its_points_are():
    cupy = devices.cupy()
    K = kc.Gaussian(1.0)(cupy.zeros((3, 2), np.float32))
    assert isinstance(K, cupy.ndarray)
    assert K.device == cupy.cuda.Device()
