"""Duals of activations in mpmath, each by the plainest route to it.

``dual(name, params, shift, v1, v2, cov)`` returns E[phi(x) phi(y)] and E[phi'(x) phi'(y)] for
centred Gaussian (x, y) with the given variances and covariance, phi(z) = activation(z + shift).
Arguments are the exact rationals they are; |cov| >= sqrt(v1 v2) means the degenerate pair.

Two facts carry most of this file. Price: d/dcov E[f(x) g(y)] = E[f'(x) g'(y)] at fixed variances,

    E[f f] = sum_{k<=n} cov^k/k! E[f^(k)(x)] E[f^(k)(y)]
             + int_0^cov (cov-t)^n/n! E_t[f^(n+1)(x) f^(n+1)(y)] dt.

Tilting: under the weight exp(-a (x+h)^2 - a (y+h)^2), (x+h, y+h) is Gaussian again.
"""

from functools import lru_cache
from itertools import pairwise, product
from types import SimpleNamespace

import mpmath as mp
import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy import special

mp.mp.dps = 50
GUARD = 200  # working digits of closed forms: enough for psi^(2n+1) beside rho = -1

RHO = (-1.0, -1 + 1e-4, -0.9, -0.5, -1e-8, 0.0, 1e-8, 0.3, 0.9, 1 - 1e-4, 1 - 1e-8, 1.0)
VARIANCES = (1e-4, 0.1, 1.0, 3.0, 30.0)
WIDE_VARIANCES = (1e-8, *VARIANCES, 1e8)

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def covariance(rho, v1, v2):
    """The double nearest rho sqrt(v1 v2)."""
    return float(mp.mpf(rho) * mp.sqrt(mp.mpf(v1) * mp.mpf(v2)))


# ---- the functions themselves

MP = SimpleNamespace(
    exp=mp.exp, sin=mp.sin, cos=mp.cos, tanh=mp.tanh, cosh=mp.cosh, log1p=mp.log1p, sqrt=mp.sqrt,
    erf=mp.erf, minimum=min, number=mp.mpf, where=lambda test, a, b: a if test else b,
)  # fmt: skip
NP = SimpleNamespace(
    exp=np.exp, sin=np.sin, cos=np.cos, tanh=np.tanh, cosh=np.cosh, log1p=np.log1p, sqrt=np.sqrt,
    erf=special.erf, minimum=np.minimum, number=float, where=np.where,
)  # fmt: skip


def functions(name, params=(), shift=0.0, m=MP):
    """The pair phi, phi' on mpf (m=MP) or NumPy arrays (m=NP); phi' is zero where there is none."""
    f, df = _plain(name, params, m)
    shift = m.number(shift)
    return (lambda z: f(z + shift)), (lambda z: df(z + shift))


def _plain(name, params, m):
    pi = mp.pi if m is MP else np.pi
    one, step = (lambda x: 1 + 0 * x), (lambda x: m.where(x > 0, 1 + 0 * x, 0 * x))

    def sigmoid(x):
        return 1 / (1 + m.exp(-x))

    def density(x):
        return m.exp(-x * x / 2) / m.sqrt(m.number(2) * pi)

    def normal_cdf(x):
        return (1 + m.erf(x / m.sqrt(m.number(2)))) / 2

    def expm1_below_zero(x):
        return m.exp(m.minimum(x, 0 * x)) - 1

    if name in ("Elu", "Selu"):
        alpha, scale = (1, 1) if name == "Elu" else (m.number(SELU_ALPHA), m.number(SELU_SCALE))
        return (
            lambda x: scale * (x * step(x) + alpha * expm1_below_zero(x)),
            lambda x: scale * m.where(x > 0, one(x), alpha * (1 + expm1_below_zero(x))),
        )
    if name == "LeakyRelu":
        slope = m.number(params[0])
        return (
            lambda x: m.where(x > 0, x, slope * x),
            lambda x: m.where(x > 0, one(x), slope * one(x)),
        )
    if name == "RectifiedPower":
        n = params[0]
        return (lambda x: step(x) * x**n), (lambda x: n * step(x) * x ** max(n - 1, 0))
    if name in ("Identity", "Monomial", "Hermite", "PowerSeries"):
        p = [m.number(c) if m is not MP else c for c in polynomial(name, params)]
        dp = [k * c for k, c in enumerate(p)][1:] or [0 * p[0]]

        def value(c, x):
            return sum(ck * x**k for k, ck in enumerate(c)) + 0 * x

        return (lambda x: value(p, x)), (lambda x: value(dp, x))
    return {
        "Relu": (lambda x: x * step(x), step),
        "Abs": (abs, lambda x: step(x) - step(-x)),
        "Step": (step, lambda x: 0 * x),
        "Sign": (lambda x: step(x) - step(-x), lambda x: 0 * x),
        "Erf": (m.erf, lambda x: 2 * m.exp(-x * x) / m.sqrt(pi)),
        "Gelu": (lambda x: x * normal_cdf(x), lambda x: normal_cdf(x) + x * density(x)),
        "Sin": (m.sin, m.cos),
        "Cos": (m.cos, lambda x: -m.sin(x)),
        "Exp": (m.exp, m.exp),
        "GaussianBump": (lambda x: m.exp(-x * x), lambda x: -2 * x * m.exp(-x * x)),
        "Tanh": (m.tanh, lambda x: m.cosh(x) ** -2),
        "Sigmoid": (sigmoid, lambda x: sigmoid(x) * sigmoid(-x)),
        "Silu": (lambda x: x * sigmoid(x), lambda x: sigmoid(x) * (1 + x * sigmoid(-x))),
        "Softplus": (lambda x: x * step(x) + m.log1p(m.exp(-abs(x))), sigmoid),
    }[name]


def polynomial(name, params):
    """Coefficients of a polynomial activation, constant first."""
    if name == "PowerSeries":
        return [mp.mpf(c) for c in params[0]]
    n = params[0] if params else 1
    if name in ("Identity", "Monomial"):
        return [mp.mpf(0)] * n + [mp.mpf(1)]
    low, high = [0], [1]  # He_-1, He_0; He_(k+1) = x He_k - k He_(k-1)
    for k in range(n):
        pad = [-k * c for c in low] + [0] * (len(high) + 1 - len(low))
        low, high = high, [a + b for a, b in zip([0, *high], pad, strict=True)]
    return [c / mp.sqrt(mp.factorial(n)) for c in high]


# ---- closed forms


_arccos = lru_cache(maxsize=16)(mp.acos)


def orthant(n, v1, v2, c):
    """E[max(0,x)^n max(0,y)^n].

    In polar coordinates (v1 v2)^(n/2) n!/(2 pi) int_0^psi (cos b - cos psi)^n db with
    psi = arccos(-rho), expanded by the binomial and the reduction formula of int cos^k.
    """
    size = mp.sqrt(v1 * v2)
    cosine = max(-1, min(1, -c / size))
    psi, sine = _arccos(cosine), mp.sqrt(1 - cosine * cosine)
    powers = [psi, sine]
    for k in range(2, n + 1):
        powers.append((cosine ** (k - 1) * sine + (k - 1) * powers[k - 2]) / k)
    total = mp.fsum(mp.binomial(n, k) * powers[k] * (-cosine) ** (n - k) for k in range(n + 1))
    return size**n * mp.factorial(n) * total / (2 * mp.pi)


def _homogeneous(name, params, v1, v2, c):
    def same(n):
        return orthant(n, v1, v2, c)

    def opposite(n):  # E[max(0,x)^n max(0,-y)^n]
        return orthant(n, v1, v2, -c)

    if name == "Relu":
        return same(1), same(0)
    if name == "LeakyRelu":
        a = mp.mpf(params[0])
        value = (1 + a * a) * same(1) - 2 * a * opposite(1)
        return value, (1 + a * a) * same(0) + 2 * a * opposite(0)
    if name == "Abs":
        return 2 * same(1) + 2 * opposite(1), 2 * same(0) - 2 * opposite(0)
    if name == "Step":
        return same(0), mp.mpf(0)
    if name == "Sign":
        return 2 * same(0) - 2 * opposite(0), mp.mpf(0)
    n = params[0]
    return same(n), n * n * same(n - 1) if n else mp.mpf(0)


@lru_cache(maxsize=4096)
def _mean_derivatives(p, v):
    """E[p^(j)(x)] / j! for every j, by E[x^2k] = (2k-1)!! v^k."""
    return tuple(
        mp.fsum(
            p[a] * mp.binomial(a, j) * mp.fac2(a - j - 1) * v ** ((a - j) // 2)
            for a in range(j, len(p), 2)
        )
        for j in range(len(p))
    )


def _isserlis(p, v1, v2, c):
    """E[p(x) p(y)]: of the Wick pairings, j join x to y (j! of them), the rest stay within."""
    pairs = zip(_mean_derivatives(p, v1), _mean_derivatives(p, v2), strict=True)
    return mp.fsum(mp.factorial(j) * c**j * a * b for j, (a, b) in enumerate(pairs))


@lru_cache(maxsize=256)
def _shifted_polynomial(name, params, h):
    p = polynomial(name, params)
    p = tuple(
        mp.fsum(p[a] * mp.binomial(a, k) * h ** (a - k) for a in range(k, len(p)))
        for k in range(len(p))
    )
    return p, tuple(k * a for k, a in enumerate(p))[1:] or (mp.mpf(0),)


def _polynomial(name, params, h, v1, v2, c):
    return tuple(_isserlis(p, v1, v2, c) for p in _shifted_polynomial(name, params, h))


def _tilted(a, h, v1, v2, c):
    """Weight, means, variances and covariance of (x+h, y+h) under exp(-a (x+h)^2 - a (y+h)^2)."""
    det = (1 + 2 * a * v1) * (1 + 2 * a * v2) - 4 * a * a * c * c
    m1, m2 = h * (1 + 2 * a * (v2 - c)) / det, h * (1 + 2 * a * (v1 - c)) / det
    weight, spread = mp.exp(-a * h * (m1 + m2)) / mp.sqrt(det), 2 * a * (v1 * v2 - c * c)
    return weight, m1, m2, (v1 + spread) / det, (v2 + spread) / det, c / det


def _bump(h, v1, v2, c):
    weight, m1, m2, _, _, cov = _tilted(1, h, v1, v2, c)
    return weight, 4 * weight * (cov + m1 * m2)


def _waves(name, h, v1, v2, c):
    near = mp.exp(-(v1 + v2 - 2 * c) / 2) / 2
    far = mp.cos(2 * h) * mp.exp(-(v1 + v2 + 2 * c) / 2) / 2
    return (near - far, near + far) if name == "Sin" else (near + far, near - far)


def _erf(h, v1, v2, c):
    """erf(x) = E sign(x - g/sqrt 2); Williams' arcsine when h = 0."""
    half = mp.mpf(1) / 2
    derivative = 4 / mp.pi * _bump(h, v1, v2, c)[0]
    if h == 0:
        return 2 / mp.pi * mp.asin(c / mp.sqrt((half + v1) * (half + v2))), derivative
    return _kink("Sign", (), h, v1 + half, v2 + half, c)[0], derivative


def _gelu(v1, v2, c):
    """Stein's lemma twice on E[x y 1(x > g) 1(y > g')], g and g' independent standard normals."""
    s1, s2 = 1 + v1, 1 + v2
    root = mp.sqrt(s1 * s2 - c * c)
    both = mp.mpf(1) / 4 + mp.asin(c / mp.sqrt(s1 * s2)) / (2 * mp.pi)
    rest = v1 * v2 - c * c * (1 - 1 / s1 - 1 / s2)
    slope = 2 * c * (1 / s1 + 1 / s2) - c + rest * c / root**2
    return c * both + rest / (2 * mp.pi * root), both + slope / (2 * mp.pi * root)


# ---- one-dimensional integrals


@lru_cache(maxsize=65536)
def _kink_remainder(n, h, v1, v2, c):
    """int_0^c (c-t)^n/n! p_t(-h, -h) dt, p_t the Gaussian density; t = sqrt(v1 v2) sin(theta)."""
    if c == 0:
        return mp.mpf(0)
    size, gap = mp.sqrt(v1 * v2), (mp.sqrt(v1) - mp.sqrt(v2)) ** 2
    end = mp.asin(max(-1, min(1, c / size)))

    def power(theta):
        cosine = mp.cos(theta)
        half = mp.sin((mp.pi / 2 - theta) / 2) ** 2  # (1 - sin theta) / 2
        if v1 == v2:  # the vanishing factors divided out
            return 1 / (v1 * (2 - 2 * half)) if half < 1 else mp.inf
        return (gap + 4 * size * half) / (2 * (size * cosine) ** 2) if cosine else mp.inf

    # Scaled to order one, because mp.quad stops at an absolute error; least at t = min(v1, v2).
    least = power(max(0, min(end, mp.asin(min(v1, v2) / size))))

    def integrand(u):
        shape = 1 - mp.sin(end * u) / mp.sin(end)
        return shape**n * mp.exp(-h * h * (power(end * u) - least))

    value, error = mp.quad(integrand, mp.linspace(0, 1, 9), error=True, maxdegree=9)
    if error > mp.mpf(10) ** -25 * value:
        raise ArithmeticError(f"quadrature stalled at {n=} {h=} {v1=} {v2=} {c=}: {error / value}")
    return end * c**n * mp.exp(-h * h * least) * value / (2 * mp.pi * mp.factorial(n))


@lru_cache(maxsize=4096)
def _rectified_moments(n, h, v):
    """E[max(0, x+h)^j] for j = 0..n."""
    s = mp.sqrt(v)
    m = [mp.ncdf(h / s)]
    m.append(h * m[0] + s * mp.npdf(h / s))
    for j in range(2, n + 1):
        m.append(h * m[j - 1] + (j - 1) * v * m[j - 2])
    return m[: n + 1]


def _kink(name, params, h, v1, v2, c):
    """A jump of size `jump` in the n-th derivative, at -h, and nothing beyond it."""
    n = {"Step": 0, "Sign": 0, "RectifiedPower": params[0] if params else 0}.get(name, 1)
    slope = mp.mpf(params[0]) if name == "LeakyRelu" else {"Abs": -1, "Sign": -1}.get(name, 0)
    jump = mp.factorial(n) * (1 - slope)  # phi = x^n above, slope x^n below

    def means(v):  # E[phi^(k)] for k = 0..n
        up, down = _rectified_moments(n, h, v), _rectified_moments(n, -h, v)
        sign = [(-1) ** j for j in range(n + 1)]
        whole = [up[j] + slope * sign[j] * down[j] for j in range(n + 1)]
        return [mp.ff(n, k) * whole[n - k] for k in range(n + 1)]

    def taylor(first):  # the dual of the first-th derivative
        terms = [
            c ** (k - first) / mp.factorial(k - first) * p * q
            for k, (p, q) in enumerate(zip(means(v1), means(v2), strict=True))
            if k >= first
        ]
        return mp.fsum(terms) + jump**2 * _kink_remainder(n - first, h, v1, v2, c)

    return taylor(0), taylor(1) if n else mp.mpf(0)


def _gelu_by_price(h, v1, v2, c):
    """Gelu'' = (2 - x^2) exp(-x^2/2) / sqrt(2 pi): tilted moments, integrated over cov."""

    def second(t):
        weight, m1, m2, s1, s2, s12 = _tilted(mp.mpf(1) / 2, h, v1, v2, t)
        xx, yy = s1 + m1 * m1, s2 + m2 * m2
        xxyy = xx * yy + 2 * s12**2 + 4 * s12 * m1 * m2
        return weight * (4 - 2 * xx - 2 * yy + xxyy) / (2 * mp.pi)

    def means(v):
        s = mp.sqrt(1 + v)
        below, density = mp.ncdf(h / s), mp.npdf(h / s)
        return h * below + v / s * density, below + h / s**3 * density

    (a0, a1), (b0, b1) = means(v1), means(v2)
    if c == 0:
        return a0 * b0, a1 * b1
    cuts = [c * f for f in (0, 0.5, 0.75, 0.9, 1)]  # the integrand steepens towards the end
    value = mp.quad(lambda t: (c - t) * second(t), cuts, method="gauss-legendre")
    slope = mp.quad(second, cuts, method="gauss-legendre")
    return a0 * b0 + c * a1 * b1 + value, a1 * b1 + slope


@lru_cache(maxsize=8)
def _gauss_legendre(n):
    """Nodes and weights on [-1, 1] to working precision: NumPy's, polished by Newton."""
    nodes = []
    for x in map(mp.mpf, leggauss(n)[0]):
        for _ in range(3):
            p, q = mp.mpf(1), x
            for k in range(2, n + 1):
                p, q = q, ((2 * k - 1) * x * q - (k - 1) * p) / k
            dp = n * (x * q - p) / (x * x - 1)
            x -= q / dp
        nodes.append((x, 2 / ((1 - x * x) * dp * dp)))
    return nodes


@lru_cache(maxsize=65536)
def _elu_parts(h, v1, v2, c):
    """E[a(x) b(y)] for a, b in {max(x,0), min(e^x,1)-1}, and of the derivatives, given x first."""
    root = mp.sqrt(v1)
    gain, s = c / root, mp.sqrt(max(v2 - c * c / v1, 0))

    def outer(x):
        return (x, 0, 1, 0) if x > 0 else (0, mp.expm1(x), 0, mp.exp(x))

    def inner(mean):
        if s == 0:
            return outer(mean)
        above, tail = mp.ncdf(mean / s), mp.exp(mean + s * s / 2) * mp.ncdf(-(mean / s + s))
        return mean * above + s * mp.npdf(mean / s), tail - (1 - above), above, tail

    reach = mp.mpf(12)  # the standard normal weighs 5e-32 beyond
    cuts = {-reach, reach, *map(mp.mpf, range(-10, 11, 2)), -h / root}
    if c:
        kink, width = -h / gain, s / abs(gain)  # where y's mean crosses its kink, and how sharply
        cuts.add(kink)
        while 0 < width < reach:
            cuts |= {kink - width, kink + width}
            width *= 2
    cuts = sorted(k for k in cuts if abs(k) <= reach)
    total = [mp.mpf(0)] * 8
    for lo, hi in pairwise(cuts):
        mid, half = (lo + hi) / 2, (hi - lo) / 2
        for node, weight in _gauss_legendre(36):
            g = mid + half * node
            p, q = outer(root * g + h), inner(gain * g + h)
            w = weight * half * mp.npdf(g)
            for k, (i, j) in enumerate((*product((0, 1), repeat=2), *product((2, 3), repeat=2))):
                if p[i]:
                    total[k] += w * p[i] * q[j]
    return total


def _elu(name, h, v1, v2, c):
    alpha, scale = (1, 1) if name == "Elu" else (mp.mpf(SELU_ALPHA), mp.mpf(SELU_SCALE))
    with mp.workdps(36):
        parts = _elu_parts(h, v1, v2, c)
        weights = (1, alpha, alpha, alpha**2)
        value, slope = (mp.fdot(weights, parts[k : k + 4]) for k in (0, 4))
        return scale**2 * value, scale**2 * slope


# ---- the plane


def _logistic(name, params, h, v1, v2, c):
    """Trapezoidal rule over the plane in extended precision.

    Poles at i pi (tanh: i pi/2) leave an error of exp(-2 pi distance / step), the truncation
    exp(-11^2 / 2), the rounding about 1e-18.
    """
    if np.finfo(np.longdouble).eps > 2e-19:
        raise ArithmeticError(
            "the logistic oracle needs an 80-bit long double; use the frozen table"
        )

    def extended(x):  # two doubles carry the 64 bits
        high = float(x)
        return np.longdouble(high) + np.longdouble(float(x - high))

    root = mp.sqrt(v1)
    gain, rest = c / root, mp.sqrt(max(v2 - c * c / v1, 0))
    pole = np.pi / (2 if name == "Tanh" else 1)
    step = min(0.25, 2 * np.pi * pole / float(mp.sqrt(max(v1, v2))) / 52)
    count = int(11 / step) + 1
    g = np.arange(-count, count + 1) * np.longdouble(step)
    weight = np.exp(-g * g / 2)
    weight /= weight.sum()
    f, df = _plain(name, params, NP)
    h = extended(h)
    x = extended(root) * g + h
    y = (extended(gain) * g)[:, None] + (extended(rest) * g + h)
    results = (weight * p(x) @ (p(y) * weight).sum(1) for p in (f, df))
    return tuple(mp.mpf(float(r)) + mp.mpf(float(r - np.longdouble(float(r)))) for r in results)


def by_quadrature(name, params, shift, v1, v2, cov, nodes=24):
    """The definition itself, in doubles: Gauss-Legendre cut at the kinks. For moderate rho."""
    f, df = functions(name, params, shift, NP)
    x, w = leggauss(nodes)

    def panels(cuts):  # cuts (..., k) -> nodes and weights (..., (k-1) nodes)
        lo, hi = cuts[..., :-1, None], cuts[..., 1:, None]
        g = (lo + hi) / 2 + (hi - lo) / 2 * x
        weight = (hi - lo) / 2 * w * np.exp(-g * g / 2) / np.sqrt(2 * np.pi)
        return g.reshape(*cuts.shape[:-1], -1), weight.reshape(*cuts.shape[:-1], -1)

    def cuts(kink):
        kink, grid = np.clip(kink, -12, 12)[..., None], np.linspace(0, 1, 9)
        return np.concatenate([-12 + (kink + 12) * grid, kink + (12 - kink) * grid[1:]], axis=-1)

    root = v1**0.5
    gain, rest = cov / root, (v2 - cov * cov / v1) ** 0.5
    g1, w1 = panels(cuts(np.asarray(-shift / root)))
    mean = gain * g1
    g2, w2 = panels(cuts((-shift - mean) / rest))
    y = mean[:, None] + rest * g2
    return tuple(float(w1 * p(root * g1) @ (w2 * p(y)).sum(1)) for p in (f, df))


# ---- the door

KINKS = ("Relu", "LeakyRelu", "Abs", "Step", "Sign", "RectifiedPower")
POLYNOMIALS = ("Identity", "Monomial", "Hermite", "PowerSeries")
LOGISTIC = ("Tanh", "Sigmoid", "Silu", "Softplus")
ELUS = ("Elu", "Selu")


def dual(name, params, shift, v1, v2, cov):
    """(E[phi(x) phi(y)], E[phi'(x) phi'(y)]) as mpf; both variances positive."""
    h, v1, v2, c = map(mp.mpf, (shift, v1, v2, cov))
    with mp.workdps(GUARD + 3 * abs(int(mp.log10(max(v1, v2, 1 / v1, 1 / v2))))):
        size = mp.sqrt(v1 * v2)
        c = max(-size, min(size, c))
        if name in KINKS and h == 0:
            return _homogeneous(name, params, v1, v2, c)
        if name in POLYNOMIALS:
            return _polynomial(name, params, h, v1, v2, c)
        if name in ("Sin", "Cos"):
            return _waves(name, h, v1, v2, c)
        if name == "Exp":
            return (mp.exp(2 * h + (v1 + v2 + 2 * c) / 2),) * 2
        if name == "GaussianBump":
            return _bump(h, v1, v2, c)
        if name == "Gelu" and h == 0:
            return _gelu(v1, v2, c)
        if name == "Erf" and h == 0:
            return _erf(h, v1, v2, c)
        if name in LOGISTIC:
            return _logistic(name, params, h, v1, v2, c)
    if name in ELUS:
        return _elu(name, h, v1, v2, c)
    if name == "Gelu":
        return _gelu_by_price(h, v1, v2, c)
    return _erf(h, v1, v2, c) if name == "Erf" else _kink(name, params, h, v1, v2, c)


def ulp_effect(name, params, shift, v1, v2, cov, at):
    """How far (dual, derivative), `at` at cov, move when cov is multiplied by 1 +- eps."""
    moved = [
        dual(name, params, shift, v1, v2, mp.mpf(cov) * (1 + sign * mp.mpf(2) ** -52))
        for sign in (-1, 1)
    ]
    return tuple(max(abs(m[k] - at[k]) for m in moved) for k in range(2))
