"""Block steps with approximate inverses of blocks, against direct solutions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kernelcore as kc
from kernelcore import solvers

NTK = kc.presets.mlp(2).ntk


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 4))
    return X, np.sin(X @ rng.standard_normal((4, 2)))


WAYS = {
    "as it is": {},
    "low rank": {"rank": 15},
    "Skotch": {"accelerate": False},
    "low rank, Skotch": {"rank": 15, "accelerate": False},
    "leverage": {"sampling": "leverage"},
    "one block": {"blocksize": 200},
    "of three points": {"blocksize": 3},
    "in pieces": {"max_memory": 2 * 7 * 200 * 8.0, "blocksize": 30},
    "given momentum": {"mu": 0.02, "nu": 12.0},
}


@pytest.mark.parametrize("way", WAYS)
def test_it_ends_at_the_direct_solution(way, data):
    """|alpha - alpha*| <= |r| / (ridge + the least eigenvalue), and all points are looked at."""
    X, y = data
    K, tol = NTK(X), 1e-6
    ridge = 3.0 if "low rank" in way else 1.0
    want = solvers.ridge(K, y, ridge)
    fit = solvers.askotch(K, None, y, ridge, tol=tol, epochs=200, seed=0, **WAYS[way])
    assert fit.converged
    off = y - K @ fit.alpha - ridge * fit.alpha
    assert_allclose(np.linalg.norm(off) / np.linalg.norm(y), fit.residuals[-1], rtol=1e-6)
    assert fit.residuals[-1] <= tol < fit.residuals[-2]
    assert np.linalg.norm(fit.alpha - want) <= tol * np.linalg.norm(y) / ridge
    # of predictions, |K (alpha - alpha*)| <= |r|
    assert np.linalg.norm(K @ (fit.alpha - want)) <= tol * np.linalg.norm(y)
    assert_allclose(fit.history[-1], np.mean((K @ fit.alpha - y) ** 2), rtol=1e-9)
    assert len(fit.history) == len(fit.residuals)


def test_one_block_is_one_step(data, dtype):
    X, y = data[0].astype(dtype), data[1][:, 0]
    fit = solvers.askotch(NTK, X, y, 1.0, blocksize=200, epochs=1, seed=0)
    assert fit.alpha.shape == (200,)
    assert fit.alpha.dtype == dtype
    assert (fit.mu, fit.nu) == (1.0, 1.0)
    want = np.linalg.solve(NTK(X.astype(float)) + np.eye(200), y)
    # backward errors of a factorisation, 4 n eps |K|, over the least eigenvalue
    size = np.linalg.norm(NTK(X), 2)
    atol = 4 * 200 * np.finfo(dtype).eps * size * np.linalg.norm(want)
    assert np.linalg.norm(fit.alpha - want) <= atol


def test_a_step_by_hand(data):
    """Two blocks and one epoch, written out."""
    X, y = data[0][:21], data[1][:21]
    K, ridge, mu, nu = NTK(X), 0.5, 0.1, 4.0
    drawn = np.random.default_rng(5)
    drawn.permutation(21)
    blocks = np.array_split(drawn.permutation(21), 2)
    alpha, v, z = np.zeros_like(y), np.zeros_like(y), np.zeros_like(y)
    for b in blocks:
        d = np.zeros_like(y)
        off = K[b] @ z + ridge * z[b] - y[b]
        d[b] = np.linalg.solve(K[np.ix_(b, b)] + ridge * np.eye(len(b)), off)
        alpha = z - d
        v = (1 - np.sqrt(mu / nu)) * v + np.sqrt(mu / nu) * z - d / np.sqrt(mu * nu)
        a = 1 / (1 + np.sqrt(nu / mu))
        z = a * v + (1 - a) * alpha
    fit = solvers.askotch(K, None, y, ridge, blocksize=11, mu=mu, nu=nu, epochs=1, seed=5)
    assert_allclose(fit.alpha, alpha, rtol=1e-9, atol=1e-12)
    assert (fit.blocksize, fit.rank, fit.mu, fit.nu) == (11, 11, mu, nu)
    assert_allclose(fit.residuals[0], 1.0)


def test_momentum_saves_epochs_where_blocks_are_approximate(data):
    K, y = NTK(data[0]), data[1]
    counts = [
        len(solvers.askotch(K, None, y, 1.0, rank=8, epochs=300, tol=1e-3, seed=0, **m).history)
        for m in ({}, {"accelerate": False})
    ]
    assert counts[0] < 0.7 * counts[1]


def test_few_rows_copies_and_zeros(rng):
    one = solvers.askotch(NTK, np.ones((1, 3)), [2.0], 0.5, seed=0)
    assert_allclose(one.alpha, 2 / (NTK(np.ones((1, 3)))[0] + 0.5), rtol=1e-12)
    assert one.converged
    X = np.repeat(rng.standard_normal((8, 3)), 5, 0)  # K has rank 8
    y = np.repeat(rng.standard_normal(8), 5)
    for ridge in (0.0, 0.1):
        fit = solvers.askotch(NTK, X, y, ridge, tol=1e-5, blocksize=10, seed=0, epochs=300)
        off = NTK(X) @ fit.alpha + ridge * fit.alpha - y
        assert np.linalg.norm(off) <= 1e-5 * np.linalg.norm(y)
    zero = solvers.askotch(NTK, X, np.zeros(40), 0.1, seed=0)
    assert zero.converged
    assert (zero.alpha == 0).all()
    assert len(zero.history) == 2


@pytest.mark.parametrize("more", [{}, {"rank": 200}])
def test_neither_threads_nor_memory_change_it(more, rng, dtype):
    X = rng.standard_normal((1100, 3)).astype(dtype)  # several groups of rows, large enough
    options = {"blocksize": 550, "epochs": 2, "seed": 1, **more}
    fits = [
        solvers.askotch(NTK, X, np.sin(X), 0.1, n_threads=n_threads, **options).alpha
        for n_threads in (1, 2, 3)
    ]
    assert_array_equal(fits[0], fits[1])
    assert_array_equal(fits[0], fits[2])


def test_seeds_a_warm_start_and_the_callback(data):
    X, y = data
    calls = []
    options = {"epochs": 3, "blocksize": 40, "rank": 20}
    a = solvers.askotch(NTK, X, y, 0.1, seed=7, callback=lambda *c: calls.append(c[0]), **options)
    b = solvers.askotch(NTK, X, y, 0.1, rng=7, **options)
    c = solvers.askotch(NTK, X, y, 0.1, seed=8, **options)
    assert calls == [1, 2, 3]
    assert_array_equal(a.alpha, b.alpha)
    assert (a.alpha != c.alpha).any()
    assert len(a.history) == 4
    on = solvers.askotch(NTK, X, y, 0.1, seed=9, initial=a.alpha, epochs=1)
    assert_allclose(on.history[0], a.history[-1], rtol=1e-9)
    A = NTK(X) + 0.1 * np.eye(200)  # in whose norm errors fall with every step
    errors = [f.alpha - np.linalg.solve(A, y) for f in (a, on)]
    assert np.vdot(errors[1], A @ errors[1]) < np.vdot(errors[0], A @ errors[0])
    stop = solvers.askotch(NTK, X, y, 0.1, seed=7, epochs=9, callback=lambda e, x, m: e == 2)
    assert len(stop.history) == 3


def test_weights_are_repetitions(data):
    X, y = data[0][:80], data[1][:80]
    weight = np.random.default_rng(0).integers(0, 4, 80)
    often = np.repeat(np.arange(80), weight)
    exact = np.linalg.solve(NTK(X[often]) + 0.3 * np.eye(len(often)), y[often])
    fit = solvers.askotch(NTK, X, y, 0.3, sample_weight=weight, tol=1e-9, epochs=500, seed=0)
    # an error of alpha is at most |r| / ridge, in coordinates with weights
    Z = data[0][80:100]
    assert_allclose(NTK(Z, X) @ fit.alpha, NTK(Z, X[often]) @ exact, atol=1e-6)
    assert (fit.alpha[weight == 0] == 0).all()


def test_it_tells_where_it_has_not_converged(data):
    X, y = data
    with pytest.warns(
        RuntimeWarning,
        match=r"^askotch did not converge: the relative residual is .* after 2 epochs, the "
        r"tolerance 1e-09; more epochs or a larger ridge would help$",
    ):
        fit = solvers.askotch(NTK, X, y, 0.1, tol=1e-9, epochs=2, seed=0)
    assert not fit.converged
    with pytest.warns(
        RuntimeWarning,
        match=r"^askotch diverges: the mean squared error is .* after .* epochs, .* before; pass a "
        r"larger nu than 1, or none$",
    ):
        fit = solvers.askotch(NTK, X, y, 0.1, mu=1e-6, nu=1.0, epochs=50, seed=0)
    assert len(fit.history) < 51
