"""The command line: experiments and their report, and what large matrices need."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

from . import _check
from ._version import __version__
from .engine.progress import Progress, say
from .experiments import NAMES
from .experiments._run import OUT, TRACEBACK

EPILOG = f"""kernelcore COMMAND --help says more. An error is one line and exit status 1; set the
environment variable {TRACEBACK} to see where it came from."""
REPORT = """Runs the experiments that have no saved result yet, each at its small preset, and writes
all results as one HTML page that loads nothing from the network. Needs matplotlib. The exit status
is 1 if a claim fails or an experiment crashes."""
RUN = """Runs experiments and saves their results, cell by cell: a run that was killed goes on where
it was, and what is saved is not run again. The exit status is 1 if a claim fails."""
COMPARE = """Compares two folders of results, claim by claim: what was measured, and what changed
beyond noise, which is two standard errors of the difference. The exit status is 1 if something did.
"""
EXPERIMENTS = "\n".join(f"  {name:<14s}{text}" for name, text in NAMES.items())
# These come from arguments, files and machines. Anything else is a fault of the package, and a
# report of it needs the traceback.
FAILURES = (ArithmeticError, ImportError, MemoryError, OSError, RuntimeError, ValueError)


def _info(args: argparse.Namespace) -> None:
    from ._info import info

    facts = info()
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")


def _report(args: argparse.Namespace) -> int:
    from . import experiments, report

    _check.installed("matplotlib", "kernelcore report")
    output = _check.destination(args.output, "--output")
    names = args.only or list(NAMES)
    if args.source is None:
        experiments.run_all(names, out=args.out, jobs=args.jobs, tell=_Told(names))
    path = report.write(args.source or args.out, output, only=names)
    status = _close([one.outcome for one in experiments.saved(args.source or args.out, names)])
    print(path)
    return status


def _run(args: argparse.Namespace) -> int:
    from . import experiments

    if args.output is not None or args.sets or args.resume:
        _table(args)
        return 0
    names = list(NAMES) if args.names == ["all"] else args.names
    texts = dict(_pair(text) for text in args.settings)
    texts |= {} if args.data is None else {"data": args.data}
    found = experiments.run_all(
        names, args.preset, out=args.out, jobs=args.jobs, fresh=args.fresh, texts=texts,
        tell=_Told(names),
    )  # fmt: skip
    return _close(found)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    _check.must(bool(name and equals), "--set", "be NAME=VALUE", repr(text))
    return name, value


def _table(args: argparse.Namespace) -> None:
    """Run uci as earlier versions did: a table of the sets of a folder, in a file."""
    from .experiments import uci

    given = ["--data", args.data] if args.data else []
    given += ["--output", args.output] if args.output else []
    given += ["--resume"] * args.resume + (["--sets", *args.sets] if args.sets else [])
    uci.main(given)


def _list(args: argparse.Namespace) -> None:
    from . import experiments

    print(f"{'name':<14s} {'small':>7s} {'paper':>7s}  claim")
    for name, text in NAMES.items():
        seconds = experiments.load(name).SECONDS
        times = " ".join(f"{_duration(seconds.get(preset)):>7s}" for preset in ("small", "paper"))
        print(f"{name:<14s} {times}  {text}")


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _compare(args: argparse.Namespace) -> int:
    from .experiments._compare import compare

    changes = compare(args.a, args.b)
    for change in changes:
        print(change)
    moved = sum(change.beyond for change in changes)
    print(f"{len(changes)} claims compared, {moved} changed beyond noise")
    return int(moved > 0)


class _Told:
    """Progress of experiments on stderr: the fraction done, and the time that is left."""

    EVERY = 2.0  # seconds between lines of one experiment

    def __init__(self, names: Sequence[str]) -> None:
        self.names, self.done = names, 0
        self.began: dict[str, tuple[float, float]] = {}  # time and fraction of the first report
        self.last: dict[str, float] = {}

    def __call__(self, name: str, what: Any) -> None:
        now = time.monotonic()
        if not isinstance(what, float):
            self.done += 1
            ended = "failed: " + what.message if hasattr(what, "message") else "done"
            took = f", {now - self.began[name][0]:.1f} s" if name in self.began else ""
            say(f"[{self.done}/{len(self.names)}] {name}: {ended}{took}")
            return
        first, start = self.began.setdefault(name, (now, what))
        if what > start and what < 1 and now - self.last.get(name, first) >= self.EVERY:
            self.last[name] = now
            left = (now - first) * (1 - what) / (what - start)
            say(
                f"[{self.done + 1}/{len(self.names)}] {name}: {100 * what:.0f} %, {left:.0f} s left"
            )


def _close(outcomes: Sequence[Any]) -> int:
    """Print all claims with their verdicts, failures first, and return the exit status."""
    from . import experiments

    lines, status = [], 0
    for outcome in outcomes:
        if isinstance(outcome, experiments.Failure):
            kind = "left out" if outcome.absent else "CRASHED"
            lines.append((outcome.absent, f"{kind:<9s} {outcome.name}: {outcome.message}"))
            status |= not outcome.absent
            continue
        for claim in experiments.load(outcome.name).claims(outcome):
            kind = "holds" if claim.holds else "FAILS"
            told = f"{claim.measured:.4g}" + (f" ± {claim.error:.2g}" if claim.error else "")
            wanted = f"{claim.low:.4g} to {claim.high:.4g}"
            lines.append(
                (claim.holds, f"{kind:<9s} {outcome.name}: {claim.text}: {told} ({wanted})")
            )
            status |= not claim.holds
    for _, line in sorted(lines, key=lambda pair: pair[0]):
        print(line)
    held = sum(line.startswith("holds") for _, line in lines)
    failed = sum(line.startswith("FAILS") for _, line in lines)
    print(f"{held} claims hold, {failed} fail")
    return int(status)


def _plan(args: argparse.Namespace) -> None:
    from .scale import named
    from .scale.plan import plan

    found = plan(
        named.kernel(args.kernel), n=args.n, shape=args.shape, m=args.m, workers=args.workers,
        dtype=args.dtype, tile=args.tile, seconds=args.seconds,
    )  # fmt: skip
    if args.figure:
        path = _check.destination(args.figure, "--figure")
        found.plot().figure.savefig(path)
    if args.json:
        facts = {k: v for k, v in vars(found).items() if k != "finished"}
        facts["solvers"] = [s._asdict() for s in found.solvers]
        print(json.dumps(facts))
    else:
        print(found)


def _diagnose(args: argparse.Namespace) -> None:
    import numpy as np

    from . import report
    from .diagnosis import diagnose
    from .scale import named

    if args.out is not None:
        _check.installed("matplotlib", "--out")
        _check.destination(args.out, "--out")
    found = diagnose(
        named.kernel(args.kernel), named.array(args.data, "DATA"),
        np.asarray(named.array(args.labels, "LABELS")), ridge=args.ridge, points=args.points,
        task="regression" if args.regression else None, seed=args.seed,
    )  # fmt: skip
    print(json.dumps(found.as_dict()) if args.json else found)
    if args.out is not None:
        path = report.write(found, args.out)
        if not args.json:
            print(f"\n{path}")


def _gram(args: argparse.Namespace) -> None:
    from .scale import named
    from .scale.client import at
    from .scale.job import gram

    began = time.monotonic()
    with at(args.dask) as client:
        K = gram(
            named.kernel(args.kernel), named.array(args.data, "DATA"),
            None if args.other is None else named.array(args.other, "--other"), store=args.store,
            tile=args.tile, progress=not args.json, resume=not args.new, compress=args.compress,
            client=client,
        )  # fmt: skip
    n, m = K.shape
    facts = {
        "store": args.store, "kernel": K.kernel, "shape": [n, m], "dtype": str(K.dtype),
        "tiles": len(K.tiling), "tile": K.tiling.size, "seconds": time.monotonic() - began,
    }  # fmt: skip
    if args.json:
        print(json.dumps(facts))
    else:
        told = f"{n} x {m} {K.dtype}, {facts['tiles']} tiles of {K.tiling.size}"
        print(f"{args.store}: {told}, complete after {facts['seconds']:.1f} s")


def _solve(args: argparse.Namespace) -> None:
    import numpy as np

    from . import solvers
    from .scale import named
    from .scale.store import StoredGram

    output = _check.destination(args.output, "--output")
    K, y = StoredGram(args.store), np.asarray(named.array(args.labels, "LABELS"))
    if y.dtype.kind in "iub" and y.ndim == 1 and not args.regression:
        y = np.eye(int(y.max()) + 1)[y] - 1 / (int(y.max()) + 1)  # one column for each class
    began, shown = time.monotonic(), not args.json
    P = None
    if args.rank:
        P = solvers.nystrom_preconditioner(K, rank=args.rank, ridge=args.ridge, progress=shown)
    found = solvers.conjugate_gradients(
        K, y, args.ridge, tol=args.tol, max_iter=args.max_iter, preconditioner=P, progress=shown
    )
    np.save(output, found.alpha)
    facts = {
        "output": args.output, "shape": list(found.alpha.shape), "passes": K.passes,
        "residual": float(np.max(found.residuals[-1])), "converged": bool(np.all(found.converged)),
        "seconds": time.monotonic() - began,
    }  # fmt: skip
    if args.json:
        print(json.dumps(facts))
    else:
        ended = "converged" if facts["converged"] else "not converged"
        told = f"{ended} after {facts['passes']} products, residual {facts['residual']:.2g}"
        print(f"{args.output}: {told}, {facts['seconds']:.1f} s")


def _predict(args: argparse.Namespace) -> None:
    import numpy as np

    from .linalg.blas import row_blocks
    from .scale import named
    from .scale.client import at
    from .scale.operator import BLOCK_BYTES, GramOperator
    from .scale.source import Source

    output = _check.destination(args.output, "--output")
    kernel, train = (
        named.kernel(args.kernel),
        Source(named.array(args.train, "--train"), "X").whole(),
    )
    test, alpha = Source(named.array(args.data, "DATA"), "X"), named.array(args.alpha, "--alpha")
    alpha = np.asarray(alpha)
    _check.shaped(len(alpha) == len(train), alpha, "--alpha", f"have {len(train)} rows")
    each = max(1, BLOCK_BYTES // (len(train) * train.dtype.itemsize))
    told = Progress("predictions", len(test), not args.json)
    parts = [np.empty((0, *alpha.shape[1:]))]
    with at(args.dask) as client:
        for rows in row_blocks(len(test), each if client is None else AT_A_TIME):
            parts.append(GramOperator(kernel, test.read(rows), train, client=client) @ alpha)
            told.at(rows.stop)
    found = np.concatenate(parts)
    np.save(output, found)
    facts = {"output": args.output, "shape": list(found.shape)}
    print(json.dumps(facts) if args.json else f"{args.output}: {found.shape}")


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
    _add_experiments(commands)
    _add_scale(commands)
    return parser


def _add_experiments(commands: Any) -> None:
    """Add what runs experiments, lists them and draws their results."""
    plain = argparse.RawDescriptionHelpFormatter

    def folder(it: argparse.ArgumentParser) -> None:
        it.add_argument(
            "--out", default=OUT, metavar="DIR", help="the folder of results (default: %(default)s)"
        )
        it.add_argument(
            "--jobs", type=int, default=1, metavar="N",
            help="processes that run experiments, each with its share of the CPUs (default: 1)",
        )  # fmt: skip

    it = commands.add_parser(
        "report", help="run what is missing, and write a page of all results", description=REPORT
    )
    it.add_argument(
        "--output", default="kernelcore-report.html", metavar="FILE",
        help="where to write it; an existing file is replaced (default: %(default)s)",
    )  # fmt: skip
    it.add_argument("--only", nargs="+", choices=tuple(NAMES), metavar="NAME", help="some of them")
    it.add_argument(
        "--from", dest="source", metavar="DIR", help="draw the results of a folder, and run nothing"
    )
    folder(it)
    it.add_argument("--quick", action="store_true", help=argparse.SUPPRESS)  # of earlier versions
    it.set_defaults(run=_report)

    text = "list the experiments, with what they claim and how long they take"
    it = commands.add_parser("list", help=text, description=text.capitalize() + ".")
    it.set_defaults(run=_list)

    it = commands.add_parser(
        "run", help="run experiments of the papers", formatter_class=plain,
        description=f"{RUN}\n\nexperiments:\n{EXPERIMENTS}",
    )  # fmt: skip
    it.add_argument(
        "names", nargs="+", choices=(*NAMES, "all"), metavar="NAME", help="experiments, or all"
    )
    it.add_argument(
        "--preset", default="small", choices=("small", "paper"),
        help="sizes that take seconds, or those of the paper (default: small)",
    )  # fmt: skip
    it.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="NAME=VALUE",
        help="change a setting, as in n=500 or sizes=10,20,40; may be repeated",
    )  # fmt: skip
    folder(it)
    it.add_argument("--data", metavar="DIR", help="where the data lie that an experiment reads")
    it.add_argument("--fresh", action="store_true", help="compute again what is saved")
    own = it.add_argument_group("of uci alone (Arora et al. (2020)): a table in a file")
    own.add_argument("--sets", nargs="+", metavar="NAME", help="some of the sets (default: all)")
    own.add_argument("--output", metavar="FILE", help="append each result to this CSV file")
    own.add_argument("--resume", action="store_true", help="go on with the file of an earlier run")
    it.set_defaults(run=_run)

    it = commands.add_parser("compare", help="compare two folders of results", description=COMPARE)
    it.add_argument("a", metavar="A", help="a folder of results")
    it.add_argument("b", metavar="B", help="another")
    it.set_defaults(run=_compare)


DASK = "the scheduler of a Dask cluster whose workers compute (default: this process)"
AT_A_TIME = 100_000
"""The inputs that are predicted together on a cluster."""
KERNELS = """ckn, cntk, mlp or myrtle with arguments, as cntk:depth=21,gap or mlp:depth=3,nngp; or
gaussian, laplacian, matern, cauchy, polynomial, arccosine, as gaussian:lengthscale=2"""
DATA = "an array: FILE.npy, FILE.npz, FILE.npz:NAME or a folder of Zarr"


def _sides(text: str) -> tuple[int, ...]:
    return tuple(int(side) for side in text.split(","))


def _add_scale(commands: Any) -> None:
    """Add what computes Gram matrices of any size and solves with them."""

    def command(name: str, run: Any, text: str, needs: bool = True) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = commands.add_parser(
            name, help=text, description=text.capitalize() + "."
        )
        made.set_defaults(run=run)
        if needs:
            made.add_argument("--kernel", required=True, metavar="KERNEL", help=KERNELS)
        made.add_argument("--json", action="store_true", help="print one line of JSON")
        return made

    it = command("plan", _plan, "tell what a Gram matrix would cost")
    it.add_argument("--n", type=int, required=True, help="the number of inputs")
    it.add_argument("--shape", type=_sides, required=True, help="of an input: 784, or 32,32,3")
    it.add_argument("--m", type=int, help="the number of other inputs (default: symmetric)")
    it.add_argument("--workers", type=int, default=1, help="cores that compute (default: 1)")
    it.add_argument("--dtype", default="float32", help="float32 or float64 (default: float32)")
    it.add_argument("--tile", type=int, help="the side of a tile (default: about 30 s of work)")
    it.add_argument("--seconds", type=float, default=1.0, help="how long to measure (default: 1)")
    it.add_argument("--figure", metavar="FILE", help="draw when workers are done")
    it = command("diagnose", _diagnose, "tell what a kernel can make of given data")
    it.add_argument("data", metavar="DATA", help=DATA)
    it.add_argument("labels", metavar="LABELS", help=f"{DATA}; whole numbers and text are classes")
    it.add_argument("--ridge", type=float, help="added to the diagonal (default: leave-one-out)")
    it.add_argument("--regression", action="store_true", help="whole numbers are no classes")
    it.add_argument("--points", type=int, help="how many inputs to draw (default: at most 2000)")
    it.add_argument("--seed", type=int, default=0, help="of what is drawn (default: 0)")
    it.add_argument("--out", metavar="PAGE", help="write a page with figures, such as page.html")
    it = command("gram", _gram, "compute a Gram matrix into a store, or go on with it")
    it.add_argument("data", metavar="DATA", help=DATA)
    it.add_argument("--other", metavar="DATA", help="other inputs, for the columns")
    it.add_argument("--store", required=True, metavar="FOLDER", help="a folder, for Zarr")
    it.add_argument("--tile", type=int, help="the side of a tile (default: measured)")
    it.add_argument("--dask", metavar="ADDRESS", help=DASK)
    it.add_argument("--new", action="store_true", help="refuse a store that exists")
    it.add_argument("--compress", action="store_true", help="compress the store")
    it = command("solve", _solve, "solve kernel ridge regression with a stored matrix", False)
    it.add_argument("store", metavar="STORE", help="a store that kernelcore gram has written")
    it.add_argument("labels", metavar="LABELS", help=f"{DATA}; whole numbers are classes")
    it.add_argument("--ridge", type=float, required=True, help="what is added to the diagonal")
    it.add_argument("--regression", action="store_true", help="whole numbers are no classes")
    it.add_argument("--tol", type=float, default=1e-6, help="of the residual (default: 1e-6)")
    it.add_argument("--rank", type=int, default=0, help="of a preconditioner (default: none)")
    it.add_argument("--max-iter", type=int, default=1000, help="products (default: 1000)")
    it.add_argument("--output", default="alpha.npy", help="coefficients (default: alpha.npy)")
    it = command("predict", _predict, "predict with coefficients of kernelcore solve")
    it.add_argument("data", metavar="DATA", help=DATA)
    it.add_argument("--train", required=True, metavar="DATA", help="the inputs of the matrix")
    it.add_argument("--alpha", default="alpha.npy", help="coefficients (default: alpha.npy)")
    it.add_argument("--dask", metavar="ADDRESS", help=DASK)
    it.add_argument("--output", default="predictions.npy", help="(default: predictions.npy)")


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
            status = args.run(args)
        finally:
            _flush()
    except KeyboardInterrupt:
        print("kernelcore: interrupted", file=sys.stderr)
        return _leave(130)  # the convention of shells: 128 plus the number of the signal
    except BrokenPipeError:
        return _leave(141)
    except (*FAILURES, TypeError) as error:
        if isinstance(error, TypeError) and " must " not in str(error):
            raise  # not a rule of ours
        if os.environ.get(TRACEBACK):
            traceback.print_exception(error)
        text = " ".join(str(error).split()) or type(error).__name__
        print(f"kernelcore: {text}", file=sys.stderr)
        return _leave(1)
    return int(status or 0)


if __name__ == "__main__":
    sys.exit(main())
