"""What all spectra have in common: the RKHS norm of a function, by the power of its parts."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import roots_gegenbauer

import kernelcore as kc
from kernelcore.spectrum import Spectrum, cyclic, gram, hypercube, sphere, spiked

EPS = np.finfo(float).eps
NTK = kc.presets.mlp(2, b_std=0.3).ntk


def corners(d):
    """All points of the hypercube, and the subsets that the characters belong to, in one order."""
    x = np.array(list(itertools.product([1.0, -1.0], repeat=d)))
    sets = [[i for i in range(d) if corner[i] < 0] for corner in x]
    return x, sets


def character(x, members):
    return x[:, members].prod(1)


def interpolating(K, y):
    """sqrt(y' K^-1 y), and how far rounding may move it, relative."""
    values = np.linalg.eigvalsh(K)
    return math.sqrt(y @ np.linalg.solve(K, y)), len(K) * EPS * values[-1] / values[0]


@pytest.mark.parametrize("dim", [2, 3, 6])
def test_on_spheres_it_is_what_reproducing_demands(dim):
    # k(x, .) has norm sqrt(k(x, x)), and power mu_k^2 N(dim, k): a sum over all degrees.
    s = sphere(kc.Gaussian(0.8), dim, 60)
    power = np.exp(2 * s.log_eigenvalues + s.log_multiplicities)
    assert s.rkhs_norm(power) == pytest.approx(1.0, rel=1e-13)
    assert s.rkhs_norm([*power, 0.0]) == s.rkhs_norm(power)


@pytest.mark.parametrize("kernel", [NTK, kc.Laplacian(1.5)])
def test_on_the_hypercube_it_is_that_of_all_points(kernel, rng):
    x, sets = corners(5)
    c = rng.standard_normal(32)
    y = sum(a * character(x, members) for a, members in zip(c, sets, strict=True))
    power = np.bincount([len(members) for members in sets], c**2)
    want, rounding = interpolating(kernel(x), y)
    assert hypercube(kernel, 5).rkhs_norm(power) == pytest.approx(want, rel=rounding)


def test_of_cyclic_convolutions_it_is_that_of_all_points(rng):
    kernel = kc.CyclicConvolution(patch=6, pool=2, profile=NTK)
    x, sets = corners(6)
    s = cyclic(kernel, 6)
    # Pooling leaves some frequencies out: a function of those that it keeps.
    values, vectors = np.linalg.eigh(kernel(x))
    span = vectors[:, values > 1e-9 * values[-1]]
    y = span @ rng.standard_normal(span.shape[1])
    c = [np.mean(y * character(x, members)) for members in sets]
    want = math.sqrt((((span.T @ y) ** 2) / values[values > 1e-9 * values[-1]]).sum())
    assert s.rkhs_norm(s.target_power(sets, c)) == pytest.approx(want, rel=1e-9)
    # and one on which all is lost
    signs = [(-1.0) ** i for i in range(6)]
    assert s.rkhs_norm(s.target_power([[i] for i in range(6)], signs)) == math.inf


def law(dim, n):
    """Nodes and weights for the cosine of random points in dim dimensions."""
    t, w = roots_gegenbauer(n, (dim - 2) / 2)
    return t, w / w.sum()


def test_under_spiked_covariates_it_is_that_of_a_product_rule():
    # The norm of one product of harmonics is the root of its power over the integral that mu is.
    dim, signal_dim, snr = 12, 4, 3.0
    s = spiked(NTK, dim, signal_dim, snr, max_degree=4)
    square = snr * signal_dim + dim - signal_dim
    a = snr * signal_dim / square
    (t1, w1), (t2, w2) = law(signal_dim, 300), law(dim - signal_dim, 300)
    kappa = NTK.profile((a * t1[:, None] + (1 - a) * t2).ravel(), radius=math.sqrt(square), dim=dim)
    kappa = kappa.reshape(300, 300)
    power = np.zeros(len(s))
    square = 0.0
    for level, (k1, k2) in enumerate(s.degrees):
        power[level] = 1.0 / (1 + level)
        p1 = kc.spectrum.legendre(signal_dim, k1, t1)[k1]
        p2 = kc.spectrum.legendre(dim - signal_dim, k2, t2)[k2]
        square += power[level] / ((p1 * w1) @ kappa @ (p2 * w2))
    # the largest terms are those of the smallest mu, known to 1e-9 by the rule
    assert s.rkhs_norm(power) == pytest.approx(math.sqrt(square), rel=1e-8)


def test_of_a_gram_matrix_it_is_that_of_the_interpolant(rng):
    X = rng.standard_normal((40, 3))
    K, y = kc.Laplacian(1.0)(X), rng.standard_normal(40)
    s = gram(K)
    want, rounding = interpolating(K, y)
    assert s.rkhs_norm(s.target_power(y)) == pytest.approx(want, rel=rounding)
    # Labels in the span of a few eigenvectors leave nothing but rounding for the others.
    few = gram(K, rank=10)
    inside = few.eigenvectors @ rng.standard_normal(10)
    assert few.rkhs_norm(few.target_power(inside)) == pytest.approx(
        math.sqrt(inside @ np.linalg.solve(K, inside)), rel=rounding
    )
    assert few.rkhs_norm(few.target_power(y)) == math.inf


def test_power_where_nothing_is_learned_makes_it_infinite():
    s = Spectrum([0.0, -math.inf, -2000.0], [1, 2, 3], 1.0)
    assert s.rkhs_norm([4.0, 0.0, 0.0]) == 2.0
    assert s.rkhs_norm([1.0, 1e-3, 0.0]) == s.rkhs_norm([1.0, 0.0, 0.0, 1e-3]) == math.inf
    assert s.rkhs_norm([1.0, 1e-33, 0.0, 1e-33]) == 1.0
    assert s.rkhs_norm([0.0, 0.0, 0.0]) == s.rkhs_norm([0.0] * 4) == 0.0
    # A square beyond float64 whose root is not, and a root that is
    assert s.rkhs_norm([0.0, 0.0, math.exp(-600)]) == pytest.approx(math.exp(700), rel=1e-12)
    assert s.rkhs_norm([0.0, 0.0, 1.0]) == math.inf


def test_an_eigenvalue_that_is_not_resolved_is_refused_only_where_it_counts():
    s = sphere(np.exp, 10**6, 5)
    assert not s.resolved[5]
    assert s.rkhs_norm([0, 1, 0, 0, 0, 0]) == pytest.approx(s.eigenvalues[1] ** -0.5)
    assert s.rkhs_norm([0, 1, 0, 0, 0, 1e-30]) == s.rkhs_norm([0, 1, 0, 0, 0, 0])
    assert s.rkhs_norm([0, 1, 0, 0, 0, 0.25, 1.0]) == math.inf
    with pytest.raises(ValueError, match=r"^target_power must be zero on levels whose eigenvalue"):
        s.rkhs_norm([0, 1, 0, 0, 0, 0.25])


def test_spectra_say_what_they_are():
    assert repr(gram(np.diag([2.0, 1.0, 3.0]))) == "<GramSpectrum: 3 levels, trace 2>"
    assert repr(Spectrum([0.0, -1.0], [1, 2], 2.5)) == "<Spectrum: 2 levels, trace 2.5>"
    assert repr(spiked(np.array([0.5, 0.5]), 6, 2, 1.0, 1)) == (
        "<SpikedSpectrum of profiles.PowerSeries((0.5, 0.5)), dim 6, signal_dim 2, snr 1: 3 "
        "levels, trace 1>"
    )


def test_a_flow_that_has_ended_leaves_what_the_matrix_does_not_see():
    s = gram(np.diag([2.0, 0.0]))
    np.testing.assert_array_equal(s.decay([0.0, math.inf]), [[1, 1], [0, 1]])
