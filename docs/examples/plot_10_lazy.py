"""
Wide networks train as their linearisation
==========================================

A network and its linearisation take the same steps of descent. The wider it is, the closer they
stay: their distance on the sample falls like one over the width for a smooth activation.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelcore as kc

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 4))
y = np.sin(X[:, 0]) + 0.5 * X[:, 1]
description = kc.Sequential(kc.Dense(1.5, b_std=0.5), kc.Tanh(), kc.Dense())

widths = [32, 64, 128, 256, 512]
distances = np.array(
    [
        [
            kc.networks.coupled(
                description.sample(width, seed=seed, doubled=True), X, y, steps=100
            ).distance.max()
            for seed in range(4)
        ]
        for width in widths
    ]
)
slope = np.polyfit(np.log(widths), np.log(distances).mean(axis=1), 1)[0]

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.loglog(widths, distances, ".", color="C0", alpha=0.6)
ax.loglog(widths, np.exp(np.log(distances).mean(axis=1)), "C0", label=f"slope {slope:.2f}")
ax.loglog(widths, distances.mean() * np.sqrt(widths[0] * widths[-1]) / np.array(widths), "k:",
          label="slope -1")  # fmt: skip
ax.set(xlabel="width", ylabel="largest distance from the linearisation")
ax.legend()
plt.show()
