"""EigenPro with projected centres, against the least squares on them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kernelcore as kc
from kernelcore import solvers

NTK = kc.presets.mlp(2).ntk
fit = solvers.eigenpro_centres


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.sin(2 * X @ rng.standard_normal((3, 2))) + 0.3 * rng.standard_normal((200, 2))


def least_squares(X, y, Z, ridge, weight=1.0):
    """Predictions on X, by one factorisation of what is squared already."""
    across = NTK(X, Z)
    weighted = across.T * weight
    return across @ np.linalg.solve(weighted @ across + ridge * NTK(Z), weighted @ y)


WAYS = {
    "EigenPro 4": {},
    "EigenPro 3": {"delay": 1},
    "without a ridge": {"ridge": 0.0, "centres": 8},
    "inexact": {"projection": "cg", "delay": 4},
    "in little memory": {"max_memory": 8 * 7 * 20 * 8.0, "projection": "direct"},
    "one long window": {"delay": 10**6},
}


@pytest.mark.parametrize("way", WAYS)
def test_it_ends_at_the_least_squares(way, data):
    """The residual is that of predictions, if points are to centres as the latter to themselves."""
    X, y = data
    options = {"ridge": 1.0, "centres": 20, "batch": 10, **WAYS[way]}
    found = fit(NTK, X, y, tol=1e-6, epochs=100, seed=0, **options)
    assert found.converged
    assert found.residuals[-1] <= 1e-6 < found.residuals[-2]
    want = least_squares(X, y, found.centres, options["ridge"])
    norm = np.linalg.norm(y)
    assert np.linalg.norm(want - y) > 0.1 * norm  # which steps of a plain descent would see
    a, inside = NTK(X, found.centres), NTK(found.centres)
    # how far (n/p) K_ZZ^2 is from K_ZX K_XZ; the table lags behind by an epoch
    p = len(found.centres)
    spread = np.linalg.eigvals(np.linalg.solve(a.T @ a, inside @ inside) * 200 / p).real.max()
    assert np.linalg.norm(found.predict(X) - want) <= 2 * np.sqrt(spread) * 1e-6 * norm
    assert_array_equal(found.centres, X[found.indices])
    assert_allclose(found.history[-1], np.mean((found.predict(X) - y) ** 2), rtol=1e-6)
    assert_allclose(found.history[0], np.mean(y**2))
    assert len(found.history) == len(found.residuals) + 1


def test_the_first_epoch_by_hand(data):
    """That of the papers, as functions on all points: steps, then the projection."""
    X, y = data[0][:40], data[1][:40]
    Z = data[0][100:112]
    found = fit(NTK, X, y, centres=Z, epochs=1, rank=4, subsample=12, batch=7, delay=3, seed=5)
    rng = np.random.default_rng(5)
    rng.permutation(12), rng.permutation(40), rng.permutation(40)
    order = rng.permutation(40)
    values, vectors = np.linalg.eigh(NTK(Z))
    values, vectors = values[::-1], vectors[:, ::-1]
    both = np.concatenate([X, Z])
    e = NTK(both, Z) @ vectors[:, :4] / np.sqrt(values[:4])
    kernel = NTK(both) - (e * (1 - values[4] / values[:4])) @ e.T  # k_q
    f = np.zeros((52, 2))
    for k, start in enumerate(range(0, 40, 7)):
        b = order[start : start + 7]
        f = f - found.step / 7 * kernel[:, b] @ (f[b] - y[b])
        if k % 3 == 2 or start + 7 >= 40:
            f = NTK(both, Z) @ np.linalg.solve(NTK(Z), f[40:])
    assert_allclose(found.predict(X), f[:40], atol=1e-8)
    limit = 2 * 7 / (found.beta + 6 * found.eigenvalue)
    assert_allclose(found.step, min(7 / found.beta, 5 / 8 * limit))
    assert (found.rank, found.batch, found.delay) == (4, 7, 3)
    assert found.indices is None
    left = NTK(X) - (e * (1 - values[4] / values[:4]))[:40] @ e[:40].T
    assert_allclose(found.eigenvalue, np.linalg.eigvalsh(left)[-1] / 40, rtol=1e-6)
    assert_allclose(found.beta, left.diagonal().max(), rtol=1e-6)


def test_centres_need_not_be_points_of_the_data(data, dtype):
    X, y = data[0].astype(dtype), data[1][:, 0]
    Z = np.random.default_rng(0).uniform(-1, 1, (20, 3)).astype(dtype)
    found = fit(NTK, X, y, 1.0, centres=Z, batch=20, tol=1e-4, epochs=500, seed=0)
    assert found.alpha.shape == (20,)
    assert found.alpha.dtype == dtype
    want = least_squares(X.astype(float), y, Z.astype(float), 1.0)
    assert np.linalg.norm(found.predict(X) - want) <= 1e-3 * np.linalg.norm(y)


def test_one_centre_few_points_and_copies(data):
    X, y = data
    one = fit(NTK, X, y, centres=X[:1], batch=20, tol=1e-8, epochs=500, seed=0)
    k = NTK(X, X[:1])
    assert_allclose(one.alpha, k.T @ y / (k.T @ k), rtol=1e-5)
    assert one.rank == 0
    single = fit(NTK, X[:1], y[:1], centres=1, tol=1e-9, seed=0)
    assert_allclose(single.predict(X[:1]), y[:1], rtol=1e-6)
    copies = np.repeat(X[:10], 3, 0)  # K_mm has rank 10
    found = fit(NTK, X, y, 1.0, centres=copies, batch=10, epochs=30, seed=0)
    want = least_squares(X, y, X[:10], 1.0)
    assert np.linalg.norm(found.predict(X) - want) <= 1e-4 * np.linalg.norm(y)


def test_weights_are_repetitions(data):
    X, y = data[0][:150], data[1][:150]
    weight = np.random.default_rng(0).integers(0, 4, 150)
    found = fit(
        NTK, X, y, 1.0, centres=12, sample_weight=weight, batch=10, tol=1e-7, epochs=300, seed=0
    )
    want = least_squares(X, y, found.centres, 1.0, weight)
    assert_allclose(found.predict(X), want, atol=1e-5)


@pytest.mark.parametrize("projection", ["direct", "cg"])
def test_threads_do_not_change_it(projection, rng, dtype):
    X = rng.standard_normal((1100, 3)).astype(dtype)
    options = {"centres": 600, "epochs": 2, "seed": 1, "projection": projection}
    fits = [fit(NTK, X, np.sin(X), 0.1, batch=550, n_threads=n, **options).alpha for n in (1, 2, 3)]
    assert_array_equal(fits[0], fits[1])
    assert_array_equal(fits[0], fits[2])


def test_seeds_a_warm_start_an_operator_and_the_callback(data):
    X, y = data
    calls = []
    a = fit(
        NTK, X, y, centres=20, batch=20, epochs=3, seed=7, callback=lambda *c: calls.append(c[0])
    )
    b = fit(kc.GramOperator(NTK, X), None, y, centres=20, batch=20, epochs=3, rng=7)
    c = fit(NTK, X, y, centres=20, batch=20, epochs=3, seed=8)
    assert calls == [1, 2, 3]
    assert_array_equal(a.alpha, b.alpha)
    assert (a.alpha != c.alpha).any()
    on = fit(NTK, X, y, centres=a.centres, epochs=1, seed=9, initial=a.alpha)
    assert_allclose(on.history[0], a.history[-1], rtol=1e-9)
    stop = fit(NTK, X, y, centres=20, batch=20, epochs=9, seed=7, callback=lambda e, x, m: e == 2)
    assert len(stop.history) == 3


def test_it_tells_where_it_has_not_converged(data):
    X, y = data
    with pytest.warns(
        RuntimeWarning,
        match=r"^eigenpro_centres did not converge: the residual is .* after 2 epochs, the "
        r"tolerance 1e-09; more epochs, fewer centres or a larger ridge would help$",
    ):
        few = fit(NTK, X, y, centres=20, tol=1e-9, epochs=2, seed=0)
    assert not few.converged
    with pytest.warns(
        RuntimeWarning,
        match=r"^eigenpro_centres diverges: the mean squared error is .* after .* epochs, .* "
        r"before; pass a smaller step than 1e\+04$",
    ):
        far = fit(NTK, X, y, centres=20, batch=20, step=1e4, epochs=50, seed=0)
    assert len(far.history) < 51
