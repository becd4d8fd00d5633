"""kernelcore: exact kernels of infinitely wide networks, fast.

    layers -> Sequential -> lowered to a program -> door: check, allocate -> compiled driver
                                                                              -> ext/include

>>> import kernelcore as kc
>>> net = kc.Sequential(kc.Dense(2**0.5), kc.Relu(), kc.Dense())
>>> K = net.ntk([[1.0, 2.0], [3.0, 4.0]])

``import kernelcore`` loads NumPy only; compiled modules and SciPy load on first use.
"""

import importlib as _importlib
import sys as _sys

from . import _check, kernels, presets
from ._info import get_include, info
from ._version import __version__
from .architecture import Kernels, Residual, Sequential
from .engine.threads import get_threads, set_threads
from .kernels import (
    ArcCosine,
    Cauchy,
    CyclicConvolution,
    Gaussian,
    Kernel,
    Laplacian,
    Matern,
    Polynomial,
)
from .layers import (
    AvgPool,
    Conv,
    Dense,
    Flatten,
    GaussianPool,
    GlobalAvgPool,
    Input,
    activations,
    maps,
    profiles,
)
from .layers.activations import (
    Abs,
    Activation,
    Cos,
    Elu,
    Erf,
    Exp,
    GaussianBump,
    Gelu,
    Hermite,
    Identity,
    LeakyRelu,
    Monomial,
    OneKink,
    PowerSeries,
    RectifiedPower,
    Relu,
    Selu,
    Sigmoid,
    Sign,
    Silu,
    Sin,
    Softplus,
    Step,
    Tanh,
)
from .layers.maps import DotProduct, Project

__all__ = [
    "Abs", "Activation", "ArcCosine", "AvgPool", "Cauchy", "Conv", "Cos", "CyclicConvolution",
    "Dense", "DotProduct", "Elu", "Erf", "Exp", "Flatten", "Gaussian", "GaussianBump",
    "GaussianPool", "Gelu", "GlobalAvgPool", "GramOperator", "Hermite", "Identity", "Input",
    "Kernel", "Kernels", "Laplacian", "LeakyRelu",
    "Matern", "Monomial", "OneKink", "Polynomial", "PowerSeries", "Project", "RectifiedPower",
    "Relu", "Residual", "Selu", "Sequential", "Sigmoid", "Sign", "Silu", "Sin", "Softplus", "Step",
    "Tanh", "__version__", "data", "experiments", "features", "get_include", "get_threads", "info",
    "presets", "profiles", "report", "set_threads", "solvers", "spectrum", "theory",
]  # fmt: skip


# Not in __all__: without scikit-learn "from kernelcore import *" works too.
_ESTIMATORS = (
    "GaussianProcess", "KernelClassifier", "KernelPCA", "KernelRegressor", "KernelSmoother",
    "SpectralEmbedding",
)  # fmt: skip


# Modules that have moved can still be imported under their former names, which pickles contain.
for _former in (activations, maps, profiles):
    _sys.modules[f"kernelcore.{_former.__name__.rpartition('.')[2]}"] = _former
_sys.modules["kernelcore.cyclic"] = kernels


def __getattr__(name: str):
    # Rooms that a Gram matrix does not need load when they are first named.
    if name in ("data", "experiments", "features", "report", "solvers", "spectrum", "theory"):
        return _importlib.import_module(f"kernelcore.{name}")
    if name == "GramOperator":
        return _importlib.import_module("kernelcore.scale.operator").GramOperator
    if name in _ESTIMATORS:
        _check.installed("sklearn", "scikit-learn", name, "sklearn")
        return getattr(_importlib.import_module("kernelcore.estimators"), name)
    raise AttributeError(f"module 'kernelcore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ESTIMATORS})
