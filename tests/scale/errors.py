"""Gram operators and what stands for a matrix."""

import json
import pathlib
import shutil
import tempfile
import types

import numpy as np
import zarr
from distributed import Client, LocalCluster
from messages import Case, without
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator

import kernelcore as kc
from kernelcore import cli
from kernelcore.scale import client, cluster, job, named, plan

EYE, ONES = np.eye(3), np.ones(3)
X = np.arange(6.0).reshape(3, 2)
KERNEL = kc.Laplacian(1.0)
OPERATOR = kc.GramOperator(KERNEL, X)
SIGNALS = kc.Sequential(kc.Conv((3,)), kc.Relu(), kc.GlobalAvgPool(), kc.Dense()).ntk
MULTIPLIES = aslinearoperator(EYE)
LACKS = "besides @: got MatrixLinearOperator; pass a GramOperator or an array"
SPARSE = "K must be a dense array: got csr_array; pass K.toarray()"


class WithDiagonal:
    """Products and a diagonal."""

    shape = (3, 3)

    def __matmul__(self, x):
        return x

    def diagonal(self):
        return ONES


FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="kernelcore-store-"))


def kept(call, **changes):
    """The call of a store that has the matrix of KERNEL and X, whose attributes were changed."""

    def refused():
        shutil.rmtree(FOLDER, ignore_errors=True)
        kc.gram(KERNEL, X, store=FOLDER / "k", tile=2)
        array = zarr.open_array(FOLDER / "k")
        array.update_attributes({"kernelcore": dict(array.attrs)["kernelcore"] | changes})
        try:
            call(FOLDER / "k")
        finally:
            shutil.rmtree(FOLDER)

    return refused


def lose(store, name, call):
    (store / "c" / name).unlink()
    call(kc.StoredGram(store))


def spoil(store):
    """Change some bytes of a chunk, and read."""
    chunk = store / "c" / "0" / "1"
    chunk.write_bytes(b"\1" * 4 + chunk.read_bytes()[4:])
    kc.StoredGram(store)[:]


SECOND = {
    "zarr_format": 2, "shape": [4, 2], "chunks": [4, 2], "dtype": "<f8", "fill_value": 0,
    "order": "C", "compressor": None, "filters": None,
}  # fmt: skip


def spoiled(name):
    """A file that is no array."""
    FOLDER.mkdir(exist_ok=True)
    try:
        (FOLDER / name).write_bytes(b"PK")
        named.array(f"{FOLDER}/{name}", "DATA")
    finally:
        shutil.rmtree(FOLDER)


def described(meta):
    """A folder that Zarr finds an array in, with these metadata."""
    (FOLDER / "k").mkdir(parents=True)
    try:
        name = ".zarray" if meta["zarr_format"] == 2 else "zarr.json"
        (FOLDER / "k" / name).write_text(json.dumps(meta))
        named.array(f"{FOLDER}/k", "DATA")
    finally:
        shutil.rmtree(FOLDER)


def reshaped(store, shape):
    """The store, after its metadata claim another shape."""
    file = store / "zarr.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"shape": shape}))
    kc.StoredGram(store)


def two(key):
    """A file of two arrays, of which one is named by the key."""
    FOLDER.mkdir(exist_ok=True)
    try:
        np.savez(FOLDER / "two.npz", a=EYE, b=EYE)
        named.array(f"{FOLDER}/two.npz{key}", "DATA")
    finally:
        shutil.rmtree(FOLDER)


def closed():
    """A client that was connected."""
    quiet = {"dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=0, processes=False, **quiet) as none, Client(none) as client:
        client.close()
        return client


def flight(store=None):
    """A job on a cluster whose scheduler is gone."""
    where = types.SimpleNamespace(address="tcp://a:8786")
    client = types.SimpleNamespace(status="connecting", scheduler=where)
    whole = job.Job(KERNEL, job.Source(X, "X"), None, 2)
    return cluster.flight(client, whole, None, None if store is None else kc.StoredGram(store))


def multiplying(flight):
    """The same for a product."""
    flight.task = cluster.Product(flight.task.entries, False, False)
    return flight


def nobody():
    """A scheduler that is not there, and that is soon given up."""
    patient, cluster.CONNECT = cluster.CONNECT, 0.1
    try:
        with client.at("tcp://127.0.0.1:9"):
            pass
    finally:
        cluster.CONNECT = patient


def digest(a):
    return f"3 x 2 float64 with digest {job.Source(a, 'X').digest()[:8]}"


CUBE = kc.Sequential(kc.Dense(), kc.Activation(lambda z: z**3), kc.Dense()).nngp
STORED = [
    Case(kind, message, kept(call, **changes))
    for kind, message, call, changes in (
        (
            FileExistsError,
            f"store must be new where resume=False: {FOLDER}/k has a Gram matrix; remove it, or "
            "leave resume=True",
            lambda store: kc.gram(KERNEL, X, store=store, resume=False),
            {},
        ),
        (
            ValueError,
            f"store must be of the same kernel: {FOLDER}/k has Laplacian(1.0), this call "
            "Gaussian(1.0); use another store",
            lambda store: kc.gram(kc.Gaussian(1.0), X, store=store),
            {},
        ),
        (
            ValueError,
            f"store must be of the same X: {FOLDER}/k has {digest(X)}, this call {digest(X + 1)}; "
            "use another store",
            lambda store: kc.gram(KERNEL, X + 1, store=store),
            {},
        ),
        (
            ValueError,
            f"store must be of the same Y: {FOLDER}/k has none, this call {digest(X)}; "
            "use another store",
            lambda store: kc.gram(KERNEL, X, X, store=store),
            {},
        ),
        (
            ValueError,
            f"store must be of the same tile: {FOLDER}/k has 2, this call 3; use another store",
            lambda store: kc.gram(KERNEL, X, store=store, tile=3),
            {},
        ),
        (
            ValueError,
            f"store must be one that kernelcore {kc.__version__} has written: {FOLDER}/k is of "
            "kernelcore 9.1; use another store, or that version",
            lambda store: kc.gram(KERNEL, X, store=store),
            {"format": 99, "version": "9.1"},
        ),
        (
            ValueError,
            f"store must be one that kernelcore {kc.__version__} has written: {FOLDER}/k is of "
            "kernelcore 9.1; use another store, or that version",
            kc.StoredGram,
            {"format": 99, "version": "9.1"},
        ),
        (
            ValueError,
            f"{FOLDER}/k must be laid out as a Gram matrix: got shape (3, 4) in (2, 2)",
            lambda store: reshaped(store, [3, 4]),
            {},
        ),
        (
            ValueError,
            f"{FOLDER}/k must have at most 10000000 tiles: got 274877906944",
            lambda store: reshaped(store, [2**20, 2**20]),
            {},
        ),
        (
            FileNotFoundError,
            f"store must have a Gram matrix: {FOLDER}/none has none",
            lambda store: kc.StoredGram(FOLDER / "none"),
            {},
        ),
        (
            OSError,
            f"{FOLDER}/k must be complete: 1 of 3 tiles are missing; kernelcore.gram with the same "
            "arguments computes them",
            lambda store: lose(store, "1/0", lambda K: K[:]),
            {},
        ),
        (
            OSError,
            f"tile (0, 1) of {FOLDER}/k must be as it was written: its checksum is wrong; "
            "kernelcore.gram with the same arguments computes it again",
            spoil,
            {},
        ),
        (
            ValueError,
            "kernel must be a kernel or a GramOperator with its points: got a stored matrix; pass "
            "the kernel and X",
            lambda store: kc.solvers.nystrom_ridge(kc.StoredGram(store), None, ONES, centres=2),
            {},
        ),
        (
            ConnectionError,
            f"the Dask scheduler at tcp://a:8786 is gone: 3 of 3 tiles are in {FOLDER}/k; call "
            "again to go on",
            lambda store: flight(store).connected(),
            {},
        ),
        (
            OSError,
            "store must be one that all workers see: tile (0, 1), which tcp://b:1 has written, is "
            f"not in {FOLDER}/k; use a folder or service that they share",
            lambda store: flight(store).seen_by_all((0, 1), cluster.Done("tcp://b:1", 0, None)),
            {},
        ),
        (
            ValueError,
            "max_memory must be positive: got 0.0",
            lambda store: kc.StoredGram(store, max_memory=0),
            {},
        ),
        (
            ValueError,
            "n_threads must be at least 1: got 0",
            lambda store: kc.StoredGram(store, n_threads=0),
            {},
        ),
    )
]


def predicted():
    """Coefficients of 3 points for 2, by the command line, whose arguments argparse has read."""
    FOLDER.mkdir(exist_ok=True)
    try:
        np.savez(FOLDER / "p.npz", a=ONES, x=X[:2])
        at = f"{FOLDER}/p.npz"
        words = ["predict", f"{at}:x", "--train", f"{at}:x", "--kernel", "gaussian:lengthscale=1"]
        args = cli._parser().parse_args(
            [*words, "--alpha", f"{at}:a", "--output", f"{FOLDER}/f.npy"]
        )
        args.run(args)
    finally:
        shutil.rmtree(FOLDER)


NAMED = [
    Case(ValueError, "--alpha must have 2 rows: got shape (3,)", predicted),
    Case(
        ValueError,
        "--kernel must begin with one of ckn, cntk, mlp, myrtle, arccosine, cauchy, gaussian, "
        "laplacian, matern, polynomial: got 'resnet:depth=3'",
        lambda: named.kernel("resnet:depth=3"),
    ),
    Case(
        ValueError,
        "--kernel must have arguments among depth, kernel, pool, nngp: got 'myrtle:deep=3'",
        lambda: named.kernel("myrtle:deep=3"),
    ),
    Case(
        ValueError,
        "--kernel must have lengthscale=, as in gaussian:lengthscale=2: got 'gaussian'",
        lambda: named.kernel("gaussian"),
    ),
    Case(
        ValueError,
        f"DATA must be an array of plain numbers or text: {FOLDER}/x.npz: File is not a zip file",
        lambda: spoiled("x.npz"),
    ),
    Case(
        ValueError,
        f"DATA must be an array of Zarr: {FOLDER}/k: 'data_type'",
        lambda: described({"zarr_format": 3, "node_type": "array"}),
    ),
    Case(
        ValueError,
        f"DATA must be an array of Zarr with plain entries: got {FOLDER}/k",
        lambda: described(SECOND | {"dtype": "<M8[s]"}),
    ),
    Case(
        TypeError,
        "shape must be a sequence of integers: got NoneType",
        lambda: kc.plan(KERNEL, n=3, shape=None),
    ),
    Case(
        FileNotFoundError,
        "DATA must be a file or a folder: nothing.npz is none",
        lambda: named.array("nothing.npz:X", "DATA"),
    ),
    Case(
        ValueError,
        f"DATA must name one of its arrays, as in {FOLDER}/two.npz:a: got 2 arrays: a, b",
        lambda: two(""),
    ),
    Case(
        ValueError,
        f"DATA must name an array of {FOLDER}/two.npz, a, b: got 'c'",
        lambda: two(":c"),
    ),
    Case(
        ValueError,
        "dtype must be float32 or float64: got int64",
        lambda: kc.plan(KERNEL, n=3, shape=2, dtype=int),
    ),
    Case(ValueError, "n must be at least 1: got 0", lambda: kc.plan(KERNEL, n=0, shape=2)),
    Case(
        ValueError,
        "batch must be at least 1: got 0",
        lambda: plan.epoch(n=3, dim=2, workers=1, entry_seconds=1e-9, batch=0),
    ),
    Case(
        ValueError,
        "entry_seconds must be positive: got 0.0",
        lambda: plan.epoch(n=3, dim=2, workers=1, entry_seconds=0.0, batch=1),
    ),
    Case(TypeError, "kernel must be a kernel: got ndarray", lambda: kc.plan(EYE, n=3, shape=2)),
]

CASES = [
    *STORED,
    *NAMED,
    Case(TypeError, "kernel must be a kernel: got ndarray", lambda: kc.gram(EYE, X)),
    Case(
        ValueError, "tile must be at least 1: got 0", lambda: kc.gram(KERNEL, X, store="k", tile=0)
    ),
    Case(
        ValueError,
        "X must have shape (n, d), (n, L, C) or (n, H, W, C): got shape (3,)",
        lambda: kc.gram(KERNEL, ONES, store="k"),
    ),
    Case(
        ValueError,
        f"kernel must print as what it is, to be told from others in a store: got {CUBE!r}; use a "
        "closed form or a function of NumPy in the place of one of your own",
        lambda: kc.gram(CUBE, X, store="k", tile=2),
    ),
    Case(
        ImportError,
        "store needs Zarr; install it with: pip install 'kernelcore[scale]'",
        without("zarr", lambda: kc.gram(KERNEL, X, store="k")),
    ),
    Case(
        ConnectionError,
        "the Dask scheduler at tcp://a:8786 is gone: 0 of 3 tiles are in memory; call again with "
        "store= to keep them",
        lambda: flight().connected(),
    ),
    Case(
        ConnectionError,
        "the Dask scheduler at tcp://a:8786 is gone: the product has to be computed again, with "
        "another client",
        lambda: multiplying(flight()).connected(),
    ),
    Case(
        TypeError,
        "client must be a dask.distributed.Client: got str",
        lambda: kc.gram(KERNEL, X, client="tcp://a:8786"),
    ),
    Case(
        ConnectionError,
        "no Dask scheduler answers at tcp://127.0.0.1:9; start one with: dask scheduler",
        nobody,
    ),
    Case(
        TypeError,
        "client must be a dask.distributed.Client: got int",
        lambda: kc.GramOperator(KERNEL, X, client=3),
    ),
    Case(
        TypeError,
        "client must be a dask.distributed.Client: got str",
        lambda: kc.set_client("tcp://a:8786"),
    ),
    Case(
        ValueError,
        "x must have one row per column of K, 3, and shape (n,) or (n, r): got shape (2,)",
        lambda: kc.GramOperator(KERNEL, X).times([0], ONES[:2]),
    ),
    Case(
        IndexError,
        "which must be from -3 to 2: got 3",
        lambda: kc.GramOperator(KERNEL, X).times([3], ONES),
    ),
    Case(
        ValueError,
        "client must be connected: got a closed one",
        lambda: kc.gram(KERNEL, X, client=closed()),
    ),
    Case(
        ImportError,
        "client needs Dask; install it with: pip install 'kernelcore[scale]'",
        without("distributed", lambda: kc.gram(KERNEL, X, client="tcp://a:8786")),
    ),
    Case(TypeError, "kernel must be a kernel: got ndarray", lambda: kc.GramOperator(EYE, X)),
    Case(
        ValueError,
        "X must have at least one row: got shape (0, 4, 2)",
        lambda: kc.GramOperator(SIGNALS, np.empty((0, 4, 2))),
    ),
    Case(
        ValueError,
        "Y must have at least one row: got shape (0, 2)",
        lambda: kc.GramOperator(KERNEL, X, X[:0]),
    ),
    Case(
        ValueError,
        "Y must have as many columns as X: X has shape (3, 2), Y has shape (3, 1)",
        lambda: kc.GramOperator(KERNEL, X, X[:, :1]),
    ),
    Case(
        ValueError,
        "max_memory must be positive: got -1.0",
        lambda: kc.GramOperator(KERNEL, X, max_memory=-1),
    ),
    Case(
        ValueError,
        "n_threads must be at least 1: got 0",
        lambda: kc.GramOperator(KERNEL, X, n_threads=0),
    ),
    Case(
        ValueError,
        "Y must not be given with scale: got ndarray",
        lambda: kc.GramOperator(KERNEL, X, X, scale=ONES),
    ),
    Case(
        ValueError,
        "scale must have one entry per row of X, 3: got shape (2,)",
        lambda: kc.GramOperator(KERNEL, X, scale=[1.0, 1.0]),
    ),
    # products
    Case(
        ValueError,
        "x must have one row per column of K, 3, and shape (n,) or (n, r): got shape (2,)",
        lambda: OPERATOR @ np.ones(2),
    ),
    Case(
        ValueError,
        "x must have one row per column of K, 2, and shape (n,) or (n, r): got shape (2, 1, 1)",
        lambda: kc.GramOperator(KERNEL, X, X[:2]).matmat(np.ones((2, 1, 1))),
    ),
    Case(
        ValueError,
        "x must have one row per row of K, 3, and shape (n,) or (n, r): got shape (2,)",
        lambda: kc.GramOperator(KERNEL, X, X[:2]).rmatvec(np.ones(2)),
    ),
    Case(
        TypeError,
        "x must be a dense array: got csr_array; pass x.toarray()",
        lambda: OPERATOR @ csr_array(EYE),
    ),
    # parts
    Case(IndexError, "columns must be from -3 to 2: got 3", lambda: OPERATOR.columns([0, 3])),
    Case(IndexError, "rows must be from -3 to 2: got -4", lambda: OPERATOR.rows(-4)),
    Case(
        TypeError,
        "rows must be integers, a slice or a mask of length 3: got float64 of shape (1,)",
        lambda: OPERATOR.block([0.5], [1]),
    ),
    Case(
        TypeError,
        "columns must be integers, a slice or a mask of length 3: got bool of shape (2,)",
        lambda: OPERATOR.columns([True, False]),
    ),
    Case(
        ValueError,
        "out must have shape (1, 3): got shape (2, 3)",
        lambda: OPERATOR.rows([0], np.empty((2, 3))),
    ),
    # what K is
    Case(
        TypeError,
        "K must be an array, or have a shape and multiply with @: got Laplacian",
        lambda: kc.solvers.conjugate_gradients(KERNEL, ONES),
    ),
    Case(
        ValueError,
        "K must be square: got shape (3, 2)",
        lambda: kc.solvers.conjugate_gradients(kc.GramOperator(KERNEL, X, X[:2]), ONES),
    ),
    Case(
        ValueError,
        "K must be symmetric: got that of X and Y; leave Y out",
        lambda: kc.solvers.ridge(kc.GramOperator(KERNEL, X, X + 1), ONES),
    ),
    Case(
        TypeError,
        f"K must have diagonal() and columns() {LACKS}",
        lambda: kc.solvers.nystrom_preconditioner(MULTIPLIES, rank=1),
    ),
    Case(
        TypeError,
        f"K must have diagonal() and columns() {LACKS}",
        lambda: kc.solvers.randomly_pivoted_cholesky(MULTIPLIES, rank=1),
    ),
    Case(
        TypeError,
        "K must have columns() besides @: got WithDiagonal; pass a GramOperator or an array",
        lambda: kc.solvers.nystrom_preconditioner(WithDiagonal(), rank=1),
    ),
    Case(
        TypeError,
        f"K must have columns() {LACKS}",
        lambda: kc.solvers.eigenpro_preconditioner(MULTIPLIES, rank=1),
    ),
    Case(
        TypeError,
        f"K must have columns() {LACKS}",
        lambda: kc.solvers.block_jacobi(MULTIPLIES),
    ),
    Case(TypeError, SPARSE, lambda: kc.solvers.block_jacobi(csr_array(EYE))),
    Case(TypeError, SPARSE, lambda: kc.solvers.ridge(csr_array(EYE), ONES)),
    Case(
        ValueError,
        "K @ x must be finite: got nan",
        lambda: kc.solvers.ridge(aslinearoperator(EYE * np.nan), ONES),
    ),
    # a matrix in the place of a kernel and its points
    Case(
        ValueError,
        "X must not be given with a matrix: got ndarray",
        lambda: kc.solvers.block_jacobi(OPERATOR, X),
    ),
    Case(
        TypeError,
        f"kernel must have diagonal() and columns() {LACKS}",
        lambda: kc.solvers.eigenpro(MULTIPLIES, None, ONES),
    ),
    Case(
        TypeError,
        "kernel must be a kernel: got GramOperator",
        lambda: kc.solvers.eigenpro(OPERATOR, X, ONES),
    ),
    Case(
        ValueError,
        "kernel must have at least 2 rows for eigenpro: got 1",
        lambda: kc.solvers.eigenpro(EYE[:1, :1], None, [1.0]),
    ),
    Case(
        ValueError,
        "sample_weight must not be given with a matrix: got ndarray",
        lambda: kc.solvers.eigenpro(OPERATOR, None, ONES, sample_weight=ONES),
    ),
    Case(
        ValueError,
        "y must have one row per row of kernel, 3, and shape (n,) or (n, r): got shape (2,)",
        lambda: kc.solvers.eigenpro(OPERATOR, None, ONES[:2]),
    ),
    Case(
        ValueError,
        "X must not be given with a GramOperator: got ndarray",
        lambda: kc.solvers.nystrom_ridge(OPERATOR, X, ONES, centres=2),
    ),
    Case(
        ValueError,
        "kernel must be a GramOperator without scale: got one with it; pass sample_weight",
        lambda: kc.solvers.nystrom_ridge(
            kc.GramOperator(KERNEL, X, scale=ONES), None, ONES, centres=2
        ),
    ),
    Case(
        TypeError,
        "kernel must be a kernel: got ndarray",
        lambda: kc.solvers.RowBlocks(EYE, X),
    ),
    Case(
        ValueError,
        "max_memory must be positive: got 0.0",
        lambda: kc.solvers.RowBlocks(KERNEL, X, max_memory=0),
    ),
    Case(
        ValueError,
        "X must have at least one row: got shape (0, 2)",
        lambda: kc.solvers.RowBlocks(KERNEL, np.empty((0, 2))),
    ),
    Case(
        ValueError,
        "scale must have one entry per row of X, 3: got shape (2,)",
        lambda: kc.solvers.RowBlocks(kc.Laplacian(1.0), X, scale=[1.0, 1.0]),
    ),
]
