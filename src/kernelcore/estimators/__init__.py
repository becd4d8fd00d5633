"""Estimators with scikit-learn's interface: fit, predict, clone, pipelines, grid search.

    KernelRegressor      kernel ridge regression; the ridge is given, or chosen by leave-one-out
    KernelClassifier     the same on codes of the classes, with probabilities
    GaussianProcess      mean, deviation, samples, likelihood; ensembles of trained networks
    KernelSmoother       Nadaraya-Watson regression: local averages
    KernelPCA            principal components in the RKHS
    SpectralEmbedding    Laplacian eigenmaps and diffusion maps
    KernelKMeans         clusters around means in the RKHS
    SpectralClustering   clusters of a graph of affinities

and for networks of finite width, three ways to fit each of them:

    RandomFeatureRegressor, RandomFeatureClassifier    ridge on features, all else frozen
    TangentRegressor, TangentClassifier                ridge on gradients at theta_0
    NetworkRegressor, NetworkClassifier                descent on all layers, or some

They are public in ``kernelcore`` itself and need scikit-learn, the extra ``kernelcore[sklearn]``.
"""

from ._classifier import KernelClassifier
from ._clusters import KernelKMeans, SpectralClustering
from ._embedding import KernelPCA, SpectralEmbedding
from ._features import RandomFeatureClassifier, RandomFeatureRegressor
from ._network import NetworkClassifier, NetworkRegressor
from ._process import GaussianProcess
from ._regressor import KernelRegressor
from ._smoother import KernelSmoother
from ._tangent import TangentClassifier, TangentRegressor

__all__ = [
    "GaussianProcess", "KernelClassifier", "KernelKMeans", "KernelPCA", "KernelRegressor",
    "KernelSmoother", "NetworkClassifier", "NetworkRegressor", "RandomFeatureClassifier",
    "RandomFeatureRegressor", "SpectralClustering", "SpectralEmbedding", "TangentClassifier",
    "TangentRegressor",
]  # fmt: skip
