"""What this installation is made of."""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np

from . import _check
from ._version import __version__
from .engine import memory as _memory
from .engine import threads as _threads
from .engine.cpu import dispatch as _dispatch

OPTIONAL = ("matplotlib", "sklearn")
"""Modules that add features by themselves."""


def get_include() -> str:
    """Return the folder to give a compiler by ``-I`` for ``#include "kernelcore/host/api.h"``.

    Examples
    --------
    >>> import kernelcore as kc
    >>> import os
    >>> os.path.exists(os.path.join(kc.get_include(), "kernelcore", "host", "api.h"))
    True
    """
    from .engine import sources

    return sources.headers()


def _blas() -> str:
    import scipy.linalg.blas  # noqa: F401  loads SciPy's BLAS
    import threadpoolctl

    found = {
        f"{lib['internal_api']} {lib['version']} ({lib.get('architecture')}, "
        f"{lib['num_threads']} threads)"
        for lib in threadpoolctl.threadpool_info()
        if lib["user_api"] == "blas"
    }
    return "; ".join(sorted(found)) or "none that threadpoolctl knows"


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = (line for line in file if line.startswith("model name"))
            return next(names).split(":", 1)[1].strip()
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def info() -> dict[str, Any]:
    """Return what this installation is made of and may use, as ``kernelcore info`` prints it.

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.info()["version"] == kc.__version__
    True
    """
    import scipy

    from .engine.gpu import devices

    budget, source = _memory.limit()
    remedies = {name: _check.absent(name) for name in OPTIONAL}
    return {
        "version": __version__,
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "platform": platform.platform(),
        "cpu": _cpu(),
        "level": _dispatch.level(),
        "levels built": ", ".join(_dispatch.built_levels()),
        "levels of this machine": ", ".join(_dispatch.machine_levels()),
        "openmp": "yes" if _dispatch.openmp() else "no; built for one thread",
        "threads": _threads.get_threads(),
        "memory": f"{_check.in_bytes(budget)}, {source}",
        "blas": _blas(),
        **{f"optional: {k}": f"absent; {v}" if v else "present" for k, v in remedies.items()},
        **devices.facts(),
        "headers": get_include(),
    }
