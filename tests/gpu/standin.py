"""A stand-in for the few names of CuPy that the backend uses, which runs drivers on the host twin.

Arrays lie in guarded memory of a ``twin.Device``, of which there may be several. What would be a
copy to the host is counted. A launch is refused pointers to another device than the current one.
"""

import concurrent.futures
import contextlib
import ctypes
import functools
import pathlib
import sys
import threading

import numpy as np
import pytest

from kernelcore.engine import devices
from kernelcore.engine.gpu import compile as _compile
from kernelcore.engine.gpu import drivers, images

from . import arrays, twin

DRIVERS = twin.EXT / "gpu"


class State:
    """The devices: the order of threads, what has been copied, their attributes and memory."""

    devices = [twin.Device("ascending")]
    copied = 0
    launched = []  # (number of the device, name of the kernel)
    attributes = {
        "MultiProcessorCount": 2,
        "MaxSharedMemoryPerBlockOptin": 166_912,
        "MaxSharedMemoryPerMultiprocessor": 167_936,
    }
    limit = 10**12  # bytes of a device
    refused = []  # bytes that there was no room for
    waited = []  # numbers of devices that the host has waited for
    pending = 0  # looks at an event that is not done


class _Here(threading.local):
    number = 0  # of the current device, which every thread has for itself


_here = _Here()


class OutOfMemoryError(MemoryError):
    """As CuPy has it, in ``cupy.cuda.memory``."""


def used(number):
    return sum(b.nbytes for b in State.devices[number].buffers)


class _Pointer:
    def __init__(self, ptr):
        self.ptr = ptr


class ndarray(arrays.Array):  # CuPy's name
    """An array on the device: a view into a buffer that it keeps alive."""

    __module__ = "cupy"

    def __init__(self, view, buffer, number=None):
        self._view, self._buffer = view, buffer
        self.number = _here.number if number is None else number

    @classmethod
    def _put(cls, values):
        """Return a copy of an array of the host."""
        made = empty(values.shape, values.dtype)
        made._view[...] = values
        return made

    def _part(self, found):
        return ndarray(found, self._buffer, self.number)

    def __setitem__(self, key, values):
        if isinstance(values, ndarray):
            assert values.number == self.number == _here.number
        super().__setitem__(key, values)

    shape = property(lambda self: self._view.shape)
    dtype = property(lambda self: self._view.dtype)
    size = property(lambda self: self._view.size)
    nbytes = property(lambda self: self._view.nbytes)
    strides = property(lambda self: self._view.strides)
    data = property(lambda self: _Pointer(self._view.ctypes.data))
    device = property(lambda self: _Device(self.number))
    _here = property(lambda self: self.number == _here.number)

    def __dlpack_device__(self):
        return (2, self.number)

    __cuda_array_interface__ = property(lambda self: {"data": (self.data.ptr, False)})


__all__ = ["RawModule", "asnumpy", "cuda", "ndarray", *arrays.names]


def __getattr__(name):  # not in the module itself, which calls functions of Python by these names
    if name in arrays.names:
        return arrays.names[name]
    raise AttributeError(f"the stand-in for CuPy has no {name}")


def empty(shape, dtype=np.float64):
    number, need = _here.number, np.empty(shape, dtype).nbytes
    if used(number) + need > State.limit:
        State.refused.append(need)
        raise OutOfMemoryError(f"Out of memory allocating {need:,} bytes")
    buffer = State.devices[number].empty(shape, dtype)
    return ndarray(buffer.view, buffer, number)


def asnumpy(a):
    State.copied += a.nbytes
    return arrays.asnumpy(a)


class _Device:
    compute_capability = "80"

    def __init__(self, number=None):
        self.id = _here.number if number is None else int(number)

    def __int__(self):
        return self.id

    def __eq__(self, other):
        return self.id == other.id

    def __repr__(self):
        return f"<CUDA Device {self.id}>"

    def __enter__(self):
        self._outer, _here.number = _here.number, self.id
        return self

    def __exit__(self, *error):
        _here.number = self._outer

    @property
    def attributes(self):
        return State.attributes


class _Stream:
    def synchronize(self):
        State.waited.append(_here.number)


class _Event:
    """Done when it has been looked at as often as ``State.pending`` says."""

    def __init__(self, disable_timing=False):
        self._left = State.pending

    def record(self):
        State.launched.append((_here.number, "event"))

    @property
    def done(self):
        self._left -= 1
        return self._left < 0


class CUDARuntimeError(Exception):
    """As CuPy has it."""


class _Runtime:
    CUDARuntimeError = CUDARuntimeError

    @staticmethod
    def memGetInfo():
        return State.limit - used(_here.number), State.limit

    @staticmethod
    def driverGetVersion():
        return 13000

    runtimeGetVersion = driverGetVersion

    @staticmethod
    def getDeviceCount():
        return len(State.devices)


class cuda:
    Device, Event, runtime = _Device, _Event, _Runtime
    get_current_stream = _Stream


class _Pool:
    def free_bytes(self):
        return 0


get_default_memory_pool = _Pool


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
        number = _here.number
        State.launched.append((number, self._name))
        for other, device in enumerate(State.devices):
            if other != number:
                _check_pointers(args, device)
        State.devices[number].launch(
            self._library, self._name, grid, block, [_passed(a) for a in args], shared_mem
        )


def _check_pointers(args, elsewhere):
    """Refuse what lies on another device; the fields of structs that are unsigned are pointers."""
    spans = [(b.ptr, b.ptr + max(b.nbytes, 1)) for b in elsewhere.buffers]
    for a in args:
        found = [a.data.ptr] if isinstance(a, ndarray) else []
        if isinstance(a, np.ndarray):
            found = _pointers(a[0])
        for ptr in found:
            assert not any(start <= ptr < stop for start, stop in spans), "another device's memory"


def _pointers(struct):
    for name in struct.dtype.names:
        value = struct[name]
        if value.dtype.names:
            yield from _pointers(value)
        elif value.dtype.kind == "u":
            yield from np.atleast_1d(value).tolist()


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
    fresh = {
        "devices": [twin.Device("ascending")], "copied": 0, "launched": [], "refused": [],
        "waited": [], "pending": 0, "limit": 10**12, "attributes": dict(State.attributes),
    }  # fmt: skip
    caches = (drivers._module, images._maps)
    with arrays.installed(sys.modules[__name__]), pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compile, "cubin", lambda driver, *_: pathlib.Path(f"{driver}-.cubin"))
        for name, value in fresh.items():
            patch.setattr(State, name, value)
        patch.setattr(devices, "_chosen", None)
        for cache in caches:
            cache.cache_clear()
        yield State
        for cache in caches:
            cache.cache_clear()
