"""Products with few columns: against NumPy, and the same bits however they are made."""

import importlib

import numpy as np
import pytest

import kernelcore as kc
from kernelcore.engine.cpu import dispatch as _dispatch
from kernelcore.linalg import thin as _thin

SHAPES = [(1, 1), (5, 7), (6, 8), (7, 9), (250, 256), (13, 257), (1, 600), (700, 601)]


@pytest.fixture(params=_dispatch.built_levels("thin"))
def driver(request, monkeypatch):
    if request.param not in _dispatch.machine_levels():
        pytest.skip("this machine does not run it")
    module = importlib.import_module(f"kernelcore._cpu.thin_{request.param}")
    monkeypatch.setattr(_dispatch, "driver", {"thin": module}.__getitem__)


def near(found, K, x, exact):
    """Two chains of sums, of m and of n terms: at most m + n roundings, relative to absolutes."""
    unit = np.finfo(K.dtype).eps / 2
    most = np.abs(K.T) @ (np.abs(K) @ np.abs(x)) if exact == "normal" else np.abs(K.T) @ np.abs(x)
    K, x = K.astype(np.longdouble), x.astype(np.longdouble)
    true = K.T @ (K @ x) if exact == "normal" else K.T @ x
    return (np.abs(found - true) <= 1.01 * (sum(K.shape) + 2) * unit * most).all()


@pytest.mark.parametrize("columns", [1, 2, 5, 16, 17, 20, 21])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_those_of_numpy(driver, dtype, shape, columns, rng):
    K = rng.standard_normal(shape).astype(dtype)
    K.flags.writeable = False
    x = rng.standard_normal((shape[1], columns)).astype(dtype)
    t = rng.standard_normal((columns, shape[0])).astype(dtype).T
    square, down = _thin.normal_product(K, x), _thin.transposed_product(K, t)
    assert (square.shape, square.dtype, down.shape, down.dtype) == (x.shape, dtype) * 2
    assert near(square, K, x, "normal")
    assert near(down, K, t, "transposed")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_products_of_empty_matrices_are_zero(driver, shape):
    K = np.empty(shape)
    assert np.array_equal(_thin.normal_product(K, np.ones((shape[1], 2))), np.zeros((shape[1], 2)))
    assert np.array_equal(
        _thin.transposed_product(K, np.ones((shape[0], 2))), np.zeros((shape[1], 2))
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_alignment_and_other_columns_change_no_bit(driver, dtype, rng):
    K = rng.standard_normal((3000, 601)).astype(dtype)
    x, t = (rng.standard_normal((size, 7)).astype(dtype) for size in (601, 3000))
    shifted = np.empty(K.size + 1, dtype)[1:].reshape(K.shape)
    shifted[...] = K
    found = []
    for threads in (1, 2, 3):
        kc.set_threads(threads)
        for a in (K, shifted):
            found.append((_thin.normal_product(a, x), _thin.transposed_product(a, t)))
    kc.set_threads(None)
    for square, down in found[1:]:
        assert np.array_equal(square, found[0][0])
        assert np.array_equal(down, found[0][1])
    for c in range(7):
        one = slice(c, c + 1)
        assert np.array_equal(_thin.normal_product(K, x[:, one]), found[0][0][:, one])
        assert np.array_equal(_thin.transposed_product(K, t[:, one]), found[0][1][:, one])


def test_arrays_begin_with_a_cache_line():
    from kernelcore.engine.memory import LINE, aligned

    for shape in [(3,), (5, 7), (2, 1, 9)]:
        a = aligned(shape, np.float32)
        assert (a.shape, a.dtype, a.ctypes.data % LINE) == (shape, np.float32, 0)
        assert a.flags.c_contiguous
        assert a.flags.writeable
