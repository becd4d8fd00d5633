"""Random features, one pytest-benchmark case each, beside the bare product they contain."""

from functools import partial

import numpy as np
import pytest

import kernelcore as kc

N, D, COLUMNS = 4000, 784, 4096
DTYPES = [np.float32, np.float64]
FEATURES = {
    "cos_sin": kc.features.FourierFeatures(kc.Gaussian(28.0), COLUMNS, seed=0),
    "cos": kc.features.FourierFeatures(kc.Gaussian(28.0), COLUMNS, kind="cos", seed=0),
    "arc_cosine": kc.features.ArcCosineFeatures(1, COLUMNS, seed=0),
    "tangent": kc.features.TangentFeatures(16, seed=0),
}


def points(dtype):
    return np.random.default_rng(0).standard_normal((N, D)).astype(dtype)


def measure(benchmark, call, entries):
    call()  # modules loaded, pages touched, threads started
    benchmark(call)
    benchmark.extra_info["ns_per_entry"] = 1e9 * benchmark.stats.stats.min / entries
    benchmark.extra_info["threads"] = kc.get_threads()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", FEATURES)
def bench_transform(benchmark, name, dtype):
    x = points(dtype)
    features = FEATURES[name].fit(x)
    out = np.empty((N, features.n_features_out_), dtype)
    measure(benchmark, partial(features.transform, x, out=out), out.size)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("columns", [COLUMNS // 2, COLUMNS])
def bench_product(benchmark, columns, dtype):
    x = points(dtype)
    w = np.random.default_rng(1).standard_normal((columns, D)).astype(dtype)
    out = np.empty((N, columns), dtype)
    measure(benchmark, partial(np.matmul, x, w.T, out=out), out.size)
