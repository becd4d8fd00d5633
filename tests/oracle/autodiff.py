"""Finite networks, forward alone, of layers of the oracle; ``autograd`` differentiates them.

Weights z = w_std/sqrt(fan-in) W c + b_std b in the NTK parameterisation, and z = W c + b in others,
c the inputs under each window. theta has the numbers of all trained layers in the order of the
forward pass, a branch before its shortcut: W of shape (fan-in, units), then b where b_std is not 0.
"""

import math
from types import SimpleNamespace

import autograd.numpy as np
from autograd.extend import defjvp
from autograd.scipy.special import erf

from . import duals, spatial
from .networks import Act, Dense, Residual
from .spatial import AvgPool, Conv, Flatten, GaussianPool, GlobalAvgPool

# autograd has what goes back through it alone.
defjvp(erf, lambda g, value, x: 2 / math.sqrt(math.pi) * np.exp(-(x**2)) * g)
LIBRARY = SimpleNamespace(
    exp=np.exp, sin=np.sin, cos=np.cos, tanh=np.tanh, cosh=np.cosh, log1p=np.log1p, sqrt=np.sqrt,
    erf=erf, minimum=np.minimum, number=float, where=np.where,
)  # fmt: skip


def affine(network):
    """All layers that have weights."""
    for layer in network:
        if isinstance(layer, Residual):
            yield from affine(layer.branch + layer.shortcut)
        elif isinstance(layer, (Conv, Dense)):
            yield layer


def filled(network, theta, weights):
    """Weights as they are given, with theta in the place of those that are trained."""
    start, found = 0, []
    for layer, given in zip(affine(network), weights, strict=True):
        parts = []
        for a in given:
            if a is not None and layer.trainable:
                parts.append(np.reshape(theta[start : start + a.size], a.shape))
                start += a.size
            else:
                parts.append(a)
        found.append(parts)
    assert start == len(theta)
    return found


def outputs(network, x, weights, ntk=True):
    """The outputs, of shape (n, units of the last layer)."""
    first, rest = spatial.split(network)
    h = np.reshape(x, (len(x), -1, x.shape[-1])) * (math.sqrt(x.shape[-1]) if first.sum else 1.0)
    h, shape = walk(rest, h, x.shape[1:-1], iter(weights), ntk)
    assert math.prod(shape) == 1
    return h[:, 0]


def walk(network, h, shape, weights, ntk):
    """Return h, of shape (n, positions, channels), behind all layers; and its sides."""
    for layer in network:
        if isinstance(layer, Residual):
            branch, after = walk(layer.branch, h, shape, weights, ntk)
            shortcut, shape = walk(layer.shortcut, h, shape, weights, ntk)
            assert shape == after
            h = branch + shortcut
        elif isinstance(layer, (Conv, Dense)):
            if isinstance(layer, Conv):
                sources = spatial.per_axis(layer, (len(h), *shape))
                h = np.einsum("oai,nic->noac", spatial._selection(sources, shape), h)
                h, shape = np.reshape(h, (*h.shape[:2], -1)), tuple(map(len, sources))
            w, b = next(weights)
            h = np.dot(h, w) * (layer.w_std / math.sqrt(len(w)) if ntk else 1.0)
            h = h if b is None else h + b * (layer.b_std if ntk else 1.0)
        elif isinstance(layer, Act):
            h = duals.functions(layer.name, layer.params, layer.shift, LIBRARY)[0](h)
        elif isinstance(layer, (AvgPool, GaussianPool)):
            sources, taps = spatial.pooling(layer, (len(h), *shape))
            every = [float(t) for t in taps[0]]
            for each in taps[1:]:
                every = [t * float(u) for t in every for u in each]
            h = np.einsum("a,oai,nic->noc", every, spatial._selection(sources, shape), h)
            shape = tuple(map(len, sources))
        elif isinstance(layer, GlobalAvgPool):
            h, shape = np.mean(h, axis=1, keepdims=True), ()
        else:
            assert isinstance(layer, Flatten)
            h = np.reshape(h, (len(h), 1, -1)) * (math.sqrt(math.prod(shape)) if layer.sum else 1.0)
            shape = ()
    return h, shape
