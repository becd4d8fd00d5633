"""A stand-in for the few names of CuPy that the backend uses, which runs drivers on the host twin.

Arrays lie in guarded memory of a ``twin.Device``. What would be a copy to the host is counted.
"""

import concurrent.futures
import contextlib
import ctypes
import functools
import pathlib
import sys

import numpy as np
import pytest

from kernelcore.engine.gpu import compile as _compile
from kernelcore.engine.gpu import drivers, images

from . import arrays, twin

DRIVERS = twin.EXT / "gpu"


class State:
    """The one device: the order of threads, what has been copied, and its attributes."""

    device = twin.Device("ascending")
    copied = 0
    launched = []
    free_bytes = 10**9
    attributes = {
        "MultiProcessorCount": 2,
        "MaxSharedMemoryPerBlockOptin": 166_912,
        "MaxSharedMemoryPerMultiprocessor": 167_936,
    }


class _Pointer:
    def __init__(self, ptr):
        self.ptr = ptr


class ndarray(arrays.Array):  # CuPy's name
    """An array on the device: a view into a buffer that it keeps alive."""

    __module__ = "cupy"

    def __init__(self, view, buffer):
        self._view, self._buffer = view, buffer

    @classmethod
    def _put(cls, values):
        """Return a copy of an array of the host."""
        buffer = State.device.array(values)
        return cls(buffer.view, buffer)

    shape = property(lambda self: self._view.shape)
    dtype = property(lambda self: self._view.dtype)
    size = property(lambda self: self._view.size)
    nbytes = property(lambda self: self._view.nbytes)
    strides = property(lambda self: self._view.strides)
    data = property(lambda self: _Pointer(self._view.ctypes.data))
    device = property(lambda self: _Device(self.number))
    number = 0

    def __dlpack_device__(self):
        return (2, 0)

    __cuda_array_interface__ = property(lambda self: {"data": (self.data.ptr, False)})


globals().update(arrays.names)


def empty(shape, dtype=np.float64):
    buffer = State.device.empty(shape, dtype)
    return ndarray(buffer.view, buffer)


def asnumpy(a):
    State.copied += a.nbytes
    return arrays.asnumpy(a)


class _Device:
    compute_capability = "80"

    def __init__(self, number=None):
        self.id = 0 if number is None else int(number)

    def __int__(self):
        return self.id

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def __eq__(self, other):
        return self.id == other.id

    def __repr__(self):
        return f"<CUDA Device {self.id}>"

    @property
    def attributes(self):
        return State.attributes


class cuda:
    Device = _Device

    class runtime:
        @staticmethod
        def memGetInfo():
            return State.free_bytes, 2 * State.free_bytes


class get_default_memory_pool:
    """The pool, which keeps nothing."""

    def free_bytes(self):
        return 0


class RawModule:
    """A driver, by the name that the file of its cubin begins with."""

    def __init__(self, path):
        self._library = twin.build(DRIVERS / f"{pathlib.Path(path).stem.partition('-')[0]}.cu")

    def get_function(self, name):
        return _Function(self._library, name)


class _Function:
    max_dynamic_shared_size_bytes = 49_152

    def __init__(self, library, name):
        self._library, self._name = library, name

    def __call__(self, grid, block, args, shared_mem=0):
        assert shared_mem <= self.max_dynamic_shared_size_bytes
        State.launched.append(self._name)
        State.device.launch(
            self._library, self._name, grid, block, [_passed(a) for a in args], shared_mem
        )


def _passed(a):
    if a is None:
        return ctypes.c_void_p(0)
    if isinstance(a, ndarray):
        assert a._view.flags.c_contiguous or a.ndim == 1
        return ctypes.c_void_p(a.data.ptr)
    return a[0] if isinstance(a, np.ndarray) else a


@functools.cache
def _libraries():
    """Build the drivers for the twin, each by a compiler of its own."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(twin.build, sorted(DRIVERS.glob("*.cu"))))


@contextlib.contextmanager
def installed():
    """Let this be CuPy, with threads in ascending order, and drivers that are not compiled."""
    _libraries()
    caches = (drivers._module, images._maps)
    with arrays.installed(sys.modules[__name__]), pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compile, "cubin", lambda driver, *_: pathlib.Path(f"{driver}-.cubin"))
        patch.setattr(State, "device", twin.Device("ascending"))
        patch.setattr(State, "copied", 0)
        patch.setattr(State, "launched", [])
        patch.setattr(State, "attributes", dict(State.attributes))
        for cache in caches:
            cache.cache_clear()
        yield State
        for cache in caches:
            cache.cache_clear()
