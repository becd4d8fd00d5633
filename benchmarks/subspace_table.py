"""Targets that depend on a few directions: one gradient step, networks, features and kernels.

    python benchmarks/subspace_table.py [--quick] [--draws 5] [--figure FILE] [--json FILE]

x is standard normal in d = 100 dimensions and y = g(Ux) without noise, of variance 1, with g a sum
over r directions of Hermite polynomials of degrees 2 to p. Errors are relative to that of a
constant, medians over draws with their quartiles. What a method has to choose it chooses on its
training data. Numbers, not times. README.md has each row.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from rounds import save

import kernelcore as kc

DIM, TEST, WIDTH = 100, 4000, 600
TARGETS = {"p = 2, r = 1": (2, 1), "p = 2, r = 2": (2, 2), "p = 3, r = 1": (3, 1),
           "p = 3, r = 2": (3, 2)}  # fmt: skip
CUBIC = "He_3, H = 0"
RIDGES = 10.0 ** np.arange(-6, 3)
KERNEL = 8000  # points of kernel ridge regression, at most: 64 million entries


class Task:
    """A draw: directions, and points with their targets."""

    def __init__(self, name, seed):
        rng = np.random.default_rng([17, seed])
        degree, rank = TARGETS.get(name, (3, 1))
        self.U = np.linalg.qr(rng.standard_normal((DIM, rank)))[0]
        self.weights = np.zeros(degree + 1)
        # Monic He_k has the variance k!; all that there are count alike.
        degrees = [3] if name == CUBIC else range(2, degree + 1)
        for k in degrees:
            self.weights[k] = 1 / np.sqrt(len(degrees) * rank * (2.0, 6.0)[k - 2])
        self.rng = rng

    def points(self, n):
        x = self.rng.standard_normal((n, DIM)).astype(np.float32)
        y = np.polynomial.hermite_e.hermeval(x @ self.U, self.weights).sum(1)
        return x, y.astype(np.float32)


def held_out(x, y):
    """A tenth of the points, to choose by, and the rest."""
    m = len(x) // 10
    return (x[m:], y[m:]), (x[:m], y[:m])


def one_step(x, y, test, seed, width=WIDTH):
    model = kc.OneStepRegressor(width, random_state=seed).fit(x, y)
    return model.predict(test), model


def network(x, y, test, seed):
    """A two-layer network of as many units by Adam, until a tenth of the data gets worse."""
    rest, held = held_out(x, y)
    net = kc.Sequential(kc.Dense(2**0.5, b_std=0.1), kc.Relu(), kc.Dense())
    f = net.sample(WIDTH, seed=seed, shape=DIM, dtype="float32", doubled=True)
    found = kc.networks.train(
        f, *rest, method="adam", step=0.01, batch=min(500, len(rest[0])), steps=4000, every=50,
        validation=held, patience=8, seed=seed,
    )  # fmt: skip
    return found.network(test), None


def on_features(features, x, y, test):
    """Ridge regression on features, with the ridge that is best on a tenth of the data."""
    rest, held = held_out(x, y)
    features.fit(rest[0])
    scores = []
    for ridge in RIDGES:
        fit = kc.features.ridge_features(features, *rest, ridge)
        scores.append(np.mean((fit.predict(held[0]) - held[1]) ** 2))
    return kc.features.ridge_features(features, x, y, RIDGES[int(np.argmin(scores))]).predict(test)


def random_features(x, y, test, seed):
    features = kc.features.NetworkFeatures(n_features=2 * WIDTH, b_std=0.5, seed=seed)
    return on_features(features, x, y, test), None


def tangent(x, y, test, seed):
    """As many parameters as the network has in its first layer, at most those of 20 units."""
    features = kc.features.TangentFeatures(20, b_std=0.5, seed=seed)
    return on_features(features, x, y, test), None


def kernel(x, y, test, seed):
    if len(x) > KERNEL:
        return None, None
    return kc.KernelRegressor(kc.presets.mlp(1, b_std=0.5).ntk).fit(x, y).predict(test), None


METHODS = {"one step": one_step, "NN": network, "RF": random_features, "NT": tangent, "KRR": kernel}


def angle(basis, U):
    """The largest angle between directions of U and a space, in degrees."""
    least = np.linalg.svd(basis.T @ U, compute_uv=False).min()
    return float(np.degrees(np.arccos(min(1.0, least))))


def sizes(name, quick):
    rank = TARGETS.get(name, (3, 1))[1]
    return [500, 1000] if quick else [1000, 4000, 2 * DIM**2 * rank]


def run(name, o):
    """Errors of shape (methods, sizes, draws), and angles of (sizes, draws)."""
    ns = sizes(name, o.quick)
    errors = np.full((len(METHODS), len(ns), o.draws), np.nan)
    angles = np.full((len(ns), o.draws), np.nan)
    for draw in range(o.draws):
        task = Task(name, draw)
        test, wanted = task.points(TEST)
        all_x, all_y = task.points(max(ns))
        for k, n in enumerate(ns):
            for j, method in enumerate(METHODS.values()):
                found, model = method(all_x[:n], all_y[:n], test, draw)
                if found is not None:
                    errors[j, k, draw] = np.mean((found - wanted) ** 2) / wanted.var()
                if model is not None:
                    angles[k, draw] = angle(model.subspace(task.U.shape[1]), task.U)
        print(f"    {name}, draw {draw + 1} of {o.draws}", file=sys.stderr, flush=True)
    return ns, errors, angles


def shown(values):
    if np.isnan(values).all():
        return f"{'-':>22}"
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"{middle:8.3f} [{low:5.3f}, {high:5.3f}]"


def figure(record, path):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, len(record), figsize=(14, 3.2), layout="constrained", sharey=True)
    for ax, (name, (ns, errors, _)) in zip(axes, record.items(), strict=True):
        for j, method in enumerate(METHODS):
            low, middle, high = np.quantile(errors[j], [0.25, 0.5, 0.75], axis=1)
            bars = [middle - low, high - middle]
            ax.errorbar(ns, middle, bars, fmt="o-", ms=4, capsize=2, label=method)
        ax.set(xscale="log", xlabel="n", title=name, ylim=(0, 1.3))
    axes[0].set_ylabel("relative test error")
    axes[0].legend(fontsize=8)
    plt.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few points, which are not judged")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--json", type=Path)
    o = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)  # degrees that a kernel lacks
    record, verdicts = {}, []
    for name in [*TARGETS, CUBIC]:
        ns, errors, angles = record[name] = run(name, o)
        print(f"{name}: relative test errors, medians [quartiles] of {o.draws}")
        print(f"{'n':>8} " + " ".join(f"{method:>22}" for method in METHODS) + "   largest angle")
        for k, n in enumerate(ns):
            row = " ".join(shown(errors[j, k]) for j in range(len(METHODS)))
            print(f"{n:8} {row}   {np.median(angles[k]):5.1f}", flush=True)
        last = float(np.median(angles[-1]))
        if name == CUBIC:
            left = float(np.median(errors[0, -1]))
            verdicts.append((f"one step fails: error at n = {ns[-1]}, {name}", left, left >= 0.8))
        else:
            verdicts.append((f"angle at n = {ns[-1]}, {name}", last, last <= 15))
            best = np.nanmin([np.median(errors[j, -2]) for j in (2, 3, 4)])
            won = float(np.median(errors[0, -1]) / best)
            verdicts.append((f"one step at the last n over kernels, {name}", won, won < 1))
    print("dependence on m: p = 3, r = 1")
    task = Task("p = 3, r = 1", 0)
    n = 1000 if o.quick else 2 * DIM**2
    (x, y), (test, wanted) = task.points(n), task.points(TEST)
    for width in (20, 60, 200, 600, 2000):
        off = [
            np.mean((one_step(x, y, test, seed, width)[0] - wanted) ** 2) / wanted.var()
            for seed in range(o.draws)
        ]
        print(f"{width:8} {shown(np.array(off))}", flush=True)
    for what, value, fine in verdicts:
        verdict = "not judged" if o.quick else "met" if fine else "MISSED"
        print(f"  {verdict:10} {value:8.3f}   {what}")
    if o.figure:
        figure(record, o.figure)
    if o.json:
        save(o.json, {"errors": record, "verdicts": verdicts})
    off = [what for what, _, fine in verdicts if not fine and not o.quick]
    return "missed: " + "; ".join(off) if off else None


if __name__ == "__main__":
    sys.exit(main())
