"""Convolutional kernels: published codes, random networks, invariances, finite networks."""

import concurrent.futures
import math
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from described import build
from oracle import networks, spatial
from scipy import ndimage

import kernelcore as kc
from kernelcore.engine.cpu import dispatch as _dispatch
from kernelcore.engine.cpu import images as _spatial

EPS = np.array([2.0**-52, 2.0**-23])  # of the two dtypes below
DTYPES = (np.float64, np.float32)
ROOT2 = math.sqrt(2)

# ---- published codes


def waves(phase, *steps):
    """sin(phase + step_0 i_0 + step_1 i_1 + ...) for (size, step) along each axis."""
    total = np.array(phase)
    for size, step in steps:
        total = total[..., None] + step * np.arange(size)
    return np.sin(total)


I = waves(1.0, (2, 2.3), (6, 1.1), (6, 0.7), (2, 1.9))  # noqa: E741
Z = waves(0.5, (3, 1.7), (10, 0.9), (2, 2.1))
J = waves(1.0, (3, 2.3), (8, 1.3), (8, 0.6), (3, 1.9))


def two_layers(readout, padding="same"):
    conv = kc.Conv(3, padding=padding, w_std=ROOT2, b_std=0.1)
    return kc.Sequential(conv, kc.Relu(), conv, kc.Relu(), readout, kc.Dense(ROOT2, 0.1))


CONV = kc.Conv(3, w_std=ROOT2, b_std=0.1)
SIGNAL = kc.Conv((4,), padding="circular", w_std=ROOT2, b_std=0.1)
PUBLISHED = {  # neural-tangents 0.6.5, ten digits
    "pooled": (
        I, two_layers(kc.GlobalAvgPool()),
        [0.3510374748, 0.3470418536],
        [0.5785737597, 0.5581670066],
    ),
    "flat": (
        I, two_layers(kc.Flatten()),
        [0.6920354741, 0.2542868341],
        [2.046106422, 0.2192348655],
    ),
    "circular": (
        I, two_layers(kc.GlobalAvgPool(), "circular"),
        [0.56674668, 0.5670608263],
        [0.9609899185, 0.9559889019],
    ),
    "erf": (
        J,
        kc.Sequential(
            CONV, kc.Erf(), kc.AvgPool(2), CONV, kc.Erf(), kc.AvgPool(2), kc.Flatten(),
            kc.Dense(ROOT2, 0.1),
        ),
        [0.09053391756, -0.001488521702, 0.02839554618],
        [0.2623744481, -0.0436097722, 0.05260696465],
    ),
    "signal": (
        Z, kc.Sequential(SIGNAL, kc.Relu(), kc.GlobalAvgPool(), kc.Dense(ROOT2, 0.1)),
        [0.425137491, 0.3959402382, 0.3701607669],
        [0.5969481962, 0.5278544869, 0.4811889882],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_neural_tangents(name):
    x, net, nngp, ntk = PUBLISHED[name]
    both = net.kernels(x)
    for got, want in ((both.nngp, nngp), (both.ntk, ntk), (net.nngp(x), nngp), (net.ntk(x), ntk)):
        np.testing.assert_allclose(got[0], want, rtol=1e-9)


def ckn(layers):
    """The preset of (patch, subsampling, profile, parameters) for each layer."""
    patches, pools, names, parameters = zip(*layers, strict=True)
    profiles = [getattr(kc.profiles, n)(*p) for n, p in zip(names, parameters, strict=True)]
    return kc.presets.ckn(patches, pools, profiles)


ONE_LAYER = [(3, 2, "Exp", (0.6,))]


def test_values_of_other_codes():
    for kernel, want in (
        (kc.presets.cntk(3, gap=False, fix=False).ntk, [71.72649787, 6.843455928]),
        (kc.presets.cntk(3, gap=True, fix=True).ntk, [0.1453118433, 0.1375700291]),
        (ckn(ONE_LAYER).nngp, [6.756918382, 4.592331759]),
    ):
        np.testing.assert_allclose(kernel(I)[0], want, rtol=1e-9)


@pytest.mark.parametrize("shape", [(5, 5, 3), (4, 7, 1), (6, 2, 2)], ids=str)
@pytest.mark.parametrize("fix", [False, True])
@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("depth", [2, 3, 5])
def test_cntk_is_the_published_recursion(rng, depth, gap, fix, shape):
    x = rng.standard_normal((3, *shape))
    got = kc.presets.cntk(depth, gap=gap, fix=fix).ntk(x)
    np.testing.assert_allclose(got, as_float(spatial.cntk(x, depth, gap, fix)), rtol=1e-11)
    # The same in our own units (CONVENTIONS): sums over C channels, and over positions unless gap.
    if not fix:
        layers = [kc.Conv(3, w_std=ROOT2), kc.Relu()] * (depth - 1)
        readout = kc.GlobalAvgPool() if gap else kc.Flatten()
        ours = kc.Sequential(*layers, readout, kc.Dense(ROOT2)).ntk(x)
        scale = shape[2] / 2 * (1 if gap else shape[0] * shape[1])
        np.testing.assert_allclose(got, scale * ours, rtol=1e-11)


@pytest.mark.parametrize("kernel", ["relu", "exp"])
@pytest.mark.parametrize("depth", [5, 7, 10])
def test_myrtle_is_the_published_recursion(rng, depth, kernel):
    # Any sides that two poolings by two bring to 8; an odd row or column is dropped.
    shape = {5: (32, 32, 3), 7: (32, 35, 1), 10: (33, 32, 2)}[depth]
    x = rng.standard_normal((2, *shape))
    got = kc.presets.myrtle(depth, kernel=kernel).nngp(x)
    np.testing.assert_allclose(got, spatial.myrtle(x, depth, kernel), rtol=1e-11)


CKNS = {
    "one": ONE_LAYER,
    "two": [(3, 2, "Exp", (0.6,)), (2, 1, "Exp", (1.1,))],
    "arc-cosine": [(2, 1, "Kappa1", ()), (3, 2, "Kappa1", ())],
    "powers": [(4, 1, "Power", (3,)), (3, 1, "Power", (2,)), (1, 1, "Kappa1", ())],
}


@pytest.mark.parametrize("shape", [(8, 8, 3), (9, 7, 2)], ids=str)
@pytest.mark.parametrize("name", CKNS)
def test_ckn_is_the_published_recursion(rng, name, shape):
    x, layers = rng.standard_normal((3, *shape)), CKNS[name]
    np.testing.assert_allclose(ckn(layers).nngp(x), as_float(spatial.ckn(x, layers)), rtol=1e-11)
    # Its NTK, T <- T_patch p' + S, is ours with one more layer of weights.
    maps = [kc.Input(sum=True)]
    for patch, sub, profile, parameters in layers:
        maps.append(kc.Conv(patch, w_std=float(patch)))  # the sum, not the mean
        maps.append(kc.DotProduct(getattr(kc.profiles, profile)(*parameters)))
        maps.append(kc.GaussianPool(sub))
    net = kc.Sequential(*maps, kc.Flatten(sum=True), kc.Dense())
    np.testing.assert_allclose(net.ntk(x), as_float(spatial.ckn(x, layers, ntk=True)), rtol=1e-11)
    np.testing.assert_allclose(net.nngp(x), ckn(layers).nngp(x), rtol=1e-13)
    if all(profile == "Kappa1" for _, _, profile, _ in layers):
        patches, pools, _, _ = zip(*layers, strict=True)
        np.testing.assert_allclose(
            kc.presets.pooled_cntk(patches, pools).ntk(x), net.ntk(x), rtol=1e-12
        )


@pytest.mark.parametrize(("patch", "pool"), [(1, 1), (3, 1), (3, 2), (4, 3), (8, 1), (2, 8)])
def test_one_cyclic_layer_is_the_sum_over_shifts(rng, patch, pool):
    """H(q, w) on signs, whose patches all have norm sqrt q: the mean over w^2 pairs, times w."""
    x = rng.choice([-1.0, 1.0], (3, 8))
    net = kc.Sequential(
        kc.Conv((patch,), padding="circular"),
        kc.DotProduct(kc.profiles.Exp(0.8)),
        kc.AvgPool((pool,), stride=1, padding="circular"),
        kc.Flatten(),
    )
    got = pool * net.nngp(x[..., None])

    def profile(u):
        return np.exp((u - 1) / np.longdouble(0.8) ** 2)

    want = [[spatial.cyclic(a, b, patch, pool, profile) for b in x] for a in x]
    np.testing.assert_allclose(got, np.array(want, float), rtol=1e-13)


# ---- random networks against the recursion, with a running error bound
#
# The oracle walks (K, T) of five images through a network in long doubles. Beside them go bounds of
# what rounding does in either dtype, absolute and entry by entry. A sum of n terms adds n + 4
# roundings of the sum of sizes (a readout, of many terms, 2 sqrt(n) + 4: they wander), and hands
# on what it got as it does K. What is pointwise sees the correlation u and two variances:
#     - u is off by e_u = e_k / size + half of what both variances are off by, so the value lies
#       between those at u - e_u and u + e_u, where 1 - |u| <= SNAP eps counts as |u| = 1. Beside
#       |u| = 1, kappa0 moves by sqrt(e_u): that is where the bounds are wide, and must be.
#     - |u| = 1 up to the oracle's rounding (the diagonal, copies, multiples, constant patches, one
#       tap on one channel) is exact: e_u = 0. The snap is there to make it so.
#     - variances move by what they are off by, at the same u.
# To that comes LOCAL, what a dual promises. T moves by e_t times the slope and T times its error.

SNAP = 8
LOCAL = 16
STATED = 1e-12  # numerical duals, as documented
NUMERICAL = ("Tanh", "Sigmoid")
HOMOGENEOUS = ("Relu", "LeakyRelu", "Abs", "Step", "Sign", "RectifiedPower")


class Bounds(NamedTuple):
    k: np.ndarray  # (2, NP, NP), for each dtype
    t: np.ndarray


def as_float(a):
    return np.asarray(a, np.float64)


def both_dtypes(f, arrays):
    return np.stack([as_float(f(a)) for a in arrays])


def in_range(layer, v):
    """Variances that the duals are documented for, or zero."""
    v = v[v > 0]
    low, high = (1e-4, 30) if layer.name not in HOMOGENEOUS else (1e-6, 1e6)
    if v.size and not low < v.min() <= v.max() < high:
        raise spatial.OutOfRange


def relative(e, v):
    return np.divide(e, v, out=np.zeros_like(e), where=v > 0)


def pointwise_bounds(layer, s, e, after):
    v1, v2 = s.variances
    v, size = as_float(v1[:, 0]), np.sqrt(v1 * v2)
    theta = spatial.angle(v1, v2, s.k)
    exact = (theta == 0) | (theta == spatial.PI) | (size == 0)
    u = np.where(size > 0, s.k / np.where(size > 0, size, 1), 0)
    value, factor = spatial.pointwise(layer, v1, v2, s.k)
    t, own = np.abs(as_float(s.t)), np.sqrt(np.abs(as_float(np.diagonal(factor))))
    new_size = np.sqrt(np.multiply.outer(*[as_float(np.diagonal(after.k))] * 2))
    new_k, new_t = [], []
    for e_k, e_t, eps in zip(e.k, e.t, EPS, strict=True):
        e_v = relative(np.diagonal(e_k), v)
        if e_v.max() > 1e-3:  # a variance lost to cancellation
            raise spatial.OutOfRange
        e_u = relative(e_k, as_float(size)) + (e_v[:, None] + e_v) / 2
        e_u[exact] = 0
        low, high = u - e_u, u + e_u
        low[(low <= SNAP * eps - 1) & ~exact] = -1
        high[(high >= 1 - SNAP * eps) & ~exact] = 1
        grow1, grow2 = 1 + e_v[:, None], 1 + e_v[None, :]
        moved = [spatial.pointwise(layer, v1, v2, c * size) for c in (low, high)]
        grown = spatial.pointwise(layer, v1 * grow1, v2 * grow2, s.k * np.sqrt(grow1 * grow2))

        def effect(i, at, moved=moved, grown=grown):
            by_u = np.maximum(*(np.abs(as_float(m[i] - at)) for m in moved))
            return by_u + np.abs(as_float(grown[i] - at))

        local = LOCAL * eps
        if isinstance(layer, networks.Act) and layer.name in NUMERICAL:
            local = max(local, STATED)
        new_k.append(effect(0, value) + local * new_size)
        off = effect(1, factor) + local * np.multiply.outer(own, own)
        new_t.append(np.abs(as_float(factor)) * e_t + (t + e_t) * off)
    return Bounds(np.stack(new_k), np.stack(new_t))


def linear_bounds(layer, s, e, after):
    """Conv, Dense, poolings and readouts: what they do to K, done to the bounds."""
    gain = b2 = 0.0
    if isinstance(layer, (spatial.Conv, networks.Dense)):
        gain, b2 = layer.w_std**2, layer.b_std**2
    if isinstance(layer, spatial.Conv):
        sources = spatial.per_axis(layer, s.shape)
        count = math.prod(layer.filter_size)

        def through(a):
            return gain * spatial.patch_mean(a, s.shape, sources)[0]

    elif isinstance(layer, networks.Dense):
        count = 1

        def through(a):
            return gain * a

    elif isinstance(layer, (spatial.AvgPool, spatial.GaussianPool)):
        sources, weights = spatial.pooling(layer, s.shape)
        count = 2 * sum(map(len, weights))

        def through(a):
            return spatial.pool(a, s.shape, sources, weights)[0]

    else:
        terms = math.prod(s.shape[1:])
        count = 2 * (terms if isinstance(layer, spatial.GlobalAvgPool) else math.sqrt(terms))

        def through(a):
            return spatial.readout(layer, a, s.shape)

    rounding = (count + 4) * EPS[:, None, None]
    e_k = both_dtypes(through, e.k) + rounding * (as_float(through(np.abs(s.k))) + b2)
    e_t = both_dtypes(through, e.t) + rounding * as_float(through(np.abs(s.t)))
    if gain and layer.trainable:
        e_t = e_t + e_k + EPS[:, None, None] * np.abs(as_float(after.k))
    return Bounds(e_k, e_t)


def walk(network, s, e):
    for layer in network:
        if isinstance(layer, networks.Residual):
            (a, e_a), (b, e_b) = (walk(side, s, e) for side in (layer.branch, layer.shortcut))
            if a.shape != b.shape:
                raise spatial.OutOfRange
            s = spatial.State(a.shape, a.k + b.k, a.t + b.t)
            size = [np.abs(as_float(p)) + np.abs(as_float(q)) for p, q in ((a.k, b.k), (a.t, b.t))]
            terms = zip(e_a, e_b, size, strict=True)
            e = Bounds(*(p + q + 2 * EPS[:, None, None] * r for p, q, r in terms))
        else:
            if isinstance(layer, networks.Act):
                in_range(layer, np.diagonal(s.k))
            after = spatial.pass_one(layer, s)
            linear = not isinstance(layer, (networks.Act, spatial.DotProduct, spatial.Project))
            e = (linear_bounds if linear else pointwise_bounds)(layer, s, e, after)
            s = after
    return s, e


def bounded_kernels(network, x):
    first, rest = spatial.split(network)
    s = spatial.start(x, first)
    size = np.sqrt(np.multiply.outer(*[as_float(np.diagonal(s.k))] * 2))
    e = (x.shape[-1] + 2) * EPS[:, None, None] * size
    return walk(rest, s, Bounds(e, 0 * e))


# ---- drawing them

ACTIVATIONS = (
    *(("Relu", ()),) * 6,
    *((name, ()) for name in ("Abs", "Erf", "Sin", "Cos", "Step", "Sign", "Gelu", "Exp")),
    ("LeakyRelu", (0.1,)), ("LeakyRelu", (-0.4,)), ("RectifiedPower", (2,)),
    ("Tanh", ()), ("Sigmoid", ()),
)  # fmt: skip
PROFILES = (("Exp", (0.6,)), ("Exp", (1.3,)), ("Kappa1", ()), ("Power", (2,)), ("Power", (3,)))
PADDINGS = ("same", "valid", "circular")


class Draw:
    """One random network; ``chance`` and ``one_of`` read as they sound."""

    def __init__(self, rng, axes):
        self.rng, self.axes = rng, axes

    def chance(self, p):
        return bool(self.rng.random() < p)

    def one_of(self, options):
        return options[self.rng.integers(len(options))]

    def sizes(self, *options):
        return tuple(int(self.one_of(options)) for _ in range(self.axes))

    def weights(self):
        return (
            float(self.rng.uniform(0.6, 1.6)),
            float(self.one_of([0.0, 0.0, 0.2, 0.7])),
            self.chance(0.8),
        )

    def dense(self):
        return networks.Dense(*self.weights())

    def conv(self, stride=None, paddings=PADDINGS, filter_size=None):
        filter_size = filter_size or self.sizes(1, 2, 2, 3, 3, 3, 4)
        stride = stride or self.sizes(1, 1, 1, 1, 2, 3)
        return spatial.Conv(filter_size, stride, self.one_of(paddings), *self.weights())

    def act(self):
        return networks.Act(*self.one_of(ACTIVATIONS))

    def pool(self):
        if self.chance(0.25):
            return spatial.GaussianPool(int(self.one_of([1, 1, 2])))
        return spatial.AvgPool(
            self.sizes(1, 2, 2, 3), self.sizes(1, 1, 2, 3), self.one_of(PADDINGS)
        )

    def residual(self):
        ones, keep = (1,) * self.axes, ("same", "circular")
        stride = self.sizes(1, 2, 3) if self.chance(0.3) else ones
        if self.chance(0.2):  # one valid filter on either side
            first = self.conv(stride, ["valid"])
            return networks.Residual(
                (self.act(), first), (self.conv(stride, ["valid"], first.filter_size),)
            )
        branch = [self.act(), self.conv(stride, keep)]
        if self.chance(0.3):
            inner = networks.Residual(
                (self.act(), self.conv(ones, keep)), (self.dense(),) if self.chance(0.3) else ()
            )
            branch += [inner, self.dense() if self.chance(0.3) else self.conv(ones, keep)]
        elif self.chance(0.3):
            branch += [self.act(), self.conv(ones, keep)]
        if stride != ones or self.chance(0.4):
            return networks.Residual(tuple(branch), (self.conv(stride, keep),))
        return networks.Residual(tuple(branch), (self.dense(),) if self.chance(0.3) else ())

    def network(self, depth):
        layers = [spatial.Input(sum=self.chance(0.5))] if self.chance(0.3) else []
        if self.chance(0.15):
            layers.append(self.pool())
        for _ in range(depth):
            layers.append(self.dense() if self.chance(0.15) else self.conv())
            if self.chance(0.1):
                layers.append(self.pool())  # of Gaussians: Gaussian
            if self.chance(0.3):
                layers.append(self.residual())
            if self.chance(0.2):
                layers.append(spatial.DotProduct(*self.one_of(PROFILES)))
            elif self.chance(0.95):
                layers.append(self.act())
            if self.chance(0.35):
                layers += [self.pool() for _ in range(1 + self.chance(0.3))]
        if self.chance(0.08):
            layers.append(spatial.Project())
        layers.append(
            self.one_of([spatial.GlobalAvgPool(), spatial.Flatten(), spatial.Flatten(sum=True)])
        )
        if self.chance(0.7):
            layers.append(self.dense())
            if self.chance(0.2):
                layers.append(networks.Residual((self.act(), self.dense())))
            if self.chance(0.4):
                layers += [self.act(), self.dense()]
        return tuple(layers)

    def images(self):
        """Three and two of them, in numbers of ten bits: multiples by 3/2 are exact."""
        while True:
            shape = tuple(int(s) for s in self.rng.integers(1, 10, self.axes))
            if math.prod(shape) <= 24:
                break
        channels = int(self.rng.integers(1, 5))
        x = np.rint(256 * self.rng.standard_normal((5, *shape, channels))) / 256
        x *= self.one_of([0.5, 1.0, 1.0, 1.0, 2.0])
        if self.chance(0.3):
            x[1] = x[1].reshape(-1, channels)[0]  # constant
        x[2] *= self.one_of([0, 1, 1, 1])
        if self.chance(0.3):
            x[2, : (shape[0] + 1) // 2] = 0
        x[3] = self.one_of([x[3], x[3], x[0], 1.5 * x[0], -x[1], 3 * x[1]])
        x[4] = self.one_of([x[4], x[4], 0 * x[4], x[1], 0.75 * x[2], x[3]])
        return x


class Case(NamedTuple):
    network: tuple
    x: np.ndarray  # (n, ..., C)
    k: np.ndarray  # (n, n), long doubles
    t: np.ndarray
    bounds: Bounds  # (2, n, n)


def scales(case):
    """sqrt(K_ii K_jj), and the same of T."""
    return [np.sqrt(np.multiply.outer(*[np.abs(as_float(np.diagonal(a)))] * 2)) for a in case[2:4]]


@cache
def draw(seed):
    rng = np.random.default_rng(seed)
    while True:
        one = Draw(rng, axes=1 + seed % 2)
        network, x = one.network(depth=int(rng.integers(1, 4))), one.images()
        try:
            s, e = bounded_kernels(network, x)
        except spatial.OutOfRange:
            continue
        return Case(network, x, s.k, s.t, e)


SEEDS = range(256)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_networks_match_the_recursion(seed):
    matches(draw(seed))


WIDE = [
    ((7, 6), (1, 1), "same"), ((11, 11), (1, 1), "same"), ((6, 13), (1, 2), "same"),
    ((7, 7), (2, 1), "valid"), ((9, 6), (1, 1), "circular"), ((8, 3), (3, 1), "same"),
]  # fmt: skip


@pytest.mark.parametrize(("window", "stride", "padding"), WIDE, ids=str)
def test_wide_windows_match_the_recursion(window, stride, padding, rng):
    first = spatial.Conv(window, stride, padding, 1.3, 0.2)
    second = spatial.Conv(window, (1, 1), "same", 1.2)
    act, leaky = networks.Act("Relu", ()), networks.Act("LeakyRelu", (0.1,))
    network = (first, act, second, leaky, second, act, spatial.GlobalAvgPool(), networks.Dense(1.0))
    x = rng.standard_normal((3, 9, 8, 2)).astype(np.float32).astype(np.longdouble)
    s, e = bounded_kernels(network, x)
    matches(Case(network, x, s.k, s.t, e))


def matches(case):
    """The larger half of the images by itself, and against the others."""
    net, half = kc.Sequential(*build(case.network)), (len(case.x) + 1) // 2
    for i, dtype in enumerate(DTYPES):
        x, y = np.split(case.x.astype(dtype), [half])
        for args, columns in (((x,), slice(0, half)), ((x, y), slice(half, None))):
            for got, want, bound, size in zip(
                net.kernels(*args), case[2:4], case.bounds, scales(case), strict=True
            ):
                want, allowed = want[:half, columns], bound[i, :half, columns]
                allowed = allowed + 4 * EPS[i] * size[:half, columns]
                assert got.dtype == dtype
                error = np.abs(as_float(got - want))
                worst = np.unravel_index((error - allowed).argmax(), error.shape)
                assert (error <= allowed).all(), (
                    f"{dtype.__name__} {x.shape}: got {got[worst]!r}, want {want[worst]!r}, "
                    f"error {error[worst]:.3g} of {allowed[worst]:.3g} at {worst}\n{net!r}"
                )


def parts(network):
    for layer in network:
        yield layer
        if isinstance(layer, networks.Residual):
            yield from parts(layer.branch)
            yield from parts(layer.shortcut)


def test_the_draws_leave_nothing_out():
    seen = Counter()
    for seed in SEEDS:
        case = draw(seed)
        shape = case.x.shape[1:-1]
        seen[f"{len(shape)} axes"] += 1
        seen["not square"] += len(set(shape)) > 1
        seen["zero image"] += not case.x.any(tuple(range(1, case.x.ndim))).all()
        layers = list(parts(case.network))
        pools = [isinstance(a, (spatial.AvgPool, spatial.GaussianPool)) for a in case.network]
        seen["pooling first"] += [*pools, False][isinstance(case.network[0], spatial.Input)]
        seen["pooling twice"] += any(a and b for a, b in pairwise(pools))
        seen["mixed paddings"] += (
            len({a.padding for a in layers if isinstance(a, spatial.Conv)}) > 1
        )
        for layer in layers:
            seen[type(layer).__name__] += 1
            if isinstance(layer, networks.Act):
                seen[layer.name] += 1
            if isinstance(layer, (spatial.Conv, networks.Dense)):
                seen["bias"] += layer.b_std > 0
                seen["frozen"] += not layer.trainable
            if isinstance(layer, spatial.Conv):
                seen["conv", layer.padding] += 1
                seen["conv strides", max(layer.stride)] += 1
                for size in layer.filter_size:
                    seen["conv", size] += 1
            if isinstance(layer, spatial.AvgPool):
                window, stride = layer.window[0], layer.stride[0]
                seen["pool", layer.padding, (window > stride) - (window < stride)] += 1
            if isinstance(layer, spatial.Flatten):
                seen["Flatten", layer.sum] += 1
            if isinstance(layer, networks.Residual):
                inner = [a for a in layer.branch if isinstance(a, networks.Residual)]
                seen["nested"] += len(inner)
                strided = any(isinstance(a, spatial.Conv) and max(a.stride) > 1 for a in layer[0])
                seen["strided shortcut"] += strided
                seen["projected shortcut"] += len(layer.shortcut)
    assert len(seen) == 57, sorted(map(str, seen))
    assert min(seen.values()) >= 3, seen.most_common()[-5:]


def test_the_bounds_say_something():
    """Nine networks in ten are checked to 1e-11 and to 1e-3, all of them to 1e-8."""
    worst = []
    for seed in SEEDS:
        case = draw(seed)
        size = [np.where(a > 0, a, np.inf) for a in scales(case)]
        worst.append([(b / a).max((1, 2)) for a, b in zip(size, case.bounds, strict=True)])
    worst = np.array(worst)  # (networks, K and T, dtypes)
    for i, tolerance in enumerate((1e-11, 1e-3)):
        assert (np.quantile(worst[..., i], 0.9, axis=0) < tolerance).all()
    assert worst[..., 0].max() < 1e-8, worst[..., 0].max(0)


@pytest.mark.parametrize("distance", [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8])
@pytest.mark.parametrize("name", ["Relu", "Abs", "Step"])
def test_neighbours_match_the_recursion(name, distance, rng):
    """Correlations of 1 - distance^2: not lost to rounding before their time, nor snapped to 1."""
    network = (
        spatial.Conv((2, 3), (1, 1), "same", 1.3, 0.1), networks.Act(name),
        spatial.Conv((3, 2), (2, 1), "circular", 1.2), networks.Act(name),
        spatial.Flatten(), networks.Dense(1.1),
    )  # fmt: skip
    x = rng.standard_normal((2, 4, 3, 2)).astype(np.float32)
    y = (x + distance * rng.standard_normal(x.shape)).astype(np.float32)
    both = np.concatenate([x, y])
    s, e = bounded_kernels(network, both)
    net = kc.Sequential(*build(network))
    for i, dtype in enumerate(DTYPES):
        for got, want, bound in zip(net.kernels(both.astype(dtype)), (s.k, s.t), e, strict=True):
            assert (np.abs(as_float(got - want)) <= bound[i] + 4 * EPS[i] * np.abs(got)).all()
    # Some 1e-14 in u moves an angle of ``distance`` by 1e-14 / distance. A Step turns the angle
    # into a correlation of 1 - distance, that into an angle of its root.
    power = 1.5 if name == "Step" else 1.0
    assert e.t[0].max() < 1e-13 / distance**power or distance < 1e-6


def test_kappa0_as_a_profile(rng):
    """A profile without a bounded slope near 1 has a covariance, but no NTK."""
    x = rng.standard_normal((3, 4, 5, 2))
    layers = (spatial.Conv((2, 3), (1, 1)), spatial.DotProduct("Kappa0"))
    for readout in (spatial.GlobalAvgPool(), spatial.Flatten()):
        with np.errstate(invalid="ignore"):  # infinite slopes, times zero
            want, _ = spatial.kernels((*layers, readout), x)
        got = kc.Sequential(*build((*layers, readout))).nngp(x)
        # Neighbouring patches have 1 - u > 1e-3: kappa0' < 10. Their eps is the diagonal's.
        np.testing.assert_allclose(got, as_float(want), rtol=1e-13)


# ---- copies, multiples, zeros


def deep(*readout, padding="same", b_std=0.0, pool=True):
    """Three convolutions of images with ReLU between, even and odd filters, a stride, a pooling."""
    pools = [kc.AvgPool(2, stride=1, padding=padding)] if pool else []
    return kc.Sequential(
        kc.Conv(3, padding=padding, w_std=ROOT2, b_std=b_std),
        kc.Relu(),
        kc.Conv((2, 3), padding=padding, w_std=ROOT2, b_std=b_std),
        kc.Relu(),
        *pools,
        kc.Conv(2, stride=(2, 1), padding=padding, w_std=ROOT2, b_std=b_std),
        kc.Relu(),
        *readout,
    )


POOLED = deep(kc.GlobalAvgPool(), kc.Dense())
FLAT = deep(kc.Flatten(), kc.Dense())
BIASED = deep(kc.GlobalAvgPool(), kc.Dense(b_std=0.2), padding="circular", b_std=0.3)
SHORTCUT = kc.Sequential(
    kc.Conv(3, w_std=1.2, b_std=0.1),
    kc.Residual(
        kc.Relu(),
        kc.Conv(3, stride=2, b_std=0.1),
        kc.Residual(kc.Erf(), kc.Conv((1, 2))),
        kc.Conv(1),
        shortcut=kc.Conv(1, stride=2, w_std=0.7),
    ),
    kc.Gelu(),
    kc.GaussianPool(1),
    kc.Flatten(),
    kc.Dense(1.1, 0.1),
    kc.Relu(),
    kc.Dense(),
)
HILBERT = kc.Sequential(
    kc.Input(sum=True), kc.Conv(3, padding="circular"), kc.DotProduct(kc.profiles.Exp(0.7)),
    kc.AvgPool(2, padding="same"), kc.Project(), kc.Conv(2), kc.DotProduct(kc.profiles.Kappa1()),
    kc.Flatten(sum=True), kc.Dense(),
)  # fmt: skip
NETWORKS = {
    "pooled": POOLED, "flat": FLAT, "biased": BIASED, "shortcut": SHORTCUT, "hilbert": HILBERT,
}  # fmt: skip
EVERY = pytest.mark.parametrize("name", NETWORKS)


def pictures(rng, n, dtype, shape=(5, 4, 3)):
    """Random images in ten bits; of five and more, the last are zero, a copy and a multiple."""
    x = np.rint(256 * rng.standard_normal((n, *shape))) / 256
    if n >= 5:
        x[-1] = 0
        x[-2] = x[0]
        x[-3] = 1.5 * x[1]
        x[1, 1] = 0
        x[-3, 1] = 0
    return x.astype(dtype)


def same(a, b):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["pooled", "flat"])
def test_copies_and_multiples_to_full_precision(name, rng, dtype):
    x, net = pictures(rng, 6, dtype), NETWORKS[name]
    eps = np.finfo(dtype).eps
    for kernel in (net.nngp, net.ntk):
        got, own = kernel(x), kernel.diag(x)
        # Correlations of 1 at equal positions are exact, others as good as anywhere.
        np.testing.assert_allclose(got[0, -2], own[0], rtol=32 * eps)
        np.testing.assert_allclose(got[:, -2], got[:, 0], rtol=0, atol=32 * eps * own.max())
        if name == "flat":  # its planes hold nothing else
            np.testing.assert_allclose(got[1, -3], 1.5 * own[1], rtol=32 * eps)
            np.testing.assert_allclose(own[-3], 2.25 * own[1], rtol=32 * eps)
        same(got[-1], np.zeros(6, dtype))


@pytest.mark.parametrize("name", ["pooled", "flat"])
def test_constant_images(name, dtype):
    """A constant image has patches that are multiples of each other, from border to border."""
    x = np.ones((2, 6, 5, 2), dtype) * np.array([1.0, 2.5], dtype)[:, None, None, None]
    net = NETWORKS[name]
    for kernel in (net.nngp, net.ntk):
        got = kernel(x)
        scale = np.array([[1, 2.5], [2.5, 6.25]])
        np.testing.assert_allclose(got, got[0, 0] * scale, rtol=32 * np.finfo(dtype).eps)


def test_constant_images_beside_no_border(dtype):
    """Circular, of one value: every position is every other, a dense network of one input."""
    x = np.array([1.0, 2.5, 0.0], dtype)[:, None]
    images = np.broadcast_to(x[:, None, None], (3, 4, 3, 1))
    dense = kc.Sequential(
        *[kc.Dense(ROOT2, 0.3), kc.Relu()] * 3, kc.Dense(b_std=0.2)
    ).kernels(x)  # fmt: skip
    for got, want in zip(BIASED.kernels(images), dense, strict=True):
        # Off the diagonal 1 - u is of order 0.1; roundings of 4 layers.
        np.testing.assert_allclose(got, want, rtol=64 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", ["pooled", "flat"])
@pytest.mark.parametrize("power", [-20, 1, 17])
def test_images_times_a_number_scale_homogeneous_kernels(name, power, rng, dtype):
    x, net = pictures(rng, 3, dtype), NETWORKS[name]
    c, eps = dtype.type(2) ** power, np.finfo(dtype).eps
    for kernel in (net.nngp, net.ntk):
        got, want = kernel(c * x), c * c * kernel(x)
        # Powers of two commute with every rounding; 3 does not.
        np.testing.assert_allclose(got, want, rtol=4 * eps)
        np.testing.assert_allclose(kernel(3 * x), 9 * kernel(x), rtol=100 * eps)


@pytest.mark.parametrize("name", ["pooled", "flat"])
@pytest.mark.parametrize("factor", [2.0, 1.5, 0.3])
def test_a_multiple_of_an_image_beside_it(name, factor, rng, dtype):
    """All correlations are those of the image with itself, 1 where those are."""
    x, c = pictures(rng, 4, dtype), dtype.type(factor)
    net = NETWORKS[name]
    for kernel in (net.nngp, net.ntk):
        got, own = kernel(x, c * x), kernel(x, x.copy())
        if factor == 2:
            same(got, 2 * own)
        np.testing.assert_allclose(got, c * own, rtol=32 * np.finfo(dtype).eps)


@EVERY
def test_copies_have_equal_rows(name, rng, dtype):
    x, y, net = pictures(rng, 4, dtype), pictures(rng, 5, dtype), NETWORKS[name]
    for kernel in (net.nngp, net.ntk):
        twice = kernel(np.concatenate([x[:1], x]))
        same(twice[0], twice[1])
        same(twice[1:, 1:], kernel(x))
        for rows in (kernel(x[[2, 0, 2]], y), kernel(y, x[[2, 0, 2]]).T):
            same(rows[0].copy(), rows[2].copy())


@EVERY
def test_plain_images(name, dtype):
    """All zero, of one value, of one pixel, of one row: finite and positive."""
    x = np.zeros((7, 5, 4, 3), dtype)
    x[1], x[2], x[3] = 1, -2.5, 1e-3
    x[4, 0, 0, 0] = x[5, 2, 2] = x[6, 4] = 1
    for k in NETWORKS[name].kernels(x):
        assert np.isfinite(k).all()
        values = np.linalg.eigvalsh(k.astype(np.float64))
        assert values[0] >= -64 * np.finfo(dtype).eps * values[-1]
        size = np.sqrt(np.multiply.outer(np.diagonal(k), np.diagonal(k)))
        assert (np.abs(k) <= size * (1 + 16 * np.finfo(dtype).eps)).all()


@EVERY
@pytest.mark.parametrize("power", [-0.4, -0.55, -0.75, -0.95])
def test_tiny_images_are_as_good_as_zero_or_refused(name, power, rng, dtype):
    """Squares of their pixels underflow, or the reciprocals of their variances overflow.

    Where no bias is added to them, all of the kernel underflows.
    """
    x, net = pictures(rng, 3, dtype), NETWORKS[name]
    x[1] = 0
    at_zero = net.kernels(x)
    x[1] = x[2] * dtype.type(np.finfo(dtype).max) ** dtype.type(power)
    if power < -0.5 and not at_zero.nngp[1, 1]:
        with pytest.raises(FloatingPointError, match="underflows"):
            net.kernels(x)
        return
    for got, want in zip(net.kernels(x), at_zero, strict=True):
        assert np.isfinite(got).all()
        same(got[::2, ::2], want[::2, ::2])
        if name != "hilbert":  # which makes unit vectors of them
            # Kernels move by the pixels, 4e-16 and less.
            tolerance = 16 * np.finfo(dtype).eps * want.max()
            np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)


@EVERY
def test_huge_float32_images_give_the_rounded_value_or_a_refusal(name, rng):
    x, net = np.clip(pictures(rng, 3, np.float32), -2, 2), NETWORKS[name]
    refused = []
    for power in (8, 12, 16, 17, 18, 18.5, 19, 25, 37):
        big = np.float32(10.0**power) * x
        for kernel in (net.nngp, net.ntk):
            try:
                got = kernel(big)
            except OverflowError:
                refused.append(power)
                continue
            want = kernel(big.astype(np.float64))
            size = np.sqrt(np.multiply.outer(np.diagonal(want), np.diagonal(want)))
            assert (np.abs(got - want) <= 1e-5 * size).all(), power
    assert min(refused) > 12
    assert refused[-4:] == [25, 25, 37, 37]


def test_residual_connections_as_deep_as_they_go(rng, dtype):
    x = pictures(rng, 3, dtype)
    block = kc.Residual(kc.Conv(1))
    for _ in range(_spatial.MOST_SLOTS - 1):
        block = kc.Residual(block, kc.Conv(1))
    plain = kc.Sequential(kc.Conv(3), kc.Flatten()).nngp(x)
    got = kc.Sequential(kc.Conv(3), block, kc.Flatten()).nngp(x)
    # Each connection adds its own shortcut, the innermost one twice.
    want = (_spatial.MOST_SLOTS + 1) * plain
    np.testing.assert_allclose(got, want, rtol=0, atol=20 * np.finfo(dtype).eps * want.max())


# ---- what must not change a value


@EVERY
def test_threads_change_nothing(name, rng, dtype):
    x, y, net = pictures(rng, 7, dtype), pictures(rng, 5, dtype), NETWORKS[name]
    for kernel in (net.nngp, net.ntk):
        for args in ((x,), (x, y)):
            one = kernel(*args, n_threads=1)
            for n_threads in (2, 3):
                same(kernel(*args, n_threads=n_threads), one)
    for n_threads in (1, 3):
        same(net.kernels(x, y, n_threads=n_threads).ntk, net.ntk(x, y))


@EVERY
def test_tiles_change_nothing(name, rng, dtype, monkeypatch):
    x, y, net = pictures(rng, 19, dtype), pictures(rng, 9, dtype), NETWORKS[name]

    def values():
        return [*net.kernels(x), *net.kernels(x, y), net.nngp.diag(x), net.ntk.diag(x)]

    want = values()
    for tile in (1, 30_000):
        monkeypatch.setattr(_spatial, "TILE_BYTES", tile)
        for got, expected in zip(values(), want, strict=True):
            same(got, expected)


def test_more_threads_than_pairs(rng, dtype):
    x = pictures(rng, 2, dtype, (16, 16, 3))  # enough work for several threads
    for net in (POOLED, SHORTCUT):
        for args in ((x[:1],), (x,), (x[:1], x)):
            same(net.ntk(*args, n_threads=32), net.ntk(*args, n_threads=1))
            same(net.nngp(*args, n_threads=7), net.nngp(*args, n_threads=1))


def test_callers_at_once_do_not_disturb_each_other(rng, dtype):
    x = pictures(rng, 9, dtype)
    want = {name: net.ntk(x) for name, net in NETWORKS.items()}
    _spatial.plan.cache_clear()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = [(name, pool.submit(NETWORKS[name].ntk, x)) for name in [*NETWORKS] * 4]
        for name, job in jobs:
            same(job.result(timeout=60), want[name])


@EVERY
def test_an_entry_depends_on_its_two_images_alone(name, rng, dtype):
    x, net = pictures(rng, 9, dtype), NETWORKS[name]
    eps = np.finfo(dtype).eps
    for kernel in (net.nngp, net.ntk):
        whole = kernel(x)
        assert np.isfinite(whole).all()
        same(whole, whole.T.copy())
        same(kernel.diag(x), np.diagonal(whole).copy())
        same(kernel(x[:4], x[4:]), whole[:4, 4:])
        same(kernel(x[2:6]), whole[2:6, 2:6])
        for a, b in (([0, 3, 1], [8, 4]), ([2], [5, 3, 7, 6])):  # all of a before all of b
            same(kernel(x[a], x[b]), whole[a][:, b])
        for i, j in ((0, 0), (0, 7), (3, 8)):  # batches of one
            same(kernel(x[i : i + 1], x[j : j + 1]), whole[i : i + 1, j : j + 1])
        same(kernel(x[5:6]), whole[5:6, 5:6])
        # The other way round sums in another order.
        size = np.sqrt(np.multiply.outer(np.diagonal(whole), np.diagonal(whole)))
        order = rng.permutation(len(x))
        error = np.abs(kernel(x[order]) - whole[order][:, order])
        assert (error <= 100 * eps * size[order][:, order]).all()
        assert (np.abs(kernel(x[4:], x[:4]) - whole[4:, :4]) <= 100 * eps * size[4:, :4]).all()


def by_position(x, depth):
    """K and T of a ReLU network with Flatten, where only equal positions meet: (n, n) each."""
    k = np.einsum("ihwc,jhwc->ijhw", x, x) / x.shape[-1]
    t = 0 * k
    for _ in range(depth):
        k, t = (2 * ndimage.uniform_filter(a, (0, 0, 3, 3), mode="constant") for a in (k, t + k))
        size = np.sqrt(np.einsum("iihw,jjhw->ijhw", k, k))
        angle = np.arccos(np.clip(k / size, -1, 1))
        k0 = (np.pi - angle) / np.pi
        k, t = size * (np.sin(angle) / np.pi + k / size * k0) / 2, t * k0 / 2
    return k.mean((2, 3)), (t + k).mean((2, 3))


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("shape", [(70, 40), (33, 100), (6, 400)], ids=str)
def test_large_images_match_a_recursion_by_position(shape, depth, rng, dtype):
    x = rng.standard_normal((3, *shape, 2)).astype(dtype)
    net = deep_relu(depth, kc.Flatten())
    for got, want in zip(net.kernels(x), by_position(x.astype(np.float64), depth), strict=True):
        # Unlike images are far from correlation 1, where arccos would lose digits.
        assert np.abs(got / want - 1).max() < 50 * depth * np.finfo(dtype).eps


def deep_relu(depth, readout):
    layers = [kc.Conv(3, w_std=ROOT2), kc.Relu()] * depth
    return kc.Sequential(*layers, readout, kc.Dense())


@pytest.mark.parametrize("readout", [kc.Flatten(), kc.GlobalAvgPool()], ids=repr)
def test_copies_keep_correlation_one_through_a_hundred_layers(readout, rng, dtype):
    x = rng.standard_normal((2, 6, 6, 3)).astype(dtype)
    x = np.concatenate([x, x])
    for kernel in (deep_relu(100, readout).nngp, deep_relu(100, readout).ntk):
        K = kernel(x)
        same(K[:2, :2], K[:2, 2:])
        same(K[:2, :2], K[2:, 2:])


@EVERY
def test_both_kernels_in_one_pass_are_each_alone(name, rng, dtype):
    x, y, net = pictures(rng, 5, dtype), pictures(rng, 2, dtype), NETWORKS[name]
    for args in ((x,), (x, y)):
        both = net.kernels(*args)
        same(both.nngp, net.nngp(*args))
        same(both.ntk, net.ntk(*args))


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 15, 16, 17, 33])
def test_numbers_of_images_about_the_lanes(n, rng, dtype):
    x = rng.standard_normal((34, 3, 2, 2)).astype(dtype)
    net = kc.Sequential(kc.Conv(2, w_std=ROOT2), kc.Relu(), kc.GlobalAvgPool(), kc.Dense())
    for kernel in (net.nngp, net.ntk):
        whole = kernel(x)
        same(kernel(x[:n]), whole[:n, :n])
        same(kernel(x[:1], x[1 : n + 1]), whole[:1, 1 : n + 1])
        same(kernel(x[: 34 - n], x[34 - n :]), whole[: 34 - n, 34 - n :])


@EVERY
def test_no_images(name, dtype):
    none, one = np.empty((0, 5, 4, 3), dtype), np.ones((1, 5, 4, 3), dtype)
    net = NETWORKS[name]
    for kernel in (net.nngp, net.ntk):
        for args, shape in (((none,), (0, 0)), ((none, one), (0, 1)), ((one, none), (1, 0))):
            assert kernel(*args).shape == shape
            assert kernel(*args).dtype == dtype
        assert kernel.diag(none).shape == (0,)


def layouts(x):
    yield "Fortran", np.asfortranarray(x)
    yield "channels first", np.ascontiguousarray(np.moveaxis(x, -1, 1)).transpose(0, 2, 3, 1)
    yield "strided rows", np.repeat(x, 2, axis=1)[:, ::2]
    yield "every other image", np.repeat(x, 2, axis=0)[::2]
    yield "backwards", x[::-1, :, ::-1].copy()[::-1, :, ::-1]
    frozen = x.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen
    yield "byte-swapped", x.astype(x.dtype.newbyteorder())


@pytest.mark.parametrize("name", ["pooled", "flat"])
def test_layout_changes_nothing(name, rng, dtype):
    x, y, kernel = pictures(rng, 5, dtype), pictures(rng, 3, dtype), NETWORKS[name].ntk
    want = kernel(x), kernel(x, y), kernel.diag(x)
    for label, a in layouts(x):
        before = a.copy()
        for got, expected in zip((kernel(a), kernel(a, y), kernel.diag(a)), want, strict=True):
            assert got.dtype == dtype, label
            assert np.array_equal(got, expected), label
        assert np.array_equal(a, before), label


@pytest.mark.parametrize("given", ["bool", "uint8", "int64"])
def test_integers_and_booleans_count_as_float64(given, rng):
    x = rng.integers(0, 2, (3, 4, 5, 2)).astype(given)
    for kernel in (POOLED.ntk, FLAT.nngp):
        same(kernel(x), kernel(x.astype(np.float64)))


def test_translations_leave_a_circular_pooled_kernel(rng, dtype):
    x = pictures(rng, 4, dtype, (4, 6, 2))
    net = kc.Sequential(
        *[kc.Conv((3, 2), padding="circular", w_std=ROOT2, b_std=0.1), kc.Relu()] * 2,
        kc.GlobalAvgPool(),
        kc.Dense(),
    )
    for kernel in (net.nngp, net.ntk):
        want = kernel(x)
        for shift in ((1, 0), (0, 5), (2, 3)):
            moved = x.copy()
            moved[0] = np.roll(x[0], shift, (0, 1))
            moved[3] = np.roll(x[3], shift[::-1], (0, 1))
            np.testing.assert_allclose(kernel(moved), want, rtol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("padding", ["same", "valid", "circular"])
def test_transposed_images_and_filters(padding, rng, dtype):
    """Rows and columns are alike; a signal is an image of one row or one column."""
    x = pictures(rng, 4, dtype, (5, 7, 2))

    def net(turn):
        return kc.Sequential(
            kc.Conv((3, 2)[::turn], (1, 2)[::turn], padding, ROOT2, 0.1),
            kc.Relu(),
            kc.AvgPool((2, 1)[::turn], (1, 2)[::turn], padding),
            kc.Conv((1, 2)[::turn], padding=padding),
            kc.Erf(),
            kc.GlobalAvgPool(),
        )

    tolerance = {"rtol": 0, "atol": 100 * np.finfo(dtype).eps * 2}
    for got, want in zip(
        net(-1).kernels(x.transpose(0, 2, 1, 3)), net(1).kernels(x), strict=True
    ):  # fmt: skip
        np.testing.assert_allclose(got, want, **tolerance)

    def line(*axes):
        def sizes(n, other):
            return tuple(n if a else other for a in axes)

        return kc.Sequential(
            kc.Conv(sizes(3, 1), sizes(2, 1), padding, ROOT2, 0.1),
            kc.Relu(),
            kc.AvgPool(sizes(2, 1), sizes(1, 1), padding),
            kc.Flatten(),
            kc.Dense(),
        )

    signal = x[:, 0]
    want = line(True).kernels(signal)
    for axes, image in (((False, True), signal[:, None]), ((True, False), signal[:, :, None])):
        for a, b in zip(line(*axes).kernels(image), want, strict=True):
            np.testing.assert_allclose(a, b, **tolerance)


def test_one_position_is_a_dense_network(rng, dtype):
    x = rng.standard_normal((5, 6)).astype(dtype)
    image, signal = x[:, None, None], x[:, None]
    dense = kc.Sequential(
        kc.Dense(1.2, 0.1), kc.Relu(), kc.Dense(0.9, 0.2), kc.Erf(), kc.Dense(1.1)
    ).kernels(x)
    for readout in (kc.Flatten(), kc.Flatten(sum=True), kc.GlobalAvgPool()):
        for first, data in (
            (kc.Conv(1, w_std=1.2, b_std=0.1), image),
            (kc.Conv(3, w_std=3.6, b_std=0.1), image),  # eight of nine taps read zeros
            (kc.Conv(2, padding="circular", w_std=1.2, b_std=0.1), image),  # all four the same
            (kc.Conv((1,), w_std=1.2, b_std=0.1), signal),
        ):
            net = kc.Sequential(
                first, kc.Relu(), kc.Dense(0.9, 0.2), kc.Erf(), readout, kc.Dense(1.1)
            )
            for got, want in zip(net.kernels(data), dense, strict=True):
                # A dozen roundings each; kappa0' <= 2 where 1 - u > 0.01.
                np.testing.assert_allclose(got, want, rtol=0, atol=60 * np.finfo(dtype).eps)


def test_sums_and_products(rng, dtype):
    x, y = pictures(rng, 5, dtype), pictures(rng, 3, dtype)
    a, b = POOLED.ntk, SHORTCUT.nngp
    for args in ((x,), (x, y)):
        one, other = a(*args), b(*args)
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(
            (a + 0.5 * b)(*args),
            one + one.dtype.type(0.5) * other,
            rtol=0,
            atol=4 * eps * (np.abs(one) + np.abs(other)).max(),
        )
        np.testing.assert_allclose((a * b)(*args), one * other, rtol=4 * eps)
    assert (a + b)(x).dtype == dtype
    np.testing.assert_allclose((a * b).diag(x), np.diagonal((a * b)(x)), rtol=0)


def test_out_is_filled_and_returned(rng, dtype):
    x, y = pictures(rng, 5, dtype), pictures(rng, 3, dtype)
    for kernel in (POOLED.ntk, FLAT.nngp):
        out = np.full((5, 3), np.nan, dtype)
        assert kernel(x, y, out=out) is out
        same(out, kernel(x, y))


def test_gram_matrices_are_positive(rng, dtype):
    x = pictures(rng, 12, dtype)
    for net in NETWORKS.values():
        for k in net.kernels(x):
            values = np.linalg.eigvalsh(k.astype(np.float64))
            assert values[0] >= -200 * np.finfo(dtype).eps * values[-1]


@EVERY
def test_terms_sum_to_the_ntk(name, rng, dtype):
    x, y, net = pictures(rng, 3, dtype), pictures(rng, 2, dtype), NETWORKS[name]
    program, places = net.program, net.program.trained
    for args in ((x,), (x, y)):
        terms, whole = net.ntk.terms(*args), net.ntk(*args)
        assert terms.dtype == dtype
        assert terms.shape == (len(places), *whole.shape)
        size = np.abs(terms).sum(0)
        assert (np.abs(terms.sum(0) - whole) <= 32 * np.finfo(dtype).eps * size).all()
        assert (terms.any((1, 2))).all()
    assert len(places) == sum(node.kind == "weights" for node in program)
    for place in places:
        only = program.training_only(place)
        assert only.trained == [place]
        for one, other in zip(only, program, strict=True):
            if one != other:
                assert one.replace(trained=True) == other


@pytest.mark.parametrize(
    ("net", "megabytes"),
    [(kc.presets.cntk(21), 1), (kc.presets.cntk(21, gap=False), 1), (kc.presets.myrtle(5), 12)],
    ids=["pooled", "flat", "myrtle"],
)
def test_scratch_of_a_thread(net, megabytes, dtype):
    """Planes, not matrices over all pairs of positions: those of one pair would be 8 MB each."""
    stages, _, _ = _spatial.build(net.program, 32, 32, 2)
    plan = _spatial.plan(net.program, (32, 32, 3), 2, len(stages))
    steps, none = plan.steps.view(np.uint8), np.empty(0, dtype)
    numbers = _dispatch.driver("spatial").scratch_size(plan.compiled, steps, none, 2)
    assert 0 < numbers * dtype.itemsize <= megabytes * 1e6


# ---- finite networks

WIDTHS = (32, 96, 288)
DRAWS = 24
FINITE = {
    "pooled": (
        (3, 6, 2),
        spatial.Conv((3,), (1,), "same", 1.4, 0.1),
        networks.Act("Relu"),
        spatial.AvgPool((2,), (1,), "circular"),
        spatial.Conv((2,), (2,), "circular", 1.2, 0.2),
        networks.Act("Erf"),
        spatial.GlobalAvgPool(),
        networks.Dense(1.3, 0.1),
    ),
    "flat": (
        (3, 3, 4, 2),
        spatial.Conv((2, 3), (1, 1), "same", 1.4, 0.1, False),
        networks.Act("Relu"),
        spatial.Conv((2, 2), (1, 2), "valid", 1.3, 0.2),
        networks.Act("Relu"),
        spatial.Flatten(),
        networks.Dense(1.1),
        networks.Act("Relu"),
        networks.Dense(1.2, 0.2),
    ),
}


@pytest.mark.parametrize("name", FINITE)
def test_wide_networks_converge(name):
    rng = np.random.default_rng(11)
    shape, *network = FINITE[name]
    x = rng.standard_normal(shape)
    want = np.stack(kc.Sequential(*build(network)).kernels(x))
    size = np.sqrt(np.einsum("kii,kjj->kij", want, want))
    spread = []
    for width in WIDTHS:
        draws = np.stack([spatial.sample(network, x, width, rng) for _ in range(DRAWS)])
        error = draws.mean(0) - want
        standard = draws.std(0, ddof=1) / np.sqrt(DRAWS)
        # The mean over draws has a bias of order 1/width, far below its standard error.
        assert (np.abs(error) <= 5 * standard + 2 / width * size).all(), (width, error / standard)
        spread.append(np.sqrt((((draws - want) / size) ** 2).mean((0, 2, 3))))
    # 24 draws know a spread to 15 %; over a factor 9 of width that is 0.1 of slope.
    slopes = np.polyfit(np.log(WIDTHS), np.log(spread), 1)[0]
    np.testing.assert_allclose(slopes, -0.5, atol=0.2)
