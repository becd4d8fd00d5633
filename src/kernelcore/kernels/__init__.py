"""Kernels: of networks, classical ones, on cyclic signals, and their algebra."""

from ._averaged import Averaged, Flip, Permutation, Shift
from ._cyclic import CyclicConvolution
from ._kernel import Kernel, Product, Scaled, Sum
from ._programs import *
from ._programs import __all__ as _names

__all__ = [
    "Averaged", "CyclicConvolution", "Flip", "Kernel", "Permutation", "Product", "Scaled", "Shift",
    "Sum",
]  # fmt: skip
__all__ += _names
