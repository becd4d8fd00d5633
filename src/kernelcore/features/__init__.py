"""Random features: finite maps whose inner products tend to a kernel.

    FourierFeatures       Gaussian, Laplacian, Cauchy and Matern kernels
    NetworkFeatures       hidden units of a random network with any activation
      ArcCosineFeatures   rectified powers of the raw inputs
    TangentFeatures       gradients of a two-layer network at initialisation
    ConvolutionalFeatures any of these for every patch of a cyclic signal, pooled
    SampledFeatures       hidden units or sketched gradients of any network, of images, too
    FrozenFeatures        the same of a network that is given, such as a trained one
    PatchFeatures         whitened patches of images as filters
    ridge_features        ridge regression on features, streamed
    feature_error         how far the features are from the kernel, measured and by theory

The transformers follow scikit-learn (``fit``, ``transform``, ``get_params``) and do not need it.
With N features the error falls as ``N^(-1/2)``.
"""

from ._convolution import ConvolutionalFeatures
from ._density import SpectralDensity
from ._error import FeatureError, feature_error
from ._fourier import FourierFeatures
from ._network import ArcCosineFeatures, NetworkFeatures
from ._patches import PatchFeatures
from ._ridge import FeatureRidge, ridge_features
from ._sampled import FrozenFeatures, SampledFeatures
from ._tangent import TangentFeatures
from ._transformer import Transformer

__all__ = [
    "ArcCosineFeatures", "ConvolutionalFeatures", "FeatureError", "FeatureRidge",
    "FourierFeatures", "FrozenFeatures", "NetworkFeatures", "PatchFeatures", "SampledFeatures",
    "SpectralDensity", "TangentFeatures", "Transformer", "feature_error", "ridge_features",
]  # fmt: skip
