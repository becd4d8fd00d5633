"""The compiled module for a CPU level. Nothing is loaded before its first use."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
import threading
from types import ModuleType

# A module that one thread is importing while another forks stays locked in the child for ever. What
# a Gram matrix imports on its way is imported under this lock, and a fork waits for it. That is for
# modules that do not come back here themselves: two threads could wait for each other otherwise.
_importing = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_importing.acquire,
        after_in_parent=_importing.release,
        after_in_child=_importing.release,
    )


def load(name: str) -> ModuleType:
    """Return a module outside of this package, or a compiled one, imported on first use."""
    module = sys.modules.get(name)
    if module is None or getattr(module.__spec__, "_initializing", False):
        with _importing:
            module = importlib.import_module(name)
    return module


# The features of x86-64 levels beyond the one below, best first; Linux has an older name for LZCNT.
_FEATURES = {
    "v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "v3": {"avx2", "fma", "bmi1", "bmi2", "f16c", "lzcnt", "movbe"},
    "v1": set[str](),
}
LEVELS = tuple(_FEATURES)
_NAMES = {"abm": "lzcnt", "fma3": "fma"}


def levels_of(flags: set[str]) -> tuple[str, ...]:
    """Return the x86-64 levels of a machine with these features, best first."""
    have, found = {_NAMES.get(flag, flag) for flag in flags}, list[str]()
    for level in reversed(LEVELS):
        if not have >= _FEATURES[level]:
            break
        found.insert(0, level)
    return tuple(found)


@functools.cache
def machine_levels() -> tuple[str, ...]:
    """Return the x86-64 levels this machine runs, best first; elsewhere the baseline alone."""
    flags: set[str] = set()
    if sys.platform.startswith("linux"):
        try:
            with open("/proc/cpuinfo") as file:
                for line in file:
                    if line.startswith("flags"):
                        flags = set(line.split(":", 1)[1].split())
                        break
        except OSError:
            pass
    else:
        from numpy._core._multiarray_umath import __cpu_features__ as features

        flags = {name.lower() for name, have in features.items() if have}
        flags |= {"bmi1", "bmi2", "lzcnt", "movbe"} if "avx2" in flags else set()
    return levels_of(flags)


def built_levels(driver: str = "dense") -> tuple[str, ...]:
    """Return the levels this installation was built with, best first."""
    name = f"kernelcore._cpu.{driver}_"
    return tuple(level for level in LEVELS if importlib.util.find_spec(name + level))


@functools.cache
def level() -> str:
    """Return the level in use: the best both built and runnable, or ``KERNELCORE_CPU_LEVEL``.

    "baseline" is another name for v1.
    """
    built = built_levels()
    if not built:
        raise ImportError(
            "kernelcore has no compiled modules; install it with: pip install kernelcore"
        )
    usable = [name for name in built if name in machine_levels()]
    wanted = os.environ.get("KERNELCORE_CPU_LEVEL", "")
    wanted = "v1" if wanted == "baseline" else wanted
    if not wanted:
        return usable[0]
    if wanted not in usable:
        raise ValueError(
            f"KERNELCORE_CPU_LEVEL must be one of {', '.join(usable)} on this machine: "
            f"got {wanted!r}"
        )
    return wanted


@functools.cache
def driver(name: str) -> ModuleType:
    """Return the compiled driver ``name`` at the level in use, or the best below that it has."""
    below = LEVELS[LEVELS.index(level()) :]
    return load(f"kernelcore._cpu.{name}_{next(x for x in below if x in built_levels(name))}")


def half(name: str) -> ModuleType:
    """Return the driver with vectors half as long and the same bits, if there is one below."""
    return load(f"kernelcore._cpu.{name}_v3") if level() == "v4" else driver(name)


def openmp() -> bool:
    """Return whether the drivers were built with OpenMP."""
    return bool(driver("dense").OPENMP)
