"""The limit of the convolutional engine: the operations of one entry in one layer, over the rate
of vector multiply-adds that the machine reaches in the same run.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
from pairs import THREADS

import kernelcore as kc

# Read off `relu_three` and `relu_step` (spatial.h), `near_kappas` (duals/kink.h), the polynomials
# (coefficients.h). Loads, stores, comparisons and blends are not counted, a root counts once.
#
#                            NNGP                                  the NTK also
#   sums over rows, columns  2 + 2 additions                       2 + 2 additions
#   norms from the tables    2 multiplications
#   u, 1 - |u|, 1 - delta    1 multiplication, 2 additions
#   kappa1                   1 root, 1 multiplication, 1 FMA, R
#   kappa0                                                         1 multiplication, 1 addition, P
#   back to K; T             1 multiplication                      2 multiplications, 1 FMA
#
# P and R, arccos_ratio and kappa1_ratio, are Horner schemes: one FMA per coefficient but the first.
HORNER = {"float32": {"arccos_ratio": 8, "kappa1_ratio": 7},
          "float64": {"arccos_ratio": 19, "kappa1_ratio": 17}}  # fmt: skip
OPERATIONS = {
    ("nngp", "float32"): {"additions": 6, "multiplications": 5, "FMAs": 7, "root": 1},
    ("ntk", "float32"): {"additions": 11, "multiplications": 8, "FMAs": 15, "root": 1},
    ("nngp", "float64"): {"additions": 6, "multiplications": 5, "FMAs": 17, "root": 1},
    ("ntk", "float64"): {"additions": 11, "multiplications": 8, "FMAs": 36, "root": 1},
}


def check_operations():
    """The counts above, against the coefficients in the headers."""
    text = (Path(kc.get_include()) / "kernelcore" / "coefficients.h").read_text()
    for name in ("arccos_ratio", "kappa1_ratio"):
        body = text[text.index(f"KC_HD V {name}(") :]
        single, double = re.findall(r"horner\(x, ([^)]*)\)", body)[:2]
        for dtype, numbers in (("float32", single), ("float64", double)):
            found, known = len(numbers.split(",")), HORNER[dtype][name]
            assert found == known, f"{name} has {found} coefficients in {dtype}, not {known}"
    for (kernel, dtype), counts in OPERATIONS.items():
        p, r = HORNER[dtype]["arccos_ratio"] - 1, HORNER[dtype]["kappa1_ratio"] - 1
        fmas = r + 1 if kernel == "nngp" else r + p + 2
        assert counts["FMAs"] == fmas, (kernel, dtype, fmas)


def operations(kernel, dtype="float32"):
    """All of them, and multiplications and FMAs alone, for machines with adders of their own."""
    counts = OPERATIONS[kernel, dtype]
    return sum(counts.values()), counts["multiplications"] + counts["FMAs"]


class MultiplyAdds:
    """A contender that measures vector multiply-adds per second and core (fma_rate.c)."""

    def __init__(self, directory, seconds):
        self.rates, self.bytes = [], None
        self.command = [str(Path(directory) / "fma_rate"), str(THREADS), str(seconds)]
        compiler = shutil.which(os.environ.get("CC", "cc"))
        self.compiled = compiler is not None
        if self.compiled:
            flags = ["-O2", "-ffp-contract=fast", "-pthread"]
            flags += ["-mavx2", "-mfma"] if kc.info()["level"] == "v3" else []
            source = str(Path(__file__).with_name("fma_rate.c"))
            subprocess.run([compiler, *flags, source, "-o", self.command[0]], check=True)

    def __call__(self):
        run = subprocess.run(self.command, check=True, capture_output=True, text=True)
        width, rate = run.stdout.split()
        self.bytes = int(width)
        self.rates.append(float(rate))
        return 1 / self.rates[-1]

    def nanoseconds(self, kernel, dtype="float32"):
        """Of one core per entry and layer, for both counts of `operations`."""
        lanes = self.bytes // np.dtype(dtype).itemsize
        return [1e9 * n / (lanes * max(self.rates)) for n in operations(kernel, dtype)]
