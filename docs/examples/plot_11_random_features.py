"""
Random features against the exact kernel
========================================

Features of a random network estimate its kernel with an error of one over the square root of
their number; ridge regression on them approaches that with the kernel.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelcore as kc

X, labels = kc.data.digits()
X = X / np.sqrt(np.mean(X**2))
train, test = slice(0, 600), slice(600, 1797)

exact = kc.KernelClassifier(kc.presets.mlp(1).nngp, ridge=1e-2).fit(X[train], labels[train])
counts = [30, 100, 300, 1000, 3000]
errors = np.empty((len(counts), 3))
for i, count in enumerate(counts):
    for seed in range(3):
        features = kc.features.ArcCosineFeatures(1, count, seed=seed)
        model = kc.RandomFeatureClassifier(features, ridge=1e-2)
        errors[i, seed] = 1 - model.fit(X[train], labels[train]).score(X[test], labels[test])

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.errorbar(counts, 100 * errors.mean(axis=1), 100 * errors.std(axis=1, ddof=1) / np.sqrt(3),
            fmt="o-", label="random ReLU features")  # fmt: skip
ax.axhline(100 * (1 - exact.score(X[test], labels[test])), color="k", ls=":", label="exact kernel")
ax.set(xscale="log", xlabel="number of features", ylabel="test error in %", ylim=(0, None))
ax.legend()
plt.show()
