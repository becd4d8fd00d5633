"""The same spectra by mpmath, at the precision that their smallest eigenvalue needs."""

import sys
import time
from pathlib import Path

import numpy as np

try:
    import mpmath
    from mpmath import mp
except ImportError:
    mpmath = None

GUARD = 15  # digits beyond those of the smallest eigenvalue: ten wanted, five for rounding


def digits(log_mu):
    """Decimal digits at which a quadrature still knows exp(log_mu) to ten."""
    return int(np.ceil(-log_mu / np.log(10))) + GUARD


def backend():
    """What mpmath computes with: Python's integers, or gmpy2."""
    return f"mpmath {mpmath.__version__}, backend {mpmath.libmp.BACKEND}"


def ntk(points, hidden):
    """The NTK of ReLU layers at the nodes: Cho and Saul's recursion, as the tests have it."""
    nngp = ntk = points.t
    for _ in range(hidden):
        k0, nngp = points.kappas(nngp)
        ntk = ntk * k0 + nngp
    return ntk


class Spectrum:
    """Eigenvalues of the NTK of ``hidden`` layers by the quadrature of the tests' oracle.

    The trapezoidal rule after a double exponential substitution, with nodes, kernel and Legendre
    polynomials shared by all degrees: the fastest way with mpmath that we know. ``step`` is close
    to the largest that has ten digits, so that no node is wasted.
    """

    def __init__(self, hidden, dim, degree, digits, step):
        self.hidden, self.dim, self.degree, self.digits = hidden, dim, degree, digits
        self.step = step
        self.nodes, self.logs = 0, {}

    def seconds(self, degrees):
        """Time these degrees, nodes and kernel included; keeps the logarithms."""
        sys.path.append(str(Path(__file__).parents[1] / "tests"))
        from oracle.make_spectra import Points

        sys.path.pop()
        with mp.workdps(self.digits):
            start = time.perf_counter()
            points = Points(self.dim, self.step, 0)
            table = points.spectrum({"": ntk(points, self.hidden)}, self.dim, degrees)
            seconds = time.perf_counter() - start
            self.nodes = len(points.t)
            # Of the absolute value: with too few digits or nodes there may be a sign.
            self.logs |= {k: float(mp.log(abs(mu))) for (_, k), mu in table.items()}
        return seconds

    def one(self):
        """Seconds of the highest degree alone."""
        return self.seconds([self.degree])

    def whole(self):
        """Seconds of all degrees from 0."""
        return self.seconds(range(self.degree + 1))
