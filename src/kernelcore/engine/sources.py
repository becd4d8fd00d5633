"""Where the C++ and CUDA sources of this installation lie."""

from __future__ import annotations

import os


def _folder(inside: str, outside: str) -> str:
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(here, inside)
    if os.path.isdir(installed):
        return installed
    return os.path.normpath(os.path.join(here, "..", "..", "ext", outside))  # editable install


def headers() -> str:
    """Return the folder to give a compiler by ``-I`` for ``#include "kernelcore/pair.h"``."""
    return _folder("include", "include")


def drivers() -> str:
    """Return the folder of the drivers for GPUs."""
    return _folder("_gpu", "gpu")
