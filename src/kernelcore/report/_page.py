"""What a report is made of, and the one HTML page it becomes.

A section is a title, one sentence that says what was found, and parts in reading order. The page
holds everything it shows: figures are embedded as base64 SVG, the stylesheet is inline, and a
browser that opens it asks no network for anything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from ._draw import svg


class Picture(NamedTuple):
    """A figure, a caption (HTML) that says what to see, and a plain text for who cannot see it."""

    figure: Figure
    caption: str
    alt: str


class Table(NamedTuple):
    """Rows of plain cells; the first ``labels`` columns are names, the rest numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    labels: int = 1


class Listing(NamedTuple):
    """Source text, shown as it is."""

    source: str
    caption: str


Part = str | Picture | Table | Listing
"""A str is HTML."""


class Section(NamedTuple):
    """One chapter: ``summary`` (HTML, one sentence) also stands in the list of contents."""

    title: str
    summary: str
    parts: Sequence[Part]


class Drawing:
    """Draws sections one by one, and numbers figures and tables throughout."""

    def __init__(self) -> None:
        self._contents: list[str] = []
        self._sections: list[str] = []
        self._last: Counter[str] = Counter()

    def add(self, section: Section) -> None:
        title = escape(section.title)
        anchor = re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-")
        parts = "\n".join(map(self._part, section.parts))
        self._contents.append(f'<li><a href="#{anchor}">{title}</a><br>{section.summary}</li>')
        self._sections.append(
            f'<section id="{anchor}">\n<h2>{len(self._contents)}. {title}</h2>\n'
            f'<p class="summary">{section.summary}</p>\n{parts}\n</section>'
        )

    def _part(self, part: Part) -> str:
        if isinstance(part, str):
            return part
        kind = {Picture: "Figure", Table: "Table"}.get(type(part), "")
        if isinstance(part, Picture):
            shown = f'<img src="{svg(part.figure)}" alt="{escape(part.alt)}">'
        elif isinstance(part, Listing):
            shown = f"<pre><code>{escape(part.source)}</code></pre>"
        else:
            head = _cells(part.head, "th", part.labels)
            rows = "\n".join(f"<tr>{_cells(row, 'td', part.labels)}</tr>" for row in part.rows)
            shown = (
                f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
                f"<tbody>\n{rows}\n</tbody>\n</table></div>"
            )
        self._last[kind] += 1
        number = f"<b>{kind} {self._last[kind]}.</b> " if kind else ""
        return f"<figure>\n{shown}\n<figcaption>{number}{part.caption}</figcaption>\n</figure>"

    def page(self, title: str, lead: str, facts: Mapping[str, str]) -> str:
        """Return the whole page as one HTML text; ``facts`` are the plain pairs of its header."""
        pairs = "\n".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
        contents, sections = "\n".join(self._contents), "\n".join(self._sections)
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
{sections}
</main>
</body>
</html>
"""


def _cells(cells: Sequence[str], tag: str, labels: int) -> str:
    kinds = [' class="name"'] * labels + [""] * (len(cells) - labels)
    return "".join(
        f"<{tag}{kind}>{escape(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True)
    )


# ---- numbers as text


def signed(value: float, digits: int) -> str:
    """Write a number with a true minus sign, and zero without one."""
    return f"{round(float(value), digits) + 0.0:.{digits}f}".replace("-", "−")


def plus_minus(mean: float, spread: float, digits: int) -> str:
    return f"{mean:.{digits}f} ± {spread:.{digits}f}"


def listed(values: Sequence[int]) -> str:
    return f"{', '.join(map(str, values[:-1]))} and {values[-1]}"


def power_of_ten(value: float) -> str:
    """Write a number that is a power of ten as such, in HTML."""
    return f"10<sup>{np.log10(value):.0f}</sup>".replace("-", "−")


def scientific(value: float) -> str:
    """Write ``1.7e-04`` with a power of ten, in HTML."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa} · 10<sup>{int(exponent)}</sup>".replace("-", "−")


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
