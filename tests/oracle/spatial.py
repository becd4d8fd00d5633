"""Kernels of convolutional networks: the recursion over pairs of positions, and finite networks.

K and T are matrices over (image, position) pairs: N images of P positions make them N P x N P, and
the variance of a position is its entry on the diagonal. Layers, in the order of the forward pass:

    Input     K = <x, x'>/C, or the sum
    Conv      K <- w^2 mean over taps a of K[p + a, p' + a] + b^2, T <- K + w^2 mean of T
    AvgPool   the mean over windows of p and, independently, of p'; K and T alike
    readout   GlobalAvgPool: the mean over all (p, p'); Flatten: the mean or sum over p = p'
    Dense     Conv of one tap; Act: (dual, T dual of the derivative); Residual: the sum of two sides
    DotProduct, Project    K <- n p(u), T <- T p'(u), or K <- u, T <- T/n; n = sqrt(v v'), u = K/n

Images are (N, H, W, C), signals (N, L, C). Below the layers stand published codes, transcribed from
their own recursions, and random networks of finite width. All in long doubles.
"""

from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from . import duals, networks
from .networks import PI, Act, Dense, Residual

EXTENDED = np.longdouble
TINY = 1024 * np.finfo(EXTENDED).eps  # 1 - u^2 below this is zero, up to the oracle's own rounding


class Input(NamedTuple):
    sum: bool = False


class Conv(NamedTuple):
    filter_size: tuple
    stride: tuple
    padding: str = "same"
    w_std: float = 1.0
    b_std: float = 0.0
    trainable: bool = True


class AvgPool(NamedTuple):
    window: tuple
    stride: tuple
    padding: str = "valid"


class GaussianPool(NamedTuple):
    subsampling: int


class GlobalAvgPool(NamedTuple):
    pass


class Flatten(NamedTuple):
    sum: bool = False


class DotProduct(NamedTuple):
    profile: str
    params: tuple = ()


class Project(NamedTuple):
    pass


class OutOfRange(Exception):
    """Nothing left of the image, or an expansion that does not converge."""


# ---- duals: (v1, v2, cov) -> (E[phi phi], E[phi' phi'])


def angle(v1, v2, cov):
    """The angle between the two; two zeros are parallel, one is orthogonal to all."""
    square = v1 * v2
    rest = square - cov * cov
    rest = np.where(rest <= TINY * square, 0, rest)
    zeros = np.where((v1 == 0) & (v2 == 0), 0, PI / 2)
    return np.where(square == 0, zeros, np.arctan2(np.sqrt(rest), cov))


def orthant(n, v1, v2, theta):
    """E[max(0, x)^n max(0, y)^n], Cho and Saul's J_n / (2 pi) times the norms to the n."""
    c, s, rest = np.cos(theta), np.sin(theta), PI - theta
    j = (rest, s + rest * c, 3 * s * c + rest * (1 + 2 * c * c))[n]
    return np.sqrt(v1 * v2) ** n * j / (2 * PI)


def leaky(slope, v1, v2, cov):
    theta = angle(v1, v2, cov)
    return tuple(
        (1 + slope**2) * orthant(n, v1, v2, theta)
        - (-1) ** (n + 1) * 2 * slope * orthant(n, v1, v2, PI - theta)
        for n in (1, 0)
    )


def relu(v1, v2, cov):
    return leaky(0, v1, v2, cov)


def absolute(v1, v2, cov):
    return leaky(-1, v1, v2, cov)


def step(v1, v2, cov):
    value = orthant(0, v1, v2, angle(v1, v2, cov))
    return value, 0 * value


def sign(v1, v2, cov):
    value = 1 - 2 * angle(v1, v2, cov) / PI
    return value, 0 * value


def rectified_power(n, v1, v2, cov):
    theta = angle(v1, v2, cov)
    return orthant(n, v1, v2, theta), n * n * orthant(n - 1, v1, v2, theta)


def cos(v1, v2, cov):
    half = np.exp(-(v1 + v2) / 2)
    return half * np.cosh(cov), half * np.sinh(cov)


def exp(v1, v2, cov):
    value = np.exp((v1 + v2) / 2 + cov)
    return value, value


def gelu(v1, v2, cov):
    """Stein's lemma twice on E[x y 1(x > g) 1(y > g')], g and g' independent standard normals."""
    s1, s2 = 1 + v1, 1 + v2
    root = np.sqrt(s1 * s2 - cov * cov)
    both = EXTENDED(1) / 4 + np.arctan2(cov, root) / (2 * PI)
    rest = v1 * v2 - cov * cov * (1 - 1 / s1 - 1 / s2)
    slope = 2 * cov * (1 / s1 + 1 / s2) - cov + rest * cov / root**2
    return cov * both + rest / (2 * PI * root), both + slope / (2 * PI * root)


TERMS = 160


@lru_cache(maxsize=1)
def _hermite():
    """Nodes of a trapezoidal rule, and normalised Hermite polynomials times its normal weights."""
    z = np.arange(-130, 131) * 0.1
    low, high = np.zeros_like(z), np.exp(-z * z / 2) * 0.1 / np.sqrt(2 * np.pi)
    rows = []
    for k in range(TERMS):
        rows.append(high)
        low, high = high, (z * high - np.sqrt(k) * low) / np.sqrt(k + 1)
    return z, np.array(rows).T


def expansion(name, v1, v2, cov):
    """Mehler: sum of rho^k E[phi(x) h_k] E[phi(y) h_k], in doubles; Parseval tells what is left.

    Equal variances share their coefficients, so that copies stay copies to the last bit.
    """
    z, weights = _hermite()
    v, which = np.unique(np.concatenate([v1.ravel(), v2.ravel()]), return_inverse=True)
    rows, columns = which[: v1.size].reshape(v1.shape), which[v1.size :].reshape(v2.shape)
    rho = np.cos(angle(v1, v2, cov)).astype(float)
    x = np.sqrt(v.astype(float))[:, None] * z

    def series(f):
        values = f(x)
        means = values @ weights
        if (values**2 @ weights[:, 0] - (means**2).sum(1)).max() > 1e-12:
            raise OutOfRange(f"{name} at variance {v[-1]}")
        total = np.zeros(rho.shape)
        for mean in means.T[::-1]:
            total = total * rho + mean[rows] * mean[columns]
        return total.astype(EXTENDED)

    return tuple(series(f) for f in duals.functions(name, m=duals.NP))


DUALS = {
    "Relu": relu, "LeakyRelu": leaky, "Abs": absolute, "Step": step, "Sign": sign,
    "RectifiedPower": rectified_power, "Erf": networks.erf, "Sin": networks.sin, "Cos": cos,
    "Exp": exp, "Gelu": gelu,
}  # fmt: skip


def dual(act, v1, v2, cov):
    if act.name in DUALS:
        parameters = (EXTENDED(p) if isinstance(p, float) else p for p in act.params)
        return DUALS[act.name](*parameters, v1, v2, cov)
    return expansion(act.name, v1, v2, cov)


# ---- profiles: angle -> (p, p') of its cosine u


def kappa0(theta):
    return 1 - theta / PI, 1 / (PI * np.sin(theta))


def kappa1(theta):
    rest = 1 - theta / PI
    return rest * np.cos(theta) + np.sin(theta) / PI, rest


def exponential(s, theta):
    value = np.exp(-2 * np.sin(theta / 2) ** 2 / s**2)
    return value, value / s**2


def power(n, theta):
    u = np.cos(theta)
    return u**n, n * u ** (n - 1)


PROFILES = {"Kappa0": kappa0, "Kappa1": kappa1, "Exp": exponential, "Power": power}


def pointwise(layer, v1, v2, cov):
    """What an Act, DotProduct or Project makes of K, and its factor on T."""
    if isinstance(layer, Act):
        return dual(layer, v1, v2, cov)
    theta, size = angle(v1, v2, cov), np.sqrt(v1 * v2)
    if isinstance(layer, Project):  # nothing of a zero patch can be projected: it stays zero
        inverse = np.divide(1, size, out=np.zeros_like(size), where=size > 0)
        return np.where(size > 0, np.cos(theta), 0), inverse
    with np.errstate(divide="ignore"):  # kappa0' is infinite at 1
        value, slope = PROFILES[layer.profile](*layer.params, theta)
    return size * value, slope


# ---- positions


def taps(size, window, stride, padding):
    """(out, window): which input each tap of each output reads, -1 for a zero beyond the border."""
    if padding == "valid":
        out, before = (size - window) // stride + 1, 0
    else:
        out = -(-size // stride)
        before = max((out - 1) * stride + window - size, 0) // 2
    if out < 1:
        raise OutOfRange(f"{window} taps on {size} positions")
    source = stride * np.arange(out)[:, None] + np.arange(window) - before
    if padding == "circular":
        return source % size
    return np.where((source >= 0) & (source < size), source, -1)


def gaussian_taps(size, s):
    """Windows of 2 s + 1 from s i on, n // s - 1 of them, and the filter."""
    out = size // s - 1
    if out < 1:
        raise OutOfRange(f"subsampling {s} of {size} positions")
    source = s * np.arange(out)[:, None] + np.arange(2 * s + 1)
    weights = np.exp(-((np.arange(-s, s + 1) / EXTENDED(s)) ** 2))
    return np.where(source < size, source, -1), weights / weights.sum()


def per_axis(layer, shape):
    """The taps of a Conv or AvgPool along each axis."""
    windows = layer.filter_size if isinstance(layer, Conv) else layer.window
    return [
        taps(size, window, stride, layer.padding)
        for size, window, stride in zip(shape[1:], windows, layer.stride, strict=True)
    ]


def _with_zeros(k, shape):
    """K over (image, position) twice, a zero behind the end of each axis of positions."""
    return np.pad(k.reshape(shape + shape), ([(0, 0)] + [(0, 1)] * (len(shape) - 1)) * 2)


def patch_mean(k, shape, sources):
    """The same tap on both sides: mean over a of K[p + a, p' + a]."""
    images, padded = np.arange(shape[0]), _with_zeros(k, shape)
    new, total = (shape[0], *map(len, sources)), 0
    counts = [s.shape[1] for s in sources]
    for tap in product(*map(range, counts)):
        reads = [source[:, a] for source, a in zip(sources, tap, strict=True)]
        total = total + padded[np.ix_(images, *reads, images, *reads)]
    return (total / prod(counts)).reshape(prod(new), prod(new)), new


def pool(k, shape, sources, weights):
    """Any two taps: the sum of w_a w_b K[p + a, p' + b], one axis after the other."""
    k = k.reshape(shape + shape)
    for axis, (source, w) in enumerate(zip(sources, weights, strict=True), 1):
        for side in (axis, axis + len(shape)):
            padded = np.pad(k, [(0, int(i == side)) for i in range(k.ndim)])
            k = sum(w[a] * padded.take(source[:, a], side) for a in range(len(w)))
    new = (shape[0], *map(len, sources))
    return k.reshape(prod(new), prod(new)), new


def pooling(layer, shape):
    """Taps and weights of a pooling layer along each axis."""
    if isinstance(layer, GaussianPool):
        return tuple(
            zip(*(gaussian_taps(size, layer.subsampling) for size in shape[1:]), strict=True)
        )
    sources = per_axis(layer, shape)
    return sources, [np.full(s.shape[1], EXTENDED(1) / s.shape[1]) for s in sources]


def readout(layer, k, shape):
    images, positions = shape[0], prod(shape[1:])
    k = k.reshape(images, positions, images, positions)
    if isinstance(layer, GlobalAvgPool):
        return k.mean((1, 3))
    return np.trace(k, axis1=1, axis2=3) / (1 if layer.sum else positions)


# ---- the recursion


class State(NamedTuple):
    shape: tuple  # (N, H, W), (N, L), or (N,) after the readout
    k: np.ndarray  # (N P, N P)
    t: np.ndarray

    @property
    def variances(self):
        """As a column and as a row."""
        v = np.diagonal(self.k)
        return v[:, None], v[None, :]


def start(x, layer=Input()):  # noqa: B008
    x = np.asarray(x, EXTENDED)
    rows = x.reshape(-1, x.shape[-1])
    k = (rows[:, None] * rows[None]).sum(-1) / (1 if layer.sum else x.shape[-1])
    return State(x.shape[:-1], k, 0 * k)


def affine(layer, s):
    """Conv, or Dense wherever it stands."""
    mean_k, mean_t, shape = s.k, s.t, s.shape
    if isinstance(layer, Conv):
        sources = per_axis(layer, s.shape)
        (mean_k, shape), (mean_t, _) = (patch_mean(a, s.shape, sources) for a in (s.k, s.t))
    w2, b2 = EXTENDED(layer.w_std) ** 2, EXTENDED(layer.b_std) ** 2
    k = w2 * mean_k + b2
    return State(shape, k, w2 * mean_t + (k if layer.trainable else 0))


def pass_one(layer, s):
    """The state after any layer but a Residual."""
    if isinstance(layer, (Conv, Dense)):
        return affine(layer, s)
    if isinstance(layer, (AvgPool, GaussianPool)):
        (k, shape), (t, _) = (pool(a, s.shape, *pooling(layer, s.shape)) for a in (s.k, s.t))
        return State(shape, k, t)
    if isinstance(layer, (GlobalAvgPool, Flatten)):
        return State(s.shape[:1], *(readout(layer, a, s.shape) for a in (s.k, s.t)))
    k, factor = pointwise(layer, *s.variances, s.k)
    return State(s.shape, k, s.t * factor)


def walk(network, s):
    for layer in network:
        if isinstance(layer, Residual):
            one, other = walk(layer.branch, s), walk(layer.shortcut, s)
            if one.shape != other.shape:
                raise OutOfRange(f"{one.shape} beside {other.shape}")
            s = State(one.shape, one.k + other.k, one.t + other.t)
        else:
            s = pass_one(layer, s)
    return s


def split(network):
    """The input layer and the rest."""
    first = network[0]
    return (first, network[1:]) if isinstance(first, Input) else (Input(), network)


def kernels(network, x):
    """(nngp, ntk), each (N, N), of all images of x."""
    first, rest = split(network)
    s = walk(rest, start(x, first))
    return s.k, s.t


# ---- published codes: Gram matrices of images, S and T are (H, W, H, W) for each pair of them


def _pairs(x):
    """<x_i[p], x_j[p']> for i <= j."""
    return {
        (i, j): np.einsum("hwc,klc->hwkl", x[i], x[j])
        for i in range(len(x))
        for j in range(i, len(x))
    }


def _norms(s, i):
    return np.sqrt(np.einsum("hwhw->hw", s[i, i]))


def _gram(s, number):
    images = 1 + max(s)[0]
    return np.array(
        [[number(s[min(i, j), max(i, j)]) for j in range(images)] for i in range(images)]
    )


def _trace(s):
    return np.einsum("hwhw->", s)


def _conv3(s):
    """The sum over 3 x 3 taps, zeros beyond the border."""
    (h, w), padded = s.shape[:2], np.pad(s, 1)
    return sum(
        padded[a : a + h, b : b + w, a : a + h, b : b + w] for a in range(3) for b in range(3)
    )


def cntk(x, depth, gap, fix):
    """CNTK of Arora et al.: (N, H, W, C) -> (N, N)."""
    s = {ij: _conv3(raw) for ij, raw in _pairs(np.asarray(x, EXTENDED)).items()}
    t = {ij: 0 * a if fix else a for ij, a in s.items()}
    for layer in range(1, depth):
        norms = [_norms(s, i) for i in range(len(x))]
        for (i, j), a in s.items():
            left, right = norms[i][:, :, None, None], norms[j]
            theta = angle(left**2, right**2, a)
            s[i, j] = left * right * kappa1(theta)[0] / 9
            t[i, j] = t[i, j] * (1 - theta / PI) / 9 + s[i, j]
        if layer < depth - 1:
            s, t = ({ij: _conv3(a) for ij, a in b.items()} for b in (s, t))
    if fix:
        t = {ij: t[ij] - s[ij] for ij in t}
    return _gram(t, np.mean if gap else _trace)


MYRTLE = {5: "crcrpcrpcrq", 7: "crcrpcrcrpcrcrq", 10: "crcrcrpcrcrcrpcrcrcrq"}


def myrtle(x, depth, kernel="relu"):
    """Myrtle kernels of Shankar et al. in doubles; images whose sides end at 8 positions."""
    s = _pairs(np.asarray(x, float))

    def of_cosine(u):
        if kernel == "exp":
            return np.exp(u - 1)
        return (np.sqrt(1 - u * u) + u * (np.pi - np.arccos(u))) / np.pi

    def activate(s, project=False):
        norms = [_norms(s, i) for i in range(len(x))]
        after = {}
        for (i, j), a in s.items():
            size = norms[i][:, :, None, None] * norms[j]
            after[i, j] = (1 if project else size) * of_cosine(np.clip(a / size, -1, 1))
        return after

    def mean(a, w):
        h, v = a.shape[0] // w, a.shape[1] // w
        a = a[: h * w, : v * w, : h * w, : v * w]
        return a.reshape(h, w, v, w, h, w, v, w).mean((1, 3, 5, 7))

    for letter in MYRTLE[depth]:
        if letter == "r":
            s = activate(s)
        else:
            change = {"c": lambda a: _conv3(a) / 9, "p": lambda a: mean(a, 2)}
            s = {ij: change.get(letter, lambda a: mean(a, 8))(a) for ij, a in s.items()}
    return _gram(activate(s, project=True), np.squeeze)


def ckn(x, layers, ntk=False):
    """Bietti's convolutional kernel networks.

    ``layers`` are (patch, subsampling, profile, parameters). A patch is a sum over ``patch`` steps
    from trunc(-(patch - 1) / 2) on, zeros beyond the border; norms and cosine go to the profile; a
    Gaussian filter of 2 s + 1 taps follows at s, 2 s, ...; the trace ends it.
    """
    s = _pairs(np.asarray(x, EXTENDED))
    t = s

    def patches(a, size):
        (h, w), first = a.shape[:2], int(-(size - 1) / 2)
        padded = np.pad(a, size)
        rows = [slice(size + first + d, size + first + d + h) for d in range(size)]
        columns = [slice(size + first + d, size + first + d + w) for d in range(size)]
        return sum(padded[r, c, r, c] for r in rows for c in columns)

    def smooth(a, sub):
        sigma, filters = sub / np.sqrt(EXTENDED(2)), []
        for n in a.shape[:2]:
            taps = np.exp(-(np.arange(-sub, sub + 1) ** 2) / (2 * sigma**2))
            taps /= taps.sum()
            matrix = np.zeros((n // sub - 1, n + sub + 1), EXTENDED)
            for i, row in enumerate(matrix):
                row[sub * i : sub * i + 2 * sub + 1] = taps  # about sub (i + 1)
            filters.append(matrix[:, :n])
        return np.einsum("ah,bw,hwkl,ck,dl->abcd", *filters, a, *filters, optimize=True)

    for size, sub, name, parameters in layers:
        s, t = ({ij: patches(a, size) for ij, a in b.items()} for b in (s, t))
        norms, after_s, after_t = [_norms(s, i) for i in range(len(x))], {}, {}
        for (i, j), a in s.items():
            left, right = norms[i][:, :, None, None], norms[j]
            value, slope = PROFILES[name](*parameters, angle(left**2, right**2, a))
            after_s[i, j] = left * right * value
            after_t[i, j] = t[i, j] * slope + after_s[i, j]
        s, t = ({ij: smooth(a, sub) for ij, a in b.items()} for b in (after_s, after_t))
    return _gram(t if ntk else s, _trace)


def cyclic(x, y, patch, pool, h):
    """H(q, w) = 1/(d w) sum over k, s, s' of h(<x_(k+s), y_(k+s')>/q), x_k the q entries from k."""
    d = len(x)
    total = EXTENDED(0)
    for k in range(d):
        for s in range(pool):
            for t in range(pool):
                inner = sum(x[(k + s + a) % d] * y[(k + t + a) % d] for a in range(patch))
                total += h(EXTENDED(inner) / patch)
    return total / (d * pool)


# ---- finite networks


def _selection(sources, shape):
    """(out, taps, in): one where a tap of an output reads an input."""
    out, counts = [len(s) for s in sources], [s.shape[1] for s in sources]
    chosen = np.zeros((prod(out), prod(counts), prod(shape)))
    for o, place in enumerate(product(*map(range, out))):
        for a, tap in enumerate(product(*map(range, counts))):
            reads = [s[i, b] for s, i, b in zip(sources, place, tap, strict=True)]
            if min(reads) >= 0:
                chosen[o, a, np.ravel_multi_index(reads, shape)] = 1
    return chosen


def sample(network, x, width, rng):
    """(nngp, ntk) of one random network of the given width in the NTK parameterisation.

    That is z[p] = w_std sum_a W_a h[p + a] / sqrt(taps fan_in) + b_std b. Of Conv, Dense, Act,
    AvgPool, GlobalAvgPool and Flatten, a Dense last: nngp is the covariance of the output given all
    but that layer, ntk the sum of df(x)/dp df(x')/dp over trained parameters p.
    """
    images, shape = len(x), x.shape[1:-1]
    h = np.asarray(x, float).reshape(images, -1, x.shape[-1])  # (n, positions, channels)
    tape = []

    def affine(layer, chosen, size):
        """``chosen`` (out, taps, in); delta (n, out, size) goes back to (n, in, channels)."""
        patches = np.einsum("oai,nic->noac", chosen, h, optimize=True)
        patches = patches.reshape(*patches.shape[:2], -1)
        fan = patches.shape[2]
        weights = layer.w_std / np.sqrt(fan) * rng.standard_normal((fan, size))

        def back(delta):
            term = np.zeros((images, images))
            if layer.trainable:
                by_w = np.einsum("nof,nos->nfs", patches, delta, optimize=True).reshape(images, -1)
                by_b = delta.sum(1)
                term = layer.w_std**2 / fan * by_w @ by_w.T + layer.b_std**2 * by_b @ by_b.T
            taps = chosen.shape[1]
            delta = (delta @ weights.T).reshape(*delta.shape[:2], taps, -1)
            return np.einsum("noac,oai->nic", delta, chosen, optimize=True), term

        return patches @ weights + layer.b_std * rng.standard_normal(size), back

    def linear(matrix):
        """Positions to positions, nothing trained."""
        return np.einsum("oi,nic->noc", matrix, h), lambda delta: (
            np.einsum("noc,oi->nic", delta, matrix), 0.0
        )  # fmt: skip

    def multiply(slope):
        return lambda delta: (delta * slope, 0.0)

    def unfold(before):
        return lambda delta: (delta.reshape(before), 0.0)

    for k, layer in enumerate(network):
        last = k == len(network) - 1
        if isinstance(layer, Conv):
            sources = per_axis(layer, (images, *shape))
            after = affine(layer, _selection(sources, shape), width)
            shape = tuple(map(len, sources))
        elif isinstance(layer, Dense):
            if last:
                flat = h.reshape(images, -1)
                nngp = layer.w_std**2 / flat.shape[1] * flat @ flat.T + layer.b_std**2
            after = affine(layer, np.eye(h.shape[1])[:, None, :], 1 if last else width)
        elif isinstance(layer, Act):
            phi, slope = duals.functions(layer.name, layer.params, layer.shift, duals.NP)
            after = phi(h), multiply(slope(h))
        elif isinstance(layer, AvgPool):
            sources = per_axis(layer, (images, *shape))
            after = linear(_selection(sources, shape).mean(1))
            shape = tuple(map(len, sources))
        elif isinstance(layer, GlobalAvgPool):
            after, shape = linear(np.full((1, h.shape[1]), 1 / h.shape[1])), ()
        else:
            after, shape = (h.reshape(images, 1, -1), unfold(h.shape)), ()
        h, back = after
        tape.append(back)

    delta, ntk = np.ones((images, 1, 1)), 0.0
    for back in reversed(tape):
        delta, term = back(delta)
        ntk = ntk + term
    return nngp, ntk
