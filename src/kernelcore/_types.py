"""Names for annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from dataclasses import field as field
    from typing import Self as Self
    from typing import dataclass_transform as dataclass_transform

    from numpy.typing import ArrayLike as ArrayLike

    Array: TypeAlias = np.ndarray[Any, Any]
else:  # nothing is imported for them
    Array = np.ndarray
    ArrayLike = Self = field = Any

    def dataclass_transform(**_):
        return lambda cls: cls
