"""Spectra under spiked covariates: closed forms, other quadrature, and random points."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, special

import kernelcore as kc
from kernelcore import profiles as p
from kernelcore.spectrum import SpikedSpectrum, spiked

EPS = np.finfo(float).eps
SERIES = (0.1, 0.2, 0.3, 0.15, 0.1, 0.0, 0.05)
SIZES = [(4, 2, 1.0), (10, 5, 0.3), (40, 3, 8.0), (256, 8, 16.0)]


def shares(dim, signal_dim, snr):
    """Shares a and b of the cosine a t1 + b t2, and the square of the norm."""
    signal, noise = snr * signal_dim, dim - signal_dim
    return signal / (signal + noise), noise / (signal + noise), signal + noise


def harmonics(dim, k):
    """N(p, k) = (2k+p-2)/k C(k+p-3, k-1)."""
    if k == 0:
        return 1
    return (2 * k + dim - 2) * math.comb(k + dim - 3, k - 1) // k


def moment(dim, i, k):
    """E t^i P_k(t) by Rodrigues's formula, for the cosine t of random points in dim dimensions."""
    if i < k or (i - k) % 2:
        return mp.mpf(0)
    return (
        mp.factorial(i) * mp.gamma(mp.mpf(dim) / 2) * mp.gamma(mp.mpf(i - k + 1) / 2)
        / (mp.mpf(2)**k * mp.factorial(i - k) * mp.sqrt(mp.pi) * mp.gamma(mp.mpf(i + k + dim) / 2))
    )  # fmt: skip


def of_series(c, sizes, k1, k2):
    """By the binomial theorem."""
    dim, signal_dim, _ = sizes
    a, b, _ = map(mp.mpf, shares(*sizes))
    return mp.fsum(
        mp.mpf(x) * mp.binomial(n, i) * a**i * b**(n - i)
        * moment(signal_dim, i, k1) * moment(dim - signal_dim, n - i, k2)
        for n, x in enumerate(c) for i in range(n + 1)
    )  # fmt: skip


def legendre(dim, k, t):
    """P_k with P_k(1) = 1, by its recurrence."""
    before, now = np.ones_like(t), t
    if k == 0:
        return before
    for i in range(1, k):
        before, now = now, ((2 * i + dim - 2) * t * now - i * before) / (i + dim - 2)
    return now


@pytest.mark.parametrize("sizes", SIZES)
def test_levels(sizes):
    s = spiked(kc.presets.mlp(2).ntk, *sizes, max_degree=5)
    assert isinstance(s, SpikedSpectrum)
    assert s.degrees.shape == (21, 2)
    assert sorted(map(tuple, s.degrees)) == [(i, j) for i in range(6) for j in range(6 - i)]
    dim, signal_dim, _ = sizes
    for (k1, k2), count in zip(s.degrees, s.multiplicities, strict=True):
        assert count == harmonics(signal_dim, int(k1)) * harmonics(dim - signal_dim, int(k2))
    radius = math.sqrt(shares(*sizes)[2])
    top = kc.presets.mlp(2).ntk.profile(1.0, radius=radius, dim=dim)
    assert s.trace == top
    assert 0 < s.tail < top


@pytest.mark.parametrize("sizes", SIZES)
def test_power_series(sizes):
    """Relative precision by powers, absolute by quadrature; both against the binomial theorem."""
    by_powers = spiked(SERIES, *sizes, max_degree=9)
    by_nodes = spiked(lambda u: p.PowerSeries(SERIES)(u), *sizes, max_degree=9)
    assert by_powers.nodes == (0, 0)
    assert min(by_nodes.nodes) >= 32
    assert by_powers.resolved.all()
    assert by_powers.tail == 0
    assert spiked(SERIES, *sizes, max_degree=3).tail > 0
    with mp.workdps(40):
        for k, (k1, k2) in enumerate(by_powers.degrees):
            want = float(of_series(SERIES, sizes, int(k1), int(k2)))
            # six roundings for every power, and those of the two shares
            got = by_powers.eigenvalues[k]
            assert abs(got - want) <= (8 * len(SERIES) + abs(math.log(want or 1))) * EPS * want
            got = np.nan_to_num(by_nodes.eigenvalues[k])
            assert abs(got - want) <= by_nodes.noise[k] + 4 * EPS * want
            assert by_nodes.resolved[k] or want <= 2 * by_nodes.noise[k]


def test_series_of_unlike_signs_and_long_ones():
    sizes = (20, 4, 2.0)
    mixed = (0.3, -0.001, 0.2, 0.1)
    s = spiked(mixed, *sizes, max_degree=3)
    for k, (k1, k2) in enumerate(s.degrees):
        want = float(of_series(mixed, sizes, int(k1), int(k2)))
        assert abs(s.eigenvalues[k] - want) <= s.noise[k] + 4 * EPS * want
    long = [0.5**n for n in range(1, 67)]
    s = spiked(long, *sizes, max_degree=2)
    assert min(s.nodes) >= 32
    for k, (k1, k2) in enumerate(s.degrees):
        want = float(of_series(long, sizes, int(k1), int(k2)))
        assert abs(s.eigenvalues[k] - want) <= s.noise[k] + 4 * EPS * want


def test_polynomial_kernel():
    sizes, n = (30, 5, 3.0), 4
    square = shares(*sizes)[2]
    c = [math.comb(n, k) * (0.1 * square) ** k * 0.5 ** (n - k) for k in range(n + 1)]
    got = spiked(kc.Polynomial(n, 0.1, 0.5), *sizes, max_degree=6)
    want = spiked(c, *sizes, max_degree=6)
    np.testing.assert_allclose(got.eigenvalues, want.eigenvalues, rtol=50 * EPS, atol=0)
    assert (got.eigenvalues[got.degrees.sum(1) > n] == 0).all()
    assert got.resolved.all()
    assert got.tail == 0
    assert got.mass.sum() == pytest.approx(got.trace, rel=1e-13)


@pytest.mark.parametrize("sizes", SIZES)
def test_gaussian_is_a_product(sizes):
    """exp(z t) has Gamma(p/2) (2/z)^(p/2-1) I_(k+p/2-1)(z) at degree k."""
    dim, signal_dim, snr = sizes
    scale = 0.7 * math.sqrt(dim)
    s = spiked(kc.Gaussian(scale), *sizes, max_degree=8)
    with mp.workdps(30):

        def one(size, z, k):
            half = mp.mpf(size) / 2
            bessel = mp.besseli(k + half - 1, z)
            return mp.gamma(half) * (2 / z) ** (half - 1) * bessel * mp.exp(-z)

        z1 = mp.mpf(snr * signal_dim) / mp.mpf(scale) ** 2
        z2 = mp.mpf(dim - signal_dim) / mp.mpf(scale) ** 2
        for k, (k1, k2) in enumerate(s.degrees):
            want = one(signal_dim, z1, int(k1)) * one(dim - signal_dim, z2, int(k2))
            assert abs(s.eigenvalues[k] - float(want)) <= s.noise[k] + 8 * EPS * float(want)
    assert s.resolved[:10].all()


def test_another_quadrature():
    """The NTK in 3 + 4 dimensions by adaptive integration over both angles."""
    sizes = (7, 3, 2.5)
    a, b, square = shares(*sizes)
    kernel = kc.presets.mlp(2).ntk
    s = spiked(kernel, *sizes, max_degree=4)
    kappa1 = lambda u: (u * (np.pi - np.arccos(u)) + np.sqrt(1 - u * u)) / np.pi  # noqa: E731
    kappa0 = lambda u: 1 - np.arccos(u) / np.pi  # noqa: E731

    def ntk(u):
        """Of inputs with variance square/7: all of it is homogeneous."""
        u = min(max(u, -1.0), 1.0)
        v = min(kappa1(u), 1.0)
        return ((u * kappa0(u) + v) * kappa0(v) + kappa1(v)) * square / 7

    for k1, k2 in ((0, 0), (0, 2), (2, 1)):

        def integrand(t2, t1, k1=k1, k2=k2):
            # densities 1/2 of t1 in three dimensions, (2/pi) sqrt(1 - t2^2) of t2 in four
            law = math.sqrt(1 - t2 * t2) / math.pi
            return law * ntk(a * t1 + b * t2) * legendre(3, k1, t1) * legendre(4, k2, t2)

        want, error = integrate.dblquad(integrand, -1, 1, -1, 1, epsabs=1e-6, epsrel=0)
        at = np.flatnonzero((s.degrees == (k1, k2)).all(1))[0]
        assert abs(s.eigenvalues[at] - want) <= error + s.noise[at], (k1, k2)
        assert error < 1e-6


def test_an_edge_on_two_circles_is_within_its_error():
    """Where Gauss rules converge slowly; by the two-dimensional FFT on a finer grid."""
    s = spiked(p.Kappa1(), 4, 2, 1.0, max_degree=12)
    n = 1600
    cosine = np.cos(2 * np.pi * np.arange(n) / n)
    u = np.clip((cosine[:, None] + cosine) / 2, -1, 1)
    values = (u * (np.pi - np.arccos(u)) + np.sqrt(1 - u * u)) / np.pi
    want = np.fft.rfft2(values).real[:13, :13] / n**2
    # trapezoidal sums of a function like r^3 in the plane: error n^-5
    slack = 10 * n**-5.0 + 8 * EPS
    k1, k2 = s.degrees.T
    assert (np.abs(s.eigenvalues - want[k1, k2]) <= s.noise + slack).all()
    assert s.noise.max() < 1e-9
    rough = spiked(p.Kappa0(), 4, 2, 1.0, max_degree=4)
    assert 1e-10 < rough.noise.max() < 1e-5


def harmonic_rule(dim, most):
    """Nodes of the cosine of random points, and weights times P_k there for k up to most."""
    if dim == 1:
        t = np.array([-1.0, 1.0])
        return t, [t**k / 2 for k in range(most + 1)]
    t, w = special.roots_gegenbauer(400, (dim - 2) / 2)
    return t, [w / w.sum() * legendre(dim, k, t) for k in range(most + 1)]


@pytest.mark.parametrize("sizes", [(2, 1, 3.0), (7, 1, 4.0), (6, 5, 0.4), (300, 1, 40.0)])
@pytest.mark.parametrize("kernel", [kc.presets.mlp(2, b_std=0.2).ntk, kc.Polynomial(5, 0.1, 1.0)])
def test_a_part_of_one_dimension_is_a_sign(kernel, sizes):
    dim, signal_dim, _ = sizes
    noise_dim = dim - signal_dim
    a, b, square = shares(*sizes)
    s = spiked(kernel, *sizes, max_degree=6)
    (t1, w1), (t2, w2) = harmonic_rule(signal_dim, 6), harmonic_rule(noise_dim, 6)
    u = np.clip(a * t1[:, None] + b * t2, -1, 1)
    values = kernel.profile(u, radius=math.sqrt(square), dim=dim)
    for level, (k1, k2) in enumerate(s.degrees):
        want = w1[k1] @ values @ w2[k2]
        got = np.nan_to_num(s.eigenvalues[level])
        # 400 nodes are right to 1e-12 of the kernel where it is smooth in the cosines
        assert abs(got - want) <= s.noise[level] + 1e-12 * s.trace, (k1, k2)
        parts = ((signal_dim, k1), (noise_dim, k2))
        counts = [1 if size == 1 else harmonics(size, int(k)) for size, k in parts]
        assert s.multiplicities[level] == math.prod(counts)
    assert (s.degrees[:, 0].max() == 1) == (signal_dim == 1)
    assert (s.degrees[:, 1].max() == 1) == (noise_dim == 1)


def test_signs_are_all_points_of_a_square():
    # Four points (+-sqrt(snr), +-1): levels are the characters, and the spectrum is complete.
    kernel = kc.Laplacian(1.0)
    s = spiked(kernel, 2, 1, 9.0)
    x = np.array([[a, b] for a in (3.0, -3.0) for b in (1.0, -1.0)])
    np.testing.assert_allclose(
        np.sort(s.eigenvalues), np.linalg.eigvalsh(kernel(x)) / 4, rtol=1e-13
    )
    assert s.degrees.tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]
    assert list(s.multiplicities) == [1, 1, 1, 1]
    assert s.tail == 0
    np.testing.assert_array_equal(s.target_power([0.25, 0.75]), [0.25, 0.75, 0, 0])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    want = math.sqrt(y @ np.linalg.solve(kernel(x), y))
    assert s.rkhs_norm(s.target_power([0.0, 1.0])) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("sizes", [(12, 3, 4.0), (60, 6, 10.0)])
def test_random_points(sizes, rng):
    """Means over pairs of k, of k times a cosine, and of k^2, within five standard errors."""
    dim, signal_dim, snr = sizes
    kernel = kc.presets.mlp(2, b_std=0.1).ntk
    s = spiked(kernel, *sizes)
    n = 1500

    def points():
        z = rng.standard_normal((n, dim))
        z[:, :signal_dim] *= math.sqrt(snr * signal_dim) / np.linalg.norm(
            z[:, :signal_dim], axis=1, keepdims=True
        )
        z[:, signal_dim:] *= math.sqrt(dim - signal_dim) / np.linalg.norm(
            z[:, signal_dim:], axis=1, keepdims=True
        )
        return z

    x, y = points(), points()
    np.testing.assert_allclose(kernel.diag(x), s.trace, rtol=1e-13)
    # Gram of two samples: means over its entries, whose spread comes from rows and columns
    values = kernel(x, y)
    t1 = x[:, :signal_dim] @ y[:, :signal_dim].T / (snr * signal_dim)
    t2 = x[:, signal_dim:] @ y[:, signal_dim:].T / (dim - signal_dim)
    means = {(0, 0): 1.0, (1, 0): t1, (0, 1): t2, (1, 1): t1 * t2}
    means[2, 0] = legendre(signal_dim, 2, t1)
    for degree, harmonic in means.items():
        sample = values * harmonic
        at = np.flatnonzero((s.degrees == degree).all(1))[0]
        error = 5 * math.hypot(
            sample.mean(0).std() / math.sqrt(n), sample.mean(1).std() / math.sqrt(n),
            sample.std() / n,
        )  # fmt: skip
        assert abs(sample.mean() - s.eigenvalues[at]) <= error, degree
    sample = values**2
    error = 5 * math.hypot(
        sample.mean(0).std() / math.sqrt(n), sample.mean(1).std() / math.sqrt(n), sample.std() / n
    )
    assert abs(sample.mean() - np.nansum(s.mass * s.eigenvalues)) <= error


def test_odd_kernels_have_exact_zeros():
    s = spiked(kc.presets.mlp(2, kc.Erf()).ntk, 20, 4, 3.0, max_degree=6)
    even = s.degrees.sum(1) % 2 == 0
    assert (s.eigenvalues[even] == 0).all()
    assert s.resolved[even].all()
    assert (s.noise[even] == 0).all()
    assert (s.eigenvalues[~even] > 0).all()


def test_relu_loses_odd_degrees():
    s = spiked(kc.presets.mlp(1).ntk, 256, 8, 16.0, max_degree=5)
    total = s.degrees.sum(1)
    assert (s.eigenvalues[(total % 2 == 1) & (total > 1)] == 0).all()
    assert (s.eigenvalues[(total % 2 == 0) | (total == 1)] > 0).all()


def test_target_power():
    s = spiked(kc.ArcCosine(1), 20, 4, 3.0, max_degree=5)
    power = s.target_power([0.1, 0.0, 0.5, 0.4])
    assert power.sum() == pytest.approx(1.0)
    for k, value in enumerate([0.1, 0.0, 0.5, 0.4, 0.0, 0.0]):
        assert power[(s.degrees == (k, 0)).all(1)] == value
    assert (power[s.degrees[:, 1] > 0] == 0).all()


def test_predicted_learning_curve():
    """At d = 256, d_s = 8, a target of degrees 2 to 4: errors that KRR was measured to have.

    n = sum L + tail/c with L = mu/(mu + c); error = sum (1 - L)^2 power / (1 - sum L^2/n). The
    measured values, of single draws at the best of five ridges, scatter by a few per cent.
    """
    measured = {(16.0, 1000): 0.83, (16.0, 3000): 0.67, (128.0, 1000): 0.44, (128.0, 3000): 0.23}
    for (snr, n), want in measured.items():
        s = spiked(kc.presets.mlp(2).ntk, 256, 8, snr, max_degree=8)
        power = s.target_power([0, 0, 1 / 3, 1 / 3, 1 / 3])
        counts = s.multiplicities.astype(float)
        best = 1.0
        for ridge in (1e-3, 1e-2, 1e-1, 1.0, 10.0):
            low, high = 1e-12, 1e3
            for _ in range(200):
                c = math.sqrt(low * high)
                learned = s.eigenvalues / (s.eigenvalues + c)
                used = (counts * learned).sum() + (s.tail + ridge) / c
                low, high = (c, high) if used > n else (low, c)
            gain = (counts * learned**2).sum() / n
            best = min(best, ((1 - learned) ** 2 * power).sum() / (1 - gain))
        assert abs(best - want) < 0.05


def test_the_repr():
    assert repr(spiked(kc.ArcCosine(1), 20, 4, 3.0, max_degree=3)) == (
        "<SpikedSpectrum of ArcCosine(1), dim 20, signal_dim 4, snr 3: 10 levels, trace 28>"
    )
