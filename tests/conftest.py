"""What the tests share: seeded numbers, both dtypes, threads and memory put back."""

import mpmath as mp
import numpy as np
import pytest

import kernelcore as kc


@pytest.fixture
def rng():
    return np.random.default_rng(20240229)


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return np.dtype(request.param)


@pytest.fixture(autouse=True)
def same_surroundings():
    """Digits of the oracle, number of threads and memory, whatever a test did to them."""
    digits = mp.mp.dps
    yield
    mp.mp.dps = digits
    kc.set_threads(None)
    kc.set_memory(None)
