"""The table of the dense engine: the NTK of 3 hidden ReLU layers against neural-tangents and
against the limit of the machine, in one run. See README.md for what each number means.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

# Two CPUs for everybody, before any thread pool counts them.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])

import numpy as np
from peer import VARIABLE, Peer, PeerError
from probe import CALLS, network, points

import kernelcore as kc

PROBE = Path(__file__).with_name("probe.py")
N, DIMS = 3000, (784, 16)
COUNTED = 960  # rows and columns under callgrind, which is some 50 times slower
SETTLE = 0.1  # seconds: thread pools of the last contender stop spinning (OpenBLAS: 30 ms)
AGREE = 1e-4  # relative; beside the diagonal neural-tangents itself is off by 3e-4 in float32
MB = 1e6


def clock(call, repeats=2):
    """Seconds of the faster of back-to-back calls; the first one wakes the threads."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def interleave(contenders, rounds, settle=SETTLE):
    """Seconds per round of each contender, a function that returns its own seconds.

    Every second round goes backwards, so that a drift of the machine hits all alike.
    """
    seconds = {name: [] for name in contenders}
    for measure in contenders.values():
        measure()
    for r in range(rounds):
        for name in list(contenders)[:: -1 if r % 2 else 1]:
            time.sleep(settle)
            seconds[name].append(contenders[name]())
    return {name: np.array(s) for name, s in seconds.items()}


def disagreement(ours, peer):
    """Largest relative difference over 1000 entries off the diagonal, and of the sum."""
    i, j = np.random.default_rng(1).integers(len(ours), size=(2, 1000))
    i, j = i[i != j], j[i != j]
    entries, total = peer.values(i, j)
    differences = np.append(ours[i, j] / entries - 1, ours.sum(dtype=np.float64) / total - 1)
    return float(abs(differences).max())


def compare(n, d, rounds, peer):
    """Round times of one row of the table, with the check that both compute the same kernel."""
    x, ntk = points(n, d), network(3).ntk
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
        "1 hidden, block": partial(network(1).ntk, x[:half], x[-half:], **rectangle),
    }
    contenders = {name: partial(clock, call) for name, call in contenders.items()}
    row = {"n": n, "d": d, "disagreement": None}
    if peer:
        with tempfile.TemporaryDirectory() as directory:
            np.save(path := Path(directory) / "x.npy", x)
            row["peer"] = peer.setup(path, depth=3)
        row["disagreement"] = disagreement(ntk(x, n_threads=2), peer)
        if not row["disagreement"] <= AGREE:
            sys.exit(f"not the same kernel at d = {d}: relative {row['disagreement']:.1e}")
        contenders["neural-tangents"] = lambda: min(peer.run(calls=2))
    row["seconds"] = interleave(contenders, rounds)
    return row


def ratio(a, b):
    """Minimum over minimum, and the quartiles of the ratios of each round."""
    return a.min() / b.min(), *np.quantile(a / b, [0.25, 0.75])


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


def peak_memory(n, d):
    """Bytes beyond the result; None where the system does not tell."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    command = [sys.executable, PROBE, "memory", str(n), str(d)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def import_seconds(rounds):
    """Seconds of a process that imports NumPy and kernelcore, beyond one that imports NumPy."""
    codes = {"numpy": "import numpy", "both": "import numpy, kernelcore"}
    call = {k: partial(subprocess.run, [sys.executable, "-c", c]) for k, c in codes.items()}
    s = interleave({k: partial(clock, c, repeats=1) for k, c in call.items()}, rounds, settle=0)
    return s["both"].min() - s["numpy"].min()


def instructions(depth):
    """Instructions of the calls of ``probe.py work``, with the start of Python (callgrind)."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable]
    command += [PROBE, "work", str(depth), str(COUNTED), "16"]
    env = os.environ | {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(command, check=False, capture_output=True, text=True, env=env)
    if run.returncode:
        reason = re.search(r"unhandled instruction bytes.*", run.stderr)
        raise RuntimeError(reason[0] if reason else run.stderr.strip().splitlines()[-1])
    return int(re.search(r"Collected : (\d+)", run.stderr)[1])


def instructions_per_layer():
    """Instructions per entry and hidden layer, or the reason why they were not counted."""
    if not shutil.which("valgrind"):
        return "not counted: valgrind is not installed"
    try:
        return (instructions(3) - instructions(1)) / (2 * CALLS * COUNTED**2)
    except RuntimeError as error:
        return f"not counted: {error}"


def machine():
    """Facts without which the times mean nothing."""
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpuinfo.read_text() if cpuinfo.exists() else "")
    facts = {
        "processor": model[1] if model else platform.processor(),
        "CPUs used": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else "all",
        "load average": "{:.2f} {:.2f} {:.2f}".format(*os.getloadavg()),
        "Python": platform.python_version(),
        "NumPy": np.__version__,
    }
    return facts | {f"kernelcore {key}": value for key, value in kc.info().items()}


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


def met(value, sign, bound):
    return {">=": value >= bound, "<=": value <= bound, "<": value < bound}[sign]


def banded(values, form):
    return "not run" if values is None else "{} [{}, {}]".format(*(form.format(v) for v in values))


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
    memory = [peak_memory(options.n, d) for d in DIMS]
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
    verdicts = []
    print("\ntargets" if judged else f"\ntargets, which hold for n = {N}")
    for what, value, sign, bound in targets(rows, memory, seconds):
        verdict = "met" if value is not None and met(value, sign, bound) else "MISSED"
        if value is None or not judged:
            verdict = "not run" if value is None else "not judged"
        verdicts.append({"target": what, "value": value, "bound": f"{sign} {bound}", "is": verdict})
        shown = "" if value is None else f"{value:.3g}"
        print(f"  {verdict:10} {shown:>7} {sign} {bound:<5} {what}")

    if options.json:
        record = {"machine": facts, "rows": rows, "memory": memory, "import seconds": seconds}
        record |= {"instructions": counted, "targets": verdicts}
        text = json.dumps(record, indent=1, default=lambda v: getattr(v, "tolist", v.__str__)())
        options.json.write_text(text + "\n")
    missed = [v["target"] for v in verdicts if v["is"] == "MISSED"]
    if missed:
        sys.exit("missed: " + "; ".join(missed))


if __name__ == "__main__":
    main()
