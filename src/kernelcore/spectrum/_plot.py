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
    from ._sphere import SphereSpectrum


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


def sphere(spectrum: SphereSpectrum, ax: Axes | None, fit: bool, style: dict[str, Any]) -> Axes:
    """Draw the same on a logarithmic axis, and the power law over the degrees it was fitted to."""
    degrees = np.where(spectrum.degrees > 0, spectrum.degrees, math.nan)  # 0 has no logarithm
    ax = levels(spectrum, degrees, ax, style)
    dots = ax.get_lines()[-1]
    k = spectrum.degrees[np.isfinite(spectrum.log_eigenvalues) & (spectrum.degrees > 0)]
    if fit and len(k) >= 8:
        law = spectrum.decay()
        x = np.geomspace(law.first, law.last, 50)
        y = (law.intercept + law.exponent * np.log(x + (spectrum.dim - 2) / 2)) / LOG10
        ax.plot(x, y, color=dots.get_color(), lw=1, alpha=0.7)
        ax.annotate(f"{law.exponent:.2f}", (law.last, y[-1]), (4, 0), textcoords="offset points",
                    color=dots.get_color(), va="center", fontsize="small")  # fmt: skip
    ax.set_xscale("log")
    ax.set(xlabel="degree $k$", ylabel=r"eigenvalue $\mu_k$")
    return ax
