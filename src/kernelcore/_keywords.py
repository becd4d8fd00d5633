"""Keywords and attributes under other names: synonyms, and old names on their way out."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def synonyms(**names: str) -> Callable[[F], F]:
    """Decorate a function to take keywords by second names too: ``@synonyms(rng="seed")``."""
    return functools.partial(_renaming, names, None, ())


def formerly(
    convert: Callable[[str, Any], Any] = lambda name, value: value,
    places: tuple[str, ...] = (),
    /,
    **names: str,
) -> Callable[[F], F]:
    """Decorate a function to take keywords by their old names, with a ``DeprecationWarning``.

    ``convert(old name, value)`` turns the value of an old keyword into that of the new one.
    ``places`` are the old names of keywords that could once be given by position, after the others.
    """
    return functools.partial(_renaming, names, convert, places)


def _renaming(
    names: dict[str, str],
    convert: Callable[[str, Any], Any] | None,
    places: tuple[str, ...],
    function: F,
) -> F:
    count = function.__code__.co_argcount if places else 0

    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        if places and count < len(args) <= count + len(places):
            kwargs |= dict(zip(places, args[count:], strict=False))
            args = args[:count]
        for old, new in names.items():
            if old not in kwargs:
                continue
            if new in kwargs:
                # A constructor is called by the name of its class.
                name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
                raise TypeError(
                    f"{name} must not be given both {new} and {old}: they are one argument"
                )
            value = kwargs.pop(old)
            if convert is not None:
                deprecated(old, new)
                value = convert(old, value)
            kwargs[new] = value
        return function(*args, **kwargs)

    return renamed  # type: ignore[return-value]  # renamed calls function


def deprecated(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that a keyword or an attribute has another name now."""
    warnings.warn(f"{old} is deprecated; use {new}", DeprecationWarning, stacklevel=stacklevel)


def former_attribute(old: str, new: str) -> property:
    """A property that reads an attribute by its old name, with a ``DeprecationWarning``."""

    def read(self: object) -> Any:
        deprecated(old, new)
        return getattr(self, new)

    return property(read, doc=f"The old name of ``{new}``.")
