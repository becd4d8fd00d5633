"""Every message, whole: ``<argument> must <rule>: <what came>[; <remedy>]``."""

import ast
import importlib
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
from unittest import mock

import messages
import numpy as np
import pytest
from messages import Case

import kernelcore as kc
from kernelcore import cli
from kernelcore.engine.cpu import dispatch as _dispatch
from kernelcore.spectrum import Spectrum

X = np.arange(6.0).reshape(3, 2)
NET = kc.presets.mlp(1)
NTK = NET.ntk
FROZEN = kc.Dense(trainable=False)
FLOAT32 = X.astype(np.float32)


def with_nan(value, dtype=float):
    x = np.ones((3, 4), dtype)
    x[1, 2] = value
    return x


def read_only(shape):
    a = np.empty(shape)
    a.flags.writeable = False
    return a


def overflows(dtype, where):
    return f"X must keep the kernel within {dtype}: the variance overflows in {where}; scale X down"


# What is not a number, not a count, not a flag ...
PARAMETERS = [
    Case(TypeError, "w_std must be a real number: got str", lambda: kc.Dense("1")),
    Case(TypeError, "w_std must be a real number: got bool", lambda: kc.Dense(True)),
    Case(TypeError, "w_std must be a real number: got complex", lambda: kc.Dense(1j)),
    Case(TypeError, "b_std must be a real number: got ndarray", lambda: kc.Dense(1, np.ones(1))),
    Case(TypeError, "w_std must be a real number: got NoneType", lambda: kc.Dense(None)),
    Case(ValueError, "w_std must be finite: got nan", lambda: kc.Dense(np.nan)),
    Case(ValueError, "b_std must be finite: got inf", lambda: kc.Dense(1.0, np.inf)),
    Case(ValueError, "w_std must not be negative: got -1.0", lambda: kc.Dense(-1)),
    Case(ValueError, "b_std must not be negative: got -0.5", lambda: kc.Dense(1, -0.5)),
    Case(ValueError, "w_std must not be negative: got -2.0", lambda: kc.Conv(3, w_std=-2)),
    Case(TypeError, "trainable must be True or False: got int", lambda: kc.Dense(trainable=1)),
    Case(TypeError, "sum must be True or False: got str", lambda: kc.Input("yes")),
    Case(TypeError, "sum must be True or False: got int", lambda: kc.Flatten(0)),
    Case(ValueError, "shift must be finite: got -inf", lambda: kc.Relu(shift=-np.inf)),
    Case(TypeError, "slope must be a real number: got list", lambda: kc.LeakyRelu([0.1])),
    Case(TypeError, "n must be an integer: got float", lambda: kc.RectifiedPower(1.5)),
    Case(TypeError, "n must be an integer: got bool", lambda: kc.Hermite(True)),
    Case(ValueError, "n must be at least 0: got -1", lambda: kc.Monomial(-1)),
    Case(
        TypeError, "coefficients must be a sequence of numbers: got int", lambda: kc.PowerSeries(3)
    ),
    Case(
        ValueError,
        "coefficients must have at least one entry: got none",
        lambda: kc.PowerSeries(()),
    ),
    Case(
        TypeError,
        "coefficients[1] must be a real number: got str",
        lambda: kc.PowerSeries((1, "2")),
    ),
    Case(ValueError, "right must have 3 entries: got 2", lambda: kc.OneKink(0, (1, 2), (0, 0, 0))),
    Case(
        ValueError,
        "left must have 3 entries: got 4",
        lambda: kc.OneKink(0, (1, 2, 3), (0, 0, 0, 0)),
    ),
    Case(TypeError, "fn must be callable: got str", lambda: kc.Activation("tanh")),
    Case(TypeError, "filter_size must be an integer: got float", lambda: kc.Conv(3.0)),
    Case(ValueError, "filter_size must be at least 1: got 0", lambda: kc.Conv(0)),
    Case(ValueError, "filter_size must have one or two entries: got 3", lambda: kc.Conv((3, 3, 3))),
    Case(ValueError, "stride[1] must be at least 1: got 0", lambda: kc.Conv(3, stride=(1, 0))),
    Case(
        ValueError,
        "padding must be one of 'same', 'valid', 'circular': got 'full'",
        lambda: kc.Conv(3, padding="full"),
    ),
    Case(ValueError, "window must be at least 1: got -2", lambda: kc.AvgPool(-2)),
    Case(ValueError, "lengthscale must be positive: got 0.0", lambda: kc.Gaussian(0)),
    Case(ValueError, "lengthscale must be positive: got -1.0", lambda: kc.Laplacian(-1)),
    Case(ValueError, "lengthscale must be positive: got -0.0", lambda: kc.Cauchy(-0.0)),
    Case(ValueError, "lengthscale must be finite: got nan", lambda: kc.Gaussian(float("nan"))),
    Case(ValueError, "lengthscale must be positive: got 0.0", lambda: kc.Matern(1.5, 0)),
    Case(ValueError, "nu must be positive: got 0.0", lambda: kc.Matern(0, 1)),
    Case(ValueError, "norm must be 1 or 2: got 3", lambda: kc.Laplacian(1.0, norm=3)),
    Case(TypeError, "norm must be an integer: got str", lambda: kc.Laplacian(1.0, norm="l1")),
    Case(TypeError, "norm must be an integer: got bool", lambda: kc.Laplacian(1.0, norm=True)),
    Case(ValueError, "degree must be at least 1: got 0", lambda: kc.Polynomial(0)),
    Case(ValueError, "scale must be positive: got 0.0", lambda: kc.Polynomial(2, 0.0)),
    Case(ValueError, "offset must not be negative: got -1.0", lambda: kc.Polynomial(2, offset=-1)),
    Case(ValueError, "order must be at least 0: got -1", lambda: kc.ArcCosine(-1)),
    Case(ValueError, "factor must not be negative: got -2.0", lambda: -2 * NTK),
    Case(ValueError, "factor must be finite: got inf", lambda: NTK * np.inf),
    Case(ValueError, "depth must be at least 0: got -1", lambda: kc.presets.mlp(-1)),
    Case(TypeError, "depth must be an integer: got str", lambda: kc.presets.mlp("2")),
    Case(TypeError, "activation must be an activation: got str", lambda: kc.presets.mlp(1, "relu")),
    Case(TypeError, "n must be an integer: got float", lambda: kc.set_threads(2.0)),
    Case(ValueError, "n must be at least 1: got 0", lambda: kc.set_threads(0)),
    Case(ValueError, "n_threads must be at least 1: got 0", lambda: NTK(X, n_threads=0)),
    Case(TypeError, "n_threads must be an integer: got str", lambda: NET.kernels(X, n_threads="2")),
]

# ... networks that cannot be ...
NETWORKS = [
    Case(TypeError, "layers[0] must be a layer: got int", lambda: kc.Sequential(3)),
    Case(
        TypeError,
        "layers[1] must be a layer: got Relu; call it",
        lambda: kc.Sequential(kc.Dense(), kc.Relu),
    ),
    Case(
        TypeError,
        "layers[1] must be a layer: got Gaussian",
        lambda: kc.Sequential(kc.Dense(), kc.Gaussian(1)),
    ),
    Case(
        TypeError,
        "shortcut[0] must be a layer: got str",
        lambda: kc.Residual(kc.Dense(), shortcut=("x",)),
    ),
    Case(
        TypeError,
        "shortcut must be a layer or a sequence of layers: got int",
        lambda: kc.Residual(kc.Dense(), shortcut=5),
    ),
    Case(
        ValueError,
        "layers[1] must not be Input: Input comes first",
        lambda: kc.Sequential(kc.Dense(), kc.Input()),
    ),
    Case(
        ValueError,
        "layers must not hold Input: Input comes first in a network",
        lambda: kc.Residual(kc.Input(), kc.Dense()),
    ),
    Case(
        ValueError,
        "layers must end in Dense or Conv: the branch ends in Relu()",
        lambda: kc.Residual(kc.Dense(), kc.Relu()),
    ),
    Case(
        ValueError,
        "layers must end in Dense or Conv: the branch ends in nothing",
        lambda: kc.Residual(),
    ),
    Case(
        ValueError,
        "layers must have a Dense or Conv before Relu(): inputs are not Gaussian before it",
        lambda: kc.Sequential(kc.Relu(), kc.Dense()).nngp,
    ),
    Case(
        ValueError,
        "layers must have a Dense or Conv before Erf(shift=0.5): inputs are not Gaussian before it",
        lambda: kc.Sequential(kc.Input(), kc.Erf(shift=0.5)).ntk,
    ),
    Case(
        ValueError,
        "layers must have a Dense or Conv before Residual: inputs are not Gaussian before it",
        lambda: kc.Sequential(kc.Residual(kc.Dense()), kc.Dense()).kernels(X),
    ),
]

# What an activation leaves is not Gaussian, so the dual of the next one says nothing about it: relu
# of relu is relu, not half of it. A residual connection passes that on through its shortcut.
NOT_GAUSSIAN = [
    Case(
        ValueError,
        "layers must have a Dense or Conv before Sin(): inputs are not Gaussian before it",
        lambda: kc.Sequential(kc.Dense(), kc.Relu(), kc.Sin(), kc.Dense()).ntk(X),
    ),
    Case(
        ValueError,
        "layers must have a Dense or Conv before Erf(): inputs are not Gaussian before it",
        lambda: kc.Sequential(kc.Dense(), kc.Relu(), kc.Residual(kc.Dense()), kc.Erf()).nngp(X),
    ),
]

# ... inputs ...
INPUTS = [
    Case(ValueError, "X must be finite: X[1, 2] is nan", lambda: NTK(with_nan(np.nan))),
    Case(ValueError, "X must be finite: X[1, 2] is -inf", lambda: NTK.diag(with_nan(-np.inf))),
    Case(
        ValueError,
        "X must be finite: X[1, 2] is inf",
        lambda: kc.Gaussian(1.0)(with_nan(np.inf, np.float32)),
    ),
    Case(
        ValueError,
        "Y must be finite: Y[1, 2] is nan",
        lambda: NTK(np.ones((2, 4)), with_nan(np.nan)),
    ),
    Case(ValueError, "X must be finite: X[1, 2] is nan", lambda: NET.kernels(with_nan(np.nan))),
    Case(ValueError, "X must be finite: X[1, 2] is nan", lambda: NTK.terms(with_nan(np.nan))),
    Case(
        ValueError,
        "X must be finite: X[1, 2] is nan",
        lambda: (NTK + kc.Cauchy(1))(with_nan(np.nan)),
    ),
    Case(
        ValueError,
        "X must have rows of finite norm: row 1 overflows; scale X down",
        lambda: NTK(np.array([[1.0, 1.0], [1.7e308, 1.7e308]])),
    ),
    Case(
        ValueError,
        "X must be rectangular: got a ragged sequence of 2 entries",
        lambda: NTK([[1.0, 2.0], [3.0]]),
    ),
    Case(
        ValueError,
        "Y must be rectangular: got a ragged sequence of 3 entries",
        lambda: NTK(X, [[1.0, 2.0], [3.0], [4.0, 5.0]]),
    ),
    Case(ValueError, "X must have shape (n, d): got shape ()", lambda: NTK(1.0)),
    Case(
        ValueError,
        "X must have shape (n, d): got shape (3,); "
        "pass X[:, None] if its entries are one-dimensional points",
        lambda: NTK(np.ones(3)),
    ),
    Case(
        ValueError,
        "Y must have shape (n, d): got shape (3, 2, 2); pass Y.reshape(len(Y), -1)",
        lambda: NTK(X, np.ones((3, 2, 2))),
    ),
    Case(
        ValueError,
        "X must have at least one column: got shape (3, 0)",
        lambda: NTK(np.ones((3, 0))),
    ),
    Case(
        ValueError,
        "Y must have as many columns as X: X has shape (3, 2), Y has shape (4, 3)",
        lambda: NTK(X, np.ones((4, 3))),
    ),
    Case(
        TypeError,
        "Y must have the dtype of X: X is float64, Y is float32; convert one of them",
        lambda: kc.Gaussian(1)(X, FLOAT32),
    ),
    Case(
        TypeError,
        "X must be real, got complex128; pass X.real or its magnitude",
        lambda: NTK(X.astype(complex)),
    ),
    Case(
        TypeError,
        "X must be real, got an array of objects; pass X.astype(float)",
        lambda: NTK(X.astype(object)),
    ),
    Case(
        TypeError,
        "X must hold numbers: X[0, 0] is None; leave out what is not",
        lambda: NTK([[None, 1.0]]),
    ),
    Case(
        TypeError,
        "X must be float32 or float64, got float16; convert it with X.astype",
        lambda: NTK.diag(X.astype(np.float16)),
    ),
    Case(
        TypeError,
        f"X must be float32 or float64, got {np.dtype(np.longdouble)}; convert it with X.astype",
        lambda: NTK(X.astype(np.longdouble)),
    ),
    Case(
        TypeError,
        "X must hold numbers: X[0, 0] is str; leave out what is not",
        lambda: NTK([["a", "b"]]),
    ),
    Case(
        ValueError,
        "X must be images (n, H, W, C) for Conv((3, 3)): got shape (3, 2); "
        "pass X.reshape(len(X), H, W, C)",
        lambda: POOLED.ntk(X),
    ),
    Case(
        ValueError,
        "X must be signals (n, L, C) or images (n, H, W, C) for Flatten(): got shape (3, 2); "
        "pass X[..., None] for signals of one channel, X.reshape(len(X), H, W, C) for images",
        lambda: kc.Sequential(kc.Flatten(), kc.Dense()).nngp.diag(X),
    ),
    Case(
        OverflowError,
        overflows("float64", "the input"),
        lambda: NTK(1e160 * X),
    ),
    Case(
        OverflowError,
        overflows("float32", "Dense(1e+20)"),
        lambda: kc.Sequential(kc.Dense(1e20)).nngp(FLOAT32),
    ),
    Case(
        OverflowError,
        overflows("float64", "Dense(1e+160)"),
        lambda: kc.Sequential(kc.Dense(1e160)).nngp(X),
    ),
    Case(
        OverflowError,
        overflows("float64", "RectifiedPower(3)"),
        lambda: kc.Sequential(kc.Dense(), kc.RectifiedPower(3)).ntk(1e60 * X),
    ),
    Case(
        OverflowError,
        overflows("float64", "Exp()"),
        lambda: kc.Sequential(kc.Dense(), kc.Exp()).ntk.diag(100 * X),
    ),
    Case(
        OverflowError,
        overflows("float64", "Polynomial(9)"),
        lambda: kc.Polynomial(9)(1e20 * X),
    ),
    Case(
        OverflowError,
        overflows("float64", "Residual"),
        lambda: kc.Sequential(FROZEN, kc.Residual(FROZEN, shortcut=FROZEN)).nngp([[1.3e154]]),
    ),
    Case(
        TypeError,
        "x must be real, got complex128; pass x.real or its magnitude",
        lambda: kc.Relu()([1j]),
    ),
    Case(ValueError, "u must be in [-1, 1]: got 1.5", lambda: NTK.profile([0.5, 1.5])),
    Case(ValueError, "u must be in [-1, 1]: got nan", lambda: kc.Gaussian(1).profile(np.nan)),
    Case(ValueError, "dim must be at least 1: got 0", lambda: NTK.profile(0.5, dim=0)),
    Case(ValueError, "radius must be positive: got -1.0", lambda: NTK.profile(0.5, radius=-1)),
    Case(
        ValueError,
        "radius must be given: the parts of this kernel have unlike default radii",
        lambda: (NTK + kc.Gaussian(1.0)).profile(0.5, dim=3),
    ),
    Case(
        ValueError,
        "Cauchy(2.0) must not be asked for a profile: it depends on the axes",
        lambda: kc.Cauchy(2).profile(0.5),
    ),
    Case(
        ValueError,
        "Laplacian(2.0, norm=1) must not be asked for a profile: it depends on the axes",
        lambda: kc.Laplacian(2, norm=1).profile(0.5),
    ),
    Case(ValueError, "var1 must be finite: got inf", lambda: kc.Erf().dual(np.inf, 1.0, 0.0)),
    Case(ValueError, "cov must be finite: got nan", lambda: kc.Erf().dual(1.0, 1.0, [0.0, np.nan])),
    Case(ValueError, "var2 must not be negative: got -1.0", lambda: kc.Tanh().dual(1.0, -1.0, 0.0)),
    Case(
        ValueError,
        "var1, var2 and cov must broadcast together: got shapes (2,), (3,), ()",
        lambda: kc.Relu().dual([1, 1], [1, 1, 1], 0),
    ),
    Case(
        TypeError,
        "var1 must be real, got complex128; pass var1.real or its magnitude",
        lambda: kc.Relu().dual(1j, 1, 0),
    ),
    Case(
        ValueError,
        "fn must be finite on the real line: got a non-finite value",
        lambda: kc.Activation(lambda x: np.where(x > 1, np.nan, x)).dual(1.0, 1.0, 0.5),
    ),
]

# ... and outputs.
OUTPUTS = [
    Case(TypeError, "out must be a NumPy array: got list", lambda: NTK(X, out=[[0.0] * 3] * 3)),
    Case(
        ValueError,
        "out must have shape (3, 3): got shape (3, 2)",
        lambda: NTK(X, out=np.empty((3, 2))),
    ),
    Case(
        ValueError,
        "out must have shape (3, 1): got shape (3, 3)",
        lambda: kc.Gaussian(1)(X, X[:1], out=np.empty((3, 3))),
    ),
    Case(
        TypeError,
        "out must have dtype float64: got float32",
        lambda: NTK(X, out=np.empty((3, 3), np.float32)),
    ),
    Case(
        TypeError,
        "out must have dtype float32: got float64",
        lambda: NTK(FLOAT32, out=np.empty((3, 3))),
    ),
    Case(
        ValueError,
        "out must be C-contiguous: got strides (8, 24)",
        lambda: NTK(X, out=np.empty((3, 3), order="F")),
    ),
    Case(
        ValueError,
        "out must be writable: got a read-only array",
        lambda: NTK(X, out=read_only((3, 3))),
    ),
    Case(
        ValueError,
        "out must not overlap X: they share memory; pass a copy",
        lambda: NTK(SQUARE, out=SQUARE),
    ),
    Case(
        ValueError,
        "out must not overlap Y: they share memory; pass a copy",
        lambda: NTK(np.ones((2, 2)), SQUARE, out=SQUARE),
    ),
]
SQUARE = np.ones((2, 2))
MASKED = Case(
    TypeError,
    "X must not be masked: got a masked array; pass X.filled(value)",
    lambda: kc.Gaussian(1.0)(np.ma.masked_array([[1.0, 2.0]], [[False, True]])),
)

TANGENT = Case(
    OverflowError,
    "X must keep the kernel within float64: the tangent kernel overflows; scale X down",
    lambda: kc.Sequential(kc.Dense(), kc.Dense(), kc.Dense()).ntk([[1.3e154]]),
)

# Profiles, maps and cyclic convolutions.
KAPPA0 = kc.profiles.Kappa0()
CYCLIC = [
    Case(ValueError, "s must be positive: got 0.0", lambda: kc.profiles.Exp(0)),
    Case(ValueError, "n must be at least 0: got -1", lambda: kc.profiles.Power(-1)),
    Case(ValueError, "max_degree must be at least 1: got 0", lambda: kc.profiles.Fitted(abs, 0)),
    Case(ValueError, "u must be in [-1, 1]: got 1.5", lambda: KAPPA0([0.5, 1.5])),
    Case(ValueError, "u must be finite: got nan", lambda: kc.profiles.Power(2)([0.5, np.nan])),
    Case(TypeError, "fn must be callable: got float", lambda: kc.profiles.Fitted(0.5)),
    Case(
        ValueError,
        "fn must return one value per entry: got shape () for input of shape (17,)",
        lambda: kc.profiles.Fitted(np.sum),
    ),
    Case(
        ValueError,
        "fn must be finite on [-1, 1]: got inf at 1.0",
        lambda: kc.profiles.Fitted(lambda u: np.where(u < 1, u, np.inf)),
    ),
    Case(
        TypeError,
        "fn(u) must be real, got complex128; pass fn(u).real or its magnitude",
        lambda: kc.profiles.Fitted(lambda u: u * 1j),
    ),
    *(
        Case(
            TypeError,
            f"profile must be a profile, a callable or a sequence of coefficients: got {got}",
            lambda given=given: kc.DotProduct(given),
        )
        for got, given in (
            ("int", 3),
            ("ndarray", np.ones((2, 2))),
            ("Relu", kc.Relu()),
            ("Kappa1; call it", kc.profiles.Kappa1),
            ("Ntk; pass its profile method", NTK),
        )
    ),
    Case(
        TypeError,
        "coefficients[1] must be a real number: got str",
        lambda: kc.profiles.as_profile([1.0, "2"]),
    ),
    Case(
        ValueError,
        "profile must be positive at 1: profiles.PowerSeries((1.0, -1.0)) is 0.0",
        lambda: kc.DotProduct((1, -1)),
    ),
    Case(
        ValueError,
        "profile must be largest at 1: profiles.PowerSeries((0.0, -1.0, 2.0)) is 1.0 there, and 3 "
        "in size at -1",
        lambda: kc.DotProduct((0, -1, 2)),
    ),
    *(
        Case(
            ValueError,
            "layers must train nothing before DotProduct(profiles.Kappa0()): its derivative is "
            "infinite at 1; freeze them, or ask for the nngp",
            call,
        )
        for call in (
            lambda: kc.Sequential(kc.Dense(), kc.DotProduct(KAPPA0)).ntk,
            lambda: kc.Sequential(FROZEN, kc.Dense(), kc.DotProduct(KAPPA0), FROZEN).kernels(X),
            lambda: (
                kc.Sequential(
                    FROZEN, kc.Residual(kc.Dense(), shortcut=FROZEN), kc.DotProduct(KAPPA0)
                ).ntk
            ),
            lambda: (
                kc.Sequential(kc.Dense(), kc.Residual(FROZEN, shortcut=kc.DotProduct(KAPPA0))).ntk
            ),
        )
    ),
    Case(
        ValueError,
        "layers must have a Dense or Conv before Relu(): inputs are not Gaussian before it",
        lambda: kc.Sequential(kc.Dense(), kc.Project(), kc.Relu()).nngp,
    ),
    Case(
        OverflowError,
        overflows("float64", "DotProduct(profiles.PowerSeries((0.0, 1e+200)))"),
        lambda: kc.Sequential(kc.DotProduct((0, 1e200))).nngp(1e60 * X),
    ),
    Case(ValueError, "patch must be at least 1: got 0", lambda: kc.CyclicConvolution(0, 1, (0, 1))),
    Case(TypeError, "pool must be an integer: got float", lambda: kc.CyclicConvolution(1, 1.0, ())),
    *(
        Case(
            ValueError,
            f"{name} must not exceed the columns of X: {name} is 3, X has shape (3, 2)",
            lambda given=given, which=which: getattr(kc.CyclicConvolution(*given), which)(X),
        )
        for name, given, which in (
            ("patch", (3, 1, (0, 1)), "__call__"),
            ("pool", (2, 3, kc.Gaussian(1.0)), "__call__"),
            ("patch", (3, 1, kc.Gaussian(1.0)), "diag"),
        )
    ),
    *(
        Case(
            ValueError,
            f"{name} must have patches of norm at most sqrt(2) for profiles.Exp(1.0): the one of "
            f"row 1 at 0 has norm 3.60555; scale {name} down, or pass a power series or a kernel",
            call,
        )
        for name, call in (
            ("X", lambda: kc.CyclicConvolution(2, 1, kc.profiles.Exp(1.0))(X)),
            ("Y", lambda: kc.CyclicConvolution(2, 1, kc.profiles.Exp(1.0))(0 * X, X)),
        )
    ),
    Case(
        OverflowError,
        overflows("float32", "profiles.Power(9)"),
        lambda: kc.CyclicConvolution(1, 1, kc.profiles.Power(9))(1e5 * FLOAT32),
    ),
    Case(
        ValueError,
        "CyclicConvolution(2, 1, Gaussian(1.0)) must not be asked for a profile: it depends on the "
        "axes",
        lambda: kc.CyclicConvolution(2, 1, kc.Gaussian(1.0)).profile(0.5),
    ),
    Case(
        TypeError,
        "profile must be of rows: Sequential(GlobalAvgPool()).nngp is a kernel of images",
        lambda: kc.CyclicConvolution(2, 1, kc.Sequential(kc.GlobalAvgPool()).nngp),
    ),
]

# Images and signals: layers, ...
IMAGES, SIGNALS = np.ones((2, 4, 5, 3)), np.ones((2, 6, 2))
CONV, LINE = kc.Conv(3), kc.Conv((3,))
POOLED = kc.Sequential(CONV, kc.Relu(), kc.GlobalAvgPool(), kc.Dense())
SIGNAL = kc.Sequential(LINE, kc.Relu(), kc.Flatten(), kc.Dense())


def flat(*layers):
    return kc.Sequential(*layers, kc.Flatten()).nngp


def nested(depth):
    block = kc.Residual(kc.Conv(1))
    for _ in range(depth - 1):
        block = kc.Residual(block, kc.Conv(1))
    return block


SPATIAL = [
    Case(
        ValueError,
        "stride must have as many entries as (3,): got 2",
        lambda: kc.Conv((3,), stride=(1, 1)),
    ),
    Case(
        ValueError,
        "stride must have as many entries as (2, 2): got 1",
        lambda: kc.AvgPool(2, stride=(1,)),
    ),
    Case(ValueError, "window[1] must be at least 1: got 0", lambda: kc.AvgPool((2, 0))),
    Case(
        ValueError,
        "padding must be one of 'same', 'valid', 'circular': got None",
        lambda: kc.AvgPool(2, padding=None),
    ),
    Case(TypeError, "subsampling must be an integer: got float", lambda: kc.GaussianPool(0.5)),
    Case(ValueError, "subsampling must be at least 1: got 0", lambda: kc.GaussianPool(0)),
    Case(
        ValueError,
        "layers must end their positions in GlobalAvgPool or Flatten: found neither",
        lambda: kc.Sequential(CONV, kc.Relu(), kc.Dense()).ntk,
    ),
    *(
        Case(
            ValueError,
            f"layers must not have {name} after the readout: no positions are left",
            call,
        )
        for name, call in (
            ("Conv((3, 3))", lambda: kc.Sequential(CONV, kc.Relu(), kc.Flatten(), CONV).nngp),
            ("Flatten()", lambda: flat(kc.GlobalAvgPool())),
            ("Conv((3,))", lambda: kc.Sequential(LINE, kc.Flatten(), kc.Residual(LINE)).ntk),
        )
    ),
    Case(
        ValueError,
        "layers must agree in axes: Conv((3, 3)) has 2, AvgPool((2,)) has 1",
        lambda: flat(CONV, kc.Relu(), kc.AvgPool((2,))),
    ),
    Case(
        ValueError,
        "layers must agree in axes: GaussianPool((2,)) has 1, Conv((3, 3)) has 2",
        lambda: flat(kc.GaussianPool((2,)), CONV),
    ),
    Case(
        ValueError,
        "layers must not pool inside Residual: got AvgPool((2, 2))",
        lambda: kc.Residual(kc.Relu(), kc.AvgPool(2), CONV),
    ),
    Case(
        ValueError,
        "layers must not pool inside Residual: got Flatten()",
        lambda: kc.Residual(CONV, shortcut=kc.Flatten()),
    ),
    Case(
        ValueError,
        "layers must agree with shortcut in shape: Residual ends in 2 x 3 positions, its shortcut "
        "in 4 x 5",
        lambda: flat(CONV, kc.Residual(kc.Relu(), kc.Conv(3, stride=2)))(IMAGES),
    ),
    Case(
        ValueError,
        "layers must agree with shortcut in shape: Residual ends in 6 positions, its shortcut in 4",
        lambda: flat(LINE, kc.Residual(LINE, shortcut=kc.Conv((3,), padding="valid")))(SIGNALS),
    ),
    Case(
        ValueError,
        "layers must nest Residual at most 16 deep: got one more",
        lambda: flat(CONV, nested(17))(IMAGES),
    ),
    # ... images that do not fit them, ...
    Case(
        ValueError,
        "X must have at least 5 x 3 positions where Conv((5, 3), padding='valid') comes: "
        "got 4 x 5; pad X to 5 x 5",
        lambda: flat(kc.Conv((5, 3), padding="valid"))(IMAGES),
    ),
    Case(
        ValueError,
        "X must have at least 7 positions where Conv((7,), padding='valid') comes: got 6; "
        "pad X to 7",
        lambda: flat(kc.Conv((7,), padding="valid")).diag(SIGNALS),
    ),
    Case(
        ValueError,
        "X must have at least 3 x 3 positions where AvgPool((3, 3)) comes: got 2 x 3; "
        "pad X to 5 x 5",
        lambda: kc.Sequential(kc.Conv(2, 2), kc.AvgPool(3), kc.Flatten()).kernels(IMAGES),
    ),
    Case(
        ValueError,
        "X must have at least 8 x 8 positions where AvgPool((8, 8)) comes: got 4 x 4; "
        "pad X to 32 x 32",
        lambda: kc.presets.myrtle(5).nngp(np.ones((1, 16, 16, 3))),
    ),
    Case(
        ValueError,
        "X must have at least 6 x 6 positions where GaussianPool(3) comes: got 4 x 5; "
        "pad X to 6 x 6",
        lambda: flat(kc.GaussianPool(3))(IMAGES),
    ),
    Case(
        ValueError,
        "X must have at least 8 positions where GaussianPool((4,)) comes: got 6; "
        "pad X to 8",
        lambda: flat(kc.GaussianPool((4,)))(SIGNALS),
    ),
    Case(
        ValueError,
        "X must be images (n, H, W, C) for Conv((3, 3)): got shape (2, 4, 5); write "
        "Conv((3,)) for signals (n, L, C), or pass X[..., None] for grey images (n, H, W)",
        lambda: POOLED.nngp(IMAGES[..., 0]),
    ),
    Case(
        ValueError,
        "Y must be images (n, H, W, C) for Conv((3, 3)): got shape (2, 4, 5); write "
        "Conv((3,)) for signals (n, L, C), or pass Y[..., None] for grey images (n, H, W)",
        lambda: POOLED.nngp(IMAGES, IMAGES[..., 0]),
    ),
    Case(
        ValueError,
        "X must be signals (n, L, C) for Conv((3,)): got shape (3, 2); pass X[..., None] "
        "for signals of one channel",
        lambda: SIGNAL.ntk(X),
    ),
    Case(
        ValueError,
        "X must be signals (n, L, C) for Conv((3,)): got shape (2, 4, 5, 3); "
        "write Conv((3, 3)) for images",
        lambda: SIGNAL.ntk.diag(IMAGES),
    ),
    Case(
        ValueError,
        "X must be signals (n, L, C) for Conv((3,)): got shape (2, 4, 5, 3); "
        "write Conv((3, 3)) for images",
        lambda: (POOLED.ntk + SIGNAL.ntk)(IMAGES),
    ),
    *(
        Case(
            ValueError,
            f"Y must have the positions and channels of X: X has shape {X.shape}, Y has shape "
            f"{Y.shape}",
            lambda call=call, X=X, Y=Y: call(X, Y),
        )
        for call, X, Y in (
            (POOLED.ntk, IMAGES, IMAGES[..., :1]),
            (POOLED.kernels, IMAGES, IMAGES[:, 1:]),
            (SIGNAL.ntk.terms, SIGNALS, SIGNALS[:, 1:]),
        )
    ),
    *(
        Case(
            ValueError,
            f"X must have at least one position and channel: got shape {X.shape}",
            lambda X=X: POOLED.nngp(X),
        )
        for X in (IMAGES[..., :0], IMAGES[:, :0], IMAGES[:, :, :0])
    ),
    Case(
        TypeError,
        "Y must have the dtype of X: X is float64, Y is float32; convert one of them",
        lambda: POOLED.ntk(IMAGES, IMAGES.astype(np.float32)),
    ),
    Case(
        TypeError,
        "X must be real, got complex64; pass X.real or its magnitude",
        lambda: POOLED.ntk(IMAGES.astype(np.complex64)),
    ),
    Case(
        TypeError,
        "Y must not be masked: got a masked array; pass Y.filled(value)",
        lambda: POOLED.ntk(IMAGES, np.ma.masked_array(IMAGES, IMAGES > 2)),
    ),
    Case(
        ValueError,
        "X must be finite: X[1, 0, 2, 1] is nan",
        lambda: POOLED.kernels(pixel(IMAGES, (1, 0, 2, 1), np.nan)),
    ),
    Case(
        ValueError,
        "Y must be finite: Y[0, 5, 1] is -inf",
        lambda: SIGNAL.nngp(SIGNALS, pixel(SIGNALS, (0, 5, 1), -np.inf)),
    ),
    Case(
        OverflowError,
        overflows("float32", "the input"),
        lambda: POOLED.nngp(1e25 * IMAGES.astype(np.float32)),
    ),
    Case(
        OverflowError,
        overflows("float32", "Erf()"),
        lambda: flat(kc.Conv(3, w_std=1e20), kc.Erf())(IMAGES.astype(np.float32)),
    ),
    Case(
        OverflowError,
        "X must keep the kernel within float64: the kernel overflows; scale X down",
        lambda: kc.Sequential(kc.Flatten(sum=True)).nngp.diag(7e153 * IMAGES),
    ),
    Case(
        OverflowError,
        "X must keep the kernel within float64: the tangent kernel overflows; scale X down",
        lambda: kc.Sequential(kc.Conv(1), kc.Conv(1), kc.Flatten()).ntk(1.3e154 * IMAGES[..., :1]),
    ),
    # ... what kernels of images are not asked, ...
    Case(
        ValueError,
        "Sequential(GlobalAvgPool()).nngp must not be asked for a profile: it is of images",
        lambda: kc.Sequential(kc.GlobalAvgPool()).nngp.profile(0.5),
    ),
    *(
        Case(
            TypeError,
            f"kernels must be of one kind of input: {left} and {right} are of {kinds}",
            call,
        )
        for left, right, kinds, call in (
            (
                "Sequential(Flatten()).nngp", "Gaussian(1.0)", "images and rows",
                lambda: flat() + kc.Gaussian(1.0),
            ),
            (
                "0.5 * Cauchy(2.0)", "Sequential(Flatten()).nngp", "rows and images",
                lambda: (0.5 * kc.Cauchy(2)) * flat(),
            ),
        )
    ),
    # ... and where they write.
    Case(
        ValueError,
        "out must have shape (2, 2): got shape (2, 3)",
        lambda: POOLED.ntk(IMAGES, out=np.empty((2, 3))),
    ),
    Case(
        TypeError,
        "out must have dtype float64: got float32",
        lambda: SIGNAL.nngp(SIGNALS, out=np.empty((2, 2), np.float32)),
    ),
    Case(
        ValueError,
        "out must not overlap Y: they share memory; pass a copy",
        lambda: POOLED.ntk(2 * IMAGES[:1], IMAGES, out=IMAGES.reshape(-1)[:2].reshape(1, 2)),
    ),
]  # fmt: skip


def pixel(x, at, value):
    x = x.copy()
    x[at] = value
    return x


PRESETS = [
    Case(ValueError, "depth must be at least 2: got 1", lambda: kc.presets.cntk(1)),
    Case(TypeError, "gap must be True or False: got str", lambda: kc.presets.cntk(3, "gap")),
    Case(TypeError, "fix must be True or False: got int", lambda: kc.presets.cntk(3, fix=1)),
    Case(ValueError, "depth must be 5, 7 or 10: got 6", lambda: kc.presets.myrtle(6)),
    Case(TypeError, "depth must be an integer: got str", lambda: kc.presets.myrtle("5")),
    Case(
        ValueError,
        "kernel must be one of 'relu', 'exp': got 'gauss'",
        lambda: kc.presets.myrtle(5, "gauss"),
    ),
    Case(
        ValueError,
        "patches must be 1, 2, 3 or a sequence of sizes: got 4",
        lambda: kc.presets.ckn(4),
    ),
    Case(
        ValueError,
        "patches must have at least one entry: got none",
        lambda: kc.presets.ckn((), ()),
    ),
    Case(ValueError, "patches[1] must be at least 1: got 0", lambda: kc.presets.ckn((3, 0), 2)),
    Case(
        ValueError,
        "pools must be given beside a sequence of patches: got None",
        lambda: kc.presets.ckn((3, 3)),
    ),
    Case(
        ValueError,
        "pools must have one entry per layer: got 1 for 2 patches",
        lambda: kc.presets.ckn(2, (2,)),
    ),
    Case(TypeError, "pools[0] must be an integer: got float", lambda: kc.presets.ckn(1, 2.5)),
    Case(
        ValueError,
        "profiles must have one entry per layer: got 2 for 1 patches",
        lambda: kc.presets.ckn(1, 2, [kc.profiles.Exp(0.5)] * 2),
    ),
    Case(
        TypeError,
        "profiles must be a profile or a sequence of them: got float",
        lambda: kc.presets.ckn(1, profiles=0.6),
    ),
]

# Spectra of Gram matrices, and theory.
EYE = np.eye(3)
SPHERICAL = Spectrum(-np.arange(9.0), [1] * 9, 9.0)
SPHERICAL.degrees, SPHERICAL.dim = np.arange(9), 3


def operator():
    from scipy.sparse.linalg import aslinearoperator

    return aslinearoperator(EYE)


def entry(i, j, value):
    k = np.eye(400)
    k[i, j] = value
    return k


THEORY = [
    Case(ValueError, "K must be square: got shape (3, 2)", lambda: kc.spectrum.gram(X)),
    Case(ValueError, "K must be square: got shape (3,)", lambda: kc.spectrum.gram(np.ones(3))),
    Case(
        ValueError,
        "K must have at least one row: got shape (0, 0)",
        lambda: kc.spectrum.gram(np.ones((0, 0))),
    ),
    Case(
        ValueError,
        "K must be finite: K[300, 5] is nan",
        lambda: kc.spectrum.gram(entry(300, 5, np.nan)),
    ),
    Case(
        ValueError,
        "K must be symmetric: K[2, 300] and K[300, 2] differ by 0.25; "
        "pass (K + K.T) / 2 if that is rounding",
        lambda: kc.spectrum.gram(entry(300, 2, 0.25)),
    ),
    Case(
        TypeError,
        "K must be real, got complex128; pass K.real or its magnitude",
        lambda: kc.spectrum.gram(1j * EYE),
    ),
    Case(ValueError, "rank must be at least 1: got 0", lambda: kc.spectrum.gram(EYE, 0)),
    Case(
        ValueError,
        "rank must be at most the number of rows of K, 3: got 4",
        lambda: kc.spectrum.gram(EYE, 4),
    ),
    Case(
        ValueError,
        "rank must be at most one less than the rows of K, 2: got 3",
        lambda: kc.spectrum.gram(operator(), 3, trace=3.0),
    ),
    Case(
        ValueError,
        "rank must be given beside a LinearOperator: got None",
        lambda: kc.spectrum.gram(operator(), trace=3.0),
    ),
    Case(
        ValueError,
        "trace must be given beside a LinearOperator: got None",
        lambda: kc.spectrum.gram(operator(), 1),
    ),
    Case(
        TypeError,
        "vectors must be True or False: got int",
        lambda: kc.spectrum.gram(EYE, vectors=1),
    ),
    Case(
        ValueError,
        "eigenvectors must be computed first: gram was called with vectors=False",
        lambda: kc.spectrum.gram(EYE, vectors=False).eigenvectors,
    ),
    Case(
        ValueError,
        "y must have one entry per row of K, 3: got shape (2,)",
        lambda: kc.spectrum.gram(EYE).target_power([1.0, 2.0]),
    ),
    Case(
        ValueError,
        "y must be finite: got inf",
        lambda: kc.spectrum.gram(EYE).target_power([1.0, 2.0, np.inf]),
    ),
    Case(
        ValueError,
        "t must not be negative: got -1.0",
        lambda: kc.spectrum.gram(EYE).decay([0.0, -1.0]),
    ),
    Case(
        ValueError,
        "spectrum must be a Spectrum or have shape (levels,): got shape (3, 3); "
        "pass spectrum.gram(K) for a Gram matrix",
        lambda: kc.theory.learning_curve(EYE, [1.0] * 3, 2),
    ),
    Case(
        ValueError,
        "spectrum must be a Spectrum or have shape (levels,): got shape (0,); "
        "pass spectrum.gram(K) for a Gram matrix",
        lambda: kc.theory.effective_dimension([], 1.0),
    ),
    Case(
        ValueError,
        "spectrum must not be negative: got -1e-17",
        lambda: kc.theory.learning_curve([1.0, -1e-17], [1.0, 0.0], 2),
    ),
    Case(
        ValueError,
        "spectrum must be finite: got inf",
        lambda: kc.theory.degrees_of_freedom([1.0, np.inf], 1.0),
    ),
    Case(
        ValueError,
        "target_power must have one entry per level, 2, and may have one more for the rest: "
        "got shape (4,)",
        lambda: kc.theory.learning_curve([1.0, 0.5], [1.0] * 4, 2),
    ),
    Case(
        ValueError,
        "target_power must be a number: got nan",
        lambda: kc.theory.approximation([1.0], [np.nan], 2),
    ),
    Case(
        ValueError,
        "n must be positive: got 0.0",
        lambda: kc.theory.learning_curve([1.0], [1.0], [1, 0]),
    ),
    Case(
        ValueError,
        "ridge must be finite: got inf",
        lambda: kc.theory.gradient_flow_curve([1.0], [1.0], 5, 1.0, ridge=np.inf),
    ),
    Case(
        ValueError,
        "features must be positive: got -2.0",
        lambda: kc.theory.random_features_curve([1.0], [1.0], 5, -2),
    ),
    Case(
        ValueError,
        "ridge must not be negative: got -0.1",
        lambda: kc.theory.modes([1.0], [1.0], 5, -0.1),
    ),
    Case(
        ValueError,
        "n, ridge, noise_variance and features must broadcast together: got shapes (2,), (3,), (), "
        "()",
        lambda: kc.theory.learning_curve([1.0], [1.0], [1, 2], [1, 2, 3]),
    ),
    Case(
        ValueError,
        "target_power must have one entry per degree: got shape (1, 2)",
        lambda: kc.theory.staircase(10, 5, [[0.5, 0.5]]),
    ),
    Case(
        ValueError, "dim must be above 1: got 1.0", lambda: kc.theory.staircase(10, 1, [0.5, 0.5])
    ),
    Case(
        ValueError,
        "pool must be at most dim, 10: got 11",
        lambda: kc.theory.sample_complexity(2, 10, 3, 11),
    ),
    Case(
        TypeError,
        "spectrum must be of a sphere, with degrees and dim: got list",
        lambda: kc.theory.approximation_rate([1.0, 0.5]),
    ),
    Case(
        ValueError,
        "degrees[1] must be at most the highest degree listed, 8: got 9",
        lambda: kc.theory.approximation_rate(SPHERICAL, degrees=(2, 9)),
    ),
    Case(
        ValueError,
        "degrees must hold at least two eigenvalues that are neither zero nor equal: "
        "got 1 from 2 to 2",
        lambda: kc.theory.approximation_rate(SPHERICAL, degrees=(2, 2)),
    ),
]

NAME = Case(AttributeError, "module 'kernelcore' has no attribute 'Rleu'", lambda: kc.Rleu)

# ... of spectra on the hypercube and under spiked covariates ...
HQW = kc.CyclicConvolution(3, 2, (0.0, 0.5, 0.5))
S = kc.spectrum.sphere(NTK, 3, 6)
CAUCHY = kc.Cauchy(1.0)
SPHERE = [
    Case(ValueError, "dim must be at least 2: got 1", lambda: kc.spectrum.sphere(NTK, 1)),
    Case(TypeError, "dim must be an integer: got float", lambda: kc.spectrum.sphere(NTK, 3.0)),
    Case(
        ValueError,
        "max_degree must be at least 0: got -1",
        lambda: kc.spectrum.sphere(NTK, 3, -1),
    ),
    Case(
        ValueError,
        "max_degree must be at least 0: got -1",
        lambda: NTK.null_degrees(-1),
    ),
    Case(
        ValueError,
        "radius must be positive: got 0.0",
        lambda: kc.spectrum.sphere(NTK, 3, radius=0),
    ),
    Case(
        ValueError,
        "radius must be given: the parts of this kernel have unlike default radii",
        lambda: kc.spectrum.sphere(NTK + kc.Gaussian(1.0), 3),
    ),
    Case(
        ValueError,
        "radius must be left out: a profile is a function of the cosine",
        lambda: kc.spectrum.sphere(np.exp, 3, radius=1.0),
    ),
    Case(
        TypeError,
        "kernel must be a profile, a callable or a sequence of coefficients: got str",
        lambda: kc.spectrum.sphere("ntk", 3),
    ),
    Case(
        ValueError,
        f"{CAUCHY!r} must not be asked for a profile: it depends on the axes",
        lambda: kc.spectrum.sphere(CAUCHY, 3),
    ),
    Case(
        ValueError,
        "kernel must be positive semi-definite on the sphere of R^3: its eigenvalue of degree 2 is "
        "-0.133333",
        lambda: kc.spectrum.sphere([1.0, 0.0, -1.0], 3, 4),
    ),
    Case(
        ValueError,
        "kernel must be positive semi-definite on the sphere of R^3: its eigenvalue of degree 2 is "
        "-0.133333",
        lambda: kc.spectrum.sphere(lambda t: 1 - t**2, 3, 4),
    ),
    Case(ValueError, "parity must be None, 0 or 1: got 2", lambda: S.decay(parity=2)),
    Case(
        ValueError,
        "first and last must leave four degrees that are resolved and not zero: got 2 in 3..6",
        lambda: S.decay(),
    ),
    Case(ValueError, "last must be at least 0: got -3", lambda: S.decay(last=-3)),
    Case(
        ValueError,
        "target_power must have one entry per level, 7, and may have one more for the rest: got "
        "shape (2,)",
        lambda: S.rkhs_norm([1.0, 2.0]),
    ),
    Case(
        ValueError,
        "target_power must not be negative: got -1.0",
        lambda: S.rkhs_norm([0, 0, 0, 0, 0, 0, -1.0]),
    ),
    Case(ValueError, "t must be in [-1, 1]: got 2.0", lambda: S([2.0])),
    Case(
        ValueError,
        "dim must be at least 2: got 1",
        lambda: kc.spectrum.legendre(1, 3, 0.5),
    ),
    Case(
        ValueError,
        "X must have at least three rows: got 2",
        lambda: kc.spectrum.degree_power(np.eye(2), [1.0, 2.0], 1),
    ),
    Case(
        ValueError,
        "y must have one value per row of X, 3: got shape (2,)",
        lambda: kc.spectrum.degree_power(np.eye(3), [1.0, 2.0], 1),
    ),
    Case(
        ValueError,
        "X must have rows of finite, positive norm: row 1 has not",
        lambda: kc.spectrum.degree_power(np.diag([1.0, 0.0, 1.0]), [1.0, 2.0, 3.0], 1),
    ),
    Case(
        ValueError,
        "Z must have 3 columns: got shape (2, 2)",
        lambda: kc.spectrum.projection(np.eye(3), [1.0, 2.0, 3.0], 1, np.eye(2)),
    ),
    Case(
        ValueError,
        "target_power must be a sequence of numbers, none negative: got [0.5, -0.5]",
        lambda: kc.spectrum.RandomFunction(3, [0.5, -0.5], seed=0),
    ),
    Case(
        ValueError,
        "X must have 3 columns: got shape (2, 2)",
        lambda: kc.spectrum.RandomFunction(3, [0.5], seed=0)(np.eye(2)),
    ),
]
CUBE = [
    Case(
        TypeError,
        "kernel must be a profile, a callable or a sequence of coefficients: got int",
        lambda: kc.spectrum.hypercube(3, 4),
    ),
    Case(
        TypeError,
        "kernel must be a kernel, a profile, a callable or a sequence of coefficients: got Kappa1; "
        "call it",
        lambda: kc.spectrum.hypercube(kc.profiles.Kappa1, 4),
    ),
    Case(ValueError, "dim must be at least 1: got 0", lambda: kc.spectrum.hypercube(NTK, 0)),
    Case(TypeError, "dim must be an integer: got float", lambda: kc.spectrum.hypercube(NTK, 4.0)),
    Case(
        ValueError,
        "Laplacian(1.0, norm=1) must not be asked for a profile: it depends on the axes",
        lambda: kc.spectrum.hypercube(kc.Laplacian(1.0, norm=1), 4),
    ),
    Case(
        ValueError,
        "kernel must be positive semi-definite on {-1, 1}^4: its eigenvalue of degree 1 is -0.25",
        lambda: kc.spectrum.hypercube([1.0, -1.0], 4),
    ),
    Case(
        ValueError,
        "kernel must be positive semi-definite on {-1, 1}^3: its eigenvalue of degree 0 is -1",
        lambda: kc.spectrum.cyclic(kc.CyclicConvolution(3, 2, lambda u: u - 1), 8),
    ),
    Case(
        ValueError,
        "kernel must be positive semi-definite on S^1 x S^7: its eigenvalue of degree (1, 0) is "
        "-0.1",
        lambda: kc.spectrum.spiked([1.0, -1.0], 10, 2, 1.0),
    ),
    Case(
        TypeError,
        "kernel must be a CyclicConvolution or a multiple of one: got Sum",
        lambda: kc.spectrum.cyclic(HQW + HQW, 8),
    ),
    Case(
        TypeError,
        "kernel must be a CyclicConvolution or a multiple of one: got Gaussian",
        lambda: kc.spectrum.cyclic(2.0 * kc.Gaussian(1.0), 8),
    ),
    Case(
        ValueError,
        "patch must not exceed dim: patch is 3, dim is 2",
        lambda: kc.spectrum.cyclic(HQW, 2),
    ),
    Case(
        ValueError,
        "pool must not exceed dim: pool is 5, dim is 4",
        lambda: kc.spectrum.cyclic(2.0 * kc.CyclicConvolution(3, 5, (0.0, 1.0)), 4),
    ),
    Case(
        ValueError,
        "sets must have as many entries as coefficients: got 1 and 2",
        lambda: kc.spectrum.cyclic(HQW, 4).target_power([[0, 1]], [1.0, 2.0]),
    ),
    Case(
        ValueError,
        "sets[1] must be different coordinates below 4: got [1, 4]",
        lambda: kc.spectrum.cyclic(HQW, 4).target_power([[0, 1], [4, 1]], [1.0, 2.0]),
    ),
    Case(
        ValueError,
        "sets[0] must be different coordinates below 4: got [1, 1]",
        lambda: kc.spectrum.cyclic(HQW, 4).target_power([[1, 1]], [1.0]),
    ),
    Case(
        ValueError,
        "sets[0] must be at least 0: got -1",
        lambda: kc.spectrum.cyclic(HQW, 4).target_power([[-1, 1]], [1.0]),
    ),
    Case(
        ValueError,
        "signal_dim must leave a dimension to the noise: got 10 of 10",
        lambda: kc.spectrum.spiked(NTK, 10, 10, 1.0),
    ),
    Case(
        ValueError,
        "signal_dim must be at least 1: got 0",
        lambda: kc.spectrum.spiked(NTK, 10, 0, 1.0),
    ),
    Case(ValueError, "dim must be at least 2: got 1", lambda: kc.spectrum.spiked(NTK, 1, 1, 1.0)),
    Case(ValueError, "snr must be positive: got 0.0", lambda: kc.spectrum.spiked(NTK, 10, 2, 0.0)),
    Case(
        ValueError,
        "max_degree must be at least 0: got -1",
        lambda: kc.spectrum.spiked(NTK, 10, 2, 1.0, max_degree=-1),
    ),
    Case(
        ValueError,
        "power_by_degree must have at most 3 entries: got 4; ask for a larger max_degree",
        lambda: kc.spectrum.spiked(NTK, 10, 2, 1.0, max_degree=2).target_power([0, 0, 0, 1]),
    ),
    Case(
        ValueError,
        "power_by_degree[1] must not be negative: got -1.0",
        lambda: kc.spectrum.spiked(NTK, 10, 2, 1.0, max_degree=2).target_power([0, -1]),
    ),
]

# ... of solvers with the whole matrix ...
K2 = np.array([[2.0, 1.0], [1.0, 2.0]])
Y2 = np.array([1.0, -1.0])


def descend(y=Y2, **more):
    return kc.solvers.kernel_gradient_descent(K2, y, **{"iterations": 3, **more})


def flow(y=Y2, times=1.0, **more):
    return kc.solvers.gradient_flow(K2, y, times, **more)


def ensemble(**more):
    whole = {"ntk_test": K2, "nngp_test": K2, "nngp_test_test": K2, **more}
    return kc.solvers.ensemble_flow(K2, whole.pop("nngp", K2), Y2, 1.0, **whole)


SOLVERS = [
    Case(ValueError, "ridge must not be negative: got -1.0", lambda: kc.solvers.ridge(K2, Y2, -1)),
    Case(ValueError, "ridge must be finite: got nan", lambda: kc.solvers.ridge(K2, Y2, np.nan)),
    Case(
        ValueError,
        "on_singular must be one of 'raise', 'pinv': got 'jitter'",
        lambda: kc.solvers.ridge(K2, Y2, on_singular="jitter"),
    ),
    Case(
        TypeError,
        "overwrite_K must be True or False: got int",
        lambda: kc.solvers.ridge(K2, Y2, overwrite_K=1),
    ),
    Case(
        ValueError,
        "K must be square: got shape (2, 3)",
        lambda: kc.solvers.ridge(np.ones((2, 3)), Y2),
    ),
    Case(
        ValueError,
        "K must be symmetric: K[0, 1] and K[1, 0] differ by 1; pass (K + K.T) / 2 if that is "
        "rounding",
        lambda: kc.solvers.ridge([[2.0, 1.0], [0.0, 2.0]], Y2),
    ),
    Case(
        ValueError,
        "K must be finite: K[1, 0] is nan",
        lambda: kc.solvers.ridge([[2.0, 1.0], [np.nan, 2.0]], Y2),
    ),
    Case(
        TypeError,
        "K must be a NumPy array to be overwritten: got list",
        lambda: kc.solvers.ridge(K2.tolist(), Y2, overwrite_K=True),
    ),
    Case(
        TypeError,
        "K must be float32 or float64 to be overwritten: got int64",
        lambda: kc.solvers.ridge(np.eye(2, dtype=np.int64), Y2, overwrite_K=True),
    ),
    Case(
        ValueError,
        "K must be contiguous to be overwritten: got strides (64, 16)",
        lambda: kc.solvers.ridge(np.ones((4, 4))[::2, ::2], Y2, overwrite_K=True),
    ),
    Case(
        ValueError,
        "K must be writable to be overwritten: got a read-only array",
        lambda: kc.solvers.ridge(read_only((2, 2)), Y2, overwrite_K=True),
    ),
    Case(
        ValueError,
        "y must have one row per row of K, 2, and shape (n,) or (n, r): got shape (3,)",
        lambda: kc.solvers.ridge(K2, np.ones(3)),
    ),
    Case(
        ValueError,
        "y must have one row per row of K, 2, and shape (n,) or (n, r): got shape ()",
        lambda: kc.solvers.ridge(K2, 1.0),
    ),
    Case(ValueError, "y must be finite: got nan", lambda: kc.solvers.ridge(K2, [1.0, np.nan])),
    Case(
        np.linalg.LinAlgError,
        "K + ridge I must be positive definite: its first 2 rows and columns are not, and its "
        "smallest eigenvalue is -1; a ridge larger by 1.1 would do and damp what lies along "
        "eigenvalues below it, on_singular='pinv' leaves that out",
        lambda: kc.solvers.ridge([[1.0, 2.0], [2.0, 1.0]], Y2),
    ),
    Case(
        np.linalg.LinAlgError,
        "K must be positive semi-definite: its smallest eigenvalue is -1, its largest 3",
        lambda: kc.solvers.ridge([[1.0, 2.0], [2.0, 1.0]], Y2, 0.5, on_singular="pinv"),
    ),
    Case(
        np.linalg.LinAlgError,
        "K must be positive semi-definite: its smallest eigenvalue is -1, its largest 3",
        lambda: kc.solvers.RidgePath([[1.0, 2.0], [2.0, 1.0]], Y2),
    ),
    Case(
        ValueError,
        "y must have at least one column: got shape (2, 0)",
        lambda: kc.solvers.RidgePath(K2, np.ones((2, 0))),
    ),
    Case(
        ValueError,
        "ridge must not be negative: got -2.0",
        lambda: kc.solvers.RidgePath(K2, Y2).alpha([1.0, -2.0]),
    ),
    Case(
        ValueError,
        "ridge must be positive where K is singular: got 0.0, and 1 eigenvalues are zero",
        lambda: kc.solvers.RidgePath(np.ones((2, 2)), Y2).log_marginal_likelihood(0.0),
    ),
    Case(
        ValueError,
        "criterion must be one of 'loo', 'gcv', 'likelihood': got 'aic'",
        lambda: kc.solvers.RidgePath(K2, Y2).best("aic"),
    ),
    Case(
        ValueError,
        "ridges must not be empty: got shape (0,)",
        lambda: kc.solvers.RidgePath(K2, Y2).best(ridges=[]),
    ),
    Case(
        ValueError,
        "ridges must be positive: got 0.0",
        lambda: kc.solvers.RidgePath(K2, Y2).best(ridges=[0.0]),
    ),
    Case(
        ValueError,
        "alpha must have one row per row of K, 2, and shape (n,) or (n, r): got shape (3,)",
        lambda: kc.solvers.rkhs_inner(np.ones(3), K2),
    ),
    Case(
        ValueError,
        "K must have one column per row of beta, 3: got shape (2, 2)",
        lambda: kc.solvers.rkhs_inner(Y2, K2, np.ones(3)),
    ),
    Case(ValueError, "times must not be negative: got -1.0", lambda: flow(times=-1)),
    Case(
        ValueError,
        "K_test must have one column per row of K, 2: got shape (2, 3)",
        lambda: flow(K_test=np.ones((2, 3))),
    ),
    Case(
        ValueError,
        "K_test must be finite: K_test[0, 1] is inf",
        lambda: flow(K_test=[[0.0, np.inf]]),
    ),
    Case(ValueError, "f0 must have the shape of y, (2,): got shape (1,)", lambda: flow(f0=[1.0])),
    Case(
        ValueError,
        "f0_test must be given beside f0 and K_test: got None",
        lambda: flow(f0=Y2, K_test=K2),
    ),
    Case(
        ValueError, "f0 must be given beside f0_test: got None", lambda: flow(K_test=K2, f0_test=Y2)
    ),
    Case(
        ValueError, "K_test must be given beside f0_test: got None", lambda: flow(f0=Y2, f0_test=Y2)
    ),
    Case(
        ValueError,
        "f0_test must have the shape of predictions on K_test, (2,): got shape (1,)",
        lambda: flow(f0=Y2, K_test=K2, f0_test=[1.0]),
    ),
    Case(
        ValueError,
        "nngp must have the shape of ntk, (2, 2): got shape (3, 3)",
        lambda: ensemble(nngp=np.eye(3)),
    ),
    Case(
        ValueError,
        "nngp_test must be given beside ntk_test: got None",
        lambda: ensemble(nngp_test=None),
    ),
    Case(
        ValueError,
        "nngp_test must have the shape of ntk_test, (2, 2): got shape (1, 2)",
        lambda: ensemble(nngp_test=K2[:1]),
    ),
    Case(
        ValueError,
        "nngp_test_test must have shape (2,) or (2, 2): got shape (3,)",
        lambda: ensemble(nngp_test_test=np.ones(3)),
    ),
    Case(
        ValueError,
        "loss must be one of 'square', 'logistic', 'softmax', 'squared_hinge': got 'hinge'",
        lambda: descend(loss="hinge"),
    ),
    Case(ValueError, "step must be positive: got 0.0", lambda: descend(step=0)),
    Case(ValueError, "momentum must be in [0, 1): got 1.0", lambda: descend(momentum=1)),
    Case(ValueError, "iterations must be at least 0: got -1", lambda: descend(iterations=-1)),
    Case(
        ValueError,
        "y must be -1 or 1 for loss 'logistic': got 0.0",
        lambda: descend([0, 1], loss="logistic"),
    ),
    Case(
        ValueError,
        "y must be classes 0, 1, ...: got 0.5",
        lambda: descend([0.5, 1], loss="softmax"),
    ),
    Case(
        ValueError,
        "y must have rows of probabilities: row 1 is [0.5 0.6]",
        lambda: descend([[0.5, 0.5], [0.5, 0.6]], loss="softmax"),
    ),
    Case(
        ValueError,
        "f0 must have the shape of predictions on K, (2, 3): got shape (2,)",
        lambda: descend([0, 2], loss="softmax", f0=Y2),
    ),
    Case(
        ValueError,
        "K_validation must be given beside patience: got None",
        lambda: descend(patience=3),
    ),
    Case(
        ValueError,
        "patience must be at least 1: got 0",
        lambda: descend(patience=0, K_validation=K2, y_validation=Y2),
    ),
    Case(
        ValueError,
        "K_validation must be given beside y_validation: got None",
        lambda: descend(y_validation=Y2),
    ),
    Case(
        ValueError,
        "y_validation must be given beside K_validation: got None",
        lambda: descend(K_validation=K2),
    ),
    Case(
        ValueError,
        "K_validation must not be empty: got shape (0, 2)",
        lambda: descend(K_validation=K2[:0], y_validation=Y2[:0]),
    ),
    Case(
        ValueError,
        "y_validation must have one row per row of K_validation, 2, and shape (n,) or (n, r): "
        "got shape (1,)",
        lambda: descend(K_validation=K2, y_validation=[1.0]),
    ),
    Case(
        ValueError,
        "y_validation must have the shape of predictions on K_validation, (2, 2): got shape (2, 3)",
        lambda: descend([0, 1], loss="softmax", K_validation=K2, y_validation=[0, 2]),
    ),
    Case(
        ValueError,
        "f0_validation must be given beside f0 and K_validation: got None",
        lambda: descend(f0=Y2, K_validation=K2, y_validation=Y2),
    ),
    Case(
        ValueError,
        "step must keep descent from diverging: with 1e+200 the loss is inf after 1 iterations; "
        "leave it out for one that the spectrum allows",
        lambda: descend(step=1e200),
    ),
]
# ... of random features ...
FOURIER = kc.features.FourierFeatures(n_features=4, seed=0)
FITTED = kc.features.FourierFeatures(n_features=4, seed=0).fit(X)
TANGENTS = kc.features.TangentFeatures


class Sparse:
    """What a sparse matrix looks like from outside."""

    def toarray(self):
        return X


def fit(features, x=X):
    return lambda: features.fit(x)


def ridge(*given, **keywords):
    return lambda: kc.features.ridge_features(*given, **keywords)


FEATURES = [
    Case(
        TypeError,
        "X must be dense: got a sparse Sparse; pass X.toarray()",
        fit(FOURIER, Sparse()),
    ),
    Case(
        TypeError,
        "X must hold numbers: an array of objects holds something else; argument must be a string "
        "or a real number",
        fit(FOURIER, np.array([[{}]], object)),
    ),
    Case(
        ValueError,
        "X must be real: Complex data not supported, got complex128; pass X.real or its magnitude",
        fit(FOURIER, X + 1j),
    ),
    Case(
        ValueError,
        "X must have shape (n, d): got shape (3,); Reshape your data to X[:, None] if its entries "
        "are points, X[None, :] if it is one point",
        fit(FOURIER, X[:, 0]),
    ),
    Case(
        ValueError,
        "X must have at least one column: 0 feature(s) (shape=(3, 0)) while a minimum of 1 is "
        "required.",
        fit(FOURIER, X[:, :0]),
    ),
    Case(ValueError, "X must be finite: X[1, 2] is NaN", fit(FOURIER, with_nan(np.nan))),
    Case(ValueError, "X must be finite: X[1, 2] is infinity", fit(FOURIER, with_nan(-np.inf))),
    Case(ValueError, "X must have at least one row: got shape (0, 2)", fit(FOURIER, X[:0])),
    Case(
        ValueError,
        "X must have 2 columns: X has 1 features, but FourierFeatures is expecting 2 features as "
        "input",
        lambda: FITTED.transform(X[:, :1]),
    ),
    Case(
        ValueError,
        "Y must have 2 columns: X has 1 features, but FourierFeatures is expecting 2 features as "
        "input",
        lambda: FITTED.gram(X, X[:, :1]),
    ),
    Case(
        TypeError,
        "Y must have the dtype of X: X is float64, Y is float32; convert one of them",
        lambda: FITTED.gram(X, FLOAT32),
    ),
    Case(
        ValueError,
        "FourierFeatures must be fitted first: call fit(X)",
        lambda: FOURIER.transform(X),
    ),
    Case(
        ValueError,
        "gamma must be a parameter of FourierFeatures: it has kernel, n_features, kind, "
        "orthogonal, seed",
        lambda: FOURIER.set_params(gamma=1.0),
    ),
    Case(
        ValueError,
        "out must have shape (3, 4): got shape (3, 3)",
        lambda: FITTED.transform(X, out=np.empty((3, 3))),
    ),
    Case(
        ValueError,
        "out must not overlap X: they share memory; pass a copy",
        lambda: kc.features.FourierFeatures(n_features=2).fit(X).transform(X, out=X),
    ),
    Case(
        TypeError,
        "seed must be None, an integer or a numpy.random.Generator: got str",
        fit(kc.features.FourierFeatures(seed="0")),
    ),
    Case(ValueError, "seed must be at least 0: got -1", fit(kc.features.FourierFeatures(seed=-1))),
    Case(
        TypeError,
        "kernel must be Gaussian, Laplacian, Cauchy or Matern: got ArcCosine(1)",
        fit(kc.features.FourierFeatures(kc.ArcCosine(1))),
    ),
    Case(
        ValueError,
        "n_features must be even for kind 'cos_sin': got 5",
        fit(kc.features.FourierFeatures(n_features=5)),
    ),
    Case(
        ValueError,
        "n_features must be at least 1: got 0",
        fit(kc.features.FourierFeatures(n_features=0)),
    ),
    Case(
        ValueError,
        "kind must be one of 'cos_sin', 'cos': got 'sin'",
        fit(kc.features.FourierFeatures(kind="sin")),
    ),
    Case(
        ValueError,
        "orthogonal must be False for Cauchy(1.0): it is not rotation invariant, and no direction "
        "of its frequencies can be turned",
        fit(kc.features.FourierFeatures(kc.Cauchy(1.0), orthogonal=True)),
    ),
    Case(
        ValueError,
        "weights must be one of 'normal', 'sphere': got 'cube'",
        fit(kc.features.ArcCosineFeatures(weights="cube")),
    ),
    Case(
        TypeError,
        "activation must be an activation: got str",
        fit(kc.features.NetworkFeatures("relu")),
    ),
    Case(
        TypeError,
        "activation must have a derivative that is known: got Activation(<ufunc 'sin'>); pass "
        "derivative=",
        fit(TANGENTS(5, kc.Activation(np.sin))),
    ),
    Case(TypeError, "derivative must be callable: got float", fit(TANGENTS(5, derivative=1.0))),
    Case(
        ValueError,
        "layers must be one of 'both', 'first', 'second': got 'third'",
        fit(TANGENTS(5, layers="third")),
    ),
    Case(
        TypeError,
        "features must be a Transformer or None: got str",
        ridge("fourier", X, X, 1.0),
    ),
    Case(
        ValueError,
        "y must have one value or row per row of X, 3: got shape (2,)",
        ridge(FITTED, X, [1.0, 2.0], 1.0),
    ),
    Case(ValueError, "y must be finite: got nan", ridge(FITTED, X, [1.0, 2.0, np.nan], 1.0)),
    Case(ValueError, "ridge must not be negative: got -1.0", ridge(FITTED, X, X, -1.0)),
    Case(
        ValueError,
        "solver must be one of 'auto', 'primal', 'dual': got 'cg'",
        ridge(FITTED, X, X, 1.0, solver="cg"),
    ),
    Case(
        ValueError,
        "solver must be 'auto' or 'primal' beside bound: got 'dual'",
        ridge(FITTED, X, X, 1.0, solver="dual", bound=1.0),
    ),
    Case(
        ValueError,
        "ridge must make the system positive definite: 0.0 does not, from row 1 on; 2.7e-15 is at "
        "the rounding of its entries",
        ridge(None, np.ones((3, 4)), np.ones(3), 0.0),
    ),
    Case(
        ValueError,
        "X must have one column per feature, 2: got shape (3, 1)",
        lambda: kc.features.ridge_features(None, X, X, 1.0).predict(X[:, :1]),
    ),
    Case(
        TypeError,
        "features must be a Transformer: got str",
        fit(kc.features.ConvolutionalFeatures("relu")),
    ),
    Case(
        ValueError,
        "patch must be at least 1: got 0",
        fit(kc.features.ConvolutionalFeatures(patch=0)),
    ),
    Case(
        ValueError,
        "patch must be at most the number of columns of X, 2: got 3",
        fit(kc.features.ConvolutionalFeatures()),
    ),
    Case(
        ValueError,
        "pool must be at most the number of columns of X, 2: got 4",
        fit(kc.features.ConvolutionalFeatures(patch=1, pool=4)),
    ),
    Case(
        ValueError,
        "features__seed must be a parameter of ConvolutionalFeatures: it has features, patch, "
        "pool, seed",
        lambda: kc.features.ConvolutionalFeatures().set_params(features__seed=1),
    ),
    Case(
        TypeError,
        "features must be a Transformer: got NoneType",
        lambda: kc.features.feature_error(None, X),
    ),
    Case(
        ValueError,
        "n_draws must be at least 2: got 1",
        lambda: kc.features.feature_error(FOURIER, X, 1),
    ),
]

# ... of estimators, beside those that are scikit-learn's own.
RING = np.array([0, 1, 0])


def regress(X=X, y=(1.0, 2.0, 3.0), **more):
    return kc.KernelRegressor(**more).fit(X, y)


def classify(y=RING, **more):
    return kc.KernelClassifier(**more).fit(X, y)


def process(**more):
    return kc.GaussianProcess(**{"noise_variance": 0.1, **more}).fit(X, [1.0, 2.0, 3.0])


def without_scikit_learn(call):
    with mock.patch.dict(sys.modules, {"sklearn": None}):
        return call()


def of_matrix(maker=kc.GaussianProcess, **more):
    return maker(kernel="precomputed", **more).fit(K2, Y2)


ESTIMATORS = [
    Case(
        ImportError,
        "kernelcore.KernelRegressor needs scikit-learn; install it with: pip install "
        "'kernelcore[sklearn]'",
        lambda: without_scikit_learn(lambda: kc.KernelRegressor),
    ),
    Case(ValueError, "ridge must not be negative: got -1.0", lambda: regress(ridge=-1.0)),
    Case(ValueError, "ridge must be finite: got nan", lambda: regress(ridge=np.nan)),
    Case(TypeError, "ridge must be a real number: got NoneType", lambda: classify(ridge=None)),
    Case(
        ValueError,
        "ridge must be one of 'loo', 'gcv', 'likelihood': got 'best'",
        lambda: regress(ridge="best"),
    ),
    Case(
        ValueError,
        "solver must be one of 'auto', 'cholesky', 'eigen', 'cg', 'eigenpro', 'nystrom': got 'svd'",
        lambda: regress(solver="svd"),
    ),
    Case(
        ValueError,
        "solver must not be 'eigenpro' with kernel 'precomputed': it has no values beyond those of "
        "X; pass the kernel itself",
        lambda: of_matrix(kc.KernelRegressor, ridge=1.0, solver="eigenpro"),
    ),
    Case(
        ValueError,
        "solver must not be 'nystrom' with kernel 'precomputed': it has no values beyond those of "
        "X; pass the kernel itself",
        lambda: of_matrix(kc.KernelClassifier, ridge=1.0, solver="nystrom"),
    ),
    Case(
        ValueError,
        "centres must be at least 1: got 0",
        lambda: regress(ridge=1.0, solver="nystrom", centres=0),
    ),
    Case(
        TypeError,
        "max_iter must be an integer: got float",
        lambda: regress(ridge=1.0, solver="eigenpro", max_iter=2.5),
    ),
    Case(
        np.linalg.LinAlgError,
        "K + ridge I must be positive definite: its first 2 rows and columns are not, and its "
        "smallest eigenvalue is -1; a ridge larger by 1.1 would do and damp what lies along "
        "eigenvalues below it, solver='auto' leaves that out",
        lambda: regress([[1, 2], [2, 1]], Y2, kernel="precomputed", ridge=0, solver="cholesky"),
    ),
    Case(
        np.linalg.LinAlgError,
        "K must be positive semi-definite: its smallest eigenvalue is -1, its largest 3",
        lambda: regress([[1, 2], [2, 1]], Y2, kernel="precomputed", ridge=0),
    ),
    Case(
        TypeError,
        "kernel must be a kernel, 'precomputed' or None: got 'rbf'",
        lambda: regress(kernel="rbf"),
    ),
    Case(
        TypeError,
        "kernel must be a kernel, 'precomputed' or None: got Sequential; pass its ntk or nngp",
        lambda: classify(kernel=NET),
    ),
    Case(
        TypeError,
        "kernel must be a kernel, 'precomputed' or None: got Gaussian; call it",
        lambda: kc.KernelPCA(kernel=kc.Gaussian).fit(X),
    ),
    Case(
        ValueError,
        "X must be square: got shape (3, 2)",
        lambda: regress(kernel="precomputed"),
    ),
    Case(
        ValueError,
        "X must be symmetric: X[0, 1] and X[1, 0] differ by 1; pass (X + X.T) / 2 if that is "
        "rounding",
        lambda: kc.KernelPCA(kernel="precomputed").fit([[2.0, 1.0], [0.0, 2.0]]),
    ),
    Case(
        ValueError,
        "X must have the positions and channels of the fit, (4, 4, 1): got shape (2, 4, 5, 1)",
        lambda: regress(np.ones((3, 4, 4, 1)), kernel=kc.presets.cntk(2).ntk).predict(
            np.ones((2, 4, 5, 1))
        ),
    ),
    Case(
        ValueError,
        "X must be images (n, H, W, C) for Conv((3, 3), w_std=1.4142135623730951): "
        "got shape (3, 2); pass X.reshape(len(X), H, W, C)",
        lambda: regress(kernel=kc.presets.cntk(2).ntk),
    ),
    Case(
        ValueError,
        "y must have at least two classes: got one class, 'a'",
        lambda: classify(["a", "a", "a"]),
    ),
    Case(
        ValueError,
        "targets must be one of 'one_hot', 'centred', 'simplex': got 'ecoc'",
        lambda: classify(targets="ecoc"),
    ),
    Case(
        ValueError,
        "probabilities must be one of 'softmax', 'calibrated', None: got True",
        lambda: classify(probabilities=True),
    ),
    Case(
        ValueError,
        "noise_variance must be one of 'likelihood': got 'loo'",
        lambda: process(noise_variance="loo"),
    ),
    Case(
        ValueError,
        "noise_variance must not be negative: got -0.1",
        lambda: process(noise_variance=-0.1),
    ),
    Case(
        ValueError,
        "noise_variance must be a number: got nan",
        lambda: process().log_marginal_likelihood(np.nan),
    ),
    Case(TypeError, "initial must be a kernel or None: got float", lambda: process(initial=1.0)),
    Case(
        ValueError,
        "initial must be None with kernel 'precomputed': it has no values beyond those of X; "
        "pass the kernel itself",
        lambda: of_matrix(initial=NTK),
    ),
    Case(
        ValueError,
        "return_std must be False with kernel 'precomputed': it has no values beyond those of X; "
        "pass the kernel itself",
        lambda: of_matrix().predict(K2, return_std=True),
    ),
    Case(
        ValueError,
        "sample_y must not be called with kernel 'precomputed': it has no values beyond those of "
        "X; pass the kernel itself",
        lambda: of_matrix().sample_y(K2),
    ),
    Case(
        ValueError,
        "return_std and return_cov must not both be True: got both",
        lambda: process().predict(X, return_std=True, return_cov=True),
    ),
    Case(
        TypeError,
        "return_std must be True or False: got int",
        lambda: process().predict(X, return_std=1),
    ),
    Case(ValueError, "n_samples must be at least 1: got 0", lambda: process().sample_y(X, 0)),
    Case(
        ValueError,
        "empty must be one of 'nearest', 'mean': got 'zero'",
        lambda: kc.KernelSmoother(empty="zero").fit(X, RING),
    ),
    Case(
        ValueError,
        "kernel must not be negative on X: got -1; try kc.Gaussian",
        lambda: kc.KernelSmoother("precomputed").fit(K2, Y2).predict([[1.0, -1.0]]),
    ),
    Case(
        ValueError,
        "n_components must be at most the number of samples, 3: got 4",
        lambda: kc.KernelPCA(4).fit(X),
    ),
    Case(
        ValueError,
        "n_components must be at most one less than the number of samples, 2: got 3",
        lambda: kc.SpectralEmbedding(3).fit(X),
    ),
    Case(
        ValueError,
        "method must be one of 'laplacian', 'diffusion': got 'isomap'",
        lambda: kc.SpectralEmbedding(method="isomap").fit(X),
    ),
    Case(ValueError, "t must not be negative: got -1.0", lambda: kc.SpectralEmbedding(t=-1).fit(X)),
    Case(
        ValueError,
        "X must have rows with affinity to some of the fit: 1 have none; pass a wider kernel",
        lambda: kc.SpectralEmbedding(1).fit(X).transform([[0.0, 0.0], [99.0, 0.0]]),
    ),
]


# ... of iterative solvers ...
class Zeros:
    """Multiplies, wrongly."""

    shape = (3, 3)

    def __init__(self, value, shape):
        self.value, self.of = value, shape

    def __matmul__(self, x):
        return np.full(self.of, self.value)


LAPLACIAN = kc.Laplacian(1.0)
cg, nystrom = kc.solvers.conjugate_gradients, kc.solvers.nystrom_ridge
ITERATIVE = [
    Case(
        ValueError,
        "y must have one row per row of K, 3, and shape (n,) or (n, r): got shape (4,)",
        lambda: cg(EYE, np.ones(4)),
    ),
    Case(
        ValueError,
        "y must have one row per row of X, 3, and shape (n,) or (n, r): got shape (3, 1, 1)",
        lambda: nystrom(LAPLACIAN, X, np.ones((3, 1, 1)), centres=2),
    ),
    Case(
        ValueError,
        "y must have at least one column: got shape (3, 0)",
        lambda: cg(EYE, np.ones((3, 0))),
    ),
    Case(ValueError, "y must be finite: got nan", lambda: cg(EYE, [1.0, np.nan, 1.0])),
    Case(
        ValueError,
        "initial must have the shape of y, (3,): got shape (3, 1)",
        lambda: cg(EYE, np.ones(3), initial=np.ones((3, 1))),
    ),
    Case(
        ValueError,
        "initial must have the shape of y, (3,): got shape (2,)",
        lambda: kc.solvers.eigenpro(LAPLACIAN, X, np.ones(3), initial=np.ones(2)),
    ),
    Case(ValueError, "ridge must not be negative: got -1.0", lambda: cg(EYE, np.ones(3), -1.0)),
    Case(ValueError, "ridge must be finite: got nan", lambda: cg(EYE, np.ones(3), np.nan)),
    Case(ValueError, "tol must be positive: got 0.0", lambda: cg(EYE, np.ones(3), tol=0)),
    Case(
        ValueError,
        "max_iter must be at least 0: got -1",
        lambda: cg(EYE, np.ones(3), max_iter=-1),
    ),
    Case(
        TypeError,
        "progress must be True or False: got int",
        lambda: cg(EYE, np.ones(3), progress=1),
    ),
    Case(
        ValueError,
        "K must be square: got shape (3, 2)",
        lambda: cg(np.ones((3, 2)), np.ones(3)),
    ),
    Case(
        TypeError,
        "K must be an array, or have a shape and multiply with @: got Laplacian",
        lambda: cg(LAPLACIAN, np.ones(3)),
    ),
    Case(
        ValueError,
        "K @ x must have the shape of x, (3, 1): got shape (3,)",
        lambda: cg(Zeros(0.0, (3,)), np.ones(3)),
    ),
    Case(
        ValueError,
        "K @ x must be finite: got nan",
        lambda: cg(Zeros(np.nan, (3, 1)), np.ones(3)),
    ),
    Case(
        TypeError,
        "preconditioner must have a method solve: got ndarray",
        lambda: cg(EYE, np.ones(3), preconditioner=EYE),
    ),
    Case(
        TypeError,
        "callback must be callable or None: got str",
        lambda: cg(EYE, np.ones(3), callback="print"),
    ),
    Case(
        ValueError,
        "momentum must be in [0, 1): got 1.0",
        lambda: kc.solvers.gradient_descent(EYE, np.ones(3), momentum=1.0),
    ),
    Case(
        ValueError,
        "momentum must be one of 'nesterov': got 'polyak'",
        lambda: kc.solvers.gradient_descent(EYE, np.ones(3), momentum="polyak"),
    ),
    Case(
        ValueError,
        "step must be positive: got -1.0",
        lambda: kc.solvers.richardson(EYE, np.ones(3), step=-1.0),
    ),
    Case(
        TypeError,
        "kernel must be a kernel: got ndarray",
        lambda: kc.solvers.RowBlocks(EYE, X),
    ),
    Case(
        ValueError,
        "max_memory must be positive: got 0.0",
        lambda: kc.solvers.RowBlocks(LAPLACIAN, X, max_memory=0),
    ),
    Case(
        ValueError,
        "X must have at least one row: got shape (0, 2)",
        lambda: kc.solvers.RowBlocks(LAPLACIAN, np.empty((0, 2))),
    ),
    Case(
        ValueError,
        "centres must have at least one row: got shape (0, 2)",
        lambda: nystrom(LAPLACIAN, X, np.ones(3), centres=np.empty((0, 2))),
    ),
    Case(
        ValueError,
        "centres must be of one kind with the rows of X, of shape (2,): got shape (1, 3)",
        lambda: nystrom(LAPLACIAN, X, np.ones(3), centres=np.ones((1, 3))),
    ),
    Case(
        ValueError,
        "centres must be at most the number of rows of X, 3: got 4",
        lambda: nystrom(LAPLACIAN, X, np.ones(3), centres=4),
    ),
    Case(
        ValueError,
        "method must be one of 'uniform', 'leverage', 'rpcholesky': got 'random'",
        lambda: nystrom(LAPLACIAN, X, np.ones(3), centres=2, method="random"),
    ),
    Case(
        ValueError,
        "solver must be one of 'auto', 'cg', 'direct': got 'lu'",
        lambda: nystrom(LAPLACIAN, X, np.ones(3), centres=2, solver="lu"),
    ),
    Case(
        TypeError,
        "seed must be None, an integer or a numpy.random.Generator: got str",
        lambda: kc.solvers.randomly_pivoted_cholesky(EYE, rank=1, seed="0"),
    ),
    Case(
        ValueError,
        "rank must be at most the rows of K, 3: got 4",
        lambda: kc.solvers.randomly_pivoted_cholesky(EYE, rank=4),
    ),
    Case(
        ValueError,
        "X must be given beside a kernel: got None",
        lambda: kc.solvers.randomly_pivoted_cholesky(LAPLACIAN, rank=1),
    ),
    Case(
        ValueError,
        "X must not be given beside a matrix: got ndarray",
        lambda: kc.solvers.block_jacobi(EYE, X),
    ),
    Case(
        ValueError,
        "K must be finite: K[0, 2] is nan",
        lambda: kc.solvers.block_jacobi(entry(0, 2, np.nan)),
    ),
    Case(
        np.linalg.LinAlgError,
        "K + ridge I must be positive definite: its block of rows 2 to 2 is not; pass a larger "
        "ridge",
        lambda: kc.solvers.block_jacobi(np.diag([1.0, 1.0, 0.0]), block=2),
    ),
    Case(
        ValueError,
        "K must be positive semi-definite and not zero: its diagonal entry 1 is -1.0",
        lambda: kc.solvers.randomly_pivoted_cholesky(np.diag([1.0, -1.0]), rank=1),
    ),
    Case(
        ValueError,
        "rank must be at most one less than the number of points, 2: got 3",
        lambda: kc.solvers.eigenpro_preconditioner(EYE, rank=3),
    ),
    Case(
        ValueError,
        "subsample must be at least 3: got 2",
        lambda: kc.solvers.eigenpro_preconditioner(EYE, rank=2, subsample=2),
    ),
    Case(
        ValueError,
        "epochs must be at least 0: got -1",
        lambda: kc.solvers.eigenpro(LAPLACIAN, X, np.ones(3), epochs=-1),
    ),
]

CASES = [
    NAME, MASKED, TANGENT, *PARAMETERS, *NETWORKS, *NOT_GAUSSIAN, *INPUTS, *OUTPUTS, *CYCLIC,
    *SPATIAL, *PRESETS, *THEORY, *SPHERE, *CUBE, *SOLVERS, *ITERATIVE, *FEATURES,
    *ESTIMATORS,
]  # fmt: skip
for part in pkgutil.iter_modules(messages.__path__):
    CASES += importlib.import_module(f"messages.{part.name}").CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.message)
def test_message(case):
    with pytest.raises(case.kind, match=f"^{re.escape(case.message)}$"):
        case.call()


def test_overlap_of_a_part_is_refused():
    block = np.zeros((4, 3))
    with pytest.raises(
        ValueError, match=r"^out must not overlap X: they share memory; pass a copy$"
    ):
        NTK(block[:3], out=block[1:])
    before = block[:3].copy()
    np.testing.assert_array_equal(block[:3], before)


def test_an_ntk_that_overflows_before_the_variance_does():
    net = kc.Sequential(kc.Dense(), kc.Dense(), kc.Dense())
    assert np.isfinite(net.nngp.profile(1.0, radius=1.3e154))
    for call in (net.ntk, net.ntk.diag, net.kernels):
        with pytest.raises(
            OverflowError, match=r"^X must keep the kernel within float64: .*; scale X down$"
        ):
            call([[1.3e154]])


def test_a_callable_that_changes_the_shape():
    seen = []

    def fn(x):
        seen.append(x.shape)
        return x.sum()

    with pytest.raises(ValueError, match=r"^fn must return one value per entry: ") as caught:
        kc.Activation(fn).dual(1.0, 1.0, 0.5)
    text = f"fn must return one value per entry: got shape () for input of shape {seen[-1]}"
    assert str(caught.value) == text


@pytest.mark.parametrize("text", ["two", "0", "-3", "1.5"])
def test_threads_of_the_environment(text, monkeypatch):
    monkeypatch.setenv("KERNELCORE_NUM_THREADS", text)
    message = f"KERNELCORE_NUM_THREADS must be a positive integer: got {text!r}"
    for call in (kc.get_threads, lambda: NTK(X)):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            call()


def level_error():
    """What asking for a level raises now; the answer of the process stays cached."""
    with pytest.raises((ImportError, ValueError)) as caught:
        _dispatch.level.__wrapped__()
    return caught.value


def test_cpu_level_of_the_environment(monkeypatch):
    monkeypatch.setenv("KERNELCORE_CPU_LEVEL", "v9")
    usable = [x for x in _dispatch.built_levels() if x in _dispatch.machine_levels()]
    error = level_error()
    assert isinstance(error, ValueError)
    assert str(error) == (
        f"KERNELCORE_CPU_LEVEL must be one of {', '.join(usable)} on this machine: got 'v9'"
    )


def test_cpu_level_of_the_environment_at_first_use():
    environment = os.environ | {
        "KERNELCORE_CPU_LEVEL": "v9",
        "PYTHONPATH": str(pathlib.Path(kc.__file__).parents[1]),
    }
    run = subprocess.run(
        [sys.executable, "-m", "kernelcore.cli", "info"],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert run.returncode == 1
    assert run.stderr.startswith("kernelcore: KERNELCORE_CPU_LEVEL must be one of ")
    assert run.stdout == ""


def test_no_compiled_modules(monkeypatch):
    monkeypatch.setattr(_dispatch, "built_levels", lambda: ())
    error = level_error()
    assert isinstance(error, ImportError)
    assert (
        str(error) == "kernelcore has no compiled modules; install it with: pip install kernelcore"
    )


def test_kernels_do_not_combine_with_other_things():
    for combine in (lambda: NTK + 1, lambda: 1 + NTK, lambda: NTK * "2", lambda: [1] * NTK):
        with pytest.raises(TypeError):
            combine()


def test_a_failed_call_leaves_out_alone():
    out = np.full((3, 3), 7.0)
    for bad in (with_nan(np.nan), 1e160 * np.ones((3, 4))):
        with pytest.raises((ValueError, OverflowError)):
            NTK(bad, out=out)
        assert (out == 7).all()


# ---- nothing raised without a test


def raised(module):
    """Lines of the ``raise`` statements, but for those that no user meets.

    They mark what a subclass defines, or ask another way of a spectrum or of a size of images.
    """
    source = pathlib.Path(module.__file__).read_text()
    for node in ast.walk(ast.parse(source)):
        inside = ("NotImplementedError", "id='Unknown'", "id='Reframe'", "id='_Small'")
        if isinstance(node, ast.Raise) and not any(x in ast.dump(node) for x in inside):
            yield node.lineno


def line_of(call):
    try:
        call()
    except Exception as error:
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        return pathlib.Path(trace.tb_frame.f_code.co_filename).stem, trace.tb_lineno
    return None


def test_every_raise_is_tested_here(monkeypatch):
    package = pathlib.Path(kc.__file__).parent
    modules = [importlib.import_module(f"kernelcore.{p.stem}") for p in package.glob("[!_]*.py")]
    modules += [
        importlib.import_module(f"kernelcore.{p.stem}")
        for p in package.glob("_*.py")
        if p.stem != "__init__"
    ]
    modules += [
        importlib.import_module(f"kernelcore.{room}.{p.stem}")
        for room in ("estimators", "features", "solvers", "spectrum", "theory")
        for p in (package / room).glob("_*.py")
        if p.stem not in ("__init__", "_plot")  # test_sphere.py has what a missing Matplotlib says
    ]
    modules += [
        importlib.import_module(f"kernelcore.{room}.{p.stem}")
        for room in ("experiments", "linalg", "report")
        for p in (package / room).glob("[!_]*.py")
    ]
    assert cli in modules
    want = {(pathlib.Path(m.__file__).stem, line) for m in modules for line in raised(m)}
    found = {line_of(case.call) for case in CASES}
    found.add(line_of(lambda: kc.Activation(np.sum).dual(1.0, 1.0, 0.5)))
    monkeypatch.setenv("KERNELCORE_NUM_THREADS", "0")
    found.add(line_of(kc.get_threads))
    monkeypatch.setenv("KERNELCORE_CPU_LEVEL", "v9")
    found.add(line_of(_dispatch.level.__wrapped__))
    monkeypatch.setattr(_dispatch, "built_levels", lambda: ())
    found.add(line_of(_dispatch.level.__wrapped__))
    missing = sorted(want - found)
    assert not missing, f"no test raises at {missing}"
