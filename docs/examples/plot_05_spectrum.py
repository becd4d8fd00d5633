"""
Eigenvalues on the sphere, however small
========================================

Eigenvalues are summed without cancellation, so that they keep their digits where quadrature has
lost all of them: the NTK of three hidden layers in 100 dimensions, beside Gauss quadrature.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import roots_gegenbauer

import kernelcore as kc

dim, kernel = 100, kc.presets.mlp(3).ntk
spectrum = kc.spectrum.sphere(kernel, dim=dim, max_degree=60)

nodes, weights = roots_gegenbauer(400, (dim - 2) / 2)
values = kernel.profile(nodes) * weights / weights.sum()
quadrature = kc.spectrum.legendre(dim, 60, nodes) @ values

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
degrees = np.arange(61)
ax.plot(degrees, spectrum.log_eigenvalues / np.log(10), label="kernelcore")
ax.plot(degrees, np.log10(np.abs(quadrature)), "x", ms=4, label="quadrature, 400 nodes")
ax.set(xlabel="degree k", ylabel="log10 of the eigenvalue")
ax.legend()
plt.show()
