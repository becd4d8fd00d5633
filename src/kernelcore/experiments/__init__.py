"""Experiments of the papers, each a module with a function ``run`` and its own arguments.

kernelcore run NAME [options]  ──▶  experiments.NAME.main(arguments)
"""

NAMES = {"uci": "UCI classification with NTKs, by the protocol of Arora et al. (2020)"}
"""What each is about, by name; the modules are imported when they are run."""

__all__ = ["NAMES"]
