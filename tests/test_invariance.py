"""What must not change a value: threads, tiles, batches, order, layout, scale, forks, callers."""

import concurrent.futures
import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest
from oracle import networks

import kernelcore as kc
from kernelcore.engine.cpu import dense as _dense
from kernelcore.engine.cpu import dispatch as _dispatch

ROOT2 = 2**0.5
RELU = kc.presets.mlp(3)
RESIDUAL = kc.Sequential(
    kc.Dense(1.2),
    kc.Residual(
        kc.Relu(),
        kc.Dense(ROOT2),
        kc.Residual(kc.LeakyRelu(0.2), kc.Dense(0.7)),
        kc.Dense(0.9),
        shortcut=kc.Dense(0.8),
    ),
    kc.Relu(),
    kc.Dense(),
)


def softsign(x):
    return x / np.sqrt(1 + x * x)


def deep(activation):
    w = 0.3 if activation == kc.Exp() else 1.0  # or the second layer is astronomical
    return kc.Sequential(
        kc.Dense(1.2 * w, 0.1), activation, kc.Dense(1.1 * w, 0.3), activation, kc.Dense(0.9)
    )


ACTIVATIONS = {
    "bias": kc.Relu(), "leaky": kc.LeakyRelu(-0.3), "step": kc.Step(), "sign": kc.Sign(),
    "power": kc.RectifiedPower(2), "erf": kc.Erf(), "gelu": kc.Gelu(), "sin": kc.Sin(shift=0.4),
    "exp": kc.Exp(), "bump": kc.GaussianBump(shift=0.3), "hermite": kc.Hermite(3),
    "tanh": kc.Tanh(), "callable": kc.Activation(softsign, shift=-0.2),
    "elu": kc.Elu(), "shifted": kc.Relu(shift=0.5), "shifted erf": kc.Erf(shift=0.5),
    "gauss map": kc.DotProduct(kc.profiles.Exp(0.8)), "power map": kc.DotProduct((0.2, 0.5, 0.3)),
    "fitted map": kc.DotProduct(np.exp), "project": kc.Project(),
}  # fmt: skip
NETWORKS = {"relu": RELU, "residual": RESIDUAL} | {k: deep(a) for k, a in ACTIVATIONS.items()}
CLASSICAL = {
    "arc-cosine": kc.ArcCosine(2), "polynomial": kc.Polynomial(3, 0.1, 1.0),
    "gaussian": kc.Gaussian(2.0), "laplacian": kc.Laplacian(3.0),
    "manhattan": kc.Laplacian(9.0, norm=1), "cauchy": kc.Cauchy(4.0),
    "matern": kc.Matern(2.5, 3.0), "bessel": kc.Matern(1.3, 3.0),
    "cyclic": kc.CyclicConvolution(1, 1, (0.1, 0.3, 0.2)),
}  # fmt: skip
KERNELS = (
    {f"{name} ntk": net.ntk for name, net in NETWORKS.items()}
    | {"relu nngp": RELU.nngp, "residual nngp": RESIDUAL.nngp, "erf nngp": NETWORKS["erf"].nngp}
    | CLASSICAL
    | {
        "sum": RELU.ntk + 0.3 * kc.Gaussian(2.0),
        "product": RELU.nngp * (kc.Laplacian(3.0) + 2 * kc.ArcCosine(1)),
    }
)
PICTURES = {
    "pooled": kc.presets.cntk(3).ntk,
    "flat": kc.Sequential(
        kc.Conv(2, w_std=1.2, b_std=0.1), kc.Residual(kc.Relu(), kc.Conv(3)), kc.Relu(),
        kc.AvgPool(2, 1), kc.Conv(2), kc.Erf(), kc.Flatten(), kc.Dense(),
    ).ntk,
    "circular": kc.Sequential(
        kc.Conv((3, 2), padding="circular"), kc.DotProduct(kc.profiles.Exp(0.7)),
        kc.GaussianPool(1), kc.GlobalAvgPool(),
    ).nngp,
}  # fmt: skip
EVERY = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
# One of each way through the driver: saved strips, tables, both outputs, reductions, algebra.
WAYS = pytest.mark.parametrize(
    "kernel",
    [
        KERNELS[name]
        for name in ("relu ntk", "residual ntk", "residual nngp", "bias ntk", "hermite ntk",
                     "gaussian", "manhattan", "cauchy", "bessel", "sum", "product")
    ],
    ids=repr,
)  # fmt: skip


def points(rng, n, d, dtype):
    """Random rows, the last of them special: zero, copies, multiples, opposites, and neighbours."""
    x = (rng.standard_normal((n, d)) * rng.uniform(0.5, 1.5, (n, 1))).astype(dtype)
    if n >= 10:
        x[-1] = 0
        x[-2] = x[0]
        x[-3] = 2 * x[1]
        x[-4] = -x[2]
        x[-5:-8:-1] = x[3]
        x[-6, 0] = np.nextafter(x[3, 0], dtype.type(9))  # the last place of one coordinate
        x[-7, -1] = np.nextafter(x[3, -1], dtype.type(9))
        x[-8] = x[4] * dtype.type(1.1)
        x[-9] = 0
    return x


def same(a, b):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)


# ---- threads, tiles, blocks


@WAYS
def test_threads_change_nothing(kernel, dtype, rng):
    x, y = points(rng, 131, 9, dtype), points(rng, 70, 9, dtype)
    for args in ((x,), (x, y)):
        one = kernel(*args, n_threads=1)
        for n_threads in (2, 3, 7):
            same(kernel(*args, n_threads=n_threads), one)


@WAYS
def test_tiles_and_blocks_change_nothing(kernel, dtype, rng, monkeypatch):
    x, y = points(rng, 101, 9, dtype), points(rng, 53, 9, dtype)
    want = kernel(x), kernel(x, y)
    for rows, width, packed in (
        (1, 1, 1), (24, 192, 5000), (48, 96, 16_000_000), (96, 1920, 3000), (10**6, 10**6, 20_000)
    ):  # fmt: skip
        monkeypatch.setattr(_dense, "TILE_ROWS", rows)
        monkeypatch.setattr(_dense, "TILE_BYTES", width)
        monkeypatch.setattr(_dense, "PACKED_BYTES", packed)
        same(kernel(x), want[0])
        same(kernel(x, y), want[1])


def test_both_kernels_in_one_pass_are_each_alone(dtype, rng):
    x, y = points(rng, 13, 9, dtype), points(rng, 10, 9, dtype)
    for net in NETWORKS.values():
        for args in ((x,), (x, y)):
            both = net.kernels(*args)
            same(both.nngp, net.nngp(*args))
            same(both.ntk, net.ntk(*args))


# ---- which rows, in which order


@EVERY
def test_an_entry_depends_on_its_two_rows_alone(kernel, dtype, rng):
    x, y = points(rng, 37, 9, dtype), points(rng, 13, 9, dtype)
    whole = kernel(x)
    same(whole, whole.T)
    same(kernel(x, x.copy()), whole)
    order = rng.permutation(len(x))
    same(kernel(x[order]), whole[order][:, order])
    same(kernel(x[20:30], x), whole[20:30])
    same(kernel(x[7:20]), whole[7:20, 7:20])
    same(kernel(y, x), kernel(x, y).T)
    same(kernel(x, y[5:6]), kernel(x, y)[:, 5:6])


@EVERY
def test_copies_get_the_diagonal(kernel, dtype, rng):
    x = points(rng, 25, 9, dtype)
    whole = kernel(x)
    assert np.isfinite(whole).all()
    same(whole[0], whole[-2])
    assert whole[0, -2] == whole[0, 0]
    same(np.diagonal(kernel(x, x.copy())), np.diagonal(whole))


@pytest.mark.parametrize(
    "name", ["relu ntk", "relu nngp", "bias ntk", "arc-cosine", "polynomial", "hermite ntk"]
)
def test_rows_one_ulp_apart_are_neighbours_either_way_round(name, dtype, rng):
    """Correlation 1 and equal norms, both to rounding: neither order is the right one."""
    kernel = KERNELS[name]
    x = rng.standard_normal((150, 9)).astype(dtype)
    y = x.copy()
    y[:, 0] = np.nextafter(x[:, 0], dtype.type(9))
    same(kernel(y, x), kernel(x, y).T)


SIZES = (1, 11, 12, 13, 23, 24, 25, 48, 49)


@pytest.mark.parametrize("name", ["relu ntk", "residual nngp", "erf ntk", "gaussian", "manhattan"])
def test_sizes_about_the_panels(name, dtype, rng):
    kernel = KERNELS[name]
    x, y = points(rng, 49, 5, dtype), points(rng, 49, 5, dtype)
    whole, cross = kernel(x), kernel(x, y)
    for n in SIZES:
        same(kernel(x[:n]), whole[:n, :n])
        for m in SIZES:
            same(kernel(x[:n], y[:m]), cross[:n, :m])


@pytest.mark.parametrize("d", [1, 2, 3, 7, 8, 9, 15, 16, 17, 127, 128, 129, 257, 1000])
def test_sums_over_any_number_of_columns(d, dtype, rng):
    x, y = (rng.standard_normal((n, d)).astype(dtype) for n in (13, 26))
    wide = [a.astype(np.longdouble) for a in (x, y)]
    eps = np.finfo(dtype).eps
    # Unit rows carry 2 roundings each; sums of 128 terms in order, then of d/128.
    terms = min(d, 128) + d / 128 + 4
    linear = kc.Sequential(kc.Input(sum=True), kc.Dense()).nngp(x, y)
    norms = np.sqrt(np.outer((wide[0] ** 2).sum(1), (wide[1] ** 2).sum(1)))
    np.testing.assert_array_less(np.abs(linear - wide[0] @ wide[1].T), terms * eps * norms)
    gap = wide[0][:, None] - wide[1]
    for kernel, exponent in (
        (kc.Gaussian(d**0.5), (gap**2).sum(-1) / (2 * d)),
        (kc.Laplacian(float(d), norm=1), np.abs(gap).sum(-1) / d),
    ):
        np.testing.assert_allclose(
            kernel(x, y) / np.exp(-exponent), 1, rtol=0, atol=eps * (terms * exponent.max() + 4)
        )


# ---- layout and dtype


def layouts(x, path):
    yield "Fortran", np.asfortranarray(x)
    yield "strided rows", np.repeat(x, 2, axis=0)[::2]
    yield "strided columns", np.repeat(x, 3, axis=1)[:, ::3]
    yield "backwards", x[::-1, ::-1].copy()[::-1, ::-1]
    frozen = x.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen
    shifted = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    shifted[:] = x
    yield "unaligned", shifted
    np.save(path, x)
    yield "memory-mapped", np.load(path, mmap_mode="r")
    yield "byte-swapped", x.astype(x.dtype.newbyteorder())
    yield "list", [list(row) for row in x] if x.dtype == np.float64 else x
    yield "subclass", x.view(np.matrix)


@pytest.mark.parametrize("name", ["relu ntk", "gaussian"])
def test_layout_changes_nothing(name, dtype, rng, tmp_path):
    kernel = KERNELS[name]
    x, y = points(rng, 29, 6, dtype), points(rng, 17, 6, dtype)
    whole, cross, diagonal = kernel(x), kernel(x, y), kernel.diag(x)
    for label, a in layouts(x, tmp_path / "x.npy"):
        got = kernel(a), kernel(a, y), kernel(y, a).T, kernel.diag(a)
        for result, want in zip(got, (whole, cross, cross, diagonal), strict=True):
            assert type(result) is np.ndarray, label
            assert np.array_equal(result, want), label
            assert result.dtype == dtype, label


@pytest.mark.parametrize("given", ["bool", "int8", "uint8", "int32", "int64", "uint64", ">i4"])
def test_integers_and_booleans_count_as_float64(given, rng):
    x = rng.integers(0, 2, (9, 4)).astype(given)
    for kernel in (RELU.ntk, kc.Gaussian(1.0)):
        same(kernel(x), kernel(x.astype(np.float64)))
    same(RELU.ntk.diag(x), RELU.ntk.diag(x.astype(np.float64)))


@EVERY
def test_no_rows_and_one_row(kernel, dtype):
    none, one = np.empty((0, 3), dtype), np.ones((1, 3), dtype)
    for args, shape in (((none,), (0, 0)), ((none, one), (0, 1)), ((one, none), (1, 0))):
        assert kernel(*args).shape == shape
        assert kernel(*args).dtype == dtype
    assert kernel.diag(none).shape == (0,)
    same(kernel(one)[0], kernel.diag(one))
    same(kernel(one, one), kernel(one))


def test_no_rows_in_the_other_outputs(dtype):
    none = np.empty((0, 3), dtype)
    assert RELU.ntk.terms(none).shape == (4, 0, 0)
    assert RELU.kernels(none, np.ones((2, 3), dtype)).ntk.shape == (0, 2)


# ---- scale


@pytest.mark.parametrize(
    "kernel", [RELU.ntk, RELU.nngp, RESIDUAL.ntk, RESIDUAL.nngp, kc.ArcCosine(1)]
)
@pytest.mark.parametrize("power", [-40, -3, 1, 17])
def test_homogeneous_kernels_scale_exactly_with_powers_of_two(kernel, power, dtype, rng):
    x = points(rng, 30, 9, dtype)
    c = dtype.type(2) ** power
    same(kernel(c * x), c * c * kernel(x))


def test_networks_of_any_scale(rng):
    """A row far from 1 is a multiple of an ordinary one: no overflow on the way."""
    x, y = (rng.standard_normal((n, 5)).astype(np.float32) for n in (6, 4))
    for c in np.float32([2.0**-60, 2.0**-30, 2.0**30, 2.0**60]):
        same(RELU.ntk(c * x), c * c * RELU.ntk(x))
        same(RELU.ntk(c * x, y), c * RELU.ntk(x, y))
    x, y = x.astype(np.float64), y.astype(np.float64)
    for c in (2.0**-480, 2.0**-300, 2.0**300, 2.0**480):
        same(RELU.ntk(c * x), c * c * RELU.ntk(x))
        same(RELU.ntk(c * x, y), c * RELU.ntk(x, y))


TINY = {
    "float32": [1e-30, 1e-38, 1e-42, 1e-45],
    "float64": [1e-160, 1e-170, 1e-308, 1e-320, 5e-324],
}


@pytest.mark.parametrize(
    "name",
    ["relu ntk", "residual ntk", "bias ntk", "erf ntk", "tanh ntk", "exp ntk", "arc-cosine",
     "gaussian", "cauchy", "bessel"],
)  # fmt: skip
def test_tiny_rows_are_as_good_as_zero_or_refused(name, dtype, rng):
    """Squares of such rows underflow, and the reciprocal of their norm overflows.

    Where nothing else is added to them, all of the kernel underflows.
    """
    kernel = KERNELS[name]
    x = np.zeros((4, 3), dtype)
    x[1] = [1.0, -0.5, 2.0]
    at_zero = kernel(x)
    for size in TINY[dtype.name]:
        x[2:] = dtype.type(size)
        x[3, 0] *= -1
        if name in {"relu ntk", "residual ntk", "arc-cosine"}:
            with pytest.raises(FloatingPointError, match="underflows"):
                kernel(x)
            continue
        got = kernel(x)
        assert np.isfinite(got).all(), size
        assert np.array_equal(got, got.T)
        np.testing.assert_allclose(got[:2], at_zero[:2], rtol=8 * np.finfo(dtype).eps, atol=1e-29)


@pytest.mark.parametrize(
    "name",
    [
        *CLASSICAL,
        "relu ntk",
        "bias ntk",
        "erf ntk",
        "sin ntk",
        "residual ntk",
        "gelu ntk",
        "step ntk",
    ],
)
def test_huge_float32_rows_give_the_rounded_value_or_a_refusal(name, rng):
    """What float32 cannot hold is inf or refused; nothing is NaN, nothing warns."""
    kernel = KERNELS[name]
    x = rng.standard_normal((6, 5)).astype(np.float32)
    for size in np.float32([1e10, 1e20, 1e30, 1e37]):
        big = size * np.clip(x, -3, 3)
        try:
            got = kernel(big)
        except OverflowError:
            continue
        want = kernel(big.astype(np.float64))
        with np.errstate(over="ignore"):
            rounded = want.astype(np.float32)
        assert not np.isnan(got).any(), size
        held = np.isfinite(rounded) & (np.abs(rounded) < 1e38)
        scale = np.sqrt(np.outer(np.diagonal(want), np.diagonal(want)))
        assert (np.abs(got - want)[held] <= 64 * 2.0**-23 * scale[held]).all(), size
        assert np.isinf(got[~np.isfinite(rounded)]).all(), size


@pytest.mark.parametrize("lengthscale", [1e-170, 1e-30, 1e30, 1e170])
@pytest.mark.parametrize(
    "make",
    [kc.Gaussian, kc.Laplacian, kc.Cauchy, lambda s: kc.Matern(1.5, s), lambda s: kc.Matern(1.2, s),
     lambda s: kc.Laplacian(s, norm=1)],
    ids=["gaussian", "laplacian", "cauchy", "matern", "bessel", "manhattan"],
)  # fmt: skip
def test_lengthscales_far_from_the_data(make, lengthscale, dtype):
    """Rows at distance one are as far as can be, or as near."""
    got = make(lengthscale)(np.array([[0.0, 0.0], [1.0, 0.0]], dtype))
    far = 0.0 if lengthscale < 1 else 1.0
    np.testing.assert_allclose(got, [[1.0, far], [far, 1.0]], rtol=1e-6, atol=1e-25)


# ---- zero rows


# Of a jump the limit depends on the direction.
@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in ("step", "sign")])
def test_zero_rows_are_the_limit_of_small_ones(name, rng):
    net = NETWORKS[name]
    x = rng.standard_normal((5, 4))
    small = rng.standard_normal((2, 4)) * 1e-9
    for kernel in (net.nngp, net.ntk):
        at_zero, near = (
            kernel(np.concatenate([np.zeros((2, 4)), x])),
            kernel(np.concatenate([small, x])),
        )
        assert np.isfinite(at_zero).all()
        # Rows 1e-9 from zero; a slope of 100 in units of the kernel is more than these have.
        size = 1e-7 * max(1.0, np.diagonal(near).max())
        np.testing.assert_allclose(at_zero[:2, 2:], near[:2, 2:], rtol=0, atol=size)
        np.testing.assert_allclose(at_zero[0, 0], near[0, 0], rtol=0, atol=size)
        assert at_zero[0, 1] == at_zero[0, 0]  # one zero row is a copy of the other
        same(at_zero[2:, 2:], kernel(x))


@pytest.mark.parametrize("name", ["Relu", "Erf", "Sin"])
def test_zero_rows_against_the_recursion(name, dtype):
    layers = [networks.Dense(1.2, 0.4), networks.Act(name), networks.Dense(1.1, 0.2),
              networks.Act(name), networks.Dense(0.9)]  # fmt: skip
    act = getattr(kc, name)()
    net = kc.Sequential(kc.Dense(1.2, 0.4), act, kc.Dense(1.1, 0.2), act, kc.Dense(0.9))
    x = np.array([[0, 0, 0], [1, -2, 0.5], [0.25, 0, 3]], dtype)
    y = np.array([[0, 0, 0], [2, 1, -1]], dtype)
    for got, want in zip(net.kernels(x, y), networks.kernels(layers, x, y), strict=True):
        np.testing.assert_allclose(got, np.asarray(want, float), rtol=64 * np.finfo(dtype).eps)


def test_one_column_has_only_two_directions(dtype):
    x = np.array([[1.0], [3.0], [-2.0], [0.0]], dtype)
    got = RELU.ntk(x)
    # On the line u is +-1: the profile at its ends, times the norms.
    top, bottom = RELU.ntk.profile([1.0, -1.0])
    want = np.outer(x, x) * np.where(np.outer(x, x) > 0, top, -bottom)
    np.testing.assert_allclose(got, want, rtol=8 * np.finfo(dtype).eps)


# ---- output


@EVERY
def test_out_is_filled_and_returned(kernel, dtype, rng):
    x, y = points(rng, 13, 5, dtype), points(rng, 10, 5, dtype)
    for args in ((x,), (x, y)):
        want = kernel(*args)
        out = np.full(want.shape, np.nan, dtype)
        assert kernel(*args, out=out) is out
        same(out, want)


def test_inputs_are_left_alone(dtype, rng):
    x, y = points(rng, 12, 5, dtype), points(rng, 10, 5, dtype)
    before = x.copy(), y.copy()
    for kernel in KERNELS.values():
        kernel(x, y)
        kernel.diag(x)
    same(x, before[0])
    same(y, before[1])


# ---- processes, threads, machines


def _child(kernel, x, queue):
    queue.put(kernel(x))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("name", ["rows", "images"])
def test_a_forked_child_computes_after_its_parent_did(name, rng):
    x = points(rng, 200, 9, np.dtype(np.float32))
    kernel = RELU.ntk
    if name == "images":
        x, kernel = x.reshape(-1, 5, 5, 3), PICTURES["pooled"]
    want = kernel(x, n_threads=2)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(kernel, x, queue), daemon=True)
    child.start()
    got = queue.get(timeout=60)
    child.join(timeout=60)
    assert child.exitcode == 0
    same(got, want)
    same(kernel(x, n_threads=2), want)


def test_callers_at_once_do_not_disturb_each_other(rng, dtype):
    inputs = [points(rng, n, 9, dtype) for n in (150, 90, 31, 12)]
    names = ["relu ntk", "residual ntk", "erf ntk", "gaussian"]
    want = [KERNELS[name](x) for name, x in zip(names, inputs, strict=True)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            jobs = [pool.submit(KERNELS[n], x) for n, x in zip(names, inputs, strict=True)]
            for job, result in zip(jobs, want, strict=True):
                same(job.result(timeout=60), result)


def of_pictures(x):
    """Kernels of images on rows of nine numbers."""
    return {name: kernel(x.reshape(-1, 3, 3, 1)) for name, kernel in PICTURES.items()}


SCRIPT = """
import sys, numpy as np, kernelcore as kc
import test_invariance as t
x = np.load(sys.argv[1])
values = {k: f(x) for k, f in t.KERNELS.items()} | t.of_pictures(x)
np.savez(sys.argv[2], level=kc.info()["level"], **values)
"""


@pytest.mark.parametrize("level", _dispatch.built_levels())
def test_every_cpu_level_agrees(level, dtype, rng, tmp_path):
    if level not in _dispatch.machine_levels():
        pytest.skip(f"this machine does not run {level}")
    x = points(rng, 26, 9, dtype)
    np.save(tmp_path / "x.npy", x)
    paths = [os.path.dirname(__file__), os.path.dirname(os.path.dirname(kc.__file__))]
    environment = os.environ | {
        "KERNELCORE_CPU_LEVEL": level,
        "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]),
    }
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "x.npy"), str(tmp_path / "k.npz")],
        env=environment, check=True, timeout=120,
    )  # fmt: skip
    found = np.load(tmp_path / "k.npz")
    assert found["level"] == level
    pictures = of_pictures(x)
    fused = {level, _dispatch.level()} <= {"v3", "v4"}  # lanes of a vector do not meet
    for name, want in ({k: f(x) for k, f in KERNELS.items()} | pictures).items():
        if level == _dispatch.level() or (fused and name in pictures):
            same(found[name], want)
        size = np.sqrt(np.outer(np.diagonal(want), np.diagonal(want)))
        # Other sums and roundings of u: those of far entries, and where activations follow each
        # other 1/sqrt(1 - u^2) times as much; the copies are exact on both.
        error = np.abs(found[name] - want) / np.where(size > 0, size, 1)
        assert error.max() <= 256 * np.finfo(dtype).eps, name
