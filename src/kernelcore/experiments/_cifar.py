"""Kernels of images in one table, beside published numbers on CIFAR-10 (E7).

Coates, Lee and Ng (2011); Arora et al. (2019); Li et al. (2019); Shankar et al. (2020); Bietti
(2021). Published accuracies are from all 50,000 training images, and mostly from deeper networks on
whitened images; nothing here measures those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import kernelcore as kc

from .._types import Array
from . import _given

PATCHES, FLAT, GAP = "patches of Coates, Lee and Ng", "CNTK, Flatten", "CNTK, GAP"
LOCAL, FLIPS = "CNTK, local pooling", "CNTK, local pooling, flips"
MYRTLE, CKN, CK = "Myrtle-5", "CKN, two layers", "CK, one layer"
DEPTH = 5  # of the CNTKs: four convolutions
FILTERS = 200
LEAST = 12


class Published(NamedTuple):
    """An accuracy in %, where it was published, and what it was of."""

    accuracy: float
    paper: str
    of: str


PUBLISHED = {
    PATCHES: Published(77.0, "Coates, Lee and Ng 2011", "one layer of patches"),
    FLAT: Published(64.67, "Arora et al. 2019", "CNTK of 3 layers"),
    GAP: Published(77.43, "Arora et al. 2019", "CNTK of 11 layers with GAP"),
    LOCAL: Published(np.nan, "Li et al. 2019", ""),
    FLIPS: Published(89.0, "Li et al. 2019", "with patches of Coates, Lee and Ng"),
    MYRTLE: Published(90.0, "Shankar et al. 2020", "Myrtle-10, whitened, flips"),
    CKN: Published(88.2, "Bietti 2021", "two layers, whitened patches"),
    CK: Published(80.9, "Misiakiewicz and Mei 2022", "one layer, local pooling"),
}
FEW = {10: 15.33, 320: 36.57}
"""Published accuracies of the CNTK of 14 layers from few images (Arora et al. 2020)."""


def few_images(depth: int) -> kc.Kernel:
    return kc.presets.cntk(depth).ntk


def grams(side: int, unlabelled: Array, seed: int) -> dict[str, Callable[[Array], Array]]:
    """Return what makes a Gram matrix of images, by name; they have ``side`` x ``side`` pixels."""
    window = side // 3 | 1  # Li et al. have 11 for 32 pixels
    local = kc.presets.cntk(DEPTH, pool=window).ntk
    # The last pooling of Myrtle-5 is over 8 x 8 positions of 32 x 32 pixels, and then over all.
    myrtle = [layer for layer in kc.presets.myrtle(5).layers if layer != kc.AvgPool(8)]
    kernels: dict[str, kc.Kernel] = {
        FLAT: kc.presets.cntk(DEPTH, gap=False).ntk,
        GAP: kc.presets.cntk(DEPTH).ntk,
        LOCAL: local,
        FLIPS: kc.Averaged(local, kc.Flip(2), joint=True),
        MYRTLE: kc.Sequential(*myrtle).nngp,
        CKN: kc.presets.ckn((3, 3), (2, 2)).nngp,
        CK: kc.presets.ckn((3,), (2,), pool=window).nngp,
    }

    def patches(images: Array) -> Array:
        features = kc.features.PatchFeatures(FILTERS, patch=max(3, side // 5), seed=seed)
        f, like = (features.fit(unlabelled).transform(x) for x in (images, unlabelled))
        f = ((f - like.mean(0)) / like.std(0)).astype(np.float64)
        return f @ f.T

    return {PATCHES: patches, **kernels}


def scaled(images: Array, like: Array) -> Array:
    """Return images whose channels have the mean 0 and the deviation 1 in others."""
    axes = (0, 1, 2)
    return ((images - like.mean(axes)) / like.std(axes)).astype(np.float32)


def drawn(
    given: _given.Given, count: int, unlabelled: int, side: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return images of about ``side`` pixels with labels, and others without.

    Images of fewer than ``LEAST`` pixels, which two poolings ask for, have a border of zeros.
    """
    order = rng.permutation(len(given.X))
    chosen, others = order[:count], order[count : count + unlabelled]
    by = max(1, given.X.shape[1] // side)
    edge = max(0, LEAST - given.X.shape[1] + 1) // 2
    images, rest = (
        np.pad(_given.shrunk(given.X[which], by), ((0, 0), (edge, edge), (edge, edge), (0, 0)))
        for which in (chosen, others)
    )
    return scaled(images, rest), given.y[chosen], scaled(rest, rest)
