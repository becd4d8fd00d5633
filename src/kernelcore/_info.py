"""What this installation is made of."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from typing import Any

import numpy as np

from ._version import __version__
from .engine import threads as _threads
from .engine.cpu import dispatch as _dispatch

OPTIONAL = {"matplotlib": "plot", "sklearn": "sklearn"}
"""Extras by the module that they install."""


def get_include() -> str:
    """The folder of the C++ headers, for a compiler's ``-I``: ``#include "kernelcore/pair.h"``."""
    here = os.path.dirname(os.path.abspath(__file__))
    inside = os.path.join(here, "include")
    if os.path.isdir(os.path.join(inside, "kernelcore")):
        return inside
    return os.path.normpath(os.path.join(here, "..", "..", "ext", "include"))  # editable install


def _blas() -> str:
    import scipy.linalg.blas  # noqa: F401  SciPy's BLAS is loaded with it
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
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def info() -> dict[str, Any]:
    """Version, CPU level, threads, BLAS and optional parts, as ``kernelcore info`` prints them."""
    import scipy

    driver = _dispatch.driver("dense")
    optional = {}
    for name, extra in OPTIONAL.items():
        if importlib.util.find_spec(name):
            optional[name] = "present"
        else:
            optional[name] = f"absent; pip install 'kernelcore[{extra}]'"
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
        "openmp": "yes" if driver.OPENMP else "no; built for one thread",
        "threads": _threads.get_threads(),
        "blas": _blas(),
        **{f"optional: {name}": text for name, text in optional.items()},
        "headers": get_include(),
    }
