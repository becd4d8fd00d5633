"""Kernels that adapt to what they predict, with scikit-learn's interface.

    RecursiveFeatureMachine       ridge regression in a metric learned from its own derivatives
    RecursiveFeatureClassifier    the same on codes of the classes, with probabilities

They are public in ``kernelcore`` itself and need scikit-learn, the extra ``kernelcore[sklearn]``.
"""

from ._machine import RecursiveFeatureClassifier, RecursiveFeatureMachine

__all__ = ["RecursiveFeatureClassifier", "RecursiveFeatureMachine"]
