"""Layers, networks, profiles and kernels do not change; ``replace`` makes changed copies."""

import copy
import functools
import inspect
import pickle

import numpy as np
import pytest

import kernelcore as kc
from kernelcore._value import Record, Value

NET = kc.Sequential(kc.Dense(1.5), kc.Relu(), kc.Dense())
ARGUMENTS = {
    kc.Activation: (np.tanh,),
    kc.Averaged: (kc.Gaussian(1.0), kc.Flip(1)),
    kc.CyclicConvolution: (2, 1, kc.Gaussian(1.0)),
    kc.DotProduct: (kc.profiles.Exp(1.0),),
    kc.OneKink: (0.0, (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)),
    kc.Permutation: ((1, 0),),
    kc.PowerSeries: ((0.0, 1.0),),
    kc.Residual: (kc.Relu(), kc.Dense()),
    kc.Sequential: NET.layers,
    kc.profiles.Fitted: (np.exp,),
    kc.profiles.PowerSeries: ((0.0, 1.0),),
}


def example(kind):
    """An instance, with 2 for every parameter that has no default."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return kind(*ARGUMENTS.get(kind, [2] * len(needed)))


def kinds():
    """Every public class of values, once."""
    for thing in {id(x): x for room in (kc, kc.profiles) for x in vars(room).values()}.values():
        if inspect.isclass(thing) and issubclass(thing, Value) and not issubclass(thing, Record):
            if thing not in (Value, kc.Kernel, kc.profiles.Profile):
                yield thing


EXAMPLES = [
    *map(example, sorted(kinds(), key=repr)),
    *(NET.ntk, NET.nngp, NET.ntk + kc.Gaussian(1.0), NET.ntk * NET.nngp, 2 * NET.ntk),
]


@pytest.mark.parametrize("value", EXAMPLES, ids=repr)
def test_nothing_is_set_or_deleted(value):
    before, key = dict(vars(value)), hash(value)
    for name in (*value.parameters(), "anything"):
        with pytest.raises(AttributeError, match=rf"must not change .* {name} was set; "):
            setattr(value, name, -3)
        with pytest.raises(AttributeError, match=rf"must not change .* {name} was deleted; "):
            delattr(value, name)
    assert vars(value) == before
    assert hash(value) == key


@pytest.mark.parametrize("value", EXAMPLES, ids=repr)
def test_copies_are_as_finished_as_the_original(value):
    for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert other == value
        assert hash(other) == hash(value)
        with pytest.raises(AttributeError, match="must not change"):
            other.anything = 1


@pytest.mark.parametrize("value", EXAMPLES, ids=repr)
def test_parameters_build_the_same_value(value):
    parameters = value.parameters()
    assert value.replace() == value
    assert value.replace(**parameters) == value
    for name, old in value.parameters(deep=True).items():
        again = value.replace(**{name: old})
        assert again == value
        assert type(again) is type(value)


def test_parts_have_names():
    k = NET.ntk + 2 * kc.Gaussian(3.0)
    changed = k.replace(right__kernel__lengthscale=1.0, right__factor=5.0)
    assert changed == NET.ntk + 5 * kc.Gaussian(1.0)
    assert k == NET.ntk + 2 * kc.Gaussian(3.0)
    assert k.replace(right=kc.Matern(0.5, 1.0), right__nu=1.5) == NET.ntk + kc.Matern(1.5, 1.0)
    wide = kc.Sequential(kc.Dense(3.0), kc.Relu(), kc.Dense())
    assert NET.ntk.replace(network__layers__0__w_std=3.0) == wide.ntk
    assert NET.nngp.replace(network=wide) == wide.nngp
    assert NET.replace(layers=kc.Dense()) == kc.Sequential(kc.Dense())
    block = kc.Residual(kc.Relu(), kc.Dense())
    assert block.replace(shortcut=[kc.Dense(2.0)]).shortcut == (kc.Dense(2.0),)
    h = kc.CyclicConvolution(2, 1, kc.Gaussian(1.0))
    assert h.replace(profile__lengthscale=2.0, pool=3).parameters() == {
        "patch": 2, "pool": 3, "profile": kc.Gaussian(2.0),
    }  # fmt: skip
    power = kc.presets.cntk(2).replace(layers__2__shift=0.5)
    assert power.layers[2] == kc.Relu(shift=0.5)


def test_changes_are_checked_by_the_constructor():
    with pytest.raises(ValueError, match=r"^lengthscale must be positive: got -3.0$"):
        kc.Gaussian(1.0).replace(lengthscale=-3)
    with pytest.raises(ValueError, match=r"^w_std must not be negative: got -1.0$"):
        NET.ntk.replace(network__layers__0__w_std=-1)
    # Sequential.ntk and Sequential.nngp ask whether the network has one.
    with pytest.raises(ValueError, match="must have a Dense or Conv before Relu"):
        NET.ntk.replace(network=kc.Sequential(kc.Relu()))


class Warmth(kc.Gaussian):
    """A user's kernel, with something of its own that is set after the base is done."""

    _parameters = ("lengthscale", "name")

    def __init__(self, lengthscale, name):
        super().__init__(lengthscale)
        self.name = name

    @functools.cached_property
    def loud(self):
        return self.name.upper()


def test_subclasses_of_users():
    k = Warmth(2.0, "sun")
    np.testing.assert_array_equal(k([[1.0], [2.0]]), kc.Gaussian(2.0)([[1.0], [2.0]]))
    assert k.loud == k.loud == "SUN"
    assert k.replace(name="moon").loud == "MOON"
    assert pickle.loads(pickle.dumps(k)) == k
    with pytest.raises(AttributeError, match=r"^Warmth must not change after construction: "):
        k.name = "moon"
