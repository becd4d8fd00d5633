"""Names for annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike
    from typing_extensions import Self as Self

    Array: TypeAlias = np.ndarray[Any, Any]
else:  # nothing is imported for them
    Array = np.ndarray
    ArrayLike = Self = Any
