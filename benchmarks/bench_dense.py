"""Gram matrices of the dense engine, one pytest-benchmark case each."""

from functools import partial

import numpy as np
import pytest

import kernelcore as kc

N, D = 1000, 64
DTYPES = [np.float32, np.float64]


def points(dtype, n=N, d=D):
    return np.random.default_rng(0).standard_normal((n, d)).astype(dtype)


def measure(benchmark, call):
    call()  # modules loaded, pages touched, threads started
    benchmark(call)
    benchmark.extra_info["ns_per_entry"] = 1e9 * benchmark.stats.stats.min / N**2
    benchmark.extra_info["threads"] = kc.get_threads()


def gram(benchmark, kernel, dtype):
    measure(benchmark, partial(kernel, points(dtype), out=np.empty((N, N), dtype)))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("kernel", ["nngp", "ntk"])
@pytest.mark.parametrize("depth", [1, 3])
def bench_mlp(benchmark, depth, kernel, dtype):
    gram(benchmark, getattr(kc.presets.mlp(depth), kernel), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("depth", [1, 3])
def bench_mlp_both(benchmark, depth, dtype):
    measure(benchmark, partial(kc.presets.mlp(depth).kernels, points(dtype)))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: t.__name__)
def bench_mlp_tanh(benchmark, dtype):
    gram(benchmark, kc.presets.mlp(3, activation=kc.Tanh()).ntk, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize(
    "kernel",
    [kc.Gaussian(8.0), kc.Laplacian(64.0, norm=1), kc.ArcCosine(2)],
    ids=lambda k: type(k).__name__,
)
def bench_classical(benchmark, kernel, dtype):
    gram(benchmark, kernel, dtype)
