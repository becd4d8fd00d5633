"""The cyclic convolution kernel: its definition, what it does not see, and its spectrum."""

import itertools
import pickle

import numpy as np
import pytest

import kernelcore as kc
from kernelcore import profiles as p
from kernelcore.engine.cpu import cyclic
from kernelcore.kernels import _cyclic

POLYNOMIAL = p.PowerSeries((0.1, 0.2, 0.3, 0.25, 0.15))
FITTED = p.Fitted(np.exp)


def definition(h, q, w, x, y):
    """1/(d w) sum over k, s, s' of h(x_(k+s), y_(k+s')), h on pairs of rows (n, q) and (m, q)."""
    d = x.shape[1]
    at = (np.arange(d)[:, None] + np.arange(q)) % d
    pairs = {}
    total = np.zeros((len(x), len(y)), np.longdouble)
    for k, s, t in itertools.product(range(d), range(w), range(w)):
        i, j = (k + s) % d, (k + t) % d
        if (i, j) not in pairs:
            pairs[i, j] = h(x[:, at[i]], y[:, at[j]])
        total += pairs[i, j]
    return (total / (d * w)).astype(float)


def of_number(f):
    """h(<a, b>/q), in extended precision."""
    return lambda a, b: f(a.astype(np.longdouble) @ b.astype(np.longdouble).T / a.shape[1])


def kappa1(t):
    return (t * (np.pi - np.arccos(t)) + np.sqrt(1 - t * t)) / np.pi


def polynomial(t):
    return sum(c * t**k for k, c in enumerate(POLYNOMIAL.coefficients))


def negative(t):
    return t - 2


PROFILES = {
    "series": (POLYNOMIAL, of_number(polynomial)),
    "exp": (p.Exp(0.8), of_number(lambda t: np.exp((t - 1) / np.longdouble(0.8) ** 2))),
    "kappa1": (p.Kappa1(), of_number(kappa1)),
    "fitted": (FITTED, of_number(np.exp)),
    "negative": (p.Fitted(negative), of_number(negative)),
}  # fmt: skip
OTHERS = {
    "arc-cosine": kc.ArcCosine(1),
    "ntk": kc.presets.mlp(1, b_std=0.1).ntk,
    "gaussian": kc.Gaussian(1.3),
    "sum": 2.0 * (kc.Gaussian(1.0) + kc.Polynomial(2)) + kc.ArcCosine(1),
    "product": 0.5 * kc.Laplacian(1.0) * kc.ArcCosine(0),
    "nested": kc.CyclicConvolution(1, 1, (0.2, 0.8)),
}


def signals(rng, n, d, dtype=np.float64):
    """Patches of norm below sqrt(q), a zero row, a copy and an opposite."""
    x = rng.uniform(-1, 1, (n, d)).astype(dtype)
    if n >= 4:
        x[1], x[2], x[3] = 0, x[0], -x[0]
    return x


def same(a, b):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)


# ---- the definition


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("d", [1, 2, 5, 6])
def test_profiles_for_every_patch_and_pool(name, d, dtype, rng):
    profile, h = PROFILES[name]
    x, y = signals(rng, 5, d, dtype), signals(rng, 3, d, dtype)
    for q, w in itertools.product(range(1, d + 1), repeat=2):
        kernel = kc.CyclicConvolution(q, w, profile)
        got = kernel(x, y)
        want = definition(h, q, w, x, y)
        # a sum over a patch, Horner's rule, the sum over positions: w values of size 2 at most
        assert (np.abs(got - want) <= 16 * np.finfo(dtype).eps * w * 2).all(), (q, w)
        same(kernel(y, x), np.ascontiguousarray(got.T))


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("d", [5, 6])
def test_kernels_for_every_patch_and_pool(name, d, rng):
    h = OTHERS[name]
    x, y = signals(rng, 5, d), signals(rng, 3, d)
    for q, w in itertools.product(range(1, d + 1), repeat=2):
        kernel = kc.CyclicConvolution(q, w, h)
        got = kernel(x, y)
        np.testing.assert_allclose(got, definition(h, q, w, x, y), rtol=1e-13, atol=1e-14)
        same(kernel(y, x), np.ascontiguousarray(got.T))


@pytest.mark.parametrize(("d", "q", "w"), [(30, 10, 5), (31, 23, 31), (64, 37, 3), (50, 49, 8)])
def test_long_signals(d, q, w, dtype, rng):
    x = signals(rng, 13, d, dtype)
    profile, h = PROFILES["series"]
    got = kc.CyclicConvolution(q, w, profile)(x)
    np.testing.assert_allclose(
        got, definition(h, q, w, x, x), rtol=0, atol=16 * np.finfo(dtype).eps * w
    )


def test_a_patch_that_is_the_signal_is_the_profile(dtype, rng):
    x, y = signals(rng, 6, 9, dtype), signals(rng, 4, 9, dtype)
    for profile, h in PROFILES.values():
        got = kc.CyclicConvolution(9, 1, profile)(x, y)
        np.testing.assert_allclose(
            got, h(x, y).astype(float), rtol=0, atol=40 * np.finfo(dtype).eps
        )
    # A kernel of the signal, if shifts of both do not matter to it.
    for h in (kc.ArcCosine(1), kc.Gaussian(1.0)):
        got = kc.CyclicConvolution(9, 1, h)(x, y)
        np.testing.assert_allclose(got, h(x, y), rtol=0, atol=40 * np.finfo(dtype).eps)


def test_callables_and_coefficients(rng):
    x = signals(rng, 4, 6)
    same(kc.CyclicConvolution(2, 3, np.exp)(x), kc.CyclicConvolution(2, 3, FITTED)(x))
    assert kc.CyclicConvolution(2, 3, [0, 1]) == kc.CyclicConvolution(2, 3, p.PowerSeries((0, 1)))
    assert kc.CyclicConvolution(patch=2, pool=3, profile=FITTED).patch == 2


# ---- what it sees and what it does not


@pytest.mark.parametrize("h", [POLYNOMIAL, p.Kappa0(), kc.ArcCosine(1)], ids=str)
def test_global_pooling_does_not_see_shifts(h, rng):
    x, y = signals(rng, 5, 8), signals(rng, 4, 8)
    kernel = kc.CyclicConvolution(3, 8, h)
    want = kernel(x, y)
    for shift in (1, 3, 7):
        for a, b in ((np.roll(x, shift, 1), y), (x, np.roll(y, shift, 1))):
            np.testing.assert_allclose(kernel(a, b), want, rtol=1e-13, atol=1e-13)
    partial = kc.CyclicConvolution(3, 7, h)
    assert np.abs(partial(np.roll(x, 1, 1), y) - partial(x, y)).max() > 1e-4


@pytest.mark.parametrize("h", [POLYNOMIAL, p.Exp(1.0), kc.Gaussian(1.0)], ids=str)
@pytest.mark.parametrize("w", [1, 4, 9])
def test_any_pooling_sees_equal_shifts_of_both_as_none(h, w, rng):
    x, y = signals(rng, 5, 9), signals(rng, 4, 9)
    kernel = kc.CyclicConvolution(4, w, h)
    np.testing.assert_allclose(
        kernel(np.roll(x, 2, 1), np.roll(y, 2, 1)), kernel(x, y), rtol=1e-13, atol=1e-13
    )


@pytest.mark.parametrize("h", [POLYNOMIAL, p.Exp(1.0), kc.Gaussian(1.0)], ids=str)
@pytest.mark.parametrize("w", [1, 3])
def test_coordinates_further_apart_than_a_patch_do_not_interact(h, w, rng):
    """The mixed second difference in two coordinates vanishes unless some patch holds both."""
    d, q = 9, 3
    x, y = signals(rng, 1, d) / 2, signals(rng, 6, d) / 2
    kernel = kc.CyclicConvolution(q, w, h)
    for i, j in itertools.combinations(range(d), 2):
        corners = np.repeat(x, 4, 0)
        corners[1:3, i] += 0.4
        corners[2:4, j] += 0.3
        k = kernel(corners, y)
        mixed = np.abs(k[2] - k[1] - k[3] + k[0]).max()
        apart = min(j - i, d - (j - i)) >= q
        assert (mixed < 1e-14) if apart else (mixed > 1e-5), (i, j)


def test_the_spectrum_on_the_hypercube():
    """Eigenvalues over {-1, 1}^d, by orbits of sets S of coordinates under shifts.

    An orbit of size o with r members inside a patch has, for j = 0, d/o, 2d/o, ..., the eigenvalue
    xi_|S| r/o |sum over s < w of exp(2 pi i j s/d)|^2 / w, with xi_l the l-th Fourier coefficient
    of h(<1, z>/q) over z in {-1, 1}^q.
    """
    for d, q, w in ((5, 3, 2), (6, 2, 3), (6, 4, 1), (6, 6, 6), (6, 5, 4)):
        cube = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
        gram = kc.CyclicConvolution(q, w, POLYNOMIAL)(cube)
        got = np.linalg.eigvalsh(gram / len(cube))
        z = np.array(list(itertools.product([-1.0, 1.0], repeat=q)))
        xi = [(POLYNOMIAL(z.mean(1)) * z[:, :size].prod(1)).mean() for size in range(q + 1)]
        want = []
        seen = set()
        for mask in itertools.product([0, 1], repeat=d):
            orbit = {mask[k:] + mask[:k] for k in range(d)}
            if mask in seen:
                continue
            seen |= orbit
            o = len(orbit)
            r = sum(not any(m[q:]) for m in orbit)
            for j in range(0, d, d // o):
                pooled = abs(np.exp(2j * np.pi * j * np.arange(w) / d).sum()) ** 2 / w
                want.append(xi[sum(mask)] * r / o * pooled if r else 0.0)
        assert len(want) == len(cube)
        np.testing.assert_allclose(got, np.sort(want), rtol=0, atol=1e-14)


# ---- a kernel like others


ALL = {name: kc.CyclicConvolution(3, 2, profile) for name, (profile, _) in PROFILES.items()} | {
    name: kc.CyclicConvolution(3, 2, h) for name, h in OTHERS.items()
}
ALL |= {
    "whole": kc.CyclicConvolution(7, 7, POLYNOMIAL),
    "half": kc.CyclicConvolution(2, 7, POLYNOMIAL),
    "arc": kc.CyclicConvolution(2, 7, kc.ArcCosine(0)),
}


@pytest.mark.parametrize("name", ALL)
def test_bits_depend_on_two_rows_alone(name, dtype, rng, monkeypatch):
    kernel = ALL[name]
    x, y = signals(rng, 37, 7, dtype), signals(rng, 21, 7, dtype)
    gram, cross = kernel(x), kernel(x, y)
    same(gram, np.ascontiguousarray(gram.T))
    same(gram, kernel(x, x.copy()))
    same(kernel.diag(x), np.diag(gram))
    assert gram[0, 2] == gram[0, 0]  # a copy
    for n_threads in (1, 2, 5):
        same(kernel(x, n_threads=n_threads), gram)
        same(kernel(x, y, n_threads=n_threads), cross)
    same(kernel(x[5:9], y[3:4]), cross[5:9, 3:4])
    same(kernel(x[::-1], y), cross[::-1].copy())
    same(kernel(np.asfortranarray(x)), gram)
    monkeypatch.setattr(cyclic, "TILE_ROWS", 5)
    monkeypatch.setattr(cyclic, "TILE_COLUMNS", 1)
    monkeypatch.setattr(_cyclic, "TOGETHER", 0)  # kernels: by positions, not all at once
    same(kernel(x), gram)
    same(kernel(x, y), cross)
    same(kernel.diag(x), np.diag(gram))


@pytest.mark.parametrize("name", ["series", "kappa1", "arc-cosine", "product"])
def test_algebra(name, dtype, rng):
    kernel, other = ALL[name], kc.Gaussian(1.0)
    for args in (
        (signals(rng, 9, 7, dtype),),
        (signals(rng, 9, 7, dtype), signals(rng, 4, 7, dtype)),
    ):
        a, b = kernel(*args).astype(float), other(*args).astype(float)
        for combined, want in (
            (2.5 * kernel, 2.5 * a),
            (kernel + other, a + b),
            (other + kernel, a + b),
            (kernel * other, a * b),
            (other * kernel, a * b),
            (0.5 * kernel * kernel + other * (kernel + other), 0.5 * a * a + b * (a + b)),
        ):
            got = combined(*args)
            assert got.dtype == dtype
            np.testing.assert_allclose(got, want, rtol=0, atol=40 * np.finfo(dtype).eps)
            if len(args) == 1:
                same(combined.diag(*args), np.diag(got))


def test_empty_and_single(dtype):
    for kernel in (ALL["series"], ALL["exp"], ALL["arc-cosine"]):
        for n, m in ((0, 0), (0, 3), (3, 0), (1, 1)):
            x, y = np.zeros((n, 7), dtype), np.zeros((m, 7), dtype)
            assert kernel(x, y).shape == (n, m)
            assert kernel.diag(x).shape == (n,)


def test_rounding_beyond_one_is_cut(dtype):
    """Rows of norm sqrt(d) up to rounding, and of norm 1 in the sense that h needs."""
    x = np.full((3, 6), np.nextafter(dtype.type(1), dtype.type(2)))
    x[1] *= -1
    for profile in (p.Kappa0(), p.Kappa1(), p.Exp(1.0), FITTED):
        got = kc.CyclicConvolution(3, 1, profile)(x)
        want = profile([1.0, -1.0])
        np.testing.assert_allclose(got[0, :2], want, rtol=4 * np.finfo(dtype).eps, atol=1e-300)


def test_signs_are_exact(dtype, rng):
    """1/q is not a number of binary, but a patch of signs has cosine 1 with itself all the same."""
    x = rng.choice([-1.0, 1.0], (8, 30)).astype(dtype)
    for q in range(1, 31):
        kernel = kc.CyclicConvolution(q, 1, p.Kappa0())
        np.testing.assert_allclose(kernel.diag(x), 1, rtol=2 * np.finfo(dtype).eps)


def test_out_and_pickle(rng):
    x = signals(rng, 6, 7)
    for kernel in ALL.values():
        out = np.full((6, 6), np.nan)
        assert kernel(x, out=out) is out
        same(pickle.loads(pickle.dumps(kernel))(x), out)
        assert pickle.loads(pickle.dumps(kernel)) == kernel
