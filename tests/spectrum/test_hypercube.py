"""Spectra on the hypercube, against all of its points and against exact arithmetic."""

import functools
import itertools
import math
import pickle
from collections import Counter
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
import threadpoolctl

import kernelcore as kc
from kernelcore import profiles as p
from kernelcore.spectrum import CyclicSpectrum, HypercubeSpectrum, _cyclic, cyclic, hypercube

EPS = np.finfo(float).eps
NTK = kc.presets.mlp(2).ntk
SERIES = p.PowerSeries((0.13, 0.21, 0.17, 0.11, 0.19, 0.07, 0.12, 0.05, 0.03))


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Of the linear algebra: these matrices are small."""
    with threadpoolctl.threadpool_limits(1):
        yield


def cube(d):
    return np.array(list(itertools.product([1.0, -1.0], repeat=d)))


def walsh(values):
    """Mean of f chi_S for all S, in the order of ``cube``: bit i of the index is coordinate i."""
    a = np.array(values, np.longdouble)
    for axis in range(int(math.log2(len(a)))):
        b = a.reshape(2**axis, 2, -1)
        a = np.stack([b[:, 0] + b[:, 1], b[:, 0] - b[:, 1]], 1).reshape(len(a))
    return (a / len(a)).astype(float)


def repeated(spectrum):
    """All eigenvalues, in order."""
    return np.sort(np.repeat(spectrum.eigenvalues, spectrum.multiplicities.astype(int)))


def krawtchouk(d, degree, j):
    """K_l(j), from its definition."""
    return sum(
        (-1) ** i * math.comb(j, i) * math.comb(d - j, degree - i)
        for i in range(max(0, degree - (d - j)), min(j, degree) + 1)
    )


def exactly(values, degree):
    """xi_l by the sum over distances j, of kappa(1 - 2j/d)."""
    d = len(values) - 1
    total = sum(
        math.comb(d, j) * krawtchouk(d, degree, j) * value for j, value in enumerate(values)
    )
    return total / (2**d * math.comb(d, degree))


# ---- inner-product kernels

KERNELS = {
    "ntk": NTK,
    "nngp with bias": kc.presets.mlp(3, b_std=0.2).nngp,
    "erf": kc.presets.mlp(1, kc.Erf()).ntk,
    "arc-cosine 0": kc.ArcCosine(0),
    "arc-cosine 2": kc.ArcCosine(2),
    "gaussian": kc.Gaussian(1.7),
    "laplacian": kc.Laplacian(2.0),
    "matern": kc.Matern(1.2, 3.0),
    "polynomial": kc.Polynomial(4, 0.3, 0.7),
    "odd polynomial": kc.Polynomial(3, 0.3, 0.0),
    "sum": 2.0 * (kc.Gaussian(1.0) + kc.Polynomial(2)) + 0.1 * kc.ArcCosine(1),
    "product": 0.5 * kc.Laplacian(1.0) * kc.ArcCosine(0),
    "nothing": 0.0 * kc.Gaussian(1.0),
}
PROFILES = {
    "series": SERIES,
    "coefficients": [0.5, 0.0, 0.25],
    "power": p.Power(5),
    "exp": p.Exp(0.7),
    "kappa0": p.Kappa0(),
    "kappa1": p.Kappa1(),
    "fitted": p.Fitted(np.exp),
    "callable": lambda u: np.sqrt(1.5 - u) ** -1,
    "unlike signs": p.PowerSeries((1.0, -0.1, 0.3, 0.5)),
}  # fmt: skip


@pytest.mark.parametrize("d", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("name", [*KERNELS, *PROFILES])
def test_hypercube_is_the_walsh_transform(name, d):
    x = cube(d)
    if name in KERNELS:
        kernel = KERNELS[name]
        row = kernel(x[:1], x)[0]
    else:
        kernel = PROFILES[name]
        f = kernel if callable(kernel) else np.polynomial.Polynomial(kernel)
        row = f(x.mean(1))
    s = hypercube(kernel, d)
    assert isinstance(s, HypercubeSpectrum)
    assert list(s.degrees) == list(range(d + 1))
    assert list(s.multiplicities) == [math.comb(d, k) for k in range(d + 1)]
    size = (x < 0).sum(1)
    # a mean of values that are right to some units in the last place of the largest
    slack = 16 * EPS * np.abs(row).max()
    assert (np.abs(walsh(row) - s.eigenvalues[size]) <= s.noise[size] + slack).all()
    assert s.trace == pytest.approx(row[0], rel=16 * EPS)
    assert (s.eigenvalues[~s.resolved] == 0).all()
    # errors of degree l are at most 16 eps/sqrt(C(d, l)) of the largest value
    bound = 16 * EPS * max(np.abs(row).max(), s.trace) * np.sqrt(s.multiplicities.astype(float))
    lost = s.trace - s.mass.sum()
    assert -d * slack <= lost <= d * slack + bound.sum()


@pytest.mark.parametrize("d", [4, 9, 40, 90])
def test_power_series_to_relative_precision(d):
    rng = np.random.default_rng(d)
    for c in (rng.uniform(0, 1, 45), np.arange(41) == 40, [0, 0, 0, 1e-200]):
        c = [float(x) for x in c]
        s = hypercube(c, d)
        assert s.resolved.all()
        u = [Fraction(d - 2 * j, d) for j in range(d + 1)]
        values = [sum(Fraction(a) * t**n for n, a in enumerate(c) if a) for t in u]
        for degree in (*range(min(d, 45)), d):
            want = exactly(values, degree)
            if want == 0:
                assert s.log_eigenvalues[degree] == -np.inf
                assert s.noise[degree] == 0
                continue
            # three roundings for every power, and those of the logarithm
            log = float(mp.log(mp.mpf(want.numerator) / want.denominator))
            allowed = 3 * len(c) * EPS + EPS * abs(log)
            assert abs(s.log_eigenvalues[degree] - log) <= allowed
            assert allowed < 1e-12


def test_polynomial_kernel_is_its_power_series():
    d, n = 12, 5
    c = [math.comb(n, k) * (0.25 * d) ** k * 0.5 ** (n - k) for k in range(n + 1)]
    got, want = hypercube(kc.Polynomial(n, 0.25, 0.5), d), hypercube(c, d)
    np.testing.assert_allclose(got.eigenvalues, want.eigenvalues, rtol=50 * EPS, atol=0)
    assert (got.eigenvalues[6:] == 0).all()
    assert got.resolved.all()


@pytest.mark.parametrize("d", [5, 60, 2000])
def test_exponentials_factorise(d):
    """exp(rate sum_i (x_i y_i - 1)) has at l (1 + e)^(d-l) (1 - e)^l / 2^d, e = exp(-2 rate)."""
    for kernel, rate in (
        (kc.Gaussian(3.0), mp.mpf(1) / 9),
        (kc.Gaussian(0.1), mp.mpf(1) / mp.mpf(0.1) ** 2),
        (p.Exp(0.5), mp.mpf(4) / d),
    ):
        s = hypercube(kernel, d)
        for degree in {0, 1, 2, d // 2, d}:
            with mp.workdps(40):
                e = mp.exp(-2 * rate)
                want = (d - degree) * mp.log1p(e) + degree * mp.log1p(-e) - d * mp.log(2)
            got = s.log_eigenvalues[degree]
            assert abs(got - float(want)) <= 4 * EPS * (1 + abs(float(want)))
        assert s.resolved.all()
        assert math.fsum(s.mass) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("d", [61, 300])
def test_errors_are_bounds(d):
    """NTK of one hidden layer in 150 digits: all degrees are within their errors."""
    exact = mp.mpf(10) ** -140
    with mp.workdps(150):
        u = [mp.mpf(d - 2 * j) / d for j in range(d + 1)]
        kappa0 = [1 - mp.acos(t) / mp.pi for t in u]
        ntk = [2 * t * k + mp.sqrt(1 - t * t) / mp.pi for t, k in zip(u, kappa0, strict=True)]
        values = {kc.ArcCosine(0): kappa0, kc.presets.mlp(1).ntk: ntk}
        for kernel, want in values.items():
            s = hypercube(kernel, d)
            for degree in (*range(12), d // 2, d // 2 + 1, d - 1, d):
                xi = exactly(want, degree)
                error = mp.exp(mp.mpf(s._log_error[degree]))
                log = s.log_eigenvalues[degree]
                got = mp.exp(mp.mpf(log)) if np.isfinite(log) else 0
                assert abs(xi - got) <= error + 1e-15 * got + exact, (kernel, degree)
                assert s.resolved[degree] or abs(xi) <= 2 * error


def test_even_and_odd_profiles_have_exact_zeros():
    for d in (8, 9, 300):
        even, odd = hypercube(lambda u: np.cosh(u) ** 2, d), hypercube(np.sinh, d)
        assert (even.eigenvalues[1::2] == 0).all()
        assert (odd.eigenvalues[::2] == 0).all()
        assert even.resolved[1::2].all()
        assert odd.resolved[::2].all()
        assert (even.noise[1::2] == 0).all()
        erf = hypercube(kc.presets.mlp(3, kc.Erf()).ntk, d)
        assert (erf.eigenvalues[::2] == 0).all()
        assert erf.resolved[::2].all()


def test_relu_kernels_lose_odd_degrees():
    for kernel in (kc.ArcCosine(1), p.Kappa1(), kc.presets.mlp(1, kc.Silu()).ntk):
        s = hypercube(kernel, 80)
        assert (s.eigenvalues[3::2] == 0).all()
        assert s.resolved[[0, 1, 2, 4]].all()
        assert not s.resolved[40]
    assert (hypercube(NTK, 30).eigenvalues[:9] > 0).all()
    s = hypercube(kc.presets.mlp(1).ntk, 30)
    assert (s.eigenvalues[3::2] == 0).all()
    assert (s.eigenvalues[[0, 1, 2, 4, 6, 8]] > 1e3 * s.noise[[0, 1, 2, 4, 6, 8]]).all()


def test_thousands_of_dimensions():
    s = hypercube(NTK, 3000)
    assert s.resolved[:8].all()
    assert 0 < s.tail < s.trace
    assert s.trace == pytest.approx(3.0, rel=16 * EPS)
    assert np.isfinite(s.log_eigenvalues[:8]).all()
    # u^n begins with n!/d^n at l = n
    power = hypercube(p.Power(3000), 3000)
    want = math.lgamma(3001) - 3000 * math.log(3000)
    assert power.log_eigenvalues[-1] == pytest.approx(want, rel=1e-12)
    assert (power.eigenvalues[1::2] == 0).all()
    assert math.fsum(power.mass) == pytest.approx(1.0, rel=1e-10)


def test_a_scaled_kernel_and_the_repr():
    s, t = hypercube(kc.ArcCosine(1), 6), hypercube(2.0 * kc.ArcCosine(1), 6)
    np.testing.assert_allclose(t.eigenvalues, 2 * s.eigenvalues, rtol=8 * EPS)
    assert repr(s) == "<HypercubeSpectrum of ArcCosine(1) on {-1, 1}^6: 7 levels, trace 6>"
    rough = hypercube(kc.Laplacian(10.0), 100)
    lost = int((~rough.resolved).sum())
    assert f"101 levels, {lost} unresolved, trace 1>" in repr(rough)
    assert 50 < lost < 90
    assert repr(hypercube([0, 1], 3)) == (
        "<HypercubeSpectrum of profiles.PowerSeries((0.0, 1.0)) on {-1, 1}^3: 4 levels, trace 1>"
    )
    again = pickle.loads(pickle.dumps(s))
    assert (again.eigenvalues == s.eigenvalues).all()


# ---- H(q, w)


@functools.cache
def orbits(d):
    """All points, one of each orbit under shifts, those shifted, and the sizes of the orbits."""
    rotated = [np.arange(2**d)]
    for _ in range(d - 1):
        last = rotated[-1]
        rotated.append(last >> 1 | (last & 1) << (d - 1))
    rotated = np.array(rotated)
    first = np.flatnonzero((rotated >= rotated[0]).all(0))
    return cube(d), first, rotated[:, first], np.array([len(set(r)) for r in rotated[:, first].T])


def sectors(kernel, d):
    """Eigenvalues of k/2^d on all points, by how eigenvectors change under a shift of x.

    The kernel is the same for x and y shifted together, so that functions which a shift multiplies
    by exp(2 pi i j/d) stay among themselves: a matrix over one point of each orbit.
    """
    x, first, rotated, size = orbits(d)
    values = kernel(x[first], x) / 2**d
    blocks = np.fft.rfft(values[:, rotated] * np.sqrt(size[:, None, None] * size) / d, axis=1)
    found = []
    for j in range(d // 2 + 1):
        here = np.flatnonzero(j * size % d == 0)
        real = 2 * j % d == 0
        block = blocks[np.ix_(here, [j], here)][:, 0]
        each = np.linalg.eigvalsh(block.real if real else block)
        found += [each] if real else [each, each]
    return np.sort(np.concatenate(found))


def allowed(d, w):
    """Entries of the kernel are right to 32 eps w, eigenvalues of a matrix to n eps of the norm."""
    return EPS * w * (32 + 2**d) * max(1.0, float(SERIES(1.0)))


@pytest.mark.parametrize("d", range(1, 8))
def test_every_patch_and_pool_on_all_points(d):
    x = cube(d)
    for q, w in itertools.product(range(1, d + 1), repeat=2):
        kernel = kc.CyclicConvolution(q, w, SERIES)
        s = cyclic(kernel, d)
        assert isinstance(s, CyclicSpectrum)
        assert sum(s.multiplicities) == 2**d
        gram = kernel(x) / 2**d
        want = np.linalg.eigvalsh(gram)
        assert np.abs(repeated(s) - want).max() <= allowed(d, w), (q, w)
        assert abs(s.trace - np.trace(gram)) <= allowed(d, w), (q, w)
        assert s.resolved.all()
        if d == 6:
            assert np.abs(sectors(kernel, d) - want).max() <= 2 * allowed(d, w), (q, w)


@pytest.mark.parametrize("d", [8, 9, 10])
def test_every_patch_and_pool_by_sectors(d):
    for q, w in itertools.product(range(1, d + 1), repeat=2):
        kernel = kc.CyclicConvolution(q, w, SERIES)
        want = sectors(kernel, d)
        assert np.abs(repeated(cyclic(kernel, d)) - want).max() <= allowed(d, w), (q, w)


# A prime number of coordinates, and one with many divisors; patches about a half and the whole.
MORE = [
    *((11, q, w) for q in (2, 5, 6, 7, 10, 11) for w in (1, 4, 10, 11)),
    *((12, q, w) for q in (2, 6, 7, 9, 10, 12) for w in (1, 4, 9, 12)),
]


@pytest.mark.parametrize(("d", "q", "w"), MORE)
def test_more_dimensions_by_sectors(d, q, w):
    kernel = kc.CyclicConvolution(q, w, SERIES)
    assert np.abs(repeated(cyclic(kernel, d)) - sectors(kernel, d)).max() <= allowed(d, w)


@pytest.mark.parametrize("d", [12, 15, 16])
def test_sets_are_counted_right(d):
    """By listing all 2^d: sizes, periods, and shifts inside the window."""
    index = np.arange(2**d)
    rotated = np.array([(index >> t | index << (d - t)) & (2**d - 1) for t in range(d)])
    period = np.argmax(np.concatenate([rotated[1:] == index, [index == index]]), 0) + 1
    size = sum(index >> i & 1 for i in range(d))
    for q in range(1, d + 1):
        inside = (rotated < 2**q).sum(0)
        keep = inside > 0
        tally = Counter(zip(size[keep], inside[keep], period[keep], strict=True))
        want = {(int(a), int(b), int(c)): n // int(c) for (a, b, c), n in tally.items()}
        got = {
            (k, shifts, o): n
            for k in range(d + 1)
            for shifts, o, n in _cyclic._orbits(d, k, q)
        }  # fmt: skip
        assert got == want, q


H_KERNELS = {
    "ntk": kc.presets.mlp(1, b_std=0.3).ntk,
    "erf": kc.presets.mlp(1, kc.Erf()).nngp,
    "gaussian": kc.Gaussian(1.3),
    "kappa1": p.Kappa1(),
    "sum": 2.0 * (kc.Gaussian(1.0) + kc.Polynomial(2, 0.2)) + kc.ArcCosine(1) * 0.1,
    "exp": p.Exp(0.8),
    "fitted": p.Fitted(np.exp),
}


@pytest.mark.parametrize("name", H_KERNELS)
def test_other_profiles_and_kernels_of_patches(name):
    x = cube(6)
    for q, w in ((1, 2), (3, 2), (4, 6), (5, 4), (6, 3)):
        kernel = 0.5 * kc.CyclicConvolution(q, w, H_KERNELS[name])
        s = cyclic(kernel, 6)
        gram = kernel(x) / 64
        norm = w * np.abs(gram).max() * 64
        np.testing.assert_allclose(
            repeated(s), np.linalg.eigvalsh(gram), rtol=0, atol=EPS * norm * (32 + 64)
        )
        assert s.trace == pytest.approx(np.trace(gram), rel=1e-13)


def test_a_patch_that_is_the_signal_is_the_inner_product_kernel():
    for h in (SERIES, NTK):
        got, want = cyclic(kc.CyclicConvolution(14, 1, h), 14), hypercube(h, 14)
        np.testing.assert_allclose(got.eigenvalues, want.eigenvalues, rtol=8 * EPS)
        assert list(got.multiplicities) == list(want.multiplicities)
        assert list(got.degrees) == list(want.degrees)
        assert (got.resolved == want.resolved).all()
        assert got.trace == pytest.approx(want.trace, rel=1e-14)


def test_what_global_pooling_leaves():
    """One function of each orbit that meets the window; w = 1 leaves them all."""
    d, q = 30, 10
    local, pooled = (cyclic(kc.CyclicConvolution(q, w, SERIES), d) for w in (1, d))
    for degree in range(1, 9):
        # sets inside a window, by their first member; each such orbit has d of them
        want = math.comb(q - 1, degree - 1)
        for s, count in ((local, want * d), (pooled, want)):
            there = (s.degrees == degree) & (s.eigenvalues > 0)
            assert sum(s.multiplicities[there]) == count
            assert sum(s.multiplicities[s.degrees == degree]) == math.comb(d, degree)
    assert set(local.gains) == {0.0, 1.0}
    assert set(pooled.gains) == {0.0, float(d)}


@pytest.mark.parametrize(("d", "q", "w"), [(30, 10, 5), (100, 7, 20), (64, 20, 64)])
def test_trace_in_many_dimensions(d, q, w):
    """For q <= d/2 no set but the empty one is its own shift: E k(x, x) = h(1) + (w - 1) xi_0."""
    s = cyclic(kc.CyclicConvolution(q, w, SERIES), d)
    want = float(SERIES(1.0)) + (w - 1) * hypercube(SERIES, q).eigenvalues[0]
    assert s.trace == pytest.approx(want, rel=1e-13)
    assert sum(s.multiplicities) == 2**d
    assert s.tail == 0


@pytest.mark.parametrize(("d", "q", "w"), [(6, 3, 2), (6, 6, 6), (8, 5, 3), (8, 8, 4), (9, 7, 3)])
def test_target_power(d, q, w, rng):
    """The mean of f times g(K) f is the sum of g(eigenvalue) power, for any g."""
    kernel = kc.CyclicConvolution(q, w, SERIES)
    s = cyclic(kernel, d)
    x = cube(d)
    values, vectors = np.linalg.eigh(kernel(x) / 2**d)
    every = [c for k in range(d + 1) for c in itertools.combinations(range(d), k)]
    targets = [
        ([[i, (i + 1) % d, (i + 2) % d] for i in range(d)], [d**-0.5] * d),
        (
            [[i, (i + 1) % d, (i + 2) % d] for i in range(d)],
            [(-1) ** i * d**-0.5 for i in range(d)],
        ),
        ([[0], [2], [], [2], range(d)], [0.5, 1.0, 0.25, -2.0, 0.75]),
        (every, rng.standard_normal(len(every))),
    ]
    for sets, coefficients in targets:
        power = s.target_power(sets, coefficients)
        f = sum(c * x[:, list(i)].prod(1) for i, c in zip(sets, coefficients, strict=True))
        along = (vectors.T @ f) ** 2 / 2**d
        size = np.mean(f * f)
        assert power.sum() == pytest.approx(size, rel=1e-12)
        for g in (lambda v: 1 / (v + 0.01), lambda v: 1 / (v + 1.0), lambda v: v, np.cos):
            # eigenvalues are right to 1e-14 w or so, and g changes by at most 1e4 of that
            got, want = (g(s.eigenvalues) * power).sum(), (g(values) * along).sum()
            assert abs(got - want) <= 1e4 * allowed(d, w) * size


def test_low_and_high_frequencies():
    d = 30
    sets = [[i, (i + 1) % d, (i + 2) % d] for i in range(d)]
    low, high = ([e**i / math.sqrt(d) for i in range(d)] for e in (1, -1))
    for w in (1, 4, 5, 30):
        s = cyclic(kc.CyclicConvolution(10, w, [0.0, 0.2, 0.2, 0.2, 0.2, 0.2]), d)
        xi = hypercube([0.0, 0.2, 0.2, 0.2, 0.2, 0.2], 10).eigenvalues[3]
        for target, gain in ((low, w), (high, (w % 2) / w)):
            power = s.target_power(sets, target)
            level = power.argmax()
            assert power[level] == pytest.approx(1.0, rel=1e-13)
            assert power.sum() - power[level] < 1e-28
            # three in a row have 8 shifts inside a window of ten
            assert s.eigenvalues[level] == pytest.approx(xi * 8 / 30 * gain, rel=1e-13)
            assert (s.eigenvalues[level] == 0) == (gain == 0)


def test_the_repr_of_a_cyclic_spectrum():
    s = cyclic(2.0 * kc.CyclicConvolution(2, 1, [0.0, 0.5]), 4)
    assert repr(s) == (
        "<CyclicSpectrum of 2.0 * CyclicConvolution(2, 1, profiles.PowerSeries((0.0, 0.5))) on "
        "{-1, 1}^4: 5 levels, trace 1>"
    )
