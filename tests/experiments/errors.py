"""Files that are written, and files of data sets."""

import contextlib
import io
import pathlib
import tempfile

import numpy as np
from messages import Case

from kernelcore import _check, _files, cli, experiments
from kernelcore.experiments import _given, noise, uci

FOLDER = tempfile.TemporaryDirectory()
ROOT = pathlib.Path(FOLDER.name).resolve()
SET = {
    "toy.txt": "n_entradas= 1\nfich1= toy_R.dat\n",
    "toy_R.dat": "\tf1\tclase\n0\t0.5\t0\n1\t1.5\t1\n2\t2.5\t0\n3\t3.5\t1\n",
    "conxuntos.dat": "0 1\n2 3\n",
    "conxuntos_kfold.dat": "0 1\n2 3\n" * 4,
}


def load(**changed):
    """The error of a small set some of whose files are others; the keys are numbered."""
    folder = ROOT / "toy"
    folder.mkdir(exist_ok=True)
    for name, text in (SET | dict(changed.values())).items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return uci.load(folder)


def refused(rule, file, text, kind=ValueError):
    return Case(kind, f"{ROOT / 'toy' / file} {rule}", lambda: load(one=(file, text)))


def written():
    path = ROOT / "results.csv"
    path.write_text("something\n")
    return path


def failing():
    """The command, where the only set fails."""
    with contextlib.suppress(ValueError):
        load(one=("conxuntos.dat", "0 1\n2 4\n"))
    with contextlib.redirect_stdout(io.StringIO()):
        uci.main(["--data", str(ROOT)])


def damaged():
    path = ROOT / "damaged.npz"
    path.write_text("no archive")
    return experiments.Result.load(path)


TABLE, CHOICE, FOLDS = "toy_R.dat", "conxuntos.dat", "conxuntos_kfold.dat"
HEAD = {"descr": "<f8", "fortran_order": False, "shape": (2,)}
SETTINGS = experiments.Settings()
CASES = [
    Case(
        ValueError,
        "--set must name a setting: got 'sed'; there are seed",
        lambda: SETTINGS.changed({"sed": "1"}),
    ),
    Case(
        ValueError,
        "seed must be a whole number: got '1.5'",
        lambda: SETTINGS.changed({"seed": "1.5"}),
    ),
    Case(
        ValueError,
        "ridge must be a number: got 'x'",
        lambda: _check.setting_text("x", (1.0,), "ridge"),
    ),
    Case(
        ValueError,
        "fast must be one of 'true', 'false': got 'yes'",
        lambda: _check.setting_text("yes", False, "fast"),
    ),
    Case(TypeError, "name must be a string: got int", lambda: _check.setting(3, "ntk", "name")),
    Case(TypeError, "n must be a sequence: got int", lambda: _check.setting(3, (1,), "n")),
    Case(
        ValueError,
        "names of arrays must be plain words: got '../x'",
        lambda: experiments.Result("toy", {}, {"../x": 0}),
    ),
    Case(
        ValueError,
        "x must hold numbers or text: got dtype object",
        lambda: experiments.Result("toy", {}, {"x": [None]}),
    ),
    Case(
        ValueError,
        "arrays must be as their head says: got float64",
        lambda: _files.array(b"\x93NUMPY\1\0\x3b\0" + str(HEAD).ljust(59).encode()),
    ),
    Case(
        ValueError,
        f"{ROOT / 'damaged.npz'} must be a result that kernelcore has saved: "
        "got a damaged or truncated file",
        damaged,
    ),
    Case(
        ValueError,
        "name must be one of " + ", ".join(map(repr, experiments.NAMES)) + ": got 'none'",
        lambda: experiments.load("none"),
    ),
    Case(
        ValueError,
        "data must name a folder of UCI data sets: got none; pass --data DIR",
        lambda: uci.run(uci.PRESETS["paper"]),
    ),
    Case(
        ValueError,
        "data must name Fashion-MNIST or CIFAR-10: got none; pass --data DIR",
        lambda: noise.run(noise.PRESETS["paper"]),
    ),
    Case(
        ValueError,
        "n must leave images for the test, at most 1697: got 1700",
        lambda: _given.divided(_given.read(""), 1700, 100, np.random.default_rng(0)),
    ),
    Case(
        ValueError,
        "shrink must divide the sides of images, 8 x 8: got 3",
        lambda: _given.shrunk(_given.read("").X, 3),
    ),
    Case(ValueError, "--set must be NAME=VALUE: got 'n'", lambda: cli._pair("n")),
    Case(
        TypeError,
        "settings must be Settings of uci or a preset: got Settings",
        lambda: experiments.run("uci", SETTINGS),
    ),
    Case(
        AttributeError,
        "module 'kernelcore.experiments' has no attribute 'none'",
        lambda: experiments.none,
    ),
    Case(TypeError, "path must be a path: got int", lambda: _check.a_path(3, "path")),
    Case(TypeError, "path must be a path: got NoneType", lambda: _check.destination(None, "path")),
    Case(
        ValueError,
        "path must name a file: got '-'; ./- is a file of that name",
        lambda: _check.destination("-", "path"),
    ),
    Case(
        ValueError,
        f"path must name a file in an existing folder: {ROOT}",
        lambda: _check.destination(ROOT, "path"),
    ),
    Case(
        ValueError,
        f"path must name a file in an existing folder: {ROOT}/missing/page.html",
        lambda: _check.destination(ROOT / "missing" / "page.html", "path"),
    ),
    Case(
        ValueError,
        "path must name a file that can be written: /proc/page.html: No such file or directory",
        lambda: _check.destination("/proc/page.html", "path"),
    ),
    Case(
        ValueError,
        f"path must name a file that can be written: {ROOT}/{'a' * 300}: File name too long",
        lambda: _check.destination(ROOT / ("a" * 300), "path"),
    ),
    Case(
        ValueError,
        f"data must be an existing folder: {ROOT}/missing",
        lambda: uci.run(ROOT / "missing"),
    ),
    Case(
        ValueError,
        f"output must be a new file: {ROOT}/results.csv has results; another name will do",
        lambda: _check.unwritten(written(), "output", "another name will do"),
    ),
    Case(RuntimeError, "1 of 1 data sets failed: toy", failing),
    refused("must have a line 'fich1= ...': got none", "toy.txt", "n_entradas= 1\n"),
    refused("must have a line 'fich1= ...': got none", "toy.txt", "fich1=\n"),
    refused(
        "must be a table of numbers: could not convert string 'x' to float64 at row 0, column 2",
        TABLE, "\tf1\tclase\n0\tx\t0\n",
    ),
    refused(
        "must be a table of numbers: the number of columns changed from 3 to 2 at row 2",
        TABLE, "\tf1\tclase\n0\t0.5\t0\n1\t1.5\n",
    ),
    refused(
        "must have rows of a number, features and a class: got shape (0, 0)", TABLE, "\tclase\n"
    ),
    refused(
        "must have rows of a number, features and a class: got shape (1, 2)",
        TABLE, "\tclase\n0\t1\n",
    ),
    refused("must be finite: got nan", TABLE, "\tf1\tclase\n0\tnan\t0\n"),
    refused("must have whole numbers in its last column: got 0.5", TABLE, "\tf\tc\n0\t1\t0.5\n"),
    refused("must have 2 lines: got 1", CHOICE, "0 1\n"),
    refused("must have 8 lines: got 6", FOLDS, "0 1\n2 3\n" * 3),
    refused("must have row numbers from 0 to 3: got '-1' in line 2", CHOICE, "0 1\n2 -1\n"),
    refused("must have row numbers from 0 to 3: got '4' in line 2", CHOICE, "0 1\n2 4\n"),
    refused("must have row numbers from 0 to 3: got '1.0' in line 1", CHOICE, "0 1.0\n2 3\n"),
    refused(
        "must have row numbers from 0 to 3: got '-2' in line 4",
        FOLDS, "0 1\n2 3\n0 1\n-2 3\n" * 2,
    ),
    refused(
        "must have row numbers from 0 to 3: got '\\udcff\\udcfe' in line 1",
        CHOICE, b"\xff\xfe\n2 3\n",
    ),
    refused(
        f"must have row numbers from 0 to 3: got '{'1' * 12}...{'1' * 13}' in line 3",
        CHOICE, "0 1\n\n" + "1" * 9999 + "\n",
    ),
    refused(
        "must not test on rows that were learned from: got row 1 in line 3 and in the next",
        FOLDS, "0 1\n2 3\n0 1\n1 2\n" * 2,
    ),
]  # fmt: skip
