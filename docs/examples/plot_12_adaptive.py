"""
A kernel that learns where its target varies
============================================

The target depends on two of twenty coordinates. A recursive feature machine finds them: its metric
is the average outer product of the gradients of its own fit, round after round.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelcore as kc

rng = np.random.default_rng(0)
X, Z = rng.standard_normal((800, 20)), rng.standard_normal((500, 20))


def target(x):
    return x[:, 0] * x[:, 1]


kernel = kc.Laplacian(lengthscale=5.0)
errors = []
for rounds in range(6):
    model = kc.RecursiveFeatureMachine(kernel, rounds=rounds, ridge=1e-3).fit(X, target(X))
    errors.append(np.mean((model.predict(Z) - target(Z)) ** 2))

metric = model.feature_matrix_
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
left.semilogy(range(6), errors, "o-")
left.set(xlabel="rounds", ylabel="test error", xticks=range(6))
right.bar(range(20), np.diag(metric) / np.trace(metric))
right.set(xlabel="coordinate", ylabel="share of the metric's trace", xticks=range(0, 20, 2))
plt.show()
