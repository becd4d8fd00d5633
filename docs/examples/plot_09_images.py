"""
A convolutional kernel on images
================================

Pooling makes a kernel less sensitive to where a stroke is. Digits are moved by one pixel, and
three kernels are asked how similar they find the moved image to the one before.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelcore as kc

X, y = kc.data.digits()
images = np.pad(X[:40].reshape(-1, 8, 8, 1), ((0, 0), (2, 2), (2, 2), (0, 0)))


def network(*readout):
    layers = [kc.Conv(3, w_std=2**0.5), kc.Relu()] * 2
    return kc.Sequential(*layers, *readout, kc.Dense())


kernels = {
    "Flatten": network(kc.Flatten()).ntk,
    "local average, then Flatten": network(kc.AvgPool(3), kc.Flatten()).ntk,
    "global average": network(kc.GlobalAvgPool()).ntk,
}
moves = range(5)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(8, 3.2), layout="constrained", width_ratios=(1, 2.2)
)
left.imshow(np.hstack([images[3, ..., 0], np.roll(images[3, ..., 0], 2, axis=1)]), cmap="Greys")
left.set(title="a digit, and moved by 2", xticks=[], yticks=[])
for name, kernel in kernels.items():
    similar = []
    for move in moves:
        moved = np.roll(images, move, axis=2)
        joint = np.diagonal(kernel(images, moved))
        similar.append(np.mean(joint / np.sqrt(kernel.diag(images) * kernel.diag(moved))))
    right.plot(moves, similar, "o-", label=name)
right.set(xlabel="moved by pixels", ylabel="mean similarity", xticks=moves)
right.legend()
plt.show()
