"""
Which kernel?
=============

Leave-one-out errors of five kernels on the same data, each with its best ridge. One factorisation
gives the errors of all ridges, so that choosing costs as much as fitting once.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelcore as kc

X, labels = kc.data.digits()
X, labels = X[:500] / np.sqrt(np.mean(X**2)), labels[:500]
y = np.where(labels[:, None] == np.arange(10), 0.9, -0.1)

kernels = {
    "linear": kc.presets.mlp(0).nngp,
    "Gaussian": kc.Gaussian(lengthscale=8.0),
    "Laplacian": kc.Laplacian(lengthscale=20.0),
    "NNGP, 2 hidden": kc.presets.mlp(2).nngp,
    "NTK, 2 hidden": kc.presets.mlp(2).ntk,
}
ridges = np.logspace(-6, 1, 30)

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, kernel in kernels.items():
    path = kc.solvers.RidgePath(kernel(X) / np.mean(kernel.diag(X)), y)
    errors = [np.mean(np.argmax(y - path.loo(ridge), axis=1) != labels) for ridge in ridges]
    ax.semilogx(ridges, 100 * np.array(errors), label=name)
ax.set(xlabel="ridge, over the mean of the diagonal", ylabel="leave-one-out error in %")
ax.set_ylim(0, 20)
ax.legend()
plt.show()
