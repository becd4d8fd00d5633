"""Images that experiments read: those that ``--data`` names, or else the digits that ship."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import _check, data
from .._types import Array


class Given(NamedTuple):
    """A data set of images of shape (n, H, W, C), with values from 0 to 1.

    Where a set has no test images of its own, ``X_test`` is empty.
    """

    name: str
    X: Array
    y: Array
    X_test: Array
    y_test: Array


def read(path: str, shipped: bool = True) -> Given:
    """Read Fashion-MNIST or CIFAR-10, or without a path the digits, if these will do."""
    _check.data_given(bool(path) or shipped, "Fashion-MNIST or CIFAR-10")
    if not path:
        X, y = data.digits()
        X = X.reshape(-1, 8, 8, 1).astype(np.float32) / 16
        return Given("digits of 8 × 8 pixels", X, y, X[:0], y[:0])
    place = Path(path)
    colours = place.is_file() or any(place.glob("test_batch*"))
    found = data.cifar10(place) if colours else data.fashion_mnist(place)
    X, X_test = (images.astype(np.float32) / 255 for images in (found.X_train, found.X_test))
    name = "CIFAR-10" if colours else "Fashion-MNIST"
    return Given(name, X, found.y_train, X_test, found.y_test)


def divided(
    given: Given, n: int, test: int, rng: np.random.Generator
) -> tuple[Array, Array, Array, Array]:
    """Draw n images to learn from and others for the test: of the test set, where there is one."""
    X, y, Z, w = given[1:]
    order = rng.permutation(len(X))
    learned, held = order[:n], order[n : n + test]
    if len(Z):
        held = rng.permutation(len(Z))[:test]
    else:
        Z, w = X, y
    most = len(X) if len(given.X_test) else len(X) - test
    _check.must(n <= most, "n", f"leave images for the test, at most {most}", n)
    return X[learned], y[learned], Z[held], w[held]


def shrunk(images: Array, by: int) -> Array:
    """Return means over squares of ``by`` pixels, the sides of which divide those of the images."""
    n, height, width, channels = images.shape
    rule = f"divide the sides of images, {height} x {width}"
    _check.must(height % by == 0 and width % by == 0, "shrink", rule, by)
    return images.reshape(n, height // by, by, width // by, by, channels).mean((2, 4))


def band(images: Array, part: float, *, highest: bool = False) -> Array:
    """Keep the lowest, or the highest, part of the frequencies of the cosine basis."""
    from scipy.fft import dctn, idctn

    height, width = images.shape[1:3]
    i, j = np.ogrid[:height, :width]
    order = np.argsort(np.hypot(i, j), axis=None, kind="stable")
    count = max(1, round(part * len(order)))
    kept = np.zeros((height * width, 1), bool)
    kept[order[-count:] if highest else order[:count]] = True
    waves = dctn(images, axes=(1, 2), norm="ortho") * kept.reshape(height, width, 1)
    return np.asarray(idctn(waves, axes=(1, 2), norm="ortho"), images.dtype)
