"""Experiments of the papers, each a module with a function ``run`` and its own arguments.

kernelcore run NAME [options]  ──▶  experiments.NAME.main(arguments)
"""

NAMES = {"uci": "UCI classification with NTKs, by the protocol of Arora et al. (2020)"}
"""Experiments by name, with what each is about; a module is imported when it is run."""

__all__ = ["NAMES"]
