"""Arrays of NumPy, and of a library that refuses whatever is not in the standard."""

import array_api_strict
import numpy as np
import pytest


class Library:
    """Makes arrays of a library, and NumPy's of them."""

    def __init__(self, namespace):
        self.namespace = namespace

    def __call__(self, a):
        return a if self.namespace is np else array_api_strict.asarray(a)

    def back(self, a, dtype):
        """A NumPy array of what must be an array of this library, in this dtype."""
        kind = np.ndarray if self.namespace is np else type(array_api_strict.asarray(0.0))
        assert isinstance(a, kind), type(a)
        a = np.from_dlpack(a)
        assert a.dtype == dtype
        return a


@pytest.fixture(params=[np, array_api_strict], ids=["numpy", "strict"])
def library(request):
    return Library(request.param)


@pytest.fixture
def eps(dtype):
    return float(np.finfo(dtype).eps)
