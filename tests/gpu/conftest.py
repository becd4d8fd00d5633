"""Devices for tests: CuPy's stand-in, whose drivers run on the host twin."""

import pytest
from gpu import standin


@pytest.fixture
def device():
    with standin.installed() as state:
        yield state
