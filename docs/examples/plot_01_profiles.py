"""
Kernels as functions of the angle
=================================

On a sphere, a kernel of a fully connected network is a function of the cosine alone: its profile.
Depth pulls the NNGP of ReLU networks towards a constant, while the NTK keeps a peak at cosine 1.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelcore as kc

u = np.linspace(-1, 1, 401)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
for depth in (1, 2, 4, 8):
    network = kc.presets.mlp(depth)
    for ax, kernel in zip(axes, (network.nngp, network.ntk), strict=True):
        ax.plot(u, kernel.profile(u) / kernel.profile(1.0), label=f"{depth} hidden")
for ax, name in zip(axes, ("NNGP", "NTK"), strict=True):
    ax.set(title=name, xlabel="cosine of the angle between inputs")
axes[0].set_ylabel("kernel over its value at cosine 1")
axes[0].legend()
plt.show()
