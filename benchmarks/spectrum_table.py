"""The table of spectra on the sphere: the NTK of 3 hidden ReLU layers against mpmath at the
precision needed, and how time grows with the degree, in one run. See README.md for each number.
"""

import argparse
import subprocess
import sys
from functools import partial
from pathlib import Path

from rounds import banded, clock, interleave, judge, machine, missed, ratio, save

# isort: split
import by_mpmath
import numpy as np
from cold import caches, forget
from growth import DOTTED, power_slope

import kernelcore as kc

HIDDEN = 3
DIM, DEGREE = 10, 1000
DIMS, DEGREES = range(2, 1001), 100
GROWTH = (125, 250, 500, 1000, 2000, 4000)
# dim, highest degree, step of mpmath's rule
CASES = [(10, 100, 0.015), (100, 100, 0.008), (1000, 100, 0.0027), (10, 1000, 0.002)]
AGREE = 1e-10
COLD, WARM, SWEEP = "cold", "warm", "all dims"
FIRST = f"""
import time, kernelcore as kc
kernel = kc.presets.mlp({HIDDEN}).ntk
start = time.perf_counter()
kc.spectrum.sphere(kernel, {DIM}, {DEGREE})
print(time.perf_counter() - start)
"""


def cold(call, clear):
    """The call after all caches were emptied; emptying them is inside the clock, microseconds."""
    forget(clear)
    return call()


def calls(clear):
    """Functions of (dim, degree) that make a spectrum, warm and cold; and the sweep, cold."""
    kernel = kc.presets.mlp(HIDDEN).ntk

    def warm(dim, degree):
        return partial(kc.spectrum.sphere, kernel, dim, degree)

    def sweep(dims):
        return [kc.spectrum.sphere(kernel, dim, DEGREES) for dim in dims]

    return (
        warm,
        lambda dim, degree: partial(cold, warm(dim, degree), clear),
        lambda dims: partial(cold, partial(sweep, dims), clear),
    )


def first_call(rounds):
    """Seconds of the first spectrum of a process, after the import: modules are loaded, too."""
    run = partial(subprocess.run, [sys.executable, "-c", FIRST], capture_output=True, check=True)
    return min(float(run(text=True).stdout) for _ in range(rounds))


def against_mpmath(case, cold, rounds):
    """Round times of one case, and whether all of its eigenvalues agree."""
    dim, degree, step = case
    print(f"mpmath, dim {dim}, degree {degree} ...", file=sys.stderr, flush=True)
    ours = cold(dim, degree)().log_eigenvalues
    peer = by_mpmath.Spectrum(HIDDEN, dim, degree, by_mpmath.digits(ours.min()), step)
    contenders = {
        "ours": partial(clock, cold(dim, degree)),
        "one": peer.one,
        "whole": peer.whole,
    }
    row = {"dim": dim, "degree": degree, "log10": ours[-1] / np.log(10), "digits": peer.digits}
    row["seconds"] = s = interleave(contenders, rounds, warm=False)
    theirs = np.array([peer.logs[k] for k in range(degree + 1)])
    row["nodes"] = peer.nodes
    row["difference"] = float(np.abs(np.expm1(ours - theirs)).max())
    if not row["difference"] <= AGREE:
        sys.exit(f"dim {dim}, degree {degree}: relative difference {row['difference']:.1e}")
    row["per eigenvalue"] = ratio((degree + 1) * s["one"], s["ours"])
    row["one each"] = ratio(s["one"], s["ours"])
    row["spectrum"] = ratio(s["whole"], s["ours"])
    return row


def measure_growth(degrees, warm, cold, rounds):
    """Seconds by highest degree: arrays (degrees, seconds) of cold and warm calls."""
    contenders = {
        (name, degree): partial(clock, make(DIM, degree))
        for name, make in ((COLD, cold), (WARM, warm))
        for degree in degrees
    }
    # A visit makes two calls: the first of a warm visit fills the caches.
    times = interleave(contenders, rounds, settle=0.02)
    return {
        name: np.array([[k, times[name, k].min()] for k in degrees], float).T
        for name in (COLD, WARM)
    }


def exponents(growth):
    """(what, fitted exponent) over all degrees and over the last three, cold and warm."""
    for name, (k, s) in growth.items():
        yield f"{name}, {k[0]:.0f} to {k[-1]:.0f}", power_slope(k, s)
        yield f"{name}, {k[-3]:.0f} to {k[-1]:.0f}", power_slope(k[-3:], s[-3:])


def print_ours(seconds, first, dims):
    print(f"\nNTK of {HIDDEN} hidden ReLU layers on the sphere: ms, minimum and quartiles of")
    print("interleaved rounds\n")
    print("| spectrum | minimum | quartiles | µs per eigenvalue |")
    print("| --- " * 4 + "|")
    names = {
        COLD: (f"dim {DIM}, degrees 0 to {DEGREE}, cold", DEGREE + 1),
        WARM: (f"dim {DIM}, degrees 0 to {DEGREE}, warm", DEGREE + 1),
        SWEEP: (
            f"dim {dims[0]} to {dims[-1]}, degrees 0 to {DEGREES}, cold",
            len(dims) * (DEGREES + 1),
        ),
    }
    for name, (text, count) in names.items():
        s = seconds[name]
        low, high = 1e3 * np.quantile(s, [0.25, 0.75])
        shown = f"{1e3 * s.min():.2f} | {low:.2f} .. {high:.2f} | {1e6 * s.min() / count:.2f}"
        print(f"| {text} | {shown} |")
    print(f"\nfirst call of a process, dim {DIM}, degrees 0 to {DEGREE}: {1e3 * first:.1f} ms")


def print_rows(rows, seconds, dims):
    print(f"\nagainst {by_mpmath.backend()}, one thread; ours cold; in brackets the quartiles")
    print("of the ratios of each round\n")
    print("| dim | degrees | last eigenvalue | digits | nodes | mpmath, last alone, s |", end=" ")
    print("mpmath, all, s | ours, all, ms | per eigenvalue | all : all | one : all |", end=" ")
    print("largest difference |")
    print("| --- " * 12 + "|")
    for row in rows:
        s = row["seconds"]
        cells = [
            row["dim"],
            f"0 to {row['degree']}",
            f"10^{row['log10']:.1f}",
            row["digits"],
            row["nodes"],
            f"{s['one'].min():.3g}",
            f"{s['whole'].min():.3g}",
            f"{1e3 * s['ours'].min():.2f}",
            banded(row["per eigenvalue"], "{:.0f}"),
            banded(row["spectrum"], "{:.0f}"),
            banded(row["one each"], "{:.0f}"),
            f"{row['difference']:.0e}",
        ]
        print("|", " | ".join(map(str, cells)), "|")
    mean, each = swept(rows, seconds, dims)
    print(f"\ndim {dims[0]} to {dims[-1]}, degrees 0 to {DEGREES}, per dimension: mpmath", end=" ")
    print(f"{mean:.3g} s (from those above), ours {1e3 * each:.2f} ms, {mean / each:.0f} times")


def swept(rows, seconds, dims):
    """Seconds per dimension of the sweep: mpmath's by interpolation in dim, and ours."""
    few = {row["dim"]: row["seconds"]["whole"].min() for row in rows if row["degree"] == DEGREES}
    return np.interp(dims, list(few), list(few.values())).mean(), seconds[SWEEP].min() / len(dims)


def print_growth(growth):
    print(f"\ngrowth with the highest degree, dim {DIM}")
    for name, (k, s) in growth.items():
        shown = ", ".join(f"{a:.0f}: {1e3 * b:.2f}" for a, b in zip(k, s, strict=True))
        print(f"  {name} (ms): {shown}")
    for what, exponent in exponents(growth):
        print(f"  exponent, {what}: {exponent:.2f}")


def draw(path, growth, rows):
    """Time against the highest degree, as SVG and PNG; ``rows`` give mpmath's points."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams |= {"axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none"}
    figure, axes = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
    for (name, (k, s)), color, marker in zip(growth.items(), ("C0", "C2"), "os", strict=True):
        label = f"kernelcore, {name}: slope {power_slope(k, s):.2f}"
        axes.plot(k, 1e3 * s, color=color, marker=marker, lw=1.2, label=label)
    here = [row for row in rows if row["dim"] == DIM]
    for i, row in enumerate(here):
        ms = 1e3 * row["seconds"]["whole"].min()
        label = None if i else f"mpmath, {', '.join(str(r['digits']) for r in here)} digits"
        axes.plot(row["degree"], ms, "D", color="C3", label=label)
        style = {"textcoords": "offset points", "va": "center", "color": "C3", "fontsize": 9}
        axes.annotate(f"{row['spectrum'][0]:.0f} times", (row["degree"], ms), (8, 0), **style)
    k, s = growth[COLD]
    line = np.array([k[0], k[-1]])
    axes.plot(line, 1.5e3 * s[0] * (line / k[0]) ** 2, label="slope 2", **DOTTED)
    axes.set(xscale="log", yscale="log", title=f"NTK of {HIDDEN} hidden layers, dim {DIM}")
    axes.set(xlabel="highest degree of the spectrum", ylabel="time of all degrees (ms)")
    ticks = sorted({*k, *(row["degree"] for row in here)} - {125.0})
    axes.set_xticks(ticks, [f"{x:.0f}" for x in ticks])
    axes.xaxis.minorticks_off()
    axes.grid(alpha=0.25)
    axes.legend(fontsize=9, frameon=False, loc="upper left")
    axes.set_ylim(top=30 * axes.get_ylim()[1])
    for suffix in (".svg", ".png"):
        figure.savefig(path.with_suffix(suffix), dpi=150)
    plt.close(figure)


def targets(seconds, rows, growth, dims):
    """(what, value or None, sign, bound) for each promise about spectra."""
    one = f"ms, degrees 0 to {DEGREE} of dim {DIM}, cold"
    sweep = f"s, degrees 0 to {DEGREES} of dim {dims[0]} to {dims[-1]}, cold"
    result = [(one, 1e3 * seconds[COLD].min(), "<", 50), (sweep, seconds[SWEEP].min(), "<", 5)]
    cases = {(row["dim"], row["degree"]): row for row in rows}
    whole = cases[DIM, DEGREE]["spectrum"][0] if (DIM, DEGREE) in cases else None
    mean, each = swept(rows, seconds, dims) if rows else (None, None)
    result.append((f"times mpmath, degrees 0 to {DEGREE} of dim {DIM}", whole, ">=", 1000))
    times = mean / each if rows else None
    result.append((f"times mpmath, dim {dims[0]} to {dims[-1]}", times, ">=", 1000))
    for dim, degree, _ in CASES:
        what = f"times mpmath per eigenvalue, dim {dim}, degree {degree}"
        row = cases.get((dim, degree))
        result.append((what, row and row["per eigenvalue"][0], ">=", 1000))
    off = max((row["difference"] for row in rows), default=None)
    result.append(("largest relative difference from mpmath", off, "<=", AGREE))
    return [*result, *((f"exponent of {a}", b, "<=", 2) for a, b in exponents(growth))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="interleaved rounds, even (10; quick: 2)")
    parser.add_argument("--quick", action="store_true", help="small sizes, no verdicts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save all round times")
    parser.add_argument("--figure", type=Path, metavar="FILE.svg", help="growth, SVG and PNG")
    options = parser.parse_args()
    quick = options.quick
    rounds = options.rounds or (2 if quick else 10)
    if rounds < 2 or rounds % 2:
        parser.error(f"--rounds must be even and positive: {rounds}")

    facts = machine()
    for key, value in facts.items():
        print(f"{key + ':':24} {value}")
    first = first_call(rounds)
    warm, cold, sweep = calls(caches())
    dims = DIMS[:99] if quick else DIMS
    makers = {COLD: cold(DIM, DEGREE), WARM: warm(DIM, DEGREE), SWEEP: sweep(dims)}
    seconds = interleave({name: partial(clock, call) for name, call in makers.items()}, rounds)
    print("growth ...", file=sys.stderr, flush=True)
    growth = measure_growth(GROWTH[:4] if quick else GROWTH, warm, cold, rounds)
    rows = []
    if by_mpmath.mpmath:
        cases = CASES[:-1] if quick else CASES
        rows = [against_mpmath(case, cold, 2) for case in cases]  # seconds each: two rounds

    print_ours(seconds, first, dims)
    if rows:
        print_rows(rows, seconds, dims)
    else:
        print("\nmpmath: not run, it is not installed")
    print_growth(growth)
    if options.figure:
        draw(options.figure, growth, rows)
    print("\ntargets, which hold for the full run" if quick else "\ntargets")
    verdicts = judge(targets(seconds, rows, growth, dims), judged=not quick)
    if options.json:
        record = {"machine": facts, "seconds": seconds, "first call": first, "mpmath": rows}
        save(options.json, record | {"growth": growth, "targets": verdicts})
    sys.exit(missed(verdicts))


if __name__ == "__main__":
    main()
