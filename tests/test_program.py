"""Programs: values that say what a network is, and interpreters that know kinds of nodes alone."""

import copy
import pickle
import re
from collections import Counter

import numpy as np
import pytest

import kernelcore as kc
from kernelcore import program
from kernelcore.program import Program

BLOCK = kc.Residual(kc.Relu(), kc.Dense(1.2, 0.1), shortcut=kc.Dense(0.7, trainable=False))
NETWORKS = {
    "rows": kc.Sequential(kc.Dense(2**0.5), BLOCK, kc.Tanh(), kc.Dense()),
    "signals": kc.Sequential(
        kc.Conv((3,)), kc.Erf(), kc.AvgPool((2,)), kc.GaussianPool(1), kc.Flatten(), kc.Dense()
    ),
    "images": kc.presets.myrtle(5),
    "any axes": kc.Sequential(kc.Input(sum=True), kc.GaussianPool(2), kc.GlobalAvgPool()),
}
EVERY = pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)


@EVERY
def test_programs_are_values(network):
    lowered, again = network.program, kc.Sequential(*network.layers).program
    assert lowered is network.program  # made once
    assert lowered == again
    assert hash(lowered) == hash(again)
    assert {lowered: 1}[again] == 1
    for other in (copy.copy(lowered), copy.deepcopy(lowered), pickle.loads(pickle.dumps(lowered))):
        assert other == lowered
    longer = kc.Sequential(*network.layers, kc.Dense(3.0)).program
    assert longer != lowered
    assert len(longer) == len(lowered) + 1
    for value, name in ((lowered, "nodes"), (lowered[0], "kind")):
        text = (
            f"{type(value).__name__} must not change after construction: {name} was set; build "
            f"another, or call replace({name}=...)"
        )
        with pytest.raises(AttributeError, match=f"^{re.escape(text)}$"):
            setattr(value, name, ())


def test_a_network_is_pickled_without_its_program():
    network = kc.Sequential(kc.Dense(), kc.Relu(), kc.Dense())
    fresh = len(pickle.dumps(network))
    assert network.program is not None
    assert len(pickle.dumps(network)) == fresh
    assert pickle.loads(pickle.dumps(network)).program == network.program


def test_a_program_is_printed_as_a_table():
    assert str(NETWORKS["rows"].program).splitlines() == [
        "program of rows",
        "0  input    <x, x'> / channels",
        "1  weights  w_std 1.41421, b_std 0, trained",
        "2  save",
        "3    apply    Relu()",
        "4    weights  w_std 1.2, b_std 0.1, trained",
        "5  swap",
        "6    weights  w_std 0.7, b_std 0, frozen",
        "7  merge",
        "8  apply    Tanh()",
        "9  weights  w_std 1, b_std 0, trained",
    ]
    headings = [str(network.program).splitlines()[0] for network in NETWORKS.values()]
    assert headings[1:] == [
        "program of signals", "program of images", "program of signals or images",
    ]  # fmt: skip
    cyclic = kc.CyclicConvolution(3, 2, kc.profiles.Exp(1.0))._program
    assert str(cyclic).splitlines()[0] == "program of cyclic signals"
    distance = kc.Cauchy(2.0)._program
    assert "sum of log(1 + 0.5^2 (x - x')^2)" in str(distance)


def test_lowering_computes_nothing(monkeypatch):
    """A program is made without any engine."""
    monkeypatch.setattr("kernelcore.engine.cpu.dispatch.driver", None)
    for network in NETWORKS.values():
        assert kc.Sequential(*network.layers).program.nodes


class Counting:
    """An interpreter that knows kinds of nodes and no class of layers."""

    def __init__(self):
        self.seen = Counter()

    def __getattr__(self, kind):
        return lambda node: self.seen.update([kind])


@EVERY
def test_interpreters_are_handed_every_node(network):
    interpreter = Counting()
    assert network.program.run(interpreter) is None
    assert interpreter.seen == Counter(node.kind for node in network.program)
    kinds = {node.kind for node in network.program}
    assert kinds <= {"input", "weights", "apply", "pool", "readout", "save", "swap", "merge"}


def test_an_interpreter_can_stop():
    class Stops(Counting):
        def apply(self, node):
            return node.function

    interpreter = Stops()
    assert NETWORKS["rows"].program.run(interpreter) == kc.Relu()
    assert interpreter.seen == {"input": 1, "weights": 1, "save": 1}


@EVERY
def test_layers_are_remembered_for_messages_alone(network):
    """Programs of other layers that do the same are the same: nothing is read off a layer."""
    if network.program.input.domain != "rows":
        return
    bare = Program(
        type(node)(**{k: v for k, v in vars(node).items() if k not in ("layer", "form")})
        for node in network.program
    )
    assert bare == network.program
    x = np.random.default_rng(0).standard_normal((4, 3))
    rows = kc.engine.cpu.Rows(x, None, 1)
    out, again = np.empty((4, 4)), np.empty((4, 4))
    rows.gram(bare, None, out, 1.0, kc.engine.ASSIGN)
    rows.gram(network.program, None, again, 1.0, kc.engine.ASSIGN)
    np.testing.assert_array_equal(out, again)
    np.testing.assert_array_equal(out, network.ntk(x))


def test_the_inner_layer_of_a_program_trains_alone():
    lowered = NETWORKS["rows"].program
    assert lowered.trained == [1, 4, 9]
    only = lowered.training_only(4)
    assert only.trained == [4]
    assert [node.kind for node in only] == [node.kind for node in lowered]


def test_forms_that_engines_do_not_know_are_refused():
    from kernelcore.engine.cpu import steps

    with pytest.raises(TypeError, match=r"^form must be one that engines know: got Form$"):
        steps.step(program.Form(), np.ones(1), 0.0, 1)


# ---- arrays of other machines


class OnADevice:
    """What CuPy's arrays show of themselves."""

    def __init__(self, data):
        self.shape, self.dtype, self.ndim = data.shape, data.dtype, data.ndim
        self.__cuda_array_interface__ = {"shape": data.shape, "typestr": "<f8", "version": 3}

    def __dlpack_device__(self):
        return (2, 0)

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")


OnADevice.__module__ = "cupy"
X, Y = np.ones((3, 2)), np.ones(3)
DEVICE = OnADevice(X)
CALLS = {
    "Gram matrix": lambda: kc.Gaussian(1.0)(DEVICE),
    "network": lambda: kc.presets.mlp(1).ntk(DEVICE),
    "both": lambda: kc.presets.mlp(1).kernels(DEVICE),
    "diagonal": lambda: kc.presets.mlp(1).ntk.diag(DEVICE),
    "images": lambda: kc.presets.cntk(2).ntk(DEVICE),
    "sum": lambda: (kc.Gaussian(1.0) + kc.Gaussian(2.0))(DEVICE),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_arrays_on_a_device_are_refused_by_us(call):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == (
        "X must be in the memory of the host: got cupy.OnADevice on a device; copy it to a NumPy "
        "array"
    )


def test_the_array_that_is_on_a_device_is_named():
    text = (
        "must be in the memory of the host: got cupy.OnADevice on a device; copy it to a NumPy "
        "array"
    )
    with pytest.raises(TypeError, match=f"^Y {text}$"):
        kc.Gaussian(1.0)(X, DEVICE)
    with pytest.raises(TypeError, match=f"^y {text}$"):
        kc.solvers.ridge(np.eye(3), DEVICE)
    with pytest.raises(TypeError, match=f"^K {text}$"):
        kc.solvers.ridge(DEVICE, Y)


def test_arrays_of_the_host_are_taken_whatever_their_library():
    class OnTheHost(OnADevice):
        def __init__(self, data):
            self.data = data

        def __dlpack_device__(self):
            return (1, 0)

        def __array__(self, *args, **kwargs):
            return self.data

    np.testing.assert_array_equal(kc.Gaussian(1.0)(OnTheHost(X)), kc.Gaussian(1.0)(X))


def test_the_backend_of_an_array():
    assert kc.engine.backend_of(X) is kc.engine.cpu
    assert kc.engine.backend_of([[1.0]], None) is kc.engine.cpu
