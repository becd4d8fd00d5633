"""Duals against the oracle: 16 eps of the diagonal plus what one ulp of the covariance does."""

from functools import cache
from itertools import combinations_with_replacement

import mpmath as mp
import numpy as np
import pytest
from oracle import duals, make_duals

import kernelcore as kc

EPS = 2.0**-52
TINY = np.finfo(float).tiny  # below it a result may lose digits, or be zero

# Errors of the numerical duals, in units of sqrt(D(v1) D(v2)), as their docstrings state them.
NUMERICAL_TOLERANCE = {
    "Tanh": 1e-10,  # the derivative at variance 30 and |rho| near 1; see below
    "Sigmoid": 1e-13,
    "Silu": 1e-13,
    "Softplus": 1e-13,
    "Elu": 1e-13,
    "Selu": 1e-13,
    "RectifiedPower": 2e-6,
    "shifted": 1e-13,  # kinks, Erf and Gelu away from the origin
}
# A function that is zero around zero has an exponentially small dual: right to this, absolutely.
FLOOR = 1e-15

HOMOGENEOUS = (
    ("Relu", ()), ("LeakyRelu", (0.2,)), ("Abs", ()), ("Step", ()), ("Sign", ()), ("Identity", ()),
    *(("RectifiedPower", (n,)) for n in (0, 1, 2, 3, 5)),
    *(("Monomial", (n,)) for n in (1, 2, 3, 5)),
)  # fmt: skip
SERIES = ((0.3, -1.2, 0.5, 0.1), (0.0, 1.0, 0.0, -1 / 6, 0.0, 1 / 120))
ENTIRE = (
    ("Sin", ()), ("Cos", ()), ("Exp", ()), ("GaussianBump", ()),
    *(("Hermite", (n,)) for n in (0, 1, 2, 3, 6, 10)),
    *(("PowerSeries", (c,)) for c in SERIES),
)  # fmt: skip
SHIFTED = (*ENTIRE, ("Identity", ()), ("Monomial", (3,)))
CLOSED = (
    *((*a, 0.0) for a in (*HOMOGENEOUS, ("Erf", ()), ("Gelu", ()), *ENTIRE)),
    *((*a, shift) for a in SHIFTED for shift in (0.5, -0.3)),
)


@pytest.fixture(autouse=True)
def one_thread():
    """Quadratures of single rows have nothing to share."""
    kc.set_threads(1)


def build(name, params, shift):
    return getattr(kc, name)(*params, shift=shift)


def label(activation):
    name, params, shift = activation
    return f"{name}({', '.join([*map(str, params), *([f'shift={shift}'] if shift else [])])})"


class Grid:
    """Oracle values on unordered pairs of variances; asks the package for both orders at once."""

    def __init__(self, activation, pairs, rhos):
        self.activation = activation
        self.entries = [
            (v1, v2, rho, duals.covariance(rho, v1, v2)) for v1, v2 in pairs for rho in rhos
        ]

    def check(self, got_from, want_at, tolerance):
        """An error of output k may be tolerance(k, want, what one ulp does, size, rho)."""
        v = np.array([(v1, v2, cov) for v1, v2, _, cov in self.entries])
        orders = [got_from(v[:, 0], v[:, 1], v[:, 2]), got_from(v[:, 1], v[:, 0], v[:, 2])]
        failures = []
        for i, (v1, v2, rho, cov) in enumerate(self.entries):
            want, ulps = want_at(v1, v2, cov)
            for k in range(2):
                size = mp.sqrt(diagonal(self.activation, v1)[k] * diagonal(self.activation, v2)[k])
                allowed = tolerance(k, want[k], ulps[k], size, rho)
                if allowed is None:
                    continue
                for order, got in zip({(v1, v2): 0, (v2, v1): 0}, orders, strict=False):
                    error = excess(float(got[k][i]), want[k], allowed)
                    if not error <= 1:
                        where = f"v1={order[0]:g} v2={order[1]:g} rho={rho!r}"
                        values = f"got {float(got[k][i])!r}, want {mp.nstr(want[k], 17)}"
                        failures.append(
                            (error, f"{('dual', 'derivative')[k]} at {where}: {values}")
                        )
        failures.sort(key=lambda f: -f[0])
        text = "\n".join(f"  {error:9.3g} tolerances  {text}" for error, text in failures[:8])
        assert not failures, f"{label(self.activation)}: {len(failures)} values are off\n{text}"


def excess(got, want, allowed):
    """Error in units of what is allowed; infinite where the true value is and only there."""
    if abs(want) > np.finfo(float).max:
        return 0.0 if got == float(mp.sign(want)) * np.inf else np.inf
    if not np.isfinite(got):
        return np.inf
    return float(abs(mp.mpf(got) - want) / (allowed + TINY))


@cache
def diagonal(activation, v):
    key = repr(activation)
    if activation in make_duals.ACTIVATIONS and v in duals.VARIANCES:
        row = table()[key][make_duals.PAIRS.index((v, v)), duals.RHO.index(1.0)]
        return mp.mpf(row[0]), mp.mpf(row[1])
    return duals.dual(*activation, v, v, v)


@cache
def table():
    with np.load(make_duals.TABLE) as arrays:
        return {key: arrays[key] for key in arrays.files}


def live(activation):
    return lambda v1, v2, cov: oracle_at(activation, v1, v2, cov)


@cache
def oracle_at(activation, v1, v2, cov):
    want = duals.dual(*activation, v1, v2, cov)
    return want, duals.ulp_effect(*activation, v1, v2, cov, want)


def frozen(activation):
    values = table()[repr(activation)]
    cov = {
        (v1, v2, duals.covariance(rho, v1, v2)): values[i, j]
        for i, (v1, v2) in enumerate(make_duals.PAIRS)
        for j, rho in enumerate(duals.RHO)
    }

    def want_at(v1, v2, c):
        d, slope, *ulps = map(mp.mpf, cov[v1, v2, c])
        return (d, slope), ulps

    return want_at


def pairs(variances):
    return tuple(combinations_with_replacement(variances, 2))


def strict(_, want, ulp, size, rho):
    return 16 * EPS * size + ulp


def stated(name):
    return lambda _, want, ulp, size, rho: NUMERICAL_TOLERANCE[name] * size + ulp + FLOOR


@pytest.mark.parametrize("activation", CLOSED, ids=label)
def test_closed_forms_are_exact_to_16_eps(activation):
    wide = activation in [(*a, 0.0) for a in (*HOMOGENEOUS, ("Erf", ()))]
    grid = Grid(activation, pairs(duals.WIDE_VARIANCES if wide else duals.VARIANCES), duals.RHO)
    grid.check(build(*activation).dual, live(activation), strict)


@pytest.mark.parametrize("activation", [(*a, 0.0) for a in HOMOGENEOUS], ids=label)
def test_homogeneous_duals_are_exact_to_1e_12_relative(activation):
    """Powers of four and a representable rho: the covariance is exact, so no ulp is forgiven."""

    def relative(_, want, ulp, size, rho):
        return None if rho == -1 or want == 0 else mp.mpf(1e-12) * abs(want)

    grid = Grid(activation, pairs((2.0**-26, 0.25, 1.0, 4.0, 2.0**26)), duals.RHO)
    grid.check(build(*activation).dual, live(activation), relative)


@pytest.mark.parametrize("activation", [(*a, 0.0) for a in HOMOGENEOUS], ids=label)
def test_homogeneous_duals_are_exact_to_1e_12_relative_beyond_one_ulp(activation):
    def relative(_, want, ulp, size, rho):
        return None if rho == -1 or want == 0 else mp.mpf(1e-12) * abs(want) + ulp

    grid = Grid(activation, pairs(duals.WIDE_VARIANCES), duals.RHO)
    grid.check(build(*activation).dual, live(activation), relative)


@pytest.mark.parametrize("name", ["Relu", "Abs", "Step", "Sign", "Identity", "Erf", "Gelu"])
def test_variances_near_the_ends_of_the_range(name):
    activation = (name, (), 0.0)
    grid = Grid(activation, pairs((1e-300, 1.0, 1e300)), duals.RHO)
    grid.check(build(*activation).dual, live(activation), strict)


@pytest.mark.parametrize(
    ("activation", "v"),
    [
        (("Exp", (), 0.0), 800.0),
        (("Sin", (), 0.0), 800.0),
        (("Cos", (), 0.0), 800.0),
        (("Monomial", (5,), 0.0), 1e80),
        (("Monomial", (5,), 0.0), 1e-80),
        (("RectifiedPower", (3,), 0.0), 1e120),
        (("RectifiedPower", (3,), 0.0), 1e-120),
        (("PowerSeries", ((0.0, 1.0, 0.0, 2.0),), 0.0), 1e120),
        (("Hermite", (4,), 0.0), 1e90),
        (("GaussianBump", (), 0.0), 1e200),
    ],
    ids=lambda p: label(p) if isinstance(p, tuple) else f"{p:g}",
)
def test_overflow_to_inf_and_underflow_to_zero_where_the_true_value_does(activation, v):
    grid = Grid(activation, ((v, v),), (-1.0, -0.5, 0.0, 0.5, 1.0))

    def own(_, want, ulp, size, rho):  # the diagonal may be infinite while the value is not
        return 16 * EPS * min(size, mp.mpf(np.finfo(float).max)) + ulp if abs(want) < 1e308 else 0

    grid.check(build(*activation).dual, live(activation), own)


@pytest.mark.parametrize("activation", make_duals.ACTIVATIONS, ids=label)
def test_numerical_duals_are_as_exact_as_stated(activation):
    name = activation[0] if activation[0] in NUMERICAL_TOLERANCE else "shifted"
    grid = Grid(activation, make_duals.PAIRS, duals.RHO)
    grid.check(build(*activation).dual, frozen(activation), stated(name))


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_tanh_is_exact_to_1e_13_below_variance_10(shift):
    activation = ("Tanh", (), shift)
    pairs = [p for p in make_duals.PAIRS if max(p) <= 10]
    grid = Grid(activation, pairs, duals.RHO)
    grid.check(build(*activation).dual, frozen(activation), stated("Sigmoid"))


@pytest.mark.parametrize(
    "activation",
    [("Tanh", (), 0.0), ("Softplus", (), 0.5), ("Erf", (), -0.3), ("Gelu", (), 0.5)],
    ids=label,
)
def test_dual_of_a_smooth_callable(activation):
    name, params, shift = activation
    plain, _ = duals.functions(name, params, 0.0, duals.NP)
    grid = Grid(activation, make_duals.PAIRS, duals.RHO)
    grid.check(kc.Activation(plain, shift=shift).dual, frozen(activation), stated("Tanh"))


EVERY = (*CLOSED, *make_duals.ACTIVATIONS)
ELSEWHERE = {"Activation", "OneKink"}  # functions of any form: other tests have them
VALUES = (-40.0, -7.5, -1.0, -0.3, -1e-3, -1e-9, 1e-9, 1e-3, 0.25, 1.0, 2.0, 9.0, 40.0)


@pytest.mark.parametrize("activation", EVERY, ids=label)
def test_calling_an_activation_evaluates_it(activation):
    name, _, shift = activation
    x = np.array([v for v in VALUES if v != -shift])
    got, slopes = build(*activation)(x), build(*activation).derivative(x)
    f, df = duals.functions(*activation)
    assert (got.shape, got.dtype) == (slopes.shape, slopes.dtype) == (x.shape, np.float64)
    for value, result, derivative in zip(x, got, slopes, strict=True):
        want, slope = f(mp.mpf(value)), df(mp.mpf(value))
        # one rounding of x + shift, amplified by the function, and a few of its own
        allowed = EPS * (8 * abs(want) + 4 * (abs(value) + abs(shift)) * abs(slope))
        if name in duals.POLYNOMIALS:  # a sum of terms that may cancel
            z = abs(mp.mpf(value) + mp.mpf(shift))
            coefficients = duals.polynomial(*activation[:2])
            allowed += 8 * EPS * sum((k + 1) * abs(c) * z**k for k, c in enumerate(coefficients))
        error = excess(float(result), want, allowed)
        assert error <= 1, (
            f"{label(activation)} at {value}: got {result!r}, want {want}, {error:.3g} tolerances"
        )
        # A wrong formula is off by far more than the digits that a slope loses where it cancels.
        assert float(derivative) == pytest.approx(float(slope), rel=1e-9, abs=1e-9)


def test_no_activation_is_left_out():
    assert {name for name, *_ in EVERY} | ELSEWHERE == set(kc.activations.__all__)


@pytest.mark.parametrize("activation", EVERY, ids=label)
def test_dual_broadcasts_and_takes_scalars(activation):
    dual = build(*activation).dual
    v1, v2, cov = np.array([[0.5], [2.0]]), np.array([1.0, 3.0, 0.5]), 0.25
    whole = dual(v1, v2, cov)
    assert len(whole) == 2
    scalars = [[dual(float(a), float(b), cov) for b in v2] for a in v1[:, 0]]
    for k, values in enumerate(whole):
        assert (values.shape, values.dtype) == ((2, 3), np.float64)
        one_by_one = [[found[k] for found in row] for row in scalars]
        assert {np.ndim(value) for row in one_by_one for value in row} == {0}
        if activation in CLOSED:
            assert np.array_equal(values, one_by_one)
        else:
            np.testing.assert_allclose(values, one_by_one, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("activation", EVERY, ids=label)
def test_zero_variances_give_finite_duals(activation):
    dual = build(*activation).dual
    assert np.isfinite([dual(0.0, 0.0, 0.0), dual(0.0, 2.0, 0.0), dual(2.0, 0.0, 0.0)]).all()


JUMPS = {(name, params, 0.0) for name, params in HOMOGENEOUS[3:5]} | {("RectifiedPower", (0,), 0.0)}


@pytest.mark.parametrize("activation", [a for a in EVERY if a not in JUMPS], ids=label)
def test_the_dual_at_zero_variance_is_the_square_of_the_value_at_zero(activation):
    value = float(build(*activation).dual(0.0, 0.0, 0.0)[0])
    want = float(duals.functions(*activation)[0](mp.mpf(0)) ** 2)
    assert value == pytest.approx(want, rel=1e-12, abs=1e-12)


# ---- kinks in single precision, whose duals have operations of their own


def single_and_double(activation, x, y):
    """NNGP and NTK of one layer in both precisions, and the standard deviations of both sides."""
    net = kc.Sequential(kc.Dense(), activation, kc.Dense())
    wide = [a.astype(np.float64) for a in (x, y)]
    own = [[np.sqrt(np.diagonal(k)) for k in net.kernels(a)] for a in wide]
    sizes = [np.outer(*pair) for pair in zip(*own, strict=True)]
    return net.kernels(x, y), net.kernels(*wide), sizes


def spread(rng, n):
    """Rows of standard deviations 0.1 to 5, some next to others or opposite to them."""
    x = rng.standard_normal((n, 4))
    x[n // 2 :] = x[: n - n // 2] + 1e-3 * rng.standard_normal((n - n // 2, 4))
    x[: n // 8] = -x[n // 8 : 2 * (n // 8)]
    x /= np.sqrt((x * x).mean(1, keepdims=True))
    return (x * 10 ** rng.uniform(-1, 0.7, (n, 1))).astype(np.float32)


def errors_in_single_precision(activation, x):
    """Those of K and of T, relative to the diagonal."""
    got, want, sizes = single_and_double(activation, x, x[::-1].copy())
    return [np.abs(g - w) / size for g, w, size in zip(got, want, sizes, strict=True)]


@pytest.mark.parametrize(
    "activation",
    [
        kc.Elu(), kc.Selu(), kc.OneKink(0.0, (0.0, 0.5, 0.0), (2.0, 0.3, -2.0)),
        kc.Elu(shift=0.3), kc.Relu(shift=0.5), kc.Abs(shift=-1.0), kc.LeakyRelu(0.2, shift=1e-4),
        kc.Step(shift=0.5), kc.Sign(shift=-0.3), kc.OneKink(0.7, (1.0, 2.0, 0.0), (0.5, -1.0, 0.0)),
        kc.Relu(shift=-0.1), kc.Step(shift=-0.1),
    ],
    ids=repr,
)  # fmt: skip
def test_single_precision_agrees_with_double(activation, rng):
    """To 5e-6 of the diagonal, as one_kink.h states, and mostly far better."""
    for error in errors_in_single_precision(activation, spread(rng, 96)):
        assert error.max() < 5e-6
        assert np.sqrt((error**2).mean()) < 3e-7


@pytest.mark.parametrize(
    "activation",
    [kc.Elu(), kc.Selu(), kc.OneKink(0.0, (0.0, 1.0, 0.0), (-0.2, 0.0, 0.2))],
    ids=repr,
)
def test_bent_functions_are_right_to_single_precision(activation, rng):
    """To 1e-6 of the diagonal, as bent.h states, which holds for the standard deviations here."""
    x = spread(rng, 96)
    x[:, 0] *= rng.choice([1.0, 1e-3], 96)
    for error in errors_in_single_precision(activation, x):
        assert error.max() < 1e-6
        assert np.sqrt((error**2).mean()) < 2e-7


@pytest.mark.parametrize(
    "activation",
    [
        kc.Elu(), kc.Selu(), kc.Relu(shift=0.5), kc.Step(shift=-0.5), kc.Abs(shift=0.1), kc.Erf(),
        kc.Gelu(), kc.Sin(), kc.RectifiedPower(2),
    ],
    ids=repr,
)  # fmt: skip
def test_both_orders_give_the_same_bits(activation, rng):
    x = spread(rng, 40)
    x /= np.float32(3)  # standard deviations below 2
    net = kc.Sequential(kc.Dense(), activation, kc.Dense())
    for k, t in zip(net.kernels(x[:25], x[25:]), net.kernels(x[25:], x[:25]), strict=True):
        assert np.array_equal(k, t.T)


@pytest.mark.parametrize(
    "activation",
    [
        kc.Relu(shift=0.5), kc.Abs(shift=-1.0), kc.Step(shift=0.3), kc.Sign(shift=-0.3),
        kc.OneKink(0.7, (1.0, 2.0, 0.0), (0.5, -1.0, 0.0)),
    ],
    ids=repr,
)  # fmt: skip
def test_rows_have_the_variance_that_the_dual_of_a_row_with_itself_states(activation):
    """Kinks away from zero have a formula of their own for it; both round a few times."""
    sd = 10 ** np.linspace(-2, 1, 50)
    net = kc.Sequential(kc.Dense(), activation, kc.Dense())
    k, t = (np.diagonal(full) for full in net.kernels(sd[:, None]))
    value, slope = activation.dual(sd**2, sd**2, sd**2)
    np.testing.assert_allclose(k, value, rtol=1e-14)
    np.testing.assert_allclose(t, value + slope * sd**2, rtol=1e-14)


# ---- the oracle itself

ORACLE = (
    *((name, params, shift) for name, params in make_duals.SMOOTH[:4] for shift in (0.0, 0.5)),
    *CLOSED,
)


@pytest.mark.parametrize("activation", ORACLE, ids=label)
def test_oracle_agrees_with_quadrature_of_the_definition(activation):
    for v1, v2, rho in ((1.0, 1.0, 0.3), (0.1, 3.0, -0.9), (3.0, 1.0, 0.7)):
        cov = duals.covariance(rho, v1, v2)
        want = duals.by_quadrature(*activation, v1, v2, cov)
        for k, value in enumerate(duals.dual(*activation, v1, v2, cov)):
            size = mp.sqrt(diagonal(activation, v1)[k] * diagonal(activation, v2)[k])
            assert abs(value - want[k]) <= 1e-13 * size, (label(activation), v1, v2, rho)


@pytest.mark.parametrize("activation", make_duals.ACTIVATIONS, ids=label)
def test_frozen_table_agrees_with_quadrature_of_the_definition(activation):
    want_at = frozen(activation)
    for v1, v2, rho in ((1.0, 1.0, 0.3), (0.1, 3.0, -0.9), (1.0, 3.0, -0.5)):
        cov = duals.covariance(rho, v1, v2)
        want = duals.by_quadrature(*activation, v1, v2, cov)
        for k, value in enumerate(want_at(v1, v2, cov)[0]):
            size = mp.sqrt(diagonal(activation, v1)[k] * diagonal(activation, v2)[k])
            assert abs(value - want[k]) <= 1e-13 * size, (label(activation), v1, v2, rho)


# ---- what numerical duals say of their own error


@pytest.mark.parametrize("v", [0.3, 2.0, 30.0])
def test_the_stated_error_of_a_kinked_callable_holds(v):
    """A series across a kink converges slowly and says so; Relu has the exact dual."""
    relu = kc.Activation(lambda x: np.maximum(x, 0.0))
    rho = np.array([-0.9, 0.0, 0.5, 0.99, 1.0])
    with pytest.warns(RuntimeWarning, match="is off by about"):
        got = relu.dual(v, v, v * rho)[0]
    want = kc.Relu().dual(v, v, v * rho)[0]
    (stated,) = relu.dual_error([v])
    assert 0 < stated < 1e-3
    assert (np.abs(got - want) <= stated * v / 2).all()
