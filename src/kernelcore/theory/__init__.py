"""Predictions from a spectrum: learning curves, dimensions, sample sizes, approximation.

    modes                 the self-consistent equation, and everything that follows from it
      learning_curve, random_features_curve     its test error
    subset_curve          the same on the rest of a sample, from its Gram matrix
    gradient_flow_curve   the same with complex ridges, and back by Laplace inversion
    staircase, sample_complexity, spiked_dimension     asymptotics in high dimension
    effective_dimension, degrees_of_freedom            of a spectrum at a ridge
    approximation, approximation_rate                  by a ball of the RKHS
    kernel_complexity, network_complexity              norms, bounds and margins of a fit
    convergence           how fast training with a Gram matrix converges

Everywhere ``spectrum`` is a ``Spectrum``, or an array of eigenvalues with respect to a probability
measure, each of multiplicity one; and ``target_power`` is the power of the target on each level,
all eigenfunctions of the level together, so that it sums to the mean square of the target. One more
entry is the power on all levels that the spectrum does not list, which is never learned; a level
whose eigenvalue is not resolved counts as not listed.
"""

from ._approximation import Approximation, Rate, approximation, approximation_rate
from ._complexity import (
    KernelComplexity,
    NetworkComplexity,
    kernel_complexity,
    network_complexity,
)
from ._convergence import Convergence, convergence
from ._curves import Modes, learning_curve, modes, random_features_curve
from ._dimensions import degrees_of_freedom, effective_dimension, spiked_dimension
from ._flow import gradient_flow_curve
from ._samples import SampleSizes, sample_complexity, staircase
from ._subsets import subset_curve

__all__ = [
    "Approximation", "Convergence", "KernelComplexity", "Modes", "NetworkComplexity", "Rate",
    "SampleSizes", "approximation", "approximation_rate", "convergence", "degrees_of_freedom",
    "effective_dimension", "gradient_flow_curve", "kernel_complexity", "learning_curve", "modes",
    "network_complexity", "random_features_curve", "sample_complexity", "spiked_dimension",
    "staircase", "subset_curve",
]  # fmt: skip
