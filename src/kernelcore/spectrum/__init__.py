"""Spectra of kernels: on the sphere, on the hypercube, of Gram matrices.

    Spectrum      levels with eigenvalues and multiplicities, as theory needs them
      sphere, hypercube, cyclic, spiked     make that of a kernel under a uniform measure
      empirical                             makes that of a matrix

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

gram = empirical  # its name in earlier versions
