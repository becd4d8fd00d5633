"""
The Gaussian process of an infinite network
===========================================

Hyper-parameters are chosen by the marginal likelihood, with exact gradients; the posterior says
what the network with infinitely many units believes between the points.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelcore as kc

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-3, 3, 25))
x = x[(x < -0.7) | (x > 0.9)]
y = np.sin(2 * x) + 0.1 * rng.standard_normal(len(x))

network = kc.Sequential(kc.Dense(2.0, b_std=1.0), kc.Erf(), kc.Dense(1.0, b_std=0.1))
model = kc.GaussianProcess(network.nngp, noise_variance=0.01, tune="likelihood", random_state=0)
model.fit(x[:, None], y)

grid = np.linspace(-4, 4, 300)
mean, deviation = model.predict(grid[:, None], return_std=True)
draws = model.sample_y(grid[:, None], 4, random_state=1)

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.fill_between(grid, mean - 2 * deviation, mean + 2 * deviation, alpha=0.2, label="2 deviations")
ax.plot(grid, draws, color="C0", lw=0.7, alpha=0.7)
ax.plot(grid, mean, color="C0", lw=2, label="posterior mean")
ax.plot(x, y, "k.", label="data")
ax.plot(grid, np.sin(2 * grid), "k:", lw=1, label="truth")
ax.set(xlabel="x", ylim=(-2.5, 2.5))
ax.legend(ncols=4, loc="upper center")
plt.show()
