"""Kernels and features that adapt to what they predict, with scikit-learn's interface.

    RecursiveFeatureMachine       ridge regression in a metric learned from its own derivatives
    RecursiveFeatureClassifier    the same on codes of the classes, with probabilities
    OneStepRegressor              a two-layer network after one gradient step, with a ridge

They are public in ``kernelcore`` itself and need scikit-learn, the extra ``kernelcore[sklearn]``.
"""

from ._machine import RecursiveFeatureClassifier, RecursiveFeatureMachine
from ._one_step import OneStepRegressor

__all__ = ["OneStepRegressor", "RecursiveFeatureClassifier", "RecursiveFeatureMachine"]
