"""Figures as SVG that stands in a page: small, in the colours of its light or dark mode.

Colours become variables of the stylesheet, ``var(--c0072b2)``, which has a second value for each in
dark mode: what is nearly white becomes nearly black, and the rest is lightened until it can be told
from a dark page. Pictures of pixels keep their colours.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable

from matplotlib.figure import Figure

from ..experiments._draw import plain_powers

LIGHT, DARK = "#ffffff", "#16181b"
"""The paper in both modes."""
LEGIBLE = 4.5
"""The contrast that WCAG asks of text; lines need 3."""
FEW = 48
"""A figure of more colours than this has a colour map, which is left as it is."""
COLOR = re.compile(r"#[0-9a-f]{6}\b")


def svg(figure: Figure, name: str, alt: str) -> tuple[str, set[str]]:
    """Return an element ``<svg>`` with ids that begin with ``name``, and the colours in it."""
    plain_powers(figure)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.S)
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups()  # type: ignore[union-attr]
    body = text[text.index(">") + 1 :]
    body = _short(_own_ids(body, name))
    found = set(COLOR.findall(body))
    kept = found if len(found) <= FEW else found & {"#000000", "#ffffff", "#e3e3e3"}
    body = COLOR.sub(lambda m: f"var(--c{m[0][1:]})" if m[0] in kept else m[0], body)
    # Nothing is drawn much larger than it was made, or its words would be larger than the page's.
    most = f"max-width:{1.4 * float(width):.0f}px"
    size = f"0 0 {float(width):.0f} {float(height):.0f}"
    head = f'<svg viewBox="{size}" style="{most}" role="img" aria-label="{alt}">'
    return head + body, kept


def _own_ids(text: str, name: str) -> str:
    """Leave out ids that nothing refers to, and put a name before the others."""
    used = set(re.findall(r'(?:url\(|href=")#([\w-]+)', text))
    short = {old: f"{name}-{k}" for k, old in enumerate(sorted(used))}

    def renamed(match: re.Match[str]) -> str:
        return f' id="{short[match[1]]}"' if match[1] in short else ""

    text = re.sub(r'\sid="([^"]*)"', renamed, text)
    text = re.sub(r"url\(#([\w-]+)\)", lambda m: f"url(#{short[m[1]]})", text)
    return re.sub(r'(?:xlink:)?href="#([\w-]+)"', lambda m: f'href="#{short[m[1]]}"', text)


def _number(text: str) -> str:
    """Write a coordinate to a tenth of a point."""
    short = f"{float(text):.1f}".removesuffix(".0").replace("-0.", "-.").removeprefix("0")
    return short if short not in ("", "-0") else "0"


NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


TOKEN = re.compile(r"[A-Za-z]+|-?\d+(?:\.\d+)?(?:e-?\d+)?")


def _path(match: re.Match[str]) -> str:
    """Write a path to tenths of a point, and lines by how far they go, which is shorter."""
    tokens = TOKEN.findall(match[1])
    found, letter, k = "", "", 0
    x = y = 0  # in tenths, where the path is
    start = (0, 0)  # where z goes
    while k < len(tokens):
        same = letter == tokens[k]
        letter, k = tokens[k], k + 1
        count = {"M": 2, "L": 2, "Q": 4, "C": 6, "z": 0}[letter]
        numbers = [round(10 * float(token)) for token in tokens[k : k + count]]
        k += count
        if letter == "L":
            found += _joined([numbers[0] - x, numbers[1] - y], "" if same else "l")
        else:
            found += _joined(numbers, letter)
        x, y = numbers[-2:] or start
        start = (x, y) if letter == "M" else start
    return f' d="{found}"'


def _joined(tenths: list[int], letter: str) -> str:
    """Write a command and its numbers; none for a line that goes on."""
    words = [_number(f"{n / 10:.1f}") for n in tenths]
    text = letter or ("" if words[0].startswith("-") else " ")
    for k, word in enumerate(words):
        text += word if k == 0 or word.startswith("-") else f" {word}"
    return text


def _short(text: str) -> str:
    """Say the same with fewer characters."""
    text = re.sub(r'\sd="([^"]*)"', _path, text)
    text = re.sub(r'(?<= [xy]=")-?[\d.]+', lambda m: _number(m[0]), text)
    text = re.sub(r' (?:width|height)="[\d.]+"', lambda m: NUMBER.sub(_place, m[0]), text)
    text = re.sub(r'transform="[^"]*"', lambda m: NUMBER.sub(_place, m[0]), text)
    text = re.sub(r' transform="(?:rotate\(-?0 [^)]*\)|translate\(0 0\))"', "", text)
    # The stylesheet has the family of fonts, and what Matplotlib says of every line.
    text = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size:\1", text)
    text = re.sub(r"font-family:[^;\"]*;? ?", "", text)
    text = re.sub(
        r"; ?stroke-linejoin: (?:round|miter)|; ?stroke-linecap: (?:butt|square)", "", text
    )
    text = re.sub(r'(?<=")stroke-linejoin: (?:round|miter);? ?', "", text)
    text = re.sub(r'style="([^"]*)"', lambda m: f'style="{_style(m[1])}"' if m[1] else "", text)
    text = re.sub(r' style=""', "", text)
    text = re.sub(r">\s+<", "><", text)
    text = re.sub(r'<use [^>]*? style="([^"]*)"/>(?:<use [^>]*? style="\1"/>)+', _together, text)
    for _ in range(3):
        text = re.sub(r"<g>\s*</g>|<defs></defs>", "", text)
        text = re.sub(r"<g>(<(?:path|use|text)\b[^<>]*?/>)</g>", r"\1", text)
        text = re.sub(r"<g>(<text\b[^<>]*>[^<]*</text>)</g>", r"\1", text)
    return text.strip()


def _together(match: re.Match[str]) -> str:
    """Say how markers of a curve look once for all of them."""
    return f'<g style="{match[1]}">' + match[0].replace(f' style="{match[1]}"', "") + "</g>"


def _place(match: re.Match[str]) -> str:
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".") or "0"


def _style(text: str) -> str:
    return re.sub(r"\s*([:;])\s*", r"\1", text).strip("; ")


def shared_styles(text: str) -> tuple[str, str]:
    """Return a page in which styles that occur often are classes, and their rules."""
    counts = Counter(re.findall(r' style="([^"]*)"', text))
    often = {style: f"s{k}" for k, (style, n) in enumerate(counts.most_common()) if n > 3}

    def named(match: re.Match[str]) -> str:
        return f' class="{often[match[1]]}"' if match[1] in often else match[0]

    rules = "".join(f".{name}{{{style}}}" for style, name in often.items())
    return re.sub(r' style="([^"]*)"', named, text), rules


# ---- colours


def _luminance(color: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours by WCAG 2, from 1 to 21."""
    low, high = sorted([_luminance(one), _luminance(other)])
    return (high + 0.05) / (low + 0.05)


def _mixed(color: str, other: str, share: float) -> str:
    pairs = ((int(color[k : k + 2], 16), int(other[k : k + 2], 16)) for k in (1, 3, 5))
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in pairs)


def in_the_dark(color: str) -> str:
    """Return the colour that stands for one on white, on a dark page."""
    if contrast(color, LIGHT) < 1.6:  # paper, grids and areas behind curves
        return _mixed(DARK, LIGHT, 0.5 * (1 - _luminance(color)) ** 0.8)
    shares = (k / 20 for k in range(21))
    return next(c for s in shares if contrast(c := _mixed(color, LIGHT, s), DARK) >= LEGIBLE)


def variables(colors: Iterable[str]) -> tuple[str, str]:
    """Return the declarations of these colours for a light and for a dark page."""
    ordered = sorted(colors)
    light = "".join(f"--c{c[1:]}:{c};" for c in ordered)
    return light, "".join(f"--c{c[1:]}:{in_the_dark(c)};" for c in ordered)
