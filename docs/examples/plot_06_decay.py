"""
Depth does not change the decay
===============================

On the sphere of R^d eigenvalues of ReLU kernels fall like a power of the degree, at any depth:
d + 2 for the NNGP, d for the NTK (Bietti and Bach 2021). Lines of one colour are parallel.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelcore as kc

dim, top = 5, 300
k = np.arange(2, top + 1, 2)
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for depth, style in ((1, "-"), (2, "--"), (4, ":")):
    network = kc.presets.mlp(depth)
    for kernel, name, colour in ((network.nngp, "NNGP", "C0"), (network.ntk, "NTK", "C1")):
        spectrum = kc.spectrum.sphere(kernel, dim=dim, max_degree=top)
        label = f"{name}, {depth} hidden: exponent {spectrum.decay().exponent:.2f}"
        ax.loglog(k, spectrum.eigenvalues[k], style, color=colour, label=label)
ax.set(xlabel="degree k (even ones)", ylabel="eigenvalue")
ax.legend(fontsize=8)
plt.show()
