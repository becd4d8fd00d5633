"""The page: verdicts on top, a section for each experiment, machine and versions at the end.

It holds everything it shows: figures are SVG in the page, their data addresses of their own, the
stylesheet is inline, and there is no script.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import NamedTuple

from .._info import info
from .._version import __version__
from ..diagnosis import Diagnosis
from ..experiments import NAMES, Claim, Failure, Picture, Result, Table, load
from ..experiments._draw import style
from ..experiments._run import MACHINE, Saved
from . import _data, _svg
from ._style import STYLESHEET

TITLE = "Kernels of infinitely wide networks"
LEAD = """What papers claim of kernels and networks, computed with kernelcore: each row is a claim,
what theory predicts and what this run measured. Lines in figures are theory, points with bars are
measurements. All numbers, and all sentences about them, come from the results shown."""
AGAIN = """<p>Each experiment runs again with <code>kernelcore run NAME</code>, at the sizes of its
paper with <code>--preset paper</code>.</p>"""
DIAGNOSIS = "What a kernel can make of these data"
LOOKED = """Lines are predicted, points with bars are measured on inputs that were held out. Errors
are mean squares over outputs; bars are one standard error, the band is how far a prediction may be
off."""
FAILED, HELD, CRASHED, LEFT = "fails", "holds", "crashed", "left out"
MARKS = {CRASHED: "✗", FAILED: "✗", HELD: "✓", LEFT: "–"}
"""Signs of verdicts, in the order of the table."""


class Section(NamedTuple):
    """One experiment: its result or failure, and what its module says of it."""

    name: str
    title: str
    saved: Saved
    claims: Sequence[Claim] = ()
    failure: Failure | None = None
    body: str = ""
    colors: frozenset[str] = frozenset()


def page(shown: Iterable[Saved]) -> str:
    """Return the whole page as one HTML text."""
    with style():
        sections = [_section(one, f"s{number}") for number, one in enumerate(shown)]
    links = "\n".join(f'<li><a href="#{s.name}">{escape(s.title)}</a></li>' for s in sections)
    top = f"""<p>{LEAD}</p>
</header>
<nav aria-label="Experiments">
<ul>
{links}
</ul>
</nav>
<main>
<section id="verdicts" aria-labelledby="verdicts-title">
<h2 id="verdicts-title">Verdicts</h2>
{_counts(sections)}
{_verdicts(sections)}
</section>"""
    colors = set().union(*(s.colors for s in sections))
    return _document(TITLE, top, "\n".join(map(_html, sections)), colors, AGAIN)


def diagnosis(found: Diagnosis) -> str:
    """Return the page of a diagnosis."""
    with style():
        drawn = [_figure("kernel", picture, chr(97 + k)) for k, picture in enumerate(found.plot())]
    figures = "".join(html for html, _ in drawn)
    body = _facts(found.facts()) + figures + "".join(map(_table, found.tables()))
    top = f"""<p>{LOOKED}</p>
</header>
<main>
<section id="verdicts" aria-label="Diagnosis">"""
    colors = set().union(*(colors for _, colors in drawn))
    return _document(DIAGNOSIS, top, f"{body}</section>", colors)


def _document(title: str, top: str, body: str, colors: set[str], last: str = "") -> str:
    """Return a page; ``top`` ends its header and begins what ``body`` goes on with."""
    light, dark = _svg.variables(colors | {"#000000"})
    body, rules = _svg.shared_styles(body)
    css = STYLESHEET.replace("/*light*/", light).replace("/*dark*/", dark) + rules
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
<a class="skip" href="#verdicts">Skip to the verdicts</a>
<header>
<h1>{title}</h1>
{top}
{body}
</main>
<footer>
<h2 id="machine">Machine and versions</h2>
{_facts({"kernelcore": __version__, "page written": _now(), **_machine()})}
{last}
</footer>
</body>
</html>
"""


def _now() -> str:
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %z")


def _machine() -> dict[str, str]:
    return {key: str(value) for key, value in info().items() if key in MACHINE}


# ---- sections


def _section(one: Saved, own: str) -> Section:
    """Ask the module of a result for all that it shows; what fails there is shown as a failure.

    ``own`` begins the ids within its figures, which are many, and therefore is short.
    """
    outcome = one.outcome
    name = outcome.name
    title = name.replace("_", " ").capitalize()
    if isinstance(outcome, Failure):
        return Section(name, title, one, failure=outcome)
    try:
        module = load(name)
        claims = module.claims(outcome)
        figures, colors = "", set()
        for number, picture in enumerate(module.plot(outcome)):
            drawn, found = _figure(name, picture, f"{own}{chr(97 + number)}")
            figures += drawn
            colors |= found
        tables = getattr(module, "tables", None)
        drawn_tables = "".join(map(_table, tables(outcome) if tables else ()))
        words = _paragraphs(module.paragraph(outcome))
    except Exception as error:  # of any kind: the other sections are still drawn
        told = f"its result cannot be drawn: {type(error).__name__}: {error}"
        return Section(name, title, one, failure=Failure(name, told))
    presets = (name for name, s in module.PRESETS.items() if s.as_dict() == outcome.settings)
    how = _settings(one, outcome, next(presets, "none, settings of its own"))
    body = words + figures + _claims(claims) + drawn_tables + how
    return Section(
        name, getattr(module, "TITLE", title), one, claims, None, body, frozenset(colors)
    )


def _html(section: Section) -> str:
    told = escape(NAMES.get(section.name, ""))
    body = section.body
    if section.failure is not None:
        kind = "left" if section.failure.absent else "failed"
        body = f'<p class="{kind}"><b>No result:</b> {escape(section.failure.message)}</p>\n'
    return (
        f'<section id="{section.name}" aria-labelledby="{section.name}-title">\n'
        f'<h2 id="{section.name}-title">{escape(section.title)} '
        f'<a class="here" href="#{section.name}" aria-label="Link to {escape(section.title)}">#</a>'
        f'</h2>\n<p class="claim">{told}</p>\n{body}'
        '<p class="up"><a href="#verdicts">Back to the verdicts</a></p>\n</section>'
    )


def _paragraphs(text: str) -> str:
    parts = (" ".join(part.split()) for part in text.split("\n\n"))
    return "".join(f"<p>{_text(part)}</p>\n" for part in parts if part)


def _text(text: str) -> str:
    """Return prose as HTML, in which a number stays beside its per cent."""
    return re.sub(r"(?<=\d) %", "\u00a0%", escape(text))


def _figure(section: str, picture: Picture, own: str) -> tuple[str, set[str]]:
    name = f"{section}-{picture.name}"
    address, ending = _data.address(picture.figure)
    drawn, colors = _svg.svg(picture.figure, own, escape(picture.alt, quote=True))
    # A narrow screen scrolls within the figure, where its text would be too small otherwise.
    html = (
        f'<figure id="{name}">\n<div class="wide" tabindex="0" role="group" '
        f'aria-label="Figure, scrolls sideways on narrow screens">{drawn}</div>\n'
        f"<figcaption>{_text(picture.caption)} "
        f'<a download="{name}.{ending}" href="{address}">Data ({ending})</a></figcaption>\n'
        "</figure>\n"
    )
    return html, colors


def _table(table: Table) -> str:
    head = "".join(
        f'<th scope="col"{_column(k, table.labels)}>{escape(cell)}</th>'
        for k, cell in enumerate(table.head)
    )
    body = "\n".join(f"<tr>{_cells(row, table.labels)}</tr>" for row in table.rows)
    return (
        f'<figure>\n<div class="wide" tabindex="0" role="group" aria-label="Table, scrolls '
        f'sideways on narrow screens"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n'
        f"</tbody>\n</table></div>\n<figcaption>{_text(table.caption)}</figcaption>\n</figure>\n"
    )


def _column(column: int, labels: int) -> str:
    return ' class="name"' if column < labels else ""


def _cells(row: Sequence[str], labels: int) -> str:
    cells = []
    for k, cell in enumerate(row):
        tag, scope = ("th", ' scope="row"') if k == 0 and labels else ("td", "")
        cells.append(f"<{tag}{scope}{_column(k, labels)}>{escape(cell)}</{tag}>")
    return "".join(cells)


def _settings(one: Saved, result: Result, preset: str) -> str:
    values = {"preset": preset} | {key: _plain(value) for key, value in result.settings.items()}
    seconds = {} if one.seconds is None else {"seconds of the run": f"{one.seconds:.1f}"}
    made = {"computed by": f"kernelcore {result.version}", **seconds, **one.machine}
    return (
        "<details>\n<summary>Settings, seed and machine</summary>\n"
        f"{_facts(values)}\n{_facts(made)}\n</details>\n"
    )


def _plain(value: object) -> str:
    return ", ".join(map(_plain, value)) if isinstance(value, tuple) else str(value)


def _facts(facts: Mapping[str, str]) -> str:
    pairs = "\n".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    return f"<dl>\n{pairs}\n</dl>"


# ---- verdicts


def _counts(sections: Sequence[Section]) -> str:
    claims = [claim for section in sections for claim in section.claims]
    failed = sum(not claim.holds for claim in claims)
    gone = [s.failure for s in sections if s.failure is not None]
    crashed, left = sum(not f.absent for f in gone), sum(f.absent for f in gone)
    kind = "bad" if failed or crashed else "good"
    told = [f"{len(claims) - failed} of {len(claims)} claims hold", f"{len(sections)} experiments"]
    told += [f"{failed} fail"] * bool(failed) + [f"{crashed} crashed"] * bool(crashed)
    told += [f"{left} left out"] * bool(left)
    return f'<p class="counts {kind}">{" · ".join(told)}</p>'


def _verdicts(sections: Sequence[Section]) -> str:
    found: dict[str, list[str]] = {kind: [] for kind in MARKS}
    for section in sections:
        if section.failure is not None:
            kind = LEFT if section.failure.absent else CRASHED
            found[kind].append(_gone(section, kind))
        for claim in section.claims:
            found[HELD if claim.holds else FAILED].append(_verdict(section, claim))
    head = "".join(
        f'<th scope="col" role="columnheader">{cell}</th>'
        for cell in ("Verdict", "Claim", "Measured", "Predicted", "Ratio", "Allowed")
    )
    rows = "\n".join(row for rows in found.values() for row in rows)
    # A hundred rows scroll by themselves, so that the first figure is near.
    return (
        '<div class="tall" tabindex="0" role="group" aria-label="Verdicts, scroll up and down">\n'
        '<table class="verdicts" role="table" aria-labelledby="verdicts-title">\n'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{rows}\n</tbody>\n</table>\n</div>'
    )


def _row(kind: str, section: Section, text: str, cells: Mapping[str, str], more: str = "") -> str:
    shown = "".join(
        f'<td role="cell" data-of="{name}">{escape(cell)}</td>' for name, cell in cells.items()
    )
    return (
        f'<tr role="row" class="{kind.replace(" ", "-")}"><td role="cell" class="mark">'
        f'<span aria-hidden="true">{MARKS[kind]}</span> {kind}{escape(more)}</td>'
        f'<th role="rowheader" scope="row"><a href="#{section.name}">{escape(section.title)}</a>: '
        f"{text}</th>{shown}</tr>"
    )


def _verdict(section: Section, claim: Claim) -> str:
    kind = HELD if claim.holds else FAILED
    away = "" if claim.holds or not math.isfinite(claim.verdict) else f" by {claim.verdict:.2g} σ"
    return _row(kind, section, _text(claim.text) + _paper(claim), numbers(claim), away)


def _paper(claim: Claim) -> str:
    return f' <span class="paper">({escape(claim.paper)})</span>' if claim.paper else ""


def _gone(section: Section, kind: str) -> str:
    failure = section.failure
    text = escape(failure.message if failure is not None else "")
    return _row(
        kind, section, text, dict.fromkeys(("Measured", "Predicted", "Ratio", "Allowed"), "")
    )


def _claims(claims: Sequence[Claim]) -> str:
    items = []
    for claim in claims:
        kind = HELD if claim.holds else FAILED
        told = numbers(claim)
        said = f"measured {told['Measured']}"
        said += f", predicted {told['Predicted']}" if told["Predicted"] else ""
        said += f", allowed {told['Allowed']}" if told["Allowed"] else ""
        items.append(
            f'<li class="{kind}"><b><span aria-hidden="true">{MARKS[kind]}</span> {kind}</b>: '
            f"{_text(claim.text)}{_paper(claim)}. {_text(said.capitalize())}.</li>\n"
        )
    return f'<ul class="claims">\n{"".join(items)}</ul>\n' if items else ""


def numbers(claim: Claim) -> dict[str, str]:
    """Return the cells of a claim: what was measured, predicted and allowed, and their ratio."""
    digits = _digits(claim)
    if claim.predicted is None and claim.low == claim.high == 0:
        return {"Measured": f"{claim.measured:g}", "Predicted": "0", "Ratio": "", "Allowed": ""}
    ratio = ""
    if claim.predicted and math.isfinite(claim.measured / claim.predicted):
        ratio = f"{claim.measured / claim.predicted:.3f}".replace("-", "−")
    error = f" ± {_write(claim.error, digits)}" if claim.error > 0 else ""
    return {
        "Measured": _write(claim.measured, digits) + error,
        "Predicted": "" if claim.predicted is None else _write(claim.predicted, digits),
        "Ratio": ratio,
        "Allowed": _allowed(claim, digits),
    }


def _allowed(claim: Claim, digits: int) -> str:
    low, high = (_write(value, digits) for value in (claim.low, claim.high))
    if not math.isfinite(claim.low) or (claim.low == 0 and not claim.predicted):
        return f"at most {high}" if math.isfinite(claim.high) else ""
    return f"{low} to {high}" if math.isfinite(claim.high) else f"at least {low}"


def _digits(claim: Claim) -> int:
    """Return how many decimals show two digits of the error, or else of what is allowed."""
    room = min(
        (abs(claim.measured - x) for x in (claim.low, claim.high) if math.isfinite(x)), default=0
    )
    size = claim.error or room or abs(claim.measured) / 100
    if not math.isfinite(size) or size <= 0:
        return 3
    return min(9, max(0, 1 - math.floor(math.log10(size))))


def _write(value: float, digits: int) -> str:
    if math.isfinite(value) and (digits > 6 or abs(value) >= 1e6):
        return f"{value:.3g}".replace("-", "−")
    return f"{value + 0.0:,.{digits}f}".replace("-", "−")
