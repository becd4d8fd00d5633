"""What choosing hyper-parameters gains: the default kernel against tuned ones on UCI's sets.

    python benchmarks/tuning_table.py --data DIR [--kernels ntk laplacian gaussian]

DIR has a folder for each data set, as ``kernelcore run uci`` takes them, whose four pairs of
training and test sets are used. Everything is chosen on the training part alone: ridges by
leave-one-out in all columns, hyper-parameters by the criterion of the column. The kernels are the
defaults of ``KernelClassifier``, ``RecursiveFeatureMachine`` and ``KernelSmoother``. Printed are
accuracies in per cent, means over the four test parts; in the end means over sets, and the p value
of Wilcoxon's signed-rank test that tuning does not help.
"""

import argparse
import pathlib

import numpy as np
from scipy.stats import wilcoxon

import kernelcore as kc
from kernelcore.experiments import uci

COLUMNS = (None, "likelihood", "loo")
KERNELS = {
    "ntk": kc.presets.mlp(2, b_std=0.1).ntk,
    "laplacian": kc.Laplacian(10.0),
    "gaussian": kc.Gaussian(1.0),
}


def accuracy(data, kernel, tune):
    """Per cent of the test parts that are classified right."""
    found = []
    for train, test in data.folds:
        model = kc.KernelClassifier(kernel, tune=tune, probabilities=None, random_state=0)
        found.append(model.fit(data.X[train], data.y[train]).score(data.X[test], data.y[test]))
    return 100 * np.mean(found)


def compare(kernel, sets):
    """Print the table of one kernel."""
    rows = []
    print(f"{kernel!r}\n{'':32s} {'n':>5s} {'d':>4s}", *(f"{c or 'given':>11s}" for c in COLUMNS))
    for data in sets:
        rows.append([accuracy(data, kernel, tune) for tune in COLUMNS])
        cells = (f"{x:11.2f}" for x in rows[-1])
        print(f"{data.name:32s} {len(data.X):5d} {data.X.shape[1]:4d}", *cells, flush=True)
    table = np.array(rows)
    print(f"{f'mean of {len(table)}':43s}", *(f"{x:11.2f}" for x in table.mean(0)))
    for k, name in enumerate(COLUMNS[1:], 1):
        gain = table[:, k] - table[:, 0]
        p = wilcoxon(gain, alternative="greater").pvalue if gain.any() else 1.0
        better, worse = (gain > 0).sum(), (gain < 0).sum()
        print(f"{name}: better on {better}, worse on {worse}; Wilcoxon p = {p:.2g}", flush=True)


def main():
    """Print a table for each kernel."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    parser.add_argument("--largest", type=int, default=1000, help="the most rows of a set")
    args = parser.parse_args()
    folders = sorted(p.parent for p in pathlib.Path(args.data).glob(f"*/{uci.FOLDS}"))
    sets = [data for data in map(uci.load, folders) if len(data.X) <= args.largest]
    for name in args.kernels:
        compare(KERNELS[name], sets)


if __name__ == "__main__":
    main()
