"""Random Fourier features on a device, in place: as in ``cpu.loops``."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import drivers


def _launch(name: str, out: Any, columns: int, *args: Any) -> None:
    count = len(out) * columns
    if count:
        sizes = np.int64(len(out)), np.int64(columns)
        blocks = (-(-count // drivers.BLOCK),)
        *arrays, scale = args
        scale = out.dtype.type(scale)
        with out.device:
            drivers.launch(name, out.dtype, drivers.Needs(), blocks, out, *arrays, *sizes, scale)


def shifted_cosines(out: Any, phases: Any, scale: float) -> None:
    """Set ``out <- scale cos(out + phases)``."""
    _launch("waves_shifted_cosines", out, out.shape[1], phases, scale)


def cosines_and_sines(out: Any, scale: float) -> None:
    """Replace z, the left half of the columns, by ``scale cos z``, the right by ``scale sin z``."""
    _launch("waves_cosines_and_sines", out, out.shape[1] // 2, scale)
