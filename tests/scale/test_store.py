"""Gram matrices in a store: the values of memory, whatever happens to the process or the files."""

import errno
import fcntl
import multiprocessing
import os
import pathlib
import shutil
import time

import google_crc32c
import numpy as np
import pytest
import zarr

import kernelcore as kc
from kernelcore.scale import cost, job, store

KERNEL = kc.presets.mlp(2).ntk
NET = kc.Sequential(kc.Conv(3), kc.Relu(), kc.GlobalAvgPool(), kc.Dense())
X = np.random.default_rng(0).standard_normal((70, 5)).astype(np.float32)
PICTURES = np.random.default_rng(1).standard_normal((11, 4, 4, 2))


def files(folder):
    """The bytes of every chunk."""
    return {p.relative_to(folder): p.read_bytes() for p in (folder / "c").rglob("*") if p.is_file()}


# ---- values


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("tile", [1, 4, 9, 500])
def test_the_values_are_those_of_memory(tmp_path, tile, compress):
    K = kc.gram(KERNEL, X[:9], store=tmp_path / "k", tile=tile, compress=compress)
    np.testing.assert_array_equal(K[:], KERNEL(X[:9]))
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "k")[:], K[:])
    across = kc.gram(KERNEL, X[:9], X[:4], store=tmp_path / "across", tile=tile, compress=compress)
    np.testing.assert_array_equal(across[:], KERNEL(X[:9], X[:4]))


def test_images_and_other_stores():
    K = kc.gram(NET.ntk, PICTURES, store=zarr.storage.MemoryStore(), tile=4)
    np.testing.assert_array_equal(K[:], NET.ntk(PICTURES))


def test_without_a_store_it_is_the_kernel(capsys):
    np.testing.assert_array_equal(kc.gram(KERNEL, X, X[:3]), KERNEL(X, X[:3]))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("n", [0, 1])
def test_few_inputs(tmp_path, n):
    K = kc.gram(KERNEL, X[:n], store=tmp_path / "k")
    np.testing.assert_array_equal(K[:], KERNEL(X[:n]))


def test_inputs_are_read_from_files_and_other_arrays(tmp_path):
    """And of any layout: what counts are the values."""
    expected = KERNEL(X)
    np.save(tmp_path / "x.npy", X)
    kept = zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(7, 5))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for k, inputs in enumerate((mapped, kept, np.asfortranarray(X), X.tolist())):
        at = tmp_path / f"k{k}" if k == 3 else tmp_path / "k"  # lists are float64
        K = kc.gram(KERNEL, inputs, store=at, tile=32)
        np.testing.assert_array_equal(K[:], KERNEL(np.asarray(X.tolist())) if k == 3 else expected)
    np.testing.assert_array_equal(kc.gram(KERNEL, kept), expected)


def test_integers_count_as_float64(tmp_path):
    K = kc.gram(kc.Polynomial(2), np.arange(6).reshape(3, 2), store=tmp_path / "k")
    assert K.dtype == np.float64
    np.testing.assert_array_equal(K[:], kc.Polynomial(2)(np.arange(6.0).reshape(3, 2)))


def test_the_store_says_what_it_is(tmp_path):
    K = kc.gram(KERNEL, X, store=tmp_path / "k", tile=32)
    about = dict(zarr.open_array(tmp_path / "k").attrs)["kernelcore"]
    assert about == K.about
    assert about["kernel"] == repr(KERNEL)
    assert (about["format"], about["version"], about["tile"]) == (store.FORMAT, kc.__version__, 32)
    assert about["x"]["shape"] == [70, 5]
    assert about["y"] is None
    assert repr(K) == f"<70x70 StoredGram of {KERNEL!r} in {tmp_path / 'k'}, 6 of 6 tiles>"


# ---- tiles


def test_tiles_follow_from_the_cost_of_an_entry():
    assert cost.tile_size(10**6, 4, 1e-9) == 4000 // 32 * 32  # 64 MB
    assert cost.tile_size(10**6, 8, 1e-9) == 2828 // 32 * 32
    assert cost.tile_size(10**6, 4, 1e-3) == 244 // 32 * 32  # 60 s
    assert cost.tile_size(10**6, 4, 1.0) == 7
    assert cost.tile_size(10**6, 4, 100.0) == 1
    assert cost.tile_size(50, 4, 1e-9) == 50


def test_an_entry_is_timed_with_as_many_inputs_as_it_takes(monkeypatch):
    """Of a kernel whose entries take a millisecond, and a call ten."""
    seen = []

    def seconds(kernel, x, y, n_threads):
        seen.append((len(x), len(y)))
        return 0.01 + 0.001 * len(x) * len(y)

    monkeypatch.setattr(cost, "_seconds", seconds)
    assert cost.entry_seconds(None, np.zeros((50, 1)), seconds=0.3) == pytest.approx(1e-3, rel=0.05)
    assert seen[0] == (1, 16)
    assert np.prod(seen[-1]) * 1e-3 < 3
    assert cost.entry_seconds(None, np.zeros((3, 1)), seconds=9.0) == pytest.approx(0.019 / 9)


def test_costs_are_of_whole_vectors():
    """An entry of a block of 17 columns would cost nearly twice that of a tile's."""
    inputs = np.zeros((100, 1))
    sizes = [tuple(map(len, cost._block(inputs, rows))) for rows in (1, 16, 17, 31, 32, 100)]
    assert sizes == [(1, 16), (16, 16), (17, 16), (31, 16), (32, 32), (100, 96)]
    assert [len(a) for a in cost._block(inputs[:9], 5)] == [5, 9]


# ---- what is there already


def test_a_second_call_computes_what_is_missing(tmp_path, monkeypatch):
    K = kc.gram(KERNEL, X, store=tmp_path / "k", tile=16)
    before = files(tmp_path / "k")
    for name in ("0/3", "3/0", "2/4"):  # a tile and its mirror image; half of another
        (tmp_path / "k" / "c" / name).unlink()
    (tmp_path / "k" / "c" / "1" / "1.0123.partial").write_bytes(b"left behind")
    computed, compute = [], job.Job.compute
    monkeypatch.setattr(
        job.Job, "compute", lambda self, p, **k: computed.append(p) or compute(self, p, **k)
    )
    kc.gram(KERNEL, X, store=tmp_path / "k")
    assert sorted(computed) == [(0, 3), (2, 4)]
    assert files(tmp_path / "k") == before
    assert K.done() == set(K.tiling)


@pytest.mark.parametrize("how", ["changed", "truncated", "emptied"])
def test_damage_is_found_and_repaired(tmp_path, how):
    K = kc.gram(KERNEL, X, store=tmp_path / "k", tile=32)
    before = files(tmp_path / "k")
    chunk = tmp_path / "k" / "c" / "2" / "1"
    data = bytearray(chunk.read_bytes())
    data[100] ^= 1
    chunk.write_bytes({"changed": data, "truncated": data[:50], "emptied": b""}[how])
    for read in (lambda: K[:], lambda: K[65], lambda: K.toarray(), lambda: np.asarray(K)):
        with pytest.raises(
            OSError, match=r"^tile \(1, 2\) of .* must be as it was written: its checksum"
        ):
            read()
    np.testing.assert_array_equal(K[:32, :32], KERNEL(X[:32]))
    kc.gram(KERNEL, X, store=tmp_path / "k")
    assert files(tmp_path / "k") == before


def test_a_missing_tile_is_an_error_for_whoever_reads(tmp_path):
    K = kc.gram(KERNEL, X, store=tmp_path / "k", tile=32)
    (tmp_path / "k" / "c" / "1" / "0").unlink()
    other = kc.StoredGram(tmp_path / "k")
    for read in (lambda: other[0, 0], lambda: other @ X, other.toarray, other.diagonal):
        with pytest.raises(OSError, match="must be complete: 1 of 6 tiles are missing"):
            read()
    assert K.has((0, 0))
    assert not K.has((0, 1))
    assert np.isnan(zarr.open_array(tmp_path / "k")[40, 0])


# ---- faults


def job_of_many_tiles(folder):
    kc.gram(KERNEL, X, store=folder, tile=12)


def test_a_job_that_is_killed_goes_on_with_the_same_bytes(tmp_path):
    """At twenty moments of its course: after some chunks, and a random part of the next one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["kernelcore", "kernelcore.scale.job", "zarr"])
    rng = np.random.default_rng(5)
    job_of_many_tiles(tmp_path / "whole")
    for k in range(20):
        folder = tmp_path / f"k{k}"
        child = context.Process(target=job_of_many_tiles, args=(folder,))
        child.start()
        while child.is_alive() and len(list(folder.glob("c/*/*"))) < k + 1:
            time.sleep(1e-4)
        time.sleep(rng.uniform(0, 3e-3))
        child.kill()
        child.join()
        job_of_many_tiles(folder)
        assert files(folder) == files(tmp_path / "whole")
        assert not list(folder.rglob("*.partial"))


def test_a_store_that_somebody_else_makes_first(tmp_path, monkeypatch):
    """Both find nothing there, and one is faster."""
    created = store._created

    def late(*args):
        created(*args)
        return created(*args)

    monkeypatch.setattr(store, "_created", late)
    np.testing.assert_array_equal(kc.gram(KERNEL, X, store=tmp_path / "k")[:], KERNEL(X))


def test_two_processes_share_a_store(tmp_path):
    context = multiprocessing.get_context("forkserver")
    both = [context.Process(target=job_of_many_tiles, args=(tmp_path / "k",)) for _ in range(2)]
    for child in both:
        child.start()
    for child in both:
        child.join()
    assert [child.exitcode for child in both] == [0, 0]
    job_of_many_tiles(tmp_path / "whole")
    assert files(tmp_path / "k") == files(tmp_path / "whole")


class Full(zarr.storage.WrapperStore):
    """A store on a disk that is full after so many writes."""

    left = 10

    async def set(self, key, value, *rest):
        type(self).left -= 1
        if self.left < 0:
            raise OSError(28, "No space left on device")
        await super().set(key, value, *rest)


def test_a_full_disk_is_an_error_and_nothing_is_lost(tmp_path):
    disk = zarr.storage.LocalStore(tmp_path / "k")
    with pytest.raises(OSError, match="No space left on device"):
        kc.gram(KERNEL, X, store=Full(disk), tile=16)
    K = kc.StoredGram(disk)
    there = len(K.done())
    assert 0 < there < len(K.tiling)
    np.testing.assert_array_equal(kc.gram(KERNEL, X, store=disk)[:], KERNEL(X))


def test_a_tile_is_on_the_disk_before_it_counts(tmp_path, monkeypatch):
    events, replace = [], os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: events.append(os.readlink(f"/proc/self/fd/{fd}")))
    monkeypatch.setattr(
        os, "replace", lambda old, new: events.append((str(old), str(new))) or replace(old, new)
    )
    kc.gram(KERNEL, X, store=tmp_path / "k", tile=64)
    chunks = [e for e in events if isinstance(e, tuple) and f"{os.sep}c{os.sep}" in e[1]]
    assert len(chunks) == 4
    for partial, chunk in chunks:
        at = events.index((partial, chunk))
        assert partial in events[:at]
        assert os.path.dirname(chunk) in events[at:]


def test_compressed_tiles_are_on_the_disk_too(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(store, "_sync", synced.append)
    kc.gram(KERNEL, X, store=tmp_path / "k", tile=64, compress=True)
    names = {str(pathlib.Path(p).relative_to(tmp_path)) for p in synced}
    chunks = {"k/c/0/0", "k/c/0/1", "k/c/1/0", "k/c/1/1"}
    assert names == chunks | {"k/c/0", "k/c/1"}


@pytest.mark.parametrize("refused", [False, True], ids=["past the cache", "refused"])
@pytest.mark.parametrize("first", [0, 16], ids=["on a page", "off it"])
@pytest.mark.parametrize(
    "size", [0, 100, store.PAGE, 3 * store.PAGE + 5, store.PIECE, store.PIECE + store.PAGE + 7]
)
def test_a_file_has_its_bytes_whatever_the_file_system(tmp_path, monkeypatch, size, first, refused):
    """One that refuses to go past the page cache may do so at any write; a checksum follows."""
    data = store.on_pages(first + size, np.dtype(np.uint8))[first:]
    data[:] = np.random.default_rng(0).integers(0, 256, size)
    modes, write = [], store._write_all

    def watched(file, part):
        modes.append(bool(fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DIRECT))
        if refused and modes[-1]:
            write(file, part[: store.PAGE])
            raise OSError(errno.EINVAL, "Invalid argument")
        write(file, part)

    monkeypatch.setattr(store, "_write_all", watched)
    store._write(tmp_path / "x", data)
    checksum = google_crc32c.value(data.tobytes()).to_bytes(4, "little")
    assert (tmp_path / "x").read_bytes() == data.tobytes() + checksum
    assert not modes[-1]
    assert any(modes) == (first == 0 and (size >= store.PIECE or size == store.PAGE))


def test_other_errors_of_the_disk_are_told(tmp_path, monkeypatch):
    def full(file, part):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store, "_write_all", full)
    with pytest.raises(OSError, match="No space left on device"):
        store._write(tmp_path / "x", store.on_pages(store.PAGE, np.dtype(np.uint8)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_chunks_are_those_that_zarr_writes(tmp_path, dtype):
    """Also where the matrix ends inside of one."""
    K = kc.gram(KERNEL, X.astype(dtype), store=tmp_path / "k", tile=40)
    theirs = zarr.open_array(shutil.copytree(tmp_path / "k", tmp_path / "z"), mode="r+")
    shutil.rmtree(tmp_path / "z" / "c")
    theirs[:] = K[:]
    assert len(files(tmp_path / "k")) == 4
    assert files(tmp_path / "k") == files(tmp_path / "z")


def test_progress_tells_tiles_and_time(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("kernelcore.engine.progress.Progress.__init__.__defaults__", (0.0,))
    kc.gram(KERNEL, X, store=tmp_path / "k", tile=32, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6
    assert lines[-1].startswith("Gram matrix, tiles: 6/6, ")
    assert lines[-1].endswith(" s each, 0 s left")


# ---- as an operator


@pytest.mark.parametrize("max_memory", [None, 3000])
def test_products_and_parts_are_those_of_the_matrix(tmp_path, max_memory):
    kc.gram(KERNEL, X, store=tmp_path / "k", tile=16)
    S, K = kc.StoredGram(tmp_path / "k", max_memory=max_memory), KERNEL(X)
    v = np.random.default_rng(3).standard_normal((70, 3)).astype(np.float32)
    bound = 70 * 2.0**-23 * (np.abs(K) @ np.abs(v)).max()
    for found, expected in ((S @ v, K @ v), (S @ v[:, 0], K @ v[:, 0]), (S.T @ v, K @ v)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=bound)
    np.testing.assert_array_equal(S.diagonal(), K.diagonal())
    np.testing.assert_array_equal(S.columns([3, 60, 3]), K[:, [3, 60, 3]])
    np.testing.assert_array_equal(S.rows(slice(5, 20)), K[5:20])
    np.testing.assert_array_equal(S.block([1, 69], [2, 40]), K[np.ix_([1, 69], [2, 40])])
    np.testing.assert_array_equal(S.toarray(), K)
    np.testing.assert_array_equal(np.asarray(S), K)


SOLVERS = {
    "ridge": lambda K, y: kc.solvers.ridge(K, y, 0.1),
    "path": lambda K, y: kc.solvers.RidgePath(K, y).alpha(0.1),
    "flow": lambda K, y: kc.solvers.gradient_flow(K, y, [3.0]).alpha,
    "conjugate gradients": lambda K, y: kc.solvers.conjugate_gradients(K, y, 0.1).alpha,
    "preconditioned": lambda K, y: (
        kc.solvers.conjugate_gradients(
            K,
            y,
            0.1,
            preconditioner=kc.solvers.nystrom_preconditioner(K, rank=20, ridge=0.1, seed=0),
        ).alpha
    ),
    "askotch": lambda K, y: kc.solvers.askotch(K, None, y, epochs=3, seed=0).alpha,
    "eigenpro": lambda K, y: kc.solvers.eigenpro(K, None, y, epochs=3, seed=0).alpha,
}


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_take_a_stored_matrix(tmp_path, solver):
    """And give what they give for the array; sums of tiles are in another order."""
    points = X.astype(np.float64)
    S, K = kc.gram(KERNEL, points, store=tmp_path / "k", tile=16), KERNEL(points)
    found, expected = (SOLVERS[solver](matrix, points[:, 0]) for matrix in (S, K))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
