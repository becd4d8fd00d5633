"""How figures look: colours, panels, curves, ticks and legends; for functions ``plot`` alone.

Figures are drawn without pyplot, and so without global state. Matplotlib is imported when the first
one is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, which every kind of colour vision can tell apart, without its
# yellow, which is too pale on white.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
GREY = "#767676"
PALE = "#f0f0f0"  # areas behind curves
# Four steps of viridis for an ordered quantity (a depth), dark enough on white at both ends.
STEPS = ("#a0c52b", "#27a17f", "#31688e", "#440154")
FIVE = ((GREY, ":", "x"), (ORANGE, "--", "s"), (VERMILLION, "-.", "^"), (GREEN, "-", "D"),
        (BLUE, "-", "o"))  # fmt: skip
"""Colours, lines and markers of five kernels that are compared."""
BARS: dict[str, Any] = {"ms": 5, "lw": 1.6, "elinewidth": 1.0, "capsize": 2}

WIDTH = 9.7  # of the page, in inches
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Curve(NamedTuple):
    """How the curve of a kernel is drawn."""

    name: str
    color: str
    line: str
    marker: str

    @property
    def look(self) -> dict[str, Any]:
        return {"label": self.name, "color": self.color, "ls": self.line, "marker": self.marker}


@contextmanager
def style() -> Iterator[None]:
    """Draw with our settings on top of Matplotlib's own, and restore the user's on leaving."""
    import matplotlib.style

    ours = {
        "font.size": 11, "axes.titlesize": 12, "axes.labelsize": 11, "legend.fontsize": 10,
        "xtick.labelsize": 10, "ytick.labelsize": 10, "legend.frameon": False,
        "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
        "axes.grid": True, "grid.color": "#e3e3e3", "grid.linewidth": 0.7, "lines.linewidth": 1.9,
        "svg.hashsalt": "kernelcore",  # equal figures give equal bytes
        "svg.fonttype": "none",  # text stays text: small, and a reader can select it
    }  # fmt: skip
    with matplotlib.style.context(["default", ours]):
        yield


def figure(height: float, width: float = WIDTH) -> Figure:
    """Return an empty figure of this size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def panels(
    height: float, titles: Sequence[str], xlabel: str, ylabel: str, *, sharey: bool = False
) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure and its panels, which stand side by side; only the first has a ``ylabel``."""
    fig = figure(height)
    row = np.atleast_1d(fig.subplots(1, len(titles), sharey=sharey)).tolist()
    for axes, title in zip(row, titles, strict=True):
        axes.set_title(title, loc="left")
        axes.set_xlabel(xlabel)
    row[0].set_ylabel(ylabel)
    return fig, row


def ticks(axis: Axis, values: Sequence[float]) -> None:
    """Put ticks at these values and nowhere else, written as plain numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator(values))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def plain_powers(fig: Figure) -> None:
    """Write powers of ten on logarithmic axes in Unicode, without ticks between them.

    Both halve the time of drawing, as Matplotlib parses each of its own labels as a formula.
    """
    from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, NullLocator

    def power(value: float, _: int | None) -> str:
        return "10" + f"{math.log10(value):.0f}".translate(SUPERSCRIPTS)

    for axis in (axis for axes in fig.axes for axis in (axes.xaxis, axes.yaxis)):
        if isinstance(axis.get_major_formatter(), LogFormatterSciNotation):
            axis.set_major_formatter(FuncFormatter(power))
            axis.set_minor_locator(NullLocator())


def legend_below(fig: Figure, columns: int, **spacing: float) -> None:
    """Put the legend of the first panel below all of them."""
    handles, labels = fig.axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=columns, **spacing)


def aside(sizes: Sequence[int] | Array, k: int, count: int, step: float = 1.02) -> Array:
    """Move the sizes of the k-th of ``count`` curves sideways, so that bars can be told apart."""
    return np.array(sizes) * step ** (k - (count - 1) / 2)


def theory(axes: Axes, x: Any, y: Any, color: str, label: str = "", **more: Any) -> None:
    """Draw what is predicted: a line."""
    axes.plot(x, y, **{"color": color, "label": label or "_", **more})


def measured(
    axes: Axes, x: Any, mean: Any, error: Any, color: str, marker: str, label: str = "", **more: Any
) -> None:
    """Draw what was measured: points, and bars of ``error`` up and down, which end above zero."""
    mean, error = np.asarray(mean), np.asarray(error)
    down = np.minimum(error, 0.999 * np.abs(mean)) if axes.get_yscale() == "log" else error
    look = {"ls": "", "ms": 5, "capsize": 2.5, "elinewidth": 1.2, "label": label or "_"}
    axes.errorbar(x, mean, (down, error), color=color, marker=marker, **{**look, **more})


def error_bars(
    axes: Axes, curves: Sequence[Curve], sizes: Sequence[int] | Array, errors: Array,
    marks: Sequence[float], step: float = 1.02,
) -> None:  # fmt: skip
    """Draw mean and standard deviation over the last axis of ``errors`` (curve, size, draw).

    Both axes are logarithmic; ``marks`` are the ticks of the vertical one.
    """
    axes.set(xscale="log", yscale="log")
    for k, curve in enumerate(curves):
        mean, spread = errors[k].mean(axis=-1), errors[k].std(axis=-1, ddof=1)
        down = np.minimum(spread, 0.999 * mean)  # a logarithmic axis has no zero
        spots = aside(sizes, k, len(curves), step)
        axes.errorbar(spots, mean, (down, spread), **curve.look, **BARS)
    ticks(axes.xaxis, list(sizes))
    ticks(axes.yaxis, marks)
