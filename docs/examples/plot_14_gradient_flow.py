"""
Gradient flow, eigenvector by eigenvector
=========================================

Under gradient flow the residual along an eigenvector of the tangent kernel with eigenvalue
``lambda`` falls like ``exp(-lambda t)``: the smooth parts of the target are learned first. The fit
of a step at several times, in closed form.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelcore as kc

x = np.linspace(-1, 1, 61)
y = (x >= 0).astype(float)
grid = np.linspace(-1, 1, 401)
kernel = kc.presets.mlp(2, b_std=0.5).ntk
times = np.array([0.01, 0.1, 1.0, 10.0, 1000.0])
flow = kc.solvers.gradient_flow(
    kernel(x[:, None]), y, times, K_test=kernel(grid[:, None], x[:, None])
)

figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(times)))
for t, f, colour in zip(times, flow.test, colours, strict=True):
    ax.plot(grid, f, color=colour, label=f"t = {t:g}")
ax.plot(x, y, "k.", ms=3)
ax.set(xlabel="x", ylabel="fit")
ax.legend()
plt.show()
