"""Spectra on the sphere: against mpmath's table, closed forms, sums, and what invariance demands.

Logarithms near -1000 are spaced 1e-13 apart: that, not the method, is the error of most of them.
"""

import math
import pickle
import sys
import time

import matplotlib
import mpmath
import numpy as np
import pytest
from oracle import make_spectra, spectra

import kernelcore as kc
from kernelcore.kernels._powers import powers_of
from kernelcore.series import coefficients
from kernelcore.spectrum import _sums, multiplicity, sphere

mlp = kc.presets.mlp
EPS = float(np.finfo(float).eps)


def network(*layers):
    return kc.Sequential(kc.Dense(), *layers, kc.Dense())


KERNELS = {
    "kappa0": kc.ArcCosine(0),
    "kappa1": kc.ArcCosine(1),
    "arccos2": kc.ArcCosine(2),
    "exp1": kc.profiles.Exp(1.0),
    "exp2": kc.profiles.Exp(0.5),
    "erf1": network(kc.Erf()).nngp,
    "erf2": network(kc.Erf(), kc.Dense(), kc.Erf()).nngp,
    "erfntk1": network(kc.Erf()).ntk,
    "bias2": mlp(2, b_std=0.1).ntk,
    "laplace": kc.Laplacian(1.0),
    **{f"nngp{depth}": mlp(depth).nngp for depth in range(2, 6)},
    **{f"ntk{depth}": mlp(depth).ntk for depth in range(1, 6)},
}
SHIFTED = network(kc.Relu(shift=0.5)).nngp  # a dual that is no power series of known tail


@pytest.fixture(scope="module")
def table():
    return spectra.table()


# ---- values


def test_the_table_is_what_it_should_be(table):
    assert len(table.log) >= 2000
    assert set(table.kernel) == {*KERNELS, "relu_shift"}
    assert (table.dim.min(), table.dim.max(), table.degree.max()) == (2, 3000, 300)


@pytest.mark.parametrize("name", KERNELS)
def test_eigenvalues_are_those_of_mpmath(table, name):
    for dim in np.unique(table.dim):
        rows = (table.kernel == name) & (table.dim == dim)
        s = sphere(KERNELS[name], int(dim), int(table.degree[rows].max()))
        want, degrees = table.log[rows], table.degree[rows]
        got, error = s.log_eigenvalues[degrees], s.error[degrees]
        zero = np.isneginf(want)
        np.testing.assert_array_equal(np.isneginf(got), zero)
        off = np.abs(got[~zero] - want[~zero])
        # The promise, and the estimate that comes with it but for the spacing of the logarithms.
        assert off.max(initial=0) <= 1e-10
        assert (off <= error[~zero] + 2 * EPS * np.abs(want[~zero])).all()
        assert s.resolved.all()


def test_what_is_sampled_is_right_to_its_noise(table):
    for dim in np.unique(table.dim):
        rows = (table.kernel == "relu_shift") & (table.dim == dim)
        s = sphere(SHIFTED, int(dim), int(table.degree[rows].max()))
        want = np.exp(table.log[rows])
        got, resolved = s.eigenvalues[table.degree[rows]], s.resolved[table.degree[rows]]
        # an error of the values, 1e-13 of the kernel, times the root mean square of P_k
        noise = 1e-13 * s.trace * np.exp(-s.log_multiplicities / 2)[table.degree[rows]]
        assert (np.abs(got - want) <= noise)[resolved].all()
        assert resolved[want > 10 * noise].all()
        assert not resolved[want < noise / 10].any()
        assert np.isnan(got[~resolved]).all()


def arc_cosine(order, p, k):
    """mu_k of kappa_n = 2 E[relu^n(<w, x>) relu^n(<w, y>)]: Funk and Hecke, and E|w|^2n."""
    n, p, k = map(mpmath.mpf, (order, p, k))
    gamma = mpmath.gamma
    half = gamma(k - n) / (gamma((k - n + 1) / 2) * gamma((k + p + n) / 2))
    lam = gamma(p / 2) / mpmath.sqrt(mpmath.pi) * mpmath.mpf(2) ** -k * mpmath.factorial(n) * half
    return 2 * lam**2 * mpmath.rf(p / 2, n) * mpmath.mpf(2) ** n


def exponential(c, p, k):
    """mu_k of exp(c (t - 1)): the plane wave's expansion in Bessel functions."""
    c, p, k = map(mpmath.mpf, (c, p, k))
    bessel = mpmath.besseli(k + p / 2 - 1, c)
    return mpmath.gamma(p / 2) * (2 / c) ** (p / 2 - 1) * bessel * mpmath.exp(-c)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("dim", [2, 3, 77, 1000, 9_999, 10_000])
def test_arc_cosine_kernels_have_closed_forms(order, dim):
    s = sphere(kc.ArcCosine(order), dim, 1000)
    degrees = [k for k in (order + 1, order + 3, 51 + order, 331 + order, 993 + order) if k <= 1000]
    with mpmath.workdps(40):
        want = np.array([float(mpmath.log(arc_cosine(order, dim, k))) for k in degrees])
    assert np.abs(s.log_eigenvalues[degrees] - want).max() <= 1e-10
    parity = np.arange(order + 2, 1001, 2)
    assert np.isneginf(s.log_eigenvalues[parity]).all()


@pytest.mark.parametrize("c", [0.01, 1.0, 30.0, 2500.0])
@pytest.mark.parametrize("dim", [2, 5, 300, 10_000])
def test_exponentials_have_closed_forms(c, dim):
    s = sphere(kc.Gaussian(c**-0.5), dim, 1000)
    degrees = [0, 1, 2, 13, 200, 999, 1000]
    with mpmath.workdps(40):
        want = np.array([float(mpmath.log(exponential(c, dim, k))) for k in degrees])
    assert np.abs(s.log_eigenvalues[degrees] - want).max() <= 1e-10


def by_trapezoids(c, p, k):
    """The same for large p, its logarithm: mu_k is c^k/(p (p+2) ..) times mu_0 of R^(p+2k).

    That is the integral of exp(c (t-1)) (1-t^2)^m over a Beta function: of a narrow peak, for which
    the trapezoidal rule at a quarter of its width is right to exp(-2 pi^2 16).
    """
    c, p = mpmath.mpf(c), mpmath.mpf(p)
    m = (p + 2 * k - 3) / 2
    top = c / (m + mpmath.sqrt(m * m + c * c))
    width = (1 - top**2) / mpmath.sqrt(2 * m * (1 + top**2))

    def log(t):
        return c * (t - 1) + m * mpmath.log(1 - t * t)

    places = (top + width * j / 4 for j in range(-64, 65))
    total = sum(mpmath.exp(log(t) - log(top)) for t in places if abs(t) < 1) * width / 4
    beta = mpmath.log(mpmath.pi) / 2 + mpmath.loggamma(m + 1) - mpmath.loggamma(m + 1.5)
    steps = sum(mpmath.log(c / (p + 2 * j)) for j in range(k))
    return steps + log(top) + mpmath.log(total) - beta


@pytest.mark.parametrize("c", [1.0, 9e3, 2e4, 1e6, 1e9])
@pytest.mark.parametrize("dim", [2, 3, 1000, 16_385, 10**6, 10**9 + 1, 10**15])
def test_steep_exponentials_and_high_dimensions_have_closed_forms(c, dim):
    # Of logarithms of size 1e8 nothing is right to more than their spacing, which error includes.
    s = sphere(kc.profiles.Exp(c**-0.5), dim, 60)
    degrees = [0, 1, 13, 60]
    with mpmath.workdps(60):
        rate = s.kernel._rate
        if dim < 1000:
            want = np.array([float(mpmath.log(exponential(rate, dim, k))) for k in degrees])
        else:
            want = np.array([float(by_trapezoids(rate, dim, k)) for k in degrees])
    off = np.abs(s.log_eigenvalues[degrees] - want)
    assert (off <= s.error[degrees] + EPS * np.abs(want)).all()
    assert (off <= 1e-12 + 4 * EPS * np.abs(want) + EPS * min(dim, 20_000) / 2).all()
    assert (s.error <= 2e-12 + 4 * EPS * np.abs(s.log_eigenvalues)).all()


def test_eigenvalues_may_be_smaller_than_exp_of_minus_ten_thousand():
    s = sphere(kc.Gaussian(10.0), 10_000, 1000)
    with mpmath.workdps(40):
        want = float(mpmath.log(exponential(0.01, 10_000, 1000)))
    assert want < -10_000
    assert abs(s.log_eigenvalues[-1] - want) <= 1e-10
    assert s.eigenvalues[-1] == 0


def test_values_of_the_papers():
    ntk = mlp(1).ntk
    found = [
        sphere(kc.ArcCosine(1), 3, 2).eigenvalues[2],
        sphere(kc.ArcCosine(1), 5, 4).eigenvalues[4],
        sphere(ntk, 5, 4).eigenvalues[4],
        sphere(ntk, 3, 6).eigenvalues[6],
    ]
    want = [0.0234375, 1.52587890625e-4, 1.03759765625e-3, 1.40380859375e-3]
    np.testing.assert_allclose(found, want, rtol=1e-13)


POLYNOMIAL = [0.3, 0.0, 1.5, 0.0, 0.0, 2.0]


def moments(p, n):
    """E[t^n], by the Beta function."""
    return float(mpmath.beta((n + 1) / 2, (p - 1) / 2) / mpmath.beta(0.5, (p - 1) / 2)) * (
        n % 2 == 0
    )


def test_a_polynomial_is_projected_by_its_moments():
    # P_k of dimension 4 is Chebyshev's U_k over k + 1.
    chebyshev = {
        0: [1],
        1: [0, 1],
        2: [-1 / 3, 0, 4 / 3],
        3: [0, -1, 0, 2],
        5: [0, 1, 0, -16 / 3, 0, 16 / 3],
    }
    for got in (sphere(POLYNOMIAL, 4, 7), sphere(kc.profiles.PowerSeries(POLYNOMIAL), 4, 7)):
        for k, legendre in chebyshev.items():
            product = np.convolve(POLYNOMIAL, legendre)
            want = math.fsum(c * moments(4, n) for n, c in enumerate(product))
            assert got.eigenvalues[k] == pytest.approx(want, rel=1e-14)
        assert (got.eigenvalues[[4, 6, 7]] == 0).all()
        assert got.tail <= 1e-15 * got.trace
    assert np.isneginf(got.log_eigenvalues[6])


def test_negative_coefficients_cancel_within_the_estimate():
    # t^4 = 8/35 P_4 + 4/7 P_2 + 1/5: with -4/7 of a P_2 beside it nothing but rounding is left.
    p2 = np.array([-0.5, 0.0, 1.5, 0.0, 0.0])
    left = np.array([0.0, 0.0, 0.0, 0.0, 1.0]) - 4 / 7 * p2
    s = sphere(left, 3, 4)
    np.testing.assert_allclose(s.eigenvalues[[0, 4]], [0.2, 8 / 35 / 9], rtol=1e-14)
    assert not s.resolved[2] or s.eigenvalues[2] == 0


# ---- many ways to the same


def sampled(kernel, dim, degree, **radius):
    s = sphere(kernel, dim, degree, **radius)
    return s, sphere(lambda t: s.profile(t), dim, degree)


ACTIVATIONS = [
    kc.Relu(), kc.LeakyRelu(0.2), kc.Abs(), kc.Step(), kc.Sign(), kc.RectifiedPower(2), kc.Erf(),
    kc.Gelu(), kc.Sin(), kc.Cos(), kc.Sin(shift=0.4), kc.Exp(), kc.GaussianBump(), kc.Monomial(2),
    kc.Hermite(3), kc.PowerSeries((0.5, 1.0, 0.0, 0.25)), kc.Identity(),
]  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
@pytest.mark.parametrize("bias", [0.0, 0.3])
def test_powers_agree_with_quadrature(activation, bias):
    net = mlp(2, activation, w_std=0.9, b_std=bias)
    for kernel in (net.nngp, net.ntk):
        got, want = sampled(kernel, 6, 40)
        there = want.resolved & np.isfinite(want.log_eigenvalues)
        # Roots of roots are sampled less well: the estimate of the sampled one tells.
        allowed = np.maximum(2e-13, want.error * want.eigenvalues / want.trace)
        off = np.abs(got.eigenvalues - want.eigenvalues) / want.trace
        assert (off[there] <= allowed[there]).all()
        assert got.resolved.all()


SAMPLED = [
    kc.Elu(), kc.Tanh(), kc.Silu(), kc.Relu(shift=0.3), kc.GaussianBump(shift=0.2),
    kc.Erf(shift=0.1),
]  # fmt: skip


def random_network(rng):
    """Depth 1 to 3, any activation, biases, frozen layers and shortcuts."""

    def dense(most):
        bias, trainable = float(rng.choice([0.0, 0.1, 0.5])), bool(rng.random() < 0.8)
        return kc.Dense(float(rng.uniform(0.5, most)), bias, trainable)

    layers = [dense(1.5)]
    for _ in range(rng.integers(1, 4)):
        activation = [*ACTIVATIONS, *SAMPLED][rng.integers(len(ACTIVATIONS) + len(SAMPLED))]
        block = [activation, dense(1.2)]
        layers += [kc.Residual(*block)] if rng.random() < 0.15 else block
    return kc.Sequential(*layers)


@pytest.mark.filterwarnings("ignore:.*settle too slowly")
@pytest.mark.parametrize("seed", range(60))
def test_random_networks_agree_with_quadrature(seed):
    rng = np.random.default_rng(seed)
    net, dim, degree = random_network(rng), int(rng.choice([2, 3, 5, 60])), int(rng.choice([5, 60]))
    got, want = sampled(net.ntk if seed % 2 else net.nngp, dim, degree)
    a, b = np.nan_to_num(got.eigenvalues), np.nan_to_num(want.eigenvalues)
    both = got.resolved & want.resolved & np.isfinite(want.log_eigenvalues)
    # Each within its own estimate, and the kernel's own rounding twice.
    allowed = 2e-13 * got.trace + (got.error[both] * a[both] + want.error[both] * b[both])
    assert (np.abs(a - b)[both] <= allowed).all()
    # Nothing that is there is called zero or lost.
    there = b > 1e-11 * got.trace
    assert got.resolved[there].all()
    assert np.isfinite(got.log_eigenvalues[there]).all()


COMBINED = [
    kc.Gaussian(0.7) + kc.Laplacian(2.0),
    kc.Gaussian(0.7) * kc.Matern(1.5, 1.0),
    2.5 * mlp(2).ntk + 0.5 * mlp(1, b_std=0.2).nngp,
    mlp(2).ntk * mlp(1).nngp,
    kc.Matern(3.5, 0.8),
    kc.Polynomial(3),
    kc.Sequential(
        kc.Dense(), kc.Residual(kc.Relu(), kc.Dense(1.2, b_std=0.1)), kc.Erf(), kc.Dense()
    ).ntk,
    kc.Sequential(kc.Dense(), kc.Relu(), kc.Dense(trainable=False), kc.Relu(), kc.Dense()).ntk,
    kc.Sequential(kc.Input(sum=True), kc.DotProduct(kc.profiles.Exp(0.8)), kc.Dense()).nngp,
    kc.Sequential(kc.Dense(1.3), kc.Project(), kc.DotProduct(kc.profiles.Kappa1())).nngp,
]


@pytest.mark.parametrize("kernel", COMBINED, ids=repr)
@pytest.mark.parametrize("radius", [None, 0.6, 3.0])
def test_combinations_agree_with_quadrature(kernel, radius):
    got, want = sampled(kernel, 7, 30, radius=radius)
    there = want.resolved & np.isfinite(want.log_eigenvalues)
    off = np.abs(got.eigenvalues - want.eigenvalues)
    assert (off[there] <= 2e-13 * want.trace).all()
    assert got.resolved.all()


def test_unlike_parts_need_a_radius():
    kernel = kc.Gaussian(1.0) + mlp(1).ntk
    got = sphere(kernel, 5, 10, radius=2.0)
    parts = [sphere(k, 5, 10, radius=2.0).eigenvalues for k in (kc.Gaussian(1.0), mlp(1).ntk)]
    np.testing.assert_allclose(got.eigenvalues, sum(parts), rtol=1e-14)


def test_the_radius_is_a_scale():
    narrow = sphere(kc.Gaussian(1.0), 5, 30, radius=2.0)
    np.testing.assert_allclose(
        narrow.log_eigenvalues, sphere(kc.Gaussian(0.5), 5, 30).log_eigenvalues, rtol=1e-13
    )
    # ReLU networks are homogeneous: twice the radius, four times the kernel.
    one, two = (sphere(mlp(2).ntk, 4, 30, radius=r) for r in (2.0, 4.0))
    np.testing.assert_allclose(two.eigenvalues, 4 * one.eigenvalues, rtol=1e-13)
    assert one.radius == 2.0
    assert sphere(mlp(2).ntk, 4, 3).radius == 2.0
    assert sphere(kc.ArcCosine(1), 4, 3).radius == 1.0


def test_results_do_not_depend_on_threads_or_on_what_was_asked_before():
    kernel = mlp(3, b_std=0.05).ntk
    before = kc.get_threads()
    results = []
    try:
        for n in (1, 2, 3):
            kc.set_threads(n)
            powers_of.cache_clear()
            sphere(kernel, 9, 10)
            results.append(sphere(kernel, 9, 700).log_eigenvalues)
    finally:
        kc.set_threads(before)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize("kernel", [mlp(3).ntk, kc.ArcCosine(0), kc.Gaussian(1.0)], ids=repr)
def test_degrees_asked_for_do_not_change_those_below(kernel):
    few, many = sphere(kernel, 12, 20), sphere(kernel, 12, 600)
    finite = np.isfinite(few.log_eigenvalues)
    off = np.abs(few.log_eigenvalues[finite] - many.log_eigenvalues[:21][finite])
    assert off.max() <= 1e-13


def test_dimensions_are_related():
    # mu_k of f on the sphere of R^p is mu_(k-1) of f' on that of R^(p+2), over p.
    for dim in (2, 5, 40):
        kappa1, kappa0 = (sphere(kc.ArcCosine(n), d, 300) for n, d in ((1, dim), (0, dim + 2)))
        want = kappa0.log_eigenvalues[:-1] - math.log(dim)
        finite = np.isfinite(want)
        np.testing.assert_allclose(kappa1.log_eigenvalues[1:][finite], want[finite], atol=1e-12)


@pytest.mark.parametrize("start", [64, 127, 500])
@pytest.mark.parametrize("change", [4.0, 8.0])
def test_blocks_do_not_matter(monkeypatch, start, change):
    # Where single terms end, and how long blocks are, is a matter of time alone.
    want = sphere(mlp(2).ntk, 3, 50).log_eigenvalues
    powers_of.cache_clear()
    frame = coefficients.Frame
    monkeypatch.setattr(coefficients, "Frame", lambda count: frame(max(256, start)))
    monkeypatch.setattr(_sums, "CHANGE", change)
    got = sphere(mlp(2).ntk, 3, 50).log_eigenvalues
    powers_of.cache_clear()
    np.testing.assert_allclose(got, want, atol=2e-13)


# ---- high dimension


def mean(n, k, p):
    """E[t^n P_k(t)] on the sphere of R^p: Rodrigues' formula and a Beta integral."""
    n, k, p = map(mpmath.mpf, (n, k, p))
    falling = mpmath.ff(n, k) * mpmath.gamma((n - k + 1) / 2) / mpmath.sqrt(mpmath.pi)
    return falling / mpmath.mpf(2) ** k / mpmath.rf(p / 2, (n + k) / 2)


def by_taylor(profile, p, degrees):
    """Logarithms of eigenvalues from Taylor coefficients at 0: each term is n/p of the last."""
    with mpmath.workdps(60):
        a = mpmath.taylor(profile, 0, max(degrees) + 24)
        sums = [sum(a[n] * mean(n, k, p) for n in range(k, len(a), 2)) for k in degrees]
        return np.array([float(mpmath.log(x)) for x in sums])


def matern(t):
    r = mpmath.sqrt(3 * (2 - 2 * t))
    return (1 + r) * mpmath.exp(-r)


HIGH = {
    "ntk": (mlp(2).ntk, lambda t: slow_ntk([relu] * 2, 1, 2, 0, t), {}),
    "laplacian": (kc.Laplacian(1.0), lambda t: mpmath.exp(-mpmath.sqrt(2 - 2 * t)), {}),
    "wide": (
        kc.Laplacian(1.0), lambda t: mpmath.exp(-mpmath.sqrt(3 * (2 - 2 * t))),
        {"radius": 3**0.5},
    ),
    "matern": (kc.Matern(1.5, 1.0), matern, {}),
    "polynomial": (kc.Polynomial(4), lambda t: (1 + t) ** 4, {}),
}  # fmt: skip


@pytest.mark.parametrize("dim", [16_384, 16_385, 10**6, 10**9, 10**9 + 1, 10**12, 10**15, 2**53])
@pytest.mark.parametrize("name", ["ntk", "laplacian", "wide", "matern", "polynomial"])
def test_any_dimension_takes_no_longer_and_loses_nothing(name, dim):
    kernel, profile, radius = HIGH[name]
    began = time.process_time()
    s = sphere(kernel, dim, 8, **radius)
    assert time.process_time() - began < 2  # a pass over the dimensions would take minutes
    degrees = [0, 1, 2, 4] if name in ("ntk", "polynomial") else [0, 1, 2, 3, 7, 8]
    want = by_taylor(profile, dim, degrees)
    off = np.abs(s.log_eigenvalues[degrees] - want)
    assert (off <= s.error[degrees]).all()
    assert s.error.max() <= (1e-13 if dim > 16_384 else 3e-12)


def test_the_limit_of_infinite_dimension_is_the_taylor_series():
    # mu_k d^k / k! tends to a_k; the next term is of order k^2/d.
    a = [1 / 3, 1 / 3, 0.25, 1 / 12]
    s = sphere(a, 10**15, 3)
    want = [math.log(c * math.factorial(k)) - k * math.log(10**15) for k, c in enumerate(a)]
    np.testing.assert_allclose(s.log_eigenvalues, want, atol=1e-13)
    assert s.tail <= 1e-14
    assert s.multiplicities[2] == (10**15 + 2) * (10**15 - 1) // 2


def test_high_degrees_in_high_dimensions():
    # (1 + t)^n has n! / (n - k)! over k! in degree k to leading order, and its tail in closed form.
    s = sphere(kc.Polynomial(400), 10**15, 400)
    degrees = [0, 31, 64, 65, 200, 399, 400]
    with mpmath.workdps(60):
        want = [
            float(mpmath.log(sum(
                mpmath.binomial(400, n) * mean(n, k, 10**15) for n in range(k, min(k + 20, 401), 2)
            )))
            for k in degrees
        ]  # fmt: skip
    off = np.abs(s.log_eigenvalues[degrees] - want)
    assert (off <= s.error[degrees]).all()
    assert s.error.max() <= 1e-11


def test_steps_and_the_formula_agree(monkeypatch):
    for kernel in (mlp(3).ntk, kc.Laplacian(0.5)):
        for dim in (4, 5, 300, 4001):
            want = sphere(kernel, dim, 300).log_eigenvalues
            monkeypatch.setattr(_sums, "STEPPED", 3)
            got = sphere(kernel, dim, 300)
            monkeypatch.undo()
            there = np.isfinite(want)
            np.testing.assert_array_equal(np.isfinite(got.log_eigenvalues), there)
            off = np.abs(got.log_eigenvalues - want)[there]
            assert (off <= got.error[there] + EPS * (dim / 2 + np.abs(want[there]))).all()


@pytest.mark.parametrize("dim", [10**5, 10**7, 10**9, 10**15])
def test_sampled_kernels_follow_the_measure_to_the_equator(dim):
    # The profile of one layer of tanh is the sum of its squared Hermite coefficients times t^n.
    with mpmath.workdps(20):
        a = [
            mpmath.quad(
                lambda x, n=n: mpmath.tanh(x) * mpmath.hermite(n, x / mpmath.sqrt(2))
                * mpmath.npdf(x), mpmath.linspace(-12, 12, 25),
            ) ** 2 / mpmath.factorial(n) / mpmath.mpf(2) ** n
            for n in (1, 3, 5, 7)
        ]  # fmt: skip
        want = [
            sum(c * mean(n, k, dim) for c, n in zip(a, (1, 3, 5, 7), strict=True) if n >= k)
            for k in (1, 3)
        ]
    s = sphere(network(kc.Tanh()).nngp, dim, 3)
    assert np.isneginf(s.log_eigenvalues[[0, 2]]).all()
    assert s.resolved[1]
    assert s.error[1] < 1e-5
    for k, value in zip((1, 3), map(float, want), strict=True):
        noise = 1e-13 * s.trace * math.exp(-s.log_multiplicities[k] / 2)
        assert s.resolved[k] == (value > noise)
        assert not s.resolved[k] or abs(s.eigenvalues[k] - value) <= noise


@pytest.mark.parametrize("kernel", [kc.Laplacian(1e-4), kc.Gaussian(1e-3) * kc.Laplacian(1.0)])
def test_what_underflows_is_not_called_zero(kernel):
    # Every value of these but the one at cosine 1 is below the least float64.
    s = sphere(kernel, 1000, 5)
    assert np.isnan(s.log_eigenvalues).all()
    assert not s.resolved.any()
    assert s.tail == s.trace == 1
    assert not len(kernel.null_degrees(5))


def test_a_part_that_does_not_count_does_not_spoil_the_estimate():
    s = sphere(kc.Gaussian(1e-3) + kc.Gaussian(1.0), 10**9, 4)
    alone = sphere(kc.Gaussian(1.0), 10**9, 4)
    np.testing.assert_allclose(s.log_eigenvalues, alone.log_eigenvalues, rtol=1e-15)
    assert s.error.max() < 1e-13


def test_a_law_is_fitted_in_any_dimension():
    # mu_k d^k is nearly constant for a geometric series of small ratio: log mu falls by log d each.
    s = sphere(kc.Gaussian(1.0), 10**15, 40)
    law = s.decay(10, 40)
    assert law.exponent * 1 / (0.5 * 10**15) == pytest.approx(-math.log(10**15), rel=1e-6)


# ---- singular points close to each other, and deep networks


def erf(q, k):
    det = 1 + 2 * q
    return 2 / mpmath.pi * mpmath.asin(2 * k / det), 4 / mpmath.pi / mpmath.sqrt(
        det * det - 4 * k * k
    )


def bump(q, k):
    det = (1 + 2 * q) ** 2 - 4 * k * k
    return 1 / mpmath.sqrt(det), 4 * k / det**1.5


def gelu(q, k):
    s = 1 + q
    root = mpmath.sqrt(s * s - k * k)
    both = mpmath.mpf(1) / 4 + mpmath.asin(k / s) / (2 * mpmath.pi)
    rest = q * q - k * k * (1 - 2 / s)
    slope = 4 * k / s - k + rest * k / root**2
    return k * both + rest / (2 * mpmath.pi * root), both + slope / (2 * mpmath.pi * root)


def relu(q, k):
    angle = mpmath.acos(min(k / q, 1))
    kappa0 = 1 - angle / mpmath.pi
    return (q * mpmath.sin(angle) / mpmath.pi + k * kappa0) / 2, kappa0 / 2


def slow_ntk(duals, first, w, b, t):
    """The tangent kernel at cosine t, by its recursion; squares of weights and of the bias."""
    q, k = mpmath.mpf(first) + b, mpmath.mpf(first) * t + b
    tangent = k
    for dual in duals:
        (k, slope), q = dual(q, k), dual(q, q)[0]
        q, k = w * q + b, w * k + b
        tangent = w * slope * tangent + k
    return tangent


CLOSE = [
    (kc.Erf(), erf, 2, 10.0, 0.0), (kc.Erf(), erf, 3, 10.0, 0.0), (kc.Erf(), erf, 3, 4.0, 0.0),
    (kc.Erf(), erf, 3, 10.0, 0.5), (kc.Gelu(), gelu, 2, 5.0, 0.1),
    (kc.GaussianBump(), bump, 2, 10.0, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("activation", "dual", "depth", "w", "b"), CLOSE)
def test_singularities_just_beyond_the_sphere(activation, dual, depth, w, b):
    # Analytic in the angle and periodic: the midpoint rule converges like exp(-2 N acosh t) for the
    # first singular t, 1.0001 at the least: 1e-36 at N = 3000, and 40 digits of the smallest value.
    n = 3000
    with mpmath.workdps(80):
        waves = [mpmath.cos(mpmath.pi * j / (2 * n)) for j in range(4 * n)]

        def cos(j):
            return waves[j % (4 * n)]

        square = mpmath.mpf(b) ** 2
        values = [slow_ntk([dual] * depth, w * w, w * w, square, cos(2 * j + 1)) for j in range(n)]
        kernel = mlp(depth, activation, w_std=w, b_std=b).ntk
        for dim in (2, 4):
            s = sphere(kernel, dim, 1000)
            assert (s.error <= 1e-11).all()
            for k in (0, 1, 2, 31, 300, 999):
                # cos(k a), and sin((k + 1) a)/((k + 1) sin a) with weight 2 sin^2 a.
                mu = (
                    sum(
                        v * (cos(k * j) if dim == 2 else (cos(k * j) - cos((k + 2) * j)) / (k + 1))
                        for v, j in zip(values, range(1, 2 * n, 2), strict=True)
                    )
                    / n
                )
                if np.isneginf(s.log_eigenvalues[k]):
                    assert abs(mu) < 1e-70
                else:
                    off = abs(s.log_eigenvalues[k] - float(mpmath.log(mu)))
                    assert off <= s.error[k] + 2 * EPS * abs(s.log_eigenvalues[k])


def test_singularities_just_beyond_the_sphere_in_high_dimension():
    # a_m by Cauchy's formula on |t| = 0.98, but for a_(m+n) 0.98^n = 8e-36 of it.
    n, radius, dim, k = 4000, mpmath.mpf("0.98"), 10_000, 299
    s = sphere(mlp(2, kc.Erf(), w_std=10.0).ntk, dim, k)
    with mpmath.workdps(50):
        # Odd: a quarter of the circle is enough for the real parts of f(t) t^-m, m odd.
        quarter = [mpmath.expjpi(mpmath.mpf(2 * j + 1) / n) for j in range(n // 4)]
        values = [slow_ntk([erf] * 2, 100, 100, 0, radius * z) for z in quarter]
        turned, terms = [v * z**-k for v, z in zip(values, quarter, strict=True)], []
        for m in range(k, k + 160, 2):
            a = mpmath.fsum(v.real for v in turned) / len(values) * radius**-m
            terms.append(a * projected(m, k, dim))
            turned = [v / z**2 for v, z in zip(turned, quarter, strict=True)]
        want = float(mpmath.log(mpmath.fsum(terms)))
        assert terms[-1] < 1e-20 * max(terms)
    assert abs(s.log_eigenvalues[k] - want) <= s.error[k] + 2 * EPS * abs(want)


def projected(n, k, p):
    """E[t^n P_k(t)], by Rodrigues' formula and a Beta integral."""
    n, k, p = map(mpmath.mpf, (n, k, p))
    gamma = mpmath.loggamma
    log = gamma(p / 2) + gamma(n + 1) - gamma(n - k + 1) + gamma((n - k + 1) / 2)
    return mpmath.exp(log - gamma((n + k + p) / 2)) / 2**k / mpmath.sqrt(mpmath.pi)


DEEP = {
    "depth": (mlp(80).ntk, lambda t: slow_ntk([relu] * 80, 1, 2, 0, t)),
    "biases": (
        mlp(2, b_std=0.02).ntk * mlp(2, b_std=0.03).ntk,
        lambda t: (
            slow_ntk([relu] * 2, 1, 2, mpmath.mpf(0.02) ** 2, t)
            * slow_ntk([relu] * 2, 1, 2, mpmath.mpf(0.03) ** 2, t)
        ),
    ),
    "mixed": (
        kc.Sequential(
            kc.Dense(8.0),
            kc.Erf(),
            kc.Dense(8.0),
            kc.Relu(),
            kc.Dense(8.0),
            kc.Erf(),
            kc.Dense(8.0),
        ).ntk,
        lambda t: slow_ntk([erf, relu, erf], 64, 64, 0, t),
    ),
    # Singular at 1 + 3e-18, and a_n falls like a small power of n until 1e18.
    "weights": (mlp(5, kc.Erf(), w_std=1e3).ntk, lambda t: slow_ntk([erf] * 5, 1e6, 1e6, 0, t)),
}


@pytest.mark.parametrize("name", DEEP)
def test_what_series_at_one_singularity_do_not_tell(name):
    kernel, function = DEEP[name]
    degrees = (0, 1, 2, 9, 40, 41)
    with mpmath.workdps(50):
        points = make_spectra.Points(2, 0.02, 0.25)
        values = {"": make_spectra.each(function)(points.t)}
        for dim in (2, 3, 10):
            want = points.spectrum(values, dim, degrees)
            s = sphere(kernel, dim, 41)
            assert (s.error <= 1e-11).all()
            for k in np.intersect1d(degrees, np.flatnonzero(np.isfinite(s.log_eigenvalues))):
                off = abs(s.log_eigenvalues[k] - float(mpmath.log(want["", k])))
                assert off <= s.error[k] + 2 * EPS * abs(s.log_eigenvalues[k])


# ---- sums


SUMMED = {**{k: KERNELS[k] for k in KERNELS if k[:3] in ("kap", "ntk", "nng", "lap", "bia")}}


@pytest.mark.parametrize("name", SUMMED)
@pytest.mark.parametrize("dim", [2, 3, 6, 10])
def test_the_mass_and_its_tail_make_the_kernel_at_one(name, dim):
    s = sphere(SUMMED[name], dim, 400)
    assert math.fsum(s.mass) + s.asymptotic_tail() == pytest.approx(s.trace, rel=1e-10)
    assert s.tail == pytest.approx(s.asymptotic_tail(), rel=1e-6)


@pytest.mark.parametrize("kernel", [kc.Gaussian(0.5), network(kc.Erf()).ntk, POLYNOMIAL], ids=repr)
def test_the_mass_of_analytic_kernels_is_all_there(kernel):
    s = sphere(kernel, 6, 200)
    assert math.fsum(s.mass) == pytest.approx(s.trace, rel=1e-13)


def test_no_tail_is_read_off_where_there_is_no_power_law():
    assert math.isnan(sphere(kc.Gaussian(1.0), 5, 100).asymptotic_tail())
    assert math.isnan(sphere(mlp(2, kc.Step()).nngp, 5, 100).asymptotic_tail())
    assert math.isnan(sphere(mlp(1).ntk, 5, 10).asymptotic_tail())
    assert math.isnan(sphere(SHIFTED, 50, 100).asymptotic_tail())


def test_the_kernel_is_the_sum_of_its_degrees():
    t = np.linspace(-1, 1, 41)
    smooth = sphere(kc.Gaussian(0.8), 4, 60)
    np.testing.assert_allclose(smooth(t), smooth.profile(t), atol=1e-14)
    rough = sphere(mlp(2).ntk, 4, 60)
    off = np.abs(rough(t) - rough.profile(t))
    assert 0 < off.max() <= rough.tail * (1 + 1e-12)
    assert off[-1] == pytest.approx(rough.tail, rel=1e-12)


# ---- exponents


@pytest.mark.parametrize("p", range(3, 9))
def test_exponents_are_those_of_theory(p):
    for kernel, want in ((kc.ArcCosine(1), -p - 2), (kc.ArcCosine(0), -p), (mlp(1).ntk, -p)):
        law = sphere(kernel, p, 400).decay()
        assert law.exponent == pytest.approx(want, rel=0.01)
        assert abs(law.exponent - want) <= max(4 * law.error, 1e-6)
        assert (law.first, law.last) >= (200, 399)
    for depth in (2, 4):
        for kernel, want in ((mlp(depth).ntk, -p), (mlp(depth).nngp, -p - 2)):
            for parity in (0, 1):
                law = sphere(kernel, p, 600).decay(parity=parity)
                assert law.exponent == pytest.approx(want, rel=0.01)
                assert law.first % 2 == law.last % 2 == parity


def test_a_law_is_fitted_where_it_is_asked_for():
    s = sphere(mlp(1).ntk, 8, 1000)
    law = s.decay(20, 100)
    assert (law.first, law.last) == (20, 100)
    # PAPERS.md: in log(k + (p-2)/2) +0.4 % over 20..100, +0.1 % over 50..200.
    assert law.exponent == pytest.approx(-8, rel=0.005)
    assert s.decay(50, 200).exponent == pytest.approx(-8, rel=0.0015)
    k = s.degrees[20:101:2]
    line = law.intercept + law.exponent * np.log(k + 3)
    assert np.abs(line - s.log_eigenvalues[k]).max() < 0.05


# ---- zeros

PARITY = [
    *[(mlp(1, a).ntk, [3, 5, 7, 9]) for a in (kc.Relu(), kc.LeakyRelu(0.1), kc.Gelu(), kc.Silu())],
    (mlp(1, kc.Softplus()).nngp, [3, 5, 7, 9]),
    *[(mlp(d, a).nngp, [0, 2, 4, 6, 8]) for d in (1, 3) for a in (kc.Erf(), kc.Sin(), kc.Sign())],
    (mlp(2, kc.Tanh()).ntk, [0, 2, 4, 6, 8]),
    *[(mlp(d, a).nngp, [1, 3, 5, 7, 9]) for d in (1, 2) for a in (kc.Abs(), kc.Cos())],
    (mlp(2).ntk, []),
    (mlp(1, b_std=0.1).ntk, []),
    (mlp(1, kc.Relu(shift=0.2)).ntk, []),
    (mlp(1, kc.Elu()).ntk, []),
    (mlp(1, kc.Sigmoid()).nngp, [2, 4, 6, 8]),
    (network(kc.Silu(), kc.Dense(), kc.Relu()).ntk, []),
    (network(kc.Tanh(), kc.Dense(), kc.Abs()).nngp, [1, 3, 5, 7, 9]),
    (kc.ArcCosine(3), [5, 7, 9]),
    (kc.Gaussian(1.0), []),
    (kc.Matern(0.7, 1.0), []),
    (kc.Polynomial(2), [3, 4, 5, 6, 7, 8, 9]),
    (mlp(0).ntk, [0, 2, 3, 4, 5, 6, 7, 8, 9]),
    (mlp(1).ntk + kc.ArcCosine(1) * 2, [3, 5, 7, 9]),
    (kc.ArcCosine(1) * kc.ArcCosine(1), []),
    (network(kc.Hermite(3)).nngp, [0, 2, 4, 5, 6, 7, 8, 9]),
]


@pytest.mark.parametrize(("kernel", "want"), PARITY, ids=lambda x: repr(x) if x else "")
def test_null_degrees_are_those_of_parity(kernel, want):
    found = kernel.null_degrees(9) if kernel._radius(5) is not None else np.array(want)
    np.testing.assert_array_equal(found, want)
    s = sphere(kernel, 5, 9, radius=1.5)
    np.testing.assert_array_equal(np.flatnonzero(np.isneginf(s.log_eigenvalues)), want)
    assert (s.error[want] == 0).all()


def test_functions_of_known_parity_have_zeros():
    even, odd = sphere(np.cosh, 4, 5), sphere(np.sinh, 4, 5)
    assert (even.eigenvalues[1::2] == 0).all()
    assert (odd.eigenvalues[::2] == 0).all()
    np.testing.assert_allclose(
        even.eigenvalues[::2], sphere(np.exp, 4, 5).eigenvalues[::2], rtol=1e-9
    )


@pytest.mark.parametrize("depth", [10, 50])
def test_deep_networks_are_no_worse(depth):
    # By the trace: what the degrees leave is what their law says.
    s = sphere(mlp(depth).nngp, 4, 400)
    assert s.error.max() < 1e-12
    assert math.fsum(s.mass) + s.asymptotic_tail() == pytest.approx(s.trace, rel=1e-10)


# ---- what cannot be met


def test_what_settles_too_slowly_says_so():
    slow = network(kc.DotProduct(kc.profiles.Power(3)), kc.Dense(), kc.Relu()).nngp
    with pytest.warns(RuntimeWarning) as caught:
        s = sphere(slow, 3, 40)
    bad = int((s.error > 1e-10).sum())
    assert bad > 0
    assert str(caught[0].message) == (
        f"{bad} eigenvalues may be off by more than 1e-10 of their size: the coefficients of the "
        "kernel's powers settle too slowly; see error"
    )
    assert caught[0].filename == __file__
    # What it returns is still right to what it states.
    want = sphere(lambda t: s.profile(t), 3, 40)
    there = want.resolved & s.resolved & np.isfinite(s.log_eigenvalues)
    assert (np.abs(s.eigenvalues - want.eigenvalues)[there] <= 2e-13 * s.trace).all()


def test_a_kernel_that_is_constant_has_one_level():
    s = sphere(kc.Sequential(kc.Dense(0.0, b_std=1.0), kc.Relu(), kc.Dense()).nngp, 3, 4)
    assert s.eigenvalues[0] == pytest.approx(s.trace, rel=1e-12)
    assert (s.eigenvalues[1::2] == 0).all()  # it is even
    assert not s.resolved[2::2].any()


# ---- levels


def test_multiplicities_are_exact_and_their_logarithms_agree():
    for dim in (2, 3, 4, 7, 500):
        s = sphere(kc.Gaussian(1.0), dim, 60)
        # Homogeneous polynomials of degree k, less those that |x|^2 divides.
        want = [
            math.comb(k + dim - 1, k) - (math.comb(k + dim - 3, k - 2) if k >= 2 else 0)
            for k in range(61)
        ]
        assert s.multiplicities.tolist() == want
        logs = [math.log(n) for n in want]
        np.testing.assert_allclose(s.log_multiplicities, logs, rtol=1e-14, atol=1e-14)
    assert multiplicity(10_000, 1000) > 10**300


def test_an_empty_spectrum_is_its_mean():
    s = sphere(mlp(1).ntk, 3, 0)
    assert len(s) == 1
    assert s.multiplicities.tolist() == [1]
    # (3/2 + 1/2)/... of u kappa0 + kappa1: E over the sphere, by moments of |<w, x>|: 1/4 + 1/4.
    assert s.eigenvalues[0] == pytest.approx(sphere(mlp(1).ntk, 3, 4).eigenvalues[0], rel=1e-14)


def test_a_spectrum_prints_and_pickles():
    s = sphere(kc.Gaussian(2.0), 3, 4)
    assert repr(s) == "SphereSpectrum(Gaussian(2.0), dim=3, max_degree=4, radius=1.0)"
    again = pickle.loads(pickle.dumps(s))
    np.testing.assert_array_equal(again.log_eigenvalues, s.log_eigenvalues)


# ---- functions on the sphere


def uniform(rng, n, dim):
    x = rng.standard_normal((n, dim))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_the_rkhs_norm_is_that_of_an_expansion():
    # f = sum alpha_i k(x_i, .) has |f|^2 = alpha' K alpha, and power alpha' mu_k^2 N P_k alpha.
    rng = np.random.default_rng(5)
    x, alpha = uniform(rng, 30, 4), rng.standard_normal(30)
    s = sphere(kc.Gaussian(0.6), 4, 80)
    p = kc.spectrum.legendre(4, 80, np.clip(x @ x.T, -1, 1))
    power = np.exp(2 * s.log_eigenvalues + s.log_multiplicities) * np.einsum(
        "i,kij,j->k", alpha, p, alpha
    )
    want = alpha @ kc.Gaussian(0.6)(x) @ alpha
    assert s.rkhs_norm(np.maximum(power, 0)) ** 2 == pytest.approx(want, rel=1e-10)


def test_a_random_function_has_its_power_exactly():
    # Products of two harmonics of degree 3 have degree 6 at most: a design of strength 6 would
    # integrate exactly; here Gauss's rule on the circle does.
    f = kc.spectrum.RandomFunction(2, [0.2, 0.0, 1.0, 0.5], seed=3)
    angle = 2 * np.pi * np.arange(16) / 16
    y = f(np.stack([np.cos(angle), np.sin(angle)], 1))
    c = np.fft.rfft(y) / 16
    power = np.abs(c) ** 2 * np.where(np.arange(9) == 0, 1, 2)
    np.testing.assert_allclose(power, [0.2, 0, 1.0, 0.5, 0, 0, 0, 0, 0], atol=1e-14)


def test_a_random_function_is_seeded_and_sees_directions_only():
    f, g, h = (kc.spectrum.RandomFunction(5, [0, 1, 1], seed=s) for s in (0, 0, 1))
    x = uniform(np.random.default_rng(0), 2000, 5)
    np.testing.assert_array_equal(f(x), g(x))
    np.testing.assert_allclose(f(3 * x), f(x), rtol=1e-12, atol=1e-13)
    assert np.abs(f(x) - h(x)).max() > 0.1
    assert repr(f) == "RandomFunction(5, [0.0, 1.0, 1.0])"


def test_a_random_function_takes_its_seed_by_two_names():
    x = uniform(np.random.default_rng(0), 5, 4)
    power = [0.0, 0.5, 0.5]
    want = kc.spectrum.RandomFunction(4, power, 7)(x)
    for other in ({"rng": 7}, {"seed": 7}, {"rng": np.random.default_rng(7)}):
        np.testing.assert_array_equal(kc.spectrum.RandomFunction(4, power, **other)(x), want)
    assert not np.array_equal(
        kc.spectrum.RandomFunction(4, power)(x), kc.spectrum.RandomFunction(4, power)(x)
    )


def test_degree_powers_are_found_within_their_error():
    dim, power = 6, np.array([0.5, 0.0, 1.0, 0.25])
    f = kc.spectrum.RandomFunction(dim, power, seed=7)
    z = []
    for seed in range(12):
        x = uniform(np.random.default_rng(seed), 800, dim)
        got, error = kc.spectrum.degree_power(x, f(x), 4)
        z.append((got - np.append(power, 0.0)) / error)
    z = np.array(z)
    # Standard scores: means within four standard errors of 0, sizes of the right order.
    assert np.abs(z.mean(0)).max() < 4 / math.sqrt(12)
    assert 0.4 < z.std(0, ddof=1).mean() < 1.7


def test_projections_take_a_function_apart():
    # On equal angles the mean over points is exact: degrees below 8 of a function of degree 3.
    f = kc.spectrum.RandomFunction(2, [0.2, 0.0, 1.0, 0.5], seed=3)
    angle = 2 * np.pi * np.arange(16) / 16
    x = np.stack([np.cos(angle), np.sin(angle)], 1)
    z = uniform(np.random.default_rng(1), 70, 2)
    parts = [kc.spectrum.projection(x, f(x), k, z) for k in range(5)]
    np.testing.assert_allclose(sum(parts), f(z), atol=1e-13)
    for k in (1, 4):
        np.testing.assert_allclose(parts[k], 0, atol=1e-14)
    assert np.ptp(parts[0]) < 1e-14


def test_legendre_polynomials_are_orthogonal():
    for dim in (2, 3, 9):
        theta, w = np.polynomial.legendre.leggauss(200)
        theta, w = (
            np.pi / 2 * (theta + 1),
            np.pi / 2 * w * np.sin(np.pi / 2 * (theta + 1)) ** (dim - 2),
        )
        p = kc.spectrum.legendre(dim, 12, np.cos(theta))
        gram = (p * (w / w.sum())) @ p.T
        want = np.diag([1 / multiplicity(dim, k) for k in range(13)])
        np.testing.assert_allclose(gram, want, atol=1e-14)


# ---- pictures


def test_a_plot_shows_the_eigenvalues_and_the_law():
    matplotlib.use("agg")
    s = sphere(mlp(1).ntk, 5, 200)
    ax = s.plot(label="NTK")
    dots, line = ax.get_lines()
    k = np.flatnonzero(np.isfinite(s.log_eigenvalues))
    np.testing.assert_array_equal(dots.get_xdata(), [math.nan, *k[1:]])
    np.testing.assert_allclose(dots.get_ydata(), s.log_eigenvalues[k] / math.log(10))
    assert dots.get_label() == "NTK"
    x, y = line.get_data()
    law = s.decay()
    assert (x[0], x[-1]) == pytest.approx((law.first, law.last))
    slope = (y[-1] - y[0]) / np.log10((x[-1] + 1.5) / (x[0] + 1.5))
    assert slope == pytest.approx(law.exponent)
    assert [t.get_text() for t in ax.texts] == [f"{law.exponent:.2f}"]
    assert s.plot(ax, fit=False) is ax
    assert len(ax.get_lines()) == 3


def test_other_spectra_are_drawn_by_degree():
    matplotlib.use("agg")
    cube = kc.spectrum.hypercube(mlp(1).ntk, 12)
    (dots,) = cube.plot().get_lines()
    there = np.isfinite(cube.log_eigenvalues)
    np.testing.assert_array_equal(dots.get_xdata(), cube.degrees[there])
    np.testing.assert_allclose(dots.get_ydata(), np.log10(cube.eigenvalues[there]))
    spiked = kc.spectrum.spiked(mlp(2).ntk, 20, 4, 3.0, max_degree=3)
    (dots,) = spiked.plot(color="k").get_lines()
    np.testing.assert_array_equal(dots.get_xdata(), spiked.degrees.sum(1))
    assert dots.get_color() == "k"


def test_a_plot_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError) as caught:
        sphere(mlp(1).ntk, 5, 20).plot()
    want = "plot needs matplotlib; install it with: pip install 'kernelcore[plot]'"
    assert str(caught.value) == want
