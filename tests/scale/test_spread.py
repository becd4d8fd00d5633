"""Gram matrices that workers of a cluster multiply by: products, parts, solvers, estimators."""

import pickle

import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster

import kernelcore as kc
from kernelcore import cli
from kernelcore.scale import cluster, spread

KERNEL = kc.presets.mlp(2).ntk
NET = kc.Sequential(kc.Conv(3), kc.Relu(), kc.Conv(3), kc.Relu(), kc.GlobalAvgPool(), kc.Dense())
X = np.random.default_rng(0).standard_normal((120, 5))
PICTURES = np.random.default_rng(1).standard_normal((20, 6, 6, 2)).astype(np.float32)
QUIET = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
SOME = np.array([7, 0, 33, 34, 119])


@pytest.fixture(scope="module")
def client():
    """Two workers in this process."""
    with LocalCluster(n_workers=2, processes=False, **QUIET) as two, Client(two) as client:
        yield client


@pytest.fixture
def far(monkeypatch):
    """Have the cluster compute all parts of K, also those that are quickly computed here."""
    monkeypatch.setattr(spread, "NEAR", 0.0)


@pytest.fixture
def set_client(client):
    kc.set_client(client)
    yield
    kc.set_client(None)


def close(found, expected, terms):
    """Check sums of so many terms; each is rounded once, and so is every partial sum."""
    size = terms * np.finfo(expected.dtype).eps * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=size)
    assert found.dtype == expected.dtype


@pytest.mark.parametrize("max_memory", [None, 1e3], ids=["kept", "anew"])
@pytest.mark.parametrize("inputs", [X, PICTURES], ids=["points", "pictures"])
def test_products_are_those_of_the_matrix(client, inputs, max_memory):
    kernel = KERNEL if inputs is X else NET.ntk
    n = len(inputs)
    x = np.random.default_rng(2).random((n, 3)).astype(inputs.dtype)
    K = kc.GramOperator(kernel, inputs, client=client, max_memory=max_memory)
    assert K.remote
    assert K._spread.kept == (max_memory is None)
    assert len(K._spread.tiles) >= 8
    first = K @ x
    close(first, kernel(inputs) @ x, n)
    np.testing.assert_array_equal(K @ x, first)  # whoever computes what
    close(K @ x[:, 0], kernel(inputs) @ x[:, 0], n)
    assert K.passes == 3
    across = kc.GramOperator(kernel, inputs[:9], inputs[9:], client=client, max_memory=max_memory)
    close(across @ x[9:], kernel(inputs[:9], inputs[9:]) @ x[9:], n)
    close(across.T @ x[:9], kernel(inputs[:9], inputs[9:]).T @ x[:9], n)


def test_weights_are_part_of_the_matrix(client, far):
    root = np.linspace(1, 2, 120)
    K = kc.GramOperator(KERNEL, X, client=client, scale=root)
    expected = root[:, None] * KERNEL(X) * root
    close(K @ X, expected @ X, 120)
    close(K.times(SOME, X), expected[SOME] @ X, 120)
    np.testing.assert_array_equal(K.rows(SOME), kc.GramOperator(KERNEL, X, scale=root).rows(SOME))


def test_parts_are_those_of_the_matrix(client, far):
    K, whole = kc.GramOperator(KERNEL, X, client=client), KERNEL(X)
    for found, expected in (
        (K.toarray(), whole),
        (K.columns(SOME), whole[:, SOME]),
        (K.rows(SOME), whole[SOME]),
        (K.block(SOME, SOME), whole[np.ix_(SOME, SOME)]),
        (K.block(SOME, SOME[:2]), whole[np.ix_(SOME, SOME[:2])]),
        (K.diagonal(), whole.diagonal()),
    ):
        np.testing.assert_array_equal(found, expected)
    out = np.empty((5, 120))
    assert K.rows(SOME, out) is out
    np.testing.assert_array_equal(out, whole[SOME])
    close(K.times(SOME, X), whole[SOME] @ X, 120)
    close(K.times(slice(None), X), whole @ X, 120)
    assert not K.hold()
    assert "0 of 1 tiles kept" in repr(K)


def test_rows_times_without_a_cluster():
    for max_memory in (None, 3e3):  # of which one row is kept in memory
        K = kc.GramOperator(KERNEL, X, max_memory=max_memory)
        assert not K.remote
        close(K.times(SOME, X), KERNEL(X)[SOME] @ X, 120)
        close(K.times(SOME, X[:, 0]), KERNEL(X)[SOME] @ X[:, 0], 120)
        close(K.times(slice(None), X), KERNEL(X) @ X, 120)


def test_what_is_near_is_computed_here(client, monkeypatch):
    K = kc.GramOperator(KERNEL, X, client=client)
    monkeypatch.setattr(cluster.Flight, "run", None)
    np.testing.assert_array_equal(K.rows(SOME), KERNEL(X)[SOME])


def test_inputs_are_sent_once_for_all_products(client, monkeypatch):
    sent, submit = [], Client.submit
    monkeypatch.setattr(
        Client, "submit", lambda self, f, *a, **k: sent.append(f) or submit(self, f, *a, **k)
    )
    K = kc.GramOperator(KERNEL, X, client=client)
    blocks, tiles = K._spread.tiles.counts[0], len(K._spread.tiles)
    for _ in range(2):
        K @ X
    # Twice what is multiplied, and once the points, whose tiles stay where they are.
    assert [sent.count(f) for f in (cluster.block, cluster.tile, cluster.computed)] == [
        3 * blocks, tiles, 2 * tiles,
    ]  # fmt: skip


def test_a_pickle_knows_no_cluster(client):
    K = kc.GramOperator(KERNEL, X, client=client)
    found = pickle.loads(pickle.dumps(K))
    assert not found.remote
    close(found @ X, KERNEL(X) @ X, 120)


def test_workers_read_files_themselves(client, far, tmp_path):
    kept = zarr.create_array(tmp_path / "x", data=X)
    K = kc.GramOperator(KERNEL, kept, client=client)
    assert K._spread.entries.keys((0, 1)) == (None, None)
    close(K @ X, KERNEL(X) @ X, 120)
    np.testing.assert_array_equal(K.rows(SOME), KERNEL(X)[SOME])
    np.testing.assert_array_equal(K.block(SOME, SOME), KERNEL(X[SOME]))


def test_memory_of_workers_without_a_limit(client, monkeypatch):
    class Told:
        def scheduler_info(self, n_workers):
            return {"workers": {"a": {"memory_limit": 100}, "b": {"memory_limit": 0}}}

    kc.set_memory(1000)
    try:
        assert spread.memory(Told()) == 40 + 1000
    finally:
        kc.set_memory(None)


# ---- solvers and estimators


def test_solvers_give_what_they_give_here(client, far):
    y = np.sin(X[:, :2])
    there, here = kc.GramOperator(KERNEL, X, client=client), kc.GramOperator(KERNEL, X)
    exact = kc.solvers.ridge(KERNEL(X), y, 0.1)
    for K in (there, here):
        P = kc.solvers.nystrom_preconditioner(K, rank=20, ridge=0.1, seed=0)
        found = kc.solvers.conjugate_gradients(K, y, 0.1, preconditioner=P, tol=1e-10)
        np.testing.assert_allclose(found.alpha, exact, rtol=0, atol=1e-8 * np.abs(exact).max())
    one, two = (kc.solvers.eigenpro(K, None, y, 0.1, epochs=3, seed=0) for K in (there, here))
    close(one.alpha, two.alpha, 1e4)
    np.testing.assert_allclose(one.residuals, two.residuals, rtol=1e-9)
    one, two = (
        kc.solvers.nystrom_ridge(K, None, y, 0.1, centres=20, seed=0, solver="cg", tol=1e-10)
        for K in (there, here)
    )
    close(one.alpha, two.alpha, 1e7)


def test_eigenpro_brings_few_columns_here(client, far, monkeypatch):
    """The same steps, whether all points are seen at once or a few batches at a time."""
    y, brought, block = np.sin(X), [], kc.GramOperator.block

    def counted(self, rows, columns, out=None):
        found = block(self, rows, columns, out)
        brought.append(found.shape)
        return found

    K = kc.GramOperator(KERNEL, X, client=client)
    options = {"ridge": 0.1, "epochs": 2, "seed": 0, "subsample": 30, "batch": 7}
    whole = kc.solvers.eigenpro(K, None, y, **options)
    monkeypatch.setattr(kc.GramOperator, "block", counted)
    few = kc.solvers.eigenpro(K, None, y, max_memory=8e3, **options)
    close(few.alpha, whole.alpha, 1e4)
    assert max(n * m for n, m in brought) < 120 * 120 / 2


def test_estimators_use_the_cluster_that_is_set(client, far, set_client, monkeypatch):
    flights, run = [], cluster.Flight.run
    monkeypatch.setattr(
        cluster.Flight, "run", lambda self, *a: flights.append(type(self.task)) or run(self, *a)
    )
    monkeypatch.setattr("kernelcore.estimators._base.FEW", 0)
    y = np.sin(X[:, 0])
    model = kc.KernelRegressor(KERNEL, ridge=0.1).fit(X, y)
    assert flights == [cluster.Tile]
    there = model.predict(X[:50])
    assert flights == [cluster.Tile, cluster.Product]
    kc.set_client(None)
    np.testing.assert_array_equal(
        kc.KernelRegressor(KERNEL, ridge=0.1).fit(X, y).alpha_, model.alpha_
    )
    close(there, model.predict(X[:50]), 120)


def test_a_client_is_named_or_set(client, set_client):
    assert kc.get_client() is client
    assert kc.GramOperator(KERNEL, X).remote
    assert not kc.GramOperator(KERNEL, X, client=False).remote
    np.testing.assert_array_equal(kc.gram(KERNEL, X), kc.gram(KERNEL, X, client=False))
    kc.set_client(None)
    assert kc.get_client() is None
    assert not kc.GramOperator(KERNEL, X).remote


def test_commands_know_the_address_of_a_cluster(client, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", X=X, y=np.sin(X[:, 0]))
    flights, run = [], cluster.Flight.run
    monkeypatch.setattr(
        cluster.Flight, "run", lambda self, *a: flights.append(type(self.task)) or run(self, *a)
    )
    there = ["--kernel", "mlp:depth=2", "--dask", client.scheduler.address]
    for command in (
        ["gram", "data.npz:X", "--store", "k.zarr", "--tile", "60", *there],
        ["solve", "k.zarr", "data.npz:y", "--ridge", "0.1", "--tol", "1e-10", "--rank", "20"],
        ["predict", "data.npz:X", "--train", "data.npz:X", *there],
    ):
        assert cli.main(command) == 0
    assert flights == [cluster.Tile, cluster.Product]
    expected = KERNEL(X) @ kc.solvers.ridge(KERNEL(X), np.sin(X[:, 0]), 0.1)
    np.testing.assert_allclose(np.load("predictions.npy"), expected, atol=1e-8)


def test_a_tile_at_any_byte_gives_the_same_product(rng):
    """Those that other workers send are not aligned, and BLAS may sum a copy in another order."""
    n = 100
    tile, x = (rng.standard_normal(shape).astype(np.float32) for shape in ((n, n), (n, 5)))
    moved = np.ndarray(tile.shape, tile.dtype, bytearray(b" " + tile.tobytes()), 1)
    assert not moved.flags.aligned
    task = cluster.Product(None, False, True)
    for left, right in ((x, x), (x, None), (None, x)):
        want, found = (task.run((0, 1), a, None, left, right) for a in (tile, moved))
        np.testing.assert_array_equal(found, want)
