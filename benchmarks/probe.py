"""Networks by letters, and measurements of them in processes of their own.

``probe.py memory ..`` and ``probe.py work ..`` are those processes, which `peak_memory` and
`instructions` start.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import kernelcore as kc

LAYERS = {
    "d": kc.Dense(2**0.5),
    "c": kc.Conv(3, w_std=2**0.5),
    "r": kc.Relu(),
    "p": kc.AvgPool(2),
    "g": kc.GlobalAvgPool(),
    "f": kc.Flatten(),
    "o": kc.Dense(),
}


def network(letters):
    """The network that `peer.Worker.setup` builds too."""
    return kc.Sequential(*map(LAYERS.get, letters))


def points(n, *shape, dtype=np.float32):
    x = np.random.default_rng(0).standard_normal((n, *shape), dtype=np.float32)
    return x.astype(dtype, copy=False)


def resident(field):
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition(f"{field}:")[2].split()[0])


def peak_memory(letters, kernel, n, *shape):
    """Bytes of one symmetric call beyond its input and result; None where the system hides them."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    command = [sys.executable, __file__, "memory", letters, kernel, *map(str, (n, *shape))]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def memory(letters, kernel, n, *shape):
    kernel, x = getattr(network(letters), kernel), points(n, *shape)
    # Modules loaded, threads started; images so small that what the real ones need is yet to come.
    kernel(x[:64] if x.ndim == 2 else x[:2, :4, :4], n_threads=2)
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again from here
    before = resident("VmRSS")
    result = kernel(x, n_threads=2)
    print(resident("VmHWM") - before - result.nbytes)


def instructions(letters, less, calls, n, m, *shape):
    """Instructions per call of `work` that ``letters`` takes and ``less`` does not (callgrind).

    Raises RuntimeError where they cannot be counted.
    """
    if not shutil.which("valgrind"):
        raise RuntimeError("valgrind is not installed")
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    env = os.environ | {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    size = [str(k) for k in (calls, n, m, *shape)]
    runs = [
        subprocess.Popen(
            [*valgrind, sys.executable, __file__, "work", *networks, *size],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        for networks in ((letters, less), (less, letters))
    ]
    counts = []
    for run in runs:
        log = run.communicate()[1]
        if run.returncode:
            reason = re.search(r"unhandled instruction bytes.*", log)
            raise RuntimeError(reason[0] if reason else log.strip().splitlines()[-1])
        counts.append(int(re.search(r"Collected : (\d+)", log)[1]))
    return (counts[0] - counts[1]) / calls


def work(letters, other, calls, n, m, *shape):
    """NTK of n points against m others, ``calls`` times on one thread."""
    x, out = points(n + m, *shape), np.empty((n, m), np.float32)
    # All that is done once, and alike in the run whose count is subtracted.
    for each in [*sorted((letters, other)), *[letters] * calls]:
        network(each).ntk(x[:n], x[n:], out=out, n_threads=1)


if __name__ == "__main__":
    values = [int(a) if a.isdigit() else a for a in sys.argv[2:]]
    {"memory": memory, "work": work}[sys.argv[1]](*values)
