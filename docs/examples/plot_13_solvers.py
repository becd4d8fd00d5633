"""
Iterative solvers and what preconditioners do
=============================================

The same system by conjugate gradients without and with a Nystrom preconditioner of growing rank.
The matrix is an operator: it need not fit into memory.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelcore as kc

X = np.random.default_rng(0).standard_normal((1500, 6))
y = np.sin(X[:, 0]) * X[:, 1]
K = kc.GramOperator(kc.presets.mlp(2).ntk, X)
ridge = 1e-2

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for rank in (0, 50, 200, 600):
    P = kc.solvers.nystrom_preconditioner(K, rank=rank, ridge=ridge, seed=0) if rank else None
    fit = kc.solvers.conjugate_gradients(K, y, ridge, preconditioner=P, tol=1e-8)
    ax.semilogy(fit.residuals, label=f"rank {rank}" if rank else "plain")
ax.set(xlabel="iteration", ylabel="residual, relative to y")
ax.legend()
plt.show()
