"""Networks of finite width."""

from types import SimpleNamespace

import numpy as np
from messages import Case

import kernelcore as kc
from kernelcore import networks
from kernelcore.networks import _torch

NET = kc.presets.mlp(1)
X = np.arange(6.0).reshape(3, 2)
Y = np.ones(3)
IMAGES = kc.Sequential(kc.Conv(3, padding="valid"), kc.Relu(), kc.GlobalAvgPool(), kc.Dense())


def f(**options):
    return NET.sample(3, 0, shape=2, **options)


class Part:
    """What a module of PyTorch looks like to the bridge, which need not be installed."""

    def __init__(self, *parameters, training=False):
        self._parameters, self.training = parameters, training

    def parameters(self):
        return self._parameters

    def named_parameters(self):
        return [(str(k), p) for k, p in enumerate(self._parameters)]

    def buffers(self):
        return []

    def modules(self):
        return [self]


class _DropoutNd(Part):
    pass


class Dropout(_DropoutNd):
    pass


class Parameter:
    requires_grad = True

    def __init__(self, dtype="torch.float32", device="cpu"):
        self.dtype, self.device = dtype, SimpleNamespace(type=device)


class Cuda(SimpleNamespace):
    type = "cuda"

    def __str__(self):
        return "cuda:0"


def on_cuda():
    parameter = Parameter()
    parameter.device = Cuda()
    return Part(parameter)


CASES = [
    Case(ValueError, "width must be at least 1: got 0", lambda: NET.sample(0)),
    Case(
        ValueError, "width must have one entry for each of the 1 hidden layers: got 2",
        lambda: NET.sample([3, 4]),
    ),
    Case(
        ValueError,
        "parameterization must be one of 'ntk', 'standard', 'xavier': got 'mup'",
        lambda: NET.sample(3, parameterization="mup"),
    ),
    Case(
        ValueError, "dtype must be float32 or float64: got int64", lambda: NET.sample(3, dtype=int)
    ),
    Case(
        ValueError,
        "network must know the shape of its inputs: call it with some, or pass shape= to sample",
        lambda: NET.sample(3).theta,
    ),
    Case(
        ValueError, "shape must have 1 entries for a program of rows: got (4, 4)",
        lambda: NET.sample(3, shape=(4, 4)),
    ),
    Case(
        ValueError, "X must have inputs of shape (2,): got (1,)", lambda: f()(X[:, :1]),
    ),
    Case(
        ValueError,
        "inputs must have room for the windows of Conv((3, 3), padding='valid'): got positions "
        "2 x 2",
        lambda: IMAGES.sample(3, shape=(2, 2, 1)),
    ),
    Case(
        ValueError, "network must have activations alone between its weights: got Project()",
        lambda: kc.Sequential(kc.Dense(), kc.Project(), kc.Dense()).sample(3, shape=2),
    ),
    Case(
        ValueError,
        "network must have equal shapes on both sides of Residual(Relu(), Dense(1.0)): got 3 and 4",
        lambda: kc.networks._network.sized(
            kc.Sequential(kc.Dense(), kc.Residual(kc.Relu(), kc.Dense()), kc.Dense()).program,
            (2,), [4, 3, 1], True,
        ),
    ),
    Case(
        ValueError, "network must have weights: got none",
        lambda: kc.Sequential(kc.GlobalAvgPool()).sample(3),
    ),
    Case(
        ValueError, "cotangent must have the shape of the outputs, (3,): got (3, 1)",
        lambda: f().vjp(X, Y[:, None]),
    ),
    Case(
        ValueError, "y must have the shape of the outputs, (3,): got (2,)",
        lambda: f().gradient(X, Y[:2]),
    ),
    Case(
        ValueError, "y must be -1 or 1 for the hinge loss: got values 0.0, 1.0",
        lambda: f().gradient(X, [0.0, 1.0, 1.0], loss="hinge"),
    ),
    Case(
        ValueError, "outputs must be several for the softmax loss: got 1",
        lambda: f().gradient(X, Y, loss="softmax"),
    ),
    Case(
        ValueError, "y must have a class from 0 to 1 for each of 3 inputs: got values 0, 1, 2",
        lambda: f(outputs=2).gradient(X, [0, 1, 2], loss="softmax"),
    ),
    Case(
        ValueError, "network must have layers that are trained: all are frozen",
        lambda: f().training().ntk(X),
    ),
    Case(TypeError, "layers must be integers: got float", lambda: f().training(0.5)),
    Case(ValueError, "layers must be from -2 to 1: got 2", lambda: f().training(2)),
    Case(
        ValueError, "batch must be left out for gradient flow: got 2",
        lambda: networks.train(f(), X, Y, method="flow", time=1.0, batch=2),
    ),
    Case(
        FloatingPointError,
        "training must descend: the loss is 2.41e+13 at step 1 with steps of 1e+03; the largest "
        "stable one is about 0.123",
        lambda: networks.train(f(), X, Y, step=1e3),
    ),
    Case(
        ValueError, "module must have parameters that require gradients: got none",
        lambda: _torch.inspected(Part()),
    ),
    Case(
        ValueError,
        "module must be in the memory of the host: got parameters on cuda:0; call module.cpu()",
        lambda: _torch.inspected(on_cuda()),
    ),
    Case(
        ValueError,
        "module must have parameters of one dtype, float32 or float64: got float32 and float64; "
        "call module.double()",
        lambda: _torch.inspected(Part(Parameter(), Parameter("torch.float64"))),
    ),
    Case(
        ValueError,
        "module must be in evaluation mode: got Dropout in training mode; call module.eval()",
        lambda: _torch.inspected(Dropout(Parameter(), training=True)),
    ),
    Case(
        ValueError,
        "module must return one output, or a row of them, for each of 3 inputs: got shape "
        "(3, 2, 2)",
        lambda: _torch.outputs_of((3, 2, 2), 3),
    ),
    Case(ValueError, "X must have 2, 3 or 4 axes: got 1", lambda: _torch.axes_of(X[0])),
]  # fmt: skip
