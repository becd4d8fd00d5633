"""``kernelcore report``: results of experiments, or a diagnosis, as one page that loads nothing.

::

    write ──▶ claims, plot, tables, paragraph of each result's module ──▶ _page ──▶ one HTML file
                               └─▶ _svg: figures, light and dark; _data: what they show, as CSV

Nothing here computes: a test reads the imports and the calls of this folder to say so.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from .. import _check
from ..diagnosis import Diagnosis
from ..experiments import Failure, Result, saved
from ..experiments._run import OUT, Saved

__all__ = ["write"]


def write(
    results: str | PathLike[str] | Iterable[Result | Failure | Saved] | Diagnosis,
    path: str | PathLike[str] | None = None,
    *,
    only: Iterable[str] | None = None,
) -> Path:
    """Write results of experiments, or a diagnosis, as one self-contained HTML page.

    Parameters
    ----------
    results : path, iterable of Result and Failure, or Diagnosis
        A folder that ``kc.experiments.run_all`` has filled, or results themselves; or what
        ``kc.diagnose`` has found.
    path : path, optional
        The file to write; an existing one is replaced. Where it is left out, ``results`` is the
        file, and what it shows is in ``kernelcore-results``.
    only : iterable of str, optional
        Names of experiments of a folder that are shown; all by default.

    Returns
    -------
    Path
        The absolute path of the page. It asks no network for anything and has no scripts.

    Examples
    --------
    >>> import tempfile
    >>> import kernelcore as kc
    >>> result = kc.experiments.run("profiles")
    >>> kc.report.write([result], f"{tempfile.mkdtemp()}/page.html").name
    'page.html'
    """
    _check.installed("matplotlib", "kernelcore report")
    from . import _page

    if path is None:
        results, path = OUT, results  # the call of earlier versions
    file = _check.destination(path, "path")
    if isinstance(results, Diagnosis):
        file.write_text(_page.diagnosis(results), encoding="utf-8")
        return file
    if isinstance(results, (str, PathLike)):
        shown = saved(results, only)
        got = f"none in {results}; kernelcore run computes them"
        _check.must(bool(shown), "results", "be a folder with results", got)
    else:
        shown = [one if isinstance(one, Saved) else Saved(one) for one in results]
    file.write_text(_page.page(shown), encoding="utf-8")
    return file
