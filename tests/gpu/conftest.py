"""Devices for tests: CuPy's stand-in, whose drivers run on the host twin."""

import concurrent.futures
import pathlib
import sys

import pytest
from gpu import standin, twin

from kernelcore.engine import devices
from kernelcore.engine.gpu import compile as _compile
from kernelcore.engine.gpu import drivers, images


@pytest.fixture(scope="session")
def libraries():
    """The drivers for the twin, each by a compiler of its own."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(twin.build, sorted(standin.DRIVERS.glob("*.cu"))))


@pytest.fixture
def device(monkeypatch, libraries):
    """CuPy's stand-in, with threads in ascending order, and drivers that are not compiled."""
    monkeypatch.setitem(sys.modules, "cupy", standin)
    monkeypatch.setattr(_compile, "cubin", lambda driver, *_: pathlib.Path(f"{driver}-.cubin"))
    fresh = {
        "devices": [twin.Device("ascending")], "copied": 0, "launched": [], "refused": [],
        "waited": [], "pending": 0, "limit": 10**12, "attributes": dict(standin.State.attributes),
    }  # fmt: skip
    for name, value in fresh.items():
        monkeypatch.setattr(standin.State, name, value)
    monkeypatch.setattr(devices, "_chosen", None)
    caches = (drivers._module, images._maps)
    for cache in caches:
        cache.cache_clear()
    yield standin.State
    for cache in caches:
        cache.cache_clear()
