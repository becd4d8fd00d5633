"""Inputs, targets, images, and files of data sets that are not what they should be."""

import gzip
import pathlib
import pickle
import struct
import tempfile

import numpy as np
from messages import Case

import kernelcore as kc

FOLDER = tempfile.TemporaryDirectory()
ROOT = pathlib.Path(FOLDER.name).resolve()
IMAGE = np.arange(16.0).reshape(1, 4, 4, 1)
WHITENING = kc.data.Whitening(np.eye(3), epsilon=1.0)


def idx(array, axes=None):
    array = np.asarray(array, np.uint8)
    head = bytes((0, 0, 8, array.ndim if axes is None else axes))
    return head + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


GREY = idx(np.zeros((2, 28, 28)))
NAMES = {
    "train-images-idx3-ubyte": GREY, "train-labels-idx1-ubyte": idx([1, 2]),
    "t10k-images-idx3-ubyte.gz": gzip.compress(GREY), "t10k-labels-idx1-ubyte": idx([3, 4]),
}  # fmt: skip


def written(folder, files):
    path = ROOT / folder
    path.mkdir(exist_ok=True)
    for file in path.iterdir():
        file.unlink()
    for name, data in files.items():
        (path / name).write_bytes(data)
    return path


def grey(rule, file, data):
    """The error of a small copy of MNIST one of whose files is another."""
    call = lambda: kc.data.mnist(written("grey", NAMES | {file: data}))  # noqa: E731
    return Case(ValueError, f"{ROOT}/grey/{file} {rule}", call)


def batch(data):
    """What Python 2 wrote: a dict of texts, an array and a list."""
    return pickle.dumps({b"data": np.asarray(data, np.uint8), b"labels": [1] * len(data)}, 2)


class Harm:
    """Whose pickle would remove a file if it were trusted."""

    def __reduce__(self):
        return pathlib.Path.unlink, (pathlib.Path("/nonexistent"),)


def colour(rule, data, file="test_batch"):
    beside = {"data_batch_1": batch(np.zeros((1, 3072))), "data_batch_1.bin": bytes(3073)}
    call = lambda: kc.data.cifar10(written("colour", beside | {file: data}))  # noqa: E731
    return Case(ValueError, f"{ROOT}/colour/{file} {rule}", call)


def endless(name):
    """A file that is larger than any set, on paper."""
    path = written("colour", {"data_batch_1.bin": bytes(3073), name: b""})
    with (path / name).open("wb") as file:
        file.truncate(2**31 + 1)
    return path


def archive(**arrays):
    """An npz file, with some arrays other than they should be."""
    good = {
        "x_train": np.zeros((1, 32, 32, 3), np.uint8), "y_train": np.zeros(1, int),
        "x_test": np.zeros((1, 32, 32, 3), np.uint8), "y_test": np.zeros(1, int),
    }  # fmt: skip
    path = ROOT / "cifar.npz"
    np.savez(path, **{name: a for name, a in (good | arrays).items() if a is not None})
    return kc.data.cifar10(path)


def raw(data):
    path = ROOT / "raw.npz"
    path.write_bytes(data)
    return kc.data.cifar10(path)


NPZ = "must be an npz file with an array"
FAR = b"\x80\x02r" + struct.pack("<I", 2**31) + b"."  # a place far away in the memo
CASES = [
    Case(
        ValueError,
        "signal_dim must be at most dim - 1, 3: got 4",
        lambda: kc.data.spiked(2, 4, 4, 1.0),
    ),
    Case(
        ValueError,
        "the degree of target_power must be at most dim, 2: got 3",
        lambda: kc.data.Chains(2, [0, 0, 0, 1]),
    ),
    Case(
        ValueError,
        "X must have at least 3 columns: got shape (1, 2)",
        lambda: kc.data.low_frequency([[1.0, 1.0]]),
    ),
    Case(
        ValueError,
        "X must have no zero rows: got 0.0",
        lambda: kc.data.Chains(2, [0, 1], law="sphere")([[1.0, 0.0], [0.0, 0.0]]),
    ),
    Case(
        ValueError,
        "directions must have one or two axes: got shape (1, 1, 1)",
        lambda: kc.data.Subspace([[[1.0]]], np.sin),
    ),
    Case(
        ValueError,
        "X must have 2 columns: got shape (1, 3)",
        lambda: kc.data.Subspace([1.0, 2.0], np.sin)([[1.0, 2.0, 3.0]]),
    ),
    Case(
        ValueError,
        "weights must have shape (dim,): got shape (1, 1)",
        lambda: kc.data.neuron([[1.0]]),
    ),
    Case(
        ValueError, "share must be at most 1: got 1.5", lambda: kc.data.random_labels([1, 2], 1.5)
    ),
    Case(
        ValueError,
        "images must have shape (n, H, W, C), not empty: got shape (4, 4)",
        lambda: kc.data.flips(np.ones((4, 4))),
    ),
    Case(
        ValueError,
        "axis must be at most that of columns, 2: got 3",
        lambda: kc.data.flips(IMAGE, axis=3),
    ),
    Case(
        ValueError,
        "images must not be constant: got 0.0",
        lambda: kc.data.frequency_noise(np.ones((1, 4, 4, 1)), 1.0),
    ),
    Case(
        ValueError,
        "tau must have shape (2,) or (4, 4, 2): got shape (3,)",
        lambda: kc.data.deform(IMAGE, [1.0, 2.0, 3.0]),
    ),
    Case(
        ValueError,
        "gradient must be from 2.91e-05 to 1.09 for this size and seed: got 5.0",
        lambda: kc.data.deformation((8, 8), 1.0, gradient=5.0, seed=0),
    ),
    Case(
        ValueError,
        "epsilon must be positive for a covariance of lower rank: got 0.0",
        lambda: kc.data.Whitening(np.eye(3), epsilon=0),
    ),
    Case(
        ValueError,
        "X must have inputs of shape (3,): got shape (1, 2)",
        lambda: WHITENING([[1.0, 2.0]]),
    ),
    Case(
        FileNotFoundError,
        f"folder must hold Fashion-MNIST: {ROOT} has no train-images-idx3-ubyte[.gz]; on Debian, "
        "apt-get install dataset-fashion-mnist puts it into /usr/share/datasets/fashion-mnist",
        lambda: kc.data.fashion_mnist(ROOT),
    ),
    grey(
        "must begin as an idx file of bytes with 3 axes, 00000803: got 00000801",
        "train-images-idx3-ubyte",
        idx(np.zeros(784)),
    ),
    grey(
        "must have at most 2147483648 entries: got shape (4294967295, 28, 28)",
        "train-images-idx3-ubyte",
        bytes((0, 0, 8, 3)) + struct.pack(">3I", 2**32 - 1, 28, 28),
    ),
    grey(
        "must have 2 entries, as its head says: got 1",
        "train-labels-idx1-ubyte",
        NAMES["train-labels-idx1-ubyte"][:-1],
    ),
    grey(
        "must have 2 entries, as its head says: got more",
        "train-labels-idx1-ubyte",
        NAMES["train-labels-idx1-ubyte"] + b"!",
    ),
    grey(
        "must have one label per image, (2,): got shape (3,)",
        "train-labels-idx1-ubyte",
        idx([1, 2, 3]),
    ),
    grey(
        "must have labels below 10: got 12",
        "train-labels-idx1-ubyte",
        idx([1, 12]),
    ),
    grey(
        "must be a whole gzip file: Compressed file ended before the end-of-stream marker was "
        "reached",
        "t10k-images-idx3-ubyte.gz",
        NAMES["t10k-images-idx3-ubyte.gz"][:-12],
    ),
    Case(
        FileNotFoundError,
        f"path must hold CIFAR-10: {ROOT}/nothing is no npz file and has no test_batch[.bin]; "
        "www.cs.toronto.edu/~kriz/cifar.html has archives of both kinds of batches",
        lambda: kc.data.cifar10(ROOT / "nothing"),
    ),
    Case(
        ValueError,
        f"path must have data_batch_1.bin beside the test batch: got {ROOT}/colour",
        lambda: kc.data.cifar10(written("colour", {"test_batch.bin": bytes(3073)})),
    ),
    colour("must be a batch of CIFAR-10: it names __builtin__.getattr", pickle.dumps(Harm(), 2)),
    colour("must be a batch of CIFAR-10: it asks for 2147483648 places", FAR),
    colour(
        "must be a batch of CIFAR-10: its data are no rows of 3072 bytes", batch(np.zeros((1, 3)))
    ),
    Case(
        ValueError,
        f"{ROOT}/colour/test_batch.bin must have at most 2147483648 bytes: got 2147483649",
        lambda: kc.data.cifar10(endless("test_batch.bin")),
    ),
    Case(
        ValueError,
        f"{ROOT}/toy/toy.txt must name a file of its folder: got '../secret'",
        lambda: kc.data.uci(written("toy", {"toy.txt": b"fich1= ../secret"})),
    ),
    colour("must be records of 3073 bytes: got 3 bytes", b"abc", "test_batch.bin"),
    Case(
        ValueError,
        f"{ROOT}/cifar.npz {NPZ} y_test: There is no item named 'y_test.npy' in the archive",
        lambda: archive(y_test=None),
    ),
    Case(
        ValueError,
        f"{ROOT}/cifar.npz {NPZ} y_test: arrays must be as their head says: got object",
        lambda: archive(y_test=np.array([{}], object)),
    ),
    Case(ValueError, f"{ROOT}/raw.npz {NPZ} x_train: File is not a zip file", lambda: raw(b"")),
    Case(
        ValueError,
        f"{ROOT}/cifar.npz must have an x_train of 32 x 32 x 3 bytes: got float64 of shape (2, 3)",
        lambda: archive(x_train=np.zeros((2, 3))),
    ),
]
