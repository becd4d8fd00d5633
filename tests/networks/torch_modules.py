"""Modules of PyTorch, and all their Jacobians at once."""

from itertools import pairwise

import numpy as np
import torch
from torch import nn


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


class Erf(nn.Module):
    def forward(self, x):
        return torch.erf(x)


def copied(weights, sizes):
    """Linear layers with given weights, and Erf between them."""
    layers = [nn.Linear(n, m, dtype=torch.float64) for n, m in pairwise(sizes)]
    with torch.no_grad():
        for layer, (w, b) in zip(layers, weights, strict=True):
            layer.weight.copy_(torch.tensor(np.array(w.T)))
            layer.bias.copy_(torch.tensor(np.array(b)))
    return nn.Sequential(*(part for layer in layers for part in (layer, Erf())))[:-1]


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
