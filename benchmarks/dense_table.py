"""The table of the dense engine: the NTK of 3 hidden ReLU layers against neural-tangents and
against the limit of the machine, in one run. See README.md for what each number means.
"""

import argparse
import subprocess
import sys
from functools import partial
from pathlib import Path

from rounds import AGREE, MB, banded, clock, interleave, judge, machine, missed, ratio, save

# isort: split
import numpy as np
from peer import VARIABLE, Peer, PeerError
from probe import instructions, network, peak_memory, points

N, DIMS = 3000, (784, 16)
THREE, ONE = "dr" * 3 + "o", "dro"  # networks by the letters of probe.py
COUNTED, CALLS = 960, 8  # rows and columns under callgrind, which is some 50 times slower


def compare(n, d, rounds, peer):
    """Round times of one row of the table, with the check that both compute the same kernel."""
    x, ntk = points(n, d), network(THREE).ntk
    out = np.empty((n, n), np.float32)
    half = n // 2
    block = np.empty((half, half), np.float32)
    rectangle = {"out": block, "n_threads": 1}
    contenders = {
        "ours, 2 threads": partial(ntk, x, out=out, n_threads=2),
        "ours, 1 thread": partial(ntk, x, out=out, n_threads=1),
        "ours, new result": partial(ntk, x, n_threads=2),
        "X @ X.T": partial(np.matmul, x, x.T, out=out),
        "write": partial(out.fill, 0),
        "3 hidden, block": partial(ntk, x[:half], x[-half:], **rectangle),
        "1 hidden, block": partial(network(ONE).ntk, x[:half], x[-half:], **rectangle),
    }
    contenders = {name: partial(clock, call) for name, call in contenders.items()}
    row = {"n": n, "d": d, "disagreement": None}
    if peer:
        row["peer"] = peer.setup(x, THREE)
        row["disagreement"] = peer.disagreement(ntk(x, n_threads=2), diagonal=False)
        if not row["disagreement"] <= AGREE:
            sys.exit(f"not the same kernel at d = {d}: relative {row['disagreement']:.1e}")
        contenders["neural-tangents"] = lambda: min(peer.run(calls=2))
    row["seconds"] = interleave(contenders, rounds)
    return row


def summarise(row):
    """The numbers of the table, from the round times of `compare`."""
    s = row["seconds"]
    ours = s["ours, 2 threads"]
    row["limit ns"] = 1e9 * (s["X @ X.T"].min() + s["write"].min()) / row["n"] ** 2
    row["limit fraction"] = ratio(s["X @ X.T"] + s["write"].min(), ours)
    row["threads"] = ratio(s["ours, 1 thread"], ours)
    layers = s["3 hidden, block"].min() - s["1 hidden, block"].min()
    row["layer ns"] = 1e9 * layers / (2 * (row["n"] // 2) ** 2)
    if "neural-tangents" in s:
        row["peer ratio"] = ratio(s["neural-tangents"], s["ours, new result"])
        row["peer ratio, out="] = ratio(s["neural-tangents"], ours)
    return row


def import_seconds(rounds):
    """Seconds of a process that imports NumPy and kernelcore, beyond one that imports NumPy."""
    codes = {"numpy": "import numpy", "both": "import numpy, kernelcore"}
    call = {k: partial(subprocess.run, [sys.executable, "-c", c]) for k, c in codes.items()}
    s = interleave({k: partial(clock, c, repeats=1) for k, c in call.items()}, rounds, settle=0)
    return s["both"].min() - s["numpy"].min()


def instructions_per_layer():
    """Instructions per entry and hidden layer, or the reason why they were not counted."""
    try:
        return instructions(THREE, ONE, CALLS, COUNTED, COUNTED, 16) / (2 * COUNTED**2)
    except RuntimeError as error:
        return f"not counted: {error}"


def targets(rows, memory, seconds):
    """(what, value or None, sign, bound) for each promise of the dense engine."""
    first, second = rows
    result = [
        ("times neural-tangents at d = 784", first.get("peer ratio", [None])[0], ">=", 7),
        ("of the limit at d = 784", first["limit fraction"][0], ">=", 0.85),
        ("times neural-tangents at d = 16", second.get("peer ratio", [None])[0], ">=", 15),
    ]
    for row, size in zip(rows, memory, strict=True):
        at = f"at d = {row['d']}"
        result.append((f"two threads against one {at}", row["threads"][0], ">=", 1.85))
        size = None if size is None else size / MB
        result.append((f"MB beyond the result {at}", size, "<=", 64))
    return [*result, ("seconds to import beyond NumPy", seconds, "<", 0.05)]


def print_rows(rows, memory):
    print("\nNTK of 3 hidden ReLU layers, float32, 2 threads: ns per entry of the result, minimum")
    print("of interleaved rounds; in brackets the quartiles of the ratios of each round\n")
    print("| n | d | ours, new result | neural-tangents | times |", end=" ")
    print("ours, out= | limit | of the limit | 2 threads : 1 | MB beyond result |")
    print("| --- " * 10 + "|")
    for row, size in zip(rows, memory, strict=True):
        ns = {name: 1e9 * s.min() / row["n"] ** 2 for name, s in row["seconds"].items()}
        cells = [
            row["n"],
            row["d"],
            f"{ns['ours, new result']:.2f}",
            f"{ns['neural-tangents']:.1f}" if "neural-tangents" in ns else "not run",
            banded(row.get("peer ratio"), "{:.2f}"),
            f"{ns['ours, 2 threads']:.2f}",
            f"{row['limit ns']:.2f}",
            banded(row["limit fraction"], "{:.0%}"),
            banded(row["threads"], "{:.2f}"),
            "not run" if size is None else f"{size / MB:.1f}",
        ]
        print("|", " | ".join(map(str, cells)), "|")


def print_rounds(rows):
    print("\nns per entry     d   contender            minimum   median   quartiles")
    for row in rows:
        for name, s in row["seconds"].items():
            entries = (row["n"] // 2) ** 2 if name.endswith("block") else row["n"] ** 2
            ns = 1e9 * s / entries
            low, median, high = np.quantile(ns, [0.25, 0.5, 0.75])
            print(f"{row['d']:18}   {name:18} {ns.min():9.3f} {median:8.3f}", end="")
            print(f"   {low:.3f} .. {high:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="interleaved rounds, even (10)")
    parser.add_argument("--n", type=int, default=N, help="rows; the targets hold for 3000")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save all round times")
    parser.add_argument("--no-instructions", action="store_true", help="do not run callgrind")
    options = parser.parse_args()
    if options.rounds < 2 or options.rounds % 2:
        parser.error(f"--rounds must be even and positive: {options.rounds}")

    try:
        peer = Peer.from_environment()  # asleep until its first request
    except PeerError as error:
        sys.exit(str(error))
    facts = machine()
    for key, value in facts.items():
        print(f"{key + ':':24} {value}")
    memory = [peak_memory(THREE, "ntk", options.n, d) for d in DIMS]
    seconds = import_seconds(2 * options.rounds)
    counted = "not counted" if options.no_instructions else instructions_per_layer()
    try:
        rows = [summarise(compare(options.n, d, options.rounds, peer)) for d in DIMS]
    except PeerError as error:
        sys.exit(str(error))
    finally:
        if peer:
            peer.close()

    print_rows(rows, memory)
    print_rounds(rows)
    print()
    for row in rows:
        if peer:
            versions = "neural-tangents {neural_tangents}, jax {jax}".format(**row["peer"])
            print(f"d = {row['d']}: {versions}, agrees to {row['disagreement']:.1e};", end=" ")
            print("times it with out=:", banded(row["peer ratio, out="], "{:.2f}"))
    if not peer:
        print(f"neural-tangents: not run, {VARIABLE} is not set")
    print(f"per entry and hidden layer: {rows[-1]['layer ns']:.3f} ns (one thread),", end=" ")
    print(counted if isinstance(counted, str) else f"{counted:.2f} instructions")

    judged = options.n == N
    print("\ntargets" if judged else f"\ntargets, which hold for n = {N}")
    verdicts = judge(targets(rows, memory, seconds), judged)
    if options.json:
        record = {"machine": facts, "rows": rows, "memory": memory, "import seconds": seconds}
        save(options.json, record | {"instructions": counted, "targets": verdicts})
    sys.exit(missed(verdicts))


if __name__ == "__main__":
    main()
