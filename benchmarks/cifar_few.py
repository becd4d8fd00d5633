"""Few-sample accuracy on CIFAR-10: kernel interpolation with CNTK-GAP and Myrtle-5.

    python benchmarks/cifar_few.py --data FILE.npz

FILE has x_train, y_train, x_test, y_test: uint8 images (n, 32, 32, 3) and labels 0..9. For each
draw n training images are taken at random (the draw is the seed) and the first test images are
classified. Pixels are standardised per channel by the training draw; labels are -0.1 and 0.9; the
float32 Gram matrix is solved in float64 with a jitter of 1e-6 of its mean diagonal. Nothing is
chosen on test data.
"""

import argparse
import sys
import time

import numpy as np
from scipy.linalg import cho_factor, cho_solve

import kernelcore as kc

JITTER = 1e-6
PUBLISHED = "36.57 (CNTK of 14 layers, n = 320, Arora et al. 2020)"
KERNELS = [  # name, kernel, draws
    ("CNTK-GAP, depth 6", kc.presets.cntk(6, gap=True).ntk, (0, 1, 2)),
    ("Myrtle-5", kc.presets.myrtle(5).nngp, (0, 1, 2)),
    ("CNTK-GAP, depth 11", kc.presets.cntk(11, gap=True).ntk, (0,)),
]


def draw(data, seed, n, m):
    """Standardised training and test images with their labels."""
    chosen = np.random.default_rng(seed).choice(len(data["x_train"]), n, replace=False)
    x, y = data["x_train"][chosen] / 255.0, data["y_train"][chosen].ravel()
    z, t = data["x_test"][:m] / 255.0, data["y_test"][:m].ravel()
    mean, std = x.mean((0, 1, 2)), x.std((0, 1, 2))
    return *((a - mean) / std for a in (x, z)), y, t


def accuracy(kernel, x, z, y, t):
    """Percent of test images classified right by interpolation."""
    train = kernel(x.astype(np.float32)).astype(np.float64)
    cross = kernel(z.astype(np.float32), x.astype(np.float32)).astype(np.float64)
    train[np.diag_indices(len(x))] += JITTER * np.trace(train) / len(x)
    targets = np.where(y[:, None] == np.arange(10), 0.9, -0.1)
    scores = cross @ cho_solve(cho_factor(train), targets)
    return 100 * float(np.mean(scores.argmax(1) == t))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--train", type=int, default=320)
    parser.add_argument("--test", type=int, default=200)
    arguments = parser.parse_args()
    with np.load(arguments.data) as file:
        data = {name: file[name] for name in ("x_train", "y_train", "x_test", "y_test")}
    n, m = arguments.train, arguments.test
    print(f"n = {n} training and {m} test images, {kc.get_threads()} threads")
    print("| kernel | draws | accuracy % | std | seconds per draw |")
    print("| --- | --- | --- | --- | --- |")
    for name, kernel, seeds in KERNELS:
        found, seconds = [], []
        for seed in seeds:
            start = time.perf_counter()
            found.append(accuracy(kernel, *draw(data, seed, n, m)))
            seconds.append(time.perf_counter() - start)
            print(f"{name}, draw {seed}: {found[-1]:.1f} %, {seconds[-1]:.0f} s", file=sys.stderr)
        spread = f"{np.std(found, ddof=1):.1f}" if len(found) > 1 else "-"
        mean, time_each = np.mean(found), np.mean(seconds)
        print(f"| {name} | {len(found)} | {mean:.1f} | {spread} | {time_each:.0f} |", flush=True)
    print(f"published: {PUBLISHED}")


if __name__ == "__main__":
    main()
