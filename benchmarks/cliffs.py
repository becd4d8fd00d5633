"""The table of cliffs: cases that should cost little more than a neighbour, and what they do cost.

    python benchmarks/cliffs.py [--before VENV] [--long] [--only NAME ..] [--rounds 6] [--json FILE]

A row is a case and its neighbour, measured in turn in one run: float32, one thread, the NTK unless
it says otherwise. A visit makes calls for a tenth of a second, one at least, and keeps the fastest;
what counts is the minimum over the rounds. A call of more than two seconds has one round, and a
first call of more than five seconds is not made again. A case is met if its time over its
neighbour's is at most what is asked, and missed otherwise; the exit status is 1 if any is missed.

Times are nanoseconds of what is counted:

- rows: an entry of the block K(X, Y) of 1000 x 1000 standard normal rows of 16 columns, for
  ``[Dense(sqrt 2), activation] x 3, Dense``. With equal norms all rows have length sqrt(16). Inputs
  of size 100 are 100 times as long, and 500 x 500. Wide rows are a symmetric call, of which all
  entries count.
- images: a pair of positions and a layer, which is what a convolution computes: side^4 of them per
  convolution and pair of images before GlobalAvgPool, side^2 before Flatten. Input, activations and
  poolings are in the time, not in the count. The network is ``[Conv(3, sqrt 2), activation] x 3``,
  the images are standard normal, 28 x 28 x 3: 1 against 16, the longest vector of any level, or 32
  against 32 before Flatten.
- signals: an entry, of 300 x 300 cyclic signals of length 30.

Where a row says so times are us, ms or s of a call. Without a neighbour the time itself is judged;
without anything asked it is only reported. Rows that take long are measured with ``--long`` or when
``--only`` names them. With ``--before`` neighbours run in that virtual environment, which has the
commit before; cases always run with this Python. Only public names are used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rounds import interleave, machine, met, ratio, save

# isort: split
import numpy as np
from probe import points
from workers import Call, Worker, serve

import kernelcore as kc

LINE = "{:56} {:>9} {:>9} {:3} {:>8} {:>7}  {}"
SCALE = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}
ONE_THREAD = {"KERNELCORE_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
QUIET = {"PYTHONWARNINGS": "ignore::RuntimeWarning"}  # numerical duals at size 100 state errors
PATIENCE, ONCE = 2.0, 5.0  # seconds
COLUMNS, SIDE, SHIFT = 16, 28, 0.3
SERIES = (0.0, 0.2, 0.2, 0.2, 0.2, 0.2)
RELU = kc.Relu()
NUMERICAL = {
    "Tanh": kc.Tanh(),
    "Sigmoid": kc.Sigmoid(),
    "Silu": kc.Silu(),
    "Softplus": kc.Softplus(),
    "Activation(arctan)": kc.Activation(np.arctan),
}


class Run(NamedTuple):
    """What is timed: a function that sets up and returns the call, and what a call counts for."""

    setup: Callable[[], Call]
    count: int = 1


class Row(NamedTuple):
    """The ratio asked of a case and its neighbour, or the time itself where there is none."""

    name: str
    case: Run
    neighbour: Run | None = None
    asked: float | None = None
    unit: str = "ns"
    long: bool = False


# ---- what is timed


def mlp(activation):
    return kc.Sequential(*[kc.Dense(2**0.5), activation] * 3, kc.Dense()).ntk


def block(kernel, n=1000, m=1000, size=1, equal=False):
    """K(X, Y) of rows."""

    def setup():
        x = points(n + m, COLUMNS)
        if equal:
            x *= COLUMNS**0.5 / np.linalg.norm(x, axis=1, keepdims=True)
        x *= size
        return partial(kernel, x[:n], x[n:], out=np.empty((n, m), np.float32))

    return Run(setup, n * m)


def rows(activation, **options):
    return block(mlp(activation), **options)


def gram(call, n, *shape, count=1):
    """A symmetric call, of rows or of images."""

    def setup():
        return partial(call, points(n, *shape), out=np.empty((n, n), np.float32))

    return Run(setup, count)


def product(x, out):
    np.matmul(x, x.T, out=out)


def signals(profile, n=300):
    def setup():
        x = np.sign(points(2 * n, 30))
        return partial(kc.CyclicConvolution(10, 5, profile), x[:n], x[n:])

    return Run(setup, n * n)


def convolutions(activation=RELU, end=None, size=3, pool=()):
    """Three of them, with a pooling between two of them if there is one."""
    layer = [kc.Conv(size, w_std=2**0.5), activation]
    return kc.Sequential(
        *layer, *pool, *layer, *pool, *layer, end or kc.GlobalAvgPool(), kc.Dense()
    ).ntk


def images(activation=RELU, n=1, m=16, side=SIDE, **options):
    """K(X, Y) of images, all pairs of positions."""

    def setup():
        x = points(n + m, side, side, 3)
        return partial(convolutions(activation, **options), x[:n], x[n:])

    return Run(setup, 3 * n * m * (side**2 if "end" in options else side**4))


def flat(activation=RELU, n=32, side=SIDE):
    """The same, equal positions only."""
    return images(activation, n, n, side, end=kc.Flatten())


def overlapping(window):
    return images(pool=(kc.AvgPool(window, stride=1, padding="same"),))


def predict(n=5000):
    def setup():
        x = points(n, COLUMNS)
        model = kc.KernelRegressor(mlp(RELU), ridge=0.01).fit(x, np.sin(x[:, 0]))
        return partial(model.predict, x[:1])

    return Run(setup)


class Pixels:
    """In place of Fashion-MNIST, where it is not installed: ten classes of 30 hidden factors."""

    def __init__(self, n):
        rng = np.random.default_rng(0)
        hidden = rng.standard_normal((n, 30), dtype=np.float32)
        mixed = hidden @ rng.standard_normal((30, 784), dtype=np.float32)
        self.X = 1 / (1 + np.exp(-mixed / 2))
        self.y = np.eye(10, dtype=np.float32)[hidden[:, :10].argmax(1)] - np.float32(0.1)


def nystrom(ours, n=60000, centres=4000, ridge=0.1, tol=1e-2):
    """The fit of solvers_table.py, Laplacian kernel, or what it compares with."""

    def setup():
        from solvers_table import DATA, KERNELS, Task, our_fit, plain_fit

        task = Task(n, 1) if DATA.exists() else Pixels(n)
        if ours:
            return partial(our_fit, task, KERNELS["Laplacian"], centres, ridge, tol)
        return partial(plain_fit, task, centres, ridge)

    return Run(setup)


# ---- the table


def numerical() -> Iterator[Row]:
    for size, n, suffix in ((1, 1000, ""), (100, 500, ", size 100")):
        for norms, asked in (("equal", 10), ("unequal", 30)):
            options = {"n": n, "m": n, "size": size, "equal": norms == "equal"}
            for name, activation in NUMERICAL.items():
                name = f"rows, {name} : Relu, {norms} norms{suffix}"
                yield Row(name, rows(activation, **options), rows(RELU, **options), asked)


ROWS = [
    *numerical(),
    Row("rows, Erf(shift) : Erf", rows(kc.Erf(shift=SHIFT)), rows(kc.Erf()), 5),
    Row("rows, Gelu(shift) : Gelu", rows(kc.Gelu(shift=SHIFT)), rows(kc.Gelu()), 5),
    Row("rows, Sin(shift) : Sin", rows(kc.Sin(shift=SHIFT)), rows(kc.Sin()), 5),
    Row("rows, Elu : Relu", rows(kc.Elu()), rows(RELU), 8),
    Row("rows, Selu : Relu", rows(kc.Selu()), rows(RELU), 8),
    Row("rows, Relu(shift) : Relu", rows(kc.Relu(shift=SHIFT)), rows(RELU), 4),
    Row("rows, Step(shift) : Relu", rows(kc.Step(shift=SHIFT)), rows(RELU), 4),
    Row("rows, RectifiedPower(2) : Relu", rows(kc.RectifiedPower(2)), rows(RELU), 2),
    Row("rows, Matern(0.7) : Matern(1.5)",
        block(kc.Matern(0.7, 4.0)), block(kc.Matern(1.5, 4.0)), 5),
    Row("rows, 100 of 100,000 columns : X @ X.T",
        gram(mlp(RELU), 100, 100_000, count=100**2),
        gram(product, 100, 100_000, count=100**2), 1.5),
    Row("rows, 20,000 x 1 : 1000 x 1000", rows(RELU, n=20_000, m=1), rows(RELU), 3),
    Row("rows, 10 of 784 columns, a call", gram(mlp(RELU), 10, 784), None, 60, "us"),
    Row("rows, one prediction from 5000, a call", predict(), None, None, "us"),
    Row("signals, a kernel as profile : a series", signals(kc.ArcCosine(1)), signals(SERIES), 2),
    Row("images, Gelu : Relu", images(kc.Gelu()), images(), 2),
    Row("images, Erf : Relu", images(kc.Erf()), images(), 2),
    Row("images, Sin : Relu", images(kc.Sin()), images(), 2),
    Row("images, Relu(shift) : Relu", images(kc.Relu(shift=SHIFT)), images(), 4),
    Row("images, RectifiedPower(2) : Relu", images(kc.RectifiedPower(2)), images(), 3),
    Row("images, Elu : Relu", images(kc.Elu()), images(), 10),
    Row("images, Tanh : Relu", images(kc.Tanh()), images(), 30),
    Row("images, Tanh : Relu, Flatten, 8 against 8", flat(kc.Tanh(), n=8), flat(n=8), 50),
    Row("images, 64 against 1 : 1 against 64", images(n=64, m=1), images(n=1, m=64), 1.1),
    Row("images, AvgPool(3, stride 1) between : none", overlapping(3), images(), 3),
    Row("images, AvgPool(7, stride 1) between : none", overlapping(7), images(), 3),
    Row("images, Conv(11) : Conv(3)", images(size=11), images(), 2),
    Row("images, Conv(27) : Conv(3)", images(size=27), images(), 2),
    Row("images, Flatten, 64 x 64 : 28 x 28", flat(side=64), flat(), 1.3),
    Row("images, Flatten, 224 x 224 : 28 x 28", flat(side=224), flat(), 1.3),
    Row("images, 10 of 1 x 1, a call", gram(convolutions(), 10, 1, 1, 3), None, 0.2, "ms"),
    Row("images, 10 of 2 x 2, a call", gram(convolutions(), 10, 2, 2, 3), None, 0.2, "ms"),
    Row("pair of 224 x 224 : pair of 28 x 28", images(m=1, side=224), images(m=1), long=True),
    Row("Nystrom ridge, 4000 of 60,000 : NumPy",
        nystrom(True), nystrom(False), 0.4, "s", long=True),
]  # fmt: skip


def label(which, name):
    """By which a worker knows what to time."""
    return f"{which} of {name}"


CASES = {
    label(which, row.name): run.setup
    for row in ROWS
    for which, run in (("case", row.case), ("neighbour", row.neighbour))
    if run is not None
}


def measure(row, ours, before, rounds):
    """Seconds per round of what is counted, of the case and of its neighbour if there is one."""
    runs = {"case": (ours, row.case), "neighbour": (before, row.neighbour)}
    runs = {which: run for which, run in runs.items() if run[1] is not None}
    visits = {which: partial(run[0].measure, label(which, row.name)) for which, run in runs.items()}
    seconds = interleave(visits, 1, settle=0, warm=False)
    short = {which: visit for which, visit in visits.items() if seconds[which][0] < PATIENCE}
    seconds |= interleave(short, rounds, settle=0, warm=False)
    return {which: s / runs[which][1].count for which, s in seconds.items()}


def judge(row, seconds):
    """The numbers of a row, and whether it is met."""
    times = {which: SCALE[row.unit] * s.min() for which, s in seconds.items()}
    value = times["case"]
    if row.neighbour:
        times["ratio"], *times["quartiles"] = ratio(seconds["case"], seconds["neighbour"])
        value = times["ratio"]
    verdict = "reported"
    if row.asked is not None:
        verdict = "met" if met(value, "<=", row.asked) else "missed"
    return times | {"unit": row.unit, "asked": row.asked, "is": verdict, "seconds": seconds}


def show(name, found):
    numbers = [found.get(key) for key in ("case", "neighbour", "ratio")]
    texts = ["" if v is None else f"{v:.3g}" if v < 1000 else f"{v:.0f}" for v in numbers]
    asked = "" if found["asked"] is None else f"{found['asked']:g}"
    case, neighbour, times = texts
    print(LINE.format(name, case, neighbour, found["unit"], times, asked, found["is"]), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", metavar="VENV", help="neighbours run there")
    parser.add_argument("--long", action="store_true", help="also what takes long")
    parser.add_argument("--only", nargs="+", default=[], help="how the names of rows begin")
    parser.add_argument("--rounds", type=int, default=6, help="an even number")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()

    if arguments.only:
        chosen = [row for row in ROWS if row.name.startswith(tuple(arguments.only))]
    else:
        chosen = [row for row in ROWS if arguments.long or not row.long]
    facts = machine()
    for key in ("processor", "load average", "kernelcore version"):
        print(f"{key}: {facts[key]}")
    ours = Worker(__file__, **ONE_THREAD, **QUIET)
    before = ours
    if arguments.before:
        before = Worker(__file__, arguments.before, **ONE_THREAD, **QUIET)
    print(LINE.format("case : neighbour", "case", "neighbour", "", "ratio", "asked", ""))
    record = {}
    for row in chosen:
        record[row.name] = judge(row, measure(row, ours, before, arguments.rounds))
        show(row.name, record[row.name])
    if arguments.json:
        save(arguments.json, {"machine": facts, "rows": record})
    missed = [name for name, found in record.items() if found["is"] == "missed"]
    print(f"missed: {len(missed)} of {len(record)}" if missed else "none is missed")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(serve(CASES, least=1, once=ONCE) if sys.argv[1:] == ["--serve"] else main())
