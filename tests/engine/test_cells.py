"""Tables of numerical duals: few orders against all of them, interpolants against quadrature."""

import numpy as np
import pytest
from messages import stable

import kernelcore as kc
from kernelcore.engine.cpu import cells, hermite, ladder

EPS = {np.float32: float(np.finfo(np.float32).eps), np.float64: float(np.finfo(np.float64).eps)}
RHO = np.concatenate([[-1.0, 0.0, 1.0], 1 - np.logspace(-9, 0, 19), np.logspace(-9, 0, 19) - 1])


def softsign(x):
    return x / np.sqrt(1 + x * x)


def mish(x):
    return x * np.tanh(np.logaddexp(0, x))


def even(x):
    return x / 3 + 1 / np.cosh(x)


def bell(x):
    return np.exp(x * x / 8)


SMOOTH = (
    kc.Tanh(), kc.Sigmoid(), kc.Silu(), kc.Softplus(), kc.Tanh(shift=1.0), kc.Erf(shift=0.5),
    kc.Erf(shift=-1.0), kc.Gelu(shift=0.5), kc.Activation(softsign), kc.Activation(mish),
)  # fmt: skip
OTHERS = (
    kc.Activation(np.sin), kc.Activation(np.abs), kc.Activation(np.cos, shift=0.3),
    kc.RectifiedPower(2, shift=0.5),
)  # fmt: skip
SDS = np.concatenate([np.logspace(-6, 2, 37), [0.5, 1.0, 2.0, np.nextafter(1.0, 0.0)]])


@pytest.fixture(autouse=True)
def one_thread():
    """Quadratures of single rows have nothing to share."""
    kc.set_threads(1)


# ---- few orders


@pytest.mark.parametrize(("each", "tolerance"), [(ladder.EACH, 3e-15), (ladder.SINGLE, 1e-8)])
def test_few_orders_sum_geometric_series(each, tolerance):
    """Those of u^n are 1/(1-u), those of n u^n are u/(1-u)^2; of one parity as well."""
    n, weights = ladder.orders(24, each), ladder.weights(24, each)
    assert len(n) == len(weights) == ladder.length(24, each)
    assert ladder.octaves_in(len(n), each) == 24
    for gap in np.logspace(-6, 0, 200):
        u = 1 - gap
        terms = weights * np.exp(n * np.log1p(-gap)) if u else np.where(n == 0, weights, 0.0)
        assert terms.sum() * gap == pytest.approx(1, rel=tolerance)
        assert terms[0::2].sum() * gap * (1 + u) == pytest.approx(1, rel=tolerance)
        assert (n * terms).sum() * gap * gap == pytest.approx(u, rel=10 * tolerance)


def test_high_orders_are_hermite_functions():
    """The recurrence, which is stable, against the asymptotics of orders from 256 on."""
    z = np.arange(0, 13, 0.25)
    h = hermite._functions(z, 2050)
    for n in (256, 257, 1024, 1025, 2048, 2049):
        got = ladder._oscillation(n + 0.5, z, n % 2)
        got *= np.sign(got[1] * h[n, 1])
        weight = np.exp(-z * z / 4)
        assert np.abs((got - h[n]) * weight).max() <= 1e-13 * np.abs(h[n]).max()


@pytest.mark.parametrize("activation", SMOOTH, ids=stable)
def test_smooth_functions_need_few_orders(activation):
    assert cells.laddered(activation._form())


@pytest.mark.parametrize("activation", OTHERS, ids=stable)
def test_kinks_and_waves_keep_all_orders(activation):
    assert not cells.laddered(activation._form())


@pytest.mark.parametrize("v", [1e-4, 0.3, 1.0, 30.0, 1e3, 1e4])
def test_few_orders_agree_with_closed_forms(v):
    """Erf and Gelu have closed forms without a shift, at any variance."""
    for closed in (kc.Erf(), kc.Gelu()):
        for w in (v, 4 * v):
            cov = RHO * np.sqrt(v * w)
            got = kc.Activation(closed).dual(v, w, cov)
            for k, want in enumerate(closed.dual(v, w, cov)):
                size = np.sqrt(closed.dual(v, v, v)[k] * closed.dual(w, w, w)[k])
                # Beyond 1e4 the rule of the finest step begins to be too coarse.
                allowed = (3e-14 if w <= 1e4 else 3e-13) * size
                assert (np.abs(got[k] - want) <= allowed).all()


PARITIES = {
    ladder.EVEN: (np.cosh, even, kc.Silu(), kc.Softplus(), kc.Gelu()),
    ladder.ODD: (softsign, kc.Tanh(), kc.Sigmoid(), kc.Erf(), lambda x: 3 - np.arctan(x)),
    ladder.NEITHER: (mish, np.exp, kc.Tanh(shift=1e-3), lambda x: np.tanh(x) + 1e-12 * np.cos(x)),
}


@pytest.mark.parametrize("parity", PARITIES)
def test_functions_of_one_parity_are_found(parity):
    for fn in PARITIES[parity]:
        assert hermite.parity(kc.Activation(fn)._form().fn) == parity


@pytest.mark.parametrize("v", [1e-4, 1.0, 1e3])
def test_one_parity_alone_agrees_with_all_orders(v, monkeypatch):
    """Mehler's series without the orders that vanish, at two unlike variances."""
    for activation in (kc.Tanh(), kc.Sigmoid(), kc.Silu(), kc.Activation(softsign)):
        cov = RHO * np.sqrt(v * 4 * v)
        got = activation.dual(v, 4 * v, cov)
        with monkeypatch.context() as patch:
            patch.setattr(hermite, "parity", lambda fn: ladder.NEITHER)
            want = activation.dual(v, 4 * v, cov)
        for k in (0, 1):
            size = np.sqrt(activation.dual(v, v, v)[k] * activation.dual(4 * v, 4 * v, 4 * v)[k])
            assert np.abs(got[k] - want[k]).max() <= 64 * EPS[np.float64] * size


def far_away(x):
    return np.tanh(x) + np.exp(-(((x - 5310) / 70) ** 2))


def test_what_is_of_no_parity_far_away_is_an_error():
    """The bump is between 2^12.25 and 2^12.5, points that are asked; quadratures see it."""
    activation = kc.Activation(far_away)
    assert cells.parity(activation._form()) == ladder.ODD
    assert activation.dual_error(1.0)[0] == 0
    assert activation.dual_error(1e8)[0] > 1e-4


class Unhashable:
    __hash__ = None

    def __call__(self, x):
        return np.tanh(x)


def test_functions_without_a_hash_have_duals():
    want = kc.Tanh().dual(1.0, 2.0, 0.5)
    assert np.array_equal(kc.Activation(Unhashable()).dual(1.0, 2.0, 0.5), want)


# ---- interpolants


# All of them in double precision; in single precision odd, even, and neither.
INTERPOLATED = [(a, np.float64) for a in SMOOTH]
INTERPOLATED += [(a, np.float32) for a in (kc.Tanh(), kc.Silu(), kc.Erf(shift=0.5))]


@pytest.mark.parametrize(("activation", "dtype"), INTERPOLATED, ids=stable)
def test_interpolants_agree_with_quadrature(activation, dtype):
    form, tolerance = activation._form(), EPS[dtype] / 4
    made = cells.Interpolant(form, tolerance)
    sd = SDS
    got = made(sd, 1)
    a, variance, _ = cells.quadrature(form.fn, made.each, sd, 1)
    new = np.sqrt(variance)
    weight = ladder.weights(ladder.octaves_in(len(a), made.each), made.each)
    n = cells.orders(made.each, len(a))
    slope = (n[:, None] * a * a).sum(0)
    a, weight = (ladder.packed(b, made.parity) for b in (a, weight))
    count = len(got.coefficients)
    allowed = max(EPS[dtype] / 2, 1e-14)
    root = np.sqrt(weight)[:, None]
    error = np.abs(got.coefficients - a[:count] / new) / root[:count]
    assert error.max() <= allowed
    assert (np.abs(a[count:]) <= allowed * root[count:] * new).all()
    assert np.abs(got.sd / new - 1).max() <= allowed
    np.testing.assert_allclose(got.slope, slope / sd**2, rtol=max(4 * allowed, 1e-11))


def test_a_row_has_the_same_tables_alone_and_among_others():
    made = cells.Interpolant(kc.Silu()._form(), EPS[np.float64] / 4)
    sd = np.concatenate([SDS, [0.0, 1e-200, 1.0]])
    whole = made(sd, 1)
    again = cells.Interpolant(kc.Silu()._form(), EPS[np.float64] / 4)
    for k in np.random.default_rng(0).permutation(len(sd)):
        one = again(sd[k : k + 1], 2)
        count = len(one.coefficients)
        assert np.array_equal(one.coefficients[:, 0], whole.coefficients[:count, k])
        assert not whole.coefficients[count:, k].any()
        assert (one.sd[0], one.slope[0]) == (whole.sd[k], whole.slope[k])


def test_cells_that_are_not_resolved_are_cut_or_given_up():
    """A function infinite at a cell's nodes but not at its rows is integrated row by row."""
    made = cells.Interpolant(kc.Activation(bell)._form(), EPS[np.float64] / 4)
    sd = np.array([1.0, np.sqrt(1.9)])
    _, variance, _ = cells.quadrature(bell, made.each, sd, 1)
    got = made(sd, 1)
    np.testing.assert_allclose(got.sd, np.sqrt(variance), rtol=1e-14)
    assert None in made._cells.values()


def test_cells_are_few(monkeypatch):
    monkeypatch.setattr(cells, "MOST_CELLS", 3)
    made = cells.Interpolant(kc.Softplus()._form(), EPS[np.float32] / 4)
    made(np.logspace(-1, 1, 20), 1)
    assert len(made._cells) == 3


# ---- networks


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("activation", [kc.Tanh(), kc.Softplus(), kc.Erf(shift=0.5)], ids=repr)
def test_entries_depend_on_their_two_rows_alone(activation, dtype):
    net = kc.Sequential(kc.Dense(2.0), activation, kc.Dense(), activation, kc.Dense())
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((23, 3)) * np.logspace(-3, 1.5, 23)[:, None]).astype(dtype)
    x[5], x[9], x[17] = x[2], 0.0, x[11]
    whole = net.ntk(x)
    order = rng.permutation(len(x))
    assert np.array_equal(net.ntk(x[order]), whole[np.ix_(order, order)])
    assert np.array_equal(net.ntk.diag(x), np.diag(whole))
    assert whole[2, 5] == whole[2, 2]
    assert whole[11, 17] == whole[11, 11]
    for i, j in ((0, 22), (9, 4), (13, 12)):
        assert net.ntk(x[i : i + 1], x[j : j + 1])[0, 0] == whole[i, j]


def test_large_inputs_are_exact():
    """At size 100 Erf with its closed form and as any other function agree."""
    x = np.random.default_rng(4).standard_normal((6, 4)) * 100
    nets = [
        kc.Sequential(kc.Dense(), phi, kc.Dense(), phi, kc.Dense())
        for phi in (kc.Erf(), kc.Activation(kc.Erf()))
    ]
    want, got = (net.ntk(x) for net in nets)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    single = nets[1].ntk(x.astype(np.float32))
    np.testing.assert_allclose(single, want, rtol=2e-5)
