"""Experiments of the papers, each a module with a function ``run`` and its own arguments.

kernelcore run NAME [options]  ──▶  experiments.NAME.main(arguments)
"""

NAMES = ("uci",)

__all__ = ["NAMES"]
