"""What plots of spectra have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MISSING = "plot needs matplotlib; install it with: pip install 'kernelcore[plot]'"


def axes(ax: Axes | None) -> Axes:
    """The user's axes, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(MISSING) from error
    return pyplot.subplots()[1]
