"""What numerical duals say of their own error: warnings, errors, and silence, held to mpmath."""

import functools
import math
import warnings

import mpmath as mp
import numpy as np
import pytest

import kernelcore as kc
from kernelcore.engine import accuracy as _accuracy

BOUND = 1e-5
# Correlations at which a series of 2048 terms is off by most, and others.
RHO = np.concatenate([1 - np.logspace(-5, 0, 41), np.logspace(-5, 0, 41) - 1, [1.0]])


@pytest.fixture(autouse=True)
def one_thread():
    """Quadratures of single rows have nothing to share."""
    kc.set_threads(1)


def relu(x):
    return np.maximum(x, 0)


def softsign(x):
    return x / np.sqrt(1 + x * x)


def bell(x):
    return np.exp(x * x / 8)


# function, its derivative, where that is not smooth
FUNCTIONS = {
    "relu": (relu, lambda x: mp.mpf(x > 0), [0]),
    "abs": (np.abs, lambda x: mp.sign(x), [0]),
    "moved": (lambda x: np.maximum(x + 0.3, 0), lambda x: mp.mpf(x > -0.3), [-0.3]),
    "square": (lambda x: relu(x) ** 2, lambda x: 2 * max(x, 0), [0]),
    "elu": (kc.Elu(), lambda x: mp.exp(min(x, 0)), [0]),
    "tanh": (np.tanh, lambda x: mp.sech(x) ** 2, [0]),
    "erf": (kc.Erf(), lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x), [0]),
    "bump": (lambda x: np.exp(-(x**2)), lambda x: -2 * x * mp.exp(-x * x), [0]),
    "softsign": (softsign, lambda x: (1 + x * x) ** mp.mpf(-1.5), [0]),
    "sine": (np.sin, mp.cos, []),
    "bell": (bell, lambda x: x / 4 * mp.exp(x * x / 8), [0]),
    "cube": (lambda x: x**3, lambda x: 3 * x * x, []),
}
# To 64 there is one step of the rule, to 256 another, then a third.
VARIANCES = {name: [0.1, 1.0, 10.0, 100.0, 1000.0] for name in FUNCTIONS}
# Homogeneous functions have the same series, times a number, wherever the step is the same.
VARIANCES |= {name: [1.0, 100.0, 1000.0] for name in ("relu", "abs", "square", "cube")}
# At 1.9 and more of E[bell^2] something lies beyond 13 standard deviations: a case of its own.
VARIANCES["bell"] = [0.1, 1.0]
CASES = [(name, v) for name, some in VARIANCES.items() for v in some]


def mean(f, sd, breaks):
    """E[f(sd z)] for a standard normal z, by mpmath."""
    scale = sorted({s * r for s in (-1, 1) for r in (0, 1 / sd, 4 / sd, 1, 4, 12) if r <= 12})
    edges = sorted({mp.mpf(x) for x in (*scale, *(b / sd for b in breaks))})
    return mp.quad(lambda z: f(sd * z) * mp.npdf(z), edges)


@functools.cache
def numerically(name, v):
    """Both duals at RHO, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return kc.Activation(FUNCTIONS[name][0]).dual(v, v, v * RHO), caught


@pytest.mark.parametrize(("name", "v"), CASES)
def test_the_error_of_the_derivatives_dual_is_known(name, v):
    """It is largest where both inputs are one: an integral over a line."""
    mp.mp.dps = 20
    fn, derivative, breaks = FUNCTIONS[name]
    if name == "sine":  # cos^2 = (1 + cos 2x)/2
        want = (1 + mp.exp(-2 * v)) / 2
    else:
        want = mean(lambda x: derivative(x) ** 2, math.sqrt(v), breaks)
    (_, slopes), caught = numerically(name, v)
    got, activation = slopes[RHO == 1][0], kc.Activation(fn)
    true = abs(float((mp.mpf(float(got)) - want) / want))
    (stated,) = activation.dual_error(v, slope=True)
    # Power laws of the last octave: exact for kinks, up to three times too much for what falls
    # faster; where the law has no sum, everything may be missing. A tail below 64 eps of the
    # variance counts as rounding, and the derivative's dual has 2048 times as much of it.
    rounding = 64 * 2048 * 2.0**-52
    assert true <= 1.5 * stated + rounding
    assert stated <= 5 * true + rounding
    assert len(caught) == (stated > BOUND)
    if true > 1.5 * BOUND:
        assert caught
    if true < BOUND / 5:
        assert not caught


def exactly(name, v):
    """Duals of the same function by another way, at RHO."""
    closed = {
        "relu": kc.Relu(), "abs": kc.Abs(), "moved": kc.Relu(shift=0.3), "elu": kc.Elu(),
        "square": kc.RectifiedPower(2), "erf": kc.Erf(), "bump": kc.GaussianBump(),
        "sine": kc.Sin(),
    }  # fmt: skip
    if name in closed:
        return closed[name].dual(v, v, v * RHO)[0]
    if name == "bell":  # a Gaussian integral
        return ((1 - v / 4) ** 2 - (RHO * v / 4) ** 2) ** -0.5
    fn, sd = FUNCTIONS[name][0], math.sqrt(v)
    # The trapezoidal rule on the plane: error exp(-2 pi p / (sd h)), p >= 1 off the real line.
    z = np.arange(-9, 9, min(0.1, 2 * math.pi / (36 * sd)))
    weight = np.exp(-z * z / 2)
    weight /= weight.sum()
    first = weight * fn(sd * z)
    return np.array(
        [
            first @ (fn(sd * (r * z[:, None] + math.sqrt((1 - r) * (1 + r)) * z)) @ weight)
            for r in RHO
        ]
    )


WITHIN_THE_ORACLE = [
    (name, v) for name, v in CASES if v < 300 or name not in ("tanh", "softsign", "cube")
]


@pytest.mark.parametrize(("name", "v"), WITHIN_THE_ORACLE)
def test_the_error_of_the_dual_is_known(name, v):
    activation = kc.Activation(FUNCTIONS[name][0])
    want, got = exactly(name, v), numerically(name, v)[0][0]
    true = float(np.abs(got - want).max() / np.abs(want).max())
    (stated,) = activation.dual_error(v)
    # Kinks: where they fall between nodes decides how well one rule does and another does not.
    assert true <= 3 * stated + 1e-12
    assert (
        stated <= (100 if name in {"relu", "abs", "moved", "square", "elu"} else 5) * true + 1e-11
    )

    net = kc.Sequential(kc.Dense(), activation, kc.Dense(trainable=False))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net.nngp.profile(RHO, radius=math.sqrt(v))
    assert len(caught) == (stated > BOUND)
    if true > 3 * BOUND:
        assert caught
    if true < BOUND / 100:
        assert not caught


def test_the_rule_on_the_plane_agrees_with_mpmath():
    mp.mp.dps = 15
    r = mp.mpf(RHO[30])
    s = mp.sqrt(1 - r * r)

    def pair(z, w):
        return mp.tanh(z) * mp.tanh(r * z + s * w) * mp.npdf(z) * mp.npdf(w)

    want = mp.quad(pair, [-9, 0, 9], [-9, 0, 9], maxdegree=4)  # beyond: 1e-17
    assert abs(exactly("tanh", 1.0)[30] - want) <= 1e-12 * want


@pytest.mark.parametrize("v", [300.0, 1000.0])
def test_large_coefficients_after_small_ones_are_found(v):
    """Those of sin(sd z) are largest about n = v, and rounding before."""
    value, slope = kc.Activation(np.sin).dual(v, v, v * RHO)
    want = kc.Sin().dual(v, v, v * RHO)
    np.testing.assert_allclose(value, want[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(slope, want[1], rtol=0, atol=1e-12)


# ---- wherever they are used, once


KINK = kc.Activation(relu)
NET = kc.Sequential(kc.Dense(), KINK, kc.Dense(), KINK, kc.Dense())
IMAGES = kc.Sequential(kc.Conv(3), KINK, kc.Conv(3), KINK, kc.GlobalAvgPool(), kc.Dense())
ROWS = np.random.default_rng(1).standard_normal((4, 3))
PICTURES = np.random.default_rng(2).standard_normal((3, 3, 3, 1))
USES = {
    "ntk": lambda: NET.ntk(ROWS),
    "nngp": lambda: NET.nngp(ROWS, ROWS),
    "float32": lambda: NET.ntk(ROWS.astype(np.float32)),
    "sum": lambda: (NET.ntk + 2 * NET.nngp)(ROWS),
    "product": lambda: (NET.ntk * kc.Gaussian(1.0))(ROWS),
    "diag": lambda: NET.ntk.diag(ROWS),
    "profile": lambda: NET.ntk.profile(RHO),
    "kernels": lambda: NET.kernels(ROWS),
    "terms": lambda: NET.ntk.terms(ROWS),
    "cyclic": lambda: kc.CyclicConvolution(2, 2, NET.ntk)(ROWS),
    "images": lambda: IMAGES.ntk(PICTURES),
    "images, nngp": lambda: IMAGES.nngp(PICTURES, PICTURES),
    "images, diag": lambda: IMAGES.ntk.diag(PICTURES),
    "images, kernels": lambda: IMAGES.kernels(PICTURES),
    "dual": lambda: KINK.dual(1.0, 2.0, [0.5, 0.0]),
    "shift": lambda: kc.Erf(shift=0.5).dual([1.0, 1e8], 1e8, 0.1),
}


@pytest.mark.parametrize("use", USES)
def test_one_warning_where_the_user_called(use, monkeypatch):
    monkeypatch.setattr("kernelcore.engine.cpu.images.TILE_BYTES", 1)  # many tiles
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        USES[use]()
    (found,) = caught
    assert found.category is RuntimeWarning
    assert found.filename == __file__
    assert _accuracy._here.call is None


def test_the_warning_says_what_and_where():
    with pytest.warns(RuntimeWarning) as caught:
        kc.Activation(np.sign).dual(4.0, 4.0, 1.0)
    text = (
        "the derivative's dual of Activation(<ufunc 'sign'>) is off by about 1 of its size at "
        "variance 4, more than 1e-05: it has a kink, or changes too fast at that scale; use an "
        "activation with a closed form, such as OneKink, or scale X or w_std down"
    )
    assert [str(w.message) for w in caught] == [text]


def test_the_derivative_matters_to_tangent_kernels_alone():
    net = kc.Sequential(kc.Dense(400.0), kc.Tanh(), kc.Dense())
    x = np.array([[1.0]])
    net.nngp(x)  # 1e-7
    with pytest.warns(RuntimeWarning, match=r"^the derivative's dual of Tanh\(\) is off by about"):
        net.ntk(x)


STATED = {  # up to which variances: of the dual 1e-13, 1e-5; of the derivative's 1e-5
    kc.Tanh(): (1e4, 1e5, 1e5),
    kc.Sigmoid(): (1e4, 1e6, 2e5),
    kc.Silu(): (1e4, 1e6, 2e5),
    kc.Softplus(): (1e4, 1e6, 2e5),
}


@pytest.mark.parametrize("activation", STATED, ids=repr)
def test_named_activations_are_as_good_as_they_say(activation):
    fine, silent, slope = STATED[activation]
    low = np.logspace(-6, 0, 10)
    assert (activation.dual_error(fine * low) <= 1e-13).all()
    assert (activation.dual_error(silent * low) <= BOUND).all()
    assert (activation.dual_error(slope * low, slope=True) <= BOUND).all()
    for v in (slope, slope / 50):
        activation.dual(v, v, v / 2)  # warnings are errors here


# ---- duals that are infinite


def test_a_dual_is_right_warned_about_or_refused():
    """exp(x^2/8) has the dual ((1 - v/4)^2 - (u v/4)^2)^-1/2, infinite at u = 1 from v = 2 on."""
    bells = kc.Activation(bell)
    for v in (0.5, 1.0, 1.2):  # to 1.2 nothing is left at 13 standard deviations
        np.testing.assert_allclose(bells.dual(v, v, v * RHO)[0], exactly("bell", v), rtol=1e-13)
    for v in (1.9, 1.95):
        with pytest.warns(RuntimeWarning, match="is off by about"):
            got = bells.dual(v, v, v)[0]
        true = abs(got / exactly("bell", v)[-1] - 1)
        assert true / 3 <= bells.dual_error(v)[0] <= 10 * true
    for v in (2.0, 2.1, 3.0, 30.0, 100.0):
        with pytest.raises(ValueError, match=r"^fn must "):
            bells.dual(v, v, 0.5 * v)
        with pytest.raises(ValueError, match=r"^fn must "):
            kc.Sequential(kc.Dense(math.sqrt(v)), bells, kc.Dense()).nngp([[1.0]])


def test_polynomials_of_high_degree_do_not_look_infinite():
    assert kc.Activation(lambda x: x**20).dual_error(1.0)[0] == 0
