"""Kernels: of networks, classical ones, on cyclic signals, and their algebra."""

from ._cyclic import CyclicConvolution
from ._kernel import Kernel, Product, Scaled, Sum
from ._programs import (
    ArcCosine,
    Cauchy,
    Gaussian,
    Laplacian,
    Matern,
    Nngp,
    Ntk,
    Polynomial,
    ProgramKernel,
)

__all__ = [
    "ArcCosine", "Cauchy", "CyclicConvolution", "Gaussian", "Kernel", "Laplacian", "Matern", "Nngp",
    "Ntk", "Polynomial", "Product", "ProgramKernel", "Scaled", "Sum",
]  # fmt: skip
