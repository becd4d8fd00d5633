"""Pictures of spectra. Eigenvalues are drawn by their logarithms: many underflow in float64."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._levels import Spectrum

LOG10 = math.log(10)


def axes(ax: Axes | None) -> Axes:
    """Return the axes given, or those of a new figure."""
    _check.installed("matplotlib", "plot")
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(5.5, 4.0), layout="constrained").gca() if ax is None else ax


def levels(spectrum: Spectrum, degrees: Array, ax: Axes | None, style: dict[str, Any]) -> Axes:
    """Draw ``log10`` of the eigenvalues that are known and not zero against a degree."""
    ax = axes(ax)
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    log = spectrum.log_eigenvalues / LOG10
    there = np.isfinite(log)
    ax.plot(degrees[there], log[there], **{"ls": "", "marker": ".", "ms": 5, **style})
    ax.set(xlabel="degree", ylabel="eigenvalue")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"$10^{{{y:g}}}$"))
    return ax
