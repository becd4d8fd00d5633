"""Spectra of kernels: on the sphere, on the hypercube, of Gram matrices.

    Spectrum -- levels, eigenvalues, multiplicities, what theory needs of them
      sphere, hypercube, cyclic, spiked     a kernel's, with respect to a uniform measure
      empirical                             of a matrix

All are with respect to probability measures: eigenvalues of ``k(X)/n`` tend to them.
"""

from ._cyclic import CyclicSpectrum, cyclic
from ._gram import GramSpectrum, empirical
from ._harmonics import RandomFunction, degree_power, legendre, projection
from ._hypercube import HypercubeSpectrum, hypercube
from ._levels import Spectrum
from ._sphere import Decay, SphereSpectrum, log_multiplicities, multiplicity, sphere
from ._spiked import SpikedSpectrum, spiked

__all__ = [
    "CyclicSpectrum", "Decay", "GramSpectrum", "HypercubeSpectrum", "RandomFunction", "Spectrum",
    "SphereSpectrum", "SpikedSpectrum", "cyclic", "degree_power", "empirical", "hypercube",
    "legendre", "log_multiplicities", "multiplicity", "projection", "sphere", "spiked",
]  # fmt: skip

gram = empirical  # as it was called before there were other Gram matrices to speak of
