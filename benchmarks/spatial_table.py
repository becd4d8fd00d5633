"""The table of the convolutional engine: kernels of 32 x 32 images against neural-tangents and
against the limit of the machine, and how time and memory grow. See README.md for each number.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from rounds import AGREE, banded, interleave, judge, machine, missed, ratio, save

# isort: split
import numpy as np
from growth import TARGET_MEMORY, draw, measure_memory, measure_times, print_growth
from limit import OPERATIONS, MultiplyAdds, check_operations
from pairs import CHANNELS, FIVE, FIVE_FLAT, MYRTLE, SIDE, TEN, THREADS, batch, entries, images
from peer import VARIABLE, Peer, PeerError
from probe import instructions, network

import kernelcore as kc

ONE, FOUR = (1, 1), (2, 2)
# name, network, kernel, our batch, batches to try in the peer; then the same two of a quick run
ROWS = [
    ("5 conv + GAP", FIVE, "ntk", (16, 16), [ONE, FOUR], (4, 8), [ONE]),
    ("10 conv + GAP", TEN, "ntk", (16, 16), [ONE, FOUR], (2, 8), [ONE]),
    ("5 conv + Flatten", FIVE_FLAT, "ntk", (256, 256), [(64, 64), (256, 256)],
     (64, 64), [(32, 32)]),
    ("Myrtle-5", MYRTLE, "nngp", (16, 32), [ONE, FOUR], (4, 8), [ONE]),
    ("Myrtle-5", MYRTLE, "ntk", (16, 32), [ONE, FOUR], (4, 8), [ONE]),
]  # fmt: skip
DEEP = "CNTK-GAP of 21 layers"


def compare(row, rounds, peer, quick, also=()):
    """Seconds per pair and round of a row of the table, after the check that both agree."""
    name, letters, kernel, shape, batches = row[:5]
    if quick:
        shape, batches = row[5:]
    print(f"{name}, {kernel.upper()} ...", file=sys.stderr, flush=True)
    contenders = {"ours": batch(letters, kernel, shape), **dict(also)}
    result = {"name": name, "network": letters, "kernel": kernel, "batch": shape}
    if peer:
        n, m = batches[-1]  # the largest, and what the peer has computed last
        x, call = images(n + m), getattr(network(letters), kernel)
        result["peer"] = peer.setup(x, letters, kernel, batches)
        ours = call(x[:n], x[n:])
        result["disagreement"] = peer.disagreement(ours)
        if not result["disagreement"] <= AGREE:
            sys.exit(f"not the same kernel, {name}: relative {result['disagreement']:.1e}")
        few = min(n, 8)
        exact = call(x[:few].astype(np.float64), x[n : n + few].astype(np.float64))
        result["error"] = float(abs(ours[:few, :few] / exact - 1).max())
        pairs = np.prod(result["peer"]["batch"])
        contenders["neural-tangents"] = lambda: peer.run()[0] / pairs
    result["seconds"] = interleave(contenders, rounds, warm=False)
    return result


def summarise(row, rate):
    """The numbers of the table, from the round times of `compare`."""
    s = row["seconds"]
    core = 1e9 * THREADS / entries(row["network"])
    row["entry ns"] = core * s["ours"].min()
    if rate.rates:
        row["limit ns"], row["strict limit ns"] = rate.nanoseconds(row["kernel"])
        row["limit fraction"] = row["limit ns"] / row["entry ns"]
    if "neural-tangents" in s:
        row["peer ratio"] = ratio(s["neural-tangents"], s["ours"])
    if "ours, 1 thread" in s:
        row["threads"] = ratio(s["ours, 1 thread"], s["ours"])
        row["float64"] = ratio(s["ours, float64"], s["ours"])
        row["float64 entry ns"] = core * s["ours, float64"].min()
    return row


def instructions_per_layer():
    """Instructions per entry and layer, or the reason why they were not counted."""
    try:
        more = instructions("crcrgo", "crgo", 1, 1, 8, SIDE, SIDE, CHANNELS)
    except RuntimeError as error:
        return f"not counted: {error}"
    return more / (8 * entries("c"))


def print_rows(rows):
    size = f"{SIDE} x {SIDE} x {CHANNELS}"
    print(
        f"\n{size} images, float32, {THREADS} threads: ms per pair, minimum of interleaved rounds;"
    )
    print("in brackets the quartiles of the ratios of each round\n")
    print("| network | kernel | ours | neural-tangents | times |", end=" ")
    print("ns per entry, layer, core | limit | of the limit |")
    print("| --- " * 8 + "|")
    for row in rows:
        ms = {name: 1e3 * s.min() for name, s in row["seconds"].items()}
        cells = [
            row["name"],
            row["kernel"].upper(),
            f"{ms['ours']:.3g}",
            f"{ms['neural-tangents']:.4g}" if "neural-tangents" in ms else "not run",
            banded(row.get("peer ratio"), "{:.0f}"),
            f"{row['entry ns']:.3f}",
            f"{row['limit ns']:.3f}" if "limit ns" in row else "not run",
            f"{row['limit fraction']:.0%}" if "limit ns" in row else "not run",
        ]
        print("|", " | ".join(cells), "|")


def print_rounds(rows):
    header = f"{'ms per pair':35} {'contender':21} {'minimum':>8} {'median':>10}   quartiles"
    print("\n" + header)
    for row in rows:
        for name, s in row["seconds"].items():
            if name == "multiply-adds":  # not times of a pair
                continue
            low, median, high = np.quantile(1e3 * s, [0.25, 0.5, 0.75])
            at = f"{row['name']}, {row['kernel'].upper()}"
            print(f"  {at:33} {name:21} {1e3 * s.min():8.4g} {median:10.4g}", end="   ")
            print(f"{low:.4g} .. {high:.4g}")


def print_peer(rows):
    print("\nlargest relative difference      neural-tangents   our float64", end="   ")
    print("ms per pair in its batches")
    for row in rows:
        shapes = ("{} x {}".format(*shape) for shape in row["peer"]["batches"])
        seconds = row["peer"]["seconds per pair"]
        tried = (f"{a}: {1e3 * b:.4g}" for a, b in zip(shapes, seconds, strict=True))
        at = f"{row['name']}, {row['kernel'].upper()}"
        print(f"  {at:30} {row['disagreement']:15.0e} {row['error']:13.0e}   {', '.join(tried)}")
    print("neural-tangents {neural_tangents}, jax {jax}".format(**rows[0]["peer"]))


def print_limit(first, rate):
    print(f"\nlimit: {max(rate.rates):.3g} vector multiply-adds per second and core,", end=" ")
    print(f"{rate.bytes} bytes wide; of 5 conv + GAP:")
    for dtype, ns in (("float32", first["entry ns"]), ("float64", first["float64 entry ns"])):
        counts = ", ".join(f"{n} {what}" for what, n in OPERATIONS["ntk", dtype].items())
        limit, strict = rate.nanoseconds("ntk", dtype)
        print(f"  {dtype}: {counts}; {ns:.3f} ns, {limit / ns:.0%} of the limit;", end=" ")
        print(f"were additions free {strict / ns:.0%}")


def print_notes(rows, rate, counted):
    first, second = rows[:2]
    if "peer" in first:
        print_peer(rows)
    else:
        print(f"\nneural-tangents: not run, {VARIABLE} is not set")
    if rate.rates:
        print_limit(first, rate)
    else:
        print("\nlimit: not run, no C compiler")
    counted = counted if isinstance(counted, str) else f"{counted:.2f}"
    print(f"instructions per entry and layer: {counted}")
    print(f"5 conv + GAP: one thread over two {banded(first['threads'], '{:.3f}')},", end=" ")
    print(f"float64 over float32 {banded(first['float64'], '{:.2f}')}")
    ms = 1e3 * second["seconds"][DEEP].min()
    print(f"{DEEP}: {ms:.2f} ms per pair; the README of neural-tangents reports")
    print("  2.70 ms on a V100 and 112.9 ms on more than 56 CPU cores")


def targets(rows, peaks):
    """(what, value or None, sign, bound) for each promise of the convolutional engine."""
    times = [400, 400, 40, 200, 200]
    result = []
    for row, bound in zip(rows, times, strict=True):
        name = f"times neural-tangents, {row['name']}, {row['kernel'].upper()}"
        result.append((name, row.get("peer ratio", [None])[0], ">=", bound))
    for row in rows[:2]:
        result.append((f"of the limit, {row['name']}", row.get("limit fraction"), ">=", 0.5))
    most = max((mb.max() for _, mb in peaks.values()), default=None)
    return [
        *result,
        ("float64 over float32, 5 conv + GAP", rows[0]["float64"][0], "<=", 2.5),
        ("two threads against one, 5 conv + GAP", rows[0]["threads"][0], ">=", 1.9),
        ("MB beyond input and result, all cases", most, "<=", TARGET_MEMORY),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="interleaved rounds, even (4; quick: 2)")
    parser.add_argument("--quick", action="store_true", help="small sizes, no verdicts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save all round times")
    parser.add_argument("--figure", type=Path, metavar="FILE.svg", help="growth, SVG and PNG")
    parser.add_argument("--no-instructions", action="store_true", help="do not run callgrind")
    options = parser.parse_args()
    quick = options.quick
    rounds = options.rounds or (2 if quick else 4)
    if rounds < 2 or rounds % 2:
        parser.error(f"--rounds must be even and positive: {rounds}")

    check_operations()
    try:
        peer = Peer.from_environment()  # asleep until its first request
    except PeerError as error:
        sys.exit(str(error))
    facts = machine()
    for key, value in facts.items():
        print(f"{key + ':':24} {value}")
    _, five, kernel, *shapes = ROWS[0]
    shape = shapes[2 if quick else 0]
    try:
        with tempfile.TemporaryDirectory() as directory:
            rate = MultiplyAdds(directory, seconds=0.1 if quick else 0.3)
            also = {name: {} for name, *_ in ROWS} | {
                "5 conv + GAP": {
                    "ours, 1 thread": batch(five, kernel, shape, n_threads=1),
                    "ours, float64": batch(five, kernel, shape, dtype=np.float64),
                    **({"multiply-adds": rate} if rate.compiled else {}),
                },
                "10 conv + GAP": {
                    DEEP: batch(kc.presets.cntk(21), "ntk", (1, 8) if quick else (16, 8))
                },
            }
            rows = [compare(row, rounds, peer, quick, also[row[0]]) for row in ROWS]
    except PeerError as error:
        sys.exit(str(error))
    finally:
        if peer:
            peer.close()
    rows = [summarise(row, rate) for row in rows]
    print("growth ...", file=sys.stderr, flush=True)
    times, peaks = measure_times(quick, rounds // 2 + 1), measure_memory(quick)
    skip = quick or options.no_instructions
    counted = "not counted" if skip else instructions_per_layer()

    print_rows(rows)
    print_rounds(rows)
    print_notes(rows, rate, counted)
    print_growth(times, peaks)
    if options.figure:
        draw(options.figure, times, peaks, rows)
    print("\ntargets, which hold for the full run" if quick else "\ntargets")
    verdicts = judge(targets(rows, peaks), judged=not quick)
    if options.json:
        record = {"machine": facts, "rows": rows, "multiply-adds": rate.rates}
        record |= {"instructions": counted, "growth": times, "memory": peaks}
        save(options.json, record | {"targets": verdicts})
    sys.exit(missed(verdicts))


if __name__ == "__main__":
    main()
