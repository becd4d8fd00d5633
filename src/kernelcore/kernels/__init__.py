"""Kernels: of networks, classical ones, on cyclic signals, and their algebra."""

from ._cyclic import CyclicConvolution
from ._kernel import (
    ArcCosine,
    Cauchy,
    Gaussian,
    Kernel,
    Laplacian,
    Matern,
    Nngp,
    Ntk,
    Polynomial,
    Product,
    Scaled,
    Sum,
)

__all__ = [
    "ArcCosine", "Cauchy", "CyclicConvolution", "Gaussian", "Kernel", "Laplacian", "Matern", "Nngp",
    "Ntk", "Polynomial", "Product", "Scaled", "Sum",
]  # fmt: skip
