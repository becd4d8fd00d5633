"""Theory beside measurement: spectra of Gram matrices, and learning curves of ridge regression.

    python benchmarks/agreement.py [--draws 30] [--only NAME ...]

Each line is a prediction, the mean over draws and its standard error; a line agrees within 5 % or
two standard errors. Inputs and labels are drawn anew each time, targets as stated; seeds are the
numbers of the draws. About ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
import scipy.linalg

import kernelcore as kc

TEST = 5000


def ridge_error(kernel, x, y, n, ridge):
    """Mean squared test error, per target, of K + ridge I trained on the first n points."""
    train, test = x[:n], x[n:]
    k = kernel(train)
    k[np.diag_indices(n)] += ridge
    alpha = scipy.linalg.solve(k, y[:n], assume_a="pos", overwrite_a=True, check_finite=False)
    return ((kernel(test, train) @ alpha - y[n:]) ** 2).mean(0)


def uniform(rng, n, dim, radius):
    x = rng.standard_normal((n, dim))
    return x * (radius / np.linalg.norm(x, axis=1, keepdims=True))


class Lines:
    """Prints lines as they come, and counts."""

    def __init__(self):
        self.met = self.missed = 0

    def add(self, name, predicted, values):
        mean, error = np.mean(values), np.std(values, ddof=1) / math.sqrt(len(values))
        off = predicted - mean
        good = abs(off) <= 0.05 * mean or abs(off) <= 2 * error
        self.met, self.missed = self.met + good, self.missed + (not good)
        print(
            f"{name:44s} {predicted:9.5f} {mean:9.5f} +- {error:.5f}  {predicted / mean - 1:+7.1%} "
            f"{off / error:+6.1f} se  {'' if good else 'MISSED'}",
            flush=True,
        )


# ---- sphere


def gram_spectrum(lines, draws):
    """Mean eigenvalue over each degree of 4,000 points against mu_k."""
    kernel, dim, n = kc.presets.mlp(2).ntk, 10, 4000
    s = kc.spectrum.sphere(kernel, dim, 12)
    many = [int(m) for m in s.multiplicities]
    ends = np.cumsum(many)
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        k = kernel(uniform(rng, n, dim, math.sqrt(dim)))
        found.append(kc.spectrum.gram(k, vectors=False).eigenvalues)
    for degree in range(4):
        part = slice(ends[degree] - many[degree], ends[degree])
        values = [f[part].mean() for f in found]
        # Eigenvalues spread around mu_k as those of a sample covariance do: their mean has an error
        # of order mu_k sqrt(N/n)/sqrt(N), and the next levels push it by about their mass over n.
        push = math.fsum(s.mass[degree + 1 :]) / n + s.tail / n
        predicted = s.eigenvalues[degree] + push
        lines.add(f"Gram, dim 10, n 4000, degree {degree} x {many[degree]}", predicted, values)


def sphere_curves(lines, draws):
    dim, ridge = 30, 1e-3
    kernel = kc.presets.mlp(2).ntk
    s = kc.spectrum.sphere(kernel, dim, 40)
    for n in (30, 100, 300, 1000, 3000):
        found = {2: [], 3: []}
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            x = uniform(rng, n + TEST, dim, math.sqrt(dim))
            y = np.stack(
                [kc.spectrum.RandomFunction(dim, np.eye(4)[k], rng)(x) for k in found], axis=1
            )
            for k, error in zip(found, ridge_error(kernel, x, y, n, ridge), strict=True):
                found[k].append(error)
        for k, values in found.items():
            power = np.eye(41)[k]
            predicted = float(kc.theory.learning_curve(s, power, n, ridge))
            lines.add(f"sphere, dim 30, NTK 2 hidden, degree {k}, n {n}", predicted, values)


# ---- hypercube


def cyclic_curves(lines, draws):
    d, q, ridge = 30, 10, 1e-3
    h = [0.0, 0.2, 0.2, 0.2, 0.2, 0.2]
    sets = [[i, (i + 1) % d, (i + 2) % d] for i in range(d)]
    targets = {"LF": [1 / math.sqrt(d)] * d, "HF": [(-1) ** i / math.sqrt(d) for i in range(d)]}
    for w in (1, 5, 30):
        kernel = kc.CyclicConvolution(q, w, h)
        s = kc.spectrum.cyclic(kernel, d)
        for n in (100, 300, 1000):
            found = {name: [] for name in targets}
            for seed in range(draws):
                rng = np.random.default_rng(seed)
                x = rng.choice([-1.0, 1.0], (n + TEST, d))
                local = x * np.roll(x, -1, 1) * np.roll(x, -2, 1)
                y = np.stack([local @ np.array(c) for c in targets.values()], axis=1)
                for name, error in zip(found, ridge_error(kernel, x, y, n, ridge), strict=True):
                    found[name].append(error)
            for name, values in found.items():
                power = s.target_power(sets, targets[name])
                predicted = float(kc.theory.learning_curve(s, power, n, ridge))
                lines.add(f"cube, d 30, H({q}, {w}), f_{name}, n {n}", predicted, values)


# ---- spiked


def spiked_curves(lines, draws):
    dim, signal, ridge = 256, 8, 1e-2
    kernel = kc.presets.mlp(2).ntk
    for snr in (16.0, 128.0):
        s = kc.spectrum.spiked(kernel, dim, signal, snr, max_degree=16)
        power = s.target_power([0, 0, 1 / 3, 1 / 3, 1 / 3])
        for n in (300, 1000, 3000):
            found = []
            for seed in range(draws):
                rng = np.random.default_rng(seed)
                z = uniform(rng, n + TEST, signal, math.sqrt(snr * signal))
                noise = uniform(rng, n + TEST, dim - signal, math.sqrt(dim - signal))
                f = kc.spectrum.RandomFunction(signal, [0, 0, 1 / 3, 1 / 3, 1 / 3], rng)
                x = np.concatenate([z, noise], axis=1)
                found.append(ridge_error(kernel, x, f(z), n, ridge))
            predicted = float(kc.theory.learning_curve(s, power, n, ridge))
            lines.add(f"spiked, d 256, d_s 8, snr {snr:g}, n {n}", predicted, found)


# ---- random features


def feature_curves(lines, draws):
    """Features relu(<w, x>) with w on the sphere, scaled so that their kernel is kappa1."""
    dim, n, ridge = 30, 300, 1e-3
    scale = math.sqrt(2 * dim)
    s = kc.spectrum.sphere(kc.ArcCosine(1), dim, 40)
    power = np.zeros(41)
    power[[1, 2]] = 0.5
    for features in (30, 100, 200, 300, 450, 1000):
        found = []
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            x = uniform(rng, n + TEST, dim, 1.0)
            y = kc.spectrum.RandomFunction(dim, power[:3], rng)(x)
            w = uniform(rng, features, dim, 1.0)
            z = scale * np.maximum(x @ w.T, 0) / math.sqrt(features)
            gram = z[:n].T @ z[:n]
            gram[np.diag_indices(features)] += ridge
            a = scipy.linalg.solve(gram, z[:n].T @ y[:n], assume_a="pos")
            found.append(float(((z[n:] @ a - y[n:]) ** 2).mean()))
        predicted = float(kc.theory.random_features_curve(s, power, n, features, ridge))
        lines.add(f"features, dim 30, n 300, N {features}", predicted, found)


PARTS = {
    "gram": gram_spectrum,
    "sphere": sphere_curves,
    "cyclic": cyclic_curves,
    "spiked": spiked_curves,
    "features": feature_curves,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    lines = Lines()
    print(f"{'':44s} {'predicted':>9s} {'measured':>9s}")
    for name in arguments.only:
        start = time.perf_counter()
        PARTS[name](lines, arguments.draws)
        print(f"-- {name}: {time.perf_counter() - start:.0f} s", flush=True)
    print(f"{lines.met} agree, {lines.missed} do not")


if __name__ == "__main__":
    main()
