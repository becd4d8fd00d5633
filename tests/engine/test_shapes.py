"""Entries are the same whatever shape of matrix they are computed in, and however rows are cut."""

import math
from fractions import Fraction

import numpy as np
import pytest

import kernelcore as kc
from kernelcore.engine.cpu import calls, dense, rows

KERNELS = {
    "ntk": kc.presets.mlp(2, b_std=0.1).ntk,
    "tanh": kc.Sequential(kc.Dense(), kc.Tanh(), kc.Dense()).nngp,
    "laplacian": kc.Laplacian(3.0),
    "cauchy": kc.Cauchy(3.0),
}


def points(n, d, dtype):
    x = np.random.default_rng(n).standard_normal((n, d)).astype(dtype)
    x[1], x[2], x[3] = 0, x[0], -x[0]
    return x


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", KERNELS)
def test_few_columns_or_rows_are_those_of_the_whole(name, dtype):
    kernel, X = KERNELS[name], points(70, 19, dtype)
    whole = kernel(X)
    for m in (1, 2, 5, dense.THIN, dense.THIN + 1):
        for threads in (1, 2):
            assert (kernel(X, X[:m].copy(), n_threads=threads) == whole[:, :m]).all()
            assert (kernel(X[:m], X, n_threads=threads) == whole[:m]).all()
    both = kernel + kernel * kernel
    assert (both(X, X[:3].copy()) == both(X)[:, :3]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["ntk", "laplacian", "cauchy"])
def test_long_rows_in_parts_give_the_same_bits(name, dtype, monkeypatch):
    kernel, X = KERNELS[name], points(60, 1000, dtype)
    Y = X[::-1].copy()
    expected = kernel(X), kernel(X, Y), kernel(X, Y[:3])
    monkeypatch.setattr(dense, "PACKED_BYTES", 50_000)
    monkeypatch.setattr(dense, "PART_BYTES", 40_000)
    dense._layout.cache_clear()
    try:
        for threads in (1, 2):
            found = (kernel(a, b, n_threads=threads) for a, b in ((X, None), (X, Y), (X, Y[:3])))
            assert all((a == b).all() for a, b in zip(found, expected, strict=True))
        panel = dense.dispatch.driver("dense").PANEL[dtype]
        made = dense._layout(panel, 60, 60, 1000, X.dtype, 1, (0, 0), True)
        assert made.tiles.coordinates < 1000
    finally:
        dense._layout.cache_clear()


def test_a_program_is_lowered_once_and_errors_name_its_own_layers():
    one, two = (kc.Sequential(kc.Dense(1e30), kc.Relu(), kc.Dense()) for _ in range(2))
    X = np.full((2, 3), 1e10, np.float32)
    for network in (one, two):
        with pytest.raises(OverflowError, match="overflows in Dense"):
            network.nngp(X)
    assert rows.lowered(one.program) is rows.lowered(two.program)


def test_overflow_names_the_first_layer_that_any_row_overflows_in():
    network = kc.Sequential(kc.Dense(1e5), kc.Relu(), kc.Dense(1e10), kc.Relu(), kc.Dense())
    X = np.ones((200, 2), np.float32)
    X[150:] = 1e12
    with pytest.raises(OverflowError, match=r"overflows in Dense\(10000000000.0\)"):
        network.ntk(X[:150] * np.float32(1e5))
    X[199] = 1e16
    with pytest.raises(OverflowError, match=r"overflows in Dense\(100000.0\)"):
        network.ntk(X)


def test_memory_is_kept_for_the_next_call_and_never_shared():
    double, size = np.dtype(np.float64), (50_000,)
    one, two = calls.room(size, double), calls.room(size, double)
    assert not np.may_share_memory(one, two)
    assert one.ctypes.data % 64 == two.ctypes.data % 64 == 0
    place, view = one.ctypes.data, one[10:]
    del one
    assert not np.may_share_memory(view, calls.room(size, double))  # a view keeps it
    del view
    assert place in [calls.room(size, double).ctypes.data for _ in range(3)]


@pytest.mark.parametrize("d", [1, 3, 8, 17, 400])
def test_norms_do_not_depend_on_the_other_rows(d, dtype, rng):
    x = rng.standard_normal((11, d)).astype(dtype)
    found = dense.norms(x, "X", 1)
    alone = [dense.norms(x[i : i + 1], "X", 1)[0] for i in range(len(x))]
    assert (found == alone).all()
    exact = [math.sqrt(sum(Fraction(float(a)) ** 2 for a in row)) for row in x]
    # Sums of d/2 or fewer squares in each of two lanes, and a root; or the last place.
    bound = 2 + d / 4 if dtype == "float32" else 2
    np.testing.assert_allclose(found, exact, rtol=bound * 2**-53, atol=0)


@pytest.mark.parametrize("kind", ["nngp", "ntk"])
def test_steps_that_are_joined_do_what_they_do_alone(kind, monkeypatch, rng):
    block = kc.Residual(kc.Relu(), kc.Dense(0.9), kc.Abs(), kc.Dense(1.1))
    layers = [kc.Dense(1.7), kc.LeakyRelu(0.2), kc.Dense(1.3), block]
    # The squares of the last ones leave the range in which products are joined.
    small = [kc.Dense(1e-60), kc.Dense(1e-60), kc.Dense(1e60), kc.Dense(1e60)]
    kernel = getattr(kc.Sequential(*layers, *small), kind)
    X = rng.standard_normal((20, 7))
    found = kernel.diag(X)
    low = rows.lowered(kernel._program)
    assert len(low.fused) < len(low.steps[0])
    monkeypatch.setattr(low, "fused", low.steps[0])
    np.testing.assert_allclose(found, kernel.diag(X), rtol=1e-14)
    assert (found > 0).all()
