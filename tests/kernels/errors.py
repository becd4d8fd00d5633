"""Kernels: parameters, inputs, outputs, and what has no profile."""

from functools import partial

import numpy as np
from messages import Case
from scipy import sparse

import kernelcore as kc

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


RADIAL = (kc.Gaussian, kc.Laplacian, partial(kc.Matern, 1.5), partial(kc.Matern, 0.7))
SQUARE = np.ones((2, 2))
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


def pixel(x, at, value):
    x = x.copy()
    x[at] = value
    return x


CNTK = kc.presets.cntk(2).ntk
HQW = kc.CyclicConvolution(3, 2, [0.0, 0.5, 0.5])
GAUSSIAN = kc.Gaussian(1.0)
SMOOTH = kc.CyclicConvolution(3, 2, GAUSSIAN)

CASES = [
    Case(
        TypeError,
        "order must be a sequence of integers: got int",
        lambda: kc.Permutation(2),
    ),
    Case(
        ValueError,
        "max_degree must be at most the highest that is looked at, 10000: got 10001",
        lambda: kc.Gaussian(1.0).null_degrees(10_001),
    ),
    Case(
        ValueError,
        "symmetries must have at least one entry: got none",
        lambda: kc.Averaged(kc.Gaussian(1.0), ()),
    ),
    Case(
        TypeError,
        "symmetries must be Flip, Shift, Permutation or several: got int",
        lambda: kc.Averaged(kc.Gaussian(1.0), (2,)),
    ),
    Case(
        ValueError,
        "order must have each number below its length once: got (0, 0)",
        lambda: kc.Permutation((0, 0)),
    ),
    Case(
        ValueError,
        "X must have an axis 3: got shape (2, 2)",
        lambda: kc.Averaged(kc.Gaussian(1.0), kc.Flip(3))(np.eye(2)),
    ),
    Case(
        ValueError,
        "X must have an axis 2: got shape (2, 2)",
        lambda: kc.Averaged(kc.Gaussian(1.0), kc.Shift(2))(np.eye(2)),
    ),
    Case(
        ValueError,
        "X must have a multiple of 2 there: got shape (3, 3)",
        lambda: kc.Averaged(kc.Gaussian(1.0), kc.Shift(1, step=2))(np.eye(3)),
    ),
    Case(
        ValueError,
        "X must have shape (n, 2): got shape (3, 3)",
        lambda: kc.Averaged(kc.Gaussian(1.0), kc.Permutation((1, 0)))(np.eye(3)),
    ),
    # Parameters.
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
    Case(ValueError, "n_threads must be at least 1: got 0", lambda: NTK(X, n_threads=0)),
    # Inputs.
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
    *(
        Case(
            OverflowError,
            f"X must keep the kernel within {dtype}: squared distances overflow; scale X down",
            lambda kernel=kernel, far=far, dtype=dtype: kernel(np.array([[0], [far]], dtype)),
        )
        for dtype, far, size in (("float32", 1e20, 1e18), ("float64", 1e160, 1e153))
        for kernel in (kind(size) for kind in RADIAL)
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
    # Outputs.
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
    Case(
        TypeError,
        "X must not be masked: got a masked array; pass X.filled(value)",
        lambda: kc.Gaussian(1.0)(np.ma.masked_array([[1.0, 2.0]], [[False, True]])),
    ),
    Case(
        OverflowError,
        "X must keep the kernel within float64: the tangent kernel overflows; scale X down",
        lambda: kc.Sequential(kc.Dense(), kc.Dense(), kc.Dense()).ntk([[1.3e154]]),
    ),
    # Cyclic convolutions.
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
            f"{name} must be at most the number of columns of X, 2: got 3",
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
    # Images and signals.
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
        "X must have at least 8 positions where GaussianPool((4,)) comes: got 6; pad X to 8",
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
                "Sequential(Flatten()).nngp",
                "Gaussian(1.0)",
                "images and rows",
                lambda: flat() + kc.Gaussian(1.0),
            ),
            (
                "0.5 * Cauchy(2.0)",
                "Sequential(Flatten()).nngp",
                "rows and images",
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
    # Null degrees.
    Case(
        ValueError,
        "max_degree must be at least 0: got -1",
        lambda: NTK.null_degrees(-1),
    ),
    Case(
        ValueError,
        f"{CNTK!r} must not be asked for a profile: it is of images",
        lambda: CNTK.null_degrees(5),
    ),
    Case(
        ValueError,
        f"{HQW!r} must not be asked for a profile: it depends on the axes",
        lambda: (HQW + HQW).null_degrees(5),
    ),
    # Values that do not change.
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
    # ... with too much of it, ...
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
    Case(ValueError, "exponent must be at least 1: got 0", lambda: GAUSSIAN**0),
    Case(TypeError, "exponent must be an integer: got float", lambda: GAUSSIAN**0.5),
    Case(ValueError, "divisor must be positive: got 0.0", lambda: GAUSSIAN / 0),
    Case(TypeError, "progress must be True or False: got int", lambda: GAUSSIAN(X, progress=1)),
    Case(
        TypeError,
        f"{HQW!r} must not be asked for a gradient: it is of cyclic signals",
        lambda: HQW.gradient(np.ones((2, 4))),
    ),
    Case(
        TypeError,
        f"{CNTK!r} must not be asked for a gradient: it is of signals or images",
        lambda: CNTK.gradient(IMAGES),
    ),
    Case(
        ValueError,
        "weights must have one row per row of Y, 3, and shape (n,) or (n, r): got shape (2,)",
        lambda: GAUSSIAN.gradient(X, X, [1.0, 2.0]),
    ),
    Case(
        OverflowError,
        "X must keep the kernel within float64: the gradient overflows; scale X down",
        lambda: kc.Polynomial(9).gradient(np.full((1, 2), 1e20)),
    ),
    # Derivatives by hyper-parameters.
    Case(
        TypeError,
        f"{SMOOTH!r} must not be asked for a gradient: it is of cyclic signals",
        lambda: SMOOTH.hyperparameter_gradient(np.ones((2, 4))),
    ),
    Case(
        TypeError,
        f"{CNTK!r} must not be asked for a gradient: it is of signals or images",
        lambda: CNTK.hyperparameter_gradient(IMAGES),
    ),
    Case(
        ValueError,
        "weights must have one entry per entry of the Gram matrix, (3, 3): got shape (3,)",
        lambda: GAUSSIAN.hyperparameter_gradient(X, weights=np.ones(3)),
    ),
    Case(
        OverflowError,
        "X must keep the kernel within float64: the gradient overflows; scale X down",
        lambda: kc.Polynomial(9).hyperparameter_gradient(np.full((1, 2), 1e20)),
    ),
]
