"""What choosing hyper-parameters gains: the default kernel against tuned ones on UCI's sets.

    python benchmarks/tuning_table.py --data DIR [--kernels ntk laplacian gaussian]

DIR has a folder for each data set, as ``kernelcore run uci`` takes them, whose four pairs of
training and test sets are used. Everything is chosen on the training part alone: ridges by
leave-one-out in all columns, hyper-parameters by the criterion of the column. The kernels are the
defaults of ``KernelClassifier``, ``RecursiveFeatureMachine`` and ``KernelSmoother``. For networks
there are columns in which layers are not tied, and in which their depth is chosen, too. Printed are
accuracies in per cent, means over the four test parts; in the end means over sets, and the p value
of Wilcoxon's signed-rank test that tuning does not help.

With ``--output FILE`` results are kept, and the same command goes on where it has ended.
"""

import argparse

import on_uci

import kernelcore as kc

KERNELS = {
    "ntk": kc.presets.mlp(2, b_std=0.1).ntk,
    "laplacian": kc.Laplacian(10.0),
    "gaussian": kc.Gaussian(1.0),
}
DEPTHS = [kc.presets.mlp(depth, b_std=0.1).ntk for depth in (2, 1, 3, 4)]


def columns_of(name):
    """Return the models of a table."""

    def model(kernel, **options):
        return kc.KernelClassifier(kernel, probabilities=None, random_state=0, **options)

    found = {"given": model(KERNELS[name])}
    for tune in ("likelihood", "loo"):
        found[tune] = model(KERNELS[name], tune=tune)
        if name == "ntk":
            found[f"{tune[:4]} alone"] = model(KERNELS[name], tune=tune, ties=None)
            found[f"{tune[:4]} depths"] = model(DEPTHS, tune=tune)
    return found


def main():
    """Print a table for each kernel."""
    parser = argparse.ArgumentParser()
    on_uci.arguments(parser)
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    args = parser.parse_args()
    cells = on_uci.Cells(args.output, args.seconds)
    sets = on_uci.sets_of(args.data, args.largest)
    for name in args.kernels:
        on_uci.compare(name, columns_of(name), sets, cells)


if __name__ == "__main__":
    main()
