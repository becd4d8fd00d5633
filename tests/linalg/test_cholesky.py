"""Cholesky's factorisation: what it solves, what it says of indefinite matrices, interruption."""

import signal

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kernelcore as kc
from kernelcore.linalg import Cholesky, blocked, cholesky, columns

SPREAD = 10.0
"""Largest over smallest eigenvalue of the matrices that are solved with."""


def definite(rng, n, dtype=np.float64, least=1.0):
    """A symmetric matrix with eigenvalues from ``least`` to SPREAD."""
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    a = (q * np.linspace(least, SPREAD, n)) @ q.T
    return ((a + a.T) / 2).astype(dtype)


def tolerance(n, eps):
    """Of what is solved: (3n + 1) u in the matrix (Higham 2002, 10.4) times the condition."""
    return 4 * n * eps * SPREAD


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("n", [1, 2, 33])
def test_solutions(rng, library, dtype, eps, lower, n):
    a, ridge = definite(rng, n, dtype), 0.5
    b = rng.standard_normal((n, 3)).astype(dtype)
    found = cholesky(library(a), ridge, lower=lower)
    wide = a.astype(float) + ridge * np.eye(n)
    want = np.linalg.solve(wide, b)
    near = {"rtol": tolerance(n, eps), "atol": tolerance(n, eps)}
    assert found.order == 0
    assert_allclose(library.back(found.solve(library(b)), dtype), want, **near)
    assert_allclose(library.back(found.solve(library(b[:, 0])), dtype), want[:, 0], **near)
    white = library.back(found.whiten(library(b)), dtype)
    assert_allclose(white.T @ white, b.T @ want, **near)
    assert found.log_det() == pytest.approx(np.linalg.slogdet(wide)[1], abs=n * tolerance(n, eps))
    triangle = library.back(found.triangle, dtype)
    half = np.tril(triangle) if lower else np.triu(triangle).T
    assert_allclose(half @ half.T, wide, atol=4 * n * eps * SPREAD)
    assert_array_equal(library.back(found.restore(copy=True), dtype), a)
    diagonal = library.back(found.inverse_diagonal(), np.float64)
    assert_allclose(diagonal, np.linalg.inv(wide).diagonal(), **near)


def test_a_ridge_for_each_row(rng, library, dtype, eps):
    a, b = definite(rng, 20, dtype), np.ones(20, dtype)
    ridge = np.linspace(0, 3, 20).astype(dtype)
    found = Cholesky(library(a), library(ridge)).solve(library(b))
    want = np.linalg.solve(a + np.diag(ridge).astype(float), b)
    assert_allclose(library.back(found, dtype), want, atol=tolerance(20, eps))


@pytest.mark.parametrize("lower", [False, True])
def test_only_one_triangle_is_read(rng, library, dtype, lower):
    a = definite(rng, 9, dtype)
    half = np.tril(a) if lower else np.triu(a)
    if library.namespace is not np:  # the standard leaves open which triangle counts
        half = a
    found, want = (Cholesky(library(x), lower=lower).solve(library(a[0])) for x in (half, a))
    assert_array_equal(library.back(found, dtype), library.back(want, dtype))


def test_in_place_and_not(rng, dtype):
    a = definite(rng, 30, dtype)
    for order in "CF":
        kept = np.array(a, order=order)
        found = Cholesky(kept, 1.0)
        assert_array_equal(kept, a)
        assert not np.shares_memory(found.triangle, kept)
        found = Cholesky(columns(kept), 1.0, overwrite=True)
        assert np.shares_memory(found.triangle, kept)
        assert_array_equal(found.restore(copy=True), a)
        assert found.restore() is found.triangle
        assert_array_equal(kept, a)
    lower = Cholesky(np.array(a, order="F"), 1.0, lower=True, overwrite=True)
    assert_array_equal(lower.restore(), a)


def test_no_columns(library, dtype):
    b = np.ones((3, 0), dtype)
    found = Cholesky(library(np.eye(3, dtype=dtype))).solve(library(b))
    assert library.back(found, dtype).shape == (3, 0)


@pytest.mark.parametrize("lower", [False, True])
def test_the_condition_number(rng, library, dtype, eps, lower):
    """LAPACK's estimate of |a^-1| is a lower bound, and of matrices that small the norm itself."""
    a = definite(rng, 3, dtype)
    found = Cholesky(library(a), 0.5, lower=lower, condition=True)
    want = 1 / np.linalg.cond(a.astype(float) + 0.5 * np.eye(3), 1)
    assert found.rcond == pytest.approx(want, rel=0.01 + tolerance(3, eps))
    assert found.sound
    assert np.isnan(Cholesky(library(a)).rcond)


def test_soundness(library, dtype, eps):
    """Ten eps of the largest eigenvalue is what eigenvalues of small matrices are known to."""
    for least, sound in ((40 * eps, True), (2 * eps, False)):
        a = library(np.diag(np.array([1.0, least], dtype)))
        assert Cholesky(a, condition=True).sound is sound
    failed = Cholesky(library(np.diag(np.array([1.0, -1.0], dtype))), condition=True)
    assert (failed.sound, failed.rcond, failed.order) == (False, 0.0, 2)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("bad", [0, 3, 10])
def test_the_order_of_the_first_minor_that_fails(rng, library, dtype, bad, lower):
    a = definite(rng, 11, dtype)
    a[bad, bad] = -1
    found = Cholesky(library(a), lower=lower)
    assert found.order == bad + 1
    assert_array_equal(library.back(found.restore(), dtype), a)


def test_a_library_may_return_nan_instead_of_raising(monkeypatch):
    real = array_api_strict.linalg.cholesky

    def quiet(a, upper):
        try:
            return real(a, upper=upper)
        except np.linalg.LinAlgError:
            return a * float("nan")

    monkeypatch.setattr(array_api_strict.linalg, "cholesky", quiet)
    a = array_api_strict.asarray([[1.0, 0, 0], [0, -1, 0], [0, 0, 1]])
    assert Cholesky(a).order == 2


def test_jitter_is_the_least_that_does(library, dtype, eps):
    """Of ones and -d beside the diagonal the eigenvalue below zero is -d: powers of ten of eps."""
    a = np.array([[1.0, 1 + 30 * eps], [1 + 30 * eps, 1.0]], dtype)
    found = cholesky(library(a), on_indefinite="jitter")
    half = np.triu(library.back(found.triangle, dtype)).astype(float)
    assert half[0, 0] ** 2 == pytest.approx(1 + 100 * eps, abs=2 * eps)
    found = cholesky(library(a), on_indefinite="jitter", eps=1e-3)
    half = np.triu(library.back(found.triangle, dtype)).astype(float)
    assert half[0, 0] ** 2 == pytest.approx(1.001, abs=4 * eps)


def test_jitter_where_none_is_needed(rng, library, dtype):
    a = definite(rng, 8, dtype)
    plain, jittered = (cholesky(library(a), 0.1, on_indefinite=w) for w in ("raise", "jitter"))
    assert_array_equal(*(np.triu(library.back(x.triangle, dtype)) for x in (plain, jittered)))


@pytest.mark.parametrize("policy", ["raise", "jitter"])
def test_of_a_function_that_makes_the_matrix(rng, library, dtype, policy):
    a = definite(rng, 8, dtype)
    made, given = (cholesky(x, 0.1, on_indefinite=policy) for x in (lambda: library(a), library(a)))
    assert_array_equal(*(np.triu(library.back(x.triangle, dtype)) for x in (made, given)))


def test_a_function_makes_the_matrix_for_each_try():
    made = []

    def ones():
        made.append(np.ones((3, 3), order="F"))
        return made[-1]

    found = cholesky(ones, 0.0, on_indefinite="jitter")
    assert len(made) > 1
    assert found.triangle is made[-1]


def test_a_zero_kernel_is_refused():
    """And not tried for ever with ten times no jitter."""
    text = "K must have a diagonal of positive, finite mean to be factored: got 0.0"
    with pytest.raises(ValueError, match=f"^{text}$"):
        kc.solvers.nystrom_ridge(
            kc.presets.mlp(1).nngp, np.zeros((9, 2)), np.ones(9), centres=3, solver="cg", seed=0
        )


# ---- in blocks


@pytest.fixture
def small_blocks(monkeypatch):
    """The limits, small enough for matrices of a test."""
    monkeypatch.setattr(blocked, "WHOLE", 20)
    monkeypatch.setattr(blocked, "WIDTH", 16)
    monkeypatch.setattr(blocked, "SLAB", 7)
    monkeypatch.setattr(blocked, "WORK", 2 * 16 * 10 * 100)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("n", [21, 32, 33, 100, 161])
def test_blocks_give_the_same(rng, dtype, eps, lower, n, monkeypatch):
    a = definite(rng, n, dtype)
    found = Cholesky(a, 0.5, lower=lower, condition=True)
    diagonal = found.inverse_diagonal()
    monkeypatch.setattr(blocked, "WHOLE", n)
    want = Cholesky(a, 0.5, lower=lower, condition=True)
    keep = np.tril if lower else np.triu
    # Both are within (3n + 1) u of the exact one of a matrix off by that, times the condition.
    near = {"rtol": 0, "atol": tolerance(n, eps) * SPREAD}
    assert_allclose(keep(found.triangle), keep(want.triangle), **near)
    assert_array_equal(found.restore(copy=True), a)
    assert found.rcond == pytest.approx(want.rcond, rel=tolerance(n, eps) * n)
    assert_allclose(diagonal, want.inverse_diagonal(), **near)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("bad", [0, 15, 16, 40, 95, 99])
def test_blocks_fail_at_the_same_minor(rng, dtype, lower, bad):
    a = definite(rng, 100, dtype)
    a[bad, bad] = -1
    found = Cholesky(a, 0.5, lower=lower)
    assert found.order == bad + 1
    # The pivot is that of -1.. -0.5 less a square, and the vector at least as long as 1.
    least = np.linalg.eigvalsh(a.astype(float))[0] + 0.5
    assert least <= found._least_bound() < 0
    assert_array_equal(found.restore(), a)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_touch_one_triangle(rng):
    a = np.array(definite(rng, 77), order="F")
    a[np.tril_indices(77, -1)] = np.nan
    assert Cholesky(a, overwrite=True).order == 0
    assert np.isnan(a[np.tril_indices(77, -1)]).all()
    assert np.isfinite(a[np.triu_indices(77)]).all()


@pytest.mark.usefixtures("small_blocks")
def test_an_interruption_ends_a_factorisation_between_two_calls(rng, monkeypatch, request):
    # A process that was started in the background ignores interruptions.
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, old))
    calls, real = [], blocked.call

    def call(*arguments):
        real(*arguments)
        calls.append(arguments[0])
        if len(calls) == 5:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(blocked, "call", call)
    with pytest.raises(KeyboardInterrupt):
        kc.solvers.ridge(definite(rng, 100), np.ones(100), 0.1)
    assert len(calls) == 5


@pytest.mark.parametrize("n", [4001, 8000, 15000, 40000])
def test_no_call_takes_long(monkeypatch, n):
    """At 4e10 flops a second, which two slow cores have in float64, it is below a second."""
    work = []
    flops = {
        "potrf": lambda n: n**3 / 3,
        "trsm": lambda m, n: m * m * n,
        "gemm": lambda m, n, k: 2 * m * n * k,
        "syrk": lambda n, k: n * n * k,
    }

    def call(name, dtype, *arguments):
        counts = [x for x in arguments if type(x) is int]
        work.append(flops[name](*counts))

    class Matrix:
        dtype = np.dtype(np.float64)

        def __len__(self):
            return n

    monkeypatch.setattr(blocked, "call", call)
    assert blocked.potrf(Matrix(), False) == 0
    assert max(work) <= 4e10
    assert sum(work) == pytest.approx(n**3 / 3, rel=0.1)
