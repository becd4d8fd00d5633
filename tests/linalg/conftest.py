"""Arrays of NumPy, of a library that refuses whatever is not in the standard, and like CuPy's."""

import array_api_strict
import numpy as np
import pytest
from gpu import arrays, standin


class Library:
    """Makes arrays of a library, and NumPy's of them."""

    def __init__(self, namespace):
        self.namespace = namespace

    def __call__(self, a):
        return a if self.namespace is np else self.namespace.asarray(a)

    def back(self, a, dtype):
        """A NumPy array of what must be an array of this library, in this dtype."""
        kind = np.ndarray if self.namespace is np else type(self.namespace.asarray(0.0))
        assert isinstance(a, kind), type(a)
        assert self.read(a).dtype == dtype
        return self.read(a)

    @staticmethod
    def read(a):
        return np.asarray(a._view if isinstance(a, standin.ndarray) else a)


@pytest.fixture(params=[np, array_api_strict, standin], ids=["numpy", "strict", "CuPy"])
def library(request):
    if request.param is not standin:
        yield Library(request.param)
        return
    with arrays.installed(standin), arrays.copies(largest=8):  # one number at a time
        yield Library(standin)


@pytest.fixture
def eps(dtype):
    return float(np.finfo(dtype).eps)
