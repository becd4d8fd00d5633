"""kernelcore: exact kernels of infinitely wide networks, fast.

    layers -> Sequential -> lowered to a program -> door: check, allocate -> compiled driver
                                                                              -> ext/include

>>> import kernelcore as kc
>>> net = kc.Sequential(kc.Dense(2**0.5), kc.Relu(), kc.Dense())
>>> K = net.ntk([[1.0, 2.0], [3.0, 4.0]])

``import kernelcore`` loads NumPy only; compiled modules and SciPy load on first use.
"""

import importlib as _importlib
import sys as _sys
import typing as _typing

from . import _check, kernels, presets
from ._info import get_include, info
from ._version import __version__
from .architecture import Kernels, Residual, Sequential
from .engine.memory import get_memory, set_memory
from .engine.threads import get_threads, set_threads
from .kernels import (
    ArcCosine,
    Averaged,
    Cauchy,
    CyclicConvolution,
    Flip,
    Gaussian,
    Kernel,
    Laplacian,
    Matern,
    Permutation,
    Polynomial,
    Shift,
)
from .layers import _layers, activations, maps, profiles
from .layers._layers import *
from .layers.activations import *
from .layers.maps import *

if _typing.TYPE_CHECKING:  # these load when they are first named, below
    from . import data, features, networks, solvers, spectrum, theory
    from .adaptive import OneStepRegressor as OneStepRegressor
    from .adaptive import RecursiveFeatureClassifier as RecursiveFeatureClassifier
    from .adaptive import RecursiveFeatureMachine as RecursiveFeatureMachine
    from .engine.devices import get_devices, set_devices
    from .estimators import GaussianProcess as GaussianProcess
    from .estimators import KernelClassifier as KernelClassifier
    from .estimators import KernelKMeans as KernelKMeans
    from .estimators import KernelPCA as KernelPCA
    from .estimators import KernelRegressor as KernelRegressor
    from .estimators import KernelSmoother as KernelSmoother
    from .estimators import NetworkClassifier as NetworkClassifier
    from .estimators import NetworkRegressor as NetworkRegressor
    from .estimators import RandomFeatureClassifier as RandomFeatureClassifier
    from .estimators import RandomFeatureRegressor as RandomFeatureRegressor
    from .estimators import SpectralClustering as SpectralClustering
    from .estimators import SpectralEmbedding as SpectralEmbedding
    from .estimators import TangentClassifier as TangentClassifier
    from .estimators import TangentRegressor as TangentRegressor
    from .scale.client import get_client, set_client
    from .scale.job import gram
    from .scale.operator import GramOperator
    from .scale.plan import plan
    from .scale.store import StoredGram

__all__ = [
    "ArcCosine", "Averaged", "Cauchy", "CyclicConvolution", "Diagnosis", "Flip", "Gaussian",
    "GramOperator", "Kernel", "Kernels", "Laplacian", "Matern", "Permutation", "Polynomial",
    "Residual", "Sequential", "Shift", "StoredGram", "__version__",
    "data", "diagnose", "experiments", "features", "get_client", "get_devices", "get_include",
    "get_memory", "get_threads", "gram", "info", "networks", "plan", "presets", "profiles",
    "report", "set_client", "set_devices", "set_memory", "set_threads", "solvers", "spectrum",
    "theory",
]  # fmt: skip
__all__ += _layers.__all__
__all__ += activations.__all__
__all__ += maps.__all__


_SCALE = {
    "GramOperator": "operator", "StoredGram": "store", "get_client": "client", "gram": "job",
    "plan": "plan", "set_client": "client",
}  # fmt: skip

# These are not in __all__, so that "from kernelcore import *" works without scikit-learn.
_ESTIMATORS = (
    "GaussianProcess", "KernelClassifier", "KernelKMeans", "KernelPCA", "KernelRegressor",
    "KernelSmoother", "NetworkClassifier", "NetworkRegressor", "RandomFeatureClassifier",
    "RandomFeatureRegressor", "SpectralClustering", "SpectralEmbedding", "TangentClassifier",
    "TangentRegressor",
)  # fmt: skip
_ADAPTIVE = ("OneStepRegressor", "RecursiveFeatureClassifier", "RecursiveFeatureMachine")


# Modules that have moved can still be imported under their former names, which old pickles contain.
for _former in (activations, maps, profiles):
    _sys.modules[f"kernelcore.{_former.__name__.rpartition('.')[2]}"] = _former
_sys.modules["kernelcore.cyclic"] = kernels


_ROOMS = {
    "data", "experiments", "features", "networks", "report", "solvers", "spectrum", "theory",
}  # fmt: skip
_DIAGNOSIS = "diagnosis"


def __getattr__(name: str) -> _typing.Any:
    # Rooms that a Gram matrix does not need load when they are first named.
    if name in _ROOMS:
        return _importlib.import_module(f"kernelcore.{name}")
    if name in ("get_devices", "set_devices"):
        return getattr(_importlib.import_module("kernelcore.engine.devices"), name)
    if name in ("Diagnosis", "diagnose"):
        return getattr(_importlib.import_module(f"kernelcore.{_DIAGNOSIS}"), name)
    if name in _SCALE:
        return getattr(_importlib.import_module(f"kernelcore.scale.{_SCALE[name]}"), name)
    for room, names in (("estimators", _ESTIMATORS), ("adaptive", _ADAPTIVE)):
        if name in names:
            _check.installed("sklearn", f"kernelcore.{name}")
            return getattr(_importlib.import_module(f"kernelcore.{room}"), name)
    raise AttributeError(f"module 'kernelcore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ESTIMATORS, *_ADAPTIVE})
