"""Kernels of dense networks: the recursion, entry by entry, and finite networks drawn at random.

A network is a sequence of ``Dense``, ``Act`` and ``Residual`` in the order of the forward pass.
Conventions: input kernel <x, x'>/d; Dense maps K to w^2 K + b^2 and T to K_new + w^2 T (w^2 T when
frozen); an activation maps (K, T) to (dual, T * dual of the derivative); a Residual adds what its
two sides make of the same (K, T).
"""

from collections.abc import Callable
from typing import NamedTuple

import mpmath as mp
import numpy as np

from . import duals


class Dense(NamedTuple):
    w_std: float = 1.0
    b_std: float = 0.0
    trainable: bool = True


class Act(NamedTuple):
    name: str
    params: tuple = ()
    shift: float = 0.0
    dual: Callable | None = (
        None  # (v1, v2, cov) -> (dual, derivative) on arrays; default: the mpmath oracle
    )


class Residual(NamedTuple):
    branch: tuple
    shortcut: tuple = ()


# ---- simple duals for long doubles


PI = 4 * np.arctan(np.longdouble(1))


def relu(v1, v2, cov):
    size = np.sqrt(v1 * v2)
    angle = np.arctan2(np.sqrt(np.maximum(v1 * v2 - cov * cov, 0)), cov)
    return (size * np.sin(angle) + (PI - angle) * cov) / (2 * PI), (PI - angle) / (2 * PI)


def erf(v1, v2, cov):
    det = (1 + 2 * v1) * (1 + 2 * v2)
    return 2 / PI * np.arcsin(2 * cov / np.sqrt(det)), 4 / PI / np.sqrt(det - 4 * cov * cov)


def sin(v1, v2, cov):
    half = np.exp(-(v1 + v2) / 2)
    return half * np.sinh(cov), half * np.cosh(cov)


SIMPLE = {"Relu": relu, "Erf": erf, "Sin": sin}


# ---- the recursion


class Exact:
    """Arrays of mpf: 50 digits, one dual at a time; inputs are the exact numbers they are."""

    @staticmethod
    def array(x):
        return np.vectorize(lambda value: mp.mpf(float(value)), otypes=[object])(x)

    number = mp.mpf

    @staticmethod
    def dual(act):
        def entry(v1, v2, cov):
            return duals.dual(act.name, act.params, act.shift, v1, v2, cov)

        return act.dual or np.frompyfunc(entry, 3, 2)


class Extended:
    """Long doubles and the simple closed forms above, or the ``dual`` given by the activation."""

    @staticmethod
    def array(x):
        return np.asarray(x, np.longdouble)

    number = np.longdouble

    @staticmethod
    def dual(act):
        return act.dual or SIMPLE[act.name]


class State(NamedTuple):
    v1: np.ndarray  # (n, 1) variances of x
    v2: np.ndarray  # (1, m) variances of y
    k: np.ndarray  # (n, m)
    t: np.ndarray  # (n, m)


def kernels(network, x, y=None, *, arithmetic=Extended, input_sum=False):
    """(nngp, ntk), arrays of the arithmetic's numbers."""
    x = arithmetic.array(x)
    y = x if y is None else arithmetic.array(y)
    scale = 1 if input_sum else arithmetic.number(x.shape[1])
    k = (x[:, None, :] * y[None, :, :]).sum(-1) / scale
    v1, v2 = (x * x).sum(-1)[:, None] / scale, (y * y).sum(-1)[None, :] / scale
    end = _walk(network, State(v1, v2, k, 0 * k), arithmetic)
    return end.k, end.t


def _walk(network, s, arithmetic):
    for layer in network:
        if isinstance(layer, Dense):
            w2, b2 = (arithmetic.number(value) ** 2 for value in (layer.w_std, layer.b_std))
            v1, v2, k = (w2 * a + b2 for a in (s.v1, s.v2, s.k))
            s = State(v1, v2, k, w2 * s.t + (k if layer.trainable else 0))
        elif isinstance(layer, Act):
            dual = arithmetic.dual(layer)
            k, slope = dual(s.v1, s.v2, s.k)
            s = State(dual(s.v1, s.v1, s.v1)[0], dual(s.v2, s.v2, s.v2)[0], k, slope * s.t)
        else:
            sides = [_walk(side, s, arithmetic) for side in (layer.branch, layer.shortcut)]
            s = State(*(a + b for a, b in zip(*sides, strict=True)))
    return s


def terms(network, x, y=None, **options):
    """(L, n, m): the NTK with all but one of the trained Dense frozen; their sum is the NTK.

    In the order of the forward pass, a Residual's branch before its shortcut.
    """
    return np.stack([kernels(only, x, y, **options)[1] for only in _one_trained(network)])


def _one_trained(network):
    for i in range(_count(network)):
        yield _keep(network, iter(range(_count(network))), i)


def _count(network):
    return sum(
        layer.trainable
        if isinstance(layer, Dense)
        else _count(layer.branch) + _count(layer.shortcut)
        if isinstance(layer, Residual)
        else 0
        for layer in network
    )


def _keep(network, index, chosen):
    kept = []
    for layer in network:
        if isinstance(layer, Dense) and layer.trainable:
            layer = layer._replace(trainable=next(index) == chosen)
        elif isinstance(layer, Residual):
            layer = Residual(
                _keep(layer.branch, index, chosen), _keep(layer.shortcut, index, chosen)
            )
        kept.append(layer)
    return tuple(kept)


# ---- finite networks


def sample(network, x, width, rng, outputs=1):
    """(nngp, ntk) of one random network of the given width in the NTK parameterisation.

    That is z = w_std W h / sqrt(fan_in) + b_std b with standard normal W and b. nngp is the
    covariance of the output given all layers but the last Dense; ntk sums df_k(x)/dp df_k(x')/dp
    over trained parameters p and averages over outputs k. Errors fall as 1/sqrt(width).
    """
    if not isinstance(network[-1], Dense):
        raise ValueError(f"network must end in Dense: {network[-1]}")
    ntk = np.zeros((len(x), len(x)))

    def dense(layer, h, size):
        fan_in = h.shape[1]
        weights = layer.w_std / np.sqrt(fan_in) * rng.standard_normal((size, fan_in))
        z = h @ weights.T + layer.b_std * rng.standard_normal(size)

        def backward(delta):  # (outputs, n, size) -> (outputs, n, fan_in)
            nonlocal ntk
            if layer.trainable:
                features = layer.w_std**2 / fan_in * (h @ h.T) + layer.b_std**2
                ntk += features * np.einsum("kia,kja->ij", delta, delta, optimize=True) / outputs
            return delta @ weights

        return z, backward

    def forward(layers, h):
        tape = []
        for layer in layers:
            if isinstance(layer, Dense):
                h, back = dense(layer, h, width)
            elif isinstance(layer, Act):
                phi, slope = duals.functions(layer.name, layer.params, layer.shift, duals.NP)
                h, back = phi(h), _times(slope(h))
            else:
                (a, back_a), (b, back_b) = forward(layer.branch, h), forward(layer.shortcut, h)
                h, back = a + b, _both(back_a, back_b)
            tape.append(back)

        def backward(delta):
            for back in reversed(tape):
                delta = back(delta)
            return delta

        return h, backward

    h, backward = forward(network[:-1], np.asarray(x, float))
    last = network[-1]
    _, head = dense(last, h, outputs)
    backward(head(np.broadcast_to(np.eye(outputs)[:, None, :], (outputs, len(x), outputs))))
    return last.w_std**2 / h.shape[1] * (h @ h.T) + last.b_std**2, ntk


def _times(slope):
    return lambda delta: delta * slope


def _both(first, second):
    return lambda delta: first(delta) + second(delta)
