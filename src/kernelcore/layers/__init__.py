"""The parts that networks are written with: layers, activations, maps and profiles, all values."""

from ._layers import *
from ._layers import Layer, Pool, Readout, Spatial
from ._layers import __all__ as _names

__all__ = ["Layer", "Pool", "Readout", "Spatial"]
__all__ += _names
