"""The tangent kernels of PyTorch modules, against Jacobians by ``torch.func.jacrev``."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kernelcore as kc
from kernelcore import networks
from kernelcore.networks import TorchNtk, empirical_ntk
from kernelcore.networks import _torch as bridge

pytestmark = pytest.mark.slow  # loading PyTorch, of half a gigabyte, included


@pytest.fixture(scope="module")
def of():
    """The modules, where PyTorch is installed; nothing here names it before."""
    pytest.importorskip("torch", reason="needs PyTorch: pip install 'kernelcore[torch]'")
    from networks import torch_modules

    return torch_modules


@pytest.mark.parametrize(
    "name", ["mlp", "several outputs", "images", "signals", "shared", "turned", "one layer"]
)
def test_kernels_are_those_of_jacobians(of, name, monkeypatch):
    module, X = of.made(name)
    want = of.oracle(module, X)
    K = empirical_ntk(module, X)
    assert K.dtype == np.float64
    assert_allclose(K, want, rtol=1e-10, atol=1e-10 * want.max())
    assert_allclose(
        empirical_ntk(module, X[:4], X[2:]), of.oracle(module, X[:4], X[2:]), rtol=1e-10
    )
    kernel = TorchNtk(module)
    assert_allclose(kernel.diag(X), np.diag(want), rtol=1e-10)
    assert kernel(X[:0]).shape == kernel(X[:0], X[:0]).shape == (0, 0)
    assert kernel(X, X[:0]).shape == (7, 0)
    assert len(kernel._plan.linear) == of.MODULES[name][2]
    # in blocks of inputs, and of passes
    monkeypatch.setattr(bridge, "BATCH", 2)
    monkeypatch.setattr(networks._empirical.OfTraces, "_rows", lambda self, x: self._begin(x) or 3)
    assert_allclose(TorchNtk(module)(X), want, rtol=1e-10, atol=1e-10 * want.max())


def test_parameters_that_are_frozen_do_not_count(of):
    module, X = of.made("several outputs")
    module[0].weight.requires_grad_(False)
    assert_allclose(empirical_ntk(module, X), of.oracle(module, X), rtol=1e-10)
    assert TorchNtk(module)._linear(bridge.inspected(module)[0]) == ["3"]
    for p in module[:3].parameters():
        p.requires_grad_(False)
    assert_allclose(empirical_ntk(module, X), of.oracle(module, X), rtol=1e-10)


def test_dtypes(of):
    module, X = of.made("mlp", dtype=np.float32)
    K = empirical_ntk(module, X)
    assert K.dtype == np.float32
    # Sums of at most 50 products in four layers
    want = empirical_ntk(module.double(), X.astype(np.float64))
    assert_allclose(K, want, rtol=200 * np.finfo(np.float32).eps, atol=1e-5 * want.max())
    assert empirical_ntk(module, X).dtype == np.float32
    X.flags.writeable = False
    assert_allclose(empirical_ntk(module, X), want, rtol=1e-5)


def test_a_module_is_the_network_it_was_copied_from(of):
    """``Sequential.sample`` in the standard parameterisation, with its weights."""
    net = kc.presets.mlp(2, kc.Erf(), b_std=0.3)
    f = net.sample(20, 0, shape=4, parameterization="standard")

    module = of.copied(f.weights, (4, 20, 20, 1))
    X = np.random.default_rng(0).standard_normal((6, 4))
    assert_allclose(empirical_ntk(module, X), f.ntk(X), rtol=1e-10)


@pytest.mark.parametrize("name", ["several outputs", "images"])
def test_solvers_and_estimators_take_it(of, name):
    module, X = of.made(name, 20)
    kernel, y = TorchNtk(module), np.random.default_rng(1).standard_normal(20)
    K = kernel(X)
    assert_allclose(kc.GramOperator(kernel, X) @ y, K @ y, rtol=1e-9, atol=1e-9)
    alpha = np.linalg.solve(K + 0.1 * np.eye(20), y)
    model = kc.KernelRegressor(kernel, ridge=0.1).fit(X, y)
    assert_allclose(model.predict(X[:5]), K[:5] @ alpha, atol=1e-8)
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(again.predict(X[:5]), model.predict(X[:5]), rtol=1e-10)
    assert_allclose((2 * kernel + kernel)(X), 3 * K, rtol=1e-12)
    assert kc.spectrum.gram(K).eigenvalues[0] > 0


def test_refusals(of):
    module, X = of.made("images")
    kernel = TorchNtk(module)
    module.train()
    text = "^module must be in evaluation mode: got BatchNorm2d in training mode; call module.eval"
    for call in (lambda: kernel(X), lambda: TorchNtk(module)):
        with pytest.raises(ValueError, match=text):
            call()
    free = of.nn.Sequential(of.nn.Linear(5, 1), of.nn.ReLU()).double()
    assert free.training  # which does not matter here
    empirical_ntk(free, np.ones((2, 5)))
    with pytest.raises(TypeError, match=r"^module must be a torch.nn.Module: got function$"):
        TorchNtk(lambda x: x)
    bad = np.ones((3, 5))
    bad[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"^X must be finite: X\[1, 2\] is nan$"):
        empirical_ntk(free, bad)
    with pytest.raises(ValueError, match=r"for each of 3 inputs: got shape \(3, 5, 1\)$"):
        empirical_ntk(of.nn.Linear(4, 1), np.ones((3, 5, 4)))
    with pytest.raises(ValueError, match=r"^X must have 2, 3 or 4 axes: got 1$"):
        empirical_ntk(free, np.ones(5))
    with pytest.raises(ValueError, match=r"parameters on meta; call module.cpu\(\)$"):
        TorchNtk(of.nn.Linear(3, 1, device="meta"))
