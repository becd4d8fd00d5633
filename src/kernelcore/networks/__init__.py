"""Networks of finite width: drawn from a description, differentiated, trained, linearised."""

from ._empirical import EmpiricalConjugate, EmpiricalNtk
from ._lazy import Laziness, laziness
from ._linear import Linearized
from ._network import Network
from ._network import sample as sample
from ._torch import TorchNtk, empirical_ntk
from ._train import Coupled, Training, coupled, largest_step, train

__all__ = [
    "Coupled", "EmpiricalConjugate", "EmpiricalNtk", "Laziness", "Linearized", "Network",
    "TorchNtk", "Training", "coupled", "empirical_ntk", "largest_step", "laziness", "train",
]  # fmt: skip
