"""
A Gram matrix of digits
=======================

Sorted by class, the NTK of handwritten digits shows the classes as blocks on the diagonal.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelcore as kc

X, y = kc.data.digits()
order = np.argsort(y[:400], kind="stable")
X, y = X[:400][order], y[:400][order]

kernel = kc.presets.mlp(3).ntk
K = kernel(X)
scale = np.sqrt(kernel.diag(X))

figure, ax = plt.subplots(figsize=(4.8, 4), layout="constrained")
image = ax.imshow(K / np.outer(scale, scale), cmap="viridis")
borders = np.flatnonzero(np.diff(y)) + 0.5
centres = np.r_[-0.5, borders, len(y) - 0.5]
ax.set_xticks((centres[1:] + centres[:-1]) / 2, range(10))
ax.set_yticks((centres[1:] + centres[:-1]) / 2, range(10))
ax.set(xlabel="digit", ylabel="digit")
figure.colorbar(image, label="NTK, normalised to 1 on the diagonal")
plt.show()
