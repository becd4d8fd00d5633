"""``kernelcore report``: what the package does, in figures and tables, on this machine.

::

    write ──▶ section(quick) of each module in SECTIONS ──▶ _page.Drawing ──▶ one HTML file

A module of this folder is one section. Its function ``section(quick)`` returns a ``_page.Section``,
and its name in ``SECTIONS`` puts it on the page, in that order. Every statement about results is
computed from them: on another machine the text changes with the numbers. Without Matplotlib only
this file can be imported.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from os import PathLike
from pathlib import Path

import kernelcore as kc

from .. import _check

__all__ = ["SECTIONS", "write"]

SECTIONS = ("profiles", "spectra", "digits", "defaults", "learning", "images", "speed")
# The part of kernelcore.info() that says where numbers come from; it names no folder of the user.
MACHINE = ("platform", "cpu", "level", "openmp", "threads", "blas", "python", "numpy", "scipy")


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def write(
    path: str | PathLike[str],
    quick: bool = False,
    progress: Callable[[str], None] | None = _to_stderr,
) -> Path:
    """Compute every section and write the report as one self-contained HTML file.

    Parameters
    ----------
    path : str or path
        The file to write; an existing one is replaced when all sections are done.
    quick : bool
        Compute less, with wider error bars: smaller sizes and fewer repetitions, which take half a
        minute on two cores instead of one and a half.
    progress : callable taking one line of text, or None for silence
        Called after each section with its name and seconds; prints to stderr by default.

    Returns
    -------
    Path
        The absolute path of the page. It loads nothing from the network.
    """
    _check.installed("matplotlib", "kernelcore report")
    from . import _draw, _page

    path = _check.destination(path, "path")
    drawing = _page.Drawing()
    start = time.perf_counter()
    with _draw.style():
        for name in SECTIONS:
            began = time.perf_counter()
            drawing.add(import_module(f".{name}", __name__).section(quick))
            if progress is not None:
                progress(f"{name:<10} {time.perf_counter() - began:6.1f} s")
    facts = {
        "kernelcore": kc.__version__,
        "written": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %z"),
        "computed in": f"{time.perf_counter() - start:.0f} s" + ", quick version" * quick,
    }
    facts |= {key: str(value) for key, value in kc.info().items() if key in MACHINE}
    page = drawing.page("Kernels of infinitely wide networks", LEAD, facts)
    path.write_text(page, encoding="utf-8")
    return path


LEAD = """A network whose layers grow infinitely wide is described by two kernels: the <b>NNGP</b>,
the covariance of its outputs at random initialisation, and the <b>neural tangent kernel</b> (NTK),
which governs its training by gradient descent. This page draws both, learns with them, and times
them. All numbers, and all sentences that compare them, come from the run that wrote it."""
