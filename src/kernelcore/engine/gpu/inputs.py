"""What rows and images on a device have in common: how they are read, and where results go."""

from __future__ import annotations

from typing import Any

from ... import _check
from ...program import Program
from ..cpu.dispatch import load
from ..progress import Watched


def arrays() -> _check.Arrays:
    """Return how arrays of CuPy are read. Kernels know no strides, so that some are copied."""
    return _check.Arrays(_check.device_array, load("cupy").ascontiguousarray)


class DeviceInputs(Watched):
    """Checked inputs in CuPy arrays of one device; ``y`` is None where Y is X."""

    x: Any
    y: Any
    n_threads: int

    def output(self, out: Any = None, terms: int | None = None, beside: int = 0) -> Any:
        """Return the array of a result: the user's, once it is checked, or a new one."""
        cupy, shape = load("cupy"), (len(self.x), len(self.x if self.y is None else self.y))
        if terms is not None:
            return cupy.empty((terms, *shape), self.x.dtype)
        if out is None:
            return cupy.empty(shape, self.x.dtype)
        return _check.device_out(out, self.x, shape)

    def takes(self, program: Program) -> None:
        """Refuse inputs that another program has opened, where this one wants others."""
        decisive = program.decisive
        if program.input.domain == "positions" and decisive is not None:
            _check.image_pair(self.x, self.y, decisive.layer, arrays())

    def target(self, to: Any, k: Any, t: Any, factor: float, combine: int) -> None:
        """Fill a ``destination``."""
        to["k"], to["t"] = (0 if a is None else a.data.ptr for a in (k, t))
        to["stride"] = (t if k is None else k).shape[1]
        to["factor"], to["combine"], to["symmetric"] = factor, combine, self.y is None
