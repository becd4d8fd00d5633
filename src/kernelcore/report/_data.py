"""What a figure shows, as a table: curves, points, bars and pictures, read off the figure."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import math
from collections.abc import Iterator
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure

HEAD = ("panel", "curve", "x", "y", "low", "high")
LONG = 12_000
"""Characters from which on a table is packed."""

Row = tuple[str, str, float | str, float | str, float | str, float | str]


def rows(figure: Figure) -> Iterator[Row]:
    """Yield panel, curve, x, y and the ends of the bar of every point, in the order of drawing."""
    for number, axes in enumerate(figure.axes, start=1):
        title = axes.get_title(loc="left") or axes.get_title() or str(number)
        for curve, *values in _points(axes):
            yield (title, curve, *values)


def _points(axes: Axes) -> Iterator[tuple[Any, ...]]:
    inside = set()
    for container in axes.containers:
        label = _label(container)
        if isinstance(container, ErrorbarContainer):
            line: Any
            line, caps, bars = container.lines
            inside |= {line, *caps}
            ends = [segment[:, 1].tolist() for segment in bars[-1].get_segments()] if bars else []
            known = container.has_yerr and len(ends) == len(line.get_xdata())
            for k, (x, y) in enumerate(_pairs(line)):
                yield label, x, y, *(ends[k] if known else ("", ""))
        elif isinstance(container, BarContainer):
            for bar in container:
                yield label, bar.get_x() + bar.get_width() / 2, bar.get_height(), "", ""
    for line in axes.lines:
        if line not in inside and line.get_transform() == axes.transData:
            for x, y in _pairs(line):
                yield _label(line), x, y, "", ""
    for collection in axes.collections:
        if isinstance(collection, PathCollection):
            offsets: Any = collection.get_offsets()
            for x, y in offsets.tolist():
                yield _label(collection), x, y, "", ""
        elif isinstance(collection, QuadMesh):
            values = collection.get_array()
            if values is not None:
                yield from _pixels(
                    _label(collection), values.reshape(-1, values.shape[-1]).tolist()
                )
    for image in axes.images:
        values = image.get_array()
        if values is not None and values.ndim == 2:
            yield from _pixels(_label(image), values.tolist())


def _pixels(label: str, lines: list[list[float]]) -> Iterator[tuple[Any, ...]]:
    for i, line in enumerate(lines):
        yield label, i, " ".join(map(_text, line)), "", ""


def _label(artist: Any) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else label


def _pairs(line: Any) -> list[tuple[float, float]]:
    return list(
        zip(line.get_xdata(orig=False).tolist(), line.get_ydata(orig=False).tolist(), strict=True)
    )


def _text(value: Any) -> str:
    if not isinstance(value, (int, float)):
        return "" if value is None else str(value)
    return f"{value:.5g}" if math.isfinite(value) else ""


def address(figure: Figure) -> tuple[str, str]:
    """Return the table of a figure as a data address, and the ending of its name."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows([tuple(map(_text, row)) for row in rows(figure)])
    data, kind, ending = text.getvalue().encode(), "text/csv;charset=utf-8", "csv"
    if len(data) > LONG:
        data, kind, ending = gzip.compress(data, mtime=0), "application/gzip", "csv.gz"
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}", ending
