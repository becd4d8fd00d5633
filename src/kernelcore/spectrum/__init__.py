"""Spectra of kernels: on the sphere, on the hypercube, of Gram matrices.

Spectrum -- levels, eigenvalues, multiplicities, what theory needs of them
  sphere, hypercube, cyclic, spiked     a kernel's, with respect to a uniform measure
  gram                                  of a matrix
"""

from ._gram import GramSpectrum, gram
from ._levels import Spectrum

__all__ = ["GramSpectrum", "Spectrum", "gram"]
