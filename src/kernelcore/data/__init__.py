"""Inputs, targets, images and data sets of the experiments.

Inputs: ``sphere hypercube gaussian spiked``. Targets: ``RandomFunction Chains Subspace neuron
hermite low_frequency high_frequency heaviside``. Noise on labels and in images: ``label_noise
random_labels frequency_noise``. What is done to images: ``deform deformation flips Whitening``.
``digits`` travels inside the package, and ``fashion_mnist mnist cifar10 uci`` are read from local
files.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from ..spectrum import RandomFunction
from ._covariates import gaussian, hypercube, sphere, spiked
from ._files import DataSet, Images, cifar10, fashion_mnist, mnist, uci, uci_sets
from ._images import Deformation, Whitening, deform, deformation, flips, frequency_noise
from ._targets import (
    Chains,
    Subspace,
    heaviside,
    hermite,
    high_frequency,
    label_noise,
    low_frequency,
    neuron,
    random_labels,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Chains", "DataSet", "Deformation", "Images", "RandomFunction", "Subspace", "Whitening",
    "cifar10", "deform", "deformation", "digits", "fashion_mnist", "flips", "frequency_noise",
    "gaussian", "heaviside", "hermite", "high_frequency", "hypercube", "label_noise",
    "low_frequency", "mnist", "neuron", "random_labels", "sphere", "spiked", "uci", "uci_sets",
]  # fmt: skip


def digits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return handwritten digits: 1,797 images of 8 x 8 pixels in ten classes.

    Returns
    -------
    X : array of shape (1797, 64), float64
        One image per row, row by row; whole numbers from 0 (paper) to 16 (ink). Each pixel counts
        the dark dots of a 4 x 4 block of the scanned 32 x 32 bitmap.
    y : array of shape (1797,), int64
        The digit, 0 to 9; 174 to 183 images of each.

    Notes
    -----
    Source: E. Alpaydin and C. Kaynak, *Optical Recognition of Handwritten Digits*, UCI Machine
    Learning Repository, 1998, doi:10.24432/C50P49; the file ``optdigits.tes``, written by 13 people
    and in its original order, as in scikit-learn's ``load_digits``. Licence: Creative Commons
    Attribution 4.0 (CC BY 4.0). Stored as uint8, otherwise unchanged. Both arrays are new at each
    call and may be written to.

    Examples
    --------
    >>> import kernelcore as kc
    >>> X, y = kc.data.digits()
    >>> X.shape, y[:5]
    ((1797, 64), array([0, 1, 2, 3, 4]))
    """
    with resources.files(__name__).joinpath("digits.npz").open("rb") as file:
        stored = np.load(file)
        images, labels = stored["images"], stored["labels"]
    return images.reshape(len(images), -1).astype(np.float64), labels.astype(np.int64)
