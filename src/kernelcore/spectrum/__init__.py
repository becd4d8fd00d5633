"""Spectra of kernels: on the sphere, on the hypercube, of Gram matrices.

    Spectrum -- levels, eigenvalues, multiplicities, what theory needs of them
      sphere, hypercube, cyclic, spiked     a kernel's, with respect to a uniform measure
      gram                                  of a matrix
"""

from ._harmonics import RandomFunction, degree_power, legendre
from ._levels import Spectrum
from ._sphere import Decay, SphereSpectrum, log_multiplicities, multiplicity, sphere

__all__ = [
    "Decay", "RandomFunction", "SphereSpectrum", "Spectrum", "degree_power", "legendre",
    "log_multiplicities", "multiplicity", "sphere",
]  # fmt: skip
