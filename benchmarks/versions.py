"""Compare the speed of two installations of the package, interleaved.

    python benchmarks/versions.py BEFORE [AFTER] [--rounds 10] [--only NAME ...] [--json FILE]

BEFORE and AFTER are virtual environments (AFTER: that of this Python) with kernelcore and
scikit-learn. Each has a worker, which times itself on request and sleeps while the other runs. A
visit makes calls for a tenth of a second, three at least, and keeps the fastest; what counts is the
minimum over the rounds, after over before. The exit status is 1 if a case is slower by more than
2 %. Only public names are used, so that any two commits can be compared.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from workers import Call, Worker, serve

BOUND = 1.02
LINE = "{:34} {:>12} {:>12}   {}"


# ---- cases: functions that set up and return the call to be timed


def rows(n, d):
    import numpy as np
    from probe import network, points

    ntk, x, out = network("drdrdro").ntk, points(n, d), np.empty((n, n), np.float32)
    return lambda: ntk(x, out=out)


def images(letters, kernel, n, m, dtype="float32"):
    from probe import network, points

    x = points(n + m, 32, 32, 3, dtype=dtype)
    kernel = getattr(network(letters), kernel)
    return lambda: kernel(x[:n], x[n:])


def spectrum(cold):
    from cold import caches, forget

    import kernelcore as kc

    ntk = kc.presets.mlp(3).ntk

    def call():
        forget(caches() if cold else ())
        kc.spectrum.sphere(ntk, dim=10, max_degree=1000)

    return call


def fit():
    import kernelcore as kc

    x, y = kc.data.digits()
    model = kc.KernelClassifier(kc.presets.mlp(2, b_std=0.1).ntk, ridge=0.01)
    return lambda: model.fit(x[:1000], y[:1000])


def start():
    command = [sys.executable, "-c", "import kernelcore"]
    return lambda: subprocess.run(command, check=True)


CASES: dict[str, Callable[[], Call]] = {
    "rows, 784 columns, n = 3000": partial(rows, 3000, 784),
    "rows, 16 columns, n = 3000": partial(rows, 3000, 16),
    "rows, 784 columns, n = 10": partial(rows, 10, 784),
    "5 conv + GAP, NTK": partial(images, "cr" * 5 + "go", "ntk", 8, 16),
    "5 conv + GAP, NNGP": partial(images, "cr" * 5 + "go", "nngp", 8, 16),
    "5 conv + GAP, NTK, float64": partial(images, "cr" * 5 + "go", "ntk", 4, 16, "float64"),
    "10 conv + GAP, NTK": partial(images, "cr" * 10 + "go", "ntk", 4, 16),
    "5 conv + Flatten, NTK": partial(images, "cr" * 5 + "fo", "ntk", 256, 256),
    "Myrtle-5, NTK": partial(images, "crcrpcrpcrgo", "ntk", 8, 16),
    "spectrum, cold": partial(spectrum, True),
    "spectrum, warm": partial(spectrum, False),
    "KernelClassifier.fit, 1000 digits": fit,
    "import": start,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="a virtual environment")
    parser.add_argument("after", nargs="?", default=sys.prefix)
    parser.add_argument("--rounds", type=int, default=10, help="an even number")
    parser.add_argument("--only", nargs="+", default=[""], help="how the names of cases begin")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()

    from rounds import banded, interleave, ratio, save

    workers = {w: Worker(__file__, getattr(arguments, w)) for w in ("before", "after")}
    print(LINE.format("milliseconds", "before", "after", "after : before [quartiles]"))
    record, slower = {}, []
    for name in CASES:
        if not name.startswith(tuple(arguments.only)):
            continue
        contenders = {which: partial(worker.measure, name) for which, worker in workers.items()}
        seconds = interleave(contenders, arguments.rounds)
        record[name] = seconds
        change = ratio(seconds["after"], seconds["before"])
        least = [f"{1e3 * seconds[which].min():.4g}" for which in workers]
        print(LINE.format(name, *least, banded(change, "{:.3f}")), flush=True)
        slower += [name] if change[0] > BOUND else []
    if arguments.json:
        save(arguments.json, record)
    print("slower: " + "; ".join(slower) if slower else "none is slower by more than 2 %")
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(serve(CASES) if sys.argv[1:] == ["--serve"] else main())
