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

# Read off `sum_three` and `relu_cell` (host/spatial.h), `relu_step` (spatial.h) behind the first
# ReLU, `acute_kappas` (duals/kink.h) and `acute_ratios` (coefficients.h). Loads, stores,
# comparisons and blends are not counted; a root and a quotient count once, as roots.
#
#                            NNGP                                  the NTK also
#   sums over rows, columns  2 + 2 additions                       2 + 2 additions
#   norms from the tables    2 multiplications
#   1 - u                    1 FMA
#   kappa1                   1 root, 1 FMA, R
#   kappa0                                                         1 FMA, P
#   back to K; T             1 multiplication, 1 FMA               1 FMA
#
# P, R and, in float64, the D below both are Horner schemes: an FMA per coefficient but the first.
# In float64 the root is divided by D.
HORNER = {"float32": (7, 6), "float64": (7, 7, 7)}  # coefficients of P, R and D
OPERATIONS = {
    ("nngp", "float32"): {"additions": 4, "multiplications": 3, "FMAs": 8, "roots": 1},
    ("ntk", "float32"): {"additions": 8, "multiplications": 3, "FMAs": 16, "roots": 1},
    ("nngp", "float64"): {"additions": 4, "multiplications": 3, "FMAs": 15, "roots": 2},
    ("ntk", "float64"): {"additions": 8, "multiplications": 3, "FMAs": 23, "roots": 2},
}


def check_operations():
    """The counts above, against the coefficients in the headers."""
    text = (Path(kc.get_include()) / "kernelcore" / "coefficients.h").read_text()
    schemes = re.findall(r"horner\(x, ([^)]*)\)", text[text.index("acute_ratios(V x)") :])
    found = tuple(len(scheme.split(",")) for scheme in schemes)
    known = HORNER["float32"] + HORNER["float64"]
    assert found == known, f"acute_ratios has {found} coefficients, not {known}"
    for (kernel, dtype), counts in OPERATIONS.items():
        p, *others = (n - 1 for n in HORNER[dtype])
        fmas = sum(others) + 3 + (p + 2 if kernel == "ntk" else 0)
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
            flags += {"v3": ["-mavx2", "-mfma"], "v4": ["-mavx512f"]}.get(kc.info()["level"], [])
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
