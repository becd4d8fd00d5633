"""Files that are truncated, changed or made to mislead: what they hold, or an error that says so.

No file outside of the folder given is opened, nothing is unpickled, and nothing large is allocated.
"""

import contextlib
import gzip
import io
import json
import os
import pathlib
import pickle
import struct
import sys
import tempfile
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import strategies as st

import kernelcore as kc
from fuzz import KINDS, attempt, fuzzed
from kernelcore import cli, experiments
from kernelcore.experiments import uci
from kernelcore.scale import named

ROOT = tempfile.TemporaryDirectory()
HERE = pathlib.Path(ROOT.name).resolve()
LARGE = 50_000_000
"""More bytes than any of these small files may make a reader allocate."""
X = np.arange(24.0).reshape(6, 4)


# ---- what is watched

_seen = None


EVENTS = ("open", "pickle.find_class", "os.system", "subprocess.Popen")


def _hook(event, arguments):
    if _seen is not None and event in EVENTS:
        _seen.append((event, arguments[0]))


sys.addaudithook(_hook)


@contextlib.contextmanager
def watched():
    """Only files of HERE, of Python and of devices are opened, and little memory is taken."""
    global _seen
    tracemalloc.start()
    _seen = []
    try:
        yield
    finally:
        seen, _seen = _seen, None
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    for event, path in seen:
        assert event == "open", (event, path)
        if isinstance(path, (str, bytes)) and not os.fsdecode(path).endswith((".py", ".pyc")):
            real = os.path.realpath(os.fsdecode(path))
            fine = (str(HERE), "/dev", "/proc", "/sys", sys.prefix, sys.base_prefix)
            assert real.startswith(fine), real
    assert most < LARGE, most


def read(call):
    """The value, or None where the file is refused: also as missing."""
    with watched():
        return attempt(call, (*KINDS, OSError))


# ---- what is changed


@st.composite
def damage(draw):
    """A change of bytes: cut, flipped, spliced, repeated, or replaced from some place on."""
    kind = draw(st.sampled_from(["cut", "flip", "flip", "number", "splice", "repeat", "all"]))
    at, length = draw(st.floats(0, 1)), draw(st.integers(1, 8))
    noise = draw(st.binary(min_size=1, max_size=8))

    def changed(data):
        start = int(at * max(0, len(data) - 1))
        if kind == "cut":
            return data[:start]
        if kind == "flip":
            return (
                data[:start]
                + bytes(b ^ (1 << length - 1) for b in data[start : start + 1])
                + (data[start + 1 :])
            )
        if kind == "number":
            return data[:start] + b"\xff" * length + data[start + length :]
        if kind == "splice":
            return data[:start] + noise + data[start:]
        if kind == "repeat":
            return data[:start] + data[start : start + 40] * length + data[start:]
        return noise

    return changed


def npz(**made):
    stream = io.BytesIO()
    np.savez(stream, **made)
    return stream.getvalue()


def npy(a):
    stream = io.BytesIO()
    np.save(stream, a)
    return stream.getvalue()


def idx(a):
    a = np.asarray(a, np.uint8)
    return bytes((0, 0, 8, a.ndim)) + struct.pack(f">{a.ndim}I", *a.shape) + a.tobytes()


GREY = {
    "train-images-idx3-ubyte": idx(np.zeros((2, 28, 28))), "train-labels-idx1-ubyte": idx([1, 2]),
    "t10k-images-idx3-ubyte.gz": gzip.compress(idx(np.zeros((1, 28, 28))), mtime=0),
    "t10k-labels-idx1-ubyte": idx([3]),
}  # fmt: skip
BATCH = pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1, 2]}, 2)
BINARY = bytes(2 * 3073)
SET = {
    "toy.txt": b"n_entradas= 1\nfich1= toy_R.dat\n",
    "toy_R.dat": b"\tf1\tclase\n0\t0.5\t0\n1\t1.5\t1\n2\t2.5\t0\n3\t3.5\t1\n",
    "conxuntos.dat": b"0 1\n2 3\n",
    "conxuntos_kfold.dat": b"0 1\n2 3\n" * 4,
}
IMAGES = np.zeros((1, 32, 32, 3), np.uint8)
TABLE = npz(x_train=IMAGES, y_train=[1], x_test=IMAGES, y_test=[2])


def result():
    path = HERE / "saved.npz"
    experiments.Result("toy", {"n": 3}, {"errors": [0.5, 0.25], "names": ["a"]}).save(path)
    return path.read_bytes()


def folder(name, files):
    path = HERE / name
    path.mkdir(exist_ok=True)
    for file in path.iterdir():
        file.unlink()
    for file, data in files.items():
        (path / file).write_bytes(data)
    return path


def file(name, data):
    (HERE / name).write_bytes(data)
    return HERE / name


# One file of each format, and how it is read: name -> (files, which of them are changed, reader).
FORMATS = {
    "result": ({"r.npz": result()}, lambda path: experiments.Result.load(path / "r.npz")),
    "note": (
        {"curves.npz": result(), "curves.json": b'{"seconds": 1.5, "machine": {"cpu": "x"}}'},
        experiments.saved,
    ),
    "idx": (GREY, kc.data.mnist),
    "batch": ({"data_batch_1": BATCH, "test_batch": BATCH}, kc.data.cifar10),
    "binary": ({"data_batch_1.bin": BINARY, "test_batch.bin": BINARY}, kc.data.cifar10),
    "table": ({"cifar.npz": TABLE}, lambda path: kc.data.cifar10(path / "cifar.npz")),
    "toy": (SET, kc.data.uci),
    "npy": ({"x.npy": npy(X)}, lambda path: np.array(named.array(f"{path}/x.npy", "DATA"))),
    "npz": ({"x.npz": npz(X=X)}, lambda path: named.array(f"{path}/x.npz:X", "DATA")),
}


@fuzzed(450, st.sampled_from(sorted(FORMATS)), st.integers(0, 3), st.lists(damage(), max_size=2))
def test_damaged_files_are_read_or_refused(name, which, changes):
    files, reader = FORMATS[name]
    changed = sorted(files)[which % len(files)]
    data = files[changed]
    for change in changes:
        data = change(data)
    found = read(lambda: reader(folder(name, files | {changed: data})))
    assert changes or found is not None


STORE = HERE / "k.zarr"


def stored():
    """A store of small tiles, and its metadata."""
    if not STORE.exists():
        kc.gram(kc.Laplacian(1.0), X, store=STORE, tile=3)
    return json.loads((WHOLE if (WHOLE := STORE / "zarr.whole").exists() else kept()).read_text())


def kept():
    (STORE / "zarr.whole").write_bytes((STORE / "zarr.json").read_bytes())
    return STORE / "zarr.whole"


HOSTILE = st.one_of(
    st.none(), st.just(0), st.just(-1), st.just(2**62), st.just(1e308), st.just("x"), st.just([]),
    st.just({}), st.just([2**60, 2**60]), st.just([6]), st.just([6, 6, 6]), st.just([1, 2**40]),
    st.just({"name": "numcodecs.pickle"}), st.just("object"), st.just("float16"),
)  # fmt: skip


def places(value, path=()):
    """All places of nested metadata."""
    yield path
    items = value.items() if isinstance(value, dict) else ()
    for key, one in enumerate(value) if isinstance(value, list) else items:
        yield from places(one, (*path, key))


@fuzzed(120, st.floats(0, 1), HOSTILE, st.lists(damage(), max_size=1))
def test_stores_with_other_metadata_are_read_or_refused(at, value, changes):
    meta = stored()
    path = list(places(meta))
    *most, last = path[1 + int(at * (len(path) - 2))]
    inside = meta
    for key in most:
        inside = inside[key]
    inside[last] = value
    data = json.dumps(meta).encode()
    for change in changes:
        data = change(data)
    (STORE / "zarr.json").write_bytes(data)

    def tried():
        K = kc.StoredGram(STORE)
        repr(K)
        return K @ np.ones(K.shape[1]) if K.shape[1] < 100 else None

    read(tried)
    read(lambda: named.array(str(STORE), "DATA"))


@pytest.mark.parametrize("value", [0, True, "x", [], [[]], None])
def test_stores_whose_attributes_are_no_dictionary(value):
    (STORE / "zarr.json").write_text(json.dumps({**stored(), "attributes": value}))
    refused(lambda: kc.StoredGram(STORE), "is of something else; use another store")


# ---- what was made to mislead


class Harm:
    """Whose pickle would write a file if it were trusted."""

    def __reduce__(self):
        return os.mkdir, (str(HERE / "harm"),)


@pytest.fixture(autouse=True)
def unharmed():
    yield
    assert not (HERE / "harm").exists()


def refused(call, words):
    with watched(), pytest.raises((ValueError, OSError, TypeError, MemoryError)) as caught:
        call()
    assert words in str(caught.value)


def test_pickles_are_refused_wherever_they_stand():
    harm = pickle.dumps(Harm())
    pickle.loads(harm)  # it works
    (HERE / "harm").rmdir()
    objects = np.array([Harm()], object)
    stream = io.BytesIO()
    np.lib.format.write_array(stream, objects, allow_pickle=True)
    (HERE / "evil.npy").write_bytes(stream.getvalue())
    with zipfile.ZipFile(HERE / "evil.npz", "w") as archive:
        archive.write(HERE / "evil.npy", "X.npy")
    (HERE / "plain.npy").write_bytes(harm)
    refused(lambda: named.array(str(HERE / "evil.npy"), "DATA"), "DATA must be an array")
    refused(lambda: named.array(str(HERE / "plain.npy"), "DATA"), "DATA must be an array")
    refused(lambda: named.array(str(HERE / "evil.npz"), "DATA"), "DATA must be an array")
    refused(lambda: kc.data.cifar10(HERE / "evil.npz"), "must be an npz file")
    refused(lambda: experiments.Result.load(HERE / "evil.npz"), "must be a result")
    batches = folder("evil", {"data_batch_1": harm, "test_batch": harm})
    refused(lambda: kc.data.cifar10(batches), "must be a batch of CIFAR-10")


@pytest.mark.parametrize("place", ["compressor", "filters"])
def test_codecs_of_pickles_are_refused(place):
    """Zarr's second format can name any codec, also one that unpickles what it reads."""
    path = HERE / f"{place}.zarr"
    path.mkdir()
    meta = {
        "zarr_format": 2, "shape": [4, 2], "chunks": [4, 2], "dtype": "<f8", "fill_value": 0,
        "order": "C", "compressor": None, "filters": None,
    }  # fmt: skip
    codec = {"id": "pickle"}
    (path / ".zarray").write_text(json.dumps(meta | {place: codec if place[0] == "c" else [codec]}))
    (path / "0.0").write_bytes(pickle.dumps(Harm()))
    refused(lambda: named.array(str(path), "DATA")[:], "DATA must be an array of Zarr")
    refused(lambda: kc.StoredGram(path), "store must be an array of Zarr")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "..", "a/b", "."])
def test_descriptions_of_sets_name_files_of_their_folder(name):
    (HERE / "secret").write_bytes(SET["toy_R.dat"])
    path = folder("toy", SET | {"toy.txt": f"fich1= {name}\n".encode()})
    refused(lambda: kc.data.uci(path), "must name a file of its folder")


def test_heads_that_claim_more_than_a_file_has_allocate_nothing():
    head = npy(np.zeros((1, 32, 32, 3), np.uint8))
    lies = head.replace(b"(1, 32, 32, 3)", b"(9**9,32,32,3)").replace(
        b"(9**9,32,32,3)", b"(999999999, 3)"
    )
    assert len(lies) == len(head)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("x_train", "y_train", "x_test", "y_test"):
            archive.writestr(f"{name}.npy", lies)
    path = file("lies.npz", stream.getvalue())
    refused(lambda: kc.data.cifar10(path), "must be an npz file")
    refused(lambda: named.array(f"{path}:x_test", "DATA"), "DATA must be an array")
    refused(lambda: named.array(str(file("lies.npy", lies)), "DATA"), "DATA must be an array")
    labels = bytes((0, 0, 8, 1)) + struct.pack(">I", 2**31)
    lying = folder("grey", GREY | {"train-labels-idx1-ubyte": labels})
    refused(lambda: kc.data.mnist(lying), "entries, as its head says")


def test_archives_that_unpack_to_more_than_memory_are_refused():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", npy(np.zeros(3_000_000)))
    path = file("bomb.npz", stream.getvalue())
    assert path.stat().st_size < 100_000
    kc.set_memory("20MB")
    refused(lambda: named.array(str(path), "DATA"), "X must fit into memory: 48.0 MB are needed")


def test_stores_of_more_tiles_than_can_be_listed_are_refused():
    meta = stored()
    meta["shape"] = [2**40, 2**40]
    (STORE / "zarr.json").write_text(json.dumps(meta))
    refused(lambda: kc.StoredGram(STORE), "must have at most 10000000 tiles")


def test_tables_of_results_with_endless_fields_are_refused():
    path = file("table.csv", b'"' + b"x" * 200_000)
    refused(lambda: uci.read(path), "must be a table of this experiment: got another first line")


def test_notes_with_endless_numbers_are_no_times():
    note = b'{"seconds": 1' + b"0" * 400 + b"}"
    path = folder("notes", {"curves.npz": result(), "curves.json": note})
    assert read(lambda: experiments.saved(path)) is not None


def test_results_nested_too_deeply_are_refused():
    nested = b"[" * 990 + b"]" * 990
    head = b'{"name": "toy", "version": "1", "settings": {"n": ' + nested + b"}}"
    path = HERE / "deep.npz"
    experiments._base.write_arrays(path, {"kernelcore": np.frombuffer(head, np.uint8)})
    refused(lambda: experiments.Result.load(path), "must be a result that kernelcore has saved")


def test_commands_say_what_is_wrong_with_a_file_in_one_line(capsys):
    """Of whatever kind the error is: a broken archive, an empty file, text, complex numbers."""
    kinds = {"a.npz": b"PK", "b.npy": b"", "c.npy": npy(X + 1j), "d.npy": npy(np.array(["x"] * 50))}
    for name, data in kinds.items():
        path = str(file(name, data))
        assert cli.main(["diagnose", path, path, "--kernel", "gaussian"]) == 1, name
        told = capsys.readouterr().err
        assert told.startswith("kernelcore: "), told
        assert told.count("\n") == 1
