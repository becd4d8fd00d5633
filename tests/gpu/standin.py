"""A stand-in for the few names of CuPy that the backend uses, which runs drivers on the host twin.

Arrays lie in guarded memory of a ``twin.Device``. What would be a copy to the host is counted.
"""

import ctypes
import pathlib

import numpy as np

from . import twin

DRIVERS = twin.EXT / "gpu"


class State:
    """The one device: the order of threads, what has been copied, and its attributes."""

    device = twin.Device("ascending")
    copied = 0
    launched = []
    attributes = {
        "MultiProcessorCount": 2,
        "MaxSharedMemoryPerBlockOptin": 166_912,
        "MaxSharedMemoryPerMultiprocessor": 167_936,
    }


class _Pointer:
    def __init__(self, ptr):
        self.ptr = ptr


class ndarray:  # CuPy's name
    """An array on the device: a view into a buffer that it keeps alive."""

    def __init__(self, view, buffer):
        self._view, self._buffer = view, buffer

    shape = property(lambda self: self._view.shape)
    dtype = property(lambda self: self._view.dtype)
    ndim = property(lambda self: self._view.ndim)
    size = property(lambda self: self._view.size)
    nbytes = property(lambda self: self._view.nbytes)
    strides = property(lambda self: self._view.strides)
    flags = property(lambda self: self._view.flags)
    data = property(lambda self: _Pointer(self._view.ctypes.data))
    device = property(lambda self: _Device(self.number))
    number = 0

    def __len__(self):
        return len(self._view)

    def __getitem__(self, key):
        keys = tuple(_host(k) for k in (key if isinstance(key, tuple) else (key,)))
        found = self._view[keys]
        if isinstance(found, np.ndarray) and found.base is None:
            return asarray(found)
        return ndarray(found, self._buffer)

    def reshape(self, *shape):
        return ndarray(self._view.reshape(*shape), self._buffer)

    def any(self):
        return bool(self._view.any())

    def all(self, axis=None):
        found = self._view.all(axis=axis)
        return asarray(found) if isinstance(found, np.ndarray) else found

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __dlpack_device__(self):
        return (2, 0)

    __cuda_array_interface__ = property(lambda self: {"data": (self.data.ptr, False)})


def _host(key):
    return key._view if isinstance(key, ndarray) else key


def _operator(name):
    def run(self, other):
        found = getattr(self._view, name)(_host(other))
        return self if name.startswith("__i") else asarray(found)

    return run


for _name in ("__add__", "__mul__", "__rmul__", "__iadd__", "__imul__"):
    setattr(ndarray, _name, _operator(_name))


def empty(shape, dtype=np.float64):
    buffer = State.device.empty(shape, dtype)
    return ndarray(buffer.view, buffer)


def asarray(values):
    if isinstance(values, ndarray):
        return values
    buffer = State.device.array(values)
    return ndarray(buffer.view, buffer)


def ascontiguousarray(a):
    return a if a._view.flags.c_contiguous else asarray(a._view)


def asnumpy(a):
    State.copied += a.nbytes
    return a._view.copy()


def isfinite(a):
    return asarray(np.isfinite(a._view))


class _Device:
    compute_capability = "80"

    def __init__(self, number=0):
        self.id = number

    def __eq__(self, other):
        return self.id == other.id

    def __repr__(self):
        return f"<CUDA Device {self.id}>"

    @property
    def attributes(self):
        return State.attributes


class cuda:
    Device = _Device


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
