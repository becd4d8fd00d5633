"""Immutable values: equal, hashed and printed by class and parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _check
from ._types import Self, dataclass_transform, field

if TYPE_CHECKING:
    import inspect

_set = object.__setattr__


class _Finished(type):
    """Makes objects that do not change once their constructor is through."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        value = super().__call__(*args, **kwargs)
        _set(value, "_finished", True)
        return value

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of the constructor, which readers of a class would not find behind ``__call__``."""
        import inspect

        takes = inspect.signature(cls.__init__)  # type: ignore[misc]
        return takes.replace(parameters=list(takes.parameters.values())[1:])


class Value(metaclass=_Finished):
    """Base of layers, networks, profiles and kernels.

    Attributes are neither set nor deleted after construction: caches are keyed by values, and
    parameters are checked by constructors alone. ``replace`` makes a changed copy.
    """

    _parameters: tuple[str, ...] = ()
    _defaults: dict[str, object] = {}  # these are left out of the repr where they hold
    _tunable: tuple[str, ...] = ()  # the numbers among the parameters that data may choose
    _finished = False

    def __setattr__(self, name: str, value: object) -> None:
        if self._finished:
            _check.unchanged(self, name, "set")
        _set(self, name, value)

    def __delattr__(self, name: str) -> None:
        _check.unchanged(self, name, "deleted")

    def parameters(self, deep: bool = False) -> dict[str, object]:
        """What the constructor takes, by name.

        Parameters
        ----------
        deep : bool
            Also the parameters of the parts, under names such as ``left__lengthscale`` or
            ``network__layers__0__w_std``.

        Examples
        --------
        >>> import kernelcore as kc
        >>> kc.Matern(1.5, 2.0).parameters()
        {'nu': 1.5, 'lengthscale': 2.0}
        >>> list((2 * kc.Gaussian(1.0)).parameters(deep=True))
        ['kernel', 'kernel__lengthscale', 'factor']
        """
        own = dict(zip(self._parameters, self._values(), strict=True))
        return _opened(own) if deep else own

    def replace(self, **changes: Any) -> Self:
        """A copy with some parameters changed, checked as the constructor checks them.

        Parameters
        ----------
        **changes
            New values, under the names of ``parameters(deep=True)``. What has the name of a whole
            part is put in first, then what is inside of it.

        Examples
        --------
        >>> import kernelcore as kc
        >>> kc.Matern(1.5, 2.0).replace(lengthscale=3.0)
        Matern(1.5, 3.0)
        >>> net = kc.Sequential(kc.Dense(), kc.Relu(), kc.Dense())
        >>> (net.ntk + 2 * net.nngp).replace(right__factor=3.0, left__network__layers__0__b_std=0.1)
        Sequential(Dense(1.0, b_std=0.1), Relu(), Dense(1.0)).ntk + (3.0 * Sequential(Dense(1.0), \
Relu(), Dense(1.0)).nngp)
        """
        return self._rebuilt(_changed(self.parameters(), changes, type(self).__name__))

    def _tuned(self) -> dict[str, float]:
        """What data may choose, of this value and of its parts: numbers that are positive."""
        return _positive(self.parameters(), self._tunable)

    def _rebuilt(self, parameters: dict[str, object]) -> Self:
        """Another of the kind, of other parameters."""
        return type(self)(**parameters)

    def __getstate__(self) -> dict[str, object]:
        # A program is made again when it is asked for.
        return {k: v for k, v in vars(self).items() if k not in ("program", "_program")}

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._parameters)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    # What never changes is its own copy; scikit-learn copies the parameters of estimators.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        parts = []
        for name, value in zip(self._parameters, self._values(), strict=True):
            if name not in self._defaults:
                parts.append(repr(value))
            elif value != self._defaults[name]:
                parts.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record(Value):
    """A value whose parameters are its annotations, with the defaults given there.

    Programs have twenty such classes. ``dataclasses`` takes half a millisecond to make one, which
    would be a tenth of the time that the package takes to import. Arguments are not checked.
    """

    def __init_subclass__(cls) -> None:
        own = (name for name, kind in cls.__annotations__.items() if kind[:8] != "ClassVar")
        cls._parameters = (*cls._parameters, *own)
        type.__setattr__(cls, "__match_args__", cls._parameters)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs |= zip(self._parameters, args, strict=False)
        for name, value in kwargs.items():
            _set(self, name, value)


# ---- parameters of parts


def _parts(value: object) -> dict[str, object]:
    """What can be changed inside of a parameter: of a value by name, of layers by number."""
    if isinstance(value, Value):
        return value.parameters()
    if isinstance(value, tuple) and all(isinstance(part, Value) for part in value):
        return {str(k): part for k, part in enumerate(value)}
    return {}


def _opened(own: dict[str, object]) -> dict[str, object]:
    """With the parameters of parts after their part."""
    opened = {}
    for name, value in own.items():
        opened[name] = value
        opened |= {f"{name}__{inner}": x for inner, x in _opened(_parts(value)).items()}
    return opened


def _positive(own: dict[str, object], tunable: tuple[str, ...]) -> dict[str, float]:
    """Tunable numbers among parameters, and those of parts under their names."""
    found = {}
    for name, value in own.items():
        if name in tunable and isinstance(value, float) and value > 0:
            found[name] = value
        own_names = value._tunable if isinstance(value, Value) else ()
        for inner, x in _positive(_parts(value), own_names).items():
            found[f"{name}__{inner}"] = x
    return found


def _changed(own: dict[str, object], changes: dict[str, object], of: str) -> dict[str, object]:
    """Parameters with ``changes``, whose names may reach into parts."""
    own = dict(own)
    inside: dict[str, dict[str, object]] = {}
    for name, value in changes.items():
        part, _, inner = name.partition("__")
        _check.named(part, own, of)
        if inner:
            inside.setdefault(part, {})[inner] = value
        else:
            own[part] = value
    for part, inner_changes in inside.items():
        value = own[part]
        if isinstance(value, Value):
            own[part] = value.replace(**inner_changes)
        else:
            own[part] = tuple(_changed(_parts(value), inner_changes, part).values())
    return own
