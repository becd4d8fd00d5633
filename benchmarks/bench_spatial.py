"""Gram matrices of the convolutional engine, one pytest-benchmark case each."""

from functools import partial

import numpy as np
import pytest

import kernelcore as kc

N, M, SIDE = 4, 16, 16
DTYPES = [np.float32, np.float64]
NAMED = {"ids": lambda t: t.__name__}


def images(n, dtype, *shape):
    return np.random.default_rng(0).standard_normal((n, *shape)).astype(dtype)


def measure(benchmark, call, pairs):
    call()  # modules loaded, the plan made, threads started
    benchmark(call)
    benchmark.extra_info["us_per_pair"] = 1e6 * benchmark.stats.stats.min / pairs
    benchmark.extra_info["threads"] = kc.get_threads()


def block(benchmark, kernel, dtype, n=N, m=M, shape=(SIDE, SIDE, 3)):
    x = images(n + m, dtype, *shape)
    out = np.empty((n, m), dtype)
    measure(benchmark, partial(kernel, x[:n], x[n:], out=out), n * m)


def conv(depth, *readout, **options):
    return kc.Sequential(*[kc.Conv(3, w_std=2**0.5, **options), kc.Relu()] * depth, *readout)


@pytest.mark.parametrize("dtype", DTYPES, **NAMED)
@pytest.mark.parametrize("kernel", ["nngp", "ntk"])
@pytest.mark.parametrize("depth", [1, 5])
def bench_conv_gap(benchmark, depth, kernel, dtype):
    block(benchmark, getattr(conv(depth, kc.GlobalAvgPool(), kc.Dense()), kernel), dtype)


@pytest.mark.parametrize("dtype", DTYPES, **NAMED)
def bench_conv_flatten(benchmark, dtype):
    block(benchmark, conv(5, kc.Flatten(), kc.Dense()).ntk, dtype, 64, 64)


@pytest.mark.parametrize(
    "options", [{"padding": "circular"}, {"b_std": 0.1}, {"stride": 2}], ids=str
)
def bench_conv_options(benchmark, options):
    block(benchmark, conv(2, kc.GlobalAvgPool(), kc.Dense(), **options).ntk, np.float32)


def bench_conv_erf(benchmark):
    layers = [kc.Conv(3), kc.Erf()] * 2
    block(benchmark, kc.Sequential(*layers, kc.GlobalAvgPool(), kc.Dense()).ntk, np.float32)


def bench_conv_signals(benchmark):
    layers = [kc.Conv((3,), w_std=2**0.5), kc.Relu()] * 5
    net = kc.Sequential(*layers, kc.GlobalAvgPool(), kc.Dense())
    block(benchmark, net.ntk, np.float32, 16, 16, (64, 3))


def bench_gram_gap(benchmark):
    x = images(M, np.float32, SIDE, SIDE, 3)
    measure(benchmark, partial(kc.presets.cntk(6).ntk, x), M * (M + 1) // 2)


@pytest.mark.parametrize("kernel", ["relu", "exp"])
def bench_myrtle(benchmark, kernel):
    block(benchmark, kc.presets.myrtle(5, kernel).nngp, np.float32, 1, 8, (32, 32, 3))


def bench_ckn(benchmark):
    block(benchmark, kc.presets.ckn(2).nngp, np.float32, 1, 8, (32, 32, 3))
