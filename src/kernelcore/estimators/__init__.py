"""Estimators with scikit-learn's interface: fit, predict, clone, pipelines, grid search.

    KernelRegressor      kernel ridge regression; the ridge is given, or chosen by leave-one-out
    KernelClassifier     the same on codes of the classes, with probabilities
    GaussianProcess      mean, deviation, samples, likelihood; ensembles of trained networks
    KernelSmoother       Nadaraya-Watson regression: local averages
    KernelPCA            principal components in the RKHS
    SpectralEmbedding    Laplacian eigenmaps and diffusion maps
    KernelKMeans         clusters around means in the RKHS
    SpectralClustering   clusters of a graph of affinities

They are public in ``kernelcore`` itself and need scikit-learn, the extra ``kernelcore[sklearn]``.
"""

from ._classifier import KernelClassifier
from ._clusters import KernelKMeans, SpectralClustering
from ._embedding import KernelPCA, SpectralEmbedding
from ._process import GaussianProcess
from ._regressor import KernelRegressor
from ._smoother import KernelSmoother

__all__ = [
    "GaussianProcess", "KernelClassifier", "KernelKMeans", "KernelPCA", "KernelRegressor",
    "KernelSmoother", "SpectralClustering", "SpectralEmbedding",
]  # fmt: skip
