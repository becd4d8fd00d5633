"""The table of random features: ``transform`` against the bare matrix product it contains, in one
run. See README.md for what each number means.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from rounds import banded, clock, interleave, judge, machine, missed, ratio, save

# isort: split
import numpy as np

import kernelcore as kc

N, DIMS, COLUMNS, BOUND = 8000, (784, 64), 4096, 1.3
FAMILIES = {
    "Fourier, cos and sin": lambda d: kc.features.FourierFeatures(
        kc.Gaussian(d**0.5), COLUMNS, seed=0
    ),
    "Fourier, cos": lambda d: kc.features.FourierFeatures(
        kc.Gaussian(d**0.5), COLUMNS, kind="cos", seed=0
    ),
    "arc-cosine 1": lambda d: kc.features.ArcCosineFeatures(1, COLUMNS, seed=0),
    "arc-cosine 2": lambda d: kc.features.ArcCosineFeatures(2, COLUMNS, seed=0),
}


def compare(name, n, d, dtype, rounds):
    """Round times of one row of the table."""
    x = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    features = FAMILIES[name](d).fit(x)
    w = features.weights_
    out, bare = np.empty((n, COLUMNS), dtype), np.empty((n, len(w)), dtype)
    contenders = {
        "transform": partial(features.transform, x, out=out),
        "X @ W.T": partial(np.matmul, x, w.T, out=bare),
    }
    seconds = interleave({k: partial(clock, call) for k, call in contenders.items()}, rounds)
    times = ratio(seconds["transform"], seconds["X @ W.T"])
    return {"features": name, "n": n, "d": d, "dtype": dtype, "seconds": seconds, "times": times}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="interleaved rounds, even (10)")
    parser.add_argument("--n", type=int, default=N, help="rows; the targets hold for 8000")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save all round times")
    options = parser.parse_args()
    if options.rounds < 2 or options.rounds % 2:
        parser.error(f"--rounds must be even and positive: {options.rounds}")
    facts = machine()
    for key, value in facts.items():
        print(f"{key:24} {value}")
    print(f"\n{COLUMNS} features of {options.n} rows, out=: ms, minimum of interleaved rounds; in")
    print("brackets the quartiles of the ratios of each round\n")
    print("| features | d | dtype | transform | X @ W.T | times |")
    print("| --- " * 6 + "|")
    rows = []
    for d in DIMS:
        for dtype in ("float32", "float64"):
            for name in FAMILIES:
                row = compare(name, options.n, d, dtype, options.rounds)
                rows.append(row)
                ms = [f"{1e3 * s.min():.1f}" for s in row["seconds"].values()]
                cells = [name, d, dtype, *ms, banded(row["times"], "{:.2f}")]
                print("|", " | ".join(map(str, cells)), "|", flush=True)
    print()
    verdicts = judge(
        [
            (f"times the product, {r['features']}, {r['dtype']}", r["times"][0], "<=", BOUND)
            for r in rows
            if r["d"] == DIMS[0]
        ],
        options.n == N,
    )
    if options.json:
        save(options.json, {"machine": facts, "rows": rows, "targets": verdicts})
    sys.exit(missed(verdicts))


if __name__ == "__main__":
    main()
