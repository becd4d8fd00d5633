"""Write uci.csv, what the published code reaches: ``python -m oracle.make_uci DATA`` in tests/.

DATA is a folder of data sets; half an hour for 29 of 30. Left out is titanic, 2,201 rows of which
14 are distinct: single fits of libsvm take minutes there, and there are over a hundred.
"""

import csv
import pathlib
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from . import uci

TABLE = pathlib.Path(__file__).with_name("uci.csv")
HEAD = ["set", "accuracy", "depth", "fixed", "cost"]


def read(folder):
    facts = dict(line.split() for line in (folder / f"{folder.name}.txt").open())
    lines = (folder / facts["fich1="]).read_text().splitlines()[1:]
    X = np.array([[float(v) for v in line.split()[1:-1]] for line in lines])
    y = np.array([int(line.split()[-1]) for line in lines])
    parts = [
        [[int(i) for i in line.split()] for line in (folder / file).open()]
        for file in ("conxuntos.dat", "conxuntos_kfold.dat")
    ]
    return X, y, parts[0][:2], [parts[1][i : i + 2] for i in range(0, 8, 2)]


def row(folder):
    X, y, choice, folds = read(folder)
    if len(np.unique(X, axis=0)) < len(X) / 50:
        return None
    start = time.perf_counter()
    accuracy, (depth, fixed, cost) = uci.evaluate(X, y, choice, folds)
    found = [folder.name, f"{accuracy:.4f}", depth, fixed, f"{cost:g}"]
    print(*found, f"{time.perf_counter() - start:.1f} s", flush=True)
    return found


def main(data):
    folders = sorted(path for path in pathlib.Path(data).iterdir() if path.is_dir())
    with ProcessPoolExecutor() as pool:
        rows = [found for found in pool.map(row, folders) if found is not None]
    with TABLE.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEAD, *rows])


if __name__ == "__main__":
    main(*sys.argv[1:])
