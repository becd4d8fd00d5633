"""What a report is made of, and the one HTML page it becomes.

A section is a title, one sentence that says what was found, and parts in reading order. The page
holds everything it shows: figures are embedded as base64 SVG, the stylesheet is inline, and a
browser that opens it asks no network for anything.
"""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from .. import _check

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart by every kind of colour vision; without yellow, too pale here.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
GREY = "#767676"
# Four steps of viridis for an ordered quantity (a depth), dark enough on white at both ends.
STEPS = ("#a0c52b", "#27a17f", "#31688e", "#440154")


@dataclass(frozen=True)
class Text:
    """Paragraphs, as HTML."""

    html: str


@dataclass(frozen=True)
class Picture:
    """A figure, a caption (HTML) that says what to see, and a plain text for who cannot see it."""

    figure: Figure
    caption: str
    alt: str


@dataclass(frozen=True)
class Table:
    """Rows of plain cells; the first ``labels`` columns are names, the rest numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    labels: int = 1


@dataclass(frozen=True)
class Listing:
    """Source text, shown as it is."""

    source: str
    caption: str


Part = Text | Picture | Table | Listing


@dataclass(frozen=True)
class Section:
    """One chapter: ``summary`` (HTML, one sentence) also stands in the list of contents."""

    title: str
    summary: str
    parts: Sequence[Part]


def require_matplotlib() -> None:
    """Raise the ImportError that names the extra, before any work is done."""
    _check.installed("matplotlib", "kernelcore report")


@contextmanager
def style() -> Iterator[None]:
    """Matplotlib's defaults and ours on top, whatever the user has set; restored on leaving."""
    require_matplotlib()
    import matplotlib.style

    ours = {
        "font.size": 11,
        "axes.titlesize": 12,
        "axes.labelsize": 11,
        "legend.fontsize": 10,
        "legend.frameon": False,
        "xtick.labelsize": 10,
        "ytick.labelsize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#e3e3e3",
        "grid.linewidth": 0.7,
        "axes.axisbelow": True,
        "lines.linewidth": 1.9,
        "svg.hashsalt": "kernelcore",  # equal figures give equal bytes
    }
    with matplotlib.style.context(["default", ours]):
        yield


def figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, drawn without pyplot and so without global state."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def ticks(axis: Axis, values: Sequence[float]) -> None:
    """Ticks at these values and nowhere else, written as plain numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator(values))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


@dataclass(frozen=True)
class Chapter:
    """A section that was drawn."""

    section: Section
    number: int
    html: str

    @property
    def anchor(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.section.title.lower()).strip("-")


class Drawing:
    """Draws sections one by one, figures and tables numbered over all of them."""

    def __init__(self) -> None:
        self.chapters: list[Chapter] = []
        self._last: dict[str, int] = {}

    def add(self, section: Section) -> None:
        html = "\n".join(_part(part, self._next) for part in section.parts)
        self.chapters.append(Chapter(section, len(self.chapters) + 1, html))

    def _next(self, kind: str) -> str:
        self._last[kind] = self._last.get(kind, 0) + 1
        return f"<b>{kind} {self._last[kind]}.</b>"


def render(title: str, lead: str, facts: Mapping[str, str], chapters: Sequence[Chapter]) -> str:
    """The whole page as one HTML text; ``facts`` are the plain pairs of its header."""
    pairs = "\n".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    contents = "\n".join(
        f'<li><a href="#{c.anchor}">{escape(c.section.title)}</a><br>{c.section.summary}</li>'
        for c in chapters
    )
    body = "\n".join(
        f'<section id="{c.anchor}">\n<h2>{c.number}. {escape(c.section.title)}</h2>\n'
        f'<p class="summary">{c.section.summary}</p>\n{c.html}\n</section>'
        for c in chapters
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{STYLESHEET}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p>{lead}</p>
<dl>
{pairs}
</dl>
</header>
<nav aria-label="Contents">
<h2>Contents and findings</h2>
<ol>
{contents}
</ol>
</nav>
<main>
{body}
</main>
</body>
</html>
"""


def _part(part: Part, number: Callable[[str], str]) -> str:
    if isinstance(part, Text):
        return part.html
    if isinstance(part, Picture):
        return (
            f'<figure>\n<img src="{_svg(part.figure)}" alt="{escape(part.alt)}">\n'
            f"<figcaption>{number('Figure')} {part.caption}</figcaption>\n</figure>"
        )
    if isinstance(part, Listing):
        return (
            f"<figure>\n<pre><code>{escape(part.source)}</code></pre>\n"
            f"<figcaption>{part.caption}</figcaption>\n</figure>"
        )
    head = _cells(part.head, "th", part.labels)
    rows = "\n".join(f"<tr>{_cells(row, 'td', part.labels)}</tr>" for row in part.rows)
    return (
        f'<figure>\n<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table></div>\n"
        f"<figcaption>{number('Table')} {part.caption}</figcaption>\n</figure>"
    )


def _cells(cells: Sequence[str], tag: str, labels: int) -> str:
    kinds = [' class="name"'] * labels + [""] * (len(cells) - labels)
    return "".join(
        f"<{tag}{kind}>{escape(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True)
    )


def _svg(fig: Figure) -> str:
    """The figure as a data address. Inside <img> its element ids cannot meet those of another."""
    _write_powers_plainly(fig)
    buffer = io.BytesIO()
    fig.savefig(buffer, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _write_powers_plainly(fig: Figure) -> None:
    """Powers of ten as Unicode has them, and no ticks between.

    Both halve the time of drawing: Matplotlib parses each of its own labels as a formula.
    """
    from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, NullLocator

    def power(value: float, _: int | None) -> str:
        return "10" + f"{math.log10(value):.0f}".translate(SUPERSCRIPTS)

    for axes in fig.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), LogFormatterSciNotation):
                axis.set_major_formatter(FuncFormatter(power))
                axis.set_minor_locator(NullLocator())


def plain(value: Any) -> str:
    """A value of ``kernelcore.info()`` as one line of text."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {plain(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(plain(item) for item in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


STYLESHEET = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 5rem; max-width: 58rem; background: #fff;
  color: #1d1f21; font: 1.0625rem/1.6 Georgia, "Times New Roman", "DejaVu Serif", serif; }
h1, h2, dl, th, td, figcaption, nav { font-family: system-ui, -apple-system, "Segoe UI", Roboto,
  "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.45rem; line-height: 1.25; margin: 3.2rem 0 .6rem; padding-top: .9rem;
  border-top: 2px solid #1d1f21; }
p { margin: .8rem 0; max-width: 46rem; } main ul { max-width: 46rem; padding-left: 1.3rem; }
.summary { font-size: 1.12rem; border-left: 4px solid #0072b2; padding-left: .9rem; }
.formula { text-align: center; }
a { color: #0b5394; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; font-size: .86rem;
  color: #444; margin: 1.2rem 0 0; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
nav { background: #f5f6f7; padding: .9rem 1.4rem 1rem; margin: 1.6rem 0 0; font-size: .95rem;
  line-height: 1.5; }
nav h2 { font-size: 1rem; margin: 0; padding: 0; border: 0; }
nav ol { margin: .5rem 0 0; padding-left: 1.3rem; } nav li { margin: .35rem 0; }
nav li a { font-weight: 600; }
figure { margin: 1.8rem 0; }
figure img { display: block; max-width: 100%; height: auto; }
figcaption { font-size: .88rem; line-height: 1.5; color: #444; margin-top: .6rem;
  max-width: 52rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .8rem; text-align: right; }
th { border-bottom: 1.5px solid #1d1f21; vertical-align: bottom; line-height: 1.3; }
td { border-bottom: 1px solid #e3e3e3; white-space: nowrap; }
sub, sup { line-height: 0; font-size: .75em; }
.name { text-align: left; padding-left: 0; }
pre { margin: 0; padding: .9rem 1.1rem; background: #f5f6f7; overflow-x: auto; font-size: .84rem;
  line-height: 1.45; }
code { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
p code, li code { font-size: .9em; white-space: nowrap; }
@media print {
  @page { margin: 18mm 16mm; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  nav { background: none; border: 1px solid #999; }
  figure, tr, .summary { break-inside: avoid; }
  h2, h2 + p { break-after: avoid; }
  a { color: inherit; text-decoration: none; }
  .wide, pre { overflow: visible; } pre { white-space: pre-wrap; }
}
"""
