"""Immutable values: equal, hashed and printed by class and parameters."""

from __future__ import annotations


class Value:
    """Base of layers and kernels."""

    _parameters: tuple[str, ...] = ()
    _defaults: dict[str, object] = {}  # these are left out of the repr where they hold

    def _values(self) -> tuple:
        return tuple(getattr(self, name) for name in self._parameters)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    # What never changes is its own copy; scikit-learn copies the parameters of estimators.

    def __copy__(self):
        return self

    def __deepcopy__(self, memo: dict):
        return self

    def __repr__(self) -> str:
        parts = []
        for name, value in zip(self._parameters, self._values(), strict=True):
            if name not in self._defaults:
                parts.append(repr(value))
            elif value != self._defaults[name]:
                parts.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"
