"""Numbers as plain text, for captions, tables and paragraphs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ._draw import SUPERSCRIPTS


def raised(exponent: float, digits: int = 0) -> str:
    """Write an exponent: ⁻¹² where it is a whole number, ^(0.5) where superscripts cannot."""
    text = f"{exponent:.{digits}f}"
    return text.translate(SUPERSCRIPTS) if digits == 0 else f"^{text.replace('-', '−')}"


def signed(value: float, digits: int) -> str:
    """Write a number with a true minus sign, and zero without one."""
    return f"{round(float(value), digits) + 0.0:.{digits}f}".replace("-", "−")


def plus_minus(mean: float, spread: float, digits: int) -> str:
    return f"{signed(mean, digits)} ± {spread:.{digits}f}"


def listed(values: Sequence[object]) -> str:
    """Write ``a, b and c``."""
    *most, last = map(str, values)
    return f"{', '.join(most)} and {last}" if most else last


def power_of_ten(value: float) -> str:
    """Write a number that is a power of ten as such."""
    return "10" + raised(math.log10(value))


def scientific(value: float) -> str:
    """Write ``1.7e-04`` with a power of ten."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa.replace('-', '−')}·10{raised(int(exponent))}"


def spanned(values: Sequence[float], digits: int = 2) -> str:
    """Write one number when all agree to that many digits, otherwise the range."""
    low, high = (signed(f(values), digits) for f in (min, max))
    return low if low == high else f"{low} to {high}"
