"""Experiments of the papers: one module per figure or table, which computes and says what it found.

::

    kernelcore run NAME ──▶ run(NAME) ──▶ load(NAME).run(settings, cells=...) ──▶ Result, a file
    kernelcore report   ──▶ report.write: plot, claims, tables and paragraph of results, as a page

A module has ``Settings`` with ``PRESETS`` (``small`` takes seconds, ``paper`` has the sizes of the
paper), ``SECONDS`` that they took on two cores, ``run``, ``plot``, ``claims``, ``paragraph`` and
perhaps ``tables``; ``_base.py`` has what they share. Nothing here knows of HTML.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from .. import _check
from ._base import Cells, Claim, Experiment, Picture, Result, Settings, Table
from ._run import Failure, run, run_all, saved, settings_of

NAMES = {
    "profiles": "Near u = 1 a ReLU NTK falls like the distance of inputs, its NNGP like its square",
    "spectrum": "Eigenvalues on the sphere fall like powers of the degree, as Gram matrices show",
    "curves": "A spectrum predicts the test error of kernel ridge regression and random features",
    "staircase": "Kernels and random features learn isotropic targets degree by degree",
    "single_neuron": "Networks find the one direction that matters; kernels do not",
    "spiked": "Kernels see the effective dimension of spiked covariates, networks the signal",
    "noise": "Networks see past noise in the high frequencies of images, kernels do not",
    "locality": "Patches and pooling save samples on signals that are local and shift",
    "stability": "CKNs are Lipschitz and stable to deformations, NTKs are like square roots",
    "heaviside": "A jump is learned by powers of t, or by powers of log t",
    "approximation": "N random features fit degree l from d^l on; balls approach with their radius",
    "lazy": "Wide networks stay near their linearisation, by powers of width and scale",
    "wide": "Weights of wide networks hardly change, and many networks are a Gaussian process",
    "rich": "A small start learns features, a large one is its tangent kernel",
    "frozen": "Frozen layers are kernels, and features learned elsewhere help where there is noise",
    "one_step": "One gradient step finds a subspace from d² samples, if the Hessian shows it",
    "adaptive": "Recursive feature machines turn their metric into the latent subspace",
    "adaptivity": "Support and smoothness help kernels and networks; latent variables, networks",
    "complexity": "Norms tell true labels from random ones; eigenvalues predict the training loss",
    "features": "Random features reach their kernel at N of order √n log n, and match boosting",
    "smoothing": "Weighted means err like n^(−4/5); kernel components tell rings apart",
    "digits": "NTKs read digits as well as a Gaussian kernel, without a lengthscale to choose",
    "defaults": "Every estimator learns with its defaults, in single as in double precision",
    "learning": "Leave-one-out finds the ridge, descent the flow, and features err like N^(−1/2)",
    "images": "Pooling makes a convolutional kernel blind to positions, and pays where these vary",
    "uci": "NTKs classify UCI data as well as Gaussian kernels, as in Arora et al. (2020)",
    "speed": "An NTK Gram matrix costs little more than the product of the inputs",
}
"""Experiments by name, in the order of the page, with what each claims; modules load when named."""

__all__ = [
    "NAMES", "Cells", "Claim", "Failure", "Picture", "Result", "Settings", "Table", "load", "run",
    "run_all", "saved", "settings_of",
]  # fmt: skip


def load(name: str) -> Experiment:
    """Return the module of an experiment.

    Parameters
    ----------
    name : str
        One of ``NAMES``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> sorted(kc.experiments.load("profiles").PRESETS)
    ['paper', 'small']
    """
    _check.choice(name, "name", tuple(NAMES))
    return cast(Experiment, import_module(f"{__name__}.{name}"))


def __getattr__(name: str) -> Any:
    if name in NAMES:
        return load(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *NAMES})
