"""kernelcore: exact kernels of infinitely wide networks, fast.

    layers -> Sequential -> lowered to a program -> door: check, allocate -> compiled driver
                                                                              -> ext/include

>>> import kernelcore as kc
>>> net = kc.Sequential(kc.Dense(2**0.5), kc.Relu(), kc.Dense())
>>> K = net.ntk([[1.0, 2.0], [3.0, 4.0]])

``import kernelcore`` loads NumPy only; compiled modules and SciPy load on first use.
"""

from . import presets
from ._info import get_include, info
from ._threads import get_threads, set_threads
from ._version import __version__
from .activations import (
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
from .architecture import Kernels, Residual, Sequential
from .kernels import ArcCosine, Cauchy, Gaussian, Kernel, Laplacian, Matern, Polynomial
from .layers import AvgPool, Conv, Dense, Flatten, GlobalAvgPool, Input

__all__ = [
    "Abs", "Activation", "ArcCosine", "AvgPool", "Cauchy", "Conv", "Cos", "Dense", "Elu", "Erf",
    "Exp", "Flatten", "Gaussian", "GaussianBump", "Gelu", "GlobalAvgPool", "Hermite", "Identity",
    "Input", "Kernel", "Kernels", "Laplacian", "LeakyRelu", "Matern", "Monomial", "OneKink",
    "Polynomial", "PowerSeries", "RectifiedPower", "Relu", "Residual", "Selu", "Sequential",
    "Sigmoid", "Sign", "Silu", "Sin", "Softplus", "Step", "Tanh", "__version__", "get_include",
    "get_threads", "info", "presets", "set_threads",
]  # fmt: skip
