"""Names for annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

Array = np.ndarray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike
else:
    ArrayLike = Any  # numpy.typing would be imported for nothing
