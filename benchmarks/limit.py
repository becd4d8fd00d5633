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

# Read off `relu_three` and `relu_step` (spatial.h), `near_kappas` (duals/kink.h) and `short_ratios`
# (coefficients.h). Loads, stores, comparisons and blends are not counted; a root and a quotient
# count once, as roots.
#
#                            NNGP                                  the NTK also
#   sums over rows, columns  2 + 2 additions                       2 + 2 additions
#   norms from the tables    2 multiplications
#   u, 1 - |u|, 1 - delta    1 multiplication, 2 additions
#   kappa1                   1 root, 1 multiplication, 1 FMA, R
#   kappa0                                                         1 multiplication, 1 addition, P
#   back to K; T             1 multiplication                      1 multiplication, 1 FMA
#
# P, R and, in float64, the D below both are Horner schemes: an FMA per coefficient but the first,
# and beyond eight coefficients a square. In float64 the root is divided by D.
HORNER = {"float32": (7, 6), "float64": (9, 8, 7)}  # coefficients of P, R and D
OPERATIONS = {
    ("nngp", "float32"): {"additions": 6, "multiplications": 5, "FMAs": 6, "roots": 1},
    ("ntk", "float32"): {"additions": 11, "multiplications": 7, "FMAs": 13, "roots": 1},
    ("nngp", "float64"): {"additions": 6, "multiplications": 5, "FMAs": 14, "roots": 2},
    ("ntk", "float64"): {"additions": 11, "multiplications": 8, "FMAs": 23, "roots": 2},
}


def check_operations():
    """The counts above, against the coefficients in the headers."""
    text = (Path(kc.get_include()) / "kernelcore" / "coefficients.h").read_text()
    schemes = re.findall(r"horner\(x, ([^)]*)\)", text[text.index("short_ratios(V x)") :])
    found = tuple(len(scheme.split(",")) for scheme in schemes)
    known = HORNER["float32"] + HORNER["float64"]
    assert found == known, f"short_ratios has {found} coefficients, not {known}"
    for (kernel, dtype), counts in OPERATIONS.items():
        p, *others = (n - 1 for n in HORNER[dtype])
        fmas = sum(others) + 1 + (p + 1 if kernel == "ntk" else 0)
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
