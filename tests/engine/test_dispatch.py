"""Which CPU level runs."""

import os
import pathlib
import subprocess
import sys

import kernelcore as kc


def test_cpu_level_of_the_environment_at_first_use():
    environment = os.environ | {
        "KERNELCORE_CPU_LEVEL": "v9",
        "PYTHONPATH": str(pathlib.Path(kc.__file__).parents[1]),
    }
    run = subprocess.run(
        [sys.executable, "-m", "kernelcore.cli", "info"],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert run.returncode == 1
    assert run.stderr.startswith("kernelcore: KERNELCORE_CPU_LEVEL must be one of ")
    assert run.stdout == ""
