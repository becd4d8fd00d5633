"""What rows and images on a device have in common: how they are read, and where results go."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager
from typing import Any

from ... import _check
from ..._types import Self
from ...program import Program
from ..cpu.dispatch import load
from ..progress import Watched
from . import memory, sharing


def arrays() -> _check.Arrays:
    """Return how arrays of CuPy are read. Kernels know no strides, so that some are copied."""
    return _check.Arrays(_check.device_array, load("cupy").ascontiguousarray)


class DeviceInputs(Watched):
    """Checked inputs in CuPy arrays of one device; ``y`` is None where Y is X."""

    x: Any
    y: Any
    n_threads: int
    shared_from: int
    """The entries of a matrix that several devices share, at least."""

    def output(self, out: Any = None, terms: int | None = None, beside: int = 0) -> Any:
        """Return the array of a result: the user's, once it is checked, or a new one."""
        shape = (len(self.x), len(self.x if self.y is None else self.y))
        if out is not None:
            return _check.device_out(out, self.x, shape)
        with self.there():
            return memory.matrix(shape if terms is None else (terms, *shape), self.x.dtype)

    def there(self) -> AbstractContextManager[Any]:
        """Make the device that the inputs are on the current one."""
        context: AbstractContextManager[Any] = self.x.device
        return context

    def takes(self, program: Program) -> None:
        """Refuse inputs that another program has opened, where this one wants others."""
        decisive = program.decisive
        if program.input.domain == "positions" and decisive is not None:
            _check.image_pair(self.x, self.y, decisive.layer, arrays())

    def gram(self, program: Program, k_out: Any, t_out: Any, factor: float, combine: int) -> None:
        """Write ``factor`` times a program's kernels into one output or both."""
        n, m = len(self.x), len(self.x if self.y is None else self.y)
        if n == 0 or m == 0:
            return
        with self.there():
            others = sharing.others(self.x.device) if n * m >= self.shared_from else ()
            if others:
                sharing.gram(self, others, program, (k_out, t_out), factor, combine)
            else:
                self.fill(program, k_out, t_out, factor, combine)

    def fill(self, program: Program, k_out: Any, t_out: Any, factor: float, combine: int) -> None:
        """Do so on the current device, where inputs and outputs are; there is an entry at least."""
        raise NotImplementedError

    def part(self, rows: slice, columns: slice | None) -> Self:
        """Return some inputs against some others, or against themselves."""
        raise NotImplementedError

    def moved(self) -> Self:
        """Return the same inputs on the current device; nobody watches them."""
        there, up = copy.copy(self), load("cupy").asarray
        there.x, there.y, there.watch = up(self.x), None if self.y is None else up(self.y), None
        return there

    def target(self, to: Any, k: Any, t: Any, factor: float, combine: int) -> None:
        """Fill a ``destination``."""
        to["k"], to["t"] = (0 if a is None else a.data.ptr for a in (k, t))
        to["stride"] = (t if k is None else k).shape[1]
        to["factor"], to["combine"], to["symmetric"] = factor, combine, self.y is None
