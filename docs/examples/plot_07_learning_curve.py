"""
Predicted and measured test errors
==================================

The spectrum of a kernel and the power of the target in each degree predict the test error of
kernel ridge regression. Points are means over five draws, with their standard errors.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelcore as kc

dim, ridge = 20, 1e-3
kernel = kc.presets.mlp(2).ntk
power = np.array([0.0, 0.5, 0.3, 0.2])
spectrum = kc.spectrum.sphere(kernel, dim=dim, max_degree=20)
sizes = np.geomspace(10, 3000, 60)
predicted = kc.theory.learning_curve(spectrum, np.pad(power, (0, 17)), n=sizes, ridge=ridge)


def measured(n, seed):
    f = kc.data.RandomFunction(dim, power, seed=seed)
    X = kc.data.sphere(n, dim, seed=seed + 100)
    Z = kc.data.sphere(500, dim, seed=seed + 200)
    alpha = kc.solvers.ridge(kernel(X), f(X), ridge)
    return np.mean((kernel(Z, X) @ alpha - f(Z)) ** 2)


points = np.array([12, 40, 130, 400, 1300])
errors = np.array([[measured(n, seed) for seed in range(5)] for n in points])

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.semilogx(sizes, predicted, label="theory")
spread = errors.std(axis=1, ddof=1) / np.sqrt(5)
ax.errorbar(points, errors.mean(axis=1), spread, fmt="o", ms=4, label="measured")
ax.set(xlabel="samples n", ylabel="test error", ylim=(0, None))
ax.legend()
plt.show()
