"""Values that are published for others: what their generator writes, and what the package has."""

import json

import mpmath as mp
import numpy as np
import pytest
from oracle import make_golden

import kernelcore as kc

EPS = 2.0**-52
GOLDEN = json.loads(make_golden.FILE.read_text())
X = np.array(GOLDEN["rows"])


def doubles(values):
    return np.array([[float(v) for v in row] for row in values])


def near(found, values, roundings):
    """Within so many roundings, relative to what the diagonal allows an entry to be."""
    want = doubles(values)
    size = np.sqrt(np.diagonal(want))
    assert (np.abs(found - want) <= roundings * EPS * np.outer(size, size)).all()


def test_the_file_is_what_its_generator_writes():
    assert json.loads(json.dumps(make_golden.golden())) == GOLDEN
    assert make_golden.FILE.stat().st_size < 200_000


def test_numbers_are_the_same_in_any_precision():
    """Inputs are fractions of powers of two; single precision holds them exactly."""
    given = [*X.ravel(), *(v for one in GOLDEN["duals"] for v in one["variances"])]
    given += [one["covariance"] for one in GOLDEN["duals"]]
    given += [v for one in GOLDEN["images"] for v in np.ravel(one["images"])]
    assert all(np.float32(v) == v for v in given)


def test_duals():
    """As accurate as tests/layers/test_duals.py has it: 16 roundings of what the dual may be."""
    for one in GOLDEN["duals"]:
        activation = getattr(kc, one["activation"])(*one["parameters"])
        (v1, v2), cov = one["variances"], one["covariance"]
        found = activation.dual(v1, v2, cov)
        sizes = [np.sqrt(np.prod([activation.dual(v, v, v)[k] for v in (v1, v2)])) for k in (0, 1)]
        for value, name, size in zip(found, ("dual", "derivative_dual"), sizes, strict=True):
            assert abs(value - float(one[name])) <= 16 * EPS * size, one


@pytest.mark.parametrize("one", GOLDEN["networks"], ids=lambda one: one["name"])
def test_networks(one):
    net = kc.Sequential(*(getattr(kc, name)(*numbers) for name, *numbers in one["layers"]))
    roundings = 16 * len(one["layers"])
    near(net.nngp(X), one["nngp"], roundings)
    near(net.ntk(X), one["ntk"], roundings)


@pytest.mark.parametrize("name", GOLDEN["classical"])
def test_classical_kernels(name):
    kernel = eval(f"kc.{name}", {"kc": kc})
    near(kernel(X), GOLDEN["classical"][name], 16)


@pytest.mark.parametrize("one", GOLDEN["images"], ids=lambda one: one["name"])
def test_images(one):
    net = kc.presets.cntk(3, gap="gap=True" in one["name"], fix=False)
    near(net.ntk(np.array(one["images"])), one["ntk"], 16 * len(net.layers))


@pytest.mark.parametrize(
    "one", GOLDEN["spheres"], ids=lambda one: f"{one['kernel']} {one['hidden_layers']} {one['dim']}"
)
def test_spheres(one):
    """Logarithms, since some are below the smallest double; zeros are exact."""
    kernel = getattr(kc.presets.mlp(one["hidden_layers"]), one["kernel"])
    found = kc.spectrum.sphere(kernel, one["dim"], max(one["degrees"]))
    for degree, value in zip(one["degrees"], one["eigenvalues"], strict=True):
        want = float(mp.log(mp.mpf(value))) if float(mp.mpf(value) != 0) else -np.inf
        got = found.log_eigenvalues[degree]
        assert got == want or abs(got - want) <= 1e-12 + 4 * EPS * abs(want), (degree, got, want)
