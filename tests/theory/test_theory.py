"""Predictions against simulation, against 34 digits, and against each other.

Simulated means are of at least 40 draws from fixed seeds; a prediction has to be within 5 % of the
mean or within two of its standard errors.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, optimize, special

import kernelcore as kc
from kernelcore.spectrum import Spectrum
from kernelcore.theory import _flow
from kernelcore.theory._levels import levels

EPS = 2.0**-52
POWER_LAW = np.arange(1.0, 301.0) ** -1.5
TARGET = np.zeros(301)
TARGET[[0, 2, 9, 40, -1]] = 0.4, 0.25, 0.2, 0.1, 0.05
TWO = np.array([1.0] * 30 + [1e-6] * 200)
SPECTRA = {
    "power law": np.arange(1.0, 101.0) ** -2,
    "exponential": np.exp(-np.arange(60.0)),
    "flat": np.ones(50),
    "two levels": TWO,
}


def some_power(mu, seed=0):
    f = np.random.default_rng(seed).exponential(size=len(mu) + 1)
    return f / f.sum()


def sphere(profile, dim, max_degree):
    """Eigenvalues by Gauss-Legendre in the angle, in which profiles of networks are analytic."""
    x, w = np.polynomial.legendre.leggauss(300)
    angle, w = np.pi / 2 * (x + 1), np.pi / 2 * w
    t, weight = np.cos(angle), w * np.sin(angle) ** (dim - 2)
    weight /= weight.sum()
    before, now, values = np.zeros_like(t), np.ones_like(t), profile(t) * weight
    mu, count = [], []
    for k in range(max_degree + 1):
        mu.append(values @ now)
        count.append(math.comb(k + dim - 1, k) - (math.comb(k + dim - 3, k - 2) if k > 1 else 0))
        before, now = now, ((2 * k + dim - 2) * t * now - k * before) / (k + dim - 2)
    mu = np.array(mu)
    resolved = mu > 1e-13 * profile(np.ones(1))
    with np.errstate(divide="ignore"):
        log_mu = np.log(np.where(resolved, mu, 0.0))
    found = Spectrum(log_mu, count, float(profile(np.ones(1))[0]))
    found.degrees, found.dim = np.arange(max_degree + 1), dim
    return found


def legendre(k, t, dim):
    before, now = np.zeros_like(t), np.ones_like(t)
    for j in range(k):
        before, now = now, ((2 * j + dim - 2) * t * now - j * before) / (j + dim - 2)
    return now


def uniform(rng, n, dim):
    x = rng.standard_normal((n, dim))
    return math.sqrt(dim) * x / np.linalg.norm(x, axis=1, keepdims=True)


def harmonic(rng, k, dim, terms=500):
    """A random spherical harmonic of degree k and of mean square 1."""
    centres, weights = uniform(rng, terms, dim), rng.standard_normal(terms)
    count = math.comb(k + dim - 1, k) - (math.comb(k + dim - 3, k - 2) if k > 1 else 0)
    norm = weights @ legendre(k, centres @ centres.T / dim, dim) @ weights / count
    return lambda x: legendre(k, x @ centres.T / dim, dim) @ weights / math.sqrt(norm)


def agrees(draws, predicted):
    """Within 5 % of the mean of draws, or two standard errors of it."""
    draws = np.asarray(draws)
    off = np.abs(draws.mean(0) - predicted)
    error = draws.std(0, ddof=1) / math.sqrt(len(draws))
    fine = (off <= 0.05 * draws.mean(0)) | (off <= 2 * error)
    assert fine.all(), (draws.mean(0), predicted, off / error)


# ---- the equation, to the last digits


def exact(mu, power, n, ridge, noise, features=None, count=None, tail=0.0):
    """The published formulas, as they are published, in 34 digits: error and train error."""
    mp.mp.dps = 34
    mu, power = [mp.mpf(float(x)) for x in mu], [mp.mpf(float(x)) for x in power]
    count = [mp.mpf(1)] * len(mu) if count is None else [mp.mpf(c) for c in count]
    n, ridge, noise, tail = mp.mpf(n), mp.mpf(ridge), mp.mpf(noise), mp.mpf(tail)

    def learned(c):
        return [m / (m + c) for m in mu]

    def z(c):
        return sum(k * x for k, x in zip(count, learned(c), strict=True)) + tail / c

    if features is None:

        def off(x):
            return z(mp.exp(x)) + ridge / mp.exp(x) - n
    else:
        features = mp.mpf(features)

        def off(x):
            # kappa from the second equation of the two, put into the first
            c = mp.exp(x)
            kappa = c * (features - z(c)) / features
            return z(c) + ridge / kappa - n if kappa > 0 else mp.mpf(1)

    low, high = mp.mpf(-100), mp.mpf(100)
    for _ in range(120):
        mid = (low + high) / 2
        low, high = (mid, high) if off(mid) > 0 else (low, mid)
    c = mp.exp(low)
    learn = learned(c)
    q = sum(k * x**2 for k, x in zip(count, learn, strict=True))
    if features is None:
        bias = sum((1 - x) ** 2 * p for x, p in zip(learn, power, strict=False)) + power[-1]
        total = (bias + noise**2) / (1 - q / n)
        return total - noise**2, (ridge / (n * c)) ** 2 * total
    kappa, zed = c * (features - z(c)) / features, z(c)
    grow = (q * (features - 2 * zed) + zed**2) / (n * (features - q))
    bias = sum(
        (c / (m + c) - kappa * m / (m + c) ** 2 * features / (features - q)) * p
        for m, p in zip(mu, power, strict=False)
    )
    total = (bias + power[-1] + noise**2) / (1 - grow)
    return total - noise**2, (ridge / (n * kappa)) ** 2 * total


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("n", [0.3, 7, 29.5, 49, 500])
@pytest.mark.parametrize("ridge", [1e-9, 1e-3, 2.0])
def test_kernel_against_34_digits(name, n, ridge):
    mu = SPECTRA[name]
    power = some_power(mu)
    got = kc.theory.modes(mu, power, n, ridge, noise_variance=0.49)
    error, train = exact(mu, power, n, ridge, 0.7)
    # log c has an error of 2 u |log c|, here below 60 u; 1 - g and c take it up at most twice, and
    # sums of 300 terms add their own.
    assert got.error == pytest.approx(float(error), rel=1000 * EPS)
    assert got.train_error == pytest.approx(float(train), rel=1000 * EPS)
    np.testing.assert_allclose(got.bias + got.variance, got.error, rtol=4 * EPS)


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("n", [7, 20, 20.001, 45, 500])
@pytest.mark.parametrize("ridge", [1e-9, 1e-3, 2.0])
def test_random_features_against_34_digits(name, n, ridge):
    mu = SPECTRA[name]
    power = some_power(mu)
    got = kc.theory.modes(mu, power, n, ridge, noise_variance=0.49, features=20)
    error, train = exact(mu, power, n, ridge, 0.7, features=20)
    assert got.error == pytest.approx(float(error), rel=1000 * EPS)
    assert got.train_error == pytest.approx(float(train), rel=1000 * EPS)


def test_multiplicities_beyond_float64():
    """Eigenvalues down to exp(-9000), and so many of each that their mass is seen."""
    log_mu, count = np.array([0.0, -50.0, -800.0, -9000.0]), [1, 10**20, 10**340, 10**3905]
    mass = [mp.exp(mp.mpf(m)) * c for m, c in zip(log_mu, count, strict=True)]
    spectrum = Spectrum(log_mu, count, float(sum(mass)))
    power = np.array([0.4, 0.3, 0.2, 0.1, 0.0])
    for n in (0.5, 1e3, 1e19, 1e21):
        got = kc.theory.learning_curve(spectrum, power, n, 1e-9, noise_variance=0.04)
        # exp(-800) and exp(-9000) are zero beside any c here: their mass is a ridge
        rest = float(mass[2] + mass[3])
        want, _ = exact(np.exp(log_mu[:2]), [0.4, 0.3, 0.3], n, 1e-9 + rest, 0.2, count=count[:2])
        # float(sum) - fsum(mass) leaves a tail of some u that is not in the oracle
        assert got == pytest.approx(float(want), rel=1e-9)


def test_the_tail_is_a_ridge():
    cut = Spectrum(np.log(POWER_LAW[:20]), [1] * 20, POWER_LAW[:20].sum() + 0.5)
    power = some_power(POWER_LAW[:20])
    n = np.geomspace(1, 1000, 7)
    got = kc.theory.learning_curve(cut, power, n, 0.1, noise_variance=0.09)
    want = kc.theory.learning_curve(POWER_LAW[:20], power, n, 0.6, noise_variance=0.09)
    np.testing.assert_allclose(got, want, rtol=1e-13)
    # ... as many small eigenvalues are, for features as well
    small = Spectrum(np.log([*POWER_LAW[:20], 0.5e-9]), [1] * 20 + [10**9], cut.trace)
    power_small = np.insert(power, 20, 0.0)
    for features in (np.inf, 50.0):
        got = kc.theory.modes(cut, power, n, 0.1, noise_variance=0.09, features=features).error
        want = kc.theory.modes(
            small, power_small, n, 0.1, noise_variance=0.09, features=features
        ).error
        # mu/c < 1e-6 for the small ones, and their variance, tail mu/c^2/n noise^2 < 1e-7
        np.testing.assert_allclose(got, want, rtol=1e-4)


# ---- limits


@pytest.mark.parametrize("features", [np.inf, 40.0])
def test_limits(features):
    curve = kc.theory.random_features_curve
    total = TARGET.sum()
    few = curve(POWER_LAW, TARGET, 1e-9, features, 1e-3, noise_variance=0.25)
    # one of the 1e-9 samples: first order in n
    assert few == pytest.approx(total, rel=1e-5)
    heavy = curve(POWER_LAW, TARGET, 100, features, 1e12, noise_variance=0.25)
    assert heavy == pytest.approx(total, rel=1e-9)
    assert curve(POWER_LAW, TARGET, 1e14, 1e14, 1e-3, noise_variance=0.25) == pytest.approx(
        0.05, rel=1e-6
    )
    m = kc.theory.modes(POWER_LAW, TARGET, 1e14, 1e-3, noise_variance=0.25)
    np.testing.assert_allclose(m.learnability, 1, rtol=1e-9)
    assert m.train_error == pytest.approx(0.05 + 0.25, rel=1e-6)


def test_more_samples_than_eigenvalues_without_ridge():
    """Least squares with r parameters: (rest + r/n noise^2)/(1 - r/n), exactly."""
    mu = np.array([2.0, 1.0, 1e-5, 0.0])
    power = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
    n = np.array([3.5, 6.0, 1e4])
    got = kc.theory.modes(mu, power, n, 0.0, noise_variance=0.16)
    np.testing.assert_array_equal(got.c, 0)
    np.testing.assert_array_equal(got.learnability, [[1, 1, 1, 0]] * 3)
    want = (0.4 + 3 / n * 0.16) / (1 - 3 / n)
    np.testing.assert_allclose(got.error, want, rtol=8 * EPS)
    np.testing.assert_allclose(got.train_error, (0.4 + 0.16) * (1 - 3 / n), rtol=8 * EPS)
    near = kc.theory.learning_curve(mu, power, n, 1e-13, noise_variance=0.16)
    np.testing.assert_allclose(near, want, rtol=1e-6)
    with_features = kc.theory.random_features_curve(mu, power, n, 3.2, 0.0, noise_variance=0.16)
    np.testing.assert_allclose(with_features, want, rtol=8 * EPS)
    assert kc.theory.learning_curve(mu, power, 3.0, 0.0, noise_variance=0.16) == np.inf
    assert kc.theory.learning_curve(mu[:3], power[:3], 3.0) == 0
    assert kc.theory.learning_curve(mu[:3], power[:3], 100.0) == 0


def test_levels_with_eigenvalue_zero_are_never_learned():
    assert kc.theory.learning_curve([0.0, 0.0], [1.0, 2.0], 1e6) == 3
    assert kc.theory.learning_curve([0.0], [1.0, 0.5], 10, ridge=0.1) == pytest.approx(
        1.5, rel=4 * EPS
    )
    got = kc.theory.learning_curve([1.0, 0.0], [1.0, 2.0], 1e6, 1e-3)
    assert got == pytest.approx(2, rel=1e-5)


def test_infinitely_many_features_are_the_kernel():
    n = np.geomspace(1, 1e4, 9)
    want = kc.theory.learning_curve(POWER_LAW, TARGET, n, 1e-3, noise_variance=0.09)
    got = kc.theory.random_features_curve(POWER_LAW, TARGET, n, np.inf, 1e-3, noise_variance=0.09)
    np.testing.assert_array_equal(got, want)
    got = kc.theory.random_features_curve(POWER_LAW, TARGET, n, 1e12, 1e-3, noise_variance=0.09)
    np.testing.assert_allclose(got, want, rtol=1e-7)


def test_the_peak_is_at_as_many_features_as_samples():
    n = np.arange(10.0, 400.0)
    curve = kc.theory.random_features_curve(POWER_LAW, TARGET, n, 100, 1e-8, noise_variance=0.01)
    assert n[curve.argmax()] == 100
    assert curve.max() > 30 * curve[0]
    assert kc.theory.random_features_curve(POWER_LAW, TARGET, 100, 100) == np.inf
    features = np.arange(10.0, 400.0)
    curve = kc.theory.random_features_curve(
        POWER_LAW, TARGET, 100, features, 1e-8, noise_variance=0.01
    )
    assert features[curve.argmax()] == 100


# ---- samples without end


def unapproximated(mu, power, features):
    """The sum of f^2 c/(mu + c) where that of mu/(mu + c) is the number of features."""
    with mp.workdps(40):
        mu = [mp.mpf(float(x)) for x in mu]
        c = mp.findroot(
            lambda c: mp.log(sum(x / (x + c) for x in mu) / features), (1e-8, 1e3), "anderson"
        )
        *power, rest = map(float, power)
        return float(rest + sum(f * c / (x + c) for f, x in zip(power, mu, strict=True)))


@pytest.mark.parametrize("features", [1.0, 7.5, 60.0, 199.0])
def test_infinite_samples_leave_what_features_cannot_approximate(features):
    def curve(n, ridge=1e-3):
        return kc.theory.random_features_curve(
            POWER_LAW, TARGET, n, features, ridge, noise_variance=0.2
        )

    got = curve(np.inf)
    assert got == pytest.approx(unapproximated(POWER_LAW, TARGET, features), rel=1e-12)
    # the limit of many samples, and of any ridge
    assert curve(1e13) == pytest.approx(got, rel=1e-9)
    for ridge in (0.0, 100.0):
        assert curve(np.inf, ridge) == pytest.approx(got, rel=1e-14)
    np.testing.assert_allclose(curve([np.inf, 50.0]), [got, curve(50.0)], rtol=1e-14)


def test_features_of_white_noise_span_a_random_subspace():
    # A projection onto N random directions of p leaves 1 - N/p, exactly.
    p = 50
    got = kc.theory.random_features_curve(np.ones(p), np.eye(p)[0], np.inf, np.arange(1, 60))
    np.testing.assert_allclose(got, np.maximum(0, 1 - np.arange(1, 60) / p), atol=1e-13)


def test_random_features_approximate_as_predicted(rng):
    # Coefficients of N features in the eigenfunctions are normal, of variances mu: what their span
    # leaves of the target, in the mean over draws.
    mu = 1.0 / np.arange(1, 301) ** 1.5
    target, features = np.r_[0.5, 0.3, 0.2, np.zeros(297)], 40
    left = []
    for _ in range(200):
        w = np.sqrt(mu)[:, None] * rng.standard_normal((300, features))
        q = np.linalg.qr(w)[0]
        f = np.sqrt(target) * rng.choice([-1.0, 1.0], 300)
        left.append(f @ f - (q.T @ f) @ (q.T @ f))
    want = kc.theory.random_features_curve(mu, target, np.inf, features)
    # Corrections are of relative order 1/N; four standard errors of the mean beside.
    assert abs(np.mean(left) - want) < 4 * np.std(left) / math.sqrt(200) + want / features


def test_infinite_samples_of_the_kernel_itself():
    mu, power = [1.0, 0.1, 0.0], [0.5, 0.3, 0.2, 0.1]
    m = kc.theory.modes(mu, power, np.inf, 0.1, noise_variance=2.0)
    assert m.c == m.g == m.variance == 0
    np.testing.assert_array_equal(m.learnability, [1, 1, 0])
    assert m.error == m.bias == pytest.approx(0.3)
    assert m.train_error == pytest.approx(2.3)
    assert kc.theory.learning_curve(mu, power, 1e15, 0.1, noise_variance=2.0) == pytest.approx(0.3)
    # of an infinite rank as well, and with more features than rank
    s = kc.spectrum.sphere(kc.presets.mlp(2).ntk, 1000, 300)
    assert kc.theory.learning_curve(s, np.eye(301)[4], np.inf, 1e-3) == 0
    assert kc.theory.random_features_curve(s, np.eye(301)[4], np.inf, 1e9) > 0
    assert kc.theory.random_features_curve(mu, power, np.inf, 2.0) == pytest.approx(0.3)
    flow = kc.theory.gradient_flow_curve(mu, power, np.inf, [0.0, 1e-3, np.inf], noise_variance=2.0)
    np.testing.assert_allclose(flow, [1.1, 0.3, 0.3])


# ---- the old name of the noise


@pytest.mark.parametrize(
    "curve",
    [
        lambda **noise: kc.theory.modes(POWER_LAW, TARGET, [9, 90], 0.01, **noise).error,
        lambda **noise: kc.theory.learning_curve(POWER_LAW, TARGET, [9, 90], 0.01, **noise),
        lambda **noise: kc.theory.random_features_curve(POWER_LAW, TARGET, 9, [20, 30], **noise),
        lambda **noise: kc.theory.gradient_flow_curve(POWER_LAW, TARGET, 9, [0.1, 10], **noise),
    ],
)
def test_noise_was_a_standard_deviation(curve):
    want = curve(noise_variance=np.array([0.09, 0.25]))
    with pytest.warns(DeprecationWarning, match=r"^noise is deprecated; use noise_variance$"):
        np.testing.assert_allclose(curve(noise=[0.3, 0.5]), want, rtol=1e-14)


def test_noise_by_position_was_a_standard_deviation_too():
    theory, law = kc.theory, (POWER_LAW, TARGET, 9)
    for old, new in (
        (
            lambda: theory.learning_curve(*law, 0.01, 0.3),
            lambda: theory.learning_curve(*law, 0.01, noise_variance=0.09),
        ),
        (
            lambda: theory.random_features_curve(*law, 20, 0.01, 0.3),
            lambda: theory.random_features_curve(*law, 20, 0.01, noise_variance=0.09),
        ),
        (
            lambda: theory.gradient_flow_curve(*law, 1.0, 0.3, 0.1),
            lambda: theory.gradient_flow_curve(*law, 1.0, noise_variance=0.09, ridge=0.1),
        ),
        (
            lambda: theory.modes(*law, 0.01, 0.3, 40.0).error,
            lambda: theory.modes(*law, 0.01, noise_variance=0.09, features=40.0).error,
        ),
    ):
        with pytest.warns(DeprecationWarning, match=r"^noise is deprecated; use noise_variance$"):
            assert old() == pytest.approx(new(), rel=1e-13)
    with pytest.raises(TypeError, match="positional arguments"):
        theory.learning_curve(*law, 0.01, 0.3, 0.3)


# ---- invariances


@pytest.mark.parametrize("features", [np.inf, 40.0])
def test_what_must_not_matter(features):
    mu = np.array([1.0, 0.3, 0.3, 0.05])
    power = np.array([0.2, 0.3, 0.1, 0.4, 0.1])
    n = np.geomspace(0.5, 300, 9)
    noisy = {"noise_variance": 0.09, "features": features}
    want = kc.theory.modes(mu, power, n, 0.02, **noisy).error
    # levels split or joined
    joined = Spectrum(np.log(mu[[0, 1, 3]]), [1, 2, 1], mu.sum())
    got = kc.theory.modes(joined, [0.2, 0.4, 0.4, 0.1], n, 0.02, **noisy).error
    np.testing.assert_allclose(got, want, rtol=1e-13)
    # their order
    got = kc.theory.modes(mu[::-1], [0.4, 0.1, 0.3, 0.2, 0.1], n, 0.02, **noisy).error
    np.testing.assert_allclose(got, want, rtol=1e-13)
    # the scale of kernel and ridge, of target and noise
    got = kc.theory.modes(1e9 * mu, power, n, 2e7, **noisy).error
    np.testing.assert_allclose(got, want, rtol=1e-13)
    got = kc.theory.modes(
        mu, 1e-8 * power, n, 0.02, noise_variance=0.09e-8, features=features
    ).error
    np.testing.assert_allclose(got, 1e-8 * want, rtol=1e-13)
    # an unlearned power is noise
    got = kc.theory.modes(mu, power[:4], n, 0.02, noise_variance=0.19, features=features)
    np.testing.assert_allclose(got.error + 0.1, want, rtol=1e-13)
    # the shape of n, and blocks
    got = kc.theory.modes(mu, power, n.reshape(3, 3), 0.02, **noisy)
    assert got.error.shape == got.c.shape == (3, 3)
    assert got.learnability.shape == (3, 3, 4)
    np.testing.assert_array_equal(got.error.ravel(), want)


def test_blocks_do_not_matter(monkeypatch):
    n = np.geomspace(0.5, 1e4, 23)
    want = kc.theory.modes(POWER_LAW, TARGET, n, 1e-3, noise_variance=0.01)
    monkeypatch.setattr("kernelcore.theory._curves.ENTRIES", 4 * len(POWER_LAW))
    for a, b in zip(
        kc.theory.modes(POWER_LAW, TARGET, n, 1e-3, noise_variance=0.01), want, strict=True
    ):
        np.testing.assert_array_equal(a, b)
    assert kc.theory.learning_curve(POWER_LAW, TARGET, []).shape == (0,)
    assert kc.theory.modes(POWER_LAW, TARGET, 3.0, learnability=False).learnability is None


# ---- against simulation: Gaussian eigenfunctions


class Gaussians:
    """Ridge regression on inputs whose eigenfunctions are independent normal numbers."""

    noise = 0.3

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.weights = np.sqrt(TARGET[:-1] / POWER_LAW)

    def data(self, n):
        x = self.rng.standard_normal((n, len(POWER_LAW))) * np.sqrt(POWER_LAW)
        unseen = math.sqrt(TARGET[-1]) * self.rng.standard_normal(n)
        return x, x @ self.weights + unseen + self.noise * self.rng.standard_normal(n)

    def error(self, weights):
        return POWER_LAW @ (self.weights - weights) ** 2 + TARGET[-1]

    def ridge(self, n, ridge, features):
        x, y = self.data(n)
        maps = np.eye(x.shape[1])
        if features is not None:
            maps = self.rng.standard_normal((features, x.shape[1])) / math.sqrt(features)
        z = x @ maps.T
        fit = z.T @ np.linalg.solve(z @ z.T + ridge * np.eye(n), y)
        return self.error(maps.T @ fit), np.mean((y - z @ fit) ** 2)

    def flow(self, n, times, ridge):
        x, y = self.data(n)
        values, vectors = np.linalg.eigh(x @ x.T)
        values = np.maximum(values, 0) + ridge
        y = vectors.T @ y
        with np.errstate(invalid="ignore"):
            return [
                self.error(x.T @ vectors @ (special.exprel(-values * t) * t * y)) for t in times
            ]


@pytest.mark.parametrize("features", [None, 60])
@pytest.mark.parametrize("n", [30, 60, 150])
@pytest.mark.parametrize("ridge", [1e-3, 0.1])
def test_ridge_regression_simulated(features, n, ridge):
    world = Gaussians(seed=n)
    draws = [world.ridge(n, ridge, features) for _ in range(60)]
    got = kc.theory.modes(
        POWER_LAW, TARGET, n, ridge, noise_variance=0.09, features=features or np.inf
    )
    agrees(draws, np.array([got.error, got.train_error]))


@pytest.mark.parametrize("n", [30, 120, 500])
@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_gradient_flow_simulated(n, ridge):
    world = Gaussians(seed=n)
    times = [0.003, 0.03, 0.3, 3.0, 100.0]
    draws = [world.flow(n, times, ridge) for _ in range(40)]
    got = kc.theory.gradient_flow_curve(
        POWER_LAW, TARGET, n, times, noise_variance=0.09, ridge=ridge
    )
    agrees(draws, got)


# ---- against simulation: spheres, cubes, digits


@pytest.fixture(scope="module")
def two_hidden():
    kernel = kc.presets.mlp(2).ntk
    return kernel, sphere(lambda t: kernel.profile(t), 30, 8)


@pytest.mark.parametrize("n", [30, 100, 300, 1000])
def test_kernels_on_the_sphere(two_hidden, n):
    """Targets of degree 2 and of degree 3, learned from the same points."""
    kernel, spectrum = two_hidden
    rng = np.random.default_rng(n)
    predicted = [
        kc.theory.learning_curve(spectrum, np.arange(len(spectrum)) == degree, n, 1e-3)
        for degree in (2, 3)
    ]
    draws = []
    for _ in range(30):
        x = uniform(rng, n + 2000, 30)
        y = np.stack([harmonic(rng, degree, 30, 300)(x) for degree in (2, 3)], 1)
        k = kernel(x[:n], x)
        fit = np.linalg.solve(k[:, :n] + 1e-3 * np.eye(n), y[:n])
        draws.append(np.mean((y[n:] - k[:, n:].T @ fit) ** 2, 0))
    agrees(draws, np.array(predicted))


@pytest.mark.parametrize("n", [50, 100, 200])
def test_features_of_a_network_on_the_sphere(n):
    """Random ReLU neurons with a shift, around n = N; their kernel is the infinite network's."""
    dim, features, ridge = 20, 100, 1e-2
    kernel = kc.Sequential(kc.Dense(), kc.Relu(shift=-0.5)).nngp
    spectrum = sphere(lambda t: kernel.profile(t), dim, 10)
    power = np.zeros(len(spectrum))
    power[[1, 2]] = 0.5
    rng = np.random.default_rng(n)
    draws = []
    for _ in range(60):
        x = uniform(rng, n + 2000, dim)
        y = (harmonic(rng, 1, dim)(x) + harmonic(rng, 2, dim)(x)) / math.sqrt(2)
        neurons = rng.standard_normal((features, dim)) / math.sqrt(dim)
        z = np.maximum(x @ neurons.T - 0.5, 0) / math.sqrt(features)
        label = y[:n] + 0.2 * rng.standard_normal(n)
        fit = np.linalg.solve(z[:n].T @ z[:n] + ridge * np.eye(features), z[:n].T @ label)
        draws.append(np.mean((y[n:] - z[n:] @ fit) ** 2))
    agrees(
        draws,
        kc.theory.random_features_curve(spectrum, power, n, features, ridge, noise_variance=0.04),
    )


@pytest.mark.parametrize("n", [30, 100])
@pytest.mark.parametrize("ridge", [0.1, 1.0])
def test_digits_from_their_own_gram_matrix(digits, n, ridge):
    """Spectrum and labels of 1,797 digits predict what n of them, drawn with return, learn."""
    gram, spectrum, y = digits
    got = kc.theory.learning_curve(spectrum, spectrum.target_power(y), n, ridge)
    rng = np.random.default_rng(n)
    draws = []
    for _ in range(60):
        i = rng.integers(len(y), size=n)
        fit = np.linalg.solve(gram[np.ix_(i, i)] + ridge * np.eye(n), y[i])
        draws.append(np.mean((y - gram[:, i] @ fit) ** 2))
    agrees(draws, got)


@pytest.fixture(scope="module")
def digits():
    x, y = kc.data.digits()
    gram = kc.presets.mlp(2).ntk(x / 16)
    return gram, kc.spectrum.gram(gram), np.where(y % 2 == 0, 1.0, -1.0)


# ---- gradient flow


@pytest.mark.parametrize(("n", "p"), [(30, 90), (200, 50), (100, 120)])
def test_flow_against_marchenko_and_pastur(n, p):
    """Equal eigenvalues: the error is an integral over their law."""
    low, high = (math.sqrt(n) - math.sqrt(p)) ** 2, (math.sqrt(n) + math.sqrt(p)) ** 2

    def mean(f):
        """Of f over the eigenvalues of X'X, X of shape (n, p), those that are not zero."""
        middle, half = (low + high) / 2, (high - low) / 2

        def inside(angle):
            s = middle + half * math.cos(angle)
            return f(s) * (half * math.sin(angle)) ** 2 / (2 * math.pi * p * s)

        return integrate.quad(inside, 0, math.pi, epsabs=1e-13, epsrel=1e-12, limit=200)[0]

    zeros = max(0.0, 1 - n / p)
    assert mean(lambda s: 1.0) + zeros == pytest.approx(1, rel=1e-10)
    for t in (1e-4, 3e-3, 0.02, 0.3, 10.0):
        for noise in (0.0, 0.8):
            bias = zeros + mean(lambda s, t=t: math.exp(-2 * s * t))
            variance = p * mean(lambda s, t=t: math.expm1(-s * t) ** 2 / s)
            got = kc.theory.gradient_flow_curve(
                np.ones(p), np.full(p, 1 / p), n, t, noise_variance=noise**2
            )
            want = bias + noise**2 * variance
            assert got == pytest.approx(want, rel=1e-8, abs=1e-11)


@pytest.mark.parametrize("name", SPECTRA)
def test_flow_does_not_depend_on_the_contour(name):
    mu = SPECTRA[name]
    power = some_power(mu)
    of = levels(mu)
    for n in (0.5, 3.0, 30.0, 50.0, 299.0, 300.0, 1e5):
        for t in (1e-6, 1e-2, 1.0, 300.0, 1e7):
            for ridge in (0.0, 1e-6, 0.1):
                at = [_flow._at(of, power, n, t, ridge, 0.5, nodes) for nodes in (20, 24, 28)]
                size = max(power.sum() + 0.25, at[1])
                assert abs(at[1] - at[2]) <= 1e-11 * size
                assert abs(at[1] - at[0]) <= 1e-9 * size  # 3.89^-20, and rounding


def test_flow_begins_and_ends():
    n = np.array([[10.0], [300.0]])
    got = kc.theory.gradient_flow_curve(
        POWER_LAW, TARGET, n, [0, 1e-13, 1e15, np.inf], noise_variance=0.09
    )
    assert got.shape == (2, 4)
    np.testing.assert_array_equal(got[:, 0], TARGET.sum())
    np.testing.assert_allclose(got[:, 1], TARGET.sum(), rtol=1e-10)
    ended = kc.theory.learning_curve(POWER_LAW, TARGET, n[:, 0], 0.0, noise_variance=0.09)
    assert np.isinf(ended[1])  # as many samples as eigenvalues
    np.testing.assert_array_equal(got[:, 3], ended)
    assert got[0, 2] == pytest.approx(ended[0], rel=1e-11)
    for ridge in (1e-4, 1.0):
        got = kc.theory.gradient_flow_curve(
            POWER_LAW, TARGET, [30, 1000], 1e9, noise_variance=0.09, ridge=ridge
        )
        want = kc.theory.learning_curve(POWER_LAW, TARGET, [30, 1000], ridge, noise_variance=0.09)
        np.testing.assert_allclose(got, want, rtol=1e-11)


def test_flow_and_what_must_not_matter():
    mu, t = np.array([1.0, 0.3, 0.3, 0.05]), [0.1, 1.0, 30.0]
    power = np.array([0.2, 0.3, 0.1, 0.4, 0.1])
    want = kc.theory.gradient_flow_curve(mu, power, 3.0, t, noise_variance=0.09, ridge=0.02)
    joined = Spectrum(np.log(mu[[0, 1, 3]]), [1, 2, 1], mu.sum())
    got = kc.theory.gradient_flow_curve(
        joined, [0.2, 0.4, 0.4, 0.1], 3.0, t, noise_variance=0.09, ridge=0.02
    )
    np.testing.assert_allclose(got, want, rtol=1e-11)
    got = kc.theory.gradient_flow_curve(
        100 * mu, power, 3.0, np.array(t) / 100, noise_variance=0.09, ridge=2.0
    )
    np.testing.assert_allclose(got, want, rtol=1e-11)
    cut = Spectrum(np.log(mu), [1] * 4, mu.sum() + 0.02)  # a tail is a ridge
    got = kc.theory.gradient_flow_curve(cut, power, 3.0, t, noise_variance=0.09)
    np.testing.assert_allclose(got, want, rtol=1e-11)
    huge = Spectrum(np.array([0.0, -800.0]), [3, 10**347], 3 + math.exp(math.log(10) * 347 - 800))
    got = kc.theory.gradient_flow_curve(huge, [0.5, 0.5], 10.0, t)
    rest = math.exp(math.log(10) * 347 - 800)
    want = kc.theory.gradient_flow_curve(np.ones(3), [0.5, 0, 0, 0.5], 10.0, t, ridge=rest)
    want2 = kc.theory.gradient_flow_curve(np.ones(3), [0, 0.25, 0.25, 0.5], 10.0, t, ridge=rest)
    np.testing.assert_allclose(want, want2, rtol=1e-11)
    np.testing.assert_allclose(got, want, rtol=1e-9)


# ---- dimensions, staircase, sample sizes


def test_dimensions_by_plain_sums():
    spectrum = Spectrum(np.log([1.0, 0.1, 0.01]), [1, 10, 100], 3.5)
    mu = np.repeat([1.0, 0.1, 0.01], [1, 10, 100])
    ridge = np.array([1e-3, 0.1, 5.0])
    got = kc.theory.effective_dimension(spectrum, ridge)
    want = (mu / (mu + ridge[:, None])).sum(1) + 0.5 / ridge
    np.testing.assert_allclose(got, want, rtol=1e-13)
    got = kc.theory.degrees_of_freedom(spectrum, ridge)
    np.testing.assert_allclose(got, ((mu / (mu + ridge[:, None])) ** 2).sum(1), rtol=1e-13)
    assert kc.theory.effective_dimension(spectrum, 0.0) == np.inf
    assert kc.theory.effective_dimension(mu, 0.0) == 111
    assert kc.theory.degrees_of_freedom(mu, 0.0) == 111
    assert kc.theory.degrees_of_freedom(mu, [[1.0]]).shape == (1, 1)


def test_spiked_dimension():
    got = kc.theory.spiked_dimension(1024, 16, 1024.0 ** np.arange(0, 1, 0.1))
    # the powers of two of the original experiment
    np.testing.assert_allclose(got, [1024, 512, 256, 128, 64, 32, 16, 16, 16, 16], rtol=1e-13)


def test_staircase_steps_at_whole_powers():
    power = np.array([0.1, 0.2, 0.3, 0.4])
    for dim in (2, 7, 30, 50, 999):
        for degree in range(4):
            n = dim**degree
            left = power[degree + 1 :].sum()
            assert kc.theory.staircase(n, dim, power) == pytest.approx(left, abs=1e-15)
            below = kc.theory.staircase(np.nextafter(n, 0), dim, power)
            assert below == pytest.approx(left + power[degree], abs=1e-15)
    n = np.array([20.0, 2000.0, 1e9])
    got = kc.theory.staircase(n[:, None], 10, power, features=n)
    np.testing.assert_array_equal(got, kc.theory.staircase(np.minimum(n[:, None], n), 10, power))
    assert kc.theory.staircase(np.inf, 10, power) == 0


def test_the_curve_tends_to_the_staircase():
    """Between the steps, in ever higher dimension."""
    power = np.array([0.0, 0.5, 0.3, 0.2])
    off = []
    for dim in (10**2, 10**4, 10**6):
        # a kernel with mass 1/8 in each of four degrees, N(d, k) ~ d^k/k!, and the rest above
        count = [1, dim, dim**2 // 2, dim**3 // 6]
        spectrum = Spectrum(-np.log(8.0 * np.array(count, float)), count, 1.0)
        n = np.array([dim**1.5, dim**2.5])
        curve = kc.theory.learning_curve(spectrum, power, n)
        off.append(np.abs(curve - kc.theory.staircase(n, dim, power)).max())
    assert off[0] > off[1] > off[2]
    # what a level of d^k eigenvalues adds to the variance at n = d^(k + 1/2), a power of d^(-1/2)
    assert off[2] < 20 * 1e6**-0.5


def test_the_table_of_sample_sizes():
    sizes = kc.theory.sample_complexity(3, 30, 10, 5)
    # PAPERS.md: q^2 < d q^2/w < d^2 < d q^2 < d^3
    assert sorted(sizes, key=sizes.get) == ["H(q, d)", "H(q, w)", "H(d, d)", "H(q, 1)", "H(d, 1)"]
    assert list(sizes.values()) == [30**3, 30**2, 30 * 10**2, 30 * 10**2 / 5, 10**2]
    assert sizes.rates["H(q, w)"] == "d q^(l-1)/w"
    whole = kc.theory.sample_complexity(2, 12, 12, 1)
    assert whole["H(q, 1)"] == whole["H(d, 1)"] == 144
    assert kc.theory.sample_complexity(2, 12, 4, 12)["H(q, w)"] == 4


# ---- approximation


def test_the_best_approximation_within_a_ball():
    """Against a general optimiser."""
    mu, power = np.array([1.0, 0.2, 0.03, 0.0]), np.array([0.2, 0.5, 0.3, 0.1, 0.05])
    f = np.sqrt(power[:3])
    for norm in (0.1, 0.5, 1.5, 3.0):
        result = optimize.minimize(
            lambda g: np.sum((f - g) ** 2),
            np.zeros(3),
            jac=lambda g: 2 * (g - f),
            constraints={
                "type": "ineq",
                "fun": lambda g, b=norm: b**2 - np.sum(g**2 / mu[:3]),
                "jac": lambda g: -2 * g / mu[:3],
            },
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        got = kc.theory.approximation(mu, power, norm)
        assert got.error == pytest.approx(math.sqrt(result.fun + 0.15), rel=1e-6)
        assert got.norm == pytest.approx(norm, rel=1e-13)
        nearby = kc.theory.approximation(mu, power, norm * np.exp([-1e-4, 1e-4])).error
        slope = np.diff(np.log(nearby))[0] / 2e-4
        assert got.exponent == pytest.approx(slope, rel=1e-6)
    inside = kc.theory.approximation(mu, power, [4.0, 1e9])
    whole = math.sqrt(np.sum(power[:3] / mu[:3]))
    assert whole < 4
    np.testing.assert_allclose(inside.norm, whole, rtol=1e-14)
    np.testing.assert_allclose(inside.error, math.sqrt(0.15), rtol=1e-14)
    np.testing.assert_array_equal(inside.exponent, 0)
    np.testing.assert_array_equal(inside.multiplier, 0)
    assert kc.theory.approximation([0.0], [2.0], 1.0).error == math.sqrt(2)


def arc_cosine(kind, dim, max_degree):
    """Closed forms; degrees 0 and 1, which they leave out, do not matter."""
    k = np.arange(max_degree + 1.0)

    def log_square(n, k):
        out = np.full(len(k), -np.inf)
        fits = (k > n) & ((k - n) % 2 == 1)
        j = k[fits]
        out[fits] = 2 * (
            special.gammaln(dim / 2) - 0.5 * math.log(math.pi) - j * math.log(2)
            + special.gammaln(n + 1) + special.gammaln(j - n)
            - special.gammaln((j - n + 1) / 2) - special.gammaln((j + dim + n) / 2)
        )  # fmt: skip
        return out

    log_mu = math.log(2 * dim) + log_square(1, k)
    if kind == "ntk":
        with np.errstate(divide="ignore"):
            down = np.log(2 * k / (2 * k + dim - 2)) + log_square(0, k - 1)
            up = np.log(2 * (k + dim - 2) / (2 * k + dim - 2)) + log_square(0, k + 1)
        log_mu = np.logaddexp(np.logaddexp(down, up), log_mu)
    log_mu[:2] = 0
    spectrum = Spectrum(log_mu, [1] * len(k), 1e9)
    spectrum.degrees, spectrum.dim = k.astype(int), dim
    return spectrum


def test_the_closed_forms():
    assert arc_cosine("kappa1", 3, 9).eigenvalues[2] == pytest.approx(0.0234375, rel=1e-12)
    assert arc_cosine("ntk", 5, 9).eigenvalues[4] == pytest.approx(1.0375977e-3, rel=1e-7)


@pytest.mark.parametrize("dim", range(3, 9))
@pytest.mark.parametrize("kind", ["kappa1", "ntk"])
def test_exponents_of_lipschitz_functions(kind, dim):
    spectrum = arc_cosine(kind, dim, 20000)
    want = -1 / (dim / 2) if kind == "kappa1" else -1 / (dim / 2 - 1)
    got = kc.theory.approximation_rate(spectrum)
    # the lowest degrees add a constant to B^2 ~ k^(dim-2): 1/k of it at dim 3, k from 500
    assert got.exponent == pytest.approx(want, rel=1e-2)
    assert got.deviation < 5e-3
    assert (np.diff(got.norm) > 0).all()
    assert (np.diff(got.error) < 0).all()


@pytest.mark.parametrize(("kind", "want"), [("kappa1", -4 / 6), ("ntk", -4 / 4)])
def test_exponents_of_smoother_functions(kind, want):
    """A^2 ~ k^-4 for f_k^2 ~ k^-5, B^2 ~ k^6 for kappa1 and k^4 for the NTK, in 8 dimensions."""
    spectrum = arc_cosine(kind, 8, 20000)
    power = np.zeros(20001)
    power[2::2] = (spectrum.degrees[2::2] + 3.0) ** -5
    got = kc.theory.approximation_rate(spectrum, power, degrees=(500, 2500))
    assert got.exponent == pytest.approx(want, rel=1e-2)
    best = kc.theory.approximation(spectrum, power, got.norm[10:20])
    np.testing.assert_allclose(best.error, got.error[10:20], rtol=1e-9)
    np.testing.assert_allclose(best.exponent, want, rtol=1e-2)


# ---- extremes


def test_extremes_are_limits_and_no_warnings():
    curve = kc.theory.learning_curve
    assert curve(POWER_LAW, TARGET, 5, ridge=1e308) == pytest.approx(TARGET.sum())
    assert curve(POWER_LAW, TARGET, 5, noise_variance=1e308) > 1e306
    best = kc.theory.approximation([1.0, 0.01, 0.0], [1.0, 1.0, 0.25], [1e300, np.inf])
    np.testing.assert_allclose(best.error, 0.5)
    np.testing.assert_allclose(best.norm, math.sqrt(101))
    assert kc.theory.sample_complexity(400, 10**6, 10, 2)["H(d, 1)"] == math.inf


def test_one_number_in_is_one_number_out():
    for value in (
        kc.theory.learning_curve(POWER_LAW, TARGET, 5),
        kc.theory.random_features_curve(POWER_LAW, TARGET, 5, 7),
        kc.theory.gradient_flow_curve(POWER_LAW, TARGET, 5, 1.0),
    ):
        assert isinstance(value, float)


# ---- subsets of a sample


def drawn_gram(mu, seed=0):
    """A Gram matrix with the eigenvalues N mu and eigenvectors in random directions."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((len(mu), len(mu))))[0]
    K = (basis * (len(mu) * mu)) @ basis.T
    y = math.sqrt(len(mu)) * basis[:, [0, 3, 20, 60]].sum(1) + 0.3 * rng.standard_normal(len(mu))
    return (K + K.T) / 2, y, (basis.T @ y) ** 2 / len(mu)


SUBSETS = {
    "power law": np.arange(1.0, 151.0) ** -1.5,
    "exponential": np.exp(-np.arange(150.0) / 6),
    "null space": np.array([0.02] * 60 + [0.0] * 90),
}


@pytest.mark.parametrize("ridge", [0.01, 1.0])
@pytest.mark.parametrize("mu", SUBSETS.values(), ids=SUBSETS)
def test_errors_on_the_rest_of_a_sample_are_those_of_random_subsets(mu, ridge):
    K, y, power = drawn_gram(mu)
    rng, size = np.random.default_rng(1), len(mu)
    for n in (15, 75, 135):
        errors = []
        for _ in range(100):
            order = rng.permutation(size)
            a, b = order[:n], order[n:]
            alpha = np.linalg.solve(K[np.ix_(a, a)] + ridge * np.eye(n), y[a])
            errors.append(np.mean((K[np.ix_(b, a)] @ alpha - y[b]) ** 2))
        near(kc.theory.subset_curve(mu, power, n, ridge), errors)


def near(predicted, draws):
    """There are nineteen of these: one in twenty such runs has a mean three errors off."""
    mean, error = np.mean(draws), np.std(draws, ddof=1) / math.sqrt(len(draws))
    assert abs(predicted - mean) <= max(0.05 * mean, 3 * error)


def test_without_a_ridge_subsets_larger_than_the_rank_interpolate_all_but_the_null_space():
    """The rank is learned whole; the rest of y counts as noise on n - rank points that are left."""
    K, y, power = drawn_gram(SUBSETS["null space"])
    rng, errors = np.random.default_rng(2), []
    for _ in range(100):
        order = rng.permutation(150)
        a, b = order[:100], order[100:]
        alpha = np.linalg.pinv(K[np.ix_(a, a)], 1e-10, hermitian=True) @ y[a]
        errors.append(np.mean((K[np.ix_(b, a)] @ alpha - y[b]) ** 2))
    near(kc.theory.subset_curve(SUBSETS["null space"], power, 100), errors)
    assert np.isinf(kc.theory.subset_curve(SUBSETS["null space"], power, 60))
    power[60:] = 0
    assert kc.theory.subset_curve(SUBSETS["null space"], power, 100) == 0


@pytest.mark.parametrize("mu", SUBSETS.values(), ids=SUBSETS)
def test_the_whole_sample_has_generalised_cross_validation(mu):
    K, y, power = drawn_gram(mu)
    for ridge in (1e-3, 1.0):
        hat = np.linalg.inv(K + ridge * np.eye(150))
        gcv = np.mean((hat @ y) ** 2) / np.mean(np.diag(hat)) ** 2
        # K has a condition number of 150/ridge, and so many roundings
        bound = 150 * (150 / ridge) * EPS
        assert kc.theory.subset_curve(mu, power, 150, ridge) == pytest.approx(gcv, rel=bound)


def test_few_of_many_points_have_the_learning_curve_of_the_distribution():
    """Relative differences are of the order n/N, the share of points that are taken out."""
    mu, power = np.arange(1.0, 20_001.0) ** -1.5, np.zeros(20_000)
    power[[0, 2, 9, 40]] = 0.4, 0.3, 0.2, 0.1
    n = np.array([5.0, 20.0])
    whole = kc.theory.learning_curve(mu, power, n, 0.01)
    assert np.abs(kc.theory.subset_curve(mu, power, n, 0.01) / whole - 1).max() <= 2 * 20 / 20_000


def test_scales_of_the_spectrum_leave_subsets_as_they_are():
    mu, power = SUBSETS["power law"], some_power(np.ones(149))
    once = kc.theory.subset_curve(mu, power, [10, 149], [0.0, 0.1])
    for scale in (1e-200, 1e200):
        found = kc.theory.subset_curve(scale * mu, power, [10, 149], [0.0, 0.1 * scale])
        np.testing.assert_allclose(found, once, rtol=1e-10)
