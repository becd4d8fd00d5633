"""Values of network kernels: published codes, the recursion in 50 digits, float32 by float64."""

import math
from typing import NamedTuple

import mpmath as mp
import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from oracle import duals, networks

import kernelcore as kc

EPS = 2.0**-52
EPS32 = 2.0**-23
ROOT2 = math.sqrt(2)

# ---- published codes, on X[i, j] = sin(1 + 0.9 i + 1.7 j)

X = np.sin(1 + 0.9 * np.arange(3)[:, None] + 1.7 * np.arange(4))
DIM = 4


def one_hidden(activation):
    return kc.Sequential(kc.Dense(1.3, 0.2), activation, kc.Dense(1.1, 0.3))


TWO_HIDDEN = kc.Sequential(
    kc.Dense(ROOT2, 0.1), kc.Relu(), kc.Dense(ROOT2, 0.1), kc.Relu(), kc.Dense(ROOT2, 0.1)
)
PUBLISHED = {  # neural-tangents 0.6.5, ten digits
    "relu": (
        TWO_HIDDEN,
        [0.9447283326, 0.7864716854, 0.4732376936],
        [2.804184998, 1.683637739, 0.6022517394],
    ),
    "erf": (
        one_hidden(kc.Erf()),
        [0.6043313338, 0.4213771566, 0.05558396177],
        [1.211726605, 0.7748316512, 0.0211450055],
    ),
    "sin": (
        one_hidden(kc.Sin()),
        [0.5759745214, 0.3935906602, 0.05893685183],
        [1.164567733, 0.7305488591, 0.02783532193],
    ),
}
UCI_FIX_0 = [1.372092499, 0.8153343513, 0.2809620114]  # depth 3: two hidden layers
UCI_FIX_1 = [0.9147283326, 0.6432372009, 0.2970165371]
EIGENPRO_BIAS_1 = [8.488369996, 5.547444661, 2.976294471]  # depth 3


@pytest.mark.parametrize("name", PUBLISHED)
def test_neural_tangents(name):
    net, nngp, ntk = PUBLISHED[name]
    both = net.kernels(X)
    for got, want in ((both.nngp, nngp), (both.ntk, ntk), (net.nngp(X), nngp), (net.ntk(X), ntk)):
        np.testing.assert_allclose(got[0], want, rtol=1e-9)


def stack(first, w_std, depth, **options):
    """``depth`` Dense with Relu between, after an input layer."""
    layers = [kc.Dense(w_std, **options)]
    for _ in range(depth - 1):
        layers += [kc.Relu(), kc.Dense(w_std)]
    return kc.Sequential(first, *layers)


def test_uci():
    # Unit weights on <x, x'>; fix = 1 leaves the first layer out of the NTK.
    free = stack(kc.Input(sum=True), 1.0, 3)
    fixed = stack(kc.Input(sum=True), 1.0, 3, trainable=False)
    np.testing.assert_allclose(free.ntk(X)[0], UCI_FIX_0, rtol=1e-9)
    np.testing.assert_allclose(fixed.ntk(X)[0], UCI_FIX_1, rtol=1e-9)
    np.testing.assert_allclose(DIM * stack(kc.Input(), 1.0, 3).ntk(X)[0], UCI_FIX_0, rtol=1e-9)


def test_eigenpro():
    # Without bias it is 2^(depth-1) UCI = d/2 ours(sqrt 2).
    ours = DIM / 2 * stack(kc.Input(), ROOT2, 3).ntk
    np.testing.assert_allclose(ours(X)[0], 4 * np.array(UCI_FIX_0), rtol=1e-9)
    # Its bias enters T alone, T <- T kappa0 + S + bias^2: with bias 1 that adds
    # 1 + kappa0(S_2) + kappa0(S_2) kappa0(S_1), and kappa0 is twice the covariance after a Step.
    one = kc.Sequential(kc.Dense(0.0, b_std=1.0)).nngp
    inner = 2 * kc.Sequential(kc.Dense(), kc.Step()).nngp
    outer = 2 * kc.Sequential(kc.Dense(), kc.Relu(), kc.Dense(), kc.Step()).nngp
    np.testing.assert_allclose(
        (ours + one + outer + outer * inner)(X)[0], EIGENPRO_BIAS_1, rtol=1e-9
    )


# ---- presets.mlp on the sphere: S_l = kappa1(S_(l-1)), T_l = T_(l-1) kappa0(S_(l-1)) + S_l


def kappas(u):
    """kappa0 and kappa1 of an mpf."""
    angle = mp.acos(u)
    k0 = 1 - angle / mp.pi
    return k0, u * k0 + mp.sqrt(1 - u * u) / mp.pi


COSINES = [-1.0, -1 + 1e-12, -1 + 1e-4, -0.7, -1e-9, 0.0, 1e-9, 0.4, 0.99, 1 - 1e-4, 1 - 1e-12, 1.0]


@pytest.mark.parametrize("depth", range(6))
def test_mlp_profile_is_the_seeds_recursion(depth):
    net = kc.presets.mlp(depth)
    got = np.stack([net.nngp.profile(COSINES), net.ntk.profile(COSINES)])
    for i, u in enumerate(COSINES):
        s = t = mp.mpf(u)
        for _ in range(depth):
            k0, k1 = kappas(s)
            s, t = k1, t * k0 + k1
        # A layer adds 8 eps to S and to its factor of T; kappa1' <= 1 and kappa0 <= 1 hand errors
        # on undiminished at worst, and T <= depth + 1. 1 - S is carried, so kappa0 is as good.
        bound = 8 * EPS * (depth + 1)
        assert abs(got[0, i] - s) <= bound, (depth, u)
        assert abs(got[1, i] - t) <= bound * (depth + 1), (depth, u)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_mlp_gram_on_the_sphere_is_its_profile(depth):
    # Unit vectors of the plane times sqrt 2, an input variance of 1.
    angles = np.linspace(0.1, 3.0, 7)
    x = np.stack([np.cos(angles), np.sin(angles)], 1) * ROOT2
    u = np.cos(angles[:, None] - angles)
    net = kc.presets.mlp(depth)
    for kernel in (net.nngp, net.ntk):
        got, want = kernel(x), kernel.profile(np.clip(u, -1, 1))
        # 4 eps in u, times kappa0' = 1/(pi sin(angle)) <= 1/(pi 0.4) off the diagonal.
        np.testing.assert_allclose(got, want, rtol=0, atol=32 * EPS * (depth + 1) ** 2)


# ---- terms of the NTK

BLOCK = kc.Residual(kc.Relu(), kc.Dense(1.2, 0.1), shortcut=kc.Dense(0.8, 0.3))
NESTED = kc.Residual(
    kc.Erf(), kc.Dense(1.1), kc.Residual(kc.Gelu(), kc.Dense(0.7, 0.2)), kc.Dense(0.9, 0.1)
)
WITH_TERMS = {
    "relu": TWO_HIDDEN,
    "erf": one_hidden(kc.Erf()),
    "residual": kc.Sequential(kc.Dense(1.2), BLOCK, BLOCK, kc.Relu(), kc.Dense()),
    "nested": kc.Sequential(kc.Dense(1.2, 0.2), NESTED, kc.Sin(), kc.Dense(1.3)),
    "frozen": kc.Sequential(
        kc.Dense(1.2, trainable=False),
        BLOCK,
        kc.Relu(),
        kc.Dense(1.1, 0.2, trainable=False),
        kc.Relu(),
        kc.Dense(),
    ),
}


def dense_layers(layers):
    """Every Dense in the order of the forward pass, a branch before its shortcut."""
    for layer in layers:
        if isinstance(layer, kc.Residual):
            yield from dense_layers(layer.layers)
            yield from dense_layers(layer.shortcut)
        elif isinstance(layer, kc.Dense):
            yield layer


def training(layers, keep):
    """The layers with ``trainable`` of every Dense taken from the iterator."""
    changed = []
    for layer in layers:
        if isinstance(layer, kc.Residual):
            branch = training(layer.layers, keep)
            layer = kc.Residual(*branch, shortcut=tuple(training(layer.shortcut, keep)))
        elif isinstance(layer, kc.Dense):
            layer = kc.Dense(layer.w_std, layer.b_std, trainable=next(keep))
        changed.append(layer)
    return changed


@pytest.mark.parametrize("name", WITH_TERMS)
def test_terms_sum_to_the_ntk_and_partial_sums_freeze(name, rng, dtype):
    net = WITH_TERMS[name]
    x, y = (rng.standard_normal((n, 5)).astype(dtype) for n in (7, 4))
    trainable = [layer.trainable for layer in dense_layers(net.layers)]
    trained = np.flatnonzero(trainable)
    terms = net.ntk.terms(x, y)
    assert terms.shape == (len(trained), 7, 4)
    assert terms.dtype == dtype
    # Terms are one pass each, of at most 4 eps per operation, of which there are below 20; the sum
    # of sizes bounds what they add up to.
    size = np.abs(terms).sum(0)
    tolerance = 80 * np.finfo(dtype).eps * size.max()
    np.testing.assert_allclose(terms.sum(0), net.ntk(x, y), rtol=0, atol=tolerance)
    for kept in ([0], [len(trained) - 1], list(range(0, len(trained), 2))):
        keep = np.zeros(len(trainable), bool)
        keep[trained[kept]] = True
        part = kc.Sequential(*training(net.layers, iter(keep.tolist())))
        np.testing.assert_allclose(terms[kept].sum(0), part.ntk(x, y), rtol=0, atol=tolerance)
        np.testing.assert_array_equal(part.nngp(x, y), net.nngp(x, y))


def test_terms_of_a_symmetric_matrix_and_of_a_network_without_training(rng):
    x = rng.standard_normal((5, 3))
    net = WITH_TERMS["residual"]
    np.testing.assert_array_equal(net.ntk.terms(x), net.ntk.terms(x, x))
    frozen = kc.Sequential(kc.Dense(trainable=False), kc.Relu(), kc.Dense(trainable=False))
    assert frozen.ntk.terms(x).shape == (0, 5, 5)
    np.testing.assert_array_equal(frozen.ntk(x), np.zeros((5, 5)))


# ---- random networks against the recursion, with a running error bound
#
# The oracle walks (K, T) through a network in 50 digits. Beside them go bounds of what rounding
# does, to first order: e_k of K and e_v of the variances (both in units of the geometric mean of
# the variances), e_t of T. A Dense or a sum of two sides adds LAYER roundings; an activation adds
# LOCAL (what its dual promises) and hands on what it got, multiplied by its own sensitivity, which
# finite differences of the oracle's dual measure:
#     e_k' = |dD/dK| e_k + |dD/dv| e_v + LOCAL,
#     e_t' = |S| e_t + |T| (|dS/dK| e_k + |dS/dv| e_v + LOCAL),   D the dual, S of the derivative.
# On the diagonal K is a variance and moves with them. Bounds have a leading axis over EPSILON.

DTYPES = (np.float64, np.float32)
EPSILON = np.array([EPS, EPS32])[:, None, None]
LAYER = 8 * EPSILON
LOCAL = 16 * EPSILON
STATED = 1e-12  # numerical duals, as documented
STEP = 1e-8


class State(NamedTuple):
    v1: np.ndarray  # (n, 1) variances
    v2: np.ndarray  # (1, m)
    k: np.ndarray  # (n, m)
    t: np.ndarray
    e_v: np.ndarray  # (2, 1, 1): the worst row
    e_k: np.ndarray  # (2, n, m)
    e_t: np.ndarray  # (2, n, m)


class OutOfRange(Exception):
    """Variances beyond what the duals of this activation are documented for."""


def as_float(a):
    return np.asarray(a, np.float64)


def root(s):
    return np.sqrt(as_float(s.v1) * as_float(s.v2))


def activate(act, s):
    moderate = act.shift or act.name not in HOMOGENEOUS
    for v in (s.v1, s.v2):
        low, high = as_float(v).min(), as_float(v).max()
        if (moderate and not (1e-4 < low and high < 30)) or not 1e-6 < low <= high < 1e6:
            raise OutOfRange
    dual = networks.Exact.dual(act)
    k, slope = dual(s.v1, s.v2, s.k)
    own, grown = ([dual(v * h, v * h, v * h) for v in (s.v1, s.v2)] for h in (1, 1 + STEP))
    size, slope_size = (np.sqrt(as_float(own[0][i] * own[1][i])) for i in range(2))
    growth = max(np.abs(as_float(g[0] / d[0] - 1)).max() for g, d in zip(grown, own, strict=True))
    if s.v1.shape == s.k.shape and (s.v1 == s.k).all():
        moves = [(grown[0], STEP, s.e_v)]
    else:
        inward = (1 - STEP) * s.k - STEP / 2 * root(s)  # |K| <= sqrt(v1 v2) stays
        by_v = dual(s.v1 * (1 + STEP), s.v2 * (1 + STEP), s.k)
        step = np.abs(as_float(s.k - inward)) / root(s)
        moves = [(dual(s.v1, s.v2, inward), step, s.e_k), (by_v, STEP, s.e_v)]

    def effect(i):
        at = (k, slope)[i]
        return sum(np.abs(as_float(moved[i] - at)) / step * e for moved, step, e in moves)

    local = np.maximum(LOCAL, STATED if is_numerical(act) else 0.0)
    e_v = growth / STEP * s.e_v + local
    # e_k is in units of the new size, and that has the errors of the variances.
    e_k = effect(0) / size + local + e_v
    e_t = np.abs(as_float(slope)) * s.e_t + np.abs(as_float(s.t)) * (effect(1) + local * slope_size)
    return State(own[0][0], own[1][0], k, slope * s.t, e_v, e_k, e_t)


def dense(layer, s):
    w2, b2 = (mp.mpf(value) ** 2 for value in (layer.w_std, layer.b_std))
    v1, v2, k = (w2 * a + b2 for a in (s.v1, s.v2, s.k))
    after = State(v1, v2, k, w2 * s.t + (k if layer.trainable else 0), s.e_v + LAYER, 0, 0)
    e_k = float(w2) * root(s) * s.e_k / root(after) + LAYER
    e_t = float(w2) * s.e_t + LAYER * np.abs(as_float(after.t)) + root(after) * e_k
    return after._replace(e_k=e_k, e_t=e_t)


def join(a, b):
    s = State(*(p + q for p, q in zip(a[:4], b[:4], strict=True)), 0, 0, 0)
    e_v = np.maximum(a.e_v, b.e_v) + LAYER
    e_k = (root(a) * a.e_k + root(b) * b.e_k) / root(s) + LAYER
    e_t = a.e_t + b.e_t + LAYER * (np.abs(as_float(a.t)) + np.abs(as_float(b.t)))
    return s._replace(e_v=e_v, e_k=e_k, e_t=e_t)


def walk(network, s):
    for layer in network:
        if isinstance(layer, networks.Dense):
            s = dense(layer, s)
        elif isinstance(layer, networks.Act):
            s = activate(layer, s)
        else:
            s = join(walk(layer.branch, s), walk(layer.shortcut, s))
    return s


def start(x, y, input_sum):
    x, y = (networks.Exact.array(a) for a in (x, y))
    d = x.shape[1]
    scale = 1 if input_sum else mp.mpf(d)
    k = (x[:, None, :] * y[None, :, :]).sum(-1) / scale
    v1, v2 = (x * x).sum(-1)[:, None] / scale, (y * y).sum(-1)[None, :] / scale
    # Unit rows are off by 2 roundings, their product by d more.
    none = np.zeros((2, *k.shape))
    return State(v1, v2, k, 0 * k, 4 * EPSILON, none + (d + 4) * EPSILON, none)


HOMOGENEOUS = ("Relu", "LeakyRelu", "Abs", "Step", "Sign", "RectifiedPower", "Identity", "Monomial")
CHEAP = (
    *((name, ()) for name in ("Relu", "Abs", "Step", "Sign", "Erf", "Gelu", "Sin", "Cos", "Exp")),
    ("LeakyRelu", (0.1,)), ("LeakyRelu", (-0.4,)), ("GaussianBump", ()), ("Identity", ()),
    ("RectifiedPower", (2,)), ("RectifiedPower", (3,)), ("Monomial", (2,)), ("Hermite", (3,)),
    ("PowerSeries", ((0.3, -1.2, 0.5, 0.1),)),
)  # fmt: skip
LOGISTIC = tuple((name, ()) for name in duals.LOGISTIC)
INTEGRATED = (
    ("Elu", ()),
    ("Selu", ()),
    ("RectifiedPower", (2,)),
    ("Gelu", ()),
    ("Erf", ()),
    *CHEAP[:4],
)
SHIFTED_CHEAP = (
    "Sin",
    "Cos",
    "Exp",
    "GaussianBump",
    "Hermite",
    "PowerSeries",
    "Monomial",
    "Identity",
)


def is_numerical(act):
    if act.name in SHIFTED_CHEAP:
        return False
    return bool(act.shift) or act.name in (*duals.LOGISTIC, *duals.ELUS)


def by_quadrature(name, params, shift):
    """A dual from the definition, in doubles (1e-14); one integral where the pair is degenerate."""
    functions = duals.functions(name, params, shift, duals.NP)

    def entry(v1, v2, cov):
        v1, v2, cov = float(v1), float(v2), float(cov)
        if cov < (1 - 1e-12) * math.sqrt(v1 * v2):
            return duals.by_quadrature(name, params, shift, v1, v2, cov, nodes=16)
        nodes, weights = leggauss(40)
        kink = min(12.0, max(-12.0, -shift / math.sqrt(v1)))
        cuts = np.concatenate([np.linspace(-12, kink, 9), np.linspace(kink, 12, 9)[1:]])
        half = np.diff(cuts)[:, None] / 2
        g = (cuts[:-1, None] + half) + half * nodes
        w = half * weights * np.exp(-g * g / 2) / math.sqrt(2 * math.pi)
        return tuple(
            float((w * f(math.sqrt(v1) * g) * f(math.sqrt(v2) * g)).sum()) for f in functions
        )

    return np.frompyfunc(entry, 3, 2)


def draw_activation(rng, kind):
    if kind == "integrated":
        name, params = INTEGRATED[rng.integers(len(INTEGRATED))]
        shift = float(rng.choice([-0.4, 0.3, 0.6]))
        return networks.Act(name, params, shift, by_quadrature(name, params, shift))
    pool = LOGISTIC if kind == "logistic" else CHEAP
    name, params = pool[rng.integers(len(pool))]
    shifting = (kind == "logistic" or name in SHIFTED_CHEAP) and rng.random() < 0.4
    return networks.Act(name, params, float(rng.normal()) / 2 if shifting else 0.0)


def draw_dense(rng):
    b_std = float(rng.choice([0.0, 0.2, 0.7]))
    return networks.Dense(float(rng.uniform(0.5, 1.6)), b_std, bool(rng.random() < 0.75))


def draw_network(rng, kind, depth):
    """Dense, then ``depth`` times an activation or a residual connection around one."""
    network = [draw_dense(rng)]
    for level in range(depth):
        special = kind if level == depth - 1 else "cheap"
        act = draw_activation(rng, special)
        if rng.random() < 0.4:
            branch = [act, draw_dense(rng)]
            if special == "cheap" and rng.random() < 0.4:  # one inside another
                inner = networks.Residual((draw_activation(rng, "cheap"), draw_dense(rng)))
                branch += [inner, draw_dense(rng)]
            shortcut = (draw_dense(rng),) if rng.random() < 0.5 else ()
            network.append(networks.Residual(tuple(branch), shortcut))
        else:
            network += [act, draw_dense(rng)]
    return tuple(network)


def build(network):
    layers = []
    for layer in network:
        if isinstance(layer, networks.Dense):
            layers.append(kc.Dense(*layer))
        elif isinstance(layer, networks.Act):
            layers.append(getattr(kc, layer.name)(*layer.params, shift=layer.shift))
        else:
            layers.append(kc.Residual(*build(layer.branch), shortcut=tuple(build(layer.shortcut))))
    return layers


def draw(seed, kind, depth):
    """A network of ours and of the oracle, and two sets of float32 rows."""
    rng = np.random.default_rng(seed)
    while True:
        network = draw_network(rng, kind, depth)
        input_sum = bool(rng.random() < 0.2)
        n, m = (2, 1) if kind == "integrated" else (3, 2)
        scale = rng.uniform(0.3, 2, (n + m, 1)) / (2 if input_sum else 1)
        x, y = np.split((scale * rng.standard_normal((n + m, 5))).astype(np.float32), [n])
        try:
            ends = [walk(network, start(x, y, input_sum))]
            ends += [walk(network, start(row[None], row[None], input_sum)) for row in y]
        except OutOfRange:
            continue
        return kc.Sequential(kc.Input(sum=input_sum), *build(network)), x, y, ends


CASES = [
    *(("cheap", depth, seed) for seed in range(12) for depth in (1, 2, 3, 5)),
    *(("logistic", depth, 100 + seed) for seed in range(6) for depth in (1, 3)),
    *(("integrated", depth, 200 + seed) for seed in range(7) for depth in (1, 2)),
]


@pytest.mark.parametrize(("kind", "depth", "seed"), CASES)
def test_random_networks_match_the_recursion(kind, depth, seed):
    net, x, y, ends = draw(seed, kind, depth)
    for i, dtype in enumerate(DTYPES):
        pairs = [net.kernels(x.astype(dtype), y.astype(dtype))]
        pairs += [net.kernels(row[None].astype(dtype)) for row in y]
        for both, s in zip(pairs, ends, strict=True):
            error = (s.e_k[i] + EPSILON[i]) * root(s), s.e_t[i] + EPSILON[i] * root(s)
            for got, want, allowed in zip(both, (s.k, s.t), error, strict=True):
                excess = np.abs(as_float(networks.Exact.array(got) - want)) / allowed
                worst = np.unravel_index(excess.argmax(), excess.shape)
                assert excess.max() <= 1, (
                    f"{dtype.__name__}: got {got[worst]!r}, want {mp.nstr(want[worst], 17)}, "
                    f"{excess.max():.3g} bounds at {worst}\n{net!r}"
                )
            # A bound that allows everything proves nothing.
            assert s.e_k[i].max() < (1e-10, 1e-2)[i]


# ---- near the diagonal

DISTANCES = [0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1]


def neighbours(rng, x, distance):
    """Each row moved by ``distance`` times its norm along a random direction, in float32."""
    away = rng.standard_normal(x.shape)
    away *= np.linalg.norm(x, axis=1, keepdims=True) / np.linalg.norm(away, axis=1, keepdims=True)
    return (x + distance * away).astype(np.float32)


@pytest.mark.parametrize("depth", range(1, 6))
@pytest.mark.parametrize("dim", [3, 784])
def test_float32_is_as_good_beside_the_diagonal_as_far_from_it(rng, depth, dim):
    x = rng.standard_normal((60, dim)).astype(np.float32)
    net = kc.presets.mlp(depth)
    for kernel in (net.nngp, net.ntk):
        far = rng.standard_normal((60, dim)).astype(np.float32)
        wide = kernel(x.astype(np.float64), far.astype(np.float64))
        size = np.sqrt(np.outer(kernel.diag(x), kernel.diag(far)))
        # Far away: d + 4 roundings at worst in u, in practice their root, kappa0' <= 1.8 (above the
        # threshold below which 1 - u comes from the rows themselves), each layer a few of its own.
        bound = 4 * EPS32 * (1 + 0.5 * depth)
        assert (np.abs(kernel(x, far) - wide) <= bound * size).all()
        # Beside the diagonal there is no cancellation: only the roundings of two standard
        # deviations, their product and the factor on it remain, well within the same bound.
        for distance in DISTANCES:
            y = neighbours(rng, x, distance)
            got = np.diagonal(kernel(x, y))
            want = np.diagonal(kernel(x.astype(np.float64), y.astype(np.float64)))
            error = np.abs(got - want) / want
            assert error.max() <= 4 * EPS32, (distance, error.max() / EPS32)


@pytest.mark.parametrize("depth", [1, 3, 5])
def test_float64_beside_the_diagonal_matches_the_recursion(rng, depth):
    x = rng.standard_normal((3, 6)).astype(np.float32)
    layers = [networks.Dense(1.0)]
    for _ in range(depth):
        layers += [networks.Act("Relu"), networks.Dense(ROOT2)]
    net = kc.presets.mlp(depth)
    for distance in DISTANCES[1:]:
        y = neighbours(rng, x, distance)
        both = net.kernels(x.astype(np.float64), y.astype(np.float64))
        for i in range(len(x)):
            want = networks.kernels(layers, x[i : i + 1], y[i : i + 1], arithmetic=networks.Exact)
            for got, exact in zip(both, want, strict=True):
                assert abs(got[i, i] / exact[0, 0] - 1) <= 4 * EPS * (1 + 0.5 * depth), distance


def images(rng, n):
    """Rows like small grey pictures: 28 x 28, bytes over 255, half of them zero."""
    across, down = np.meshgrid(np.linspace(-1, 1, 28), np.linspace(-1, 1, 28))
    centre, width = rng.uniform(-0.5, 0.5, (n, 6, 2)), rng.uniform(0.1, 0.6, (n, 6, 2))
    strength = rng.uniform(-0.6, 1, (n, 6))
    strength[:, 0] = 1.2
    flat = np.stack([across.ravel(), down.ravel()])
    light = np.zeros((n, 784))
    for k in range(6):
        gap = (flat - centre[:, k, :, None]) / width[:, k, :, None]
        light += strength[:, k, None] * np.exp(-(gap**2).sum(1))
    light += 0.05 * rng.standard_normal(light.shape) * (light > 0.1)
    return (np.rint(255 * np.clip(light, 0, 1)) / 255).astype(np.float32)


def test_float32_gram_of_images_with_copies(rng):
    """2,000 rows, 200 of them copies and 200 copies times 1.5: the numbers the project promises."""
    rows = images(rng, 1600)
    assert 0.3 < (rows == 0).mean() < 0.8
    assert (rows.any(1)).all()
    x = np.concatenate([rows, rows[:200], np.float32(1.5) * rows[200:400]])
    original, copy, scaled = np.arange(200), np.arange(1600, 1800), np.arange(1800, 2000)
    kernel = kc.presets.mlp(3).ntk
    got, wide = kernel(x), kernel(x.astype(np.float64))
    assert np.abs(got / wide - 1).max() <= 5e-6
    np.testing.assert_array_equal(got[copy], got[original])
    np.testing.assert_array_equal(got[:, copy], got[:, original])
    np.testing.assert_array_equal(got[original, copy], got[original, original])
    # A scaled copy has correlation 1: its entry is the geometric mean of two diagonals.
    mean = np.sqrt(wide[scaled, scaled] * wide[scaled - 1600, scaled - 1600])
    np.testing.assert_allclose(got[scaled, scaled - 1600], mean, rtol=4 * EPS32)
    # The smallest eigenvalue is at least -1e-8 of the largest: shifted by that much of a Rayleigh
    # quotient, which the largest exceeds, the matrix has a Cholesky factor (to n eps = 4e-13).
    double = got.astype(np.float64)
    vector = double @ double.sum(1)
    largest = vector @ double @ vector / (vector @ vector)
    np.linalg.cholesky(double + 1e-8 * largest * np.eye(len(x)))


# ---- random finite networks: as they widen, their kernels approach ours like width^(-1/2)

WIDTHS = (48, 160, 512)
DRAWS = 24

RELU = (
    networks.Dense(1.4, 0.1), networks.Act("Relu"), networks.Dense(1.4, 0.1), networks.Act("Relu"),
    networks.Dense(1.0, 0.2),
)  # fmt: skip
FROZEN = (
    networks.Dense(1.2, 0.3, False), networks.Act("Erf"), networks.Dense(1.1, 0.2),
    networks.Act("Sin"), networks.Dense(0.9, 0.0, False),
)  # fmt: skip
RESIDUAL = (
    networks.Dense(1.1),
    networks.Residual((networks.Act("Relu"), networks.Dense(1.2, 0.2)), ()),
    networks.Residual((networks.Act("Tanh"), networks.Dense(0.9)), (networks.Dense(0.8),)),
    networks.Act("Gelu"),
    networks.Dense(1.2),
)
SHIFTED = (networks.Dense(1.3), networks.Act("Relu", (), 0.5), networks.Dense(1.1, 0.1))


@pytest.mark.parametrize(
    "network", [RELU, FROZEN, RESIDUAL, SHIFTED], ids=["relu", "frozen", "residual", "shifted"]
)
def test_wide_networks_converge(network):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((4, 3))
    want = np.stack(kc.Sequential(*build(network)).kernels(x))
    size = np.sqrt(np.einsum("kii,kjj->kij", want, want))
    spread = []
    for width in WIDTHS:
        draws = np.stack([networks.sample(network, x, width, rng) for _ in range(DRAWS)])
        error = draws.mean(0) - want
        standard = draws.std(0, ddof=1) / np.sqrt(DRAWS)
        # The mean over draws has a bias of order 1/width, far below its standard error.
        assert (np.abs(error) <= 5 * standard + 2 / width * size).all(), (width, error / standard)
        spread.append(np.sqrt((((draws - want) / size) ** 2).mean((0, 2, 3))))
    # 24 draws know a spread to 15 %; over a factor 10 of width that is 0.1 of slope.
    slopes = np.polyfit(np.log(WIDTHS), np.log(spread), 1)[0]
    np.testing.assert_allclose(slopes, -0.5, atol=0.15)


def test_a_wrong_kernel_would_be_noticed():
    """The widest networks tell ours from one whose last bias is off by 0.1."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((4, 3))
    wrong = kc.Sequential(*build(RELU[:-1]), kc.Dense(1.0, 0.3)).nngp(x)
    draws = np.stack([networks.sample(RELU, x, WIDTHS[-1], rng)[0] for _ in range(DRAWS)])
    standard = draws.std(0, ddof=1) / np.sqrt(DRAWS)
    assert (np.abs(draws.mean(0) - wrong) > 5 * standard).any()
