"""The library whose functions go with some arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check


def namespace_of(*arrays: Any) -> Any:
    """Return the namespace that all arrays share: NumPy itself, or another library's.

    Another library's is as ``array_api_compat`` gives it, so that functions have the names and
    arguments of the Python array API standard (https://data-apis.org/array-api). Arrays of NumPy
    need no package for that, and none is imported for them.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.linalg import namespace_of
    >>> namespace_of(np.eye(2), np.ones(2)) is np
    True
    """
    if all(isinstance(a, np.ndarray) for a in arrays):
        return np
    _check.installed("array_api_compat", "linear algebra with arrays that are not NumPy's")
    from array_api_compat import array_namespace

    try:
        return array_namespace(*arrays)
    except TypeError:
        _check.one_library(arrays)
