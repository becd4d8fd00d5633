"""The cyclic convolution kernel, d = 30, q = 10, w = 5, one pytest-benchmark case each."""

from functools import partial

import numpy as np
import pytest

import kernelcore as kc

N, D, PATCH, POOL = 1000, 30, 10, 5
TERMS = D * (2 * POOL - 1)  # pairs of patches per entry
POLYNOMIAL = kc.profiles.PowerSeries((0.0, 0.2, 0.2, 0.2, 0.2, 0.2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
@pytest.mark.parametrize(
    "profile",
    [POLYNOMIAL, kc.profiles.Exp(0.7), kc.profiles.Kappa1(), kc.ArcCosine(1)],
    ids=lambda p: type(p).__name__,
)
def bench_cyclic(benchmark, profile, dtype):
    x = np.random.default_rng(0).choice([-1.0, 1.0], (N, D)).astype(dtype)
    out = np.empty((N, N), dtype)
    call = partial(kc.CyclicConvolution(PATCH, POOL, profile), x, out=out)
    call()  # modules loaded, pages touched, threads started
    benchmark(call)
    benchmark.extra_info["ns_per_term"] = 1e9 * benchmark.stats.stats.min / (N * N * TERMS)
    benchmark.extra_info["threads"] = kc.get_threads()
