"""Names for annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

Array = np.ndarray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike
    from typing_extensions import Self as Self
else:  # they would be imported for nothing
    ArrayLike = Self = Any
