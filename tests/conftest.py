"""What the tests share: seeded numbers, both dtypes, threads and memory put back."""

import os
import tempfile

import mpmath as mp
import numpy as np
import pytest
import threadpoolctl

import kernelcore as kc
from kernelcore.engine.gpu import devices

# Files of more than twenty seconds, the longest first: a process that begins with one of them when
# there is no other file left leaves the other process without work.
LONG = (
    "test_compile test_errors test_sphere test_spatial test_headers test_accuracy test_theory "
    "test_duals test_style test_cells test_interruption test_drivers test_report test_namespaces "
    "test_sharing test_cluster test_hypercube test_iterative test_values test_features"
).split()


def _turn(item):
    return LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG)


def _again(item):
    given = item.callspec.params if hasattr(item, "callspec") else {}
    return given.get("library") == "CuPy" and given.get("dtype") == "float64"


def pytest_configure(config):
    """Make the folder in which all processes of a run keep what they compile.

    Processes share the CPUs, where threads that wait for each other by spinning, as those of BLAS
    and OpenMP do, take up to ten times as long: BLAS has one, and OpenMP's sleep.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # by the number of tests, whatever they take
    if "TWIN_FOLDER" not in os.environ:
        config.twin_folder = tempfile.TemporaryDirectory(prefix="twin")
        os.environ["TWIN_FOLDER"] = config.twin_folder.name


def pytest_collection_modifyitems(config, items):
    """Begin with long files; skip what takes minutes unless asked for, and what needs a device
    where there is none.

    What runs in two libraries and two dtypes does so in float32 alone on the stand-in for CuPy.
    """
    asked = "slow" in config.getoption("markexpr")
    items[:] = sorted((item for item in items if not _again(item)), key=_turn)
    for item in items:
        if item.get_closest_marker("slow") and not asked:
            item.add_marker(pytest.mark.skip(reason="takes minutes: pytest -m slow"))
        if item.get_closest_marker("gpu") and (reason := devices.missing()):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def rng():
    return np.random.default_rng(20240229)


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return np.dtype(request.param)


@pytest.fixture
def two_of_blas():
    """Threads of BLAS, for tests of what depends on their number."""
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        yield


@pytest.fixture(autouse=True)
def same_surroundings():
    """Digits of the oracle, number of threads and memory, whatever a test did to them."""
    digits = mp.mp.dps
    yield
    mp.mp.dps = digits
    kc.set_threads(None)
    kc.set_memory(None)
