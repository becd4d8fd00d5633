"""Gram operators whose points are on a device: all of their parts are there, too."""

import numpy as np
import pytest
from elsewhere import back, device, library, there  # noqa: F401  -- fixtures
from numpy.testing import assert_allclose, assert_array_equal

import kernelcore as kc

KERNEL = kc.presets.mlp(2, b_std=0.1).ntk
N, M = 30, 12
MEMORY = {"all of it": None, "half": N * N * 8 * 0.7, "a little": 1000.0}

pytestmark = pytest.mark.usefixtures("device")


@pytest.fixture
def points(rng):
    return rng.standard_normal((N, 3)), rng.standard_normal((M, 3))


@pytest.fixture(params=[(memory, square) for memory in MEMORY for square in (True, False)], ids=str)
def pair(request, points):
    """An operator on the device, and its matrix."""
    memory, square = request.param
    X, Y = points[0], None if square else points[1]
    K = kc.GramOperator(KERNEL, there(X), None if square else there(Y), max_memory=MEMORY[memory])
    return K, KERNEL(X, Y)


@pytest.mark.parametrize("held", [False, True])
def test_products(pair, rng, held):
    K, whole = pair
    if held:
        K.hold()
    v, u = rng.standard_normal((K.shape[1], 4)), rng.standard_normal((N, 4))
    for got, a, b in ((K @ there(v), whole, v), (K.T @ there(u), whole.T, u)):
        # Sums of at most N products, in any order.
        assert (np.abs(back(got) - a @ b) <= 2 * N * 2.3e-16 * (np.abs(a) @ np.abs(b))).all()
    assert back(K @ there(v[:, 0])).shape == (N,)
    assert K.passes == 3


@pytest.mark.parametrize("held", [False, True])
def test_parts(pair, held):
    K, whole = pair
    n = len(whole)
    if held:
        K.hold()
    for got, want in (
        (K.diagonal(), whole.diagonal()),
        (K.columns([3, 0, 3]), whole[:, [3, 0, 3]]),
        (K.rows(slice(2, 9, 3)), whole[2:9:3]),
        (K.block(np.arange(n) % 7 == 1, [-1]), whole[1::7, -1:]),
        (K.toarray(), whole),
    ):
        assert_array_equal(back(got), want)
    same = [1, 4, 5]
    assert_array_equal(back(K.block(same, same)), whole[np.ix_(same, same)])


def test_what_is_held(points):
    X = there(points[0])
    for memory, held, tiles in ((None, True, 1), (N * N * 8 * 0.7, False, 0), (1000.0, False, 0)):
        K = kc.GramOperator(KERNEL, X, max_memory=memory)
        assert K.hold() is held
        if tiles:
            assert len(K._grid) == len(K._kept) == tiles


def test_a_backend_says_what_may_be_kept(points, monkeypatch):
    from kernelcore import engine

    monkeypatch.setattr(engine.BACKENDS[-1], "budget", lambda: 1234.0, raising=False)
    assert kc.GramOperator(KERNEL, there(points[0])).max_memory == 1234.0
    assert kc.GramOperator(KERNEL, points[0]).max_memory == kc.get_memory() / 2


def test_weights(points, rng):
    X, scale = points[0], rng.uniform(0.5, 2, N)
    K = kc.GramOperator(KERNEL, there(X), scale=there(scale))
    want = scale[:, None] * KERNEL(X) * scale
    assert_allclose(back(K.toarray()), want, rtol=4e-16)
    assert_allclose(back(K.diagonal()), want.diagonal(), rtol=8e-16)
    v = rng.standard_normal(N)
    assert_allclose(back(K @ there(v)), want @ v, atol=N * 1e-15 * np.abs(want).max() * N)


def test_the_wider_dtype_of_both(points):
    X = points[0].astype(np.float32)
    K = kc.GramOperator(KERNEL, there(X))
    assert K.dtype == np.float32
    for dtype in (np.float32, np.float64):
        assert back(K @ there(np.ones(N, dtype))).dtype == dtype
    wide = kc.GramOperator(KERNEL, there(points[0]))
    assert back(wide @ there(np.ones(N, np.float32))).dtype == np.float64


def test_images(rng):
    images = rng.standard_normal((5, 4, 4, 2))
    kernel = kc.presets.cntk(2).ntk
    K = kc.GramOperator(kernel, there(images))
    v = rng.standard_normal(5)
    assert_allclose(back(K @ there(v)), kernel(images) @ v, rtol=1e-12)
