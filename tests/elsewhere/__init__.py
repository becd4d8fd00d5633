"""Arrays that stand for those of a device, in memory that NumPy cannot read, of two libraries.

``array_api_strict`` has what is in the array API standard and nothing else, refuses NumPy's arrays
and numbers, and arrays on its second device refuse to become NumPy's. The fixture ``device`` makes
them say, as CuPy's do, that they are not on the host, and adds a backend that evaluates kernels.

CuPy has a stand-in, ``gpu.standin``: kernels run in its drivers, on the host twin. The fixture
``library`` runs a test on one after the other.
"""

import contextlib
import types

import array_api_strict
import numpy as np
import pytest
from array_api_strict import Device
from gpu import arrays, standin

from kernelcore import engine
from kernelcore.engine import cpu
from kernelcore.engine.progress import Watched
from kernelcore.solvers import _preconditioners

PLACE = Device("device1")
Array = type(array_api_strict.asarray(0.0))


class Now:
    """The library of the test."""

    cupy = False


def there(a, place=PLACE):
    """The same numbers on the device."""
    if Now.cupy:
        return standin.asarray(np.asarray(a))
    return array_api_strict.asarray(np.ascontiguousarray(a), device=place)


def back(a):
    """A NumPy array of what must be on the device; only tests look into such arrays."""
    if Now.cupy:
        assert isinstance(a, standin.ndarray), type(a)
        return np.array(a._view)
    assert isinstance(a, Array), type(a)
    assert a.device == PLACE
    return np.array(a._array)


def on_device(array):
    return isinstance(array, Array) and array.device == PLACE


class Opened(Watched):
    """Inputs on the device, whose kernels are evaluated by the backend for NumPy."""

    def __init__(self, x, y, inner):
        self.x, self.y, self.inner, self.n_threads = x, y, inner, inner.n_threads

    def output(self, out=None, terms=None, beside=0):
        assert out is None
        return there(self.inner.output(None, terms, beside))

    def there(self):
        return self.inner.there()

    def takes(self, program):
        self.inner.takes(program)

    def gram(self, program, k_out, t_out, factor, combine):
        outs = (None if out is None else out._array for out in (k_out, t_out))
        self.inner.gram(program, *outs, factor, combine)

    def diagonal(self, program, tangent, factor):
        return there(self.inner.diagonal(program, tangent, factor))

    def against(self, X, n_threads):
        return open_inputs(self.inner.program, X, self.x, n_threads)


def open_inputs(program, X, Y, n_threads):
    y = None if Y is None else back(Y)
    inner = cpu.open(program, back(X), y, n_threads)
    inner.program = program
    return Opened(X, Y, inner)


@contextlib.contextmanager
def reads():
    """Count the numbers that are read on the host, one by one: there is no other way to."""
    plain, count = Array.__float__, [0]

    def read(a):
        count[0] += 1
        return plain(a)

    with pytest.MonkeyPatch.context() as patch, arrays.copies() as copies:
        patch.setattr(Array, "__float__", read)
        yield count
        count[0] += copies.count


@contextlib.contextmanager
def attached():
    """Let arrays on the second device be foreign to NumPy, and kernels take them."""
    if Now.cupy:  # as they are and do
        yield there
        return
    host = Array.__dlpack_device__
    backend = types.SimpleNamespace(owns=on_device, open=open_inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Array, "__dlpack_device__", lambda a: (2, 0) if on_device(a) else host(a))
        patch.setattr(Array, "__len__", lambda a: a.shape[0], raising=False)  # as CuPy's have
        patch.setattr(engine, "BACKENDS", [*engine.BACKENDS, backend])
        yield there


@pytest.fixture
def device():
    with attached():
        yield there


@pytest.fixture(autouse=True, params=["array_api_strict", "CuPy"])
def library(request, monkeypatch):
    """The library. No copy to the host may have more than a number for each of ``N`` points."""
    if request.param != "CuPy":
        yield
        return
    monkeypatch.setattr(Now, "cupy", True)
    monkeypatch.setattr(_preconditioners, "PROPOSALS", 5)  # whose square comes to the host
    with standin.installed(), arrays.copies(largest=8 * request.module.N):
        yield
