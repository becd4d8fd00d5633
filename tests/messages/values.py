"""Layers, networks, profiles and kernels as values, and what they are called with."""

import numpy as np
from scipy import sparse

import kernelcore as kc

from . import Case

X = np.arange(6.0).reshape(3, 2)
IMAGES = np.ones((2, 4, 5, 3))
GAUSSIAN = kc.Gaussian(1.0)
NET = kc.presets.mlp(1)

CASES = [
    Case(
        AttributeError,
        "Gaussian must not change after construction: lengthscale was set; "
        "build another, or call replace(lengthscale=...)",
        lambda: setattr(GAUSSIAN, "lengthscale", -3),
    ),
    Case(
        AttributeError,
        "Dense must not change after construction: w_std was deleted; build another",
        lambda: delattr(kc.Dense(), "w_std"),
    ),
    Case(
        ValueError,
        "changes must name parameters of Matern: got 'length'; it has nu, lengthscale",
        lambda: kc.Matern(1.5, 1.0).replace(length=2.0),
    ),
    Case(
        ValueError,
        "changes must name parameters of lengthscale: got 'x'; it has none",
        lambda: GAUSSIAN.replace(lengthscale__x=2.0),
    ),
    Case(
        ValueError,
        "changes must name parameters of layers: got '7'; it has 0, 1, 2",
        lambda: NET.replace(layers__7__w_std=2.0),
    ),
    Case(
        TypeError,
        "network must be a Sequential: got int",
        lambda: NET.ntk.replace(network=3),
    ),
    Case(
        TypeError,
        "right must be a kernel: got Gaussian; call it",
        lambda: (GAUSSIAN + GAUSSIAN).replace(right=kc.Gaussian),
    ),
    Case(
        TypeError,
        "layers must be a layer or a sequence of layers: got int",
        lambda: NET.replace(layers=3),
    ),
    Case(
        TypeError,
        "activation must be an activation: got Relu; call it",
        lambda: kc.presets.mlp(2, kc.Relu),
    ),
    # ... called with what is no array, ...
    Case(
        TypeError,
        "X must be a dense array: got csr_matrix; pass X.toarray()",
        lambda: GAUSSIAN(sparse.csr_matrix(X)),
    ),
    Case(
        TypeError,
        "Y must be a dense array: got coo_array; pass Y.toarray()",
        lambda: NET.ntk(X, sparse.coo_array(X)),
    ),
    Case(TypeError, "X must be an array of numbers: got None", lambda: GAUSSIAN(None)),
    Case(TypeError, "X must be an array of numbers: got str", lambda: GAUSSIAN.diag("abc")),
    Case(
        TypeError,
        "X must be an array of numbers: got dict; pass list(X.values())",
        lambda: GAUSSIAN({"a": [1.0]}),
    ),
    Case(
        TypeError,
        "X must be an array of numbers: got Ntk; pass the values of the function",
        lambda: GAUSSIAN(NET.ntk),
    ),
    Case(
        TypeError,
        "X must be an array of numbers: got Gaussian; call it",
        lambda: GAUSSIAN(kc.Gaussian),
    ),
    Case(
        TypeError,
        "X must hold numbers: X[0] is Gaussian; leave out what is not",
        lambda: GAUSSIAN([GAUSSIAN, GAUSSIAN]),
    ),
    Case(
        TypeError,
        "X must hold numbers: X[1, 0] is str; leave out what is not",
        lambda: GAUSSIAN(np.array([[1.0, 2], ["a", 3]], object)),
    ),
    # ... with too little, ...
    *(
        Case(
            FloatingPointError,
            f"X must keep the kernel within {dtype}: the variance underflows; scale X up",
            call,
        )
        for dtype, call in (
            ("float64", lambda: NET.ntk(1e-200 * X)),
            ("float32", lambda: NET.nngp(1e-25 * X.astype(np.float32))),
            ("float64", lambda: kc.presets.cntk(2).ntk(1e-200 * IMAGES)),
        )
    ),
    # ... or with other positions.
    Case(
        ValueError,
        "X must be images (n, H, W, C) for AvgPool((2, 2)): got shape (2, 4, 5); write "
        "AvgPool((2,)) for signals (n, L, C), or pass X[..., None] for grey images (n, H, W)",
        lambda: kc.Sequential(kc.AvgPool(2), kc.Flatten()).nngp(IMAGES[..., 0]),
    ),
    Case(
        ValueError,
        "X must have at least 8 x 8 positions where AvgPool((8, 8)) comes: got 7 x 7; "
        "pad X to 32 x 32",
        lambda: kc.presets.myrtle(5).nngp(np.ones((1, 28, 28, 3))),
    ),
    Case(
        ValueError,
        "axes must be at most those of images, 2: got 3",
        lambda: kc.presets.cntk(3, axes=3),
    ),
    Case(ValueError, "exponent must be at least 1: got 0", lambda: GAUSSIAN**0),
    Case(TypeError, "exponent must be an integer: got float", lambda: GAUSSIAN**0.5),
    Case(ValueError, "divisor must be positive: got 0.0", lambda: GAUSSIAN / 0),
    Case(TypeError, "progress must be True or False: got int", lambda: GAUSSIAN(X, progress=1)),
    Case(
        ValueError,
        "fn must grow slower than the normal density falls: at variance 2 E[fn(x)^2] is infinite, "
        "or most of it beyond 13 standard deviations; scale X or w_std down",
        lambda: kc.Activation(lambda x: np.exp(x * x / 8)).dual(2.0, 2.0, 0.5),
    ),
]
