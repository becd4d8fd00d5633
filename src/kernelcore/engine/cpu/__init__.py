"""The backend for NumPy arrays: compiled drivers, and the walks that prepare their calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _check
from ..._types import Array
from ...program import Program
from . import loops
from .dispatch import load
from .rows import Rows, profile
from .steps import dual, dual_error, hermite_shares, step

if TYPE_CHECKING:
    from .derivatives import Slopes
    from .images import Images

__all__ = [
    "Rows",
    "dual",
    "dual_error",
    "hermite_shares",
    "loops",
    "open",
    "owns",
    "profile",
    "slopes",
    "step",
    "tangents",
]


def owns(array: Any) -> bool:
    """Return whether NumPy can read the array: it can unless the array is on a device."""
    return not _check.on_a_device(array)


def open(program: Program, X: Any, Y: Any, n_threads: int) -> Rows | Images:
    """Check the inputs of a Gram matrix and return them; Y is None where it is X."""
    if program.input.domain != "positions":
        return Rows(X, Y, n_threads)
    decisive = program.decisive
    images = load(f"{__name__}.images")  # imported late: few programs need it
    return images.Images(X, Y, None if decisive is None else decisive.layer, n_threads)


def slopes(program: Program, x: Array, y: Array, tangent: bool) -> Slopes:
    """Return one of a program's kernels of rows in float64, and its derivative by x."""
    return load(f"{__name__}.derivatives").slopes(program, x, y, tangent)  # few calls need it


def tangents(
    program: Program, places: tuple[Any, ...], x: Array, y: Array, tangent: bool
) -> tuple[Array, list[Array]]:
    """Return one of a program's kernels of rows in float64, and its derivatives by numbers."""
    return load(f"{__name__}.hyperparameters").tangents(program, places, x, y, tangent)
