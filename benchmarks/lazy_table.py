"""How networks of finite width leave their kernels: exponents in the width and in the scale.

    python benchmarks/lazy_table.py [--quick] [--seeds 10] [--figure FILE] [--json FILE]

Each row is a claim, what theory says, and what was measured with its standard error over seeds. The
exit status is 1 if one is off by more than is stated. Numbers, not times: they do not depend on
what else the machine does. README.md has each row.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from rounds import save

import kernelcore as kc

DIM, POINTS, ELSEWHERE = 5, 16, 256
STEP, STEPS = 0.5, 100
ALPHAS = 2.0 ** np.arange(1, 7)
NETWORKS, BAND = 100, 512  # of an ensemble, and their width


def on_sphere(rng, n, d=DIM):
    """Points of length sqrt(d), so that their kernel is of order 1."""
    x = rng.standard_normal((n, d))
    return x * np.sqrt(d / (x**2).sum(1, keepdims=True))


def sample(seed):
    """A smooth target on a few points, and points to compare at."""
    rng = np.random.default_rng([7, seed])
    x = on_sphere(rng, POINTS)
    return x, np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] / 2, on_sphere(rng, ELSEWHERE)


def two_layers(activation):
    return kc.Sequential(kc.Dense(1.5, b_std=0.5), activation, kc.Dense())


def exponents(x, y):
    """The mean slope of log y against log x over seeds, and its standard error."""
    slopes = np.array([np.polyfit(np.log(x), np.log(row), 1)[0] for row in y])
    return slopes.mean(), slopes.std(ddof=1) / np.sqrt(len(slopes))


class Table:
    """Rows of (claim, predicted, allowed, measured, error)."""

    def __init__(self):
        self.rows, self.curves = [], {}

    def add(self, claim, predicted, allowed, measured, error):
        """Allowed is how far a measurement may be off beyond two standard errors."""
        fine = abs(measured - predicted) <= allowed + 2 * error
        self.rows.append((claim, predicted, allowed, measured, error, bool(fine)))
        verdict = "met" if fine else "MISSED"
        print(
            f"  {verdict:7} {measured:8.3f} +- {error:.3f}   {predicted:6.2f} +- {allowed:.2f}"
            f"   {claim}", flush=True,
        )  # fmt: skip

    def slope(self, claim, predicted, allowed, x, y):
        self.curves[claim] = np.asarray(x), np.asarray(y)
        self.add(claim, predicted, allowed, *exponents(x, y))


def distances(table, o, widths):
    """Network against linearisation, and its kernel against that at the start."""
    for name, activation, predicted in (("tanh", kc.Tanh(), -1.0), ("ReLU", kc.Relu(), -0.75)):
        near, far, drift = (np.empty((o.seeds, len(widths))) for _ in range(3))
        for seed in range(o.seeds):
            x, y, z = sample(seed)
            for k, width in enumerate(widths):
                f = two_layers(activation).sample(width, seed=seed, shape=DIM, doubled=True)
                options = {"step": STEP, "steps": STEPS, "every": 10}
                pair = kc.networks.coupled(f, x, y, **options)
                near[seed, k] = pair.distance.max()
                far[seed, k] = kc.networks.coupled(f, x, y, points=z, **options).distance.max()
                end = pair.network.network
                K = f.ntk(x)
                drift[seed, k] = np.linalg.norm(end.ntk(x) - K) / np.linalg.norm(K)
        table.slope(f"sup |NN - NT| over the sample, {name}, in the width", predicted, 0.15,
                    widths, near)  # fmt: skip
        table.slope(f"sup |NN - NT| over the sphere, {name}, in the width", predicted, 0.15,
                    widths, far)  # fmt: skip
        table.slope(f"change of the tangent kernel, {name}, in the width", predicted, 0.25,
                    widths, drift)  # fmt: skip


def scales(table, o):
    """Far from zero outputs: parameters move as 1/alpha, and beside the linear path as its square.

    The loss of alpha f is divided by alpha^2, which is a step that is.
    """
    for width in (10, 200):
        moved, apart = (np.empty((o.seeds, len(ALPHAS))) for _ in range(2))
        for seed in range(o.seeds):
            x, y, _ = sample(seed)
            net = two_layers(kc.Tanh())
            f = net.sample(width, seed=seed, shape=DIM, doubled=True)
            for k, alpha in enumerate(ALPHAS):
                options = {"step": STEP / alpha**2, "steps": STEPS, "every": STEPS}
                pair = kc.networks.coupled(f.scaled(alpha), x, y, **options)
                moved[seed, k], apart[seed, k] = pair.moved[-1], pair.apart[-1]
        table.slope(f"|theta - theta_0| in alpha, {width} units", -1, 0.1, ALPHAS, moved)
        table.slope(f"|theta - theta_lin| in alpha, {width} units", -2, 0.15, ALPHAS, apart)


def curvatures(table, o, widths):
    """kappa(w0) = |y - f| |Hessian| / |Jacobian|^2, in Euclidean norms."""
    for how, predicted in (("ntk", -0.5), ("standard", -1.0)):
        kappa = np.empty((o.seeds, len(widths)))
        for seed in range(o.seeds):
            x, y, _ = sample(seed)
            for k, width in enumerate(widths):
                f = two_layers(kc.Tanh()).sample(
                    width, seed=seed, shape=DIM, doubled=True, parameterization=how
                )
                kappa[seed, k] = kc.networks.laziness(f, x, y).kappa
        table.slope(f"kappa in the width, {how} parameterisation", predicted, 0.1, widths, kappa)
    kappa = np.empty((o.seeds, len(ALPHAS)))
    for seed in range(o.seeds):
        x, y, _ = sample(seed)
        f = two_layers(kc.Tanh()).sample(64, seed=seed, shape=DIM, doubled=True)
        kappa[seed] = [kc.networks.laziness(f.scaled(a), x, y).kappa for a in ALPHAS]
    table.slope("kappa in alpha", -1, 0.01, ALPHAS, kappa)


def weights(table, o, widths):
    """Relative changes of the weights of three layers: the square one has as many as m^2."""
    net = kc.Sequential(
        kc.Dense(1.5, b_std=0.5), kc.Tanh(), kc.Dense(1.5, b_std=0.5), kc.Tanh(), kc.Dense()
    )
    changes = np.empty((3, o.seeds, len(widths)))
    for seed in range(o.seeds):
        x, y, _ = sample(seed)
        for k, width in enumerate(widths):
            f = net.sample(width, seed=seed, shape=DIM)
            end = kc.networks.train(f, x, y, step=STEP, steps=STEPS, every=STEPS).network
            for layer, (a, b) in enumerate(zip(f.weights, end.weights, strict=True)):
                changes[layer, seed, k] = np.linalg.norm(b.w - a.w) / np.linalg.norm(a.w)
    for layer, predicted in enumerate((-0.5, -1.0, -0.5)):
        table.slope(f"relative change of weights in the width, layer {layer + 1} of 3", predicted,
                    0.15, widths, changes[layer])  # fmt: skip


def ensembles(table, o, width):
    """Outputs of many networks before and after training, against the band of infinite width."""
    net = two_layers(kc.Relu())
    x, y, z = sample(0)
    z, time = z[:8], 50.0
    steps = int(time / STEP)
    theory = kc.solvers.ensemble_flow(
        net.ntk(x), net.nngp(x), y, [0.0, time / POINTS],  # train's loss is a mean
        ntk_test=net.ntk(z, x), nngp_test=net.nngp(z, x), nngp_test_test=net.nngp.diag(z),
    )  # fmt: skip
    outputs = np.empty((2, NETWORKS, len(z)))
    for k in range(NETWORKS):
        f = net.sample(width, seed=1000 + k, shape=DIM)
        end = kc.networks.train(f, x, y, step=STEP, steps=steps, every=steps).network
        outputs[0, k], outputs[1, k] = f(z), end(z)
    for when, found, mean, variance in zip(
        ("before", "after"), outputs, theory.test_mean, theory.test_variance, strict=True
    ):
        off = (found.mean(0) - mean) / np.sqrt(variance / NETWORKS)
        # The sum of squares of as many normal numbers, which points share in part.
        table.add(f"mean of {NETWORKS} networks {when} training: rms of its standard errors",
                  1.0, 1.0, float(np.sqrt(np.mean(off**2))), 0.0)  # fmt: skip
        spread = found.var(0, ddof=1) / variance
        table.add(f"their variance {when} training, of the predicted one", 1.0, 0.0,
                  float(spread.mean()), np.sqrt(2 / (NETWORKS - 1)))  # fmt: skip
        inside = np.mean(np.abs(found - mean) <= 2 * np.sqrt(variance))
        table.add(f"networks inside of two deviations {when} training", 0.954, 0.02,
                  float(inside), np.sqrt(0.954 * 0.046 / NETWORKS))  # fmt: skip


def biases(table, o):
    """Descent on a linear model keeps what of its start no sample sees: the rest is least norm."""
    sizes = np.array([0.0, 0.01, 0.1, 1.0, 10.0])
    found, wanted = (np.empty((o.seeds, len(sizes))) for _ in range(2))
    for seed in range(o.seeds):
        x, y, _ = sample(seed)
        f = two_layers(kc.Tanh()).sample(50, seed=seed, shape=DIM, doubled=True)
        linear, J = f.linearize(), f.jacobian(x)
        least = np.linalg.lstsq(J, y, rcond=None)[0]
        start = np.random.default_rng([13, seed]).standard_normal(f.theta.size)
        start /= np.linalg.norm(start)
        unseen = start - np.linalg.lstsq(J, J @ start, rcond=None)[0]
        for k, size in enumerate(sizes):
            begin = linear.at(f.theta + size * start)
            end = kc.networks.train(begin, x, y, steps=20_000, tol=1e-12, every=20_000).network
            found[seed, k] = np.linalg.norm(end.theta - f.theta)
            wanted[seed, k] = np.linalg.norm(least + size * unseen)
    for k, size in enumerate(sizes):
        ratio = found[:, k] / wanted[:, k]
        table.add(f"norm that descent ends with, of the predicted one, from a start of {size:g}",
                  1.0, 0.02, ratio.mean(), ratio.std(ddof=1) / np.sqrt(o.seeds))  # fmt: skip


def figure(table, path):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    shown = list(table.curves.items())
    columns = 4
    count = -(-len(shown) // columns)
    _, axes = plt.subplots(count, columns, figsize=(13, 2.9 * count), layout="constrained")
    predicted = {row[0]: row[1] for row in table.rows}
    for ax, (claim, (x, y)) in zip(axes.flat, shown, strict=False):
        mean = np.exp(np.log(y).mean(0))
        ax.loglog(x, y.T, color="0.8", lw=0.8)
        ax.loglog(x, mean, "o", ms=4, color="C0", label=f"measured, {exponents(x, y)[0]:.2f}")
        line = mean[-1] * (x / x[-1]) ** predicted[claim]
        ax.loglog(x, line, "k--", lw=1, label=f"slope {predicted[claim]:g}")
        ax.set_title(claim, fontsize=7)
        ax.set_xlabel("alpha" if "in alpha" in claim else "width", fontsize=8)
        ax.set_xticks(x, [f"{v:g}" for v in x], fontsize=7)
        ax.minorticks_off()
        ax.legend(fontsize=7)
    for ax in axes.flat[len(shown) :]:
        ax.axis("off")
    plt.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few and narrow networks")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--json", type=Path)
    o = parser.parse_args()
    widths = 2 ** np.arange(6, 9 if o.quick else 12)
    if o.quick:
        o.seeds = min(o.seeds, 3)
    table = Table()
    print("  verdict measured           predicted         claim")
    distances(table, o, widths)
    scales(table, o)
    curvatures(table, o, widths[:5])
    weights(table, o, widths[:5])
    ensembles(table, o, 64 if o.quick else BAND)
    biases(table, o)
    if o.figure:
        figure(table, o.figure)
    if o.json:
        save(o.json, {"rows": table.rows, "curves": table.curves})
    off = [row[0] for row in table.rows if not row[-1]]
    return "missed: " + "; ".join(off) if off else None


if __name__ == "__main__":
    sys.exit(main())
