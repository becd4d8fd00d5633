"""What rows and images of NumPy have in common: where results go, and which programs fit."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ... import _check
from ..._types import Array
from ...program import Program
from ..progress import Watched


class HostInputs(Watched):
    """Checked inputs in NumPy arrays; ``y`` is None where Y is X."""

    x: Array
    y: Array | None
    n_threads: int

    def output(self, out: Any = None, terms: int | None = None, beside: int = 0) -> Array:
        """Return the array of a result: the user's, once it is checked, or a new one."""
        x, y = self.x, self.y
        shape = len(x), len(x if y is None else y)
        if terms is not None:
            return _check.fresh((terms, *shape), x.dtype, "terms", ("float32",))
        result = _check.out(out, shape, x.dtype, beside=beside)
        if out is not None:
            _check.apart(result, {"X": x, "Y": y})
        return result

    def there(self) -> AbstractContextManager[Any]:
        """Return a context that changes nothing: the host is always there."""
        return nullcontext()

    def takes(self, program: Program) -> None:
        """Refuse inputs that another program has opened, where this one wants others."""
        decisive = program.decisive
        if program.input.domain == "positions" and decisive is not None:
            _check.image_pair(self.x, self.y, decisive.layer)
