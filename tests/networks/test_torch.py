"""The tangent kernels of PyTorch modules, against Jacobians by ``torch.func.jacrev``."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kernelcore as kc
from kernelcore import networks
from kernelcore.networks import TorchNtk, empirical_ntk
from kernelcore.networks import _torch as bridge

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'kernelcore[torch]'")
nn = torch.nn


class Shared(nn.Module):
    """One linear layer twice, another whose weights are taken past it, one over positions."""

    def __init__(self):
        super().__init__()
        self.twice, self.past, self.last = nn.Linear(5, 5), nn.Linear(5, 4), nn.Linear(4, 2)
        self.over = nn.Linear(1, 3)

    def forward(self, x):
        h = torch.tanh(self.twice(torch.tanh(self.twice(x))))
        h = h + self.over(x[..., None]).mean(-1)
        h = self.past(h) * nn.functional.linear(x, self.past.weight)
        return self.last(h)


class Turned(nn.Module):
    """A linear layer that sees positions where others see inputs."""

    def __init__(self, positions):
        super().__init__()
        self.inner, self.outer = nn.Linear(4, 6), nn.Linear(6 * positions, 1)
        self.positions = positions

    def forward(self, x):
        h = torch.stack([torch.tanh(self.inner(row)) for row in x.reshape(len(x), -1, 4)])
        return self.outer(h.reshape(len(x), -1))[:, 0]


def conv():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.AvgPool2d(2),
        nn.Conv2d(4, 5, 3, padding=1), nn.Tanh(), nn.Flatten(), nn.Dropout(0.3), nn.Linear(45, 3),
    )  # fmt: skip


MODULES = {
    "mlp": (
        lambda: nn.Sequential(
            nn.Linear(5, 7), nn.ReLU(inplace=True), nn.Linear(7, 6, bias=False), nn.Tanh(),
            nn.Linear(6, 1), nn.Flatten(0),
        ),
        (5,), 3,
    ),
    "several outputs": (
        lambda: nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.LayerNorm(7), nn.Linear(7, 3)), (5,), 2
    ),
    "images": (conv, (2, 6, 6), 1),
    "signals": (
        lambda: nn.Sequential(
            nn.Conv1d(2, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(4, 1)
        ),
        (2, 8), 1,
    ),
    "shared": (Shared, (5,), 1),
    "turned": (lambda: Turned(2), (8,), 1),
    "one layer": (lambda: nn.Linear(5, 2), (5,), 0),
}  # fmt: skip


def made(name, n=7, dtype=np.float64):
    torch.manual_seed(0)
    build, shape, _ = MODULES[name]
    module = build().double() if dtype == np.float64 else build()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):  # statistics as after training
            part.running_mean.uniform_(-1, 1)
            part.running_var.uniform_(0.5, 2)
    X = np.random.default_rng(0).standard_normal((n, *shape)).astype(dtype)
    return module.eval(), X


def oracle(module, X, Y=None):
    """All Jacobians at once."""
    parameters = {k: p.detach() for k, p in module.named_parameters() if p.requires_grad}

    def jacobian(x):
        found = torch.func.jacrev(
            lambda p: torch.func.functional_call(module, p, (torch.tensor(x),)).reshape(len(x), -1)
        )(parameters)
        return torch.cat([j.reshape(*j.shape[:2], -1) for j in found.values()], dim=2).numpy()

    J = jacobian(X)
    other = J if Y is None else jacobian(Y)
    return np.einsum("ikp,jkp->ij", J, other) / J.shape[1]


@pytest.mark.parametrize("name", MODULES)
def test_kernels_are_those_of_jacobians(name, monkeypatch):
    module, X = made(name)
    want = oracle(module, X)
    K = empirical_ntk(module, X)
    assert K.dtype == np.float64
    assert_allclose(K, want, rtol=1e-10, atol=1e-10 * want.max())
    assert_allclose(empirical_ntk(module, X[:4], X[2:]), oracle(module, X[:4], X[2:]), rtol=1e-10)
    kernel = TorchNtk(module)
    assert_allclose(kernel.diag(X), np.diag(want), rtol=1e-10)
    assert kernel(X[:0]).shape == kernel(X[:0], X[:0]).shape == (0, 0)
    assert kernel(X, X[:0]).shape == (7, 0)
    assert len(kernel._plan.linear) == MODULES[name][2]
    # in blocks of inputs, and of passes
    monkeypatch.setattr(bridge, "BATCH", 2)
    monkeypatch.setattr(networks._empirical.OfTraces, "_rows", lambda self, x: self._begin(x) or 3)
    assert_allclose(TorchNtk(module)(X), want, rtol=1e-10, atol=1e-10 * want.max())


def test_parameters_that_are_frozen_do_not_count():
    module, X = made("several outputs")
    module[0].weight.requires_grad_(False)
    assert_allclose(empirical_ntk(module, X), oracle(module, X), rtol=1e-10)
    assert TorchNtk(module)._linear(bridge.inspected(module)[0]) == ["3"]
    for p in module[:3].parameters():
        p.requires_grad_(False)
    assert_allclose(empirical_ntk(module, X), oracle(module, X), rtol=1e-10)


def test_dtypes():
    module, X = made("mlp", dtype=np.float32)
    K = empirical_ntk(module, X)
    assert K.dtype == np.float32
    # Sums of at most 50 products in four layers
    want = empirical_ntk(module.double(), X.astype(np.float64))
    assert_allclose(K, want, rtol=200 * np.finfo(np.float32).eps, atol=1e-5 * want.max())
    assert empirical_ntk(module, X).dtype == np.float32
    X.flags.writeable = False
    assert_allclose(empirical_ntk(module, X), want, rtol=1e-5)


def test_a_module_is_the_network_it_was_copied_from():
    """``Sequential.sample`` in the standard parameterisation, with its weights."""
    net = kc.presets.mlp(2, kc.Erf(), b_std=0.3)
    f = net.sample(20, 0, shape=4, parameterization="standard")

    class Erf(nn.Module):
        def forward(self, x):
            return torch.erf(x)

    module = nn.Sequential(
        nn.Linear(4, 20), Erf(), nn.Linear(20, 20), Erf(), nn.Linear(20, 1)
    ).double()
    with torch.no_grad():
        for layer, (w, b) in zip(module[::2], f.weights, strict=True):
            layer.weight.copy_(torch.tensor(np.array(w.T)))
            layer.bias.copy_(torch.tensor(np.array(b)))
    X = np.random.default_rng(0).standard_normal((6, 4))
    assert_allclose(empirical_ntk(module, X), f.ntk(X), rtol=1e-10)


@pytest.mark.parametrize("name", ["several outputs", "images"])
def test_solvers_and_estimators_take_it(name):
    module, X = made(name, 20)
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


def test_refusals():
    module, X = made("images")
    kernel = TorchNtk(module)
    module.train()
    text = "^module must be in evaluation mode: got BatchNorm2d in training mode; call module.eval"
    for call in (lambda: kernel(X), lambda: TorchNtk(module)):
        with pytest.raises(ValueError, match=text):
            call()
    free = nn.Sequential(nn.Linear(5, 1), nn.ReLU()).double()
    assert free.training  # which does not matter here
    empirical_ntk(free, np.ones((2, 5)))
    with pytest.raises(TypeError, match=r"^module must be a torch.nn.Module: got function$"):
        TorchNtk(lambda x: x)
    bad = np.ones((3, 5))
    bad[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"^X must be finite: X\[1, 2\] is nan$"):
        empirical_ntk(free, bad)
    with pytest.raises(ValueError, match=r"for each of 3 inputs: got shape \(3, 5, 1\)$"):
        empirical_ntk(nn.Linear(4, 1), np.ones((3, 5, 4)))
    with pytest.raises(ValueError, match=r"^X must have 2, 3 or 4 axes: got 1$"):
        empirical_ntk(free, np.ones(5))
    with pytest.raises(ValueError, match=r"parameters on meta; call module.cpu\(\)$"):
        TorchNtk(nn.Linear(3, 1, device="meta"))
