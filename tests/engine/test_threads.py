"""How many threads the compiled work runs on, counted by the operating system."""

import os
import pathlib
import subprocess
import sys

import pytest

import kernelcore as kc

TASKS = pathlib.Path("/proc/self/task")
SCRIPT = """
import os, sys
import numpy as np
import kernelcore as kc

def threads():
    return len(os.listdir("/proc/self/task")) - before + 1

x = np.random.default_rng(0).standard_normal((200, 16))
kernel, shape = {
    "rows": (kc.presets.mlp(1).ntk, (200, 16)),
    "images": (kc.presets.cntk(2).ntk, (200, 4, 4, 1)),
    "cyclic": (kc.CyclicConvolution(3, 2, [0.0, 0.5, 0.5]), (200, 16)),
}[sys.argv[1]]
x = x.reshape(shape)
before = len(os.listdir("/proc/self/task"))
kernel(x, n_threads=1)
print(threads())
kernel(x)                  # KERNELCORE_NUM_THREADS, which is 2
print(threads())
kc.set_threads(3)
kernel(x)
print(threads())
kernel(x, n_threads=4)
print(threads())
"""


@pytest.mark.skipif(not TASKS.is_dir(), reason="threads are counted in /proc")
@pytest.mark.skipif(kc.info()["openmp"] != "yes", reason="built for one thread")
@pytest.mark.parametrize("driver", ["rows", "images", "cyclic"])
def test_the_threads_asked_for_are_the_threads_used(driver):
    # OpenMP keeps its threads between calls, so their number after a call is that of the call as
    # long as it grows. BLAS starts its own when it is loaded, or not at all.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")} | {
        "OPENBLAS_NUM_THREADS": "1",
        "KERNELCORE_NUM_THREADS": "2",
        "PYTHONPATH": str(pathlib.Path(kc.__file__).parents[1]),
    }
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, driver],
        env=environment, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert run.stdout.split() == ["1", "2", "3", "4"]
