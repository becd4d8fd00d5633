"""Calls and their errors: files ``errors.py`` of the rooms, and those here, list them in CASES."""

import re
import sys
import tempfile
from collections.abc import Callable
from typing import NamedTuple

import pytest


class Case(NamedTuple):
    """A call, the kind of its error, and the whole message."""

    kind: type[Exception]
    message: str
    call: Callable[[], object]


def stable(value):
    """Return the name of a test: the same in all processes, which share the tests among them."""
    text = value.message if isinstance(value, Case) else repr(value)
    folder = re.escape(tempfile.gettempdir())
    return re.sub(rf" at 0x\w+|{folder}/[\w-]+", "", text)


def where(call, **variables):
    """The call, in an environment that has these variables."""

    def refused():
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            call()

    return refused


def without(module, call):
    """The call, where ``module`` is not installed."""

    def refused():
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            call()

    return refused
