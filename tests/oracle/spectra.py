"""Eigenvalues of kernels on spheres, as make_spectra.py found them."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

TABLE = Path(__file__).with_name("spectra.npz")


def table():
    """Arrays kernel, dim, degree, mantissa, exponent and log, one entry per eigenvalue.

    mu = mantissa 2^exponent to half an ulp, mantissa in [1, 2), or 0 for an eigenvalue that is 0 by
    symmetry. Many are below the smallest double; log is that of mu, -inf for 0.
    """
    with np.load(TABLE) as arrays:
        columns = SimpleNamespace(**arrays)
    with np.errstate(divide="ignore"):
        columns.log = np.log(columns.mantissa) + np.log(2) * columns.exponent
    return columns
