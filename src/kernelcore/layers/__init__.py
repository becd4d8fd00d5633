"""What networks are written with: layers, activations, maps and profiles, as immutable values."""

from ._layers import (
    AvgPool,
    Conv,
    Dense,
    Flatten,
    GaussianPool,
    GlobalAvgPool,
    Input,
    Layer,
    Pool,
    Readout,
    Spatial,
)

__all__ = [
    "AvgPool", "Conv", "Dense", "Flatten", "GaussianPool", "GlobalAvgPool", "Input", "Layer",
    "Pool", "Readout", "Spatial",
]  # fmt: skip
