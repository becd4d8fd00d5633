"""Accuracies of classifiers on UCI's sets, beside each other; kept in a file as they come."""

import csv
import functools
import pathlib
import sys
import time

import numpy as np
from scipy.stats import wilcoxon

from kernelcore.experiments import uci


class Cells:
    """Numbers by row and column. With a file, a run goes on where another has ended."""

    def __init__(self, path=None, seconds=np.inf):
        self.path, self.end, self.known = path, time.monotonic() + seconds, {}
        if path is not None and pathlib.Path(path).exists():
            with open(path, newline="") as file:
                self.known = {(row, column): float(x) for row, column, x in csv.reader(file)}

    def values(self, row, columns, work):
        """Return what is known, or the numbers that ``work`` returns for all of these columns.

        The run ends here when its time is over.
        """
        if any((row, column) not in self.known for column in columns):
            if time.monotonic() > self.end:
                sys.exit(f"time is over before {row}; the same command goes on from here")
            for column, x in zip(columns, map(float, work()), strict=True):
                self.known[row, column] = x
                if self.path is not None:
                    with open(self.path, "a", newline="") as file:
                        csv.writer(file).writerow((row, column, repr(x)))
        return [self.known[row, column] for column in columns]


def arguments(parser):
    """Add what runs on these sets have in common."""
    parser.add_argument("--data", help="the folder with a folder for each set")
    parser.add_argument("--largest", type=int, default=1000, help="the most rows of a set")
    parser.add_argument("--output", help="a file of results, from which a run goes on")
    parser.add_argument("--seconds", type=float, default=np.inf, help="when to stop, for later")


def sets_of(folder, largest):
    """Return the sets of a folder that are not too large."""
    folders = sorted(p.parent for p in pathlib.Path(folder).glob(f"*/{uci.FOLDS}"))
    return [data for data in map(uci.load, folders) if len(data.X) <= largest]


def accuracy(data, model):
    """Return the per cent of the four test parts that a model of their training parts has right."""
    found = []
    for train, test in data.folds:
        found.append(model.fit(data.X[train], data.y[train]).score(data.X[test], data.y[test]))
    return 100 * np.mean(found)


def compare(name, columns, sets, cells):
    """Print the accuracies of models, and whether they are better than the first of them."""
    rows = []
    print(f"{name:32s} {'n':>5s} {'d':>4s}", *(f"{c:>12s}" for c in columns))
    for data in sets:
        rows.append([])
        for column, model in columns.items():
            work = functools.partial(accuracy, data, model)
            rows[-1] += cells.values(data.name, [f"{name}, {column}"], lambda: [work()])  # noqa: B023
        numbers = (f"{x:12.2f}" for x in rows[-1])
        print(f"{data.name:32s} {len(data.X):5d} {data.X.shape[1]:4d}", *numbers, flush=True)
    table = np.array(rows)
    print(f"{f'mean of {len(table)}':43s}", *(f"{x:12.2f}" for x in table.mean(0)))
    for k, column in enumerate(columns):
        gain = table[:, k] - table[:, 0]
        if k:
            p = wilcoxon(gain, alternative="greater").pvalue if gain.any() else 1.0
            better, worse = (gain > 0).sum(), (gain < 0).sum()
            error = gain.std(ddof=1) / np.sqrt(len(gain))
            print(f"{column:12s} better on {better}, worse on {worse}, by {gain.mean():.2f} +- "
                  f"{error:.2f} on average; Wilcoxon p = {p:.2g}", flush=True)  # fmt: skip
    print()
