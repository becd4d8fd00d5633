"""Networks of finite width: drawn from a description, differentiated, trained, linearised."""

from ._empirical import EmpiricalConjugate, EmpiricalNtk
from ._linear import Linearized
from ._network import Network
from ._network import sample as sample
from ._train import Coupled, Training, coupled, largest_step, train

__all__ = [
    "Coupled", "EmpiricalConjugate", "EmpiricalNtk", "Linearized", "Network", "Training", "coupled",
    "largest_step", "train",
]  # fmt: skip
