"""A second backend is one folder and one name: kernels know arrays by what their backend does."""

import types

import numpy as np
import pytest

import kernelcore as kc
from kernelcore import engine
from kernelcore.engine import cpu
from kernelcore.engine.progress import Watched


class Device:
    """An array that NumPy cannot read, as one on a device; ``host()`` copies it back."""

    __array__ = None

    def __init__(self, values):
        self.values = np.array(values)
        self.shape, self.dtype, self.ndim = self.values.shape, self.values.dtype, self.values.ndim

    def host(self):
        return self.values.copy()

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return (self._view(part) for part in self.values)

    def __getitem__(self, index):
        return self._view(self.values[index])

    def __iadd__(self, other):
        self.values += other.values
        return self

    def __imul__(self, other):
        self.values *= other.values
        return self

    def __dlpack_device__(self):
        return 12, 0  # kDLExtDev

    @classmethod
    def _view(cls, values):
        view = cls(0.0)
        view.__dict__.update(
            values=values, shape=values.shape, dtype=values.dtype, ndim=values.ndim
        )
        return view


class Opened(Watched):
    """Inputs on the device, computed with on the host by the backend for NumPy."""

    def __init__(self, x, y, inner):
        self.x, self.y, self.inner, self.n_threads = x, y, inner, inner.n_threads

    def there(self):
        return self.inner.there()

    def output(self, out=None, terms=None, beside=0):
        return Device(self.inner.output(None, terms, beside)) if out is None else out

    def takes(self, program):
        self.inner.takes(program)

    def gram(self, program, k_out, t_out, factor, combine):
        outs = (None if out is None else out.values for out in (k_out, t_out))
        self.inner.gram(program, *outs, factor, combine)

    def diagonal(self, program, tangent, factor):
        return Device(self.inner.diagonal(program, tangent, factor))


def open_inputs(program, X, Y, n_threads):
    y = None if Y is None else Y.host()
    return Opened(X, Y, cpu.open(program, X.host(), y, n_threads))


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    owns = types.SimpleNamespace(owns=lambda array: isinstance(array, Device), open=open_inputs)
    monkeypatch.setattr(engine, "BACKENDS", [*engine.BACKENDS, owns])


NETS = {
    "rows": (kc.presets.mlp(2, b_std=0.1), (7, 4)),
    "signals": (kc.Sequential(kc.Conv((3,)), kc.Relu(), kc.GlobalAvgPool(), kc.Dense()), (5, 9, 2)),
    "images": (kc.presets.cntk(3), (4, 5, 5, 3)),
}


@pytest.fixture(params=NETS)
def case(request, rng):
    net, shape = NETS[request.param]
    return net, rng.standard_normal(shape), rng.standard_normal(shape)


def same(got, want):
    assert isinstance(got, Device)
    np.testing.assert_array_equal(got.host(), want)


def test_results_are_arrays_of_the_backend_of_the_inputs(case):
    net, x, y = case
    for kernel in (net.nngp, net.ntk, 2.0 * net.ntk, net.ntk + net.nngp, net.ntk * net.nngp):
        same(kernel(Device(x)), kernel(x))
        same(kernel(Device(x), Device(y)), kernel(x, y))
    product = (net.ntk + net.nngp) * (net.nngp + net.ntk)  # needs a matrix of its own
    same(product(Device(x)), product(x))
    same((net.ntk + net.nngp).diag(Device(x)), (net.ntk + net.nngp).diag(x))
    same(net.ntk.terms(Device(x)), net.ntk.terms(x))
    for got, want in zip(net.kernels(Device(x)), net.kernels(x), strict=True):
        same(got, want)


def test_a_result_goes_where_it_is_wanted(case):
    net, x, _ = case
    out = Device(np.empty((len(x), len(x))))
    assert net.ntk(Device(x), out=out) is out
    same(out, net.ntk(x))


def test_inputs_of_two_backends_are_refused(case):
    net, x, y = case
    message = (
        r"^[XY] must be where [XY] is, \w+\.Device on a device: got numpy\.ndarray on the host; "
        "move one of them$"
    )
    for args in ((Device(x), y), (x, Device(y))):
        with pytest.raises(TypeError, match=message):
            net.ntk(*args)
