"""Threads, and CPU levels, of calls and of the environment."""

from unittest import mock

from messages import Case, where

import kernelcore as kc
from kernelcore.engine.cpu import dispatch

NTK = kc.presets.mlp(1).ntk
USABLE = [level for level in dispatch.built_levels() if level in dispatch.machine_levels()]


def level():
    """The level of this environment; the answer of the process stays cached."""
    return dispatch.level.__wrapped__()


def level_of_none():
    with mock.patch.object(dispatch, "built_levels", return_value=()):
        return level()


CASES = [
    Case(TypeError, "n must be an integer: got float", lambda: kc.set_threads(2.0)),
    Case(ValueError, "n must be at least 1: got 0", lambda: kc.set_threads(0)),
    *(
        Case(
            ValueError,
            f"KERNELCORE_NUM_THREADS must be a positive integer: got {text!r}",
            where(call, KERNELCORE_NUM_THREADS=text),
        )
        for text in ("two", "0", "-3", "1.5")
        for call in (kc.get_threads, lambda: NTK([[1.0]]))
    ),
    Case(
        ValueError,
        f"KERNELCORE_CPU_LEVEL must be one of {', '.join(USABLE)} on this machine: got 'v9'",
        where(level, KERNELCORE_CPU_LEVEL="v9"),
    ),
    Case(
        ImportError,
        "kernelcore has no compiled modules; install it with: pip install kernelcore",
        level_of_none,
    ),
]
