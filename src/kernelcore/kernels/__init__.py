"""Kernels: of networks, classical ones, on cyclic signals, and their algebra."""

from ._cyclic import CyclicConvolution
from ._kernel import Kernel, Product, Scaled, Sum
from ._programs import *
from ._programs import __all__ as _names

__all__ = ["CyclicConvolution", "Kernel", "Product", "Scaled", "Sum"]
__all__ += _names
