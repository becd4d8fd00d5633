"""The command line: ``kernelcore info``, ``kernelcore report`` and ``kernelcore run``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

from . import _check
from ._version import __version__
from .experiments import NAMES

TRACEBACK = "KERNELCORE_TRACEBACK"
EPILOG = f"""kernelcore COMMAND --help says more. An error is one line and exit status 1; set the
environment variable {TRACEBACK} to see where it came from."""
REPORT = """Computes the figures and tables of the package on this machine, from profiles of kernels
to times, and writes them as one HTML page that loads nothing from the network. Needs matplotlib."""
EXPERIMENTS = "\n".join(f"  {name:<8s}{text}" for name, text in NAMES.items())
# These come from arguments, files and machines. Anything else is a fault of the package, and a
# report of it needs the traceback.
FAILURES = (ArithmeticError, ImportError, MemoryError, OSError, RuntimeError, ValueError)


def _info(args: argparse.Namespace) -> None:
    from ._info import info

    facts = info()
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")


def _report(args: argparse.Namespace) -> None:
    from . import report

    print(report.write(_check.destination(args.output, "--output"), quick=args.quick))


def _run(args: argparse.Namespace) -> None:
    importlib.import_module(f"kernelcore.experiments.{args.name}").main(args.options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kernelcore",
        description="Exact kernels of infinitely wide neural networks.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"kernelcore {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    text = "print what this installation is made of"
    command = commands.add_parser("info", help=text, description=text.capitalize() + ".")
    command.set_defaults(run=_info)
    text = "write a page of figures and tables"
    command = commands.add_parser("report", help=text, description=REPORT)
    command.add_argument(
        "--output", default="kernelcore-report.html", metavar="FILE",
        help="where to write it; an existing file is replaced (default: %(default)s)",
    )  # fmt: skip
    command.add_argument(
        "--quick", action="store_true",
        help="smaller sizes: about half a minute on two cores instead of one and a half",
    )  # fmt: skip
    command.set_defaults(run=_report)
    command = commands.add_parser(
        "run", help="run an experiment of the papers", usage="kernelcore run [-h] NAME [options]",
        description=f"experiments:\n{EXPERIMENTS}",
        epilog="kernelcore run NAME --help lists the options of an experiment.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    command.add_argument(
        "name", choices=tuple(NAMES), metavar="NAME", help="one of the experiments above"
    )
    rest = command.add_argument("options", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    rest.required = False  # else Python before 3.12 names it, too, where the name is missing
    command.set_defaults(run=_run)
    return parser


def _leave(status: int) -> int:
    """Return the status; drop what stdout did not take, or the interpreter would try once more."""
    try:
        _flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    return status


def _flush() -> None:
    if sys.stdout is not None:  # it is None where a shell has closed it
        sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if hasattr(sys.stdout, "reconfigure"):  # names of files may have no encoding
        sys.stdout.reconfigure(errors="backslashreplace")
    parser = _parser()
    try:
        try:
            if not argv:
                parser.print_help(sys.stderr)
                return 2
            args = parser.parse_args(argv)
            args.run(args)
        finally:
            _flush()
    except KeyboardInterrupt:
        print("kernelcore: interrupted", file=sys.stderr)
        return _leave(130)  # the convention of shells: 128 plus the number of the signal
    except BrokenPipeError:
        return _leave(141)
    except FAILURES as error:
        if os.environ.get(TRACEBACK):
            traceback.print_exception(error)
        text = " ".join(str(error).split()) or type(error).__name__
        print(f"kernelcore: {text}", file=sys.stderr)
        return _leave(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
