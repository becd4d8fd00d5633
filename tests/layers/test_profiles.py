"""Profiles, and the maps DotProduct and Project, against mpmath."""

import copy
import math
import pickle

import mpmath as mp
import numpy as np
import pytest
from oracle import duals, networks

import kernelcore as kc
from kernelcore import profiles as p
from kernelcore.engine.cpu import calls as _calls
from kernelcore.engine.cpu import dispatch as _dispatch
from kernelcore.engine.cpu import steps

EPS = 2.0**-52


def resolvent(u):
    return 1 / (1.5 - u)


def kappa0(u):
    return 1 - mp.acos(u) / mp.pi


def kappa1(u):
    return u * kappa0(u) + mp.sqrt((1 - u) * (1 + u)) / mp.pi


def polynomial(*c):
    return lambda u: sum(mp.mpf(ck) * u**k for k, ck in enumerate(c))


# profile, the function in mpmath, how many roundings its value and its slope may be off: Horner's
# rule makes two per term; a fit of degree N has slopes off by the error of its values times N^2
ALL = {
    "exp": (p.Exp(0.6), lambda u: mp.exp((u - 1) / mp.mpf(0.6) ** 2), 16, 16),
    "narrow exp": (p.Exp(0.05), lambda u: mp.exp((u - 1) / mp.mpf(0.05) ** 2), 16, 16),
    "kappa0": (p.Kappa0(), kappa0, 16, None),
    "kappa1": (p.Kappa1(), kappa1, 16, 16),
    "constant": (p.Power(0), lambda u: u**0, 16, 16),
    "linear": (p.Power(1), lambda u: u, 16, 16),
    "cube": (p.Power(3), lambda u: u**3, 16, 16),
    "high power": (p.Power(40), lambda u: u**40, 16, 80),
    "series": (p.PowerSeries((0.2, 0.3, 0.5)), polynomial(0.2, 0.3, 0.5), 16, 16),
    "even": (p.PowerSeries((0.5, 0, 2, 0, 1)), polynomial(0.5, 0, 2, 0, 1), 16, 16),
    "odd": (p.PowerSeries((0, 0.4, 0, 0.6)), polynomial(0, 0.4, 0, 0.6), 16, 16),
    "signs": (p.PowerSeries((-0.5, 0.3, 2.0)), polynomial(-0.5, 0.3, 2.0), 16, 16),
    "fitted": (p.Fitted(np.exp), mp.exp, 16, 16 * 14**2),
    "resolvent": (p.Fitted(resolvent), lambda u: 1 / (mp.mpf(1.5) - u), 16, 16 * 38**2),
}  # fmt: skip
EVERY = pytest.mark.parametrize("name", ALL)
U = np.array(
    [-1, -1 + 2.0**-34, -0.9999, -0.9, -0.5, -1e-8, 0, 1e-8, 0.3, 0.9, 0.9999, 1 - 2.0**-34, 1]
)


def slope(f, u):
    """f'(u), from inside at the ends."""
    if abs(u) < 1:
        return mp.diff(f, u, h=mp.mpf(10) ** -25)
    h = mp.sign(u) * mp.mpf(10) ** -30
    return (f(u) - f(u - h)) / h


# ---- the functions


@EVERY
def test_a_profile_evaluates_its_function(name):
    profile, f, roundings, slopes = ALL[name]
    got, derivative = profile(U), profile.derivative(U)
    assert got.dtype == derivative.dtype == np.float64
    size, steepest = abs(f(mp.mpf(1))), abs(slope(f, mp.mpf(1)))
    for u, value, change in zip(map(mp.mpf, U), got, derivative, strict=True):
        assert abs(mp.mpf(float(value)) - f(u)) <= roundings * EPS * size
        if slopes is not None:
            off = abs(mp.mpf(float(change)) - slope(f, u))
            # a slope of kappa1 is a difference over 1e-30 of what has a root at the end
            assert off <= slopes * EPS * max(steepest, size) + mp.mpf(10) ** -14


def test_kappa0_has_no_derivative_at_the_ends():
    derivative = p.Kappa0().derivative([-1.0, 0.0, 0.6, 1.0])
    np.testing.assert_allclose(derivative, [np.inf, 1 / math.pi, 1.25 / math.pi, np.inf])


def test_shapes_and_numbers_of_any_kind():
    for profile, *_ in ALL.values():
        for u in (0.5, [0.5], [[0.1, 0.2], [0.3, 0.4]], np.float32(0.5), [], 1, [True, False]):
            got = profile(u)
            assert (got.shape, got.dtype) == (np.shape(u), np.float64)
            assert profile.derivative(u).shape == np.shape(u)


def test_power_series_go_beyond_one():
    h = p.PowerSeries((1, 2, 3))
    np.testing.assert_array_equal(h([-2.0, 10.0]), [9, 321])
    np.testing.assert_array_equal(h.derivative([-2.0, 10.0]), [-10, 62])


# ---- values


@EVERY
def test_profiles_and_maps_are_values(name):
    profile = ALL[name][0]
    for value in (profile, kc.DotProduct(profile), kc.CyclicConvolution(3, 2, profile)):
        others = [copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))]
        if not isinstance(profile, p.Fitted):
            others.append(eval(repr(value), {k: getattr(kc, k) for k in kc.__all__}))
        for other in others:
            assert other == value
            assert hash(other) == hash(value)
            assert repr(other) == repr(value)
            assert other != profile or value is profile
    np.testing.assert_array_equal(copy.deepcopy(profile)(U), profile(U))


def test_unlike_profiles_differ():
    values = [profile for profile, *_ in ALL.values()]
    values += [p.Exp(0.7), p.Power(2), p.Fitted(np.exp, 8), kc.Project(), kc.Exp()]
    assert len(set(values)) == len(values)
    assert p.Power(2) != p.PowerSeries((0, 0, 1))
    assert repr(p.Exp(0.5)) == "profiles.Exp(0.5)"
    assert repr(kc.DotProduct((0, 1))) == "DotProduct(profiles.PowerSeries((0.0, 1.0)))"


def test_as_profile():
    assert p.as_profile(p.Exp(1.0)) == p.Exp(1.0)
    assert p.as_profile(np.exp) == p.Fitted(np.exp)
    for c in ((0, 0.5), [0, 0.5], np.array([0, 0.5])):
        assert p.as_profile(c) == p.PowerSeries((0.0, 0.5))
    kernel = kc.presets.mlp(1).nngp
    np.testing.assert_allclose(p.as_profile(kernel.profile)(U), kernel.profile(U), atol=1e-9)


# ---- fits


FITS = {
    "analytic": (np.exp, 16, 1e-15),
    "near pole": (lambda u: 1 / (1.01 - u), 512, 1e-11),
    "even": (lambda u: np.cos(9 * u), 64, 1e-14),
    "root at the end": (lambda u: np.sqrt(1.0 - u), 512, 1e-2),
    "kink": (np.abs, 512, 1e-2),
    "jump": (np.sign, 512, 2.0),
    "oscillating": (lambda u: np.sin(400 * u), 512, 1e-12),
    "too fast": (lambda u: np.sin(3000 * u), 512, 3.0),
    "large": (lambda u: 1e100 * np.exp(u), 16, 1e85),
    "zero": (lambda u: 0 * u, 1, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_fits_state_their_error(name, rng):
    fn, most, bound = FITS[name]
    fit = p.Fitted(fn)
    assert len(fit.coefficients) <= most + 1
    assert fit.error <= bound
    # Elsewhere than where it was measured; a jump can be hit anywhere.
    u = np.concatenate([rng.uniform(-1, 1, 20_000), 1 - np.geomspace(1e-9, 1, 2000)])
    true = np.abs(fit(u) - fn(u)).max()
    assert true <= 3 * fit.error + 64 * EPS * np.abs(fn(u)).max()


def test_the_degree_of_a_fit():
    assert len(p.Fitted(lambda u: 1 + u**3).coefficients) == 4
    assert p.Fitted(lambda u: np.cos(64 * np.arccos(u))).error < 1e-12  # 1 at the first nodes
    for most in (2, 6, 32):
        fit = p.Fitted(np.abs, most)
        assert len(fit.coefficients) == most + 1
        assert 0.1 / most < fit.error < 1 / most


# ---- the compiled operations


def run(profile, u, delta):
    """Correlation, 1 - |correlation| and slope that the operation makes of (u, delta)."""
    op = profile._op()
    record = np.array([(int(op.code), op.n, 0, 0, op.a, op.b, op.c, 0.0)], steps.OP)
    u, delta, t = steps.padded(u), steps.padded(delta), np.ones(steps.STRIP)
    none = np.empty((0, len(u)))
    program = _calls.Program(record.view(np.uint8), np.array(op.coefficients))
    _dispatch.driver("dense").pairs(program, (none, none), (u, delta, t), np.empty((1, 0)))
    return u, delta, t


@EVERY
def test_operations_are_exact_to_16_eps(name):
    """Also of 1 - |p(u)|, relative to itself, however close to 1 the argument and the value are."""
    profile, f, roundings, slopes = ALL[name]
    distances = np.array([0, 2.0**-300, 1e-30, 1e-12, 1e-4, 0.1, 0.5, 0.9, 1.0])
    delta = np.concatenate([distances, distances])
    side = np.repeat([1.0, -1.0], len(distances))
    with mp.workdps(250):
        got = run(profile, side * (1 - delta), delta)
        top, steepest = f(mp.mpf(1)), abs(slope(f, mp.mpf(1)))
        amplified = slopes or roundings
        for k in range(len(delta)):
            u = mp.mpf(side[k]) * (1 - mp.mpf(delta[k]))
            want = f(u) / top
            gap = 1 - abs(want)
            assert abs(mp.mpf(got[0][k]) - want) <= roundings * EPS
            # A fit knows no better than its values what is close to -1.
            own = 4 if isinstance(profile, p.Fitted) and side[k] < 0 else 0
            assert abs(mp.mpf(got[1][k]) - gap) <= (amplified * gap + own) * EPS
            assert (got[0][k] == 1) == (gap < EPS / 4 and want > 0)
            if slopes is not None and (delta[k] > 1e-20 or "kappa" not in name):
                off = abs(mp.mpf(got[2][k]) - slope(f, u) / top)
                assert off <= slopes * EPS * max(steepest / top, 1)


def test_signs_that_are_not_positive_definite_keep_correlations_in_range():
    """p(-1) = -p(1): the even part is zero only up to rounding."""
    profile = p.PowerSeries((0.1 + 0.2 - 0.3, 1.0))
    u, delta, _ = run(profile, np.array([-1.0, 1.0]), np.zeros(2))
    assert (np.abs(u) <= 1).all()
    assert (delta >= 0).all()


# ---- networks


def act(f, df=None):
    """A DotProduct for the oracle: K <- n f(u), T <- T f'(u)."""
    df = df or (lambda u: slope(f, u))

    def entry(v1, v2, cov):
        n = mp.sqrt(v1 * v2)
        if n == 0:
            return mp.mpf(0), mp.mpf(0)
        u = max(min(cov / n, mp.mpf(1)), mp.mpf(-1))
        return n * f(u), df(u)

    return networks.Act("", dual=np.frompyfunc(entry, 3, 2))


def projection():
    def entry(v1, v2, cov):
        n = mp.sqrt(v1 * v2)
        return (mp.mpf(0), mp.mpf(0)) if n == 0 else (cov / n, 1 / n)

    return networks.Act("", dual=np.frompyfunc(entry, 3, 2))


GAUSS = act(ALL["exp"][1], lambda u: mp.exp((u - 1) / mp.mpf(0.6) ** 2) / mp.mpf(0.6) ** 2)
SQUARE = act(lambda u: u**2, lambda u: 2 * u)
RAMP = act(kappa1, kappa0)
RELU = act(lambda u: kappa1(u) / 2, lambda u: kappa0(u) / 2)
NETWORKS = {
    "map alone": ((kc.DotProduct(p.Exp(0.6)),), (GAUSS,)),
    "ckn": (
        (kc.DotProduct(p.Exp(0.6)), kc.Dense(1.1), kc.DotProduct(p.Kappa1()), kc.Dense(0.9)),
        (GAUSS, networks.Dense(1.1), RAMP, networks.Dense(0.9)),
    ),
    "bias": (
        (kc.Dense(0.8, 0.3), kc.DotProduct((0, 0, 1)), kc.Dense(1.2, 0.1), kc.Relu(), kc.Dense()),
        (networks.Dense(0.8, 0.3), SQUARE, networks.Dense(1.2, 0.1), RELU, networks.Dense()),
    ),
    "project": (
        (kc.Dense(1.3), kc.Relu(), kc.Dense(0.7), kc.Project(), kc.DotProduct(p.Kappa1()),
         kc.Dense(trainable=False)),
        (networks.Dense(1.3), RELU, networks.Dense(0.7), projection(), RAMP,
         networks.Dense(trainable=False)),
    ),
    "residual": (
        (kc.Dense(), kc.Residual(kc.DotProduct(p.Exp(0.6)), kc.Dense(0.5), shortcut=kc.Project()),
         kc.Dense(1.5)),
        (networks.Dense(), networks.Residual((GAUSS, networks.Dense(0.5)), (projection(),)),
         networks.Dense(1.5)),
    ),
}  # fmt: skip


def points(rng, dtype):
    """Rows of unlike norm, one zero, a copy, a multiple, an opposite and two neighbours."""
    x = (rng.standard_normal((9, 5)) * rng.uniform(0.3, 2, (9, 1))).astype(dtype)
    x[3] = 0
    x[4], x[5], x[6], x[7] = x[0], 2 * x[1], -x[2], x[8]
    x[7, 0] = np.nextafter(x[7, 0], dtype.type(9))
    return x


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_with_maps(name, dtype, rng):
    layers, described = NETWORKS[name]
    x = points(rng, dtype)
    with mp.workdps(40):
        wants = networks.kernels(described, x, arithmetic=networks.Exact)
    net = kc.Sequential(*layers)
    for got, want in zip(net.kernels(x), wants, strict=True):
        want = want.astype(float)
        d = np.sqrt(np.diag(want))
        # The unit rows, 2 roundings each, and the sum, 5, grow with the slopes of the maps, 3 at
        # most each, and of the layers between.
        assert (np.abs(got - want) <= 160 * np.finfo(dtype).eps * np.outer(d, d)).all()
    for kernel in (net.nngp, net.ntk):
        gram = kernel(x)
        np.testing.assert_array_equal(gram, gram.T)
        np.testing.assert_array_equal(gram, kernel(x, x.copy()))
        np.testing.assert_array_equal(gram[::-1, ::-1], kernel(x[::-1].copy()))
        np.testing.assert_array_equal(np.diag(gram), kernel.diag(x))
        np.testing.assert_array_equal(gram, kernel(x, n_threads=3))


def test_closeness_survives_a_map(dtype):
    """kappa0 after exp: 1 - K is a root of what a plain float32 cannot hold beside 1."""
    angles = np.array([0, 1e-5, 1e-4, 1e-3, 1e-2], dtype)
    x = np.stack([np.cos(angles), np.sin(angles)], 1).astype(dtype)
    net = kc.Sequential(kc.Input(sum=True), kc.DotProduct(p.Exp(0.6)), kc.DotProduct(p.Kappa0()))
    got = net.nngp(x)[0]
    a = [[mp.mpf(float(v)) for v in row] for row in x]
    for j in range(1, len(x)):
        norm = [mp.sqrt(r[0] ** 2 + r[1] ** 2) for r in (a[0], a[j])]
        u = (a[0][0] * a[j][0] + a[0][1] * a[j][1]) / (norm[0] * norm[1])
        want = norm[0] * norm[1] * kappa0(ALL["exp"][1](u))
        assert abs(mp.mpf(float(got[j])) - want) <= 8 * float(np.finfo(dtype).eps)


def test_kappa0_has_an_nngp_and_an_ntk_of_what_comes_after(rng):
    x = rng.standard_normal((6, 3))
    step = kc.DotProduct(p.Kappa0())
    np.testing.assert_allclose(
        kc.Sequential(kc.Input(sum=True), step, kc.Project()).nngp(x), kc.ArcCosine(0)(x), 1e-14
    )
    frozen = kc.Sequential(kc.Dense(trainable=False), step, kc.Dense(1.5))
    np.testing.assert_array_equal(frozen.ntk(x), frozen.nngp(x))


def test_maps_that_have_other_names(rng, dtype):
    x = rng.standard_normal((7, 4)).astype(dtype)
    summed = kc.Input(sum=True)
    tolerance = {"rtol": 0, "atol": 40 * np.finfo(dtype).eps}
    unit = kc.Sequential(summed, kc.Project(), kc.DotProduct(p.Exp(0.7))).nngp
    rows = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(dtype)
    np.testing.assert_allclose(unit(x), kc.Gaussian(0.7)(rows), **tolerance)
    ramp = kc.Sequential(summed, kc.DotProduct(p.Kappa1())).nngp
    np.testing.assert_allclose(ramp(x), kc.ArcCosine(1)(x), rtol=4 * np.finfo(dtype).eps)
    assert kc.Sequential(summed, kc.DotProduct(p.Kappa1())).nngp.profile(0.0) == 1 / math.pi
    linear = kc.Sequential(summed, kc.DotProduct((0, 1))).nngp
    np.testing.assert_allclose(linear(x), x @ x.T, rtol=0, atol=60 * np.finfo(dtype).eps * 4)


def test_project_forgets_norms(rng, dtype):
    x = points(rng, dtype)
    net = kc.Sequential(kc.Dense(1.2), kc.Relu(), kc.Dense(0.9), kc.Project(), kc.Dense())
    nonzero = np.arange(len(x)) != 3
    both = net.kernels(x)
    assert (np.diag(both.nngp) == nonzero).all()
    for gram in both:
        assert (gram[3] == 0).all()
        assert np.isfinite(gram).all()
    for scale in (1e-30, 2.0**-20, 1e15):
        scaled = net.kernels((x * dtype.type(scale)).astype(dtype))
        for a, b in zip(scaled, both, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=100 * np.finfo(dtype).eps)


def test_steps_for_rows_of_given_variances():
    """What the engines ask of a map: the operation, new variances, and slopes of the diagonal."""
    variance = np.array([0.0, 0.5, 4.0])
    step = steps.step(kc.DotProduct((0.5, 0.5, 1.0))._form(), variance, EPS, 1)
    np.testing.assert_array_equal(step.variance, 2 * variance)
    np.testing.assert_array_equal(step.slope, [2.5, 2.5, 2.5])
    assert step.tables.size == 0
    step = steps.step(kc.Project()._form(), variance, EPS, 1)
    assert step.op is None
    np.testing.assert_array_equal(step.variance, [0, 1, 1])
    np.testing.assert_array_equal(step.slope, [0, 2, 0.25])
    step = steps.step(kc.DotProduct(p.Kappa0())._form(), variance, EPS, 1)
    np.testing.assert_array_equal(step.slope, [0, 0, 0])


def test_the_oracle_of_the_ramp_is_the_dual_of_relu():
    for u in (-0.9, 0.0, 0.3, 1.0):
        want = duals.dual("Relu", (), 0.0, 1.0, 1.0, u)
        assert abs(kappa1(mp.mpf(u)) / 2 - want[0]) < 1e-30
        assert abs(kappa0(mp.mpf(u)) / 2 - want[1]) < 1e-30
