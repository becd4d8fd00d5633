"""
Degrees that a kernel can never learn
=====================================

With one hidden ReLU layer and no biases, odd degrees from 3 on have eigenvalue zero. A second
layer, biases, or a shifted activation bring them back.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelcore as kc

kernels = {
    "1 hidden": kc.presets.mlp(1).ntk,
    "1 hidden, biases": kc.presets.mlp(1, b_std=0.5).ntk,
    "1 hidden, shifted by 0.5": kc.presets.mlp(1, kc.Relu(shift=0.5)).ntk,
    "2 hidden": kc.presets.mlp(2).ntk,
}
print("never learned:", kernels["1 hidden"].null_degrees(9))

figure, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
degrees = np.arange(10)
for i, (name, kernel) in enumerate(kernels.items()):
    spectrum = kc.spectrum.sphere(kernel, dim=10, max_degree=9)
    share = np.exp(spectrum.log_eigenvalues + spectrum.log_multiplicities) / spectrum.trace
    ax.bar(degrees + 0.2 * (i - 1.5), np.where(share > 0, share, np.nan), 0.2, label=name)
ax.set(yscale="log", xlabel="degree", ylabel="share of the trace", xticks=degrees, ylim=(1e-6, 1))
ax.legend(fontsize=8)
plt.show()
