"""``GramOperator`` against the matrix of its kernel: products, parts, memory, threads, SciPy."""

import copy
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import LinearOperator, cg, eigsh
from threadpoolctl import threadpool_limits

import kernelcore as kc
from kernelcore.scale.operator import GROUP

CONV = (kc.Conv(3, w_std=1.4), kc.Relu(), kc.GlobalAvgPool(), kc.Dense(1.0, 0.1))
KINDS = {
    "rows": (kc.presets.mlp(2, b_std=0.1).ntk, (5,)),
    "signals": (kc.Sequential(kc.Conv((3,), w_std=1.4), *CONV[1:]).ntk, (6, 2)),
    "images": (kc.Sequential(*CONV).ntk, (4, 3, 1)),
}
N = 30


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def draw(rng, kind, n, dtype=np.float64):
    return rng.standard_normal((n, *kind[1])).astype(dtype)


def bound(whole, x):
    """Of the rounding of a product with sums of n terms, in any order."""
    return (max(whole.shape) + 2) * np.finfo(whole.dtype).eps * (np.abs(whole) @ np.abs(x))


def memories(n, m, itemsize):
    """One row, some tiles kept, all kept in several tiles, and in one."""
    return [1.0, 0.45 * n * m * itemsize, 1.2 * n * m * itemsize, None]


# ---- products


@pytest.mark.parametrize("which", range(4))
def test_products_are_those_of_the_matrix(which, kind, rng, dtype):
    X, Y = draw(rng, kind, N, dtype), draw(rng, kind, 17, dtype)
    x, y = rng.standard_normal((2, N, 3)).astype(dtype)
    for other, v in ((None, x), (Y, x[:17])):
        whole = kind[0](X, other)
        memory = memories(*whole.shape, dtype.itemsize)[which]
        K = kc.GramOperator(kind[0], X, other, max_memory=memory)
        for _ in range(2):  # the second time from what is kept
            for got, a, b in (
                (K @ v, whole, v), (K.matmat(v), whole, v), (K.dot(v), whole, v), (K(v), whole, v),
                (K.rmatmat(y), whole.T, y), (K.T @ y, whole.T, y), (K.H @ y, whole.T, y),
                (K.T.T @ v, whole, v), (K.T.rmatmat(v), whole, v), ((y.T @ K).T, whole.T, y),
            ):  # fmt: skip
                assert got.dtype == dtype
                assert (np.abs(got - a @ b) <= bound(a, b)).all()
            for got, a, b in (
                (K @ v[:, 0], whole, v), (K.matvec(v[:, 0]), whole, v),
                (K.rmatvec(y[:, 0]), whole.T, y), (K.T.rmatvec(v[:, 0]), whole, v),
            ):  # fmt: skip
                assert got.shape == (len(a),)
                assert (np.abs(got - a @ b[:, 0]) <= bound(a, b[:, 0])).all()
        assert K.matvec(v[:, :1]).shape == (N, 1)
        assert K.shape == whole.shape
        assert K.dtype == dtype
        assert K.symmetric == (other is None)


@pytest.mark.parametrize("other", [False, True])
def test_few_long_rows_are_cut_into_squares(other, rng, monkeypatch):
    monkeypatch.setattr("kernelcore.scale.operator.GROUP", 4)
    kernel, X = KINDS["rows"][0], rng.standard_normal((40, 5))
    Y = rng.standard_normal((55, 5)) if other else None
    K = kc.GramOperator(kernel, X, Y, max_memory=4 * 8 * 8**2)  # a square of eight rows
    assert {(r.stop - r.start, c.stop - c.start) for r, c in K._grid} >= {(8, 8)}
    x = rng.standard_normal((K.shape[1], 2))
    for _ in range(2):
        assert (np.abs(K @ x - kernel(X, Y) @ x) <= bound(kernel(X, Y), x)).all()
    seen = np.zeros(K.shape, int)
    for rows, columns, tile in K.tiles():
        assert_array_equal(tile, kernel(X, Y)[rows, columns])
        seen[rows, columns] += 1
        if K.symmetric and columns != rows:
            seen[columns, rows] += 1
    assert (seen == 1).all()


def test_products_take_what_numpy_takes(rng):
    X = rng.standard_normal((6, 2)).astype(np.float32)
    K, whole = kc.GramOperator(kc.Gaussian(1.0), X), kc.Gaussian(1.0)(X)
    assert_allclose(K @ [1, 2, 3, 4, 5, 6], whole @ np.arange(1.0, 7), rtol=1e-6)
    assert (K @ np.ones(6)).dtype == np.float64
    assert (K @ np.ones(6, np.float32)).dtype == np.float32
    v = np.arange(6) + 1j
    assert_allclose(K @ v, whole @ v, rtol=1e-6)
    assert (K @ np.empty((6, 0))).shape == (6, 0)


def test_products_keep_the_library_of_the_array(rng):
    import array_api_strict as xp

    X, Y, v = rng.standard_normal((9, 2)), rng.standard_normal((4, 2)), rng.standard_normal((9, 3))
    for other in (None, Y):
        K, whole = kc.GramOperator(kc.Gaussian(1.0), X, other), kc.Gaussian(1.0)(X, other)
        for got, want in (
            (K @ xp.asarray(v[: K.shape[1]]), whole @ v[: K.shape[1]]),
            (K.rmatmat(xp.asarray(v)), whole.T @ v),
            (K.T @ xp.asarray(v[:, 0]), whole.T @ v[:, 0]),
        ):
            assert isinstance(got, type(xp.asarray(v)))
            assert_allclose(np.asarray(got), want, rtol=1e-13, atol=1e-13)


def test_products_do_not_depend_on_threads(rng, dtype):
    n = 2 * GROUP + 100  # several groups, large enough for BLAS to take several threads
    X, v = rng.standard_normal((n, 3)).astype(dtype), rng.standard_normal((n, 10)).astype(dtype)
    found = []
    for count in (1, 2, 3):
        with threadpool_limits(count, "blas"):
            for memory in (None, n * n * dtype.itemsize / 3):
                K = kc.GramOperator(kc.Gaussian(1.0), X, max_memory=memory, n_threads=count)
                found.append((K @ v, K @ v[:, :1]))
    for a, b in zip(found[2:], found[:-2], strict=True):
        assert_array_equal(a[0], b[0])
        assert_array_equal(a[1], b[1])


# ---- parts


INDICES = {
    "some": [4, 0, 29, 4],
    "from the end": [-1, -30, 3],
    "slice": slice(3, 25, 4),
    "all": slice(None),
    "mask": np.arange(N) % 7 == 2,
    "one": 5,
    "none": np.array([], int),
}


def index(which, n):
    """The same in the words of NumPy, for a matrix with as many rows or columns."""
    which = which[:n] if isinstance(which, np.ndarray) and which.dtype == bool else which
    return np.atleast_1d(np.arange(n)[which])


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("kept", [False, True])
def test_parts_are_those_of_the_matrix(kept, name, kind, rng, dtype):
    X, Y, which = draw(rng, kind, N, dtype), draw(rng, kind, N, dtype), INDICES[name]
    at = index(which, N)
    # For images a pair and its mirror image are sums in different orders.
    close = {"rtol": 0 if kept or kind is KINDS["rows"] else 50 * np.finfo(dtype).eps}
    for other in (None, Y):
        whole = kind[0](X, other)
        K = kc.GramOperator(kind[0], X, other, max_memory=1.2 * whole.nbytes)
        assert len(list(K.tiles())) > 3
        if not kept:
            K = kc.GramOperator(kind[0], X, other, max_memory=1.2 * whole.nbytes)
        assert_allclose(K.columns(which), whole[:, at], **close)
        assert_allclose(K.rows(which), whole[at], **close)
        assert_allclose(K.block(which, [7, 2]), whole[np.ix_(at, [7, 2])], **close)
        assert_allclose(K.block(slice(2, 9), which), whole[2:9][:, at], **close)
        assert_allclose(K.block(which, which), whole[np.ix_(at, at)], **close)
        out = np.full((len(at), N), np.nan, dtype)
        assert K.rows(which, out) is out
        assert_allclose(out, whole[at], **close)
        assert_allclose(K.T.columns(which), whole.T[:, at], **close)
        assert_allclose(K.T.rows(which), whole.T[at], **close)
        assert_allclose(K.T.block([1, 2], which), whole.T[[1, 2]][:, at], **close)
        assert bool(K._kept) == kept


@pytest.mark.parametrize("which", range(4))
def test_tiles_and_the_whole_are_the_matrix_to_the_bit(which, kind, rng, dtype):
    X, Y = draw(rng, kind, N, dtype), draw(rng, kind, 17, dtype)
    for other in (None, Y):
        whole = kind[0](X, other)
        memory = memories(*whole.shape, dtype.itemsize)[which]
        K = kc.GramOperator(kind[0], X, other, max_memory=memory)
        seen, values = np.zeros(whole.shape, int), np.zeros_like(whole)
        for rows, columns, tile in list(K.tiles()):  # all at once: none takes another's memory
            seen[rows, columns] += 1
            values[rows, columns] = tile
            if other is None and rows != columns:
                seen[columns, rows] += 1
                values[columns, rows] = tile.T
        assert (seen == 1).all()
        assert_array_equal(values, whole)
        array = K.toarray()
        assert_array_equal(array, whole)
        array[...] = 0  # the caller's own
        assert_array_equal(K.toarray(), whole)
        for A, want in ((K, whole), (K.T, whole.T)):
            assert_array_equal(A.diagonal(), np.diagonal(want))


def test_kept_tiles_cannot_be_overwritten(rng):
    K = kc.GramOperator(kc.Gaussian(1.0), rng.standard_normal((5, 2)))
    for _, _, tile in K.tiles():
        with pytest.raises(ValueError, match="read-only"):
            tile[0, 0] = 7


def test_scale_is_on_both_sides(kind, rng, dtype):
    X, scale, v = draw(rng, kind, N, dtype), rng.random(N), rng.standard_normal((N, 2))
    S = np.diag(scale.astype(dtype))
    want, eps = S @ kind[0](X) @ S, np.finfo(dtype).eps
    for memory in memories(N, N, dtype.itemsize):
        K = kc.GramOperator(kind[0], X, scale=scale, max_memory=memory)
        for _ in range(2):
            assert (np.abs(K @ v.astype(dtype) - want @ v) <= bound(want, v) * 2).all()
            assert_allclose(K.columns([3, 7]), want[:, [3, 7]], rtol=60 * eps)
            assert_allclose(K.toarray(), want, rtol=60 * eps)
            assert_allclose(K.diagonal(), np.diagonal(want), rtol=4 * eps)


# ---- what is computed, and what is held


@pytest.fixture
def computed(monkeypatch):
    """How many entries kernels have computed, of a symmetric matrix one half."""
    call, entries = kc.Kernel.__call__, []

    def counted(self, X, Y=None, **options):
        n = len(X)
        entries.append(n * (n + 1) // 2 if Y is None else n * len(Y))
        return call(self, X, Y, **options)

    monkeypatch.setattr(kc.Kernel, "__call__", counted)
    return entries


def test_what_fits_is_computed_once(kind, rng, computed):
    X, v = draw(rng, kind, N), rng.standard_normal((N, 2))
    for memory in (0.8 * 8 * N * N, None):
        del computed[:]
        K = kc.GramOperator(kind[0], X, max_memory=memory)
        assert not computed
        for _ in range(3):
            K @ v
        K.columns([1, 2]), K.block(slice(4), slice(4)), K.toarray(), K.rows(3), K.T @ v
        assert sum(computed) == N * (N + 1) // 2
        assert K.passes == 4


def test_hold_computes_all_or_nothing(rng, computed):
    X = rng.standard_normal((N, 2))
    K = kc.GramOperator(kc.Gaussian(1.0), X)
    assert K.hold()
    assert K.hold()
    assert sum(computed) == N * (N + 1) // 2
    del computed[:]
    K = kc.GramOperator(kc.Gaussian(1.0), X, max_memory=0.4 * 8 * N * N)
    assert not K.hold()
    assert not computed


def test_the_rest_is_computed_in_every_product(rng, computed):
    X, v = rng.standard_normal((N, 2)), np.ones(N)
    K = kc.GramOperator(kc.Gaussian(1.0), X, max_memory=0.4 * 8 * N * N)
    K @ v
    first = sum(computed)
    assert first == N * (N + 1) // 2
    K @ v
    kept = 2 * first - sum(computed)
    assert 0 < kept < first


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.5, 0.6, 0.8, 1.0, 2.5])
def test_memory_is_held_to_what_was_given(share, rng, dtype):
    n = 100
    X, memory = rng.standard_normal((n, 2)).astype(dtype), share * n * n * dtype.itemsize
    for other in (None, X[:60]):
        K = kc.GramOperator(kc.Gaussian(1.0), X, other, max_memory=memory)
        m = K.shape[1]
        K @ np.ones(m, dtype)
        held = sum(tile.nbytes for tile in K._kept.values()) + K._scratch.nbytes
        assert held <= max(memory, m * dtype.itemsize)


def test_points_are_not_copied(rng, dtype):
    x = rng.standard_normal((8, 6)).astype(dtype)
    for X in (x, np.asfortranarray(x), x[::2], x[:, ::2]):
        X.flags.writeable = False
        K = kc.GramOperator(kc.Laplacian(1.0), X, X[:3])
        assert np.shares_memory(K.X, X)
        assert np.shares_memory(K.Y, X)
        assert_array_equal(K.toarray(), kc.Laplacian(1.0)(X, X[:3]))


# ---- as an object


def test_scipy_takes_it_for_one_of_its_own(rng):
    X, v = rng.standard_normal((N, 3)), rng.standard_normal((N, 2))
    k = kc.Laplacian(1.0)
    K, whole = kc.GramOperator(k, X), k(X)
    assert isinstance(K, LinearOperator)
    assert_allclose(eigsh(K, 3, which="LA")[0], np.linalg.eigvalsh(whole)[-3:], rtol=1e-10)
    x, info = cg(K, v[:, 0], rtol=1e-10)
    assert info == 0
    assert_allclose(whole @ x, v[:, 0], atol=1e-8)
    assert_allclose((2 * K + K @ K - K**2) @ v, 2 * whole @ v, atol=1e-11)
    assert_allclose((K / 2).T @ v, whole @ v / 2, atol=1e-12)
    with pytest.raises(ValueError, match="Scalar operands are not allowed"):
        K @ 2


def test_copies_and_pickles_hold_the_points_alone(kind, rng):
    X, v = draw(rng, kind, 80), rng.standard_normal(80)
    for other in (None, X[:70]):
        K = kc.GramOperator(kind[0], X, other, max_memory=4e4, n_threads=1)
        want = K @ v[: K.shape[1]]
        stored = pickle.dumps(K)
        assert len(stored) < X.nbytes * (1 if other is None else 2) + 3000
        for twin in (pickle.loads(stored), copy.deepcopy(K), copy.copy(K)):
            assert_array_equal(twin @ v[: K.shape[1]], want)
            assert_array_equal(K @ v[: K.shape[1]], want)
            assert (twin.kernel, twin.max_memory, twin.n_threads) == (kind[0], 4e4, 1)
        transposed = pickle.loads(pickle.dumps(K.T))
        assert_array_equal(transposed @ v, K.T @ v)


def test_it_says_what_it_is():
    X = np.zeros((4, 1), np.float32)
    K = kc.GramOperator(kc.Gaussian(2.0), X, X[:3])
    text = "<4x3 GramOperator of Gaussian(2.0) with dtype=float32, {} of 1 tiles kept>"
    assert repr(K) == text.format(0)
    K @ np.ones(3)
    assert repr(K) == text.format(1)


def test_row_blocks_are_the_same_class():
    K = kc.solvers.RowBlocks(kc.Gaussian(2.0), np.zeros((4, 1)))
    assert isinstance(K, kc.GramOperator)
    assert K.max_memory == 1e9
    assert repr(K).startswith("<4x4 RowBlocks of Gaussian(2.0)")


def test_scipy_is_imported_when_it_is_named():
    script = """
import sys
import kernelcore as kc
print("scipy" in sys.modules, "GramOperator" in kc.__all__, "GramOperator" in dir(kc))
kc.GramOperator
print("scipy.sparse.linalg" in sys.modules)
"""
    environment = os.environ | {"PYTHONPATH": str(pathlib.Path(kc.__file__).parents[1])}
    told = subprocess.run(
        [sys.executable, "-c", script],
        env=environment, capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    assert told == "False True True\nTrue\n"
