"""UCI classification with NTKs, by the protocol of Arora et al. (2020).

Each data set has two divisions of its own: one into training and validation, on which depth, number
of frozen layers and cost are chosen, and four pairs of training and test sets, over which accuracy
is averaged. Files are those of Fernandez-Delgado et al. (2014): ``NAME.txt`` describes the set, its
``_R.dat`` holds it, ``conxuntos.dat`` and ``conxuntos_kfold.dat`` the divisions.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import _check
from .._threads import get_threads
from ..activations import Relu
from ..architecture import Sequential
from ..kernels import Gaussian, Kernel
from ..layers import Dense, Input
from ..solvers import RidgePath

Array = np.ndarray
DEPTHS = range(5)  # hidden layers
COSTS = [10.0**i for i in range(-2, 5)]
RIDGES = [10.0**i for i in range(-6, 3)]  # of the mean of the diagonal
WIDTHS = [2.0**i for i in range(-3, 4)]  # lengthscales, of the root mean square distance / sqrt 2
LARGEST = 5000
REPEATED = 20
"""So many rows to a distinct one, in the mean, are few distinct ones."""
MISSING = "experiments.uci needs scikit-learn; install it with: pip install 'kernelcore[sklearn]'"


class DataSet(NamedTuple):
    """A set with its divisions; indices of rows."""

    name: str
    X: Array
    y: Array
    choice: tuple[Array, Array]  # training, validation
    folds: list[tuple[Array, Array]]  # training, test


class Outcome(NamedTuple):
    """What one method reached on one set."""

    accuracy: float  # per cent, mean over the folds
    chosen: str
    seconds: float


class Row(NamedTuple):
    """One line of the table."""

    name: str
    samples: int
    features: int
    classes: int
    outcomes: dict[str, Outcome]


# ---- data


def load(folder: str | PathLike[str]) -> DataSet:
    """One data set, from its folder."""
    folder = Path(folder)
    facts = dict(
        (part.strip() for part in line.split("=", 1))
        for line in (folder / f"{folder.name}.txt").read_text().splitlines()
        if "=" in line
    )
    table = np.loadtxt(folder / facts["fich1"], skiprows=1, ndmin=2)
    X, y = table[:, 1:-1], table[:, -1].astype(int)
    divisions = [
        [np.array(line.split(), int) for line in (folder / file).read_text().splitlines() if line]
        for file in ("conxuntos.dat", "conxuntos_kfold.dat")
    ]
    (train, validation), lines = divisions
    if len(lines) != 8:
        raise ValueError(f"{folder / 'conxuntos_kfold.dat'} must have 8 lines: got {len(lines)}")
    folds = [(lines[i], lines[i + 1]) for i in range(0, 8, 2)]
    top = max(int(part.max()) for part in (train, validation, *lines))
    if top >= len(X):
        raise ValueError(f"{folder.name} must have the rows of its divisions: {top} of {len(X)}")
    return DataSet(folder.name, np.ascontiguousarray(X), y, (train, validation), folds)


# ---- methods


def ntk(depth: int, fixed: int) -> Kernel:
    """The kernel of that many hidden layers, the first ``fixed`` of all layers not trained.

    ``K[depth][fixed]`` of the published code, number for number.

    Examples
    --------
    >>> from kernelcore.experiments import uci
    >>> uci.ntk(2, 0)([[3.0, 4.0]])
    array([[18.75]])
    """
    layers: list = [Input(sum=True), Dense(trainable=fixed == 0)]
    for layer in range(1, depth + 1):
        layers += [Relu(), Dense(trainable=layer >= fixed)]
    return Sequential(*layers).ntk


def _ntks(data: DataSet) -> Iterator[tuple[str, Array]]:
    for depth in DEPTHS:
        for fixed in range(depth + 1):
            yield f"depth {depth}, fixed {fixed}", ntk(depth, fixed)(data.X)


def _gaussians(data: DataSet) -> Iterator[tuple[str, Array]]:
    # The mean square distance of two rows is twice the variance of one, summed over columns.
    scale = float(np.sqrt(data.X[data.choice[0]].var(0).sum())) or 1.0
    for width in WIDTHS:
        yield f"lengthscale {width * scale:.3g}", Gaussian(width * scale)(data.X)


def _svm(data: DataSet, K: Array, train: Array, test: Array, costs: Sequence[float]) -> list[float]:
    """Test accuracy of support vector machines, one per cost.

    Where few rows are distinct, each of a class counts once, with its number as weight: the same
    minimum, which libsvm is minutes from in a single fit otherwise. Elsewhere it gets all rows, as
    published: at small costs it stops far from the minimum, and where depends on them.
    """
    from sklearn.svm import SVC

    weight = np.ones(len(train))
    rows = np.column_stack([data.X[train], data.y[train]])
    _, first, count = np.unique(rows, axis=0, return_index=True, return_counts=True)
    if len(first) * REPEATED <= len(train):
        train, weight = train[first], count.astype(float)
    inside, across, y = K[np.ix_(train, train)], K[np.ix_(test, train)], data.y

    def accuracy(cost: float) -> float:
        model = SVC(kernel="precomputed", C=cost, cache_size=1000)
        model.fit(inside, y[train], sample_weight=weight)
        return float((model.predict(across) == y[test]).mean())

    # The largest costs take longest, so they go first; libsvm runs without Python's lock.
    with ThreadPoolExecutor(get_threads()) as pool:
        return list(pool.map(accuracy, costs[::-1]))[::-1]


def _ridge(
    data: DataSet, K: Array, train: Array, test: Array, ridges: Sequence[float]
) -> list[float]:
    """The same of ridge regression on centred classes, ridges of the mean of the diagonal."""
    y, classes = data.y, np.unique(data.y)
    targets = (y[train, None] == classes).astype(float) - 1 / len(classes)
    part = K[np.ix_(train, train)]
    path = RidgePath(part, targets)
    unit = float(np.trace(part)) / len(train)
    scores = [K[np.ix_(test, train)] @ path.alpha(r * unit) for r in ridges]
    return [float((classes[s.argmax(1)] == y[test]).mean()) for s in scores]


METHODS: dict[str, tuple[Callable, Callable, Sequence[float], str]] = {
    "NTK-SVM": (_ntks, _svm, COSTS, "C"),
    "NTK ridge": (_ntks, _ridge, RIDGES, "ridge"),
    "Gaussian-SVM": (_gaussians, _svm, COSTS, "C"),
}


def evaluate(data: DataSet, method: str) -> Outcome:
    """Choose on the validation set, the first of the best, and average over the folds."""
    kernels, classify, strengths, letter = METHODS[method]
    start = time.perf_counter()
    best, chosen, K, strength = -1.0, "", np.empty(0), 0.0
    for name, matrix in kernels(data):
        for value, accuracy in zip(
            strengths, classify(data, matrix, *data.choice, strengths), strict=True
        ):
            if accuracy > best:
                best, chosen, K, strength = accuracy, f"{name}, {letter} {value:g}", matrix, value
    accuracies = [classify(data, K, *fold, [strength])[0] for fold in data.folds]
    return Outcome(100 * float(np.mean(accuracies)), chosen, time.perf_counter() - start)


# ---- the whole


def run(
    data: str | PathLike[str],
    sets: Sequence[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Row]:
    """All methods on the data sets of a folder, those of at most 5,000 rows.

    Parameters
    ----------
    data : path
        A folder of folders, one per data set.
    sets : sequence of str, optional
        Names; all by default.
    progress : callable taking one line of text, optional
        Called after each set, also one that is too large.
    """
    try:
        import sklearn.svm  # noqa: F401
    except ImportError:
        raise ImportError(MISSING) from None
    root = Path(data)
    # Sets with test data of their own have no folds, and no part in the protocol.
    known = sorted(p.name for p in root.iterdir() if (p / "conxuntos_kfold.dat").is_file())
    if not known:
        raise ValueError(f"data must be a folder of data sets: {root} has none")
    wanted = known if sets is None else list(sets)
    for name in wanted:
        _check.choice(name, "sets", tuple(known))
    rows = []
    for name in wanted:
        one = load(root / name)
        if len(one.X) > LARGEST:
            if progress is not None:
                n, d = one.X.shape
                progress(f"{name:28s} {n:5d} {d:4d}      left out: more than {LARGEST} rows")
            continue
        outcomes = {method: evaluate(one, method) for method in METHODS}
        rows.append(Row(name, *one.X.shape, len(np.unique(one.y)), outcomes))
        if progress is not None:
            progress(_line(rows[-1]))
    return rows


def _line(row: Row) -> str:
    cells = [f"{o.accuracy:8.2f} {o.seconds:6.1f} s" for o in row.outcomes.values()]
    return f"{row.name:28s} {row.samples:5d} {row.features:4d} {row.classes:3d}  " + "  ".join(
        cells
    )


def main(arguments: Sequence[str]) -> None:
    """``kernelcore run uci``."""
    parser = argparse.ArgumentParser(prog="kernelcore run uci", description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with a folder per data set")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="some of them")
    parser.add_argument("--output", help="write the table as CSV as well")
    args = parser.parse_args(arguments)
    head = "  ".join(f"{method:>17s}" for method in METHODS)
    print(f"{'':28s} {'n':>5s} {'d':>4s} {'c':>3s}  {head}")
    rows = run(args.data, args.sets, lambda line: print(line, flush=True))
    if not rows:
        return
    means = [np.mean([row.outcomes[m].accuracy for row in rows]) for m in METHODS]
    total = [sum(row.outcomes[m].seconds for row in rows) for m in METHODS]
    cells = [f"{a:8.2f} {s:6.1f} s" for a, s in zip(means, total, strict=True)]
    print(f"{f'mean of {len(rows)}':28s} {'':14s}  " + "  ".join(cells))
    if args.output:
        with open(args.output, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["set", "n", "d", "classes", "method", "accuracy", "chosen", "seconds"])
            for row in rows:
                for method, o in row.outcomes.items():
                    writer.writerow(
                        [*row[:4], method, f"{o.accuracy:.3f}", o.chosen, f"{o.seconds:.2f}"]
                    )
