"""Experiments of the papers: one module per figure or table, which computes and says what it found.

::

    kernelcore run NAME ──▶ run(NAME) ──▶ load(NAME).run(settings, cells=...) ──▶ Result, a file
    kernelcore report   ──▶ report.write: plot, claims, tables and paragraph of results, as a page

A module has ``Settings`` with ``PRESETS`` (``small`` takes seconds, ``paper`` has the sizes of the
paper), ``SECONDS`` that they took on two cores, ``run``, ``plot``, ``claims``, ``paragraph`` and
perhaps ``tables``; ``_base.py`` has what they share. Nothing here knows of HTML.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from .. import _check
from ._base import Cells, Claim, Experiment, Picture, Result, Settings, Table

NAMES = {
    "staircase": "kernels and random features learn isotropic targets degree by degree",
    "spiked": "kernels see an effective dimension of spiked covariates, networks the signal",
    "single_neuron": "networks find one direction; kernels do not; and where neither wins",
    "locality": "what locality and pooling are worth on cyclic signals",
    "stability": "CKNs are Lipschitz and stable to deformations, NTKs like square roots",
    "heaviside": "a jump is learned by powers of t, or by powers of log t",
    "approximation": "what random features and balls of an RKHS approximate",
    "uci": "UCI classification with NTKs, by the protocol of Arora et al. (2020)",
}
"""Experiments by name, in the order of the page, with what each claims; modules load when named."""

__all__ = ["NAMES", "Cells", "Claim", "Picture", "Result", "Settings", "Table", "load"]


def load(name: str) -> Experiment:
    """Return the module of an experiment."""
    _check.choice(name, "name", tuple(NAMES))
    return cast(Experiment, import_module(f"{__name__}.{name}"))


def __getattr__(name: str) -> Any:
    if name in NAMES:
        return load(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *NAMES})
