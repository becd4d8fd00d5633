"""One measurement in a process of its own: ``probe.py memory N D`` or ``probe.py work DEPTH N D``.

memory  prints the peak resident memory of one symmetric call beyond its result, in bytes
work    makes `CALLS` rectangular calls on one thread, for an instruction counter around it
"""

import sys
from pathlib import Path

import numpy as np

import kernelcore as kc

CALLS = 8


def network(depth):
    """``depth`` hidden ReLU layers, the network that `peer.Worker.setup` builds too."""
    return kc.Sequential(*[kc.Dense(2**0.5), kc.Relu()] * depth, kc.Dense())


def points(n, d):
    return np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)


def resident(field):
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition(f"{field}:")[2].split()[0])


def memory(n, d):
    ntk, x = network(3).ntk, points(n, d)
    ntk(x[:64], n_threads=2)  # modules loaded, threads started
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again from here
    before = resident("VmRSS")
    result = ntk(x, n_threads=2)
    print(resident("VmHWM") - before - result.nbytes)


def work(depth, n, d):
    ntk, x, y = network(depth).ntk, *np.split(points(2 * n, d), 2)
    out = np.empty((n, n), np.float32)
    for _ in range(CALLS):
        ntk(x, y, out=out, n_threads=1)


if __name__ == "__main__":
    {"memory": memory, "work": work}[sys.argv[1]](*map(int, sys.argv[2:]))
