"""UCI classification with NTKs, by the protocol of Arora et al. (2020) (E8).

Each data set has two divisions of its own: one into training and validation, on which depth, number
of frozen layers and cost are chosen, and four pairs of training and test sets, over which accuracy
is averaged. Files are those of Fernandez-Delgado et al. (2014): ``NAME.txt`` describes the set, its
``_R.dat`` holds the rows, and ``conxuntos.dat`` and ``conxuntos_kfold.dat`` the divisions. Without
a folder of them the three UCI sets that scikit-learn carries stand in, with divisions of our own.
"""

from __future__ import annotations

import argparse
import csv
import io
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _check
from .._types import Array
from ..architecture import Sequential
from ..data import DataSet, uci_sets
from ..data import uci as load
from ..data._files import FOLDS
from ..engine.threads import get_threads
from ..kernels import Gaussian, Kernel, Laplacian, Polynomial
from ..layers import Dense, Input
from ..layers.activations import Relu
from ..linalg.blas import serial
from ..solvers import RidgePath
from . import _base
from ._base import Cells, Claim, Picture, Progress, Result, Table
from ._draw import BLUE, GREEN, GREY, ORANGE, VERMILLION, figure
from ._words import listed, plus_minus

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "UCI data sets"

DEPTHS = range(5)  # hidden layers
COSTS = [10.0**i for i in range(-2, 5)]
RIDGES = [10.0**i for i in range(-6, 3)]  # of the mean of the diagonal
WIDTHS = [2.0**i for i in range(-3, 4)]  # lengthscales, of the root mean square distance / sqrt 2
DEGREES = (1, 2, 3, 4)  # of polynomials
LARGEST = 5000
REPEATED = 20  # rows per distinct row, on average, from which on only distinct rows are fitted
HEAD = ["set", "n", "d", "classes", "method", "accuracy", "chosen", "seconds"]


class Outcome(NamedTuple):
    """The result of one method on one data set."""

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


class Skipped(NamedTuple):
    """A data set without results, and the reason."""

    name: str
    reason: str
    error: Exception | None  # None if it is too large


# ---- methods


def ntk(depth: int, fixed: int) -> Kernel:
    """Return the NTK of ``depth`` hidden layers, of which the first ``fixed`` are not trained.

    It is ``K[depth][fixed]`` of the published code, number for number.

    Examples
    --------
    >>> from kernelcore.experiments import uci
    >>> uci.ntk(2, 0)([[3.0, 4.0]])
    array([[18.75]])
    """
    layers: list[Any] = [Input(sum=True), Dense(trainable=fixed == 0)]
    for layer in range(1, depth + 1):
        layers += [Relu(), Dense(trainable=layer >= fixed)]
    return Sequential(*layers).ntk


def _ntks(data: DataSet) -> Iterator[tuple[str, Array]]:
    for depth in DEPTHS:
        for fixed in range(depth + 1):
            yield f"depth {depth}, fixed {fixed}", ntk(depth, fixed)(data.X)


def _scaled(data: DataSet, kind: Callable[[float], Kernel]) -> Iterator[tuple[str, Array]]:
    # The mean square distance of two rows is twice the variance of one, summed over columns.
    scale = float(np.sqrt(data.X[data.choice[0]].var(0).sum())) or 1.0
    for width in WIDTHS:
        yield f"lengthscale {width * scale:.3g}", kind(width * scale)(data.X)


def _gaussians(data: DataSet) -> Iterator[tuple[str, Array]]:
    return _scaled(data, Gaussian)


def _laplacians(data: DataSet) -> Iterator[tuple[str, Array]]:
    return _scaled(data, Laplacian)


def _polynomials(data: DataSet) -> Iterator[tuple[str, Array]]:
    for degree in DEGREES:
        yield f"degree {degree}", Polynomial(degree)(data.X / np.sqrt(data.X.shape[1]))


def _svm(data: DataSet, K: Array, train: Array, test: Array, costs: Sequence[float]) -> list[float]:
    """Return the test accuracy of support vector machines, one per cost.

    Where few rows are distinct, copies within a class are replaced by one row with their number as
    weight. The minimum is the same, and libsvm would otherwise take minutes for a single fit.
    Elsewhere it gets all rows, as published: at small costs it stops far from the minimum, at a
    place that depends on them.
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

    # The largest costs take longest, so they go first; libsvm releases Python's lock.
    return _in_threads(accuracy, costs[::-1])[::-1]


def _in_threads(task: Callable[[float], float], values: Sequence[float]) -> list[float]:
    """Return ``[task(value) for value in values]``, on threads that an interrupt does not wait for.

    A fit of libsvm takes minutes at worst and cannot be stopped; a pool of the standard library
    would wait for it before the process ends.
    """
    futures: list[Future[float]] = [Future() for _ in values]
    todo = deque(zip(futures, values, strict=True))

    def work() -> None:
        with suppress(IndexError):  # nothing is left to do
            while True:
                future, value = todo.popleft()
                try:
                    future.set_result(task(value))
                except Exception as error:
                    future.set_exception(error)

    for _ in range(min(get_threads(), len(values))):
        threading.Thread(target=work, daemon=True).start()
    try:
        return [future.result() for future in futures]
    finally:
        todo.clear()


def _ridge(data: DataSet, K: Array, train: Array, test: Array, ridges: Any) -> list[float]:
    """Do the same by ridge regression on centred classes, ridges of the mean of the diagonal."""
    y, classes = data.y, np.unique(data.y)
    targets = (y[train, None] == classes).astype(float) - 1 / len(classes)
    part = K[np.ix_(train, train)]
    path, unit = RidgePath(part, targets), float(np.trace(part)) / len(train)
    scores = [K[np.ix_(test, train)] @ path.alpha(r * unit) for r in ridges]
    return [float((classes[s.argmax(1)] == y[test]).mean()) for s in scores]


METHODS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Sequence[float], str]] = {
    "NTK-SVM": (_ntks, _svm, COSTS, "C"),
    "NTK ridge": (_ntks, _ridge, RIDGES, "ridge"),
    "Gaussian-SVM": (_gaussians, _svm, COSTS, "C"),
}


CLASSICAL = {
    "Laplacian-SVM": (_laplacians, _svm, COSTS, "C"),
    "polynomial-SVM": (_polynomials, _svm, COSTS, "C"),
}
"""More that the experiment compares; the table of results in a file has METHODS alone."""


def evaluate(data: DataSet, method: str) -> Outcome:
    """Choose the first of the best on the validation set, and average over the folds."""
    start = time.perf_counter()
    accuracies, chosen = _folds(data, *METHODS[method])
    return Outcome(100 * float(np.mean(accuracies)), chosen, time.perf_counter() - start)


def _folds(
    data: DataSet, kernels: Callable[..., Any], classify: Callable[..., Any],
    strengths: Sequence[float], letter: str,
) -> tuple[list[float], str]:  # fmt: skip
    """Return the accuracy of each fold, by what the validation set chose."""
    best, chosen, K, strength = -1.0, "", np.empty(0), 0.0
    for name, matrix in kernels(data):
        accuracies = classify(data, matrix, *data.choice, strengths)
        k = int(np.argmax(accuracies))
        if accuracies[k] > best:
            best, strength, K = accuracies[k], strengths[k], matrix
            chosen = f"{name}, {letter} {strength:g}"
    return [classify(data, K, *fold, [strength])[0] for fold in data.folds], chosen


# ---- the table


def _records(row: Row) -> list[list[Any]]:
    return [
        [*row[:4], method, f"{o.accuracy:.3f}", o.chosen, f"{o.seconds:.2f}"]
        for method, o in row.outcomes.items()
    ]


def _append(file: Path, records: Sequence[Sequence[Any]]) -> None:
    """Append all records at once, so that the file ends in a whole result at any moment."""
    text = io.StringIO()
    csv.writer(text).writerows(records)
    # Names of folders may hold bytes that are not UTF-8.
    with file.open("a", newline="", encoding="utf-8", errors="surrogateescape") as out:
        out.write(text.getvalue())


def read(file: str | PathLike[str]) -> dict[str, Row]:
    """Read the results that ``run`` has written, by name of the data set."""
    file = _check.a_path(file, "file")
    with file.open(newline="", encoding="utf-8", errors="surrogateescape") as text:
        try:
            lines = list(csv.reader(text))
        except csv.Error:
            lines = []
    told = str(file), "a table of this experiment"
    _check.unless(lines[:1] != [HEAD], *told, "another first line")
    rows: dict[str, Row] = {}
    for k in range(1, len(lines), len(METHODS)):
        part = lines[k : k + len(METHODS)]
        try:
            name, n, d, classes = part[0][:4]
            found = {
                method: Outcome(float(accuracy), chosen, float(seconds))
                for *_, method, accuracy, chosen, seconds in part
            }
            rows[name] = Row(name, int(n), int(d), int(classes), found)
            same = [list(map(str, record)) for record in _records(rows[name])] == part
            whole = same and list(found) == list(METHODS)
        except (TypeError, ValueError):
            whole = False
        _check.unless(not whole, *told, f"something else from line {k + 1} on")
    return rows


# ---- the table of a folder, in a file


def classify(
    data: str | PathLike[str],
    sets: Sequence[str] | None = None,
    progress: Callable[[str], None] | None = None,
    *,
    output: str | PathLike[str] | None = None,
    resume: bool = False,
) -> list[Row | Skipped]:
    """Run all methods on the data sets of a folder that have at most 5,000 rows.

    Parameters
    ----------
    data : path
        A folder of folders, one per data set.
    sets : sequence of str, optional
        Names; all by default.
    progress : callable taking one line of text, optional
        Called with the head of the table, and after each set with its line.
    output : path, optional
        A CSV file, to which the results of each set are appended as soon as they are known. It
        must be new or empty.
    resume : bool
        Continue the file of an earlier run instead: the sets in it are not run again.

    Returns
    -------
    list of Row and Skipped
        A set that cannot be run does not stop the others; its entry is Skipped, with the error.
    """
    _check.installed("sklearn", "kernelcore.experiments.uci")
    import sklearn.svm  # noqa: F401  without it no set can be run

    folders = _folders(data, sets)
    known: dict[str, Row] = {}
    if output is not None:
        output = _check.destination(output, "output")
        if not resume:
            _check.unwritten(output, "output", "resume (--resume) keeps them and runs the others")
        if output.is_file() and output.stat().st_size:
            known = read(output)
        else:
            _append(output, [HEAD])
    if progress is not None:
        titles = "  ".join(f"{method:>17s}" for method in METHODS)
        progress(f"{'':28s} {'n':>5s} {'d':>4s} {'c':>3s}  {titles}")
    results = []
    for folder in folders:
        result = known.get(folder.name) or _measure(folder)
        if output is not None and folder.name not in known and isinstance(result, Row):
            _append(output, _records(result))
        results.append(result)
        if progress is not None:
            progress(_line(result))
    return results


def _folders(data: str | PathLike[str], sets: Sequence[str] | None) -> list[Path]:
    """Return the folders of data sets, all or those named."""
    root = _check.a_folder(data, "data")
    there = uci_sets(root)
    inside = f"; pass {root.absolute().parent}" if (root / FOLDS).is_file() else ""
    _check.unless(not there, "data", "a folder of data sets", f"none in {root}{inside}")
    names = there if sets is None else dict.fromkeys(sets)
    return [root / _check.choice(name, "sets", tuple(there)) for name in names]


def _measure(folder: Path) -> Row | Skipped:
    try:
        data = load(folder)
        n, d = data.X.shape
        if n > LARGEST:
            told = f"{n:5d} {d:4d}      left out: more than {LARGEST} rows"
            return Skipped(data.name, told, None)
        outcomes = {method: evaluate(data, method) for method in METHODS}
    except Exception as error:  # of any kind: the other sets are still run
        return Skipped(folder.name, f"failed: {str(error) or type(error).__name__}", error)
    return Row(data.name, n, d, len(np.unique(data.y)), outcomes)


def _line(result: Row | Skipped) -> str:
    if isinstance(result, Skipped):
        return f"{result.name:28s} {result.reason}"
    name, n, d, classes, outcomes = result
    return f"{name:28s} {n:5d} {d:4d} {classes:3d}  {_cells(outcomes.values())}"


def _cells(outcomes: Iterable[Outcome]) -> str:
    return "  ".join(f"{o.accuracy:8.2f} {o.seconds:6.1f} s" for o in outcomes)


def main(arguments: Sequence[str]) -> None:
    """Run ``kernelcore run uci`` with these arguments."""
    description = (__doc__ or "").replace("``", "")  # python -OO leaves docstrings out
    parser = argparse.ArgumentParser(
        prog="kernelcore run uci", description=description, epilog=EPILOG
    )
    parser.add_argument("--data", required=True, metavar="DIR", help="a folder per data set")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="some of them (default: all)")
    parser.add_argument(
        "--output", metavar="FILE", help="append each result to this CSV file, which must be new"
    )
    parser.add_argument(
        "--resume", action="store_true", help="keep the results in FILE, and run the other sets"
    )
    args = parser.parse_args(arguments)
    if args.resume and args.output is None:
        parser.error("--resume needs --output FILE")
    results = classify(
        args.data, args.sets, lambda line: print(line, flush=True),
        output=args.output, resume=args.resume,
    )  # fmt: skip
    rows = [result.outcomes.values() for result in results if isinstance(result, Row)]
    if rows:
        columns = [list(zip(*outcomes, strict=True)) for outcomes in zip(*rows, strict=True)]
        means = (Outcome(float(np.mean(a)), "", sum(seconds)) for a, _, seconds in columns)
        print(f"{f'mean of {len(rows)}':28s} {'':14s}  {_cells(means)}")
    failed = {r.name: r.error for r in results if isinstance(r, Skipped) and r.error is not None}
    if failed:
        text = f"{len(failed)} of {len(results)} data sets failed: {', '.join(failed)}"
        raise RuntimeError(text) from next(iter(failed.values()))


EPILOG = """A data set that cannot be read or fitted is named, and the others are run; the exit
status is then 1. The table has the accuracy of each method in per cent, as a mean over the folds,
and its seconds.
"""


# ---- the experiment

EVERY = METHODS | CLASSICAL
NTK, GAUSSIAN, POLYNOMIAL = "NTK-SVM", "Gaussian-SVM", "polynomial-SVM"
LOOKS = dict(
    zip(EVERY, zip((BLUE, GREEN, VERMILLION, ORANGE, GREY), "oDs^x", strict=True), strict=True)
)
PUBLISHED = {NTK: 81.95, GAUSSIAN: 81.03, POLYNOMIAL: 78.21}
"""Mean accuracies over 90 sets, Table 1 of Arora et al. (2020)."""
ARORA = "Arora et al. 2020"


@dataclass(frozen=True)
class Settings(_base.Settings):
    """A folder of data sets, and which of them (all by default)."""

    data: str = ""
    sets: tuple[str, ...] = ()
    shipped: bool = True  # without a folder, take what scikit-learn carries


PRESETS = {"small": Settings(), "paper": Settings(shipped=False)}
SECONDS = {"small": 5, "paper": 3600}


def _shipped(name: str, seed: int) -> DataSet:
    """Return a set that scikit-learn carries, standardised, with random divisions."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    order = np.random.default_rng([seed, len(X)]).permutation(len(X))
    quarters = np.array_split(order, 4)
    folds = [(np.setdiff1d(order, quarter), np.sort(quarter)) for quarter in quarters]
    choice = (np.sort(order[: len(X) // 2]), np.sort(order[len(X) // 2 :]))
    return DataSet(name, (X - X.mean(0)) / X.std(0), y, choice, folds)


SHIPPED = ("iris", "wine", "breast_cancer")


def run(
    settings: Any = PRESETS["small"], sets: Sequence[str] | None = None, progress: Any = None, *,
    cells: Cells | None = None, output: str | PathLike[str] | None = None, resume: bool = False,
) -> Any:  # fmt: skip
    """Run all methods on data sets of at most 5,000 rows, and return a Result.

    Given a folder in the place of settings, it is ``classify``, as in earlier versions.
    """
    if not isinstance(settings, Settings):
        return classify(settings, sets, progress, output=output, resume=resume)
    return _result(settings, cells or Cells(), progress)


def _result(s: Settings, cells: Cells, progress: Progress | None) -> Result:
    _check.installed("sklearn", "kernelcore.experiments.uci")
    given: dict[str, Callable[[], DataSet]]
    if s.data:
        given = {path.name: partial(load, path) for path in _folders(s.data, s.sets or None)}
    else:
        names = [_check.choice(name, "sets", SHIPPED) for name in s.sets] or SHIPPED
        given = {name: partial(_shipped, name, s.seed) for name in names if s.shipped}
    _check.data_given(bool(given), "a folder of UCI data sets")

    def one(name: str, method: str) -> dict[str, Any]:
        data = given[name]()
        if len(data.X) > LARGEST:
            return {"accuracy": np.full(4, np.nan), "chosen": "", "shape": (*data.X.shape, 0)}
        with serial():  # with a few hundred unknowns more threads cost more than they gain
            accuracies, chosen = _folds(data, *EVERY[method])
        shape = (*data.X.shape, len(np.unique(data.y)))
        return {"accuracy": 100 * np.array(accuracies), "chosen": chosen, "shape": shape}

    found = cells.map(one, [(name, method) for name in given for method in EVERY], progress)
    by = (len(given), len(EVERY))
    return Result(
        "uci", s,
        {
            "accuracy": np.reshape([f["accuracy"] for f in found], (*by, -1)),
            "chosen": np.reshape([str(f["chosen"]) for f in found], by),
            "shape": np.reshape([f["shape"] for f in found], (*by, 3))[:, 0],
            "names": list(given),
        },
    )  # fmt: skip


def _means(result: Result) -> dict[str, Array]:
    """Return the mean accuracy on each set that was small enough, by method."""
    mean = result["accuracy"].mean(axis=-1)
    mean = mean[np.isfinite(mean).all(axis=1)]
    return dict(zip(EVERY, mean.T, strict=True))


def claims(result: Result) -> list[Claim]:
    """Compare NTKs with classical kernels, set by set."""
    means = _means(result)
    found = []
    for other in (GAUSSIAN, POLYNOMIAL):
        ahead = means[NTK] - means[other]
        error = float(ahead.std(ddof=1) / np.sqrt(len(ahead))) if len(ahead) > 1 else 0.0
        text = (
            f"{NTK} classifies as well as {other}: points of accuracy ahead, mean of {len(ahead)} "
            "sets, not below zero by 2 σ or 1 point"
        )
        published = PUBLISHED[NTK] - PUBLISHED[other]
        low = -max(1.0, 2 * error)
        found.append(Claim(text, ARORA, published, float(ahead.mean()), error, low, np.inf))
    return found


def paragraph(result: Result) -> str:
    """Say which sets these are, and how the methods do on average."""
    means, names = _means(result), result["names"].tolist()
    best = max(means, key=lambda method: means[method].mean())
    if result.settings["data"]:
        from_where = f"{len(names)} data sets with their published divisions"
    else:
        from_where = (
            f"the UCI sets that scikit-learn carries ({listed(names)}), with random divisions of "
            "our own; kernelcore run uci --data DIR takes the published ones"
        )
    average = ", ".join(f"{method} {m.mean():.2f}" for method, m in means.items())
    return f"""
    Support vector machines and ridge regression with NTKs beside classical kernels, on
    {from_where}. Depth, number of frozen layers, lengthscale, degree and cost are those of the
    highest accuracy on a validation set; accuracy is the mean over four pairs of training and test
    sets. Mean accuracy in per cent: {average}. The best on average is {best}. On 90 sets Arora
    et al. (2020) report {", ".join(f"{name} {value}" for name, value in PUBLISHED.items())}.
    """


def tables(result: Result) -> list[Table]:
    """Return the accuracy of every method on every set."""
    rows = []
    for name, (n, d, classes), folds in zip(
        result["names"].tolist(), result["shape"].tolist(), result["accuracy"], strict=True
    ):
        cells = [
            plus_minus(f.mean(), f.std(ddof=1), 1) if np.isfinite(f).all() else "–" for f in folds
        ]
        rows.append((name, str(n), str(d), str(classes), *cells))
    told = "Accuracy in per cent, mean ± standard deviation over four folds."
    return [Table(("set", "n", "d", "classes", *EVERY), rows, told)]


def plot(result: Result) -> list[Picture]:
    """Draw the accuracy of every method, set by set."""
    return [
        Picture(
            "accuracy", _figure(result),
            "Accuracy by data set, in the order of the NTK's; mean and standard deviation over "
            "four folds.",
            f"Accuracies of {len(EVERY)} methods on {len(result['names'])} data sets",
        )
    ]  # fmt: skip


def _figure(result: Result) -> Figure:
    kept = np.flatnonzero(np.isfinite(result["accuracy"]).all(axis=(1, 2)))
    folds = result["accuracy"][kept]
    order = folds[:, 0].mean(axis=-1).argsort()[::-1]
    fig = figure(max(2.4, 1.2 + 0.32 * len(kept)))
    axes = fig.subplots()
    for k, (method, (color, marker)) in enumerate(LOOKS.items()):
        mean, spread = folds[order, k].mean(axis=-1), folds[order, k].std(axis=-1, ddof=1)
        places = -np.arange(len(order)) + 0.12 * ((len(EVERY) - 1) / 2 - k)
        look: dict[str, Any] = {"color": color, "marker": marker, "ms": 5, "label": method}
        axes.errorbar(mean, places, xerr=spread, ls="", elinewidth=0.9, **look)
    names = result["names"][kept][order].tolist()
    axes.set_yticks(-np.arange(len(order)), names)
    axes.set_xlabel("accuracy in %")
    fig.legend(loc="outside lower center", ncols=len(EVERY))
    return fig
