"""What the tables share: interleaved rounds, ratios with their spread, targets and verdicts.

Import it before NumPy: it takes two CPUs for everybody, before any thread pool counts them.
"""

import json
import os
import platform
import re
import time
from pathlib import Path

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])

import numpy as np

import kernelcore as kc

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


def interleave(contenders, rounds, settle=SETTLE, warm=True):
    """Seconds per round of each contender, a function that returns its own seconds.

    Every second round goes backwards, so that a drift of the machine hits all alike.
    """
    seconds = {name: [] for name in contenders}
    for measure in contenders.values() if warm else ():
        measure()
    for r in range(rounds):
        for name in list(contenders)[:: -1 if r % 2 else 1]:
            time.sleep(settle)
            seconds[name].append(contenders[name]())
    return {name: np.array(s) for name, s in seconds.items()}


def ratio(a, b):
    """Minimum over minimum, and the quartiles of the ratios of each round."""
    return a.min() / b.min(), *np.quantile(a / b, [0.25, 0.75])


def banded(values, form):
    return "not run" if values is None else "{} [{}, {}]".format(*(form.format(v) for v in values))


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


def met(value, sign, bound):
    return {">=": value >= bound, "<=": value <= bound, "<": value < bound}[sign]


def judge(targets, judged=True):
    """Print a verdict on each (what, value or None, sign, bound); the list of them."""
    verdicts = []
    for what, value, sign, bound in targets:
        verdict = "met" if value is not None and met(value, sign, bound) else "MISSED"
        if value is None or not judged:
            verdict = "not run" if value is None else "not judged"
        verdicts.append({"target": what, "value": value, "bound": f"{sign} {bound}", "is": verdict})
        shown = "" if value is None else f"{value:.3g}"
        print(f"  {verdict:10} {shown:>7} {sign} {bound:<5} {what}")
    return verdicts


def save(path, record):
    text = json.dumps(record, indent=1, default=lambda v: getattr(v, "tolist", v.__str__)())
    path.write_text(text + "\n")


def missed(verdicts):
    """The last line and status of a run, or None where nothing was missed."""
    names = [v["target"] for v in verdicts if v["is"] == "MISSED"]
    return "missed: " + "; ".join(names) if names else None
