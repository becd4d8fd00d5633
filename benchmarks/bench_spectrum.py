"""Spectra on the sphere and what is predicted from them, one pytest-benchmark case each."""

from functools import partial

import numpy as np
import pytest
from cold import caches, forget

import kernelcore as kc

KERNELS = {
    "kappa1": kc.ArcCosine(1),
    "ntk1": kc.presets.mlp(1).ntk,
    "ntk3": kc.presets.mlp(3).ntk,
    "nngp3": kc.presets.mlp(3).nngp,
    "erf": kc.presets.mlp(2, kc.Erf()).ntk,
    "gaussian": kc.Gaussian(1.0),
}


def measure(benchmark, call, count):
    call()  # modules loaded, threads started
    benchmark(call)
    note(benchmark, count)


def note(benchmark, count):
    benchmark.extra_info["us_per_eigenvalue"] = 1e6 * benchmark.stats.stats.min / count
    benchmark.extra_info["threads"] = kc.get_threads()


@pytest.mark.parametrize(("dim", "degree"), [(10, 100), (10, 1000), (1000, 100)])
@pytest.mark.parametrize("kernel", KERNELS)
def bench_sphere(benchmark, kernel, dim, degree):
    measure(benchmark, partial(kc.spectrum.sphere, KERNELS[kernel], dim, degree), degree + 1)


@pytest.mark.parametrize("kernel", KERNELS)
def bench_sphere_cold(benchmark, kernel, dim=10, degree=1000):
    call = partial(kc.spectrum.sphere, KERNELS[kernel], dim, degree)
    call()
    benchmark.pedantic(call, setup=partial(forget, caches()), rounds=10)
    note(benchmark, degree + 1)


def bench_sampled(benchmark, dim=10, degree=100):
    """A profile without a series: by quadrature."""
    measure(benchmark, partial(kc.spectrum.sphere, np.cosh, dim, degree), degree + 1)


def bench_learning_curve(benchmark, dim=30, degree=60):
    spectrum = kc.spectrum.sphere(KERNELS["ntk3"], dim, degree)
    power = np.eye(degree + 1)[2]
    n = np.geomspace(10, 1e5, 100)
    measure(benchmark, partial(kc.theory.learning_curve, spectrum, power, n, ridge=1e-3), len(n))
    benchmark.extra_info["us_per_size"] = benchmark.extra_info.pop("us_per_eigenvalue")
