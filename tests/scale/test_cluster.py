"""Gram matrices on a cluster: the values of memory, whatever happens to workers or scheduler."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster

import kernelcore as kc
from kernelcore.scale import cluster, source, store

KERNEL = kc.presets.mlp(2).ntk
NET = kc.Sequential(kc.Conv(3), kc.Relu(), kc.Conv(3), kc.Relu(), kc.GlobalAvgPool(), kc.Dense())
X = np.random.default_rng(0).standard_normal((300, 5)).astype(np.float32)
PICTURES = np.random.default_rng(1).standard_normal((40, 8, 8, 3))
QUIET = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}


@pytest.fixture(scope="module")
def processes():
    with LocalCluster(n_workers=2, processes=True, **QUIET) as two, Client(two) as client:
        yield client


@pytest.fixture
def client(processes):
    """Two processes of one thread; those that a test has killed are there again."""
    processes.wait_for_workers(2)
    return processes


@contextlib.contextmanager
def before_each(client, what):
    """Have workers call a function with the options of the kernel before each tile."""

    def begin():
        from kernelcore.kernels import Kernel

        Kernel.kept = call = Kernel.__call__

        def instead(self, *inputs, **options):
            what(options)
            return call(self, *inputs, **options)

        Kernel.__call__ = instead

    def end():
        from kernelcore.kernels import Kernel

        if hasattr(Kernel, "kept"):  # a worker may be new
            Kernel.__call__ = Kernel.kept

    client.run(begin)
    try:
        yield
    finally:
        client.run(end)


@pytest.fixture
def after_tiles(monkeypatch):
    """Have a function called when so many tiles are there."""

    def at(count, what):
        land = cluster.Flight.land

        def instead(self, finished):
            land(self, finished)
            if self.done == count and what not in called:
                called.append(what)
                what()

        called = []
        monkeypatch.setattr(cluster.Flight, "land", instead)
        return called

    return at


@pytest.fixture
def impatient(monkeypatch):
    """Take workers for hung, and tiles for late, after a second."""
    for name, value in (("LATE", 1.0), ("TIMES", 3.0), ("SILENT", 1.0), ("PAUSE", 0.2)):
        monkeypatch.setattr(cluster, name, value)


@contextlib.contextmanager
def hanging(client, after_tiles):
    """Have a worker stop when three tiles are there, until the end."""
    pid = min(client.run(os.getpid).values())
    called = after_tiles(3, lambda: os.kill(pid, signal.SIGSTOP))
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
    assert called


# ---- values


@pytest.mark.parametrize("inputs", [X, PICTURES], ids=["points", "pictures"])
def test_the_values_are_those_of_memory(client, tmp_path, inputs):
    kernel = KERNEL if inputs is X else NET.ntk
    expected = kernel(inputs)
    found = kc.gram(kernel, inputs, client=client)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
    K = kc.gram(kernel, inputs, client=client, store=tmp_path / "k")
    np.testing.assert_array_equal(K[:], expected)
    assert len(K.tiling) >= 4 * 2
    np.testing.assert_array_equal(
        kc.gram(kernel, inputs, inputs[:9], client=client, tile=len(inputs) // 2),
        kernel(inputs, inputs[:9]),
    )


@pytest.mark.slow
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("what", ["600 pictures", "5000 points"])
def test_larger_ones_too(client, tmp_path, what, stored):
    rng = np.random.default_rng(2)
    if what == "600 pictures":
        kernel, inputs = NET.ntk, rng.standard_normal((600, 8, 8, 3))
    else:
        kernel, inputs = KERNEL, rng.standard_normal((5000, 50))
    K = kc.gram(kernel, inputs, client=client, store=tmp_path / "k" if stored else None)
    np.testing.assert_array_equal(K[:], kernel(inputs))


def test_workers_read_files_and_stores_themselves(client, tmp_path, monkeypatch):
    """From wherever they run: paths are made absolute, and nothing but them is sent."""
    np.save(tmp_path / "x.npy", X)
    monkeypatch.chdir(tmp_path)
    zarr.create_array("x.zarr", data=X, chunks=(7, 5))
    mapped, kept = np.load("x.npy", mmap_mode="r"), zarr.open_array("x.zarr", mode="r")
    assert os.getcwd() not in client.run(os.getcwd).values()
    found = kc.gram(KERNEL, mapped, X[:20], client=client, tile=150)
    np.testing.assert_array_equal(found, KERNEL(X, X[:20]))
    monkeypatch.setattr(cluster, "block", None)
    np.testing.assert_array_equal(kc.gram(KERNEL, kept, client=client, tile=150), KERNEL(X))
    K = kc.gram(KERNEL, mapped, client=client, store="k", tile=150)
    np.testing.assert_array_equal(K[:], KERNEL(X))


def test_parts_of_files_are_told_from_the_whole(tmp_path):
    whole = np.memmap(tmp_path / "x", np.float32, "w+", 8, X.shape)
    whole[:] = X
    for part in (whole, whole[7:90], whole[7:90][2:5]):
        found = source.Source(part, "X").portable()
        assert isinstance(found.a, source.Mapped)
        np.testing.assert_array_equal(found.whole(), part)
    changed = np.memmap(tmp_path / "x", np.float32, "c", 8, X.shape)  # in memory alone
    memory = zarr.create_array(zarr.storage.MemoryStore(), data=X)
    for kept in (X, whole[:, 1:], whole + 1, changed, memory):
        assert source.Source(kept, "X").portable() is None


def test_workers_read_hdf5_themselves(client, tmp_path, monkeypatch):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        kept = file.create_dataset("a/x", data=X)
        assert source.Source(kept, "X").portable() is None  # HDF5 has it locked
    monkeypatch.setattr(cluster, "block", None)
    with h5py.File(tmp_path / "x.h5", "r") as file:
        found = kc.gram(KERNEL, file["a/x"], client=client, tile=150)
    np.testing.assert_array_equal(found, KERNEL(X))


def test_a_block_is_sent_once(client, monkeypatch):
    """And quietly: a warning of Dask would be an error here."""
    sent, submit = [], Client.submit
    monkeypatch.setattr(
        Client, "submit", lambda self, f, *a, **k: sent.append(f) or submit(self, f, *a, **k)
    )
    wide = np.ones((40, 40_000)) * np.arange(40)[:, None]
    found = kc.gram(kc.Polynomial(1), wide, client=client, tile=10)
    np.testing.assert_array_equal(found, kc.Polynomial(1)(wide))
    assert [sent.count(f) for f in (cluster.block, cluster.computed)] == [4, 10]


def test_a_worker_of_one_thread_starts_one(client, tmp_path):
    def seen(options):
        with open(tmp_path / "seen", "a") as file:
            file.write(f"{options['n_threads']}\n")

    with before_each(client, seen):
        kc.gram(KERNEL, X, client=client, tile=100)
    assert (tmp_path / "seen").read_text().split() == ["1"] * 6


def test_tiles_are_enough_for_all_threads():
    assert cluster.shared(store.Tiles((1000, 1000), 1000, True), 2) == 250  # 10 of them
    assert cluster.shared(store.Tiles((1000, 1000), 100, True), 2) == 100
    assert cluster.shared(store.Tiles((2, 2), 2, True), 50) == 1


def test_progress_is_told(client, capsys, monkeypatch):
    monkeypatch.setattr("kernelcore.engine.progress.Progress.__init__.__defaults__", (0.0,))
    kc.gram(KERNEL, X, client=client, tile=150, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[-1].startswith("Gram matrix, tiles: 3/3, ")


# ---- faults


def a_while(options):
    import time

    time.sleep(0.1)


@pytest.mark.parametrize("stored", [False, True])
def test_a_worker_that_is_killed(client, tmp_path, after_tiles, stored):
    pid = min(client.run(os.getpid).values())
    called = after_tiles(3, lambda: os.kill(pid, signal.SIGKILL))
    with before_each(client, a_while):
        K = kc.gram(KERNEL, X, client=client, tile=60, store=tmp_path / "k" if stored else None)
    assert called
    np.testing.assert_array_equal(K[:], KERNEL(X))


@pytest.mark.parametrize("max_memory", [None, 1e4], ids=["kept", "anew"])
def test_a_worker_that_is_killed_during_a_product(client, after_tiles, max_memory):
    """What it has kept is computed again, by others or by the one that takes its place."""
    K = kc.GramOperator(KERNEL, X, client=client, max_memory=max_memory)
    first = K @ X
    pid = min(client.run(os.getpid).values())
    called = after_tiles(3, lambda: os.kill(pid, signal.SIGKILL))
    np.testing.assert_array_equal(K @ X, first)
    assert called
    np.testing.assert_array_equal(K @ X, first)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.usefixtures("impatient")
def test_a_worker_that_hangs(client, tmp_path, after_tiles, stored):
    """Its tiles are tried elsewhere, with inputs that it does not have to hand out."""
    with before_each(client, a_while), hanging(client, after_tiles):
        K = kc.gram(KERNEL, X, client=client, tile=60, store=tmp_path / "k" if stored else None)
    np.testing.assert_array_equal(K[:], KERNEL(X))


@pytest.mark.parametrize("max_memory", [None, 1e4], ids=["kept", "anew"])
@pytest.mark.usefixtures("impatient")
def test_a_worker_that_hangs_during_a_product(client, after_tiles, max_memory):
    """The others compute what it has kept, too."""
    K = kc.GramOperator(KERNEL, X, client=client, max_memory=max_memory)
    first = K @ X
    with hanging(client, after_tiles):
        np.testing.assert_array_equal(K @ X, first)
    np.testing.assert_array_equal(K @ X, first)


def test_a_tile_that_takes_long_is_tried_elsewhere(client, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "LATE", 0.5)
    monkeypatch.setattr(cluster, "PAUSE", 0.1)

    def once(options):
        """Have the first tile wait for a file, but not for ever."""
        import time

        try:
            (tmp_path / "first").touch(exist_ok=False)
        except FileExistsError:
            return
        for _ in range(300):
            if (tmp_path / "go on").exists():
                return
            time.sleep(0.1)
        (tmp_path / "waited in vain").touch()

    with before_each(client, once):
        found = kc.gram(KERNEL, X, client=client, tile=60)
        (tmp_path / "go on").touch()
    np.testing.assert_array_equal(found, KERNEL(X))
    assert (tmp_path / "first").exists()
    assert not (tmp_path / "waited in vain").exists()


def test_a_tile_that_comes_back_changed_is_computed_again(client, tmp_path):
    def first_one_wrong():
        from kernelcore.scale import cluster

        right = cluster._checksum

        def wrong(values):
            cluster._checksum = right
            return right(values) + 1

        cluster._checksum = wrong

    client.run(first_one_wrong)
    np.testing.assert_array_equal(kc.gram(KERNEL, X, client=client, tile=100), KERNEL(X))


def test_what_a_worker_raises_is_raised_here(client, tmp_path):
    wrong = np.memmap(tmp_path / "x", np.float32, "w+", shape=X.shape)
    wrong[:] = X
    wrong[250, 3] = np.nan
    with pytest.raises(ValueError, match=r"^X must be finite: X\[250, 3\] is nan$"):
        kc.gram(KERNEL, wrong, client=client, tile=100)
    deadline = time.monotonic() + 5
    while any(client.processing().values()):  # the rest is cancelled
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_store_that_each_worker_has_for_itself(client):
    with pytest.raises(OSError, match=r"^store must be one that all workers see: tile \("):
        kc.gram(KERNEL, X, client=client, store=zarr.storage.MemoryStore(), tile=150)


SCHEDULER = """
import time
from distributed import LocalCluster
if __name__ == "__main__":
    one = LocalCluster(n_workers=1, processes=False, protocol="tcp://", threads_per_worker=1,
                       dashboard_address=":0", silence_logs=50)
    print(one.scheduler_address, flush=True)
    time.sleep(100)
"""


def test_a_scheduler_that_is_gone(client, tmp_path, after_tiles):
    with subprocess.Popen([sys.executable, "-c", SCHEDULER], stdout=subprocess.PIPE) as process:
        address = process.stdout.readline().decode().strip()
        with Client(address, timeout=1) as other:
            after_tiles(5, process.kill)
            message = (
                f"the Dask scheduler at {address} is gone: ([0-9]+) of 36 tiles are in "
                f"{re.escape(str(tmp_path))}/k; call again to go on"
            )
            with pytest.raises(ConnectionError, match=f"^{message}$") as raised:
                kc.gram(KERNEL, X, client=other, store=tmp_path / "k", tile=40)
    there = int(re.match(message, str(raised.value))[1])
    assert there == len(kc.StoredGram(tmp_path / "k").done()) < 36
    K = kc.gram(KERNEL, X, client=client, store=tmp_path / "k")
    np.testing.assert_array_equal(K[:], KERNEL(X))
