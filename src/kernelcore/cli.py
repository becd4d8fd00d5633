"""The command line: ``kernelcore info``, ``kernelcore report`` and ``kernelcore run``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from ._version import __version__
from .experiments import NAMES


def _info(args: argparse.Namespace) -> int:
    from ._info import info

    facts = info()
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")
    return 0


def _report(args: argparse.Namespace) -> int:
    from . import report

    print(report.write(args.output, quick=args.quick))
    return 0


def _run(args: argparse.Namespace) -> int:
    importlib.import_module(f"kernelcore.experiments.{args.name}").main(args.options)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="kernelcore", description=__doc__)
    parser.add_argument("--version", action="version", version=f"kernelcore {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    command = commands.add_parser("info", help="print what this installation is made of")
    command.set_defaults(run=_info)
    command = commands.add_parser("report", help="write a page of figures and tables")
    command.add_argument("--output", default="kernelcore-report.html", help="where (%(default)s)")
    command.add_argument("--quick", action="store_true", help="smaller sizes, under 15 seconds")
    command.set_defaults(run=_report)
    command = commands.add_parser("run", help="run an experiment of the papers", add_help=False)
    command.add_argument("name", choices=NAMES)
    command.add_argument("options", nargs=argparse.REMAINDER, help="its own; --help lists them")
    command.set_defaults(run=_run)
    args = parser.parse_args(argv)
    try:
        return args.run(args)
    except (ImportError, OSError, ValueError) as error:
        print(f"kernelcore: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
